/* SPDX-License-Identifier: MIT
 *
 * The gateway of a run: what the settings ask for, its life from phase configure to phase parse,
 * and what it tells the record. The harness gets an address and a token of this run; credentials
 * stay with cinch.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gateway/account.h"
#include "gateway/cassette_upstream.h"
#include "gateway/gateway.h"
#include "gateway/ledger.h"
#include "gateway/price.h"
#include "gateway/proxy.h"
#include "gateway/routing.h"
#include "gateway/script_upstream.h"
#include "gateway/upstream_curl.h"
#include "io/listener.h"
#include "io/timer.h"
#include "run/run_priv.h"

/* Routes of a task are written by hand; the record lists them. */
enum { ROUTES_MAX = 64 };

#define TOKEN_NAME    "CINCH_GATEWAY_TOKEN"
#define CASSETTE_NAME "evidence/traffic.cassette"

/* One route, read from the settings. */
struct planned {
    const char *pattern, *model;
    struct routing_target target;
    const char *credential; /* NULL: none */
    struct upstream *upstream;
};

struct run_gateway {
    struct err error; /* told by phase admit, when there is a record */
    struct planned routes[ROUTES_MAX];
    struct gateway_route table[ROUTES_MAX];
    size_t len;
    const char *withheld[ROUTES_MAX + 1]; /* names of variables with credentials */
    size_t n_withheld;
    const char *token, *url;
    struct proxy_rules *egress; /* NULL: there is no proxy */
    struct price_table *prices;
    struct account *account;
    struct cassette_writer *recorder; /* NULL: nothing is recorded */
    struct filter filters[FILTERS_MAX];
    struct gateway *gateway;
    struct timer *patience; /* of a harness that goes on after a refusal */
    int64_t refused;
};

/* --- planning, before there is a record --- */

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
    if (plan_routes(run, &g->error) < 0) {
        return;
    }
    g->token = make_token(run->arena);
    secrets_add(run->arena, &run->secrets, TOKEN_NAME, str_of(g->token));
    for (size_t i = 0; i < g->len; i++) {
        if (g->routes[i].credential != NULL) {
            secrets_add(run->arena, &run->secrets, g->routes[i].target.key,
                        str_of(g->routes[i].credential));
        }
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

/* --- what the account tells --- */

static void on_call(void *arg, const struct exchange_view *x, const struct account_call *c)
{
    struct run *run = arg;
    const struct meter_call *m = &c->metered;
    struct event_model_call ev = {
        .exchange = (int64_t)x->id,
        .format = llm_format_name(x->client.format),
        .model = m->model,
        .upstream = x->upstream->name,
        .status = c->status,
        .attempts = m->attempts,
        .complete = c->complete,
        .translated = x->translated,
        .side = c->side,
        .input = m->usage.input,
        .output = m->usage.output,
        .cache_read = m->usage.cache_read,
        .cache_write = m->usage.cache_write,
        .reasoning = m->usage.reasoning,
        .estimated = m->estimated,
        .cost_usd = c->cost < 0 ? -1 : price_usd(c->cost),
        .first_byte = c->first_byte,
        .took = c->took,
    };
    events_model_call(&run->record.events, &ev);
}

static void on_impatient(void *arg)
{
    execute_interrupt(arg, false);
}

/* A harness that understands the refusal ends by itself, and may still say something sensible; one
 * that does not has the grace period. */
static void on_refused(void *arg, const struct exchange_view *x, enum budget_kind why,
                       const char *text)
{
    struct run *run = arg;
    struct run_gateway *g = run->gateway;
    const char *kind = why == BUDGET_NONE ? "above" : budget_kind_word(why);
    g->refused++;
    events_gateway_refused(&run->record.events, (int64_t)x->id, kind, text);
    if (account_trouble(g->account) != ACCOUNT_BUDGET) {
        return; /* the deadline has its own timer */
    }
    run_fail(run, REASON_BUDGET, "the budget is used up: %s", text);
    if (!timer_armed(g->patience)) {
        timer_arm(g->patience, clock_now() + run->settings.grace);
    }
}

static void on_throttled(void *arg, const struct exchange_view *x,
                         const struct account_throttled *t)
{
    struct run *run = arg;
    struct event_prompt p = run_event_prompt(run);
    struct event_throttle ev = {
        .kind = throttle_kind_word(t->signal->kind),
        .attempt = t->attempts,
        .delay = t->delay,
        .retry_after = t->signal->retry_after,
        .retry_safe = t->signal->retry_safe,
    };
    events_throttled(&run->record.events, &p, &ev);
}

/* Harnesses ask for all sorts of paths to see what is there: no news. */
static bool is_worth_telling(int status)
{
    return status < 500 && status != 404;
}

/* What the door itself refuses: a wrong token, a host that is not allowed. */
static void on_event(void *arg, const struct gateway_event *ev)
{
    struct run *run = arg;
    if (ev->kind == GATEWAY_EGRESS_DENIED) {
        events_gateway_refused(&run->record.events, 0, "egress", ev->why);
        confine_denied(run,
                       arena_printf(run->arena, "connect to %.*s:%d", STR_ARG(ev->host), ev->port));
    } else if (ev->kind == GATEWAY_REFUSED && ev->filter == NULL && is_worth_telling(ev->status)) {
        int64_t exchange = ev->view == NULL ? 0 : (int64_t)ev->view->id;
        events_gateway_refused(&run->record.events, exchange,
                               ev->status == 401 || ev->status == 407 ? "token" : "request",
                               ev->why);
    }
}

/* --- life --- */

static struct account *open_account(struct run *run)
{
    const struct budget_settings *b = &run->settings.budget;
    const struct throttle_settings *t = &run->settings.throttle;
    struct throttle_policy policy = THROTTLE_DEFAULT;
    policy.max_attempts = t->max_attempts > INT_MAX ? INT_MAX : (int)t->max_attempts;
    policy.base = t->base;
    policy.cap = t->cap;
    policy.total = t->total;
    policy.concurrency = t->concurrency > INT_MAX ? INT_MAX : (int)t->concurrency;
    policy.per_minute = t->per_minute > INT_MAX ? INT_MAX : (int)t->per_minute;
    return account_new(&(struct account_opts) {
        .limits = { .input = b->tokens_input,
                    .output = b->tokens_output,
                    .total = b->tokens_total,
                    .cost = price_pico(b->usd),
                    .calls = b->calls },
        .throttle = policy,
        .prices = run->gateway->prices,
        .port = { on_call, on_refused, on_throttled, run },
        .seed = (uint64_t)clock_wall(),
    });
}

static int open_script(struct run *run, const char *path, struct upstream **ret, struct err *e)
{
    struct script *script;
    int r = script_load(path, &script, e);
    return r < 0 ? r : script_upstream_new(run->loop, script, NULL, ret, e);
}

static int open_cassette(struct run *run, const char *path, struct upstream **ret, struct err *e)
{
    struct cassette_upstream_opts o = { .speed = run->settings.gateway.replay_speed,
                                        .redactor = run->redactor };
    return cassette_upstream_new(run->loop, path, &o, ret, e);
}

static int open_upstream(struct run *run, struct planned *p, struct err *e)
{
    const struct routing_target *t = &p->target;
    switch (t->kind) {
    case ROUTING_SCRIPT:
        return open_script(run, t->where, &p->upstream, e);
    case ROUTING_CASSETTE:
        return open_cassette(run, t->where, &p->upstream, e);
    case ROUTING_HTTP:
        break;
    }
    struct upstream_curl_opts o = {
        .name = t->name,
        .url = t->where,
        .format = t->format,
        .formats = t->formats,
        .any_format = t->any_format,
        .key = p->credential,
    };
    return upstream_curl_new(run->loop, &o, &p->upstream, e);
}

/* What was replayed need not be recorded again. */
static int open_recorder(struct run *run, struct err *e)
{
    struct run_gateway *g = run->gateway;
    enum tristate wish = run->settings.gateway.record;
    bool replays = g->routes[0].target.kind == ROUTING_CASSETTE;
    if (wish == TRI_FALSE || (wish == TRI_UNSET && replays)) {
        return 0;
    }
    struct cassette_writer_opts o = { .redactor = run->redactor,
                                      .adapter = str_of(run->settings.adapter) };
    const char *path = arena_printf(run->arena, "%s/%s", run->record.dir.path, CASSETTE_NAME);
    return cassette_writer_new(path, &o, &g->recorder, e);
}

static int open_upstreams(struct run *run, struct err *e)
{
    struct run_gateway *g = run->gateway;
    int r = 0;
    for (size_t i = 0; r == 0 && i < g->len; i++) {
        struct planned *p = &g->routes[i];
        r = open_upstream(run, p, e);
        g->table[i] = (struct gateway_route) { p->pattern, p->upstream, p->model };
    }
    return r;
}

static int open_gateway(struct run *run, int listener, struct err *e)
{
    struct run_gateway *g = run->gateway;
    struct filter *filters = g->filters; /* borrowed by the gateway */
    size_t n = 0;
    if (g->account != NULL) {
        filters[n++] = account_budget_filter(g->account);
        filters[n++] = account_throttle_filter(g->account);
        if (g->recorder != NULL) {
            cassette_filter(g->recorder, &filters[n++]);
        }
        filters[n++] = account_meter_filter(g->account);
    }
    return gateway_open(run->loop,
                        &(struct gateway_opts) { .listeners = &listener,
                                                 .n_listeners = 1,
                                                 .token = g->token,
                                                 .routes = g->table,
                                                 .n_routes = g->len,
                                                 .filters = filters,
                                                 .n_filters = n,
                                                 .egress = g->egress,
                                                 .port = { on_event, run } },
                        &g->gateway, e);
}

static void tell_opened(struct run *run)
{
    struct run_gateway *g = run->gateway;
    const char *names[ROUTES_MAX + 1] = { 0 };
    for (size_t i = 0; i < g->len; i++) {
        names[i] = g->routes[i].target.name;
    }
    events_gateway_opened(&run->record.events, g->url, names);
}

/* The hosts that the agent may reach, through the proxy that the gateway also is. */
static int open_egress(struct run *run, struct err *e)
{
    const struct json *hosts = run->settings.sandbox.hosts;
    struct run_gateway *g = run->gateway;
    int r = 0;
    g->egress = hosts == NULL ? NULL : proxy_rules_new();
    for (size_t i = 0; r == 0 && i < json_len(hosts); i++) {
        r = proxy_rules_add(g->egress, json_cstring(json_item(hosts, i), ""), e);
    }
    return r;
}

static int open_model(struct run *run, struct err *e)
{
    struct run_gateway *g = run->gateway;
    if (g->len == 0) {
        return 0; /* only a proxy */
    }
    int r = price_load(run->arena, run->settings.gateway.prices, &g->prices, e);
    if (r == 0) {
        g->account = open_account(run);
        r = timer_new(run->loop, on_impatient, run, &g->patience, e);
    }
    if (r == 0) {
        r = open_upstreams(run, e);
    }
    return r < 0 ? r : open_recorder(run, e);
}

/* The listener of the sandbox; -1: there is none, and the address is promised already. */
static void take_listener(struct run *run, int fd)
{
    struct err e;
    int port;
    int r = fd >= 0 ? 0 : listener_bind_tcp("127.0.0.1", CONFINE_PORT, &fd, &port, &e);
    r = r < 0 ? r : open_gateway(run, fd, &e);
    if (r < 0) {
        (void)err_wrap(&e, "gateway");
        run_fail_err(run, &e);
    }
}

int gateway_start(struct run *run, struct err *e)
{
    struct run_gateway *g = run->gateway;
    int fd;
    int port = CONFINE_PORT;
    if (g->len == 0 && run->settings.sandbox.hosts == NULL) {
        return 0;
    }
    int r = open_model(run, e);
    r = r < 0 ? r : open_egress(run, e);
    bool inside = r == 0 && confine_listen(run, take_listener);
    if (r == 0 && !inside) {
        r = listener_bind_tcp("127.0.0.1", 0, &fd, &port, e);
    }
    if (r < 0) {
        return err_wrap(e, "gateway");
    }
    g->url = arena_printf(run->arena, "http://127.0.0.1:%d", port);
    r = inside ? 0 : open_gateway(run, fd, e);
    if (r == 0) {
        tell_opened(run);
    }
    return r;
}

void gateway_clock(struct run *run)
{
    if (run->gateway->account != NULL) {
        account_set_deadline(run->gateway->account, run->exec.started,
                             run->exec.started + run->settings.timeout);
    }
}

static void close_recorder(struct run *run)
{
    struct run_gateway *g = run->gateway;
    struct err first;
    uint64_t lost = g->recorder == NULL ? 0 : cassette_writer_lost(g->recorder, &first);
    if (lost > 0) {
        run_warn(run, "%llu exchanges are not in the cassette: %s", (unsigned long long)lost,
                 first.msg);
    }
    g->recorder = cassette_writer_free(g->recorder);
}

/* A request that a script or a cassette had no answer to says what is wrong with the task. */
static void tell_misses(struct run *run)
{
    struct run_gateway *g = run->gateway;
    for (size_t i = 0; i < g->len; i++) {
        const struct planned *p = &g->routes[i];
        struct str miss = STR_EMPTY;
        if (p->upstream != NULL && p->target.kind == ROUTING_SCRIPT) {
            miss = script_upstream_miss(p->upstream);
        } else if (p->upstream != NULL && p->target.kind == ROUTING_CASSETTE) {
            miss = cassette_upstream_report(p->upstream);
        }
        if (miss.len > 0) {
            run_fail(run, REASON_BAD_TASK, "%.*s", STR_ARG(str_slice(miss, 0, 400)));
        }
        if (miss.len > 0 && p->target.kind == ROUTING_CASSETTE) {
            struct err why;
            (void)!record_write_text(&run->record, "evidence/divergence.txt", miss, &why);
        }
    }
}

static void gateway_close(struct run *run)
{
    struct run_gateway *g = run->gateway;
    if (g == NULL) {
        return;
    }
    tell_misses(run);
    g->gateway = gateway_free(g->gateway);
    close_recorder(run);
    for (size_t i = 0; i < g->len; i++) {
        if (g->routes[i].upstream != NULL) {
            g->routes[i].upstream->ops->free(g->routes[i].upstream);
            g->routes[i].upstream = NULL;
        }
    }
    g->patience = timer_free(g->patience);
    g->egress = proxy_rules_free(g->egress);
}

void gateway_done(struct run *run)
{
    gateway_close(run);
    if (run->gateway != NULL) {
        run->gateway->account = account_free(run->gateway->account);
    }
}

/* --- what the child gets --- */

/* `cinch task render` asks for a run that is none, and has no gateway. */
const char *gateway_url(const struct run *run)
{
    return run->gateway == NULL ? NULL : run->gateway->url;
}

const char *gateway_token(const struct run *run)
{
    return gateway_url(run) == NULL ? NULL : run->gateway->token;
}

const char *const *gateway_withheld(const struct run *run)
{
    return run->gateway->withheld;
}

/* As curl, git, npm, pip and most others look for it. */
static void set_proxy(struct run *run, struct json *env)
{
    static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy" };
    const struct run_gateway *g = run->gateway;
    const char *address = strrchr(g->url, '/') + 1;
    if (g->egress == NULL) {
        return;
    }
    const char *url = arena_printf(run->arena, "http://cinch:%s@%s", g->token, address);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_setc(run->arena, env, names[i], json_cstr(run->arena, url));
    }
    json_setc(run->arena, env, "NO_PROXY", json_cstr(run->arena, "localhost,127.0.0.1,::1"));
    json_setc(run->arena, env, "no_proxy", json_cstr(run->arena, "localhost,127.0.0.1,::1"));
}

int gateway_environment(struct run *run, const struct placeholders *vars, struct json *env,
                        struct err *e)
{
    const struct profile *p = run->settings.profile;
    if (run->gateway->url == NULL) {
        return 0;
    }
    json_setc(run->arena, env, "CINCH_GATEWAY_URL", json_cstr(run->arena, run->gateway->url));
    json_setc(run->arena, env, TOKEN_NAME, json_cstr(run->arena, run->gateway->token));
    set_proxy(run, env);
    for (size_t i = 0; i < json_len(p->gateway.env); i++) {
        const struct json_member *m = &p->gateway.env->object.members[i];
        struct str value;
        int r = expand_text(run->arena, json_str(m->value, STR_EMPTY), vars, true, &value, e);
        if (r < 0) {
            return err_wrap(e, "gateway variable '%s' of adapter '%s'", m->key.ptr, p->name);
        }
        json_set(run->arena, env, m->key, json_string(run->arena, value));
    }
    return 0;
}

int gateway_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
                 struct err *e)
{
    const struct json *over = json_get(run->settings.profile->gateway.files, name);
    struct placeholder vars[] = {
        { .name = "gateway_url", .value = str_of(run->gateway->url) },
        { .name = "gateway_token", .value = str_of(run->gateway->token) },
        { .name = "home", .value = str_of(run->paths.home) },
        { .name = "model", .value = str_of(run->settings.model) },
    };
    struct json *filled = NULL;
    if (over != NULL && run->gateway->url != NULL) {
        int r = expand_tree(run->arena, over, &(struct placeholders) { vars, ARRAY_LEN(vars) },
                            &filled, e);
        if (r < 0) {
            return err_wrap(e, "gateway values of '%s'", name);
        }
    }
    *ret = json_merge(run->arena, tree == NULL ? json_object(run->arena) : tree, filled);
    return 0;
}

/* --- what became of it --- */

static struct ledger_reported reported(const struct run *run)
{
    const struct agent_usage *u = &run->report.usage;
    return (struct ledger_reported) {
        .known = u->known || u->cost_known,
        .usage = u->known ? (struct llm_usage) { u->input, u->output, u->cache_read, u->cache_write,
                                                 u->reasoning }
                          : LLM_USAGE_NONE,
        .calls = u->api_calls > 0 ? u->api_calls : -1,
        .cost_known = u->cost_known,
        .cost_usd = u->cost_usd,
    };
}

void gateway_judge(struct run *run)
{
    struct run_gateway *g = run->gateway;
    if (g->account == NULL) {
        return;
    }
    gateway_close(run);
    if (run->cause.reason != REASON_NONE) { /* why the agent failed is known better here */
        switch (account_trouble(g->account)) {
        case ACCOUNT_AUTH:
            run_fail(run, REASON_AUTH, "the provider does not accept the credential");
            break;
        case ACCOUNT_RATE_LIMITED:
            run_fail(run, REASON_RATE_LIMITED,
                     "the provider limits the rate, or the quota is used");
            break;
        case ACCOUNT_UNREACHABLE: /* the code for what may work at another time */
            run_fail(run, REASON_RATE_LIMITED, "the provider cannot be reached, or keeps failing");
            break;
        case ACCOUNT_FINE:
        case ACCOUNT_BUDGET:
        case ACCOUNT_DEADLINE:
            break;
        }
    }
    struct ledger_reported told = reported(run);
    struct err why;
    struct json *ledger = ledger_json(run->arena, account_meter(g->account), &told);
    if (record_write_json(&run->record, "evidence/ledger.json", ledger, &why) < 0) {
        run_warn(run, "the ledger could not be written: %s", why.msg);
    }
}

static void fill_usage(const struct run *run, struct summary *s)
{
    struct run_gateway *g = run->gateway;
    struct ledger_reported told = reported(run);
    struct json *ledger = ledger_json(run->arena, account_meter(g->account), &told);
    s->usage = json_object(run->arena);
    json_setc(run->arena, s->usage, "wire", json_get(ledger, "wire"));
    json_setc(run->arena, s->usage, "reported", json_get(ledger, "reported"));
    json_setc(run->arena, s->usage, "difference", json_get(ledger, "difference"));
}

void gateway_fill(const struct run *run, struct summary *s)
{
    const struct run_gateway *g = run->gateway;
    if (g == NULL || g->account == NULL) {
        return;
    }
    const struct meter *m = account_meter(g->account);
    const struct meter_sum *sum = meter_sum(m);
    const struct price_table *prices = meter_prices(m);
    fill_usage(run, s);
    s->calls.total = sum->calls;
    s->calls.failed = sum->failed;
    s->calls.refused = g->refused;
    s->calls.side = sum->side;
    s->calls.estimated = sum->estimated;
    if (sum->calls == 0) {
        return;
    }
    s->api_calls = sum->calls;
    s->tokens.input = sum->usage.input;
    s->tokens.output = sum->usage.output;
    s->tokens.cache_read = sum->usage.cache_read;
    s->tokens.cache_creation = sum->usage.cache_write;
    s->tokens.reasoning = sum->usage.reasoning;
    s->tokens.source = TOKENS_WIRE;
    if (sum->unpriced == 0 && prices != NULL) {
        s->cost_usd = price_usd(sum->cost);
        s->cost_source = COST_TABLE;
        s->prices.version = prices->version;
        s->prices.source = prices->source;
    }
    if (s->engine.model == NULL) {
        s->engine.model = meter_row(m, 0)->model;
    }
    nsec first = meter_first_byte(m);
    s->first_token = first > run->exec.started ? first - run->exec.started : 0;
}
