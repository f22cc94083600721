/* SPDX-License-Identifier: MIT
 *
 * UUID version 7: 48 bits of milliseconds, then randomness, so that names sort by time of birth.
 */
#include "base/id.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"

char *id_new(char out[ID_LEN])
{
    uint8_t b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b) {
        (void)fprintf(stderr, "cinch: the kernel gives no random bytes\n");
        abort();
    }
    uint64_t ms = (uint64_t)(clock_wall() / NSEC_PER_MS);
    for (int i = 0; i < 6; i++) {
        b[i] = (uint8_t)(ms >> (8 * (5 - i)));
    }
    b[6] = (uint8_t)(0x70 | (b[6] & 0x0f));
    b[8] = (uint8_t)(0x80 | (b[8] & 0x3f));
    (void)snprintf(out, ID_LEN,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
    return out;
}
