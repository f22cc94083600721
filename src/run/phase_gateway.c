/* SPDX-License-Identifier: MIT
 *
 * The gateway of a run, from phase configure to phase parse: upstreams, filters and the listener,
 * which is inside the sandbox where there is one. What it asks for is planned in gateway_plan.c.
 */
#include <limits.h>

#include "gateway/admit.h"
#include "gateway/price.h"
#include "gateway/proxy.h"
#include "io/listener.h"
#include "io/timer.h"
#include "replay/cassette_upstream.h"
#include "replay/route.h"
#include "run/gateway_run_priv.h"
#include "run/image.h"
#include "run/offered.h"

/* How long a run waits for model calls whose clients are gone. */
#define DRAIN_TIME (30 * NSEC_PER_SEC)

static void on_impatient(void *arg)
{
    execute_interrupt(arg, false);
}

static int open_account(struct run *run, struct err *e)
{
    const struct budget_settings *b = &run->plan->settings.budget;
    const struct throttle_settings *t = &run->plan->settings.throttle;
    struct throttle_policy policy = THROTTLE_DEFAULT;
    policy.max_attempts = t->max_attempts > INT_MAX ? INT_MAX : (int)t->max_attempts;
    policy.base = t->base;
    policy.cap = t->cap;
    policy.total = t->total;
    policy.concurrency = t->concurrency > INT_MAX ? INT_MAX : (int)t->concurrency;
    policy.per_minute = t->per_minute > INT_MAX ? INT_MAX : (int)t->per_minute;
    const struct account_opts o = {
        .limits = { .input = b->tokens_input,
                    .output = b->tokens_output,
                    .total = b->tokens_total,
                    .cost = price_pico(b->usd),
                    .calls = b->calls },
        .prompt_bytes = b->prompt_bytes,
        .throttle = policy,
        .port = gateway_account_port(run),
        .seed = (uint64_t)clock_wall(),
    };
    return assembly_account(run->arena, run->plan->settings.gateway.prices, &o,
                            &run->gateway->assembly, e);
}

/* What prompts name and another run has elsewhere. */
static struct json *places(struct run *run)
{
    struct json *o = json_object(run->arena);
    json_setc(run->arena, o, "run", json_cstr(run->arena, run->paths.dir));
    json_setc(run->arena, o, "home", json_cstr(run->arena, run->paths.home));
    json_setc(run->arena, o, "workspace", json_cstr(run->arena, image_workspace(run)));
    return o;
}

static int open_upstream(struct run *run, struct planned *p, struct err *e)
{
    const struct profile_gateway *profile = &run->plan->settings.profile->gateway;
    const struct route_opts o = { .key = p->credential,
                                  .aliases = profile->tools,
                                  .volatile_rules = profile->volatile_fields,
                                  .places = places(run),
                                  .redactor = run->redactor,
                                  .replay_speed = run->plan->settings.gateway.replay_speed,
                                  .send_once = run->plan->settings.throttle.max_attempts == 1 };
    int r = route_open(run->loop, &p->target, &o, &p->upstream, e);
    if (r == 0) {
        p->upstream->keeps_key = p->kept;
    }
    return r;
}

/* What was replayed need not be recorded again. */
static int open_recorder(struct run *run, struct err *e)
{
    struct run_gateway *g = run->gateway;
    enum tristate wish = run->plan->settings.gateway.record;
    bool replays = g->routes[0].target.kind == ROUTING_CASSETTE;
    if (wish == TRI_FALSE || (wish == TRI_UNSET && replays)) {
        return 0;
    }
    struct cassette_writer_opts o = { .redactor = run->redactor,
                                      .adapter = str_of(run->plan->settings.adapter),
                                      .volatile_rules =
                                          run->plan->settings.profile->gateway.volatile_fields,
                                      .places = places(run) };
    const char *path = arena_printf(run->arena, "%s/%s", run->record.dir.path, CASSETTE_NAME);
    return assembly_record(path, &o, &g->assembly, e);
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

static int open_gateway(struct run *run, const int *listeners, size_t n_listeners, struct err *e)
{
    struct run_gateway *g = run->gateway;
    struct filter offered;
    size_t n_filters = g->assembly.account != NULL && offered_filter(run, &offered) ? 1 : 0;
    return assembly_listen(
        run->loop,
        &(struct gateway_opts) { .listeners = listeners,
                                 .n_listeners = n_listeners,
                                 .token = g->token,
                                 .proxy_token = g->proxy_token,
                                 .routes = g->table,
                                 .n_routes = g->len,
                                 .mounts = tools_door(run),
                                 .n_mounts = tools_door(run) == NULL ? 0 : 1,
                                 .filters = &offered,
                                 .n_filters = n_filters,
                                 .egress = g->egress,
                                 .endpoints = g->endpoints,
                                 .sampling = gateway_sampling(run),
                                 .sampling_strict = run->plan->settings.tier_strict,
                                 .store = g->store,
                                 .spill_dir = run->record.dir.path,
                                 .port = gateway_event_port(run) },
        &g->assembly, e);
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
    const struct json *hosts = run->plan->settings.sandbox.hosts;
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
    gateway_load_store(run);
    int r = open_account(run, e);
    if (r == 0) {
        r = timer_new(run->loop, on_impatient, run, &g->patience, e);
    }
    if (r == 0) {
        r = open_upstreams(run, e);
    }
    return r < 0 ? r : open_recorder(run, e);
}

/* Of the sandbox. */
static void take_listeners(struct run *run, const int *fds, size_t n)
{
    struct err e;
    if (open_gateway(run, fds, n, &e) < 0) {
        (void)err_wrap(&e, "gateway");
        run_fail_err(run, &e);
    }
}

int gateway_start(struct run *run, struct err *e)
{
    struct run_gateway *g = run->gateway;
    int fd;
    int port;
    if (g->len == 0 && run->plan->settings.sandbox.hosts == NULL && tools_door(run) == NULL) {
        return 0;
    }
    int r = open_model(run, e);
    r = r < 0 ? r : open_egress(run, e);
    r = r < 0 ? r : sandbox_session_listen(run, take_listeners, &port, e);
    bool inside = r > 0;
    if (r == 0) {
        r = listener_bind_tcp("127.0.0.1", 0, &fd, &port, e);
    }
    if (r < 0) {
        return err_wrap(e, "gateway");
    }
    g->url = arena_printf(run->arena, "http://127.0.0.1:%d", port);
    g->pass_url = arena_printf(run->arena, "%s" ADMIT_PASS "%s", g->url, g->token);
    r = inside ? 0 : open_gateway(run, &fd, 1, e);
    if (r == 0) {
        tell_opened(run);
    }
    return r;
}

void gateway_clock(struct run *run)
{
    if (run->gateway->assembly.account != NULL) {
        account_set_deadline(run->gateway->assembly.account, run->exec.started,
                             run->exec.started + run->timeout);
    }
}

static void close_assembly(struct run *run)
{
    struct err first;
    uint64_t lost = assembly_close(&run->gateway->assembly, &first);
    if (lost > 0) {
        run_warn(run, "%llu exchanges are not in the cassette: %s", (unsigned long long)lost,
                 first.msg);
    }
}

/* The lines of a report as one, of a length that fits where one line is shown. */
static const char *one_line(struct arena *a, struct str report)
{
    enum { LINE_MAX_BYTES = 400 };
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    struct str rest = str_trim(report);
    for (size_t i = 0; rest.ptr != NULL; i++) {
        buf_adds(&line, i == 0 ? "" : i == 1 ? ": " : "; ");
        buf_add(&line, str_trim(str_split(&rest, '\n')));
    }
    struct str cut = str_slice(buf_str(&line), 0, LINE_MAX_BYTES);
    return arena_dup(a, str_slice(cut, 0, str_utf8_prefix(cut)));
}

/* The script is right and the harness is not: it left out a tool of the task. */
static void report_missed_tool(struct run *run, const char *tool, const char *miss)
{
    if (!run_fail(run, REASON_FAILURE,
                  "tool not offered: the agent's request does not contain the "
                  "tool '%s' of the task: %s",
                  tool, miss)) {
        (void)run_blame(run, REASON_FAILURE,
                        "tool not offered: the agent's request does not "
                        "contain the tool '%s' of the task",
                        tool);
    }
}

/* A request that a script or a cassette had no answer to says what is wrong with the task. */
static void tell_misses(struct run *run)
{
    struct run_gateway *g = run->gateway;
    for (size_t i = 0; i < g->len; i++) {
        const struct planned *p = &g->routes[i];
        struct str miss =
            p->upstream == NULL ? STR_EMPTY : route_missed(p->target.kind, p->upstream);
        const char *tool = miss.len > 0 ? offered_missed(run, miss) : NULL;
        if (tool != NULL) {
            report_missed_tool(run, tool, one_line(run->arena, miss));
        } else if (miss.len > 0) {
            run_fail(run, REASON_BAD_TASK, "%s", one_line(run->arena, miss));
        }
        if (miss.len > 0 && p->target.kind == ROUTING_CASSETTE) {
            struct err why;
            (void)!record_write_text(&run->record, "evidence/divergence.txt", miss, &why);
        }
    }
}

static void on_drained(void *arg)
{
    run_phase_done(arg);
}

bool gateway_wait(struct run *run)
{
    struct run_gateway *g = run->gateway;
    /* Whoever ended the run wants it to end; what is under way is then charged in full. */
    if (g == NULL || g->assembly.gateway == NULL || g->assembly.account == NULL ||
        run->signal_count > 0) {
        return false;
    }
    return gateway_drain(g->assembly.gateway, DRAIN_TIME, on_drained, run);
}

void gateway_hurry(struct run *run)
{
    if (run->gateway != NULL && run->gateway->assembly.gateway != NULL) {
        gateway_give_up(run->gateway->assembly.gateway);
    }
}

void gateway_close(struct run *run)
{
    struct run_gateway *g = run->gateway;
    if (g == NULL) {
        return;
    }
    tell_misses(run);
    close_assembly(run);
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
        assembly_done(&run->gateway->assembly);
        open_calls_done(&run->gateway->open, &run->record.dir);
        run->gateway->store = llm_store_free(run->gateway->store);
    }
}
