/* SPDX-License-Identifier: MIT
 *
 * without WHAT,... PROGRAM [ARGUMENT...]: starts a program on a machine that lacks something
 * (refuse.h).
 */
#include "refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: without WHAT,... PROGRAM [ARGUMENT...]\n");
        return 64;
    }
    for (char *rest = argv[1]; rest != NULL;) {
        char *what = strsep(&rest, ",");
        if (refuse(what) < 0) {
            perror(what);
            return 70;
        }
    }
    (void)execv(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
