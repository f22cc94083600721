/* SPDX-License-Identifier: MIT
 *
 * A child with one pipe, watched with poll(2). Small questions only: runs go through proc.
 */
#include "proc/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn(const char *const *argv, int out_fd, pid_t *ret_pid, struct err *e)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all;
    sigset_t none;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, out_fd, 1);
    (void)posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
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

/* Until the pipe is closed or the time is over; false for the latter. */
static bool drain(int fd, nsec deadline, struct buf *out)
{
    for (;;) {
        char chunk[4096];
        nsec left = deadline - clock_now();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int ready = left <= 0 ? 0 : poll(&p, 1, (int)(left / NSEC_PER_MS) + 1);
        if (ready == 0) {
            return false;
        }
        ssize_t n = ready < 0 ? -1 : read(fd, chunk, sizeof chunk);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return true;
        }
        if (n > 0) {
            (void)!buf_append(out, str_n(chunk, (size_t)n), NULL);
        }
    }
}

/* A program may close its output long before it ends. */
static bool wait_for_end(pid_t pid, nsec deadline)
{
    CLEANUP(fd) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = { .fd = pidfd, .events = POLLIN };
    for (nsec left = deadline - clock_now(); pidfd >= 0 && left > 0;
         left = deadline - clock_now()) {
        int ready = poll(&p, 1, (int)(left / NSEC_PER_MS) + 1);
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            return ready > 0;
        }
    }
    return false;
}

int probe_program(const char *const *argv, nsec timeout, struct buf *ret_output, struct err *e)
{
    int fds[2];
    pid_t pid;
    nsec deadline = clock_now() + timeout;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return ERR_SYS(e, "make a pipe");
    }
    CLEANUP(fd) int read_fd = fds[0];
    CLEANUP(fd) int write_fd = fds[1];
    int r = spawn(argv, write_fd, &pid, e);
    if (r < 0) {
        return r;
    }
    cleanup_fd(&write_fd);
    bool ended = drain(read_fd, deadline, ret_output) && wait_for_end(pid, deadline);
    /* Not yet reaped, so the group's number still belongs to it. */
    (void)kill(-pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!ended) {
        return ERR(e, ERR_TIMEOUT, "'%s' gave no answer in %d s", argv[0],
                   (int)(timeout / NSEC_PER_SEC));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
