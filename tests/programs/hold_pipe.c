/* SPDX-License-Identifier: MIT
 *
 * hold_pipe MILLISECONDS: exits 3 at once, but leaves a child that keeps stdout and stderr open for
 * that long, writes "late\n" and ends; 0 means for ever.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    (void)!write(STDOUT_FILENO, "early\n", 6);
    if (fork() != 0) {
        return 3;
    }
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 };
    while (ms == 0) {
        (void)pause();
    }
    (void)nanosleep(&t, NULL);
    (void)!write(STDOUT_FILENO, "late\n", 5);
    return 0;
}
