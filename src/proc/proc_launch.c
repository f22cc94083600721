/* SPDX-License-Identifier: MIT
 *
 * From options to a running cinch-init: plan, pipes, control socket. The start command is in the
 * socket before cinch-init exists, so nothing has to wait for it.
 */
#include "proc/proc_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "init/plan.h"
#include "io/reader.h"
#include "io/watch.h"
#include "io/writer.h"
#include "proc/locate.h"
#include "proc/which.h"

/* What an unprivileged user may have (fs.pipe-max-size). A larger pipe means fewer, larger reads:
 * with the default of 64 KiB capturing a flood takes about twice as long. */
#define PIPE_BYTES (1 << 20)

/* The descriptors of a launch. Ours move into p, theirs travel to cinch-init; all are closed here.
 */
struct ends {
    int theirs[3]; /* stdin, stdout, stderr of the program */
    int ours[3];
    int control[2]; /* ours, theirs */
    int plan;
};

static void cleanup_ends(struct ends *x)
{
    for (int i = 0; i < 3; i++) {
        cleanup_fd(&x->theirs[i]);
        cleanup_fd(&x->ours[i]);
    }
    cleanup_fd(&x->control[0]);
    cleanup_fd(&x->control[1]);
    cleanup_fd(&x->plan);
}

static int add_texts(struct buf *b, enum plan_op op, const char *const *texts, struct err *e)
{
    int rc = 0;
    for (; rc == 0 && texts != NULL && *texts != NULL; texts++) {
        rc = plan_add_text(b, op, *texts, e);
    }
    return rc;
}

static int add_limits(struct buf *b, const struct proc_opts *o, struct err *e)
{
    /* A core file may hold the environment, hence secrets. Options come later and win. */
    int rc = plan_add_limit(b, RLIMIT_CORE, 0, 0, e);
    for (size_t i = 0; rc == 0 && i < o->n_limits; i++) {
        rc = plan_add_limit(b, (uint32_t)o->limits[i].resource, o->limits[i].soft,
                            o->limits[i].hard, e);
    }
    return rc;
}

static int write_plan(struct buf *b, const struct proc_opts *o, const char *exe, const char *cwd,
                      struct err *e)
{
    int rc = plan_begin(b, PLAN_PROGRAM, e);
    for (uint32_t i = 0; rc == 0 && i < 3; i++) {
        rc = plan_add_fd(b, i, i, e);
    }
    if (rc == 0 && cwd != NULL) {
        rc = plan_add_text(b, PLAN_OP_CWD, cwd, e);
    }
    if (rc == 0 && o->set_umask) {
        rc = plan_add_umask(b, o->umask, e);
    }
    rc = rc < 0 ? rc : add_limits(b, o, e);
    rc = rc < 0 ? rc : plan_add_text(b, PLAN_OP_EXE, exe, e);
    rc = rc < 0 ? rc : add_texts(b, PLAN_OP_ARG, o->argv, e);
    rc = rc < 0 ? rc : add_texts(b, PLAN_OP_ENV, o->envp, e);
    return rc < 0 ? rc : plan_end(b, e);
}

/* Not path_absolute(): it folds "..", which means something else behind a symbolic link. */
static int absolute(const char *path, char out[PATH_MAX], struct err *e)
{
    char here[PATH_MAX] = "";
    if (path[0] != '/' && getcwd(here, sizeof here) == NULL) {
        return ERR_SYS(e, "find the current directory");
    }
    return path_join(here, path, out, PATH_MAX, e);
}

/* Resolves program and directory, and writes the plan. */
static int make_plan(const struct proc_opts *o, int *ret_fd, struct err *e)
{
    char cwd[PATH_MAX];
    char exe[PATH_MAX];
    int rc = o->cwd == NULL ? 0 : absolute(o->cwd, cwd, e);
    const char *dir = o->cwd == NULL ? NULL : cwd;
    bool here = o->place == NULL; /* what is elsewhere is looked for there */
    if (rc == 0 && here && dir != NULL && !file_is_dir(AT_FDCWD, dir)) {
        rc = ERR(e, ERR_INPUT, "the working directory '%s' does not exist", dir);
    }
    if (rc == 0) {
        rc = o->path != NULL ? path_join(dir == NULL ? "" : dir, o->path, exe, sizeof exe, e)
                             : which_find(o->argv[0], which_path(o->envp), dir, exe, e);
    }
    if (rc < 0) {
        return rc;
    }
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    rc = write_plan(&b, o, exe, dir, e);
    return rc < 0 ? rc : plan_seal(buf_str(&b), ret_fd, e);
}

static int make_pipe(int *ret_read, int *ret_write, struct err *e)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return ERR_SYS(e, "create a pipe");
    }
    (void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_BYTES); /* may be refused; then it is just slower */
    *ret_read = fds[0];
    *ret_write = fds[1];
    return 0;
}

static int open_stdin(const struct proc_opts *o, struct ends *x, struct err *e)
{
    switch (o->stdin_mode) {
    case PROC_STDIN_BYTES:
    case PROC_STDIN_PIPE:
        return make_pipe(&x->theirs[0], &x->ours[0], e);
    case PROC_STDIN_FD:
        x->theirs[0] = fcntl(o->stdin_fd, F_DUPFD_CLOEXEC, 0);
        return x->theirs[0] < 0 ? ERR_SYS(e, "standard input of the program") : 0;
    case PROC_STDIN_CLOSED:
        break;
    }
    x->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return x->theirs[0] < 0 ? ERR_SYS(e, "open '/dev/null'") : 0;
}

static int make_ends(const struct proc_opts *o, struct ends *x, struct err *e)
{
    int rc = open_stdin(o, x, e);
    for (int i = 1; rc == 0 && i <= 2; i++) {
        rc = make_pipe(&x->ours[i], &x->theirs[i], e);
    }
    if (rc == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, x->control) != 0) {
        rc = ERR_SYS(e, "create the control socket");
    }
    return rc;
}

/* A program that is somebody else must still be able to open /dev/stdout, which is its pipe. */
static int give_ends(const struct proc_opts *o, const struct ends *x, struct err *e)
{
    if (o->place == NULL || o->place->uid == geteuid()) {
        return 0;
    }
    for (int i = o->stdin_mode == PROC_STDIN_FD || o->stdin_mode == PROC_STDIN_CLOSED; i < 3; i++) {
        if (fchown(x->theirs[i], o->place->uid, o->place->gid) != 0) {
            return ERR_SYS(e, "give descriptor %d to the program", i);
        }
    }
    return 0;
}

static int attach_stdin(struct proc *p, const struct proc_opts *o, struct ends *x, struct err *e)
{
    bool bytes = o->stdin_mode == PROC_STDIN_BYTES;
    struct writer_opts wo = {
        .max = bytes ? o->stdin_bytes.len + 1 : o->stdin_max,
        .port = { .on_drained = bytes ? NULL : proc_on_stdin_drained,
                  .on_end = proc_on_stdin_end,
                  .arg = p },
    };
    int rc = writer_new(p->loop, x->ours[0], &wo, &p->in, e);
    if (rc < 0) {
        return rc;
    }
    x->ours[0] = -1;
    if (bytes) {
        rc = writer_write(p->in, o->stdin_bytes, e);
        writer_close(p->in);
    }
    return rc;
}

static int attach(struct proc *p, const struct proc_opts *o, struct ends *x, struct err *e)
{
    static const struct reader_port ports[PROC_STREAM_MAX] = {
        [PROC_STDOUT] = { proc_on_stdout, proc_on_stdout_end, NULL },
        [PROC_STDERR] = { proc_on_stderr, proc_on_stderr_end, NULL },
    };
    for (int i = 0; i < PROC_STREAM_MAX; i++) {
        struct reader_port port = ports[i];
        port.arg = p;
        int rc = reader_new(p->loop, x->ours[1 + i], &port, &p->readers[i], e);
        if (rc < 0) {
            return rc;
        }
        x->ours[1 + i] = -1;
        reader_pause(p->readers[i]);
        p->open_streams++;
    }
    int rc = watch_new(p->loop, x->control[0], proc_on_control, p, &p->control, e);
    if (rc < 0) {
        return rc;
    }
    p->control_fd = TAKE_FD(x->control[0]);
    watch_set(p->control, WATCH_READ);
    return x->ours[0] < 0 ? 0 : attach_stdin(p, o, x, e);
}

static int send_start(const struct ends *x, struct err *e)
{
    const int fds[] = { x->plan, x->theirs[0], x->theirs[1], x->theirs[2] };
    struct control_command c = { .type = CONTROL_START, .id = 1 };
    return control_send_command(x->control[0], &c, fds, ARRAY_LEN(fds), e);
}

int proc_launch(struct proc *p, const struct proc_opts *o, struct err *e)
{
    char init[PATH_MAX];
    CLEANUP(ends) struct ends x = { { -1, -1, -1 }, { -1, -1, -1 }, { -1, -1 }, -1 };
    int rc = o->init == NULL && !p->placed ? locate_init_kept(init, e) : 0;
    rc = rc < 0 ? rc : make_plan(o, &x.plan, e);
    rc = rc < 0 ? rc : make_ends(o, &x, e);
    rc = rc < 0 ? rc : give_ends(o, &x, e);
    rc = rc < 0 ? rc : send_start(&x, e);
    rc = rc < 0 ? rc : attach(p, o, &x, e);
    return rc < 0 ? rc : proc_keeper_start(p, o->init == NULL ? init : o->init, x.control[1], e);
}
