/* SPDX-License-Identifier: MIT
 *
 * Control messages: descriptors travel, ends are seen, malformed messages are not let in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init/control.h"

static void make_pair(int s[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s), 0);
}

static void command_with_descriptors(void **state)
{
    (void)state;
    int s[2];
    int p[2];
    int got[4];
    size_t n = 0;
    make_pair(s);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    struct control_command c = { .type = CONTROL_START, .id = 7 };
    assert_int_equal(control_send_command(s[0], &c, p, 2, NULL), 0);
    struct control_command r;
    assert_int_equal(control_recv_command(s[1], &r, got, 4, &n, NULL), CONTROL_RECV_MESSAGE);
    assert_int_equal(r.type, CONTROL_START);
    assert_int_equal(r.id, 7);
    assert_int_equal(n, 2);
    assert_int_equal(fcntl(got[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(write(got[1], "x", 1), 1);
    char byte = 0;
    assert_int_equal(read(p[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    for (int i = 0; i < 2; i++) {
        (void)close(got[i]);
        (void)close(p[i]);
        (void)close(s[i]);
    }
}

static void descriptors_without_room_are_closed(void **state)
{
    (void)state;
    int s[2];
    int p[2];
    int got[1];
    size_t n = 0;
    make_pair(s);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    int next = dup(0); /* the number that a leaked descriptor would get */
    (void)close(next);
    struct control_command c = { .type = CONTROL_START, .id = 1 };
    assert_int_equal(control_send_command(s[0], &c, p, 2, NULL), 0);
    struct control_command r;
    assert_int_equal(control_recv_command(s[1], &r, got, 1, &n, NULL), CONTROL_RECV_MESSAGE);
    assert_int_equal(n, 1);
    (void)close(got[0]);
    int again = dup(0);
    assert_int_equal(again, next);
    (void)close(again);
    for (int i = 0; i < 2; i++) {
        (void)close(p[i]);
        (void)close(s[i]);
    }
}

static void status_and_end(void **state)
{
    (void)state;
    int s[2];
    make_pair(s);
    struct control_status out;
    struct control_status in;
    memset(&out, 0, sizeof out);
    assert_int_equal(control_recv_status(s[1], &in, NULL), CONTROL_RECV_NOTHING);
    out.type = CONTROL_STATUS_EXITED;
    out.id = 1;
    out.exit.value = 42;
    assert_int_equal(control_send_status(s[0], &out, NULL), 0);
    /* The peer dies with unread mail: ECONNRESET must not hide what it said before. */
    struct control_command unread = { .type = CONTROL_KILL };
    assert_int_equal(control_send_command(s[1], &unread, NULL, 0, NULL), 0);
    (void)close(s[0]);
    assert_int_equal(control_recv_status(s[1], &in, NULL), CONTROL_RECV_MESSAGE);
    assert_int_equal(in.exit.value, 42);
    assert_int_equal(control_recv_status(s[1], &in, NULL), CONTROL_RECV_EOF);
    assert_int_equal(control_recv_status(s[1], &in, NULL), CONTROL_RECV_EOF);
    struct err e;
    assert_int_equal(control_send_command(s[1], &unread, NULL, 0, &e), -ERR_SYS); /* no SIGPIPE */
    (void)close(s[1]);
}

static void wrong_sizes_are_refused(void **state)
{
    (void)state;
    int s[2];
    char junk[4096] = { 1 };
    struct control_status st;
    struct control_command c;
    int fds[1];
    size_t n;
    make_pair(s);
    static const size_t sizes[] = { 1,   sizeof c - 1, sizeof c + 1, sizeof st - 1, sizeof st + 1,
                                    4096 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(send(s[0], junk, sizes[i], 0), sizes[i]);
        assert_int_equal(control_recv_command(s[1], &c, fds, 1, &n, NULL), -ERR_PROTO);
        assert_int_equal(n, 0);
        assert_int_equal(send(s[0], junk, sizes[i], 0), sizes[i]);
        assert_int_equal(control_recv_status(s[1], &st, NULL), -ERR_PROTO);
    }
    (void)close(s[0]);
    (void)close(s[1]);
}

static void malformed_commands(void **state)
{
    (void)state;
    assert_true(
        control_command_ok(&(struct control_command) { .type = CONTROL_SIGNAL, .signo = 15 }));
    assert_false(
        control_command_ok(&(struct control_command) { .type = CONTROL_SIGNAL, .signo = 0 }));
    assert_false(
        control_command_ok(&(struct control_command) { .type = CONTROL_SIGNAL, .signo = 65 }));
    assert_false(control_command_ok(&(struct control_command) { .type = CONTROL_START }));
    assert_false(control_command_ok(&(struct control_command) { .type = CONTROL_KILL, .id = 1 }));
    assert_false(control_command_ok(&(struct control_command) { .type = 0 }));
    assert_false(control_command_ok(&(struct control_command) { .type = CONTROL_COMMAND_MAX }));
    assert_false(
        control_command_ok(&(struct control_command) { .type = CONTROL_CPU, .reserved = 1 }));
}

static void malformed_status(void **state)
{
    (void)state;
    struct control_status s;
    memset(&s, 0, sizeof s);
    assert_false(control_status_ok(&s));
    s.type = CONTROL_STATUS_START_FAILED;
    s.id = 1;
    s.error.code = ERR_NOEXEC;
    assert_true(control_status_ok(&s));
    memset(s.error.msg, 'x', sizeof s.error.msg);
    assert_false(control_status_ok(&s));
    s.error.msg[3] = '\0';
    s.error.code = ERR_CODE_MAX;
    assert_false(control_status_ok(&s));
    memset(&s, 0, sizeof s);
    s.type = CONTROL_STATUS_FINISHED;
    s.finished.n_names = CONTROL_NAMES_MAX;
    assert_true(control_status_ok(&s));
    memset(s.finished.names[15], 'x', CONTROL_NAME_LEN);
    assert_false(control_status_ok(&s));
    s.finished.n_names = CONTROL_NAMES_MAX + 1;
    assert_false(control_status_ok(&s));
}

static void errors_cross_the_border(void **state)
{
    (void)state;
    struct err in;
    struct err out;
    struct control_err wire;
    (void)ERR(&in, ERR_NOEXEC, "'%s' is a directory", "/usr");
    in.sys = 13;
    control_err_from(&wire, &in);
    control_err_to(&wire, &out);
    assert_int_equal(out.code, ERR_NOEXEC);
    assert_int_equal(out.sys, 13);
    assert_string_equal(out.msg, in.msg);
    assert_string_equal(out.file, "cinch-init"); /* never a pointer of the other process */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_with_descriptors),
        cmocka_unit_test(descriptors_without_room_are_closed),
        cmocka_unit_test(status_and_end),
        cmocka_unit_test(wrong_sizes_are_refused),
        cmocka_unit_test(malformed_commands),
        cmocka_unit_test(malformed_status),
        cmocka_unit_test(errors_cross_the_border),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
