/* SPDX-License-Identifier: MIT
 *
 * Krippendorff's alpha: how far several judges agree beyond chance. 1 is perfect agreement, 0 is
 * chance, below 0 is systematic disagreement.
 *
 *   double alpha = stats_krippendorff(ratings, units, judges, STATS_ORDINAL);
 */
#pragma once

#include <stddef.h>

/* What the distance between two ratings means. */
enum stats_scale {
    STATS_NOMINAL,  /* equal or not (pass, fail) */
    STATS_ORDINAL,  /* an order without distances (grades) */
    STATS_INTERVAL, /* a number (scores) */
};

/* ratings[unit * judges + judge]; NaN where a judge gave no valid rating. Units with fewer than two
 * ratings do not count. Undefined (NaN) where no unit counts or all ratings are equal. */
double stats_krippendorff(const double *ratings, size_t units, size_t judges,
                          enum stats_scale scale);
