/* SPDX-License-Identifier: MIT
 *
 * Opening upstreams and keeping the table of routes.
 */
#include "replay/route.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/macro.h"
#include "gateway/upstream_curl.h"
#include "replay/cassette_upstream.h"
#include "replay/script_upstream.h"

#define UPSTREAMS_MAX 64
#define ROUTES_MAX    256

struct entry {
    const char *name;
    enum routing_kind kind;
    struct upstream *upstream;
};

struct routes {
    struct loop *loop;
    struct routes_opts opts;
    struct arena *arena;
    struct entry upstreams[UPSTREAMS_MAX];
    size_t n_upstreams;
    struct gateway_route items[ROUTES_MAX];
    size_t n_items;
};

struct routes *routes_new(struct loop *l, const struct routes_opts *o)
{
    struct routes *r = xcalloc(1, sizeof *r);
    r->loop = l;
    r->opts = *o;
    r->arena = arena_new();
    return r;
}

struct routes *routes_free(struct routes *r)
{
    if (r != NULL) {
        for (size_t i = 0; i < r->n_upstreams; i++) {
            struct upstream *up = r->upstreams[i].upstream;
            up->ops->free(up);
        }
        r->arena = arena_free(r->arena);
        free(r);
    }
    return NULL;
}

/* --- upstreams --- */

static int open_script(struct loop *l, const struct routing_target *t, const struct route_opts *o,
                       struct upstream **ret, struct err *e)
{
    struct script *script;
    int rc = script_load(t->where, &script, e);
    return rc < 0 ? rc : script_upstream_new(l, script, o->aliases, ret, e);
}

static int open_cassette(struct loop *l, const struct routing_target *t, const struct route_opts *o,
                         struct upstream **ret, struct err *e)
{
    const struct cassette_upstream_opts c = {
        .speed = o->replay_speed,
        .volatile_rules = o->volatile_rules,
        .places = o->places,
        .redactor = o->redactor,
    };
    return cassette_upstream_new(l, t->where, &c, ret, e);
}

int route_open(struct loop *l, const struct routing_target *t, const struct route_opts *o,
               struct upstream **ret, struct err *e)
{
    switch (t->kind) {
    case ROUTING_SCRIPT:
        return open_script(l, t, o, ret, e);
    case ROUTING_CASSETTE:
        return open_cassette(l, t, o, ret, e);
    case ROUTING_HTTP:
        break;
    }
    const struct upstream_curl_opts c = {
        .name = o->name != NULL ? o->name : t->name,
        .url = t->where,
        .format = t->format,
        .formats = t->formats,
        .any_format = t->any_format,
        .key = o->key,
        .send_once = o->send_once,
    };
    return upstream_curl_new(l, &c, ret, e);
}

struct str route_missed(enum routing_kind kind, const struct upstream *up)
{
    switch (kind) {
    case ROUTING_SCRIPT:
        return script_upstream_miss(up);
    case ROUTING_CASSETTE:
        return cassette_upstream_report(up);
    case ROUTING_HTTP:
        break;
    }
    return STR_EMPTY;
}

static int find_key(const struct routes *r, const struct routing_target *t, const char **ret,
                    struct err *e)
{
    const char *key =
        t->key == NULL || r->opts.variable == NULL ? NULL : r->opts.variable(r->opts.arg, t->key);
    *ret = key;
    return t->key_required && (key == NULL || key[0] == '\0')
               ? ERR(e, ERR_SECRET, "the key for '%s' is missing: set %s", t->where, t->key)
               : 0;
}

static const struct entry *find(const struct routes *r, const char *name)
{
    for (size_t i = 0; i < r->n_upstreams; i++) {
        if (strcmp(r->upstreams[i].name, name) == 0) {
            return &r->upstreams[i];
        }
    }
    return NULL;
}

int routes_upstream(struct routes *r, const char *name, const struct routing_words *w,
                    struct err *e)
{
    struct routing_target target;
    int rc = routing_read(r->arena, w, &target, e);
    if (rc < 0) {
        return rc;
    }
    name = arena_dup(r->arena, str_of(name != NULL ? name : target.name));
    if (find(r, name) != NULL) {
        return ERR(e, ERR_CONFIG, "there are two upstreams with the name '%s'", name);
    }
    if (r->n_upstreams == UPSTREAMS_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d upstreams", UPSTREAMS_MAX);
    }
    struct entry *entry = &r->upstreams[r->n_upstreams];
    *entry = (struct entry) { .name = name, .kind = target.kind };
    struct route_opts o = r->opts.upstreams;
    o.name = name;
    rc = find_key(r, &target, &o.key, e);
    rc = rc < 0 ? rc : route_open(r->loop, &target, &o, &entry->upstream, e);
    r->n_upstreams += rc < 0 ? 0 : 1;
    return rc;
}

/* --- routes of a task --- */

static size_t count_routes(const struct json *routes)
{
    size_t n = json_len(routes);
    for (size_t i = 0; i < json_len(routes); i++) {
        n += json_len(json_get(json_item(routes, i), "fallback"));
    }
    return n;
}

static struct route_entry read_entry(const struct json *item, const char *pattern,
                                     const char *upstream)
{
    return (struct route_entry) {
        .pattern = pattern,
        .model = json_cstring(json_get(item, "name"), NULL),
        .words = { json_cstring(json_get(item, "upstream"), upstream),
                   json_cstring(json_get(item, "format"), NULL),
                   json_cstring(json_get(item, "key"), NULL) },
    };
}

int route_entries(struct arena *a, const struct route_settings *s, struct route_entry **ret,
                  size_t *ret_n, struct err *e)
{
    size_t listed = json_len(s->routes);
    struct route_entry *list = arena_array(a, count_routes(s->routes) + 1, sizeof *list);
    const char *file = s->script != NULL ? s->script : s->cassette;
    size_t n = 0;
    *ret = list;
    if (file != NULL) {
        const char *kind = s->script != NULL ? "script" : "cassette";
        list[n++] =
            (struct route_entry) { .pattern = "*",
                                   .words = { .upstream = arena_printf(a, "%s:%s", kind, file) } };
        *ret_n = n;
        return 0;
    }
    for (size_t i = 0; i < listed; i++) {
        const struct json *item = json_item(s->routes, i);
        const struct json *fallback = json_get(item, "fallback");
        const char *pattern = json_cstring(json_get(item, "model"), "*");
        list[n] = read_entry(item, pattern, s->upstream);
        if (list[n++].words.upstream == NULL) {
            return ERR(e, ERR_CONFIG, "gateway.routes[%zu] needs 'upstream'", i);
        }
        if (json_len(fallback) > EXCHANGE_FALLBACKS_MAX) {
            return ERR(e, ERR_CONFIG, "gateway.routes[%zu].fallback has more than %d upstreams", i,
                       EXCHANGE_FALLBACKS_MAX);
        }
        for (size_t k = 0; k < json_len(fallback); k++) {
            list[n] = read_entry(json_item(fallback, k), NULL, NULL);
            if (list[n++].words.upstream == NULL) {
                return ERR(e, ERR_CONFIG, "gateway.routes[%zu].fallback[%zu] needs 'upstream'", i,
                           k);
            }
        }
    }
    if (s->upstream != NULL) {
        list[n++] = (struct route_entry) { .pattern = "*", .words = { .upstream = s->upstream } };
    }
    *ret_n = n;
    return 0;
}

int route_endpoints(const struct json *words, unsigned *ret, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(words); i++) {
        r = gateway_endpoint_add(json_cstring(json_item(words, i), ""), ret, e);
    }
    return r < 0 ? err_wrap(e, "gateway.endpoints") : 0;
}

/* --- routes --- */

int routes_add(struct routes *r, const char *pattern, const char *upstream, const char *model,
               struct err *e)
{
    const struct entry *entry = find(r, upstream);
    if (entry == NULL) {
        return ERR(e, ERR_CONFIG, "%s '%.80s': there is no upstream '%.80s'",
                   pattern == NULL ? "fallback" : "route", pattern == NULL ? upstream : pattern,
                   upstream);
    }
    if ((pattern != NULL && pattern[0] == '\0') || r->n_items == ROUTES_MAX) {
        return ERR(e, ERR_CONFIG, "a route without a pattern, or more than %d of them", ROUTES_MAX);
    }
    for (const char *p = model; p != NULL && *p != '\0'; p++) {
        if (*p == '"' || *p == '\\' || (unsigned char)*p <= ' ' || *p == '?' || *p == '#') {
            return ERR(e, ERR_CONFIG, "'%.80s' is not a model name", model);
        }
    }
    r->items[r->n_items++] = (struct gateway_route) {
        .pattern = pattern == NULL ? NULL : arena_dup(r->arena, str_of(pattern)),
        .upstream = entry->upstream,
        .model = model == NULL || model[0] == '\0' ? NULL : arena_dup(r->arena, str_of(model)),
    };
    return 0;
}

int routes_direct(struct routes *r, const char *pattern, const struct routing_words *w,
                  const char *model, struct err *e)
{
    CLEANUP(buf) struct buf name = BUF_INIT(BUF_TEXT);
    buf_addf(&name, "%s", w->upstream);
    if (w->format != NULL || w->key != NULL) {
        buf_addf(&name, ",%s,%s", w->format != NULL ? w->format : "", w->key != NULL ? w->key : "");
    }
    int rc = find(r, name.ptr) != NULL ? 0 : routes_upstream(r, name.ptr, w, e);
    return rc < 0 ? rc : routes_add(r, pattern, name.ptr, model, e);
}

size_t routes_upstreams(const struct routes *r)
{
    return r->n_upstreams;
}

bool routes_given(const struct routes *r)
{
    return r->n_items > 0;
}

const struct gateway_route *routes_list(struct routes *r, size_t *ret_n)
{
    if (r->n_items == 0 && r->n_upstreams > 0) {
        r->items[r->n_items++] = (struct gateway_route) { "*", r->upstreams[0].upstream, NULL };
    }
    *ret_n = r->n_items;
    return r->items;
}

struct str routes_missed(const struct routes *r)
{
    for (size_t i = 0; i < r->n_upstreams; i++) {
        struct str missed = route_missed(r->upstreams[i].kind, r->upstreams[i].upstream);
        if (missed.len > 0) {
            return missed;
        }
    }
    return STR_EMPTY;
}
