/* SPDX-License-Identifier: MIT
 *
 * Reading a record: what is taken from it, and which file is named when one is missing or broken.
 */
#include "../values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "ack/evidence.h"
#include "base/file.h"

struct record {
    char dir[64];
};

static void put(const struct record *r, const char *name, const char *text)
{
    const char *path = arena_printf(arena, "%s/%s", r->dir, name);
    assert_int_equal(file_write_atomic(AT_FDCWD, path, str_of(text), 0644, NULL), 0);
}

static const struct {
    const char *name, *text;
} whole[] = {
    { "manifest.json", "{\"reason\": \"success\"}" },
    { "metrics.json", "{}" },
    { "result.json", "{\"text\": \"Hello.\"}" },
    { "events.jsonl", "{\"event\": \"a\"}\n{\"event\": \"b\"}\n" },
    { "transcript.jsonl", "{\"event\": \"transcript.start\"}\n"
                          "{\"event\": \"transcript.entry\", \"entry_type\": \"user_message\"}\n"
                          "{\"event\": \"transcript.stop\"}\n" },
};

static int set_up(void **state)
{
    arena_setup(state);
    struct record *r = *state = xcalloc(1, sizeof *r);
    (void)snprintf(r->dir, sizeof r->dir, "/tmp/test_ack_evidence_XXXXXX");
    if (mkdtemp(r->dir) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
        put(r, whole[i].name, whole[i].text);
    }
    return 0;
}

static int tear_down(void **state)
{
    struct record *r = *state;
    int result = file_remove_tree(AT_FDCWD, r->dir, NULL);
    free(r);
    arena_teardown(state);
    return result;
}

static void load(const struct record *r, struct evidence *ev)
{
    struct err e = { 0 };
    if (evidence_load(arena, r->dir, ev, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static void test_whole(void **state)
{
    struct evidence ev;
    load(*state, &ev);
    assert_string_equal(json_cstring(json_get(ev.manifest, "reason"), ""), "success");
    assert_string_equal(json_cstring(json_get(ev.result, "text"), ""), "Hello.");
    assert_int_equal(json_len(ev.events), 2);
    assert_int_equal(json_len(ev.transcript), 1); /* start and stop are no entries */
    assert_string_equal(json_cstring(json_pointer(ev.transcript, STR("/0/entry_type")), ""),
                        "user_message");
    assert_null(ev.session);
    assert_int_equal(ev.patch.len, 0);
    assert_int_equal(ev.requests_len, 0);
}

static void test_session_and_patch(void **state)
{
    struct record *r = *state;
    struct evidence ev;
    assert_int_equal(file_mkdirs(AT_FDCWD, arena_printf(arena, "%s/session", r->dir), 0755, NULL),
                     0);
    put(r, "session/after.jsonl",
        "{\"slices\": [{\"slice_type\": \"Log\", \"items\": [{\"op\": 1}]}, {\"items\": 5}, 7]}\n");
    put(r, "diff.patch", "diff --git\n");
    load(r, &ev);
    assert_int_equal(json_len(json_get(ev.session, "Log")), 1);
    assert_string_equal(ev.patch.ptr, "diff --git\n");
    put(r, "session/after.jsonl", "");
    load(r, &ev);
    assert_int_equal(json_len(ev.session), 0);
}

/* A last line without its end is a line; text that happens to be JSON but no object is kept. */
static void test_odd_lines(void **state)
{
    struct evidence ev;
    put(*state, "events.jsonl", "{\"event\": \"a\"}\n5");
    put(*state, "transcript.jsonl", "[]\nnull\n\"transcript.entry\"\n{\"event\": 5}\n");
    load(*state, &ev);
    assert_int_equal(json_len(ev.events), 2);
    assert_int_equal(json_len(ev.transcript), 0);
}

static void test_missing(void **state)
{
    struct record *r = *state;
    for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
        struct evidence ev;
        struct err e = { 0 };
        const char *path = arena_printf(arena, "%s/%s", r->dir, whole[i].name);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(evidence_load(arena, r->dir, &ev, &e), -ERR_INPUT);
        if (strstr(e.msg, whole[i].name) == NULL) {
            fail_msg("'%s' does not name %s", e.msg, whole[i].name);
        }
        put(r, whole[i].name, whole[i].text);
    }
}

static void test_broken(void **state)
{
    static const struct {
        const char *name, *text, *message;
    } cases[] = {
        { "manifest.json", "{\"reason\": ", "manifest.json: " },
        { "metrics.json", "", "metrics.json: " },
        { "result.json", "nothing", "result.json: " },
        { "events.jsonl", "{}\n{\"event\":\n{}\n", "events.jsonl, line 2: " },
        { "events.jsonl", "{}\n\n{}\n", "events.jsonl, line 2: " },
        { "transcript.jsonl", "{}\n{}\nx\n", "transcript.jsonl, line 3: " },
        { "session/after.jsonl", "{", "session/after.jsonl, line 1: " },
        { "evidence/traffic.cassette", "no cassette", "traffic.cassette" },
    };
    struct record *r = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct evidence ev;
        struct err e = { 0 };
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
        r = *state;
        const char *dir = arena_printf(arena, "%s/%.*s", r->dir, (int)strcspn(cases[i].name, "/."),
                                       cases[i].name);
        assert_int_equal(file_mkdirs(AT_FDCWD, dir, 0755, NULL), 0);
        put(r, cases[i].name, cases[i].text);
        assert_true(evidence_load(arena, r->dir, &ev, &e) < 0);
        if (strstr(e.msg, cases[i].message) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i].message, e.msg);
        }
    }
}

#define RECORD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(test_whole),     RECORD_TEST(test_session_and_patch),
        RECORD_TEST(test_odd_lines), RECORD_TEST(test_missing),
        RECORD_TEST(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
