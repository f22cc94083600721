/* SPDX-License-Identifier: MIT
 *
 * An answer is given out as the border of upstreams demands: in order, nothing from inside of
 * start, nothing after cancel, nothing while paused, exactly one end.
 */
#include "replay/playback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "io/loop.h"
#include "io/timer.h"

struct client {
    struct loop *loop;
    struct upstream_call *call;
    struct timer *timer;
    struct buf log;
    size_t cancel_after; /* so many pieces of data */
    size_t pause_after;
    size_t pieces;
};

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    struct client *c = arg;
    buf_addf(&c->log, "head %d", status);
    for (size_t i = 0; i < fields->len; i++) {
        buf_addf(&c->log, " %.*s=%.*s", STR_ARG(fields->items[i].name),
                 STR_ARG(fields->items[i].value));
    }
    buf_adds(&c->log, "|");
}

static void on_data(void *arg, struct str bytes)
{
    struct client *c = arg;
    buf_addf(&c->log, "%.*s|", STR_ARG(bytes));
    c->pieces++;
    if (c->pieces == c->cancel_after) {
        playback_cancel(c->call);
    }
    if (c->pieces == c->pause_after) {
        playback_pause(c->call, true);
        timer_arm(c->timer, clock_now() + 20 * NSEC_PER_MS);
    }
}

static void on_end(void *arg)
{
    struct client *c = arg;
    buf_adds(&c->log, "end");
}

static void on_error(void *arg, const struct upstream_error *error)
{
    struct client *c = arg;
    buf_addf(&c->log, "error %s: %s", upstream_error_word(error->kind), error->message);
}

static void resume(void *arg)
{
    struct client *c = arg;
    buf_adds(&c->log, "resumed|");
    playback_pause(c->call, false);
}

static void give_up(void *arg)
{
    struct client *c = arg;
    buf_adds(&c->log, "given up");
    playback_cancel(c->call);
}

static const struct playback_frame frames[] = {
    { 0, STR("one") },
    { NSEC_PER_MS, STR("two") },
    { 0, STR("") },
    { 0, STR("three") },
};

static struct playback *make(void)
{
    struct playback *p = playback_new();
    p->frames = frames;
    p->n_frames = ARRAY_LEN(frames);
    p->delay = NSEC_PER_MS;
    p->last_wait = NSEC_PER_MS;
    playback_field(p, STR("a"), STR("b"));
    return p;
}

static void run(struct client *c, struct playback *p, void (*timer)(void *), const char *want)
{
    struct upstream_port port = { on_head, on_data, on_end, on_error, c };
    assert_int_equal(loop_new(&c->loop, NULL), 0);
    assert_int_equal(timer_new(c->loop, timer, c, &c->timer, NULL), 0);
    buf_init(&c->log, BUF_TEXT);
    bool hangs = p->end == PLAYBACK_HANGS;
    assert_int_equal(playback_start(p, c->loop, &port, &c->call, NULL), 0);
    assert_int_equal(c->log.len, 0);
    if (hangs) {
        timer_arm(c->timer, clock_now() + 20 * NSEC_PER_MS);
    }
    loop_run(c->loop);
    assert_string_equal(c->log.ptr != NULL ? c->log.ptr : "", want);
    timer_free(c->timer);
    c->loop = loop_free(c->loop);
    buf_done(&c->log);
}

static void in_order(void **state)
{
    struct client c = { 0 };
    run(&c, make(), resume, "head 200 a=b|one|two|three|end");
}

static void cancelled_within_a_callback(void **state)
{
    struct client c = { .cancel_after = 2 };
    run(&c, make(), resume, "head 200 a=b|one|two|");
}

static void paused_by_the_client(void **state)
{
    struct client c = { .pause_after = 1 };
    run(&c, make(), resume, "head 200 a=b|one|resumed|two|three|end");
    c = (struct client) { .pause_after = 3 };
    run(&c, make(), resume, "head 200 a=b|one|two|three|resumed|end");
}

static void cut(void **state)
{
    struct client c = { 0 };
    struct playback *p = make();
    p->n_frames = 1;
    p->end = PLAYBACK_FAILS;
    p->error = (struct upstream_error) { .kind = UPSTREAM_CUT, .message = "gone" };
    run(&c, p, resume, "head 200 a=b|one|error cut: gone");
}

static void fails_before_the_head(void **state)
{
    struct client c = { 0 };
    struct playback *p = make();
    playback_fail(p, UPSTREAM_REFUSED, "no such step");
    run(&c, p, resume, "error refused: no such step");
}

static void hangs_until_cancelled(void **state)
{
    struct client c = { 0 };
    struct playback *p = make();
    p->end = PLAYBACK_HANGS;
    run(&c, p, give_up, "head 200 a=b|one|two|three|given up");
    p = make();
    p->end = PLAYBACK_HANGS;
    p->headless = true;
    run(&c, p, give_up, "given up");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(cancelled_within_a_callback),
        cmocka_unit_test(paused_by_the_client),
        cmocka_unit_test(cut),
        cmocka_unit_test(fails_before_the_head),
        cmocka_unit_test(hangs_until_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
