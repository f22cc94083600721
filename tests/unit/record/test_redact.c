/* SPDX-License-Identifier: MIT
 *
 * Redaction: which forms are found, that chunks make no difference, what is held back and for how
 * long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "redact_reference.h"

static void append(void *ctx, struct str piece)
{
    buf_add(ctx, piece);
}

static struct redactor *redactor_of(const char *name, const char *value)
{
    struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, str_of(name), str_of(value), NULL), 0);
    redactor_compile(r);
    return r;
}

static void check(const struct redactor *r, const char *in, const char *expected)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct str out = redact_str(r, a, str_of(in));
    char *text = arena_dup(a, out);
    assert_string_equal(text, expected);
}

static void finds_the_value_and_keeps_the_rest(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "hunter2-hunter2");
    check(r, "a hunter2-hunter2 b", "a [REDACTED:KEY] b");
    check(r, "hunter2-hunter2", "[REDACTED:KEY]");
    check(r, "hunter2-hunter2hunter2-hunter2", "[REDACTED:KEY][REDACTED:KEY]");
    check(r, "hunter2-hunter", "hunter2-hunter");
    check(r, "", "");
}

static void finds_encoded_forms(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "p\xC3\xA4ss\"wo/rd?>~");
    /* printf 'user:pä…' | base64, with 0 to 2 bytes before it and something behind */
    check(r, "cMOkc3Mid28vcmQ/Pn4=", "[REDACTED:KEY]4=");
    check(r, "YXDDpHNzIndvL3JkPz5+", "YX[REDACTED:KEY]");
    check(r, "YWFww6RzcyJ3by9yZD8+fg==", "YWF[REDACTED:KEY]g==");
    check(r, "cMOkc3Mid28vcmQ_Pn4", "[REDACTED:KEY]4");
    check(r, "?k=p%C3%A4ss%22wo%2Frd%3F%3E~&x", "?k=[REDACTED:KEY]&x");
    check(r, "?k=p%c3%a4ss%22wo%2frd%3f%3e~&x", "?k=[REDACTED:KEY]&x");
    check(r, "/p%C3%A4ss%22wo/rd%3F%3E~/", "/[REDACTED:KEY]/");
    check(r, "{\"k\":\"p\xC3\xA4ss\\\"wo/rd?>~\"}", "{\"k\":\"[REDACTED:KEY]\"}");
    check(r, "{\"k\":\"p\\u00e4ss\\\"wo/rd?>~\"}", "{\"k\":\"[REDACTED:KEY]\"}");
    check(r, "{\"k\":\"p\xC3\xA4ss\\\"wo\\/rd?\\u003e~\"}", "{\"k\":\"[REDACTED:KEY]\"}");
    check(r, "\"{\\\"k\\\":\\\"p\xC3\xA4ss\\\\\\\"wo/rd?>~\\\"}\"",
          "\"{\\\"k\\\":\\\"[REDACTED:KEY]\\\"}\"");
}

static void finds_each_line_of_a_long_secret(void **state)
{
    CLEANUP(redactor)
    struct redactor *r = redactor_of("PEM", "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJ\n"
                                            "zUr1fwwQ7n\n-----END KEY-----\n");
    check(r, "  MIIEowIBAAKCAQEA0Z3VS5JJ\r\n", "  [REDACTED:PEM]\r\n");
    check(r, "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJ\nzUr1fwwQ7n\n-----END KEY-----\n",
          "[REDACTED:PEM]\n");
    check(r, "-----BEGIN KEY-----\\nMIIEowIBAAKCAQEA0Z3VS5JJ\\nzUr1fwwQ7n\\n-----END KEY-----",
          "[REDACTED:PEM]");
}

static void overlapping_secrets_leave_no_rest(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("A"), STR("abcdef"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("B"), STR("defghi"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("C"), STR("abcdefgh-long"), NULL), 0);
    redactor_compile(r);
    check(r, "<abcdefghi>", "<[REDACTED:A]>");
    check(r, "<abcdefgh-long>", "<[REDACTED:C]>");
    check(r, "<abcdefgh-lon>", "<[REDACTED:A]gh-lon>");
    check(r, "<abcdefdefghi>", "<[REDACTED:A][REDACTED:B]>");
}

static void masks_never_complete_a_secret(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("A"), STR("REDACTED"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("B"), STR("]tail"), NULL), 0);
    redactor_compile(r);
    check(r, "REDACTED", "***");
    check(r, "REDACTEDtail ]tail", "***tail ***");
    CLEANUP(redactor) struct redactor *odd = redactor_of("a \"b\"\n", "value");
    check(odd, "value", "[REDACTED:a__b__]");
}

static void refuses_values_it_cannot_recognise(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    struct err e;
    assert_int_equal(redactor_add(r, STR("PIN"), STR(" 123\n"), &e), -ERR_SECRET);
    assert_string_equal(
        e.msg, "secret 'PIN' has 3 bytes; at least 4 are needed to recognise it in output");
    CLEANUP(buf) struct buf big = BUF_INIT(BUF_TEXT);
    while (big.len <= REDACT_VALUE_MAX) {
        buf_adds(&big, "0123456789abcdef");
    }
    assert_int_equal(redactor_add(r, STR("BIG"), buf_str(&big), &e), -ERR_SECRET);
    redactor_compile(r);
    assert_int_equal(redactor_longest(r), 0);
    check(r, "123 passes", "123 passes");
}

static void holds_back_only_beginnings(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "secret-value");
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct redact_stream s;
    redact_stream_init(&s, r, append, &out);
    redact_stream_feed(&s, STR("a line that has sec and secret- inside\n"));
    assert_string_equal(out.ptr, "a line that has sec and secret- inside\n");
    buf_reset(&out);
    redact_stream_feed(&s, STR("prompt: secret-"));
    assert_string_equal(out.ptr, "prompt: ");
    redact_stream_feed(&s, STR("va"));
    assert_string_equal(out.ptr, "prompt: ");
    redact_stream_feed(&s, STR("nilla"));
    assert_string_equal(out.ptr, "prompt: secret-vanilla");
    redact_stream_feed(&s, STR(" secret-valu"));
    redact_stream_feed(&s, STR("e."));
    assert_string_equal(out.ptr, "prompt: secret-vanilla [REDACTED:KEY].");
    redact_stream_feed(&s, STR("secr"));
    redact_stream_flush(&s);
    assert_string_equal(out.ptr, "prompt: secret-vanilla [REDACTED:KEY].secr");
    assert_int_equal(s.removed, 1);
    redact_stream_done(&s);
}

static void remember_piece(void *ctx, struct str piece)
{
    *(struct str *)ctx = piece;
}

static void clean_chunks_are_not_copied(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "secret-value");
    struct str seen = STR_EMPTY;
    struct redact_stream s;
    redact_stream_init(&s, r, remember_piece, &seen);
    struct str chunk = STR("nothing to see here\n");
    redact_stream_feed(&s, chunk);
    assert_ptr_equal(seen.ptr, chunk.ptr);
    assert_int_equal(seen.len, chunk.len);
    redact_stream_done(&s);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Texts over a tiny alphabet, full of beginnings, occurrences and overlaps, cut at random places.
 */
static void cuts_make_no_difference(void **state)
{
    for (uint32_t round = 1; round <= 3000; round++) {
        uint32_t seed = round;
        char secrets[3][10] = { 0 };
        CLEANUP(redactor) struct redactor *r = redactor_new();
        for (size_t i = 0; i < 3; i++) {
            size_t len = 4 + next_random(&seed) % 5;
            for (size_t k = 0; k < len; k++) {
                secrets[i][k] = "ab["[next_random(&seed) % 3];
            }
            assert_int_equal(redactor_add(r, STR("N"), str_of(secrets[i]), NULL), 0);
        }
        redactor_compile(r);
        char text[120];
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = "aab[b"[next_random(&seed) % 5];
        }
        CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        redact_reference(r, str_n(text, sizeof text), &expected);
        struct redact_stream s;
        redact_stream_init(&s, r, append, &out);
        for (size_t at = 0; at < sizeof text;) {
            size_t len = next_random(&seed) % 12;
            redact_stream_feed(&s, str_slice(str_n(text, sizeof text), at, at + len));
            assert_true(s.hold.len < redactor_longest(r));
            at += len;
        }
        redact_stream_flush(&s);
        redact_stream_done(&s);
        assert_int_equal(out.len, expected.len);
        assert_memory_equal(out.ptr, expected.ptr, out.len);
        assert_false(redact_leaks(r, buf_str(&out)));
    }
}

static void halves_at_a_cut_edge_go_too(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR("hunter2-secret"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("L"), STR("secret-sauce"), NULL), 0);
    redactor_compile(r);
    static const struct {
        unsigned edges;
        const char *in, *out;
    } cases[] = {
        { REDACT_CUT_END, "the key is hunter2-secre", "the key is [REDACTED:K]" },
        { REDACT_CUT_END, "the key is hun", "the key is hun" },
        { REDACT_CUT_END, "hunter2-secret ends", "[REDACTED:K] ends" },
        { REDACT_CUT_END, "hunter2-secret-sau", "[REDACTED:K]-sau" },
        { REDACT_CUT_FRONT, "ter2-secret is the key", "[REDACTED:K] is the key" },
        { REDACT_CUT_FRONT, "hunter2-secre", "hunter2-secre" },
        { REDACT_CUT_FRONT | REDACT_CUT_END, "cret hunter2-secret x hunt",
          "[REDACTED:K] [REDACTED:K] x [REDACTED:K]" },
        { 0, "hunter2-secre", "hunter2-secre" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str out = redact_cut(r, a, str_of(cases[i].in), cases[i].edges);
        assert_string_equal(arena_dup(a, out), cases[i].out);
    }
    struct str clean = STR("nothing here");
    assert_ptr_equal(redact_cut(r, a, clean, REDACT_CUT_FRONT | REDACT_CUT_END).ptr, clean.ptr);
}

static void trees_lose_keys_values_and_numbers(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR("s3cret"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("PIN"), STR("4711"), NULL), 0);
    redactor_compile(r);
    struct json *v;
    assert_int_equal(json_parse(a,
                                STR("{\"a\":[1,\"x s3cret\",14711.5],\"s3cret\":{\"b\":true},"
                                    "\"n\":null,\"ok\":\"fine\"}"),
                                NULL, &v, NULL),
                     0);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(redact_json(r, a, v), JSON_COMPACT, &out, NULL), 0);
    assert_string_equal(out.ptr, "{\"a\":[1,\"x [REDACTED:K]\",\"1[REDACTED:PIN].5\"],"
                                 "\"[REDACTED:K]\":{\"b\":true},\"n\":null,\"ok\":\"fine\"}");
    struct json *clean = json_get(v, "ok");
    assert_ptr_equal(redact_json(r, a, clean), clean);
    assert_null(redact_json(r, a, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_value_and_keeps_the_rest),
        cmocka_unit_test(finds_encoded_forms),
        cmocka_unit_test(finds_each_line_of_a_long_secret),
        cmocka_unit_test(overlapping_secrets_leave_no_rest),
        cmocka_unit_test(masks_never_complete_a_secret),
        cmocka_unit_test(refuses_values_it_cannot_recognise),
        cmocka_unit_test(holds_back_only_beginnings),
        cmocka_unit_test(clean_chunks_are_not_copied),
        cmocka_unit_test(cuts_make_no_difference),
        cmocka_unit_test(halves_at_a_cut_edge_go_too),
        cmocka_unit_test(trees_lose_keys_values_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
