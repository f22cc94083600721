/* SPDX-License-Identifier: MIT
 *
 * The vectors of RFC 4648, all bytes there and back, and texts that are none.
 */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_vectors(void **state)
{
    static const struct {
        const char *plain, *text;
    } v[] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(64);
        CLEANUP(buf) struct buf back = BUF_INIT(64);
        assert_int_equal(base64_write(str_of(v[i].plain), &text, NULL), 0);
        assert_true(str_eqc(buf_str(&text), v[i].text));
        assert_int_equal(base64_read(buf_str(&text), &back, NULL), 0);
        assert_true(str_eqc(buf_str(&back), v[i].plain));
    }
}

static void test_all_bytes(void **state)
{
    char all[256];
    for (size_t i = 0; i < sizeof all; i++) {
        all[i] = (char)i;
    }
    for (size_t n = 250; n <= sizeof all; n++) {
        CLEANUP(buf) struct buf text = BUF_INIT(1024);
        CLEANUP(buf) struct buf back = BUF_INIT(1024);
        assert_int_equal(base64_write(str_n(all, n), &text, NULL), 0);
        assert_int_equal(base64_read(buf_str(&text), &back, NULL), 0);
        assert_true(str_eq(buf_str(&back), str_n(all, n)));
    }
}

static void test_refused(void **state)
{
    static const char *const bad[] = { "Zg",   "Zg=",  "=",        "====", "Zh==",
                                       "Zm9=", "Zm 9", "Zg==Zg==", "Zm-_" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP(buf) struct buf back = BUF_INIT(64);
        if (base64_read(str_of(bad[i]), &back, NULL) != -(int)ERR_PARSE) {
            fail_msg("'%s' was read", bad[i]);
        }
        assert_int_equal(back.len, 0);
    }
    CLEANUP(buf) struct buf small = BUF_INIT(4);
    assert_int_equal(base64_write(STR("abcd"), &small, NULL), -(int)ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_all_bytes),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
