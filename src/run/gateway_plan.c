/* SPDX-License-Identifier: MIT
 *
 * What the settings and the profile ask of the gateway: routes, credentials, the token. All before
 * there is a record, so that every secret is known to the redactor.
 */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gateway/price.h"
#include "gateway/provider.h"
#include "replay/cassette.h"
#include "replay/route.h"
#include "replay/script.h"
#include "run/gateway_run_priv.h"

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
    /* No word before it: the beginning of a secret at the end of a text is taken out, too. */
    return arena_dup(a, str_of(text));
}

static void withhold(struct run_gateway *g, const char *name)
{
    if (g->n_withheld < ARRAY_LEN(g->withheld) - 1) {
        g->withheld[g->n_withheld++] = name;
    }
}

static int find_credential(struct run *run, struct planned *p, struct err *e)
{
    struct run_gateway *g = run->gateway;
    const char *key = p->target.key;
    if (key == NULL) {
        return 0;
    }
    p->credential = auth_variable(run, key);
    withhold(g, key);
    if (p->credential == NULL && p->target.key_required) {
        bool other = run->plan->settings.profile->auth.logins_len > 0;
        return ERR(e, ERR_SECRET,
                   "the gateway needs the credential of '%s': export %s=… in the environment of "
                   "cinch%s",
                   p->target.name, key, other ? ", or use your own login by --auth host" : "");
    }
    return 0;
}

/* What a login is good for, another format has no place for. */
static int check_kept(const struct run *run, const struct planned *p, struct err *e)
{
    const char *word = run->plan->settings.profile->gateway.format;
    const struct routing_target *t = &p->target;
    enum llm_format f;
    if (word == NULL || t->any_format || !llm_format_parse(str_of(word), &f) || t->format == f ||
        (t->formats & 1u << f) != 0) {
        return 0;
    }
    return ERR(e, ERR_CONFIG,
               "the credential of adapter '%s' is of no use for '%s', which speaks another format: "
               "take --auth gateway",
               run->plan->settings.profile->name, t->name);
}

/* A harness that finds a key prefers it to its login, and to the run's token, which is all that it
 * shall hold: no key of the task, of --secret or of --env takes that place. */
static void withhold_keys(struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    for (size_t i = 0; run->plan->settings.auth != AUTH_ENV && i < json_len(p->auth.env); i++) {
        withhold(run->gateway, json_cstring(json_item(p->auth.env, i), ""));
    }
    for (size_t i = 0; run->plan->settings.auth == AUTH_GATEWAY && i < json_len(p->gateway.env);
         i++) {
        const struct json_member *m = &p->gateway.env->object.members[i];
        struct str value = json_str(m->value, STR_EMPTY);
        if (str_find(value, STR("{gateway_token}")) < value.len) {
            withhold(run->gateway, m->key.ptr);
        }
    }
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
    p->kept = run->plan->settings.auth != AUTH_GATEWAY && w->key == NULL;
    g->len++;
    return p->kept ? check_kept(run, p, e) : find_credential(run, p, e);
}

static struct route_settings route_settings_of(const struct gateway_settings *s)
{
    return (struct route_settings) { s->script, s->cassette, s->upstream, s->routes };
}

/* Nothing behind such a route is ever asked, so its credential is not needed either. */
static bool covers_all(const struct run_gateway *g)
{
    size_t last = g->len;
    while (last > 0 && g->routes[last - 1].pattern == NULL) {
        last--;
    }
    return last > 0 && strcmp(g->routes[last - 1].pattern, "*") == 0;
}

/* What the settings name, then the upstream of the profile. */
static int plan_routes(struct run *run, struct err *e)
{
    const struct route_settings s = route_settings_of(&run->plan->settings.gateway);
    const struct profile_gateway *p = &run->plan->settings.profile->gateway;
    struct route_entry *entries;
    size_t n;
    int r = route_entries(run->arena, &s, &entries, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = plan_route(run, entries[i].pattern, entries[i].model, &entries[i].words, e);
    }
    if (r == 0 && p->upstream != NULL && !covers_all(run->gateway)) {
        const struct profile_login *login = run->plan->auth.login;
        bool kept = run->plan->settings.auth != AUTH_GATEWAY;
        struct routing_words w = { p->upstream, p->format, kept ? NULL : p->key };
        w.upstream = login != NULL && login->upstream != NULL ? login->upstream : w.upstream;
        r = plan_route(run, "*", NULL, &w, e);
    }
    return r;
}

/* --- without a run --- */

static int look_at(struct arena *a, const struct routing_words *w, struct err *e)
{
    CLEANUP(script) struct script *script = NULL;
    CLEANUP(cassette) struct cassette *cassette = NULL;
    struct routing_target t;
    int r = routing_read(a, w, &t, e);
    if (r == 0 && t.kind == ROUTING_SCRIPT) {
        r = script_load(t.where, &script, e);
    } else if (r == 0 && t.kind == ROUTING_CASSETTE) {
        r = cassette_open(t.where, &cassette, e);
    } else if (r == 0) {
        struct provider p = { 0 };
        r = provider_init(&p, t.where, NULL, e);
        provider_done(&p);
    }
    return r < 0 ? err_wrap(e, "gateway") : 0;
}

int gateway_look(struct arena *a, const struct settings *s, struct err *e)
{
    const struct route_settings settings = route_settings_of(&s->gateway);
    struct price_table *prices;
    struct route_entry *entries;
    size_t n = 0;
    int r = s->gateway.prices == NULL ? 0 : price_load(a, s->gateway.prices, &prices, e);
    unsigned endpoints = 0;
    r = r < 0 ? r : route_entries(a, &settings, &entries, &n, e);
    r = r < 0 ? r : route_endpoints(s->gateway.endpoints, &endpoints, e);
    if (r < 0) {
        return err_wrap(e, "gateway");
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = look_at(a, &entries[i].words, e);
    }
    return r;
}

/* --- for a run --- */

/* Tools are behind the same door, also where there is no model. */
static bool may_offer_tools(const struct run *run)
{
    const struct settings *s = &run->plan->settings;
    return json_len(s->tools) > 0 || json_get(s->prompt, "sections") != NULL ||
           s->output_schema != NULL || run->opts->hooks.n_tools > 0;
}

static void make_tokens(struct run *run)
{
    struct run_gateway *g = run->gateway;
    g->token = make_token(run->arena);
    secrets_add(run->arena, &run->draft->secrets, TOKEN_NAME, str_of(g->token));
    if (run->plan->settings.sandbox.hosts != NULL) {
        g->proxy_token = make_token(run->arena);
        secrets_add(run->arena, &run->draft->secrets, "CINCH_PROXY_TOKEN", str_of(g->proxy_token));
    }
}

const struct llm_sampling *gateway_sampling(struct run *run)
{
    const struct sampling *s = &run->plan->settings.sampling;
    struct llm_sampling *ret = &run->gateway->sampling;
    if (run->plan->settings.profile == NULL ||
        driver_is_kind(run->plan->settings.profile, DRIVER_MODEL_LOOP)) {
        return NULL;
    }
    *ret = (struct llm_sampling) {
        .has_temperature = !isnan(s->temperature),
        .has_top_p = !isnan(s->top_p),
        .has_presence = !isnan(s->presence_penalty),
        .has_frequency = !isnan(s->frequency_penalty),
        .has_seed = s->seed >= 0,
        .temperature = s->temperature,
        .top_p = s->top_p,
        .presence_penalty = s->presence_penalty,
        .frequency_penalty = s->frequency_penalty,
        .seed = s->seed,
        .max_tokens = s->max_tokens,
    };
    struct str *stops = arena_array(run->arena, json_len(s->stop) + 1, sizeof *stops);
    for (size_t i = 0; i < json_len(s->stop); i++) {
        stops[ret->n_stops++] = json_str(json_item(s->stop, i), STR_EMPTY);
    }
    ret->stops = stops;
    bool any = false;
    for (enum llm_sampling_field f = 0; f < LLM_SAMPLING_FIELDS; f++) {
        any = any || llm_sampling_has(ret, f);
    }
    return any ? ret : NULL;
}

void gateway_plan(struct run *run)
{
    struct run_gateway *g = run->gateway = ARENA_NEW(run->arena, struct run_gateway);
    g->open = (struct open_calls)OPEN_CALLS_INIT;
    if (!settings_gateway(&run->plan->settings) || run->plan->settings.profile == NULL) {
        if (run->plan->settings.sandbox.hosts != NULL || may_offer_tools(run)) {
            make_tokens(run);
        }
        return;
    }
    int r = plan_routes(run, &g->error);
    r = r < 0 ? r
              : route_endpoints(run->plan->settings.gateway.endpoints, &g->endpoints, &g->error);
    withhold_keys(run);
    for (size_t i = 0; i < g->len; i++) { /* also when another one is missing */
        if (g->routes[i].credential != NULL) {
            secrets_add(run->arena, &run->draft->secrets, g->routes[i].target.key,
                        str_of(g->routes[i].credential));
        }
    }
    if (r == 0) {
        make_tokens(run);
    }
}

/* The route of the task's model, as far as that is known before the start; `len`: none. */
static size_t planned_route(const struct run *run)
{
    const struct run_gateway *g = run->gateway;
    const char *model = run->plan->settings.model;
    size_t i = 0;
    while (i < g->len && (g->routes[i].pattern == NULL ||
                          (model == NULL ? strcmp(g->routes[i].pattern, "*") != 0
                                         : fnmatch(g->routes[i].pattern, model, 0) != 0))) {
        i++;
    }
    return i;
}

/* A limit in dollars needs a price; a model that only the harness knows is checked at its first
 * call. */
static int check_price(const struct run *run, struct err *e)
{
    const struct run_gateway *g = run->gateway;
    struct price_table *prices;
    struct price_match match;
    if (run->plan->settings.budget.usd <= 0 || g->len == 0) {
        return 0;
    }
    int r = price_load(run->arena, run->plan->settings.gateway.prices, &prices, e);
    size_t first = planned_route(run);
    for (size_t i = first; r == 0 && (i == first || (i < g->len && g->routes[i].pattern == NULL));
         i++) {
        const char *model = i < g->len && g->routes[i].model != NULL ? g->routes[i].model
                                                                     : run->plan->settings.model;
        if (model != NULL && !price_find(prices, str_of(model), &match)) {
            r = ERR(e, ERR_CONFIG,
                    "model '%.100s' has no price, so the limit of %g dollars cannot be enforced; "
                    "add the model to a price table (gateway.prices), or limit tokens instead",
                    model, run->plan->settings.budget.usd);
        }
    }
    return r;
}

int gateway_admit(const struct run *run, struct err *e)
{
    if (run->gateway->error.code != ERR_OK) {
        *e = run->gateway->error;
        return -(int)e->code;
    }
    return check_price(run, e);
}
