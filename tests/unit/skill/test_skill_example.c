/* SPDX-License-Identifier: MIT
 *
 * examples/skill-hello through all phases of a run, with its script in place of the harness: the
 * calls that a run makes, in their order. Takes the directory of the example as its argument.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "prompt/structured.h"
#include "skill/skill_artifact.h"
#include "skill/skill_contract.h"
#include "skill/skill_engine.h"
#include "skill/skill_input.h"
#include "skill/skill_install.h"
#include "skill/skill_prompt.h"
#include "skill_case.h"

extern char **environ;
static const char *example;

static void check(struct skill_case *c, int r)
{
    if (r != 0) {
        fail_msg("%s", c->e.msg);
    }
}

/* Runs the installed script on the prompt; its output goes to answer.txt. */
static void execute(struct skill_case *c)
{
    const char *script = case_path(c, "skills/skill-hello/scripts/agent.sh");
    const char *prompt = case_path(c, "run/prompt.md");
    char *argv[] = { (char *)(uintptr_t)script, (char *)(uintptr_t)prompt, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int status = -1;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 1, case_path(c, "run/answer.txt"),
                                                      O_WRONLY | O_CREAT, 0644),
                     0);
    assert_int_equal(posix_spawn(&pid, script, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void parse(struct skill_case *c, enum skill_mode mode, struct skill_answer *answer)
{
    CLEANUP(schema) struct schema *contract = NULL;
    struct json *tree = skill_contract(c->arena, c->skill, mode);
    check(c, schema_compile(tree, NULL, &contract, &c->e));
    struct structured_options options = { .schema = contract, .wanted = tree };
    struct structured_result result;
    const char *text = case_read(c, "run/answer.txt");
    check(c, structured_parse(str_of(text), &options, c->arena, &result, &c->e));
    skill_answer_read(c->arena, c->skill, result.value, answer);
}

static void test_all_phases(void **state)
{
    struct skill_case *c = *state;
    assert_int_equal(mkdirat(c->fd, "run", 0755), 0);
    assert_int_equal(mkdirat(c->fd, "skills", 0755), 0);
    CLEANUP(fd) int run = openat(c->fd, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd) int skills = openat(c->fd, "skills", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *run_dir = case_path(c, "run");
    struct skill_engine engine = { .name = "command" };

    /* admit */
    enum skill_mode mode = 0;
    struct skill_values values;
    struct skill_request request = {
        .input = case_json(c, "{\"names\": \"references/names.txt\"}"),
        .parameter = case_json(c, "{\"shout\": \"true\"}"),
        .base = example,
    };
    check(c, skill_open(example, NULL, &c->skill, &c->e));
    assert_int_equal(json_len(c->skill->warnings), 0);
    check(c, skill_admit(c->skill, engine.name, 0, &mode, &c->e));
    check(c, skill_bind(c->arena, c->skill, &request, &values, &c->e));

    /* prepare */
    struct skill_install_opts opts = {
        .patch = { .mode = mode, .artifacts_dir = case_path(c, "run/artifacts") }
    };
    check(c, skill_install(c->skill, skills, &opts, &c->e));
    check(c, skill_stage(c->arena, &values, run, run_dir, &c->e));

    /* context */
    CLEANUP(buf) struct buf prompt = BUF_INIT(BUF_TEXT);
    struct skill_prompt_opts with = { .engine = &engine,
                                      .run_dir = run_dir,
                                      .skill_dir = case_path(c, "skills/skill-hello"),
                                      .values = &values };
    check(c, skill_resolve(c->arena, c->skill, run, run_dir, &values, &c->e));
    check(c, skill_prompt(c->skill, &with, &prompt, &c->e));
    case_write(c, "run/prompt.md", buf_str(&prompt));

    /* execute, parse, gate */
    struct skill_answer answer;
    struct skill_artifact_list files;
    struct skill_root root = { .fd = run, .path = run_dir };
    execute(c);
    parse(c, mode, &answer);
    assert_true(answer.done);
    expect_json(c, answer.data, "{\"count\":3,\"greetings\":\"artifacts/greetings.txt\"}");
    check(c, skill_artifacts(c->arena, c->skill, answer.data, &root, &files, &c->e));
    assert_int_equal(files.len, 1);
    assert_int_equal(files.missing, 0);
    assert_string_equal(case_read(c, "run/artifacts/greetings.txt"),
                        "HELLO, ADA!\nHELLO, GRACE!\nHELLO, MARGARET!\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { SKILL_TEST(test_all_phases) };
    example = argc > 1 ? argv[1] : "examples/skill-hello";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
