/* SPDX-License-Identifier: MIT
 *
 * A shape and the JSON Schema made from it accept and refuse the same documents.
 */
#include "data/shape_schema.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "data/schema.h"
#include "data/yaml.h"

static const struct shape item[] = {
    { "path", SHAPE_PATH, .required = true, .help = "where it is" },
    { "size", SHAPE_SIZE },
    { 0 },
};
static const struct shape place[] = {
    { "dir", SHAPE_PATH },
    { "parts", SHAPE_LIST },
    { "net", SHAPE_CHOICE, .words = "none|open" },
    { 0 },
};
static const struct shape task[] = {
    { "name", SHAPE_STRING, .max_len = 5, .pattern = "^[a-z]+$" },
    { "mode", SHAPE_WORD, .words = "fast|slow" },
    { "on", SHAPE_BOOL },
    { "count", SHAPE_INT },
    { "few", SHAPE_INT, .min = 1, .max = 3 },
    { "heat", SHAPE_NUMBER, .min = -0.5, .max = 2 },
    { "time", SHAPE_DURATION },
    { "words", SHAPE_STRINGS },
    { "files", SHAPE_PATHS },
    { "run", SHAPE_COMMAND },
    { "stop", SHAPE_TEXTS },
    { "schema", SHAPE_SOURCE },
    { "env", SHAPE_MAP },
    { "any", SHAPE_ANY },
    { "map", SHAPE_ANY_OBJECT },
    { "items", SHAPE_LIST, .inner = item, .shorthand = "path" },
    { "place", SHAPE_OBJECT, .inner = place, .shorthand = "dir|parts" },
    { 0 },
};

static bool accepts(const struct json *schema, const struct json *v)
{
    CLEANUP(schema) struct schema *s = NULL;
    struct err e = { 0 };
    if (schema_compile(schema, NULL, &s, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return schema_check(s, v, NULL, &e) == 1;
}

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (yaml_parse(a, str_of(text), "t", NULL, &v, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return v;
}

static const char *const good[] = {
    "{name: abc, mode: slow, on: true, count: 0, few: 3, heat: -0.5, time: 90s}",
    "{time: 1.5, words: [a], files: [b], run: [c, d], stop: x, schema: {a: 1}}",
    "{stop: [x, y], schema: file, env: {A: b, C: 1, D: true}, any: [1], map: {a: {}}}",
    "{items: [{path: a, size: 1M}, {path: b, size: 10}], place: {dir: x, net: [a], parts: [{}]}}",
    "{place: {net: open}}",
};

static const char *const bad[] = {
    "{other: 1}",
    "{name: 1}",
    "{mode: other}",
    "{on: 1}",
    "{count: -1}",
    "{count: 1.5}",
    "{few: 0}",
    "{few: 4}",
    "{heat: 2.1}",
    "{heat: -1}",
    "{heat: x}",
    "{time: -1}",
    "{time: [1]}",
    "{words: a}",
    "{words: [1]}",
    "{files: [1]}",
    "{run: x}",
    "{stop: 1}",
    "{stop: [1]}",
    "{schema: 1}",
    "{env: {A: [1]}}",
    "{env: 1}",
    "{map: 1}",
    "{items: {}}",
    "{items: [1]}",
    "{items: [{size: 1}]}",
    "{place: {dri: x}}",
    "{place: {net: some}}",
    "{place: {parts: [1]}}",
    "{items: [{path: a, size: x}]}",
    "{items: [{path: null}]}",
};

static void test_same_documents(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    for (int layer = 0; layer <= 1; layer++) {
        const struct json *schema = shape_schema(a, task, layer == 1);
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
            struct json *v = parse(a, good[i]);
            struct err e = { 0 };
            if (shape_check(v, task, "t", &e) < 0 || !accepts(schema, v)) {
                fail_msg("refused: %s %s", good[i], e.msg);
            }
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            struct json *v = parse(a, bad[i]);
            struct err e;
            if (shape_check(v, task, "t", &e) == 0 || accepts(schema, v)) {
                fail_msg("accepted: %s", bad[i]);
            }
        }
    }
}

/* What a person may write and cinch does not: null and shorthands. */
static void test_layers(void **state)
{
    static const char *const only_layer[] = {
        "{name: null}", "{mode: null}",  "{time: null}", "{place: null}", "{place: {net: null}}",
        "{place: dir}", "{place: [{}]}", "{items: [a]}", "{items: null}", "{stop: null}",
    };
    CLEANUP(arena) struct arena *a = arena_new();
    const struct json *layer = shape_schema(a, task, true);
    const struct json *merged = shape_schema(a, task, false);
    for (size_t i = 0; i < ARRAY_LEN(only_layer); i++) {
        struct json *v = parse(a, only_layer[i]);
        if (!accepts(layer, v) || accepts(merged, v)) {
            fail_msg("%s", only_layer[i]);
        }
    }
    assert_false(accepts(layer, parse(a, "{place: 1}")));
    assert_false(accepts(layer, parse(a, "{name: toolong}")));
    assert_false(accepts(layer, parse(a, "{name: A}")));
}

static void test_descriptions(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct json *schema = shape_schema(a, task, false);
    const struct json *path = json_pointer(schema, STR("/properties/items/items/properties/path"));
    assert_string_equal(json_cstring(json_get(path, "description"), ""), "Where it is.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_documents),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_descriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
