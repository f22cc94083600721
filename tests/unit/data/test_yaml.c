/* SPDX-License-Identifier: MIT
 *
 * YAML for people: the 1.2 core schema, positions on everything, and messages that say what to
 * mend.
 */
#include "data/yaml.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static void assert_reads(const char *text, const char *want)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct json *v = NULL;
    struct err e = { 0 };
    if (yaml_parse(a, str_of(text), "t.yaml", NULL, &v, &e) != 0) {
        fail_msg("%s: %s", text, e.msg);
    }
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    if (strcmp(b.ptr, want) != 0) {
        fail_msg("%s: %s instead of %s", text, b.ptr, want);
    }
}

static void assert_refused(struct str text, const struct json_limits *limits, enum err_code code,
                           const char *want)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    struct err e = { 0 };
    int r = yaml_parse(a, text, "t.yaml", limits, &v, &e);
    if (r != -(int)code || !str_starts(str_of(e.msg), str_of(want))) {
        fail_msg("%.*s: %d '%s' instead of '%s'", STR_ARG(text), r, e.msg, want);
    }
    assert_null(v);
    assert_int_equal(yaml_parse(a, text, "t.yaml", limits, &v, NULL), -(int)code);
}

static void refuses(const char *text, const char *want)
{
    assert_refused(str_of(text), NULL, ERR_PARSE, want);
}

static void test_core_schema(void **state)
{
    assert_reads("[null, Null, NULL, ~, ]", "[null,null,null,null]");
    assert_reads("[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]");
    assert_reads("[0, -1, +12, 007, 0o17, 0x1F, 0xff]", "[0,-1,12,7,15,31,255]");
    assert_reads("[1.5, -.5, 1., 1e3, 1E-2, +1.0]", "[1.5,-0.5,1.0,1000.0,0.01,1.0]");
    assert_reads("[9223372036854775807, -9223372036854775808, 0x7fffffffffffffff]",
                 "[9223372036854775807,-9223372036854775808,9223372036854775807]");
    assert_reads("[9223372036854775808]", "[9223372036854776000.0]");
    /* What YAML 1.1 would have turned into something else. */
    assert_reads("[yes, No, on, off, y, n, 1_000, 1:30, 0b11, 0777, 2001-12-14, =]",
                 "[\"yes\",\"No\",\"on\",\"off\",\"y\",\"n\",\"1_000\",\"1:30\",\"0b11\",777,"
                 "\"2001-12-14\",\"=\"]");
    assert_reads("[tRUE, nULL, 0xg, 0o8, 0x, 0o, -0x1, 1e, .e1, ., +, -, 1.2.3, 12e03x, nan, inf]",
                 "[\"tRUE\",\"nULL\",\"0xg\",\"0o8\",\"0x\",\"0o\",\"-0x1\",\"1e\",\".e1\",\".\","
                 "\"+\",\"-\",\"1.2.3\",\"12e03x\",\"nan\",\"inf\"]");
}

static void test_quoted_scalars_are_strings(void **state)
{
    assert_reads("['1', \"true\", 'null', \"~\", '', \"\"]",
                 "[\"1\",\"true\",\"null\",\"~\",\"\",\"\"]");
    assert_reads("- |\n  1\n- >-\n  true\n", "[\"1\\n\",\"true\"]");
    assert_reads("'a''''b'", "\"a''b\"");
    assert_reads("\"a\r\n  b\"", "\"a b\"");
    assert_reads("\"\\x41\\u00e9\\U0001F600\\0\\e\\N\\/\\\n  x\"",
                 "\"Aé😀\\u0000\\u001b\xc2\x85/x\"");
}

static void test_block_scalars(void **state)
{
    assert_reads("a: |\n  x\n   y\n\n  z\n\nb: 1\n", "{\"a\":\"x\\n y\\n\\nz\\n\",\"b\":1}");
    assert_reads("a: |-\n  x\n", "{\"a\":\"x\"}");
    assert_reads("a: |+\n  x\n\n", "{\"a\":\"x\\n\\n\"}");
    assert_reads("a: >\n  one\n  two\n\n  three\n\n    - item\n",
                 "{\"a\":\"one two\\nthree\\n\\n  - item\\n\"}");
    assert_reads("a: |2\n   x\n", "{\"a\":\" x\\n\"}");
}

static void test_containers(void **state)
{
    assert_reads("", "null");
    assert_reads("# nothing\n", "null");
    assert_reads("---\n...\n", "null");
    assert_reads("\xef\xbb\xbf"
                 "a: 1",
                 "{\"a\":1}");
    assert_reads("%YAML 1.2\n---\na: 1\n", "{\"a\":1}");
    assert_reads("b: 1\na:\n- x\n- y: z\n  w:\n- - 1\n  - 2\n",
                 "{\"b\":1,\"a\":[\"x\",{\"y\":\"z\",\"w\":null},[1,2]]}");
    assert_reads("{\"a\":1,\"b\":[true,{\"c\":null}]}", "{\"a\":1,\"b\":[true,{\"c\":null}]}");
    assert_reads("a: {\n  b: [\n    1,\n    2,\n  ],\n}\nc: 3\n", "{\"a\":{\"b\":[1,2]},\"c\":3}");
    assert_reads("1: a\ntrue: b\n~: c\n\"\": d\n'<<': e\n? f\n: g\n",
                 "{\"1\":\"a\",\"true\":\"b\",\"~\":\"c\",\"\":\"d\",\"<<\":\"e\",\"f\":\"g\"}");
    assert_reads("url: http://x.y/z?a=b#c # comment\n", "{\"url\":\"http://x.y/z?a=b#c\"}");
}

static void test_tags(void **state)
{
    assert_reads("[!!str 5, !!int \"5\", !!float 5, !!null '', !!bool \"true\", ! 5, !!str ]",
                 "[\"5\",5,5.0,null,true,\"5\",\"\"]");
    assert_reads("!!map {a: !!seq [1]}", "{\"a\":[1]}");
    assert_reads("!!str a: 1", "{\"a\":1}");
    assert_reads("%TAG !y! tag:yaml.org,2002:\n---\n!y!str 5", "\"5\"");
    refuses("a: !foo 1", "t.yaml:1:4: unknown tag '!foo'");
    refuses("!!binary aGk=", "t.yaml:1:1: unknown tag 'tag:yaml.org,2002:binary'");
    refuses("!<tag:x,2000:y> 1", "t.yaml:1:1: unknown tag 'tag:x,2000:y'");
    refuses("!!int x", "t.yaml:1:1: 'x' is not an integer");
    refuses("!!float .nan", "t.yaml:1:1: '.nan' is not a finite number");
    refuses("!!bool 1", "t.yaml:1:1: '1' is not true or false");
    refuses("!!null x", "t.yaml:1:1: 'x' is not a null");
    refuses("!!seq {}", "t.yaml:1:1: a mapping cannot have the tag '!!seq'");
    refuses("!!str []", "t.yaml:1:1: a sequence cannot have the tag '!!str'");
    refuses("!!map x", "t.yaml:1:1: 'x' is a scalar");
    refuses("!!int 1: a", "t.yaml:1:1: a key is text");
    refuses("!e!x 1", "t.yaml:1:1: unknown tag");
}

static void test_numbers_that_json_cannot_hold(void **state)
{
    refuses("a: .nan", "t.yaml:1:4: '.nan' is not allowed");
    refuses("- 1\n- -.INF", "t.yaml:2:3: '-.INF' is not allowed");
    refuses("1e999", "t.yaml:1:1: '1e999' is too large");
    refuses("0x8000000000000000", "t.yaml:1:1: '0x8000000000000000' is too large");
    refuses("0xfffffffffffffffff", "t.yaml:1:1: '0xfffffffffffffffff' is too large");
    refuses("0o2000000000000000000000", "t.yaml:1:1: ");
}

static void test_aliases(void **state)
{
    assert_reads("a: &x {k: [1]}\nb: *x\nc: [*x]\n",
                 "{\"a\":{\"k\":[1]},\"b\":{\"k\":[1]},\"c\":[{\"k\":[1]}]}");
    assert_reads("[&a 1, *a, &a 2, *a]", "[1,1,2,2]"); /* the latest anchor counts */
    assert_reads("&k key: *k", "{\"key\":\"key\"}");
    assert_reads("&a [&a 1, *a]", "[1,1]"); /* the inner one took the name */
    refuses("a: *x", "t.yaml:1:4: the alias '*x' has no anchor '&x' before it");
    refuses("[*x, &x 1]", "t.yaml:1:2: the alias '*x' has no anchor");
    refuses("&a [1, *a]", "t.yaml:1:8: the alias '*a' stands inside the value that it names");
    refuses("a: &x\n  b: {c: *x}", "t.yaml:2:10: the alias '*x' stands inside");
    refuses("a: &x 1\n*x : 2", "t.yaml:2:1: the alias '*x' cannot be a key");
}

static void test_an_alias_is_a_copy(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    assert_int_equal(yaml_parse(a, STR("a: &x {k: 1}\nb: *x\n"), "t", NULL, &v, NULL), 0);
    json_setc(a, json_get(v, "a"), "k", json_integer(a, 2));
    assert_int_equal(json_int(json_get(json_get(v, "b"), "k"), 0), 1);
    assert_int_equal(json_get(v, "b")->line, 2);
    assert_int_equal(json_get(v, "b")->column, 4);
}

static void test_laughs_are_counted(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    buf_adds(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 20; i++) {
        buf_addf(&b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++) {
            buf_addf(&b, "%s*a%d", k == 0 ? "" : ",", i - 1);
        }
        buf_adds(&b, "]\n");
    }
    struct json_limits l = { .max_values = 100000 };
    assert_refused(buf_str(&b), &l, ERR_LIMIT, "t.yaml:5:");
    l.max_values = 5;
    assert_refused(STR("[&a [1, 2], *a]"), &l, ERR_LIMIT, "t.yaml:1:13: too many values");
    l.max_values = 7;
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    assert_int_equal(yaml_parse(a, STR("[&a [1, 2], *a]"), "t", &l, &v, NULL), 0);
}

static void test_depth(void **state)
{
    struct json_limits l = { .max_depth = 3 };
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    assert_int_equal(yaml_parse(a, STR("[[[1]]]"), "t", &l, &v, NULL), 0);
    assert_refused(STR("[[[[]]]]"), &l, ERR_LIMIT, "t.yaml:1:4: nested too deep");
    assert_refused(STR("- &a [[]]\n- [*a]"), &l, ERR_LIMIT, "t.yaml:2:4: nested too deep");
    char open[5000];
    memset(open, '[', sizeof open);
    assert_refused(str_n(open, sizeof open), NULL, ERR_LIMIT, "t.yaml:1:257: nested too deep");
    for (size_t i = 0; i < sizeof open; i += 2) {
        memcpy(open + i, "- ", 2);
    }
    assert_refused(str_n(open, sizeof open), NULL, ERR_LIMIT, "t.yaml:1:513: nested too deep");
}

static void test_other_limits(void **state)
{
    struct json_limits l = { .max_bytes = 4 };
    assert_refused(STR("12345"), &l, ERR_LIMIT, "t.yaml: 5 bytes of YAML; the limit is 4");
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 10001; i++) {
        buf_addf(&b, "- &a%d x\n", i);
    }
    assert_refused(buf_str(&b), NULL, ERR_LIMIT, "t.yaml:10001:3: more than 10000 anchors");
    buf_reset(&b);
    for (int i = 0; i < 6000; i++) {
        buf_addf(&b, "%%TAG !a%d! tag:x\n", i);
    }
    assert_refused(buf_str(&b), NULL, ERR_LIMIT, "t.yaml:5001:1: more than 5000 lines begin with");
}

static void test_mistakes_people_make(void **state)
{
    refuses("a:\n\tb: 1\n", "t.yaml:2:1: a tab is used for indentation; use spaces");
    refuses("a: 1\n\tb: 2\n", "t.yaml:2:1: a tab is used for indentation");
    refuses("a: \"x\nb: 1\n", "t.yaml:1:4: unclosed quote");
    refuses("a: 'x\n", "t.yaml:1:4: unclosed quote");
    refuses("a: 'it's'\n", "t.yaml:1:8: expected 'key: value'");
    refuses("a: [1, 2\nb: 3\n", "t.yaml:2:2: missing ',' or ']' (opened on line 1)");
    refuses("a: {b: 1\n", "t.yaml:2:1: missing ',' or '}' (opened on line 1)");
    refuses("a: b: c\n", "t.yaml:1:5: ':' is not allowed here");
    refuses("a: 1\n  b: 2\n", "t.yaml:2:4: ':' is not allowed here; is a line indented wrongly");
    refuses("a:\n    b: 1\n  c: 2\n", "t.yaml:3:3: expected 'key: value' here");
    refuses("a: 1\nb\n", "t.yaml:2:1: missing ':' after the key");
    refuses("- a\nb: 1\n", "t.yaml:2:1: expected '- ' and another item");
    refuses("a: @x", "t.yaml:1:4: a value cannot begin with '@'; put it in quotes");
    refuses("é: `x`", "t.yaml:1:4: a value cannot begin with '`'");
    refuses("p: {{ x }}", "t.yaml:1:5: a key must be text; put a value that begins with '{'");
    refuses("? [a]\n: 1", "t.yaml:1:3: a key must be text");
    refuses("x: {a: 1, b: 2,\n  a: 3}", "t.yaml:2:3: duplicate key 'a' (first on line 1)");
    refuses("\"a\": 1\na: 2", "t.yaml:2:1: duplicate key 'a'");
    refuses("<<: {a: 1}", "t.yaml:1:1: merge keys ('<<') are not supported");
    refuses("a: 1\n---\nb: 2", "t.yaml:2:1: a second document begins here");
    refuses("a\n...\nb", "t.yaml:3:1: ");
    refuses("%YAML 1.1\n---\na: yes", "t.yaml:1:1: %YAML 1.1 is not supported, only 1.2");
    refuses("%YAML 2.0\n---\na", "t.yaml:1:1: only %YAML 1.2");
    refuses("a: \"\\q\"", "t.yaml:1:5: found unknown escape character");
    refuses("? a\n? \n", "t.yaml:2:"); /* an empty key */
}

static void test_bytes_that_are_not_text(void **state)
{
    assert_refused(STR("a: \0"), NULL, ERR_PARSE, "t.yaml:1:4: the invisible character U+0000");
    refuses("a\nb \x1b[0m", "t.yaml:2:3: the invisible character U+001B");
    refuses("a: é\xff", "t.yaml:1:5: not valid UTF-8");
    refuses("a: \xc3", "t.yaml:1:4: not valid UTF-8");
    /* UTF-16 */
    refuses("\xff\xfe"
            "a",
            "t.yaml:1:1: not valid UTF-8");
    refuses("a: \xe2\x80\xa8", "t.yaml:1:4: the invisible character U+2028");
    refuses("a: \xc2\x85", "t.yaml:1:4: the invisible character U+0085");
    refuses("a: \xef\xbb\xbf", "t.yaml:1:4: ");
    refuses("a: \xef\xbf\xbf", "t.yaml:1:4: ");
}

static void assert_at(const struct json *v, uint32_t line, uint32_t column)
{
    assert_non_null(v);
    assert_int_equal(v->line, line);
    assert_int_equal(v->column, column);
}

static void test_positions(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    struct str text = STR("# c\n"
                          "é: x\n"
                          "list:\n"
                          "  - 'q'\n"
                          "  - {k: \"v\", e: }\n"
                          "empty:\n"
                          "text: |\n"
                          "  hello\n");
    assert_int_equal(yaml_parse(a, text, "t", NULL, &v, NULL), 0);
    assert_at(v, 2, 1);
    assert_at(json_get(v, "é"), 2, 4);
    assert_at(json_get(v, "list"), 4, 3);
    assert_at(json_pointer(v, STR("/list/0")), 4, 5);
    assert_at(json_pointer(v, STR("/list/1")), 5, 5);
    assert_at(json_pointer(v, STR("/list/1/k")), 5, 9);
    assert_at(json_get(v, "text"), 7, 7);
    assert_int_equal(json_get(v, "empty")->line, 6);
    assert_int_equal(v->object.members[1].line, 3);
    assert_int_equal(v->object.members[1].column, 1);
    assert_int_equal(json_pointer(v, STR("/list/1"))->object.members[0].column, 6);
}

static void write_file(const char *path, const char *text)
{
    assert_int_equal(file_write_atomic(AT_FDCWD, path, str_of(text), 0600, NULL), 0);
}

static void test_load_by_suffix(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct err e = { 0 };
    struct json *v = NULL;
    char dir[] = "/tmp/cinch-test-yaml-XXXXXX";
    char path[64];
    char want[128];
    assert_non_null(mkdtemp(dir));

    (void)snprintf(path, sizeof path, "%s/c.json", dir);
    assert_int_equal(yaml_load(a, path, NULL, &v, &e), -(int)ERR_INPUT);
    write_file(path, "{\n  \"a\": \"\\ud83d\\ude00\",\t\"b\": 2\n}");
    assert_int_equal(yaml_load(a, path, NULL, &v, &e), 0);
    assert_string_equal(json_cstring(json_get(v, "a"), ""), "😀");
    assert_at(json_get(v, "b"), 2, 29);
    write_file(path, "{\n  a: 1\n}"); /* YAML, but this is a .json file */
    assert_int_equal(yaml_load(a, path, NULL, &v, &e), -(int)ERR_PARSE);
    (void)snprintf(want, sizeof want, "%s:2:3: ", path);
    assert_true(str_starts(str_of(e.msg), str_of(want)));
    write_file(path, "{\"a\":1,\n\"a\":2}");
    assert_int_equal(yaml_load(a, path, NULL, &v, &e), -(int)ERR_PARSE);
    (void)snprintf(want, sizeof want, "%s:2:1: duplicate key 'a' (first on line 1)", path);
    assert_string_equal(e.msg, want);
    struct json_limits l = { .max_depth = 1 };
    write_file(path, "[\n[]]");
    assert_int_equal(yaml_load(a, path, &l, &v, &e), -(int)ERR_LIMIT);
    (void)snprintf(want, sizeof want, "%s:2:1: nested too deep", path);
    assert_string_equal(e.msg, want);
    l = (struct json_limits) { .max_bytes = 3 };
    assert_int_equal(yaml_load(a, path, &l, &v, &e), -(int)ERR_LIMIT);

    (void)snprintf(path, sizeof path, "%s/c.yml", dir);
    write_file(path, "a: 1");
    assert_int_equal(yaml_load(a, path, NULL, &v, &e), 0);
    assert_int_equal(json_int(json_get(v, "a"), 0), 1);
    assert_int_equal(file_remove_tree(AT_FDCWD, dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_schema),
        cmocka_unit_test(test_quoted_scalars_are_strings),
        cmocka_unit_test(test_block_scalars),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_numbers_that_json_cannot_hold),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_an_alias_is_a_copy),
        cmocka_unit_test(test_laughs_are_counted),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_other_limits),
        cmocka_unit_test(test_mistakes_people_make),
        cmocka_unit_test(test_bytes_that_are_not_text),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_load_by_suffix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
