/* SPDX-License-Identifier: MIT
 *
 * Definitions of tools: what a task may say about one, what a model is offered, how a value reads.
 */
#include "tools/tool.h"

#include <ctype.h>
#include <string.h>

#include "base/macro.h"
#include "data/schema.h"
#include "data/shape.h"
#include "llm/schema_convert.h"

#define RESULT_KEY "result" /* what a value that is no object is wrapped in */

const char *tool_failure_word(enum tool_failure f)
{
    static const char *const words[] = {
        [TOOL_OK] = "ok",
        [TOOL_UNKNOWN] = "unknown",
        [TOOL_INVALID] = "invalid",
        [TOOL_DENIED] = "denied",
        [TOOL_DEADLINE] = "deadline",
        [TOOL_BUDGET] = "budget",
        [TOOL_FAILED] = "failed",
        [TOOL_CRASHED] = "crashed",
        [TOOL_TIMEOUT] = "timeout",
        [TOOL_FLOOD] = "flood",
        [TOOL_BAD_OUTPUT] = "bad_output",
        [TOOL_CONFLICT] = "conflict",
        [TOOL_CANCELLED] = "cancelled",
        [TOOL_INTERNAL] = "internal",
    };
    return (size_t)f < ARRAY_LEN(words) ? words[f] : "internal";
}

/* --- names and descriptions --- */

bool tool_name_ok(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) {
            return false;
        }
    }
    return name.len >= 1 && name.len <= TOOL_NAME_MAX;
}

static bool description_ok(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] > 0x7e || text.ptr[i] == '\0') {
            return false;
        }
    }
    return text.len >= 1 && text.len <= TOOL_DESCRIPTION_MAX;
}

/* --- the schema of the arguments --- */

static bool has_applicator(const struct json *schema)
{
    static const char *const keys[] = {
        "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf",
        "if",   "then",        "else",  "not",   "dependentSchemas"
    };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (json_get(schema, keys[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Keywords of a branch are not seen by additionalProperties, which would forbid what the branch
 * allows; the keyword that sees them came with 2019-09. */
static void forbid_extra(struct arena *a, struct json *schema)
{
    struct str dialect = json_str(json_get(schema, "$schema"), STR_EMPTY);
    bool old = str_find(dialect, STR("/draft-0")) < dialect.len;
    if (json_get(schema, "additionalProperties") != NULL ||
        json_get(schema, "unevaluatedProperties") != NULL) {
        return;
    }
    if (!has_applicator(schema)) {
        json_setc(a, schema, "additionalProperties", json_boolean(a, false));
    } else if (!old) {
        json_setc(a, schema, "unevaluatedProperties", json_boolean(a, false));
    }
}

static int complete_input(struct arena *a, const struct json *given, struct json **ret,
                          struct err *e)
{
    const struct json *type = json_get(given, "type");
    if (given != NULL && !json_is(given, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "input_schema: must be an object");
    }
    if (type != NULL && !str_eqc(json_str(type, STR_EMPTY), "object")) {
        return ERR(e, ERR_CONFIG,
                   "input_schema: the arguments of a tool are an object: "
                   "'type' must be 'object'");
    }
    struct json *schema = json_object(a);
    json_setc(a, schema, "type", json_cstr(a, "object"));
    if (given == NULL) {
        json_setc(a, schema, "properties", json_object(a));
    }
    for (size_t i = 0; i < (given == NULL ? 0 : given->object.len); i++) {
        const struct json_member *m = &given->object.members[i];
        json_set(a, schema, m->key, json_copy(a, m->value));
    }
    forbid_extra(a, schema);
    *ret = schema;
    return 0;
}

/* --- examples --- */

static int fits(struct schema *s, const struct json *value, struct arena *a, const char *what,
                struct err *e)
{
    struct schema_result r;
    int rc = schema_validate(s, value, NULL, a, &r, e);
    if (rc < 0 || r.valid) {
        return rc;
    }
    CLEANUP(buf) struct buf why = BUF_INIT(400);
    (void)!schema_error_write(&r.errors[0], &why, NULL); /* at most shortened */
    return ERR(e, ERR_CONFIG, "%s does not fit its schema: %.*s", what, STR_ARG(buf_str(&why)));
}

static int check_example(const struct tool *t, const struct json *example, struct arena *a,
                         struct err *e)
{
    const struct json *input = json_get(example, "input");
    const struct json *output = json_get(example, "output");
    struct str text = str_trim(json_str(json_get(example, "description"), STR_EMPTY));
    if (!description_ok(text)) {
        return ERR(e, ERR_CONFIG, "the description must be 1 to %d ASCII characters",
                   TOOL_DESCRIPTION_MAX);
    }
    int r = input == NULL ? 0 : fits(t->input, input, a, "the input", e);
    if (r == 0 && output != NULL && t->output != NULL) {
        r = fits(t->output, output, a, "the output", e);
    }
    return r;
}

static int check_examples(const struct tool *t, const struct json *examples, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    if (examples != NULL && !json_is(examples, JSON_ARRAY)) {
        return ERR(e, ERR_CONFIG, "examples: must be a list");
    }
    for (size_t i = 0; i < json_len(examples); i++) {
        if (check_example(t, json_item(examples, i), a, e) < 0) {
            return err_wrap(e, "example %zu", i + 1);
        }
    }
    return 0;
}

/* --- definitions --- */

static const struct json *present(const struct json *definition, const char *key)
{
    const struct json *v = json_get(definition, key);
    return json_is(v, JSON_NULL) ? NULL : v;
}

static int compile(const struct json *schema, const char *what, struct schema **ret, struct err *e)
{
    if (schema == NULL) {
        return 0;
    }
    int r = schema_compile(schema, NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", what) : 0;
}

static int define_limits(const struct json *definition, struct tool *t, struct err *e)
{
    static const struct shape limits[] = { { "timeout", SHAPE_DURATION },
                                           { "max_output", SHAPE_SIZE },
                                           { 0 } };
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *some = json_object(a);
    for (size_t i = 0; limits[i].key != NULL; i++) {
        const struct json *v = present(definition, limits[i].key);
        if (v != NULL) {
            json_setc(a, some, limits[i].key, json_copy(a, v));
        }
    }
    int r = shape_check(some, limits, "tool", e);
    if (r < 0) {
        return r;
    }
    int64_t bytes = shape_size(json_get(some, "max_output"), 0);
    t->timeout = shape_duration(json_get(some, "timeout"), 0);
    t->timeout = t->timeout == 0 ? TOOL_TIME : t->timeout;
    t->max_output = bytes <= 0 ? TOOL_OUTPUT : (size_t)bytes;
    return 0;
}

static int define(struct arena *a, const struct json *definition, struct tool *t, struct err *e)
{
    struct json *input = NULL;
    const struct json *output = present(definition, "output_schema");
    t->description =
        arena_str(a, str_trim(json_str(json_get(definition, "description"), STR_EMPTY)));
    t->title = arena_str(a, json_str(json_get(definition, "title"), STR_EMPTY));
    if (!description_ok(t->description)) {
        return ERR(e, ERR_CONFIG, "the description must be 1 to %d ASCII characters",
                   TOOL_DESCRIPTION_MAX);
    }
    int r = complete_input(a, present(definition, "input_schema"), &input, e);
    if (r < 0) {
        return r;
    }
    t->input_schema = input;
    t->output_schema = output == NULL ? NULL : json_copy(a, output);
    r = compile(t->input_schema, "input_schema", &t->input, e);
    r = r < 0 ? r : compile(t->output_schema, "output_schema", &t->output, e);
    r = r < 0 ? r : check_examples(t, present(definition, "examples"), e);
    return r < 0 ? r : define_limits(definition, t, e);
}

int tool_define(struct arena *a, const struct json *definition, struct tool *ret, struct err *e)
{
    struct tool t = { 0 };
    struct str name = json_str(json_get(definition, "name"), STR_EMPTY);
    if (!tool_name_ok(name)) {
        return ERR(e, ERR_CONFIG, "tool '%.*s': a name is 1 to %d of a-z, 0-9, _ and -",
                   STR_ARG(str_slice(name, 0, TOOL_NAME_MAX)), TOOL_NAME_MAX);
    }
    t.name = arena_str(a, name);
    int r = define(a, definition, &t, e);
    if (r < 0) {
        tool_free(&t);
        return err_wrap(e, "tool '%.*s'", STR_ARG(name));
    }
    *ret = t;
    return 0;
}

void tool_free(struct tool *t)
{
    t->input = schema_free(t->input);
    t->output = schema_free(t->output);
    if (t->handler != NULL && t->handler->free != NULL) {
        t->handler->free(t->self);
    }
    t->handler = NULL;
    t->self = NULL;
}

/* --- what is shown of it --- */

/* MCP wants objects; a schema that only may be one does not promise it. */
static bool promises_object(const struct json *schema)
{
    return str_eqc(json_str(json_get(schema, "type"), STR_EMPTY), "object");
}

/* Hints by which clients decide whether to ask a person. What our own tools do is undone if it
 * fails and stays in the workspace; nobody can promise that of another server's. */
static struct json *annotations(struct arena *a, const struct tool *t)
{
    struct json *hints = json_object(a);
    bool foreign = t->handler != NULL && t->handler->is_foreign;
    if (t->reads_only) {
        json_setc(a, hints, "readOnlyHint", json_boolean(a, true));
    }
    if (!foreign) {
        json_setc(a, hints, "destructiveHint", json_boolean(a, false));
        json_setc(a, hints, "openWorldHint", json_boolean(a, false));
    }
    return hints;
}

struct json *tool_mcp_json(struct arena *a, const struct tool *t)
{
    struct json *o = json_object(a);
    json_setc(a, o, "name", json_string(a, t->name));
    if (t->title.len > 0) {
        json_setc(a, o, "title", json_string(a, t->title));
    }
    json_setc(a, o, "description", json_string(a, t->description));
    json_setc(a, o, "inputSchema", json_copy(a, t->input_schema));
    if (t->output_schema != NULL) {
        json_setc(a, o, "outputSchema",
                  promises_object(t->output_schema) ? json_copy(a, t->output_schema)
                                                    : schema_nest(a, t->output_schema, RESULT_KEY));
    }
    struct json *hints = annotations(a, t);
    if (json_len(hints) > 0) {
        json_setc(a, o, "annotations", hints);
    }
    return o;
}

struct json *tool_structured(struct arena *a, const struct tool *t, const struct json *value)
{
    if (t->output_schema == NULL) {
        return NULL;
    }
    struct json *copy = value == NULL ? json_null(a) : json_copy(a, value);
    if (promises_object(t->output_schema)) {
        return json_is(copy, JSON_OBJECT) ? copy : NULL;
    }
    struct json *o = json_object(a);
    json_setc(a, o, RESULT_KEY, copy);
    return o;
}

int tool_render_bounded(struct arena *a, const struct json *value, size_t max, struct str *ret,
                        struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(max);
    bool plain = json_is(value, JSON_STRING);
    *ret = STR_EMPTY;
    if (value == NULL || json_is(value, JSON_NULL)) {
        return 0;
    }
    if (plain ? value->string.len > max : json_write(value, JSON_COMPACT, &text, NULL) < 0) {
        return ERR(e, ERR_LIMIT, "a value of more than %zu bytes", max);
    }
    *ret = plain ? value->string : arena_str(a, buf_str(&text));
    return 0;
}

struct str tool_render(struct arena *a, const struct json *value)
{
    struct str text;
    return tool_render_bounded(a, value, BUF_TEXT, &text, NULL) < 0 ? STR_EMPTY : text;
}
