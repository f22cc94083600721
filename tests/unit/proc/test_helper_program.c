/* SPDX-License-Identifier: MIT
 *
 * Errands with real programs: every way in which one can end, and that nothing is left after it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "io/loop.h"
#include "isolated.h"
#include "proc/helper_program.h"

#define MS(n) ((n)*NSEC_PER_MS)

/* Several helpers may run at once: `open` counts them, the loop stops at the last. */
struct fixture {
    struct arena *arena;
    struct loop *loop;
    struct helper_host host;
    struct helper *helper;
    int open, told;
    struct helper_result r; /* of the last one */
    struct buf out, err, why;
    char dir[64];
    char path[4096];
    const char *envp[4];
    const char *placed_in; /* layer that place() was asked for */
    int places;
};

static void on_done(void *arg, const struct helper_result *r)
{
    struct fixture *f = arg;
    f->r = *r;
    buf_reset(&f->out);
    buf_reset(&f->err);
    buf_reset(&f->why);
    buf_add(&f->out, r->out);
    buf_add(&f->err, r->err);
    buf_adds(&f->why, r->why == NULL ? "" : r->why);
    f->told++;
    if (--f->open == 0) {
        loop_stop(f->loop);
    }
}

static void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->arena = arena_new();
    assert_int_equal(loop_new(&f->loop, NULL), 0);
    buf_init(&f->out, BUF_TEXT);
    buf_init(&f->err, BUF_TEXT);
    buf_init(&f->why, BUF_TEXT);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/cinch-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "PATH=%s:/usr/bin:/bin", getenv("CINCH_TEST_PROGRAMS"));
    f->envp[0] = f->path;
    f->envp[1] = "COLOUR=red";
    f->envp[2] = "SHAPE=round";
    f->host = (struct helper_host) { .loop = f->loop, .envp = f->envp, .cwd = f->dir };
}

static void fixture_done(struct fixture *f)
{
    buf_done(&f->out);
    buf_done(&f->err);
    buf_done(&f->why);
    assert_int_equal(file_remove_tree(AT_FDCWD, f->dir, NULL), 0);
    f->loop = loop_free(f->loop);
    f->arena = arena_free(f->arena);
}

static int start(struct fixture *f, struct helper_opts o, struct err *e)
{
    o.host = &f->host;
    o.done = on_done;
    o.arg = f;
    int rc = helper_start(&o, &f->helper, e);
    f->open += rc == 0;
    return rc;
}

static void go(struct fixture *f, struct helper_opts o)
{
    struct err e = { .code = ERR_OK };
    if (start(f, o, &e) != 0) {
        fail_msg("%s", e.msg);
    }
    loop_run(f->loop);
    assert_int_equal(f->open, 0);
}

static struct helper_opts shell(struct fixture *f, const char *script)
{
    const char **argv = arena_array(f->arena, 4, sizeof *argv);
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = script;
    argv[3] = NULL;
    return (struct helper_opts) { .argv = argv };
}

static const char *out(const struct fixture *f)
{
    return f->out.ptr == NULL ? "" : f->out.ptr;
}

#define assert_says(text, part)                             \
    do {                                                    \
        if (strstr((text), (part)) == NULL) {               \
            fail_msg("'%s' does not say '%s'", text, part); \
        }                                                   \
    } while (0)

static void answers(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct helper_opts o = shell(&f, "cat; echo warned >&2");
    o.input = STR("{\"a\": 1}\n");
    go(&f, o);
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.r.value, 0);
    assert_string_equal(out(&f), "{\"a\": 1}\n");
    assert_string_equal(f.err.ptr, "warned\n");
    assert_null(f.r.why);
    assert_int_equal(f.r.leaked, 0);
    assert_true(f.r.took > 0);
    fixture_done(&f);
}

static void input_is_whole(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    const char *argv[] = { "count_stdin", NULL };
    size_t n = (size_t)3 << 20;
    char *bytes = xmalloc(n);
    memset(bytes, 1, n);
    go(&f, (struct helper_opts) { .argv = argv, .input = str_n(bytes, n) });
    assert_says(out(&f), "3145728");
    /* One that reads none of it is no failure. */
    const char *deaf[] = { "exit_with", "0", NULL };
    go(&f, (struct helper_opts) { .argv = deaf, .input = str_n(bytes, n) });
    assert_int_equal(f.r.end, HELPER_EXITED);
    free(bytes);
    fixture_done(&f);
}

static void code_and_signal(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    go(&f, shell(&f, "echo partly; exit 7"));
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.r.value, 7);
    assert_string_equal(out(&f), "partly\n");
    assert_string_equal(f.why.ptr, "it exited with code 7");
    go(&f, shell(&f, "kill -SEGV $$"));
    assert_int_equal(f.r.end, HELPER_SIGNALLED);
    assert_int_equal(f.r.value, SIGSEGV);
    assert_says(f.why.ptr, "signal 11");
    fixture_done(&f);
}

static void flood_is_cut(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct helper_opts o = shell(&f, "flood 100000000");
    o.max_output = 10000;
    go(&f, o);
    assert_int_equal(f.r.end, HELPER_FLOOD);
    assert_int_equal(f.out.len, 10000);
    assert_int_equal(f.r.leaked, 0); /* killed, not left behind */
    assert_says(f.why.ptr, "more than 10000 bytes");
    /* Exactly the limit is no flood. */
    o = shell(&f, "flood 10000");
    o.max_output = 10000;
    go(&f, o);
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.out.len, 10000);
    fixture_done(&f);
}

static void end_of_stderr_is_kept(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    go(&f, shell(&f, "flood 3000000 stderr; echo the reason >&2; exit 1"));
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.err.len, HELPER_STDERR_MAX);
    assert_true(str_ends(buf_str(&f.err), STR("the reason\n")));
    fixture_done(&f);
}

static void too_long(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct helper_opts o = shell(&f, "echo begun; ignore_term & ignore_term");
    o.timeout = MS(300);
    go(&f, o);
    assert_int_equal(f.r.end, HELPER_TIMEOUT);
    assert_says(out(&f), "begun");
    assert_says(f.why.ptr, "more than 0.3 seconds");
    fixture_done(&f);
}

static void cancelled(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    fixture_init(&f);
    assert_int_equal(start(&f, shell(&f, "silent_sleep"), &e), 0);
    helper_cancel(f.helper);
    helper_cancel(f.helper);
    assert_int_equal(f.told, 0); /* from the loop, not from within */
    loop_run(f.loop);
    assert_int_equal(f.told, 1);
    assert_int_equal(f.r.end, HELPER_CANCELLED);
    fixture_done(&f);
}

/* Daemons that would write on: none is left at `done`, so nothing is written after it. */
static void over_means_over(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    go(&f, shell(&f, "(trap '' TERM; exec >/dev/null 2>&1; while :; do echo x >>beat; done) &"
                     "until test -s beat; do :; done; echo answer"));
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.r.value, 0);
    assert_string_equal(out(&f), "answer\n");
    assert_true(f.r.leaked >= 1);
    const char *argv[] = { "daemonize", NULL };
    go(&f, (struct helper_opts) { .argv = argv });
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.r.leaked, 1);
    assert_int_equal(kill((pid_t)strtol(out(&f), NULL, 10), 0), -1);
    assert_int_equal(errno, ESRCH);
    fixture_done(&f);
}

/* Somebody else holds the pipe: the answer is there all the same, soon. */
static void pipe_held_open(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct helper_opts o = shell(&f, "echo answer; silent_sleep & exit 3");
    o.timeout = MS(400);
    go(&f, o);
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.r.value, 3);
    assert_string_equal(out(&f), "answer\n");
    fixture_done(&f);
}

static struct json *parse(struct fixture *f, const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(f->arena, str_of(text), NULL, &v, NULL), 0);
    return v;
}

static void environment(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    fixture_init(&f);
    struct helper_opts o = shell(&f, "env | grep -v -e ^PATH= -e ^PWD= -e ^_= | sort; pwd");
    o.env = parse(&f, "{\"COLOUR\":\"blue\",\"N\":7,\"YES\":true,\"HALF\":0.5,\"SHAPE\":null}");
    go(&f, o);
    char want[160];
    (void)snprintf(want, sizeof want, "COLOUR=blue\nHALF=0.5\nN=7\nYES=true\n%s\n", f.dir);
    if (strstr(out(&f), "OLDPWD") != NULL || strstr(out(&f), "SHLVL") != NULL) {
        fail_msg("a shell that adds variables: %s", out(&f));
    }
    assert_string_equal(out(&f), want);

    static const struct {
        const char *env, *says;
    } bad[] = {
        { "{\"A=B\":\"\"}", "'A=B' cannot be the name" },
        { "{\"\":\"x\"}", "'' cannot be the name" },
        { "{\"A\":[1]}", "'A' cannot hold an array" },
        { "{\"A\":\"x\\u0000y\"}", "'A' cannot hold a NUL" },
        { "[1]", "not array" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        o.env = parse(&f, bad[i].env);
        assert_int_equal(start(&f, o, &e), -ERR_CONFIG);
        assert_says(e.msg, bad[i].says);
    }
    fixture_done(&f);
}

static void put(struct fixture *f, const char *name, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", f->dir, name);
    assert_int_equal(file_write_atomic(AT_FDCWD, path, str_of(text), 0755, NULL), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static void where_programs_are(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    fixture_init(&f);
    put(&f, "mine", "#!/bin/sh\necho mine $0 $1\n");
    const char *relative[] = { "./mine", "x", NULL };
    go(&f, (struct helper_opts) { .argv = relative });
    assert_says(out(&f), "./mine x\n");
    put(&f, "broken", "#!/no/such/interpreter\n");
    const char *broken[] = { "./broken", NULL };
    go(&f, (struct helper_opts) { .argv = broken });
    assert_int_equal(f.r.end, HELPER_NOT_STARTED);
    assert_says(f.why.ptr, "broken");

    const char *unknown[] = { "no-such-program", NULL };
    assert_int_equal(start(&f, (struct helper_opts) { .argv = unknown }, &e), -ERR_NOTFOUND);
    assert_says(e.msg, "'no-such-program' not found in PATH");
    const char *gone[] = { "./gone", NULL };
    assert_int_equal(start(&f, (struct helper_opts) { .argv = gone }, &e), -ERR_NOTFOUND);
    const char *none[] = { NULL };
    assert_int_equal(start(&f, (struct helper_opts) { .argv = none }, &e), -ERR_CONFIG);
    assert_int_equal(f.told, 2);
    fixture_done(&f);
}

/* A place that takes nobody in: what matters is whether and how it was asked. */
static int no_entry(const struct proc_place *place, int control,
                    void (*on_gone)(void *arg, int status, const struct err *why), void *arg,
                    uint32_t *ret_ticket, struct err *e)
{
    (void)place, (void)control, (void)on_gone, (void)arg, (void)ret_ticket;
    return ERR(e, ERR_UNAVAILABLE, "nobody comes in here");
}

static bool place(void *arg, const char *layer, struct proc_place *ret)
{
    struct fixture *f = arg;
    f->places++;
    f->placed_in = layer;
    *ret = (struct proc_place) { .enter = no_entry, .uid = getuid(), .gid = getgid() };
    return true;
}

static void in_a_place(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    fixture_init(&f);
    f.host.place = place;
    f.host.arg = &f;
    struct helper_opts o = shell(&f, "true");
    o.layer = "7";
    assert_int_equal(start(&f, o, &e), -ERR_UNAVAILABLE);
    assert_string_equal(f.placed_in, "7");
    /* Programs of the workspace are not looked for out here. */
    const char *relative[] = { "./only-inside", NULL };
    assert_int_equal(start(&f, (struct helper_opts) { .argv = relative }, &e), -ERR_UNAVAILABLE);
    o.outside = true;
    go(&f, o);
    assert_int_equal(f.r.end, HELPER_EXITED);
    assert_int_equal(f.places, 2);
    fixture_done(&f);
}

static void side_by_side(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    fixture_init(&f);
    /* Each waits for a file that the next one makes: they can only end together. */
    char script[8][64];
    for (int i = 0; i < 8; i++) {
        (void)snprintf(script[i], sizeof script[i], ">f%d; until test -e f%d; do :; done", i,
                       (i + 1) % 8);
        assert_int_equal(start(&f, shell(&f, script[i]), &e), 0);
    }
    loop_run(f.loop);
    assert_int_equal(f.told, 8);
    assert_int_equal(f.r.end, HELPER_EXITED);
    fixture_done(&f);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),         cmocka_unit_test(input_is_whole),
        cmocka_unit_test(code_and_signal), cmocka_unit_test(flood_is_cut),
        cmocka_unit_test(too_long),        cmocka_unit_test(end_of_stderr_is_kept),
        cmocka_unit_test(cancelled),       cmocka_unit_test(over_means_over),
        cmocka_unit_test(pipe_held_open),  cmocka_unit_test(environment),
        cmocka_unit_test(in_a_place),      cmocka_unit_test(where_programs_are),
        cmocka_unit_test(side_by_side),
    };
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
