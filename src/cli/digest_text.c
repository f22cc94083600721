/* SPDX-License-Identifier: MIT
 *
 * A digest for people: facts in two columns, what is left behind, what was said last. Values are
 * taken as they are found; what is missing has no line.
 */
#include "cli/digest.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "record/stamp.h"

enum { ARTIFACTS_SHOWN = 12, INDENT = 2, LINE_MAX_COLUMNS = 1000 };

static const enum style status_styles[] = {
    [DIGEST_RUNNING] = STYLE_NAME,  [DIGEST_SUCCEEDED] = STYLE_GOOD, [DIGEST_FAILED] = STYLE_BAD,
    [DIGEST_CANCELED] = STYLE_WARN, [DIGEST_ABANDONED] = STYLE_WARN, [DIGEST_UNKNOWN] = STYLE_WARN,
};

/* The first of several places that has a string. */
static struct str first_str(const struct json *a, const struct json *b)
{
    struct str s = json_str(a, STR_EMPTY);
    return s.len > 0 ? s : json_str(b, STR_EMPTY);
}

static const struct json *ext(const struct digest *d, const char *key)
{
    return json_get(json_get(d->metrics, "ext"), key);
}

static void add_fact(struct table *t, const char *key, struct str value)
{
    if (value.len > 0) {
        table_cell(t, STYLE_DIM, key);
        table_cell_str(t, STYLE_PLAIN, value);
    }
}

static void add_status(struct table *t, const struct digest *d)
{
    struct str outcome =
        first_str(json_get(d->manifest, "outcome"), json_get(d->result, "outcome"));
    struct str phase = json_str(json_get(d->state, "phase"), STR_EMPTY);
    table_cell(t, STYLE_DIM, "status");
    if (d->status == DIGEST_RUNNING) {
        table_cellf(t, STYLE_NAME, "running, phase %.*s, process %lld", STR_ARG(phase),
                    (long long)d->pid);
        return;
    }
    if (d->status == DIGEST_ABANDONED) {
        table_cellf(t, STYLE_WARN, "abandoned in phase %.*s: the process no longer exists",
                    STR_ARG(phase));
        return;
    }
    bool said = outcome.len > 0;
    table_cellf(t, status_styles[d->status], "%s%s%.*s", digest_status_word(d->status),
                said ? ", outcome " : "", STR_ARG(outcome));
}

static void add_reason(struct table *t, const struct digest *d)
{
    struct str error = first_str(json_get(d->result, "error"), json_get(d->manifest, "error"));
    struct str word = first_str(json_get(d->state, "reason"), json_get(d->manifest, "reason"));
    if (d->reason != REASON_NONE) {
        table_cell(t, STYLE_DIM, "reason");
        table_cellf(t, STYLE_PLAIN, "%s: %s", reason_word(d->reason), reason_meaning(d->reason));
    } else {
        add_fact(t, "reason", word);
    }
    add_fact(t, "error",
             error.len > 0 ? error : json_str(json_get(d->metrics, "error"), STR_EMPTY));
    if (json_is(json_get(d->result, "passed"), JSON_BOOL)) {
        add_fact(t, "passed",
                 json_bool(json_get(d->result, "passed"), false) ? STR("yes") : STR("no"));
    }
}

static void add_agent(struct table *t, const struct digest *d)
{
    const struct json *metadata = json_get(d->manifest, "metadata");
    const struct json *engine = json_get(metadata, "engine");
    CLEANUP(buf) struct buf program = BUF_INIT(BUF_TEXT);
    add_fact(t, "adapter", first_str(json_get(metadata, "agent"), json_get(d->state, "adapter")));
    buf_add(&program, first_str(json_get(engine, "name"), ext(d, "engine")));
    struct str version = json_str(json_get(engine, "version"), STR_EMPTY);
    if (program.len > 0 && version.len > 0) {
        buf_addf(&program, " %.*s", STR_ARG(version));
    }
    add_fact(t, "program", buf_str(&program));
    add_fact(t, "model", first_str(json_get(engine, "model"), ext(d, "model")));
    add_fact(t, "session", first_str(json_get(d->result, "session_id"), ext(d, "session_id")));
}

static void add_time(struct table *t, const struct digest *d)
{
    int64_t began = 0;
    char took[TEXT_SHORT] = "";
    struct str started =
        first_str(json_get(d->manifest, "started_at"), json_get(d->state, "started_at"));
    const struct json *seconds = json_get(d->metrics, "duration_seconds");
    bool known = stamp_parse(started, &began);
    if (d->status == DIGEST_RUNNING && known && d->now > began) {
        (void)text_duration(d->now - began, took);
    } else if (seconds != NULL && json_real(seconds, -1) >= 0 && json_real(seconds, -1) < 1e9) {
        (void)text_duration((nsec)(json_real(seconds, 0) * 1e9), took);
    }
    if (started.len > 0) {
        table_cell(t, STYLE_DIM, "started");
        table_cellf(t, STYLE_PLAIN, "%.*s%s%s", STR_ARG(started),
                    took[0] == '\0'               ? ""
                    : d->status == DIGEST_RUNNING ? ", running for "
                                                  : ", took ",
                    took);
    }
}

static void add_exit(struct table *t, const struct digest *d)
{
    const struct json *ours = json_get(d->manifest, "exit_code");
    const struct json *theirs = json_get(d->result, "engine_exit");
    theirs = theirs != NULL ? theirs : ext(d, "engine_exit");
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (json_is(ours, JSON_INT)) {
        buf_addf(&text, "%lld", (long long)json_int(ours, 0));
    }
    const char *comma = text.len > 0 ? "; " : "";
    if (json_is(json_get(theirs, "code"), JSON_INT)) {
        buf_addf(&text, "%sthe program exited with %lld", comma,
                 (long long)json_int(json_get(theirs, "code"), 0));
    } else if (json_is(json_get(theirs, "signal"), JSON_INT)) {
        int signal_number = (int)json_int(json_get(theirs, "signal"), 0);
        const char *name = sigabbrev_np(signal_number);
        buf_addf(&text, "%sthe program was killed by signal %d%s%s", comma, signal_number,
                 name != NULL ? " SIG" : "", name != NULL ? name : "");
    } else if (d->result != NULL && text.len > 0) {
        buf_addf(&text, "%sthe program has no exit status", comma);
    }
    add_fact(t, "exit", buf_str(&text));
}

static void add_output(struct table *t, const struct digest *d)
{
    char out[TEXT_SHORT];
    char err[TEXT_SHORT];
    char lost[TEXT_SHORT];
    int64_t lost_bytes = json_int(json_get(ext(d, "bytes"), "lost"), 0);
    if (d->out_bytes < 0 && d->err_bytes < 0) {
        return;
    }
    table_cell(t, STYLE_DIM, "output");
    table_cellf(t, STYLE_PLAIN, "stdout %s, stderr %s%s%s",
                text_bytes(d->out_bytes < 0 ? 0 : (uint64_t)d->out_bytes, out),
                text_bytes(d->err_bytes < 0 ? 0 : (uint64_t)d->err_bytes, err),
                lost_bytes > 0 ? "; lost: " : "",
                lost_bytes > 0 ? text_bytes((uint64_t)lost_bytes, lost) : "");
}

static void add_usage(struct table *t, const struct digest *d)
{
    char in[TEXT_SHORT];
    char out[TEXT_SHORT];
    char cost[TEXT_SHORT];
    int64_t input = json_int(json_get(d->metrics, "tokens_input"), 0);
    int64_t output = json_int(json_get(d->metrics, "tokens_output"), 0);
    double usd = json_real(json_get(d->metrics, "cost_usd"), 0);
    if (input > 0 || output > 0) {
        table_cell(t, STYLE_DIM, "tokens");
        table_cellf(t, STYLE_PLAIN, "%s in, %s out", text_count(input, in),
                    text_count(output, out));
    }
    if (usd > 0) {
        bool simulated = str_eqc(json_str(ext(d, "cost_source"), STR_EMPTY), "simulated");
        table_cell(t, STYLE_DIM, "cost");
        table_cellf(t, STYLE_PLAIN, "%s%s", text_cost(usd, cost),
                    simulated ? " (simulated, nothing was billed)" : "");
    }
    const struct json *calls = ext(d, "tool_calls");
    int64_t made = json_int(json_get(calls, "total"), 0);
    int64_t failed = json_int(json_get(calls, "failed"), 0);
    if (made > 0) {
        table_cell(t, STYLE_DIM, "tools");
        table_cellf(t, STYLE_PLAIN, "%s call%s, %s failed", text_count(made, in),
                    made == 1 ? "" : "s", text_count(failed, out));
    }
}

/* "admit 3 ms, execute 2m 05s": in a row, because most phases are over in no time. */
static void add_phases(struct table *t, const struct digest *d)
{
    const struct json *phases = ext(d, "phase_ms");
    CLEANUP(buf) struct buf list = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; json_is(phases, JSON_OBJECT) && i < json_len(phases); i++) {
        const struct json_member *m = &phases->object.members[i];
        int64_t ms = json_int(m->value, -1);
        char text[TEXT_SHORT] = "?";
        if (ms >= 0 && ms < 1000) {
            (void)snprintf(text, sizeof text, "%lld ms", (long long)ms);
        } else if (ms >= 0 && ms < INT64_MAX / NSEC_PER_MS) {
            (void)text_duration(ms * NSEC_PER_MS, text);
        }
        buf_addf(&list, "%s%.*s %s", i == 0 ? "" : ", ", STR_ARG(m->key), text);
    }
    add_fact(t, "phases", buf_str(&list));
}

/* --- lists --- */

static void add_title(struct buf *out, const struct digest_style *style, const char *title)
{
    buf_adds(out, "\n");
    style_add(out, style->color, STYLE_BOLD, title);
    buf_adds(out, "\n");
}

/* Files that every record has are not worth a line. */
static bool is_product(struct str path)
{
    static const char *const fixed[] = {
        "stdout.log", "stderr.log",   "agent.log",   "transcript.jsonl", "events.jsonl",
        "task.json",  "metrics.json", "result.json", "manifest.json",    "state.json",
    };
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        if (str_eqc(path, fixed[i])) {
            return false;
        }
    }
    return !str_starts(path, STR("logs/")) && !str_starts(path, STR("evidence/")) &&
           !str_starts(path, STR("home/"));
}

static void add_artifacts(const struct digest *d, const struct digest_style *style, struct arena *a,
                          struct buf *out)
{
    const struct json *list = json_get(d->manifest, "artifacts");
    struct table t = { .arena = a, .indent = INDENT, .columns = { { "", .right = true }, { "" } } };
    size_t found = 0;
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        const char *path = json_cstring(json_item(list, i), NULL);
        if (path == NULL || !is_product(str_of(path))) {
            continue;
        }
        struct stat st;
        char size[TEXT_SHORT] = "missing";
        if (++found > ARTIFACTS_SHOWN) {
            continue;
        }
        if (fstatat(d->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            (void)text_bytes((uint64_t)st.st_size, size);
        }
        table_cell(&t, STYLE_DIM, size);
        table_cell(&t, STYLE_PLAIN, path);
    }
    if (found > 0) {
        add_title(out, style, "Artifacts");
        table_write(&t, style->width, style->color, out);
    }
    if (found > ARTIFACTS_SHOWN) {
        buf_addf(out, "  ... and %zu more\n", found - ARTIFACTS_SHOWN);
    }
}

static void add_warnings(const struct digest *d, const struct digest_style *style, struct arena *a,
                         struct buf *out)
{
    const struct json *list = json_get(d->manifest, "warnings");
    struct table t = { .arena = a, .indent = INDENT, .columns = { { "" } } };
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        table_cell_str(&t, STYLE_WARN, json_str(json_item(list, i), STR("?")));
    }
    if (t.first != NULL) {
        add_title(out, style, "Warnings");
        table_write(&t, style->width, style->color, out);
    }
}

static void add_problems(const struct digest *d, const struct digest_style *style, struct arena *a,
                         struct buf *out)
{
    struct table t = { .arena = a, .indent = INDENT, .columns = { { "" }, { "" } } };
    for (size_t i = 0; i < d->problem_count; i++) {
        table_cell(&t, STYLE_WARN, d->problems[i].file);
        table_cell(&t, STYLE_PLAIN, d->problems[i].text);
    }
    if (d->status == DIGEST_ABANDONED) {
        table_cell(&t, STYLE_WARN, "not closed");
        table_cell(&t, STYLE_PLAIN, "run 'cinch recover' to close the record of the killed run");
    }
    if (t.first != NULL) {
        add_title(out, style, "Problems");
        table_write(&t, style->width, style->color, out);
    }
}

/* A line that fits stays as it is, so that code keeps its shape; a longer one is wrapped under its
 * own indentation. A summary is no pager: what is longer than LINE_MAX_COLUMNS is cut. */
static void add_line(const struct digest_style *style, struct str text, struct buf *out)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    text_clean(&line, text, TEXT_BLOCK);
    size_t width = text_width(buf_str(&line));
    if (line.len == 0 || INDENT + width <= style->width) {
        text_repeat(out, " ", line.len == 0 ? 0 : INDENT);
        buf_add(out, buf_str(&line));
    } else {
        CLEANUP(buf) struct buf cut = BUF_INIT(BUF_TEXT);
        text_cut(&cut, buf_str(&line), LINE_MAX_COLUMNS);
        size_t indent = INDENT + strspn(cut.ptr, " ");
        indent = indent > style->width / 2 ? INDENT : indent;
        text_repeat(out, " ", indent);
        text_wrap(out, buf_str(&cut), (struct text_shape) { indent, indent, style->width });
    }
    buf_adds(out, "\n");
}

static void add_tail(const struct digest *d, const struct digest_style *style, struct buf *out)
{
    struct str text = d->tail;
    if (text.len == 0 || style->lines == 0) {
        return;
    }
    size_t from = text.len;
    size_t lines = 0;
    while (from > 0 && (text.ptr[from - 1] != '\n' || ++lines < style->lines)) {
        from--;
    }
    const char *title = d->tail_is_answer
                            ? (from > 0 ? "Final answer (last lines)" : "Final answer")
                            : (from > 0 ? "stdout.log (last lines)" : "stdout.log");
    add_title(out, style, title);
    struct str rest = str_slice(text, from, text.len);
    while (rest.ptr != NULL) {
        add_line(style, str_split(&rest, '\n'), out);
    }
}

void digest_text(const struct digest *d, struct digest_style style, struct arena *a,
                 struct buf *out)
{
    struct table facts = { .arena = a, .columns = { { "" }, { "" } } };
    add_fact(&facts, "run",
             first_str(json_get(d->state, "run_id"), json_get(d->manifest, "run_id")));
    add_fact(&facts, "directory", str_of(d->path));
    add_status(&facts, d);
    add_reason(&facts, d);
    add_agent(&facts, d);
    add_time(&facts, d);
    add_phases(&facts, d);
    add_exit(&facts, d);
    add_output(&facts, d);
    add_usage(&facts, d);
    table_write(&facts, style.width, style.color, out);
    add_artifacts(d, &style, a, out);
    add_warnings(d, &style, a, out);
    add_problems(d, &style, a, out);
    add_tail(d, &style, out);
}

/* --- the end of `cinch run` --- */

enum { CLOSING_FILES = 3, CLOSING_OUTPUT = 4 };

static void add_heading(struct buf *out, const struct digest_style *style, const char *title)
{
    style_add(out, style->color, STYLE_DIM, title);
    buf_adds(out, " ");
}

static void add_last_lines(const struct digest_style *style, struct str text, size_t lines,
                           struct buf *out)
{
    size_t from = text.len;
    size_t found = 0;
    while (from > 0 && (text.ptr[from - 1] != '\n' || ++found < lines)) {
        from--;
    }
    struct str rest = str_slice(text, from, text.len);
    while (rest.ptr != NULL && rest.len > 0) {
        CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
        text_clean(&line, str_split(&rest, '\n'), TEXT_BLOCK);
        text_repeat(out, " ", INDENT);
        text_cut(out, buf_str(&line), style->width - INDENT);
        buf_adds(out, "\n");
    }
}

static void add_change_line(const struct digest *d, const struct digest_style *style,
                            struct arena *a, struct buf *out)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    const struct patch_stat *c = &d->changes;
    buf_addf(&line, "%s:", digest_changes(d, a));
    for (size_t i = 0; i < c->count && i < CLOSING_FILES; i++) {
        buf_adds(&line, i == 0 ? " " : ", ");
        text_clean(&line, c->files[i].path, TEXT_LINE);
    }
    if (c->count > CLOSING_FILES) {
        buf_addf(&line, " and %zu more", c->count - CLOSING_FILES);
    }
    add_heading(out, style, "changes:");
    text_cut(out, buf_str(&line), style->width - strlen("changes: "));
    buf_adds(out, "\n");
}

/* The error of a program that failed quotes its output; a short output need not be shown again. */
static bool says_all(const struct digest *d, struct str output)
{
    struct str error = json_str(json_get(d->manifest, "error"), STR_EMPTY);
    while (output.len > 0) {
        struct str line = str_trim(str_split(&output, '\n'));
        if (line.len > 0 && str_find(error, line) == error.len) {
            return false;
        }
    }
    return true;
}

void digest_closing(const struct digest *d, struct digest_style style, struct arena *a,
                    struct buf *out)
{
    const char *usage = digest_usage(d, a);
    size_t left_out = json_len(json_get(d->workspace, "left_out"));
    if (d->tail_is_answer || d->status == DIGEST_SUCCEEDED) {
        add_last_lines(&style, d->tail, style.lines, out);
    } else if (d->err_tail.len > 0 && !says_all(d, d->err_tail)) {
        style_add(out, style.color, STYLE_DIM, "stderr:");
        buf_adds(out, "\n");
        add_last_lines(&style, d->err_tail, CLOSING_OUTPUT, out);
    } else if (d->err_tail.len == 0 && d->tail.len > 0 && !says_all(d, d->tail)) {
        style_add(out, style.color, STYLE_DIM, "stdout:");
        buf_adds(out, "\n");
        add_last_lines(&style, d->tail, CLOSING_OUTPUT, out);
    }
    if (d->changes.count > 0) {
        add_change_line(d, &style, a, out);
    }
    if (left_out > 0) {
        add_heading(out, &style, "left out of the patch:");
        buf_addf(out, "%zu file%s (cinch diff --files)\n", left_out, left_out == 1 ? "" : "s");
    }
    if (usage[0] != '\0') {
        add_heading(out, &style, "model:");
        buf_addf(out, "%s\n", usage);
    }
}
