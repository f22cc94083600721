/* SPDX-License-Identifier: MIT
 *
 * Programs that cannot be started: each reason has its own category and a message that names it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "base/file.h"
#include "fixture.h"
#include "isolated.h"

#define MS(n) ((n)*NSEC_PER_MS)

struct place {
    struct fixture f;
    char dir[64];
    char path[160];
};

static void place_init(struct place *p)
{
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/cinch-test-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    fixture_init(&p->f);
}

static void place_done(struct place *p)
{
    assert_int_equal(file_remove_tree(AT_FDCWD, p->dir, NULL), 0);
    fixture_done(&p->f);
}

static const char *put(struct place *p, const char *name, const char *text, mode_t mode)
{
    (void)snprintf(p->path, sizeof p->path, "%s/%s", p->dir, name);
    assert_int_equal(file_write_atomic(AT_FDCWD, p->path, str_of(text), mode, NULL), 0);
    assert_int_equal(chmod(p->path, mode), 0);
    return p->path;
}

/* Refused before anything is started. */
static void refused(struct place *p, struct proc_opts o, const char *program, enum err_code code,
                    const char *says)
{
    size_t fds = fixture_count_fds();
    assert_int_equal(fixture_start(&p->f, o, program, NULL, NULL), -(int)code);
    assert_non_null(strstr(p->f.why.msg, says));
    assert_string_equal(p->f.order, "");
    assert_int_equal(fixture_count_fds(), fds);
}

/* Found out by execve(). */
static void fails(struct place *p, struct proc_opts o, const char *program, const char *arg,
                  enum err_code code, const char *says)
{
    fixture_go(&p->f, o, program, arg, NULL);
    assert_int_equal(p->f.why.code, code);
    if (strstr(p->f.why.msg, says) == NULL) {
        fail_msg("'%s' does not say '%s'", p->f.why.msg, says);
    }
    assert_string_equal(p->f.order, "fd");
    assert_false(p->f.result.started);
    assert_int_equal(p->f.result.error.code, code);
    memset(p->f.order, 0, sizeof p->f.order);
}

static void missing(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    refused(&p, (struct proc_opts) { 0 }, "/no/such/program", ERR_NOTFOUND,
            "'/no/such/program' not found");
    const char *const argv[] = { "no-such-program", NULL };
    refused(&p, (struct proc_opts) { .argv = argv }, "/x", ERR_NOTFOUND,
            "'no-such-program' not found in PATH");
    place_done(&p);
}

static void vanished_between_look_and_exec(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    const char *const argv[] = { "x", NULL };
    struct proc_opts o = { .argv = argv, .path = "/no/such/program" };
    fails(&p, o, "/x", NULL, ERR_NOTFOUND, "'/no/such/program' not found");
    place_done(&p);
}

static void not_executable(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    refused(&p, (struct proc_opts) { 0 }, put(&p, "plain", "#!/bin/sh\n", 0644), ERR_NOEXEC,
            "is not executable");
    fails(&p, (struct proc_opts) { .path = p.path }, "/x", NULL, ERR_NOEXEC, "is not executable");
    place_done(&p);
}

static void directory(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    refused(&p, (struct proc_opts) { 0 }, "/usr/bin/", ERR_NOEXEC, "is a directory");
    fails(&p, (struct proc_opts) { .path = "/usr/bin" }, "/x", NULL, ERR_NOEXEC, "is a directory");
    place_done(&p);
}

static void script_without_interpreter(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    fails(&p, (struct proc_opts) { 0 }, put(&p, "script", "echo hello\n", 0755), NULL, ERR_NOEXEC,
          "starts with '#!'");
    fails(&p, (struct proc_opts) { 0 }, put(&p, "empty", "", 0755), NULL, ERR_NOEXEC, "is empty");
    place_done(&p);
}

static void interpreter_missing(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    fails(&p, (struct proc_opts) { 0 }, put(&p, "script", "#! /no/such/sh -e\necho\n", 0755), NULL,
          ERR_NOEXEC, "its interpreter '/no/such/sh' does not exist");
    fails(&p, (struct proc_opts) { 0 }, put(&p, "dos", "#!/bin/sh\r\necho\r\n", 0755), NULL,
          ERR_NOEXEC, "carriage return");
    place_done(&p);
}

static void foreign_machine(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    fails(&p, (struct proc_opts) { 0 }, put(&p, "elf", "\177ELF\001\001\001garbage", 0755), NULL,
          ERR_NOEXEC, "another machine");
    place_done(&p);
}

static void script_with_interpreter_runs(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    fixture_go(&p.f, (struct proc_opts) { 0 },
               put(&p, "ok", "#!/bin/sh\necho \"$1\"; exit 3\n", 0755), "hi", NULL);
    assert_int_equal(p.f.result.value, 3);
    assert_string_equal(fixture_out(&p.f, PROC_STDOUT), "hi\n");
    place_done(&p);
}

static void working_directory(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    refused(&p, (struct proc_opts) { .cwd = "/no/such/dir" }, "/bin/true", ERR_INPUT,
            "'/no/such/dir' does not exist");
    refused(&p, (struct proc_opts) { .cwd = put(&p, "file", "", 0644) }, "/bin/true", ERR_INPUT,
            "does not exist");
    place_done(&p);
}

static void program_relative_to_its_directory(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    (void)put(&p, "tool", "#!/bin/sh\npwd\n", 0755);
    const char *const argv[] = { "./tool", NULL };
    fixture_go(&p.f, (struct proc_opts) { .argv = argv, .cwd = p.dir }, "/x", NULL, NULL);
    assert_int_equal(strncmp(fixture_out(&p.f, PROC_STDOUT), p.dir, strlen(p.dir)), 0);
    place_done(&p);
}

static void path_of_the_child_counts(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    (void)put(&p, "only-here", "#!/bin/sh\nexit 9\n", 0755);
    char var[96];
    (void)snprintf(var, sizeof var, "PATH=/usr/bin:%s", p.dir);
    const char *const env[] = { var, NULL };
    const char *const argv[] = { "only-here", NULL };
    fixture_go(&p.f, (struct proc_opts) { .argv = argv, .envp = env }, "/x", NULL, NULL);
    assert_int_equal(p.f.result.value, 9);
    place_done(&p);
}

static void arguments_too_long(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    char *huge = malloc(200001);
    assert_non_null(huge);
    memset(huge, 'x', 200000);
    huge[200000] = '\0';
    fails(&p, (struct proc_opts) { 0 }, "/bin/true", huge, ERR_LIMIT, "too long");
    free(huge);
    place_done(&p);
}

static void nothing_to_start(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    const char *const argv[] = { NULL };
    refused(&p, (struct proc_opts) { .argv = argv }, "/x", ERR_USAGE, "no program");
    const char *const empty[] = { "", NULL };
    refused(&p, (struct proc_opts) { .argv = empty }, "/x", ERR_NOTFOUND, "is empty");
    place_done(&p);
}

static void helper_missing(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    assert_int_equal(setenv("CINCH_INIT", "/no/such/cinch-init", 1), 0);
    refused(&p, (struct proc_opts) { 0 }, "/bin/true", ERR_UNAVAILABLE, "/no/such/cinch-init");
    refused(&p, (struct proc_opts) { .init = "/no/such/other" }, "/bin/true", ERR_NOTFOUND,
            "/no/such/other");
    place_done(&p);
}

static void helper_is_another_program(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    fails(&p, (struct proc_opts) { .init = "/bin/false" }, "/bin/true", NULL, ERR_SYS,
          "cinch-init ended unexpectedly (exit code 1)");
    place_done(&p);
}

static void helper_never_answers(void **state)
{
    (void)state;
    struct place p;
    place_init(&p);
    (void)put(&p, "hang", "#!/bin/sh\nexec sleep 1000 3>&-\n", 0755);
    struct proc_opts o = { .init = p.path, .patience = MS(100), .drain = MS(100) };
    assert_int_equal(fixture_start(&p.f, o, "/bin/true", NULL, NULL), 0);
    proc_kill(p.f.proc);
    loop_run(p.f.loop);
    assert_string_equal(p.f.order, "fd");
    place_done(&p);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing),
        cmocka_unit_test(vanished_between_look_and_exec),
        cmocka_unit_test(not_executable),
        cmocka_unit_test(directory),
        cmocka_unit_test(script_without_interpreter),
        cmocka_unit_test(interpreter_missing),
        cmocka_unit_test(foreign_machine),
        cmocka_unit_test(script_with_interpreter_runs),
        cmocka_unit_test(working_directory),
        cmocka_unit_test(program_relative_to_its_directory),
        cmocka_unit_test(path_of_the_child_counts),
        cmocka_unit_test(arguments_too_long),
        cmocka_unit_test(nothing_to_start),
        cmocka_unit_test(helper_missing),
        cmocka_unit_test(helper_is_another_program),
        cmocka_unit_test(helper_never_answers),
    };
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
