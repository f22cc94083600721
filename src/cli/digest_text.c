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
#include "cli/conversation.h"
#include "cli/patch_table.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "record/stamp.h"

enum {
    FILES_SHOWN = 12,
    INDENT = 2,
    LINE_MAX_COLUMNS = 1000,
    PHASE_SHOWN_MS = 100,
    OUTPUT_LINES = 5
};

static const enum style status_styles[] = {
    [RUN_STATUS_RUNNING] = STYLE_NAME,   [RUN_STATUS_SUCCEEDED] = STYLE_GOOD,
    [RUN_STATUS_FAILED] = STYLE_BAD,     [RUN_STATUS_CANCELED] = STYLE_WARN,
    [RUN_STATUS_ABANDONED] = STYLE_WARN, [RUN_STATUS_UNKNOWN] = STYLE_WARN,
};

enum style digest_status_style(enum run_status status)
{
    return status_styles[status];
}

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

nsec digest_duration(const struct digest *d)
{
    int64_t began = 0;
    double seconds = json_real(json_get(d->metrics, "duration_seconds"), -1);
    struct str started =
        first_str(json_get(d->manifest, "started_at"), json_get(d->state, "started_at"));
    if (d->status == RUN_STATUS_RUNNING) {
        return stamp_parse(started, &began) && d->now > began ? d->now - began : -1;
    }
    return seconds >= 0 && seconds < 1e9 ? (nsec)(seconds * 1e9) : -1;
}

/* "succeeded in 2.1s", "failed after 0.1s: MESSAGE (reason: auth)", "running for 3.0s, …" */
static void add_outcome(struct table *t, const struct digest *d)
{
    struct str phase = json_str(json_get(d->state, "phase"), STR_EMPTY);
    struct str error = first_str(json_get(d->result, "error"), json_get(d->manifest, "error"));
    error = error.len > 0 ? error : json_str(json_get(d->metrics, "error"), STR_EMPTY);
    struct str word = first_str(json_get(d->state, "reason"), json_get(d->manifest, "reason"));
    bool good = d->status == RUN_STATUS_SUCCEEDED;
    bool plain = good || word.len == 0 || d->reason == REASON_FAILURE;
    nsec took = digest_duration(d);
    char time[TEXT_SHORT] = "";
    if (took >= 0) {
        (void)text_duration(took, time);
    }
    table_cell(t, STYLE_DIM, "outcome");
    if (d->status == RUN_STATUS_RUNNING) {
        table_cellf(t, STYLE_NAME, "running%s%s, phase %.*s, process %lld", took < 0 ? "" : " for ",
                    time, STR_ARG(phase), (long long)d->pid);
    } else if (d->status == RUN_STATUS_ABANDONED) {
        table_cellf(t, STYLE_WARN, "abandoned in phase %.*s: the process no longer exists",
                    STR_ARG(phase));
    } else {
        table_cellf(t, digest_status_style(d->status), "%s%s%s%s%.*s%s%.*s%s",
                    run_status_word(d->status),
                    took < 0 ? ""
                    : good   ? " in "
                             : " after ",
                    time, error.len > 0 ? ": " : "", STR_ARG(error),
                    plain ? "" : " (reason: ", STR_ARG(plain ? STR_EMPTY : word), plain ? "" : ")");
    }
    if (json_is(json_get(d->result, "passed"), JSON_BOOL)) {
        add_fact(t, "passed",
                 json_bool(json_get(d->result, "passed"), false) ? STR("yes") : STR("no"));
    }
}

/* "claude-code (claude 2.1.197), model claude-haiku-4-5" */
static void add_agent(struct table *t, const struct digest *d, bool verbose)
{
    const struct json *metadata = json_get(d->manifest, "metadata");
    const struct json *engine = json_get(metadata, "engine");
    struct str program = first_str(json_get(engine, "name"), ext(d, "engine"));
    struct str version = json_str(json_get(engine, "version"), STR_EMPTY);
    struct str model = first_str(json_get(engine, "model"), ext(d, "model"));
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_add(&text, first_str(json_get(metadata, "agent"), json_get(d->state, "adapter")));
    if (program.len > 0) {
        buf_addf(&text, " (%.*s%s%.*s)", STR_ARG(program), version.len > 0 ? " " : "",
                 STR_ARG(version));
    }
    if (model.len > 0) {
        buf_addf(&text, ", model %.*s", STR_ARG(model));
    }
    add_fact(t, "agent", buf_str(&text));
    if (verbose) {
        add_fact(t, "session", first_str(json_get(d->result, "session_id"), ext(d, "session_id")));
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

static void add_usage(struct table *t, const struct digest *d, struct arena *a)
{
    char made_text[TEXT_SHORT];
    char failed_text[TEXT_SHORT];
    const struct json *calls = ext(d, "tool_calls");
    int64_t made = json_int(json_get(calls, "total"), 0);
    int64_t failed = json_int(json_get(calls, "failed"), 0);
    add_fact(t, "model", str_of(digest_usage(d, a)));
    if (made > 0) {
        table_cell(t, STYLE_DIM, "tools");
        table_cellf(t, STYLE_PLAIN, "%s call%s, %s failed", text_count(made, made_text),
                    made == 1 ? "" : "s", text_count(failed, failed_text));
    }
}

/* "execute 2m 05s, collect 1.2s": phases that took time; all of them if verbose. */
static void add_phases(struct table *t, const struct digest *d, bool verbose)
{
    const struct json *phases = ext(d, "phase_ms");
    CLEANUP(buf) struct buf list = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; json_is(phases, JSON_OBJECT) && i < json_len(phases); i++) {
        const struct json_member *m = &phases->object.members[i];
        int64_t ms = json_int(m->value, -1);
        char text[TEXT_SHORT] = "?";
        if (!verbose && ms >= 0 && ms < PHASE_SHOWN_MS) {
            continue;
        }
        if (ms >= 0 && ms < 1000) {
            (void)snprintf(text, sizeof text, "%lld ms", (long long)ms);
        } else if (ms >= 0 && ms < INT64_MAX / NSEC_PER_MS) {
            (void)text_duration(ms * NSEC_PER_MS, text);
        }
        buf_addf(&list, "%s%.*s %s", list.len == 0 ? "" : ", ", STR_ARG(m->key), text);
    }
    add_fact(t, "time", buf_str(&list));
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
        "stdout.log",    "stderr.log", "agent.log",    "transcript.jsonl",
        "events.jsonl",  "task.json",  "metrics.json", "result.json",
        "manifest.json", "state.json", "diff.patch",   "summary.md",
    };
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        if (str_eqc(path, fixed[i])) {
            return false;
        }
    }
    return !str_starts(path, STR("logs/")) && !str_starts(path, STR("evidence/")) &&
           !str_starts(path, STR("home/")) && !str_starts(path, STR("session/"));
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
        if (++found > FILES_SHOWN) {
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
    if (found > FILES_SHOWN) {
        buf_addf(out, "  ... and %zu more\n", found - FILES_SHOWN);
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
    if (d->status == RUN_STATUS_ABANDONED) {
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

static void add_text(const struct digest_style *style, struct str text, size_t lines,
                     const char *title, struct buf *out)
{
    if (text.len == 0 || lines == 0) {
        return;
    }
    size_t from = text.len;
    size_t found = 0;
    while (from > 0 && (text.ptr[from - 1] != '\n' || ++found < lines)) {
        from--;
    }
    CLEANUP(buf) struct buf full = BUF_INIT(BUF_TEXT);
    buf_addf(&full, "%s%s", title, from > 0 ? " (last lines)" : "");
    add_title(out, style, full.ptr);
    struct str rest = str_slice(text, from, text.len);
    while (rest.ptr != NULL) {
        add_line(style, str_split(&rest, '\n'), out);
    }
}

static void add_changed_files(const struct digest *d, const struct digest_style *style,
                              struct arena *a, struct buf *out)
{
    const struct json *left_out = json_get(d->workspace, "left_out");
    size_t max = style->verbose ? SIZE_MAX : FILES_SHOWN;
    struct table t = { .arena = a, .indent = INDENT, .columns = PATCH_TABLE_COLUMNS };
    for (size_t i = 0; i < d->changes.count && i < max; i++) {
        patch_table_add(&t, &d->changes.files[i]);
    }
    for (size_t i = 0; i < json_len(left_out) && i < max; i++) {
        const struct json *f = json_item(left_out, i);
        table_cell(&t, STYLE_WARN, "-");
        table_cell(&t, STYLE_PLAIN, "");
        table_cell(&t, STYLE_PLAIN, "");
        table_cellf(&t, STYLE_WARN, "%s (not in the patch: %s)",
                    json_cstring(json_get(f, "path"), "?"), json_cstring(json_get(f, "why"), "?"));
    }
    if (t.first != NULL) {
        add_title(out, style, "Changed files");
        table_write(&t, style->width, style->color, out);
    }
    if (d->changes.count > max) {
        buf_addf(out, "  ... and %zu more\n", d->changes.count - max);
    }
}

/* "connect to example.org:443", once for each attempt, as advice. */
static void add_denied(const struct digest *d, const struct digest_style *style, struct arena *a,
                       struct buf *out)
{
    const struct json *list = json_get(json_get(d->manifest, "sandbox"), "denied");
    struct table t = { .arena = a, .indent = INDENT, .columns = { { "" } } };
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        struct str what = json_str(json_item(list, i), STR_EMPTY);
        size_t times = 0;
        bool again = false;
        for (size_t k = 0; k < json_len(list); k++) {
            bool same = str_eq(what, json_str(json_item(list, k), STR_EMPTY));
            times += same;
            again = again || (same && k < i);
        }
        struct str host = what;
        bool connects = str_starts(what, STR("connect to "));
        host = connects ? str_slice(what, strlen("connect to "), what.len) : what;
        struct str name = str_split(&host, ':');
        if (again) {
            continue;
        }
        if (connects) {
            table_cellf(&t, STYLE_WARN, "%.*s, %zu time%s; to allow it: --net %.*s", STR_ARG(what),
                        times, times == 1 ? "" : "s", STR_ARG(name));
        } else {
            table_cell_str(&t, STYLE_WARN, what);
        }
    }
    if (t.first != NULL) {
        add_title(out, style, "Denied");
        table_write(&t, style->width, style->color, out);
    }
}

/* What the agent did last, when there is no answer to show. */
static void add_entries(const struct digest *d, const struct digest_style *style, struct buf *out)
{
    add_title(out, style, "Transcript (last entries)");
    for (size_t i = 0; i < d->entry_count; i++) {
        struct str time = json_str(json_get(d->entries[i], "timestamp"), STR_EMPTY);
        CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
        text_clean(&clean, str_slice(time, 11, 19), TEXT_LINE);
        text_repeat(out, " ", INDENT);
        style_add(out, style->color, STYLE_DIM, clean.len == 0 ? "--:--:--" : clean.ptr);
        buf_adds(out, " ");
        conversation_line(d->entries[i], style->width - INDENT - strlen("00:00:00 "), out);
        buf_adds(out, "\n");
    }
}

/* A prompt and an error alone say nothing new. */
static bool has_story(const struct digest *d)
{
    for (size_t i = 0; i < d->entry_count; i++) {
        struct str type = json_str(json_get(d->entries[i], "entry_type"), STR_EMPTY);
        if (!str_eqc(type, "user_message") && !str_eqc(type, "error")) {
            return true;
        }
    }
    return false;
}

static void add_last_words(const struct digest *d, const struct digest_style *style,
                           struct buf *out)
{
    bool failed = d->status != RUN_STATUS_SUCCEEDED && d->status != RUN_STATUS_RUNNING;
    if (d->tail_is_answer) {
        add_text(style, d->tail, style->lines, "Final answer", out);
    }
    if (has_story(d) && (failed || !d->tail_is_answer)) {
        add_entries(d, style, out);
    } else if (!d->tail_is_answer) {
        add_text(style, d->tail, style->lines, "stdout.log", out);
    }
    if (failed) {
        add_text(style, d->err_tail, OUTPUT_LINES, "stderr.log", out);
    }
}

void digest_text(const struct digest *d, struct digest_style style, struct arena *a,
                 struct buf *out)
{
    struct table facts = { .arena = a, .columns = { { "" }, { "" } } };
    add_fact(&facts, "run",
             first_str(json_get(d->state, "run_id"), json_get(d->manifest, "run_id")));
    add_fact(&facts, "task", digest_task(d));
    add_outcome(&facts, d);
    add_agent(&facts, d, style.verbose);
    add_fact(&facts, "started",
             first_str(json_get(d->manifest, "started_at"), json_get(d->state, "started_at")));
    add_fact(&facts, "workspace", json_str(json_get(d->workspace, "source"), STR_EMPTY));
    add_fact(&facts, "changes", str_of(digest_changes(d, a)));
    add_usage(&facts, d, a);
    add_phases(&facts, d, style.verbose);
    if (d->status != RUN_STATUS_SUCCEEDED || style.verbose) {
        add_exit(&facts, d);
        add_output(&facts, d);
    }
    add_fact(&facts, "record", str_of(d->path));
    table_write(&facts, style.width, style.color, out);
    add_changed_files(d, &style, a, out);
    add_artifacts(d, &style, a, out);
    add_denied(d, &style, a, out);
    add_warnings(d, &style, a, out);
    add_problems(d, &style, a, out);
    add_last_words(d, &style, out);
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
    if (d->tail_is_answer || d->status == RUN_STATUS_SUCCEEDED) {
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
