/* SPDX-License-Identifier: MIT
 *
 * Tools that are programs: what reaches them, what their output means, and how each misbehaviour
 * is told. The bridge's side of a call is played by the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "base/file.h"
#include "io/loop.h"
#include "isolated.h"
#include "proc/helper_program.h"
#include "tools/tool_program.h"

#define MS(n) ((n)*NSEC_PER_MS)

struct fixture {
    struct arena *arena;
    struct loop *loop;
    struct helper_host host;
    char dir[64];
    char path[4096];
    const char *envp[3];
    struct tool tool;
    struct tool_run run;
    int done;
    bool running;
    struct tool_result result; /* copied into the arena */
};

/* In place of the bridge. */
void tool_run_done(struct tool_run *run, const struct tool_result *result)
{
    struct fixture *f = CONTAINER_OF(run, struct fixture, run);
    f->done++;
    f->result = *result;
    f->result.message = arena_str(f->arena, result->message);
    f->result.value = result->value == NULL ? NULL : json_copy(f->arena, result->value);
    f->result.state = result->state == NULL ? NULL : json_copy(f->arena, result->state);
    if (f->running) {
        loop_stop(f->loop);
    }
}

static void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->arena = arena_new();
    assert_int_equal(loop_new(&f->loop, NULL), 0);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/cinch-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "PATH=%s:/usr/bin:/bin", getenv("CINCH_TEST_PROGRAMS"));
    f->envp[0] = f->path;
    f->envp[1] = "CINCH_TRACEPARENT=somebody-else's";
    f->host = (struct helper_host) { .loop = f->loop, .envp = f->envp, .cwd = f->dir };
    f->tool = (struct tool) { .name = STR("probe"), .max_output = TOOL_OUTPUT };
    f->run = (struct tool_run) { .tool = &f->tool,
                                 .call_id = STR("call-1"),
                                 .host = &f->host,
                                 .timeout = TOOL_TIME,
                                 .arena = f->arena };
}

static void fixture_done(struct fixture *f)
{
    assert_int_equal(file_remove_tree(AT_FDCWD, f->dir, NULL), 0);
    f->loop = loop_free(f->loop);
    f->arena = arena_free(f->arena);
}

static struct json *parse(struct fixture *f, const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(f->arena, str_of(text), NULL, &v, NULL), 0);
    return v;
}

static void bind_shell(struct fixture *f, const char *script, const char *more)
{
    struct json *d = parse(f, more == NULL ? "{}" : more);
    struct json *command = parse(f, "[\"sh\",\"-c\"]");
    json_push(f->arena, command, json_cstr(f->arena, script));
    json_setc(f->arena, d, "command", command);
    assert_int_equal(tool_program_bind(f->arena, d, &f->tool, NULL), 0);
    f->run.arguments = parse(f, "{\"text\":\"hi\",\"n\":2}");
}

static void wait_done(struct fixture *f)
{
    f->running = true;
    loop_run(f->loop);
    f->running = false;
}

static void call(struct fixture *f, const char *script)
{
    bind_shell(f, script, NULL);
    int before = f->done;
    f->tool.handler->start(f->tool.self, &f->run);
    wait_done(f);
    assert_int_equal(f->done, before + 1);
}

static const char *json_text(struct fixture *f, const struct json *v)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    if (v == NULL) {
        return "none";
    }
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    return arena_dup(f->arena, buf_str(&b));
}

static void has(struct fixture *f, enum tool_failure failure, const char *message,
                const char *value)
{
    assert_string_equal(f->result.message.ptr, message);
    assert_int_equal(f->result.failure, failure);
    assert_string_equal(json_text(f, f->result.value), value);
}

static void says(struct fixture *f, enum tool_failure failure, const char *part)
{
    if (strstr(f->result.message.ptr, part) == NULL) {
        fail_msg("'%s' does not say '%s'", f->result.message.ptr, part);
    }
    assert_int_equal(f->result.failure, failure);
}

static void gets_arguments_and_names(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    call(&f, "sed s/^/got:/; pwd; echo $CINCH_TOOL_NAME $CINCH_CALL_ID ${CINCH_TRACEPARENT-none}");
    has(&f, TOOL_OK,
        arena_printf(f.arena, "got:{\"text\":\"hi\",\"n\":2}\n%s\nprobe call-1 none", f.dir),
        "none");
    fixture_done(&f);
}

static void trace_context(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    const char *good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    f.run.meta = parse(&f, arena_printf(f.arena, "{\"traceparent\":\"%s\"}", good));
    call(&f, "echo ${CINCH_TRACEPARENT-none}");
    has(&f, TOOL_OK, good, "none");
    /* Nothing that a caller makes up reaches the environment. */
    const char *capital = "\"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"";
    const char *const bad[] = { "\"x\\u0000y\"", "7", capital };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        f.run.meta = parse(&f, arena_printf(f.arena, "{\"traceparent\":%s}", bad[i]));
        call(&f, "echo ${CINCH_TRACEPARENT-none}");
        has(&f, TOOL_OK, "none", "none");
    }
    f.run.call_id = STR("a\0b");
    call(&f, "echo ${CINCH_CALL_ID-none}");
    has(&f, TOOL_OK, "none", "none");
    fixture_done(&f);
}

static void own_environment(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bind_shell(&f, "echo $LEVEL $CINCH_TOOL_NAME",
               "{\"env\":{\"LEVEL\":3,\"CINCH_TOOL_NAME\":\"other\"}}");
    f.tool.handler->start(f.tool.self, &f.run);
    wait_done(&f);
    has(&f, TOOL_OK, "3 probe", "none");
    fixture_done(&f);
}

/* --- output --- */

static void answers(void **state)
{
    (void)state;
    static const struct {
        const char *out;
        int code;
        enum tool_failure failure;
        const char *message, *value;
    } cases[] = {
        { "", 0, TOOL_OK, "", "none" },
        { "plain\n text \n\n", 0, TOOL_OK, "plain\n text ", "none" },
        { " {\"message\":\"m\"}\n", 0, TOOL_OK, "m", "none" },
        { "{\"value\":[1,2]}", 0, TOOL_OK, "", "[1,2]" },
        { "{\"value\":null,\"message\":null}", 0, TOOL_OK, "", "none" },
        { "{\"success\":true}", 0, TOOL_OK, "", "none" },
        { "{\"success\":false,\"message\":\"no\",\"value\":{\"a\":1}}", 0, TOOL_FAILED, "no",
          "{\"a\":1}" },
        { "{\"success\":true,\"message\":\"m\"}", 1, TOOL_FAILED, "m", "none" },
        { "{\"success\":true}", 1, TOOL_FAILED, "{\"success\":true}", "none" },
        /* JSON, but no answer */
        { "{}", 0, TOOL_OK, "{}", "none" },
        { "{\"result\":1}", 0, TOOL_OK, "{\"result\":1}", "none" },
        { "{\"message\":\"m\",\"extra\":1}", 0, TOOL_OK, "{\"message\":\"m\",\"extra\":1}",
          "none" },
        { "{\"state\":[]}", 0, TOOL_OK, "{\"state\":[]}", "none" },
        { "[1, 2]", 0, TOOL_OK, "[1, 2]", "none" },
        { "[1, ", 0, TOOL_OK, "[1, ", "none" },
        /* failures */
        { "partly\n", 3, TOOL_FAILED, "partly", "none" },
        { "{\"mess", 3, TOOL_FAILED, "{\"mess", "none" },
        { " \n", 3, TOOL_FAILED, "last words", "none" },
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct helper_result r = { .end = HELPER_EXITED,
                                   .value = cases[i].code,
                                   .out = str_of(cases[i].out),
                                   .err = STR("last words\n"),
                                   .why = "it exited" };
        tool_program_read(&f.tool, f.arena, &r, &f.result);
        f.result.message = arena_str(f.arena, f.result.message);
        has(&f, cases[i].failure, cases[i].message, cases[i].value);
    }
    fixture_done(&f);
}

static void half_an_answer(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"message\": \"abc",
        "{",
        "{\"message\":\"a\"}{\"message\":\"b\"}",
        "{\"message\":1}",
        "{\"success\":\"false\"}",
        "{\"value\":1,\"state\":{}}",
        "{\"value\":1,\"exclude_value_from_context\":\"yes\"}",
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct helper_result r = { .end = HELPER_EXITED, .out = str_of(bad[i]), .leaked = 2 };
        tool_program_read(&f.tool, f.arena, &r, &f.result);
        says(&f, TOOL_BAD_OUTPUT, "no usable answer");
        assert_null(f.result.value);
        assert_int_equal(f.result.leaked, 2);
    }
    /* As deep as it may be, and one more. */
    for (int more = 0; more < 2; more++) {
        CLEANUP(buf) struct buf b = BUF_INIT(4096);
        int depth = TOOL_VALUE_DEPTH - 1 + more;
        buf_adds(&b, "{\"value\":");
        for (int i = 0; i < depth; i++) {
            buf_adds(&b, "[");
        }
        for (int i = 0; i < depth; i++) {
            buf_adds(&b, "]");
        }
        buf_adds(&b, "}");
        struct helper_result r = { .end = HELPER_EXITED, .out = buf_str(&b) };
        tool_program_read(&f.tool, f.arena, &r, &f.result);
        assert_int_equal(f.result.failure, more == 0 ? TOOL_OK : TOOL_BAD_OUTPUT);
    }
    fixture_done(&f);
}

static void with_output_schema(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.tool.output = (struct schema *)&f; /* only whether there is one matters here */
    static const struct {
        const char *out, *message, *value;
    } cases[] = {
        { "{\"lines\": 3}\n", "", "{\"lines\":3}" },
        { "[1, 2]", "", "[1,2]" },
        { "{\"value\": 3}", "", "3" },
        { "text", "text", "none" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct helper_result r = { .end = HELPER_EXITED, .out = str_of(cases[i].out) };
        tool_program_read(&f.tool, f.arena, &r, &f.result);
        f.result.message = arena_str(f.arena, f.result.message);
        has(&f, TOOL_OK, cases[i].message, cases[i].value);
    }
    fixture_done(&f);
}

static void state_and_exclusion(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    call(&f, "echo '{\"value\":1,\"state\":[{\"op\":\"append\",\"slice\":\"s\",\"value\":1}],"
             "\"exclude_value_from_context\":true}'");
    has(&f, TOOL_OK, "", "1");
    assert_true(f.result.exclude_value);
    assert_int_equal(json_len(f.result.state), 1);
    fixture_done(&f);
}

/* --- misbehaviour --- */

static void ends_badly(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    call(&f, "echo why >&2; kill -ABRT $$");
    says(&f, TOOL_CRASHED, "signal 6");
    says(&f, TOOL_CRASHED, "\nwhy");
    call(&f, "echo '{\"message\":\"fine\"}'; kill -KILL $$");
    says(&f, TOOL_CRASHED, "signal 9");
    f.run.timeout = MS(200);
    call(&f, "echo '{\"message\":\"fine\"}'; exec silent_sleep");
    says(&f, TOOL_TIMEOUT, "0.2 seconds");
    f.run.timeout = TOOL_TIME;
    f.tool.max_output = 5000;
    call(&f, "flood 1000000");
    says(&f, TOOL_FLOOD, "5000 bytes");
    f.tool.max_output = TOOL_OUTPUT;
    call(&f, "exit 4");
    says(&f, TOOL_FAILED, "exited with code 4");
    call(&f, "daemonize");
    assert_int_equal(f.result.failure, TOOL_OK);
    assert_int_equal(f.result.leaked, 1);
    fixture_done(&f);
}

static void huge_value(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    call(&f, "printf '{\"value\":\"'; flood 50000000; printf '\"}'");
    says(&f, TOOL_FLOOD, "1048576 bytes");
    assert_null(f.result.value);
    fixture_done(&f);
}

static void is_cancelled(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bind_shell(&f, "exec silent_sleep", NULL);
    f.tool.handler->start(f.tool.self, &f.run);
    f.tool.handler->cancel(f.tool.self, &f.run);
    wait_done(&f);
    assert_int_equal(f.done, 1);
    assert_int_equal(f.result.failure, TOOL_CANCELLED);
    fixture_done(&f);
}

static void cannot_be_started(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.run.arguments = parse(&f, "{}");
    const struct json *d = parse(&f, "{\"command\":[\"no-such-program\"]}");
    assert_int_equal(tool_program_bind(f.arena, d, &f.tool, NULL), 0);
    f.tool.handler->start(f.tool.self, &f.run);
    assert_int_equal(f.done, 1);
    says(&f, TOOL_INTERNAL, "'no-such-program' not found");
    fixture_done(&f);
}

static void bad_definitions(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    fixture_init(&f);
    static const char *const bad[] = { "{}", "{\"command\":[]}", "{\"command\":[\"\"]}",
                                       "{\"command\":[\"a\",1]}", "{\"command\":[\"a\\u0000b\"]}" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(tool_program_bind(f.arena, parse(&f, bad[i]), &f.tool, &e), -ERR_CONFIG);
        assert_non_null(strstr(e.msg, "'probe'"));
    }
    fixture_done(&f);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gets_arguments_and_names),
        cmocka_unit_test(trace_context),
        cmocka_unit_test(own_environment),
        cmocka_unit_test(answers),
        cmocka_unit_test(half_an_answer),
        cmocka_unit_test(with_output_schema),
        cmocka_unit_test(state_and_exclusion),
        cmocka_unit_test(ends_badly),
        cmocka_unit_test(huge_value),
        cmocka_unit_test(is_cancelled),
        cmocka_unit_test(cannot_be_started),
        cmocka_unit_test(bad_definitions),
    };
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
