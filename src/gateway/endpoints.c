/* SPDX-License-Identifier: MIT
 *
 * Endpoints beside the model calls: files, batches and stored responses. They reach the data of the
 * provider's account and may spend money later, so each group is closed unless it is listed.
 */
#include <string.h>

#include "base/macro.h"
#include "gateway/gateway_priv.h"

static const struct {
    const char *name;
    enum gateway_endpoints group;
    enum llm_call_kind call;
} groups[] = {
    { "files", GATEWAY_FILES, LLM_CALL_FILES },
    { "batches", GATEWAY_BATCHES, LLM_CALL_BATCHES },
    { "responses", GATEWAY_RESPONSES, LLM_CALL_STORED },
};

int gateway_endpoint_add(const char *word, unsigned *to, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        if (strcmp(word, groups[i].name) == 0) {
            *to |= groups[i].group;
            return 0;
        }
    }
    return ERR(e, ERR_CONFIG,
               "'%.80s' is not a group of endpoints: use files, batches or responses", word);
}

enum gateway_endpoints gateway_endpoint_group(enum llm_call_kind call)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        if (groups[i].call == call) {
            return groups[i].group;
        }
    }
    return 0;
}

const char *gateway_endpoint_name(enum gateway_endpoints group)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        if (groups[i].group == group) {
            return groups[i].name;
        }
    }
    return "";
}

const struct gateway_route *gateway_endpoint_route(const struct gateway *g,
                                                   const struct llm_endpoint *ep)
{
    for (size_t i = 0; i < g->opts.n_routes; i++) {
        const struct gateway_route *r = &g->opts.routes[i];
        if (r->pattern != NULL && !r->upstream->local && upstream_serves(r->upstream, ep)) {
            return r;
        }
    }
    return NULL;
}
