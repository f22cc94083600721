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

/* The last lines are looked for in that much of stdout.log. */
#define TAIL_MAX ((size_t)16 << 10)
/* The last entries are looked for in that much of transcript.jsonl. */
#define ENTRIES_TAIL_MAX ((size_t)512 << 10)
/* A patch beyond this is not counted. */
#define PATCH_MAX ((size_t)64 << 20)

static void add_problem(struct digest *d, const char *file, const char *text)
{
    if (d->problem_count < DIGEST_PROBLEMS_MAX) {
        d->problems[d->problem_count++] = (struct digest_problem) { file, text };
    }
}

static struct json *load(struct digest *d, const char *name, struct arena *a, bool expected)
{
    const char *why = NULL;
    struct json *v = run_file_json(d->dir_fd, name, a, &why);
    if (v == NULL && (expected || strcmp(why, "missing") != 0)) {
        add_problem(d, name, why);
    }
    return v;
}

static void judge(struct digest *d)
{
    d->status = run_status_find(d->dir_fd, d->state, d->manifest, &d->pid);
    d->reason = run_reason_find(d->state, d->manifest, d->result);
}

/* --- the end of what the agent said --- */

static void find_tail(struct digest *d, struct arena *a)
{
    struct str text = str_trim(json_str(json_get(d->result, "text"), STR_EMPTY));
    d->tail_is_answer = text.len > 0;
    d->tail =
        d->tail_is_answer ? text : str_trim(run_file_tail(d->dir_fd, "stdout.log", TAIL_MAX, a));
    d->err_tail = str_trim(run_file_tail(d->dir_fd, "stderr.log", TAIL_MAX, a));
}

static bool is_shown(const struct json *entry)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    conversation_line(entry, TEXT_SHORT, &line);
    return line.len > 0;
}

static void find_entries(struct digest *d, struct arena *a)
{
    struct str rest = run_file_tail(d->dir_fd, "transcript.jsonl", ENTRIES_TAIL_MAX, a);
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
    CLEANUP(fd) int fd = run_file_open(d->dir_fd, "diff.patch", &why);
    CLEANUP(buf) struct buf text = BUF_INIT(PATCH_MAX);
    if (fd >= 0 && run_file_read(fd, &text, NULL) == 0) {
        patch_stat(a, arena_str(a, buf_str(&text)), &d->changes);
        d->has_changes = true;
    }
}

struct str digest_task(const struct digest *d)
{
    return run_task_name(d->task);
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
    judge(d);
    bool over = d->status != RUN_STATUS_RUNNING && d->status != RUN_STATUS_ABANDONED;
    d->manifest = load(d, "manifest.json", a, over);
    d->metrics = load(d, "metrics.json", a, over);
    d->result = load(d, "result.json", a, over);
    d->out_bytes = run_file_size(d->dir_fd, "stdout.log");
    d->err_bytes = run_file_size(d->dir_fd, "stderr.log");
    bool nothing = d->out_bytes < 0 && run_file_size(d->dir_fd, "state.json") < 0 &&
                   run_file_size(d->dir_fd, "manifest.json") < 0 &&
                   run_file_size(d->dir_fd, "metrics.json") < 0 &&
                   run_file_size(d->dir_fd, "result.json") < 0;
    if (nothing) {
        digest_done(d);
        return ERR(e, ERR_INPUT, "'%s' is not a run directory: it has no manifest.json", path);
    }
    judge(d);
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
    json_setc(a, o, "status", json_cstr(a, run_status_word(d->status)));
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
