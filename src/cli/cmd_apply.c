/* SPDX-License-Identifier: MIT
 *
 * cinch apply: what an agent changed, brought into the user's own tree, and taken back.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "cli/apply_record.h"
#include "cli/command.h"
#include "cli/run_name.h"
#include "cli/run_request.h"
#include "cli/text.h"
#include "cli/transcript_format.h"
#include "record/applied.h"
#include "record/reason.h"
#include "record/rundir.h"
#include "workspace/apply.h"
#include "workspace/apply_txn.h"
#include "workspace/left_out.h"
#include "workspace/node.h"

enum {
    DESCRIPTION_MAX = 512 << 20, /* a million changed files */
    RESULT_MAX = 64 << 20,
    NAMED = 5,
};

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
    { "with-ignored", 0, OPTION_FLAG,
      .help = "also bring files that are not in the patch: ignored by git, or too large" },
    { "3way", 0, OPTION_FLAG, .help = "write conflicts to the files, between markers" },
    { "undo", 0, OPTION_FLAG, .help = "take the changes back" },
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
    struct json *applied; /* where the changes were applied before */
    bool silent;          /* the caller prints what there is to print */
    struct apply_opts opts;
};

static const char *journals_dir(struct arena *a)
{
    return arena_printf(a, "%s/.applying", request_runs_dir(a));
}

static void print_warning(struct cli *cli, const char *text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    style_add(&out, cli->err.color, STYLE_WARN, "warning:");
    buf_adds(&out, " ");
    text_clean(&out, str_of(text), TEXT_LINE);
    buf_adds(&out, "\n");
    terminal_write(&cli->err, buf_str(&out));
}

/* --- what is to be applied, and where --- */

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

/* The patch of the tree, and those of repositories within it. */
static int list_patches(struct job *j, struct err *e)
{
    struct arena *a = j->cli->arena;
    const struct json *nested = json_get(j->changes, "nested");
    struct apply_patch *list = arena_array(a, json_len(nested) + 1, sizeof *list);
    size_t n = 0;
    list[n++] = (struct apply_patch) { "", arena_printf(a, "%s/%s", j->dir.path, j->patch) };
    for (size_t i = 0; i < json_len(nested); i++) {
        const char *path = json_cstring(json_get(json_item(nested, i), "path"), NULL);
        const char *patch = json_cstring(json_get(json_item(nested, i), "patch"), NULL);
        if (path == NULL || patch == NULL) {
            continue;
        }
        if (!is_within(j->target, path)) {
            return ERR(e, ERR_INPUT,
                       "the record has changes for '%s', which is not a directory inside '%s'",
                       path, j->target);
        }
        if (patch[0] == '\0' || strchr(patch, '/') != NULL) {
            return ERR(e, ERR_INPUT, "the record has an invalid patch name '%s' for '%s'", patch,
                       path);
        }
        list[n++] = (struct apply_patch) { path, arena_printf(a, "%s/%s/%s", j->dir.path, j->nested,
                                                              patch) };
    }
    j->opts.patches = list;
    j->opts.patch_count = n;
    return 0;
}

static int add_left_out(struct job *j, struct err *e)
{
    struct left_out kept;
    int r =
        left_out_open(j->cli->arena, arena_printf(j->cli->arena, "%s/work", j->dir.path), &kept, e);
    if (r <= 0) {
        return r < 0 ? r
                     : ERR(e, ERR_INPUT,
                           "'%s' has no files besides the patch, or `cinch clean` removed them",
                           j->dir.path);
    }
    j->opts.files = (struct apply_files) { kept.dir, kept.paths, kept.places, kept.since };
    return 0;
}

static int find_changes(struct job *j, int64_t turn, struct err *e)
{
    struct arena *a = j->cli->arena;
    j->workspace = rundir_read_object(&j->dir, "evidence/workspace.json", DESCRIPTION_MAX, a);
    j->changes = j->workspace;
    j->patch = "diff.patch";
    j->nested = "evidence/nested";
    j->applied = applied_read(&j->dir, a);
    if (turn >= 0) {
        j->changes = rundir_read_object(&j->dir, turn_file(a, turn, ".json"), DESCRIPTION_MAX, a);
        j->patch = turn_file(a, turn, ".patch");
        j->nested = turn_file(a, turn, ".nested");
    }
    return turn >= 0 && j->changes == NULL ? turn_missing(j->cli, j->dir.path, turn, e) : 0;
}

/* --- what came of it --- */

static void print_json(struct job *j, const struct apply_result *r, bool check)
{
    struct arena *a = j->cli->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "target", json_cstr(a, j->target));
    json_setc(a, o, "no_changes", json_boolean(a, r->nothing));
    json_setc(a, o, "already_applied", json_boolean(a, r->already));
    json_setc(a, o, "fits", json_boolean(a, r->fits));
    json_setc(a, o, "applied", json_boolean(a, r->fits && !check && !r->nothing && !r->already));
    json_setc(a, o, "files", json_integer(a, (int64_t)r->files));
    json_setc(a, o, "staged", json_boolean(a, r->staged));
    json_setc(a, o, "three_way", json_boolean(a, r->three_way));
    json_setc(a, o, "conflicts", r->conflicts);
    json_setc(a, o, "undoable", json_boolean(a, r->undoable));
    json_setc(a, o, "commit", json_cstr(a, check ? NULL : r->made));
    json_setc(a, o, "why", json_cstr(a, r->why));
    cli_print_json(j->cli, o);
}

static void add_count(struct buf *out, size_t n, const char *what)
{
    buf_addf(out, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

static void print_conflicts(struct job *j, const struct apply_result *r, struct buf *out)
{
    size_t n = json_len(r->conflicts);
    add_count(out, n, "file");
    buf_adds(out, n == 1 ? " has conflicts: " : " have conflicts: ");
    for (size_t i = 0; i < n && i < NAMED; i++) {
        buf_adds(out, i == 0 ? "" : ", ");
        text_clean(out, str_of(json_cstring(json_item(r->conflicts, i), "?")), TEXT_LINE);
    }
    if (n > NAMED) {
        buf_addf(out, " and %zu more", n - NAMED);
    }
    buf_addf(out, "\nresolve them, or take everything back: cinch apply --undo %s\n", j->dir.path);
}

static void print_result(struct job *j, const struct apply_result *r, bool check)
{
    struct cli *cli = j->cli;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (j->silent) {
        return;
    }
    if (cli->format == CLI_JSON) {
        print_json(j, r, check);
        return;
    }
    if (cli->format == CLI_QUIET || !r->fits) {
        return;
    }
    if (r->nothing) {
        buf_adds(&out, "no changes\n");
    } else {
        buf_adds(&out, r->already ? "already applied to " : check ? "applies to " : "applied to ");
        text_clean(&out, str_of(j->target), TEXT_LINE);
        if (!r->already) {
            buf_adds(&out, ", ");
            add_count(&out, r->files, "file");
        }
        buf_adds(&out, r->three_way ? ", merged" : "");
        if (r->made != NULL) {
            buf_addf(&out, ", commit %s", check ? "possible" : r->made);
        }
        buf_adds(&out, "\n");
        if (json_len(r->conflicts) > 0) {
            print_conflicts(j, r, &out);
        }
    }
    cli_print(cli, &out);
}

/* Where, and how to take it back. A record that cannot be written to is no reason to fail. */
static void note_applied(struct job *j, const struct apply_result *r)
{
    struct err e = { 0 };
    struct applied one = {
        .target = j->target,
        .branch = j->opts.branch,
        .commit = r->made,
        .undo = r->undoable ? j->opts.undo + strlen(j->dir.path) + 1 : NULL,
    };
    int r2 = applied_add(&j->dir, j->cli->arena, &one, &e);
    if (!r->undoable || r2 < 0) {
        print_warning(j->cli, "the record cannot be written to, so --undo will not work");
    }
}

static int fail_misfit(struct job *j, const struct apply_result *r, const char *what, struct err *e)
{
    return j->cli->format == CLI_JSON && !j->silent
               ? 1
               : ERR(e, ERR_DENIED, "%s '%s': %s", what, j->target, r->why == NULL ? "" : r->why);
}

static int apply_all(struct job *j, struct err *e)
{
    struct arena *a = j->cli->arena;
    struct apply_result r;
    char id[ID_LEN];
    j->opts.target = j->target;
    j->opts.journals = journals_dir(a);
    j->opts.undo = arena_printf(a, "%s/apply/%s", j->dir.path, id_new(id));
    j->opts.applied_before = applied_latest(j->applied, j->target) != NULL;
    int rc = list_patches(j, e);
    rc = rc < 0 ? rc : apply_run(a, &j->opts, &r, e);
    if (rc < 0) {
        return rc;
    }
    if (r.fits && !j->opts.check && !r.nothing && !r.already) {
        note_applied(j, &r);
    }
    print_result(j, &r, j->opts.check);
    if (!r.fits) {
        return fail_misfit(j, &r, "the patch does not apply to", e);
    }
    return json_len(r.conflicts) > 0 ? 1 : 0;
}

/* Not an error: the changes of a run that failed may be just what the user wants. */
static void warn_failed(struct job *j)
{
    struct arena *a = j->cli->arena;
    const struct json *m = rundir_read_object(&j->dir, "manifest.json", RESULT_MAX, a);
    const char *outcome = json_cstring(json_get(m, "outcome"), NULL);
    if (j->silent || outcome == NULL || strcmp(outcome, "success") == 0) {
        return;
    }
    print_warning(j->cli, "this run did not succeed, so its changes may be incomplete");
}

static int undo_latest(struct job *j, const char *to, bool check, struct err *e)
{
    struct arena *a = j->cli->arena;
    struct json *one = applied_latest(j->applied, to == NULL ? NULL : j->target);
    const char *undo = json_cstring(json_get(one, "undo"), NULL);
    struct apply_result r;
    if (one == NULL) {
        return ERR(e, ERR_DENIED, "the changes of '%s' are not applied%s%s: nothing to undo",
                   j->dir.path, to == NULL ? "" : " to ", to == NULL ? "" : j->target);
    }
    j->target = json_cstring(json_get(one, "target"), "");
    if (undo == NULL || !node_is_inner_path(undo)) {
        return ERR(e, ERR_DENIED, "what was in '%s' before was not kept, so it cannot be undone",
                   j->target);
    }
    struct apply_undo_opts o = { .undo = arena_printf(a, "%s/%s", j->dir.path, undo),
                                 .journals = journals_dir(a),
                                 .check = check };
    int rc = apply_undo(a, &o, &r, e);
    if (rc < 0) {
        return rc;
    }
    if (!r.fits) {
        if (j->cli->format == CLI_JSON) {
            print_json(j, &r, check);
        }
        return fail_misfit(j, &r, "the changes cannot be taken out of", e);
    }
    rc = check ? 0 : applied_mark_undone(&j->dir, a, j->applied, one, e);
    if (j->cli->format == CLI_JSON) {
        struct json *v = json_object(a);
        json_setc(a, v, "target", json_cstr(a, j->target));
        json_setc(a, v, "undone", json_boolean(a, !check));
        cli_print_json(j->cli, v);
    } else if (j->cli->format == CLI_TEXT) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        buf_adds(&out, check ? "can be undone in " : "undone in ");
        text_clean(&out, str_of(j->target), TEXT_LINE);
        buf_adds(&out, "\n");
        cli_print(j->cli, &out);
    }
    return rc;
}

static int check_options(const struct options *opt, struct err *e)
{
    static const char *const others[] = { "branch", "commit", "turn", "with-ignored", "3way" };
    for (size_t i = 0; options_flag(opt, "undo", false) && i < ARRAY_LEN(others); i++) {
        if (options_given(opt, others[i])) {
            return ERR(e, ERR_USAGE, "--undo and --%s cannot be used together", others[i]);
        }
    }
    if (options_flag(opt, "with-ignored", false) && options_given(opt, "turn")) {
        return ERR(e, ERR_USAGE, "--turn and --with-ignored cannot be used together");
    }
    return 0;
}

static int run_apply(struct cli *cli, const struct options *opt, struct err *e)
{
    struct job j = { .cli = cli, .dir = RUNDIR_INIT };
    const char *path;
    const char *to = options_string(opt, "to", NULL);
    bool undo = options_flag(opt, "undo", false);
    int r = check_options(opt, e);
    r = r < 0 ? r : run_name_find(cli, options_arg(opt, 0), &path, e);
    r = r < 0 ? r : rundir_open(&j.dir, path, e);
    if (r == -ERR_EXISTS) {
        r = ERR(e, ERR_EXISTS, "'%s' is in use: the run is still running, or being applied", path);
    }
    if (r == 0) {
        r = find_changes(&j, options_int(opt, "turn", -1), e);
        r = r < 0 || (undo && to == NULL) ? r : find_target(&j, to, e);
    }
    if (r == 0 && undo) {
        r = undo_latest(&j, to, options_flag(opt, "check", false), e);
    } else if (r == 0) {
        j.opts.branch = options_string(opt, "branch", NULL);
        j.opts.commit = options_string(opt, "commit", NULL);
        j.opts.three_way = options_flag(opt, "3way", false);
        j.opts.check = options_flag(opt, "check", false);
        r = options_flag(opt, "with-ignored", false) ? add_left_out(&j, e) : 0;
        if (r == 0) {
            warn_failed(&j);
        }
        r = r < 0 ? r : apply_all(&j, e);
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
        r = r < 0 ? r : apply_all(&j, e);
    }
    rundir_done(&j.dir);
    return r;
}

/* --- what an apply that was killed left --- */

static void print_recovered(void *arg, const struct apply_txn *t, enum apply_recovery what,
                            const char *why)
{
    struct cli *cli = arg;
    CLEANUP(arena) struct arena *a = arena_new();
    const char *target = t->target[0] == '\0' ? t->root : t->target;
    if (what == APPLY_STUCK) {
        print_warning(
            cli, arena_printf(a, "an interrupted apply to '%s' cannot be ended: %s", target, why));
        return;
    }
    print_warning(cli, arena_printf(a, "an interrupted apply to '%s' was %s", target,
                                    what == APPLY_COMPLETED ? "completed" : "rolled back"));
    if (t->kept_away[0] != '\0') {
        print_warning(cli, arena_printf(a, "'%s' was changed in the meantime and left as it is",
                                        t->kept_away));
    }
}

void apply_recover(struct cli *cli)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct apply_recover_port port = { print_recovered, cli };
    apply_txn_recover(journals_dir(a), &port);
}

static const char *const usage[] = { "[--branch NAME] [--commit MESSAGE] [--turn N] RUN",
                                     "--check RUN", "--undo RUN", NULL };

static const char *const description[] = {
    "A run does not change your tree; the agent's changes are in `diff.patch` of the run "
    "directory. This command applies them to the tree that the run was started for, or to the tree "
    "given by --to.",
    "The changes are applied as a whole or not at all (exit status 1), also if the command is "
    "killed "
    "or the disk is full: the next cinch command then completes the change or rolls it back. In a "
    "git repository the changes are also added to the index, unless the files have other changes. "
    "If the patch does not apply directly, a three-way merge is used, provided that it has no "
    "conflicts; with --3way, conflicts are written to the files. No hooks run.",
    "--undo takes the latest apply of this run back, including its branch and commit, if nothing "
    "was changed since. --check predicts what the same command without it does.",
    "--turn N applies the state at the end of a turn, for runs with `--savepoint turn`. This also "
    "works for a turn that failed and was rolled back.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch apply --check out", "check whether the changes apply" },
    { "cinch apply -b fix --commit 'Fix the parser' out", "commit the changes on a new branch" },
    { "cinch apply --undo out", "take the changes back" },
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
