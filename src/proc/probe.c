/* SPDX-License-Identifier: MIT
 *
 * A child with two pipes, watched with poll(2). Small questions only: runs go through proc.
 */
#include "proc/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn(const char *const *argv, int out_fd, int err_fd, pid_t *ret_pid, struct err *e)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all;
    sigset_t none;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, out_fd, 1);
    (void)posix_spawn_file_actions_adddup2(&files, err_fd, 2);
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    /* A group of its own: the kill reaches what the program may have started. */
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETPGROUP);
    errno = posix_spawn(ret_pid, argv[0], &files, &attributes, (char *const *)argv, environ);
    int failed = errno;
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    errno = failed;
    if (failed != 0) {
        enum err_code code = failed == ENOENT   ? ERR_NOTFOUND
                             : failed == EACCES ? ERR_NOEXEC
                                                : ERR_SYS;
        return ERR_SYS_AS(e, code, "start '%s'", argv[0]);
    }
    return 0;
}

/* --- signals --- */

/* Those that would end us, but not what is ignored: nobody waits for that. */
static void signals_of_ours(sigset_t *ret)
{
    static const int signals[] = { SIGINT, SIGTERM };
    (void)sigemptyset(ret);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
            (void)sigaddset(ret, signals[i]);
        }
    }
}

/* --- the talk --- */

enum { FD_OUT, FD_ERR, FD_END, FD_SIGNAL, FDS };

enum talk_end { TALK_ENDED, TALK_TIMEOUT, TALK_SIGNAL, TALK_FAILED };

struct talk {
    struct pollfd fds[FDS]; /* -1: closed, or has happened */
    struct buf *output, *errors;
};

/* Of an answer the first words count: what fits of them, also where more came with them. */
static void keep_begin(struct buf *b, struct str more)
{
    (void)!buf_append(b, str_slice(more, 0, b->max - b->len), NULL);
}

/* Of errors the last words count. */
static void keep_end(struct buf *b, struct str more)
{
    more = more.len > b->max ? str_slice(more, more.len - b->max, more.len) : more;
    if (b->len + more.len > b->max) {
        buf_consume(b, b->len + more.len - b->max);
    }
    (void)!buf_append(b, more, NULL);
}

/* How much there was: 0 at the end, and when there is nothing for now. */
static size_t take(struct talk *t, int which)
{
    char chunk[4096];
    ssize_t n = read(t->fds[which].fd, chunk, sizeof chunk);
    if (n > 0 && which == FD_OUT) {
        keep_begin(t->output, str_n(chunk, (size_t)n));
    } else if (n > 0 && t->errors != NULL) {
        keep_end(t->errors, str_n(chunk, (size_t)n));
    }
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        t->fds[which].fd = -1;
    }
    return n > 0 ? (size_t)n : 0;
}

/* What it said before it ended. Not more: something that it left behind may go on writing. */
static void take_rest(struct talk *t, int which)
{
    int left = 0;
    if (t->fds[which].fd < 0 || ioctl(t->fds[which].fd, FIONREAD, &left) != 0) {
        return;
    }
    for (size_t n = 1; left > 0 && n > 0; left -= (int)n) {
        n = take(t, which);
    }
}

/* Until it has ended. The end of what it says may come long before, or long after, when something
 * that it left behind holds the pipe. */
static enum talk_end hear(struct talk *t, nsec deadline)
{
    while (t->fds[FD_END].fd >= 0) {
        nsec left = deadline - clock_now();
        int ready = left <= 0 ? 0 : poll(t->fds, FDS, (int)(left / NSEC_PER_MS) + 1);
        if (ready == 0) {
            return TALK_TIMEOUT;
        }
        if (ready < 0 && errno != EINTR) {
            return TALK_FAILED;
        }
        if (ready < 0) {
            continue;
        }
        if (t->fds[FD_SIGNAL].revents != 0) {
            return TALK_SIGNAL;
        }
        for (int i = FD_OUT; i <= FD_ERR; i++) {
            if (t->fds[i].revents != 0) {
                (void)take(t, i);
            }
        }
        if (t->fds[FD_END].revents != 0) {
            t->fds[FD_END].fd = -1;
        }
    }
    take_rest(t, FD_OUT);
    take_rest(t, FD_ERR);
    return TALK_ENDED;
}

static int reap(pid_t pid)
{
    int status = 0;
    /* Not yet reaped, so the group's number still belongs to it. */
    (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int talk(const char *const *argv, nsec timeout, int signals, struct talk *t, struct err *e)
{
    int out[2];
    int err[2];
    pid_t pid;
    nsec deadline = clock_now() + timeout;
    if (pipe2(out, O_CLOEXEC) != 0) {
        return ERR_SYS(e, "make a pipe");
    }
    CLEANUP(fd) int out_read = out[0];
    CLEANUP(fd) int out_write = out[1];
    if (pipe2(err, O_CLOEXEC) != 0) {
        return ERR_SYS(e, "make a pipe");
    }
    CLEANUP(fd) int err_read = err[0];
    CLEANUP(fd) int err_write = err[1];
    int r = spawn(argv, out_write, err_write, &pid, e);
    if (r < 0) {
        return r;
    }
    cleanup_fd(&out_write);
    cleanup_fd(&err_write);
    (void)fcntl(out_read, F_SETFL, O_NONBLOCK);
    (void)fcntl(err_read, F_SETFL, O_NONBLOCK);
    CLEANUP(fd) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    const int fds[FDS] = { out_read, err_read, pidfd, signals };
    for (int i = 0; i < FDS; i++) {
        t->fds[i] = (struct pollfd) { .fd = fds[i], .events = POLLIN };
    }
    enum talk_end end = pidfd < 0 ? TALK_FAILED : hear(t, deadline);
    int failed = errno;
    int status = reap(pid);
    switch (end) {
    case TALK_TIMEOUT:
        return ERR(e, ERR_TIMEOUT, "'%s' did not answer within %d s", argv[0],
                   (int)(timeout / NSEC_PER_SEC));
    case TALK_SIGNAL:
        return ERR(e, ERR_CANCELLED, "interrupted");
    case TALK_FAILED:
        errno = failed;
        return ERR_SYS(e, "watch '%s'", argv[0]);
    case TALK_ENDED:
        break;
    }
    return status;
}

int probe_program(const char *const *argv, nsec timeout, struct buf *ret_output,
                  struct buf *ret_errors, struct err *e)
{
    struct talk t = { .output = ret_output, .errors = ret_errors };
    sigset_t ours;
    sigset_t before;
    signals_of_ours(&ours);
    /* Held back until the program is gone: the descriptor tells of them, and takes none. */
    (void)sigprocmask(SIG_BLOCK, &ours, &before);
    CLEANUP(fd) int signals = signalfd(-1, &ours, SFD_CLOEXEC);
    int r = talk(argv, timeout, signals, &t, e);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}
