/* SPDX-License-Identifier: MIT
 *
 * The gateway that a file describes, for who runs one without a task: the same keys, checked in the
 * same way, as in `gateway` of a task.
 *
 *   struct json *g;
 *   gateway_file_load(arena, "gateway.yaml", &g, e);         { upstream, routes, script, … }
 */
#pragma once

#include "base/err.h"
#include "base/json.h"

/* What stands under `gateway`, with absolute paths; other keys of a task may be there and are not
 * looked at further. ERR_INPUT when the file is absent, ERR_CONFIG for what is wrong in it. */
int gateway_file_load(struct arena *a, const char *path, struct json **ret, struct err *e) MUST_USE;
