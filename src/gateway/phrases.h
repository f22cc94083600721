/* SPDX-License-Identifier: MIT
 *
 * struct phrases: a few fixed phrases, searched for in one pass and without regard to the case of
 * ASCII letters. Of each phrase one pair of neighbours is chosen that is rare in text; they share
 * pairs where they can. Many places at once are asked whether a pair stands there, so
 * that a prompt of many kilobytes costs microseconds; only where one does is a phrase compared.
 *
 *   struct phrases p;
 *   phrases_init(&p, list, ARRAY_LEN(list));                  cheap: no memory is taken
 *   if (phrases_in(&p, text) & 1u) …                          list[0] occurs in it
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define PHRASES_MAX 64

struct phrases {
    const char *const *list; /* borrowed */
    size_t n;
    struct {
        uint8_t len;
        uint8_t pair; /* index of its pair … */
        uint8_t at;   /* … and where that stands in it */
    } anchors[PHRASES_MAX];
    uint8_t pairs[PHRASES_MAX][2]; /* in the form in which texts are compared */
    size_t n_pairs;
};

/* At most PHRASES_MAX phrases, in lower case, of at least two bytes and at most 255. */
void phrases_init(struct phrases *p, const char *const *list, size_t n);
/* Bit i is set when list[i] occurs in the text. */
uint64_t phrases_in(const struct phrases *p, struct str text);
