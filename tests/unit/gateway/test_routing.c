/* SPDX-License-Identifier: MIT
 *
 * Words of a route into what stands behind it.
 */
#include "gateway/routing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"

static struct routing_target read_words(struct arena *a, struct routing_words w)
{
    struct routing_target t;
    struct err e = { 0 };
    if (routing_read(a, &w, &t, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return t;
}

static void providers_are_known_by_their_host(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct routing_target t =
        read_words(a, (struct routing_words) { "https://api.anthropic.com/" });
    assert_int_equal(t.format, LLM_ANTHROPIC);
    assert_false(t.any_format);
    assert_string_equal(t.where, "https://api.anthropic.com");
    assert_string_equal(t.key, "ANTHROPIC_API_KEY");
    assert_true(t.key_required);
    t = read_words(a, (struct routing_words) { "https://api.openai.com/v1" });
    assert_int_equal(t.format, LLM_RESPONSES);
    assert_int_equal(t.formats, 1u << LLM_CHAT);
    t = read_words(a, (struct routing_words) { "https://api.openai.com", "chat", "MY_KEY" });
    assert_int_equal(t.format, LLM_CHAT);
    assert_int_equal(t.formats, 0);
    assert_string_equal(t.key, "MY_KEY");
}

static void others_speak_what_the_client_speaks(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct routing_target t = read_words(a, (struct routing_words) { "http://127.0.0.1:8000/v1" });
    assert_true(t.any_format);
    assert_null(t.key);
    assert_false(t.key_required);
    assert_string_equal(t.name, "127.0.0.1:8000");
    t = read_words(a, (struct routing_words) { "http://[::1]:8000", "chat" });
    assert_false(t.any_format);
    t = read_words(a, (struct routing_words) { "script:/a/b:c.yaml" });
    assert_int_equal(t.kind, ROUTING_SCRIPT);
    assert_string_equal(t.where, "/a/b:c.yaml");
    t = read_words(a, (struct routing_words) { "cassette:x" });
    assert_int_equal(t.kind, ROUTING_CASSETTE);
    assert_true(t.any_format);
}

static void what_is_no_address_is_refused(void **state)
{
    static const struct routing_words table[] = {
        { "" },
        { "example.com" },
        { "ftp://x" },
        { "https://" },
        { "https://:80" },
        { "https://user:pw@host" },
        { "script:" },
        { "https://host/?key=abc" },
        { "https://ho st" },
        { "http://a/b", "grpc" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct routing_target t;
        struct err e = { 0 };
        if (routing_read(a, &table[i], &t, &e) != -ERR_CONFIG) {
            fail_msg("'%s' is taken", table[i].upstream);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(providers_are_known_by_their_host),
        cmocka_unit_test(others_speak_what_the_client_speaks),
        cmocka_unit_test(what_is_no_address_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
