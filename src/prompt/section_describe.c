/* SPDX-License-Identifier: MIT
 *
 * A prompt described by its hashes, and the override file that changes nothing: where somebody who
 * wants to change texts begins.
 */
#include "prompt/section_priv.h"

#include "prompt/section_override_priv.h"

static struct json *keys_of(struct arena *a, const struct section *s)
{
    struct json *keys = s->parent == NULL ? json_array(a) : keys_of(a, s->parent);
    json_push(a, keys, json_string(a, s->key));
    return keys;
}

static void describe_section(struct arena *a, const struct section *s, struct json *sections)
{
    if (s->accepts_overrides && s->hash[0] != '\0') {
        struct json *o = json_object(a);
        json_setc(a, o, "path", keys_of(a, s));
        json_setc(a, o, "number", json_string(a, s->number));
        json_setc(a, o, "content_hash", json_cstr(a, s->hash));
        json_push(a, sections, o);
    }
}

static void describe_tools(const struct section_tree *tree, struct arena *a,
                           const struct section *s, struct json *tools)
{
    for (size_t i = 0; i < s->tools_len; i++) {
        const struct section_definition *d = section_definition_find(tree, s->tools[i]);
        if (d == NULL || !d->accepts_overrides) {
            continue;
        }
        char hash[SHA256_HEX];
        const struct json *examples = json_get(d->source, "examples");
        struct json *hashes = json_array(a);
        for (size_t k = 0; k < json_len(examples); k++) {
            section_tool_example_hash(json_item(examples, k), hash);
            json_push(a, hashes, json_cstr(a, hash));
        }
        section_override_contract_hash(d->source, hash);
        struct json *o = json_object(a);
        json_setc(a, o, "path", keys_of(a, s));
        json_setc(a, o, "name", json_string(a, d->name));
        json_setc(a, o, "contract_hash", json_cstr(a, hash));
        json_setc(a, o, "example_hashes", hashes);
        json_push(a, tools, o);
    }
}

static void describe_example(struct arena *a, const struct section *s, struct json *examples)
{
    if (s->example != NULL && s->example->hash[0] != '\0') {
        struct json *o = json_object(a);
        json_setc(a, o, "path", keys_of(a, s));
        json_setc(a, o, "index", json_integer(a, (int64_t)s->example->index));
        json_setc(a, o, "content_hash", json_cstr(a, s->example->hash));
        json_push(a, examples, o);
    }
}

struct json *section_tree_describe(const struct section_tree *tree, struct arena *a)
{
    struct json *sections = json_array(a);
    struct json *tools = json_array(a);
    struct json *examples = json_array(a);
    for (size_t i = 0; i < tree->len; i++) {
        describe_section(a, tree->nodes[i], sections);
        describe_tools(tree, a, tree->nodes[i], tools);
        describe_example(a, tree->nodes[i], examples);
    }
    struct json *o = json_object(a);
    json_setc(a, o, "ns", json_string(a, tree->ns));
    json_setc(a, o, "key", json_string(a, tree->key));
    json_setc(a, o, "sections", sections);
    json_setc(a, o, "tools", tools);
    json_setc(a, o, "task_examples", examples);
    return o;
}

/* --- the file to begin with --- */

static void seed_section(struct arena *a, const struct section *s, struct json *sections)
{
    if (!s->accepts_overrides || s->hash[0] == '\0') {
        return;
    }
    struct json *keys = keys_of(a, s);
    const char *path = "";
    for (size_t i = 0; i < json_len(keys); i++) {
        path = arena_printf(a, "%s%s%s", path, i == 0 ? "" : "/",
                            json_cstring(json_item(keys, i), ""));
    }
    struct json *o = json_object(a);
    json_setc(a, o, "path", keys);
    json_setc(a, o, "expected_hash", json_cstr(a, s->hash));
    json_setc(a, o, "body", json_copy(a, s->body.source));
    json_setc(a, sections, path, o);
}

static struct json *param_descriptions(struct arena *a, const struct json *definition)
{
    struct json *o = json_object(a);
    const struct json *properties = json_pointer(definition, STR("/input_schema/properties"));
    for (size_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->object.len; i++) {
        const struct json_member *m = &properties->object.members[i];
        const struct json *text = json_get(m->value, "description");
        if (json_is(text, JSON_STRING)) {
            json_set(a, o, m->key, json_copy(a, text));
        }
    }
    return o;
}

static void seed_tools(const struct section_tree *tree, struct arena *a, const struct section *s,
                       struct json *tools)
{
    for (size_t i = 0; i < s->tools_len; i++) {
        const struct section_definition *d = section_definition_find(tree, s->tools[i]);
        if (d == NULL || !d->accepts_overrides) {
            continue;
        }
        char hash[SHA256_HEX];
        section_override_contract_hash(d->source, hash);
        struct json *o = json_object(a);
        const struct json *description = json_get(d->source, "description");
        json_setc(a, o, "expected_contract_hash", json_cstr(a, hash));
        json_setc(a, o, "description",
                  description == NULL ? json_null(a) : json_copy(a, description));
        json_setc(a, o, "param_descriptions", param_descriptions(a, d->source));
        json_set(a, tools, d->name, o);
    }
}

struct json *section_tree_seed(const struct section_tree *tree, const char *tag, struct arena *a)
{
    struct json *sections = json_object(a);
    struct json *tools = json_object(a);
    for (size_t i = 0; i < tree->len; i++) {
        seed_section(a, tree->nodes[i], sections);
        seed_tools(tree, a, tree->nodes[i], tools);
    }
    struct json *o = json_object(a);
    json_setc(a, o, "version", json_integer(a, OVERRIDE_VERSION));
    json_setc(a, o, "ns", json_string(a, tree->ns));
    json_setc(a, o, "prompt_key", json_string(a, tree->key));
    json_setc(a, o, "tag", json_cstr(a, tag));
    json_setc(a, o, "sections", sections);
    json_setc(a, o, "tools", tools);
    json_setc(a, o, "task_example_overrides", json_array(a));
    return o;
}
