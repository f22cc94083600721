/* SPDX-License-Identifier: MIT
 *
 * read, write and edit of the built-in agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "tools/builtin.h"

static void fail_on_path(struct builtin_answer *ret, const char *what, const char *path)
{
    switch (errno) {
    case ENOENT:
        builtin_fail(ret, "'%s' does not exist. Use list or search to find the right path.", path);
        return;
    case ENOTDIR:
        builtin_fail(ret, "a part of the path '%s' is a file, not a directory.", path);
        return;
    case EROFS:
    case EACCES:
    case EPERM:
        builtin_fail(ret, "cannot %s '%s': the sandbox or the permissions do not allow it.", what,
                     path);
        return;
    default:
        builtin_fail(ret, "cannot %s '%s': %s.", what, path, strerror(errno));
    }
}

const char *builtin_path(const struct json *arguments, const char *otherwise,
                         struct builtin_answer *ret)
{
    const struct json *v = json_get(arguments, "path");
    struct str path = json_str(v, str_of(otherwise));
    if (path.len == 0 || str_has_nul(path) || path.len >= PATH_MAX) {
        builtin_fail(ret, "'path' must be a path, relative to the workspace or absolute.");
        return NULL;
    }
    return v == NULL ? otherwise : json_cstring(v, otherwise);
}

int builtin_open(const struct json *arguments, struct builtin_answer *ret)
{
    const char *path = builtin_path(arguments, "", ret);
    struct stat st;
    if (path == NULL) {
        return -1;
    }
    /* A pipe that nothing writes to must not block the call. */
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        fail_on_path(ret, "read", path);
        return -1;
    }
    if (S_ISDIR(st.st_mode)) {
        builtin_fail(ret, "'%s' is a directory: use list.", path);
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        builtin_fail(ret, "'%s' is not a regular file (a device, pipe or socket).", path);
        return -1;
    }
    return TAKE_FD(fd);
}

/* --- read --- */

struct window {
    int64_t first, last; /* lines, from 1 */
    int64_t line;        /* that comes next */
    int64_t shown_until;
    size_t bad;
    bool full; /* no room for more */
    struct buf *out;
};

static void show_line(struct window *w, struct str line)
{
    int64_t number = w->line++;
    if (number < w->first || number > w->last || w->full) {
        return;
    }
    if (w->out->len + line.len > BUILTIN_TEXT_MAX && w->shown_until >= w->first) {
        w->full = true;
        return;
    }
    w->bad += builtin_add_line(w->out, line, BUILTIN_LINE_MAX);
    buf_adds(w->out, "\n");
    w->shown_until = number;
}

/* Line by line, so that the end of a huge file costs no memory. False: it is binary, or cannot be
 * read. */
static bool scan(int fd, struct window *w, bool *ret_whole, struct builtin_answer *ret)
{
    CLEANUP(buf) struct buf rest = BUF_INIT(BUF_TEXT);
    static char chunk[64 << 10];
    size_t total = 0;
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 && total < BUILTIN_SCAN_MAX) {
        struct str bytes = str_n(chunk, (size_t)n);
        if (total == 0 && builtin_is_binary(bytes)) {
            builtin_fail(ret, "this is a binary file: use shell, for example with file, strings, "
                              "od or a program that knows its format.");
            return false;
        }
        total += bytes.len;
        for (const char *end; (end = memchr(bytes.ptr, '\n', bytes.len)) != NULL;) {
            struct str line = str_n(bytes.ptr, (size_t)(end - bytes.ptr));
            bytes = str_slice(bytes, line.len + 1, bytes.len);
            if (rest.len > 0) {
                buf_add(&rest, str_slice(line, 0, BUILTIN_LINE_MAX + 1));
                line = buf_str(&rest);
            }
            show_line(w, line);
            buf_reset(&rest);
        }
        if (rest.len <= BUILTIN_LINE_MAX) { /* of a line without end its beginning is enough */
            buf_add(&rest, bytes);
        }
    }
    if (n < 0) {
        builtin_fail(ret, "the file cannot be read: %s.", strerror(errno));
        return false;
    }
    *ret_whole = n == 0;
    if (rest.len > 0) {
        show_line(w, buf_str(&rest));
    }
    return true;
}

static void add_notes(const struct window *w, bool whole, struct buf *out)
{
    long long lines = (long long)w->line - 1;
    if (w->shown_until < lines || w->first > 1) {
        buf_addf(out, "[lines %lld to %lld of %s%lld", (long long)w->first,
                 (long long)w->shown_until, whole ? "" : "more than ", lines);
        if (w->shown_until < lines) {
            buf_addf(out, "; continue with offset %lld", (long long)w->shown_until + 1);
        }
        buf_adds(out, "]\n");
    }
    if (w->bad > 0) {
        buf_addf(out,
                 "[%zu bytes are not valid UTF-8 and are shown as U+FFFD: use shell to change "
                 "these lines]\n",
                 w->bad);
    }
}

void builtin_read(const struct json *arguments, struct builtin_answer *ret)
{
    int64_t first = json_int(json_get(arguments, "offset"), 1);
    int64_t limit = json_int(json_get(arguments, "limit"), BUILTIN_LINES_MAX);
    bool whole = true;
    CLEANUP(fd) int fd = builtin_open(arguments, ret);
    if (fd < 0) {
        return;
    }
    limit = limit < BUILTIN_LINES_MAX ? limit : BUILTIN_LINES_MAX;
    struct window w = {
        .first = first, .last = first + limit - 1, .line = 1, .shown_until = 0, .out = &ret->text
    };
    if (!scan(fd, &w, &whole, ret)) {
        return;
    }
    if (w.line == 1) {
        buf_adds(&ret->text, "[the file is empty]\n");
    } else if (w.first >= w.line) {
        builtin_fail(ret, "the file has only %lld lines.", (long long)w.line - 1);
    } else {
        add_notes(&w, whole, &ret->text);
    }
}

/* --- write --- */

/* Through links, and with the permissions that the file has: what is there stays what it is. */
static bool store(const char *path, struct str content, struct builtin_answer *ret)
{
    struct err e;
    struct stat st;
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0 && errno == EISDIR) {
        builtin_fail(ret, "'%s' is a directory.", path);
        return false;
    }
    if (fd < 0 && errno != ENXIO) {
        fail_on_path(ret, "write", path);
        return false;
    }
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        builtin_fail(ret, "'%s' is not a regular file (a device, pipe or socket).", path);
        return false;
    }
    if (ftruncate(fd, 0) < 0) {
        fail_on_path(ret, "write", path);
        return false;
    }
    if (file_write_all(fd, content, &e) < 0) {
        builtin_fail(ret, "cannot write '%s': %s.", path, e.msg);
        return false;
    }
    return true;
}

static bool make_parents(const char *path, struct builtin_answer *ret)
{
    char dir[PATH_MAX];
    struct err e;
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return true;
    }
    size_t n = (size_t)(slash - path);
    memcpy(dir, path, n);
    dir[n] = '\0';
    if (file_is_dir(AT_FDCWD, dir) || file_mkdirs(AT_FDCWD, dir, 0777, &e) == 0) {
        return true;
    }
    builtin_fail(ret, "the directory '%s' cannot be made: %s.", dir, e.msg);
    return false;
}

void builtin_write(const struct json *arguments, struct builtin_answer *ret)
{
    const char *path = builtin_path(arguments, "", ret);
    struct str content = json_str(json_get(arguments, "content"), STR_EMPTY);
    struct stat st;
    if (path == NULL || !make_parents(path, ret)) {
        return;
    }
    size_t lines = content.len == 0 ? 0 : builtin_line_of(content, content.len - 1);
    bool existed = stat(path, &st) == 0;
    if (store(path, content, ret)) {
        buf_addf(&ret->text, "%s '%s': %zu bytes, %zu line%s.\n",
                 existed ? "Replaced the content of" : "Created", path, content.len, lines,
                 lines == 1 ? "" : "s");
    }
}

/* --- edit --- */

/* "lines 3, 17, 20 …" */
static void add_places(struct str text, struct str from, struct buf *out)
{
    enum { SHOWN = 8 };
    size_t base = 0;
    for (int i = 0; i <= SHOWN; i++) {
        size_t at = base + str_find(str_slice(text, base, text.len), from);
        if (at >= text.len) {
            return;
        }
        if (i == SHOWN) {
            buf_adds(out, " …");
            return;
        }
        buf_addf(out, "%s%zu", i == 0 ? "" : ", ", builtin_line_of(text, at));
        base = at + from.len;
    }
}

static void fail_to_match(const char *path, const struct builtin_replace *r, size_t n,
                          struct builtin_answer *ret)
{
    CLEANUP(buf) struct buf places = BUF_INIT(BUF_TEXT);
    size_t near = n == 0 ? builtin_near_match(r->text, r->from) : 0;
    if (near > 0) {
        builtin_fail(ret,
                     "'old_text' is not in '%s' exactly, but line %zu and those after it differ "
                     "only in white space: read them and copy them exactly.",
                     path, near);
    } else if (n == 0) {
        builtin_fail(ret,
                     "'old_text' is not in '%s'. It must match exactly, white space included: "
                     "read the file again.",
                     path);
    } else {
        add_places(r->text, r->from, &places);
        builtin_fail(ret,
                     "'old_text' is in '%s' %zu times (lines %.*s): add lines around it that make "
                     "it unique, or set replace_all.",
                     path, n, STR_ARG(buf_str(&places)));
    }
}

static bool load(const struct json *arguments, const char *path, struct buf *text,
                 struct builtin_answer *ret)
{
    struct err e;
    CLEANUP(fd) int fd = builtin_open(arguments, ret);
    if (fd < 0) {
        return false;
    }
    if (file_read_fd(fd, path, BUILTIN_FILE_MAX, text, &e) < 0) {
        builtin_fail(ret,
                     e.code == ERR_LIMIT
                         ? "'%s' has more than 16 MiB: use shell, for example with sed."
                         : "'%s' cannot be read.",
                     path);
        return false;
    }
    if (builtin_is_binary(buf_str(text))) {
        builtin_fail(ret, "'%s' is a binary file: use shell.", path);
        return false;
    }
    return true;
}

void builtin_edit(const struct json *arguments, struct builtin_answer *ret)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUILTIN_FILE_MAX + 1);
    CLEANUP(buf) struct buf out = BUF_INIT(BUILTIN_WRITE_MAX + 1);
    const char *path = builtin_path(arguments, "", ret);
    struct builtin_replace r = {
        .from = json_str(json_get(arguments, "old_text"), STR_EMPTY),
        .to = json_str(json_get(arguments, "new_text"), STR_EMPTY),
        .all = json_bool(json_get(arguments, "replace_all"), false),
    };
    if (path == NULL) {
        return;
    }
    if (r.from.len == 0) {
        builtin_fail(ret, "'old_text' is empty: use write for a new file.");
        return;
    }
    if (str_eq(r.from, r.to)) {
        builtin_fail(ret, "'old_text' and 'new_text' are the same: nothing would change.");
        return;
    }
    if (!load(arguments, path, &text, ret)) {
        return;
    }
    r.text = buf_str(&text);
    size_t n = builtin_replace_text(&r, &out);
    if (n == SIZE_MAX) {
        builtin_fail(ret, "'%s' would have more than 64 MiB.", path);
        return;
    }
    if (n == 0 || (n > 1 && !r.all)) {
        fail_to_match(path, &r, n, ret);
        return;
    }
    if (store(path, buf_str(&out), ret)) {
        buf_addf(&ret->text, "Replaced %zu occurrence%s in '%s'.\n", n, n == 1 ? "" : "s", path);
    }
}
