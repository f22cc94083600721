/* SPDX-License-Identifier: MIT
 *
 * The table of libraries, and the name of it in a loader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "image/loader.h"

struct entry {
    int32_t flags;
    uint32_t key, value, os;
    uint64_t hwcap;
};

/* Two libraries, one of them for other processors only. */
static struct str make_table(char *out, uint64_t hwcap)
{
    static const char strings[] = "libc.so.6\0/lib/libc.so.6\0libm.so.6\0/lib/v3/libm.so.6";
    uint32_t head[7] = { 2, sizeof strings, 2, 0, 0, 0, 0 };
    uint32_t base = 48 + 2 * sizeof(struct entry);
    struct entry entries[2] = { { 3, base, base + 10, 0, 0 },
                                { 3, base + 25, base + 35, 0, hwcap } };
    memcpy(out, "glibc-ld.so.cache1.1", 20);
    memcpy(out + 20, head, sizeof head);
    memcpy(out + 48, entries, sizeof entries);
    memcpy(out + 48 + sizeof entries, strings, sizeof strings);
    return str_n(out, 48 + sizeof entries + sizeof strings);
}

static void test_table(void **state)
{
    char bytes[512];
    CLEANUP(buf) struct buf out = BUF_INIT(65536);
    struct err e;
    struct str table = make_table(bytes, 0);
    uint32_t n = 0;
    (void)state;
    assert_int_equal(loader_move_table(table, "/.runtime", &out, &e), 0);
    memcpy(&n, out.ptr + 20, sizeof n);
    assert_int_equal(n, 2);
    struct entry first;
    memcpy(&first, out.ptr + 48, sizeof first);
    assert_string_equal(out.ptr + first.key, "libc.so.6");
    assert_string_equal(out.ptr + first.value, "/.runtime/lib/libc.so.6");

    buf_reset(&out);
    assert_int_equal(loader_move_table(make_table(bytes, 1), "/.runtime", &out, &e), 0);
    memcpy(&n, out.ptr + 20, sizeof n);
    assert_int_equal(n, 1);

    for (size_t cut = 0; cut < table.len; cut++) {
        buf_reset(&out);
        assert_int_equal(loader_move_table(str_slice(table, 0, cut), "/x", &out, &e), -ERR_PARSE);
    }
    struct entry *wild = (struct entry *)(void *)(bytes + 48);
    wild->value = 0xfffffff0u;
    assert_int_equal(loader_move_table(table, "/x", &out, &e), -ERR_PARSE);
}

static void test_patch(void **state)
{
    char bytes[] = "x\0/etc/ld.so.cache\0/etc/ld.so.cache.old\0/etc/ld.so.preload\0y";
    char musl[] = "nothing of the kind";
    struct err e;
    (void)state;
    assert_int_equal(loader_patch(bytes, sizeof bytes, &e), 0);
    assert_string_equal(bytes + 2, LOADER_TABLE);
    assert_string_equal(bytes + 19, "/etc/ld.so.cache.old");
    assert_string_equal(bytes + 40, "/.runtime/none");
    assert_int_equal(bytes[sizeof bytes - 2], 'y');
    assert_int_equal(loader_patch(musl, sizeof musl, &e), -ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_table),
                                        cmocka_unit_test(test_patch) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
