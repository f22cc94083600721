/* SPDX-License-Identifier: MIT
 *
 * Settings to policy, and the life of the sandbox within a run.
 */
#include "run/sandbox_session.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/expand.h"
#include "base/file.h"
#include "io/listener.h"
#include "io/loop.h"
#include "proc/which.h"
#include "run/holon.h"
#include "run/image.h"
#include "run/image_root.h"
#include "run/project_config.h"
#include "run/run_priv.h"
#include "run/shared_home.h"
#include "sandbox/container.h"

/* --- policy --- */

/* Two lists of texts as one array; paths that begin with "~/" are below the caller's home. */
static const char *const *paths_of(struct run *run, const struct json *one, const struct json *two)
{
    size_t n = 0;
    const char **list = arena_array(run->arena, json_len(one) + json_len(two) + 1, sizeof *list);
    const struct json *const both[] = { one, two };
    for (size_t k = 0; k < ARRAY_LEN(both); k++) {
        for (size_t i = 0; i < json_len(both[k]); i++) {
            const char *path = json_cstring(json_item(both[k], i), "");
            const char *home = getenv("HOME");
            bool of_home = path[0] == '~' && path[1] == '/' && home != NULL;
            list[n++] = of_home ? arena_printf(run->arena, "%s%s", home, path + 1) : path;
        }
    }
    return list;
}

/* What a profile names need not be there: a harness may be installed in one of several places. */
static const char *const *existing(struct run *run, const struct json *list)
{
    const char *const *all = paths_of(run, list, NULL);
    const char **kept = arena_array(run->arena, json_len(list) + 1, sizeof *kept);
    size_t n = 0;
    for (; *all != NULL; all++) {
        if (access(*all, F_OK) == 0) {
            kept[n++] = *all;
        }
    }
    return kept;
}

static const char *const *joined(struct run *run, const char *const *a, const char *const *b)
{
    size_t n = 0;
    size_t at = 0;
    const char *const *lists[] = { a, b };
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        for (size_t i = 0; lists[k][i] != NULL; i++) {
            n++;
        }
    }
    const char **all = arena_array(run->arena, n + 1, sizeof *all);
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        for (size_t i = 0; lists[k][i] != NULL; i++) {
            all[at++] = lists[k][i];
        }
    }
    return all;
}

/* Are there programs that cinch starts itself: of the task, or of the built-in agent? */
static bool starts_tools(const struct run *run)
{
    const struct settings *s = &run->plan->settings;
    return s->profile->api.builtin_tools || json_len(run->definition.tools) > 0 ||
           json_len(s->tools) > 0 || json_len(s->policies) > 0 || json_len(s->feedback) > 0 ||
           json_len(s->completion) > 0;
}

/* Nothing is started: then there is nothing to confine. */
static bool is_wanted(const struct run *run)
{
    return (run->plan->driver->kind != DRIVER_MODEL_LOOP && !image_wanted(run)) ||
           starts_tools(run);
}

int sandbox_session_admit(struct run *run, struct err *e)
{
    const struct sandbox_settings *s = &run->plan->settings.sandbox;
    const struct profile_sandbox *of = &run->plan->settings.profile->sandbox;
    struct sandbox_session *c = &run->confine;
    const char *path = json_cstring(json_get(run->plan->settings.env_set, "PATH"), NULL);
    (void)e;
    sandbox_policy_init(&c->policy);
    c->policy = (struct sandbox_policy) {
        .mode = is_wanted(run) ? s->mode : SANDBOX_OFF,
        .read = joined(run, paths_of(run, s->read, NULL), existing(run, of->read)),
        .write = joined(run, paths_of(run, s->write, NULL), existing(run, of->write)),
        .deny = paths_of(run, s->deny, NULL),
        .net = s->net,
        .memory = (uint64_t)s->memory,
        .memory_default = s->memory > 0 ? 0 : memory_default(),
        .pids = (uint64_t)s->pids,
        .cpus = s->cpus,
        .allow_nested = of->nested,
        .may_lose = s->allow_degraded == TRI_TRUE ? SANDBOX_LOSE_ALL : 0,
        .path = path != NULL ? path : which_path(run->opts->environ),
    };
    c->report = (struct sandbox_report) { .mode = c->policy.mode };
    return 0;
}

int sandbox_session_listen(struct run *run, sandbox_session_take_fn *take, int *ret_port,
                           struct err *e)
{
    struct sandbox_session *c = &run->confine;
    const struct sandbox_policy *p = &c->policy;
    bool image = image_wanted(run); /* its network is never ours, also when it is open */
    bool asks_from_here = run->plan->driver->kind == DRIVER_MODEL_LOOP;
    /* Then only tools are inside, and look for nothing but listed hosts. */
    bool wanted = !asks_from_here || run->plan->settings.sandbox.hosts != NULL;
    if (!image && (p->mode == SANDBOX_OFF || p->net == SANDBOX_NET_OPEN || !wanted)) {
        return 0;
    }
    c->port = SANDBOX_SESSION_PORT;
    c->both = asks_from_here;
    if (!image && (c->both || (p->may_lose & (1u << SANDBOX_NETWORK)) != 0)) {
        int r = listener_bind_tcp("127.0.0.1", 0, &c->spare_fd, &c->port, e);
        if (r < 0) {
            return r;
        }
    }
    c->on_listener = take;
    *ret_port = c->port;
    return 1;
}

void sandbox_session_denied(struct run *run, const char *what)
{
    struct sandbox_session *c = &run->confine;
    if (c->denied == NULL) {
        c->denied = arena_array(run->arena, SANDBOX_SESSION_DENIED_MAX + 1, sizeof *c->denied);
    }
    if (c->n_denied < SANDBOX_SESSION_DENIED_MAX) {
        c->denied[c->n_denied++] = arena_dup(run->arena, str_of(what));
    }
}

/* --- life --- */

/* Inside if there is one, else the spare one, or both. */
static void hand_listener(struct run *run, int fd)
{
    struct sandbox_session *c = &run->confine;
    CLEANUP(fd) int spare = TAKE_FD(c->spare_fd);
    int fds[2];
    size_t n = 0;
    if (c->on_listener != NULL && fd >= 0) {
        fds[n++] = TAKE_FD(fd);
    }
    if (c->on_listener != NULL && spare >= 0 && (n == 0 || c->both)) {
        fds[n++] = TAKE_FD(spare);
    }
    if (n > 0) {
        c->on_listener(run, fds, n);
    }
    cleanup_fd(&fd);
}

/* A sandbox is a promise; without it the run goes on only if it was told so, and says so. */
static void go_on_without(struct run *run, const struct err *why)
{
    struct sandbox_session *c = &run->confine;
    struct err e;
    c->open = false;
    if ((c->policy.may_lose & (1u << SANDBOX_FILES)) == 0) {
        run_fail_err(run, why);
        return;
    }
    c->report.enforced = 0;
    run_warn(run, "without a sandbox: %s", why->msg);
    if (run_workspace_outside(run, &e) < 0) {
        run_fail_err(run, &e);
    }
    hand_listener(run, -1);
}

static void tell_losses(struct run *run, const struct sandbox_report *r)
{
    run->confine.report = *r;
    for (size_t i = 0; i < r->n_lost; i++) {
        run_warn(run, "the sandbox does not hold '%s': %s; %s",
                 sandbox_guarantee_word(r->lost[i].what), r->lost[i].why, r->lost[i].remedy);
    }
}

static void call(struct run *run, void (**fn)(struct run *run))
{
    void (*now)(struct run * run) = *fn;
    *fn = NULL;
    if (now != NULL) {
        now(run);
    }
}

static void on_ready(void *arg, const struct sandbox_report *r, int listener)
{
    struct run *run = arg;
    tell_losses(run, r);
    hand_listener(run, listener);
    call(run, &run->confine.waiting);
}

static void on_failed(void *arg, const struct sandbox_report *r, const struct err *why)
{
    struct run *run = arg;
    struct sandbox_session *c = &run->confine;
    tell_losses(run, r);
    if (c->shown) {
        go_on_without(run, why);
    } else {
        c->why = *why;
    }
    call(run, &c->waiting);
}

static bool on_no_overlay(void *arg, const struct err *why, const struct sandbox_view **ret)
{
    struct run *run = arg;
    struct err e;
    int r = run_workspace_copy(run, why, &e);
    if (r < 0) {
        run_fail_err(run, &e);
        return false;
    }
    *ret = &run->confine.view;
    return r > 0;
}

static void on_lost(void *arg, const struct err *why)
{
    run_fail(arg, REASON_INTERNAL, "%s", why->msg);
}

static void on_closed(void *arg)
{
    struct run *run = arg;
    run->confine.box = sandbox_free(run->confine.box);
    if (run->confine.container == NULL) {
        call(run, &run->confine.then);
    }
}

void sandbox_session_container_closed(struct run *run)
{
    run->confine.container = container_free(run->confine.container);
    if (run->confine.box == NULL) {
        call(run, &run->confine.then);
    }
}

static const struct sandbox_port *port_of(struct run *run)
{
    struct sandbox_port *port = ARENA_NEW(run->arena, struct sandbox_port);
    *port = (struct sandbox_port) {
        .on_ready = on_ready,
        .on_failed = on_failed,
        .on_no_overlay = on_no_overlay,
        .on_lost = on_lost,
        .on_closed = on_closed,
        .arg = run,
    };
    return port;
}

void sandbox_session_warm(struct run *run)
{
    struct sandbox_session *c = &run->confine;
    const struct profile *profile = run->plan->settings.profile;
    struct err later; /* sandbox_session_start() runs into it, too */
    run->draft->driver = profile == NULL ? NULL : driver_find(profile->driver);
    if (run->plan->driver == NULL || sandbox_session_admit(run, &later) < 0 ||
        c->policy.mode == SANDBOX_OFF || image_root_wanted(run)) {
        return;
    }
    struct sandbox_opts opts = { .policy = &c->policy, .port = *port_of(run) };
    (void)!sandbox_start(run->loop, &opts, &c->box, &later);
}

/* The arguments, as far as they are known before there is a prompt. */
static char **arguments_of(struct run *run)
{
    struct placeholders vars = execute_vars(run);
    char **argv = NULL;
    struct err ignored; /* what is wrong with them is told when the program is started */
    int r = expand_argv(run->arena, run->plan->settings.profile, &vars, &argv, &ignored);
    return r < 0 ? NULL : argv;
}

static bool is_interpreter(const char *file)
{
    static const char *const known[] = { "sh",   "bash", "dash", "zsh",  "python", "node",
                                         "perl", "ruby", "php",  "deno", "bun",    "lua" };
    struct str name = file == NULL ? STR_EMPTY : path_base(str_of(file));
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_starts(name, str_of(known[i]))) {
            struct str rest = str_slice(name, strlen(known[i]), name.len);
            if (rest.len == 0 || rest.ptr[0] == '.' || (rest.ptr[0] >= '0' && rest.ptr[0] <= '9')) {
                return true;
            }
        }
    }
    return false;
}

/* A script that is given to an interpreter by name is as much the program as the interpreter. */
static const char *script_of(struct run *run)
{
    char **argv = is_interpreter(run->paths.program) ? arguments_of(run) : NULL;
    for (size_t i = 1; argv != NULL && argv[0] != NULL && argv[i] != NULL; i++) {
        if (argv[i][0] != '-') {
            return argv[i][0] == '/' && access(argv[i], R_OK) == 0 ? argv[i] : NULL;
        }
    }
    return NULL;
}

/* Files of the run that the agent is told about, and files that the request names for it. */
const char *const *sandbox_session_own_read(struct run *run)
{
    const char *dir = run->paths.dir;
    const struct json *secret = run->plan->settings.secret_files;
    const char *all[] = {
        run->paths.config_file,
        arena_printf(run->arena, "%s/uploads", dir),
        arena_printf(run->arena, "%s/input.json", dir),
        run->plan->driver->kind != DRIVER_CONTRACT ? NULL : holon_input_dir(run),
        script_of(run),
    };
    const char **list =
        arena_array(run->arena, ARRAY_LEN(all) + json_len(secret) + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i] != NULL && access(all[i], F_OK) == 0) {
            list[n++] = all[i];
        }
    }
    for (size_t i = 0; i < json_len(secret); i++) {
        list[n++] = json_cstring(json_item(secret, i), "/");
    }
    return joined(run, joined(run, list, tools_programs(run)), project_locked(run));
}

/* The harness' configuration, the prompt and the output contract are below the home. */
const char *const *sandbox_session_own_write(struct run *run)
{
    const char **list = arena_array(run->arena, 3, sizeof *list);
    size_t n = 0;
    list[n++] = run->paths.home;
    list[n++] = run->paths.artifacts;
    return list;
}

/* The agent's HOME: the run's, or the caller's, which is then shown but for its secrets. */
static const char *home_of(const struct run *run)
{
    return run->plan->settings.home == HOME_PRIVATE ? run->paths.home : getenv("HOME");
}

/* No other user reaches what programs write before phase collect has cleaned it: the record is
 * private, and all else that they change is in it. */
static bool writes_in_private(const struct run *run)
{
    const struct sandbox_session *c = &run->confine;
    struct stat st;
    bool own_tree = c->view.bind != NULL && strcmp(c->view.bind, c->view.path) == 0;
    bool granted = c->policy.write != NULL && c->policy.write[0] != NULL;
    return !own_tree && !granted && fstat(run->record.dir.dir_fd, &st) == 0 &&
           (st.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static int show(struct run *run, struct err *e)
{
    struct sandbox_session *c = &run->confine;
    if (c->view.path == NULL) {
        c->view.path = c->view.bind = run->paths.view;
    }
    c->policy.home = home_of(run);
    const char *const *masked = NULL;
    int r = shared_home_open(run, &c->policy.home_layer, e);
    r = r < 0 ? r : project_masked(run, &masked, e);
    if (r < 0) {
        return r;
    }
    c->policy.allow_setgid = writes_in_private(run);
    c->policy.deny = joined(run, paths_of(run, run->plan->settings.sandbox.deny, NULL), masked);
    struct sandbox_opts opts = {
        .policy = &c->policy,
        .view = &c->view,
        .own_read = sandbox_session_own_read(run),
        .own_write = sandbox_session_own_write(run),
        .program = image_root_wanted(run) ? NULL : run->paths.program,
        .layers = starts_tools(run),
        .listen = c->on_listener != NULL && !image_wanted(run),
        .listen_port = (uint16_t)c->port,
        .port = *port_of(run),
    };
    r = file_mkdirs(AT_FDCWD, run->paths.artifacts, 0700, e);
    if (r == 0 && c->box == NULL) {
        r = sandbox_start(run->loop, &opts, &c->box, e);
    }
    return r < 0 ? r : sandbox_show(c->box, &opts, e);
}

static int start_sandbox(struct run *run, struct err *e)
{
    struct sandbox_session *c = &run->confine;
    if (c->policy.mode == SANDBOX_OFF) {
        return 0;
    }
    int r = 0;
    c->shown = true;
    if (c->why.code != ERR_OK) {
        *e = c->why;
        r = -(int)c->why.code;
    } else {
        r = show(run, e);
    }
    if (r < 0) {
        if (e->code != ERR_UNSUPPORTED) {
            return r;
        }
        go_on_without(run, e);
        return 0;
    }
    c->place = sandbox_place(c->box, NULL);
    c->open = true;
    if (c->policy.may_lose == 0) {
        return 0;
    }
    c->waiting = run_phase_done;
    return 1;
}

/* The container stands, or the run has failed. */
static void go_on_inside(struct run *run)
{
    struct err e;
    int r = run->cause.reason == REASON_NONE ? start_sandbox(run, &e) : 0;
    if (r < 0) {
        run_fail_err(run, &e);
    }
    if (r <= 0) {
        run_phase_done(run);
    }
}

int sandbox_session_start(struct run *run, struct err *e)
{
    if (!image_wanted(run)) {
        return start_sandbox(run, e);
    }
    int r = image_start(run, e);
    if (r < 0) {
        return r;
    }
    run->confine.waiting = go_on_inside;
    return 1;
}

void sandbox_session_take_listener(struct run *run, int fd)
{
    hand_listener(run, fd);
    call(run, &run->confine.waiting);
}

void sandbox_session_await(struct run *run, enum sandbox_session_until until,
                           void (*go_on)(struct run *run))
{
    struct sandbox_session *c = &run->confine;
    bool settled = !c->open || sandbox_ready(c->box);
    if (settled || (until == SANDBOX_SESSION_ENTER && c->policy.may_lose == 0)) {
        go_on(run);
    } else {
        c->waiting = go_on;
    }
}

void sandbox_session_interrupt(struct run *run)
{
    call(run, &run->confine.waiting);
}

struct sandbox *sandbox_session_sandbox(const struct run *run)
{
    return run->confine.open ? run->confine.box : NULL;
}

const struct proc_place *sandbox_session_place(const struct run *run)
{
    return run->confine.open ? &run->confine.place : NULL;
}

const char *sandbox_session_user(const struct run *run)
{
    return run->confine.policy.mode == SANDBOX_OFF ? NULL : sandbox_user_name(run->arena);
}

/* What nobody could answer: names that were looked up, hosts that were called without the proxy.
 * Those of a container are not counted. */
static void note_strays(struct run *run)
{
    int64_t n = run->confine.box == NULL ? 0 : sandbox_strays(run->confine.box);
    if (n > 0) {
        sandbox_session_denied(
            run, arena_printf(run->arena, "%lld direct connections or name lookups", (long long)n));
    }
}

bool sandbox_session_close(struct run *run, void (*then)(struct run *run))
{
    struct sandbox_session *c = &run->confine;
    c->open = false;
    c->waiting = NULL;
    cleanup_fd(&c->copies_fd);
    if ((c->box == NULL && c->container == NULL) || c->closing) {
        return false;
    }
    c->closing = true;
    note_strays(run);
    /* Who is gone cannot change anything; that the mounts are still there disturbs nobody. */
    bool busy = (c->box != NULL && sandbox_busy(c->box)) ||
                (c->container != NULL && container_busy(c->container));
    c->then = busy ? then : NULL;
    if (c->box != NULL) {
        sandbox_close(c->box);
    }
    if (c->container != NULL) {
        container_close(c->container);
    }
    return busy;
}

bool sandbox_session_wait(struct run *run, void (*then)(struct run *run))
{
    bool there = run->confine.box != NULL || run->confine.container != NULL;
    run->confine.then = there ? then : NULL;
    return there;
}

void sandbox_session_done(struct run *run)
{
    struct sandbox_session *c = &run->confine;
    cleanup_fd(&c->spare_fd);
    c->box = sandbox_free(c->box);
    c->container = container_free(c->container);
}

/* --- record --- */

void sandbox_session_report(struct run *run, struct summary *s)
{
    const struct sandbox_report *r = &run->confine.report;
    size_t n = 0;
    s->sandbox.requested = sandbox_mode_word(run->plan->settings.sandbox.mode);
    const char **held = arena_array(run->arena, SANDBOX_GUARANTEE_MAX + 1, sizeof *held);
    const char **lost = arena_array(run->arena, SANDBOX_GUARANTEE_MAX + 1, sizeof *lost);
    for (int g = 0; g < SANDBOX_GUARANTEE_MAX; g++) {
        if ((r->enforced & (1u << g)) != 0) {
            held[n++] = sandbox_guarantee_word((enum sandbox_guarantee)g);
        }
    }
    for (size_t i = 0; i < r->n_lost; i++) {
        lost[i] = arena_printf(run->arena, "%s: %s", sandbox_guarantee_word(r->lost[i].what),
                               r->lost[i].why);
    }
    s->sandbox.enforced = held;
    s->sandbox.lost = lost;
    s->sandbox.denied = run->confine.denied;
    s->sandbox.plan_sha256 = r->plan_sha256[0] == '\0' ? NULL : r->plan_sha256;
    if (image_wanted(run)) {
        image_report(run, s);
    }
    image_root_report(run);
    if (r->mode != SANDBOX_OFF && r->requested != 0) {
        struct err why;
        struct json *report = sandbox_report_json(run->arena, r);
        if (record_write_json(&run->record, "evidence/sandbox.json", report, &why) < 0) {
            run_warn(run, "%s", why.msg);
        }
    }
}
