/* SPDX-License-Identifier: MIT
 *
 * The list of models for a client, from all upstreams: each is asked in its own format, its names
 * are held against the patterns of the routes, and the answer has the client's format. Upstreams
 * that fail are left out, unless there is nothing else.
 */
#include <fnmatch.h>
#include <string.h>

#include "base/json.h"
#include "base/macro.h"
#include "gateway/gateway_priv.h"

/* A provider with many models (OpenRouter has some 500) sends less than 1 MiB. */
#define LIST_BYTES ((size_t)8 << 20)
#define LIST_MAX   10000

struct model_list {
    struct exchange *x;
    size_t route; /* whose upstream is being asked */
    struct json *names;
    struct buf body;
    int status;
    const char *why; /* the last failure; NULL: none */
};

static void ask_next(struct exchange *x);

static bool is_listed(const struct model_list *l, struct str name)
{
    for (size_t i = 0; i < json_len(l->names); i++) {
        if (str_eq(json_str(json_item(l->names, i), STR_EMPTY), name)) {
            return true;
        }
    }
    return false;
}

static void add_name(struct model_list *l, struct str name)
{
    if (name.len > 0 && json_len(l->names) < LIST_MAX && !is_listed(l, name)) {
        json_push(l->x->arena, l->names, json_string(l->x->arena, name));
    }
}

/* Would a request for this model take the route? */
static bool is_routed(const struct exchange *x, size_t route, const char *name)
{
    for (size_t i = 0; i <= route; i++) {
        const char *pattern = x->g->opts.routes[i].pattern;
        if (pattern != NULL && (strcmp(pattern, "*") == 0 || fnmatch(pattern, name, 0) == 0)) {
            return i == route;
        }
    }
    return false;
}

/* {"data": [{"id"}]} of Anthropic and OpenAI, {"models": [{"name": "models/…"}]} of Gemini, and the
 * bare list of some servers. */
static void read_names(struct model_list *l)
{
    struct exchange *x = l->x;
    struct json *doc;
    if (json_parse(x->arena, buf_str(&l->body), NULL, &doc, NULL) < 0) {
        l->why = "the list of models is not JSON";
        return;
    }
    const struct json *items = json_is(doc, JSON_ARRAY)        ? doc
                               : json_get(doc, "data") != NULL ? json_get(doc, "data")
                                                               : json_get(doc, "models");
    for (size_t i = 0; json_is(items, JSON_ARRAY) && i < json_len(items); i++) {
        const struct json *item = json_item(items, i);
        const struct json *id = json_get(item, "id");
        struct str name = json_str(id != NULL ? id : json_get(item, "name"), STR_EMPTY);
        if (str_starts(name, STR("models/"))) {
            name = str_slice(name, strlen("models/"), name.len);
        }
        name = mask_text(x->arena, x->upstream->secret, arena_str(x->arena, name));
        if (is_routed(x, l->route, arena_dup(x->arena, name))) {
            add_name(l, name);
        }
    }
}

/* --- asking --- */

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    struct model_list *l = ((struct exchange *)arg)->list;
    l->status = status;
}

static void on_data(void *arg, struct str bytes)
{
    struct model_list *l = ((struct exchange *)arg)->list;
    if (buf_append(&l->body, bytes, NULL) < 0) {
        l->status = 0; /* too long: not read */
    }
}

static void on_end(void *arg)
{
    struct exchange *x = arg;
    struct model_list *l = x->list;
    x->call = NULL;
    if (l->status == 200) {
        read_names(l);
    } else {
        l->why = arena_printf(x->arena, "upstream '%s': %s", x->upstream->name,
                              l->status == 0 ? "the list of models is too long"
                                             : http_reason(l->status));
    }
    l->route++;
    ask_next(x);
}

static void on_error(void *arg, const struct upstream_error *error)
{
    struct exchange *x = arg;
    x->call = NULL;
    x->list->why = arena_printf(x->arena, "upstream '%s': %s", x->upstream->name, error->message);
    x->list->route++;
    ask_next(x);
}

static void ask_upstream(struct exchange *x)
{
    static const char *const targets[LLM_FORMAT_MAX] = { [LLM_ANTHROPIC] = "/v1/models?limit=1000",
                                                         [LLM_RESPONSES] = "/v1/models",
                                                         [LLM_CHAT] = "/v1/models",
                                                         [LLM_GEMINI] =
                                                             "/v1beta/models?pageSize=1000" };
    static const struct http_field version = { STR("anthropic-version"), STR("2023-06-01") };
    const struct upstream_port port = { on_head, on_data, on_end, on_error, x, NULL };
    struct model_list *l = x->list;
    enum llm_format f =
        upstream_speaks(x->upstream, x->endpoint.format) ? x->endpoint.format : x->upstream->format;
    struct err e;
    x->request = (struct upstream_request) {
        .method = STR("GET"), .target = str_of(targets[f]), .exchange = x->view.id, .attempt = 1
    };
    x->request.fields = (struct http_fields) { &version, f == LLM_ANTHROPIC ? 1 : 0 };
    x->request.endpoint = (struct llm_endpoint) { .call = LLM_CALL_MODELS, .format = f };
    x->state = EXCHANGE_CALLING;
    l->status = 0;
    buf_reset(&l->body);
    if (x->upstream->ops->start(x->upstream, &x->request, &port, &x->call, &e) < 0) {
        x->call = NULL;
        l->why = arena_printf(x->arena, "%s", e.msg);
        l->route++;
        ask_next(x);
    }
}

/* One with a pattern for many models, whose names only its upstream knows. */
static bool must_be_asked(const struct gateway_route *r)
{
    return r->pattern != NULL && r->model == NULL && !r->upstream->local &&
           r->pattern[strcspn(r->pattern, "*?[")] != '\0';
}

static void ask_next(struct exchange *x)
{
    struct model_list *l = x->list;
    const struct gateway_opts *o = &x->g->opts;
    if (x->state == EXCHANGE_OVER || x->c == NULL) {
        return;
    }
    for (; l->route < o->n_routes; l->route++) {
        const struct gateway_route *r = &o->routes[l->route];
        const char *name = models_name(r);
        if (name != NULL) {
            add_name(l, str_of(name));
        } else if (must_be_asked(r)) {
            x->upstream = r->upstream;
            ask_upstream(x);
            return;
        }
    }
    if (json_len(l->names) == 0 && l->why != NULL) {
        exchange_refuse(
            x, NULL,
            &(struct refusal) { .status = 502, .kind = LLM_ERR_SERVER, .message = str_of(l->why) });
        return;
    }
    models_send(x, l->names);
}

void model_list_start(struct exchange *x)
{
    x->list = ARENA_NEW(x->arena, struct model_list);
    *x->list = (struct model_list) { .x = x, .names = json_array(x->arena) };
    buf_init(&x->list->body, LIST_BYTES);
    ask_next(x);
}

void model_list_done(struct exchange *x)
{
    if (x->list != NULL) {
        buf_done(&x->list->body);
    }
}
