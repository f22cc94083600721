/* SPDX-License-Identifier: MIT
 *
 * The program: standard descriptors in order, then the command line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

/* Started with a closed stdin, stdout or stderr, the next open() would take its number, and a log
 * file would receive our messages. A closed one is filled with something that fails when used:
 * /dev/null opened for the other direction. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
            if (got != fd) {
                abort(); /* lower numbers are taken, so only a system without /dev/null gets here */
            }
        }
    }
}

int main(int argc, char **argv)
{
    fill_standard_descriptors();
    CLEANUP(arena) struct arena *arena = arena_new();
    struct cli cli = { .arena = arena };
    terminal_init(&cli.out, stdout, TERMINAL_COLOR_AUTO);
    terminal_init(&cli.err, stderr, TERMINAL_COLOR_AUTO);
    return cli_main(&cli, argc, (const char *const *)argv);
}
