/* SPDX-License-Identifier: MIT
 *
 * What providers bill against what a budget allows and what the meter shows, over random orders of
 * events: requests, attempts that are sent or not, heads, pieces of responses, clients and
 * providers that break off, waiting and settling. All formats of clients and providers, streaming
 * or not, one response or several. The provider bills from the moment it has read the request, the
 * whole response, whoever leaves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/macro.h"
#include "gateway/account.h"
#include "gateway/gateway.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/stream.h"

enum { CLIENTS_MAX = 12, SEEDS = 400, STEPS = 80, PROMPT = 8 };

static const char *const any_model[] = { "*", NULL };
static const struct price_entry price = { .match = any_model, .base = { 3000, 15000, 300, 3750 } };
static const struct price_table prices = { "v", "s", "f", &price, 1, NULL };

struct world;

/* A call as the provider sees it. */
struct fake_call {
    struct fake_call *next;
    struct world *world;
    struct upstream_port port;
    struct buf answer; /* what it will send */
    size_t sent;       /* of it */
    bool stream, silent, got_request, head_told, over;
    int64_t limit, choices, prompt;
    enum llm_format format;
};

struct provider {
    struct upstream base;
    struct world *world;
};

struct world {
    uint64_t random;
    struct loop *loop;
    struct gateway *gateway;
    struct account *account;
    struct provider providers[LLM_FORMAT_MAX];
    struct gateway_route routes[LLM_FORMAT_MAX];
    struct filter filters[3];
    int port;
    struct stream *clients[CLIENTS_MAX];
    struct fake_call *calls;
    bool by_bytes;
    int64_t billed_input, billed_output; /* the providers' own count */
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return below == 0 ? 0 : (w->random >> 11) % below;
}

static bool chance(struct world *w, unsigned percent)
{
    return draw(w, 100) < percent;
}

/* --- the providers --- */

static int64_t number_after(struct str body, const char *key)
{
    size_t at = str_find(body, str_of(key));
    int64_t n = 0;
    for (at += strlen(key); at < body.len && body.ptr[at] >= '0' && body.ptr[at] <= '9'; at++) {
        n = n * 10 + (body.ptr[at] - '0');
    }
    return n;
}

static int64_t limit_of(struct str body)
{
    static const char *const keys[] = { "\"max_tokens\":", "\"max_completion_tokens\":",
                                        "\"max_output_tokens\":", "\"maxOutputTokens\":" };
    int64_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(keys) && n == 0; i++) {
        n = number_after(body, keys[i]);
    }
    return n > 0 ? n : BUDGET_MODEL_OUTPUT;
}

static int64_t choices_of(struct str body)
{
    int64_t n = number_after(body, "\"n\":");
    n = n > 0 ? n : number_after(body, "\"candidateCount\":");
    return n > 0 ? n : 1;
}

static void write_answer(struct fake_call *c, int64_t output)
{
    const struct llm_usage first = { c->prompt, 1, -1, -1, -1, -1 };
    const struct llm_usage last = { c->prompt, output, -1, -1, output / 2, -1 };
    struct llm_writer *writer = llm_writer_new(&(struct llm_writer_opts) {
        .format = c->format, .stream = c->stream, .include_usage = !c->silent, .seed = 1 });
    const struct llm_event events[] = {
        { .kind = LLM_EV_START, .id = STR("id"), .model = STR("m") },
        { .kind = LLM_EV_USAGE, .usage = first },
        { .kind = LLM_EV_TEXT, .text = STR("some of the words ") },
        { .kind = LLM_EV_TEXT, .text = STR("and the others") },
        { .kind = LLM_EV_USAGE, .usage = last },
        { .kind = LLM_EV_STOP },
        { .kind = LLM_EV_END },
    };
    if (c->format == LLM_GEMINI && c->stream && c->choices > 1) {
        /* one of several responses is complete long before the others, with a count so far */
        buf_addf(&c->answer,
                 "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]},"
                 "\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":%lld,"
                 "\"candidatesTokenCount\":1}}\n\n",
                 (long long)c->prompt);
    }
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (c->silent && events[i].kind == LLM_EV_USAGE) {
            continue;
        }
        assert_int_equal(llm_writer_event(writer, &events[i], &c->answer, NULL), 0);
    }
    (void)llm_writer_free(writer);
}

/* The request has been read: from here on the provider bills. */
static void bill(struct fake_call *c)
{
    struct world *w = c->world;
    int64_t most = c->limit * c->choices;
    int64_t output = chance(w, 50) ? most : (int64_t)draw(w, (uint64_t)most + 1);
    w->billed_input += c->prompt;
    w->billed_output += output;
    write_answer(c, output);
    c->got_request = true;
    c->port.on_sent(c->port.arg);
}

static void remove_call(struct fake_call *c)
{
    struct fake_call **at = &c->world->calls;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    c->over = true;
}

static void free_call(void *arg)
{
    struct fake_call *c = arg;
    buf_done(&c->answer);
    free(c);
}

static void end_call(struct fake_call *c)
{
    remove_call(c);
    loop_retire(c->world->loop, free_call, c);
}

static int start_call(struct upstream *up, const struct upstream_request *r,
                      const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct world *w = CONTAINER_OF(up, struct provider, base)->world;
    struct fake_call *c = xcalloc(1, sizeof *c);
    bool named = str_find(r->body, STR("\"stream\":true")) < r->body.len;
    *c = (struct fake_call) {
        .next = w->calls,
        .world = w,
        .port = *port,
        .answer = BUF_INIT(BUF_TEXT),
        .format = up->format,
        .stream = up->format == LLM_GEMINI ? r->endpoint.stream : named,
        .limit = limit_of(r->body),
        .choices = choices_of(r->body),
        .prompt = w->by_bytes ? (int64_t)r->body.len : PROMPT,
    };
    c->silent = c->stream && up->format == LLM_CHAT &&
                str_find(r->body, STR("include_usage")) == r->body.len;
    w->calls = c;
    *ret = (struct upstream_call *)c;
    return 0;
}

static void cancel_call(struct upstream_call *call)
{
    end_call((struct fake_call *)call);
}

static void pause_call(struct upstream_call *call, bool paused)
{
}

static const struct upstream_ops ops = { .start = start_call,
                                         .cancel = cancel_call,
                                         .pause = pause_call };

static void fail_call(struct fake_call *c)
{
    const struct upstream_port port = c->port;
    end_call(c);
    port.on_error(port.arg, &(struct upstream_error) { UPSTREAM_CUT, -1, "gone" });
}

static void tell_head(struct fake_call *c)
{
    const struct http_field type = { STR("content-type"), c->stream ? STR("text/event-stream")
                                                                    : STR("application/json") };
    c->head_told = true;
    c->port.on_head(c->port.arg, 200, &(struct http_fields) { &type, 1 });
}

/* A provider that has no time: it bills nothing. */
static void refuse_call(struct fake_call *c)
{
    const struct upstream_port port = c->port;
    port.on_sent(port.arg);
    port.on_head(port.arg, 529, &(struct http_fields) { NULL, 0 });
    if (!c->over) {
        end_call(c);
        port.on_end(port.arg);
    }
}

static void tell_more(struct fake_call *c, bool all)
{
    const struct upstream_port port = c->port;
    size_t left = c->answer.len - c->sent;
    size_t n = all ? left : draw(c->world, left + 1);
    struct str piece = str_slice(buf_str(&c->answer), c->sent, c->sent + n);
    c->sent += n;
    if (n > 0) {
        port.on_data(port.arg, piece);
    }
    if (!c->over && c->sent == c->answer.len) {
        end_call(c);
        port.on_end(port.arg);
    }
}

static void advance_call(struct fake_call *c, bool finish)
{
    struct world *w = c->world;
    if (!finish && chance(w, 7)) {
        fail_call(c);
    } else if (!c->got_request && chance(w, 5)) {
        refuse_call(c);
    } else if (!c->got_request) {
        bill(c);
    } else if (!c->head_told) {
        tell_head(c);
    } else {
        tell_more(c, finish);
    }
}

/* --- the clients --- */

static void on_client_bytes(void *arg, struct str chunk)
{
}

static void on_client_end(void *arg, const struct err *why)
{
}

static void add_body(struct world *w, enum llm_format f, int up, struct buf *out)
{
    static const char *const limits[LLM_FORMAT_MAX] = {
        [LLM_ANTHROPIC] = "max_tokens",
        [LLM_RESPONSES] = "max_output_tokens",
        [LLM_CHAT] = "max_completion_tokens",
        [LLM_GEMINI] = "maxOutputTokens",
    };
    static const char words[] =
        "a prompt of some words that every tokenizer takes for a few tokens";
    int64_t limit = 1 + (int64_t)draw(w, 900);
    bool named = f == LLM_ANTHROPIC || chance(w, 85);
    if (f == LLM_GEMINI) {
        buf_addf(out, "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"%s\"}]}]", words);
        buf_addf(out, ",\"generationConfig\":{\"temperature\":1");
        if (named) {
            buf_addf(out, ",\"maxOutputTokens\":%lld", (long long)limit);
        }
        if (chance(w, 20)) {
            buf_addf(out, ",\"candidateCount\":%d", 1 + (int)draw(w, 8));
        }
        buf_adds(out, "}}");
        return;
    }
    buf_addf(out, "{\"model\":\"up%d\"", up);
    buf_addf(out,
             f == LLM_RESPONSES ? ",\"input\":\"%s\""
                                : ",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]",
             words);
    if (named) {
        buf_addf(out, ",\"%s\":%lld", limits[f], (long long)limit);
    }
    if (chance(w, 70)) {
        buf_adds(out, ",\"stream\":true");
        if (f == LLM_CHAT && chance(w, 70)) {
            buf_adds(out, ",\"stream_options\":{\"include_usage\":true}");
        }
    }
    if (f == LLM_CHAT && chance(w, 30)) {
        buf_addf(out, ",\"n\":%d", 1 + (int)draw(w, 20));
    }
    if (f == LLM_RESPONSES && chance(w, 10)) {
        buf_adds(out, ",\"background\":true");
    }
    buf_adds(out, "}");
}

static void add_request(struct world *w, struct buf *out)
{
    enum llm_format f = (enum llm_format)draw(w, LLM_FORMAT_MAX);
    int up = (int)draw(w, LLM_FORMAT_MAX);
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf path = BUF_INIT(BUF_TEXT);
    add_body(w, f, up, &body);
    if (f == LLM_GEMINI) {
        buf_addf(&path, "/v1beta/models/up%d:%s", up,
                 chance(w, 70) ? "streamGenerateContent?alt=sse" : "generateContent");
    } else {
        buf_adds(&path, f == LLM_ANTHROPIC ? "/v1/messages"
                        : f == LLM_CHAT    ? "/v1/chat/completions"
                                           : "/v1/responses");
    }
    buf_addf(out, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path.ptr,
             body.len, body.ptr);
}

static void send_request(struct world *w, size_t i)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (w->clients[i] == NULL) {
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)w->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        const struct stream_opts o = { .port = { on_client_bytes, on_client_end, NULL, w } };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        assert_int_equal(stream_new(w->loop, fd, &o, &w->clients[i], NULL), 0);
    }
    add_request(w, &text);
    struct str piece = buf_str(&text);
    (void)!stream_write(w->clients[i], &piece, 1, NULL);
}

/* --- the world --- */

static void stop(void *arg)
{
    loop_stop(arg);
}

static void turn(struct world *w, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        loop_post(w->loop, stop, w->loop);
        loop_run(w->loop);
    }
}

static struct budget_limits limits_of(struct world *w)
{
    struct budget_limits l = { 0 };
    switch (draw(w, 4)) {
    case 0:
        l.output = 500 + (int64_t)draw(w, 20000);
        break;
    case 1:
        l.cost = 10000000 + (int64_t)draw(w, 300000000);
        break;
    case 2:
        l.total = 200000 + (int64_t)draw(w, 200000);
        break;
    default:
        l.total = 1000 + (int64_t)draw(w, 20000);
        l.input = 300 + (int64_t)draw(w, 3000);
        break;
    }
    return l;
}

static void open_world(struct world *w, uint64_t seed)
{
    static const char *const names[] = { "up0", "up1", "up2", "up3" };
    int fd;
    *w = (struct world) { .random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1 };
    w->by_bytes = chance(w, 30);
    w->account = account_new(&(struct account_opts) {
        .limits = limits_of(w),
        .prompt_bytes = w->by_bytes,
        .throttle = { .max_attempts = 3, .base = 1, .cap = 1, .total = NSEC_PER_SEC },
        .prices = &prices,
        .seed = seed });
    w->filters[0] = account_budget_filter(w->account);
    w->filters[1] = account_throttle_filter(w->account);
    w->filters[2] = account_meter_filter(w->account);
    for (size_t f = 0; f < LLM_FORMAT_MAX; f++) {
        w->providers[f] = (struct provider) {
            .base = { .ops = &ops, .name = names[f], .format = (enum llm_format)f },
            .world = w,
        };
        w->routes[f] = (struct gateway_route) { names[f], &w->providers[f].base, NULL };
    }
    assert_int_equal(loop_new(&w->loop, NULL), 0);
    assert_int_equal(listener_bind_tcp("127.0.0.1", 0, &fd, &w->port, NULL), 0);
    const struct gateway_opts o = { .listeners = &fd,
                                    .n_listeners = 1,
                                    .routes = w->routes,
                                    .n_routes = LLM_FORMAT_MAX,
                                    .filters = w->filters,
                                    .n_filters = 3 };
    assert_int_equal(gateway_open(w->loop, &o, &w->gateway, NULL), 0);
}

static struct fake_call *some_call(struct world *w)
{
    size_t n = 0;
    for (struct fake_call *c = w->calls; c != NULL; c = c->next) {
        n++;
    }
    struct fake_call *c = w->calls;
    for (size_t i = draw(w, n); i > 0; i--) {
        c = c->next;
    }
    return c;
}

static void step(struct world *w)
{
    size_t i = draw(w, CLIENTS_MAX);
    uint64_t what = draw(w, 10);
    if (what < 3) {
        send_request(w, i);
    } else if (what < 4) {
        w->clients[i] = stream_free(w->clients[i]);
    } else if (w->calls != NULL) {
        advance_call(some_call(w), false);
    }
    turn(w, 2);
}

static void check(const struct world *w, uint64_t seed)
{
    const struct budget *b = account_budget(w->account);
    const struct meter_sum *sum = meter_sum(account_meter(w->account));
    for (int k = 0; k < BUDGET_KIND_MAX; k++) {
        if (b->limit[k] > 0 && b->spent[k] > b->limit[k]) {
            fail_msg("seed %llu: %s: %lld spent of %lld", (unsigned long long)seed,
                     budget_kind_word((enum budget_kind)k), (long long)b->spent[k],
                     (long long)b->limit[k]);
        }
        assert_int_equal(b->claimed[k], 0);
    }
    if (w->billed_output > b->spent[BUDGET_OUTPUT] || w->billed_input > b->spent[BUDGET_INPUT]) {
        fail_msg("seed %llu: billed %lld and %lld, charged %lld and %lld", (unsigned long long)seed,
                 (long long)w->billed_input, (long long)w->billed_output,
                 (long long)b->spent[BUDGET_INPUT], (long long)b->spent[BUDGET_OUTPUT]);
    }
    /* The record shows what the budget counts. */
    assert_int_equal(sum->usage.output, b->spent[BUDGET_OUTPUT]);
    assert_int_equal(sum->usage.input, b->spent[BUDGET_INPUT]);
    assert_int_equal(sum->cost, b->spent[BUDGET_COST]);
}

static void close_world(struct world *w)
{
    w->gateway = gateway_free(w->gateway);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        w->clients[i] = stream_free(w->clients[i]);
    }
    turn(w, 2);
    assert_null(w->calls);
}

static void no_order_of_events_spends_more_than_the_budget(void **state)
{
    int64_t billed = 0;
    int64_t exact = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world w;
        open_world(&w, seed);
        for (int i = 0; i < STEPS; i++) {
            step(&w);
        }
        if (chance(&w, 50)) { /* clients leave, and what is under way may end well */
            for (size_t i = 0; i < CLIENTS_MAX; i++) {
                w.clients[i] = stream_free(w.clients[i]);
            }
            turn(&w, 4);
            for (int i = 0; w.calls != NULL && i < 1000; i++) {
                advance_call(some_call(&w), true);
                turn(&w, 1);
            }
        }
        close_world(&w);
        check(&w, seed);
        billed += w.billed_output;
        exact += w.billed_output == account_budget(w.account)->spent[BUDGET_OUTPUT];
        w.account = account_free(w.account);
        w.loop = loop_free(w.loop);
    }
    assert_true(billed > 100000); /* something happened */
    print_message("%lld tokens billed; %lld of %d runs were charged to the token\n",
                  (long long)billed, (long long)exact, SEEDS);
}

/* What is read to its end is charged as the provider counts it, not as it was reserved. */
static void a_client_that_leaves_costs_what_the_provider_says(void **state)
{
    int64_t exact = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct world w;
        open_world(&w, seed);
        send_request(&w, 0);
        turn(&w, 20);
        for (size_t i = draw(&w, 4); i > 0 && w.calls != NULL; i--) {
            advance_call(w.calls, true);
            turn(&w, 1);
        }
        w.clients[0] = stream_free(w.clients[0]);
        turn(&w, 20);
        bool silent = w.calls != NULL && w.calls->silent;
        for (int i = 0; w.calls != NULL && i < 100; i++) {
            advance_call(w.calls, true);
            turn(&w, 1);
        }
        close_world(&w);
        check(&w, seed);
        const struct meter_sum *sum = meter_sum(account_meter(w.account));
        if (!silent && sum->attempts == 1 && sum->estimated == 0) {
            assert_int_equal(account_budget(w.account)->spent[BUDGET_OUTPUT], w.billed_output);
            exact++;
        }
        w.account = account_free(w.account);
        w.loop = loop_free(w.loop);
    }
    assert_true(exact > 20);
}

/* The end of a run: what is under way has so much time, and is charged in full after it. */
static void a_wait_for_a_provider_that_hangs_is_bounded(void **state)
{
    int charged = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world w;
        open_world(&w, seed);
        send_request(&w, 0);
        turn(&w, 20);
        if (w.calls != NULL) {
            bill(w.calls);
            assert_true(gateway_drain(w.gateway, 10 * NSEC_PER_MS, stop, w.loop));
            loop_run(w.loop);
            assert_null(w.calls);
            assert_int_equal(meter_sum(account_meter(w.account))->estimated, 1);
            charged++;
        }
        assert_false(gateway_drain(w.gateway, NSEC_PER_SEC, stop, w.loop));
        close_world(&w);
        check(&w, seed);
        w.account = account_free(w.account);
        w.loop = loop_free(w.loop);
    }
    assert_true(charged > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_order_of_events_spends_more_than_the_budget),
        cmocka_unit_test(a_client_that_leaves_costs_what_the_provider_says),
        cmocka_unit_test(a_wait_for_a_provider_that_hangs_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
