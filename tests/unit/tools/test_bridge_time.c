/* SPDX-License-Identifier: MIT
 *
 * Time, places and ends: calls that take too long, handlers that do not stop, too many calls at
 * once, and a bridge that is stopped with all of this under way.
 */
#include "tools/bridge.h"

#include "bridge_world.h"

/* The time is over: of the tool, or of the run. */
static void test_timeout(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, false);
    add(&w, "short", ",\"timeout\":0.05", &held);
    call(&w, "short", "{}", &s);
    assert_true(w.held[0]->timeout == 50 * NSEC_PER_MS);
    write_file(w.held[0], "a", "2");
    loop_run(w.loop);
    assert_int_equal(s.failure, TOOL_TIMEOUT);
    assert_non_null(strstr(s.text, "longer than 0.05 s"));
    assert_int_equal(w.cancelled, 1);
    assert_string_equal(text_of(w.s, "ws/a"), "1");
    w.left = 30 * NSEC_PER_MS;
    call(&w, "held", "{}", &s);
    assert_true(w.held[1]->timeout == 30 * NSEC_PER_MS);
    loop_run(w.loop);
    assert_int_equal(s.failure, TOOL_TIMEOUT);
    close_world(&w);
}

/* A handler that cannot be stopped does not hold up the model, and never commits. */
static void test_left_behind(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, false);
    add(&w, "mute", ",\"timeout\":0.01", &mute);
    call(&w, "mute", "{}", &s);
    write_file(w.held[0], "a", "2");
    loop_run(w.loop);
    assert_int_equal(s.failure, TOOL_TIMEOUT);
    assert_int_equal(s.done, 1);
    assert_true(bridge_busy(w.b));
    assert_int_equal(txns_active(w.txns), 1); /* it still works there */
    give(w.held[0], TOOL_OK, "at last", NULL, "[{\"op\":\"append\",\"slice\":\"p\",\"value\":1}]");
    assert_int_equal(s.done, 1);
    assert_int_equal(w.invoked, 1);
    assert_false(bridge_busy(w.b));
    assert_int_equal(txns_active(w.txns), 0);
    assert_string_equal(text_of(w.s, "ws/a"), "1");
    assert_int_equal(store_len(w.session, NULL, STR("p")), 0);
    close_world(&w);
}

/* A bridge that was stopped is idle soon, whatever its handlers do, and holds no transaction. */
static void test_stopped_with_handlers_at_work(void **state)
{
    struct world w;
    struct seen s[3];
    open_world(&w, *state, false);
    add(&w, "mute", "", &mute);
    add(&w, "mute_short", ",\"timeout\":0.01", &mute);
    add(&w, "deaf", "", &deaf);
    call(&w, "mute_short", "{}", &s[0]);
    loop_run(w.loop);
    assert_int_equal(s[0].failure, TOOL_TIMEOUT);
    call(&w, "mute", "{}", &s[1]);
    call(&w, "deaf", "{}", &s[2]);
    assert_int_equal(txns_active(w.txns), 3);
    bridge_stop(w.b);
    assert_int_equal(s[1].failure, TOOL_CANCELLED);
    assert_int_equal(s[2].done, 0); /* has some time to obey */
    assert_true(bridge_busy(w.b));
    assert_int_equal(txns_active(w.txns), 1);
    give(w.held[1], TOOL_OK, "at last", NULL, NULL);
    loop_run(w.loop);
    assert_int_equal(s[2].failure, TOOL_CANCELLED);
    assert_int_equal(w.idle, 1);
    assert_false(bridge_busy(w.b));
    assert_int_equal(txns_active(w.txns), 0);
    give(w.held[2], TOOL_OK, "too late", NULL, NULL);
    assert_int_equal(w.invoked, 3);
    close_world(&w); /* the first has never ended */
}

/* Without a stop before it, bridge_free() answers what it forgets. */
static void test_freed_with_handlers_at_work(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, false);
    add(&w, "deaf", "", &deaf);
    call(&w, "deaf", "{}", &s);
    w.b = bridge_free(w.b);
    assert_int_equal(w.cancelled, 1);
    assert_int_equal(s.failure, TOOL_CANCELLED);
    close_world(&w);
}

static void test_queue(void **state)
{
    struct world w;
    struct seen *s = xcalloc(BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX + 1, sizeof *s);
    open_world(&w, *state, false);
    struct bridge_call *third = NULL;
    for (int i = 0; i < BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX; i++) {
        struct bridge_call *c =
            call(&w, i < BRIDGE_CALLS_MAX ? "held" : "now", "{\"message\":\"m\"}", &s[i]);
        third = i == BRIDGE_CALLS_MAX + 2 ? c : third;
    }
    struct seen *refused = &s[BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX];
    assert_int_equal(w.started, BRIDGE_CALLS_MAX);
    call(&w, "now", "{}", refused);
    assert_int_equal(refused->failure, TOOL_INTERNAL);
    assert_non_null(strstr(refused->text, "too many calls"));
    bridge_cancel(third);
    assert_int_equal(s[BRIDGE_CALLS_MAX + 2].failure, TOOL_CANCELLED);
    give(w.held[5], TOOL_OK, "", NULL, NULL);
    loop_post(w.loop, (void (*)(void *))loop_stop, w.loop);
    loop_run(w.loop);
    assert_int_equal(w.started, BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX - 1);
    assert_int_equal(s[BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX - 1].done, 1);
    call(&w, "now", "{\"message\":\"m\"}", refused); /* there is room again, and no queue */
    assert_int_equal(refused->done, 1);
    assert_int_equal(refused->failure, TOOL_OK);
    bridge_stop(w.b);
    assert_int_equal(w.cancelled, BRIDGE_CALLS_MAX - 1);
    assert_false(bridge_busy(w.b));
    loop_run(w.loop);
    assert_int_equal(w.idle, 1);
    call(&w, "now", "{}", &s[0]);
    assert_int_equal(s[0].failure, TOOL_CANCELLED);
    assert_int_equal(w.invoked, BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX + 3);
    close_world(&w);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(test_timeout),
        SCENE_TEST(test_left_behind),
        SCENE_TEST(test_stopped_with_handlers_at_work),
        SCENE_TEST(test_freed_with_handlers_at_work),
        SCENE_TEST(test_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
