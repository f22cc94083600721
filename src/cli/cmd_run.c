/* SPDX-License-Identifier: MIT
 *
 * cinch run: one task, one adapter, one record.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/apply_record.h"
#include "cli/command.h"
#include "cli/digest.h"
#include "cli/live.h"
#include "cli/progress.h"
#include "cli/run_name.h"
#include "cli/run_request.h"
#include "cli/text.h"
#include "proc/orphans.h"
#include "run/run.h"

enum { ANSWER_LINES = 4 }; /* of --answer short */

/* A limit that is far away is not worth a place on the status line. */
#define TIME_LEFT_SHOWN (10 * 60 * NSEC_PER_SEC)

struct watching {
    struct progress progress;
    struct live live;
    bool lines; /* one for each message and tool call */
};

static struct progress_view as_progress(struct watching *w, const struct run_view *v)
{
    return (struct progress_view) {
        .phase = v->phase,
        .elapsed = v->elapsed,
        .bytes_out = v->bytes_out,
        .bytes_err = v->bytes_err,
        .calls = v->calls,
        .tokens = v->tokens,
        .cost_usd = v->cost_usd,
        .budget_usd = v->budget_usd,
        .time_left = v->time_left < TIME_LEFT_SHOWN ? v->time_left : 0,
        .note = live_note(&w->live),
    };
}

static void on_entry(void *owner, const struct json *entry)
{
    struct watching *w = owner;
    if (w->lines) {
        live_entry(&w->live, entry, clock_now());
    }
}

static void on_view(void *owner, const struct run_view *v)
{
    struct watching *w = owner;
    struct progress_view view = as_progress(w, v);
    progress_update(&w->progress, &view, clock_now());
}

static void on_warning(void *owner, const char *text)
{
    struct watching *w = owner;
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    buf_adds(&line, "warning: ");
    text_clean(&line, str_of(text), TEXT_LINE);
    progress_message(&w->progress, line.ptr);
}

static struct json *usage_json(const struct digest *d, struct arena *a)
{
    static const char *const keys[] = { "api_calls", "tokens_input", "tokens_output", "cost_usd" };
    struct json *o = json_object(a);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_setc(a, o, keys[i], json_copy(a, json_get(d->metrics, keys[i])));
    }
    json_setc(a, o, "cost_source",
              json_copy(a, json_get(json_get(d->metrics, "ext"), "cost_source")));
    return o;
}

static struct json *changes_json(const struct digest *d, struct arena *a)
{
    struct json *o = json_object(a);
    json_setc(a, o, "files", json_integer(a, (int64_t)d->changes.count));
    json_setc(a, o, "added", json_integer(a, d->changes.added));
    json_setc(a, o, "removed", json_integer(a, d->changes.removed));
    return d->has_changes ? o : json_null(a);
}

static void print_json(struct cli *cli, const struct run_summary *sum, const struct digest *d)
{
    struct arena *a = cli->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "run_id", json_cstr(a, sum->run_id));
    json_setc(a, o, "output_dir",
              json_cstr(a, sum->output_dir[0] == '\0' ? NULL : sum->output_dir));
    json_setc(a, o, "outcome", json_cstr(a, reason_outcome(sum->reason)));
    json_setc(a, o, "reason", json_cstr(a, reason_word(sum->reason)));
    json_setc(a, o, "error", json_cstr(a, sum->message[0] == '\0' ? NULL : sum->message));
    json_setc(a, o, "exit_status", json_integer(a, sum->exit_status));
    json_setc(a, o, "duration_seconds", json_number(a, (double)sum->took / 1e9));
    json_setc(a, o, "text", json_copy(a, json_get(d->result, "text")));
    json_setc(a, o, "changes", changes_json(d, a));
    json_setc(a, o, "usage", usage_json(d, a));
    json_setc(a, o, "warnings", json_copy(a, json_get(d->manifest, "warnings")));
    cli_print_json(cli, o);
}

/* "success in 2.1s", "failed after 0.1s: MESSAGE (reason: auth)", "interrupted after 3.0s". */
static void add_verdict(struct cli *cli, const struct run_summary *sum, struct buf *out)
{
    char took[TEXT_SHORT];
    bool good = sum->reason == REASON_SUCCESS;
    bool human = sum->reason == REASON_NEEDS_HUMAN;
    bool failed = strcmp(reason_state(sum->reason), "failed") == 0;
    const char *word = human ? "needs a human" : failed ? "failed" : reason_word(sum->reason);
    style_add(out, cli->out.color, good ? STYLE_GOOD : STYLE_BAD, word);
    buf_addf(out, " %s %s", good ? "in" : "after", text_duration(sum->took, took));
    if (sum->message[0] != '\0') {
        buf_adds(out, ": ");
        text_clean(out, str_of(sum->message), TEXT_LINE);
    }
    if (failed && sum->reason != REASON_FAILURE) {
        buf_addf(out, " (reason: %s)", reason_word(sum->reason));
    }
}

/* What a person is likely to type now. `given` is the output directory as it was typed, or NULL. */
static void add_next(struct cli *cli, const struct run_summary *sum, const struct digest *d,
                     const char *given, struct buf *out)
{
    const char *name = given != NULL ? given : run_name_for(cli, sum->output_dir);
    style_add(out, cli->out.color, STYLE_DIM, "next:");
    buf_adds(out, " cinch ");
    if (sum->reason != REASON_SUCCESS) {
        buf_adds(out, "show ");
        text_clean(out, str_of(name), TEXT_LINE);
        buf_adds(out, ", cinch transcript ");
    } else if (d->changes.count > 0) {
        buf_adds(out, "diff ");
        text_clean(out, str_of(name), TEXT_LINE);
        buf_adds(out, ", cinch apply ");
    } else {
        buf_adds(out, "show ");
    }
    text_clean(out, str_of(name), TEXT_LINE);
    buf_adds(out, "\n");
}

static void print_text(struct cli *cli, const struct options *opt, const struct run_summary *sum,
                       const struct digest *d)
{
    bool full = strcmp(options_string(opt, "answer", "short"), "full") == 0;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct digest_style style = {
        .width = terminal_text_width(&cli->out),
        .color = cli->out.color,
        .lines = full ? SIZE_MAX : ANSWER_LINES,
    };
    add_verdict(cli, sum, &out);
    buf_adds(&out, "\n");
    if (sum->output_dir[0] != '\0') {
        digest_closing(d, style, cli->arena, &out);
        style_add(&out, cli->out.color, STYLE_DIM, "record:");
        buf_adds(&out, " ");
        text_clean(&out, str_of(sum->output_dir), TEXT_LINE);
        buf_adds(&out, "\n");
        add_next(cli, sum, d, options_string(opt, "output", NULL), &out);
    }
    cli_print(cli, &out);
}

static void print_quiet(struct cli *cli, const struct run_summary *sum)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_addf(&out, "%s%s", sum->output_dir, sum->output_dir[0] == '\0' ? "" : "\n");
    cli_print(cli, &out);
}

static void print_end(struct cli *cli, const struct options *opt, const struct run_summary *sum)
{
    CLEANUP(digest) struct digest d = { .dir_fd = -1 };
    if (sum->output_dir[0] != '\0') {
        (void)!digest_read(&d, sum->output_dir, cli->arena,
                           NULL); /* what is missing is not shown */
    }
    switch (cli->format) {
    case CLI_JSON:
        print_json(cli, sum, &d);
        break;
    case CLI_QUIET:
        print_quiet(cli, sum);
        break;
    case CLI_TEXT:
        print_text(cli, opt, sum, &d);
        break;
    }
}

/* `how` is --progress; NULL: lines on a terminal, and elsewhere only warnings. */
static void begin_watching(struct watching *w, struct cli *cli, const char *how)
{
    bool live = cli->err.live && !log_enabled(LOG_LEVEL_ERROR);
    bool plain = how != NULL && strcmp(how, "plain") == 0;
    bool lines = how == NULL ? cli->err.live : strcmp(how, "lines") == 0;
    enum progress_mode mode = plain           ? PROGRESS_PLAIN
                              : lines && live ? PROGRESS_AUTO
                                              : PROGRESS_MESSAGES;
    *w = (struct watching) { .live.progress = &w->progress,
                             .lines = lines && cli->format == CLI_TEXT };
    progress_init(&w->progress, &cli->err, cli->format == CLI_TEXT ? mode : PROGRESS_QUIET);
}

static int run_run(struct cli *cli, const struct options *opt, struct err *e)
{
    struct watching w;
    struct run_summary sum;
    CLEANUP(orphans) struct orphans *orphans = NULL;
    (void)!orphans_new(&orphans, NULL); /* fails without /proc, where none could be found either */
    struct run_opts opts = {
        .runs_dir = request_runs_dir(cli->arena),
        .orphans = orphans,
        .force = options_flag(opt, "force", false),
        .keep_home = options_flag(opt, "keep-home", false),
        .drop_refused = true,
        .environ = (const char *const *)environ,
        .watcher = { .phase = on_view,
                     .progress = on_view,
                     .warning = on_warning,
                     .entry = on_entry,
                     .owner = &w },
    };
    int r = request_read(cli->arena, opt, options_arg(opt, 0), &opts.settings, e);
    if (r < 0) {
        return r;
    }
    begin_watching(&w, cli, options_string(opt, "progress", NULL));
    r = run_execute(&opts, &sum, e);
    progress_done(&w.progress);
    if (r < 0) {
        cli->refused_status = sum.output_dir[0] == '\0' ? 0 : sum.exit_status;
        return r;
    }
    cli->has_verdict = true;
    print_end(cli, opt, &sum);
    if (sum.reason == REASON_SUCCESS && options_flag(opt, "apply", false)) {
        r = apply_record(cli, sum.output_dir, e);
    }
    return r < 0 ? r : sum.exit_status;
}

static const char *const usage[] = {
    "[OPTIONS] TASK.yaml|SPEC.yaml",
    "[OPTIONS] \"GOAL\"",
    "[OPTIONS] -- COMMAND [ARGUMENTS]",
    NULL,
};

static const char *const description[] = {
    "Runs an agent on a task and writes a complete record of the run. The task is a task file, a "
    "Holon spec, a goal as text, or a prompt file. For the adapter `command`, the words after -- "
    "are the command "
    "to run; any other adapter passes them to its agent as additional arguments. In the command, "
    "the placeholders {prompt_file}, {prompt}, {model}, {workspace}, {output_dir}, {timeout}, "
    "{home}, {config_file} and {system_prompt} are replaced by their values.",
    "The agent gets a clean environment with a short list of variables, a private HOME and an "
    "empty standard input. Ctrl-C interrupts the run and leaves a valid record; a second Ctrl-C "
    "kills the run immediately.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch run \"Fix the failing test\" -- ./my-agent {prompt_file}",
      "run any program as an agent" },
    { "cinch run task.yaml --timeout 10m --output out", "run a task file with a time limit" },
    { "cinch run -p task.md -s API_TOKEN -- ./my-agent",
      "pass a secret and keep it out of every file" },
    { 0 },
};

const struct command cmd_run = {
    .name = "run",
    .summary = "run an agent on a task",
    .usage = usage,
    .description = description,
    .examples = examples,
    .make_options = request_run_options,
    .positionals = request_positionals,
    .rest = "COMMAND...",
    .run = run_run,
};
