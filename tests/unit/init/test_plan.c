/* SPDX-License-Identifier: MIT
 *
 * Plans: what is written is read back, and nothing malformed gets through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "init/plan.h"

static void write_sample(struct buf *b)
{
    assert_int_equal(plan_begin(b, PLAN_PROGRAM, NULL), 0);
    assert_int_equal(plan_add_fd(b, 0, 0, NULL), 0);
    assert_int_equal(plan_add_fd(b, 2, 1, NULL), 0);
    assert_int_equal(plan_add_text(b, PLAN_OP_CWD, "/tmp", NULL), 0);
    assert_int_equal(plan_add_umask(b, 027, NULL), 0);
    assert_int_equal(plan_add_limit(b, 4, 0, 10, NULL), 0);
    assert_int_equal(plan_add_text(b, PLAN_OP_EXE, "/bin/true", NULL), 0);
    assert_int_equal(plan_add_text(b, PLAN_OP_ARG, "true", NULL), 0);
    assert_int_equal(plan_add_text(b, PLAN_OP_ARG, "", NULL), 0);
    assert_int_equal(plan_add_text(b, PLAN_OP_ENV, "A=1", NULL), 0);
    assert_int_equal(plan_end(b, NULL), 0);
}

static void round_trip(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    write_sample(&b);
    struct plan p;
    struct plan_record r;
    assert_int_equal(plan_open(buf_str(&b), PLAN_PROGRAM, &p, NULL), 0);
    assert_string_equal(p.exe, "/bin/true");
    assert_int_equal(p.n_args, 2);
    assert_int_equal(p.n_envs, 1);
    assert_int_equal(p.n_fds, 3);
    for (int again = 0; again < 2; again++) {
        static const enum plan_op order[] = {
            PLAN_OP_FD,  PLAN_OP_FD,  PLAN_OP_CWD, PLAN_OP_UMASK, PLAN_OP_RLIMIT,
            PLAN_OP_EXE, PLAN_OP_ARG, PLAN_OP_ARG, PLAN_OP_ENV,
        };
        for (size_t i = 0; i < ARRAY_LEN(order); i++) {
            assert_true(plan_next(&p, &r));
            assert_int_equal(r.op, order[i]);
            if (i == 1) {
                assert_int_equal(r.fd.slot, 2);
                assert_int_equal(r.fd.target, 1);
            } else if (i == 3) {
                assert_int_equal(r.mask, 027);
            } else if (i == 4) {
                assert_int_equal(r.limit.resource, 4);
                assert_int_equal(r.limit.hard, 10);
            } else if (i == 7) {
                assert_string_equal(r.text, "");
            }
        }
        assert_false(plan_next(&p, &r));
        plan_rewind(&p);
    }
}

/* A copy in memory of exactly its size, so that the sanitizer sees any read beyond the end. */
static int open_copy(const char *bytes, size_t len, struct err *e)
{
    char *copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    struct plan p;
    int rc = plan_open(str_n(copy, len), PLAN_PROGRAM, &p, e);
    struct plan_record r;
    while (rc == 0 && plan_next(&p, &r)) {
        (void)(r.text == NULL ? 0 : strlen(r.text));
    }
    free(copy);
    return rc;
}

static void cut_off_anywhere(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    write_sample(&b);
    for (size_t len = 0; len < b.len; len++) {
        assert_int_equal(open_copy(b.ptr, len, NULL), -ERR_PROTO);
        /* also when the header agrees with the shorter length */
        if (len >= 12) {
            uint32_t says = (uint32_t)len;
            char saved[4];
            memcpy(saved, b.ptr + 8, 4);
            memcpy(b.ptr + 8, &says, 4);
            assert_int_equal(open_copy(b.ptr, len, NULL), -ERR_PROTO);
            memcpy(b.ptr + 8, saved, 4);
        }
    }
    assert_int_equal(open_copy(b.ptr, b.len, NULL), 0);
}

static void flipped_bits(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    write_sample(&b);
    size_t refused = 0;
    for (size_t i = 0; i < b.len * 8; i++) {
        b.ptr[i / 8] = (char)(b.ptr[i / 8] ^ (1 << i % 8));
        refused += open_copy(b.ptr, b.len, NULL) < 0; /* whatever it says, no byte out of bounds */
        b.ptr[i / 8] = (char)(b.ptr[i / 8] ^ (1 << i % 8));
    }
    assert_true(refused > b.len);
}

static void other_versions_are_named(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    struct err e;
    write_sample(&b);
    b.ptr[4] = 99;
    assert_int_equal(open_copy(b.ptr, b.len, &e), -ERR_PROTO);
    assert_non_null(strstr(e.msg, "version 99"));
    b.ptr[0] = 'X';
    assert_int_equal(open_copy(b.ptr, b.len, &e), -ERR_PROTO);
    assert_non_null(strstr(e.msg, "magic"));
}

/* Writes header, one extra record made by `add`, end; returns the verdict of plan_open(). */
static int with_extra(int (*add)(struct buf *b))
{
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    assert_int_equal(plan_begin(&b, PLAN_PROGRAM, NULL), 0);
    assert_int_equal(plan_add_text(&b, PLAN_OP_EXE, "/x", NULL), 0);
    assert_int_equal(plan_add_text(&b, PLAN_OP_ARG, "x", NULL), 0);
    assert_int_equal(add(&b), 0);
    assert_int_equal(plan_end(&b, NULL), 0);
    return open_copy(b.ptr, b.len, NULL);
}

static int add_nothing(struct buf *b)
{
    (void)b;
    return 0;
}

static int add_second_exe(struct buf *b)
{
    return plan_add_text(b, PLAN_OP_EXE, "/y", NULL);
}

static int add_two_cwds(struct buf *b)
{
    return plan_add_text(b, PLAN_OP_CWD, "/", NULL) + plan_add_text(b, PLAN_OP_CWD, "/", NULL);
}

static int add_far_slot(struct buf *b)
{
    return plan_add_fd(b, PLAN_FDS_MAX, 0, NULL);
}

static int add_far_target(struct buf *b)
{
    return plan_add_fd(b, 0, 3, NULL);
}

static int add_bad_umask(struct buf *b)
{
    return plan_add_umask(b, 01000, NULL);
}

static int add_bad_limit(struct buf *b)
{
    return plan_add_limit(b, 4, 2, 1, NULL);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    assert_int_equal(with_extra(add_nothing), 0);
    assert_int_equal(with_extra(add_second_exe), -ERR_PROTO);
    assert_int_equal(with_extra(add_two_cwds), -ERR_PROTO);
    assert_int_equal(with_extra(add_far_slot), -ERR_PROTO);
    assert_int_equal(with_extra(add_far_target), -ERR_PROTO);
    assert_int_equal(with_extra(add_bad_umask), -ERR_PROTO);
    assert_int_equal(with_extra(add_bad_limit), -ERR_PROTO);
}

static void plan_without_program_is_refused(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    assert_int_equal(plan_begin(&b, PLAN_PROGRAM, NULL), 0);
    assert_int_equal(plan_add_text(&b, PLAN_OP_EXE, "/x", NULL), 0);
    assert_int_equal(plan_end(&b, NULL), 0);
    assert_int_equal(open_copy(b.ptr, b.len, NULL), -ERR_PROTO);
}

static void writers_know_their_limits(void **state)
{
    (void)state;
    struct err e;
    CLEANUP(buf) struct buf b = BUF_INIT(2 * PLAN_MAX);
    assert_int_equal(plan_end(&b, NULL), -ERR_BUG);
    assert_int_equal(plan_begin(&b, PLAN_PROGRAM, NULL), 0);
    assert_int_equal(plan_add_text(&b, PLAN_OP_EXE, "", &e), -ERR_USAGE);
    char *huge = malloc(PLAN_MAX);
    assert_non_null(huge);
    memset(huge, 'x', PLAN_MAX - 1);
    huge[PLAN_MAX - 1] = '\0';
    size_t before = b.len;
    assert_int_equal(plan_add_text(&b, PLAN_OP_ARG, huge, &e), -ERR_LIMIT);
    assert_int_equal(b.len, before);
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(cut_off_anywhere),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(other_versions_are_named),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(plan_without_program_is_refused),
        cmocka_unit_test(writers_know_their_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
