/* SPDX-License-Identifier: MIT
 *
 * fork_tree DEPTH WIDTH: a tree of waiting processes below this one; prints "ready" when all exist.
 * Odd levels start their own session.
 */
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static void grow(int depth, int width, int ready)
{
    for (int i = 0; depth > 0 && i < width; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (depth % 2 == 1) {
                (void)setsid();
            }
            (void)!write(ready, "x", 1);
            grow(depth - 1, width, ready);
            (void)close(ready);
            for (;;) {
                (void)pause();
            }
        }
    }
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 2;
    int width = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2;
    int fds[2];
    if (pipe(fds) != 0) {
        return 1;
    }
    grow(depth, width, fds[1]);
    (void)close(fds[1]);
    char byte;
    while (read(fds[0], &byte, 1) > 0) {
    }
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;) {
        (void)pause();
    }
}
