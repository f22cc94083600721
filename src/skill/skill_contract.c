/* SPDX-License-Identifier: MIT
 *
 * The answer that a skill package must give, as a schema; and what an answer says. The text for a
 * reader is in skill_contract_write.c.
 */
#include "skill/skill_contract.h"

#include "base/json.h"
#include "skill/skill.h"
#include "skill/skill_priv.h"

/* Objects nested in each other by oneOf, anyOf, allOf, references: deeper ones get no marker, and
 * references that fan out are followed only so often. No schema that a person wrote comes near. */
enum { BRANCH_DEPTH = 8, BRANCH_STEPS = 1000 };

struct walk {
    struct arena *arena;
    struct json *root; /* not changed by declares_marker() */
    int steps;
};

static const char pending[] =
    "{\"type\":\"object\",\"properties\":{\"" SKILL_DONE_KEY "\":{\"const\":false},"
    "\"message\":{\"type\":\"string\",\"minLength\":1},\"ui_hints\":{\"type\":\"object\","
    "\"properties\":{\"kind\":{\"enum\":[\"open_text\",\"choose_one\",\"confirm\",\"upload_files\","
    "\"fill_fields\",\"risk_ack\"]},\"prompt\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"}"
    ","
    "\"options\":{\"type\":\"array\"},\"files\":{\"type\":\"array\"}}}},"
    "\"required\":[\"" SKILL_DONE_KEY "\",\"message\",\"ui_hints\"]}";

static bool is_list(const struct json *v)
{
    return json_is(v, JSON_ARRAY);
}

/* Adds the marker to every object that an answer could be, so that "additionalProperties": false
 * does not forbid it. */
static void allow_marker(struct walk *w, struct json *schema, int depth)
{
    static const char *const words[] = { "oneOf", "anyOf", "allOf" };
    schema = (struct json *)(uintptr_t)skill_schema_follow(w->root, schema);
    if (!json_is(schema, JSON_OBJECT) || depth > BRANCH_DEPTH || ++w->steps > BRANCH_STEPS) {
        return;
    }
    bool branches = false;
    for (size_t n = 0; n < ARRAY_LEN(words); n++) {
        struct json *list = json_get(schema, words[n]);
        for (size_t i = 0; is_list(list) && i < list->array.len; i++) {
            allow_marker(w, list->array.items[i], depth + 1);
            branches = true;
        }
    }
    struct json *properties = json_get(schema, "properties");
    if (properties == NULL && (!branches || json_get(schema, "additionalProperties") != NULL ||
                               json_get(schema, "unevaluatedProperties") != NULL)) {
        properties = json_object(w->arena);
        json_setc(w->arena, schema, "properties", properties);
    }
    if (json_is(properties, JSON_OBJECT) && json_get(properties, SKILL_DONE_KEY) == NULL) {
        struct json *marker = json_object(w->arena);
        json_setc(w->arena, marker, "const", json_boolean(w->arena, true));
        json_setc(w->arena, properties, SKILL_DONE_KEY, marker);
    }
}

struct json *skill_contract(struct arena *a, const struct skill *s, enum skill_mode mode)
{
    const struct json *output = s->schemas[SKILL_OUTPUT].tree;
    struct json *question = NULL;
    if (output == NULL) {
        return NULL;
    }
    struct json *final = json_copy(a, output);
    allow_marker(&(struct walk) { .arena = a, .root = final }, final, 0);
    if (mode != SKILL_INTERACTIVE || json_parse(a, STR(pending), NULL, &question, NULL) < 0) {
        return final;
    }
    /* As a resource of its own the schema keeps its references to itself. */
    if (json_get(final, "$id") == NULL) {
        json_setc(a, final, "$id", json_cstr(a, "urn:cinch:skill-output"));
    }
    struct json *list = json_array(a);
    json_push(a, list, final);
    json_push(a, list, question);
    struct json *both = json_object(a);
    json_setc(a, both, "anyOf", list);
    return both;
}

/* --- answers --- */

static bool declares_marker(struct walk *w, const struct json *schema, int depth)
{
    static const char *const words[] = { "oneOf", "anyOf", "allOf" };
    schema = skill_schema_follow(w->root, schema);
    if (schema == NULL || depth > BRANCH_DEPTH || ++w->steps > BRANCH_STEPS) {
        return false;
    }
    if (json_get(json_get(schema, "properties"), SKILL_DONE_KEY) != NULL) {
        return true;
    }
    for (size_t n = 0; n < ARRAY_LEN(words); n++) {
        const struct json *list = json_get(schema, words[n]);
        for (size_t i = 0; is_list(list) && i < list->array.len; i++) {
            if (declares_marker(w, list->array.items[i], depth + 1)) {
                return true;
            }
        }
    }
    return false;
}

void skill_answer_read(struct arena *a, const struct skill *s, const struct json *value,
                       struct skill_answer *ret)
{
    struct json *output = (struct json *)(uintptr_t)s->schemas[SKILL_OUTPUT].tree;
    *ret = (struct skill_answer) { .done = json_bool(json_get(value, SKILL_DONE_KEY), true),
                                   .data = json_copy(a, value) };
    if (!ret->done) {
        ret->message = json_cstring(json_get(ret->data, "message"), NULL);
        ret->ui_hints = json_get(ret->data, "ui_hints");
    }
    if (!declares_marker(&(struct walk) { .root = output }, output, 0)) {
        (void)json_remove(ret->data, STR(SKILL_DONE_KEY));
    }
}
