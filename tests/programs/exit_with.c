/* SPDX-License-Identifier: MIT
 *
 * exit_with CODE | exit_with signal N: ends in that way.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "signal") == 0) {
        int signo = (int)strtol(argv[2], NULL, 10);
        /* A sanitizer may have a handler of its own. */
        (void)sigaction(signo, &(struct sigaction) { .sa_handler = SIG_DFL }, NULL);
        (void)kill(getpid(), signo);
        (void)pause();
    }
    return argc == 2 ? (int)strtol(argv[1], NULL, 10) : 2;
}
