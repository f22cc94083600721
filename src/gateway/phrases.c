/* SPDX-License-Identifier: MIT
 *
 * Searching for several phrases at once, after Wu and Manber: the last two bytes of a window say
 * how far the next place is where a phrase could begin.
 */
#include "gateway/phrases.h"

#include <assert.h>
#include <strings.h>

/* Letters without their case; what else falls together only costs a closer look. */
static size_t hash(const char *two)
{
    return (((size_t)(unsigned char)two[0] | 0x20) << 5 ^ ((size_t)(unsigned char)two[1] | 0x20)) %
           PHRASES_HASHES;
}

void phrases_init(struct phrases *p, const char *const *list, size_t n)
{
    assert(n > 0 && n <= PHRASES_MAX);
    p->list = list;
    p->n = n;
    p->window = UINT8_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(list[i]);
        p->window = len < p->window ? len : p->window;
    }
    memset(p->jump, (int)p->window - 1, sizeof p->jump);
    for (size_t i = 0; i < n; i++) {
        for (size_t at = 0; at + 2 <= p->window; at++) {
            uint8_t *jump = &p->jump[hash(list[i] + at)];
            uint8_t left = (uint8_t)(p->window - 2 - at);
            *jump = left < *jump ? left : *jump;
        }
    }
}

static uint64_t begins(const struct phrases *p, struct str text)
{
    uint64_t found = 0;
    for (size_t i = 0; i < p->n; i++) {
        const char *phrase = p->list[i];
        size_t len = strlen(phrase);
        if ((phrase[0] | 0x20) == (text.ptr[0] | 0x20) && len <= text.len &&
            strncasecmp(text.ptr, phrase, len) == 0) {
            found |= UINT64_C(1) << i;
        }
    }
    return found;
}

uint64_t phrases_in(const struct phrases *p, struct str text)
{
    uint64_t found = 0;
    for (size_t at = 0; at + p->window <= text.len;) {
        size_t jump = p->jump[hash(text.ptr + at + p->window - 2)];
        if (jump == 0) {
            found |= begins(p, str_slice(text, at, text.len));
            jump = 1;
        }
        at += jump;
    }
    return found;
}
