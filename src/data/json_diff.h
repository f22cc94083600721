/* SPDX-License-Identifier: MIT
 *
 * What differs between two value trees, field by field.
 *
 *   struct json_diff d;
 *   json_diff(left, right, NULL, arena, &d);              d.len == 0: equal, as json_equal() has it
 *   json_diff_write(&d, &buf, e);
 *     /model: "opus" is now "sonnet"
 *     /messages/3: added {"role":"user","content":"go on"}
 *     /system/0/text: at byte 812: "…date: 2026-11-15…" is now "…date: 2026-11-16…"
 *
 * Arrays are compared place by place; when their lengths differ, what is equal at their ends stays
 * out of it, so that one item put in is one difference. A port may wave a difference through, for
 * fields that change with every run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"

enum json_change_kind { JSON_CHANGED, JSON_ADDED, JSON_REMOVED };

struct json_change {
    enum json_change_kind kind;
    struct str pointer;              /* RFC 6901, "" is the whole */
    const struct json *left, *right; /* NULL where there is none */
};

struct json_diff {
    struct json_change *changes;
    size_t len;
    bool more; /* there are further ones */
};

struct json_diff_opts {
    size_t max; /* changes; 0: 100 */
    /* Asked for each difference; true: it is none. May be NULL. One of left, right may be NULL. */
    bool (*ignore)(void *arg, struct str pointer, const struct json *left,
                   const struct json *right);
    void *arg;
};

/* Either may be NULL: nothing there. Pointers and list live in the arena, values are borrowed. */
void json_diff(const struct json *left, const struct json *right, const struct json_diff_opts *opts,
               struct arena *a, struct json_diff *ret);
/* One line each, closed, long values cut around the place where they differ. */
int json_diff_write(const struct json_diff *d, struct buf *out, struct err *e) MUST_USE;
