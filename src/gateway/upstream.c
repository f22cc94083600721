/* SPDX-License-Identifier: MIT
 *
 * What is the same for all upstreams.
 */
#include "gateway/upstream.h"

#include "base/macro.h"

bool upstream_speaks(const struct upstream *up, enum llm_format f)
{
    return up->any_format || up->format == f || (up->formats & 1u << f) != 0;
}

const char *upstream_error_word(enum upstream_error_kind kind)
{
    static const char *const words[] = {
        [UPSTREAM_CONNECT] = "connect", [UPSTREAM_TLS] = "tls",
        [UPSTREAM_TIMEOUT] = "timeout", [UPSTREAM_CUT] = "cut",
        [UPSTREAM_BROKEN] = "broken",   [UPSTREAM_REFUSED] = "refused",
    };
    return (size_t)kind < ARRAY_LEN(words) ? words[kind] : "broken";
}

bool upstream_serves(const struct upstream *up, const struct llm_endpoint *ep)
{
    bool either = ep->format == LLM_CHAT && ep->call != LLM_CALL_GENERATE;
    return upstream_speaks(up, ep->format) || (either && upstream_speaks(up, LLM_RESPONSES));
}
