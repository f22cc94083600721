/* SPDX-License-Identifier: MIT
 *
 * Messages and tool calls as lines: at once, or when the call has ended, with its duration.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "cli/live.h"

struct fixture {
    struct arena *arena;
    char *text;
    size_t len;
    FILE *stream;
    struct terminal terminal;
    struct progress progress;
    struct live live;
};

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    f->arena = arena_new();
    f->stream = open_memstream(&f->text, &f->len);
    terminal_init(&f->terminal, f->stream, TERMINAL_COLOR_OFF);
    progress_init(&f->progress, &f->terminal, PROGRESS_MESSAGES);
    f->live.progress = &f->progress;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    (void)fclose(f->stream);
    free(f->text);
    arena_free(f->arena);
    test_free(f);
    return 0;
}

static void feed(struct fixture *f, const char *type, const char *detail, nsec now)
{
    struct json *entry = NULL;
    const char *text =
        arena_printf(f->arena, "{\"entry_type\":\"%s\",\"detail\":%s}", type, detail);
    assert_int_equal(json_parse(f->arena, str_of(text), NULL, &entry, NULL), 0);
    live_entry(&f->live, entry, now);
}

/* The lines without their times of day. */
static void expect(struct fixture *f, const char *wanted)
{
    CLEANUP(buf) struct buf seen = BUF_INIT(BUF_TEXT);
    (void)fflush(f->stream);
    struct str rest = str_n(f->text, f->len);
    while (rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        assert_true(line.len > 6 && line.ptr[2] == ':');
        buf_add(&seen, str_slice(line, 6, line.len));
        buf_adds(&seen, "\n");
    }
    assert_string_equal(seen.len == 0 ? "" : seen.ptr, wanted);
}

static void test_calls(void **state)
{
    struct fixture *f = *state;
    feed(f, "assistant_message", "{\"text\":\"Look.\"}", 0);
    feed(f, "tool_use", "{\"tool_call_id\":\"a\",\"input\":{\"command\":\"one\"}}",
         1 * NSEC_PER_SEC);
    assert_string_equal(live_note(&f->live), "$ one");
    feed(f, "tool_use", "{\"tool_call_id\":\"b\",\"input\":{\"command\":\"two\"}}",
         2 * NSEC_PER_SEC);
    assert_string_equal(live_note(&f->live), "$ two");
    feed(f, "tool_result", "{\"tool_call_id\":\"b\",\"exit_code\":1,\"output\":\"x\"}",
         4 * NSEC_PER_SEC);
    feed(f, "tool_result", "{\"tool_call_id\":\"a\",\"output\":\"x\"}", 5 * NSEC_PER_SEC);
    feed(f, "tool_result", "{\"tool_call_id\":\"unknown\",\"output\":\"x\"}", 5 * NSEC_PER_SEC);
    assert_null(live_note(&f->live));
    expect(f, "Look.\n$ two  failed, 2.0s\n$ one  4.0s\n");
}

/* More calls at once than there is room for, and calls without an id, are shown when they begin. */
static void test_many(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < LIVE_CALLS + 1; i++) {
        feed(f, "tool_use",
             arena_printf(f->arena, "{\"tool_call_id\":\"%d\",\"input\":{\"command\":\"n\"}}", i),
             1);
    }
    feed(f, "tool_use", "{\"input\":{\"command\":\"m\"}}", 1);
    feed(f, "tool_result", "{\"output\":\"x\"}", 2);
    expect(f, "$ n\n$ m\n");
}

static void test_hostile_text(void **state)
{
    struct fixture *f = *state;
    feed(f, "assistant_message", "{\"text\":\"\\u001b[2J\\rx\"}", 0);
    expect(f, "\\x1b[2J\\rx\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_text, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
