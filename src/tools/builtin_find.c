/* SPDX-License-Identifier: MIT
 *
 * list and search of the built-in agent: a bounded walk through a directory tree, sorted, without
 * following links. Directories that hold what tools have made or fetched are named, not entered,
 * unless the call names them itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "tools/builtin.h"

enum {
    LIST_MAX = 500,      /* entries */
    MATCHES_MAX = 100,   /* lines */
    MATCH_WIDTH = 300,   /* bytes of a line */
    DEPTH_MAX = 40,      /* of a search */
    VISITS_MAX = 200000, /* entries of all directories together */
};

struct walk {
    struct buf *out;
    int depth; /* below the start; 0: its entries only */
    size_t shown, max;
    size_t visits;
    bool cut;
    /* search */
    regex_t regex;
    const char *glob; /* NULL: any */
    size_t files, binary, large, unreadable;
    void (*visit)(struct walk *w, int dir, const char *name, const char *path, int level);
};

static bool is_skipped(const char *name)
{
    static const char *const names[] = { ".git", "node_modules", "__pycache__", ".venv",
                                         ".tox", ".mypy_cache",  ".hg",         ".svn" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Sorted names in `a`; NULL with errno. Takes the descriptor. */
static char **read_names(struct arena *a, int dir, size_t *ret_len)
{
    DIR *stream = fdopendir(dir);
    if (stream == NULL) {
        (void)close(dir);
        return NULL;
    }
    char **names = NULL;
    size_t n = 0, cap = 0;
    for (const struct dirent *d; (d = readdir(stream)) != NULL && n < VISITS_MAX;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) {
            continue;
        }
        if (n == cap) {
            char **more = arena_array(a, cap = cap == 0 ? 64 : 2 * cap, sizeof *more);
            if (n > 0) {
                memcpy(more, names, n * sizeof *more);
            }
            names = more;
        }
        names[n++] = arena_dup(a, str_of(d->d_name));
    }
    (void)closedir(stream);
    names = names == NULL ? arena_array(a, 1, sizeof *names) : names;
    qsort(names, n, sizeof *names, by_name);
    *ret_len = n;
    return names;
}

/* `path` is what the model reads: "src" or "src/main.c". Takes the descriptor. */
static void walk_directory(struct walk *w, int dir, const char *path, int level)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(fd) int kept = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    size_t n = 0;
    char **names = read_names(a, dir, &n);
    for (size_t i = 0; names != NULL && kept >= 0 && i < n && !w->cut; i++) {
        const char *below = strcmp(path, ".") == 0 ? arena_dup(a, str_of(names[i]))
                                                   : arena_printf(a, "%s/%s", path, names[i]);
        if (++w->visits > VISITS_MAX) {
            w->cut = true;
            return;
        }
        w->visit(w, kept, names[i], below, level);
    }
}

static void descend(struct walk *w, int dir, const char *name, const char *path, int level)
{
    if (level >= w->depth || is_skipped(name)) {
        return;
    }
    int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0) {
        w->unreadable++;
        return;
    }
    walk_directory(w, below, path, level + 1);
}

static int open_start(const char *path, struct builtin_answer *ret)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno == ENOTDIR) {
        builtin_fail(ret, "'%s' is not a directory: use read.", path);
    } else if (dir < 0) {
        builtin_fail(ret, "the directory '%s' cannot be opened: %s.", path, strerror(errno));
    }
    return dir;
}

/* --- list --- */

static void list_entry(struct walk *w, int dir, const char *name, const char *path, int level)
{
    struct stat st;
    char target[PATH_MAX];
    if (w->shown == w->max) {
        w->cut = true;
        return;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return;
    }
    (void)builtin_add_line(w->out, str_of(path), BUILTIN_LINE_MAX);
    if (S_ISDIR(st.st_mode)) {
        buf_adds(w->out, "/");
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, name, target, sizeof target);
        buf_adds(w->out, " -> ");
        (void)builtin_add_line(w->out, str_n(target, n < 0 ? 0 : (size_t)n), BUILTIN_LINE_MAX);
    } else {
        buf_addf(w->out, "  %lld", (long long)st.st_size);
    }
    buf_adds(w->out, "\n");
    w->shown++;
    if (S_ISDIR(st.st_mode)) {
        descend(w, dir, name, path, level);
    }
}

void builtin_list(const struct json *arguments, struct builtin_answer *ret)
{
    const char *path = builtin_path(arguments, ".", ret);
    int dir = path == NULL ? -1 : open_start(path, ret);
    if (dir < 0) {
        return;
    }
    struct walk w = {
        .out = &ret->text,
        .depth = (int)json_int(json_get(arguments, "depth"), 1) - 1,
        .max = LIST_MAX,
        .visit = list_entry,
    };
    walk_directory(&w, dir, path, 0);
    if (w.shown == 0) {
        buf_adds(&ret->text, "[the directory is empty]\n");
    }
    if (w.cut) {
        buf_addf(&ret->text, "[only the first %d entries are shown: list a directory below]\n",
                 LIST_MAX);
    }
}

/* --- search --- */

static void search_text(struct walk *w, struct str text, const char *path)
{
    for (size_t line = 1; text.len > 0 && !w->cut; line++) {
        struct str here = str_split(&text, '\n');
        regmatch_t at = { .rm_so = 0, .rm_eo = (regoff_t)here.len };
        if (regexec(&w->regex, here.ptr, 0, &at, REG_STARTEND) != 0) {
            continue;
        }
        if (w->shown == w->max) {
            w->cut = true;
            return;
        }
        (void)builtin_add_line(w->out, str_of(path), BUILTIN_LINE_MAX);
        buf_addf(w->out, ":%zu: ", line);
        (void)builtin_add_line(w->out, here, MATCH_WIDTH);
        buf_adds(w->out, "\n");
        w->shown++;
    }
}

/* Takes the descriptor. */
static void search_file(struct walk *w, int taken, const char *path)
{
    CLEANUP(fd) int fd = taken;
    CLEANUP(buf) struct buf text = BUF_INIT(BUILTIN_FILE_MAX + 1);
    struct err e;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        w->unreadable++;
        return;
    }
    if (!S_ISREG(st.st_mode)) {
        return;
    }
    if ((size_t)st.st_size > BUILTIN_FILE_MAX) {
        w->large++;
        return;
    }
    if (file_read_fd(fd, path, BUILTIN_FILE_MAX, &text, &e) < 0) {
        w->unreadable++;
        return;
    }
    if (builtin_is_binary(buf_str(&text))) {
        w->binary++;
        return;
    }
    w->files++;
    search_text(w, buf_str(&text), path);
}

static void search_entry(struct walk *w, int dir, const char *name, const char *path, int level)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return;
    }
    if (S_ISDIR(st.st_mode)) {
        descend(w, dir, name, path, level);
        return;
    }
    bool whole = w->glob != NULL && strchr(w->glob, '/') != NULL;
    if (!S_ISREG(st.st_mode) ||
        (w->glob != NULL && !str_glob(str_of(w->glob), str_of(whole ? path : name), false))) {
        return;
    }
    search_file(w, openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), path);
}

static bool compile(struct walk *w, const struct json *arguments, struct builtin_answer *ret)
{
    struct str pattern = json_str(json_get(arguments, "pattern"), STR_EMPTY);
    bool literal = json_bool(json_get(arguments, "literal"), false);
    bool fold = json_bool(json_get(arguments, "ignore_case"), false);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    char why[200];
    if (pattern.len == 0 || str_has_nul(pattern) || pattern.len > 1000) {
        builtin_fail(ret, "'pattern' must have 1 to 1000 characters.");
        return false;
    }
    builtin_pattern(pattern, literal, &text);
    size_t len = 0;
    char *compiled = buf_take(&text, &len);
    int r = regcomp(&w->regex, compiled, REG_EXTENDED | REG_NOSUB | (fold ? REG_ICASE : 0));
    free(compiled);
    if (r != 0) {
        (void)regerror(r, &w->regex, why, sizeof why);
        builtin_fail(ret,
                     "'pattern' is not a POSIX extended regular expression (%s): there are no "
                     "lookarounds or lazy quantifiers; set literal for plain text.",
                     why);
    }
    return r == 0;
}

static void add_search_notes(const struct walk *w, struct buf *out)
{
    if (w->shown == 0) {
        buf_addf(out, "[no match in %zu files]\n", w->files);
    }
    if (w->cut) {
        buf_addf(out,
                 "[only the first %zu matches are shown: use a narrower pattern, path or "
                 "glob]\n",
                 w->shown);
    }
    if (w->binary + w->large + w->unreadable > 0) {
        buf_addf(out, "[not searched: %zu binary, %zu above 16 MiB, %zu unreadable]\n", w->binary,
                 w->large, w->unreadable);
    }
}

void builtin_search(const struct json *arguments, struct builtin_answer *ret)
{
    const char *path = builtin_path(arguments, ".", ret);
    struct walk w = {
        .out = &ret->text,
        .depth = DEPTH_MAX,
        .max = MATCHES_MAX,
        .glob = json_cstring(json_get(arguments, "glob"), NULL),
        .visit = search_entry,
    };
    struct stat st;
    if (path == NULL || !compile(&w, arguments, ret)) {
        return;
    }
    bool file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    int fd = file ? builtin_open(arguments, ret) : open_start(path, ret);
    if (fd >= 0 && file) {
        search_file(&w, fd, path);
    } else if (fd >= 0) {
        walk_directory(&w, fd, path, 0);
    }
    regfree(&w.regex);
    if (!ret->failed) {
        add_search_notes(&w, &ret->text);
    }
}
