/* SPDX-License-Identifier: MIT
 *
 * cinch diff: what an agent changed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/pager.h"
#include "cli/patch_table.h"
#include "cli/run_name.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/transcript_format.h"
#include "record/patch_stat.h"
#include "record/rundir.h"
#include "workspace/workspace.h"

#define PATCH_MAX ((size_t)1 << 30)
enum { DESCRIPTION_MAX = 512 << 20 }; /* a million changed files */

static const struct option options[] = {
    { "files", 0, OPTION_FLAG,
      .help = "list only the changed files (A added, M modified, D deleted, R renamed)" },
    { "stat", 0, OPTION_FLAG, .help = "show only how many lines changed in each file" },
    { "turn", 0, OPTION_INT, .value = "N",
      .help = "show the changes up to the end of turn N (needs workspace.savepoint)" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN", "a run: path, last (default), or part of an id", .optional = true,
      .complete = COMPLETE_DIRECTORY },
    { 0 },
};

static void list_files(const struct json *workspace, struct buf *out)
{
    const struct json *files = json_get(workspace, "files");
    for (size_t i = 0; i < json_len(files); i++) {
        const struct json *f = json_item(files, i);
        buf_addf(out, "%s ", json_cstring(json_get(f, "status"), "?"));
        if (json_get(f, "from") != NULL) {
            text_clean(out, json_str(json_get(f, "from"), STR_EMPTY), TEXT_LINE);
            buf_adds(out, " -> ");
        }
        text_clean(out, json_str(json_get(f, "path"), STR_EMPTY), TEXT_LINE);
        buf_adds(out, "\n");
    }
    const struct json *left_out = json_get(workspace, "left_out");
    for (size_t i = 0; i < json_len(left_out); i++) {
        const struct json *f = json_item(left_out, i);
        buf_adds(out, "- ");
        text_clean(out, json_str(json_get(f, "path"), STR_EMPTY), TEXT_LINE);
        buf_addf(out, " (not in the patch: %s)\n", json_cstring(json_get(f, "why"), "?"));
    }
}

static void list_stat(struct cli *cli, struct str patch, struct buf *out)
{
    struct patch_stat stat;
    char added[TEXT_SHORT];
    char removed[TEXT_SHORT];
    struct table t = { .arena = cli->arena, .columns = PATCH_TABLE_COLUMNS };
    patch_stat(cli->arena, patch, &stat);
    for (size_t i = 0; i < stat.count; i++) {
        patch_table_add(&t, &stat.files[i]);
    }
    table_write(&t, terminal_width(&cli->out), cli->out.color, out);
    buf_addf(out, "%zu file%s changed, +%s -%s\n", stat.count, stat.count == 1 ? "" : "s",
             text_count(stat.added, added), text_count(stat.removed, removed));
}

static enum style line_style(struct str line)
{
    static const struct {
        const char *prefix;
        enum style style;
    } prefixes[] = {
        { "diff --git ", STYLE_BOLD }, { "+++ ", STYLE_BOLD }, { "--- ", STYLE_BOLD },
        { "@@ ", STYLE_NAME },         { "+", STYLE_GOOD },    { "-", STYLE_BAD },
    };
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (str_starts(line, str_of(prefixes[i].prefix))) {
            return prefixes[i].style;
        }
    }
    return STYLE_PLAIN;
}

/* One file for people: coloured, a binary one as a note. */
static void add_file(const struct patch_file *f, bool color, struct buf *out)
{
    struct str rest = f->patch;
    while (rest.ptr != NULL && rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        CLEANUP(buf) struct buf clean = BUF_INIT(SIZE_MAX);
        bool data = f->binary && str_starts(line, STR("GIT binary patch"));
        if (str_starts(line, STR("index "))) {
            continue; /* 80 digits that nobody reads */
        }
        text_clean(&clean, data ? STR("(binary file)") : line, TEXT_BLOCK);
        style_add(out, color, data ? STYLE_DIM : line_style(line), clean.len == 0 ? "" : clean.ptr);
        buf_adds(out, "\n");
        if (data) {
            return;
        }
    }
}

static void print_patch(struct cli *cli, struct str patch)
{
    struct patch_stat stat;
    CLEANUP(buf) struct buf out = BUF_INIT(SIZE_MAX);
    patch_stat(cli->arena, patch, &stat);
    for (size_t i = 0; i < stat.count; i++) {
        add_file(&stat.files[i], cli->out.color, &out);
    }
    if (stat.count == 0) {
        buf_adds(&out, "no changes\n");
    }
    pager_print(cli, &out);
}

/* A run whose cinch died has no patch: secrets are not known to whoever closes the record, so none
 * was written there. The kept workspace still has the changes; they are shown, not stored. */
static int make_patch(const struct rundir *d, struct arena *a, struct buf *out, struct err *e)
{
    struct workspace *w = NULL;
    struct diff_result result;
    char path[64];
    CLEANUP(fd) int fd = openat(d->dir_fd, "work", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct workspace_diff_opts o = { .patch_fd = fd };
    if (fd < 0) {
        return ERR(e, ERR_INPUT, "'%s' has neither diff.patch nor a workspace", d->path);
    }
    int r = workspace_reopen(arena_printf(a, "%s/work", d->path), &w, e);
    r = r < 0 ? r : workspace_diff(w, a, &o, &result, e);
    (void)workspace_close(w, true);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return r < 0 ? r : file_read(AT_FDCWD, path, PATCH_MAX, out, e);
}

static int run_diff(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(rundir) struct rundir d = RUNDIR_INIT;
    CLEANUP(buf) struct buf patch = BUF_INIT(PATCH_MAX);
    CLEANUP(buf) struct buf out = BUF_INIT(SIZE_MAX);
    const char *path;
    int r = run_name_find(cli, options_arg(opt, 0), &path, e);
    r = r < 0 ? r : rundir_open(&d, path, e);
    if (r < 0 && r != -ERR_EXISTS) { /* a run that goes on may be looked at */
        return r;
    }
    int64_t turn = options_int(opt, "turn", -1);
    const char *name = turn >= 0 ? turn_file(cli->arena, turn, ".json") : "evidence/workspace.json";
    struct json *workspace = rundir_read_object(&d, name, DESCRIPTION_MAX, cli->arena);
    if (turn >= 0 && workspace == NULL) {
        return turn_missing(cli, d.path, turn, e);
    }
    if (cli->format == CLI_JSON) {
        if (workspace == NULL) {
            return ERR(e, ERR_INPUT, "'%s' has no evidence/workspace.json (yet)", d.path);
        }
        cli_print_json(cli, workspace);
        return 0;
    }
    if (options_flag(opt, "files", false)) {
        list_files(workspace, &out);
        cli_print(cli, &out);
        return 0;
    }
    const char *file = turn >= 0 ? turn_file(cli->arena, turn, ".patch") : "diff.patch";
    r = turn >= 0 || file_exists(d.dir_fd, file) || r == -ERR_EXISTS
            ? rundir_read(&d, file, PATCH_MAX, &patch, e)
            : make_patch(&d, cli->arena, &patch, e);
    if (r < 0) {
        cli_hint(cli, "diff.patch is written when a run ends, if its agent was started");
        return r;
    }
    if (options_flag(opt, "stat", false)) {
        list_stat(cli, buf_str(&patch), &out);
        cli_print(cli, &out);
    } else if (!cli->out.tty) { /* for programs: the bytes as they are */
        cli_print(cli, &patch);
    } else {
        print_patch(cli, buf_str(&patch));
    }
    return 0;
}

static const char *const description[] = {
    "Prints `diff.patch` of a run: everything that the agent changed in the workspace since the "
    "run "
    "began, including its own commits. On a terminal it is coloured and shown by a pager ($PAGER, "
    "or "
    "less); elsewhere it is the patch byte for byte. With --format json it prints a description of "
    "the workspace, including the list of changed files.",
    "A run with `--savepoint turn` has such a patch for each turn, including turns that failed and "
    "were rolled back: --turn N prints it.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch diff", "read what the last run changed" },
    { "cinch diff --stat last", "count the changed lines of each file" },
    { "cinch diff last > fix.patch", "keep the patch in a file" },
    { "cinch diff --turn 2 last", "show the changes up to the end of turn 2" },
    { 0 },
};

const struct command cmd_diff = {
    .name = "diff",
    .summary = "show what a run changed",
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_diff,
};
