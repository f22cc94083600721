/* SPDX-License-Identifier: MIT
 *
 * Where transcripts have ids and names of calls, best first; see entry_call.h.
 */
#include "record/entry_call.h"

#include "base/json.h"

static const char *const use_ids[] = {
    "/tool_call_id",
    "/tool_use_id",
    "/call_id",
    "/callId",
    "/toolCallId",
    "/id",
    "/sdk_entry/id",
    "/sdk_entry/tool_use_id",
    "/notification/callId",
    "/notification/item/id",
    NULL,
};
static const char *const result_ids[] = {
    "/tool_call_id",
    "/tool_use_id",
    "/call_id",
    "/callId",
    "/toolCallId",
    "/sdk_entry/tool_use_id",
    "/notification/callId",
    "/notification/item/id",
    NULL,
};
static const char *const names[] = {
    "/tool_name",
    "/name",
    "/tool",
    "/sdk_entry/name",
    "/sdk_entry/tool_name",
    "/notification/tool",
    "/notification/tool_name",
    "/notification/name",
    NULL,
};

static struct str first_of(const struct json *detail, const char *const *pointers)
{
    for (; *pointers != NULL; pointers++) {
        struct str s = json_str(json_pointer(detail, str_of(*pointers)), STR_EMPTY);
        if (s.len > 0) {
            return s;
        }
    }
    return STR_EMPTY;
}

struct str entry_call_of_use(const struct json *detail)
{
    return first_of(detail, use_ids);
}

struct str entry_call_of_result(const struct json *detail)
{
    return first_of(detail, result_ids);
}

struct str entry_tool_name(const struct json *detail)
{
    return first_of(detail, names);
}
