/* SPDX-License-Identifier: MIT
 *
 * The meter's sums and rows, and the ledger that holds them against what the harness told.
 */
#include "gateway/meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "gateway/ledger.h"

static struct price_table *prices(struct arena *a)
{
    struct price_table *t = NULL;
    struct err e = { 0 };
    assert_int_equal(
        price_parse(a,
                    STR("version: v1\nsource: test\nmodels:\n"
                        "  - {match: [big], input: 10, output: 50, cache_read: 1,"
                        " cache_write: 12.5}\n  - {match: [small], input: 1, output: 2}\n"),
                    "p.yaml", &t, &e),
        0);
    return t;
}

static struct meter_call call(const char *model, int64_t in, int64_t out)
{
    return (struct meter_call) { .model = str_of(model),
                                 .upstream = STR("up"),
                                 .usage = { in, out, -1, -1, -1 },
                                 .attempts = 1 };
}

static void every_call_counts(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct meter *m = meter_new(prices(a));
    struct meter_call c = call("big", 100, 10);
    c.usage.cache_read = 1000;
    c.usage.cache_write = 8;
    c.usage.reasoning = 4;
    c.first_byte = 77;
    struct meter_call side = call("small", 5, 1);
    side.side = true;
    side.first_byte = 11;
    struct meter_call failed = call("big", -1, -1);
    failed.failed = true;
    failed.attempts = 5;
    assert_int_equal(meter_add(m, &side), 5 * 1000000 + 1 * 2000000);
    assert_int_equal(meter_add(m, &failed), 0);
    assert_int_equal(meter_add(m, &c),
                     INT64_C(100) * 10000000 + 10 * 50000000 + 1000 * 1000000 + 8 * 12500000);
    const struct meter_sum *s = meter_sum(m);
    assert_int_equal(s->calls, 3);
    assert_int_equal(s->side, 1);
    assert_int_equal(s->failed, 1);
    assert_int_equal(s->attempts, 7);
    assert_int_equal(s->unpriced, 0);
    assert_int_equal(s->usage.input, 105);
    assert_int_equal(s->usage.output, 11);
    assert_int_equal(s->usage.cache_read, 1000);
    assert_int_equal(s->usage.reasoning, 4);
    assert_int_equal(meter_rows(m), 2);
    assert_string_equal(meter_row(m, 1)->model, "big");
    assert_int_equal(meter_row(m, 1)->sum.calls, 2);
    assert_int_equal(meter_first_byte(m), 77);
    assert_string_equal(meter_prices(m)->version, "v1");
    meter_free(m);
}

static void too_many_models_share_a_row(void **state)
{
    struct meter *m = meter_new(NULL);
    for (int i = 0; i < METER_ROWS_MAX + 40; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "m%d", i);
        struct meter_call c = call(name, 1, 0);
        assert_int_equal(meter_add(m, &c), -1);
    }
    assert_int_equal(meter_rows(m), METER_ROWS_MAX);
    assert_string_equal(meter_row(m, METER_ROWS_MAX - 1)->model, "other");
    assert_int_equal(meter_row(m, METER_ROWS_MAX - 1)->sum.calls, 41);
    assert_int_equal(meter_sum(m)->calls, METER_ROWS_MAX + 40);
    assert_int_equal(meter_sum(m)->unpriced, METER_ROWS_MAX + 40);
    assert_null(meter_prices(m));
    meter_free(m);
}

static int64_t number(const struct json *v, const char *pointer)
{
    const struct json *n = json_pointer(v, str_of(pointer));
    if (n == NULL) {
        fail_msg("no %s", pointer);
    }
    return json_int(n, INT64_MIN);
}

static void the_ledger_shows_what_a_harness_did_not_tell(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct meter *m = meter_new(prices(a));
    struct meter_call c = call("big", 100, 10);
    struct meter_call side = call("small", 5, 1);
    side.side = true;
    (void)meter_add(m, &c);
    (void)meter_add(m, &side);
    struct ledger_reported told = { .known = true,
                                    .usage = { 100, 10, 0, -1, -1 },
                                    .calls = 1,
                                    .cost_known = true,
                                    .cost_usd = 0.0015 };
    struct json *j = ledger_json(a, m, &told);
    assert_int_equal(number(j, "/wire/input"), 105);
    assert_int_equal(number(j, "/reported/input"), 100);
    assert_int_equal(number(j, "/difference/input"), 5);
    assert_int_equal(number(j, "/difference/output"), 1);
    assert_int_equal(number(j, "/difference/calls"), 1);
    assert_true(json_is(json_pointer(j, STR("/difference/cache_write")), JSON_NULL));
    double usd = json_real(json_pointer(j, STR("/difference/cost_usd")), -1);
    assert_true(usd > 0.0000069 && usd < 0.0000071);
    assert_int_equal(number(j, "/models/1/side"), 1);
    assert_true(
        str_eqc(json_str(json_pointer(j, STR("/models/0/prices/version")), STR_EMPTY), "v1"));
    struct meter_call unknown = call("nobody-knows", 5, 1);
    (void)meter_add(m, &unknown);
    j = ledger_json(a, m, &(struct ledger_reported) { 0 });
    assert_true(json_is(json_pointer(j, STR("/wire/cost_usd")), JSON_NULL));
    assert_true(json_is(json_pointer(j, STR("/reported")), JSON_NULL));
    assert_true(json_is(json_pointer(j, STR("/difference")), JSON_NULL));
    meter_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_counts),
        cmocka_unit_test(too_many_models_share_a_row),
        cmocka_unit_test(the_ledger_shows_what_a_harness_did_not_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
