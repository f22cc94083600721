/* SPDX-License-Identifier: MIT
 *
 * Skills of a repository as text: nothing is left that a harness would act on.
 */
#include "skill/skill_prose.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "skill/package.h"

static struct arena *arena;
static struct err e;

static int set_up(void **state)
{
    arena = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static const char *prose(const char *text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(1 << 20);
    if (skill_prose_write(arena, str_of(text), "SKILL.md", &out, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return arena_dup(arena, buf_str(&out));
}

static void expect_body(const char *body, const char *want)
{
    const char *head = "---\nname: \"a\"\ndescription: \"b\"\n---\n";
    const char *text = arena_printf(arena, "---\nname: a\ndescription: b\n---\n%s", body);
    assert_string_equal(prose(text), arena_printf(arena, "%s%s", head, want));
}

static void test_front_matter_is_reduced(void **state)
{
    assert_string_equal(prose("---\n"
                              "name: a\n"
                              "description: 'says: \"yes\"'\n"
                              "allowed-tools: Bash\n"
                              "model: other\n"
                              "hooks: {PreToolUse: [{hooks: [{type: command, command: id}]}]}\n"
                              "---\n"
                              "text\n"),
                        "---\nname: \"a\"\ndescription: \"says: \\\"yes\\\"\"\n---\ntext\n");
}

static void test_commands_are_words(void **state)
{
    expect_body("plain `code`, wow! and !x\n", "plain `code`, wow! and !x\n");
    expect_body("see !`id`", "see ! `id`");
    expect_body("```!\nid\n```\n", "``` !\nid\n```\n");
    expect_body("```!`id`", "``` ! `id`");
    expect_body("!!`id`!`", "!! `id`! `");
    expect_body("", "");
}

static void test_no_skill(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(1 << 20);
    assert_int_equal(skill_prose_write(arena, STR("text"), "SKILL.md", &out, &e), -ERR_CONFIG);
    assert_int_equal(out.len, 0);
}

static void test_has_commands(void **state)
{
    static const struct {
        const char *front, *body;
        bool want;
    } cases[] = {
        { "", "text ! `x`", false },
        { "", "text !`x`", true },
        { "", "```!\nx\n```", true },
        { "hooks: {}\n", "text", true },
        { "allowed-tools: Bash\n", "text", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *text = arena_printf(arena, "---\nname: a\ndescription: b\n%s---\n%s",
                                        cases[i].front, cases[i].body);
        assert_int_equal(skill_prose_has_commands(arena, str_of(text)), cases[i].want);
    }
    assert_false(skill_prose_has_commands(arena, STR("!`x`")));
}

static void test_install(void **state)
{
    char dir[] = "/tmp/cinch-prose-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(buf) struct buf text = BUF_INIT(1 << 20);
    struct package *p = package_of_file(arena, STR("SKILL.md"),
                                        STR("---\nname: a\ndescription: b\nx: y\n---\n!`id`\n"));
    p = package_with(arena, p, STR("more.sh"), STR("!`id`\n"));
    assert_int_equal(skill_prose_install(arena, p, "a", fd, &e), 0);
    assert_int_equal(skill_prose_install(arena, p, "a", fd, &e), 0); /* the same once more */
    assert_int_equal(file_read(fd, "a/SKILL.md", 1 << 20, &text, &e), 0);
    assert_string_equal(buf_str(&text).ptr, "---\nname: \"a\"\ndescription: \"b\"\n---\n! `id`\n");
    buf_reset(&text);
    assert_int_equal(file_read(fd, "a/more.sh", 1 << 20, &text, &e), 0);
    assert_string_equal(buf_str(&text).ptr, "!`id`\n"); /* data */
    struct package *other =
        package_of_file(arena, STR("SKILL.md"), STR("---\nname: a\ndescription: c\n---\nx\n"));
    assert_int_equal(skill_prose_install(arena, other, "a", fd, &e), -ERR_EXISTS);
    assert_int_equal(skill_prose_install(arena, p, "../a", fd, &e), -ERR_CONFIG);
    struct package *none = package_of_file(arena, STR("README.md"), STR("x"));
    assert_int_equal(skill_prose_install(arena, none, "b", fd, &e), -ERR_CONFIG);
    assert_int_equal(file_remove_tree(AT_FDCWD, dir, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_front_matter_is_reduced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_commands_are_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_skill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_has_commands, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_install, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("skill_prose", tests, NULL, NULL);
}
