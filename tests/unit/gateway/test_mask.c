/* SPDX-License-Identifier: MIT
 *
 * A secret in a stream is overwritten wherever the borders of pieces fall, and nothing else is
 * changed or kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/macro.h"
#include "gateway/mask.h"

static void keep(void *arg, struct str bytes)
{
    buf_add(arg, bytes);
}

static void expect(const char *secret, const char *in, const char *want)
{
    struct str text = str_of(in);
    for (size_t first = 0; first <= text.len; first++) {
        for (size_t second = first; second <= text.len; second++) {
            CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
            struct mask m;
            mask_init(&m, str_of(secret), keep, &out);
            mask_feed(&m, str_slice(text, 0, first));
            mask_feed(&m, str_slice(text, first, second));
            mask_feed(&m, str_slice(text, second, text.len));
            mask_end(&m);
            mask_done(&m);
            assert_true(str_eqc(buf_str(&out), want));
        }
    }
    CLEANUP(arena) struct arena *a = arena_new();
    assert_true(str_eqc(mask_text(a, str_of(secret), text), want));
}

static void secrets_are_overwritten_at_every_border(void **state)
{
    expect("sk-key-1", "before sk-key-1 after", "before ******** after");
    expect("sk-key-1", "sk-key-1sk-key-1", "****************");
    expect("sk-key-1", "sk-key-sk-key-1s", "sk-key-********s");
    expect("aab", "aaaab", "aa***");
    expect("sk-key-1", "sk-key-", "sk-key-");
    expect("sk-key-1", "", "");
    expect("", "sk-key-1", "sk-key-1");
}

static void nothing_else_is_kept_back(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct mask m;
    mask_init(&m, STR("sk-key-1"), keep, &out);
    mask_feed(&m, STR("data: {}\n\n"));
    assert_true(str_eqc(buf_str(&out), "data: {}\n\n"));
    mask_feed(&m, STR("it asks"));
    assert_true(str_eqc(buf_str(&out), "data: {}\n\nit ask"));
    mask_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_overwritten_at_every_border),
        cmocka_unit_test(nothing_else_is_kept_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
