/* SPDX-License-Identifier: MIT
 *
 * Telling side requests by their shape; the shapes are the script's, which answers them.
 */
#include "gateway/side.h"

#include "base/arena.h"
#include "gateway/script_priv.h"
#include "llm/codec.h"

/* A title is not made from more than this; the sum of a long conversation may be. */
#define BODY_MAX ((size_t)4 << 20)

static bool offers_tools(struct str body)
{
    return memmem(body.ptr, body.len, "\"tools\"", 7) != NULL;
}

const char *side_kind(const struct llm_endpoint *where, struct str body)
{
    struct llm_request request;
    if (body.len == 0 || body.len > BODY_MAX || offers_tools(body)) {
        return NULL;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    if (llm_request_read(a, where, body, &request, NULL) < 0) {
        return NULL;
    }
    return script_side_kind(&request, script_system_text(&request, a), llm_last_text(a, &request));
}
