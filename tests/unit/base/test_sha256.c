/* SPDX-License-Identifier: MIT
 *
 * SHA-256 against the examples of its standard (FIPS 180-2, appendix B).
 */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(struct str data, const char *expected)
{
    char out[SHA256_HEX];
    sha256_hex(data, out);
    assert_string_equal(out, expected);
    assert_true(sha256_is_hex(str_of(out)));
}

static void standard_examples(void **state)
{
    (void)state;
    check(STR_EMPTY, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check(STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    size_t million = 1000000;
    char *a = malloc(million);
    assert_non_null(a);
    memset(a, 'a', million);
    check(str_n(a, million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(a);
}

static void what_is_no_hash(void **state)
{
    (void)state;
    assert_false(sha256_is_hex(STR("")));
    assert_false(sha256_is_hex(STR("ba7816bf")));
    assert_false(
        sha256_is_hex(STR("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD")));
    assert_false(
        sha256_is_hex(STR("ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_examples),
        cmocka_unit_test(what_is_no_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
