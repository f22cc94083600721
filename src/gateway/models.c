/* SPDX-License-Identifier: MIT
 *
 * What a provider would be asked and the gateway can say by itself: the models that its routes
 * name, and how many tokens a request has, about.
 */
#include <stdio.h>

#include "base/json.h"
#include "base/macro.h"
#include "gateway/gateway_priv.h"

static void answer_json(struct exchange *x, const struct json *value)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const struct http_field field = { STR("Content-Type"), STR("application/json") };
    (void)!json_write(value, JSON_COMPACT, &text, NULL);
    exchange_send_head(x, 200, &(struct http_fields) { &field, 1 }, (int64_t)text.len);
    exchange_send(x, buf_str(&text));
    exchange_finish(x, true);
}

/* --- models --- */

static struct json *describe(struct arena *a, enum llm_format f, const char *name)
{
    struct json *o = json_object(a);
    if (f == LLM_GEMINI) {
        json_setc(a, o, "name", json_cstr(a, arena_printf(a, "models/%s", name)));
        json_setc(a, o, "displayName", json_cstr(a, name));
        struct json *methods = json_array(a);
        json_push(a, methods, json_cstr(a, "generateContent"));
        json_push(a, methods, json_cstr(a, "countTokens"));
        json_setc(a, o, "supportedGenerationMethods", methods);
    } else if (f == LLM_ANTHROPIC) {
        json_setc(a, o, "type", json_cstr(a, "model"));
        json_setc(a, o, "id", json_cstr(a, name));
        json_setc(a, o, "display_name", json_cstr(a, name));
        json_setc(a, o, "created_at", json_cstr(a, "1970-01-01T00:00:00Z"));
    } else {
        json_setc(a, o, "id", json_cstr(a, name));
        json_setc(a, o, "object", json_cstr(a, "model"));
        json_setc(a, o, "created", json_integer(a, 0));
        json_setc(a, o, "owned_by", json_cstr(a, "cinch"));
    }
    return o;
}

/* Routes for one model are named by it; a pattern only if the upstream's model is known. */
const char *models_name(const struct gateway_route *r)
{
    if (r->pattern == NULL) {
        return NULL; /* a fallback */
    }
    bool is_pattern = r->pattern[strcspn(r->pattern, "*?[")] != '\0';
    return is_pattern ? r->model : r->pattern;
}

void models_send(struct exchange *x, const struct json *names)
{
    enum llm_format f = respond_format(x->head);
    struct arena *a = x->arena;
    struct json *items = json_array(a);
    struct json *o = json_object(a);
    size_t n = json_len(names);
    for (size_t i = 0; i < n; i++) {
        json_push(a, items, describe(a, f, json_cstring(json_item(names, i), "")));
    }
    if (f == LLM_ANTHROPIC) {
        json_setc(a, o, "data", items);
        json_setc(a, o, "has_more", json_boolean(a, false));
        json_setc(a, o, "first_id", json_copy(a, n == 0 ? json_null(a) : json_item(names, 0)));
        json_setc(a, o, "last_id", json_copy(a, n == 0 ? json_null(a) : json_item(names, n - 1)));
    } else if (f == LLM_GEMINI) {
        json_setc(a, o, "models", items);
    } else {
        json_setc(a, o, "object", json_cstr(a, "list"));
        json_setc(a, o, "data", items);
    }
    answer_json(x, o);
}

void models_answer(struct exchange *x)
{
    if (x->view.model.len == 0) {
        model_list_start(x);
    } else {
        answer_json(
            x, describe(x->arena, respond_format(x->head), arena_dup(x->arena, x->view.model)));
    }
}

/* --- tokens --- */

void count_answer(struct exchange *x)
{
    struct llm_request request;
    struct err e;
    if (llm_request_read(x->arena, &x->endpoint, body_str(&x->body), &request, &e) < 0) {
        exchange_refuse(
            x, NULL,
            &(struct refusal) { .status = 400, .kind = LLM_ERR_INVALID, .message = str_of(e.msg) });
        return;
    }
    struct json *o = json_object(x->arena);
    if (x->endpoint.format == LLM_RESPONSES) {
        json_setc(x->arena, o, "object", json_cstr(x->arena, "response.input_tokens"));
    }
    json_setc(x->arena, o, x->endpoint.format == LLM_GEMINI ? "totalTokens" : "input_tokens",
              json_integer(x->arena, llm_estimate_tokens(&request)));
    answer_json(x, o);
}
