/* SPDX-License-Identifier: MIT
 *
 * Check, branch, apply, commit; each a call of git in the user's repository.
 */
#include "workspace/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/git.h"
#include "workspace/repo.h"

enum { TEXT_MAX = 1 << 20, LIST_MAX = 64 << 20 };
#define INDEX_MAX ((size_t)1 << 30)

struct applying {
    struct arena *a;
    const struct apply_opts *o;
    struct apply_result *ret;
    struct repo repo;
    bool has_repo;
    const char *directory;   /* --directory=…, or NULL */
    const char *index;       /* a copy, for a trial; NULL: the user's */
    const char *new_objects; /* and where objects of the trial go */
    const char **config;     /* overrides for what the repository configures */
    size_t config_len, config_cap;
    bool filtered; /* the repository configures a filter */
    struct err *e;
};

static int git(struct applying *x, const char *const *args, struct buf *out, int ok_status)
{
    const char *objects = arena_printf(x->a, "%s/objects", x->has_repo ? x->repo.common_dir : "");
    struct git_call c = {
        .args = args,
        .objects = x->new_objects == NULL ? NULL : objects,
        .cwd = x->has_repo ? x->repo.root : x->o->target,
        .git_dir = x->has_repo ? NULL : "/dev/null", /* nor one that git might see there */
        .work_tree = x->has_repo ? x->repo.root : NULL,
        .safe = x->has_repo && x->repo.listed ? x->repo.root : NULL,
        .config = x->config,
        .index = x->index,
        .new_objects = x->new_objects,
        .user_config = true,
        .out = out,
        .ok_status = ok_status,
    };
    return git_run(&c, x->e);
}

/* --- programs that the repository configures --- */

static void override(struct applying *x, const char *setting)
{
    if (x->config_len + 1 >= x->config_cap) {
        size_t cap = x->config_cap == 0 ? 16 : x->config_cap * 2;
        const char **more = arena_array(x->a, cap, sizeof *more);
        if (x->config_len > 0) {
            memcpy(more, x->config, x->config_len * sizeof *more);
        }
        x->config = more;
        x->config_cap = cap;
    }
    x->config[x->config_len++] = setting;
    x->config[x->config_len] = NULL;
}

/* filter.NAME.clean and the like; NAME may hold anything. */
static int override_driver(struct applying *x, struct str key)
{
    static const struct {
        const char *section, *variable, *value;
        bool filter;
    } programs[] = {
        { "filter.", ".clean", "", true },       { "filter.", ".smudge", "", true },
        { "filter.", ".process", "", true },     { "filter.", ".required", "false", true },
        { "merge.", ".driver", "false", false }, /* a conflict, not somebody's merge */
        { "diff.", ".command", "", false },      { "diff.", ".textconv", "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        if (!str_starts(key, str_of(programs[i].section)) ||
            !str_ends(key, str_of(programs[i].variable))) {
            continue;
        }
        if (memchr(key.ptr, '=', key.len) != NULL) { /* `git -c` ends the key there */
            return ERR(x->e, ERR_CONFIG,
                       "the configuration of '%s' names a program as '%.*s': a '=' there cannot be "
                       "handled safely",
                       x->repo.root, STR_ARG(key));
        }
        x->filtered = x->filtered || programs[i].filter;
        override(x, arena_printf(x->a, "%.*s=%s", STR_ARG(key), programs[i].value));
    }
    return 0;
}

/* The .gitattributes of a tree decide which files such a program gets, and the configuration of a
 * repository may come from the same source: only what the user configured for all repositories is
 * run. */
static int override_drivers(struct applying *x)
{
    static const char *const args[] = { "config", "-z",          "--includes", "--show-scope",
                                        "--list", "--name-only", NULL };
    CLEANUP(buf) struct buf out = BUF_INIT(LIST_MAX);
    int r = git(x, args, &out, 0);
    struct str rest = buf_str(&out);
    while (r == 0 && rest.ptr != NULL && rest.len > 0) {
        struct str scope = str_split(&rest, '\0');
        struct str key = str_split(&rest, '\0');
        if (str_eqc(scope, "local") || str_eqc(scope, "worktree")) {
            r = override_driver(x, key);
        }
    }
    return r;
}

/* --- the patch --- */

/* `how` is "--check", "--index" …; two of them, or NULL. */
static int call_apply(struct applying *x, const char *how, const char *more)
{
    const char *args[8];
    size_t n = 0;
    args[n++] = "apply";
    args[n++] = "--whitespace=nowarn";
    if (how != NULL) {
        args[n++] = how;
    }
    if (more != NULL) {
        args[n++] = more;
    }
    if (x->directory != NULL) {
        args[n++] = x->directory;
    }
    args[n++] = x->o->patch;
    args[n] = NULL;
    return git(x, args, NULL, 0);
}

/* Does it merge without conflicts? Told by doing it, in a copy of the index and with objects of its
 * own: `git apply --3way --check` says yes to what ends in conflicts. */
static int try_merge(struct applying *x)
{
    const char *temporary = getenv("TMPDIR");
    char dir[PATH_MAX];
    (void)snprintf(dir, sizeof dir, "%s/cinch-apply-XXXXXX", temporary ? temporary : "/tmp");
    if (mkdtemp(dir) == NULL) {
        return ERR_SYS(x->e, "create '%s'", dir);
    }
    CLEANUP(buf) struct buf text = BUF_INIT(INDEX_MAX);
    const char *from = arena_printf(x->a, "%s/index", x->repo.git_dir);
    const char *index = arena_printf(x->a, "%s/index", dir);
    int r = file_read(AT_FDCWD, from, INDEX_MAX, &text, x->e);
    r = r < 0 ? r : file_write_atomic(AT_FDCWD, index, buf_str(&text), 0600, x->e);
    if (r == 0) {
        x->index = index;
        x->new_objects = dir;
        r = call_apply(x, "--3way", "--cached");
        x->index = x->new_objects = NULL;
    }
    (void)!file_remove_tree(AT_FDCWD, dir, NULL);
    return r;
}

static int check(struct applying *x)
{
    int r = call_apply(x, "--check", NULL);
    if (r < 0 && x->has_repo && !x->filtered && x->e->code == ERR_SYS) {
        r = try_merge(x);
        x->ret->three_way = r == 0;
    }
    if (r < 0 && x->e->code == ERR_SYS) {
        x->ret->why = arena_dup(x->a, str_of(x->e->msg));
        return 0;
    }
    x->ret->fits = r == 0;
    return r;
}

static int check_staged(struct applying *x)
{
    static const char *const args[] = { "diff", "--cached", "--quiet", "--no-ext-diff", NULL };
    int r = git(x, args, NULL, 1);
    if (r > 0) {
        return ERR(x->e, ERR_USAGE,
                   "'%s' has staged changes, which a commit would take along: commit or unstage "
                   "them first",
                   x->repo.root);
    }
    return r;
}

static int commit(struct applying *x)
{
    CLEANUP(buf) struct buf id = BUF_INIT(TEXT_MAX);
    const char *const args[] = { "commit", "--quiet", "--no-verify", "-m", x->o->commit, NULL };
    static const char *const head[] = { "rev-parse", "HEAD", NULL };
    int r = git(x, args, NULL, 0);
    r = r < 0 ? r : git(x, head, &id, 0);
    if (r == 0) {
        x->ret->made = arena_dup(x->a, str_trim(buf_str(&id)));
    }
    return r;
}

/* Into the index as well, where the files have no other changes. */
static bool can_stage(struct applying *x)
{
    static const char *const refresh[] = { "update-index", "-q", "--refresh", NULL };
    /* Without its filter a file would be stored in a form that it must not have there. */
    if (!x->has_repo || x->filtered || git(x, refresh, NULL, 1) < 0) {
        return false;
    }
    return x->ret->three_way || call_apply(x, "--check", "--index") == 0;
}

static int perform(struct applying *x)
{
    const struct apply_opts *o = x->o;
    bool staged = can_stage(x);
    if (o->commit != NULL && x->filtered) {
        return ERR(
            x->e, ERR_USAGE,
            "the configuration of '%s' has a filter, which cinch does not run: apply without "
            "--commit, then use git",
            x->repo.root);
    }
    if (o->commit != NULL && !staged) {
        return ERR(x->e, ERR_USAGE,
                   "files of the patch have other changes, which a commit would take along: apply "
                   "without --commit");
    }
    int r = o->commit != NULL ? check_staged(x) : 0;
    if (r == 0 && o->branch != NULL) {
        const char *const args[] = { "checkout", "--quiet", "-b", o->branch, NULL };
        r = git(x, args, NULL, 0);
    }
    r = r < 0 ? r : call_apply(x, x->ret->three_way ? "--3way" : staged ? "--index" : NULL, NULL);
    return r < 0 || o->commit == NULL ? r : commit(x);
}

static bool is_blank(struct str s)
{
    return str_trim(s).len == 0;
}

int apply_patch(struct arena *a, const struct apply_opts *o, struct apply_result *ret,
                struct err *e)
{
    CLEANUP(buf) struct buf head = BUF_INIT(TEXT_MAX);
    struct err own = { 0 };
    struct applying x = { .a = a, .o = o, .ret = ret, .e = e == NULL ? &own : e };
    *ret = (struct apply_result) { 0 };
    if (!file_is_dir(AT_FDCWD, o->target)) {
        return ERR(e, ERR_INPUT, "'%s' is not a directory", o->target);
    }
    int r = file_read(AT_FDCWD, o->patch, TEXT_MAX, &head, e);
    if (r < 0 && r != -ERR_LIMIT) {
        return r;
    }
    if (r == 0 && is_blank(buf_str(&head))) {
        ret->nothing = ret->fits = true;
        return 0;
    }
    x.has_repo = repo_find(a, o->target, &x.repo) > 0;
    if (x.has_repo && x.repo.foreign) {
        return ERR(e, ERR_CONFIG,
                   "the git repository '%s' belongs to another user, so its configuration is not "
                   "obeyed: to trust it, run `git config --global --add safe.directory %s`",
                   x.repo.root, x.repo.root);
    }
    if (!x.has_repo && (o->branch != NULL || o->commit != NULL)) {
        return ERR(e, ERR_USAGE,
                   "'%s' is not a git repository: no branch or commit can be made there",
                   o->target);
    }
    if (x.has_repo && x.repo.prefix[0] != '\0') {
        x.directory = arena_printf(a, "--directory=%s", x.repo.prefix);
    }
    r = x.has_repo ? override_drivers(&x) : 0;
    r = r < 0 ? r : check(&x);
    return r < 0 || !ret->fits || o->check ? r : perform(&x);
}
