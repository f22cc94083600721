/* SPDX-License-Identifier: MIT
 *
 * A shape as a JSON Schema (2020-12), for editors and for programs that read what cinch writes.
 *
 *   struct json *schema = shape_schema(arena, task_shape, true);
 *   -> {"type": "object", "properties": {…}, "required": […], "additionalProperties": false}
 */
#pragma once

#include <stdbool.h>

#include "data/shape.h"

/* With `layer`, as a person may write it into a configuration layer: null removes a value, and
 * shorthands are allowed. Without, as cinch writes it after merging. */
struct json *shape_schema(struct arena *a, const struct shape *table, bool layer);
