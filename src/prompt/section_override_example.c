/* SPDX-License-Identifier: MIT
 *
 * Overrides of tools (description, descriptions of parameters, examples) and of task examples. Each
 * example is known by its index and the hash of its content.
 */
#include "prompt/section_priv.h"

#include <stdio.h>

#include "prompt/section_override_priv.h"

/* --- hashes --- */

static struct json *none_schema(struct arena *a, bool params)
{
    struct json *o = json_object(a);
    json_setc(a, o, "title", json_cstr(a, "NoneType"));
    json_setc(a, o, "type", json_cstr(a, params ? "object" : "null"));
    if (params) {
        json_setc(a, o, "properties", json_object(a));
        json_setc(a, o, "additionalProperties", json_boolean(a, false));
    }
    return o;
}

void section_override_contract_hash(const struct json *definition, char out[SHA256_HEX])
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct json *input = json_get(definition, "input_schema");
    const struct json *output = json_get(definition, "output_schema");
    char hashes[3][SHA256_HEX];
    sha256_hex(json_str(json_get(definition, "description"), STR_EMPTY), hashes[0]);
    section_hash_json(input == NULL ? none_schema(a, true) : input, hashes[1]);
    section_hash_json(output == NULL ? none_schema(a, false) : output, hashes[2]);
    sha256_hex(str_of(arena_printf(a, "%s::%s::%s", hashes[0], hashes[1], hashes[2])), out);
}

/* --- what an entry asks for --- */

int section_override_request(struct section_override *o, const struct json *entry,
                             struct section_override_request *ret)
{
    static const char *const words[] = { "modify", "remove", "append" };
    const struct json *action = json_get(entry, "action");
    const struct json *index = json_get(entry, "index");
    struct str word = json_str(action, STR_EMPTY);
    if (!json_is(entry, JSON_OBJECT)) {
        return section_override_fail(o, entry, "the override of an example is an object");
    }
    size_t i = 0;
    while (i < ARRAY_LEN(words) && !str_eqc(word, words[i])) {
        i++;
    }
    if (i == ARRAY_LEN(words)) {
        return section_override_fail(o, action == NULL ? entry : action,
                                     "'action' must be 'modify', 'remove' or 'append'");
    }
    if (!json_is(index, JSON_INT)) {
        return section_override_fail(o, index == NULL ? entry : index,
                                     "'index' must be an integer");
    }
    *ret = (struct section_override_request) { .action = (enum section_override_action)i,
                                               .negative = index->integer < 0 };
    ret->index = ret->negative ? 0 : (size_t)index->integer;
    return 0;
}

int section_override_value(struct section_override *o, const struct json *entry, const char *member,
                           const struct json **ret)
{
    const struct json *text;
    const struct json *plain = json_get(entry, member);
    char name[32];
    (void)snprintf(name, sizeof name, "%s_json", member);
    int r = section_override_text(o, entry, name, &text);
    if (r < 0 || text == NULL) {
        *ret = plain == NULL ? *ret : plain;
        return r;
    }
    struct json *v = NULL;
    r = json_parse(o->tree->arena, text->string, NULL, &v, o->e);
    if (r < 0) {
        (void)err_wrap(o->e, "'%s'", name);
        char where[JSON_AT_LEN];
        return err_wrap(o->e, "%s", json_at(o->file, text, where));
    }
    *ret = v;
    return 0;
}

/* --- examples of tools --- */

static int edit_example(struct section_override *o, const struct json *entry, struct json *example)
{
    struct arena *a = o->tree->arena;
    const struct json *description;
    const struct json *input = NULL;
    const struct json *output = NULL;
    int r = section_override_text(o, entry, "description", &description);
    r = r < 0 ? r : section_override_value(o, entry, "input", &input);
    r = r < 0 ? r : section_override_value(o, entry, "output", &output);
    if (r < 0) {
        return r;
    }
    if (description != NULL) {
        json_setc(a, example, "description", json_copy(a, description));
    }
    if (input != NULL) {
        json_setc(a, example, "input", json_copy(a, input));
    }
    if (output != NULL) {
        json_setc(a, example, "output", json_copy(a, output));
    }
    return 0;
}

/* One entry on the list being edited; removed examples become NULL. */
static int edit_examples(struct section_override *o, const struct section_definition *d,
                         const struct json *entry, struct json **edited, size_t *len)
{
    struct arena *a = o->tree->arena;
    const struct json *examples = json_get(d->source, "examples");
    struct section_override_request q;
    int r = section_override_request(o, entry, &q);
    if (r < 0) {
        return r;
    }
    if (q.action == OVERRIDE_APPEND) {
        edited[*len] = json_object(a);
        return edit_example(o, entry, edited[(*len)++]);
    }
    if (q.negative || q.index >= json_len(examples)) {
        section_override_drop(o, "example of tool", d->name, "unknown");
        return 0;
    }
    char hash[SHA256_HEX];
    section_tool_example_hash(json_item(examples, q.index), hash);
    r = section_override_match(o, entry, "expected_hash", hash);
    if (r <= 0) {
        if (r == 0) {
            section_override_drop(o, "example of tool", d->name, "stale");
        }
        return r;
    }
    if (q.action == OVERRIDE_REMOVE || edited[q.index] == NULL) {
        edited[q.index] = NULL;
        return 0;
    }
    return edit_example(o, entry, edited[q.index]);
}

static int apply_examples(struct section_override *o, struct section_definition *d,
                          struct json *effective, const struct json *entries)
{
    struct arena *a = o->tree->arena;
    const struct json *examples = json_get(d->source, "examples");
    size_t len = json_len(examples);
    struct json **edited = arena_array(a, len + json_len(entries), sizeof(struct json *));
    int r = 0;
    for (size_t i = 0; i < len; i++) {
        edited[i] = json_copy(a, json_item(examples, i));
    }
    if (entries != NULL && !json_is(entries, JSON_ARRAY)) {
        return section_override_fail(o, entries, "'example_overrides' must be a list");
    }
    for (size_t i = 0; i < json_len(entries) && r >= 0; i++) {
        r = edit_examples(o, d, json_item(entries, i), edited, &len);
    }
    struct json *list = json_array(a);
    for (size_t i = 0; i < len && r >= 0; i++) {
        if (edited[i] != NULL) {
            json_push(a, list, edited[i]);
        }
    }
    if (r >= 0 && json_len(entries) > 0) {
        json_setc(a, effective, "examples", list);
    }
    return r < 0 ? r : 0;
}

/* --- tools --- */

static int describe_params(struct section_override *o, struct json *effective,
                           const struct json *texts)
{
    struct arena *a = o->tree->arena;
    if (texts == NULL || json_is(texts, JSON_NULL)) {
        return 0;
    }
    if (!json_is(texts, JSON_OBJECT)) {
        return section_override_fail(o, texts, "'param_descriptions' must be an object");
    }
    struct json *properties = json_pointer(effective, STR("/input_schema/properties"));
    for (size_t i = 0; i < texts->object.len; i++) {
        const struct json_member *m = &texts->object.members[i];
        if (!json_is(m->value, JSON_STRING)) {
            return section_override_fail(o, m->value, "the description of a parameter is a string");
        }
        struct json *property = json_find(properties, m->key);
        if (json_is(property, JSON_OBJECT)) {
            json_setc(a, property, "description", json_copy(a, m->value));
        } else {
            section_override_drop(o, "parameter", m->key, "unknown");
        }
    }
    return 0;
}

static bool is_offered(const struct section_tree *tree, struct str name)
{
    for (size_t i = 0; i < tree->len; i++) {
        for (size_t k = 0; k < tree->nodes[i]->tools_len; k++) {
            if (str_eq(tree->nodes[i]->tools[k], name)) {
                return true;
            }
        }
    }
    return false;
}

static int apply_tool(struct section_override *o, struct str name, const struct json *entry)
{
    if (!json_is(entry, JSON_OBJECT)) {
        return section_override_fail(o, entry, "the override of a tool is an object");
    }
    struct section_definition *d = section_definition_find(o->tree, name);
    if (d == NULL || !d->accepts_overrides || !is_offered(o->tree, name)) {
        section_override_drop(o, "tool", name, d == NULL ? "unknown" : "not accepted");
        return 0;
    }
    char hash[SHA256_HEX];
    section_override_contract_hash(d->source, hash);
    int r = section_override_match(o, entry, "expected_contract_hash", hash);
    if (r <= 0) {
        if (r == 0) {
            section_override_drop(o, "tool", name, "stale");
        }
        return r;
    }
    const struct json *description;
    struct json *effective = json_copy(o->tree->arena, d->source);
    r = section_override_text(o, entry, "description", &description);
    if (r == 0 && description != NULL) {
        json_setc(o->tree->arena, effective, "description", json_copy(o->tree->arena, description));
    }
    r = r < 0 ? r : describe_params(o, effective, json_get(entry, "param_descriptions"));
    r = r < 0 ? r : apply_examples(o, d, effective, json_get(entry, "example_overrides"));
    d->effective = effective;
    return r;
}

int section_override_tools(struct section_override *o, const struct json *tools)
{
    int r = 0;
    if (tools == NULL || json_is(tools, JSON_NULL)) {
        return 0;
    }
    if (!json_is(tools, JSON_OBJECT)) {
        return section_override_fail(o, tools, "'tools' must be an object");
    }
    for (size_t i = 0; i < tools->object.len && r >= 0; i++) {
        r = apply_tool(o, tools->object.members[i].key, tools->object.members[i].value);
    }
    return r < 0 ? r : 0;
}
