/* SPDX-License-Identifier: MIT
 *
 * Reading a run directory without trusting any of it.
 */
#include "cli/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/conversation.h"
#include "cli/text.h"
#include "record/rundir.h"
#include "record/state.h"

/* result.json holds at most 1 MiB of text, which escapes to six times that, and an output of the
 * agent's own size; a manifest lists ten thousand paths. Whoever has larger ones sees a problem. */
#define FILE_MAX ((size_t)32 << 20)
/* The last lines are looked for in that much of stdout.log. */
#define TAIL_MAX ((size_t)16 << 10)
/* The last entries are looked for in that much of transcript.jsonl. */
#define ENTRIES_TAIL_MAX ((size_t)512 << 10)
/* A patch beyond this is not counted. */
#define PATCH_MAX ((size_t)64 << 20)

static const char *const words[] = {
    [DIGEST_RUNNING] = "running",   [DIGEST_SUCCEEDED] = "succeeded", [DIGEST_FAILED] = "failed",
    [DIGEST_CANCELED] = "canceled", [DIGEST_ABANDONED] = "abandoned", [DIGEST_UNKNOWN] = "unknown",
};

const char *digest_status_word(enum digest_status s)
{
    return words[s];
}

static void add_problem(struct digest *d, const char *file, const char *text)
{
    if (d->problem_count < DIGEST_PROBLEMS_MAX) {
        d->problems[d->problem_count++] = (struct digest_problem) { file, text };
    }
}

/* Opens a regular file; -1 with a reason when it is something else. A name that is a pipe or a link
 * (the agent may have been able to make one) must neither block nor lead elsewhere. */
static int open_regular(const struct digest *d, const char *name, const char **ret_why)
{
    struct stat st;
    int fd = openat(d->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
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

static int read_all(int fd, struct buf *ret, struct err *e)
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

static struct json *load(struct digest *d, const char *name, struct arena *a, bool expected)
{
    const char *why = NULL;
    CLEANUP(fd) int fd = open_regular(d, name, &why);
    if (fd < 0) {
        if (expected || strcmp(why, "missing") != 0) {
            add_problem(d, name, why);
        }
        return NULL;
    }
    struct err e = { 0 };
    struct json *v = NULL;
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    int r = read_all(fd, &text, &e);
    if (r == 0) {
        r = json_parse(a, buf_str(&text), NULL, &v, &e);
    }
    if (r == 0 && !json_is(v, JSON_OBJECT)) {
        r = ERR(&e, ERR_PARSE, "not a JSON object");
    }
    if (r < 0) {
        add_problem(d, name, arena_printf(a, "damaged: %s", e.msg));
        return NULL;
    }
    return v;
}

static int64_t size_of(const struct digest *d, const char *name)
{
    struct stat st;
    bool regular = fstatat(d->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    return regular ? (int64_t)st.st_size : -1;
}

/* --- what it all means --- */

static enum digest_status status_of_word(struct str word)
{
    for (int i = DIGEST_SUCCEEDED; i <= DIGEST_CANCELED; i++) {
        if (str_eqc(word, words[i])) {
            return (enum digest_status)i;
        }
    }
    return DIGEST_UNKNOWN;
}

static bool owner_lives(struct digest *d, struct arena *a)
{
    struct rundir dir = { .dir_fd = d->dir_fd, .reserve_fd = -1 };
    struct state s;
    if (state_read(&s, &dir, a, NULL) < 0 || !owner_is_alive(&s.owner)) {
        return false;
    }
    d->pid = s.owner.pid;
    return true;
}

/* state.json is written last and replaced while the run goes on: it decides. The manifest is the
 * next best witness. */
static void judge(struct digest *d, struct arena *a)
{
    struct str state = json_str(json_get(d->state, "state"), STR_EMPTY);
    if (str_eqc(state, "running")) {
        d->status = owner_lives(d, a) ? DIGEST_RUNNING : DIGEST_ABANDONED;
    } else {
        d->status = status_of_word(state);
    }
    if (d->status == DIGEST_UNKNOWN) {
        d->status = status_of_word(json_str(json_get(d->manifest, "state"), STR_EMPTY));
    }
    const struct json *sources[] = { d->state, d->manifest, d->result };
    for (size_t i = 0; i < ARRAY_LEN(sources) && d->reason == REASON_NONE; i++) {
        d->reason = reason_find(json_str(json_get(sources[i], "reason"), STR_EMPTY));
    }
}

/* --- the end of what the agent said --- */

static struct str read_tail(const struct digest *d, const char *name, size_t max, struct arena *a)
{
    const char *why;
    CLEANUP(fd) int fd = open_regular(d, name, &why);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        return STR_EMPTY;
    }
    off_t from = st.st_size > (off_t)max ? st.st_size - (off_t)max : 0;
    char *text = arena_alloc(a, max);
    ssize_t n = pread(fd, text, max, from);
    return n <= 0 ? STR_EMPTY : str_n(text, (size_t)n);
}

static void find_tail(struct digest *d, struct arena *a)
{
    struct str text = str_trim(json_str(json_get(d->result, "text"), STR_EMPTY));
    d->tail_is_answer = text.len > 0;
    d->tail = d->tail_is_answer ? text : str_trim(read_tail(d, "stdout.log", TAIL_MAX, a));
    d->err_tail = str_trim(read_tail(d, "stderr.log", TAIL_MAX, a));
}

static bool is_shown(const struct json *entry)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    conversation_line(entry, TEXT_SHORT, &line);
    return line.len > 0;
}

static void find_entries(struct digest *d, struct arena *a)
{
    struct str rest = read_tail(d, "transcript.jsonl", ENTRIES_TAIL_MAX, a);
    while (rest.ptr != NULL && rest.len > 0) {
        struct json *entry = NULL;
        struct str line = str_split(&rest, '\n');
        if (rest.ptr == NULL || json_parse(a, line, NULL, &entry, NULL) < 0 ||
            json_get(entry, "entry_type") == NULL || !is_shown(entry)) {
            continue; /* cut off at either end, or not for people */
        }
        if (d->entry_count == DIGEST_ENTRIES_MAX) {
            memmove(d->entries, d->entries + 1, (DIGEST_ENTRIES_MAX - 1) * sizeof *d->entries);
            d->entry_count--;
        }
        d->entries[d->entry_count++] = entry;
    }
}

/* --- the work --- */

static void count_changes(struct digest *d, struct arena *a)
{
    const char *why;
    CLEANUP(fd) int fd = open_regular(d, "diff.patch", &why);
    CLEANUP(buf) struct buf text = BUF_INIT(PATCH_MAX);
    if (fd >= 0 && read_all(fd, &text, NULL) == 0) {
        patch_stat(a, arena_str(a, buf_str(&text)), &d->changes);
        d->has_changes = true;
    }
}

struct str digest_task(const struct digest *d)
{
    struct str name = json_str(json_get(d->task, "name"), STR_EMPTY);
    const struct json *prompt = json_get(d->task, "prompt");
    struct str text = str_trim(json_str(json_get(prompt, "text"), STR_EMPTY));
    struct str file = json_str(json_get(prompt, "file"), STR_EMPTY);
    if (name.len > 0 && !str_eqc(name, "task")) {
        return name;
    }
    return text.len > 0 ? str_split(&text, '\n') : path_base(file);
}

const char *digest_changes(const struct digest *d, struct arena *a)
{
    const struct patch_stat *c = &d->changes;
    char added[TEXT_SHORT];
    char removed[TEXT_SHORT];
    if (!d->has_changes || c->count == 0) {
        return "";
    }
    return arena_printf(a, "%zu file%s, +%s -%s", c->count, c->count == 1 ? "" : "s",
                        text_count(c->added, added), text_count(c->removed, removed));
}

const char *digest_usage(const struct digest *d, struct arena *a)
{
    const struct json *ext = json_get(d->metrics, "ext");
    int64_t calls = json_int(json_get(d->metrics, "api_calls"), 0);
    int64_t input = json_int(json_get(d->metrics, "tokens_input"), 0);
    int64_t output = json_int(json_get(d->metrics, "tokens_output"), 0);
    double usd = json_real(json_get(d->metrics, "cost_usd"), 0);
    char number[3][TEXT_SHORT];
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (calls > 0) {
        buf_addf(&out, "%s call%s", text_count(calls, number[0]), calls == 1 ? "" : "s");
    }
    if (input > 0 || output > 0) {
        buf_addf(&out, "%s%s tokens in, %s out", out.len > 0 ? ", " : "",
                 text_count(input, number[1]), text_count(output, number[2]));
    }
    if (usd > 0) {
        bool simulated = str_eqc(json_str(json_get(ext, "cost_source"), STR_EMPTY), "simulated");
        buf_addf(&out, "%s%s%s", out.len > 0 ? ", " : "", text_cost(usd, number[0]),
                 simulated ? " (simulated)" : "");
    }
    return arena_dup(a, buf_str(&out));
}

/* --- --- */

static int open_directory(struct digest *d, const char *path, struct arena *a, struct err *e)
{
    char absolute[PATH_MAX];
    int r = path_absolute(path, absolute, sizeof absolute, e);
    if (r < 0) {
        return r;
    }
    d->path = arena_dup(a, str_of(absolute));
    d->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dir_fd >= 0) {
        return 0;
    }
    if (errno == ENOTDIR) {
        return ERR(e, ERR_INPUT, "'%s' is a file, not a run directory", path);
    }
    return ERR_SYS_AS(e, ERR_INPUT, "cannot open run directory '%s'", path);
}

int digest_read(struct digest *d, const char *path, struct arena *a, struct err *e)
{
    *d = (struct digest) { .dir_fd = -1, .now = clock_wall() };
    int r = open_directory(d, path, a, e);
    if (r < 0) {
        return r;
    }
    d->state = load(d, "state.json", a, true);
    judge(d, a);
    bool over = d->status != DIGEST_RUNNING && d->status != DIGEST_ABANDONED;
    d->manifest = load(d, "manifest.json", a, over);
    d->metrics = load(d, "metrics.json", a, over);
    d->result = load(d, "result.json", a, over);
    d->out_bytes = size_of(d, "stdout.log");
    d->err_bytes = size_of(d, "stderr.log");
    bool nothing = d->out_bytes < 0 && size_of(d, "state.json") < 0 &&
                   size_of(d, "manifest.json") < 0 && size_of(d, "metrics.json") < 0 &&
                   size_of(d, "result.json") < 0;
    if (nothing) {
        digest_done(d);
        return ERR(e, ERR_INPUT, "'%s' is not a run directory: it has no manifest.json", path);
    }
    judge(d, a);
    find_tail(d, a);
    find_entries(d, a);
    d->task = load(d, "task.json", a, false);
    d->workspace = load(d, "evidence/workspace.json", a, false);
    count_changes(d, a);
    return 0;
}

void digest_done(struct digest *d)
{
    cleanup_fd(&d->dir_fd);
}

struct json *digest_json(const struct digest *d, struct arena *a)
{
    struct json *o = json_object(a);
    json_setc(a, o, "path", json_cstr(a, d->path));
    json_setc(a, o, "status", json_cstr(a, digest_status_word(d->status)));
    json_setc(a, o, "reason", json_cstr(a, reason_word(d->reason)));
    json_setc(a, o, "pid", d->pid > 0 ? json_integer(a, d->pid) : json_null(a));
    const struct {
        const char *key;
        struct json *value;
    } files[] = {
        { "state", d->state },
        { "manifest", d->manifest },
        { "metrics", d->metrics },
        { "result", d->result },
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        json_setc(a, o, files[i].key, files[i].value != NULL ? files[i].value : json_null(a));
    }
    struct json *problems = json_array(a);
    for (size_t i = 0; i < d->problem_count; i++) {
        struct json *p = json_object(a);
        json_setc(a, p, "file", json_cstr(a, d->problems[i].file));
        json_setc(a, p, "problem", json_cstr(a, d->problems[i].text));
        json_push(a, problems, p);
    }
    json_setc(a, o, "problems", problems);
    return o;
}
