/* SPDX-License-Identifier: MIT
 *
 * First lines of scripts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "image/runtime.h"

static const char *words(struct arena *a, const char *head)
{
    CLEANUP(buf) struct buf out = BUF_INIT(65536);
    const char *const *list = runtime_shebang(a, str_of(head));
    if (list == NULL) {
        return "none";
    }
    for (; *list != NULL; list++) {
        buf_addf(&out, "%s|", *list);
    }
    return arena_dup(a, buf_str(&out));
}

static void test_shebang(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    (void)state;
    assert_string_equal(words(a, "#!/usr/bin/env node\nx"), "node|");
    assert_string_equal(words(a, "#! /usr/bin/env -S node --no-warnings\n"), "node|--no-warnings|");
    assert_string_equal(words(a, "#!/usr/bin/env A=1 python3 -u\n"), "python3|-u|");
    assert_string_equal(words(a, "#!/srv/venv/bin/python3\n"), "/srv/venv/bin/python3|");
    assert_string_equal(words(a, "#!/bin/sh -eu"), "/bin/sh|-eu|");
    assert_string_equal(words(a, "#!/usr/bin/env"), "/usr/bin/env|");
    assert_string_equal(words(a, "#!\n"), "none");
    assert_string_equal(words(a, "\x7f"
                                 "ELF"),
                        "none");
    assert_string_equal(words(a, ""), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shebang) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
