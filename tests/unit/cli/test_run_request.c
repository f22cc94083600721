/* SPDX-License-Identifier: MIT
 *
 * Options of a run: each row of the table of settings that has an option gets one, and what is
 * given with it reaches the key of the row.
 */
#include "cli/run_request.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/json.h"
#include "gateway/throttle.h"

static struct arena *arena;

static int setup(void **state)
{
    arena = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena = arena_free(arena);
    return 0;
}

/* The layer that these arguments make. */
static struct json *request(int argc, const char *const *argv)
{
    struct option_spec spec = { .options = request_run_options(arena),
                                .positionals = request_positionals,
                                .rest = "COMMAND..." };
    struct options *opt;
    struct settings_input in;
    struct err e = { 0 };
    int r = option_parse(&spec, arena, argc, argv, &opt, &e);
    r = r < 0 ? r : request_read(arena, opt, options_arg(opt, 0), &in, &e);
    if (r < 0) {
        fail_msg("%s", e.msg);
    }
    return in.request;
}

static const char *example(const struct setting *s)
{
    switch (s->kind) {
    case SHAPE_WORD:
        return arena_dup(arena, str_split(&(struct str) { s->words, strlen(s->words) }, '|'));
    case SHAPE_INT:
    case SHAPE_NUMBER:
        return "2";
    case SHAPE_DURATION:
        return "90s";
    case SHAPE_SIZE:
        return "1M";
    case SHAPE_ANY_OBJECT:
    case SHAPE_MAP:
        return "a=b";
    case SHAPE_PATH:
        return "./x";
    case SHAPE_END:
    case SHAPE_STRING:
    case SHAPE_BOOL:
    case SHAPE_STRINGS:
    case SHAPE_PATHS:
    case SHAPE_COMMAND:
    case SHAPE_TEXTS:
    case SHAPE_CHOICE:
    case SHAPE_SOURCE:
    case SHAPE_ANY:
    case SHAPE_OBJECT:
    case SHAPE_LIST:
    case SHAPE_KIND_MAX:
        break;
    }
    return "x";
}

static void test_every_option_reaches_its_key(void **state)
{
    for (const struct setting *s = settings_table; s->key != NULL; s++) {
        if (s->option.name == NULL) {
            continue;
        }
        const char *argv[] = { arena_printf(arena, "--%s", s->option.name), example(s) };
        struct json *tree = request(s->option.value == NULL ? 1 : 2, argv);
        struct err e = { 0 };
        if (setting_value(tree, s->key) == NULL) {
            fail_msg("--%s does not set %s", s->option.name, s->key);
        }
        if (settings_check_task(arena, tree, "command line", &e) < 0) {
            fail_msg("--%s: %s", s->option.name, e.msg);
        }
    }
}

static void assert_value(int argc, const char *const *argv, const char *key, const char *want)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *v = setting_value(request(argc, argv), key);
    assert_non_null(v);
    assert_int_equal(json_write(v, JSON_COMPACT, &text, NULL), 0);
    assert_string_equal(text.ptr, want);
}

#define VALUE(key, want, ...)                                               \
    assert_value(sizeof((const char *[]) { __VA_ARGS__ }) / sizeof(char *), \
                 (const char *[]) { __VA_ARGS__ }, key, want)

static void test_values(void **state)
{
    VALUE("limits.timeout", "90.0", "-t", "90s");
    VALUE("limits.usd", "0.5", "--max-usd", "0.5");
    VALUE("sandbox.net", "\"open\"", "--net", "open");
    VALUE("sandbox.net", "[\"a\",\"b\"]", "--net", "a", "--net", "b");
    VALUE("sandbox.net", "[\"none\",\"b\"]", "--net", "none", "--net", "b");
    VALUE("agent.project_config", "\"trusted\"", "--trust-project");
    VALUE("agent.project_config", "\"instructions\"", "--no-trust-project");
    VALUE("gateway.record", "false", "--no-record");
    VALUE("params", "{\"a\":\"1\",\"b\":\"2\"}", "--param", "a=1", "--param", "b=2");
    VALUE("skills", "[\"one\",\"two\"]", "--skill", "one", "--skill", "two");
    VALUE("env", "{\"set\":{\"A\":\"b\"},\"pass\":[\"C\"]}", "-e", "A=b", "-e", "C");
    VALUE("prompt.text", "\"goal\"", "goal");
    VALUE("limits.idle", "7", "--idle-timeout", "5", "--set", "limits.idle=7");
}

static void test_a_wrong_number(void **state)
{
    const char *argv[] = { "--cpus", "many" };
    struct option_spec spec = { .options = request_run_options(arena) };
    struct options *opt;
    struct settings_input in;
    struct err e = { 0 };
    assert_int_equal(option_parse(&spec, arena, 2, argv, &opt, &e), 0);
    assert_int_equal(request_read(arena, opt, NULL, &in, &e), -(int)ERR_USAGE);
    assert_string_equal(e.msg, "--cpus: 'many' is not a number; examples: 0.5, 2");
}

static const struct option *find_option(const char *name)
{
    const struct option *o = request_run_options(arena);
    while (o->name != NULL && strcmp(o->name, name) != 0) {
        o++;
    }
    assert_non_null(o->name);
    return o;
}

/* Kind, bounds, words and default of an option are those of the setting. */
static void test_options_are_made_from_rows(void **state)
{
    const struct option *o = find_option("timeout");
    assert_true(o->kind == OPTION_DURATION && o->letter == 't' && o->flags == OPTION_POSITIVE);
    assert_string_equal(o->shown, "1h");
    assert_string_equal(o->section, "Limits");
    o = find_option("pids");
    assert_true(o->kind == OPTION_INT && o->min == 1 && o->max == 4194304);
    o = find_option("sandbox");
    assert_string_equal(o->words[1], "workspace-write");
    assert_null(o->words[3]);
    assert_string_equal(o->shown, "workspace-write");
    assert_string_equal(find_option("record")->shown, "yes");
    assert_null(find_option("inherit-env")->shown);
    assert_int_equal(find_option("secret")->flags, OPTION_REPEAT);
    assert_int_equal(find_option("adapter")->complete, COMPLETE_ADAPTER);

    const struct setting row = { "paint.coats",
                                 SHAPE_INT,
                                 .min = 1,
                                 .max = 5,
                                 .fallback = "2",
                                 .help = "number of coats",
                                 .option = { "coats", .value = "N" } };
    struct option made = request_option(arena, &row);
    assert_true(made.kind == OPTION_INT && made.min == 1 && made.max == 5);
    assert_string_equal(made.shown, "2");
    assert_string_equal(made.help, "number of coats");
}

/* `cinch gateway` has no settings; its defaults are those of a run. */
static void test_throttle_of_the_gateway(void **state)
{
    const struct throttle_policy p = THROTTLE_DEFAULT;
    struct settings s;
    settings_read_table(arena, settings_table, json_object(arena), &s);
    assert_int_equal(s.throttle.max_attempts, p.max_attempts);
    assert_true(s.throttle.base == p.base && s.throttle.cap == p.cap);
    assert_true(s.throttle.total == p.total);
    assert_true(s.throttle.concurrency == p.concurrency && s.throttle.per_minute == p.per_minute);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_option_reaches_its_key),
        TEST(test_values),
        TEST(test_a_wrong_number),
        TEST(test_options_are_made_from_rows),
        TEST(test_throttle_of_the_gateway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
