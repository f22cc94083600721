/* SPDX-License-Identifier: MIT
 *
 * The holder and its members: commands out, status in. A machine that cannot give a guarantee is
 * found out by trying: when the holder refuses, and what it refused may be lost, the plan is
 * composed again without it.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/sha256.h"
#include "init/control.h"
#include "init/plan.h"
#include "io/child.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"
#include "proc/locate.h"
#include "sandbox/cgroup.h"
#include "sandbox/compose.h"
#include "sandbox/degraded.h"
#include "sandbox/sandbox_priv.h"

/* Programs in a sandbox at a time; as many as the holder takes. */
#define MEMBERS_MAX 64
/* A view is made in milliseconds; on a loaded machine with a cold disk in seconds. */
#define READY_DEADLINE (60 * NSEC_PER_SEC)

/* A program of ours, as the holder knows it. */
struct member {
    uint32_t id; /* 0: the place is free */
    pid_t pid;
    int control;       /* kept until the view stands: it may have to be built again; -1 */
    bool sent;         /* the holder has been asked */
    const char *layer; /* in the arena */
    bool helper;
    void (*on_gone)(void *arg, int status, const struct err *why); /* NULL: nobody wants to know */
    void *arg;
};

enum state { OPENING, READY, FAILED, LOST, CLOSING };

struct sandbox {
    struct loop *loop;
    struct arena *arena;
    struct sandbox_opts opts;
    struct compose compose;
    struct sandbox_report report;
    struct cgroup *cgroup;
    enum state state;
    bool shown;     /* the view is known */
    bool no_layers; /* the kernel refuses them */
    bool freed;
    bool patient; /* what may be lost is not known yet: programs wait for the view */
    struct err why;
    char init[PATH_MAX];
    struct str leave; /* the first part of the plan, as it was sent */

    struct child *holder;
    int control_fd;
    struct watch *control;
    struct timer *deadline;

    struct member members[MEMBERS_MAX];
    uint32_t last_id;
    int scratch_fd, workspace_fd;
};

static int start_holder(struct sandbox *s, struct err *e);
static void holder_gone(void *arg, int status);

/* --- members --- */

static struct member *find(struct sandbox *s, uint32_t id)
{
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        if (s->members[i].id == id) {
            return &s->members[i];
        }
    }
    return NULL;
}

static void member_end(struct member *m, int status, const struct err *why)
{
    struct member old = *m;
    cleanup_fd(&m->control);
    *m = (struct member) { .control = -1 };
    if (old.on_gone != NULL) {
        old.on_gone(old.arg, status, why);
    }
}

static void end_all(struct sandbox *s, const struct err *why)
{
    for (size_t i = 0; i < MEMBERS_MAX && !s->freed; i++) {
        if (s->members[i].id != 0) {
            member_end(&s->members[i], SIGKILL, why);
        }
    }
}

static int send_entry(struct sandbox *s, struct member *m, struct err *e)
{
    CLEANUP(buf) struct buf plan = BUF_INIT(PLAN_MAX);
    CLEANUP(fd) int plan_fd = -1;
    int fds[CONTROL_FDS_MAX];
    size_t n = 2;
    int rc = compose_entry(&s->compose, m->layer, m->helper, &plan, e);
    rc = rc < 0 ? rc : plan_seal(buf_str(&plan), &plan_fd, e);
    if (rc < 0) {
        return rc;
    }
    fds[0] = plan_fd;
    fds[1] = m->control;
    n += cgroup_fds(s->cgroup, fds + n, CONTROL_FDS_MAX - n);
    struct control_command c = { .type = CONTROL_ENTER, .id = m->id };
    return control_send_command(s->control_fd, &c, fds, n, e);
}

static int enter(const struct proc_place *place, int control,
                 void (*on_gone)(void *arg, int status, const struct err *why), void *arg,
                 uint32_t *ret_ticket, struct err *e)
{
    struct sandbox *s = place->arg;
    struct member *m = find(s, 0);
    if (s->state == FAILED || s->state == LOST || s->state == CLOSING) {
        return ERR(e, s->why.code == ERR_OK ? ERR_CANCELLED : s->why.code, "%s",
                   s->why.code == ERR_OK ? "the sandbox is closed" : s->why.msg);
    }
    if (m == NULL) {
        return ERR(e, ERR_LIMIT, "%d programs run in this sandbox already", MEMBERS_MAX);
    }
    *m = (struct member) {
        .id = ++s->last_id,
        .control = fcntl(control, F_DUPFD_CLOEXEC, 0),
        .layer = place->layer == NULL ? NULL : arena_dup(s->arena, str_of(place->layer)),
        .helper = place->helper,
        .on_gone = on_gone,
        .arg = arg,
    };
    int rc = m->control < 0 ? ERR_SYS(e, "keep the control socket") : 0;
    if (rc == 0 && (s->state == READY || (s->shown && !s->patient))) {
        rc = send_entry(s, m, e);
        m->sent = true;
    }
    if (s->state == READY) {
        cleanup_fd(&m->control);
    }
    if (rc < 0) {
        cleanup_fd(&m->control);
        *m = (struct member) { .control = -1 };
        return rc;
    }
    *ret_ticket = m->id;
    return 0;
}

static void slay(const struct proc_place *place, uint32_t ticket)
{
    struct sandbox *s = place->arg;
    struct control_command c = { .type = CONTROL_SLAY, .id = ticket };
    if (ticket != 0 && s->control_fd >= 0) {
        (void)!control_send_command(s->control_fd, &c, NULL, 0, NULL);
    }
}

/* The end of its control socket, which proc closes, ends the keeper. */
static void leave(const struct proc_place *place, uint32_t ticket)
{
    struct sandbox *s = place->arg;
    struct member *m = ticket == 0 ? NULL : find(s, ticket);
    if (m != NULL) {
        m->on_gone = NULL;
        cleanup_fd(&m->control);
    }
}

static pid_t member_pid(const struct proc_place *place, uint32_t ticket)
{
    struct sandbox *s = place->arg;
    struct member *m = ticket == 0 ? NULL : find(s, ticket);
    return m == NULL ? 0 : m->pid;
}

struct proc_place sandbox_place(struct sandbox *s, const char *layer)
{
    bool own = !s->compose.who.root || compose_without(&s->compose, SANDBOX_IDENTITY);
    return (struct proc_place) {
        .enter = enter,
        .kill = slay,
        .leave = leave,
        .pid = member_pid,
        .arg = s,
        .layer = layer,
        .root = s->opts.policy->image == NULL ? NULL : s->opts.policy->image->root,
        .uid = own ? geteuid() : s->compose.who.uid,
        .gid = own ? getegid() : s->compose.who.gid,
    };
}

struct proc_place sandbox_helper_place(struct sandbox *s, const char *layer)
{
    struct proc_place place = sandbox_place(s, layer);
    place.helper = true;
    return place;
}

/* --- the view --- */

static void give_up(struct sandbox *s, enum state state, const struct err *why)
{
    s->state = state;
    s->why = *why;
    timer_cancel(s->deadline);
    s->control = watch_free(s->control);
    cleanup_fd(&s->control_fd); /* which ends the holder */
    end_all(s, why);
    if (s->freed) {
        return;
    }
    if (state == FAILED && s->opts.port.on_failed != NULL) {
        s->opts.port.on_failed(s->opts.port.arg, &s->report, &s->why);
    } else if (state == LOST && s->opts.port.on_lost != NULL) {
        s->opts.port.on_lost(s->opts.port.arg, &s->why);
    }
}

static void on_ready(struct sandbox *s, int *fds, size_t n)
{
    size_t at = 0;
    bool listens = s->opts.listen && !compose_without(&s->compose, SANDBOX_NETWORK);
    int listener = listens && at < n ? fds[at++] : -1;
    s->scratch_fd = at < n ? fds[at++] : -1;
    s->workspace_fd = at < n && s->compose.view != NULL ? fds[at++] : -1;
    for (; at < n; at++) {
        (void)close(fds[at]);
    }
    s->state = READY;
    timer_cancel(s->deadline);
    loss_settle(&s->report);
    struct err why;
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &s->members[i];
        if (m->id != 0 && m->control >= 0) {
            int rc = m->sent ? 0 : send_entry(s, m, &why);
            cleanup_fd(&m->control);
            if (rc < 0) {
                member_end(m, 0, &why);
            }
        }
    }
    if (s->freed || s->opts.port.on_ready == NULL) {
        cleanup_fd(&listener);
        return;
    }
    s->opts.port.on_ready(s->opts.port.arg, &s->report, listener);
}

/* Another holder, with another plan. */
static void try_again(struct sandbox *s)
{
    struct err why;
    s->control = watch_free(s->control);
    cleanup_fd(&s->control_fd);
    s->holder = child_free(s->holder);
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        s->members[i].sent = false;
    }
    int rc = s->shown ? compose_init(&s->compose, s->arena, &s->opts, &why) : 0;
    rc = rc < 0 ? rc : start_holder(s, &why);
    if (rc < 0) {
        give_up(s, FAILED, &why);
    }
}

/* No guarantee depends on overlays: they only save copies. */
static bool do_without_overlay(struct sandbox *s, const struct control_refused *r,
                               const struct err *why)
{
    const struct sandbox_port *port = &s->opts.port;
    if (r->op != PLAN_OP_OVERLAY || r->number == COMPOSE_OVERLAY_HOME ||
        r->number == COMPOSE_OVERLAY_IMAGE) {
        return false; /* a home without its layer would be changed */
    }
    LOG_DEBUG("sandbox", "no overlay", LOG_STR("why", why->msg));
    if (r->number == COMPOSE_OVERLAY_TRIAL) {
        s->opts.layers = false;
        s->no_layers = true;
        return true;
    }
    return port->on_no_overlay != NULL && port->on_no_overlay(port->arg, why, &s->opts.view);
}

/* Tries once more without what cannot be had, if that may be. */
static void on_refused(struct sandbox *s, const struct control_refused *r)
{
    struct err why;
    control_err_to(&r->error, &why);
    if (do_without_overlay(s, r, &why)) {
        try_again(s);
        return;
    }
    if (r->op == PLAN_OP_OVERLAY &&
        (r->number == COMPOSE_OVERLAY_HOME || r->number == COMPOSE_OVERLAY_IMAGE)) {
        bool home = r->number == COMPOSE_OVERLAY_HOME;
        struct err no;
        (void)ERR(&no, ERR_UNSUPPORTED,
                  "sandbox: %s needs an overlay file system, which is refused here (%s): %s",
                  home ? "a shared home" : "an image", why.msg,
                  home ? "use --home private" : "load the module 'overlay'");
        give_up(s, FAILED, &no);
        return;
    }
    enum sandbox_guarantee g = loss_of(r, &s->compose);
    bool known = g != SANDBOX_GUARANTEE_MAX;
    if (known) {
        loss_note(&s->report, g, why.msg);
    }
    bool may = known && g != SANDBOX_FILES && !compose_without(&s->compose, g) &&
               (s->opts.policy->may_lose & (1u << g)) != 0;
    if (!may) {
        loss_explain(&s->report, &why);
        give_up(s, FAILED, &why);
        return;
    }
    LOG_DEBUG("sandbox", "without", LOG_STR("guarantee", sandbox_guarantee_word(g)));
    s->compose.without |= 1u << g;
    try_again(s);
}

static void on_gone(struct sandbox *s, const struct control_status *st)
{
    struct member *m = find(s, st->id);
    if (m != NULL) {
        member_end(m, st->exit.signaled ? st->exit.value : st->exit.value << 8, NULL);
    }
}

static void on_status(struct sandbox *s, const struct control_status *st, int *fds, size_t n)
{
    struct member *m = st->id == 0 ? NULL : find(s, st->id);
    if (st->type == CONTROL_STATUS_READY && s->state == OPENING) {
        on_ready(s, fds, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
    if (st->type == CONTROL_STATUS_REFUSED && s->state == OPENING) {
        on_refused(s, &st->refused);
    } else if (st->type == CONTROL_STATUS_ENTERED && m != NULL) {
        m->pid = st->pid;
    } else if (st->type == CONTROL_STATUS_GONE) {
        on_gone(s, st);
    } else if (st->type == CONTROL_STATUS_ERROR) {
        control_err_to(&st->error, &s->why);
    }
}

static void on_control(void *arg, unsigned events)
{
    struct sandbox *s = arg;
    (void)events;
    while (!s->freed && s->control_fd >= 0) {
        struct control_status st;
        int fds[CONTROL_FDS_MAX];
        size_t n;
        int sock = s->control_fd;
        int rc = control_recv_status_fds(sock, &st, fds, ARRAY_LEN(fds), &n, &s->why);
        if (rc != CONTROL_RECV_MESSAGE) {
            if (rc != CONTROL_RECV_NOTHING) {
                watch_set(s->control, 0); /* the end of the holder itself comes by its pidfd */
            }
            return;
        }
        on_status(s, &st, fds, n);
    }
}

static void on_deadline(void *arg)
{
    struct sandbox *s = arg;
    struct err why;
    (void)ERR(&why, ERR_TIMEOUT, "the sandbox was not ready in time");
    give_up(s, FAILED, &why);
}

/* --- the holder --- */

static void holder_gone(void *arg, int status)
{
    struct sandbox *s = arg;
    on_control(s, 0); /* its last words */
    if (s->freed || s->state == FAILED || s->state == LOST) {
        return;
    }
    if (s->state == CLOSING) {
        cgroup_remove(s->cgroup);
        if (s->opts.port.on_closed != NULL) {
            s->opts.port.on_closed(s->opts.port.arg);
        }
        return;
    }
    if (!child_exited(s->holder)) {
        return; /* another one was started meanwhile */
    }
    struct err why = s->why;
    if (why.code == ERR_OK) {
        (void)ERR(&why, ERR_SYS, "the holder of the sandbox ended unexpectedly (%s %d)",
                  WIFSIGNALED(status) ? "signal" : "exit code",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    give_up(s, s->state == OPENING ? FAILED : LOST, &why);
}

static int send_plan(struct sandbox *s, enum control_command_type type, struct str text,
                     struct err *e)
{
    CLEANUP(fd) int plan = -1;
    struct control_command c = { .type = type };
    int rc = plan_seal(text, &plan, e);
    return rc < 0 ? rc : control_send_command(s->control_fd, &c, &plan, 1, e);
}

static int send_leave(struct sandbox *s, struct err *e)
{
    CLEANUP(buf) struct buf leave = BUF_INIT(PLAN_MAX);
    int rc = compose_leave(&s->compose, &leave, e);
    s->leave = arena_str(s->arena, buf_str(&leave));
    return rc < 0 ? rc : send_plan(s, CONTROL_LEAVE, s->leave, e);
}

static int send_hold(struct sandbox *s, struct err *e)
{
    CLEANUP(buf) struct buf view = BUF_INIT(PLAN_MAX);
    CLEANUP(buf) struct buf all = BUF_INIT(3 * PLAN_MAX);
    int rc = compose_view(&s->compose, &view, e);
    rc = rc < 0 ? rc : send_plan(s, CONTROL_HOLD, buf_str(&view), e);
    rc = rc < 0 ? rc : buf_append(&all, s->leave, e);
    rc = rc < 0 ? rc : buf_append(&all, buf_str(&view), e);
    buf_reset(&view);
    rc = rc < 0 ? rc : compose_entry(&s->compose, NULL, false, &view, e);
    rc = rc < 0 ? rc : buf_append(&all, buf_str(&view), e);
    if (rc == 0) {
        sha256_hex(buf_str(&all), s->report.plan_sha256);
    }
    return rc;
}

static int start_holder(struct sandbox *s, struct err *e)
{
    char name[] = "cinch-init";
    char role[] = "hold";
    char *argv[] = { name, role, NULL };
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return ERR_SYS(e, "create the control socket");
    }
    s->control_fd = ends[0];
    CLEANUP(fd) int theirs = ends[1];
    const int fds[] = { -1, -1, -1, theirs };
    struct child_opts co = { .path = s->init,
                             .argv = argv,
                             .fds = fds,
                             .n_fds = ARRAY_LEN(fds),
                             .on_exit = holder_gone,
                             .arg = s };
    /* It starts up while we look at what there is to hold. */
    int rc = child_start(s->loop, &co, &s->holder, e);
    rc = rc < 0 ? rc : send_leave(s, e);
    rc = rc < 0 || !s->shown ? rc : send_hold(s, e);
    rc = rc < 0 ? rc : watch_new(s->loop, s->control_fd, on_control, s, &s->control, e);
    if (rc == 0) {
        watch_set(s->control, WATCH_READ);
    }
    return rc;
}

/* --- life --- */

static int prepare(struct sandbox *s, struct err *e)
{
    const struct sandbox_opts *o = &s->opts;
    int rc = compose_init(&s->compose, s->arena, o, e);
    rc = rc < 0 ? rc : cgroup_open(o->policy, &s->cgroup, &s->report, e);
    s->compose.n_joins = (uint32_t)cgroup_fds(s->cgroup, NULL, 0);
    if (rc == 0 && s->compose.landlock == 0 &&
        (s->compose.requested & (1u << SANDBOX_LANDLOCK)) != 0) {
        loss_note(&s->report, SANDBOX_LANDLOCK, "this kernel has no Landlock, or it is off");
        s->compose.without |= 1u << SANDBOX_LANDLOCK;
    }
    return rc < 0 ? rc : loss_check(&s->report, o->policy->may_lose, e);
}

int sandbox_start(struct loop *l, const struct sandbox_opts *o, struct sandbox **ret, struct err *e)
{
    if (o->policy->mode == SANDBOX_OFF) {
        return ERR(e, ERR_BUG, "a sandbox that is off cannot be opened");
    }
    struct sandbox *s = xcalloc(1, sizeof *s);
    s->loop = l;
    s->arena = arena_new();
    s->opts = *o;
    s->control_fd = s->scratch_fd = s->workspace_fd = -1;
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        s->members[i].control = -1;
    }
    int rc = o->init != NULL ? 0 : locate_init_kept(s->init, e);
    if (o->init != NULL) {
        (void)snprintf(s->init, sizeof s->init, "%s", o->init);
    }
    compose_start(&s->compose, s->arena, &s->opts);
    s->report.mode = o->policy->mode;
    s->report.requested = s->compose.requested;
    s->patient = o->policy->may_lose != 0;
    rc = rc < 0 ? rc : timer_new(s->loop, on_deadline, s, &s->deadline, e);
    rc = rc < 0 ? rc : start_holder(s, e);
    if (rc < 0) {
        (void)sandbox_free(s);
        return rc;
    }
    timer_arm(s->deadline, clock_now() + READY_DEADLINE);
    *ret = s;
    return 0;
}

int sandbox_show(struct sandbox *s, const struct sandbox_opts *o, struct err *e)
{
    s->opts = *o;
    if (s->state != OPENING) {
        return 0; /* on_failed has said why */
    }
    int rc = prepare(s, e);
    if (rc < 0) {
        return rc;
    }
    s->shown = true;
    timer_arm(s->deadline, clock_now() + READY_DEADLINE);
    /* A holder that has just been refused hears nothing any more; the next one is told all. */
    rc = send_hold(s, e);
    for (size_t i = 0; rc == 0 && i < MEMBERS_MAX; i++) {
        struct member *m = &s->members[i];
        if (m->id != 0 && !s->patient) {
            rc = send_entry(s, m, e);
            m->sent = rc == 0;
        }
    }
    return rc;
}

int sandbox_open(struct loop *l, const struct sandbox_opts *o, struct sandbox **ret, struct err *e)
{
    int rc = sandbox_start(l, o, ret, e);
    if (rc < 0) {
        return rc;
    }
    rc = sandbox_show(*ret, o, e);
    if (rc < 0) {
        *ret = sandbox_free(*ret);
    }
    return rc;
}

void sandbox_close(struct sandbox *s)
{
    if (s->state == FAILED || s->state == LOST || child_exited(s->holder)) {
        s->state = CLOSING;
        cgroup_remove(s->cgroup);
        if (s->opts.port.on_closed != NULL) {
            loop_post(s->loop, s->opts.port.on_closed, s->opts.port.arg);
        }
        return;
    }
    s->state = CLOSING;
    timer_cancel(s->deadline);
    struct control_command c = { .type = CONTROL_FINISH };
    if (control_send_command(s->control_fd, &c, NULL, 0, NULL) < 0) {
        child_kill(s->holder, SIGKILL);
    }
}

static void destroy(void *arg)
{
    struct sandbox *s = arg;
    s->arena = arena_free(s->arena);
    free(s);
}

struct sandbox *sandbox_free(struct sandbox *s)
{
    if (s == NULL || s->freed) {
        return NULL;
    }
    s->freed = true;
    s->opts.port = (struct sandbox_port) { 0 };
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        cleanup_fd(&s->members[i].control);
        s->members[i].on_gone = NULL;
    }
    if (s->holder != NULL && !child_exited(s->holder)) {
        child_kill(s->holder, SIGKILL); /* the keepers follow, each with its namespace */
    }
    s->control = watch_free(s->control);
    cleanup_fd(&s->control_fd);
    cleanup_fd(&s->scratch_fd);
    cleanup_fd(&s->workspace_fd);
    s->deadline = timer_free(s->deadline);
    s->holder = child_free(s->holder);
    s->cgroup = cgroup_free(s->cgroup);
    loop_retire(s->loop, destroy, s);
    return NULL;
}

int64_t sandbox_strays(const struct sandbox *s)
{
    if (s->opts.policy->net == SANDBOX_NET_OPEN) {
        return 0;
    }
    return s->holder == NULL || child_exited(s->holder)
               ? -1
               : blocked_egress_count(child_pid(s->holder));
}

int64_t sandbox_oom_kills(const struct sandbox *s)
{
    return cgroup_oom_kills(s->cgroup);
}

bool sandbox_ready(const struct sandbox *s)
{
    return s->state == READY;
}

bool sandbox_busy(const struct sandbox *s)
{
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        if (s->members[i].id != 0) {
            return true;
        }
    }
    return false;
}

bool sandbox_layers(const struct sandbox *s)
{
    return !s->no_layers;
}

const struct sandbox_report *sandbox_report(const struct sandbox *s)
{
    return &s->report;
}

int sandbox_workspace(const struct sandbox *s)
{
    return s->workspace_fd;
}

int sandbox_scratch(const struct sandbox *s)
{
    return s->scratch_fd;
}

void sandbox_owner(const struct sandbox *s, uid_t *ret_uid, gid_t *ret_gid)
{
    struct proc_place p = sandbox_place((struct sandbox *)(uintptr_t)s, NULL);
    *ret_uid = p.uid;
    *ret_gid = p.gid;
}

bool sandbox_userxattr(void)
{
    return !compose_is_root();
}
