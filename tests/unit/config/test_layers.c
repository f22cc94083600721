/* SPDX-License-Identifier: MIT
 *
 * Later layers win, null removes, and every leaf can say where it came from.
 */
#include "config/layers.h"
#include "values.h"

static const char *as_text(const struct json *v)
{
    struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    const char *copy = arena_dup(arena, buf_str(&b));
    buf_done(&b);
    return copy;
}

static void test_merge(void **state)
{
    struct layers l = { .len = 0 };
    layers_add(&l, "base", "built in", tree("{a: {x: 1, y: [1, 2], z: 3}, b: 1}"));
    layers_add(&l, "none", "nowhere", NULL);
    layers_add(&l, "task", "task.yaml", tree("{a: {x: 2, y: [9], z: null}, c: {d: true}}"));
    assert_string_equal(as_text(layers_merge(arena, &l)),
                        "{\"a\":{\"x\":2,\"y\":[9]},\"b\":1,\"c\":{\"d\":true}}");
}

static void expect_origin(const struct json *list, const char *path, const char *layer,
                          const char *source)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *leaf = json_item(list, i);
        if (strcmp(json_cstring(json_get(leaf, "path"), ""), path) == 0) {
            assert_string_equal(json_cstring(json_get(leaf, "layer"), ""), layer);
            assert_string_equal(json_cstring(json_get(leaf, "source"), ""), source);
            return;
        }
    }
    fail_msg("no leaf '%s'", path);
}

static void test_explain(void **state)
{
    struct layers l = { .len = 0 };
    layers_add(&l, "base", "built in", tree("a:\n  x: 1\n  z: 3\nlist: [1]\nempty: {}\n"));
    layers_add(&l, "task", "task.yaml", tree("a:\n  x: 2\n'odd.key': {q: 1}\n"));
    struct json *merged = layers_merge(arena, &l);
    struct json *list = layers_explain(arena, &l, merged);
    assert_int_equal(json_len(list), 5);
    expect_origin(list, "a.x", "task", "task.yaml:2:6");
    expect_origin(list, "a.z", "base", "built in:3:6");
    expect_origin(list, "list", "base", "built in:4:7");
    expect_origin(list, "empty", "base", "built in:5:8");
    expect_origin(list, "\"odd.key\".q", "task", "task.yaml:3:16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_merge, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_explain, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
