/* SPDX-License-Identifier: MIT
 *
 * The JSON Schemas of a task: what people write, and what task.json holds.
 */
#include <string.h>

#include "config/settings_table.h"
#include "data/shape_schema.h"

const char *const settings_schema_names[] = { "task", "task-file", NULL };

static void put_text(struct arena *a, struct json *schema, const char *key, const char *text)
{
    json_setc(a, schema, key, json_cstr(a, text));
}

struct json *settings_schema(struct arena *a, const struct setting *table, const char *name)
{
    bool file = strcmp(name, "task-file") == 0;
    if (!file && strcmp(name, "task") != 0) {
        return NULL;
    }
    struct json *schema = json_object(a);
    put_text(a, schema, "$schema", "https://json-schema.org/draft/2020-12/schema");
    put_text(a, schema, "$id", arena_printf(a, "%s.schema.json", name));
    put_text(a, schema, "title", file ? "task.yaml" : "task.json");
    put_text(a, schema, "description",
             file ? "A task file, or config.yaml of a site or a user. null removes the value of a "
                    "lower layer."
                  : "The task as it was run: all configuration layers merged, without secrets.");
    struct json *shape = shape_schema(a, settings_shape(a, table, 0), file);
    for (size_t i = 0; i < json_len(shape); i++) {
        json_set(a, schema, shape->object.members[i].key, shape->object.members[i].value);
    }
    struct json *version = json_get(json_get(schema, "properties"), "version");
    if (version != NULL) {
        (void)json_remove(version, STR("type"));
        (void)json_remove(version, STR("minimum"));
        json_setc(a, version, "const", json_integer(a, 1));
    }
    if (!file) {
        struct json *required = json_array(a);
        json_push(a, required, json_cstr(a, "version"));
        json_setc(a, schema, "required", required);
    }
    return schema;
}
