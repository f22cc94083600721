/* SPDX-License-Identifier: MIT
 *
 * Waiting for room: in order, only where that is of use, and not for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "gateway/body.h"
#include "gateway/request_queue.h"
#include "io/loop.h"

#define LARGE ((size_t)80000)

struct case_of {
    struct loop *loop;
    struct body_room room;
    struct request_queue turns;
    struct body body; /* fills the room */
    char order[8];
};

struct guest {
    struct turn turn;
    struct case_of *c;
    struct body body;
    char name;
};

static void on_turn(void *arg)
{
    struct guest *g = arg;
    g->c->order[strlen(g->c->order)] = g->name;
    body_expect(&g->body, g->turn.len);
    loop_stop(g->c->loop);
}

static void guest_init(struct guest *g, struct case_of *c, char name)
{
    *g = (struct guest) { .turn = { .fn = on_turn, .arg = g }, .c = c, .name = name };
    body_init(&g->body, &c->room, LARGE);
}

/* The room is full, and a body that was there before went a moment ago. */
static void case_init(struct case_of *c)
{
    *c = (struct case_of) { .room = { .bound = 100000, .dir = "." } };
    assert_int_equal(loop_new(&c->loop, NULL), 0);
    queue_init(&c->turns, c->loop, &c->room);
    body_init(&c->body, &c->room, LARGE);
    body_expect(&c->body, LARGE);
    body_done(&c->body);
    body_expect(&c->body, LARGE);
}

static void case_done(struct case_of *c)
{
    body_done(&c->body);
    queue_done(&c->turns);
    c->loop = loop_free(c->loop);
}

static void who_came_first_has_the_first_turn(void **state)
{
    struct case_of c;
    struct guest a, b, gone, small;
    case_init(&c);
    guest_init(&a, &c, 'a');
    guest_init(&b, &c, 'b');
    guest_init(&gone, &c, 'x');
    guest_init(&small, &c, 's');
    assert_true(queue_join(&c.turns, &gone.turn, LARGE));
    assert_true(queue_join(&c.turns, &a.turn, LARGE));
    assert_true(queue_join(&c.turns, &b.turn, 20000)); /* would fit: not before its turn */
    assert_false(queue_join(&c.turns, &small.turn, 1000));
    queue_leave(&c.turns, &gone.turn);
    queue_leave(&c.turns, &gone.turn);
    assert_string_equal(c.order, "");
    body_done(&c.body); /* room for both */
    assert_string_equal(c.order, "");
    loop_run(c.loop);
    assert_string_equal(c.order, "ab");
    assert_int_equal(c.room.held, LARGE + 20000);
    body_done(&a.body);
    body_done(&b.body);
    case_done(&c);
}

static void who_leaves_last_leaves_no_trace(void **state)
{
    struct case_of c;
    struct guest a, b;
    case_init(&c);
    guest_init(&a, &c, 'a');
    guest_init(&b, &c, 'b');
    assert_true(queue_join(&c.turns, &a.turn, LARGE));
    assert_true(queue_join(&c.turns, &b.turn, LARGE));
    queue_leave(&c.turns, &b.turn);
    assert_true(queue_join(&c.turns, &b.turn, LARGE));
    queue_leave(&c.turns, &a.turn);
    queue_leave(&c.turns, &b.turn);
    assert_null(c.turns.first);
    assert_null(c.turns.last);
    case_done(&c);
}

static void nobody_waits_where_that_is_of_no_use(void **state)
{
    struct case_of c;
    struct guest g;
    case_init(&c);
    guest_init(&g, &c, 'g');
    assert_false(queue_join(&c.turns, &g.turn, c.room.bound + 1)); /* will never fit */
    for (int i = 0; i < 10; i++) {
        c.room.freed(c.room.arg, 10 * NSEC_PER_SEC); /* models think */
    }
    assert_false(queue_join(&c.turns, &g.turn, LARGE));
    for (int i = 0; i < 100; i++) {
        c.room.freed(c.room.arg, NSEC_PER_MS);
    }
    assert_true(queue_join(&c.turns, &g.turn, LARGE));
    queue_leave(&c.turns, &g.turn);
    c.room.dir = NULL; /* memory is all there is */
    assert_false(queue_join(&c.turns, &g.turn, LARGE));
    case_done(&c);
}

static void the_wait_ends_when_nothing_moves(void **state)
{
    struct case_of c;
    struct guest g;
    nsec began = clock_now();
    case_init(&c);
    guest_init(&g, &c, 'g');
    assert_true(queue_join(&c.turns, &g.turn, LARGE));
    loop_run(c.loop);
    assert_string_equal(c.order, "g");
    assert_true(clock_now() - began >= QUEUE_QUIET);
    assert_true(g.body.aside);                          /* still no room: it will be a file */
    assert_false(queue_join(&c.turns, &g.turn, LARGE)); /* nor does the next one wait */
    body_done(&g.body);
    case_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_came_first_has_the_first_turn),
        cmocka_unit_test(who_leaves_last_leaves_no_trace),
        cmocka_unit_test(nobody_waits_where_that_is_of_no_use),
        cmocka_unit_test(the_wait_ends_when_nothing_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
