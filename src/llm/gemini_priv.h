/* SPDX-License-Identifier: MIT
 *
 * Gemini generateContent, shared by its files: gemini.c (table, paths, errors), gemini_read.c and
 * gemini_schema.c (requests in), gemini_write.c (requests out), gemini_answer.c (answers, both
 * ways).
 *
 * The API reads protobuf JSON: a member may be spelled in camelCase or in snake_case. Both are
 * read; camelCase is written.
 */
#pragma once

#include "llm/codec_priv.h"

/* `spelling` of what was read from this format. Of a tool it is the number of the list entry that
 * it stood in, from 1. */
enum {
    GEMINI_NO_ROLE = 1 << 0,       /* message */
    GEMINI_FUNCTION_ROLE = 1 << 1, /* message: "function", as old clients say for results */
    GEMINI_NO_PARTS = 1 << 2,      /* message */
    GEMINI_NO_ARGS = 1 << 0,       /* call */
    GEMINI_MEDIA_PARTS = 1 << 0,   /* result: its media stand in `parts` of the response */
    GEMINI_NO_RESPONSE = 1 << 1,   /* result */
    GEMINI_EMPTY_TOOLS = 1 << 0,   /* request */
    GEMINI_PLAIN_SYSTEM = 1 << 1,  /* request: a string */
};

/* The dialect of `parameters` and `responseSchema` (OpenAPI 3.0 with types in capitals) as JSON
 * Schema. */
struct json *gemini_schema_read(struct arena *a, const struct json *schema);

int gemini_read(struct arena *a, const struct llm_endpoint *where, struct json *body,
                struct llm_request *ret, struct err *e) MUST_USE;
int gemini_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                 struct json **ret, struct err *e) MUST_USE;

struct gemini_reading {
    bool open; /* `block` is a text or a thought that the next piece may continue */
    bool thought;
    uint32_t block;
    bool calls;
    bool finished; /* a reason to stop was told */
};
struct gemini_writing {
    struct str id;
    bool begun; /* a list: something stands in it */
};

int gemini_read_event(struct llm_read *rd, struct str name, struct str data,
                      struct err *e) MUST_USE;
int gemini_read_body(struct llm_read *rd, const struct json *body, struct err *e) MUST_USE;
void gemini_read_end(struct llm_read *rd);
bool gemini_tap_wants(struct str name, struct str data);
int gemini_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e) MUST_USE;
int gemini_write_body(struct llm_write *w, struct json **ret, struct err *e) MUST_USE;

struct json *gemini_error_write(struct arena *a, const struct llm_error *error);
void gemini_error_read(const struct json *body, struct llm_error *ret);
