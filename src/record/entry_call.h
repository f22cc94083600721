/* SPDX-License-Identifier: MIT
 *
 * Calls of tools in transcripts. Adapters name a call and its tool in their own ways, and so do the
 * programs whose transcripts are imported; this is where all of these places are known. Pure.
 */
#pragma once

#include "base/str.h"

struct json;

/* The id of a call in the detail of its tool_use entry; empty if it has none. */
struct str entry_call_of_use(const struct json *detail);
/* The same in the detail of a tool_result. What that calls plainly `id` may be its own and does not
 * count. */
struct str entry_call_of_result(const struct json *detail);
/* The name of the tool, in either; empty if it has none. */
struct str entry_tool_name(const struct json *detail);
