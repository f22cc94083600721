/* SPDX-License-Identifier: MIT
 *
 * Fees beside tokens: how many web searches of the provider a request may cause.
 */
#include "base/arena.h"
#include "base/json.h"
#include "gateway/account_priv.h"

/* For a request that names no limit. Anthropic pauses a response after ten rounds of its own tools;
 * other providers document no number. */
enum { SEARCHES_UNSAID = 10 };

static int64_t fewer(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static bool is_given(const struct json *object, const char *key)
{
    const struct json *v = json_get(object, key);
    return v != NULL && !json_is(v, JSON_NULL);
}

/* An entry of `tools`. */
static int64_t searches_of_tool(const struct json *tool)
{
    static const char *const gemini[] = { "googleSearch",          "google_search",
                                          "googleSearchRetrieval", "google_search_retrieval",
                                          "enterpriseWebSearch",   "enterprise_web_search" };
    struct str type = json_str(json_get(tool, "type"), STR_EMPTY);
    if (str_starts(type, STR("web_search")) || str_eqc(type, "openrouter:web_search")) {
        int64_t uses = json_int(json_get(tool, "max_uses"), -1);
        return uses >= 0 ? uses : SEARCHES_UNSAID;
    }
    for (size_t i = 0; i < sizeof gemini / sizeof *gemini; i++) {
        if (is_given(tool, gemini[i])) {
            return SEARCHES_UNSAID;
        }
    }
    return 0;
}

static int64_t searches_of_body(const struct json *body)
{
    const struct json *tools = json_get(body, "tools");
    const struct json *plugins = json_get(body, "plugins"); /* OpenRouter */
    int64_t n = is_given(body, "web_search_options") ? SEARCHES_UNSAID : 0;
    for (size_t i = 0; json_is(tools, JSON_ARRAY) && i < json_len(tools); i++) {
        n = plus(n, searches_of_tool(json_item(tools, i)));
    }
    for (size_t i = 0; json_is(plugins, JSON_ARRAY) && i < json_len(plugins); i++) {
        bool web = str_eqc(json_str(json_get(json_item(plugins, i), "id"), STR_EMPTY), "web");
        n = plus(n, web ? SEARCHES_UNSAID : 0);
    }
    int64_t calls = json_int(json_get(body, "max_tool_calls"), -1); /* Responses */
    return calls >= 0 ? fewer(n, calls) : n;
}

/* Gemini before version 3 charges a response with searches once. */
static bool charges_once(struct str model)
{
    return str_find(model, STR("gemini-2")) < model.len ||
           str_find(model, STR("gemini-1")) < model.len;
}

/* A cheap look: most requests do not offer them. Names may be written with escapes. */
static bool may_search(struct str body)
{
    return str_find(body, STR("search")) < body.len || str_find(body, STR("Search")) < body.len ||
           str_find(body, STR("\"plugins\"")) < body.len || str_find(body, STR("\\u00")) < body.len;
}

int64_t account_searches(const struct exchange_view *x)
{
    struct str body = x->client_body;
    struct str model = x->upstream_model;
    if (x->translated || x->upstream->local) {
        return 0; /* a translation drops the provider's tools; scripts and cassettes are free */
    }
    int64_t n = str_ends(model, STR(":online")) ? SEARCHES_UNSAID : 0; /* OpenRouter */
    if (may_search(body)) {
        CLEANUP(arena) struct arena *a = arena_new();
        const struct json_limits limits = { .no_positions = true };
        struct json *v = NULL;
        /* What cannot be read here may be read by the provider: the usual number. */
        n = plus(n, json_parse(a, body, &limits, &v, NULL) < 0 ? SEARCHES_UNSAID
                                                               : searches_of_body(v));
    }
    return charges_once(model) ? fewer(n, 1) : n;
}
