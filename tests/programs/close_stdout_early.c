/* SPDX-License-Identifier: MIT
 *
 * close_stdout_early CODE: closes stdout and stderr, goes on for a while, exits with CODE.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    (void)!write(STDOUT_FILENO, "bye\n", 4);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    (void)nanosleep(&(struct timespec) { .tv_nsec = 100000000 }, NULL);
    return argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
}
