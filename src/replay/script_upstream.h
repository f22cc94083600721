/* SPDX-License-Identifier: MIT
 *
 * `script:FILE` as an upstream: the scripted model behind the border of gateway/upstream.h.
 *
 *   script_upstream_new(loop, script, aliases, &up, e);     takes the script over, also on failure
 *   … up->ops->free(up);
 *
 * A request that no step fits is refused (UPSTREAM_REFUSED); script_upstream_miss() tells the first
 * one for the end of the run. Answers carry the fields `x-cinch-step` and, for side requests,
 * `x-cinch-side`, by which a record can tell them apart.
 */
#pragma once

#include "gateway/upstream.h"
#include "replay/script.h"

struct loop;

/* `aliases`: see struct script_request; borrowed for life, may be NULL. */
int script_upstream_new(struct loop *l, struct script *s, const struct json *aliases,
                        struct upstream **ret, struct err *e) MUST_USE;
struct str script_upstream_miss(
    const struct upstream *up); /* empty: every request found its step */
