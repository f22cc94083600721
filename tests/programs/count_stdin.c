/* SPDX-License-Identifier: MIT
 *
 * Reads stdin to its end and prints how many bytes came and the sum of them.
 */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    static unsigned char block[65536];
    unsigned long long bytes = 0;
    unsigned long long sum = 0;
    ssize_t n;
    while ((n = read(STDIN_FILENO, block, sizeof block)) > 0) {
        bytes += (unsigned long long)n;
        for (ssize_t i = 0; i < n; i++) {
            sum += block[i];
        }
    }
    (void)printf("%llu %llu\n", bytes, sum);
    return n == 0 ? 0 : 1;
}
