/* SPDX-License-Identifier: MIT
 *
 * What a skill package must answer: one JSON object that fits the package's output schema, with the
 * marker "__SKILL_DONE__": true beside its fields. In interactive mode the answer may be a question
 * instead: {"__SKILL_DONE__": false, "message": "…", "ui_hints": {…}}.
 *
 *   struct json *schema = skill_contract(a, s, mode);       to ask for, natively or by the ladder
 *   … structured_parse() …
 *   skill_answer_read(a, s, value, &answer);                 answer.data fits the package's schema
 *
 * The marker is asked for but may be left out: an answer that fits the schema is an answer.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "skill/skill_manifest.h"

struct json;
struct skill;

#define SKILL_DONE_KEY "__SKILL_DONE__"

/* NULL for a plain skill, which promises nothing. */
struct json *skill_contract(struct arena *a, const struct skill *s, enum skill_mode mode);

struct skill_answer {
    bool done;
    struct json *data;           /* without the marker, unless the package's schema has it */
    const char *message;         /* of a question; else NULL */
    const struct json *ui_hints; /* of a question; else NULL */
};
void skill_answer_read(struct arena *a, const struct skill *s, const struct json *value,
                       struct skill_answer *ret);

/* The contract for a reader: a table of the fields and an example, as Markdown. The example has
 * its files in `artifacts_dir`; NULL: "artifacts". */
int skill_contract_write(const struct skill *s, enum skill_mode mode, const char *artifacts_dir,
                         struct buf *out, struct err *e) MUST_USE;
