/* SPDX-License-Identifier: MIT
 *
 * Layers: rows, keys, Containerfiles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "image/recipe.h"

static void test_rows(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct recipe r = { 0 };
    (void)state;
    struct str table = STR("# adapter\n\nfoo  @a/foo   1.2.3\nfoobar pkg 2\nlast  x 1");
    assert_true(recipe_row(a, table, "foo", &r));
    assert_string_equal(r.package, "@a/foo");
    assert_string_equal(r.version, "1.2.3");
    assert_true(recipe_row(a, table, "last", &r));
    assert_string_equal(r.version, "1");
    assert_false(recipe_row(a, table, "bar", &r));
    assert_false(recipe_row(a, table, "adapter", &r));
    assert_false(recipe_row(a, STR(""), "foo", &r));
}

static void test_words(void **state)
{
    (void)state;
    assert_true(recipe_word_is_plain("@openai/codex"));
    assert_true(recipe_word_is_plain("1.2.3-rc.1+x"));
    assert_false(recipe_word_is_plain("-x"));
    assert_false(recipe_word_is_plain("a b"));
    assert_false(recipe_word_is_plain("a\"; rm -rf /"));
    assert_false(recipe_word_is_plain("$HOME"));
    assert_false(recipe_word_is_plain("a\nRUN x"));
}

static const char *key(struct arena *a, const char *base, const char *version, const char *content)
{
    struct recipe r = { .adapter = "foo", .package = "pkg", .version = version };
    (void)snprintf(r.content, sizeof r.content, "%s", content);
    return recipe_key(a, base, &r);
}

static void test_keys(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    (void)state;
    const char *one = key(a, "base", "1", "");
    assert_true(sha256_is_hex(str_of(one)));
    assert_string_equal(one, key(a, "base", "1", ""));
    assert_string_not_equal(one, key(a, "other", "1", ""));
    assert_string_not_equal(one, key(a, "base", "2", ""));
    assert_string_not_equal(one, key(a, "base", "1", "c"));
}

static void test_containerfile(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(65536);
    struct recipe r = { .adapter = "foo", .package = "@a/foo", .version = "1" };
    (void)state;
    recipe_containerfile("abc", &r, &out);
    assert_non_null(strstr(out.ptr, "\nFROM abc\nUSER 0\nRUN "));
    assert_non_null(strstr(out.ptr, "sh " RECIPE_BUILD "/install.sh \"@a/foo\" \"1\"\n"));
    buf_reset(&out);
    r.own_script = true;
    recipe_containerfile("abc", &r, &out);
    assert_non_null(strstr(out.ptr, "sh " RECIPE_LAYER "/install.sh"));
}

static void test_script(void **state)
{
    (void)state;
    assert_true(str_starts(recipe_script(), STR("#!/bin/sh\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_words),
        cmocka_unit_test(test_keys),   cmocka_unit_test(test_containerfile),
        cmocka_unit_test(test_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
