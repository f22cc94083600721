/* SPDX-License-Identifier: MIT
 *
 * The value tree: getters that forgive, building, pointers, equality, copies and the merge of
 * configuration layers.
 */
#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

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

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(arena, str_of(text), NULL, &v, &e) != 0) {
        fail_msg("%s: %s", text, e.msg);
    }
    return v;
}

static void assert_json(const struct json *v, const char *want)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    assert_string_equal(b.ptr, want);
}

static void test_getters_accept_nothing_and_the_wrong_type(void **state)
{
    const struct json *const wrong[] = { NULL, json_null(arena), json_array(arena),
                                         json_object(arena) };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_true(json_bool(wrong[i], true));
        assert_int_equal(json_int(wrong[i], 42), 42);
        assert_true(json_real(wrong[i], 1.5) == 1.5);
        assert_true(str_eqc(json_str(wrong[i], STR("x")), "x"));
        assert_string_equal(json_cstring(wrong[i], "x"), "x");
        assert_null(json_cstring(wrong[i], NULL));
        assert_null(json_get(wrong[i], "a"));
        assert_null(json_item(wrong[i], 0));
        assert_int_equal(json_len(wrong[i]), 0);
        assert_null(json_pointer(wrong[i], STR("/a")));
    }
    assert_false(json_is(NULL, JSON_NULL));
}

static void test_numbers_cross_over_where_exact(void **state)
{
    assert_int_equal(json_int(json_number(arena, 3.0), 0), 3);
    assert_int_equal(json_int(json_number(arena, 3.5), 7), 7);
    assert_int_equal(json_int(json_number(arena, 1e300), 7), 7);
    assert_int_equal(json_int(json_number(arena, 9223372036854775808.0), 7), 7);
    assert_int_equal(json_int(json_number(arena, -9223372036854775808.0), 7), INT64_MIN);
    assert_int_equal(json_int(json_number(arena, NAN), 7), 7);
    assert_true(json_real(json_integer(arena, 5), 0) == 5.0);
    assert_int_equal(json_int(json_cstr(arena, "5"), 7), 7); /* text is not a number */
}

static void test_strings_with_nul(void **state)
{
    struct json *v = json_string(arena, STR("a\0b"));
    assert_int_equal(json_len(v), 3);
    assert_true(str_eq(json_str(v, STR("")), STR("a\0b")));
    assert_string_equal(json_cstring(v, "refused"), "refused");
    assert_string_equal(json_cstring(json_cstr(arena, "abc"), ""), "abc");
    assert_true(json_is(json_cstr(arena, NULL), JSON_NULL));
}

static void test_building_keeps_order_and_replaces(void **state)
{
    struct json *o = json_object(arena);
    for (int i = 0; i < 50; i++) {
        char key[8] = { (char)('a' + i % 26), (char)('0' + i / 26), 0 };
        json_setc(arena, o, key, json_integer(arena, i));
    }
    assert_int_equal(json_len(o), 50);
    json_set(arena, o, STR("b0"), json_cstr(arena, "new"));
    assert_int_equal(json_len(o), 50);
    assert_true(str_eqc(o->object.members[1].key, "b0")); /* at its old place */
    assert_string_equal(json_cstring(json_get(o, "b0"), ""), "new");
    assert_true(json_remove(o, STR("a0")));
    assert_false(json_remove(o, STR("a0")));
    assert_null(json_get(o, "a0"));
    assert_true(str_eqc(o->object.members[0].key, "b0"));
    assert_int_equal(json_len(o), 49);

    struct json *a = json_array(arena);
    for (int i = 0; i < 100; i++) {
        json_push(arena, a, json_integer(arena, i));
    }
    json_push(arena, a, NULL);
    assert_int_equal(json_int(json_item(a, 99), -1), 99);
    assert_true(json_is(json_item(a, 100), JSON_NULL));
    assert_null(json_item(a, 101));
}

static void test_the_key_is_copied(void **state)
{
    char key[] = "k";
    struct json *o = json_object(arena);
    json_set(arena, o, str_of(key), NULL);
    key[0] = 'x';
    assert_json(o, "{\"k\":null}");
    json_set(arena, o, STR("a\0b"), json_boolean(arena, true));
    assert_non_null(json_find(o, STR("a\0b")));
    assert_null(json_get(o, "a"));
}

/* The examples of RFC 6901, chapter 5. */
static void test_pointer(void **state)
{
    struct json *v = parse("{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,"
                           "\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8}");
    assert_ptr_equal(json_pointer(v, STR("")), v);
    assert_json(json_pointer(v, STR("/foo")), "[\"bar\",\"baz\"]");
    assert_json(json_pointer(v, STR("/foo/0")), "\"bar\"");
    static const char *const numbered[] = { "/",     "/a~1b", "/c%d", "/e^f", "/g|h",
                                            "/i\\j", "/k\"l", "/ ",   "/m~0n" };
    for (size_t i = 0; i < ARRAY_LEN(numbered); i++) {
        assert_int_equal(json_int(json_pointer(v, str_of(numbered[i])), -1), (int64_t)i);
    }
    static const char *const absent[] = {
        "foo",     "/bar",     "/foo/2",  "/foo/-",
        "/foo/00", "/foo/01",  "/foo/+1", "/foo/-1",
        "/foo/0x", "/foo/",    "/m~n",    "/m~",
        "/m~2n",   "/foo/0/x", "/a/b",    "/foo/99999999999999999999",
    };
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        assert_null(json_pointer(v, str_of(absent[i])));
    }
}

static void test_equal(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        { "1", "1.0", true },
        { "9007199254740993", "9007199254740992.0", false }, /* 2^53 + 1: not through doubles */
        { "9223372036854775807", "9223372036854775808.0", false },
        { "0", "-0.0", true },
        { "0", "false", false },
        { "null", "null", true },
        { "\"a\\u0000b\"", "\"a\\u0000b\"", true },
        { "\"a\\u0000b\"", "\"a\\u0000c\"", false },
        { "[1,2]", "[2,1]", false },
        { "[1,2]", "[1,2,3]", false },
        { "[]", "{}", false },
        { "{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}", true },
        { "{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false },
        { "{\"a\":1}", "{\"a\":1,\"b\":2}", false },
        { "{\"a\":{\"b\":{\"c\":1}}}", "{\"a\":{\"b\":{\"c\":2}}}", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(json_equal(parse(cases[i].a), parse(cases[i].b)), cases[i].equal);
        assert_int_equal(json_equal(parse(cases[i].b), parse(cases[i].a)), cases[i].equal);
    }
    assert_true(json_equal(NULL, NULL));
    assert_false(json_equal(NULL, json_null(arena)));
    assert_false(json_equal(json_number(arena, NAN), json_number(arena, NAN)));
}

static void test_copy_shares_nothing(void **state)
{
    struct json *v = parse("\n {\"a\":[1,{\"b\":\"x\"}],\"c\":null,\"d\":{},\"e\":[]}");
    struct arena *other = arena_new();
    struct json *copy = json_copy(other, v);
    assert_true(json_equal(v, copy));
    assert_int_equal(copy->line, 2);
    assert_int_equal(json_get(copy, "a")->column, json_get(v, "a")->column);
    assert_int_equal(copy->object.members[1].line, 2);
    json_setc(arena, json_item(json_get(v, "a"), 1), "b", json_integer(arena, 5));
    json_setc(other, copy, "new", json_integer(other, 5));
    json_push(other, json_get(copy, "e"), json_integer(other, 5));
    assert_json(v, "{\"a\":[1,{\"b\":5}],\"c\":null,\"d\":{},\"e\":[]}");
    arena_reset(arena); /* what the copy was made from is gone */
    assert_json(copy, "{\"a\":[1,{\"b\":\"x\"}],\"c\":null,\"d\":{},\"e\":[5],\"new\":5}");
    assert_null(json_copy(other, NULL));
    (void)arena_free(other);
}

/* The examples of RFC 7396, appendix A. */
static void test_merge(void **state)
{
    static const struct {
        const char *under, *over, *want;
    } cases[] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
        { "{\"a\":\"foo\"}", "null", "null" },
        { "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
        /* and what a configuration relies on */
        { "{\"x\":1,\"y\":2,\"z\":3}", "{\"y\":{\"k\":1}}", "{\"x\":1,\"y\":{\"k\":1},\"z\":3}" },
        { "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}", "{\"a\":{\"b\":{\"d\":3,\"e\":[null]}}}",
          "{\"a\":{\"b\":{\"c\":1,\"d\":3,\"e\":[null]}}}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json *under = parse(cases[i].under);
        struct json *over = parse(cases[i].over);
        assert_json(json_merge(arena, under, over), cases[i].want);
        assert_json(under, cases[i].under); /* neither input changes */
        assert_json(over, cases[i].over);
    }
}

static void test_merge_with_nothing(void **state)
{
    struct json *v = parse("{\"a\":{\"b\":1}}");
    assert_json(json_merge(arena, v, NULL), "{\"a\":{\"b\":1}}");
    assert_json(json_merge(arena, NULL, v), "{\"a\":{\"b\":1}}");
    assert_null(json_merge(arena, NULL, NULL));
    struct json *merged = json_merge(arena, v, NULL);
    json_setc(arena, json_get(merged, "a"), "b", json_integer(arena, 2));
    assert_json(v, "{\"a\":{\"b\":1}}");
}

static void test_merge_keeps_the_position_of_the_winner(void **state)
{
    struct json *merged = json_merge(arena, parse("{\"a\":1,\n\"b\":1}"), parse("\n\n{\"a\":2}"));
    assert_int_equal(json_get(merged, "a")->line, 3);
    assert_int_equal(merged->object.members[0].line, 3);
    assert_int_equal(json_get(merged, "b")->line, 2);
}

/* Code can build deeper trees than a stack has room for. */
static void test_any_depth(void **state)
{
    struct json *v = json_integer(arena, 1);
    for (int i = 0; i < 100000; i++) {
        struct json *outer = i % 2 == 0 ? json_array(arena) : json_object(arena);
        if (i % 2 == 0) {
            json_push(arena, outer, v);
        } else {
            json_setc(arena, outer, "k", v);
        }
        v = outer;
    }
    assert_true(json_equal(v, json_copy(arena, v)));
    assert_true(json_equal(v, json_merge(arena, v, v)));
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    assert_int_equal(b.len, 50000 * 2 + 50000 * 6 + 1);
}

static void test_positions_for_messages(void **state)
{
    char out[JSON_AT_LEN];
    struct json v = { .line = 12, .column = 3 };
    assert_string_equal(json_at("task.yaml", &v, out), "task.yaml:12:3");
    v.line = 0;
    assert_string_equal(json_at("task.yaml", &v, out), "task.yaml");
    assert_string_equal(json_at("task.yaml", NULL, out), "task.yaml");
    char name[1000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    v.line = v.column = UINT32_MAX;
    assert_true(str_ends(str_of(json_at(name, &v, out)), STR("n:4294967295:4294967295")));
}

static void test_type_names(void **state)
{
    assert_string_equal(json_type_name(JSON_STRING), "string");
    assert_string_equal(json_type_name(JSON_OBJECT), "object");
    for (int t = JSON_NULL; t <= JSON_OBJECT; t++) {
        assert_string_not_equal(json_type_name((enum json_type)t), "unknown");
    }
}

#define WITH_ARENA(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(test_getters_accept_nothing_and_the_wrong_type),
        WITH_ARENA(test_numbers_cross_over_where_exact),
        WITH_ARENA(test_strings_with_nul),
        WITH_ARENA(test_building_keeps_order_and_replaces),
        WITH_ARENA(test_the_key_is_copied),
        WITH_ARENA(test_pointer),
        WITH_ARENA(test_equal),
        WITH_ARENA(test_copy_shares_nothing),
        WITH_ARENA(test_merge),
        WITH_ARENA(test_merge_with_nothing),
        WITH_ARENA(test_merge_keeps_the_position_of_the_winner),
        WITH_ARENA(test_any_depth),
        WITH_ARENA(test_positions_for_messages),
        WITH_ARENA(test_type_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
