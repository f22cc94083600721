/* SPDX-License-Identifier: MIT
 *
 * Trials with a program in the place of cinch: what it is told, and that whatever it does wrong is
 * in the verdict.
 */
#include "../values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ack/scenario_run.h"
#include "adapters/profile.h"
#include "base/file.h"
#include "io/loop.h"

/* Writes a whole record; what stands in `more` is done before it ends. */
#define PROGRAM                                                                                    \
    "#!/bin/sh\n"                                                                                  \
    "printf '%%s\\n' \"$@\" > args.$$\n"                                                           \
    "while [ $# -gt 1 ]; do\n"                                                                     \
    "  case $1 in --output) out=$2 ;; esac; shift\n"                                               \
    "done\n"                                                                                       \
    "task=$1; mkdir -p $out\n"                                                                     \
    "echo '{\"reason\":\"success\"}' > $out/manifest.json; echo '{}' > $out/metrics.json\n"        \
    "echo '{\"text\":\"Hello.\"}' > $out/result.json\n"                                            \
    "echo '{\"event\":\"process.spawned\",\"context\":{\"pid\":1,\"x\":0}}' > $out/events.jsonl\n" \
    ": > $out/transcript.jsonl\n"                                                                  \
    "%s\n"

struct play {
    char dir[64];
    struct loop *loop;
    struct scenario_list list;
    struct profile profile;
    const char *env[4];
    struct scenario_run_opts opts;
    enum verdict_status status;
    const char *why;
    size_t verdicts;
};

static void on_done(void *arg, const struct verdict *v)
{
    struct play *p = arg;
    p->status = v->status;
    p->why = arena_dup(arena, str_of(v->why));
    p->verdicts++;
    loop_stop(p->loop);
}

static int set_up(void **state)
{
    arena_setup(state);
    struct play *p = *state = xcalloc(1, sizeof *p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/test_ack_trial_XXXXXX");
    if (mkdtemp(p->dir) == NULL || loop_new(&p->loop, NULL) < 0) {
        return -1;
    }
    p->profile = (struct profile) { .name = "mine", .driver = "oneshot" };
    p->env[0] = "PATH=/usr/bin:/bin";
    p->env[1] = "MY_KEY=secret";
    p->opts = (struct scenario_run_opts) {
        .adapter = &p->profile,
        .adapter_name = "mine",
        .dir = arena_printf(arena, "%s/trial", p->dir),
        .timeout = 60 * NSEC_PER_SEC,
        .environ = p->env,
        .on_done = on_done,
        .arg = p,
    };
    return 0;
}

static int tear_down(void **state)
{
    struct play *p = *state;
    p->loop = loop_free(p->loop);
    int r = file_remove_tree(AT_FDCWD, p->dir, NULL);
    free(p);
    arena_teardown(state);
    return r;
}

static const char *in(const struct play *p, const char *name)
{
    return arena_printf(arena, "%s/%s", p->dir, name);
}

/* A scenario without a repository, which is quicker, on a program that does `more`. */
static void play(struct play *p, const char *scenario, const char *more)
{
    const char *program = in(p, "cinch");
    const char *text = arena_printf(arena, PROGRAM, more);
    struct err e = { 0 };
    assert_int_equal(file_write_atomic(AT_FDCWD, program, str_of(text), 0755, &e), 0);
    assert_int_equal(setenv("CINCH", program, 1), 0);
    text = arena_printf(arena,
                        "scenarios:\n  - {name: s, summary: It is., capability: text_response,"
                        " git: false, task: {prompt: 'in %%{workspace}'}, %s}\n",
                        scenario);
    p->list = (struct scenario_list) { 0 };
    if (scenario_parse(arena, str_of(text), "f.yaml", &p->list, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    p->opts.scenario = p->list.items[0];
    struct scenario_run *t;
    if (scenario_run_start(p->loop, &p->opts, &t, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    loop_run(p->loop);
    t = scenario_run_free(t);
    assert_int_equal(p->verdicts, 1);
}

static const char *content(const struct play *p, const char *name)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(AT_FDCWD, in(p, name), 1 << 20, &text, NULL), 0);
    return arena_dup(arena, buf_str(&text));
}

static void expect_failure(const struct play *p, const char *sentence)
{
    assert_int_equal(p->status, VERDICT_FAILED);
    if (strstr(p->why, sentence) == NULL) {
        fail_msg("'%s' is not in '%s'", sentence, p->why);
    }
}

static void test_passes(void **state)
{
    struct play *p = *state;
    play(p, "script: {turns: [{say: Hello.}]}, options: [--quiet], expect: [{text: Hello.}]",
         "mv args.$$ args; env > env; cp $task told");
    assert_string_equal(p->why, "");
    assert_int_equal(p->status, VERDICT_PASSED);
    const char *args = content(p, "trial/args");
    const char *dir = in(p, "trial");
    assert_non_null(strstr(args, "run\n"));
    assert_non_null(strstr(args, "--adapter\nmine\n"));
    assert_non_null(strstr(args, arena_printf(arena, "--workspace\n%s/workspace\n", dir)));
    assert_non_null(strstr(args, arena_printf(arena, "--script\n%s/model-0.json\n", dir)));
    assert_non_null(strstr(args, "--quiet\n"));
    const char *env = content(p, "trial/env");
    assert_non_null(strstr(env, arena_printf(arena, "HOME=%s/home\n", dir)));
    assert_null(strstr(env, "MY_KEY")); /* what the caller has in his environment must not decide */
    struct json *task = NULL;
    const char *told = content(p, "trial/told");
    assert_int_equal(json_parse(arena, str_of(told), NULL, &task, NULL), 0);
    assert_string_equal(json_cstring(json_get(task, "prompt"), ""),
                        arena_printf(arena, "in %s/workspace", dir));
    assert_int_equal(json_int(json_pointer(task, STR("/limits/timeout")), 0), 48);
}

/* With a real model: no script, the caller's environment, the words for it, fewer checks. */
static void test_live(void **state)
{
    struct play *p = *state;
    p->opts.live = true;
    p->opts.model = "big";
    play(p,
         "script: {turns: [{say: Bye.}]}, live: {prompt: Say hello.}, expect: [{text: Hello.}], "
         "expect_script: [{text: Bye.}]",
         "mv args.$$ args; env > env; cp $task told");
    assert_int_equal(p->status, VERDICT_PASSED);
    assert_null(strstr(content(p, "trial/args"), "--script"));
    assert_non_null(strstr(content(p, "trial/args"), "--model\nbig\n"));
    assert_non_null(strstr(content(p, "trial/env"), "MY_KEY=secret\n"));
    assert_non_null(strstr(content(p, "trial/told"), "Say hello."));
}

static void test_checks_of_script_mode(void **state)
{
    play(*state, "expect: [{text: Hello.}], expect_script: [{text: Bye.}]", "");
    expect_failure(*state, "text: wanted \"Bye.\", found \"Hello.\"");
}

static void test_runs(void **state)
{
    struct play *p = *state;
    play(p,
         "expect: [{reason: success}], runs: [{name: a, expect: [{exit: 0}]}, "
         "{name: b, resume: a, copies: 2, expect: [{text: x}]}, {name: c, replay: a}]",
         "cat args.$$ >> all");
    expect_failure(p, "text: wanted \"x\", found \"Hello.\"\ntext: wanted \"x\"");
    const char *args = content(p, "trial/all");
    assert_non_null(strstr(args, arena_printf(arena, "--resume\n%s/runs/0\n", in(p, "trial"))));
    assert_non_null(strstr(
        args, arena_printf(arena, "--cassette\n%s/runs/0/evidence/traffic", in(p, "trial"))));
    assert_true(file_exists(AT_FDCWD, in(p, "trial/runs/3")));
    assert_false(file_exists(AT_FDCWD, in(p, "trial/runs/4")));
}

static struct json *parsed(const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(arena, str_of(text), NULL, &v, NULL), 0);
    return v;
}

#define LINGERS "lingers: true, expect: [{exit: 0}]"
#define STAYS   "\"-c\", \"\\\"$@\\\"; exec sleep 86400\", \"sh\", "

/* A shell stands between cinch and the program, by a profile of the trial's own. */
static void test_lingers(void **state)
{
    struct play *p = *state;
    p->profile.doc = parsed("{\"name\": \"mine\", \"binary\": [\"mine\"], \"home\": \"private\", "
                            "\"argv\": [\"{binary}\", \"-x\", {\"when\": \"model\"}]}");
    p->profile.binary = parsed("[\"nobody-has-this\", \"mine\"]");
    const char *program = in(p, "mine");
    assert_int_equal(file_write_atomic(AT_FDCWD, program, STR("#!/bin/sh\n"), 0755, NULL), 0);
    p->env[0] = arena_printf(arena, "PATH=%s:/usr/bin:/bin", p->dir);
    play(p, LINGERS, "mv args.$$ args");
    assert_string_equal(p->why, "");
    const char *dir = in(p, "trial");
    const char *args = content(p, "trial/args");
    assert_non_null(strstr(args, arena_printf(arena, "--adapter-dir\n%s/profiles\n", dir)));
    assert_non_null(strstr(args, arena_printf(arena, "--read\n%s\n", program)));
    struct json *profile = parsed(content(p, "trial/profiles/mine.yaml"));
    const char *wanted =
        arena_printf(arena,
                     "{\"name\": \"mine\", \"binary\": [\"/bin/sh\"], \"home\": \"private\", "
                     "\"argv\": [\"{binary}\", " STAYS "\"%s\", \"-x\", {\"when\": \"model\"}]}",
                     program);
    assert_true(json_equal(profile, parsed(wanted)));
}

static void test_command_lingers(void **state)
{
    struct play *p = *state;
    p->opts.command = parsed("[\"true\", \"--acp\"]");
    play(p, LINGERS, "mv args.$$ args; cp $task told");
    assert_string_equal(p->why, "");
    assert_null(strstr(content(p, "trial/args"), "--adapter-dir"));
    struct json *command = json_pointer(parsed(content(p, "trial/told")), STR("/agent/command"));
    const char *program = json_cstring(json_item(command, 4), "");
    assert_true(str_ends(str_of(program), STR("/bin/true")));
    const char *wanted = arena_printf(arena, "[\"/bin/sh\", " STAYS "\"%s\", \"--acp\"]", program);
    assert_true(json_equal(command, parsed(wanted)));
}

static void test_nothing_lingers(void **state)
{
    struct play *p = *state;
    play(p, LINGERS, "");
    expect_failure(p, "adapter 'mine' starts no program that could keep running");
    p->profile.image = "localhost/mine";
    p->verdicts = 0;
    p->opts.dir = in(p, "another");
    play(p, LINGERS, "");
    expect_failure(p, "adapter 'mine' is an image");
}

static void test_no_record(void **state)
{
    play(*state, "expect: [{exit: 0}]", "rm $out/result.json; echo it is gone >&2; exit 3");
    expect_failure(*state, "no usable record of run 0: ");
    expect_failure(*state, "result.json");
    expect_failure(*state, "cinch said: it is gone");
}

static void test_status(void **state)
{
    play(*state, "expect: [{exit: 7}, {said: \"oh\\n\"}]", "echo oh >&2; exit 7");
    assert_string_equal(((struct play *)*state)->why, "");
}

static void test_workspace_is_held(void **state)
{
    play(*state, "expect: [{exit: 0}]", "echo x > workspace/planted");
    expect_failure(*state, "what was given was touched");
}

static void test_home_is_held(void **state)
{
    play(*state, "expect: [{exit: 0}]", "echo x > $HOME/.planted");
    expect_failure(*state, "something was written into the home");
}

static void test_process_is_left(void **state)
{
    play(*state, "expect: [{exit: 0}]", "setsid sleep 100 >/dev/null 2>&1 </dev/null &");
    expect_failure(*state, "1 processes were left behind by 'cinch run', among them sleep");
}

static void test_too_long(void **state)
{
    struct play *p = *state;
    p->opts.timeout = NSEC_PER_SEC;
    play(p, "expect: [{exit: 143}]", "exec sleep 100");
    expect_failure(p, "'cinch run' did not end within 1 s and was stopped");
}

static void test_signal(void **state)
{
    play(*state, "signal: {to: cinch, name: TERM, event: now, count: 2}, expect: [{exit: 143}]",
         "echo '{\"event\":\"now\"}' >> $out/events.jsonl\n"
         "echo '{\"entry_type\":\"now\"}' >> $out/transcript.jsonl\nexec sleep 100");
    assert_string_equal(((struct play *)*state)->why, "");
}

static void test_signal_that_never_came(void **state)
{
    play(*state, "signal: {name: INT, event: never}, expect: [{exit: 0}]", "");
    expect_failure(*state, "it ended before never came 1 times");
}

static void test_no_program(void **state)
{
    struct play *p = *state;
    struct err e = { 0 };
    struct scenario_run *t;
    play(p, "expect: [{exit: 0}]", "");
    assert_int_equal(unlink(in(p, "cinch")), 0);
    p->opts.dir = in(p, "again");
    p->verdicts = 0;
    assert_int_equal(scenario_run_start(p->loop, &p->opts, &t, &e), 0);
    loop_run(p->loop);
    t = scenario_run_free(t);
    assert_int_equal(p->status, VERDICT_FAILED);
    assert_string_equal(p->why, "the program cinch is not known: name it in CINCH");
}

/* Nothing is left of a trial that nobody waits for. */
static void test_freed_early(void **state)
{
    struct play *p = *state;
    struct err e = { 0 };
    struct scenario_run *t;
    play(p, "expect: [{exit: 0}]", "");
    p->opts.dir = in(p, "again");
    assert_int_equal(scenario_run_start(p->loop, &p->opts, &t, &e), 0);
    assert_null(scenario_run_free(t));
    assert_null(scenario_run_free(NULL));
    assert_int_equal(p->verdicts, 1);
}

#define PLAY_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(test_passes),
        PLAY_TEST(test_live),
        PLAY_TEST(test_checks_of_script_mode),
        PLAY_TEST(test_runs),
        PLAY_TEST(test_lingers),
        PLAY_TEST(test_command_lingers),
        PLAY_TEST(test_nothing_lingers),
        PLAY_TEST(test_no_record),
        PLAY_TEST(test_status),
        PLAY_TEST(test_workspace_is_held),
        PLAY_TEST(test_home_is_held),
        PLAY_TEST(test_process_is_left),
        PLAY_TEST(test_too_long),
        PLAY_TEST(test_signal),
        PLAY_TEST(test_signal_that_never_came),
        PLAY_TEST(test_no_program),
        PLAY_TEST(test_freed_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
