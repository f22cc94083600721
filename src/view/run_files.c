/* SPDX-License-Identifier: MIT
 *
 * Reading a run directory without trusting any of it; see run_files.h.
 */
#include "view/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "record/rundir.h"
#include "record/state.h"

/* result.json holds at most 1 MiB of text, which escapes to six times that, and an output of the
 * agent's own size; a manifest lists ten thousand paths. Whoever has larger ones sees a problem. */
#define FILE_MAX ((size_t)32 << 20)

/* --- files --- */

int run_file_open(int dir_fd, const char *name, const char **ret_why)
{
    struct stat st;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        *ret_why = errno == ENOENT   ? "missing"
                   : errno == ELOOP  ? "is a symbolic link"
                   : errno == EACCES ? "cannot be read: permission denied"
                                     : "cannot be opened";
        return -1;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        *ret_why = "is not a regular file";
        (void)close(fd);
        return -1;
    }
    return fd;
}

int run_file_read(int fd, struct buf *ret, struct err *e)
{
    enum { STEP = 64 << 10 };
    for (;;) {
        char *to;
        int r = buf_reserve(ret, STEP, &to, e);
        if (r < 0) {
            return r;
        }
        ssize_t n = read(fd, to, STEP);
        if (n < 0 && errno != EINTR) {
            return ERR_SYS(e, "read");
        }
        if (n == 0) {
            return 0;
        }
        buf_commit(ret, n < 0 ? 0 : (size_t)n);
    }
}

struct json *run_file_json(int dir_fd, const char *name, struct arena *a, const char **ret_why)
{
    CLEANUP(fd) int fd = run_file_open(dir_fd, name, ret_why);
    if (fd < 0) {
        return NULL;
    }
    struct err e = { 0 };
    struct json *v = NULL;
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    int r = run_file_read(fd, &text, &e);
    if (r == 0) {
        r = json_parse(a, buf_str(&text), NULL, &v, &e);
    }
    if (r == 0 && !json_is(v, JSON_OBJECT)) {
        r = ERR(&e, ERR_PARSE, "not a JSON object");
    }
    if (r < 0) {
        *ret_why = arena_printf(a, "damaged: %s", e.msg);
        return NULL;
    }
    return v;
}

struct str run_file_tail(int dir_fd, const char *name, size_t max, struct arena *a)
{
    const char *why;
    CLEANUP(fd) int fd = run_file_open(dir_fd, name, &why);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        return STR_EMPTY;
    }
    off_t from = st.st_size > (off_t)max ? st.st_size - (off_t)max : 0;
    char *text = arena_alloc(a, max);
    ssize_t n = pread(fd, text, max, from);
    return n <= 0 ? STR_EMPTY : str_n(text, (size_t)n);
}

int64_t run_file_size(int dir_fd, const char *name)
{
    struct stat st;
    bool regular = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    return regular ? (int64_t)st.st_size : -1;
}

/* --- what they mean --- */

static const char *const words[] = {
#define X(status, word) [status] = word,
    RUN_STATUS_LIST(X)
#undef X
};

const char *run_status_word(enum run_status s)
{
    return words[s];
}

static enum run_status status_of_word(struct str word)
{
    for (int i = RUN_STATUS_SUCCEEDED; i <= RUN_STATUS_CANCELED; i++) {
        if (str_eqc(word, words[i])) {
            return (enum run_status)i;
        }
    }
    return RUN_STATUS_UNKNOWN;
}

static bool owner_lives(int dir_fd, int64_t *ret_pid)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct rundir dir = { .dir_fd = dir_fd, .reserve_fd = -1 };
    struct state s;
    if (state_read(&s, &dir, a, NULL) < 0 || !owner_is_alive(&s.owner)) {
        return false;
    }
    *ret_pid = s.owner.pid;
    return true;
}

enum run_status run_status_find(int dir_fd, const struct json *state, const struct json *manifest,
                                int64_t *ret_pid)
{
    struct str word = json_str(json_get(state, "state"), STR_EMPTY);
    *ret_pid = 0;
    if (str_eqc(word, "running")) {
        return owner_lives(dir_fd, ret_pid) ? RUN_STATUS_RUNNING : RUN_STATUS_ABANDONED;
    }
    enum run_status s = status_of_word(word);
    return s != RUN_STATUS_UNKNOWN
               ? s
               : status_of_word(json_str(json_get(manifest, "state"), STR_EMPTY));
}

enum reason run_reason_find(const struct json *state, const struct json *manifest,
                            const struct json *result)
{
    const struct json *sources[] = { state, manifest, result };
    enum reason reason = REASON_NONE;
    for (size_t i = 0; i < ARRAY_LEN(sources) && reason == REASON_NONE; i++) {
        reason = reason_find(json_str(json_get(sources[i], "reason"), STR_EMPTY));
    }
    return reason;
}

struct str run_task_name(const struct json *task)
{
    struct str name = json_str(json_get(task, "name"), STR_EMPTY);
    const struct json *prompt = json_get(task, "prompt");
    struct str text = str_trim(json_str(json_get(prompt, "text"), STR_EMPTY));
    struct str file = json_str(json_get(prompt, "file"), STR_EMPTY);
    if (name.len > 0 && !str_eqc(name, "task")) {
        return name;
    }
    return text.len > 0 ? str_split(&text, '\n') : path_base(file);
}
