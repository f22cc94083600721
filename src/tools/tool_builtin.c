/* SPDX-License-Identifier: MIT
 *
 * The built-in tools. None touches a file, none takes time: each answers from its start.
 */
#include "tools/tool_builtin.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/macro.h"
#include "data/schema.h"
#include "llm/schema_convert.h"
#include "prompt/section.h"
#include "prompt/structured.h"
#include "record/state_store.h"

#define VISIBILITY_SLICE "VisibilityOverrides"

static void refuse(struct tool_run *run, struct str why)
{
    tool_run_done(run, &(struct tool_result) { .failure = TOOL_INVALID, .message = why });
}

static void say(struct tool_run *run, struct str text)
{
    tool_run_done(run, &(struct tool_result) { .message = text });
}

/* --- structured_output --- */

struct tool_output {
    struct tool_output_opts opts;
    struct arena *arena; /* of the value */
    const struct json *value;
};

struct tool_output *tool_output_new(const struct tool_output_opts *o)
{
    struct tool_output *own = xcalloc(1, sizeof *own);
    own->opts = *o;
    return own;
}

struct tool_output *tool_output_free(struct tool_output *o)
{
    if (o != NULL) {
        arena_free(o->arena);
        free(o);
    }
    return NULL;
}

const struct json *tool_output_value(const struct tool_output *o)
{
    return o->value;
}

static void store(struct tool_output *o, const struct json *value)
{
    struct arena *before = o->arena;
    o->arena = arena_new();
    o->value = json_copy(o->arena, value);
    arena_free(before);
    if (o->opts.stored != NULL) {
        o->opts.stored(o->opts.arg, o->value);
    }
}

static void start_output(void *self, struct tool_run *run)
{
    struct tool_output *o = self;
    struct structured_options options = { .schema = o->opts.schema, .wanted = o->opts.contract };
    struct structured_result result;
    struct err e;
    int r = structured_accept(json_get(run->arguments, "data"), STRUCTURED_TOOL, &options,
                              run->arena, &result, &e);
    if (r < 0) {
        refuse(run, r == -ERR_PARSE ? result.failure.message : str_of(e.msg));
        return;
    }
    store(o, result.value);
    say(run, STR("The output is valid and was taken."));
}

static const struct tool_handler output_handler = { "builtin", start_output, NULL, NULL };

/* {"data": …}, the contract in place; without one, anything that structured_accept() takes. */
static struct json *output_schema(struct arena *a, const struct json *contract)
{
    struct json *any = json_object(a);
    struct json *types = json_array(a);
    json_push(a, types, json_cstr(a, "object"));
    json_push(a, types, json_cstr(a, "array"));
    json_setc(a, any, "type", types);
    return schema_nest(a, contract == NULL ? any : contract, "data");
}

int tool_output_tool(struct tool_output *o, struct arena *a, struct tool *ret, struct err *e)
{
    struct json *definition = json_object(a);
    json_setc(a, definition, "name", json_cstr(a, "structured_output"));
    json_setc(a, definition, "description",
              json_cstr(a, "Gives the result of the task. Call it when you are done, with the "
                           "whole result as data; the last valid call counts."));
    json_setc(a, definition, "input_schema", output_schema(a, o->opts.contract));
    int r = tool_define(a, definition, ret, e);
    if (r < 0) {
        return r;
    }
    /* What is offered leads the model; what is accepted is decided in one place for all ways in
     * which a result can come. */
    struct json *lax = json_copy(a, ret->input_schema);
    json_setc(a, json_get(lax, "properties"), "data", json_object(a));
    ret->input = schema_free(ret->input);
    r = schema_compile(lax, NULL, &ret->input, e);
    ret->reads_only = ret->quiet = true;
    ret->handler = &output_handler;
    ret->self = o;
    if (r < 0) {
        tool_free(ret);
    }
    return r;
}

/* --- ask_human --- */

struct tool_ask {
    char text[TOOL_ASK_MAX];
    size_t len;
};

struct tool_ask *tool_ask_new(void)
{
    return xcalloc(1, sizeof(struct tool_ask));
}

struct tool_ask *tool_ask_free(struct tool_ask *q)
{
    free(q);
    return NULL;
}

struct str tool_ask_question(const struct tool_ask *q)
{
    return str_n(q->text, q->len);
}

static void start_ask(void *self, struct tool_run *run)
{
    struct tool_ask *q = self;
    struct str text = str_trim(json_str(json_get(run->arguments, "question"), STR_EMPTY));
    if (text.len == 0) {
        refuse(run, STR("the question is empty"));
        return;
    }
    text = str_slice(text, 0, sizeof q->text);
    text = str_slice(text, 0, str_utf8_prefix(text));
    memcpy(q->text, text.ptr, text.len);
    q->len = text.len;
    say(run, STR("The question is recorded, and the run ends when your turn ends. A person will "
                 "reply later, in this conversation. Do no further work: end your turn now."));
}

static const struct tool_handler ask_handler = { "builtin", start_ask, NULL, NULL };

int tool_ask_tool(struct tool_ask *q, struct arena *a, struct tool *ret, struct err *e)
{
    static const char definition[] =
        "{\"name\":\"ask_human\",\"description\":\"Asks a person a question without whose answer "
        "you cannot continue. The run ends with it, so find out everything else first.\","
        "\"input_schema\":{\"type\":\"object\",\"properties\":{\"question\":{\"type\":\"string\"}},"
        "\"required\":[\"question\"]}}";
    struct json *tree;
    int r = json_parse(a, STR(definition), NULL, &tree, e);
    r = r < 0 ? r : tool_define(a, tree, ret, e);
    if (r == 0) {
        ret->reads_only = ret->quiet = true;
        ret->handler = &ask_handler;
        ret->self = q;
    }
    return r;
}

/* --- sections --- */

struct tool_sections {
    struct tool_sections_opts opts;
    struct arena *arena;
    struct json *visibility;
};

struct tool_sections *tool_sections_new(const struct tool_sections_opts *o)
{
    struct tool_sections *s = xcalloc(1, sizeof *s);
    s->opts = *o;
    s->arena = arena_new();
    s->visibility = json_is(o->visibility, JSON_OBJECT) ? json_copy(s->arena, o->visibility)
                                                        : json_object(s->arena);
    return s;
}

struct tool_sections *tool_sections_free(struct tool_sections *s)
{
    if (s != NULL) {
        arena_free(s->arena);
        free(s);
    }
    return NULL;
}

static struct section_request request(const struct tool_sections *s, const struct json *visibility)
{
    return (struct section_request) { .params = s->opts.params, .visibility = visibility };
}

static bool is_full(const struct json *visibility, struct str key)
{
    return str_eqc(json_str(json_find(visibility, key), STR_EMPTY), "full");
}

/* Those that were not open before, each once. */
static struct json *newly_open(struct arena *a, const struct json *keys, const struct json *before,
                               const struct json *after)
{
    struct json *seen = json_object(a), *list = json_array(a);
    for (size_t i = 0; i < json_len(keys); i++) {
        struct str key = json_str(json_item(keys, i), STR_EMPTY);
        if (is_full(after, key) && !is_full(before, key) && json_find(seen, key) == NULL) {
            json_set(a, seen, key, json_null(a));
            json_push(a, list, json_string(a, key));
        }
    }
    return list;
}

static bool has_parent_in(const struct json *list, struct str key)
{
    size_t dot = key.len;
    while (dot > 0 && key.ptr[dot - 1] != '.') {
        dot--;
    }
    for (size_t i = 0; dot > 0 && i < json_len(list); i++) {
        if (str_eq(json_item(list, i)->string, str_slice(key, 0, dot - 1))) {
            return true;
        }
    }
    return false;
}

/* The texts of what was opened; what is below another of them is in that one's text. */
static int write_opened(const struct tool_sections *s, struct arena *a, const struct json *list,
                        const struct json *after, struct buf *out, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < json_len(list) && r == 0; i++) {
        struct str key = json_item(list, i)->string, text;
        if (has_parent_in(list, key)) {
            continue;
        }
        struct json *view = json_copy(a, after);
        json_set(a, view, key, json_cstr(a, "summary")); /* only a closed one can be read */
        struct section_request q = request(s, view);
        r = section_tree_read(s->opts.tree, &q, key, a, &text, e);
        r = r < 0 ? r : buf_printf(out, e, "\n\n%.*s", STR_ARG(str_trim(text)));
    }
    return r;
}

static bool has_tool(const struct section_rendering *r, struct str name)
{
    for (size_t i = 0; i < r->tools_len; i++) {
        if (str_eq(r->tools[i].name, name)) {
            return true;
        }
    }
    return false;
}

static int write_tools(const struct tool_sections *s, struct arena *a, const struct json *after,
                       struct buf *out, struct err *e)
{
    struct section_rendering old, new;
    struct section_request before = request(s, s->visibility), now = request(s, after);
    const char *between = "\n\nTools that you have from now on: ";
    int r = section_tree_render(s->opts.tree, &before, a, &old, e);
    r = r < 0 ? r : section_tree_render(s->opts.tree, &now, a, &new, e);
    for (size_t i = 0; r == 0 && i < new.tools_len; i++) {
        if (!has_tool(&old, new.tools[i].name)) {
            r = buf_printf(out, e, "%s%.*s", between, STR_ARG(new.tools[i].name));
            between = ", ";
        }
    }
    return r;
}

static int write_answer(const struct tool_sections *s, struct tool_run *run,
                        const struct json *after, struct buf *out, struct err *e)
{
    struct json *list =
        newly_open(run->arena, json_get(run->arguments, "section_keys"), s->visibility, after);
    const char *between = "Opened: ";
    for (size_t i = 0; i < json_len(list); i++) {
        buf_addf(out, "%s%.*s", between, STR_ARG(json_item(list, i)->string));
        between = ", ";
    }
    int r = write_opened(s, run->arena, list, after, out, e);
    return r < 0 ? r : write_tools(s, run->arena, after, out, e);
}

static int remember(const struct tool_run *run, struct json *after, struct err *e)
{
    struct json *items = json_array(run->arena);
    json_push(run->arena, items, after);
    struct store_change c = { .kind = CHANGE_REPLACE,
                              .slice = STR(VISIBILITY_SLICE),
                              .value = items };
    return run->session == NULL ? 0 : store_txn_apply(run->session, &c, e);
}

static void start_open(void *self, struct tool_run *run)
{
    struct tool_sections *s = self;
    struct err e;
    struct json *after = NULL;
    struct section_request q = request(s, s->visibility);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = section_tree_open(s->opts.tree, &q, json_get(run->arguments, "section_keys"),
                              run->arena, &after, &e);
    r = r < 0 ? r : write_answer(s, run, after, &text, &e);
    r = r < 0 ? r : remember(run, after, &e);
    if (r < 0) {
        refuse(run, str_of(e.msg));
        return;
    }
    s->visibility = json_copy(s->arena, after);
    if (s->opts.opened != NULL) {
        s->opts.opened(s->opts.arg, s->visibility,
                       json_str(json_get(run->arguments, "reason"), STR_EMPTY));
    }
    say(run, buf_str(&text));
}

static void start_read(void *self, struct tool_run *run)
{
    struct tool_sections *s = self;
    struct err e;
    struct str text;
    struct section_request q = request(s, s->visibility);
    int r = section_tree_read(s->opts.tree, &q,
                              json_str(json_get(run->arguments, "section_key"), STR_EMPTY),
                              run->arena, &text, &e);
    if (r < 0) {
        refuse(run, str_of(e.msg));
    } else {
        say(run, text);
    }
}

static const struct tool_handler open_handler = { "builtin", start_open, NULL, NULL };
static const struct tool_handler read_handler = { "builtin", start_read, NULL, NULL };

static int define(struct tool_sections *s, bool open, struct arena *a, struct tool *ret,
                  struct err *e)
{
    int r = tool_define(a, section_builtin(a, open), ret, e);
    if (r == 0) {
        ret->reads_only = true;
        ret->handler = open ? &open_handler : &read_handler;
        ret->self = s;
    }
    return r;
}

int tool_sections_open(struct tool_sections *s, struct arena *a, struct tool *ret, struct err *e)
{
    return define(s, true, a, ret, e);
}

int tool_sections_read(struct tool_sections *s, struct arena *a, struct tool *ret, struct err *e)
{
    return define(s, false, a, ret, e);
}
