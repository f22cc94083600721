/* SPDX-License-Identifier: MIT
 *
 * The prompt of a skill: invoke line first, then the template that takes precedence.
 */
#include "skill/skill_prompt.h"

#include "skill/skill_engine.h"
#include "skill/skill_input.h"
#include "skill_case.h"

#define HEAD "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"version\":\"1.0\",\"x\":[7],"

static struct skill_values values;

static void prepare(struct skill_case *c, const char *runner)
{
    case_package(c, runner);
    (void)case_open(c, "hello");
    values = (struct skill_values) {
        .input = case_json(c, "{\"csv\":\"/r/uploads/t.csv\",\"topic\":\"all\"}"),
        .parameter = case_json(c, "{\"n\":3,\"list\":[1,\"a\"]}"),
    };
}

static const struct skill_engine *engine_of(const char *name)
{
    static const struct skill_engine engines[] = {
        { .name = "codex", .invoke = "${skill}" },
        { .name = "claude", .invoke = "/{skill}" },
        { .name = "gemini", .invoke = "/{skill} invoke" },
    };
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        if (strcmp(engines[i].name, name) == 0) {
            return &engines[i];
        }
    }
    return NULL;
}

static void add_name(void *self, struct str name)
{
    buf_addf(self, "%.*s;", STR_ARG(name));
}

static int render(struct skill_case *c, const char *engine, struct buf *out)
{
    struct skill_prompt_opts o = {
        .engine = engine_of(engine), .run_dir = "/r", .skill_dir = "/h/s/hello", .values = &values
    };
    return skill_prompt(c->skill, &o, out, &c->e);
}

static void expect_prompt(struct skill_case *c, const char *engine, const char *text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (render(c, engine, &out) != 0) {
        fail_msg("%s", c->e.msg);
    }
    assert_string_equal(out.ptr, text);
}

static void test_precedence(void **state)
{
    struct skill_case *c = *state;
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"common\":\"common\",\"codex\":\"own\"}}}");
    expect_prompt(c, "codex", "$hello\nown");
    expect_prompt(c, "claude", "/hello\ncommon");
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"codex\":\"own\"}}}");
    expect_prompt(c, "codex", "$hello\nown");
    expect_prompt(c, "gemini",
                  "/hello invoke\n# Inputs\n- csv: /r/uploads/t.csv\n- topic: all\n\n"
                  "# Parameters\n- n: 3\n- list: [1,\"a\"]\n\n"
                  "Task: run the skill with these inputs and parameters.\n");
}

static void test_variables(void **state)
{
    struct skill_case *c = *state;
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"common\":\"\\n{{ skill.id }} {{ skill_id }} "
                    "{{ skill.name }} {{ skill.description }} {{ skill.version }} {{ skill.x[0] }} "
                    "{{ skill.path }}\\n{{ input.csv }} {{ parameter.n + 1 }} {{ run_dir }} "
                    "{{ skill_dir }} {{ input_file }}\\n{{ params_json }}\"}}}");
    expect_prompt(
        c, "codex",
        "$hello\nhello hello hello Says hello. 1.0 7 /h/s/hello\n"
        "/r/uploads/t.csv 4 /r /h/s/hello input.json\n"
        "{\n  \"input\": {\n    \"csv\": \"/r/uploads/t.csv\",\n    \"topic\": \"all\"\n"
        "  },\n  \"parameter\": {\n    \"n\": 3,\n    \"list\": [\n      1,\n      \"a\"\n"
        "    ]\n  }\n}");
}

static void test_errors(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(buf_append(&out, STR("before"), NULL), 0);
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"codex\":\"a\\n{{ parameter.n.x.y }}\"}}}");
    assert_int_equal(render(c, "codex", &out), -ERR_CONFIG);
    expect_message(c, "hello/assets/runner.json, prompts.codex:2: ");
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"codex\":\"{% if %}\"}}}");
    assert_int_equal(render(c, "codex", &out), -ERR_CONFIG);
    expect_message(c, "prompts.codex:1: ");
    prepare(c,
            HEAD "\"entrypoint\":{\"prompts\":{\"codex\":\"{% for i in range(99999) %}{% for j in "
                 "range(99999) %}x{% endfor %}{% endfor %}\"}}}");
    assert_int_equal(render(c, "codex", &out), -ERR_CONFIG);
    assert_string_equal(out.ptr, "before");
}

static void test_what_is_not_given_is_empty(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"codex\":\"[{{ parameter.colour }}|{{ nobody }}|"
                    "{% if input.gone %}no{% endif %}{{ input.gone | default('d') }}]\"}}}");
    struct skill_prompt_opts o = { .engine = engine_of("codex"),
                                   .values = &values,
                                   .undefined = { add_name, &names } };
    assert_int_equal(skill_prompt(c->skill, &o, &out, &c->e), 0);
    assert_string_equal(out.ptr, "$hello\n[||d]");
    /* what a template expects to be absent is not reported */
    assert_string_equal(names.ptr, "colour;nobody;");
    expect_prompt(c, "codex", "$hello\n[||d]");
}

static void test_text_of_the_skill(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"codex\":\"own\"}}}");
    struct skill_prompt_opts o = { .engine = engine_of("codex"),
                                   .skill_dir = "/s/hello",
                                   .values = &values,
                                   .text = STR("\nDo it.\n") };
    assert_int_equal(skill_prompt(c->skill, &o, &out, &c->e), 0);
    assert_string_equal(out.ptr,
                        "Do what the skill 'hello' below says. Its files are in /s/hello.\n"
                        "\n<skill>\nDo it.\n</skill>\n\nown");
}

static void test_includes_stay_in_the_package(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    case_put(c, "secret", "no");
    case_put(c, "hello/parts/a.md", "part {{ skill_id }}");
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"common\":\"{% include 'parts/a.md' %}\"}}}");
    expect_prompt(c, "codex", "$hello\npart hello");
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"common\":\"{% include '../secret' %}\"}}}");
    assert_int_equal(render(c, "codex", &out), -ERR_CONFIG);
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"common\":\"{% include 'gone' %}\"}}}");
    assert_int_equal(render(c, "codex", &out), -ERR_CONFIG);
    expect_message(c, "gone");
}

static void test_goal_and_plain_skill(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct skill_prompt_opts o = { .engine = engine_of("codex"),
                                   .run_dir = "/r",
                                   .goal = STR(" Be quick.\n") };
    prepare(c, HEAD "\"entrypoint\":{\"prompts\":{\"common\":\"common\"}}}");
    assert_int_equal(skill_prompt(c->skill, &o, &out, &c->e), 0);
    assert_string_equal(out.ptr, "$hello\ncommon\n\nBe quick.");
    case_put(c, "plain.md", CARD("plain"));
    (void)case_open(c, "plain.md");
    buf_reset(&out);
    assert_int_equal(skill_prompt(c->skill, &o, &out, &c->e), 0);
    assert_string_equal(out.ptr, "$plain\n\nBe quick.");
    o.goal = STR_EMPTY;
    buf_reset(&out);
    assert_int_equal(skill_prompt(c->skill, &o, &out, &c->e), 0);
    assert_string_equal(out.ptr, "$plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_precedence),
        SKILL_TEST(test_variables),
        SKILL_TEST(test_errors),
        SKILL_TEST(test_what_is_not_given_is_empty),
        SKILL_TEST(test_text_of_the_skill),
        SKILL_TEST(test_includes_stay_in_the_package),
        SKILL_TEST(test_goal_and_plain_skill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
