/* SPDX-License-Identifier: MIT
 *
 * PCG64 as its author describes it (XSL-RR), and Lemire's way to bound it without a division.
 */
#include "eval/stats_random.h"

#include <assert.h>

#define MULTIPLIER (((unsigned __int128)2549297995355413924ULL << 64) + 4865540595714422341ULL)

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

struct stats_random stats_random_seed(uint64_t seed)
{
    uint64_t word[4];
    for (int i = 0; i < 4; i++) {
        word[i] = splitmix(&seed);
    }
    return (struct stats_random) {
        .state = ((unsigned __int128)word[0] << 64) | word[1],
        .increment = (((unsigned __int128)word[2] << 64) | word[3]) | 1,
    };
}

uint64_t stats_random_next(struct stats_random *r)
{
    r->state = r->state * MULTIPLIER + r->increment;
    uint64_t mixed = (uint64_t)(r->state >> 64) ^ (uint64_t)r->state;
    unsigned turn = (unsigned)(r->state >> 122);
    return (mixed >> turn) | (mixed << (-turn & 63));
}

size_t stats_random_below(struct stats_random *r, size_t bound)
{
    assert(bound > 0);
    unsigned __int128 product = (unsigned __int128)stats_random_next(r) * bound;
    if ((uint64_t)product < bound) {
        uint64_t reject = -(uint64_t)bound % bound;
        while ((uint64_t)product < reject) {
            product = (unsigned __int128)stats_random_next(r) * bound;
        }
    }
    return (size_t)(product >> 64);
}

/* Lanes of 16 bits for small bounds, of 32 bits for others. A lane whose product falls into the
 * incomplete part of the range is skipped, which removes the bias. */
void stats_random_indices(struct stats_random *r, uint32_t *indices, size_t count, size_t bound)
{
    assert(bound > 0 && bound <= UINT32_MAX);
    unsigned bits = bound <= 4096 ? 16 : 32;
    uint64_t mask = (1ULL << bits) - 1;
    uint64_t reject = (mask + 1) % bound;
    for (size_t n = 0; n < count;) {
        uint64_t word = stats_random_next(r);
        for (unsigned shift = 0; shift < 64 && n < count; shift += bits) {
            uint64_t product = ((word >> shift) & mask) * bound;
            indices[n] = (uint32_t)(product >> bits);
            n += (product & mask) >= reject;
        }
    }
}

double stats_random_unit(struct stats_random *r)
{
    return (double)(stats_random_next(r) >> 11) * 0x1p-53;
}
