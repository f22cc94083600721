/* SPDX-License-Identifier: MIT
 *
 * Front matter of SKILL.md: every rule and every limit, with the line that breaks it.
 */
#include "skill/skill_card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"

static struct arena *arena;
static struct skill_card card;
static struct err e;

static int set_up(void **state)
{
    arena = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static int parse(struct str text)
{
    memset(&card, 0, sizeof card);
    return skill_card_parse(arena, text, "SKILL.md", &card, &e);
}

static void expect_bad(struct str text, const char *message)
{
    assert_int_equal(parse(text), -ERR_CONFIG);
    assert_int_equal(e.code, ERR_CONFIG);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' does not say '%s'", e.msg, message);
    }
}

/* Front matter of these lines, and a body. */
static struct str with(const char *lines)
{
    return str_of(arena_printf(arena, "---\n%s---\nbody\n", lines));
}

static struct str repeat(char c, size_t n)
{
    char *s = arena_alloc(arena, n + 1);
    memset(s, c, n);
    return str_n(s, n);
}

static void test_all_fields(void **state)
{
    assert_int_equal(parse(with("name: pdf-2-text\ndescription: Reads.\nlicense: MIT\n"
                                "compatibility: Linux\nallowed-tools: Read Bash\n"
                                "metadata:\n  author: me\n  version: \"1.0\"\nmodel: any\n")),
                     0);
    assert_string_equal(card.name, "pdf-2-text");
    assert_string_equal(card.description, "Reads.");
    assert_string_equal(card.license, "MIT");
    assert_string_equal(card.compatibility, "Linux");
    assert_string_equal(card.allowed_tools, "Read Bash");
    assert_string_equal(json_cstring(json_get(card.metadata, "version"), ""), "1.0");
    assert_string_equal(json_cstring(json_get(card.all, "model"), ""), "any");
    assert_true(str_eqc(card.body, "body\n"));
}

static void test_least(void **state)
{
    assert_int_equal(parse(STR("---\nname: a\ndescription: b\n---\n")), 0);
    assert_null(card.license);
    assert_null(card.metadata);
    assert_int_equal(card.body.len, 0);
    /* the first closing line counts */
    assert_int_equal(parse(STR("---\nname: a\ndescription: b\n---\nx\n---\n")), 0);
    assert_true(str_eqc(card.body, "x\n---\n"));
}

/* As editors of other systems write it. */
static void test_line_ends(void **state)
{
    assert_int_equal(parse(STR("\xef\xbb\xbf---\r\nname: a\r\ndescription: b c\r\n---\r\nx\r\n")),
                     0);
    assert_string_equal(card.name, "a");
    assert_string_equal(card.description, "b c");
    assert_true(str_eqc(card.body, "x\r\n"));
    assert_int_equal(parse(STR("---\nname: a\ndescription: b\n---")), 0);
    assert_int_equal(card.body.len, 0);
}

static void test_frame(void **state)
{
    expect_bad(STR(""), "SKILL.md:1:1: must begin");
    expect_bad(STR("# Title\n"), "SKILL.md:1:1: must begin");
    expect_bad(STR("\n---\nname: a\n---\n"), "must begin");
    expect_bad(STR("\xef\xbb---\nname: a\n---\n"), "not UTF-8");
    expect_bad(STR("---\rname: a\r---\r"), "must begin");
    expect_bad(STR("---- \nname: a\n---\n"), "must begin");
    expect_bad(STR("---\r\nname: a\r\n--- \r\n"), "not closed");
    expect_bad(STR("---\nname: a\ndescription: b\n"), "not closed");
    expect_bad(STR("---\n---\n"), "not closed");
    expect_bad(STR("---\n- a\n---\n"), "must be a map");
    expect_bad(STR("---\n\n---\n"), "must be a map");
    expect_bad(STR("---\nname: a\nname: b\n---\n"), "SKILL.md:3:");
    expect_bad(STR("---\nname: [a\n---\n"), "SKILL.md:");
    expect_bad(STR("---\nname: a\ndescription: b\n---\n\xff"), "not UTF-8 at byte 31");
}

static void test_names(void **state)
{
    static const char *const good[] = { "a", "0", "a-b", "a1-2b-c" };
    static const char *const bad[] = { "A",       "-a",  "a-",  "a--b", "a_b",
                                       "\"a b\"", "a.b", "a/b", "ä",    "\"\"" };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(
            parse(with(arena_printf(arena, "name: \"%s\"\ndescription: x\n", good[i]))), 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_bad(with(arena_printf(arena, "name: %s\ndescription: x\n", bad[i])),
                   "SKILL.md:2:7: 'name' must be 1 to 64");
    }
    assert_true(skill_name_ok(repeat('a', 64)));
    assert_false(skill_name_ok(repeat('a', 65)));
    expect_bad(with("description: x\n"), "no 'name'");
    expect_bad(with("name: 12\ndescription: x\n"), "SKILL.md:2:7: 'name' must be a string");
    expect_bad(with("name: null\ndescription: x\n"), "'name' must be a string");
}

static void test_lengths_count_characters(void **state)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "---\nname: a\ndescription: ");
    for (int i = 0; i < 1024; i++) {
        buf_adds(&text, "ä");
    }
    size_t full = text.len;
    buf_adds(&text, "\n---\n");
    assert_int_equal(parse(buf_str(&text)), 0);
    text.len = full;
    buf_adds(&text, "ä\n---\n");
    expect_bad(buf_str(&text), "SKILL.md:3:14: 'description' has more than 1024 characters");
    expect_bad(with("name: a\ndescription: \"\"\n"), "'description' must not be empty");
    expect_bad(with("name: a\n"), "no 'description'");

    const char *line =
        arena_printf(arena, "name: a\ndescription: b\ncompatibility: %s\n", repeat('x', 500).ptr);
    assert_int_equal(parse(with(line)), 0);
    line =
        arena_printf(arena, "name: a\ndescription: b\ncompatibility: %s\n", repeat('x', 501).ptr);
    expect_bad(with(line), "SKILL.md:4:16: 'compatibility' has more than 500");
}

static void test_types(void **state)
{
    expect_bad(with("name: a\ndescription: b\nlicense: 2\n"), "SKILL.md:4:10: 'license' must be");
    expect_bad(with("name: a\ndescription: b\nallowed-tools: [Read]\n"), "'allowed-tools' must be");
    expect_bad(with("name: a\ndescription: b\nmetadata: x\n"), "'metadata' must be a map");
    expect_bad(with("name: a\ndescription: b\nmetadata:\n  version: 1.0\n"),
               "SKILL.md:5:12: 'metadata.version' must be a string; put it in quotes");
}

static void test_size(void **state)
{
    CLEANUP(buf) struct buf text = BUF_INIT((size_t)32 << 20);
    buf_adds(&text, "---\nname: a\ndescription: b\nx: ");
    while (text.len < (10 << 20)) {
        buf_add(&text, repeat('y', 1 << 16));
    }
    buf_adds(&text, "\n---\n");
    expect_bad(buf_str(&text), "larger than 1048576 bytes");
    buf_reset(&text);
    buf_adds(&text, "---\nname: a\ndescription: b\nx: ");
    buf_add(&text, repeat('y', 100000));
    buf_adds(&text, "\n---\n");
    expect_bad(buf_str(&text), "front matter has more than 65536 bytes");
    /* a long body is fine */
    buf_reset(&text);
    buf_adds(&text, "---\nname: a\ndescription: b\n---\n");
    buf_add(&text, repeat('y', (1 << 20) - text.len));
    assert_int_equal(parse(buf_str(&text)), 0);
    buf_adds(&text, "y");
    expect_bad(buf_str(&text), "larger than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_least, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_line_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lengths_count_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_types, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_size, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
