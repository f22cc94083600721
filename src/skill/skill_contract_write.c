/* SPDX-License-Identifier: MIT
 *
 * The output contract for a reader who is a model: a table of the fields, an example made from the
 * schema, and what a question looks like. Schemas come from packages, so walks are bounded.
 */
#include "base/json.h"
#include "skill/skill.h"
#include "skill/skill_contract.h"
#include "skill/skill_priv.h"

/* A schema that is deeper than a person reads is cut: the machine checks the rest. */
enum { DEPTH_MAX = 6, BRANCHES_MAX = 8, CELL_MAX = 400, WORDS_MAX = 12, VALUES_MAX = 500 };

struct writer {
    struct arena *arena;
    const struct json *root;
    struct buf *out;
    struct err *e;
    size_t values;   /* how many more the example may have */
    const char *dir; /* of artifacts */
};

static const struct json *properties_of(const struct json *schema)
{
    const struct json *list = json_get(schema, "properties");
    return json_is(list, JSON_OBJECT) ? list : NULL;
}

/* --- the table --- */

/* Text within a cell: one line, without the bar that would end it. */
static int write_cell(struct writer *w, struct str text)
{
    struct str cut = str_slice(text, 0, CELL_MAX);
    cut.len = str_utf8_prefix(cut);
    for (size_t i = 0; i < cut.len; i++) {
        char c = cut.ptr[i];
        int r = c == '|' ? buf_append(w->out, STR("\\|"), w->e)
                         : buf_append_c(w->out, (unsigned char)c < ' ' ? ' ' : c, w->e);
        if (r < 0) {
            return r;
        }
    }
    return cut.len < text.len ? buf_append(w->out, STR("…"), w->e) : 0;
}

static int write_value(struct writer *w, const struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = json_write(v, JSON_COMPACT, &text, w->e);
    if (r == 0) {
        r = buf_append(w->out, STR("`"), w->e);
    }
    if (r == 0) {
        r = write_cell(w, buf_str(&text));
    }
    return r < 0 ? r : buf_append(w->out, STR("`"), w->e);
}

static int write_type(struct writer *w, const struct json *schema, int depth);

static int write_alternatives(struct writer *w, const struct json *list, int depth)
{
    for (size_t i = 0; i < json_len(list) && i < WORDS_MAX; i++) {
        int r = i > 0 ? buf_append(w->out, STR(" or "), w->e) : 0;
        const struct json *item = list->array.items[i];
        if (r == 0) {
            r = item->type == JSON_STRING ? write_cell(w, item->string)
                                          : write_type(w, item, depth + 1);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int write_enum(struct writer *w, const struct json *list)
{
    int r = buf_append(w->out, STR("one of "), w->e);
    for (size_t i = 0; r == 0 && i < list->array.len && i < WORDS_MAX; i++) {
        r = i > 0 ? buf_append(w->out, STR(", "), w->e) : 0;
        if (r == 0) {
            r = write_value(w, list->array.items[i]);
        }
    }
    return r;
}

static int write_type(struct writer *w, const struct json *schema, int depth)
{
    schema = skill_schema_follow(w->root, schema);
    const struct json *type = json_get(schema, "type");
    const struct json *any = json_get(schema, "anyOf");
    const struct json *one = json_get(schema, "oneOf");
    const struct json *words = json_get(schema, "enum");
    const struct json *constant = json_get(schema, "const");
    if (depth > DEPTH_MAX) {
        return buf_append(w->out, STR("any"), w->e);
    }
    if (constant != NULL) {
        return write_value(w, constant);
    }
    if (json_is(words, JSON_ARRAY)) {
        return write_enum(w, words);
    }
    if (json_is(any, JSON_ARRAY) || json_is(one, JSON_ARRAY)) {
        return write_alternatives(w, json_is(any, JSON_ARRAY) ? any : one, depth);
    }
    if (json_is(type, JSON_ARRAY)) {
        return write_alternatives(w, type, depth);
    }
    if (!json_is(type, JSON_STRING)) {
        return buf_append(w->out, STR("any"), w->e);
    }
    const struct json *items = json_get(schema, "items");
    if (str_eqc(type->string, "array") && json_is(items, JSON_OBJECT)) {
        int r = buf_append(w->out, STR("array of "), w->e);
        return r < 0 ? r : write_type(w, items, depth + 1);
    }
    return write_cell(w, type->string);
}

static bool is_required(const struct json *schema, struct str key)
{
    const struct json *list = json_get(schema, "required");
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
        if (str_eq(json_str(list->array.items[i], STR_EMPTY), key)) {
            return true;
        }
    }
    return false;
}

static struct str description_of(const struct writer *w, const struct json *property)
{
    struct str type = json_str(json_get(property, "x-type"), STR_EMPTY);
    if (str_eqc(type, "artifact-manifest")) {
        return STR("Path of a JSON file that maps roles to paths of files, all of them written");
    }
    if (type.len > 0) {
        return STR("Path of a file that was written");
    }
    const struct json *own = json_get(property, "description");
    const struct json *target = skill_schema_follow(w->root, property);
    return json_str(own != NULL ? own : json_get(target, "description"), STR_EMPTY);
}

static int write_row(struct writer *w, const struct json *schema, const struct json_member *m)
{
    int r = buf_append(w->out, STR("| `"), w->e);
    if (r == 0) {
        r = write_cell(w, m->key);
    }
    if (r == 0) {
        r = buf_append(w->out, STR("` | "), w->e);
    }
    if (r == 0) {
        r = write_type(w, m->value, 0);
    }
    if (r == 0) {
        r = buf_printf(w->out, w->e, " | %s | ", is_required(schema, m->key) ? "yes" : "no");
    }
    if (r == 0) {
        r = write_cell(w, description_of(w, m->value));
    }
    return r < 0 ? r : buf_append(w->out, STR(" |\n"), w->e);
}

static int write_table(struct writer *w, const struct json *schema)
{
    const struct json *properties = properties_of(schema);
    int r = buf_append(w->out,
                       STR("| field | type | required | what it is |\n| --- | --- | --- | --- |\n"
                           "| `" SKILL_DONE_KEY "` | `true` | yes | the task is done |\n"),
                       w->e);
    for (size_t i = 0; r == 0 && i < json_len(properties); i++) {
        const struct json_member *m = &properties->object.members[i];
        r = str_eqc(m->key, SKILL_DONE_KEY) ? 0 : write_row(w, schema, m);
    }
    if (r == 0 && json_is(json_get(schema, "additionalProperties"), JSON_BOOL) &&
        !json_bool(json_get(schema, "additionalProperties"), true)) {
        r = buf_append(w->out, STR("\nNo other fields are allowed.\n"), w->e);
    }
    return r;
}

/* --- the example --- */

static struct json *example(struct writer *w, const struct json *schema, struct str key, int depth);

static struct json *example_object(struct writer *w, const struct json *schema, int depth)
{
    const struct json *properties = properties_of(schema);
    struct json *o = json_object(w->arena);
    for (size_t i = 0; i < json_len(properties) && w->values > 0; i++) {
        const struct json_member *m = &properties->object.members[i];
        json_set(w->arena, o, m->key, example(w, m->value, m->key, depth + 1));
    }
    return o;
}

static struct json *example_array(struct writer *w, const struct json *schema, int depth)
{
    const struct json *items = json_get(schema, "items");
    int64_t least = json_int(json_get(schema, "minItems"), 1);
    struct json *list = json_array(w->arena);
    int64_t count = least < 1 ? 1 : least > 3 ? 3 : least;
    for (int64_t i = 0; json_is(items, JSON_OBJECT) && i < count; i++) {
        json_push(w->arena, list, example(w, items, STR_EMPTY, depth + 1));
    }
    return list;
}

/* A value that the author wrote down: the best example there is. */
static const struct json *written_down(const struct json *schema)
{
    const struct json *examples = json_get(schema, "examples");
    const struct json *words = json_get(schema, "enum");
    const struct json *constant = json_get(schema, "const");
    if (constant != NULL) {
        return constant;
    }
    if (json_is(examples, JSON_ARRAY) && examples->array.len > 0) {
        return examples->array.items[0];
    }
    if (json_get(schema, "default") != NULL) {
        return json_get(schema, "default");
    }
    return json_is(words, JSON_ARRAY) ? json_item(words, 0) : NULL;
}

static struct str type_of(const struct json *schema)
{
    const struct json *type = json_get(schema, "type");
    return json_str(json_is(type, JSON_ARRAY) ? json_item(type, 0) : type, STR_EMPTY);
}

static struct json *example_file(struct writer *w, const struct json *schema, struct str key)
{
    struct str name = json_str(json_get(schema, "x-filename"), STR_EMPTY);
    bool manifest = str_eqc(json_str(json_get(schema, "x-type"), STR_EMPTY), "artifact-manifest");
    if (name.len == 0) {
        name = manifest ? STR("manifest.json") : str_slice(key, 0, 64);
    }
    return json_cstr(w->arena, arena_printf(w->arena, "%s/%.*s", w->dir, STR_ARG(name)));
}

static struct json *example(struct writer *w, const struct json *schema, struct str key, int depth)
{
    schema = skill_schema_follow(w->root, schema);
    if (depth > DEPTH_MAX || w->values == 0) {
        return json_null(w->arena);
    }
    w->values--;
    const struct json *given = written_down(schema);
    if (given != NULL) {
        return (struct json *)(uintptr_t)given; /* shared: it is only written */
    }
    if (json_get(schema, "x-type") != NULL) {
        return example_file(w, schema, key);
    }
    const struct json *any = json_get(schema, "anyOf");
    any = json_is(any, JSON_ARRAY) ? any : json_get(schema, "oneOf");
    if (json_is(any, JSON_ARRAY) && any->array.len > 0) {
        return example(w, any->array.items[0], key, depth + 1);
    }
    struct str type = type_of(schema);
    if (str_eqc(type, "object") || json_get(schema, "properties") != NULL) {
        return example_object(w, schema, depth);
    }
    if (str_eqc(type, "array")) {
        return example_array(w, schema, depth);
    }
    if (str_eqc(type, "integer") || str_eqc(type, "number")) {
        return json_integer(w->arena, json_int(json_get(schema, "minimum"), 0));
    }
    if (str_eqc(type, "boolean")) {
        return json_boolean(w->arena, false);
    }
    return str_eqc(type, "null") ? json_null(w->arena) : json_cstr(w->arena, "…");
}

static int write_example(struct writer *w, const struct json *schema)
{
    struct json *o = json_object(w->arena);
    json_setc(w->arena, o, SKILL_DONE_KEY, json_boolean(w->arena, true));
    w->values = VALUES_MAX;
    const struct json *fields = example_object(w, schema, 0);
    for (size_t i = 0; i < fields->object.len; i++) {
        const struct json_member *m = &fields->object.members[i];
        json_set(w->arena, o, m->key, m->value);
    }
    json_setc(w->arena, o, SKILL_DONE_KEY, json_boolean(w->arena, true));
    int r = buf_append(w->out, STR("\nFor example:\n\n```json\n"), w->e);
    if (r == 0) {
        r = json_write(o, JSON_PRETTY, w->out, w->e);
    }
    return r < 0 ? r : buf_append(w->out, STR("```\n"), w->e);
}

/* --- all --- */

static int write_branch(struct writer *w, const struct json *schema)
{
    int r = write_table(w, schema);
    return r < 0 ? r : write_example(w, schema);
}

static int write_branches(struct writer *w, const struct json *list)
{
    int r = buf_append(w->out, STR("The answer is one of the following.\n"), w->e);
    for (size_t i = 0; r == 0 && i < list->array.len && i < BRANCHES_MAX; i++) {
        const struct json *branch = skill_schema_follow(w->root, list->array.items[i]);
        r = buf_printf(w->out, w->e, "\nForm %zu:\n\n", i + 1);
        if (r == 0) {
            r = write_branch(w, branch);
        }
    }
    return r;
}

static const char question[] =
    "\nWhen you cannot go on without the user, answer with a question instead:\n\n"
    "```json\n{\n  \"" SKILL_DONE_KEY "\": false,\n  \"message\": \"Which of the two reports?\",\n"
    "  \"ui_hints\": {\n    \"kind\": \"choose_one\",\n    \"options\": [\n"
    "      {\"label\": \"March\", \"value\": \"march\"},\n"
    "      {\"label\": \"April\", \"value\": \"april\"}\n    ]\n  }\n}\n```\n\n"
    "`message` is shown to the user and must not be empty. `ui_hints` is an object; its `kind` is "
    "one of `open_text`, `choose_one` (with `options`), `confirm`, `upload_files` (with "
    "`files`).\n";

int skill_contract_write(const struct skill *s, enum skill_mode mode, const char *artifacts_dir,
                         struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct json *root = s->schemas[SKILL_OUTPUT].tree;
    struct writer w = { .arena = a,
                        .root = root,
                        .out = out,
                        .e = e,
                        .dir = artifacts_dir == NULL ? "artifacts" : artifacts_dir };
    const struct json *branches = json_get(root, "oneOf");
    branches = json_is(branches, JSON_ARRAY) ? branches : json_get(root, "anyOf");
    if (root == NULL) {
        return 0;
    }
    int r = json_is(branches, JSON_ARRAY) && json_get(root, "properties") == NULL
                ? write_branches(&w, branches)
                : write_branch(&w, root);
    if (r == 0 && mode == SKILL_INTERACTIVE) {
        r = buf_append(out, STR(question), e);
    }
    return r;
}
