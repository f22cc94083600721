/* SPDX-License-Identifier: MIT
 *
 * Plans of kind VIEW and ENTRY: what is written is read back, and what does not belong is refused.
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

static void add_view(struct buf *b)
{
    const struct plan_ids ids = { .outside_uid = 1000, .outside_gid = 100 };
    const struct plan_size size = { .bytes = 1 << 20, .inodes = 99 };
    const struct plan_paths bind = { .flags = PLAN_WRITABLE | PLAN_SHIFT, .uid = 7, .host_uid = 9 };
    assert_int_equal(plan_begin(b, PLAN_VIEW, NULL), 0);
    assert_int_equal(plan_add_number(b, PLAN_OP_NAMESPACES, 0x20000, NULL), 0);
    assert_int_equal(plan_add_ids(b, PLAN_OP_MAP, &ids, NULL), 0);
    assert_int_equal(plan_add_number(b, PLAN_OP_LISTEN, 8080, NULL), 0);
    assert_int_equal(plan_add_size(b, PLAN_OP_ROOT, &size, "/", NULL), 0);
    assert_int_equal(plan_add_paths(b, PLAN_OP_BIND, &bind, "/from", "/to", NULL), 0);
    assert_int_equal(plan_add_file(b, "/etc/x", 0644, str_n("a\0b", 3), NULL), 0);
    assert_int_equal(plan_add_text(b, PLAN_OP_PASS, "/to", NULL), 0);
    assert_int_equal(plan_end(b, NULL), 0);
}

static void a_view_comes_back(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    add_view(&b);
    struct plan p;
    struct plan_record r[8];
    assert_int_equal(plan_open(buf_str(&b), PLAN_VIEW, &p, NULL), 0);
    for (int i = 0; i < 7; i++) {
        assert_true(plan_next(&p, &r[i]));
    }
    assert_false(plan_next(&p, &r[7]));
    assert_int_equal(r[0].number, 0x20000);
    assert_int_equal(r[1].ids.outside_uid, 1000);
    assert_int_equal(r[2].number, 8080);
    assert_int_equal(r[3].size.inodes, 99);
    assert_string_equal(r[4].from, "/from");
    assert_string_equal(r[4].to, "/to");
    assert_int_equal(r[4].paths.flags, PLAN_WRITABLE | PLAN_SHIFT);
    assert_int_equal(r[4].paths.host_uid, 9);
    assert_string_equal(r[5].to, "/etc/x");
    assert_int_equal(r[5].paths.mode, 0644);
    assert_memory_equal(r[5].bytes.ptr, "a\0b", 3);
    assert_int_equal(r[5].bytes.len, 3);
    assert_string_equal(r[6].text, "/to");
}

static void an_entry_comes_back(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    const struct plan_ruleset rules = { .fs = 3, .scope = 1 };
    const uint64_t program[2] = { 1, 2 };
    assert_int_equal(plan_begin(&b, PLAN_ENTRY, NULL), 0);
    assert_int_equal(plan_add_number(&b, PLAN_OP_JOIN, 3, NULL), 0);
    assert_int_equal(plan_add_ruleset(&b, &rules, NULL), 0);
    assert_int_equal(plan_add_rule(&b, 5, "/x", NULL), 0);
    assert_int_equal(plan_add_seccomp(&b, str_n(program, sizeof program), NULL), 0);
    assert_int_equal(plan_end(&b, NULL), 0);
    struct plan p;
    struct plan_record r;
    assert_int_equal(plan_open(buf_str(&b), PLAN_ENTRY, &p, NULL), 0);
    assert_int_equal(p.n_fds, 4);
    assert_true(plan_next(&p, &r));
    assert_true(plan_next(&p, &r));
    assert_int_equal(r.ruleset.scope, 1);
    assert_true(plan_next(&p, &r));
    assert_int_equal(r.access, 5);
    assert_string_equal(r.to, "/x");
    assert_true(plan_next(&p, &r));
    assert_memory_equal(r.bytes.ptr, program, sizeof program);
}

static void kinds_are_kept_apart(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    struct plan p;
    struct err e;
    add_view(&b);
    assert_int_equal(plan_open(buf_str(&b), PLAN_ENTRY, &p, &e), -ERR_PROTO);
    assert_int_equal(plan_open(buf_str(&b), PLAN_PROGRAM, &p, &e), -ERR_PROTO);
    /* The kind says view, an operation does not. */
    buf_reset(&b);
    assert_int_equal(plan_begin(&b, PLAN_VIEW, NULL), 0);
    assert_int_equal(plan_add_text(&b, PLAN_OP_EXE, "/bin/true", NULL), 0);
    assert_int_equal(plan_end(&b, NULL), 0);
    assert_int_equal(plan_open(buf_str(&b), PLAN_VIEW, &p, &e), -ERR_PROTO);
    assert_non_null(strstr(e.msg, "does not belong"));
}

typedef int (*adder)(struct buf *b);

static int relative_target(struct buf *b)
{
    return plan_add_paths(b, PLAN_OP_BIND, &(struct plan_paths) { 0 }, "/a", "b", NULL);
}

static int empty_target(struct buf *b)
{
    return plan_add_paths(b, PLAN_OP_MASK, &(struct plan_paths) { 0 }, NULL, "", NULL);
}

static int unknown_flags(struct buf *b)
{
    return plan_add_paths(b, PLAN_OP_BIND, &(struct plan_paths) { .flags = 1u << 20 }, "/a", "/b",
                          NULL);
}

static int wide_mode(struct buf *b)
{
    return plan_add_paths(b, PLAN_OP_DIR, &(struct plan_paths) { .mode = 0100000 }, NULL, "/b",
                          NULL);
}

static int high_port(struct buf *b)
{
    return plan_add_number(b, PLAN_OP_LISTEN, 65536, NULL);
}

static int relative_file(struct buf *b)
{
    return plan_add_file(b, "etc/x", 0644, STR("x"), NULL);
}

static int many_passes(struct buf *b)
{
    int rc = 0;
    for (int i = 0; i <= PLAN_PASS_MAX; i++) {
        rc += plan_add_text(b, PLAN_OP_PASS, "/x", NULL);
    }
    return rc;
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const adder cases[] = { relative_target, empty_target,  unknown_flags, wide_mode,
                                   high_port,       relative_file, many_passes };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
        struct plan p;
        assert_int_equal(plan_begin(&b, PLAN_VIEW, NULL), 0);
        assert_int_equal(cases[i](&b), 0);
        assert_int_equal(plan_end(&b, NULL), 0);
        assert_int_equal(plan_open(buf_str(&b), PLAN_VIEW, &p, NULL), -ERR_PROTO);
    }
}

static void half_an_instruction_is_refused(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    struct plan p;
    assert_int_equal(plan_begin(&b, PLAN_ENTRY, NULL), 0);
    assert_int_equal(plan_add_seccomp(&b, STR("123456789012"), NULL), 0);
    assert_int_equal(plan_end(&b, NULL), 0);
    assert_int_equal(plan_open(buf_str(&b), PLAN_ENTRY, &p, NULL), -ERR_PROTO);
}

/* Every flipped bit is refused or leaves records that can be walked; under the sanitizers this
 * would find a read beyond the end. */
static void flipped_bits(void **state)
{
    (void)state;
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    add_view(&b);
    for (size_t i = 0; i < b.len * 8; i++) {
        char *copy = malloc(b.len);
        assert_non_null(copy);
        memcpy(copy, b.ptr, b.len);
        copy[i / 8] = (char)(copy[i / 8] ^ (1 << (i % 8)));
        struct plan p;
        struct plan_record r;
        if (plan_open(str_n(copy, b.len), PLAN_VIEW, &p, NULL) == 0) {
            while (plan_next(&p, &r)) {
                assert_true(r.to == NULL || strlen(r.to) < b.len);
                assert_true(r.from == NULL || strlen(r.from) < b.len);
            }
        }
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_comes_back),
        cmocka_unit_test(an_entry_comes_back),
        cmocka_unit_test(kinds_are_kept_apart),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(half_an_instruction_is_refused),
        cmocka_unit_test(flipped_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
