/* SPDX-License-Identifier: MIT
 *
 * What the settings and the profile ask of the gateway: routes, credentials, the token. All before
 * there is a record, so that every secret is known to the redactor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "run/gateway_run_priv.h"

static const char *variable(const struct run *run, const char *name)
{
    size_t len = strlen(name);
    for (const char *const *p = run->opts->environ; p != NULL && *p != NULL; p++) {
        if (strncmp(*p, name, len) == 0 && (*p)[len] == '=' && (*p)[len + 1] != '\0') {
            return *p + len + 1;
        }
    }
    return json_cstring(json_get(run->settings.api_keys, name), NULL);
}

static const char *make_token(struct arena *a)
{
    unsigned char bytes[24];
    char text[2 * sizeof bytes + 1];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        abort(); /* a kernel without randomness: there is no token that would be safe */
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return arena_printf(a, "cinch-%s", text);
}

static int plan_route(struct run *run, const char *pattern, const char *model,
                      const struct routing_words *w, struct err *e)
{
    struct run_gateway *g = run->gateway;
    if (g->len == ROUTES_MAX) {
        return ERR(e, ERR_CONFIG, "more than %d routes", ROUTES_MAX);
    }
    struct planned *p = &g->routes[g->len];
    *p = (struct planned) { .pattern = pattern, .model = model };
    int r = routing_read(run->arena, w, &p->target, e);
    if (r < 0) {
        return err_wrap(e, "gateway");
    }
    if (p->target.key != NULL) {
        p->credential = variable(run, p->target.key);
        g->withheld[g->n_withheld++] = p->target.key;
    }
    if (p->credential == NULL && p->target.key_required) {
        return ERR(
            e, ERR_SECRET,
            "the gateway needs the credential of '%s': export %s in the environment of cinch",
            p->target.name, p->target.key);
    }
    g->len++;
    return 0;
}

static int plan_listed(struct run *run, struct err *e)
{
    const struct json *list = run->settings.gateway.routes;
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        const char *fallback = run->settings.gateway.upstream;
        struct routing_words w = {
            .upstream = json_cstring(json_get(item, "upstream"), fallback),
            .format = json_cstring(json_get(item, "format"), NULL),
            .key = json_cstring(json_get(item, "key"), NULL),
        };
        if (w.upstream == NULL) {
            return ERR(e, ERR_CONFIG, "gateway.routes[%zu] needs 'upstream'", i);
        }
        r = plan_route(run, json_cstring(json_get(item, "model"), "*"),
                       json_cstring(json_get(item, "name"), NULL), &w, e);
    }
    return r;
}

/* Nothing behind such a route is ever asked, so its credential is not needed either. */
static bool covers_all(const struct run_gateway *g)
{
    return g->len > 0 && strcmp(g->routes[g->len - 1].pattern, "*") == 0;
}

/* A scripted or recorded model answers everything; else the routes do, then the upstream. */
static int plan_routes(struct run *run, struct err *e)
{
    const struct gateway_settings *s = &run->settings.gateway;
    const struct profile_gateway *p = &run->settings.profile->gateway;
    struct routing_words w = { 0 };
    if (s->script != NULL) {
        w.upstream = arena_printf(run->arena, "script:%s", s->script);
        return plan_route(run, "*", NULL, &w, e);
    }
    if (s->cassette != NULL) {
        w.upstream = arena_printf(run->arena, "cassette:%s", s->cassette);
        return plan_route(run, "*", NULL, &w, e);
    }
    int r = plan_listed(run, e);
    if (r == 0 && s->upstream != NULL) {
        w.upstream = s->upstream;
        r = plan_route(run, "*", NULL, &w, e);
    } else if (r == 0 && p->upstream != NULL && !covers_all(run->gateway)) {
        w = (struct routing_words) { p->upstream, p->format, p->key };
        r = plan_route(run, "*", NULL, &w, e);
    }
    return r;
}

void gateway_plan(struct run *run)
{
    struct run_gateway *g = run->gateway = ARENA_NEW(run->arena, struct run_gateway);
    if (!settings_gateway(&run->settings) || run->settings.profile == NULL) {
        if (run->settings.sandbox.hosts != NULL) {
            g->token = make_token(run->arena);
            secrets_add(run->arena, &run->secrets, TOKEN_NAME, str_of(g->token));
        }
        return;
    }
    int r = plan_routes(run, &g->error);
    for (size_t i = 0; i < g->len; i++) { /* also when another one is missing */
        if (g->routes[i].credential != NULL) {
            secrets_add(run->arena, &run->secrets, g->routes[i].target.key,
                        str_of(g->routes[i].credential));
        }
    }
    if (r == 0) {
        g->token = make_token(run->arena);
        secrets_add(run->arena, &run->secrets, TOKEN_NAME, str_of(g->token));
    }
}

int gateway_admit(const struct run *run, struct err *e)
{
    if (run->gateway->error.code != ERR_OK) {
        *e = run->gateway->error;
        return -(int)e->code;
    }
    return 0;
}
