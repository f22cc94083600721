/* SPDX-License-Identifier: MIT
 *
 * The validator as a program, for schema_against_jsonschema.py. Reads "SCHEMA_BYTES VALUE_BYTES\n"
 * and the two texts, again and again; answers each with a line: "valid", "invalid", or "error WHY".
 */
#include <stdio.h>
#include <stdlib.h>

#include "data/schema.h"

enum { TEXT_MAX = 16 << 20 };

static bool read_text(size_t len, struct buf *out)
{
    char *room;
    buf_init(out, TEXT_MAX);
    if (buf_reserve(out, len, &room, NULL) != 0 || fread(room, 1, len, stdin) != len) {
        return false;
    }
    buf_commit(out, len);
    return true;
}

static void answer(struct str schema_text, struct str value_text)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(schema) struct schema *s = NULL;
    struct json *root = NULL;
    struct json *value = NULL;
    struct err e = { 0 };
    struct schema_result r = { 0 };
    if (json_parse(a, schema_text, NULL, &root, &e) != 0 ||
        json_parse(a, value_text, NULL, &value, &e) != 0 ||
        schema_compile(root, NULL, &s, &e) != 0 ||
        schema_validate(s, value, NULL, a, &r, &e) != 0) {
        printf("error %s\n", e.msg);
    } else {
        printf("%s\n", r.valid ? "valid" : "invalid");
    }
    (void)fflush(stdout);
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *rest;
        size_t schema_len = strtoul(line, &rest, 10);
        size_t value_len = strtoul(rest, NULL, 10);
        CLEANUP(buf) struct buf schema_text = { 0 };
        CLEANUP(buf) struct buf value_text = { 0 };
        if (!read_text(schema_len, &schema_text) || !read_text(value_len, &value_text)) {
            return 1;
        }
        answer(buf_str(&schema_text), buf_str(&value_text));
    }
    return 0;
}
