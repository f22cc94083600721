/* SPDX-License-Identifier: MIT
 *
 * Structured output out of a model's final text. The text is tried by a ladder, from the form that
 * was asked for down to JSON somewhere in prose; the first candidate that is valid wins:
 *
 *   text       the whole text is the value
 *   envelope   the whole text is JSON, and the value is at one of the given pointers
 *   fence      a fenced block marked json, then any fenced block
 *   balanced   the first `{…}` or `[…]` in the text that is JSON
 *
 *   struct structured_options o = { .schema = compiled, .wanted = tree };
 *   struct structured_result r;
 *   structured_parse(text, &o, arena, &r, e);           ERR_PARSE: r.failure says why, for a model
 *   r.value, structured_source_name(r.source), structured_repair_name(r.repair)
 *
 * A text that holds no valid value is an outcome: the result is then OutputParseError in the shape
 * of r.failure, with the raw text and the best reason there is. Bounded: at most the first
 * STRUCTURED_CANDIDATES candidates are looked at, and work on a text of n bytes is some multiple of
 * n, whatever is in it.
 *
 * Ownership: everything in the result lives in the arena or in the caller's text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "data/schema.h"

enum { STRUCTURED_CANDIDATES = 1000 };

/* How much had to be repaired; the word goes into the record. */
enum structured_repair {
    STRUCTURED_NONE,     /* "none": the whole text, or a native value */
    STRUCTURED_ENVELOPE, /* "envelope" */
    STRUCTURED_FENCE,    /* "fence" */
    STRUCTURED_BALANCED, /* "balanced" */
};

/* Who gave the value; the word goes into the record. */
enum structured_source {
    STRUCTURED_TEXT,   /* "text": it was found in the final text */
    STRUCTURED_NATIVE, /* "native": the harness has a schema of its own */
    STRUCTURED_TOOL,   /* "tool": the model called structured_output */
};

struct structured_options {
    struct schema *schema; /* NULL: any object or array will do */
    /* the tree of the same schema; lets {"items": […]} stand for an array, as schema_wrap() asks
     * for. May be NULL */
    const struct json *wanted;
    /* schema_wrap() of it, when it was asked for in the strict form of schema_to_strict(): nulls
     * then stand for absent members. May be NULL */
    const struct json *strict;
    const char *const *envelopes; /* JSON Pointers, in order of preference */
    size_t envelope_count;
    struct json_limits limits; /* of a candidate */
};

/* OutputParseError: no valid value. */
struct structured_failure {
    struct str message; /* sentences for a model and a person */
    struct str raw;     /* the text, as it was given */
    struct str excerpt; /* the candidate that came closest; empty when there was no JSON at all */
    enum structured_repair repair;      /* the rung that candidate came from */
    const struct schema_result *errors; /* its errors; NULL when it did not parse */
};

struct structured_result {
    struct json *value; /* NULL on failure */
    enum structured_source source;
    enum structured_repair repair; /* of the value */
    struct str piece;              /* the part of the text that it was read from */
    const char *pointer;           /* of the envelope; else NULL */
    struct structured_failure failure;
};

/* 0 with a value; ERR_PARSE with `failure` filled, and its message in *e; ERR_LIMIT when validating
 * would take too long. */
int structured_parse(struct str text, const struct structured_options *options, struct arena *a,
                     struct structured_result *ret, struct err *e) MUST_USE;

/* The same for a value that came by itself, from a native schema or the structured_output tool:
 * only unwrapped and validated. `failure.raw` is then the value as text. */
int structured_accept(const struct json *value, enum structured_source source,
                      const struct structured_options *options, struct arena *a,
                      struct structured_result *ret, struct err *e) MUST_USE;

const char *structured_source_name(enum structured_source source);

const char *structured_repair_name(enum structured_repair repair);
