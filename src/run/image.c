/* SPDX-License-Identifier: MIT
 *
 * From the settings of a run to a container, and what it held to the record.
 */
#include "run/image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/summary.h"
#include "run/holon.h"
#include "run/run_priv.h"
#include "sandbox/container.h"
#include "workspace/workspace.h"

bool image_wanted(const struct run *run)
{
    return run->plan->settings.profile != NULL && run->plan->settings.profile->image != NULL;
}

const char *image_workspace(const struct run *run)
{
    return image_wanted(run) ? IMAGE_WORKSPACE : run->paths.view;
}

/* --- what it sees --- */

/* More than workspace_pins.c and a long list of grants make. */
enum { MOUNTS_MAX = CONTAINER_MOUNTS_MAX };

struct mounts {
    struct container_mount *list;
    size_t n;
    bool too_many;
};

/* An engine refuses a place that is taken; the first who comes has it. */
static void add(struct mounts *m, const char *from, const char *to, bool write)
{
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->list[i].to, to) == 0) {
            return;
        }
    }
    if (m->n < MOUNTS_MAX) {
        m->list[m->n++] = (struct container_mount) { from, to, write };
    } else {
        m->too_many = true;
    }
}

static void add_paths(struct mounts *m, const char *const *paths, bool write)
{
    for (; paths != NULL && *paths != NULL; paths++) {
        if (access(*paths, F_OK) == 0) {
            add(m, *paths, *paths, write);
        }
    }
}

/* A file or directory of the workspace onto itself, which also keeps it from being moved away. */
static void pin(struct run *run, struct mounts *m, const char *name, bool write)
{
    const char *from = arena_printf(run->arena, "%s/%s", workspace_dir(run->workspace), name);
    struct stat st;
    if (lstat(from, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) {
        add(m, from, arena_printf(run->arena, IMAGE_WORKSPACE "/%s", name), write);
    }
}

/* Git outside shall never run what was planted inside: as draft_protect() does it for a sandbox.
 * Directories that contain a pinned file could be moved away with it, so they are mounts, too. */
static void protect_git_dir(struct run *run, struct mounts *m, const char *git_dir, bool write)
{
    static const char *const held[] = { "modules", "worktrees", "info", "objects", "objects/info" };
    struct stat st;
    const char *path = arena_printf(run->arena, "%s/%s", workspace_dir(run->workspace), git_dir);
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        pin(run, m, git_dir, false); /* a file that names the git directory */
        return;
    }
    pin(run, m, git_dir, write);
    for (size_t i = 0; i < ARRAY_LEN(held); i++) {
        pin(run, m, arena_printf(run->arena, "%s/%s", git_dir, held[i]), write);
    }
    for (size_t i = 0; sandbox_git_parts[i] != NULL; i++) {
        pin(run, m, arena_printf(run->arena, "%s/%s", git_dir, sandbox_git_parts[i]), false);
    }
}

static void protect_git(struct run *run, struct mounts *m, bool write)
{
    const struct sandbox_view *v = workspace_view(run->workspace);
    for (const char *const *i = v->git_dirs; i != NULL && *i != NULL; i++) {
        protect_git_dir(run, m, *i, write);
    }
    for (const char *const *i = v->read_only; i != NULL && *i != NULL; i++) {
        pin(run, m, *i, false);
    }
}

static struct mounts mounts_of(struct run *run)
{
    const struct sandbox_policy *p = &run->confine.policy;
    bool write = run->plan->settings.sandbox.mode != SANDBOX_READ_ONLY;
    struct mounts m = { .list = arena_array(run->arena, MOUNTS_MAX, sizeof *m.list) };
    add(&m, workspace_dir(run->workspace), IMAGE_WORKSPACE, write);
    protect_git(run, &m, write);
    add(&m, holon_input_dir(run), IMAGE_INPUT, false);
    add(&m, arena_printf(run->arena, "%s/" HOLON_OUTPUT, run->paths.home), IMAGE_OUTPUT, true);
    add_paths(&m, sandbox_session_own_write(run), true);
    add_paths(&m, sandbox_session_own_read(run), false);
    add_paths(&m, p->write, true);
    add_paths(&m, p->read, false);
    return m;
}

/* The engine is a program of the caller's and has the caller's environment, but for what is a
 * secret of the run: the agent gets that by another way. */
static const char *const *engine_environment(struct run *run)
{
    size_t n = 0;
    const char *const *from = run->opts->environ;
    while (from != NULL && from[n] != NULL) {
        n++;
    }
    const char **list = arena_array(run->arena, n + 1, sizeof *list);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct str rest = str_of(from[i]);
        struct str name = str_split(&rest, '=');
        bool secret = false;
        for (size_t k = 0; k < run->plan->secrets.len; k++) {
            secret = secret || str_eqc(name, run->plan->secrets.items[k].name);
        }
        if (!secret) {
            list[kept++] = from[i];
        }
    }
    return list;
}

/* --- life --- */

static void on_ready(void *arg, int listener)
{
    struct run *run = arg;
    struct sandbox_session *c = &run->confine;
    c->image = json_copy(run->arena, container_image(c->container));
    sandbox_session_take_listener(run, listener);
}

static void on_failed(void *arg, const struct err *why)
{
    struct run *run = arg;
    run_fail_err(run, why);
    sandbox_session_interrupt(run);
}

static void on_lost(void *arg, const struct err *why)
{
    run_fail(arg, REASON_INTERNAL, "%s", why->msg);
}

static void on_closed(void *arg)
{
    sandbox_session_container_closed(arg);
}

static int check(const struct run *run, struct err *e)
{
    if (json_len(run->plan->settings.sandbox.deny) > 0) {
        return ERR(e, ERR_UNSUPPORTED,
                   "sandbox.deny cannot be kept by a container: name what it may see instead");
    }
    if (workspace_dir(run->workspace) == NULL) {
        return ERR(e, ERR_UNSUPPORTED, "an overlay cannot be shown to a container");
    }
    return 0;
}

int image_start(struct run *run, struct err *e)
{
    struct sandbox_session *c = &run->confine;
    int r = check(run, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, run->paths.artifacts, 0700, e);
    if (r < 0) {
        return r;
    }
    struct mounts m = mounts_of(run);
    if (m.too_many) {
        return ERR(e, ERR_LIMIT, "a container with more than %d mounts: grant fewer paths",
                   MOUNTS_MAX);
    }
    struct container_opts o = {
        .engine = run->paths.program,
        .envp = engine_environment(run),
        .image = run->plan->settings.profile->image,
        .name = arena_printf(run->arena, "cinch-%s", run->record.state.run_id),
        .dir = arena_printf(run->arena, "%s/" IMAGE_DOOR, run->record.dir.path),
        .mounts = m.list,
        .n_mounts = m.n,
        .net = c->policy.net,
        .memory = c->policy.memory,
        .pids = c->policy.pids,
        .cpus = c->policy.cpus,
        .listen = c->on_listener != NULL,
        .listen_port = (uint16_t)c->port,
        .port = { on_ready, on_failed, on_lost, on_closed, run },
    };
    return container_open(run->loop, &o, &c->container, e);
}

const struct proc_place *image_place(struct run *run)
{
    if (run->confine.container == NULL) {
        return NULL;
    }
    struct proc_place *place = ARENA_NEW(run->arena, struct proc_place);
    *place = container_place(run->confine.container);
    return place;
}

const char *image_program(void)
{
    return container_program();
}

const struct json *image_entry(struct run *run)
{
    const struct json *image = run->confine.image;
    return image == NULL ? NULL : container_entry(run->arena, image, run->plan->settings.args);
}

/* --- record --- */

/* An ordinary user's engine cannot limit anything by cgroups of version 1, and passes that over. */
static bool has_groups(void)
{
    return geteuid() == 0 || access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

static const char *const *held(struct run *run)
{
    const struct sandbox_policy *p = &run->confine.policy;
    bool groups = has_groups();
    const bool has[SANDBOX_GUARANTEE_MAX] = {
        [SANDBOX_FILES] = true,
        [SANDBOX_IDENTITY] = geteuid() != 0,
        [SANDBOX_PROCESSES] = true,
        [SANDBOX_NETWORK] = p->net != SANDBOX_NET_OPEN,
        [SANDBOX_IPC] = true,
        [SANDBOX_SYSCALLS] = true,
        [SANDBOX_MEMORY] = p->memory > 0 && groups,
        [SANDBOX_PIDS] = groups,
        [SANDBOX_CPUS] = p->cpus > 0 && groups,
    };
    const char **list = arena_array(run->arena, SANDBOX_GUARANTEE_MAX + 1, sizeof *list);
    size_t n = 0;
    for (int g = 0; g < SANDBOX_GUARANTEE_MAX; g++) {
        if (has[g]) {
            list[n++] = sandbox_guarantee_word((enum sandbox_guarantee)g);
        }
    }
    return list;
}

static const char *const *lost(struct run *run)
{
    const char **list = arena_array(run->arena, 4, sizeof *list);
    size_t n = 0;
    if (!has_groups()) {
        list[n++] = "pids: without version 2 of cgroups an ordinary user's engine limits neither "
                    "these nor memory and processors";
    }
    if (geteuid() == 0) {
        list[n++] = "identity: the engine was started by root, who is root inside, too, without "
                    "capabilities";
    }
    list[n++] = "landlock: a container has none";
    return list;
}

void image_report(struct run *run, struct summary *s)
{
    struct err why;
    const struct json *image = run->confine.image;
    if (image == NULL || !run->exec.launched) {
        return;
    }
    struct json *o = json_copy(run->arena, image);
    json_setc(run->arena, o, "reference",
              json_cstr(run->arena, run->plan->settings.profile->image));
    json_setc(run->arena, o, "engine", json_cstr(run->arena, run->paths.program));
    s->sandbox.enforced = held(run);
    s->sandbox.lost = lost(run);
    if (record_write_json(&run->record, "evidence/image.json", o, &why) < 0) {
        run_warn(run, "%s", why.msg);
    }
}
