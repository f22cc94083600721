/* SPDX-License-Identifier: MIT
 *
 * What the two files that apply overrides share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "prompt/section_priv.h"

enum { OVERRIDE_VERSION = 2 };

struct section_override {
    struct section_tree *tree;
    const char *file;
    struct err *e;
};

int section_override_fail(const struct section_override *o, const struct json *at, const char *fmt,
                          ...) PRINTF_LIKE(3, 4);
void section_override_drop(struct section_override *o, const char *kind, struct str name,
                           const char *reason);
/* 1 when the entry's hash is this one, 0 when it is another, negative when it is no hash. */
int section_override_match(struct section_override *o, const struct json *entry, const char *member,
                           const char *hash) MUST_USE;
/* A string that may be absent (*ret NULL). */
int section_override_text(struct section_override *o, const struct json *entry, const char *member,
                          const struct json **ret) MUST_USE;

enum section_override_action { OVERRIDE_MODIFY, OVERRIDE_REMOVE, OVERRIDE_APPEND };
struct section_override_request {
    enum section_override_action action;
    size_t index;
    bool negative; /* the index */
};
int section_override_request(struct section_override *o, const struct json *entry,
                             struct section_override_request *ret) MUST_USE;
/* "input" as a value, or "input_json" as JSON in a string. *ret stays when neither is given. */
int section_override_value(struct section_override *o, const struct json *entry, const char *member,
                           const struct json **ret) MUST_USE;

int section_override_tools(struct section_override *o, const struct json *tools) MUST_USE;
int section_override_task_examples(struct section_override *o,
                                   const struct json *examples) MUST_USE;
/* Hash of a tool's description and schemas. */
void section_override_contract_hash(const struct json *definition, char out[SHA256_HEX]);
