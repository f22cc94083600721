/* SPDX-License-Identifier: MIT
 *
 * Scenario files: what a scenario inherits, what a run is, every mistake with its place; and the
 * table that is compiled in.
 */
#include "../values.h"

#include <signal.h>

#include "ack/scenario.h"
#include "adapters/profile.h"

static struct scenario_list list;

static int set_up(void **state)
{
    list = (struct scenario_list) { 0 };
    return arena_setup(state);
}

static const struct scenario *one(const char *text)
{
    struct err e = { 0 };
    if (scenario_parse(arena, str_of(text), "f.yaml", &list, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return list.items[list.len - 1];
}

static void test_defaults(void **state)
{
    const struct scenario *s = one("scenarios:\n"
                                   "  - {name: a, summary: It is., capability: text_response,"
                                   " task: {prompt: x}, expect: [{reason: success}]}\n");
    assert_string_equal(s->name, "a");
    assert_true(s->git);
    assert_false(s->hermetic);
    assert_int_equal(s->tier, TIER_BASIC);
    assert_string_equal(s->capabilities[0], "text_response");
    assert_null(s->capabilities[1]);
    assert_int_equal(s->runs_len, 1);
    assert_null(s->runs[0].name);
    assert_null(s->runs[0].expect); /* it is the scenario's */
    assert_int_equal(s->runs[0].copies, 1);
    assert_int_equal(s->runs[0].signal.to, SIGNAL_NONE);
    assert_int_equal(s->timeout, 0);
    assert_int_equal(json_len(s->expect), 1);
}

static void test_base(void **state)
{
    const struct scenario *s = one(
        "bases:\n"
        "  b: {git: false, task: {prompt: x, limits: {calls: 1}}, script: {turns: [{say: a}]}}\n"
        "scenarios:\n"
        "  - {name: a, summary: It is., capability: [transcript, tool_invocation], base: b,\n"
        "     hermetic: true, timeout: 2m, task: {limits: {usd: 2}}, script: {turns: [{say: b}]},\n"
        "     expect_script: [{reason: success}]}\n");
    assert_false(s->git);
    assert_true(s->hermetic);
    assert_int_equal(s->timeout, 120 * NSEC_PER_SEC);
    assert_int_equal(s->tier, TIER_OBSERVED); /* of the first capability */
    assert_string_equal(s->capabilities[1], "tool_invocation");
    /* Tasks are merged, a script is told as a whole. */
    assert_true(json_equal(s->task, tree("{prompt: x, limits: {calls: 1, usd: 2}}")));
    assert_true(json_equal(s->script, tree("{turns: [{say: b}]}")));
    assert_int_equal(json_len(s->expect_script), 1);
}

static void test_runs(void **state)
{
    const struct scenario *s = one(
        "scenarios:\n"
        "  - name: a\n"
        "    summary: It is.\n"
        "    capability: replay\n"
        "    task: {prompt: x}\n"
        "    runs:\n"
        "      - {name: first, copies: 3, options: [--quiet], expect: [{reason: success}]}\n"
        "      - {name: second, replay: first, task: {prompt: y}, script: {turns: [{say: b}]},\n"
        "         expect_script: [{text: z}], signal: {to: harness, name: KILL, event: x, "
        "count: 2}}\n"
        "      - {resume: second}\n");
    assert_int_equal(s->runs_len, 3);
    assert_int_equal(s->runs[0].copies, 3);
    assert_string_equal(json_cstring(json_item(s->runs[0].options, 0), ""), "--quiet");
    assert_string_equal(s->runs[1].replay, "first");
    assert_int_equal(s->runs[1].signal.to, SIGNAL_HARNESS);
    assert_int_equal(s->runs[1].signal.signo, SIGKILL);
    assert_int_equal(s->runs[1].signal.count, 2);
    assert_string_equal(s->runs[1].signal.event, "x");
    assert_int_equal(json_len(s->runs[1].expect_script), 1);
    assert_string_equal(s->runs[2].resume, "second");
    s = one(
        "scenarios:\n"
        "  - {name: b, summary: It is., capability: cancellation, task: {prompt: x}, copies: 2,\n"
        "     signal: {name: TERM}, expect: [{exit: 143}]}\n");
    assert_int_equal(s->runs[0].copies, 2);
    assert_int_equal(s->runs[0].signal.to, SIGNAL_CINCH);
    assert_int_equal(s->runs[0].signal.signo, SIGTERM);
    assert_int_equal(s->runs[0].signal.count, 1);
}

#define HEAD \
    "scenarios:\n  - {name: a, summary: It is., capability: text_response, task: {prompt: x}"
#define GOOD ", expect: [{reason: success}]"

static void test_mistakes(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "scenarioes: []\n", "f.yaml:1:1: unknown key 'scenarioes' (did you mean 'scenarios'?)" },
        { "scenarios: [\n", "f.yaml:" },
        { "scenarios: {a: 1}\n", "f.yaml:1:12: 'scenarios' must be a list" },
        { HEAD ", expct: []}\n", "unknown key 'scenarios[0].expct' (did you mean 'expect'?)" },
        { HEAD GOOD ", git: maybe}\n", "'scenarios[0].git' must be" },
        { HEAD GOOD ", base: b}\n", "f.yaml:2:5: its base is not defined: 'b'" },
        { "bases: {b: {tsk: {}}}\n" HEAD GOOD "}\n", "base 'b': f.yaml:1:13: unknown key 'tsk'" },
        { "bases: {b: {expect: []}}\n" HEAD GOOD "}\n", "unknown key 'expect'" },
        { "bases: {b: 5}\n" HEAD GOOD "}\n", "base 'b': f.yaml:1:12: " },
        { "scenarios:\n  - {summary: x, capability: replay, task: {}}\n",
          "f.yaml:2:5: a scenario has a name, a summary and a task" },
        { "scenarios:\n  - {name: x, capability: replay, task: {}}\n", "f.yaml:2:5: a scenario" },
        { "scenarios:\n  - {name: x, summary: x, capability: replay}\n", "f.yaml:2:5: a scenario" },
        { "scenarios:\n  - {name: x, summary: x, task: {}}\n",
          "scenario 'x': f.yaml:2:5: a scenario has one capability, or a few" },
        { "scenarios:\n  - {name: x, summary: x, task: {}, capability: []}\n", "one capability" },
        { "scenarios:\n  - {name: x, summary: x, task: {}, capability: telepathy}\n",
          "scenario 'x': f.yaml:2:49: there is no such capability: 'telepathy'" },
        { "scenarios:\n  - {name: ../a, summary: x, task: {}, capability: replay" GOOD "}\n",
          "f.yaml:2:5: a name is made of a-z, 0-9 and _" },
        { "scenarios:\n  - {name: '', summary: x, task: {}, capability: replay" GOOD "}\n",
          "a name is made of" },
        { HEAD GOOD ", workspace: {a/../b: x}}\n", "path of a file is relative and leads down" },
        { HEAD GOOD ", outside: {/etc/x: x}}\n", "path of a file is relative and leads down" },
        { HEAD GOOD ", workspace: {'': x}}\n", "path of a file is relative and leads down" },
        { HEAD GOOD ", workspace: {a/: x}}\n", "path of a file is relative and leads down" },
        { HEAD GOOD ", workspace: {\"a\\0b\": x}}\n", "path of a file is relative and leads down" },
        { HEAD GOOD ", workspace: {a: 5}}\n", "f.yaml:2:122: the content of a file is a text" },
        { HEAD "}\n", "scenario 'a': f.yaml:2:5: it expects nothing" },
        { HEAD ", expect: []}\n", "it expects nothing" },
        /* In live mode nothing would be checked. */
        { HEAD ", expect_script: [{reason: success}]}\n", "it expects nothing" },
        { HEAD ", expect: {reason: success}}\n", "a list of checks belongs here" },
        { HEAD ", expect: [{reson: success}]}\n", "f.yaml:2:87: no check is called 'reson'" },
        { HEAD GOOD ", expect_script: [{text: {}}]}\n", "an empty matcher holds always" },
        /* Tasks and scripts are those of `cinch run`. */
        { HEAD GOOD ", script: {turns: [{sy: x}]}}\n",
          "scenario 'a': f.yaml:2:125: unknown key 'turns[0].sy' (did you mean 'say'?)" },
        { HEAD GOOD ", script: {turns: []}}\n", "a script needs 'steps', 'turns' or 'otherwise'" },
        { HEAD GOOD ", runs: [{script: {turns: [{}]}}]}\n", "a step must say" },
        { HEAD GOOD ", runs: [{task: {limts: {usd: 1}}}]}\n",
          "scenario 'a': f.yaml:2:122: unknown key 'limts' (did you mean 'limits'?)" },
        { HEAD GOOD ", live: {tools: [{name: a b}]}}\n", "the name of a tool must be" },
        { "bases: {b: {task: {sandbox: on}}}\n" HEAD GOOD ", base: b}\n",
          "scenario 'a': f.yaml:1:29: 'sandbox.mode' must be" },
        { HEAD GOOD ", copies: 17}\n", "'copies' is a number from 1 to 16" },
        { HEAD GOOD ", copies: 0}\n", "'copies' is a number from 1 to 16" },
        { HEAD GOOD ", signal: {name: HUP}}\n", "'scenarios[0].signal.name' must be" },
        { HEAD GOOD ", signal: {count: 0}}\n", "'count' is a number from 1 on" },
        { HEAD GOOD ", runs: []}\n", "without runs nothing is tried" },
        { HEAD GOOD ", copies: 2, runs: [{name: b}]}\n",
          "a scenario with 'runs' must set it in one of them" },
        { HEAD ", runs: [{expect: [{reson: x}]}]}\n", "no check is called 'reson'" },
        { HEAD GOOD ", runs: [{replay: b}, {name: b}]}\n",
          "'resume' and 'replay' name an earlier run" },
        { HEAD GOOD ", runs: [{name: b, resume: b}]}\n", "name an earlier run" },
        { HEAD GOOD ", runs: [{name: b}, {name: b}]}\n", "there is another run of this name" },
        { HEAD GOOD "}\n  - {name: a, summary: x, capability: replay, task: {}" GOOD "}\n",
          "f.yaml:3:5: there is another scenario of this name: 'a'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        list = (struct scenario_list) { 0 };
        if (scenario_parse(arena, str_of(cases[i].text), "f.yaml", &list, &e) == 0) {
            fail_msg("it was read: %s", cases[i].text);
        }
        if (strstr(e.msg, cases[i].message) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i].message, e.msg);
        }
    }
}

static void refused(const char *text, const char *message)
{
    struct err e = { 0 };
    list = (struct scenario_list) { 0 };
    if (scenario_parse(arena, str_of(text), "f.yaml", &list, &e) != -ERR_CONFIG) {
        fail_msg("it was read: %s", text);
    }
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' is not in '%s'", message, e.msg);
    }
}

/* What placeholders come to is bounded, before anything is filled in. */
static void test_room(void **state)
{
    static const char wrong[] = "'%{fill:N}' has a number from 1 to 16777216";
    static const char much[] = "the placeholders of a scenario may expand to at most 16 MiB";
    refused(HEAD GOOD ", workspace: {a: '%{fill:16777217}'}}\n",
            "scenario 'a': f.yaml:2:122: '%{fill:N}' has a number from 1 to 16777216");
    refused(HEAD GOOD ", workspace: {a: '%{fill:99999999999999999999}'}}\n", wrong);
    refused(HEAD GOOD ", workspace: {a: '%{fill:0}'}}\n", wrong);
    refused(HEAD GOOD ", workspace: {'%{fill:x}': a}}\n", wrong);
    refused(HEAD ", expect: [{text: {contains: '%{fill:-1}'}}]}\n", wrong);
    refused(HEAD GOOD ", options: ['%{fill:16000000} %{fill:16000000}']}\n", much);
    refused(HEAD GOOD ", workspace: {a: '%{fill:16000000}', b: '%{fill:16000000}'}}\n", much);
    refused("bases: {b: {task: {prompt: '%{fill:16000000}'}}}\nscenarios: [{name: a, base: b,"
            " summary: x, capability: replay, live: {prompt: '%{fill:16000000}'}" GOOD "}]\n",
            "f.yaml:2:");
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, HEAD GOOD ", workspace: {a: '");
    for (size_t i = 0; i < 4096; i++) {
        buf_adds(&text, "%{dir}");
    }
    (void)one(arena_printf(arena, "%.*s'}}\n", STR_ARG(buf_str(&text))));
    refused(arena_printf(arena, "%.*s%%{key}'}}\n", STR_ARG(buf_str(&text))), much);
    list = (struct scenario_list) { 0 };
    (void)one(HEAD GOOD ", workspace: {a: '%{fill:16777216}'}}\n");
}

static void test_bounds(void **state)
{
    refused("scenarios:\n  - {name: contract, summary: x, capability: replay, task: {}" GOOD "}\n",
            "f.yaml:2:5: the checks of the file contract have such names: 'contract'");
    refused("scenarios:\n  - {name: contract_probe, summary: x, capability: replay, task: {}" GOOD
            "}\n",
            "the checks of the file contract have such names: 'contract_probe'");
    (void)one("scenarios:\n  - {name: contracts, summary: x, capability: replay, task: {}" GOOD
              "}\n");
    refused(HEAD GOOD ", timeout: 0}\n", "scenario 'a': f.yaml:2:116: 'timeout' is at least 2 s");
    refused(HEAD GOOD ", timeout: 1.9}\n", "'timeout' is at least 2 s");
    refused(HEAD GOOD ", timeout: 1999ms}\n", "'timeout' is at least 2 s");
    refused("bases: {b: {timeout: 1}}\n" HEAD GOOD ", base: b}\n",
            "f.yaml:1:22: 'timeout' is at least 2 s");
    list = (struct scenario_list) { 0 };
    assert_int_equal(one(HEAD GOOD ", timeout: 2}\n")->timeout, 2 * NSEC_PER_SEC);
    list = (struct scenario_list) { 0 };
    assert_int_equal(one(HEAD GOOD ", timeout: null}\n")->timeout, 0);
}

/* Two files make one table, in which no name stands twice. */
static void test_files(void **state)
{
    struct err e = { 0 };
    const struct scenario *s = one(HEAD GOOD "}\n");
    assert_int_equal(scenario_parse(arena, STR(HEAD GOOD "}\n"), "g.yaml", &list, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "g.yaml:2:5: there is another scenario of this name"));
    assert_ptr_equal(scenario_find(&list, "a"), s);
    assert_null(scenario_find(&list, "b"));
}

static void test_table(void **state)
{
    struct err e = { 0 };
    if (scenario_load_all(arena, NULL, &list, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    assert_true(list.len >= 41);
    bool proven[CAPABILITY_COUNT] = { false };
    for (size_t i = 0; i < list.len; i++) {
        const struct scenario *s = list.items[i];
        assert_true(i == 0 || s->tier >= list.items[i - 1]->tier);
        for (const char **name = s->capabilities; *name != NULL; name++) {
            enum capability c;
            assert_true(capability_of(str_of(*name), &c));
            proven[c] = true;
        }
        /* A real model has only the prompt to go by. */
        bool script = s->script != NULL;
        for (size_t k = 0; k < s->runs_len; k++) {
            script = script || s->runs[k].script != NULL || s->runs[k].replay != NULL;
        }
        if (!script && !s->hermetic) {
            fail_msg("%s: without a script it is hermetic", s->name);
        }
    }
    for (int c = 0; c < CAPABILITY_COUNT; c++) {
        if (!proven[c]) {
            fail_msg("%s: no scenario is about it", capability_info((enum capability)c)->name);
        }
    }
}

static bool declares_all(const struct profile *p, const struct scenario *s)
{
    for (const char **name = s->capabilities; *name != NULL; name++) {
        enum capability c;
        if (!capability_of(str_of(*name), &c) || capability_lack(&p->capabilities, c) != NULL) {
            return false;
        }
    }
    return true;
}

static bool is_about(const struct scenario *s, const char *capability)
{
    for (const char **name = s->capabilities; *name != NULL; name++) {
        if (strcmp(*name, capability) == 0) {
            return true;
        }
    }
    return false;
}

/* What a profile that the kit is for declares, a scenario tries on it: one that needs no more than
 * is declared. */
static void test_what_is_declared_is_tried(void **state)
{
    struct profile_list profiles;
    assert_int_equal(scenario_load_all(arena, NULL, &list, NULL), 0);
    assert_int_equal(profile_load_all(arena, NULL, &profiles, NULL), 0);
    for (size_t i = 0; i < profiles.len; i++) {
        const struct profile *p = profiles.items[i];
        bool left_out = json_pointer(p->doc, STR("/lacks/otherwise")) != NULL;
        for (int c = 0; c < CAPABILITY_COUNT && !left_out; c++) {
            const char *name = capability_info((enum capability)c)->name;
            bool tried = capability_lack(&p->capabilities, (enum capability)c) != NULL;
            for (size_t k = 0; !tried && k < list.len; k++) {
                tried = is_about(list.items[k], name) && declares_all(p, list.items[k]);
            }
            if (!tried) {
                fail_msg("%s declares %s, and no scenario tries it", p->name, name);
            }
        }
    }
}

#define SCENARIO_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENARIO_TEST(test_defaults),
        SCENARIO_TEST(test_base),
        SCENARIO_TEST(test_runs),
        SCENARIO_TEST(test_mistakes),
        SCENARIO_TEST(test_room),
        SCENARIO_TEST(test_bounds),
        SCENARIO_TEST(test_files),
        SCENARIO_TEST(test_table),
        SCENARIO_TEST(test_what_is_declared_is_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
