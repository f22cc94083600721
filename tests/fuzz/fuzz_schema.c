/* SPDX-License-Identifier: MIT
 *
 * A schema and, after the first NUL or else in the schema's own place, a value. Compiling,
 * validating and converting must stay within their limits, and the two ways of asking must agree.
 */
#include <stdlib.h>

#include "data/schema.h"
#include "llm/schema_convert.h"

static const struct schema_limits few = { .max_steps = 200 * 1000, .max_errors = 5 };

static void validate(struct schema *s, const struct json *value, struct arena *a)
{
    struct err e = { 0 };
    struct schema_result r = { 0 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    int verdict = schema_check(s, value, &few, &e);
    if (schema_validate(s, value, &few, a, &r, &e) != 0) {
        return;
    }
    if ((verdict == 1) != r.valid || r.valid != (r.len == 0) || r.len > few.max_errors) {
        abort();
    }
    if (schema_result_write(&r, &out, NULL) != 0) {
        abort();
    }
    for (size_t i = 0; i < r.len; i++) {
        if (json_pointer(value, r.errors[i].instance_path) != r.errors[i].value) {
            abort();
        }
    }
}

static void convert(const struct json *root, const struct json *value, struct arena *a)
{
    struct err e = { 0 };
    struct json *strict = NULL;
    struct json *wrapped = schema_wrap(a, root);
    (void)schema_fold_null(a, root);
    (void)schema_unwrap(root, value);
    if (schema_to_strict(a, wrapped, &strict, &e) == 0) {
        (void)schema_from_strict(a, wrapped, value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(schema) struct schema *s = NULL;
    struct err e = { 0 };
    struct str rest = str_n(data, size);
    struct str text = str_split(&rest, '\0');
    struct json *root = NULL;
    struct json *value = NULL;
    if (json_parse(a, text, NULL, &root, &e) != 0) {
        return 0;
    }
    if (rest.ptr == NULL || json_parse(a, rest, NULL, &value, &e) != 0) {
        value = root;
    }
    struct schema_options options = { .max_schemas = 2000 };
    convert(root, value, a);
    if (schema_compile(root, &options, &s, &e) == 0) {
        validate(s, value, a);
    }
    return 0;
}
