/* SPDX-License-Identifier: MIT
 *
 * What the gateway of a run tells: events while it works, then the reason, the ledger and the sums.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "gateway/account_event.h"
#include "gateway/ledger.h"
#include "gateway/price.h"
#include "gateway/sampling_edit.h"
#include "io/timer.h"
#include "run/gateway_run_priv.h"
#include "run/project_config.h"

/* --- while it works --- */

/* What translations drop, once per kind. */
static void warn_of_dropped(struct run *run, const struct llm_losses *l)
{
    struct llm_losses *known = &run->gateway->reported;
    size_t kept = l == NULL ? 0 : l->n < LLM_LOSSES_MAX ? l->n : LLM_LOSSES_MAX;
    known->arena = run->arena;
    for (size_t i = 0; i < kept; i++) {
        size_t before = known->n;
        llm_lost(known, str_of(l->items[i].what), l->items[i].why);
        if (known->n > before && before < LLM_LOSSES_MAX) {
            run_warn(run, "model requests: %s was dropped: %s", l->items[i].what, l->items[i].why);
        }
    }
}

/* Sampling parameters that a request could not have, once each. */
static void warn_of_unsent(struct run *run, const struct sampling_report *s)
{
    for (size_t i = 0; s != NULL && i < s->n_unsent; i++) {
        enum llm_sampling_field f = 0;
        while (f + 1 < LLM_SAMPLING_FIELDS && strcmp(llm_sampling_name(f), s->unsent[i]) != 0) {
            f++;
        }
        if (!run->gateway->unsent[f]) {
            run_warn(run, "'agent.sampling.%s' was not sent with every model request: %s",
                     s->unsent[i], s->why[i]);
        }
        run->gateway->unsent[f] = true;
    }
}

/* A call was served by a fallback: once, until another upstream serves. */
static void warn_of_fallback(struct run *run, const struct exchange_view *x)
{
    size_t n = 0;
    while (x->failed[n] != NULL) {
        n++;
    }
    if (n > 0 && run->gateway->fallback != x->upstream) {
        run->gateway->fallback = x->upstream;
        run_warn(run, "model calls were sent to the fallback '%s', because '%s' failed: %s",
                 x->upstream->name, x->failed[n - 1], x->failure);
    }
}

static void on_call(void *arg, const struct exchange_view *x, const struct account_call *c)
{
    struct run *run = arg;
    struct event_model_call ev = account_call_event(x, c);
    events_model_call(&run->record.events, &ev);
    run->gateway->calls.answered += c->status > 0 && c->status < 400;
    warn_of_dropped(run, x->dropped);
    warn_of_unsent(run, x->sampling);
    warn_of_fallback(run, x);
    run_alive(run);
    project_reveal(run, false);
}

static void on_sending(void *arg, const struct exchange_view *x,
                       const struct meter_reserved *reserved)
{
    struct run *run = arg;
    const struct event_model_call call = {
        .exchange = (int64_t)x->id,
        .format = llm_format_name(x->client.format),
        .model = x->upstream_model,
        .upstream = x->upstream->name,
        .attempts = x->attempt + 1,
        .translated = x->translated,
        .input = reserved->input,
        .output = reserved->output,
        .cost_usd = reserved->cost < 0 ? -1 : price_usd(reserved->cost),
    };
    open_calls_add(&run->gateway->open, &run->record, &call);
}

static void on_over(void *arg, const struct exchange_view *x)
{
    struct run *run = arg;
    open_calls_remove(&run->gateway->open, (int64_t)x->id);
}

/* Does the workspace have what the harness still reads after its first request? With a ref only
 * git knows. */
static bool has_late_files(const struct run *run)
{
    const struct json *names = run->plan->settings.profile->project.settle;
    bool found = run->plan->settings.view.ref != NULL;
    for (size_t i = 0; i < json_len(names) && !found; i++) {
        found = file_exists(AT_FDCWD, arena_printf(run->arena, "%s/%s", run->paths.view,
                                                   json_cstring(json_item(names, i), "")));
    }
    return found && json_len(names) > 0 && !run->plan->settings.trust_project;
}

/* A response makes the agent write files. A harness that is still reading its configuration would
 * obey them, so the first request goes on when the harness has stopped working. */
static nsec hold(void *arg, const struct exchange_view *x)
{
    enum { LOOKS = 4 };
    const nsec period = 100 * NSEC_PER_MS;
    const nsec most = 20 * NSEC_PER_SEC;
    struct run *run = arg;
    struct run_gateway *g = run->gateway;
    nsec now = clock_now();
    if (g->settling.since == 0) {
        g->settling.since = now;
        g->settling.over = execute_proc(run) == NULL || !has_late_files(run);
    }
    g->settling.over =
        g->settling.over || execute_proc(run) == NULL || now - g->settling.since > most;
    if (g->settling.over) {
        return 0;
    }
    nsec cpu = proc_cpu(execute_proc(run));
    bool worked = cpu == 0 || cpu != g->settling.cpu;
    g->settling.unworked = worked ? 0 : g->settling.unworked + 1;
    g->settling.cpu = cpu;
    g->settling.over = g->settling.unworked >= LOOKS;
    proc_refresh_cpu(execute_proc(run));
    return g->settling.over ? 0 : period;
}

/* A harness that understands the refusal ends by itself, and may still say something sensible; one
 * that does not has the grace period. */
static void on_refused(void *arg, const struct exchange_view *x,
                       const struct account_refused *refused)
{
    struct run *run = arg;
    struct run_gateway *g = run->gateway;
    g->calls.refused++;
    events_gateway_refused(&run->record.events, (int64_t)x->id, account_refused_kind(refused),
                           refused->text);
    if (account_trouble(g->assembly.account) != ACCOUNT_BUDGET) {
        return; /* the deadline has its own timer */
    }
    run_fail(run, REASON_BUDGET, "a model call was refused to stay within the budget: %s",
             refused->text);
    if (!timer_armed(g->patience)) {
        timer_arm(g->patience, clock_now() + run->plan->settings.grace);
    }
}

static void on_throttled(void *arg, const struct exchange_view *x,
                         const struct account_throttled *t)
{
    struct run *run = arg;
    struct event_prompt p = run_event_prompt(run);
    struct event_throttle ev = account_throttle_event(t);
    events_throttled(&run->record.events, &p, &ev);
    bool quota = t->signal->kind == THROTTLE_QUOTA_EXHAUSTED;
    if (quota && !run->gateway->quota_warned) {
        run->gateway->quota_warned = true;
        run_warn(run,
                 "the provider says that the quota of model '%.*s' is exhausted; check the plan "
                 "and billing of this account",
                 STR_ARG(str_slice(x->model, 0, 200)));
    }
    run->gateway->throttled = ev;
}

/* Harnesses ask for all sorts of paths to see what is there: no news. */
static bool is_worth_telling(int status)
{
    return status < 500 && status != 404;
}

/* A strict task whose sampling the provider would refuse: no request can be what it asks for. */
static void fail_unsent(struct run *run, const struct gateway_event *ev)
{
    const struct sampling_report *s = ev->view == NULL ? NULL : ev->view->sampling;
    if (s != NULL && s->n_unsent > 0 && run->plan->settings.tier_strict) {
        run_fail(run, REASON_BAD_TASK,
                 "'agent.sampling.%s' cannot be sent, and eval.strict demands it: %s", s->unsent[0],
                 s->why[0]);
    }
}

/* What the door itself refuses: a wrong token, a host that is not allowed. */
static void on_event(void *arg, const struct gateway_event *ev)
{
    struct run *run = arg;
    if (ev->kind == GATEWAY_EGRESS_DENIED) {
        events_gateway_refused(&run->record.events, 0, "egress", ev->why);
        sandbox_session_denied(
            run, arena_printf(run->arena, "connect to %.*s:%d", STR_ARG(ev->host), ev->port));
    } else if (ev->kind == GATEWAY_REFUSED && ev->filter == NULL && is_worth_telling(ev->status)) {
        int64_t exchange = ev->view == NULL ? 0 : (int64_t)ev->view->id;
        events_gateway_refused(&run->record.events, exchange,
                               ev->status == 401 || ev->status == 407 ? "token" : "request",
                               ev->why);
        fail_unsent(run, ev);
    }
}

struct account_port gateway_account_port(struct run *run)
{
    return (struct account_port) { .on_sending = on_sending,
                                   .on_over = on_over,
                                   .hold = hold,
                                   .on_call = on_call,
                                   .on_refused = on_refused,
                                   .on_throttled = on_throttled,
                                   .arg = run };
}

struct gateway_port gateway_event_port(struct run *run)
{
    return (struct gateway_port) { on_event, run };
}

/* --- afterwards --- */

void gateway_load_store(struct run *run)
{
    CLEANUP(buf) struct buf text = BUF_INIT(2 * LLM_STORE_MAX);
    const char *record = json_cstring(json_get(run->plan->settings.session, "resume"), NULL);
    struct json *v = NULL;
    struct err e;
    run->gateway->store = llm_store_new(0);
    if (record == NULL) {
        return;
    }
    const char *path = arena_printf(run->arena, "%s/" STORE_NAME, record);
    int r = file_read(AT_FDCWD, path, 2 * LLM_STORE_MAX, &text, &e);
    if (r < 0 && access(path, F_OK) != 0) {
        return; /* nothing was translated */
    }
    r = r < 0 ? r : json_parse(run->arena, buf_str(&text), NULL, &v, &e);
    r = r < 0 ? r : llm_store_load(run->gateway->store, v, &e);
    if (r < 0) {
        run_warn(run, "signatures of the earlier conversation cannot be read: %s", e.msg);
    }
}

void gateway_save_store(struct run *run)
{
    struct run_gateway *g = run->gateway;
    struct err e;
    if (llm_store_count(g->store) > 0 &&
        record_write_json(&run->record, STORE_NAME, llm_store_json(g->store, run->arena), &e) < 0) {
        run_warn(run, "signatures for a continuation could not be written: %s", e.msg);
    }
}

static struct ledger_reported reported(const struct run *run)
{
    const struct agent_usage *u = &run->outcome.report.usage;
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

static size_t find_route(const struct run_gateway *g, const struct upstream *upstream)
{
    size_t i = 0;
    while (i < g->len && g->routes[i].upstream != upstream) {
        i++;
    }
    return i < g->len ? i : 0;
}

void gateway_view(const struct run *run, struct run_view *ret)
{
    const struct run_gateway *g = run->gateway;
    const struct settings *s = &run->plan->settings;
    nsec left = s->timeout - ret->elapsed;
    ret->time_left = left > 0 ? left : 0;
    ret->budget_usd = s->budget.usd > 0 ? s->budget.usd : 0;
    if (g == NULL || g->assembly.account == NULL) {
        return;
    }
    const struct meter_sum *sum = meter_sum(account_meter(g->assembly.account));
    ret->calls = sum->calls;
    ret->tokens = llm_usage_total(&sum->usage);
    ret->cost_usd = (double)sum->cost / 1e12;
}

/* Some agents present the error of their provider as an answer. An adapter program may do without a
 * model, so its claim is only doubted. */
static void judge_failed_calls(struct run *run)
{
    const struct run_gateway *g = run->gateway;
    const struct meter_sum *sum = meter_sum(account_meter(g->assembly.account));
    bool adapter = driver_is_kind(run->plan->settings.profile, DRIVER_CONTRACT);
    if (!run->exec.launched || sum->calls == 0 || run->cause.reason != REASON_NONE) {
        return;
    }
    if (plausibility_is_agent(run) && sum->failed == sum->calls) {
        run_fail(run, REASON_FAILURE, "the agent ended well, but none of its model calls did");
    } else if (adapter && g->calls.answered == 0 && g->calls.refused == 0) {
        run_doubt(run, "the adapter program reports success, but %s failed (%s)",
                  sum->calls == 1 ? "its only model call" : "all of its model calls",
                  account_trouble_text(g->assembly.account));
    }
}

void gateway_judge(struct run *run)
{
    struct run_gateway *g = run->gateway;
    if (g->assembly.account == NULL) {
        return;
    }
    g->blamed = find_route(g, account_troubled(g->assembly.account));
    gateway_close(run);
    judge_failed_calls(run);
    if (run->cause.reason != REASON_NONE) { /* why the agent failed is known better here */
        switch (account_trouble(g->assembly.account)) {
        case ACCOUNT_AUTH:
            run_fail(run, REASON_AUTH, "the provider does not accept the credential (%s): %s",
                     account_trouble_text(g->assembly.account), auth_advice(run));
            break;
        case ACCOUNT_RATE_LIMITED:
            run_fail(run, REASON_RATE_LIMITED,
                     "the provider limits the rate, or the quota is used (%s)",
                     account_trouble_text(g->assembly.account));
            break;
        case ACCOUNT_UNREACHABLE:
            run_fail(run, REASON_PROVIDER_UNAVAILABLE,
                     "the provider cannot be reached or failed repeatedly: %s",
                     account_trouble_text(g->assembly.account));
            break;
        case ACCOUNT_FINE:
        case ACCOUNT_BUDGET:
        case ACCOUNT_DEADLINE:
            break;
        }
    }
    gateway_save_store(run);
    struct ledger_reported told = reported(run);
    struct err why;
    struct json *ledger = ledger_json(run->arena, account_meter(g->assembly.account), &told);
    if (record_write_json(&run->record, "evidence/ledger.json", ledger, &why) < 0) {
        run_warn(run, "the ledger could not be written: %s", why.msg);
    }
    open_calls_done(&g->open, &run->record.dir);
}

static void fill_usage(const struct run *run, struct summary *s)
{
    struct run_gateway *g = run->gateway;
    struct ledger_reported told = reported(run);
    struct json *ledger = ledger_json(run->arena, account_meter(g->assembly.account), &told);
    s->usage = json_object(run->arena);
    json_setc(run->arena, s->usage, "wire", json_get(ledger, "wire"));
    json_setc(run->arena, s->usage, "reported", json_get(ledger, "reported"));
    json_setc(run->arena, s->usage, "difference", json_get(ledger, "difference"));
}

struct budget_left gateway_left(const struct run *run)
{
    if (run->gateway == NULL || run->gateway->assembly.account == NULL) {
        struct budget none;
        budget_init(&none, &(struct budget_limits) { 0 });
        return budget_left(&none, 0);
    }
    return account_left(run->gateway->assembly.account);
}

const struct event_throttle *gateway_throttled(const struct run *run)
{
    const struct run_gateway *g = run->gateway;
    return g == NULL || g->throttled.kind == NULL ? NULL : &g->throttled;
}

const char *gateway_exceeded(const struct run *run)
{
    const struct run_gateway *g = run->gateway;
    enum budget_kind kind = g == NULL || g->assembly.account == NULL
                                ? BUDGET_NONE
                                : account_exceeded(g->assembly.account);
    return kind == BUDGET_NONE ? NULL : budget_kind_word(kind);
}

static int64_t known(int64_t tokens)
{
    return tokens < 0 ? 0 : tokens;
}

struct agent_usage run_usage(const struct run *run)
{
    const struct run_gateway *g = run->gateway;
    struct agent_usage u = run->outcome.report.usage;
    const struct meter_sum *sum = g == NULL || g->assembly.account == NULL
                                      ? NULL
                                      : meter_sum(account_meter(g->assembly.account));
    if (sum != NULL && sum->calls > 0) {
        u.known = true;
        u.input = known(sum->usage.input);
        u.output = known(sum->usage.output);
        u.cache_read = known(sum->usage.cache_read);
        u.cache_write = known(sum->usage.cache_write);
        u.reasoning = known(sum->usage.reasoning);
    }
    return u;
}

void gateway_fill(const struct run *run, struct summary *s)
{
    const struct run_gateway *g = run->gateway;
    if (g == NULL || g->assembly.account == NULL) {
        return;
    }
    const struct meter *m = account_meter(g->assembly.account);
    const struct meter_sum *sum = meter_sum(m);
    const struct price_table *prices = meter_prices(m);
    fill_usage(run, s);
    s->calls.total = sum->calls;
    s->calls.failed = sum->failed;
    s->calls.refused = g->calls.refused;
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
    bool simulated = sum->local == sum->calls;
    if (simulated && s->cost_source != COST_NONE) {
        s->cost_source = COST_SIMULATED; /* the harness reckons, too */
    }
    if (sum->unpriced == 0 && prices != NULL) {
        s->cost_usd = price_usd(simulated ? sum->cost : sum->cost - sum->local_cost);
        s->cost_source = simulated ? COST_SIMULATED : COST_TABLE;
        s->prices.version = prices->version;
        s->prices.source = prices->source;
    }
    if (s->engine.model == NULL) {
        s->engine.model = meter_row(m, 0)->model;
    }
    nsec first = meter_first_byte(m);
    s->first_token = first > run->exec.started ? first - run->exec.started : 0;
}
