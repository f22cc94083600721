/* SPDX-License-Identifier: MIT
 *
 * The bytes of a plan, shared by its reader and its writers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct plan_header {
    uint32_t magic;
    uint32_t version;
    uint32_t kind;
    uint32_t length; /* of the whole plan, header included */
    uint32_t count;  /* of records */
    uint32_t reserved;
};

struct plan_head {
    uint16_t op;
    uint16_t reserved; /* 0 */
    uint32_t length;   /* of the payload without padding */
};

static inline size_t plan_padded(size_t n)
{
    return (n + 7u) & ~(size_t)7u;
}
