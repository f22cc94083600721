/* SPDX-License-Identifier: MIT
 *
 * The plan of a view: namespaces, the workspace, what is granted, and what is hidden again.
 */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "sandbox/compose_priv.h"

const char *const sandbox_git_parts[] = {
    "hooks", "config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates",
    NULL,
};

static void draft_namespaces(struct draft *d)
{
    const struct compose *c = d->c;
    if (!c->who.root) {
        struct plan_ids ids = { .outside_uid = c->who.uid, .outside_gid = c->who.gid };
        draft_number(d, PLAN_OP_NAMESPACES, CLONE_NEWUSER);
        d->rc = d->rc < 0 ? d->rc : plan_add_ids(d->b, PLAN_OP_MAP, &ids, d->e);
    }
    draft_number(d, PLAN_OP_NAMESPACES, CLONE_NEWNS);
    if (!compose_without(c, SANDBOX_IPC)) {
        draft_number(d, PLAN_OP_NAMESPACES, CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP);
        draft_text(d, PLAN_OP_HOSTNAME, "cinch");
    }
    if (c->policy->net != SANDBOX_NET_OPEN && !compose_without(c, SANDBOX_NETWORK)) {
        draft_number(d, PLAN_OP_NAMESPACES, CLONE_NEWNET);
        draft_number(d, PLAN_OP_LOOPBACK, 1);
    }
}

uint64_t compose_tmp_bytes(const struct compose *c)
{
    return c->policy->tmp == 0 ? SANDBOX_TMP_DEFAULT : c->policy->tmp;
}

static void draft_root(struct draft *d)
{
    struct plan_size size = { .bytes = compose_tmp_bytes(d->c), .inodes = 1 << 20 };
    d->rc = d->rc < 0 ? d->rc : plan_add_size(d->b, PLAN_OP_ROOT, &size, "/", d->e);
    d->rc = d->rc < 0 ? d->rc : plan_add_size(d->b, PLAN_OP_TMPFS, &size, OWN_PRIVATE, d->e);
    draft_dir(d, OWN_SCRATCH, 0700, false);
}

static void draft_workspace(struct draft *d)
{
    const struct sandbox_view *v = d->c->view;
    uint32_t writable = d->c->policy->mode == SANDBOX_READ_ONLY ? 0 : PLAN_WRITABLE;
    if (v->bind != NULL) {
        draft_bind_shown(d, v->bind, v->path, writable);
    } else {
        const char *lower = "";
        for (size_t i = 0; v->lower[i] != NULL; i++) {
            const char *at = arena_printf(d->c->arena, "%s/lower%zu", MOUNTS_OWN, i);
            draft_bind_shown(d, v->lower[i], at, PLAN_SHALLOW);
            lower = arena_printf(d->c->arena, "%s%s%s", lower, i == 0 ? "" : ":", at);
        }
        draft_bind_shown(d, v->layer, OWN_LAYER, PLAN_WRITABLE | PLAN_SHALLOW);
        draft_paths(d, PLAN_OP_OVERLAY,
                    compose_overlay_options(d->c, lower, OWN_LAYER, v->is_volatile), v->path,
                    writable);
    }
    draft_bind(d, v->path, OWN_WORKSPACE, PLAN_INSIDE | PLAN_WRITABLE | PLAN_SHALLOW);
}

/* The user's home as it is, with a private layer on top. Directories below cannot be moved
 * (redirect_dir=off): what is mounted there, to hide it or to keep it from being changed, would be
 * moved along. */
static void draft_home(struct draft *d)
{
    const struct sandbox_policy *policy = d->c->policy;
    struct plan_paths p = { .flags = PLAN_WRITABLE, .mode = COMPOSE_OVERLAY_HOME };
    const char *kind = d->c->who.root ? "redirect_dir=off,metacopy=off" : "userxattr";
    const char *options = arena_printf(
        d->c->arena, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,index=off,%s,volatile",
        OWN_HOME, OWN_HOME_UP, OWN_HOME_UP, kind);
    draft_bind_shown(d, policy->home, OWN_HOME, PLAN_SHALLOW);
    draft_bind_shown(d, policy->home_layer, OWN_HOME_UP, PLAN_WRITABLE | PLAN_SHALLOW);
    d->rc =
        d->rc < 0 ? d->rc : plan_add_paths(d->b, PLAN_OP_OVERLAY, &p, options, policy->home, d->e);
}

/* A layer on the workspace as transactions will have them: the kernel may refuse it although the
 * view stands, because it takes only so many overlays on top of each other. */
static void draft_trial(struct draft *d)
{
    struct plan_paths p = { .flags = PLAN_WRITABLE, .mode = COMPOSE_OVERLAY_TRIAL };
    draft_dir(d, OWN_SCRATCH "/trial/upper", 0755, true);
    draft_dir(d, OWN_SCRATCH "/trial/work", 0755, true);
    const char *options = compose_overlay_options(d->c, OWN_WORKSPACE, OWN_SCRATCH "/trial", true);
    d->rc = d->rc < 0 ? d->rc : plan_add_paths(d->b, PLAN_OP_OVERLAY, &p, options, OWN_TRIAL, d->e);
}

/* A bind of something in the view onto itself, which also keeps it from being moved away. */
static void draft_pin(struct draft *d, const char *path, uint32_t flags)
{
    struct plan_paths p = { .flags = flags | PLAN_INSIDE | PLAN_OPTIONAL | PLAN_SHALLOW,
                            .host_uid = d->c->who.root ? d->c->who.uid : 0,
                            .host_gid = d->c->who.root ? d->c->who.gid : 0 };
    d->rc = d->rc < 0 ? d->rc : plan_add_paths(d->b, PLAN_OP_BIND, &p, path, path, d->e);
}

/* As it is outside: in the tree itself, or in one of the layers of an overlay. */
static bool stat_in_view(struct draft *d, const char *name, struct stat *st)
{
    const struct sandbox_view *v = d->c->view;
    struct arena *a = d->c->arena;
    if (v->bind != NULL) {
        return lstat(arena_printf(a, "%s/%s", v->bind, name), st) == 0;
    }
    return lstat(arena_printf(a, "%s/upper/%s", v->layer, name), st) == 0 ||
           lstat(arena_printf(a, "%s/%s", v->lower[0], name), st) == 0;
}

static void pin_read_only(struct draft *d, const char *name, uint32_t flags)
{
    draft_pin(d, arena_printf(d->c->arena, "%s/%s", d->c->view->path, name), flags);
}

/* A directory whose content may change, but which cannot be moved away as a whole. */
static void hold(struct draft *d, const char *name)
{
    pin_read_only(d, name, d->c->policy->mode == SANDBOX_READ_ONLY ? 0 : PLAN_WRITABLE);
}

static void hold_if_there(struct draft *d, const char *git_dir, const char *part)
{
    struct stat st;
    const char *name = arena_printf(d->c->arena, "%s/%s", git_dir, part);
    if (d->c->view->bind != NULL && stat_in_view(d, name, &st) && S_ISDIR(st.st_mode)) {
        hold(d, name);
    }
}

static void protect_part(struct draft *d, const char *git_dir, const char *part)
{
    struct stat st;
    struct arena *a = d->c->arena;
    const char *name = arena_printf(a, "%s/%s", git_dir, part);
    bool missing = !stat_in_view(d, name, &st);
    /* Into an overlay an empty directory can be put, which is as good as none. */
    bool make = missing && d->c->view->bind == NULL && strcmp(part, "hooks") == 0;
    if (missing && !make) {
        return;
    }
    for (const char *p = strchr(part, '/'); p != NULL; p = strchr(p + 1, '/')) {
        hold(d, arena_printf(a, "%s/%.*s", git_dir, (int)(p - part), part));
    }
    pin_read_only(d, name, make ? PLAN_MAKE_DIR : 0);
}

/* Only real directories and files: a link leads outside anyway. A mount hides those below it that
 * were made earlier, so directories come before what they contain. */
static void protect_git_dir(struct draft *d, const char *git_dir)
{
    struct stat st;
    if (!stat_in_view(d, git_dir, &st)) {
        return;
    }
    if (S_ISREG(st.st_mode)) { /* it names the git directory */
        pin_read_only(d, git_dir, 0);
    } else if (S_ISDIR(st.st_mode)) {
        hold(d, git_dir);
        hold_if_there(d, git_dir, "modules");
        hold_if_there(d, git_dir, "worktrees");
        for (size_t i = 0; sandbox_git_parts[i] != NULL; i++) {
            protect_part(d, git_dir, sandbox_git_parts[i]);
        }
    }
}

void draft_protect(struct draft *d)
{
    static const char *const usual[] = { ".git", NULL };
    const struct sandbox_view *v = d->c->view;
    if (v == NULL) {
        return;
    }
    const char *const *list = v->git_dirs == NULL ? usual : v->git_dirs;
    for (; *list != NULL; list++) {
        protect_git_dir(d, *list);
    }
    for (list = v->read_only; list != NULL && *list != NULL; list++) {
        pin_read_only(d, *list, 0);
    }
}

/* A link of a program, unless it is seen anyway. */
static void draft_link(struct draft *d, const char *path)
{
    char target[PATH_MAX];
    for (size_t i = 0; i < d->c->n_grants; i++) {
        const struct compose_grant *g = &d->c->grants[i];
        if (g->kind != GRANT_LINK && compose_below(path, g->path)) {
            return;
        }
    }
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n > 0) {
        target[n] = '\0';
        draft_symlink(d, target, path);
    }
}

/* May the path be shown without its groups (draft_bind_read())? Not where something has to be
 * mounted below, for which root has to get there. */
static bool is_plain(const struct compose *c, const char *path)
{
    const char *const *deny = c->policy->deny;
    const char *home = getenv("HOME");
    for (size_t i = 0; i < c->n_grants; i++) {
        if (strcmp(c->grants[i].path, path) != 0 && compose_below(c->grants[i].path, path)) {
            return false;
        }
    }
    for (; deny != NULL && *deny != NULL; deny++) {
        if (compose_below(compose_seen(c, *deny), path)) {
            return false;
        }
    }
    return home == NULL || !(compose_below(home, path) || compose_below(path, home));
}

static void draft_grants(struct draft *d)
{
    for (size_t i = 0; i < d->c->n_grants; i++) {
        const struct compose_grant *g = &d->c->grants[i];
        if (g->kind == GRANT_WORKSPACE) {
            draft_workspace(d);
        } else if (g->kind == GRANT_HOME) {
            draft_home(d);
        } else if (g->kind == GRANT_LINK) {
            draft_link(d, g->path);
        } else {
            uint32_t flags =
                (g->kind == GRANT_WRITE ? PLAN_WRITABLE : 0) | (g->optional ? PLAN_OPTIONAL : 0);
            bool read = g->kind == GRANT_READ && !g->optional && is_plain(d->c, g->path);
            (read ? draft_bind_read : draft_bind_shown)(d, g->path, g->path, flags);
        }
    }
}

/* Credentials, browser profiles and histories in a home: hidden also when the home as a whole is
 * shown. docs/task.md lists them. */
static const char *const secrets[] = {
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    ".pypirc",
    ".npmrc",
    ".yarnrc.yml",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault-token",
    ".git-credentials",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/gh",
    ".config/glab-cli",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/rclone",
    ".config/hub",
    ".config/op",
    ".config/containers/auth.json",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
};

static bool is_shown(const struct compose *c, const char *path)
{
    bool shown = false;
    for (size_t i = 0; i < c->n_grants; i++) {
        const struct compose_grant *g = &c->grants[i];
        if (g->kind != GRANT_LINK && compose_below(g->path, path)) {
            return false; /* it, or something in it, was asked for by name */
        }
        shown = shown || (g->kind != GRANT_LINK && compose_below(path, g->path));
    }
    return shown;
}

/* Users who keep such files elsewhere have a link in their home, and nothing is mounted on a link:
 * where it leads to, as the view names it. NULL: there is nothing. */
static const char *resolve_in_home(struct arena *a, const char *home, const char *path)
{
    char real[PATH_MAX];
    char real_home[PATH_MAX];
    if (realpath(path, real) == NULL || realpath(home, real_home) == NULL) {
        return NULL;
    }
    return compose_below(real, real_home) ? arena_printf(a, "%s%s", home, real + strlen(real_home))
                                          : arena_dup(a, str_of(real));
}

static void draft_secrets(struct draft *d)
{
    const char *home = getenv("HOME");
    if (home == NULL || home[0] != '/' || home[1] == '\0') {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        const char *path = arena_printf(d->c->arena, "%s/%s", home, secrets[i]);
        const char *target = is_shown(d->c, path) ? resolve_in_home(d->c->arena, home, path) : NULL;
        if (target != NULL && is_shown(d->c, target)) {
            draft_paths(d, PLAN_OP_MASK, NULL, target, PLAN_OPTIONAL);
        }
    }
}

static void draft_denied(struct draft *d)
{
    const char *const *list = d->c->policy->deny;
    for (; d->rc == 0 && list != NULL && *list != NULL; list++) {
        d->rc = compose_check_path(*list, d->e);
        draft_paths(d, PLAN_OP_MASK, NULL, compose_seen(d->c, *list), PLAN_OPTIONAL);
    }
}

int compose_leave(const struct compose *c, struct buf *out, struct err *e)
{
    struct draft d = { .c = c, .b = out, .e = e };
    d.rc = plan_begin(out, PLAN_VIEW, e);
    draft_namespaces(&d);
    draft_root(&d);
    draft_system(&d);
    if (!c->who.root) {
        /* The kernel gives a user a new /proc only where one is in sight; see init/entry.c. */
        draft_bind(&d, "/proc", "/proc", 0);
    }
    return d.rc < 0 ? d.rc : plan_end(out, e);
}

int compose_view(const struct compose *c, struct buf *out, struct err *e)
{
    struct draft d = { .c = c, .b = out, .e = e };
    d.rc = plan_begin(out, PLAN_VIEW, e);
    /* Without a network of its own it would be the host's port: there somebody else listens. */
    if (c->opts->listen && !compose_without(c, SANDBOX_NETWORK)) {
        draft_number(&d, PLAN_OP_LISTEN, c->opts->listen_port);
    }
    if (c->policy->image != NULL) {
        draft_image(&d);
    }
    draft_person(&d);
    draft_grants(&d);
    if (c->policy->image != NULL) {
        draft_image_mounts(&d);
    }
    draft_endpoints(&d);
    draft_protect(&d);
    draft_secrets(&d);
    draft_denied(&d);
    if (c->view != NULL && c->view->scratch != NULL) {
        draft_bind_shown(&d, c->view->scratch, OWN_DISK, PLAN_WRITABLE | PLAN_SHALLOW);
    }
    if (c->layers) {
        draft_trial(&d);
    }
    draft_number(&d, PLAN_OP_CLOSE_ROOT, 1);
    draft_text(&d, PLAN_OP_PASS, OWN_SCRATCH);
    if (c->view != NULL) {
        draft_text(&d, PLAN_OP_PASS, c->view->path);
    }
    if (d.rc == -ERR_LIMIT) { /* leaving something out would leave it unprotected */
        return ERR(e, ERR_LIMIT,
                   "sandbox: the workspace and the granted paths contain more git repositories, "
                   "sockets and FIFOs than can be protected (%zu bytes of paths)",
                   PLAN_MAX);
    }
    return d.rc < 0 ? d.rc : plan_end(out, e);
}
