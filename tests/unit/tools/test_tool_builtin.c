/* SPDX-License-Identifier: MIT
 *
 * structured_output, open_sections and read_section, each on a real contract or prompt.
 */
#include "tools/tool_builtin.h"

#include "../values.h"
#include "base/json.h"
#include "base/macro.h"
#include "data/schema.h"
#include "prompt/section.h"
#include "record/state_store.h"

static struct {
    enum tool_failure failure;
    char text[4096];
} said;

void tool_run_done(struct tool_run *run, const struct tool_result *result)
{
    said.failure = result->failure;
    assert_true(result->message.len < sizeof said.text);
    memcpy(said.text, result->message.ptr, result->message.len);
    said.text[result->message.len] = '\0';
}

static void call(const struct tool *t, const char *arguments, struct store_txn *session)
{
    struct tool_run run = {
        .tool = t, .arguments = tree(arguments), .arena = arena, .session = session
    };
    said.text[0] = '\0';
    assert_int_equal(schema_check(t->input, run.arguments, NULL, NULL), 1);
    t->handler->start(t->self, &run);
}

/* --- structured_output --- */

static int stored;

static void on_stored(void *arg, const struct json *value)
{
    stored++;
}

static void test_output(void **state)
{
    struct err e;
    struct tool t;
    const struct json *contract = tree("{type: object, properties: {n: {$ref: '#/$defs/n'}}, "
                                       "required: [n], $defs: {n: {type: integer}}}");
    CLEANUP(schema) struct schema *schema = NULL;
    assert_int_equal(schema_compile(contract, NULL, &schema, &e), 0);
    struct tool_output *o = tool_output_new(
        &(struct tool_output_opts) { .contract = contract, .schema = schema, .stored = on_stored });
    assert_int_equal(tool_output_tool(o, arena, &t, &e), 0);
    assert_true(str_eqc(t.name, "structured_output") && t.reads_only && t.quiet);
    /* the contract is what is offered */
    CLEANUP(schema) struct schema *offered = NULL;
    assert_int_equal(schema_compile(t.input_schema, NULL, &offered, &e), 0);
    assert_int_equal(schema_check(offered, tree("{data: {n: 1}}"), NULL, NULL), 1);
    assert_int_equal(schema_check(offered, tree("{data: {n: x}}"), NULL, NULL), 0);
    assert_int_equal(schema_check(offered, tree("{n: 1}"), NULL, NULL), 0);
    assert_int_equal(schema_check(t.input, tree("{}"), NULL, NULL), 0);

    call(&t, "{data: {n: one}}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    assert_non_null(strstr(said.text, "/n"));
    assert_null(tool_output_value(o));
    call(&t, "{data: {n: 1}}", NULL);
    assert_int_equal(said.failure, TOOL_OK);
    call(&t, "{data: {n: 2}}", NULL);
    call(&t, "{data: {n: null}}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    assert_int_equal(json_int(json_get(tool_output_value(o), "n"), 0), 2);
    assert_int_equal(stored, 2);
    tool_free(&t);
    o = tool_output_free(o);
}

static void test_output_of_lists(void **state)
{
    struct err e;
    struct tool t;
    const struct json *contract = tree("{type: array, items: {type: integer}}");
    CLEANUP(schema) struct schema *schema = NULL;
    assert_int_equal(schema_compile(contract, NULL, &schema, &e), 0);
    struct tool_output *o =
        tool_output_new(&(struct tool_output_opts) { .contract = contract, .schema = schema });
    assert_int_equal(tool_output_tool(o, arena, &t, &e), 0);
    call(&t, "{data: [1, 2]}", NULL);
    assert_int_equal(said.failure, TOOL_OK);
    call(&t, "{data: {items: [3]}}", NULL); /* as lists are asked for elsewhere */
    assert_int_equal(said.failure, TOOL_OK);
    assert_true(json_equal(tool_output_value(o), tree("[3]")));
    tool_free(&t);
    o = tool_output_free(o);
    /* without a contract: anything but a scalar */
    o = tool_output_new(&(struct tool_output_opts) { 0 });
    assert_int_equal(tool_output_tool(o, arena, &t, &e), 0);
    call(&t, "{data: {a: 1}}", NULL);
    assert_int_equal(said.failure, TOOL_OK);
    call(&t, "{data: 5}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    tool_free(&t);
    o = tool_output_free(o);
}

/* --- sections --- */

static const char prompt[] =
    "ns: demo\n"
    "key: review\n"
    "sections:\n"
    "- {title: Intro, key: intro, body: 'Hello {{who}}'}\n"
    "- title: Guide\n"
    "  key: guide\n"
    "  body: The whole guide\n"
    "  summary: There is a guide\n"
    "  visibility: summary\n"
    "  tools: [build]\n"
    "  children:\n"
    "  - {title: Deep, key: deep, body: Deep text, summary: Something deep, visibility: summary, "
    "tools: [dig]}\n"
    "  - {title: Plain, key: plain, body: Plain text}\n"
    "- {title: Notes, key: notes, body: All notes, summary: Some notes, visibility: summary}\n";

static struct {
    int times;
    char visibility[256], reason[64];
} opened;

static void on_opened(void *arg, const struct json *visibility, struct str reason)
{
    CLEANUP(buf) struct buf b = BUF_INIT(255);
    assert_int_equal(json_write(visibility, JSON_COMPACT, &b, NULL), 0);
    opened.times++;
    memcpy(opened.visibility, b.ptr, b.len + 1);
    memcpy(opened.reason, reason.ptr, reason.len);
    opened.reason[reason.len] = '\0';
}

struct disclosure {
    struct section_tree *tree;
    struct tool_sections *s;
    struct tool open, read;
};

static void begin(struct disclosure *d)
{
    struct err e;
    opened.times = 0;
    if (section_tree_new(tree(prompt), &(struct section_opts) { 0 }, &d->tree, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    d->s = tool_sections_new(&(struct tool_sections_opts) {
        .tree = d->tree, .params = tree("{who: you}"), .opened = on_opened });
    assert_int_equal(tool_sections_open(d->s, arena, &d->open, &e), 0);
    assert_int_equal(tool_sections_read(d->s, arena, &d->read, &e), 0);
    assert_true(d->open.reads_only && d->read.reads_only);
}

static void end(struct disclosure *d)
{
    tool_free(&d->open);
    tool_free(&d->read);
    d->s = tool_sections_free(d->s);
    d->tree = section_tree_free(d->tree);
}

static void test_open(void **state)
{
    struct disclosure d;
    struct state_store *session = store_new(&(struct store_opts) { .journal_fd = -1 });
    struct store_txn *t = store_begin(session);
    begin(&d);
    call(&d.open, "{section_keys: [guide, guide], reason: need it}", t);
    assert_int_equal(said.failure, TOOL_OK);
    assert_string_equal(opened.visibility, "{\"guide\":\"full\"}");
    assert_string_equal(opened.reason, "need it");
    assert_non_null(strstr(said.text, "Opened: guide\n\n"));
    assert_non_null(strstr(said.text, "The whole guide"));
    assert_non_null(strstr(said.text, "Something deep")); /* parents do not open children */
    assert_null(strstr(said.text, "Deep text"));
    assert_non_null(strstr(said.text, "Plain text"));
    assert_null(strstr(said.text, "Hello"));
    assert_non_null(strstr(said.text, "Tools that you have from now on: build"));
    assert_true(
        json_equal(store_latest(session, t, STR("VisibilityOverrides")), tree("{guide: full}")));
    call(&d.open, "{section_keys: [guide, guide.deep], reason: more}", t);
    assert_string_equal(opened.visibility, "{\"guide\":\"full\",\"guide.deep\":\"full\"}");
    assert_non_null(strstr(said.text, "Opened: guide.deep\n\n"));
    assert_null(strstr(said.text, "The whole guide"));
    assert_non_null(strstr(said.text, "Deep text"));
    assert_non_null(strstr(said.text, "from now on: dig"));
    assert_int_equal(store_len(session, t, STR("VisibilityOverrides")), 1);
    assert_int_equal(opened.times, 2);
    assert_int_equal(store_abort(t, NULL), 0);
    session = store_free(session);
    end(&d);
}

/* Both at once: the text of the child is in that of its parent, once. */
static void test_open_with_children(void **state)
{
    struct disclosure d;
    begin(&d);
    call(&d.open, "{section_keys: [guide.deep, guide], reason: all}", NULL);
    assert_int_equal(said.failure, TOOL_OK);
    const char *deep = strstr(said.text, "Deep text");
    assert_non_null(deep);
    assert_null(strstr(deep + 1, "Deep text"));
    assert_null(strstr(said.text, "Something deep"));
    assert_non_null(strstr(said.text, "from now on: build, dig"));
    end(&d);
}

static void test_wrong_keys(void **state)
{
    struct disclosure d;
    begin(&d);
    call(&d.open, "{section_keys: [], reason: x}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    call(&d.open, "{section_keys: [guide, nowhere], reason: x}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    assert_non_null(strstr(said.text, "'nowhere' does not exist"));
    call(&d.open, "{section_keys: [intro], reason: x}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    assert_non_null(strstr(said.text, "already expanded"));
    call(&d.read, "{section_key: nowhere}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    call(&d.read, "{section_key: intro}", NULL);
    assert_int_equal(said.failure, TOOL_INVALID);
    assert_non_null(strstr(said.text, "is not summarized"));
    assert_int_equal(opened.times, 0);
    assert_int_equal(
        schema_check(d.open.input, tree("{section_keys: guide, reason: x}"), NULL, NULL), 0);
    assert_int_equal(schema_check(d.open.input, tree("{section_keys: [guide]}"), NULL, NULL), 0);
    end(&d);
}

static void test_read(void **state)
{
    struct disclosure d;
    begin(&d);
    call(&d.read, "{section_key: notes}", NULL);
    assert_int_equal(said.failure, TOOL_OK);
    assert_non_null(strstr(said.text, "All notes"));
    assert_int_equal(opened.times, 0);
    call(&d.read, "{section_key: notes}", NULL); /* nothing was opened */
    assert_int_equal(said.failure, TOOL_OK);
    end(&d);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, arena_setup, arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_output),     TEST(test_output_of_lists),
        TEST(test_open),       TEST(test_open_with_children),
        TEST(test_wrong_keys), TEST(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
