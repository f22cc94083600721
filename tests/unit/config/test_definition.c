/* SPDX-License-Identifier: MIT
 *
 * From settings to what an agent is asked: prompts of all kinds, tools, contracts, and the codes of
 * what is wrong.
 */
#include "config/definition.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "config/support.h"
#include "data/yaml.h"
#include "run/task_preview.h"

static struct arena *arena;
static struct settings settings;
static struct definition d;
static char root[] = "/tmp/cinch-definition-XXXXXX";

static int setup(void **state)
{
    arena = arena_new();
    d = (struct definition) { 0 };
    (void)snprintf(root, sizeof root, "/tmp/cinch-definition-XXXXXX");
    return mkdtemp(root) == NULL || chdir(root) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    definition_done(&d);
    arena = arena_free(arena);
    return chdir("/") < 0 ? -1 : file_remove_tree(AT_FDCWD, root, NULL);
}

static void put(const char *name, const char *text)
{
    assert_int_equal(file_write_atomic(AT_FDCWD, name, str_of(text), 0644, NULL), 0);
}

/* The task as task.yaml, opened and bound. */
static int bind(const char *task, struct err *e)
{
    put("task.yaml", task);
    definition_done(&d);
    int r =
        settings_load(arena, &(struct settings_input) { .task_file = "task.yaml" }, &settings, e);
    r = r < 0 ? r : definition_open(&d, arena, &settings, e);
    return r < 0 ? r : definition_bind(&d, e);
}

static void expect(const char *task, const char *prompt)
{
    struct err e = { 0 };
    struct str text = STR_EMPTY;
    struct definition_place place = { .run_fd = -1, .run_dir = "RUN", .home_fd = -1 };
    if (bind(task, &e) < 0 || definition_prompt(&d, &place, &text, &e) < 0) {
        fail_msg("%s: %s", task, e.msg);
    }
    assert_string_equal(arena_dup(arena, text), prompt);
}

static void refuse(const char *task, enum err_code code, const char *message)
{
    struct err e = { 0 };
    int r = bind(task, &e);
    if (r != -(int)code || strstr(e.msg, message) == NULL) {
        fail_msg("%s: %d, '%s' instead of %d, '%s'", task, r, e.msg, -(int)code, message);
    }
}

static void test_prompts(void **state)
{
    put("p.md", "{{ x }} in a file");
    put("inc.md", "[{{ x }}]");
    expect("prompt: plain {{ text }}", "plain {{ text }}");
    expect("prompt: '{{ x }}'\nparams: {x: 1}", "1");
    expect("prompt: {text: '{{ 1 }}', template: true}", "1");
    expect("prompt: {text: '{{ x }}', template: false}\nparams: {x: 1}", "{{ x }}");
    expect("prompt: {file: p.md}", "{{ x }} in a file");
    expect("prompt: {file: p.md}\nparams: {x: y}", "y in a file");
    expect("prompt: \"{% include 'inc.md' %}\"\nparams: {x: y}", "[y]");
    expect("prompt: [{key: a, title: A, body: '{{ x }}'}]\nparams: {x: y}", "## 1. A (a)\n\ny");
    expect("name: nothing", "");
}

static const char *offered(void)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < json_len(d.tools); i++) {
        buf_addf(&out, "%s ", json_cstring(json_get(json_item(d.tools, i), "name"), "?"));
    }
    return arena_dup(arena, buf_str(&out));
}

static void test_tools(void **state)
{
    static const char tools[] = "tools:\n"
                                "  - {name: free, description: x, command: [a]}\n"
                                "  - {name: shown, description: x, command: [a]}\n"
                                "  - {name: hidden, description: x, command: [a]}\n";
    struct err e = { 0 };
    assert_int_equal(
        bind(arena_printf(arena,
                          "%sprompt:\n"
                          "  - {key: a, title: A, children: [{key: b, title: B, tools: [shown]}]}\n"
                          "  - {key: c, title: C, body: x, summary: y, visibility: summary,\n"
                          "     children: [{key: d, title: D, tools: [hidden]}]}\n",
                          tools),
             &e),
        0);
    assert_string_equal(offered(), "free shown open_sections ");
    assert_int_equal(bind(tools, &e), 0);
    assert_string_equal(offered(), "free shown hidden ");
    const struct json *none = json_get(json_item(d.tools, 0), "parameters");
    assert_string_equal(json_cstring(json_get(none, "type"), ""), "object");
}

static void test_codes(void **state)
{
    put("bad.json", "{\"type\": 5}");
    put("a.md", "{% include 'a.md' %}");
    refuse("prompt: '{{ x }}'\nparams: {y: 1}", ERR_CONFIG,
           "task.yaml:1:9: prompt:1: 'x' is undef");
    refuse("prompt: '{% if %}'\nparams: {y: 1}", ERR_PARSE, "task.yaml:1:9: prompt:1");
    /* limits of templates are faults of the task, not of cinch */
    refuse("prompt: \"{% include 'a.md' %}\"\nparams: {y: 1}", ERR_CONFIG, "a.md:1");
    refuse("prompt: \"{{ ''.__class__ }}\"\nparams: {y: 1}", ERR_CONFIG, "prompt:1");
    refuse("prompt: \"{% include 'none.md' %}\"\nparams: {y: 1}", ERR_INPUT, "none.md");
    refuse("prompt: {file: none.md}", ERR_INPUT, "none.md");
    refuse("prompt: ''", ERR_INPUT, "empty");
    refuse("prompt: {text: a, sections: [{key: a, title: A}]}", ERR_USAGE, "given twice");
    refuse("output: {schema: bad.json}", ERR_CONFIG, "bad.json");
    refuse("output: {schema: none.json}", ERR_INPUT, "none.json");
    refuse("skills: [none]", ERR_INPUT, "none");
    refuse("inputs: {a: b}", ERR_CONFIG, "'inputs' are for a skill package");
    refuse("prompt: [{key: a, title: A, skills: [x]}]", ERR_CONFIG, "there is no skill 'x'");
}

static void test_contract_is_told_unless_native(void **state)
{
    static const char task[] =
        "agent: {command: [x]}\nprompt: x\noutput: {schema: {type: integer}}\n";
    struct err e = { 0 };
    struct str text;
    struct definition_place place = { .run_fd = -1, .run_dir = "RUN", .home_fd = -1 };
    assert_int_equal(bind(task, &e), 0);
    assert_int_equal(definition_prompt(&d, &place, &text, &e), 0);
    assert_true(str_starts(text, STR("x\n\nAnswer with one JSON value")));
    struct json *args = json_array(arena);
    json_push(arena, args, json_cstr(arena, "--schema={output_schema}"));
    struct profile_args group = { .args = args };
    struct profile native = { .driver = "oneshot", .argv = &group, .argv_len = 1 };
    assert_true(definition_native_schema(&native));
    settings.profile = &native;
    assert_int_equal(definition_prompt(&d, &place, &text, &e), 0);
    assert_true(str_eqc(text, "x"));
    assert_true(
        definition_native_schema(&(struct profile) { .driver = "oneshot", .schema_native = true }));
    assert_false(definition_native_schema(&(struct profile) { .driver = "oneshot" }));
    assert_false(definition_native_schema(NULL));
}

static void test_description(void **state)
{
    struct err e = { 0 };
    struct json *shown;
    assert_int_equal(
        bind("name: n\nagent: {command: [sh, '{prompt}', '{unknown}']}\nprompt: hello\n"
             "policies: [{type: deny, tools: [x]}]\n",
             &e),
        0);
    assert_int_equal(task_preview(&d, &shown, &e), 0);
    const struct json *argv = json_get(json_get(shown, "sent"), "arguments");
    assert_int_equal(json_len(argv), 3);
    assert_string_equal(json_cstring(json_item(argv, 1), ""), "hello");
    assert_string_equal(json_cstring(json_item(argv, 2), ""), "{unknown}");
    assert_string_equal(json_cstring(json_get(json_get(shown, "prompt"), "kind"), ""), "text");
    /* Policies that nobody can keep: told beforehand, and refused by a run. */
    assert_true(json_len(json_get(shown, "warnings")) >= 1);
    assert_int_equal(support_check(arena, &settings, &e), -ERR_UNSUPPORTED);
}

static struct json *tree_of(const char *text)
{
    struct json *v;
    struct err e = { 0 };
    assert_int_equal(yaml_parse(arena, str_of(text), "t", NULL, &v, &e), 0);
    return v;
}

/* A skill's configuration of the harness is below the task and the command line. */
static void test_a_layer_found_later(void **state)
{
    struct err e = { 0 };
    put("task.yaml", "{files: {a: task, b: task}, limits: {idle: 1}}");
    struct settings_input in = { .task_file = "task.yaml",
                                 .request = tree_of("{files: {a: request}}") };
    assert_int_equal(settings_load(arena, &in, &settings, &e), 0);
    struct json *more = tree_of("{files: {a: skill, b: skill, c: skill}}");
    assert_int_equal(settings_add_layer(arena, &settings, "skill", "s", more, &e), 0);
    const struct json *files = json_get(settings.tree, "files");
    assert_string_equal(json_cstring(json_get(files, "a"), ""), "request");
    assert_string_equal(json_cstring(json_get(files, "b"), ""), "task");
    assert_true(settings.idle == NSEC_PER_SEC);
    assert_string_equal(settings_origin(&settings, arena, "files", "c").layer, "skill");
    /* It may not set anything else. */
    more = tree_of("{limits: {idle: 2}}");
    assert_int_equal(settings_add_layer(arena, &settings, "skill", "s", more, &e), -ERR_CONFIG);
    assert_string_equal(e.msg, "s:1:11: unknown key 'limits.idle'");
    assert_true(settings.idle == NSEC_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_prompts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tools, setup, teardown),
        cmocka_unit_test_setup_teardown(test_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contract_is_told_unless_native, setup, teardown),
        cmocka_unit_test_setup_teardown(test_description, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_layer_found_later, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
