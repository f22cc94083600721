/* SPDX-License-Identifier: MIT
 *
 * Request targets, before anything is routed by them. A server or proxy behind the gateway may
 * normalise a path, decode it once more, or obey parameters of the query, so that a path that looks
 * documented here becomes another one there, requested with the real key. Pure.
 *
 *   const char *why = target_fault(target);            NULL: it means the same to every reader
 *   if (why == NULL && target_has_slash(target, endpoint.model)) …      refused as well
 *   target_for_upstream(target, model, name, &out);    what goes out
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* Why the path is refused: dot segments (also behind an encoded slash, or with parameters), encoded
 * dots, percent signs, backslashes and control characters, broken escapes, fragments. */
const char *target_fault(struct str target);
/* Does the path have an encoded slash outside of `model`, which is a part of it or empty? */
bool target_has_slash(struct str target, struct str model);
/* The target without the slashes at the end of its path and without parameters that carry a
 * credential, a project or another method. Slashes in `model` are encoded; `name`, if not NULL,
 * replaces it. Appends to `out`. */
void target_for_upstream(struct str target, struct str model, const char *name, struct buf *out);
