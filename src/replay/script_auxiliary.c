/* SPDX-License-Identifier: MIT
 *
 * Responses to auxiliary requests (gateway/auxiliary.h): titles, topics and summaries are answered
 * without a step of the script.
 */
#include "replay/script_priv.h"

#include <strings.h>

/* Deeper schemas of titles and routes do not exist. */
enum { SAMPLE_DEPTH = 8 };

/* Gemini writes its types in capitals. */
static bool is_type(struct str type, const char *name)
{
    return type.len == strlen(name) && strncasecmp(type.ptr, name, type.len) == 0;
}

static struct json *sample_at(struct arena *a, const struct json *schema, unsigned depth)
{
    const struct json *fixed = json_get(schema, "const");
    fixed = fixed != NULL ? fixed : json_item(json_get(schema, "enum"), 0);
    struct str type = json_str(json_get(schema, "type"), STR_EMPTY);
    if (json_is(json_get(schema, "type"), JSON_ARRAY)) {
        type = json_str(json_item(json_get(schema, "type"), 0), STR_EMPTY);
    }
    const struct json *properties = json_get(schema, "properties");
    if (fixed != NULL) {
        return json_copy(a, fixed);
    }
    if (type.len == 0 && properties == NULL) {
        return json_cstr(a, "Task");
    }
    if (properties != NULL || is_type(type, "object")) {
        struct json *o = json_object(a);
        for (size_t i = 0;
             depth < SAMPLE_DEPTH && json_is(properties, JSON_OBJECT) && i < json_len(properties);
             i++) {
            const struct json_member *m = &properties->object.members[i];
            json_set(a, o, m->key, sample_at(a, m->value, depth + 1));
        }
        return o;
    }
    if (is_type(type, "array")) {
        return json_array(a);
    }
    if (is_type(type, "boolean")) {
        return json_boolean(a, false);
    }
    if (is_type(type, "null")) {
        return json_null(a);
    }
    if (is_type(type, "string")) {
        return json_cstr(a, "Task");
    }
    return json_integer(a, json_int(json_get(schema, "minimum"), 0));
}

struct json *script_sample(struct arena *a, const struct json *schema)
{
    return sample_at(a, schema, 0);
}

struct str script_auxiliary_text(const struct llm_request *r, const char *kind, struct arena *a)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    if (r->output.schema != NULL) {
        return json_write(script_sample(a, r->output.schema), JSON_COMPACT, &b, NULL) == 0
                   ? arena_str(a, buf_str(&b))
                   : STR("{}");
    }
    if (strcmp(kind, "topic") == 0) {
        return STR("{\"isNewTopic\":false,\"title\":null}");
    }
    return strcmp(kind, "summary") == 0 ? STR("The work so far went as planned.") : STR("Task");
}
