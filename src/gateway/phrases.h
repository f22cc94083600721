/* SPDX-License-Identifier: MIT
 *
 * struct phrases: a few fixed phrases, searched for in one pass and without regard to the case of
 * ASCII letters. Where none of them can end, the search jumps by almost the length of the shortest
 * one, so that a prompt of many kilobytes costs microseconds.
 *
 *   struct phrases p;
 *   phrases_init(&p, list, ARRAY_LEN(list));                  cheap: no memory is taken
 *   if (phrases_in(&p, text) & 1u) …                          list[0] occurs in it
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define PHRASES_MAX    64
#define PHRASES_HASHES 1024

struct phrases {
    const char *const *list; /* borrowed */
    size_t n;
    size_t window;                /* length of the shortest one */
    uint8_t jump[PHRASES_HASHES]; /* by the last two bytes of a window */
};

/* At most PHRASES_MAX phrases, in lower case, of at least two bytes. */
void phrases_init(struct phrases *p, const char *const *list, size_t n);
/* Bit i is set when list[i] occurs in the text. */
uint64_t phrases_in(const struct phrases *p, struct str text);
