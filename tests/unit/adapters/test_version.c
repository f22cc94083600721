/* SPDX-License-Identifier: MIT
 *
 * Versions: compared as numbers, read from the package of a program, and the parts of a profile
 * that they select.
 */
#include "adapters/version.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapters/profile.h"
#include "base/file.h"
#include "base/json.h"

static struct arena *arena;

static int setup(void **state)
{
    arena = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static void test_order(void **state)
{
    static const char *const ordered[] = {
        "0.9",
        "0.15.10",
        "0.24.4-beta.2",
        "0.24.4-beta.10",
        "0.24.4-rc.1",
        "0.24.4",
        "0.24.40",
        "1.0.0",
        "2.1.97",
        "2.1.326",
        "2.1.18446744073709551616",
    };
    for (size_t i = 0; i < ARRAY_LEN(ordered); i++) {
        for (size_t k = 0; k < ARRAY_LEN(ordered); k++) {
            int d = version_compare(str_of(ordered[i]), str_of(ordered[k]));
            assert_int_equal((d > 0) - (d < 0), (i > k) - (i < k));
        }
    }
    assert_int_equal(version_compare(STR("v1.2"), STR("1.2.0+build")), 0);
    assert_int_equal(version_compare(STR(""), STR("")), 0);
}

static void test_ranges(void **state)
{
    assert_true(version_within(STR("0.24.4"), "0.12.0", "0.24.4"));
    assert_true(version_within(STR("0.24.4"), "0.12", "0.24"));
    assert_true(version_within(STR("0.24.4"), "0.24.4", NULL));
    assert_true(version_within(STR("0.24.4"), NULL, NULL));
    assert_false(version_within(STR("0.24.5"), "0.12.0", "0.24.4"));
    assert_false(version_within(STR("0.11"), "0.12.0", NULL));
    assert_false(version_within(STR("0.240"), NULL, "0.24"));
}

static void test_output(void **state)
{
    static const char *const cases[][2] = {
        { "codex-cli 0.166.0\n", "0.166.0" },
        { "2.1.197 (Claude Code)\n", "2.1.197" },
        { " v1.2\nbuilt today", "1.2" },
        { "no number here\n", "nonumberhere" },
        { "goose \033[1m1.34.0\n", "goose[1m1.34.0" },
        { "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(version_of_output(arena, str_of(cases[i][0])), cases[i][1]);
    }
}

static void put(const char *root, const char *path, const char *text)
{
    const char *full = arena_printf(arena, "%s/%s", root, path);
    char *dir = arena_dup(arena, str_of(full));
    *strrchr(dir, '/') = '\0';
    assert_int_equal(file_mkdirs(AT_FDCWD, dir, 0700, NULL), 0);
    assert_int_equal(file_write_output(full, str_of(text), 0755, NULL), 0);
}

static const char *at(const char *root, const char *path)
{
    return arena_printf(arena, "%s/%s", root, path);
}

static void test_installed(void **state)
{
    char root[] = "/tmp/version-XXXXXX";
    assert_non_null(mkdtemp(root));
    put(root, "node_modules/@x/agent/bin/cli.js", "#!/usr/bin/env node\n");
    put(root, "node_modules/@x/agent/bin/package.json", "{\"type\": \"module\"}");
    put(root, "node_modules/@x/agent/package.json",
        "{\"name\": \"@x/agent\", \"version\": \"1.2.3\", \"bin\": {\"agent\": \"bin/cli.js\"}}");
    put(root, "package.json", "{\"name\": \"mine\", \"version\": \"9.9.9\"}");
    put(root, "node_modules/.bin/other", "#!/bin/sh\n");
    put(root, "venv/bin/agent", "#!/usr/bin/python3\n");
    put(root, "venv/lib/python3.12/site-packages/fast_agent_mcp-0.10.48.dist-info/METADATA", "");
    put(root, "bad/package.json", "{");
    put(root, "bad/agent", "");
    const char *link = at(root, "node_modules/.bin/agent");
    assert_int_equal(symlink("../@x/agent/bin/cli.js", link), 0);
    assert_string_equal(version_installed(arena, link, NULL), "1.2.3");
    assert_string_equal(version_installed(arena, link, "@x/agent"), "1.2.3");
    struct profile p = { 0 };
    assert_string_equal(version_of_program(arena, &p, link), "1.2.3");
    p.version_command = json_array(arena); /* the package only brings the program */
    assert_null(version_of_program(arena, &p, link));
    assert_null(version_installed(arena, link, "@x/another"));
    /* Above node_modules is somebody else's package. */
    assert_null(version_installed(arena, at(root, "node_modules/.bin/other"), NULL));
    const char *python = at(root, "venv/bin/agent");
    assert_string_equal(version_installed(arena, python, "fast-agent-mcp"), "0.10.48");
    assert_null(version_installed(arena, python, "fast-agent"));
    assert_null(version_installed(arena, at(root, "bad/agent"), NULL));
    assert_null(version_installed(arena, "/does/not/exist", NULL));
    assert_int_equal(file_remove_tree(AT_FDCWD, root, NULL), 0);
}

static const struct profile *parse(const char *text)
{
    struct profile *p;
    struct err e;
    if (profile_parse(arena, str_of(text), "p.yaml", &p, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return p;
}

static void test_tested_range(void **state)
{
    const struct profile *p = parse("name: x\nargv: [a]\ntried: 2.0.0\n");
    assert_string_equal(version_tested(arena, p), "2.0.0");
    assert_null(version_warning(arena, p, "2.0.0"));
    assert_string_equal(version_warning(arena, p, "2.0.1"),
                        "x 2.0.1 has not been tested with this adapter (tested: 2.0.0); to test "
                        "it: cinch ack -a x --tier 1 --tier 2");
    p = parse("name: x\nargv: [a]\ntried: 2.0.0\ntested: {since: 1.0.0, until: 2.0.0}\n");
    assert_string_equal(version_tested(arena, p), "1.0.0 to 2.0.0");
    assert_null(version_warning(arena, p, "1.5"));
    assert_null(version_warning(arena, p, NULL));
    assert_null(version_warning(arena, p, ""));
    assert_non_null(version_warning(arena, p, "0.9"));
    p = parse("name: x\nargv: [a]\n");
    assert_null(version_warning(arena, p, "1.0")); /* nothing is claimed */
}

static void test_parts_for_versions(void **state)
{
    static const char text[] = "name: x\nargv: [a]\nenv: {A: new, B: same}\n"
                               "files: [{name: f, path: f.json}]\n"
                               "settings: {files: {f: {mode: new, keep: 1}}}\n"
                               "capabilities: [text_response, resume]\n"
                               "versions:\n"
                               "  - until: '0.99'\n"
                               "    env: {A: old, B: null}\n"
                               "    settings: {files: {f: {mode: old}}}\n"
                               "  - {since: '2.0', lacks: {resume: it forgets}}\n";
    const struct profile *p = parse(text);
    assert_ptr_equal(profile_variant(arena, p, NULL), p);
    assert_ptr_equal(profile_variant(arena, p, "1.5"), p);
    const struct profile *old = profile_variant(arena, p, "0.16.0");
    assert_string_equal(json_cstring(json_get(old->env, "A"), ""), "old");
    assert_null(json_get(old->env, "B"));
    const struct json *f = json_pointer(old->settings, STR("/files/f"));
    assert_string_equal(json_cstring(json_get(f, "mode"), ""), "old");
    assert_int_equal(json_int(json_get(f, "keep"), 0), 1);
    assert_null(capability_lack(&old->capabilities, CAPABILITY_RESUME));
    assert_string_equal(json_cstring(json_get(p->env, "A"), ""), "new"); /* unchanged */
    const struct profile *late = profile_variant(arena, p, "2.0.1");
    assert_string_equal(capability_lack(&late->capabilities, CAPABILITY_RESUME), "it forgets");
    assert_null(capability_lack(&late->capabilities, CAPABILITY_TEXT_RESPONSE));
    assert_null(capability_lack(&p->capabilities, CAPABILITY_RESUME));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_installed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tested_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts_for_versions, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
