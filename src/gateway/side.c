/* SPDX-License-Identifier: MIT
 *
 * Telling side requests by their shape; the shapes are the script's, which answers them.
 */
#include "gateway/side.h"

#include "base/arena.h"
#include "gateway/scan.h"
#include "gateway/script_priv.h"
#include "llm/codec.h"

/* A title is not made from more than this; the sum of a long conversation may be. */
#define BODY_MAX ((size_t)4 << 20)
/* Searched at both ends of a part. The longest prompt of a side request that was seen has 5 KB. */
#define END_MAX ((size_t)8 << 10)

void side_init(struct side *side)
{
    script_side_signs(&side->signs);
}

static bool has_sign(const struct side *side, struct str body, size_t from, size_t to)
{
    struct str part = str_slice(body, from, to);
    if (part.len <= 2 * END_MAX) {
        return phrases_in(&side->signs, part) != 0;
    }
    return phrases_in(&side->signs, str_slice(part, 0, END_MAX)) != 0 ||
           phrases_in(&side->signs, str_slice(part, part.len - END_MAX, part.len)) != 0;
}

static bool may_be_one(const struct side *side, struct str body, const struct scan *s)
{
    bool few = s->first_to > s->last_from; /* the first two messages are the last ones too */
    return has_sign(side, body, 0, s->talk_at.from) ||
           (!few && has_sign(side, body, s->talk_at.from, s->first_to)) ||
           has_sign(side, body, s->before_from, s->last_from) ||
           has_sign(side, body, s->last_from, s->talk_at.to) ||
           has_sign(side, body, s->talk_at.to, body.len);
}

const char *side_kind(const struct side *side, const struct llm_endpoint *where, struct str body,
                      const struct scan *s)
{
    struct llm_request request;
    if (body.len == 0 || body.len > BODY_MAX || s->tools || !may_be_one(side, body, s)) {
        return NULL;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    if (llm_request_read(a, where, body, &request, NULL) < 0) {
        return NULL;
    }
    return script_side_kind(&request, script_system_text(&request, a), llm_last_text(a, &request));
}
