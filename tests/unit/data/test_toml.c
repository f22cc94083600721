/* SPDX-License-Identifier: MIT
 *
 * TOML reading, writing and editing, by example. What is valid at all is the business of
 * test_toml_suite.c and toml_against_tomllib.py; here are the things these do not look at:
 * positions, messages, limits, the plain form, and the exact bytes of an edit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "data/toml.h"

static struct arena *arena;

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

static struct json *parsed(const char *text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (toml_parse(arena, str_of(text), NULL, &v, &e) < 0) {
        fail_msg("%s in\n%s", e.msg, text);
    }
    return v;
}

/* --- reading --- */

static void assert_refused(const char *text, const char *message)
{
    struct json *v = NULL;
    struct err e = { 0 };
    struct toml_opts opts = { .name = "c.toml" };
    assert_int_equal(toml_parse(arena, str_of(text), &opts, &v, &e), -ERR_PARSE);
    assert_null(v);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' lacks '%s'", e.msg, message);
    }
}

static void test_plain_values(void **state)
{
    struct json *v = parsed("s = \"x\"\ni = -7\nn = 0x1F\nf = 1.5\nb = true\n"
                            "d = 1979-05-27 07:32:00.5z\nt = 07:32:00\na = [1, [2]]\n");
    assert_string_equal(json_cstring(json_get(v, "s"), ""), "x");
    assert_int_equal(json_int(json_get(v, "i"), 0), -7);
    assert_int_equal(json_int(json_get(v, "n"), 0), 31);
    assert_true(json_is(json_get(v, "f"), JSON_REAL) && json_real(json_get(v, "f"), 0) == 1.5);
    assert_true(json_bool(json_get(v, "b"), false));
    assert_string_equal(json_cstring(json_get(v, "d"), ""), "1979-05-27T07:32:00.5Z");
    assert_string_equal(json_cstring(json_get(v, "t"), ""), "07:32:00");
    assert_int_equal(json_len(json_item(json_get(v, "a"), 1)), 1);
}

static void test_plain_has_no_infinity(void **state)
{
    assert_refused("a = 1\nb = -inf\n", "c.toml:2:5: '-inf'");
    assert_refused("a = [1e999]\n", "c.toml:1:6: '1e999'");
}

static void test_members_keep_their_order(void **state)
{
    struct json *v = parsed("z = 1\na = 2\n[m.n]\n[b]\n[m]\nk = 1\n");
    static const char *const want[] = { "z", "a", "m", "b" };
    assert_int_equal(json_len(v), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(v->object.members[i].key.ptr, want[i]);
    }
}

static void assert_at(const struct json *v, unsigned line, unsigned column)
{
    assert_non_null(v);
    assert_int_equal(v->line, line);
    assert_int_equal(v->column, column);
}

static void test_positions(void **state)
{
    struct json *v = parsed("\xef\xbb\xbfk = 1\n");
    assert_refused("\xef\xbb\xbf= 1\n", "c.toml:1:1: ");
    assert_refused("\n\xc3\xbc = 1\n", "c.toml:2:1: expected a key, found '\xc3\xbc'");
    assert_at(json_get(v, "k"), 1, 5);
    v = parsed("k = 1\n[t]\n  \"\xc3\xbc\".x = [ 1,\n 'a' ]\n");
    const struct json *t = json_get(v, "t");
    assert_int_equal(v->object.members[0].line, 1);
    assert_int_equal(v->object.members[0].column, 1);
    assert_at(t, 2, 2);
    assert_int_equal(t->object.members[0].column, 3);
    const struct json *x = json_get(json_get(t, "\xc3\xbc"), "x");
    assert_at(x, 3, 11); /* columns count characters, not bytes */
    assert_at(json_item(x, 1), 4, 2);
}

static void test_messages(void **state)
{
    assert_refused("a = 1\na = 2\n", "c.toml:2:1: 'a' is already a value, since line 1");
    assert_refused("[a]\n[b]\n[a]\n",
                   "c.toml:3:2: 'a' is already a table with a header, since line 1");
    assert_refused("[a]\nb.c = 1\n[a.b]\n",
                   "c.toml:3:4: 'b' is already a table made by dotted keys");
    assert_refused("[a.b.c]\n[a]\nb.x = 1\n[a.b]\n", "'b' is already a table made by dotted keys");
    assert_refused("a = {}\n[a.b]\n", "'a' is already an inline table");
    assert_refused("[[a]]\n[a]\n", "'a' is already an array of tables");
    assert_refused("a = []\n[[a]]\n", "'a' is already an array");
    assert_refused("model = gpt\n", "c.toml:1:9: 'gpt' is not a value (a string needs quotes)");
    assert_refused("a = 01\n", "leading zeros");
    assert_refused("a = 9223372036854775808\n", "64 bits");
    assert_refused("a = 1979-02-30\n", "is not a date");
    assert_refused("a = \"x\n", "c.toml:1:5: this string is not closed on its line");
    assert_refused("a = '''\n\n", "c.toml:1:5: this string is not closed");
    assert_refused("a = \"C:\\dir\"\n", "c.toml:1:8: unknown escape");
    assert_refused("a = [1,\n2\n", "c.toml:1:5: this '[' is not closed");
    assert_refused("a = { b = 1\n}\n", "an inline table stands on one line");
    assert_refused("a = 1 b = 2\n", "c.toml:1:7: expected the end of the line, found 'b'");
    assert_refused("a\n", "c.toml:1:2: expected '=' behind the key, found the end of the line");
    assert_refused("# \x01\n", "the byte 0x01 is not allowed in a comment");
    assert_refused("a = '\xff'\n", "c.toml:1:6: the byte 0xff is not valid UTF-8");
    assert_refused("\"two\\nlines\" = 1\n\"two\\nlines\" = 1\n", "'two?lines' is already");
}

static void assert_limit(struct str text, struct json_limits limits)
{
    struct json *v = NULL;
    struct err e = { 0 };
    struct toml_opts opts = { .limits = limits };
    assert_int_equal(toml_parse(arena, text, &opts, &v, &e), -ERR_LIMIT);
    assert_true(e.msg[0] != '\0');
}

/* Depth counts however it is spelled: whoever walks the tree later relies on it. */
static void test_limits(void **state)
{
    assert_limit(STR("a = 'xxxxxxxxxx'\n"), (struct json_limits) { .max_bytes = 10 });
    assert_limit(STR("a = 1\nb = 2\nc = 3\n"), (struct json_limits) { .max_values = 3 });
    assert_limit(STR("a = [[[[1]]]]\n"), (struct json_limits) { .max_depth = 3 });
    assert_limit(STR("a = {b = {c = {d = {}}}}\n"), (struct json_limits) { .max_depth = 3 });
    assert_limit(STR("a.b.c.d = 1\n"), (struct json_limits) { .max_depth = 3 });
    assert_limit(STR("[a.b.c.d]\n"), (struct json_limits) { .max_depth = 3 });
    assert_limit(STR("[[a]]\n[[a.b]]\n"), (struct json_limits) { .max_depth = 3 });
    assert_limit(STR("[a.b]\nc.d.e = 1\n"), (struct json_limits) { .max_depth = 3 });
}

/* A table of many keys, and many tables of one key, must not take quadratic time: with a linear
 * search this one test would run for minutes. */
static void test_many_keys(void **state)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    enum { COUNT = 40000 };
    for (int i = 0; i < COUNT; i++) {
        buf_addf(&text, "key%d = %d\n", i, i);
    }
    for (int i = 0; i < COUNT; i++) {
        buf_addf(&text, "[t%d]\nx = %d\n", i, i);
    }
    struct json *v = parsed(text.ptr);
    assert_int_equal(json_len(v), 2 * COUNT);
    assert_int_equal(json_int(v->object.members[COUNT - 1].value, 0), COUNT - 1);
}

/* --- writing --- */

static void assert_written(const char *json, const char *toml)
{
    struct json *v = NULL;
    struct err e = { 0 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_parse(arena, str_of(json), NULL, &v, NULL), 0);
    if (toml_write(v, NULL, &out, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    assert_string_equal(out.len == 0 ? "" : out.ptr, toml);
    assert_true(json_equal(v, parsed(out.len == 0 ? "" : out.ptr)));
}

static void test_write_layout(void **state)
{
    assert_written("{}", "");
    assert_written("{\"t\": {\"u\": {\"k\": 1}}, \"a\": 1, \"s\": \"x\"}",
                   "a = 1\ns = \"x\"\n\n[t.u]\nk = 1\n");
    assert_written("{\"t\": {}}", "[t]\n");
    assert_written("{\"p\": [{\"x\": 1, \"q\": {\"y\": 2}}, {}], \"e\": []}",
                   "e = []\n\n[[p]]\nx = 1\n\n[p.q]\ny = 2\n\n[[p]]\n");
    assert_written("{\"m\": [1, {\"a\": {\"b\": []}}]}", "m = [1, { a = { b = [] } }]\n");
    assert_written("{\"projects\": {\"/a.b\": {\"k\": true}}}", "[projects.\"/a.b\"]\nk = true\n");
    assert_written("{\"p\": [{\"q\": [{\"r\": 1}]}]}", "[[p]]\n\n[[p.q]]\nr = 1\n");
}

static void test_write_scalars(void **state)
{
    assert_written("{\"s\": \"a\\\"b\\\\c\\n\\u0001\\u007f\\u00fc\"}",
                   "s = \"a\\\"b\\\\c\\n\\u0001\\u007F\xc3\xbc\"\n");
    assert_written("{\"r\": [1.0, 0.1, 1e300, -0.5]}", "r = [1.0, 0.1, 1e+300, -0.5]\n");
    assert_written("{\"i\": -9223372036854775808}", "i = -9223372036854775808\n");
    assert_written("{\"\": 1, \"a b\": 2, \"a-b_1\": 3}", "\"\" = 1\n\"a b\" = 2\na-b_1 = 3\n");
}

static void assert_unwritable(const struct json *v, const char *message)
{
    struct err e = { 0 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "before");
    assert_int_equal(toml_write(v, NULL, &out, &e), -ERR_UNSUPPORTED);
    assert_string_equal(e.msg, message);
    assert_string_equal(out.ptr, "before");
}

static void test_write_refusals(void **state)
{
    struct json *v = NULL;
    assert_int_equal(
        json_parse(arena, STR("{\"a\": {\"b.c\": [1, {\"d\": null}]}}"), NULL, &v, NULL), 0);
    assert_unwritable(v, "'a.\"b.c\"[1].d' cannot be written as TOML: null has no TOML form");
    assert_unwritable(json_array(arena), "a TOML document must be an object, not array");
    v = json_object(arena);
    json_setc(arena, v, "k", json_string(arena, STR("\xff")));
    assert_unwritable(v, "'k' cannot be written as TOML: a string that is not UTF-8");
    v = json_object(arena);
    json_set(arena, v, STR("\xff"), json_null(arena));
    assert_unwritable(v, "'?' cannot be written as TOML: a key that is not UTF-8");
}

static void test_tagged_survives_writing(void **state)
{
    static const char text[] = "d = 1979-05-27T07:32:00Z\nt = 07:32:00\ni = inf\nn = -1\n";
    struct toml_opts tagged = { .tagged = true };
    struct json *v = NULL;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(toml_parse(arena, str_of(text), &tagged, &v, NULL), 0);
    assert_string_equal(json_cstring(json_get(json_get(v, "d"), "type"), ""), "datetime");
    assert_int_equal(toml_write(v, &tagged, &out, NULL), 0);
    assert_string_equal(out.ptr, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_values),
        cmocka_unit_test(test_plain_has_no_infinity),
        cmocka_unit_test(test_members_keep_their_order),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_write_layout),
        cmocka_unit_test(test_write_scalars),
        cmocka_unit_test(test_write_refusals),
        cmocka_unit_test(test_tagged_survives_writing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
