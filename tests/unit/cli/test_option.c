/* SPDX-License-Identifier: MIT
 *
 * The command line parser: every accepted form, and the exact words of every refusal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cli/option.h"

static const char *const shapes[] = { "round", "square", NULL };

static const struct option options[] = {
    { "timeout", 't', OPTION_DURATION, .value = "TIME", .help = "h", .flags = OPTION_POSITIVE },
    { "grace", 0, OPTION_DURATION, .value = "TIME", .help = "h" },
    { "count", 'n', OPTION_INT, .value = "N", .help = "h", .min = 1, .max = 9 },
    { "any", 0, OPTION_INT, .value = "N", .help = "h" },
    { "prompt", 'p', OPTION_PATH, .value = "FILE", .help = "h" },
    { "name", 0, OPTION_STRING, .value = "NAME", .help = "h" },
    { "tag", 0, OPTION_STRING, .value = "TAG", .help = "h", .flags = OPTION_REPEAT },
    { "shape", 0, OPTION_ENUM, .words = shapes, .help = "h" },
    { "env", 'e', OPTION_PAIR, .value = "NAME[=VALUE]", .help = "h",
      .flags = OPTION_REPEAT | OPTION_BARE },
    { "set", 0, OPTION_PAIR, .value = "KEY=VALUE", .help = "h", .flags = OPTION_REPEAT },
    { "force", 'f', OPTION_FLAG, .help = "h", .old_name = "overwrite", .old_letter = 'O' },
    { "tools", 0, OPTION_FLAG, .help = "h", .flags = OPTION_NEGATABLE },
    { "secret-door", 0, OPTION_FLAG, .help = "h", .flags = OPTION_HIDDEN },
    { "limit", 0, OPTION_INT, .value = "N", .help = "h", .old_letter = 'L' },
    { "style", 0, OPTION_STRING, .value = "S", .help = "use --shape",
      .flags = OPTION_HIDDEN | OPTION_DEPRECATED },
    { 0 },
};

static const struct option globals[] = {
    { "verbose", 'v', OPTION_FLAG, .help = "h", .flags = OPTION_REPEAT },
    { "help", 'h', OPTION_FLAG, .help = "h", .flags = OPTION_LAST },
    { 0 },
};

static const struct positional one[] = { { "TASK", "h", .optional = true }, { 0 } };

static const struct option_spec with_rest = {
    .options = options, .globals = globals, .positionals = one, .rest = "COMMAND..."
};

struct fixture {
    struct arena *arena;
    struct options *o;
    struct err e;
};

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    f->arena = arena_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    arena_free(f->arena);
    test_free(f);
    return 0;
}

#define ARGS(...) ((const char *const[]) { __VA_ARGS__ __VA_OPT__(, ) NULL })

static int parse_spec(struct fixture *f, const struct option_spec *spec, const char *const *argv)
{
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    f->e = (struct err) { 0 };
    f->o = NULL;
    return option_parse(spec, f->arena, argc, argv, &f->o, &f->e);
}

static void parse(struct fixture *f, const char *const *argv)
{
    int r = parse_spec(f, &with_rest, argv);
    assert_string_equal(f->e.msg, "");
    assert_int_equal(r, 0);
}

static void refuse(struct fixture *f, const char *const *argv, const char *message)
{
    assert_int_equal(parse_spec(f, &with_rest, argv), -ERR_USAGE);
    assert_string_equal(f->e.msg, message);
    assert_int_equal(err_exit_status(f->e.code), 64);
}

static void test_value_forms(void **state)
{
    struct fixture *f = *state;
    static const char *const forms[][3] = {
        { "--timeout=90s" }, { "--timeout", "90s" }, { "-t", "90s" }, { "-t90s" }
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        parse(f, forms[i]);
        assert_int_equal(options_duration(f->o, "timeout", 0), 90 * NSEC_PER_SEC);
    }
    parse(f, ARGS());
    assert_int_equal(options_duration(f->o, "timeout", 7), 7);
    assert_false(options_given(f->o, "timeout"));
}

static void test_kinds(void **state)
{
    struct fixture *f = *state;
    parse(f, ARGS("--count=9", "--any", "-5", "--prompt", "-", "--name=", "--shape=square",
                  "--grace=0"));
    assert_int_equal(options_int(f->o, "count", 0), 9);
    assert_int_equal(options_int(f->o, "any", 0), -5);
    assert_string_equal(options_string(f->o, "prompt", NULL), "-");
    assert_string_equal(options_string(f->o, "name", NULL), "");
    assert_string_equal(options_string(f->o, "shape", NULL), "square");
    assert_int_equal(options_duration(f->o, "grace", 1), 0);
    assert_null(options_string(f->o, "tag", NULL));
}

static void test_lists_keep_order(void **state)
{
    struct fixture *f = *state;
    parse(f, ARGS("--tag=a", "--tag", "b", "--tag=c", "--tag=d", "--tag=e", "-eX", "-e", "Y=1=2"));
    const char *const *tags = options_list(f->o, "tag");
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(tags[i], ((const char *[]) { "a", "b", "c", "d", "e" })[i]);
    }
    assert_null(tags[5]);
    const char *const *env = options_list(f->o, "env");
    assert_string_equal(env[0], "X");
    assert_string_equal(env[1], "Y=1=2");
    assert_null(env[2]);
    assert_null(options_list(f->o, "set")[0]);

    struct str name;
    struct str value;
    assert_true(option_pair(env[1], &name, &value));
    assert_true(str_eqc(name, "Y"));
    assert_true(str_eqc(value, "1=2"));
    assert_false(option_pair(env[0], &name, &value));
    assert_true(str_eqc(name, "X"));
    assert_int_equal(value.len, 0);
}

static void test_flags(void **state)
{
    struct fixture *f = *state;
    parse(f, ARGS("-fvv", "--verbose", "--no-tools"));
    assert_true(options_flag(f->o, "force", false));
    assert_int_equal(options_count(f->o, "verbose"), 3);
    assert_true(options_given(f->o, "tools"));
    assert_false(options_flag(f->o, "tools", true));
    parse(f, ARGS("--tools", "-vfn3"));
    assert_true(options_flag(f->o, "tools", false));
    assert_true(options_flag(f->o, "force", false));
    assert_int_equal(options_int(f->o, "count", 0), 3);
    parse(f, ARGS());
    assert_true(options_flag(f->o, "tools", true));
    assert_false(options_flag(f->o, "tools", false));
}

static void test_positionals(void **state)
{
    struct fixture *f = *state;
    parse(f, ARGS("goal", "--force"));
    assert_int_equal(options_arg_count(f->o), 1);
    assert_string_equal(options_arg(f->o, 0), "goal");
    assert_null(options_arg(f->o, 1));
    assert_true(options_flag(f->o, "force", false));
    assert_null(options_rest(f->o));

    parse(f, ARGS("-"));
    assert_string_equal(options_arg(f->o, 0), "-");
    parse(f, ARGS("- first\n- second"));
    assert_string_equal(options_arg(f->o, 0), "- first\n- second");
    parse(f, ARGS(""));
    assert_string_equal(options_arg(f->o, 0), "");
}

static void test_rest_is_kept_apart(void **state)
{
    struct fixture *f = *state;
    parse(f, ARGS("goal", "--force", "--", "./agent", "--force", "--", "{prompt_file}"));
    const char *const *rest = options_rest(f->o);
    assert_string_equal(rest[0], "./agent");
    assert_string_equal(rest[1], "--force");
    assert_string_equal(rest[2], "--");
    assert_string_equal(rest[3], "{prompt_file}");
    assert_null(rest[4]);
    assert_int_equal(options_arg_count(f->o), 1);

    parse(f, ARGS("--"));
    assert_non_null(options_rest(f->o));
    assert_null(options_rest(f->o)[0]);
}

static void test_double_dash_without_rest(void **state)
{
    struct fixture *f = *state;
    static const struct positional many[] = { { "FILE", "h", .repeat = true }, { 0 } };
    const struct option_spec spec = { .options = options, .positionals = many };
    assert_int_equal(parse_spec(f, &spec, ARGS("a", "--", "--force", "-x")), 0);
    assert_int_equal(options_arg_count(f->o), 3);
    assert_string_equal(options_args(f->o)[1], "--force");
    assert_false(options_flag(f->o, "force", false));
    assert_int_equal(parse_spec(f, &spec, ARGS()), -ERR_USAGE);
    assert_string_equal(f->e.msg, "FILE is missing");
}

static void test_stops(void **state)
{
    struct fixture *f = *state;
    parse(f, ARGS("--help", "--nonsense", "a", "b"));
    assert_true(options_flag(f->o, "help", false));
    parse(f, ARGS("-vh", "--nonsense"));
    assert_true(options_flag(f->o, "help", false));

    const struct option_spec early = { .globals = globals, .stop_early = true };
    assert_int_equal(parse_spec(f, &early, ARGS("-v", "run", "--nonsense")), 0);
    assert_int_equal(options_used(f->o), 1);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *const argv[4];
        const char *message;
    } cases[] = {
        { { "--timeotu=5" }, "unknown option '--timeotu'; did you mean --timeout?" },
        { { "--time" }, "unknown option '--time'; did you mean --timeout?" },
        { { "--no-tool" }, "unknown option '--no-tool'; did you mean --no-tools?" },
        { { "--secret-dor" }, "unknown option '--secret-dor'" },
        { { "--zzzzzzz" }, "unknown option '--zzzzzzz'" },
        { { "--no-force" }, "unknown option '--no-force'; omit --force instead" },
        { { "-x" }, "unknown option '-x'" },
        { { "-fx" }, "unknown option '-x' in '-fx'" },
        { { "--timeout" }, "--timeout needs a value: TIME" },
        { { "-t" }, "--timeout needs a value: TIME" },
        { { "--timeout", "--", "x" }, "--timeout needs a value: TIME" },
        { { "--shape" }, "--shape needs a value: round|square" },
        { { "--name", "--force" },
          "--name needs a value: NAME; to use '--force' as the value, write --name=--force" },
        { { "--timeout=abc" }, "--timeout: 'abc' is not a duration; examples: 600, 90s, 10m" },
        { { "--timeout", "-5" }, "--timeout: '-5' is not a duration; examples: 600, 90s, 10m" },
        { { "--timeout=0" }, "--timeout: must be more than zero; examples: 600, 90s, 10m" },
        { { "--count=x" }, "--count: 'x' is not a whole number" },
        { { "--count=10" }, "--count: '10' is out of range; allowed: 1 to 9" },
        { { "--shape=oval" }, "--shape: 'oval' is not one of round, square" },
        { { "--prompt=" }, "--prompt: the path is empty" },
        { { "--env==x" }, "--env: '=x' has no name; expected NAME[=VALUE]" },
        { { "--set=a" }, "--set: 'a' has no '='; expected KEY=VALUE" },
        { { "--force=yes" }, "--force takes no value" },
        { { "--no-tools=1" }, "--no-tools takes no value" },
        { { "--name=a", "--name=b" }, "--name is given twice" },
        { { "-f", "--force" }, "--force is given twice" },
        { { "--tools", "--no-tools" }, "--tools is given twice" },
        { { "a", "b" },
          "unexpected argument 'b'; quote text that contains spaces, or put a command after --" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        refuse(f, cases[i].argv, cases[i].message);
    }
}

static void test_no_positionals(void **state)
{
    struct fixture *f = *state;
    const struct option_spec none = { .options = options };
    assert_int_equal(parse_spec(f, &none, ARGS("x")), -ERR_USAGE);
    assert_string_equal(f->e.msg, "unexpected argument 'x'");
}

static void test_long_input_keeps_advice(void **state)
{
    struct fixture *f = *state;
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    memcpy(big, "--timeout=", 10);
    assert_int_equal(parse_spec(f, &with_rest, ARGS(big)), -ERR_USAGE);
    assert_non_null(strstr(f->e.msg, "examples: 600, 90s, 10m"));
}

static void test_suggest(void **state)
{
    static const char *const words[] = { "run", "show", "adapters", "doctor", NULL };
    assert_string_equal(option_suggest("shwo", words), "show");
    assert_string_equal(option_suggest("rnu", words), "run");
    assert_string_equal(option_suggest("adapter", words), "adapters");
    assert_string_equal(option_suggest("doc", words), "doctor");
    assert_null(option_suggest("x", words));
    assert_null(option_suggest("", words));
    assert_null(option_suggest("frobnicate", words));
}

static void test_earlier_forms_warn(void **state)
{
    struct fixture *f = *state;
    const struct {
        const char *const *argv;
        const char *option, *warning;
    } cases[] = {
        { ARGS("-O"), "force", "-O is deprecated: use --force" },
        { ARGS("-vO"), "force", "-O is deprecated: use --force" },
        { ARGS("--overwrite"), "force", "--overwrite is deprecated: use --force" },
        { ARGS("-L5"), "limit", "-L is deprecated: use --limit" },
        { ARGS("-L", "5"), "limit", "-L is deprecated: use --limit" },
        { ARGS("--style", "x"), "style", "--style is deprecated: use --shape" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        parse(f, cases[i].argv);
        assert_true(options_given(f->o, cases[i].option));
        assert_string_equal(options_warnings(f->o)[0], cases[i].warning);
        assert_null(options_warnings(f->o)[1]);
    }
    parse(f, ARGS("--force", "--limit=5", "-v"));
    assert_null(options_warnings(f->o)[0]);
    refuse(f, ARGS("-O", "--force"), "--force is given twice");
    refuse(f, ARGS("-L"), "--limit needs a value: N");
}

static void test_text(void **state)
{
    char out[OPTION_TEXT_LEN];
    assert_string_equal(option_text(&options[0], out), "-t, --timeout TIME");
    assert_string_equal(option_text(&options[7], out), "--shape round|square");
    assert_string_equal(option_text(&options[11], out), "--[no-]tools");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_value_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lists_keep_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flags, setup, teardown),
        cmocka_unit_test_setup_teardown(test_positionals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rest_is_kept_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_double_dash_without_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_positionals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_input_keeps_advice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_earlier_forms_warn, setup, teardown),
        cmocka_unit_test(test_suggest),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
