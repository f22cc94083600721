/* SPDX-License-Identifier: MIT
 *
 * What the files about skills share. Private to prompt.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

/* Turns "does not parse" and "too large" into what they mean here: a wrong package. Returns r. */
int skill_refuse(int r, struct err *e);

/* Strict JSON with "file:line:column: why"; ERR_CONFIG. At most 1 MiB and 64 levels. */
int skill_json_parse(struct arena *a, struct str text, const char *file, struct json **ret,
                     struct err *e) MUST_USE;

/* Characters of UTF-8 text. */
size_t skill_chars(struct str s);

struct skill;

/* "skills/pdf/assets/runner.json": what messages call a file of the package. */
const char *skill_file_label(const struct skill *s, const char *file);
/* For the user; the text must live as long as the skill. */
void skill_warn(struct skill *s, const char *text);
/* Reads, checks and compiles the schemas of a package. */
int skill_schemas_load(struct skill *s, struct err *e) MUST_USE;
/* The subschema that a local "$ref" leads to, followed at most 16 times; the schema itself when it
 * has none. NULL for a reference that leads nowhere. */
const struct json *skill_schema_follow(const struct json *root, const struct json *schema);

/* --- inputs (skill_input.c) --- */

bool skill_input_is_file(const struct json *property);
bool skill_input_required(const struct skill *s, struct str key);
