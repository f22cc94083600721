/* SPDX-License-Identifier: MIT
 *
 * daemonize [hold]: leaves a daemon behind (double fork, own session, SIGTERM ignored) and exits 0
 * once it is up. With `hold` the daemon keeps stdout and stderr, else it drops them. Prints its
 * pid.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void be_daemon(int ready, int hold)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void)sigaction(SIGTERM, &ignore, NULL);
    (void)sigaction(SIGHUP, &ignore, NULL);
    (void)printf("%d\n", (int)getpid());
    (void)fflush(stdout);
    if (!hold) {
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
    }
    (void)close(ready);
    for (;;) {
        (void)pause();
    }
}

int main(int argc, char **argv)
{
    int hold = argc > 1 && strcmp(argv[1], "hold") == 0;
    int fds[2];
    if (pipe(fds) != 0) {
        return 1;
    }
    if (fork() == 0) {
        (void)close(fds[0]);
        (void)setsid();
        if (fork() == 0) {
            be_daemon(fds[1], hold);
        }
        _exit(0);
    }
    (void)close(fds[1]);
    char byte;
    return read(fds[0], &byte, 1) == 0 ? 0 : 1;
}
