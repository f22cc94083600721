/* SPDX-License-Identifier: MIT
 *
 * The program from argv to exit status, with streams in memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/macro.h"
#include "cli/cli.h"

struct fixture {
    struct cli cli;
    char *out, *err;
    size_t out_len, err_len;
    int status;
};

static int setup(void **state)
{
    *state = test_calloc(1, sizeof(struct fixture));
    return 0;
}

static void close_streams(struct fixture *f)
{
    if (f->cli.arena != NULL) {
        (void)fclose(f->cli.out.stream);
        (void)fclose(f->cli.err.stream);
        free(f->out);
        free(f->err);
        f->cli.arena = arena_free(f->cli.arena);
    }
}

static int teardown(void **state)
{
    close_streams(*state);
    test_free(*state);
    return 0;
}

#define RUN(f, ...) run((f), (const char *const[]) { "cinch", __VA_ARGS__, NULL })

static void run(struct fixture *f, const char *const *argv)
{
    close_streams(f);
    *f = (struct fixture) { .cli.arena = arena_new() };
    terminal_init(&f->cli.out, open_memstream(&f->out, &f->out_len), TERMINAL_COLOR_AUTO);
    terminal_init(&f->cli.err, open_memstream(&f->err, &f->err_len), TERMINAL_COLOR_AUTO);
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    f->status = cli_main(&f->cli, argc, argv);
}

static void expect(const struct fixture *f, int status, const char *out, const char *err)
{
    assert_string_equal(f->err, err);
    assert_string_equal(f->out, out);
    assert_int_equal(f->status, status);
}

static void test_version(void **state)
{
    struct fixture *f = *state;
    RUN(f, "--version");
    expect(f, 0, "cinch " CINCH_VERSION "\n", "");
    RUN(f, "version", "-q");
    expect(f, 0, CINCH_VERSION "\n", "");
    RUN(f, "help", "--version");
    expect(f, 0, "cinch " CINCH_VERSION "\n", "");
    RUN(f, "--format", "json", "--version");
    expect(f, 0, "{\n  \"name\": \"cinch\",\n  \"version\": \"" CINCH_VERSION "\"\n}\n", "");
}

static void test_help_is_one_text(void **state)
{
    struct fixture *f = *state;
    RUN(f, "help", "completion");
    char *expected = strdup(f->out);
    RUN(f, "completion", "--help");
    expect(f, 0, expected, "");
    RUN(f, "completion", "-h", "--what", "ever");
    expect(f, 0, expected, "");
    free(expected);

    RUN(f, "--help");
    expected = strdup(f->out);
    RUN(f, "help");
    expect(f, 0, expected, "");
    run(f, (const char *const[]) { "cinch", NULL });
    expect(f, 64, "", expected);
    free(expected);
}

static void test_usage_errors(void **state)
{
    struct fixture *f = *state;
    RUN(f, "hepl");
    expect(f, 64, "",
           "cinch: unknown command 'hepl'; did you mean help?\nhint: see 'cinch --help'\n");
    RUN(f, "Fix the tests");
    expect(f, 64, "",
           "cinch: unknown command 'Fix the tests'\nhint: to run a goal: cinch run \"GOAL\"\n");
    RUN(f, "--bogus", "help");
    expect(f, 64, "", "cinch: unknown option '--bogus'\nhint: see 'cinch --help'\n");
    RUN(f, "help", "--mann");
    expect(f, 64, "",
           "cinch: unknown option '--mann'; did you mean --man?\nhint: see 'cinch help --help'\n");
    RUN(f, "completion", "tcsh");
    expect(f, 64, "",
           "cinch: no completion for shell 'tcsh'; use bash, zsh or fish\n"
           "hint: see 'cinch completion --help'\n");
    RUN(f, "completion");
    expect(f, 64, "", "cinch: SHELL is missing\nhint: see 'cinch completion --help'\n");
    RUN(f, "help", "--man", "--markdown");
    assert_int_equal(f->status, 64);
    RUN(f, "-q", "version", "--format=json");
    expect(f, 64, "",
           "{\"error\":{\"code\":\"usage\",\"message\":\"--quiet and --format json cannot be used "
           "together\",\"exit\":64,\"hint\":\"see 'cinch version --help'\"}}\n");
    RUN(f, "--format=text", "version", "--format=text");
    expect(f, 64, "", "cinch: --format is given twice\nhint: see 'cinch version --help'\n");
}

static void test_messages_are_clean(void **state)
{
    struct fixture *f = *state;
    RUN(f, "\033[2J");
    expect(f, 64, "", "cinch: unknown command '\\x1b[2J'\nhint: see 'cinch --help'\n");
}

static void test_json_errors(void **state)
{
    struct fixture *f = *state;
    static const char *const lines[][5] = {
        { "cinch", "--format", "json", "hepl" },
        { "cinch", "hepl", "--format=json" },
        { "cinch", "help", "--format=json", "--bogus" },
        { "cinch", "--bogus", "--format", "json" },
        { "cinch", "--format", "json" },
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct json *v;
        run(f, lines[i]);
        assert_string_equal(f->out, "");
        assert_int_equal(f->status, 64);
        assert_int_equal(json_parse(f->cli.arena, str_n(f->err, f->err_len), NULL, &v, NULL), 0);
        const struct json *error = json_get(v, "error");
        assert_string_equal(json_cstring(json_get(error, "code"), ""), "usage");
        assert_int_equal(json_int(json_get(error, "exit"), 0), 64);
        assert_true(json_len(json_get(error, "message")) > 0);
    }
    /* What another program gets after "--" is none of our business. */
    RUN(f, "hepl", "--", "--format=json");
    assert_true(strncmp(f->err, "cinch: ", 7) == 0);
}

static void test_globals_on_both_sides(void **state)
{
    struct fixture *f = *state;
    RUN(f, "--color", "help", "version");
    assert_non_null(strstr(f->out, "\033[1m"));
    RUN(f, "help", "version", "--color");
    assert_non_null(strstr(f->out, "\033[1m"));
    RUN(f, "help", "version");
    assert_null(strstr(f->out, "\033["));
    RUN(f, "--color", "hepl");
    assert_int_equal(f->status, 64);
}

static void test_lost_output_is_an_error(void **state)
{
    struct fixture *f = *state;
    RUN(f, "version");
    (void)fclose(f->cli.out.stream);
    terminal_init(&f->cli.out, fopen("/dev/full", "we"), TERMINAL_COLOR_AUTO);
    f->cli.format = CLI_TEXT;
    const char *const argv[] = { "cinch", "version", NULL };
    assert_int_equal(cli_main(&f->cli, 2, argv), 70);
    assert_string_equal(f->err,
                        "cinch: cannot write to standard output: No space left on device\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_version, setup, teardown),
        cmocka_unit_test_setup_teardown(test_help_is_one_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_usage_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_messages_are_clean, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_globals_on_both_sides, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_output_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
