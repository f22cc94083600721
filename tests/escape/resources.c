/* SPDX-License-Identifier: MIT
 *
 * Ways to take the machine down with the sandbox. Each takes the limit that was asked for and gets
 * out when it can go well beyond it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"

/* fork LIMIT: at most LIMIT processes at once; tries half as many again. */
static enum verdict fork_bomb(char **args)
{
    long limit = strtol(args[0], NULL, 10);
    long wanted = limit + limit / 2 + 16;
    long made = 0;
    int why = 0;
    for (; made < wanted; made++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) {
                (void)pause();
            }
        }
        if (pid < 0) {
            why = errno;
            break;
        }
    }
    return made == wanted ? escaped("%ld processes with a limit of %ld", made, limit)
                          : held("%ld processes, then: %s", made, strerror(why));
}

/* memory MIB: touches twice as much, in a child, since the answer may be SIGKILL. */
static enum verdict memory_bomb(char **args)
{
    size_t size = (size_t)strtol(args[0], NULL, 10) * 2 << 20;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            _exit(0);
        }
        memset(p, 1, size);
        _exit(ESCAPED);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return held_errno("fork");
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED
               ? escaped("touched %zu MiB with a limit of %s", size >> 20, args[0])
               : held("ended with status %d", status);
}

/* disk PATH MIB: writes half as much again into PATH, then removes it. */
static enum verdict disk_fill(char **args)
{
    long limit = strtol(args[1], NULL, 10);
    int fd = open(args[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return held_errno(args[0]);
    }
    static char block[1 << 20];
    memset(block, 1, sizeof(block));
    long written = 0;
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void)sigaction(SIGXFSZ, &ignore, NULL);
    while (written < limit + limit / 2 && write(fd, block, sizeof(block)) == sizeof(block)) {
        written++;
    }
    int why = errno;
    (void)close(fd);
    (void)unlink(args[0]);
    return written >= limit + limit / 2 ? escaped("%ld MiB with a limit of %ld", written, limit)
                                        : held("%ld MiB, then: %s", written, strerror(why));
}

const struct attempt resource_attempts[] = {
    { "fork", "LIMIT", 1, fork_bomb },
    { "memory", "MIB", 1, memory_bomb },
    { "disk", "PATH MIB", 2, disk_fill },
    { NULL, NULL, 0, NULL },
};
