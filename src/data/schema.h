/* SPDX-License-Identifier: MIT
 *
 * struct schema: a compiled JSON Schema. Compile once, validate many times.
 *
 *   CLEANUP(schema) struct schema *s = NULL;
 *   schema_compile(tree, NULL, &s, e);                  ERR_CONFIG "schema at /properties/a: …"
 *   struct schema_result r;
 *   schema_validate(s, value, NULL, arena, &r, e);      0 also for an invalid value: see r.valid
 *   for (size_t i = 0; i < r.len; i++)
 *       schema_error_write(&r.errors[i], &buf, e);      "/items/3/price: expected number, got …"
 *
 * Drafts 2020-12 and 07, chosen by "$schema" (2020-12 when there is none), also mixed by embedded
 * resources; vocabularies as the meta-schema says. A schema that names draft 04 or 06 is read by
 * the rules of 07, one that names 2019-09 by those of 2020-12; "$recursiveRef" is refused. Older
 * forms are read in both drafts: "definitions", "items" with a list, a boolean "exclusiveMinimum"
 * or "exclusiveMaximum", "dependencies".
 *
 * References: within the schema, to its embedded resources, to the meta-schemas of the drafts
 * (built in), to `documents`, and to what the `resolver` supplies. Nothing is ever fetched: any
 * other reference is an error of the schema.
 *
 * "format" and the "content…" keywords are annotations and never make a value invalid.
 *
 * Work is bounded whatever the schema and the value say: by recursion depth, by steps, and patterns
 * by their backtracking. Past a bound schema_validate() fails with ERR_LIMIT; a value is never
 * called valid or invalid by exhaustion.
 *
 * Ownership: a schema copies what it needs; the tree, the documents and the options may go after
 * schema_compile(). Results live in the caller's arena and point into the value. A schema holds
 * scratch memory of its patterns: one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct schema;

enum schema_draft {
    SCHEMA_DRAFT_UNSET,
    SCHEMA_DRAFT_07,
    SCHEMA_DRAFT_2020_12,
};

/* A document that references may point to, under the URI it is known by (without fragment). */
struct schema_document {
    struct str uri;
    const struct json *root;
};

/* Port: supplies a document that is not among the known ones. `uri` has no fragment. Returns 0 and
 * the tree (made in `a`, or living until schema_compile() returns), or an error, by which the
 * schema is refused. A NULL load refuses all. */
struct schema_resolver {
    int (*load)(void *context, struct arena *a, struct str uri, const struct json **ret,
                struct err *e);
    void *context;
};

struct schema_options {
    enum schema_draft draft; /* without "$schema"; unset: 2020-12 */
    struct str uri;          /* where the schema comes from; base of relative references */
    const struct schema_document *documents;
    size_t document_count;
    struct schema_resolver resolver;
    size_t max_schemas; /* subschemas of all documents together; 0: 50000 */
};

/* `options` may be NULL. ERR_CONFIG says where in the schema: its path, and the line if known. Also
 * found here: references that lead back to themselves without descending into the value. */
int schema_compile(const struct json *root, const struct schema_options *options,
                   struct schema **ret, struct err *e) MUST_USE;
struct schema *schema_free(struct schema *s); /* accepts NULL, returns NULL */

/* One reason why a value is invalid. */
struct schema_error {
    struct str instance_path; /* JSON Pointer into the value; "" is the whole */
    struct str schema_path;   /* JSON Pointer to the keyword; "URI#…" in another document */
    struct str keyword;       /* "type", "required", …; "false" for the schema `false` */
    struct str message;       /* a sentence without the path: expected number, got string "12" */
    const struct json *value; /* what is at instance_path */
};

struct schema_result {
    bool valid;
    struct schema_error *errors; /* none when valid, at least one when not */
    size_t len;
    bool more; /* there are further errors than were asked for */
};

struct schema_limits {
    size_t max_errors;  /* 0: 20 */
    uint64_t max_steps; /* 0: 50 million, seconds of work; a keyword or member visited is one */
    unsigned max_depth; /* 0: 1000; nested applications of schemas, references included */
};

/* `limits` may be NULL. When no branch of anyOf or oneOf fits, the errors of the closest branch
 * follow the one of anyOf or oneOf itself. */
int schema_validate(struct schema *s, const struct json *value, const struct schema_limits *limits,
                    struct arena *a, struct schema_result *ret, struct err *e) MUST_USE;

/* 1 when the value is valid, else 0, without saying why; allocates nothing that stays. */
int schema_check(struct schema *s, const struct json *value, const struct schema_limits *limits,
                 struct err *e) MUST_USE;

/* "/items/3/price: expected number, got string \"12\"", without newline. */
int schema_error_write(const struct schema_error *error, struct buf *out, struct err *e) MUST_USE;
/* All of them, one a line, each line closed, and "… and more" if there are. */
int schema_result_write(const struct schema_result *result, struct buf *out,
                        struct err *e) MUST_USE;

static inline void cleanup_schema(struct schema **s)
{
    *s = schema_free(*s);
}
