/* SPDX-License-Identifier: MIT
 *
 * What goes into a supervised program and what comes out of it: input, output, environment,
 * descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fixture.h"
#include "io/timer.h"
#include "isolated.h"

/* A sanitized helper takes fifty times as long to start. */
#if defined(__SANITIZE_ADDRESS__)
#define STARTS 200
#else
#define STARTS 1000
#endif

#define MS(n) ((n)*NSEC_PER_MS)

static void stdin_closed_is_end_of_file(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "count_stdin", NULL, NULL);
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "0 0\n");
    fixture_done(&f);
}

static void stdin_bytes_arrive(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    size_t len = (size_t)3 << 20;
    char *bytes = malloc(len);
    assert_non_null(bytes);
    memset(bytes, 1, len);
    struct proc_opts o = { .stdin_mode = PROC_STDIN_BYTES, .stdin_bytes = { bytes, len } };
    assert_int_equal(fixture_start(&f, o, "count_stdin", NULL, NULL), 0);
    free(bytes); /* copied */
    loop_run(f.loop);
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "3145728 3145728\n");
    fixture_done(&f);
}

static void stdin_empty_bytes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { .stdin_mode = PROC_STDIN_BYTES }, "count_stdin", NULL,
               NULL);
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "0 0\n");
    fixture_done(&f);
}

static void stdin_is_never_read(void **state)
{
    (void)state;
    size_t len = (size_t)10 << 20;
    char *bytes = calloc(1, len);
    assert_non_null(bytes);
    struct proc_opts o = { .stdin_mode = PROC_STDIN_BYTES, .stdin_bytes = { bytes, len } };
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, o, "silent_sleep", "0.05", NULL);
    assert_int_equal(f.result.value, 0);
    assert_string_equal(f.order, "sxd");
    fixture_done(&f);
    fixture_init(&f);
    fixture_go(&f, o, "exit_with", "4", NULL);
    assert_int_equal(f.result.value, 4);
    fixture_done(&f);
    free(bytes);
}

/* More than the pipe takes at once, so that a part of it is always queued and later reported. */
static char piece[1500000];

static void write_more(void *arg)
{
    struct fixture *f = arg;
    static int round;
    if (++round < 4) {
        assert_int_equal(proc_write(f->proc, str_n(piece, sizeof piece), NULL), 0);
    } else {
        proc_close_stdin(f->proc);
        proc_close_stdin(f->proc);
        assert_int_equal(proc_write(f->proc, STR("too late"), NULL), 0);
    }
}

static void stdin_pipe_in_pieces(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    memset(piece, 2, sizeof piece);
    struct proc_opts o = { .stdin_mode = PROC_STDIN_PIPE,
                           .stdin_max = sizeof piece,
                           .port = { .on_stdin_drained = write_more } };
    assert_int_equal(fixture_start(&f, o, "count_stdin", NULL, NULL), 0);
    assert_int_equal(proc_write(f.proc, str_n(piece, sizeof piece), NULL), 0);
    loop_run(f.loop);
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "6000000 12000000\n");
    fixture_done(&f);
}

static void stdin_queue_is_bounded(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    fixture_init(&f);
    struct proc_opts o = { .stdin_mode = PROC_STDIN_PIPE, .stdin_max = 100000 };
    assert_int_equal(fixture_start(&f, o, "silent_sleep", NULL, NULL), 0);
    const size_t part = 100000;
    int rc = 0;
    size_t taken = 0;
    while (rc == 0 && taken < (size_t)4 << 20) {
        rc = proc_write(f.proc, str_n(piece, part), &e);
        taken += rc == 0 ? part : 0;
    }
    assert_int_equal(rc, -ERR_LIMIT);
    assert_true(taken <= ((size_t)1 << 20) + 2 * part);
    proc_kill(f.proc);
    loop_run(f.loop);
    assert_string_equal(f.order, "sxd");
    fixture_done(&f);
}

static void stdin_from_a_file(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    char name[] = "/tmp/cinch-test-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "abc", 3), 3);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    struct proc_opts o = { .stdin_mode = PROC_STDIN_FD, .stdin_fd = fd };
    fixture_go(&f, o, "count_stdin", NULL, NULL);
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "3 294\n");
    assert_int_equal(close(fd), 0); /* still ours */
    (void)unlink(name);
    fixture_done(&f);
}

/* A line of print_env's answer. */
static bool has_line(const struct fixture *f, const char *line)
{
    char want[4200];
    (void)snprintf(want, sizeof want, "\n%s\n", line);
    struct buf all = BUF_INIT(BUF_TEXT);
    buf_adds(&all, "\n");
    buf_add(&all, buf_str(&f->out[PROC_STDOUT]));
    bool found = strstr(all.ptr, want) != NULL;
    buf_done(&all);
    return found;
}

static size_t count_lines(const struct fixture *f, const char *prefix)
{
    size_t n = 0;
    struct str text = buf_str(&f->out[PROC_STDOUT]);
    while (text.ptr != NULL) {
        n += str_starts(str_split(&text, '\n'), str_of(prefix));
    }
    return n;
}

static void what_a_program_inherits(void **state)
{
    (void)state;
    /* An open descriptor without CLOEXEC, a blocked signal, an ignored one, an odd umask: none may
     * pass. */
    int stray = dup2(1, 50);
    assert_int_equal(stray, 50);
    sigset_t block;
    (void)sigemptyset(&block);
    (void)sigaddset(&block, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &block, NULL);
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void)sigaction(SIGUSR2, &ignore, NULL);
    (void)sigaction(SIGCHLD, &ignore, NULL);

    struct fixture f;
    fixture_init(&f);
    const char *const env[] = { "A=1", "EMPTY=", "B=x y\tz", NULL };
    const char *args[] = { "own-name", "", "two words", NULL };
    const struct proc_limit limits[] = { { RLIMIT_NOFILE, 64, 128 } };
    struct proc_opts o = {
        .path = fixture_program(&f, "print_env"),
        .argv = args,
        .envp = env,
        .cwd = "/usr/lib/../bin",
        .set_umask = true,
        .umask = 027,
        .limits = limits,
        .n_limits = 1,
    };
    fixture_go(&f, o, "print_env", NULL, NULL);
    assert_int_equal(f.result.value, 0);
    assert_true(has_line(&f, "env A=1"));
    assert_true(has_line(&f, "env EMPTY="));
    assert_true(has_line(&f, "env B=x y\tz"));
    assert_int_equal(count_lines(&f, "env "), 3);
    assert_true(has_line(&f, "arg own-name"));
    assert_true(has_line(&f, "arg "));
    assert_true(has_line(&f, "arg two words"));
    assert_int_equal(count_lines(&f, "arg "), 3);
    assert_true(has_line(&f, "cwd /usr/bin"));
    assert_true(has_line(&f, "umask 027"));
    assert_true(has_line(&f, "session 1"));
    assert_true(has_line(&f, "core 0"));
    assert_true(has_line(&f, "files 64"));
    assert_true(has_line(&f, "fd 0 /dev/null"));
    assert_int_equal(count_lines(&f, "fd 1 pipe:"), 1);
    assert_int_equal(count_lines(&f, "fd 2 pipe:"), 1);
    assert_int_equal(count_lines(&f, "fd "), 3);
    assert_true(has_line(&f, "SigBlk:\t0000000000000000"));
    assert_true(has_line(&f, "SigIgn:\t0000000000000000"));
    fixture_done(&f);
}

static void works_without_own_stdio(void **state)
{
    (void)state;
    /* The control socket and the pipes then get the numbers 0, 1, 2 in this process. */
    int saved = dup(2);
    (void)close(0);
    (void)close(1);
    (void)close(2);
    struct fixture f;
    fixture_init(&f);
    struct proc_opts o = { .stdin_mode = PROC_STDIN_BYTES, .stdin_bytes = STR("xyz") };
    fixture_go(&f, o, "count_stdin", NULL, NULL);
    (void)dup2(saved, 1);
    (void)dup2(saved, 2);
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "3 363\n");
    fixture_done(&f);
}

struct flood_check {
    struct fixture f;
    size_t at;
    bool wrong;
    struct timer *timer;
};

static void check_flood(void *arg, enum proc_stream s, struct str bytes)
{
    struct flood_check *c = CONTAINER_OF(arg, struct flood_check, f);
    for (size_t i = 0; s == PROC_STDOUT && i < bytes.len; i++) {
        c->wrong |= bytes.ptr[i] != (char)('a' + (c->at + i) % 23);
    }
    c->at += bytes.len;
}

static void run_flood(struct flood_check *c, const char *bytes,
                      void (*on_output)(void *, enum proc_stream, struct str))
{
    fixture_init(&c->f);
    const char *args[] = { fixture_program(&c->f, "flood"), bytes, NULL };
    struct proc_opts o = { .argv = args,
                           .port = { .on_output = on_output,
                                     .on_exit = fixture_on_exit,
                                     .on_done = fixture_on_done,
                                     .arg = &c->f } };
    assert_int_equal(proc_start(c->f.loop, &o, &c->f.proc, NULL), 0);
    loop_run(c->f.loop);
}

static void flood_is_exact_and_bounded(void **state)
{
    (void)state;
    struct flood_check c = { 0 };
    run_flood(&c, "200000000", check_flood);
    assert_int_equal(c.at, 200000000);
    assert_false(c.wrong);
    struct rusage ru;
    (void)getrusage(RUSAGE_SELF, &ru);
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(ru.ru_maxrss < 16 * 1024);
#endif
    fixture_done(&c.f);
}

static void resume(void *arg)
{
    struct flood_check *c = arg;
    proc_resume(c->f.proc, PROC_STDOUT);
}

static void check_with_pauses(void *arg, enum proc_stream s, struct str bytes)
{
    struct flood_check *c = CONTAINER_OF(arg, struct flood_check, f);
    size_t before = c->at;
    check_flood(arg, s, bytes);
    if (before / 1000000 != c->at / 1000000) {
        proc_pause(c->f.proc, PROC_STDOUT);
        if (c->timer == NULL) {
            assert_int_equal(timer_new(c->f.loop, resume, c, &c->timer, NULL), 0);
        }
        timer_arm(c->timer, clock_now() + MS(5));
    }
}

static void paused_stream_loses_nothing(void **state)
{
    (void)state;
    struct flood_check c = { 0 };
    run_flood(&c, "9000000", check_with_pauses);
    assert_int_equal(c.at, 9000000);
    assert_false(c.wrong);
    (void)timer_free(c.timer);
    fixture_done(&c.f);
}

static void bytes_arrive_one_by_one(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "split_utf8", NULL, NULL);
    assert_string_equal(fixture_out(&f, PROC_STDOUT),
                        "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa7\n");
    fixture_done(&f);
}

static void streams_are_told_apart(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "flood", "100", "stderr");
    assert_int_equal(f.bytes[PROC_STDOUT], 0);
    assert_int_equal(f.bytes[PROC_STDERR], 100);
    fixture_done(&f);
}

static void many_starts_leak_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "exit_with", "0", NULL);
    size_t fds = fixture_count_fds();
    size_t memory = 0;
    for (int i = 0; i < STARTS; i++) {
        if (i == 100) {
            memory = mallinfo2().uordblks; /* pools have found their size */
        }
        memset(f.order, 0, sizeof f.order);
        fixture_go(&f, (struct proc_opts) { 0 }, "exit_with", "0", NULL);
        assert_string_equal(f.order, "sxd");
    }
    assert_int_equal(fixture_count_fds(), fds);
    assert_true(mallinfo2().uordblks <= memory + 4096);
    fixture_done(&f);
}

static void no_descriptor_is_left(void **state)
{
    (void)state;
    struct fixture f;
    size_t before = fixture_count_fds();
    fixture_init(&f);
    struct proc_opts o = { .stdin_mode = PROC_STDIN_BYTES,
                           .stdin_bytes = STR("x"),
                           .drain = MS(50) };
    fixture_go(&f, o, "daemonize", "hold", NULL);
    fixture_done(&f);
    size_t after = fixture_count_fds();
    /* libuv opens a pipe for signals at the first loop of a process and keeps it; so does
     * proc/locate.h with the helper. */
    assert_true(after <= before + 3);
    fixture_init(&f);
    fixture_go(&f, o, "daemonize", "hold", NULL);
    fixture_done(&f);
    assert_int_equal(fixture_count_fds(), after);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(stdin_closed_is_end_of_file), cmocka_unit_test(stdin_bytes_arrive),
        cmocka_unit_test(stdin_empty_bytes),           cmocka_unit_test(stdin_is_never_read),
        cmocka_unit_test(stdin_pipe_in_pieces),        cmocka_unit_test(stdin_queue_is_bounded),
        cmocka_unit_test(stdin_from_a_file),           cmocka_unit_test(what_a_program_inherits),
        cmocka_unit_test(works_without_own_stdio),     cmocka_unit_test(flood_is_exact_and_bounded),
        cmocka_unit_test(paused_stream_loses_nothing), cmocka_unit_test(bytes_arrive_one_by_one),
        cmocka_unit_test(streams_are_told_apart),      cmocka_unit_test(many_starts_leak_nothing),
        cmocka_unit_test(no_descriptor_is_left),
    };
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
