/* SPDX-License-Identifier: MIT
 *
 * Sections: what is rendered, what is refused and where the message points, disclosure, overrides.
 */
#include "prompt/section.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "data/yaml.h"

struct fixture {
    struct arena *arena;
    struct err e;
    struct section_tree *tree;
    struct section_rendering out;
    const struct json *tools;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    (void)section_tree_free(f->tree);
    (void)arena_free(f->arena);
    free(f);
    return 0;
}

static struct json *yaml(struct fixture *f, const char *text)
{
    struct json *v = NULL;
    if (yaml_parse(f->arena, str_of(text), "task.yaml", NULL, &v, &f->e) < 0) {
        fail_msg("%s", f->e.msg);
    }
    return v;
}

/* The sections in YAML behind "ns: demo, key: review". */
static int build(struct fixture *f, const char *sections)
{
    struct json *prompt =
        yaml(f, arena_printf(f->arena, "ns: Demo\nkey: review\nsections:\n%s", sections));
    f->tree = section_tree_free(f->tree);
    return section_tree_new(
        prompt, &(struct section_opts) { .file = "task.yaml", .tools = f->tools }, &f->tree, &f->e);
}

static int render(struct fixture *f, const char *params, const char *visibility)
{
    struct section_request request = { .params = params == NULL ? NULL : yaml(f, params),
                                       .visibility =
                                           visibility == NULL ? NULL : yaml(f, visibility) };
    return section_tree_render(f->tree, &request, f->arena, &f->out, &f->e);
}

static void assert_text(struct fixture *f, const char *sections, const char *params,
                        const char *visibility, const char *expected)
{
    if (build(f, sections) < 0 || render(f, params, visibility) < 0) {
        fail_msg("%s", f->e.msg);
    }
    assert_string_equal(f->out.text.ptr, expected);
}

static void assert_refused(struct fixture *f, const char *sections, enum err_code code,
                           const char *message)
{
    int r = build(f, sections);
    r = r < 0 ? r : render(f, "{x: 1}", NULL);
    if (r != -(int)code || strstr(f->e.msg, message) == NULL) {
        fail_msg("%s\ngot %d: %s", sections, r, r < 0 ? f->e.msg : f->out.text.ptr);
    }
}

/* --- rendering --- */

static void headings_numbers_and_paths(void **state)
{
    assert_text(
        *state,
        "- key: Guide\n  title: ' Guidelines '\n  body: |\n\n    Review {{ repo }}\n\n"
        "      with care.\n\n  children:\n"
        "  - {key: a, title: First, body: A}\n"
        "  - {key: b, title: Second, children: [{key: c, title: Deep, body: '{{ repo }}'}]}\n"
        "- {key: end, title: End, body: '   '}\n",
        "{repo: x}", NULL,
        "## 1. Guidelines (guide)\n\nReview x\n\n  with care.\n\n"
        "### 1.1. First (guide.a)\n\nA\n\n"
        "### 1.2. Second (guide.b)\n\n"
        "#### 1.2.1. Deep (guide.b.c)\n\nx\n\n"
        "## 2. End (end)");
}

static void disabled_sections_keep_their_number(void **state)
{
    struct fixture *f = *state;
    const char *sections = "- {key: a, title: A, enabled: false, children: [{key: x, title: X}]}\n"
                           "- {key: b, title: B, enabled: n > 3}\n"
                           "- {key: c, title: C, enabled: 'n > 3 or verbose', body: c}\n";
    assert_text(f, sections, "{n: 1, verbose: true}", NULL, "## 3. C (c)\n\nc");
    assert_text(f, sections, "{n: 5, verbose: false}", NULL, "## 2. B (b)\n\n## 3. C (c)\n\nc");
    assert_int_equal(f->out.sections_len, 2);
    assert_string_equal(f->out.sections[1].path.ptr, "c");
    assert_string_equal(f->out.sections[1].number.ptr, "3");
}

static void defaults_go_down_and_bound_values_win(void **state)
{
    assert_text(
        *state,
        "- key: a\n  title: A\n  params: {x: 1, y: 2, z: 3}\n  body: '{{ x }}{{ y }}{{ z }}'\n"
        "  children:\n  - {key: b, title: B, params: {y: 5}, body: '{{ x }}{{ y }}{{ z }}'}\n"
        "  - {key: c, title: C, body: '{{ x }}{{ y }}{{ z }}'}\n"
        "- {key: d, title: D, body: '{{ x is defined }}{{ z }}'}\n",
        "{z: 9}", NULL,
        "## 1. A (a)\n\n129\n\n### 1.1. B (a.b)\n\n159\n\n### 1.2. C (a.c)\n\n129\n\n"
        "## 2. D (d)\n\nFalse9");
}

static const char summarized[] =
    "- key: a\n  title: A\n  summary: Short {{ x }}\n  visibility: summary\n  body: Long\n"
    "  tools: [t1]\n  children:\n  - {key: b, title: B, body: Inner, skills: [s1]}\n"
    "  - {key: c, title: C, body: More, summary: Less, visibility: summary}\n"
    "- {key: d, title: D, body: Text, summary: S, visibility: summary}\n"
    "- {key: e, title: E, body: Open, tools: [t2], skills: [s2]}\n";

static void summaries_say_how_to_open_them(void **state)
{
    struct fixture *f = *state;
    assert_text(
        f, summarized, "{x: 1}", NULL,
        "## 1. A (a)\n\nShort 1\n\n---\n[This section is summarized. Call `open_sections` with "
        "key \"a\" to view full content including subsections: b, c.]\n\n"
        "## 2. D (d)\n\nS\n\n---\n[This section is summarized. To view full content, call "
        "`read_section` with key \"d\".]\n\n"
        "## 3. E (e)\n\nOpen");
    assert_int_equal(f->out.tools_len, 3);
    assert_string_equal(f->out.tools[0].name.ptr, "t2");
    assert_string_equal(f->out.tools[0].path.ptr, "e");
    assert_string_equal(f->out.tools[1].name.ptr, "open_sections");
    assert_string_equal(f->out.tools[2].name.ptr, "read_section");
    assert_non_null(json_pointer(f->out.tools[1].definition,
                                 STR("/input_schema/properties/section_keys/items")));
    assert_int_equal(f->out.skills_len, 1);
    assert_string_equal(f->out.skills[0].name.ptr, "s2");
    assert_int_equal(f->out.sections[0].visibility, SECTION_SUMMARY);
}

static void visibility_of_the_request_wins(void **state)
{
    struct fixture *f = *state;
    assert_text(
        f, summarized, "{x: 1}", "{a: full, d: full, nope: full}",
        "## 1. A (a)\n\nLong\n\n### 1.1. B (a.b)\n\nInner\n\n"
        "### 1.2. C (a.c)\n\nLess\n\n---\n[This section is summarized. To view full content, "
        "call `read_section` with key \"a.c\".]\n\n"
        "## 2. D (d)\n\nText\n\n## 3. E (e)\n\nOpen");
    assert_int_equal(f->out.tools_len, 3);
    assert_string_equal(f->out.tools[0].name.ptr, "t1");
    assert_string_equal(f->out.tools[2].name.ptr, "read_section");
    assert_int_equal(f->out.skills_len, 2);
}

static void visibility_may_be_an_expression(void **state)
{
    const char *sections = "- {key: a, title: A, body: B, summary: S, "
                           "visibility: \"'summary' if short else 'full'\"}\n";
    assert_text(*state, sections, "{short: false}", NULL, "## 1. A (a)\n\nB");
    assert_text(*state, sections, "{short: true}", NULL,
                "## 1. A (a)\n\nS\n\n---\n[This section is summarized. To view full content, call "
                "`read_section` with key \"a\".]");
}

static const char definitions[] =
    "- name: run_tests\n  description: Runs the tests.\n"
    "  input_schema: {type: object, properties: {path: {type: string, description: Where}, "
    "\"\\u00e9\": {type: number, default: 1.5}}}\n"
    "  examples:\n  - {description: All, input: {path: a, none: null}, output: \"ok\\n\\nfine\"}\n"
    "  - {description: \"None\", input: null, output: null}\n"
    "- {name: edit, description: Edits.}\n"
    "- {name: fixed, description: Fixed., accepts_overrides: false}\n";

static void examples_of_tools_follow_the_body(void **state)
{
    struct fixture *f = *state;
    f->tools = yaml(f, definitions);
    assert_text(
        f, "- {key: a, title: A, body: B, tools: [edit, run_tests]}\n", NULL, NULL,
        "## 1. A (a)\n\nB\n\nTools:\n- run_tests: Runs the tests.\n"
        "  - run_tests examples:\n"
        "    - description: All\n      input:\n        ```json\n        {\"path\": \"a\"}\n"
        "        ```\n      output:\n        ```\n        ok\n\n        fine\n        ```\n"
        "    - description: None\n      input:\n        ```json\n        null\n        ```\n"
        "      output:\n        ```\n\n        ```");
    assert_string_equal(json_cstring(json_get(f->out.tools[1].definition, "description"), ""),
                        "Runs the tests.");
}

static const char task_examples[] =
    "- key: ex\n  title: Examples\n  examples:\n"
    "  - key: one\n    objective: Fix it\n    outcome: Fixed\n    steps:\n"
    "    - {tool: run_tests, description: Look, input: {path: a}, output: [1]}\n"
    "    - {tool: edit}\n"
    "  - {key: two, title: Own, objective: Other, outcome: {done: true}, "
    "steps: [{tool: edit, description: E}]}\n";

static void task_examples_are_sections(void **state)
{
    assert_text(
        *state, task_examples, NULL, NULL,
        "## 1. Examples (ex)\n\n### 1.1. Fix it (ex.one)\n\n**Objective:** Fix it\n\n"
        "**Steps:**\n\n1. **run_tests** - Look\n   - input:\n     ```json\n"
        "     {\"path\": \"a\"}\n     ```\n   - output:\n     ```\n     [1]\n     ```\n\n"
        "2. **edit** - \n   - input:\n     ```json\n     null\n     ```\n   - output:\n"
        "     ```\n     null\n     ```\n\n**Outcome:** Fixed\n\n"
        "### 1.2. Own (ex.two)\n\n**Objective:** Other\n\n**Steps:**\n\n1. **edit** - E\n"
        "   - input:\n     ```json\n     null\n     ```\n   - output:\n     ```\n     null\n"
        "     ```\n\n**Outcome:** {\"done\": true}");
}

static void a_prompt_needs_its_names(void **state)
{
    struct fixture *f = *state;
    static const char *const prompts[][2] = {
        { "{key: a, sections: [{key: a, title: A}]}", "task.yaml:1:1: the prompt needs 'ns'" },
        { "{ns: a/b, key: a, sections: [{key: a, title: A}]}",
          "'ns' of the prompt must be made of" },
        { "{ns: a, key: a, sections: []}", "a list of at least one" },
        { "{ns: a, key: a, sections: 5}", "a list of at least one" },
        { "[]", "a prompt is an object" },
    };
    for (size_t i = 0; i < sizeof prompts / sizeof prompts[0]; i++) {
        struct section_tree *tree = NULL;
        assert_int_equal(section_tree_new(yaml(f, prompts[i][0]),
                                          &(struct section_opts) { .file = "task.yaml" }, &tree,
                                          &f->e),
                         -ERR_CONFIG);
        assert_non_null(strstr(f->e.msg, prompts[i][1]));
    }
    struct section_tree *tree = NULL;
    assert_int_equal(section_tree_new(yaml(f, "{ns: ' A.b ', key: K, name: N, delivery: file, "
                                              "sections: [{key: a, title: A}]}"),
                                      &(struct section_opts) { 0 }, &tree, &f->e),
                     0);
    assert_string_equal(section_tree_ns(tree).ptr, "a.b");
    assert_string_equal(section_tree_key(tree).ptr, "k");
    assert_string_equal(section_tree_name(tree).ptr, "N");
    (void)section_tree_free(tree);
}

static void mistakes_are_named_with_their_place(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *sections;
        enum err_code code;
        const char *message;
    } wrong[] = {
        { "- {key: a, titel: A}\n", ERR_CONFIG, "task.yaml:4:12: unknown key 'titel'" },
        { "- {key: a, titel: A}\n", ERR_CONFIG, "did you mean 'title'" },
        { "- {key: a}\n", ERR_CONFIG, "task.yaml:4:3: section 'a': a section needs a 'title'" },
        { "- {title: A}\n", ERR_CONFIG, "task.yaml:4:3: a section needs a 'key'" },
        { "- {key: -a, title: A}\n", ERR_CONFIG, "task.yaml:4:9: the key of a section" },
        { "- {key: 'a b', title: A}\n", ERR_CONFIG, "the key of a section" },
        { "- {key: a, title: \"A\\nB\"}\n", ERR_CONFIG, "'title' of one line" },
        { "- {key: a, title: A}\n- {key: A, title: B}\n", ERR_CONFIG,
          "task.yaml:5:9: section 'a' is there already, see task.yaml:4:3" },
        { "- {key: a, title: A, children: [{key: b, title: B}]}\n- {key: a.b, title: C}\n",
          ERR_CONFIG, "section 'a.b' is there already" },
        { "- {key: a, title: A, tools: [x, y]}\n- {key: b, title: B, tools: [y]}\n", ERR_CONFIG,
          "task.yaml:5:30: section 'b': tool 'y' is offered by section 'a' already" },
        { "- {key: a, title: A, skills: [x, x]}\n", ERR_CONFIG,
          "skill 'x' is offered by section 'a'" },
        { "- {key: a, title: A, tools: [Bad Name]}\n", ERR_CONFIG, "the name of a tool must be" },
        { "- {key: a, title: A, tools: [read_section]}\n", ERR_CONFIG, "is built in" },
        { "- {key: a, title: A, visibility: summary}\n", ERR_CONFIG, "needs a 'summary'" },
        { "- {key: a, title: A, visibility: \"'no'\"}\n", ERR_CONFIG,
          "must be 'full' or 'summary'" },
        { "- {key: a, title: A, body: 5}\n", ERR_CONFIG, "task.yaml:4:" },
        { "- {key: a, title: A, enabled: 5}\n", ERR_CONFIG, "'enabled' is not an expression" },
        { "- {key: a, title: A, enabled: '1 %}{% if 1'}\n", ERR_CONFIG, "is not an expression" },
        { "- {key: a, title: A, enabled: 'x +'}\n", ERR_PARSE, "section 'a': enabled:1: " },
        { "- {key: a, title: A, enabled: nope}\n", ERR_CONFIG,
          "task.yaml:4:31: section 'a': enabled:1: 'nope' is undefined" },
        { "- {key: a, title: A, visibility: nope}\n", ERR_CONFIG,
          "section 'a': visibility:1: 'nope' is undefined" },
        { "- key: a\n  title: A\n  body: |\n\n    x\n    {{ nope }}\n", ERR_CONFIG,
          "section 'a': body:3: 'nope' is undefined" },
        { "- key: a\n  title: A\n  body: |\n    x\n    {% if %}\n", ERR_PARSE,
          "section 'a': body:2: " },
        { "- {key: a, title: A, body: '{% include ''x'' %}'}\n", ERR_INPUT, "section 'a': " },
        { "- {key: a, title: A, summary: '{{ nope }}', visibility: summary}\n", ERR_CONFIG,
          "section 'a': summary:1: 'nope' is undefined" },
        { "- {key: a, title: A, body: '{{ ''x'' * 99999999 }}'}\n", ERR_LIMIT,
          "section 'a': body:1: " },
        { "- {key: a, title: A, examples: [{key: x, objective: O, outcome: O}]}\n", ERR_CONFIG,
          "section 'a.x': an example needs 'steps'" },
        { "- {key: a, title: A, examples: [{key: x, outcome: O, steps: [{tool: t}]}]}\n",
          ERR_CONFIG, "an 'objective'" },
        { "- {key: a, title: A, examples: [{key: x, objective: O, outcome: O, steps: [{tol: "
          "t}]}]}\n",
          ERR_CONFIG, "unknown key 'examples[0].steps[0].tol'" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_refused(f, wrong[i].sections, wrong[i].code, wrong[i].message);
    }
    f->tools = yaml(f, definitions);
    assert_refused(f, "- {key: a, title: A, tools: [run_test]}\n", ERR_CONFIG,
                   "there is no tool 'run_test'");
    f->tools = yaml(f, "[{name: a}, {name: a}]");
    assert_refused(f, "- {key: a, title: A}\n", ERR_CONFIG, "tool 'a' is defined twice");
}

static void too_deep_is_refused(void **state)
{
    struct fixture *f = *state;
    struct json *prompt = yaml(f, "{ns: a, key: b, sections: [{key: s, title: S}]}");
    struct json *s = json_item(json_get(prompt, "sections"), 0);
    for (int i = 0; i < 60; i++) {
        struct json *child = json_copy(f->arena, yaml(f, "{key: s, title: S}"));
        struct json *list = json_array(f->arena);
        json_push(f->arena, list, child);
        json_setc(f->arena, s, "children", list);
        s = child;
    }
    struct section_tree *tree = NULL;
    assert_int_equal(section_tree_new(prompt, &(struct section_opts) { 0 }, &tree, &f->e),
                     -ERR_LIMIT);
}

/* --- disclosure --- */

static void opening_sections(void **state)
{
    struct fixture *f = *state;
    struct section_request request = { .params = yaml(f, "{x: 1}") };
    struct json *opened = NULL;
    assert_int_equal(build(f, summarized), 0);
    assert_int_equal(
        section_tree_open(f->tree, &request, yaml(f, "[a, e]"), f->arena, &opened, &f->e), 0);
    assert_true(json_equal(opened, yaml(f, "{a: full}")));
    request.visibility = opened;
    assert_int_equal(
        section_tree_open(f->tree, &request, yaml(f, "[a.c, d]"), f->arena, &opened, &f->e), 0);
    assert_true(json_equal(opened, yaml(f, "{a: full, a.c: full, d: full}")));
    static const char *const refused[][2] = {
        { "[]", "At least one section key must be provided." },
        { "x", "At least one section key must be provided." },
        { "[nope]", "Section 'nope' does not exist in this prompt." },
        { "[a]", "Section 'a' is already expanded." },
        { "[a, e]", "All requested sections are already expanded." },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(
            section_tree_open(f->tree, &request, yaml(f, refused[i][0]), f->arena, &opened, &f->e),
            -ERR_CONFIG);
        assert_string_equal(f->e.msg, refused[i][1]);
    }
}

static void reading_sections(void **state)
{
    struct fixture *f = *state;
    struct section_request request = { .params = yaml(f, "{x: 1}") };
    struct str text;
    assert_int_equal(build(f, summarized), 0);
    assert_int_equal(section_tree_read(f->tree, &request, STR("a"), f->arena, &text, &f->e), 0);
    assert_string_equal(
        text.ptr, "## 1. A (a)\n\nLong\n\n### 1.1. B (a.b)\n\nInner\n\n"
                  "### 1.2. C (a.c)\n\nLess\n\n---\n[This section is summarized. To view full "
                  "content, call `read_section` with key \"a.c\".]");
    assert_int_equal(section_tree_read(f->tree, &request, STR("a.c"), f->arena, &text, &f->e), 0);
    assert_string_equal(text.ptr, "### 1.2. C (a.c)\n\nMore");
    assert_true(section_tree_read(f->tree, &request, STR("e"), f->arena, &text, &f->e) < 0);
    assert_string_equal(f->e.msg, "Section 'e' is not summarized.");
    assert_true(section_tree_read(f->tree, &request, STR("q"), f->arena, &text, &f->e) < 0);
    assert_string_equal(f->e.msg, "Section 'q' does not exist in this prompt.");
}

/* --- overrides; the hashes were made with Python's hashlib and json --- */

#define BODY_HASH     "2d79fc8692d151372572a6bf1336d84922a57be470dddb5053c6ec9de375967d"
#define CONTRACT_HASH "5e976b55c05640e92815abbcd3ae0022689c275e9ae87c288ed5bc18fa6ac5cb"
#define EXAMPLE0_HASH "81c1128db7b8a52a109ea77cb41ad3e4dcd33c7b626ec078895a7e195a1d8da6"
#define EXAMPLE1_HASH "e576d28fb528547ef39547e775623e746df3a95965a02a6c305add968a85787f"
#define TASK_HASH     "51f11a1487415f2addbebd437ff00bc927ca678e1c26382e22ce99fbade3994d"
#define OTHER_HASH    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define HEADER        "version: 2\nns: demo\nprompt_key: review\ntag: latest\n"

static const char overridable[] =
    "- key: a\n  title: A\n  body: \"  Review {{ repo }}\\n\\n  with care.\\n\"\n  tools: "
    "[run_tests]\n"
    "  children:\n  - {key: b, title: B, body: x, accepts_overrides: false}\n"
    "  - {key: c, title: C}\n";

static int override(struct fixture *f, const char *rest)
{
    return section_tree_override(f->tree, yaml(f, arena_printf(f->arena, HEADER "%s", rest)),
                                 "o.json", "latest", &f->e);
}

static const char *dropped(struct fixture *f)
{
    size_t len;
    const struct section_dropped *d = section_tree_dropped(f->tree, &len);
    const char *all = "";
    for (size_t i = 0; i < len; i++) {
        all = arena_printf(f->arena, "%s%.*s: %s\n", all, (int)d[i].what.len, d[i].what.ptr,
                           d[i].reason);
    }
    return all;
}

static const char simple_tool[] =
    "- name: run_tests\n  description: Runs the tests.\n"
    "  input_schema: {type: object, properties: {path: {type: string, description: Where}, "
    "\"\\u00e9\": {type: number, default: 1.5}}}\n"
    "  examples:\n  - {description: All, input: {path: a}, output: ok}\n"
    "  - {description: \"None\", input: null, output: null}\n";

static void start(struct fixture *f, const char *sections)
{
    f->tools = yaml(f, simple_tool);
    if (build(f, sections) < 0) {
        fail_msg("%s", f->e.msg);
    }
}

static void sections_are_overridden_by_hash(void **state)
{
    struct fixture *f = *state;
    start(f, overridable);
    assert_int_equal(override(f, "sections:\n"
                                 "  a: {expected_hash: " BODY_HASH ", body: 'New {{ repo }}', "
                                 "summary: 'Sum {{ repo }}', visibility: summary}\n"
                                 "  a/b: {expected_hash: " OTHER_HASH ", body: x}\n"
                                 "  a/c: {expected_hash: " OTHER_HASH ", body: x}\n"
                                 "  nope: {expected_hash: " OTHER_HASH ", body: x}\n"),
                     0);
    assert_string_equal(dropped(f), "section a/b: not accepted\nsection a/c: not accepted\n"
                                    "section nope: unknown\n");
    assert_int_equal(render(f, "{repo: r}", NULL), 0);
    assert_string_equal(
        f->out.text.ptr,
        "## 1. A (a)\n\nSum r\n\n---\n[This section is summarized. Call `open_sections` "
        "with key \"a\" to view full content including subsections: b, c.]");
    assert_true(f->out.sections[0].overridden);
    assert_string_equal(f->out.sections[0].hash, BODY_HASH);
    assert_int_equal(render(f, "{repo: r}", "{a: full}"), 0);
    assert_non_null(strstr(f->out.text.ptr, "## 1. A (a)\n\nNew r\n\nTools:"));
}

static void stale_overrides_are_dropped(void **state)
{
    struct fixture *f = *state;
    start(f, overridable);
    assert_int_equal(override(f, "sections:\n  a: {expected_hash: " OTHER_HASH ", body: New}\n"
                                 "tools:\n  run_tests: {expected_contract_hash: " OTHER_HASH "}\n"
                                 "  nope: {}\n"),
                     0);
    assert_string_equal(dropped(f),
                        "section a: stale\ntool run_tests: stale\ntool nope: unknown\n");
    assert_int_equal(render(f, "{repo: r}", NULL), 0);
    assert_non_null(strstr(f->out.text.ptr, "Review r"));
    assert_false(f->out.sections[0].overridden);
}

static void tools_are_overridden_by_contract(void **state)
{
    struct fixture *f = *state;
    start(f, overridable);
    int r = override(
        f, "tools:\n  run_tests:\n    expected_contract_hash: " CONTRACT_HASH "\n"
           "    description: Better.\n    param_descriptions: {path: There, gone: x}\n"
           "    example_overrides:\n"
           "    - {index: 0, expected_hash: " EXAMPLE0_HASH ", action: modify, "
           "description: Changed, input_json: '{\"path\": \"b\"}'}\n"
           "    - {index: 1, expected_hash: " EXAMPLE1_HASH ", action: remove}\n"
           "    - {index: 1, expected_hash: " OTHER_HASH ", action: modify}\n"
           "    - {index: -1, action: append, description: New, input: {}, output_json: '7'}\n"
           "    - {index: 9, action: remove}\n");
    if (r < 0) {
        fail_msg("%s", f->e.msg);
    }
    assert_string_equal(dropped(f), "parameter gone: unknown\nexample of tool run_tests: stale\n"
                                    "example of tool run_tests: unknown\n");
    assert_int_equal(render(f, "{repo: r}", NULL), 0);
    assert_non_null(
        strstr(f->out.text.ptr,
               "- run_tests: Better.\n  - run_tests examples:\n    - description: Changed\n"
               "      input:\n        ```json\n        {\"path\": \"b\"}\n        ```\n"
               "      output:\n        ```\n        ok\n        ```\n"
               "    - description: New\n      input:\n        ```json\n        {}\n"
               "        ```\n      output:\n        ```\n        7\n        ```"));
    const struct json *d = f->out.tools[0].definition;
    assert_string_equal(json_cstring(json_get(d, "description"), ""), "Better.");
    assert_string_equal(
        json_cstring(json_pointer(d, STR("/input_schema/properties/path/description")), ""),
        "There");
}

static void task_examples_are_overridden(void **state)
{
    struct fixture *f = *state;
    f->tools = NULL;
    assert_int_equal(build(f, task_examples), 0);
    int r =
        override(f, "task_example_overrides:\n"
                    "- {path: [ex], index: 0, expected_hash: " TASK_HASH ", action: modify,\n"
                    "   objective: Mend it, outcome: Mended, steps_to_remove: [1],\n"
                    "   step_overrides: [{index: 0, description: Peek, output_json: 'null'}, "
                    "{index: 9}],\n"
                    "   steps_to_append: [{index: -1, tool_name: commit, description: Save}]}\n"
                    "- {path: [ex, two], index: 1, expected_hash: " OTHER_HASH ", action: remove}\n"
                    "- {path: [ex], index: -1, action: append, objective: Third, outcome: Done,\n"
                    "   steps_to_append: [{tool_name: t}]}\n"
                    "- {path: [no], index: 0, action: remove}\n");
    if (r < 0) {
        fail_msg("%s", f->e.msg);
    }
    assert_string_equal(dropped(f),
                        "step of task example Fix it: unknown\ntask example ex.two: stale\n"
                        "task example no: unknown\n");
    assert_int_equal(render(f, NULL, NULL), 0);
    assert_non_null(
        strstr(f->out.text.ptr, "### 1.1. Mend it (ex.one)\n\n**Objective:** Mend it\n"));
    assert_non_null(strstr(f->out.text.ptr, "1. **run_tests** - Peek\n"));
    assert_non_null(strstr(f->out.text.ptr, "2. **commit** - Save\n"));
    assert_null(strstr(f->out.text.ptr, "2. **edit**"));
    assert_non_null(strstr(f->out.text.ptr, "**Outcome:** Mended"));
    assert_non_null(strstr(f->out.text.ptr, "### 1.3. Third (ex.example-3)\n"));
}

static void a_task_example_can_go(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(build(f, task_examples), 0);
    assert_int_equal(
        override(f, "task_example_overrides: [{path: [ex, one], index: 0, action: remove, "
                    "expected_hash: " TASK_HASH "}]\n"),
        0);
    assert_int_equal(render(f, NULL, NULL), 0);
    assert_null(strstr(f->out.text.ptr, "Fix it"));
    assert_non_null(strstr(f->out.text.ptr, "### 1.2. Own (ex.two)"));
}

static void wrong_override_files_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const files[][2] = {
        { "[]", "o.json:1:1: an override file is an object" },
        { "{version: 1}", "has version 2" },
        { "{version: 2, ns: x, prompt_key: review, tag: latest}", "'ns' must be 'demo'" },
        { "{version: 2, ns: demo, prompt_key: review, tag: other}", "'tag' must be 'latest'" },
        { HEADER "sections: []", "'sections' must be an object" },
        { HEADER "sections: {a: 5}", "override of a section is an object" },
        { HEADER "sections: {a: {summary: 5}}", "'summary' must be a string" },
        { HEADER "sections: {x: {visibility: no}}", "must be 'full' or 'summary'" },
        { HEADER "sections: {a: {body: x}}", "'expected_hash' must be a hash" },
        { HEADER "sections: {a: {expected_hash: abc, body: x}}", "'expected_hash' must be a hash" },
        { HEADER "sections: {a: {expected_hash: " BODY_HASH "}}", "'body' must be a string" },
        { HEADER "sections: {a: {expected_hash: " BODY_HASH ", body: '{{'}}",
          "section 'a': body:1: " },
        { HEADER "sections: {a: {expected_hash: " BODY_HASH ", body: x, visibility: summary}}",
          "has no summary" },
        { HEADER "tools: 5", "'tools' must be an object" },
        { HEADER "tools: {run_tests: {expected_contract_hash: " CONTRACT_HASH ", description: 5}}",
          "'description' must be a string" },
        { HEADER "tools: {run_tests: {expected_contract_hash: " CONTRACT_HASH
                 ", param_descriptions: {path: 5}}}",
          "description of a parameter" },
        { HEADER "tools: {run_tests: {expected_contract_hash: " CONTRACT_HASH
                 ", example_overrides: [{index: 0, action: x}]}}",
          "'action' must be" },
        { HEADER "tools: {run_tests: {expected_contract_hash: " CONTRACT_HASH
                 ", example_overrides: [{index: -1, action: append, input_json: '{'}]}}",
          "'input_json': line 1" },
        { HEADER "task_example_overrides: [{index: 0, action: remove}]", "'path' must be a list" },
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        start(f, overridable);
        int r = section_tree_override(f->tree, yaml(f, files[i][0]), "o.json", "latest", &f->e);
        if (r == 0 || strstr(f->e.msg, files[i][1]) == NULL) {
            fail_msg("%s: %s", files[i][0], r == 0 ? "accepted" : f->e.msg);
        }
    }
}

static void a_seed_changes_nothing(void **state)
{
    struct fixture *f = *state;
    start(f, overridable);
    struct json *seed = section_tree_seed(f->tree, "latest", f->arena);
    assert_string_equal(json_cstring(json_pointer(seed, STR("/sections/a/expected_hash")), ""),
                        BODY_HASH);
    assert_string_equal(
        json_cstring(json_pointer(seed, STR("/tools/run_tests/expected_contract_hash")), ""),
        CONTRACT_HASH);
    assert_string_equal(
        json_cstring(json_pointer(seed, STR("/tools/run_tests/param_descriptions/path")), ""),
        "Where");
    assert_null(json_pointer(seed, STR("/sections/a~1b")));
    assert_int_equal(render(f, "{repo: r}", NULL), 0);
    char *before = arena_dup(f->arena, f->out.text);
    assert_int_equal(section_tree_override(f->tree, seed, "seed", "latest", &f->e), 0);
    assert_string_equal(dropped(f), "");
    assert_int_equal(render(f, "{repo: r}", NULL), 0);
    assert_string_equal(f->out.text.ptr, before);
}

static void a_description_lists_hashes(void **state)
{
    struct fixture *f = *state;
    start(f, overridable);
    struct json *d = section_tree_describe(f->tree, f->arena);
    assert_int_equal(json_len(json_get(d, "sections")), 1);
    assert_string_equal(json_cstring(json_pointer(d, STR("/sections/0/content_hash")), ""),
                        BODY_HASH);
    assert_string_equal(json_cstring(json_pointer(d, STR("/tools/0/contract_hash")), ""),
                        CONTRACT_HASH);
    assert_string_equal(json_cstring(json_pointer(d, STR("/tools/0/example_hashes/1")), ""),
                        EXAMPLE1_HASH);
    f->tools = NULL;
    assert_int_equal(build(f, task_examples), 0);
    d = section_tree_describe(f->tree, f->arena);
    assert_string_equal(json_cstring(json_pointer(d, STR("/task_examples/0/content_hash")), ""),
                        TASK_HASH);
}

static void override_files_are_found(void **state)
{
    struct fixture *f = *state;
    char root[] = "/tmp/cinch-section-XXXXXX";
    assert_non_null(mkdtemp(root));
    start(f, overridable);
    struct section_overrides found;
    assert_int_equal(section_overrides_load(f->tree, root, "latest", f->arena, &found, &f->e), 0);
    assert_null(found.content);
    CLEANUP(fd) int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_mkdirs(dir, "demo/review", 0755, &f->e), 0);
    assert_int_equal(
        file_write_atomic(dir, "demo/review/latest.json", STR("{\"version\": 2}"), 0644, &f->e), 0);
    assert_int_equal(section_overrides_load(f->tree, root, "latest", f->arena, &found, &f->e), 0);
    assert_non_null(found.content);
    assert_non_null(strstr(found.path, "/demo/review/latest.json"));
    assert_int_equal(section_overrides_load(f->tree, root, "../x", f->arena, &found, &f->e),
                     -ERR_CONFIG);
    assert_int_equal(file_write_atomic(dir, "demo/review/bad.json", STR("{"), 0644, &f->e), 0);
    assert_int_equal(section_overrides_load(f->tree, root, "bad", f->arena, &found, &f->e),
                     -ERR_PARSE);
    assert_int_equal(file_remove_tree(AT_FDCWD, root, NULL), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(headings_numbers_and_paths),
        T(disabled_sections_keep_their_number),
        T(defaults_go_down_and_bound_values_win),
        T(summaries_say_how_to_open_them),
        T(visibility_of_the_request_wins),
        T(visibility_may_be_an_expression),
        T(examples_of_tools_follow_the_body),
        T(task_examples_are_sections),
        T(a_prompt_needs_its_names),
        T(mistakes_are_named_with_their_place),
        T(too_deep_is_refused),
        T(opening_sections),
        T(reading_sections),
        T(sections_are_overridden_by_hash),
        T(stale_overrides_are_dropped),
        T(tools_are_overridden_by_contract),
        T(task_examples_are_overridden),
        T(a_task_example_can_go),
        T(wrong_override_files_are_refused),
        T(a_seed_changes_nothing),
        T(a_description_lists_hashes),
        T(override_files_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
