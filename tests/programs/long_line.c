/* SPDX-License-Identifier: MIT
 *
 * long_line BYTES: one line of that many bytes and its newline.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char block[65536];
    size_t left = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    memset(block, 'x', sizeof block);
    while (left > 0) {
        ssize_t n = write(STDOUT_FILENO, block, left < sizeof block ? left : sizeof block);
        if (n < 0) {
            return 1;
        }
        left -= (size_t)n;
    }
    return write(STDOUT_FILENO, "\n", 1) == 1 ? 0 : 1;
}
