/* SPDX-License-Identifier: MIT
 *
 * How each engine is told to use a skill.
 */
#include "skill/skill_engine.h"

#include "skill_case.h"

static void expect_invoke(const char *invoke, const char *dir, const char *line)
{
    CLEANUP(buf) struct buf out = BUF_INIT(1000);
    struct skill_engine engine = { .name = "x", .invoke = invoke };
    assert_int_equal(skill_engine_invoke(&engine, "pdf", dir, &out, NULL), 0);
    assert_string_equal(out.ptr, line);
}

static void test_invoke(void **state)
{
    (void)state;
    expect_invoke("${skill}", "/s", "$pdf");
    expect_invoke("/{skill}", "/s", "/pdf");
    expect_invoke("/{skill} invoke", "/s", "/pdf invoke");
    expect_invoke("Use the skill named {skill}.", "/s", "Use the skill named pdf.");
    expect_invoke("Go.", "/s", "Go.");
    expect_invoke(NULL, NULL, "Use the skill named pdf.");
    expect_invoke(NULL, "/s/pdf",
                  "Use the skill named pdf: read /s/pdf/SKILL.md first and do what it says.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_invoke),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
