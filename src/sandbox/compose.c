/* SPDX-License-Identifier: MIT
 *
 * Who the program is, what it is shown, and the plan of an entry; compose_view.c has the other.
 */
#include "sandbox/compose.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "sandbox/compose_priv.h"
#include "sandbox/seccomp_filter.h"
#include "sandbox/toolchain_paths.h"

/* As root shows itself inside. */
#define SHOWN_ID   1000u
#define SHOWN_NAME "agent"

int compose_landlock_version(void)
{
    long v = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    return v < 0 ? 0 : (int)v;
}

bool compose_without(const struct compose *c, enum sandbox_guarantee g)
{
    return (c->without & (1u << g)) != 0;
}

/* --- who --- */

/* Does our user namespace know the user that programs are to be? That of a container usually knows
 * a few thousand. */
static bool knows_host_uid(void)
{
    CLEANUP(buf) struct buf table = BUF_INIT(65536);
    if (file_read(AT_FDCWD, "/proc/self/uid_map", 65536, &table, NULL) < 0) {
        return false;
    }
    struct str rest = buf_str(&table);
    while (rest.ptr != NULL) {
        struct str line = str_trim(str_split(&rest, '\n'));
        int64_t first = 0;
        int64_t count = 0;
        size_t gap = str_find(line, STR(" "));
        struct str tail = str_trim(str_slice(line, gap, line.len));
        tail = str_trim(str_slice(tail, str_find(tail, STR(" ")), tail.len));
        if (str_to_i64(str_slice(line, 0, gap), &first) && str_to_i64(tail, &count) &&
            first <= SANDBOX_HOST_UID && SANDBOX_HOST_UID < first + count) {
            return true;
        }
    }
    return false;
}

static bool may_mount(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    const unsigned need = 1u << CAP_SYS_ADMIN | 1u << CAP_SETUID | 1u << CAP_SETGID;
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & need) == need;
}

bool compose_is_root(void)
{
    return geteuid() == 0 && may_mount() && knows_host_uid();
}

/* A name for /etc/passwd: what would break the file is not taken over. */
const char *sandbox_user_name(struct arena *a)
{
    if (geteuid() == 0) {
        return SHOWN_NAME;
    }
    const char *name = getenv("USER");
    struct str s = str_of(name == NULL ? getenv("LOGNAME") : name);
    bool good = s.len > 0 && s.len <= 32 && s.ptr[0] != '-';
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        good = good && (c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') ||
                        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
    }
    return good && !str_eqc(s, "root") ? arena_dup(a, s) : SHOWN_NAME;
}

static void decide_who(struct compose *c)
{
    struct compose_who *w = &c->who;
    w->root = compose_is_root();
    w->uid = w->root ? SANDBOX_HOST_UID : geteuid();
    w->gid = w->root ? SANDBOX_HOST_GID : getegid();
    w->inside_uid = geteuid() == 0 ? SHOWN_ID : w->uid;
    w->inside_gid = geteuid() == 0 ? SHOWN_ID : w->gid;
    w->name = sandbox_user_name(c->arena);
}

/* --- what is shown --- */

int compose_check_path(const char *path, struct err *e)
{
    static const char *const ours[] = {
        "/", "/proc", "/dev", MOUNTS_OWN, MOUNTS_HOST, SANDBOX_HELPER_HOME, SANDBOX_RUNTIME
    };
    if (path[0] != '/') {
        return ERR(e, ERR_CONFIG, "sandbox: '%s' is not an absolute path", path);
    }
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (strcmp(path, ours[i]) == 0) {
            return ERR(e, ERR_CONFIG, "sandbox: '%s' cannot be shown: every sandbox has its own",
                       path);
        }
    }
    if (compose_below(path, "/proc")) {
        return ERR(e, ERR_CONFIG,
                   "sandbox: '%s' cannot be mounted: every sandbox has its own /proc; name the "
                   "file that it refers to",
                   path);
    }
    return 0;
}

static int add_grant(struct compose *c, const char *path, int kind, bool optional, struct err *e)
{
    int rc = compose_check_path(path, e);
    if (rc < 0) {
        return rc;
    }
    if (c->n_grants == COMPOSE_GRANTS_MAX) {
        return ERR(e, ERR_LIMIT, "sandbox: more than %d paths", COMPOSE_GRANTS_MAX);
    }
    if (!optional && access(path, F_OK) != 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "sandbox: '%s'", path);
    }
    struct compose_grant *g = &c->grants[c->n_grants++];
    g->path = path;
    g->kind = kind;
    g->optional = optional;
    return 0;
}

/* /bin and the like are links in every view, and the workspace has links of its own: nothing can be
 * mounted through them, so it goes to where they lead. Others on the way are directories inside. */
const char *compose_seen(const struct compose *c, const char *path)
{
    char real[PATH_MAX];
    const char *last = strrchr(path, '/');
    if (path[0] != '/') {
        return path; /* is refused elsewhere */
    }
    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        struct stat st;
        const char *above = arena_dup(c->arena, str_n(path, (size_t)(slash - path)));
        bool stays = toolchain_is_system(above) || (c->view != NULL && c->view->path != NULL &&
                                                    compose_below(above, c->view->path));
        if (!stays || lstat(above, &st) != 0 || !S_ISLNK(st.st_mode)) {
            continue;
        }
        const char *dir = arena_dup(c->arena, str_n(path, (size_t)(last - path)));
        return realpath(dir, real) == NULL ? path : arena_printf(c->arena, "%s%s", real, last);
    }
    return path;
}

static int add_list(struct compose *c, const char *const *list, int kind, struct err *e)
{
    int rc = 0;
    for (; rc == 0 && list != NULL && *list != NULL; list++) {
        rc = add_grant(c, compose_seen(c, *list), kind, false, e);
    }
    return rc;
}

/* What every sandbox has needs no mount of its own, and below /bin and the like, which are links,
 * there could be none. */
static int add_own_read(struct compose *c, struct err *e)
{
    int rc = 0;
    for (const char *const *p = c->opts->own_read; rc == 0 && p != NULL && *p != NULL; p++) {
        rc = toolchain_is_system(*p) ? 0 : add_grant(c, *p, GRANT_READ, false, e);
    }
    return rc;
}

bool compose_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static int add_reach(struct compose *c, struct err *e)
{
    struct toolchain_paths r = { .n = 0 };
    const char *home = getenv("HOME");
    int rc = 0;
    if (c->policy->image == NULL) { /* else PATH leads through the image */
        toolchain_path(&r, c->arena, c->policy->path, home);
    }
    const char *const *more = c->policy->image == NULL ? NULL : c->policy->image->programs;
    toolchain_program(&r, c->arena, c->opts->program, home);
    for (; more != NULL && *more != NULL; more++) {
        toolchain_program(&r, c->arena, *more, home);
    }
    for (size_t i = 0; rc == 0 && i < r.n + r.n_links; i++) {
        bool link = i >= r.n;
        const char *path = link ? r.links[i - r.n] : r.paths[i];
        if (c->view == NULL || !compose_below(path, c->view->path)) {
            rc = add_grant(c, path, link ? GRANT_LINK : GRANT_READ, true, e);
        }
    }
    return rc;
}

/* Parents before children; of the same path the stronger last, which then covers the other. */
static int by_path(const void *a, const void *b)
{
    const struct compose_grant *x = a;
    const struct compose_grant *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (int)x->kind - (int)y->kind;
}

/* What was only guessed to be needed and is shown by something else costs a mount for nothing. Not
 * below a home with a layer: where PATH leads to, nothing can be written. */
static bool is_needless(const struct compose *c, const struct compose_grant *g)
{
    for (size_t i = 0; g->optional && g->kind == GRANT_READ && i < c->n_grants; i++) {
        const struct compose_grant *other = &c->grants[i];
        if (other->kind != GRANT_LINK && other->kind != GRANT_HOME &&
            strcmp(other->path, g->path) != 0 && compose_below(g->path, other->path)) {
            return true;
        }
    }
    return false;
}

static void drop_doubles(struct compose *c)
{
    struct compose_grant kept[COMPOSE_GRANTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < c->n_grants; i++) {
        bool covered = i + 1 < c->n_grants && strcmp(c->grants[i].path, c->grants[i + 1].path) == 0;
        if (!covered && !is_needless(c, &c->grants[i])) {
            kept[n++] = c->grants[i];
        }
    }
    memcpy(c->grants, kept, n * sizeof kept[0]);
    c->n_grants = n;
}

static int gather(struct compose *c, struct err *e)
{
    const struct sandbox_policy *p = c->policy;
    int rc = add_reach(c, e);
    rc = rc < 0 ? rc : add_list(c, p->read, GRANT_READ, e);
    rc = rc < 0 ? rc : add_list(c, p->write, GRANT_WRITE, e);
    rc = rc < 0 ? rc : add_own_read(c, e);
    rc = rc < 0 ? rc : add_list(c, c->opts->own_write, GRANT_WRITE, e);
    if (rc == 0 && p->home != NULL) {
        rc = add_grant(c, p->home, p->home_layer == NULL ? GRANT_WRITE : GRANT_HOME, false, e);
    }
    if (rc == 0 && c->view != NULL) {
        rc = add_grant(c, c->view->path, GRANT_WORKSPACE, true, e);
    }
    qsort(c->grants, c->n_grants, sizeof c->grants[0], by_path);
    drop_doubles(c);
    return rc;
}

static uint32_t guarantees_of(const struct sandbox_policy *p)
{
    uint32_t g = 1u << SANDBOX_FILES | 1u << SANDBOX_IDENTITY | 1u << SANDBOX_PROCESSES |
                 1u << SANDBOX_IPC | 1u << SANDBOX_SYSCALLS | 1u << SANDBOX_PIDS;
    g |= p->net != SANDBOX_NET_OPEN ? 1u << SANDBOX_NETWORK : 0;
    g |= !p->allow_nested ? 1u << SANDBOX_LANDLOCK : 0;
    g |= p->memory > 0 ? 1u << SANDBOX_MEMORY : 0;
    g |= p->cpus > 0 ? 1u << SANDBOX_CPUS : 0;
    return g;
}

static int check_view(const struct sandbox_view *v, struct err *e)
{
    size_t n = 0;
    while (v->lower != NULL && v->lower[n] != NULL) {
        n++;
    }
    if ((v->bind != NULL) == (n > 0) || n > SANDBOX_LOWER_MAX || (n > 0 && v->layer == NULL)) {
        return ERR(e, ERR_BUG, "a view is one directory, or an overlay with 1 to %d lower ones",
                   SANDBOX_LOWER_MAX);
    }
    return compose_check_path(v->path, e);
}

void compose_start(struct compose *c, struct arena *a, const struct sandbox_opts *o)
{
    *c = (struct compose) { .arena = a,
                            .opts = o,
                            .policy = o->policy,
                            .landlock = compose_landlock_version(),
                            .requested = guarantees_of(o->policy) };
    decide_who(c);
}

int compose_init(struct compose *c, struct arena *a, const struct sandbox_opts *o, struct err *e)
{
    bool has_view = o->view != NULL && o->view->path != NULL;
    if (c->who.name == NULL) {
        compose_start(c, a, o);
    }
    c->opts = o;
    c->view = has_view ? o->view : NULL;
    c->layers = has_view && o->layers;
    c->n_grants = 0;
    c->who.home =
        c->policy->home != NULL ? c->policy->home : arena_printf(a, "/home/%s", c->who.name);
    int rc = has_view ? check_view(o->view, e) : 0;
    rc = rc < 0 || c->policy->image == NULL ? rc : compose_read_image(c, e);
    return rc < 0 ? rc : gather(c, e);
}

/* --- entry --- */

const char *compose_overlay_options(const struct compose *c, const char *lower, const char *upper,
                                    bool is_volatile)
{
    const char *kind = c->who.root ? "redirect_dir=on,metacopy=off" : "userxattr";
    return arena_printf(c->arena, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,index=off,%s%s",
                        lower, upper, upper, kind, is_volatile ? ",volatile" : "");
}

/* A layer is named by us, below the scratch directory: letters, digits, and what cannot be mistaken
 * for a way out or for an option of the overlay. */
static bool layer_ok(const char *layer)
{
    struct str s = str_of(layer);
    bool good = s.len > 0 && s.len < 200 && s.ptr[0] != '/' && strstr(layer, "..") == NULL;
    for (size_t i = 0; i < s.len; i++) {
        good = good && strchr(",:\\=", s.ptr[i]) == NULL && s.ptr[i] > ' ';
    }
    return good;
}

static void draft_layer(struct draft *d, const char *layer)
{
    const struct compose *c = d->c;
    bool whole = str_starts(str_of(layer), STR(SANDBOX_LAYER_BIND));
    const char *name = whole ? layer + strlen(SANDBOX_LAYER_BIND) : layer;
    if (c->view == NULL || !layer_ok(name)) {
        d->rc = ERR(d->e, ERR_BUG, "no layer '%s' can be put on this view", layer);
        return;
    }
    const char *dir = arena_printf(c->arena, "%s/%s", OWN_SCRATCH, name);
    if (whole) {
        draft_bind(d, dir, c->view->path, PLAN_INSIDE | PLAN_WRITABLE | PLAN_SHALLOW);
    } else {
        draft_paths(d, PLAN_OP_OVERLAY, compose_overlay_options(c, OWN_WORKSPACE, dir, true),
                    c->view->path, PLAN_WRITABLE);
    }
    draft_protect(d);
}

static void draft_identity(struct draft *d)
{
    const struct compose_who *w = &d->c->who;
    bool keep = !w->root || compose_without(d->c, SANDBOX_IDENTITY);
    struct plan_ids ids = {
        .outside_uid = keep ? 0 : w->uid, /* 0 of the namespace that the holder is in */
        .outside_gid = keep ? 0 : w->gid,
        .inside_uid = w->inside_uid,
        .inside_gid = w->inside_gid,
        .flags = keep ? PLAN_KEEP : 0,
    };
    d->rc = d->rc < 0 ? d->rc : plan_add_ids(d->b, PLAN_OP_IDENTITY, &ids, d->e);
}

static void draft_limit(struct draft *d, int resource, uint64_t most)
{
    d->rc = d->rc < 0 ? d->rc : plan_add_limit(d->b, (uint32_t)resource, most, most, d->e);
}

/* The floor, with or without cgroups. */
static void draft_limits(struct draft *d)
{
    const struct sandbox_policy *p = d->c->policy;
    draft_limit(d, RLIMIT_CORE, 0);
    draft_limit(d, RLIMIT_NPROC, p->pids == 0 ? SANDBOX_PIDS_DEFAULT : p->pids);
    /* None for memory: RLIMIT_DATA counts what is reserved, of which JavaScript engines and garbage
     * collectors take far more than they use. */
}

/* Rights by version of Landlock: 1 knows the first 13; then refer, truncate, device ioctl. */
static uint64_t landlock_all(int version)
{
    int bits = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
    return (UINT64_C(1) << bits) - 1;
}

/* Version 9 governs connecting to sockets that have a name, but for those of the program's own. */
static uint64_t landlock_connect(int version)
{
    return version >= 9 ? UINT64_C(1) << 16 : 0;
}

static void draft_rule(struct draft *d, uint64_t access, const char *path)
{
    d->rc = d->rc < 0 ? d->rc : plan_add_rule(d->b, access, path, d->e);
}

static bool is_writable(const struct compose *c, const struct compose_grant *g)
{
    return g->kind == GRANT_WRITE || g->kind == GRANT_HOME ||
           (g->kind == GRANT_WORKSPACE && c->policy->mode != SANDBOX_READ_ONLY);
}

/* A rule for a directory counts for what is mounted below it, too. */
static bool shows_host_below(const struct compose *c, const char *dir)
{
    for (size_t i = 0; i < c->n_grants; i++) {
        if (c->grants[i].kind == GRANT_READ && compose_below(c->grants[i].path, dir)) {
            return true;
        }
    }
    return c->view != NULL && c->view->bind != NULL && compose_below(c->view->path, dir);
}

static void draft_landlock(struct draft *d, bool helper)
{
    static const char *const writable[] = { "/tmp", "/var/tmp", "/run", "/dev", "/proc" };
    const struct compose *c = d->c;
    uint64_t all = landlock_all(c->landlock);
    uint64_t connect = landlock_connect(c->landlock);
    /* Version 6 can also keep signals and abstract sockets inside. */
    struct plan_ruleset rules = { .fs = all | connect, .scope = c->landlock >= 6 ? 3 : 0 };
    d->rc = d->rc < 0 ? d->rc : plan_add_ruleset(d->b, &rules, d->e);
    draft_rule(
        d, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE,
        "/");
    for (size_t i = 0; i < ARRAY_LEN(writable); i++) {
        draft_rule(d, all | (shows_host_below(c, writable[i]) ? 0 : connect), writable[i]);
    }
    for (size_t i = 0; c->policy->mode != SANDBOX_READ_ONLY && i < c->n_names; i++) {
        if (c->names[i].dir) { /* what is shown below it read-only is mounted so */
            const char *dir = arena_printf(c->arena, "/%s", c->names[i].name);
            draft_rule(d, all | (shows_host_below(c, dir) ? 0 : connect), dir);
        }
    }
    if (c->policy->home == NULL) {
        draft_rule(d, all | connect, c->who.home);
    }
    if (helper) {
        draft_rule(d, all | connect, SANDBOX_HELPER_HOME);
    }
    for (size_t i = 0; i < c->n_grants; i++) {
        const struct compose_grant *g = &c->grants[i];
        bool host = g->kind == GRANT_WORKSPACE && c->view->bind != NULL;
        if (is_writable(c, g)) {
            draft_rule(d, all | (host ? 0 : connect), g->path);
        }
    }
}

/* A home that nobody has written to before. The account names it, too: some programs do not look at
 * HOME. */
static void draft_helper_home(struct draft *d)
{
    struct plan_size size = { .bytes = compose_tmp_bytes(d->c), .inodes = 1 << 20 };
    d->rc =
        d->rc < 0 ? d->rc : plan_add_size(d->b, PLAN_OP_TMPFS, &size, SANDBOX_HELPER_HOME, d->e);
    draft_dir(d, SANDBOX_HELPER_HOME, 0700, !compose_without(d->c, SANDBOX_IDENTITY));
    draft_bind(d, OWN_HELPER_PASSWD, "/etc/passwd", PLAN_INSIDE | PLAN_SHALLOW);
}

int compose_entry(const struct compose *c, const char *layer, bool helper, struct buf *out,
                  struct err *e)
{
    struct draft d = { .c = c, .b = out, .e = e };
    d.rc = plan_begin(out, PLAN_ENTRY, e);
    for (uint32_t i = 0; i < c->n_joins; i++) {
        draft_number(&d, PLAN_OP_JOIN, i);
    }
    if (layer != NULL) {
        draft_layer(&d, layer);
    }
    if (helper && c->policy->image != NULL) {
        draft_image_fixed(&d);
    }
    if (helper) {
        draft_helper_home(&d);
    }
    draft_number(&d, PLAN_OP_PROC, c->policy->allow_nested);
    draft_text(&d, PLAN_OP_HIDE, MOUNTS_OWN);
    draft_identity(&d);
    draft_limits(&d);
    if (c->landlock > 0 && !c->policy->allow_nested && !compose_without(c, SANDBOX_LANDLOCK)) {
        draft_landlock(&d, helper);
    }
    if (d.rc == 0 && !compose_without(c, SANDBOX_SYSCALLS)) {
        bool setgid = c->policy->allow_setgid && !c->who.root;
        d.rc = plan_add_seccomp(out, sandbox_filter(c->policy->allow_nested, setgid), e);
    }
    return d.rc < 0 ? d.rc : plan_end(out, e);
}
