/* SPDX-License-Identifier: MIT
 *
 * Several phrases in one pass: found wherever they stand, and nothing else; held against a search
 * that tries every place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <strings.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/macro.h"
#include "gateway/phrases.h"

static const char *const list[] = { "title", "new topic", "_snap", "titles of", "ab\"cde" };

static uint64_t found(struct str text)
{
    struct phrases p;
    phrases_init(&p, list, ARRAY_LEN(list));
    return phrases_in(&p, text);
}

static void phrases_are_found_at_every_place(void **state)
{
    for (size_t before = 0; before < 200; before++) {
        for (size_t i = 0; i < ARRAY_LEN(list); i++) {
            CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
            for (size_t k = 0; k < before; k++) {
                buf_adds(&text, "t");
            }
            buf_adds(&text, list[i]);
            assert_true((found(buf_str(&text)) >> i & 1u) != 0);
            buf_adds(&text, " tail");
            assert_true((found(buf_str(&text)) >> i & 1u) != 0);
        }
    }
    assert_int_equal(found(STR("TITLES Of a New Topic")), 1u | 2u | 8u);
    assert_int_equal(found(STR("")), 0);
    assert_int_equal(found(STR("titl")), 0);
    assert_int_equal(found(STR("tit\0le")), 0);
    assert_int_equal(found(STR("newtopic new  topic _sna")), 0);
}

static uint64_t found_slowly(struct str text)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        size_t len = strlen(list[i]);
        for (size_t at = 0; at + len <= text.len; at++) {
            bits |= strncasecmp(text.ptr + at, list[i], len) == 0 ? UINT64_C(1) << i : 0;
        }
    }
    return bits;
}

static void random_texts_give_what_a_slow_search_gives(void **state)
{
    static const char letters[] = "titleTITLEnew topic_snapsof\"abcd";
    uint32_t seed = 7;
    size_t hits = 0;
    for (size_t round = 0; round < 20000; round++) {
        char text[200];
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = letters[(seed >> 16) % (sizeof letters - 1)];
        }
        /* half of a phrase somewhere: near misses matter more than noise */
        const char *phrase = list[round % ARRAY_LEN(list)];
        size_t len = strlen(phrase) - round % 2;
        size_t total = len + seed % (sizeof text - len);
        memcpy(text + total - len, phrase, len);
        uint64_t want = found_slowly(str_n(text, total));
        hits += want != 0;
        assert_int_equal(found(str_n(text, total)), want);
    }
    assert_true(hits > 5000 && hits < 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phrases_are_found_at_every_place),
        cmocka_unit_test(random_texts_give_what_a_slow_search_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
