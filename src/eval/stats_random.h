/* SPDX-License-Identifier: MIT
 *
 * struct stats_random: the generator behind every resampled number. PCG64 (XSL-RR 128/64), the same
 * sequence on every machine for one seed, so that a printed seed reproduces a report. Not for
 * secrets.
 *
 *   struct stats_random r = stats_random_seed(42);
 *   size_t i = stats_random_below(&r, n);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stats_random {
    unsigned __int128 state;
    unsigned __int128 increment; /* odd; selects the stream */
};

/* State and stream are four outputs of SplitMix64 started at `seed`. */
struct stats_random stats_random_seed(uint64_t seed);

uint64_t stats_random_next(struct stats_random *r);

/* Uniform in [0, bound); bound > 0. Without modulo bias (Lemire's multiplication). */
size_t stats_random_below(struct stats_random *r, size_t bound);

/* `count` indices, uniform in [0, bound), 0 < bound <= UINT32_MAX: faster than one by one, because
 * one output serves two or four of them. */
void stats_random_indices(struct stats_random *r, uint32_t *indices, size_t count, size_t bound);

/* Uniform in [0, 1), 53 bits. */
double stats_random_unit(struct stats_random *r);
