/* SPDX-License-Identifier: MIT
 *
 * Which values count as secrets, and what happens when one is missing.
 */
#include "config/secrets.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "values.h"

static const struct secret *find(const struct secrets *list, const char *name)
{
    for (size_t i = 0; i < list->len; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

static void test_names(void **state)
{
    static const char *const yes[] = { "OPENAI_API_KEY",        "GH_TOKEN",  "db_password", "KEY",
                                       "AWS_SECRET_ACCESS_KEY", "GITHUB_PAT" };
    static const char *const no[] = { "KEYBOARD", "TOKENIZERS_PARALLELISM", "PATH", "MONKEY", "" };
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        assert_true(secret_like_name(str_of(yes[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        assert_false(secret_like_name(str_of(no[i])));
    }
}

static void test_sources(void **state)
{
    char file[] = "/tmp/cinch-secret-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, STR("file-value-1\n"), NULL), 0);
    (void)close(fd);
    const char *const caller[] = { "MINE=abc", "X_TOKEN=guessed-value", "Y_TOKEN=short",
                                   "PLAIN=visible-text", NULL };
    struct settings s = {
        .secret_names = tree("[MINE]"),
        .secret_files = tree(arena_printf(arena, "[%s]", file)),
        .api_keys = tree("{A_KEY: from-dictionary}"),
        .env_set = tree("{B_KEY: set-by-task, C: plain}"),
    };
    struct secrets list;
    struct err e;
    assert_int_equal(secrets_collect(arena, &s, caller, &list, &e), 0);
    assert_true(str_eqc(find(&list, "MINE")->value, "abc") && find(&list, "MINE")->to_child);
    assert_true(str_eqc(find(&list, "X_TOKEN")->value, "guessed-value"));
    assert_false(find(&list, "X_TOKEN")->to_child);
    assert_null(find(&list, "Y_TOKEN"));
    assert_null(find(&list, "PLAIN"));
    assert_true(find(&list, "A_KEY")->to_child);
    assert_non_null(find(&list, "B_KEY"));
    assert_null(find(&list, "C"));
    assert_true(str_eqc(find(&list, strrchr(file, '/') + 1)->value, "file-value-1"));
    assert_int_equal(unlink(file), 0);

    assert_int_equal(secrets_collect(arena, &s, caller, &list, &e), -ERR_SECRET);
    s.secret_files = NULL;
    s.secret_names = tree("[ABSENT]");
    assert_int_equal(secrets_collect(arena, &s, caller, &list, &e), -ERR_SECRET);
    assert_non_null(strstr(e.msg, "'ABSENT' is not set"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_sources, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
