/* SPDX-License-Identifier: MIT
 *
 * Which directories a PATH and a program make readable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "sandbox/toolchain_paths.h"

struct place {
    char root[64];
    char home[96];
    struct arena *arena;
    struct toolchain_paths reach;
};

static const char *at(struct place *p, const char *rest)
{
    return arena_printf(p->arena, "%s/%s", p->root, rest);
}

static void make_dir(struct place *p, const char *rest)
{
    assert_int_equal(file_mkdirs(AT_FDCWD, at(p, rest), 0755, NULL), 0);
}

static void make_file(struct place *p, const char *rest)
{
    assert_int_equal(file_write_atomic(AT_FDCWD, at(p, rest), STR("x"), 0755, NULL), 0);
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    (void)snprintf(p->root, sizeof p->root, "/tmp/cinch-reach-XXXXXX");
    if (p == NULL || mkdtemp(p->root) == NULL) {
        return -1;
    }
    (void)snprintf(p->home, sizeof p->home, "%s/home", p->root);
    p->arena = arena_new();
    make_dir(p, "home/.nvm/versions/node/v22/bin");
    make_dir(p, "home/.local/bin");
    make_dir(p, "home/.local/lib");
    make_dir(p, "home/.cargo/bin");
    make_dir(p, "home/go/bin");
    make_dir(p, "srv/tool/bin");
    make_dir(p, "srv/tool/lib/node_modules/agent");
    make_file(p, "srv/tool/lib/node_modules/agent/cli.js");
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    (void)!file_remove_tree(AT_FDCWD, p->root, NULL);
    p->arena = arena_free(p->arena);
    free(p);
    return 0;
}

static bool has(struct place *p, const char *rest)
{
    for (size_t i = 0; i < p->reach.n; i++) {
        if (strcmp(p->reach.paths[i], at(p, rest)) == 0) {
            return true;
        }
    }
    return false;
}

static void the_system_needs_nothing(void **state)
{
    struct place *p = *state;
    toolchain_path(&p->reach, p->arena, "/usr/bin:/bin:/usr/local/bin:relative::/", p->home);
    toolchain_program(&p->reach, p->arena, "/usr/bin/env", p->home);
    toolchain_program(&p->reach, p->arena, NULL, p->home);
    assert_int_equal(p->reach.n, 0);
}

static void a_tool_of_the_home_is_shown_as_a_whole(void **state)
{
    struct place *p = *state;
    toolchain_path(&p->reach, p->arena, at(p, "home/.nvm/versions/node/v22/bin"), p->home);
    assert_int_equal(p->reach.n, 1);
    assert_true(has(p, "home/.nvm"));
}

static void a_directory_with_credentials_is_not(void **state)
{
    struct place *p = *state;
    const char *path = arena_printf(p->arena, "%s:%s:%s", at(p, "home/.local/bin"),
                                    at(p, "home/.cargo/bin/"), at(p, "home/go/bin"));
    toolchain_path(&p->reach, p->arena, path, p->home);
    assert_true(has(p, "home/.local/bin"));
    assert_true(has(p, "home/.local/lib"));
    assert_true(has(p, "home/.cargo/bin"));
    assert_true(has(p, "home/go/bin"));
    assert_int_equal(p->reach.n, 4);
}

static void the_home_itself_is_never_shown(void **state)
{
    struct place *p = *state;
    toolchain_path(&p->reach, p->arena, p->home, p->home);
    assert_int_equal(p->reach.n, 0);
}

static void what_does_not_exist_is_passed_over(void **state)
{
    struct place *p = *state;
    toolchain_path(&p->reach, p->arena, at(p, "nowhere/bin"), p->home);
    assert_int_equal(p->reach.n, 0);
}

static void a_linked_program_brings_its_modules(void **state)
{
    struct place *p = *state;
    const char *link = at(p, "srv/tool/bin/agent");
    assert_int_equal(symlink("../lib/node_modules/agent/cli.js", link), 0);
    toolchain_program(&p->reach, p->arena, link, p->home);
    assert_true(has(p, "srv/tool/bin"));
    assert_true(has(p, "srv/tool/lib"));
    assert_true(has(p, "srv/tool/lib/node_modules"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_system_needs_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tool_of_the_home_is_shown_as_a_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_with_credentials_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(the_home_itself_is_never_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_exist_is_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_linked_program_brings_its_modules, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
