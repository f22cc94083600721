/* SPDX-License-Identifier: MIT
 *
 * cinch apply: what an agent changed, brought into the user's own tree.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/apply_record.h"
#include "cli/command.h"
#include "cli/run_name.h"
#include "cli/text.h"
#include "cli/transcript_format.h"
#include "record/rundir.h"
#include "workspace/apply.h"
#include "workspace/node.h"

enum { DESCRIPTION_MAX = 512 << 20 }; /* a million changed files */

static const struct option options[] = {
    { "to", 0, OPTION_PATH, .value = "DIR",
      .help = "apply to DIR instead of the tree that the run was started for",
      .complete = COMPLETE_DIRECTORY },
    { "branch", 'b', OPTION_STRING, .value = "NAME",
      .help = "create this branch and switch to it first" },
    { "commit", 0, OPTION_STRING, .old_letter = 'm', .value = "MESSAGE",
      .help = "commit the changes with this message" },
    { "turn", 0, OPTION_INT, .value = "N",
      .help = "apply the changes up to the end of turn N (needs workspace.savepoint)" },
    { "check", 0, OPTION_FLAG, .help = "only check whether the changes apply" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN", "a run: path, last, or part of an id", .complete = COMPLETE_DIRECTORY },
    { 0 },
};

struct job {
    struct cli *cli;
    struct rundir dir;
    const struct json *workspace; /* evidence/workspace.json */
    const struct json *changes;   /* the same, or that of the turn */
    const char *patch;            /* in the record */
    const char *nested;           /* where patches of repositories within are */
    const char *target;
    bool silent; /* the caller prints what there is to print */
    struct apply_opts opts;
};

static int find_target(struct job *j, const char *given, struct err *e)
{
    char path[PATH_MAX];
    const char *source = json_cstring(json_get(j->workspace, "source"), NULL);
    if (given == NULL && source == NULL) {
        return ERR(e, ERR_INPUT, "'%s' does not name the tree it was made for: use --to DIR",
                   j->dir.path);
    }
    int r = path_absolute(given != NULL ? given : source, path, sizeof path, e);
    j->target = arena_dup(j->cli->arena, str_of(path));
    return r;
}

static int apply_one(struct job *j, const char *target, const char *patch, bool check,
                     struct apply_result *ret, struct err *e)
{
    struct apply_opts o = j->opts;
    o.target = target;
    o.patch = arena_printf(j->cli->arena, "%s/%s", j->dir.path, patch);
    o.check = check;
    return apply_patch(j->cli->arena, &o, ret, e);
}

/* A record may come from somebody else: a path in it must not lead out of the tree. */
static bool is_within(const char *target, const char *path)
{
    CLEANUP(fd) int root = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd)
    int fd = root < 0 || path[0] == '\0' || !node_is_inner_path(path) || node_has_git_part(path)
                 ? -1
                 : node_open_dir(root, path, NULL);
    return fd >= 0;
}

/* Patches of repositories within the tree; a commit or branch is for the tree itself. */
static int apply_nested(struct job *j, bool check, struct apply_result *ret, struct err *e)
{
    const struct json *nested = json_get(j->changes, "nested");
    int r = 0;
    struct apply_opts saved = j->opts;
    j->opts.branch = j->opts.commit = NULL;
    for (size_t i = 0; r == 0 && ret->fits && i < json_len(nested); i++) {
        const char *path = json_cstring(json_get(json_item(nested, i), "path"), NULL);
        const char *patch = json_cstring(json_get(json_item(nested, i), "patch"), NULL);
        struct apply_result one;
        if (path == NULL || patch == NULL) {
            continue;
        }
        if (!is_within(j->target, path)) {
            r = ERR(e, ERR_INPUT,
                    "the record has changes for '%s', which is not a directory inside '%s'", path,
                    j->target);
            break;
        }
        if (patch[0] == '\0' || strchr(patch, '/') != NULL) {
            r = ERR(e, ERR_INPUT, "the record has an invalid patch name '%s' for '%s'", patch,
                    path);
            break;
        }
        r = apply_one(j, arena_printf(j->cli->arena, "%s/%s", j->target, path),
                      arena_printf(j->cli->arena, "%s/%s", j->nested, patch), check, &one, e);
        ret->nothing = ret->nothing && one.nothing;
        ret->fits = one.fits;
        ret->why = one.fits ? ret->why : one.why;
    }
    j->opts = saved;
    return r;
}

static void print(struct job *j, const struct apply_result *r, bool check)
{
    struct cli *cli = j->cli;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (j->silent) {
        return;
    }
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "target", json_cstr(cli->arena, j->target));
        json_setc(cli->arena, o, "no_changes", json_boolean(cli->arena, r->nothing));
        json_setc(cli->arena, o, "fits", json_boolean(cli->arena, r->fits));
        json_setc(cli->arena, o, "applied",
                  json_boolean(cli->arena, r->fits && !check && !r->nothing));
        json_setc(cli->arena, o, "three_way", json_boolean(cli->arena, r->three_way));
        json_setc(cli->arena, o, "commit", json_cstr(cli->arena, r->made));
        json_setc(cli->arena, o, "why", json_cstr(cli->arena, r->why));
        cli_print_json(cli, o);
        return;
    }
    if (cli->format == CLI_QUIET || !r->fits) {
        return;
    }
    if (r->nothing) {
        buf_adds(&out, "no changes\n");
    } else {
        buf_adds(&out, check ? "applies to " : "applied to ");
        text_clean(&out, str_of(j->target), TEXT_LINE);
        buf_addf(&out, "%s%s\n", r->made != NULL ? ", commit " : "", r->made ? r->made : "");
    }
    cli_print(cli, &out);
}

static int apply_all(struct job *j, bool check, struct err *e)
{
    struct apply_result r;
    struct apply_result nested = { .fits = true, .nothing = true };
    /* All of it is looked at before any of it is done. */
    int rc = apply_one(j, j->target, j->patch, true, &r, e);
    if (rc == 0 && r.fits) {
        rc = apply_nested(j, true, &nested, e);
        r.fits = nested.fits;
        r.why = nested.fits ? r.why : nested.why;
    }
    if (rc == 0 && r.fits && !check) {
        rc = apply_one(j, j->target, j->patch, false, &r, e);
        rc = rc < 0 ? rc : apply_nested(j, false, &nested, e);
    }
    if (rc < 0) {
        return rc;
    }
    r.nothing = r.nothing && nested.nothing;
    print(j, &r, check);
    if (r.fits) {
        return 0;
    }
    return j->cli->format == CLI_JSON && !j->silent
               ? 1
               : ERR(e, ERR_DENIED, "the patch does not apply to '%s': %s", j->target,
                     r.why == NULL ? "" : r.why);
}

static int find_changes(struct job *j, int64_t turn, struct err *e)
{
    struct arena *a = j->cli->arena;
    j->workspace = rundir_read_object(&j->dir, "evidence/workspace.json", DESCRIPTION_MAX, a);
    j->changes = j->workspace;
    j->patch = "diff.patch";
    j->nested = "evidence/nested";
    if (turn >= 0) {
        j->changes = rundir_read_object(&j->dir, turn_file(a, turn, ".json"), DESCRIPTION_MAX, a);
        j->patch = turn_file(a, turn, ".patch");
        j->nested = turn_file(a, turn, ".nested");
    }
    return turn >= 0 && j->changes == NULL ? turn_missing(j->cli, j->dir.path, turn, e) : 0;
}

static int run_apply(struct cli *cli, const struct options *opt, struct err *e)
{
    struct job j = { .cli = cli, .dir = RUNDIR_INIT };
    const char *path;
    int r = run_name_find(cli, options_arg(opt, 0), &path, e);
    r = r < 0 ? r : rundir_open(&j.dir, path, e);
    if (r == -ERR_EXISTS) {
        r = ERR(e, ERR_EXISTS, "the run in '%s' is still running", path);
    }
    if (r == 0) {
        r = find_changes(&j, options_int(opt, "turn", -1), e);
        r = r < 0 ? r : find_target(&j, options_string(opt, "to", NULL), e);
    }
    if (r == 0) {
        j.opts.branch = options_string(opt, "branch", NULL);
        j.opts.commit = options_string(opt, "commit", NULL);
        r = apply_all(&j, options_flag(opt, "check", false), e);
    }
    rundir_done(&j.dir);
    return r;
}

int apply_record(struct cli *cli, const char *dir, struct err *e)
{
    struct job j = { .cli = cli, .dir = RUNDIR_INIT, .silent = cli->format == CLI_JSON };
    int r = rundir_open(&j.dir, dir, e);
    r = r < 0 ? r : find_changes(&j, -1, e);
    struct str mode = json_str(json_get(j.workspace, "mode"), STR_EMPTY);
    if (r == 0 && !str_eqc(mode, "in-place")) {
        r = find_target(&j, NULL, e);
        r = r < 0 ? r : apply_all(&j, false, e);
    }
    rundir_done(&j.dir);
    return r;
}

static const char *const usage[] = { "[--branch NAME] [--commit MESSAGE] [--turn N] RUN",
                                     "--check RUN", NULL };

static const char *const description[] = {
    "A run does not change your tree; the agent's changes are in `diff.patch` of the run "
    "directory. This command applies them to the tree that the run was started for, or to the tree "
    "given by --to.",
    "The patch applies as a whole, or nothing is changed (exit status 1). In a git repository the "
    "changes are also added to the index, unless the files have other changes. If the patch does "
    "not apply directly, a three-way merge is used, provided that it has no conflicts. No hooks "
    "run.",
    "--turn N applies the state at the end of a turn, for runs with `--savepoint turn`. This also "
    "works for a turn that failed and was rolled back.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch apply --check out", "check whether the changes apply" },
    { "cinch apply -b fix --commit 'Fix the parser' out", "commit the changes on a new branch" },
    { 0 },
};

const struct command cmd_apply = {
    .name = "apply",
    .summary = "apply a run's changes to your tree",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_apply,
};
