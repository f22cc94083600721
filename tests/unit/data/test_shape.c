/* SPDX-License-Identifier: MIT
 *
 * A wrong configuration is refused with the place, the dotted name and what was wanted instead.
 */
#include "data/shape.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "data/yaml.h"

static const struct shape limits[] = {
    { "timeout", SHAPE_DURATION },
    { "turns", SHAPE_INT },
    { "heat", SHAPE_NUMBER, .min = -2, .max = 2, .help = "how hot" },
    { 0 },
};
static const struct shape tool[] = {
    { "name", SHAPE_STRING },
    { "command", SHAPE_STRINGS },
    { 0 },
};
static const struct shape rule[] = {
    { "type", SHAPE_STRING, .required = true },
    { "why", SHAPE_STRING },
    { 0 },
};
static const struct shape task[] = {
    { "name", SHAPE_STRING },
    { "limits", SHAPE_OBJECT, .inner = limits },
    { "tools", SHAPE_LIST, .inner = tool },
    { "mode", SHAPE_WORD, .words = "native|holon|scylla" },
    { "fast", SHAPE_BOOL },
    { "env", SHAPE_MAP },
    { "extra", SHAPE_ANY },
    { "rules", SHAPE_LIST, .inner = rule },
    { "parts", SHAPE_LIST },
    { "file", SHAPE_PATH },
    { "files", SHAPE_PATHS },
    { "run", SHAPE_COMMAND },
    { "schema", SHAPE_ANY_OBJECT },
    { 0 },
};

static int check(const char *text, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    assert_int_equal(yaml_parse(a, str_of(text), "t.yaml", NULL, &v, e), 0);
    return shape_check(v, task, "t.yaml", e);
}

static void test_what_fits(void **state)
{
    static const char *const good[] = {
        "{}",
        "name: x\nlimits: {timeout: 90s, turns: 0}\ntools: [{name: a, command: [x, y]}, {}]",
        "limits: {timeout: 600}\nmode: holon\nfast: true\nenv: {A: b, C: 1, D: true}",
        "extra: [1, {a: b}]\nschema: {type: object}",
        "limits: {heat: -2}\nrules: [{type: a}]\nparts: [{}, {x: 1}]",
        "file: a\nfiles: [b]\nrun: [c, d]",
        "name:\nlimits:\ntools:\nmode:\n", /* null removes a value of a layer below */
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct err e = { 0 };
        if (check(good[i], &e) != 0) {
            fail_msg("%s: %s", good[i], e.msg);
        }
    }
}

static void assert_refused(const char *text, const char *want)
{
    struct err e = { 0 };
    assert_int_equal(check(text, &e), -(int)ERR_CONFIG);
    if (strstr(e.msg, want) != e.msg) {
        fail_msg("'%s' instead of '%s'", e.msg, want);
    }
}

static void test_messages(void **state)
{
    assert_refused("name: x\nlimts: {}",
                   "t.yaml:2:1: unknown key 'limts' (did you mean 'limits'?)");
    assert_refused("limits:\n  heat: 2.5", "t.yaml:2:9: 'limits.heat' must be between -2 and 2");
    assert_refused("rules:\n- why: x", "t.yaml:2:3: rules[0] needs a 'type'");
    assert_refused("rules: [{type: ''}]", "t.yaml:1:9: rules[0] needs a 'type'");
    assert_refused("rules: [{type: null}]", "t.yaml:1:9: rules[0] needs a 'type'");
    assert_refused("parts: [1]", "t.yaml:1:9: 'parts[0]' must be a map");
    assert_refused("file: [a]", "t.yaml:1:7: 'file' must be a string");
    assert_refused("files: [a, 1]", "t.yaml:1:12: 'files' must be a list of strings, but item 2");
    assert_refused("run: x", "t.yaml:1:6: 'run' must be a list of strings");
    assert_refused("zebra: 1", "t.yaml:1:1: unknown key 'zebra'");
    assert_refused("limits: {timeoot: 1}",
                   "t.yaml:1:10: unknown key 'limits.timeoot' (did you mean 'timeout'?)");
    assert_refused("limits:\n  timeout: [1]", "t.yaml:2:12: 'limits.timeout' must be a duration");
    assert_refused("limits: {timeout: -1}", "t.yaml:1:19: 'limits.timeout'");
    assert_refused("limits: {timeout: fast}", "t.yaml:1:19: 'limits.timeout'");
    assert_refused("limits: {turns: -1}",
                   "t.yaml:1:17: 'limits.turns' must be a whole number, 0 or more, not -1");
    assert_refused("limits: {turns: 1.5}", "t.yaml:1:17: 'limits.turns'");
    assert_refused("name: 5", "t.yaml:1:7: 'name' must be a string, not integer");
    assert_refused("mode: bad", "t.yaml:1:7: 'mode' must be one of native|holon|scylla, not 'bad'");
    assert_refused("mode: native|holon", "t.yaml:1:7: 'mode' must be one of");
    assert_refused("mode: ''", "t.yaml:1:7: 'mode' must be one of");
    assert_refused("fast: 'yes'", "t.yaml:1:7: 'fast' must be true or false, not 'yes'");
    assert_refused("env: {A: [1]}", "t.yaml:1:6: 'env' must be a map of names to plain values");
    assert_refused("tools: {}", "t.yaml:1:8: 'tools' must be a list");
    assert_refused("tools: [1]", "t.yaml:1:9: 'tools[0]' must be a map");
    assert_refused("tools: [{comand: [a]}]", "t.yaml:1:10: unknown key 'tools[0].comand'");
    assert_refused("tools: [{command: [1]}]",
                   "t.yaml:1:20: 'tools[0].command' must be a list of str");
    assert_refused("[1]", "t.yaml:1:1: expected a map at the top, not array");
    assert_refused("", "t.yaml: expected a map at the top, not null");
    assert_refused("schema: 1", "t.yaml:1:9: 'schema' must be a map");
    assert_refused("name: \"a\\0b\"", "t.yaml:1:7: 'name' has a NUL character in it");
}

static void test_durations(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    assert_int_equal(shape_duration(NULL, 7), 7);
    assert_int_equal(shape_duration(json_null(a), 7), 7);
    assert_int_equal(shape_duration(json_integer(a, 2), 7), INT64_C(2000000000));
    assert_int_equal(shape_duration(json_number(a, 0.25), 7), 250000000);
    assert_int_equal(shape_duration(json_cstr(a, "1m"), 7), INT64_C(60000000000));
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        int64_t size;
    } sizes[] = {
        { "0", 0 },         { "512", 512 },        { "1K", 1024 },
        { "2MB", 2 << 20 }, { "3GiB", 3LL << 30 }, { "1T", 1LL << 40 },
        { "", -1 },         { "M", -1 },           { "1.5G", -1 },
        { "1iB", -1 },      { "-1", -1 },          { "9000000000000G", -1 },
        { "1 G", -1 },      { "1g", -1 },
    };
    CLEANUP(arena) struct arena *a = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_int_equal(shape_size(json_cstr(a, sizes[i].text), -1), sizes[i].size);
    }
    assert_int_equal(shape_size(json_integer(a, 7), -1), 7);
    assert_int_equal(shape_size(json_null(a), 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
