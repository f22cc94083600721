/* SPDX-License-Identifier: MIT
 *
 * Any text as the final answer of a model. What is found must be valid, and must be in the text.
 */
#include <stdlib.h>

#include "prompt/structured.h"

static const char schema_text[] =
    "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},{\"type\":\"object\","
    "\"properties\":{\"name\":{\"type\":\"string\"}},\"additionalProperties\":false}]}";

static void parse(struct str text, struct structured_options *o, struct arena *a)
{
    struct structured_result r;
    struct err e = { 0 };
    int rc = structured_parse(text, o, a, &r, &e);
    if ((rc == 0) != (r.value != NULL) || (rc == -ERR_PARSE && r.failure.message.len == 0)) {
        abort();
    }
    if (rc == 0 && o->schema != NULL && schema_check(o->schema, r.value, NULL, NULL) != 1) {
        abort();
    }
    if (rc == 0 && r.pointer == NULL && str_find(text, r.piece) == text.len) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(schema) struct schema *s = NULL;
    static const char *const pointers[] = { "/result", "/a/0" };
    struct structured_options o = { .envelopes = pointers, .envelope_count = 2 };
    struct json *root = NULL;
    if (json_parse(a, str_of(schema_text), NULL, &root, NULL) != 0 ||
        schema_compile(root, NULL, &s, NULL) != 0) {
        abort();
    }
    parse(str_n(data, size), &o, a);
    o.schema = s;
    o.wanted = root;
    parse(str_n(data, size), &o, a);
    return 0;
}
