/* SPDX-License-Identifier: MIT
 *
 * The life of a container: the engine's commands one after the other, the connection of the door,
 * one program at a time.
 */
#include "sandbox/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "init/control.h"
#include "init/inner_listener.h"
#include "init/plan.h"
#include "io/child.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"
#include "proc/locate.h"
#include "sandbox/container_priv.h"
#include "sandbox/seccomp_filter.h"

/* An engine takes a fifth of a second; with a cold disk and a large image much longer. */
#define OPEN_DEADLINE (120 * NSEC_PER_SEC)
/* To remove a container whose processes are dead. */
#define CLOSE_DEADLINE (20 * NSEC_PER_SEC)
/* Of what the engine prints: all that is known of an image, or why it failed. */
#define ANSWER_MAX ((size_t)4 << 20)

enum state { LOADING, LOOKING, STARTING, READY, FAILED, LOST, CLOSING };

struct container {
    struct loop *loop;
    struct arena *arena;
    struct container_opts opts;
    enum state state;
    bool freed;
    struct err why;
    char init[PATH_MAX];
    const char *image; /* as the engine knows it */
    struct json *info;

    struct child *engine;
    int out_fd, err_fd; /* of the engine's command */
    struct child *broom;
    int listen_fd, control_fd;
    struct watch *listening, *control;
    struct timer *deadline;

    /* The program inside. */
    uint32_t ticket, last_ticket; /* 0: none */
    pid_t pid;
    void (*on_gone)(void *arg, int status, const struct err *why);
    void *arg;
};

static void engine_ended(void *arg, int status);

/* --- the end of things --- */

static void member_end(struct container *c, int status, const struct err *why)
{
    void (*fn)(void *arg, int status, const struct err *why) = c->on_gone;
    c->ticket = 0;
    c->pid = 0;
    c->on_gone = NULL;
    if (fn != NULL) {
        fn(c->arg, status, why);
    }
}

/* The door hears the end of the connection and leaves, and everything with it. */
static void disconnect(struct container *c)
{
    c->listening = watch_free(c->listening);
    c->control = watch_free(c->control);
    cleanup_fd(&c->listen_fd);
    cleanup_fd(&c->control_fd);
}

static void give_up(struct container *c, enum state state, const struct err *why)
{
    c->state = state;
    c->why = *why;
    timer_cancel(c->deadline);
    disconnect(c);
    if (c->ticket != 0) {
        member_end(c, SIGKILL, why);
    }
    const struct container_port *port = &c->opts.port;
    if (!c->freed && state == FAILED && port->on_failed != NULL) {
        port->on_failed(port->arg, &c->why);
    } else if (!c->freed && state == LOST && port->on_lost != NULL) {
        port->on_lost(port->arg, &c->why);
    }
}

static void tell_closed(void *arg)
{
    struct container *c = arg;
    if (!c->freed && c->opts.port.on_closed != NULL) {
        c->opts.port.on_closed(c->opts.port.arg);
    }
}

/* --- the engine --- */

static bool engine_runs(const struct container *c)
{
    return c->engine != NULL && !child_exited(c->engine);
}

/* One command of the engine at a time; what it prints goes to memory. */
static int command(struct container *c, char **argv, struct err *e)
{
    cleanup_fd(&c->out_fd);
    cleanup_fd(&c->err_fd);
    c->out_fd = memfd_create("engine-out", MFD_CLOEXEC);
    c->err_fd = memfd_create("engine-err", MFD_CLOEXEC);
    if (c->out_fd < 0 || c->err_fd < 0) {
        return ERR_SYS(e, "memfd");
    }
    const int fds[] = { -1, c->out_fd, c->err_fd };
    struct child_opts o = { .path = c->opts.engine,
                            .argv = argv,
                            .envp = (char *const *)(uintptr_t)c->opts.envp,
                            .fds = fds,
                            .n_fds = ARRAY_LEN(fds),
                            .on_exit = engine_ended,
                            .arg = c };
    c->engine = child_free(c->engine);
    return child_start(c->loop, &o, &c->engine, e);
}

static struct str answer(struct container *c, int fd)
{
    CLEANUP(buf) struct buf text = BUF_INIT(ANSWER_MAX);
    struct stat st;
    (void)lseek(fd, 0, SEEK_SET);
    if (fstat(fd, &st) != 0 || (size_t)st.st_size > ANSWER_MAX ||
        file_read_fd(fd, "the engine's answer", ANSWER_MAX, &text, NULL) < 0) {
        return STR_EMPTY;
    }
    return arena_str(c->arena, str_trim(buf_str(&text)));
}

/* Its last line is the reason; those before it are of attempts and warnings. */
static struct str last_line(struct str text)
{
    struct str last = text;
    while (text.ptr != NULL && text.len > 0) {
        struct str line = str_trim(str_split(&text, '\n'));
        last = line.len > 0 ? line : last;
    }
    struct str cut = str_slice(last, 0, 300);
    return str_slice(cut, 0, str_utf8_prefix(cut));
}

static int run_image(struct container *c, struct err *e)
{
    char **argv;
    int r = container_args_run(c->arena, &c->opts, c->image, c->init, &argv, e);
    c->state = STARTING;
    return r < 0 ? r : command(c, argv, e);
}

static int look_at_image(struct container *c, struct err *e)
{
    c->state = LOOKING;
    return command(c, container_args_look(c->arena, &c->opts, c->image), e);
}

/* podman prints the id, docker "Loaded image: NAME". */
static int loaded(struct container *c, struct err *e)
{
    struct str text = last_line(answer(c, c->out_fd));
    struct str rest = text;
    (void)str_split(&rest, ' ');
    while (rest.ptr != NULL) {
        text = rest;
        (void)str_split(&rest, ' ');
    }
    c->image = arena_dup(c->arena, text);
    return text.len > 0
               ? look_at_image(c, e)
               : ERR(e, ERR_UNAVAILABLE, "the engine names no image in '%s'", c->opts.image);
}

static int looked(struct container *c, struct err *e)
{
    int r = container_image_read(c->arena, answer(c, c->out_fd), &c->info, e);
    if (r == 0 && json_len(json_get(c->info, "entrypoint")) == 0 &&
        json_len(json_get(c->info, "command")) == 0) {
        r = ERR(e, ERR_UNAVAILABLE, "image '%s' has no entry point", c->opts.image);
    }
    return r < 0 ? r : run_image(c, e);
}

static int engine_failed(struct container *c, struct err *e)
{
    struct str why = last_line(answer(c, c->err_fd));
    if (c->state == LOOKING) {
        return ERR(e, ERR_UNAVAILABLE,
                   "image '%s' cannot be used: %.*s (load it first: cinch fetches none)",
                   c->opts.image, STR_ARG(why));
    }
    return ERR(e, ERR_UNAVAILABLE, "container of '%s': %.*s", c->opts.image, STR_ARG(why));
}

static void engine_ended(void *arg, int status)
{
    struct container *c = arg;
    struct err why;
    int r = 0;
    if (c->freed || c->state == FAILED || c->state == LOST) {
        return;
    }
    if (c->state == CLOSING) {
        timer_cancel(c->deadline);
        tell_closed(c);
        return;
    }
    if (c->state == READY) {
        (void)ERR(&why, ERR_SYS, "the container ended unexpectedly: %.*s",
                  STR_ARG(last_line(answer(c, c->err_fd))));
        give_up(c, LOST, &why);
        return;
    }
    if (status != 0 || c->state == STARTING) {
        r = engine_failed(c, &why);
    } else {
        r = c->state == LOADING ? loaded(c, &why) : looked(c, &why);
    }
    if (r < 0) {
        give_up(c, FAILED, &why);
    }
}

/* --- the door --- */

static int send_plan(struct container *c, enum control_command_type type, const struct buf *plan,
                     int member, struct err *e)
{
    CLEANUP(fd) int plan_fd = -1;
    int r = plan_seal(buf_str(plan), &plan_fd, e);
    const int fds[] = { plan_fd, member };
    struct control_command cmd = { .type = type, .id = member < 0 ? 0 : c->ticket };
    return r < 0 ? r : control_send_command(c->control_fd, &cmd, fds, member < 0 ? 1 : 2, e);
}

static int send_hold(struct container *c, struct err *e)
{
    CLEANUP(buf) struct buf plan = BUF_INIT(PLAN_MAX);
    int r = plan_begin(&plan, PLAN_VIEW, e);
    if (r == 0 && c->opts.listen) {
        r = plan_add_number(&plan, PLAN_OP_LISTEN, c->opts.listen_port, e);
    }
    r = r < 0 ? r : plan_end(&plan, e);
    return r < 0 ? r : send_plan(c, CONTROL_HOLD, &plan, -1, e);
}

static int send_entry(struct container *c, int control, struct err *e)
{
    CLEANUP(buf) struct buf plan = BUF_INIT(PLAN_MAX);
    int r = plan_begin(&plan, PLAN_ENTRY, e);
    r = r < 0 ? r : plan_add_seccomp(&plan, sandbox_filter(false, false), e);
    r = r < 0 ? r : plan_end(&plan, e);
    return r < 0 ? r : send_plan(c, CONTROL_ENTER, &plan, control, e);
}

static void stands(struct container *c, int *fds, size_t n)
{
    int listener = c->opts.listen && n > 0 ? fds[0] : -1;
    for (size_t i = listener >= 0 ? 1 : 0; i < n; i++) {
        (void)close(fds[i]);
    }
    c->state = READY;
    timer_cancel(c->deadline);
    if (c->opts.port.on_ready != NULL) {
        c->opts.port.on_ready(c->opts.port.arg, listener);
    } else {
        cleanup_fd(&listener);
    }
}

static void on_status(struct container *c, const struct control_status *s, int *fds, size_t n)
{
    if (s->type == CONTROL_STATUS_READY && c->state == STARTING) {
        stands(c, fds, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
    if (s->type == CONTROL_STATUS_REFUSED && c->state == STARTING) {
        struct err why;
        control_err_to(&s->refused.error, &why);
        give_up(c, FAILED, &why);
    } else if (s->type == CONTROL_STATUS_ENTERED && s->id == c->ticket) {
        c->pid = s->pid;
    } else if (s->type == CONTROL_STATUS_GONE && s->id == c->ticket && c->ticket != 0) {
        member_end(c, s->exit.signaled ? s->exit.value : s->exit.value << 8, NULL);
    }
}

static void on_control(void *arg, unsigned events)
{
    struct container *c = arg;
    (void)events;
    while (!c->freed && c->control_fd >= 0) {
        struct control_status s;
        int fds[CONTROL_FDS_MAX];
        size_t n;
        int r = control_recv_status_fds(c->control_fd, &s, fds, ARRAY_LEN(fds), &n, &c->why);
        if (r != CONTROL_RECV_MESSAGE) {
            if (r != CONTROL_RECV_NOTHING) {
                watch_set(c->control, 0); /* what became of it the engine tells by its end */
            }
            return;
        }
        on_status(c, &s, fds, n);
    }
}

/* One connection, that of the first process; nothing of the image has run by then. */
static void on_door(void *arg, unsigned events)
{
    struct container *c = arg;
    struct err why;
    (void)events;
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    c->listening = watch_free(c->listening);
    cleanup_fd(&c->listen_fd);
    c->control_fd = fd;
    if (c->state == CLOSING) {
        cleanup_fd(&c->control_fd);
        return;
    }
    int r = watch_new(c->loop, c->control_fd, on_control, c, &c->control, &why);
    r = r < 0 ? r : send_hold(c, &why);
    if (r < 0) {
        give_up(c, FAILED, &why);
        return;
    }
    watch_set(c->control, WATCH_READ);
}

/* By the descriptor of the directory: the path may be longer than an address can be. */
static int listen_at_door(struct container *c, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int r = file_mkdirs(AT_FDCWD, c->opts.dir, 0700, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int dir = open(c->opts.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    c->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" DOOR_NAME, dir);
    if (dir < 0 || c->listen_fd < 0 ||
        bind(c->listen_fd, (const struct sockaddr *)&at, sizeof at) != 0 ||
        listen(c->listen_fd, 1) != 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create a socket in '%s'", c->opts.dir);
    }
    r = watch_new(c->loop, c->listen_fd, on_door, c, &c->listening, e);
    if (r == 0) {
        watch_set(c->listening, WATCH_READ);
    }
    return r;
}

/* --- a place --- */

static int enter(const struct proc_place *place, int control,
                 void (*on_gone)(void *arg, int status, const struct err *why), void *arg,
                 uint32_t *ret_ticket, struct err *e)
{
    struct container *c = place->arg;
    if (c->state != READY || c->ticket != 0) {
        return ERR(e, ERR_UNAVAILABLE, "%s",
                   c->state == READY ? "a program runs in this container already"
                                     : "the container does not exist");
    }
    c->ticket = ++c->last_ticket;
    int r = send_entry(c, control, e);
    if (r < 0) {
        c->ticket = 0;
        return r;
    }
    c->on_gone = on_gone;
    c->arg = arg;
    *ret_ticket = c->ticket;
    return 0;
}

static void slay(const struct proc_place *place, uint32_t ticket)
{
    struct container *c = place->arg;
    struct control_command cmd = { .type = CONTROL_SLAY, .id = ticket };
    if (ticket != 0 && ticket == c->ticket && c->control_fd >= 0) {
        (void)!control_send_command(c->control_fd, &cmd, NULL, 0, NULL);
    }
}

static void leave(const struct proc_place *place, uint32_t ticket)
{
    struct container *c = place->arg;
    if (ticket != 0 && ticket == c->ticket) {
        c->on_gone = NULL;
    }
}

static pid_t member_pid(const struct proc_place *place, uint32_t ticket)
{
    const struct container *c = place->arg;
    return ticket != 0 && ticket == c->ticket ? c->pid : 0;
}

struct proc_place container_place(struct container *c)
{
    return (struct proc_place) {
        .enter = enter,
        .kill = slay,
        .leave = leave,
        .pid = member_pid,
        .arg = c,
        .uid = geteuid(),
        .gid = getegid(),
    };
}

bool container_busy(const struct container *c)
{
    return c->ticket != 0;
}

const struct json *container_image(const struct container *c)
{
    return c->info;
}

/* --- life --- */

static void broom_ended(void *arg, int status)
{
    (void)status;
    tell_closed(arg);
}

/* Removes by name what the engine did not remove by itself. */
static void sweep(struct container *c)
{
    struct child_opts o = { .path = c->opts.engine,
                            .argv = container_args_remove(c->arena, &c->opts),
                            .envp = (char *const *)(uintptr_t)c->opts.envp,
                            .fds = (const int[]) { -1, -1, -1 },
                            .n_fds = 3,
                            .on_exit = broom_ended,
                            .arg = c };
    child_kill(c->engine, SIGKILL);
    c->engine = child_free(c->engine);
    if (child_start(c->loop, &o, &c->broom, NULL) < 0) {
        tell_closed(c);
    }
}

static void on_deadline(void *arg)
{
    struct container *c = arg;
    struct err why;
    if (c->state == CLOSING) {
        sweep(c);
        return;
    }
    (void)ERR(&why, ERR_TIMEOUT, "the container was not ready in time");
    give_up(c, FAILED, &why);
}

int container_open(struct loop *l, const struct container_opts *o, struct container **ret,
                   struct err *e)
{
    struct container *c = xcalloc(1, sizeof *c);
    c->loop = l;
    c->arena = arena_new();
    c->opts = *o;
    c->image = o->image;
    c->out_fd = c->err_fd = c->listen_fd = c->control_fd = -1;
    int r = o->init != NULL ? 0 : locate_init(c->init, e);
    if (o->init != NULL) {
        (void)snprintf(c->init, sizeof c->init, "%s", o->init);
    }
    r = r < 0 ? r : timer_new(l, on_deadline, c, &c->deadline, e);
    r = r < 0 ? r : listen_at_door(c, e);
    if (r == 0) {
        c->state = LOADING;
        r = container_image_is_file(o->image) ? command(c, container_args_load(c->arena, o), e)
                                              : look_at_image(c, e);
    }
    if (r < 0) {
        (void)container_free(c);
        return r;
    }
    timer_arm(c->deadline, clock_now() + OPEN_DEADLINE);
    *ret = c;
    return 0;
}

void container_close(struct container *c)
{
    bool starts = c->state == STARTING && c->control_fd < 0;
    c->state = CLOSING;
    if (!engine_runs(c)) {
        disconnect(c);
        loop_post(c->loop, tell_closed, c);
        return;
    }
    timer_arm(c->deadline, clock_now() + CLOSE_DEADLINE);
    if (!starts) {
        disconnect(c);
    } /* else the container is on its way, and is sent home at the door */
}

static void destroy(void *arg)
{
    struct container *c = arg;
    c->arena = arena_free(c->arena);
    free(c);
}

struct container *container_free(struct container *c)
{
    if (c == NULL || c->freed) {
        return NULL;
    }
    c->freed = true;
    c->on_gone = NULL;
    disconnect(c);
    cleanup_fd(&c->out_fd);
    cleanup_fd(&c->err_fd);
    c->deadline = timer_free(c->deadline);
    c->engine = child_free(c->engine);
    c->broom = child_free(c->broom);
    (void)!file_remove_tree(AT_FDCWD, c->opts.dir, NULL);
    loop_retire(c->loop, destroy, c);
    return NULL;
}
