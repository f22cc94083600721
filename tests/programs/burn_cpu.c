/* SPDX-License-Identifier: MIT
 *
 * burn_cpu MILLISECONDS [child]: uses that much CPU time (in a child that it waits for), then waits
 * for end of file on stdin.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void burn(long ms)
{
    struct timespec t;
    do {
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

int main(int argc, char **argv)
{
    long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
    if (argc > 2) {
        if (fork() == 0) {
            burn(ms);
            _exit(0);
        }
        (void)wait(NULL);
    } else {
        burn(ms);
    }
    (void)!write(STDOUT_FILENO, "burnt\n", 6);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}
