/* SPDX-License-Identifier: MIT
 *
 * cinch clean: what runs left on disk, and away with it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/run_name.h"
#include "cli/run_request.h"
#include "cli/table.h"
#include "cli/text.h"
#include "run/clean.h"

static const struct option options[] = {
    { "dry-run", 0, OPTION_FLAG, .old_letter = 'n',
      .help = "show what would be removed, and remove nothing" },
    { "records", 0, OPTION_FLAG, .help = "remove whole run directories, not only workspaces" },
    { "older-than", 0, OPTION_DURATION, .value = "TIME",
      .help = "clean only runs that ended more than TIME ago (1h, 720h)" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN",
      "a run: path, last, or part of an id (default: all runs below ~/.local/state/cinch/runs)",
      .optional = true, .repeat = true, .complete = COMPLETE_DIRECTORY },
    { 0 },
};

struct cleaning {
    struct cli *cli;
    struct clean_opts opts;
    struct table table;
    struct json *list;
    int64_t freed;
};

static const char *const action_words[] = {
    [CLEAN_NOTHING] = "kept",
    [CLEAN_WORKSPACE] = "workspace removed",
    [CLEAN_RECORD] = "removed",
};
static const char *const plan_words[] = {
    [CLEAN_NOTHING] = "keep",
    [CLEAN_WORKSPACE] = "would remove the workspace",
    [CLEAN_RECORD] = "would remove the run directory",
};

static void tell(struct cleaning *c, const struct clean_item *x)
{
    struct arena *a = c->cli->arena;
    char size[TEXT_SHORT];
    int64_t freed = x->action == CLEAN_RECORD      ? x->work_bytes + x->record_bytes
                    : x->action == CLEAN_WORKSPACE ? x->work_bytes
                                                   : 0;
    c->freed += freed;
    const char *word = x->alive          ? "still running"
                       : c->opts.dry_run ? plan_words[x->action]
                                         : action_words[x->action];
    table_cell(&c->table, STYLE_NAME, x->path);
    table_cell(&c->table, STYLE_PLAIN, x->state);
    table_cell(&c->table, STYLE_PLAIN, text_bytes((uint64_t)x->work_bytes, size));
    table_cell(&c->table, STYLE_PLAIN, text_bytes((uint64_t)x->record_bytes, size));
    table_cell(&c->table, STYLE_PLAIN, word);
    struct json *o = json_object(a);
    json_setc(a, o, "path", json_cstr(a, x->path));
    json_setc(a, o, "state", json_cstr(a, x->state));
    json_setc(a, o, "alive", json_boolean(a, x->alive));
    json_setc(a, o, "workspace_bytes", json_integer(a, x->work_bytes));
    json_setc(a, o, "record_bytes", json_integer(a, x->record_bytes));
    json_setc(a, o, "freed_bytes", json_integer(a, freed));
    json_push(a, c->list, o);
}

static int clean_one(struct cleaning *c, const char *dir, struct err *e)
{
    struct clean_item item;
    int r = clean_run(c->cli->arena, dir, &c->opts, &item, e);
    if (r == 0) {
        tell(c, &item);
    }
    return r;
}

/* What is no run in that directory is passed over. */
static int clean_all(struct cleaning *c, struct err *e)
{
    const char *dir = request_runs_dir(c->cli->arena);
    DIR *d = opendir(dir);
    if (d == NULL) {
        return 0;
    }
    int r = 0;
    for (struct dirent *x = readdir(d); r == 0 && x != NULL; x = readdir(d)) {
        if (x->d_name[0] == '.') {
            continue;
        }
        r = clean_one(c, arena_printf(c->cli->arena, "%s/%s", dir, x->d_name), e);
        r = r == -ERR_INPUT ? 0 : r;
    }
    (void)closedir(d);
    return r;
}

static void print(struct cleaning *c)
{
    struct cli *cli = c->cli;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    char size[TEXT_SHORT];
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "dry_run", json_boolean(cli->arena, c->opts.dry_run));
        json_setc(cli->arena, o, "freed_bytes", json_integer(cli->arena, c->freed));
        json_setc(cli->arena, o, "runs", c->list);
        cli_print_json(cli, o);
    } else if (cli->format == CLI_TEXT) {
        table_write(&c->table, terminal_text_width(&cli->out), cli->out.color, &out);
        buf_addf(&out, "%s %s\n", text_bytes((uint64_t)c->freed, size),
                 c->opts.dry_run ? "could be freed" : "freed");
        cli_print(cli, &out);
    }
}

static int run_clean(struct cli *cli, const struct options *opt, struct err *e)
{
    nsec age = options_duration(opt, "older-than", 0);
    struct cleaning c = {
        .cli = cli,
        .opts = { .records = options_flag(opt, "records", false),
                  .dry_run = options_flag(opt, "dry-run", false),
                  .older_than = age > 0 ? clock_wall() - age : 0 },
        .table = { .arena = cli->arena,
                   .head = true,
                   .columns = { { "run" },
                                { "state" },
                                { "workspace", .right = true },
                                { "record", .right = true },
                                { "" } } },
        .list = json_array(cli->arena),
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < options_arg_count(opt); i++) {
        const char *path;
        r = run_name_find(cli, options_arg(opt, i), &path, e);
        r = r < 0 ? r : clean_one(&c, path, e);
    }
    if (r == 0 && options_arg_count(opt) == 0) {
        r = clean_all(&c, e);
    }
    if (r == 0 || json_len(c.list) > 0) {
        print(&c);
    }
    return r;
}

static const char *const usage[] = { "[--dry-run] [--records] [--older-than TIME] [RUN...]", NULL };

static const char *const description[] = {
    "A run that failed or was stopped keeps its workspace, so that you can inspect it or resume "
    "the run. This command frees the disk space: it removes the workspaces and homes of runs that "
    "have ended, or with --records their whole directories. Runs in progress are not touched. If "
    "cinch was killed during a run, the record is closed first.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch clean --dry-run", "show how much space can be freed" },
    { "cinch clean --records --older-than 720h", "remove all runs older than a month" },
    { 0 },
};

const struct command cmd_clean = {
    .name = "clean",
    .minor = true,
    .summary = "free the disk space used by runs",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_clean,
};
