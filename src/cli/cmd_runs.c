/* SPDX-License-Identifier: MIT
 *
 * cinch runs: the runs of the store, newest first.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/digest.h"
#include "cli/run_request.h"
#include "cli/table.h"
#include "cli/text.h"
#include "record/run_store.h"
#include "record/stamp.h"

enum { ROWS_DEFAULT = 20, AGENT_NARROW = 12, AGENT_WIDE = 34 };

static const char *const outcome_words[] = { "running",  "succeeded", "failed",
                                             "canceled", "abandoned", NULL };

static const struct option options[] = {
    { "lines", 'n', OPTION_INT, .value = "N", .min = 0, .max = INT32_MAX, .shown = "20",
      .help = "list at most N runs; 0 lists all" },
    { "adapter", 'a', OPTION_STRING, .value = "NAME", .complete = COMPLETE_ADAPTER,
      .help = "list only runs of this adapter" },
    { "model", 'm', OPTION_STRING, .value = "MODEL", .help = "list only runs with this model" },
    { "outcome", 0, OPTION_ENUM, .words = outcome_words,
      .help = "list only runs that ended like this" },
    { "since", 0, OPTION_DURATION, .value = "TIME",
      .help = "list only runs that started less than TIME ago (2h, 168h)" },
    { 0 },
};

struct filter {
    const char *adapter, *model, *outcome; /* NULL: any */
    int64_t since;                         /* wall clock; 0: any */
};

struct row {
    const struct stored_run *run;
    struct digest digest;
    struct str adapter, model;
};

static void read_names(struct row *x)
{
    const struct json *metadata = json_get(x->digest.manifest, "metadata");
    const struct json *engine = json_get(metadata, "engine");
    const struct json *ext = json_get(x->digest.metrics, "ext");
    x->adapter = json_str(json_get(metadata, "agent"),
                          json_str(json_get(x->digest.state, "adapter"), STR_EMPTY));
    x->model = json_str(json_get(engine, "model"), json_str(json_get(ext, "model"), STR_EMPTY));
}

static bool passes(const struct filter *f, const struct row *x)
{
    return (f->adapter == NULL || str_eqc(x->adapter, f->adapter)) &&
           (f->model == NULL || str_eqc(x->model, f->model)) &&
           (f->outcome == NULL || strcmp(run_status_word(x->digest.status), f->outcome) == 0);
}

/* The reason says more than "failed" does. */
static const char *outcome_of(const struct digest *d)
{
    bool has_reason =
        d->status == RUN_STATUS_FAILED && d->reason != REASON_NONE && d->reason != REASON_FAILURE;
    return has_reason ? reason_word(d->reason) : run_status_word(d->status);
}

static const char *age_text(int64_t age, char out[TEXT_SHORT])
{
    const int64_t minute = 60 * NSEC_PER_SEC;
    const int64_t hour = 60 * minute;
    const struct {
        int64_t below, unit;
        const char *letter;
    } steps[] = {
        { minute, NSEC_PER_SEC, "s" },
        { hour, minute, "m" },
        { 48 * hour, hour, "h" },
        { INT64_MAX, 24 * hour, "d" },
    };
    size_t i = 0;
    while (age >= steps[i].below) {
        i++;
    }
    (void)snprintf(out, TEXT_SHORT, "%lld%s", (long long)(age < 0 ? 0 : age / steps[i].unit),
                   steps[i].letter);
    return out;
}

static void add_row(struct table *t, const struct row *x)
{
    char text[TEXT_SHORT];
    nsec took = digest_duration(&x->digest);
    double usd = json_real(json_get(x->digest.metrics, "cost_usd"), 0);
    const struct json *ext = json_get(x->digest.metrics, "ext");
    bool simulated = str_eqc(json_str(json_get(ext, "cost_source"), STR_EMPTY), "simulated");
    const char *id = x->run->run_id[0] == '\0' ? x->run->name : run_short_id(x->run->run_id);
    table_cell(t, STYLE_NAME, id);
    table_cell(t, STYLE_DIM, age_text(x->digest.now - x->run->started, text));
    table_cell(t, digest_status_style(x->digest.status), outcome_of(&x->digest));
    table_cell(t, STYLE_PLAIN, took < 0 ? "" : text_duration(took, text));
    table_cell(t, simulated ? STYLE_DIM : STYLE_PLAIN, usd > 0 ? text_cost(usd, text) : "");
    if (x->digest.changes.count > 0) {
        table_cellf(t, STYLE_PLAIN, "+%lld -%lld", (long long)x->digest.changes.added,
                    (long long)x->digest.changes.removed);
    } else {
        table_cell(t, STYLE_PLAIN, "");
    }
    if (x->model.len > 0) {
        table_cellf(t, STYLE_PLAIN, "%.*s, %.*s", STR_ARG(x->adapter), STR_ARG(x->model));
    } else {
        table_cell_str(t, STYLE_PLAIN, x->adapter);
    }
    table_cell_str(t, STYLE_PLAIN, digest_task(&x->digest));
}

static struct json *row_json(const struct row *x, struct arena *a)
{
    const struct digest *d = &x->digest;
    char iso[CLOCK_ISO_LEN];
    nsec took = digest_duration(&x->digest);
    struct json *o = json_object(a);
    json_setc(a, o, "run_id",
              x->run->run_id[0] == '\0' ? json_null(a) : json_cstr(a, x->run->run_id));
    json_setc(a, o, "path", json_cstr(a, x->run->path));
    json_setc(a, o, "task", json_string(a, digest_task(d)));
    json_setc(a, o, "adapter", json_string(a, x->adapter));
    json_setc(a, o, "model", x->model.len == 0 ? json_null(a) : json_string(a, x->model));
    json_setc(a, o, "status", json_cstr(a, run_status_word(d->status)));
    json_setc(a, o, "reason",
              d->reason == REASON_NONE ? json_null(a) : json_cstr(a, reason_word(d->reason)));
    json_setc(a, o, "started_at", json_cstr(a, clock_iso(x->run->started, iso)));
    json_setc(a, o, "duration_seconds",
              took < 0 ? json_null(a) : json_number(a, (double)took / 1e9));
    json_setc(a, o, "cost_usd", json_copy(a, json_get(d->metrics, "cost_usd")));
    json_setc(a, o, "cost_source",
              json_copy(a, json_get(json_get(d->metrics, "ext"), "cost_source")));
    json_setc(a, o, "files_changed",
              d->has_changes ? json_integer(a, (int64_t)d->changes.count) : json_null(a));
    json_setc(a, o, "lines_added",
              d->has_changes ? json_integer(a, d->changes.added) : json_null(a));
    json_setc(a, o, "lines_removed",
              d->has_changes ? json_integer(a, d->changes.removed) : json_null(a));
    return o;
}

struct listing {
    struct cli *cli;
    struct filter filter;
    size_t max; /* 0: all */
    size_t shown;
    bool more; /* there are runs beyond max */
    struct table table;
    struct json *list;
    struct buf names;
};

static void list_run(struct listing *l, const struct stored_run *run)
{
    CLEANUP(arena) struct arena *scratch = arena_new();
    struct row x = { .run = run, .digest = { .dir_fd = -1 } };
    if (run->started < l->filter.since || digest_read(&x.digest, run->path, scratch, NULL) < 0) {
        return;
    }
    read_names(&x);
    if (passes(&l->filter, &x)) {
        l->more = l->max > 0 && l->shown == l->max;
        l->shown += !l->more;
        if (l->more) {
            /* counted only */
        } else if (l->cli->format == CLI_JSON) {
            json_push(l->cli->arena, l->list, json_copy(l->cli->arena, row_json(&x, scratch)));
        } else if (l->cli->format == CLI_QUIET) {
            buf_addf(&l->names, "%s\n", run->run_id[0] == '\0' ? run->name : run->run_id);
        } else {
            add_row(&l->table, &x);
        }
    }
    digest_done(&x.digest);
}

static void print_list(struct listing *l, const char *store)
{
    struct cli *cli = l->cli;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (cli->format == CLI_JSON) {
        cli_print_json(cli, l->list);
    } else if (cli->format == CLI_QUIET) {
        cli_print(cli, &l->names);
    } else if (l->shown == 0) {
        buf_adds(&out, "no runs in ");
        text_clean(&out, str_of(store), TEXT_LINE);
        buf_adds(&out, "\n");
        cli_print(cli, &out);
    } else {
        table_write(&l->table, terminal_width(&cli->out), cli->out.color, &out);
        if (l->more) {
            style_add(&out, cli->out.color, STYLE_DIM, "older runs: cinch runs -n 0");
            buf_adds(&out, "\n");
        }
        cli_print(cli, &out);
    }
}

static int run_runs(struct cli *cli, const struct options *opt, struct err *e)
{
    nsec since = options_duration(opt, "since", 0);
    bool wide = terminal_width(&cli->out) >= 100;
    const char *store = request_runs_dir(cli->arena);
    struct run_list runs;
    struct listing l = {
        .cli = cli,
        .filter = { .adapter = options_string(opt, "adapter", NULL),
                    .model = options_string(opt, "model", NULL),
                    .outcome = options_string(opt, "outcome", NULL),
                    .since = since > 0 ? clock_wall() - since : INT64_MIN },
        .max = (size_t)options_int(opt, "lines", ROWS_DEFAULT),
        .table = { .arena = cli->arena,
                   .head = true,
                   .cut_last = true,
                   .columns = { { "run" },
                                { "age", .right = true },
                                { "outcome" },
                                { "took", .right = true },
                                { "cost", .right = true },
                                { "changes" },
                                { "agent", .max = wide ? AGENT_WIDE : AGENT_NARROW },
                                { "task" } } },
        .list = json_array(cli->arena),
        .names = BUF_INIT(BUF_TEXT),
    };
    int r = run_store_list(cli->arena, store, &runs, e);
    for (size_t i = 0; r == 0 && i < runs.count && !l.more; i++) {
        list_run(&l, &runs.runs[i]);
    }
    if (r == 0) {
        print_list(&l, store);
    }
    buf_done(&l.names);
    return r;
}

static const char *const description[] = {
    "Lists the runs in the store (~/.local/state/cinch/runs), newest first: short id, age, "
    "how it ended, how long it took, its cost, what it changed, the agent and the task. "
    "Runs with an --output directory of their own are not in the store.",
    "Every command that takes a RUN accepts a path, `last`, `last-1` and so on, or the first or "
    "last digits of an id (at least four).",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch runs", "list the last 20 runs" },
    { "cinch runs --outcome failed --since 24h", "list the failures of the last day" },
    { "cinch runs -n 0 --format json | jq 'map(.cost_usd) | add'", "add up the cost of all runs" },
    { 0 },
};

const struct command cmd_runs = {
    .name = "runs",
    .summary = "list runs, newest first",
    .description = description,
    .examples = examples,
    .options = options,
    .run = run_runs,
};
