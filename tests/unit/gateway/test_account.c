/* SPDX-License-Identifier: MIT
 *
 * Budget, throttle and meter as filters, driven as a gateway drives them, on a clock of the test's.
 */
#include "gateway/account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const any[] = { "m", NULL };
static const struct price_entry entry = { .match = any, .base = { 1000000, 2000000, 0, 0 } };
static const struct price_table prices = { "v", "s", "f", &entry, 1, NULL };
static const struct upstream up = { .name = "up", .any_format = true };

static nsec fixed_now(void)
{
    return 7 * NSEC_PER_SEC;
}

struct told {
    int calls, refused, throttled;
    struct account_call call;
    enum budget_kind why;
    bool above;
    struct account_throttled throttle;
    struct throttle_signal signal;
};

static void on_call(void *arg, const struct exchange_view *x, const struct account_call *call)
{
    struct told *t = arg;
    t->calls++;
    t->call = *call;
}

static void on_refused(void *arg, const struct exchange_view *x,
                       const struct account_refused *refused)
{
    struct told *t = arg;
    t->refused++;
    t->why = refused->why;
    t->above = refused->above;
}

static void on_throttled(void *arg, const struct exchange_view *x,
                         const struct account_throttled *throttle)
{
    struct told *t = arg;
    t->throttled++;
    t->throttle = *throttle;
    t->signal = *throttle->signal;
}

/* One exchange with its slots. */
struct trip {
    struct filter filters[3];
    void *slots[3];
    struct upstream_request request;
    struct exchange_view view;
};

static struct account *open_account(struct told *told, struct budget_limits limits)
{
    return account_new(&(struct account_opts) {
        .limits = limits,
        .throttle = THROTTLE_DEFAULT,
        .prices = &prices,
        .port = { on_call, on_refused, on_throttled, told },
        .seed = 1,
        .now = fixed_now,
    });
}

static void begin(struct trip *t, struct account *acc, enum llm_call_kind call)
{
    *t = (struct trip) { .filters = { account_budget_filter(acc), account_throttle_filter(acc),
                                      account_meter_filter(acc) } };
    t->request.endpoint = (struct llm_endpoint) { .call = call, .format = LLM_ANTHROPIC };
    t->view = (struct exchange_view) { .id = 1,
                                       .request = &t->request,
                                       .client = t->request.endpoint,
                                       .client_body = STR("{}"),
                                       .upstream = &up,
                                       .model = STR("m"),
                                       .upstream_model = STR("m"),
                                       .estimate = 100,
                                       .max_output = 50,
                                       .began = 1 };
}

static struct filter_answer ask(struct trip *t)
{
    struct filter_answer a = { 0 };
    for (int i = 0; i < 3 && a.verdict == FILTER_PASS && t->view.attempt == 0; i++) {
        if (t->filters[i].on_request != NULL) {
            t->filters[i].on_request(t->filters[i].arg, &t->view, &t->slots[i], &a);
        }
    }
    for (int i = 0; i < 3 && a.verdict == FILTER_PASS; i++) {
        if (t->filters[i].on_attempt != NULL) {
            t->filters[i].on_attempt(t->filters[i].arg, &t->view, &t->slots[i], &a);
        }
    }
    t->view.attempt += a.verdict == FILTER_PASS;
    return a;
}

static struct filter_answer answer_with(struct trip *t, int status, struct http_fields fields,
                                        struct str body)
{
    struct filter_answer a = { 0 };
    struct filter_outcome o = { .status = status, .fields = &fields, .body = body };
    for (int i = 0; i < 3 && a.verdict == FILTER_PASS; i++) {
        if (t->filters[i].on_answer != NULL) {
            t->filters[i].on_answer(t->filters[i].arg, &t->view, &t->slots[i], &o, &a);
        }
    }
    return a;
}

static struct filter_answer answer(struct trip *t, int status, struct http_fields fields)
{
    return answer_with(t, status, fields, STR("{}"));
}

static void finish(struct trip *t, struct filter_done d)
{
    d.attempts = t->view.attempt;
    d.answered = d.served ? d.status : 0;
    d.ended = d.served && d.complete;
    for (int i = 0; i < 3; i++) {
        if (t->filters[i].on_done != NULL) {
            t->filters[i].on_done(t->filters[i].arg, &t->view, &t->slots[i], &d);
        }
        assert_null(t->slots[i]);
    }
}

static const struct http_fields no_fields = { NULL, 0 };

static void a_call_is_reserved_and_settled(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .total = 1000, .calls = 5 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    assert_int_equal(account_budget(acc)->claimed[BUDGET_TOTAL], 150);
    assert_int_equal(answer(&t, 200, no_fields).verdict, FILTER_PASS);
    finish(&t, (struct filter_done) { .status = 200,
                                      .complete = true,
                                      .served = true,
                                      .usage = { 80, 20, -1, -1, -1 },
                                      .first_byte = 5 });
    assert_int_equal(account_budget(acc)->claimed[BUDGET_TOTAL], 0);
    assert_int_equal(account_budget(acc)->spent[BUDGET_TOTAL], 100);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.call.cost, 80 * 1000000 + 20 * 2000000);
    assert_false(told.call.metered.estimated || told.call.metered.failed);
    assert_int_equal(told.call.metered.first_byte, 6);
    assert_true(account_left(acc).budget == 0.8); /* of calls */
    account_free(acc);
}

static void counting_tokens_is_free(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .calls = 1 });
    for (int i = 0; i < 3; i++) {
        struct trip t;
        begin(&t, acc, LLM_CALL_COUNT);
        assert_int_equal(ask(&t).verdict, FILTER_PASS);
        finish(&t, (struct filter_done) { .status = 200, .served = true, .complete = true });
    }
    assert_int_equal(told.calls, 0);
    assert_int_equal(account_budget(acc)->spent[BUDGET_CALLS], 0);
    account_free(acc);
}

static void a_refusal_says_it_in_the_clients_words(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .input = 10 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    struct filter_answer a = ask(&t);
    assert_int_equal(a.verdict, FILTER_REFUSE);
    assert_string_equal(a.reason, "budget");
    assert_int_equal(a.error.status, 400);
    assert_int_equal(told.why, BUDGET_INPUT);
    assert_int_equal(account_trouble(acc), ACCOUNT_BUDGET);
    account_free(acc);
}

static void a_request_is_cut_down_but_never_below_its_thoughts(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .output = 40 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    struct filter_answer a = ask(&t);
    assert_int_equal(a.max_output, 40);
    finish(&t, (struct filter_done) { .usage = LLM_USAGE_NONE });
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.client_body = STR("{\"model\":\"m\",\"max_tokens\":50,\"messages\":[],"
                             "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":45}}");
    assert_int_equal(ask(&t).verdict, FILTER_REFUSE);
    account_free(acc);
}

static void an_image_is_not_counted_by_its_bytes(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .input = 10000 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.estimate = 300000; /* a third of its bytes */
    t.view.client_body =
        STR("{\"model\":\"m\",\"max_tokens\":50,\"messages\":[{\"role\":\"user\",\"content\":["
            "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\","
            "\"data\":\"aGVsbG8=\"}}]}]}");
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    assert_true(account_budget(acc)->claimed[BUDGET_INPUT] < 10000);
    finish(&t, (struct filter_done) { .usage = LLM_USAGE_NONE });
    account_free(acc);
}

/* One call that ends so, under these limits. */
static void make_call(struct told *told, struct budget_limits limits, struct filter_done d,
                      struct budget *ret_budget)
{
    struct account *acc = open_account(told, limits);
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    finish(&t, d);
    *ret_budget = *account_budget(acc);
    assert_int_equal(ret_budget->claimed[BUDGET_TOTAL], 0);
    struct llm_usage used = meter_usage(&told->call.metered);
    const struct meter_sum *sum = meter_sum(account_meter(acc));
    assert_int_equal(sum->usage.output, used.output < 0 ? 0 : used.output);
    account_free(acc);
}

static const struct budget_limits tokens = { .total = 1000 };
static const struct budget_limits dollars = { .cost = INT64_C(1000000000) };

static void what_reports_no_usage_is_charged_as_reserved(void **state)
{
    struct told told = { 0 };
    struct budget b;
    make_call(&told, tokens,
              (struct filter_done) { .status = 200,
                                     .served = true,
                                     .complete = true,
                                     .usage = LLM_USAGE_NONE,
                                     .bytes_out = 30 },
              &b);
    assert_true(told.call.metered.estimated);
    assert_int_equal(meter_usage(&told.call.metered).input, 100);
    assert_int_equal(meter_usage(&told.call.metered).output, 50);
    assert_int_equal(b.spent[BUDGET_TOTAL], 150);
    /* a stream that broke off: the first event of Anthropic's reports one token of output */
    make_call(
        &told, tokens,
        (struct filter_done) { .status = 200, .served = true, .usage = { 80, 1, 10, -1, -1, -1 } },
        &b);
    assert_int_equal(told.call.metered.usage.cache_read, 10);
    assert_int_equal(b.spent[BUDGET_TOTAL], 150);
    assert_int_equal(b.spent[BUDGET_OUTPUT], 50);
    /* more than was reserved is known to be used */
    make_call(&told, tokens,
              (struct filter_done) {
                  .status = 200, .served = true, .usage = { 300, 60, -1, -1, -1, -1 } },
              &b);
    assert_int_equal(b.spent[BUDGET_TOTAL], 360);
    make_call(
        &told, dollars,
        (struct filter_done) { .status = 200, .served = true, .usage = { 80, 1, -1, -1, -1, -1 } },
        &b);
    assert_int_equal(b.spent[BUDGET_COST], 100 * 1000000 + 50 * 2000000);
    assert_int_equal(told.call.cost, b.spent[BUDGET_COST]);
}

static void without_limits_what_was_seen_is_an_estimate(void **state)
{
    struct told told = { 0 };
    struct budget b;
    const struct budget_limits none = { 0 };
    make_call(&told, none,
              (struct filter_done) { .status = 200,
                                     .served = true,
                                     .complete = true,
                                     .usage = LLM_USAGE_NONE,
                                     .bytes_out = 30 },
              &b);
    assert_true(told.call.metered.estimated);
    assert_int_equal(b.spent[BUDGET_TOTAL], 110);
    /* but what broke off may have been anything up to its limit */
    make_call(&told, none,
              (struct filter_done) { .status = 200, .served = true, .usage = LLM_USAGE_NONE }, &b);
    assert_int_equal(b.spent[BUDGET_TOTAL], 150);
}

static void a_client_that_left_and_was_never_answered_is_charged(void **state)
{
    struct told told = { 0 };
    struct budget b;
    make_call(&told, tokens,
              (struct filter_done) { .cancelled = true, .sent = true, .usage = LLM_USAGE_NONE },
              &b);
    assert_int_equal(b.spent[BUDGET_TOTAL], 150);
    make_call(&told, tokens, (struct filter_done) { .cancelled = true, .usage = LLM_USAGE_NONE },
              &b);
    assert_int_equal(b.spent[BUDGET_TOTAL], 0); /* it never left the gateway */
    make_call(&told, tokens,
              (struct filter_done) { .status = 529, .served = true, .usage = LLM_USAGE_NONE }, &b);
    assert_int_equal(b.spent[BUDGET_TOTAL], 0);
    make_call(&told, tokens,
              (struct filter_done) {
                  .status = 200, .served = true, .rejected = true, .usage = LLM_USAGE_NONE },
              &b);
    assert_int_equal(b.spent[BUDGET_TOTAL], 0);
}

static void each_response_of_a_request_is_reserved(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .total = 1000 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.choices = 8;
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    assert_int_equal(account_budget(acc)->claimed[BUDGET_TOTAL], 100 + 8 * 50);
    finish(&t, (struct filter_done) { .usage = LLM_USAGE_NONE });
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.choices = 40;
    assert_int_equal(ask(&t).max_output, 900 / 40); /* each is cut down */
    finish(&t, (struct filter_done) { .usage = LLM_USAGE_NONE });
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.choices = INT64_MAX;
    assert_int_equal(ask(&t).verdict, FILTER_REFUSE);
    account_free(acc);
}

static void what_cannot_be_metered_is_refused(void **state)
{
    struct told told = { 0 };
    struct account *limited = open_account(&told, (struct budget_limits) { .total = 1000 });
    struct account *free_one = open_account(&told, (struct budget_limits) { .calls = 3 });
    for (int i = 0; i < 2; i++) {
        struct trip t;
        begin(&t, limited, LLM_CALL_GENERATE);
        t.view.background = i == 0;
        t.view.choices = i == 0 ? 0 : -1;
        struct filter_answer a = ask(&t);
        assert_int_equal(a.verdict, FILTER_REFUSE);
        assert_int_equal(a.error.status, 400);
        assert_true(str_find(a.error.message, STR("cannot be held to the budget")) <
                    a.error.message.len);
        begin(&t, free_one, LLM_CALL_GENERATE);
        t.view.background = true;
        assert_int_equal(ask(&t).verdict, FILTER_PASS);
        finish(&t, (struct filter_done) { .usage = LLM_USAGE_NONE });
    }
    assert_int_equal(account_trouble(limited), ACCOUNT_FINE); /* the run goes on */
    account_free(limited);
    account_free(free_one);
}

static struct filter_answer lose(struct trip *t, bool sent)
{
    struct filter_answer a = { 0 };
    const struct upstream_error cut = { UPSTREAM_CUT, -1, "gone" };
    const struct filter_outcome o = { .error = &cut, .sent = sent };
    for (int i = 0; i < 3 && a.verdict == FILTER_PASS; i++) {
        if (t->filters[i].on_answer != NULL) {
            t->filters[i].on_answer(t->filters[i].arg, &t->view, &t->slots[i], &o, &a);
        }
    }
    return a;
}

static void an_attempt_that_got_lost_is_charged_and_the_next_reserved(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .total = 400, .calls = 1 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    assert_int_equal(lose(&t, false).verdict, FILTER_WAIT); /* it never got there */
    assert_int_equal(account_budget(acc)->spent[BUDGET_TOTAL], 0);
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    assert_int_equal(lose(&t, true).verdict, FILTER_WAIT);
    assert_int_equal(account_budget(acc)->spent[BUDGET_TOTAL], 150);
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    assert_int_equal(account_budget(acc)->claimed[BUDGET_TOTAL], 150);
    assert_int_equal(lose(&t, true).verdict, FILTER_WAIT);
    assert_int_equal(ask(&t).verdict, FILTER_REFUSE); /* no room for a third */
    finish(&t, (struct filter_done) { .status = 400, .usage = LLM_USAGE_NONE, .complete = true });
    assert_int_equal(account_budget(acc)->spent[BUDGET_TOTAL], 300);
    assert_int_equal(account_budget(acc)->spent[BUDGET_CALLS], 1);
    assert_int_equal(meter_sum(account_meter(acc))->usage.output, 100);
    assert_int_equal(meter_sum(account_meter(acc))->usage.input, 200);
    account_free(acc);
}

static void a_prompt_can_be_reserved_by_its_bytes(void **state)
{
    struct account *acc = account_new(&(struct account_opts) { .limits = { .total = 1000 },
                                                               .throttle = THROTTLE_DEFAULT,
                                                               .prompt_bytes = true,
                                                               .now = fixed_now });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.body_len = 300;
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    assert_int_equal(account_budget(acc)->claimed[BUDGET_TOTAL], 350);
    finish(&t, (struct filter_done) { .usage = LLM_USAGE_NONE });
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.body_len = 990;
    t.view.client_body = STR("{\"model\":\"m\",\"max_tokens\":50,\"messages\":[]}");
    assert_int_equal(ask(&t).verdict, FILTER_REFUSE); /* a closer look does not lower it */
    account_free(acc);
}

static void who_never_left_was_no_call(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { .calls = 1 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    (void)ask(&t);
    t.view.attempt = 0; /* the client left while it waited */
    finish(&t, (struct filter_done) { .cancelled = true, .usage = LLM_USAGE_NONE });
    assert_int_equal(told.calls, 0);
    begin(&t, acc, LLM_CALL_GENERATE);
    assert_int_equal(ask(&t).verdict, FILTER_PASS);
    finish(&t, (struct filter_done) { .usage = LLM_USAGE_NONE });
    account_free(acc);
}

static void failures_are_tried_again_and_told(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { 0 });
    struct http_field field = { STR("retry-after"), STR("2") };
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(ask(&t).verdict, FILTER_PASS);
        struct filter_answer a = answer(&t, 429, (struct http_fields) { &field, 1 });
        assert_int_equal(a.verdict, FILTER_WAIT);
        assert_true(a.delay >= 2 * NSEC_PER_SEC);
        assert_int_equal(told.throttle.attempts, i);
        assert_int_equal(told.signal.kind, THROTTLE_RATE_LIMIT);
    }
    (void)ask(&t);
    assert_int_equal(answer(&t, 429, no_fields).verdict, FILTER_PASS);
    assert_int_equal(told.throttle.delay, -1);
    assert_false(told.signal.retry_safe);
    assert_int_equal(account_trouble(acc), ACCOUNT_RATE_LIMITED);
    finish(&t, (struct filter_done) { .status = 429, .served = true, .usage = LLM_USAGE_NONE });
    assert_true(told.call.metered.failed);
    assert_int_equal(told.call.metered.attempts, 5);
    account_free(acc);
}

static void a_refusal_above_is_ours_and_never_tried_again(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { 0 });
    struct http_field fields[] = { { STR("X-Cinch-Reason"), STR("budget") },
                                   { STR("X-Cinch-Limit"), STR("usd") } };
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    (void)ask(&t);
    assert_int_equal(answer(&t, 429, (struct http_fields) { fields, 2 }).verdict, FILTER_PASS);
    assert_int_equal(told.throttled, 0);
    assert_int_equal(told.refused, 1);
    assert_true(told.above);
    assert_int_equal(told.why, BUDGET_COST);
    assert_int_equal(account_exceeded(acc), BUDGET_COST);
    assert_int_equal(account_trouble(acc), ACCOUNT_BUDGET);
    finish(&t, (struct filter_done) { .status = 429, .served = true, .usage = LLM_USAGE_NONE });
    begin(&t, acc, LLM_CALL_GENERATE);
    (void)ask(&t);
    (void)answer(&t, 200, no_fields);
    assert_int_equal(account_trouble(acc), ACCOUNT_BUDGET); /* stays the reason */
    finish(&t, (struct filter_done) { .status = 200, .served = true, .usage = LLM_USAGE_NONE });
    account_free(acc);
}

static void the_last_call_decides_about_the_credential(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { 0 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    (void)ask(&t);
    (void)answer(&t, 401, no_fields);
    assert_int_equal(account_trouble(acc), ACCOUNT_AUTH);
    finish(&t, (struct filter_done) { .status = 401, .served = true, .usage = LLM_USAGE_NONE });
    begin(&t, acc, LLM_CALL_GENERATE);
    (void)ask(&t);
    (void)answer(&t, 200, no_fields);
    assert_int_equal(account_trouble(acc), ACCOUNT_FINE);
    finish(&t, (struct filter_done) { .status = 200, .served = true, .usage = LLM_USAGE_NONE });
    account_free(acc);
}

static void providers_say_when_in_their_own_ways(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { 0 });
    struct http_field no = { STR("x-should-retry"), STR("false") };
    struct http_field ms = { STR("retry-after-ms"), STR("1500") };
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    t.request.endpoint.format = LLM_GEMINI;
    (void)ask(&t);
    struct filter_answer a = answer_with(
        &t, 429, no_fields,
        STR("{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{},"
            "{\"retryDelay\":\"3.5s\"}]}}"));
    assert_int_equal(a.verdict, FILTER_WAIT);
    assert_int_equal(told.signal.retry_after, 3500 * NSEC_PER_MS);
    (void)ask(&t);
    a = answer(&t, 500, (struct http_fields) { &ms, 1 });
    assert_int_equal(told.signal.retry_after, 1500 * NSEC_PER_MS);
    (void)ask(&t);
    a = answer(&t, 500, (struct http_fields) { &no, 1 });
    assert_int_equal(a.verdict, FILTER_PASS);
    finish(&t, (struct filter_done) { .status = 500, .served = true, .usage = LLM_USAGE_NONE });
    account_free(acc);
}

static void side_requests_are_marked(void **state)
{
    struct told told = { 0 };
    struct account *acc = open_account(&told, (struct budget_limits) { 0 });
    struct trip t;
    begin(&t, acc, LLM_CALL_GENERATE);
    t.view.side = "title";
    (void)ask(&t);
    finish(&t,
           (struct filter_done) {
               .status = 200, .served = true, .complete = true, .usage = { 5, 1, -1, -1, -1 } });
    assert_string_equal(told.call.side, "title");
    assert_int_equal(meter_sum(account_meter(acc))->side, 1);
    assert_int_equal(meter_sum(account_meter(acc))->usage.input, 5);
    account_free(acc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_reserved_and_settled),
        cmocka_unit_test(counting_tokens_is_free),
        cmocka_unit_test(a_refusal_says_it_in_the_clients_words),
        cmocka_unit_test(a_request_is_cut_down_but_never_below_its_thoughts),
        cmocka_unit_test(an_image_is_not_counted_by_its_bytes),
        cmocka_unit_test(what_reports_no_usage_is_charged_as_reserved),
        cmocka_unit_test(without_limits_what_was_seen_is_an_estimate),
        cmocka_unit_test(a_client_that_left_and_was_never_answered_is_charged),
        cmocka_unit_test(each_response_of_a_request_is_reserved),
        cmocka_unit_test(what_cannot_be_metered_is_refused),
        cmocka_unit_test(an_attempt_that_got_lost_is_charged_and_the_next_reserved),
        cmocka_unit_test(a_prompt_can_be_reserved_by_its_bytes),
        cmocka_unit_test(who_never_left_was_no_call),
        cmocka_unit_test(failures_are_tried_again_and_told),
        cmocka_unit_test(a_refusal_above_is_ours_and_never_tried_again),
        cmocka_unit_test(the_last_call_decides_about_the_credential),
        cmocka_unit_test(providers_say_when_in_their_own_ways),
        cmocka_unit_test(side_requests_are_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
