/* SPDX-License-Identifier: MIT
 *
 * Starting and reaping processes. The loop keeps a list of those that are not reaped yet, so that a
 * child whose owner is gone does not become a zombie, and so that orphans which this process
 * adopts as a subreaper can be told from its own children.
 */
#include "io/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "io/loop_priv.h"
#include "io/watch.h"

struct child {
    struct loop *loop;
    struct child *next;
    struct watch *watch;
    int pid_fd;
    pid_t pid;
    bool exited;
    bool freed; /* by its owner; waits for its end in the loop's list */
    void (*on_exit)(void *arg, int status);
    void *arg;
};

static void unlink_child(struct child *c)
{
    for (struct child **at = &c->loop->children; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            return;
        }
    }
}

static void on_pidfd(void *arg, unsigned events)
{
    (void)events;
    struct child *c = arg;
    siginfo_t si = { 0 };
    if (waitid(P_PIDFD, (id_t)c->pid_fd, &si, WEXITED | WNOHANG) == 0 && si.si_pid == 0) {
        return; /* not yet */
    }
    int status =
        si.si_code == CLD_EXITED ? W_EXITCODE(si.si_status, 0) : W_EXITCODE(0, si.si_status);
    c->exited = true;
    c->watch = watch_free(c->watch);
    cleanup_fd(&c->pid_fd);
    unlink_child(c);
    if (c->freed) {
        loop_retire(c->loop, free, c);
    } else {
        c->on_exit(c->arg, status);
    }
}

/* The file actions run in order, each on the table as the ones before left it. Sources below n_fds
 * would be overwritten before their turn, so those are moved up first; `moved` are ours to close.
 */
static int lift(const struct child_opts *o, int sources[CHILD_FDS_MAX], int moved[CHILD_FDS_MAX],
                struct err *e)
{
    for (size_t i = 0; i < o->n_fds; i++) {
        sources[i] = o->fds[i];
        moved[i] = -1;
        if (sources[i] >= 0 && (size_t)sources[i] < CHILD_FDS_MAX) {
            moved[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, CHILD_FDS_MAX);
            if (moved[i] < 0) {
                return ERR_SYS(e, "duplicate a descriptor");
            }
            sources[i] = moved[i];
        }
    }
    return 0;
}

static int add_files(posix_spawn_file_actions_t *fa, const int *sources, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int rc = sources[i] >= 0
                     ? posix_spawn_file_actions_adddup2(fa, sources[i], (int)i)
                     : posix_spawn_file_actions_addopen(fa, (int)i, "/dev/null", O_RDWR, 0);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int add_attributes(posix_spawnattr_t *at)
{
    sigset_t all;
    sigset_t none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    int rc = posix_spawnattr_setsigdefault(at, &all);
    if (rc == 0) {
        rc = posix_spawnattr_setsigmask(at, &none);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setflags(at, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSID);
    }
    return rc;
}

static int spawn(const struct child_opts *o, const int *sources, pid_t *ret, struct err *e)
{
    char *const nothing[] = { NULL };
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    int rc = posix_spawn_file_actions_init(&fa);
    if (rc == 0) {
        rc = posix_spawnattr_init(&at);
        if (rc == 0) {
            rc = add_files(&fa, sources, o->n_fds);
            rc = rc != 0 ? rc : add_attributes(&at);
            rc = rc != 0 ? rc
                         : posix_spawn(ret, o->path, &fa, &at, o->argv,
                                       o->envp == NULL ? nothing : o->envp);
            (void)posix_spawnattr_destroy(&at);
        }
        (void)posix_spawn_file_actions_destroy(&fa);
    }
    if (rc != 0) {
        errno = rc;
        return ERR_SYS_AS(e,
                          rc == ENOENT   ? ERR_NOTFOUND
                          : rc == EACCES ? ERR_NOEXEC
                                         : ERR_SYS,
                          "start '%s'", o->path);
    }
    return 0;
}

/* With SIGCHLD ignored, which can be inherited, the kernel would reap children behind our back. */
static void heed_children(void)
{
    struct sigaction now;
    struct sigaction dfl = { .sa_handler = SIG_DFL };
    if (sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_IGN) {
        (void)sigaction(SIGCHLD, &dfl, NULL);
    }
}

static int watch_child(struct loop *l, pid_t pid, struct child *c, struct err *e)
{
    c->pid_fd = pidfd_open(pid, 0);
    if (c->pid_fd < 0) {
        return ERR_SYS(e, "pidfd_open");
    }
    (void)fcntl(c->pid_fd, F_SETFD, FD_CLOEXEC);
    return watch_new(l, c->pid_fd, on_pidfd, c, &c->watch, e);
}

int child_start(struct loop *l, const struct child_opts *o, struct child **ret, struct err *e)
{
    if (o->n_fds > CHILD_FDS_MAX) {
        return ERR(e, ERR_BUG, "%zu descriptors for a child", o->n_fds);
    }
    heed_children();
    int sources[CHILD_FDS_MAX] = { 0 };
    int moved[CHILD_FDS_MAX] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    pid_t pid = 0;
    int rc = lift(o, sources, moved, e);
    if (rc == 0) {
        rc = spawn(o, sources, &pid, e);
    }
    for (size_t i = 0; i < CHILD_FDS_MAX; i++) {
        cleanup_fd(&moved[i]);
    }
    if (rc < 0) {
        return rc;
    }
    struct child *c = xcalloc(1, sizeof *c);
    *c = (struct child) { .loop = l, .pid = pid, .on_exit = o->on_exit, .arg = o->arg };
    rc = watch_child(l, pid, c, e);
    if (rc < 0) {
        /* Out of descriptors. It was started for nothing; it dies at once, so this does not block.
         */
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        cleanup_fd(&c->pid_fd);
        free(c);
        return rc;
    }
    watch_set(c->watch, WATCH_READ);
    c->next = l->children;
    l->children = c;
    LOG_DEBUG("io", "child_started", LOG_INT("pid", pid), LOG_STR("path", o->path));
    *ret = c;
    return 0;
}

struct child *child_free(struct child *c)
{
    if (c == NULL) {
        return NULL;
    }
    if (c->exited) {
        loop_retire(c->loop, free, c);
    } else {
        c->freed = true;
        watch_unref(c->watch);
    }
    return NULL;
}

void child_abandon_all(struct loop *l)
{
    while (l->children != NULL) {
        struct child *c = l->children;
        l->children = c->next;
        (void)watch_free(c->watch);
        cleanup_fd(&c->pid_fd);
        if (c->freed) {
            free(c);
        }
    }
}

pid_t child_pid(const struct child *c)
{
    return c->pid;
}

bool child_exited(const struct child *c)
{
    return c->exited;
}

void child_kill(struct child *c, int signo)
{
    if (!c->exited) {
        (void)pidfd_send_signal(c->pid_fd, signo, NULL, 0);
    }
}

bool child_known(const struct loop *l, pid_t pid)
{
    for (const struct child *c = l->children; c != NULL; c = c->next) {
        if (c->pid == pid) {
            return true;
        }
    }
    return false;
}
