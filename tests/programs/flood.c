/* SPDX-License-Identifier: MIT
 *
 * flood BYTES [stderr]: writes that many bytes, as fast as they are taken. Byte n of the stream is
 * 'a' + n % 23, so that loss and reordering show.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (23 * 4096)

int main(int argc, char **argv)
{
    static char block[BLOCK];
    size_t left = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    int fd = argc > 2 && strcmp(argv[2], "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO;
    size_t at = 0;
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = (char)('a' + i % 23);
    }
    while (left > 0) {
        size_t want = sizeof block - at < left ? sizeof block - at : left;
        ssize_t n = write(fd, block + at, want);
        if (n < 0) {
            return 1;
        }
        left -= (size_t)n;
        at = (at + (size_t)n) % sizeof block;
    }
    return 0;
}
