/* SPDX-License-Identifier: MIT
 *
 * cinch rm: deletes the records of runs.
 */
#include "base/json.h"
#include "cli/command.h"
#include "cli/digest.h"
#include "cli/run_name.h"
#include "cli/run_request.h"
#include "cli/text.h"
#include "record/run_store.h"
#include "run/clean.h"

static const struct option options[] = {
    { "older-than", 0, OPTION_DURATION, .value = "TIME",
      .help = "delete all runs of the store that ended more than TIME ago (24h, 720h)" },
    { "dry-run", 0, OPTION_FLAG, .help = "show what would be deleted, and delete nothing" },
    { "force", 0, OPTION_FLAG, .help = "with --older-than: also delete runs with kept work" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN", "a run: path, last, or part of an id", .optional = true, .repeat = true,
      .complete = COMPLETE_DIRECTORY },
    { 0 },
};

struct removal {
    struct cli *cli;
    struct clean_opts opts;
    struct json *list;
    struct buf text;
    int64_t freed;
};

static int remove_run(struct removal *m, const char *path, struct err *e)
{
    struct arena *a = m->cli->arena;
    struct clean_item item;
    char size[TEXT_SHORT];
    int r = clean_run(a, path, &m->opts, &item, e);
    if (r < 0) {
        return r;
    }
    if (item.alive) {
        return ERR(e, ERR_EXISTS, "the run in '%s' is still running", item.path);
    }
    if (item.action != CLEAN_RECORD) { /* ended too late for --older-than */
        return 0;
    }
    int64_t bytes = item.work_bytes + item.record_bytes;
    m->freed += bytes;
    buf_adds(&m->text, m->opts.dry_run ? "would delete " : "deleted ");
    text_clean(&m->text, str_of(item.path), TEXT_LINE);
    buf_addf(&m->text, " (%s)\n", text_bytes((uint64_t)bytes, size));
    struct json *o = json_object(a);
    json_setc(a, o, "path", json_cstr(a, item.path));
    json_setc(a, o, "bytes", json_integer(a, bytes));
    json_push(a, m->list, o);
    return 0;
}

/* Work that exists nowhere else: a kept workspace, or changes. They may have been applied, but
 * nothing says so. */
static bool has_work(const char *path)
{
    CLEANUP(arena) struct arena *scratch = arena_new();
    CLEANUP(digest) struct digest d = { .dir_fd = -1 };
    return digest_read(&d, path, scratch, NULL) == 0 &&
           (d.changes.count > 0 || json_bool(json_get(d.workspace, "kept"), false));
}

static int remove_old(struct removal *m, bool force, struct err *e)
{
    struct run_list runs;
    size_t spared = 0;
    int r = run_store_list(m->cli->arena, request_runs_dir(m->cli->arena), &runs, e);
    for (size_t i = 0; r == 0 && i < runs.count; i++) {
        if (runs.runs[i].started >= m->opts.older_than) {
            continue;
        }
        if (!force && has_work(runs.runs[i].path)) {
            spared++;
            continue;
        }
        r = remove_run(m, runs.runs[i].path, e);
        r = r == -ERR_EXISTS ? 0 : r; /* it is still running */
    }
    if (spared > 0) {
        buf_addf(&m->text, "kept %zu run%s with changes or a workspace: name %s, or use --force\n",
                 spared, spared == 1 ? "" : "s", spared == 1 ? "it" : "them");
    }
    return r;
}

static void print_removed(struct removal *m)
{
    struct cli *cli = m->cli;
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "dry_run", json_boolean(cli->arena, m->opts.dry_run));
        json_setc(cli->arena, o, "freed_bytes", json_integer(cli->arena, m->freed));
        json_setc(cli->arena, o, "runs", m->list);
        cli_print_json(cli, o);
    } else if (cli->format == CLI_TEXT) {
        cli_print(cli, &m->text);
    }
}

static int run_rm(struct cli *cli, const struct options *opt, struct err *e)
{
    bool by_age = options_given(opt, "older-than");
    struct removal m = {
        .cli = cli,
        .opts = { .records = true, .dry_run = options_flag(opt, "dry-run", false) },
        .list = json_array(cli->arena),
        .text = BUF_INIT(BUF_TEXT),
    };
    if (by_age == (options_arg_count(opt) > 0)) {
        return ERR(e, ERR_USAGE, "name the runs to delete, or use --older-than TIME");
    }
    int r = 0;
    if (by_age) {
        m.opts.older_than = clock_wall() - options_duration(opt, "older-than", 0);
        r = remove_old(&m, options_flag(opt, "force", false), e);
    }
    for (size_t i = 0; r == 0 && i < options_arg_count(opt); i++) {
        const char *path;
        r = run_name_find(cli, options_arg(opt, i), &path, e);
        r = r < 0 ? r : remove_run(&m, path, e);
    }
    print_removed(&m);
    buf_done(&m.text);
    return r;
}

static const char *const usage[] = { "[--dry-run] RUN...",
                                     "[--dry-run] [--force] --older-than TIME", NULL };

static const char *const description[] = {
    "Deletes the whole records of runs, including their workspaces. Runs in progress are refused.",
    "With --older-than, all runs of the store that ended before are deleted, except those with "
    "changes or a kept workspace; --force deletes these, too. `cinch clean` frees workspaces and "
    "keeps the records.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch rm last", "delete the record of the newest run" },
    { "cinch rm --dry-run --older-than 720h", "show which runs of more than a month ago would go" },
    { 0 },
};

const struct command cmd_rm = {
    .name = "rm",
    .minor = true,
    .summary = "delete the records of runs",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_rm,
};
