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

/* --- editing --- */

static struct str trust_path[] = { STR("projects"), STR("/w"), STR("trust_level") };

struct edit_case {
    const char *name;
    const char *before;
    const char *after;
};

/* Sets projects."/w".trust_level = "trusted". */
static const struct edit_case settings[] = {
    { "empty file", "", "[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { "new table at the end", "# mine\nmodel = \"x\" # note\n\n[z]\nk = 1\n\n# end\n",
      "# mine\nmodel = \"x\" # note\n\n[z]\nk = 1\n\n# end\n"
      "\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { "no final newline", "a = 1", "a = 1\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"" },
    { "CRLF", "a = 1\r\n", "a = 1\r\n\r\n[projects.\"/w\"]\r\ntrust_level = \"trusted\"\r\n" },
    { "BOM only", "\xef\xbb\xbf", "\xef\xbb\xbf[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { "only a comment, no newline", "# c", "# c\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"" },
    { "own table, in literal quotes", "[projects.'/w'] # w\n  other = 1 # one\n# end\n[z]\n",
      "[projects.'/w'] # w\n  other = 1 # one\n  trust_level = \"trusted\"\n# end\n[z]\n" },
    { "own table, empty", "[ projects . \"/w\" ]\n\n[z]\n",
      "[ projects . \"/w\" ]\ntrust_level = \"trusted\"\n\n[z]\n" },
    { "own table, last, no final newline", "[projects.\"/w\"]",
      "[projects.\"/w\"]\ntrust_level = \"trusted\"" },
    { "own table by escapes", "[\"\\u0070rojects\".\"\\u002fw\"]\n",
      "[\"\\u0070rojects\".\"\\u002fw\"]\ntrust_level = \"trusted\"\n" },
    { "beside dotted keys", "[projects]\n'/w'.other = 1\nx = 2\n[z]\n",
      "[projects]\n'/w'.other = 1\nx = 2\n\"/w\".trust_level = \"trusted\"\n[z]\n" },
    { "beside dotted keys of the root", "projects.\"/v\".trust_level = \"trusted\"\n",
      "projects.\"/v\".trust_level = \"trusted\"\nprojects.\"/w\".trust_level = \"trusted\"\n" },
    { "a header leads on from dotted keys", "projects.x = 1\n[projects.\"/w\".sub]\n",
      "projects.x = 1\n[projects.\"/w\".sub]\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { "table of the parent", "[projects]\n[z]\n",
      "[projects]\n[z]\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { "only a sub-table", "[projects.\"/w\".sub]\nk = 1\n",
      "[projects.\"/w\".sub]\nk = 1\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { "inline, own table", "[projects]\n\"/w\" = { other = 1 } # c\n",
      "[projects]\n\"/w\" = { other = 1, trust_level = \"trusted\" } # c\n" },
    { "inline, whole", "projects = { '/v' = { k = 1 } }\n",
      "projects = { '/v' = { k = 1 }, \"/w\".trust_level = \"trusted\" }\n" },
    { "inline, empty", "projects = {}\n", "projects = {\"/w\".trust_level = \"trusted\"}\n" },
    { "inline, empty with space", "projects = { \"/w\" = {  } }\n",
      "projects = { \"/w\" = {trust_level = \"trusted\"  } }\n" },
    { "behind a multi-line value", "[projects.\"/w\"]\nk = [\n 1, # [x]\n]\n# end\n",
      "[projects.\"/w\"]\nk = [\n 1, # [x]\n]\ntrust_level = \"trusted\"\n# end\n" },
    { "brackets in a string", "k = \"\"\"\n[projects.\"/w\"]\n\"\"\"\n",
      "k = \"\"\"\n[projects.\"/w\"]\n\"\"\"\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
};

static void set_trusted(struct toml_edit *ed, const char *text, struct buf *out)
{
    struct err e = { 0 };
    *ed = (struct toml_edit) { .text = str_of(text), .path = trust_path, .path_len = 3 };
    if (toml_edit_set(ed, json_string(arena, STR("trusted")), out, &e) < 0) {
        fail_msg("%s in\n%s", e.msg, text);
    }
}

static void test_set_and_undo(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        const struct edit_case *c = &settings[i];
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf back = BUF_INIT(BUF_TEXT);
        struct toml_edit ed;
        set_trusted(&ed, c->before, &out);
        if (!str_eqc(buf_str(&out), c->after)) {
            fail_msg("%s: got\n%s\ninstead of\n%s", c->name, out.ptr, c->after);
        }
        ed.text = buf_str(&out);
        ed.drop_table = ed.made_table;
        assert_int_equal(toml_edit_remove(&ed, &back, NULL), 0);
        if (!str_eqc(buf_str(&back), c->before)) {
            fail_msg("%s: undone as\n%s\ninstead of\n%s", c->name, back.ptr, c->before);
        }
    }
}

/* Runs in two directories come and go in any order. */
static void test_two_tables_in_any_order(void **state)
{
    static const char *const texts[] = { "", "a = 1\n", "a = 1", "projects = {}\n",
                                         "[x]\r\ny = 1\r\n" };
    struct str other_path[] = { STR("projects"), STR("/v"), STR("trust_level") };
    for (size_t i = 0; i < 2 * ARRAY_LEN(texts); i++) {
        CLEANUP(buf) struct buf one = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf two = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf three = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf four = BUF_INIT(BUF_TEXT);
        struct toml_edit first;
        set_trusted(&first, texts[i / 2], &one);
        struct toml_edit second = first;
        second.text = buf_str(&one);
        second.path = other_path;
        assert_int_equal(toml_edit_set(&second, json_integer(arena, 1), &two, NULL), 0);
        first.drop_table = first.made_table;
        second.drop_table = second.made_table;
        struct toml_edit *a = i % 2 == 0 ? &first : &second;
        struct toml_edit *b = i % 2 == 0 ? &second : &first;
        a->text = buf_str(&two);
        assert_int_equal(toml_edit_remove(a, &three, NULL), 0);
        b->text = buf_str(&three);
        assert_int_equal(toml_edit_remove(b, &four, NULL), 0);
        assert_true(str_eqc(buf_str(&four), texts[i / 2]));
    }
}

static void test_replace_keeps_the_rest(void **state)
{
    static const char before[] =
        "[projects.\"/w\"]\n  trust_level   =  'untrusted'  # why\nk = 1\n";
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct toml_edit ed;
    set_trusted(&ed, before, &out);
    assert_string_equal(out.ptr,
                        "[projects.\"/w\"]\n  trust_level   =  \"trusted\"  # why\nk = 1\n");
    assert_false(ed.made_table);
    buf_reset(&out);
    set_trusted(&ed, "projects.'/w' = { trust_level = 'trusted' } # equal, so untouched\n", &out);
    assert_string_equal(out.ptr,
                        "projects.'/w' = { trust_level = 'trusted' } # equal, so untouched\n");
}

/* Removes projects."/w".trust_level with drop_table. */
static const struct edit_case removals[] = {
    { "absent", "a = 1\n", "a = 1\n" },
    { "other keys stay", "[projects.\"/w\"]\ntrust_level = \"x\" # c\nother = 1\n",
      "[projects.\"/w\"]\nother = 1\n" },
    { "comments stay", "a = 1\n\n[projects.\"/w\"]\n# mine\ntrust_level = \"x\"\n# end\n",
      "a = 1\n# mine\n# end\n" },
    { "a comment on the header keeps the header", "[projects.\"/w\"] # mine\ntrust_level = 1\n",
      "[projects.\"/w\"] # mine\n" },
    { "a multi-line value", "[projects.\"/w\"]\ntrust_level = [\n1,\n]\n[z]\n", "[z]\n" },
    { "the first of an inline table", "projects.\"/w\" = { trust_level = 1, b = 2 }\n",
      "projects.\"/w\" = { b = 2 }\n" },
    { "in the middle of an inline table", "projects.\"/w\" = { a = 1 , trust_level = 1 , b = 2 }\n",
      "projects.\"/w\" = { a = 1 , b = 2 }\n" },
    { "the only one of an inline table", "projects.\"/w\" = { trust_level = 1 }\n",
      "projects.\"/w\" = {  }\n" },
    { "a comment between, no final newline", "[projects.\"/w\"]\n# c\ntrust_level = 1", "# c" },
};

static void test_removals(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(removals); i++) {
        const struct edit_case *c = &removals[i];
        struct err e = { 0 };
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct toml_edit ed = {
            .text = str_of(c->before), .path = trust_path, .path_len = 3, .drop_table = true
        };
        if (toml_edit_remove(&ed, &out, &e) < 0) {
            fail_msg("%s: %s", c->name, e.msg);
        }
        if (!str_eqc(buf_str(&out), c->after)) {
            fail_msg("%s: got\n%s\ninstead of\n%s", c->name, out.ptr, c->after);
        }
    }
}

static void test_edit_refusals(void **state)
{
    static const struct edit_case cases[] = {
        { "an array on the way", "x = 1\n[[projects]]\n",
          "c.toml:2:3: cannot edit: the path leads through an array" },
        { "a literal array on the way", "projects = [{}]\n",
          "c.toml:1:12: cannot edit: the path leads" },
        { "a scalar on the way", "projects.\"/w\" = 1\n",
          "c.toml:1:17: cannot edit: the path leads through a value that is not a table" },
        { "a table in its place", "[projects.\"/w\".trust_level]\n", "names a table" },
        { "not TOML", "projects = \n", "c.toml:1:12: expected a value" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct toml_edit ed = {
            .name = "c.toml", .text = str_of(cases[i].before), .path = trust_path, .path_len = 3
        };
        assert_true(toml_edit_set(&ed, json_boolean(arena, true), &out, &e) < 0);
        if (strstr(e.msg, cases[i].after) == NULL || e.code == ERR_BUG) {
            fail_msg("%s: '%s'", cases[i].name, e.msg);
        }
        assert_true(toml_edit_remove(&ed, &out, NULL) < 0);
        assert_int_equal(out.len, 0);
    }
}

/* Directories may be called anything. */
static void test_odd_keys(void **state)
{
    static const char *const names[] = { "/a b",      "/a\"b", "/a\\b", "/a'b", "/a.b",     "/a\nb",
                                         "/\xc3\xbc", "",      "/a]b",  "/a#b", "/\x01\x7f" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf back = BUF_INIT(BUF_TEXT);
        struct str path[] = { STR("projects"), str_of(names[i]), STR("trust_level") };
        struct toml_edit ed = { .text = STR("a = 1\n"), .path = path, .path_len = 3 };
        assert_int_equal(toml_edit_set(&ed, json_boolean(arena, true), &out, NULL), 0);
        const struct json *projects = json_get(parsed(out.ptr), "projects");
        assert_true(json_bool(json_get(json_get(projects, names[i]), "trust_level"), false));
        ed.text = buf_str(&out);
        ed.drop_table = true;
        assert_int_equal(toml_edit_remove(&ed, &back, NULL), 0);
        assert_string_equal(back.ptr, "a = 1\n");
    }
    struct str path[] = { STR("projects"), STR("/\xff") };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct toml_edit ed = { .text = STR("a = 1\n"), .path = path, .path_len = 2 };
    assert_int_equal(toml_edit_set(&ed, json_boolean(arena, true), &out, NULL), -ERR_UNSUPPORTED);
}

static void test_root_keys(void **state)
{
    static const struct edit_case cases[] = {
        { "beside other keys", "a = 1 # a\n\n[t]\nb = 1\n", "a = 1 # a\nk = true\n\n[t]\nb = 1\n" },
        { "above the first header", "# file\n\n# about t\n[t]\n",
          "# file\n\nk = true\n# about t\n[t]\n" },
        { "only comments", "# file\n", "# file\nk = true\n" },
        { "empty", "", "k = true\n" },
        { "no final newline", "a = 1", "a = 1\nk = true" },
    };
    struct str path[] = { STR("k") };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf back = BUF_INIT(BUF_TEXT);
        struct toml_edit ed = { .text = str_of(cases[i].before), .path = path, .path_len = 1 };
        assert_int_equal(toml_edit_set(&ed, json_boolean(arena, true), &out, NULL), 0);
        assert_string_equal(out.ptr, cases[i].after);
        ed.text = buf_str(&out);
        assert_int_equal(toml_edit_remove(&ed, &back, NULL), 0);
        assert_true(str_eqc(buf_str(&back), cases[i].before));
    }
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
        cmocka_unit_test(test_set_and_undo),
        cmocka_unit_test(test_two_tables_in_any_order),
        cmocka_unit_test(test_replace_keeps_the_rest),
        cmocka_unit_test(test_removals),
        cmocka_unit_test(test_edit_refusals),
        cmocka_unit_test(test_odd_keys),
        cmocka_unit_test(test_root_keys),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
