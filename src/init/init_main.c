/* SPDX-License-Identifier: MIT
 *
 * cinch-init: the keeper of one process tree, or ("hold") the holder of a sandbox. Started by cinch
 * with one end of a socket pair as descriptor 3; see init/keeper.h and init/holder.h for what it
 * does and init/control.h for what it is told. In a container ("door") it is started by somebody
 * else and finds cinch by a socket in the file system; see init/inner_listener.h.
 *
 * Its death must not depend on anything but that socket, so it is its own session, ignores every
 * signal that can be ignored and holds no other descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "init/control.h"
#include "init/holder.h"
#include "init/inner_listener.h"
#include "init/keeper.h"

static void say(int fd, const char *text)
{
    (void)!write(fd, text, strlen(text));
}

static void ignore_signals(void)
{
    for (int signo = 1; signo < NSIG; signo++) {
        /* Faults must stay fatal: ignoring them is undefined, and the control socket's end tells
         * cinch. */
        if (signo != SIGCHLD && signo != SIGSEGV && signo != SIGBUS && signo != SIGILL &&
            signo != SIGFPE && signo != SIGABRT && signo != SIGSYS && signo != SIGTRAP) {
            struct sigaction ignore = { .sa_handler = SIG_IGN };
            (void)sigaction(signo, &ignore, NULL);
        }
    }
    sigset_t chld;
    (void)sigemptyset(&chld);
    (void)sigaddset(&chld, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &chld, NULL);
    struct sigaction dfl = { .sa_handler = SIG_DFL };
    (void)sigaction(SIGCHLD, &dfl, NULL); /* inherited SIG_IGN would reap behind our back */
}

static int set_up(struct err *e)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return ERR_SYS(e, "become a child subreaper");
    }
    (void)prctl(PR_SET_NAME, "cinch-init"); /* it may have been executed by a descriptor */
    ignore_signals();
    (void)setsid(); /* fails when posix_spawn() did it already */
    if (close_range(CONTROL_FD + 1, ~0u, 0) != 0 || fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC) != 0) {
        return ERR_SYS(e, "set up descriptors");
    }
    return 0;
}

/* What a program of root's mounts goes with it, also without a sandbox; what is mounted outside
 * meanwhile is still seen. Who may not have that has no right to mount anything either. */
static void part_mounts(void)
{
    if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0) {
        (void)mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
    }
}

static int is_control_socket(int fd)
{
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        say(STDOUT_FILENO, "cinch-init " CINCH_VERSION "\n");
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "exec") == 0) {
        return inner_listener_exec(argv + 2);
    }
    bool door = argc == 2 && strcmp(argv[1], "door") == 0;
    if (door && inner_listener_connect() < 0) {
        say(STDERR_FILENO, "cinch-init: nobody is waiting for this container\n");
        return 69;
    }
    if (!is_control_socket(CONTROL_FD)) {
        say(STDERR_FILENO, "cinch-init is started by cinch; by itself it does nothing\n");
        return 64;
    }
    struct err e;
    int rc = set_up(&e);
    if (rc == 0) {
        bool hold = door || (argc == 2 && strcmp(argv[1], "hold") == 0);
        if (!hold) {
            part_mounts();
        }
        rc = hold ? holder_run(CONTROL_FD, door, &e) : keeper_run(CONTROL_FD, NULL, &e);
    }
    if (rc < 0) {
        struct control_status s;
        memset(&s, 0, sizeof s);
        s.type = CONTROL_STATUS_ERROR;
        control_err_from(&s.error, &e);
        (void)!control_send_status(CONTROL_FD, &s, NULL);
    }
    return rc < 0 ? 70 : 0;
}
