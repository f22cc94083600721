/* SPDX-License-Identifier: MIT
 *
 * Progressive disclosure: what the tools open_sections and read_section do, and how they are
 * described to a model.
 */
#include "prompt/section_priv.h"

#include <stdlib.h>

static struct json *text_property(struct arena *a, const char *type, const char *description)
{
    struct json *p = json_object(a);
    json_setc(a, p, "type", json_cstr(a, type));
    json_setc(a, p, "description", json_cstr(a, description));
    return p;
}

static struct json *open_properties(struct arena *a)
{
    struct json *properties = json_object(a);
    struct json *keys = text_property(
        a, "array",
        "Section keys to open. Each key identifies a summarized section. Use the keys shown in "
        "section summaries. Nested sections use dot notation (e.g., 'parent.child').");
    struct json *item = json_object(a);
    json_setc(a, item, "type", json_cstr(a, "string"));
    json_setc(a, keys, "items", item);
    json_setc(a, properties, "section_keys", keys);
    json_setc(
        a, properties, "reason",
        text_property(a, "string",
                      "Brief explanation of why these sections need to be expanded. Helps the "
                      "caller understand the model's information needs."));
    return properties;
}

static struct json *read_properties(struct arena *a)
{
    struct json *properties = json_object(a);
    json_setc(a, properties, "section_key",
              text_property(a, "string",
                            "The key of the summarized section to read. Use the key shown in the "
                            "section summary. Nested sections use dot notation (e.g., "
                            "'parent.child')."));
    return properties;
}

struct json *section_builtin(struct arena *a, bool open)
{
    struct json *tool = json_object(a);
    struct json *schema = json_object(a);
    struct json *properties = open ? open_properties(a) : read_properties(a);
    struct json *required = json_array(a);
    for (size_t i = 0; i < properties->object.len; i++) {
        json_push(a, required, json_string(a, properties->object.members[i].key));
    }
    json_setc(a, schema, "type", json_cstr(a, "object"));
    json_setc(a, schema, "properties", properties);
    json_setc(a, schema, "required", required);
    json_setc(a, schema, "additionalProperties", json_boolean(a, false));
    json_setc(a, tool, "name", json_cstr(a, open ? "open_sections" : "read_section"));
    json_setc(a, tool, "description",
              json_cstr(a, open ? "Expand summarized sections to view their full content."
                                : "Read the full content of a summarized section without expanding "
                                  "it. Returns the section's markdown content. Child sections may "
                                  "still be summarized in the output."));
    json_setc(a, tool, "input_schema", schema);
    json_setc(a, tool, "accepts_overrides", json_boolean(a, false));
    return tool;
}

/* Messages to a model name no file: it did not write the task. */
static int refuse(struct err *e, struct str key, const char *why)
{
    return ERR(e, ERR_CONFIG, "Section '%.*s' %s", (int)(key.len > 200 ? 200 : key.len), key.ptr,
               why);
}

/* 1: opened, 0: open already. */
static int open_one(struct section_pass *pass, const struct section *s, struct arena *a,
                    struct json *to, struct err *e)
{
    enum section_visibility now;
    int r = section_pass_visibility(pass, s, &now, e);
    if (r == 0 && now != SECTION_FULL) {
        json_set(a, to, s->path, json_cstr(a, "full"));
        return 1;
    }
    return r;
}

int section_tree_open(struct section_tree *tree, const struct section_request *request,
                      const struct json *keys, struct arena *a, struct json **ret, struct err *e)
{
    struct err local;
    struct section_pass *pass = NULL;
    e = e == NULL ? &local : e;
    if (!json_is(keys, JSON_ARRAY) || keys->array.len == 0) {
        return ERR(e, ERR_CONFIG, "At least one section key must be provided.");
    }
    int r = section_pass_new(tree, request, &pass, e);
    if (r < 0) {
        return r;
    }
    struct json *visibility = json_object(a);
    const struct json *before = request->visibility;
    for (size_t i = 0; json_is(before, JSON_OBJECT) && i < before->object.len; i++) {
        json_set(a, visibility, before->object.members[i].key,
                 json_copy(a, before->object.members[i].value));
    }
    int opened = 0;
    for (size_t i = 0; i < keys->array.len && r >= 0; i++) {
        struct str key = json_str(keys->array.items[i], STR_EMPTY);
        const struct section *s = section_find(tree, key);
        r = s == NULL ? refuse(e, key, "does not exist in this prompt.")
                      : open_one(pass, s, a, visibility, e);
        opened += r > 0;
    }
    (void)section_pass_free(pass);
    if (r >= 0 && opened == 0) {
        return keys->array.len == 1
                   ? refuse(e, json_str(keys->array.items[0], STR_EMPTY), "is already expanded.")
                   : ERR(e, ERR_CONFIG, "All requested sections are already expanded.");
    }
    *ret = visibility;
    return r < 0 ? r : 0;
}

/* The section as if full, then what is below it as it stands. */
static int write_subtree(struct section_pass *pass, const struct section_tree *tree,
                         const struct section *top, struct buf *out, struct err *e)
{
    int r = section_pass_write(pass, top, SECTION_FULL, out, e);
    for (size_t i = top->at + 1; i < top->end && r == 0;) {
        const struct section *s = tree->nodes[i];
        enum section_visibility visibility = SECTION_FULL;
        bool enabled = false;
        r = section_pass_enabled(pass, s, &enabled, e);
        r = r < 0 || !enabled ? r : section_pass_visibility(pass, s, &visibility, e);
        r = r < 0 || !enabled ? r : section_pass_write(pass, s, visibility, out, e);
        i = enabled && visibility == SECTION_FULL ? i + 1 : s->end;
    }
    return r;
}

int section_tree_read(struct section_tree *tree, const struct section_request *request,
                      struct str key, struct arena *a, struct str *ret, struct err *e)
{
    struct err local;
    struct section_pass *pass = NULL;
    enum section_visibility now;
    e = e == NULL ? &local : e;
    const struct section *s = section_find(tree, key);
    if (s == NULL) {
        return refuse(e, key, "does not exist in this prompt.");
    }
    int r = section_pass_new(tree, request, &pass, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(buf) struct buf out = BUF_INIT((size_t)1 << 30);
    r = section_pass_visibility(pass, s, &now, e);
    if (r == 0 && now == SECTION_FULL) {
        r = refuse(e, key, "is not summarized.");
    }
    r = r < 0 ? r : write_subtree(pass, tree, s, &out, e);
    (void)section_pass_free(pass);
    if (r == 0) {
        *ret = arena_str(a, buf_str(&out));
    }
    return r;
}
