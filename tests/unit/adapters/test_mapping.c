/* SPDX-License-Identifier: MIT
 *
 * What a harness prints becomes a report by rules, in any chunking, with bounded memory.
 */
#include "adapters/mapping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "data/yaml.h"

static struct arena *arena;
static struct buf entries = BUF_INIT(BUF_TEXT);

static int setup(void **state)
{
    arena = arena_new();
    buf_reset(&entries);
    buf_adds(&entries, "");
    return 0;
}

static int teardown(void **state)
{
    arena = arena_free(arena);
    buf_done(&entries);
    return 0;
}

static void on_entry(void *owner, const char *type, const struct json *detail, struct str raw)
{
    buf_addf(&entries, "%s:%zu ", type, raw.len);
}

static struct mapping *map(const char *spec, struct str text, size_t step, struct agent_report *ret)
{
    struct json *tree;
    struct err e;
    assert_int_equal(yaml_parse(arena, str_of(spec), "spec", NULL, &tree, &e), 0);
    struct mapping *m = mapping_new(tree, (struct entry_sink) { on_entry, NULL });
    for (size_t i = 0; i < text.len; i += step) {
        mapping_feed(m, str_slice(text, i, i + step));
    }
    mapping_end(m, ret);
    return m;
}

static const char ndjson_spec[] = "format: ndjson\n"
                                  "rules:\n"
                                  "  - {when: {/type: init}, session_id: /sid, model: /model}\n"
                                  "  - {when: {/type: msg}, text: /t, append_text: true,"
                                  " entry: assistant_message}\n"
                                  "  - {when: {/type: use}, add_usage: true,"
                                  " usage: {input: /i, output: /o, cost_usd: /c}}\n"
                                  "  - {when: {/type: end}, failed: /bad, error: /why}\n";

static void test_ndjson_in_any_chunking(void **state)
{
    static const char text[] = "{\"type\":\"init\",\"sid\":\"s1\",\"model\":\"m\"}\n"
                               "noise\n"
                               "{\"type\":\"msg\",\"t\":\"a\"}\r\n\n"
                               "{\"type\":\"msg\",\"t\":\"b\"}\n"
                               "{\"type\":\"use\",\"i\":10,\"o\":2,\"c\":0.5}\n"
                               "{\"type\":\"use\",\"i\":1,\"o\":1,\"c\":0.25}\n"
                               "{\"type\":\"end\",\"bad\":true,\"why\":\"boom\"}";
    for (size_t step = 1; step < sizeof text; step += 7) {
        struct agent_report r;
        buf_reset(&entries);
        struct mapping *m = map(ndjson_spec, STR(text), step, &r);
        assert_true(str_eqc(r.text, "ab"));
        assert_true(str_eqc(r.session_id, "s1"));
        assert_true(str_eqc(r.model, "m"));
        assert_true(str_eqc(r.error, "boom"));
        assert_true(r.failed && r.usage.known && r.usage.cost_known && r.result_seen);
        assert_int_equal(r.usage.input, 11);
        assert_int_equal(r.usage.output, 3);
        assert_true(r.usage.cost_usd > 0.74 && r.usage.cost_usd < 0.76);
        assert_int_equal(r.unparsable_lines, 1);
        assert_string_equal(entries.ptr, "assistant_message:22 assistant_message:22 ");
        mapping_free(m);
    }
}

static void test_json_document(void **state)
{
    struct agent_report r;
    struct mapping *m = map("format: json\nrules: [{text: /a/0, structured: /b}]\n",
                            STR(" {\"a\": [\"hi\"], \"b\": {\"x\": 1}}\n"), 3, &r);
    assert_true(str_eqc(r.text, "hi"));
    assert_int_equal(json_int(json_get(r.structured, "x"), 0), 1);
    mapping_free(m);
    m = map("format: json\n", STR("not json"), 100, &r);
    assert_false(r.result_seen);
    assert_int_equal(r.unparsable_lines, 1);
    mapping_free(m);
}

static void test_text_keeps_the_end(void **state)
{
    struct agent_report r;
    size_t size = 200000;
    char *big = xmalloc(size);
    for (size_t i = 0; i < size; i++) {
        big[i] = (char)('a' + (char)(i % 26));
    }
    struct mapping *m = map("format: text\n", str_n(big, size), 777, &r);
    assert_int_equal(r.text.len, 65536);
    assert_true(r.text_truncated);
    assert_memory_equal(r.text.ptr, big + size - 65536, 65536);
    mapping_free(m);
    m = map("format: text\n", str_n(big, 100), 7, &r);
    assert_true(r.text.len == 100 && !r.text_truncated && !r.usage.known);
    mapping_free(m);
    free(big);
}

static void expect_text(const char *spec, const char *text, const char *want, bool missed)
{
    for (size_t step = 1; step < 30; step += 7) {
        struct agent_report r;
        struct mapping *m = map(spec, str_of(text), step, &r);
        assert_true(str_eqc(r.text, want));
        assert_int_equal(r.answer_missed, missed);
        mapping_free(m);
    }
}

/* A program ends its last line; that is no part of the answer. */
static void test_text_is_trimmed(void **state)
{
    expect_text("format: text\n", "\n Hello, world.\n\n", "Hello, world.", false);
    expect_text("format: text\ntrim: false\n", " Hello.\n", " Hello.\n", false);
    expect_text("format: json\nrules: [{text: /a}]\n", "{\"a\": \" b \"}", " b ", false);
    expect_text("format: json\ntrim: true\nrules: [{text: /a}]\n", "{\"a\": \" b \"}", "b", false);
}

static void test_pattern_selects_the_last_match(void **state)
{
    static const char spec[] = "format: text\npattern: 'Assistant: ([^#]*)#'\n";
    expect_text(spec, "spin Assistant: one#\nmore\nAssistant: two\nlines #\nbye", "two\nlines",
                false);
    expect_text(spec, "nothing of the kind\n", "", true);
    expect_text("format: text\npattern: '<[a-z]+>'\n", "x <one> <two>", "<two>", false);
    expect_text("format: text\npattern: 'x*'\n", "abc", "", false); /* ends, although it is empty */
}

static void test_pointers_select_elements(void **state)
{
    static const char text[] = "[{\"role\": \"user\", \"n\": 1, \"content\": \"q\"},"
                               " {\"role\": \"assistant\", \"n\": 2, \"done\": true, \"content\":"
                               " [{\"type\": \"thinking\", \"text\": \"hm\"},"
                               "  {\"type\": \"text\", \"text\": \"first\"},"
                               "  {\"type\": \"text\", \"text\": \"second\"}]}]";
    static const struct {
        const char *pointer, *want;
    } cases[] = {
        { "/[last]/content/[type=text]/text", "first" },
        { "/[last]/content/[last type=text]/text", "second" },
        { "/[first]/content", "q" },
        { "/[role=assistant]/content/[first]/text", "hm" },
        { "/[last role=user]/content", "q" },
        { "/[n=2]/content/1/text", "first" },
        { "/[done=true]/content/[last]/text", "second" },
        { "/1/content/0/text", "hm" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *spec =
            arena_printf(arena, "format: json\nrules: [{text: '%s'}]\n", cases[i].pointer);
        expect_text(spec, text, cases[i].want, false);
    }
    static const char *const missing[] = { "/[role=tool]/content", "/0/[last]/x", "/[last",
                                           "/[last]x/content", "/x/[first]" };
    for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
        expect_text(arena_printf(arena, "format: json\nrules: [{text: '%s'}]\n", missing[i]), text,
                    "", true);
    }
}

static const char marks_spec[] = "format: text\n"
                                 "marks: {begin: 'Ready', end: 'Tokens: ', error: ['Error: ']}\n";

static void expect_marked(const char *text, const char *want, const char *error, bool seen)
{
    for (size_t step = 1; step < 40; step += 6) {
        struct agent_report r;
        struct mapping *m = map(marks_spec, str_of(text), step, &r);
        assert_true(str_eqc(r.text, want));
        assert_int_equal(r.failed, error[0] != '\0');
        assert_true(str_eqc(r.error, error));
        assert_int_equal(r.result_seen, seen);
        assert_false(r.text_truncated);
        mapping_free(m);
    }
}

/* The words of the model, without those of the harness around them. */
static void test_marks(void **state)
{
    expect_marked(
        "Hello v1\nReady: 1\n\nfirst\nTokens: 1\nlint\n\nlast\n Ready\nTokens: 2\nsaved\n",
        "lint\n\nlast\n Ready", "", true);
    expect_marked("Ready\nError: a\nagain\nError: b", "Error: a\nagain\nError: b", "Error: b",
                  false);
    expect_marked("Ready\nError: a\nanswer\nTokens: 1\n", "Error: a\nanswer", "", true);
    expect_marked("Ready\nanswer\nTokens: 1\nError: not saved\n", "answer", "Error: not saved",
                  true);
    expect_marked("no marks\n", "no marks", "", false);
    expect_marked("Ready\nReady\nTokens:", "Ready\nTokens:", "", false);
}

static void test_long_text_before_a_mark(void **state)
{
    struct agent_report r;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 20000; i++) {
        buf_addf(&text, "line %d\n", i);
    }
    buf_adds(&text, "Tokens: 1\nshort\nTokens: 2\n");
    struct mapping *m = map(marks_spec, buf_str(&text), 1000, &r);
    assert_true(str_eqc(r.text, "short") && !r.text_truncated);
    mapping_free(m);
    m = map(marks_spec, str_slice(buf_str(&text), 0, text.len - 16), 1000, &r);
    assert_true(r.text_truncated && r.result_seen && r.text.len <= 65536);
    mapping_free(m);
}

static void test_huge_document_is_not_kept(void **state)
{
    struct agent_report r;
    struct json *tree;
    assert_int_equal(yaml_parse(arena, STR("format: json\n"), "spec", NULL, &tree, NULL), 0);
    struct mapping *m = mapping_new(tree, (struct entry_sink) { NULL, NULL });
    char *block = xcalloc(1, 1 << 20);
    for (int i = 0; i < 20; i++) {
        mapping_feed(m, str_n(block, 1 << 20));
    }
    mapping_end(m, &r);
    assert_int_equal(r.overlong_lines, 1);
    mapping_free(m);
    free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ndjson_in_any_chunking, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_document, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_keeps_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_is_trimmed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pattern_selects_the_last_match, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pointers_select_elements, setup, teardown),
        cmocka_unit_test_setup_teardown(test_marks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_text_before_a_mark, setup, teardown),
        cmocka_unit_test_setup_teardown(test_huge_document_is_not_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
