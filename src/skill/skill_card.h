/* SPDX-License-Identifier: MIT
 *
 * struct skill_card: the front matter of a SKILL.md, which tells a harness what the skill is for.
 *
 *   ---
 *   name: pdf-tables              1-64 of a-z, 0-9 and single hyphens between them
 *   description: Reads tables …   1-1024 characters
 *   license: MIT                  optional string
 *   compatibility: Needs Python   optional string, at most 500 characters
 *   metadata: {author: "me"}      optional map of strings to strings
 *   allowed-tools: Read Bash      optional string
 *   ---
 *   … instructions …
 *
 * The file begins with "---" on a line of its own and the map is closed by another such line; lines
 * end with LF. Further keys are left alone: harnesses know more of them than anybody lists.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct json;

enum {
    SKILL_NAME_MAX = 64,
    SKILL_DESCRIPTION_MAX = 1024,
    SKILL_COMPATIBILITY_MAX = 500,
    SKILL_TEXT_MAX = 1 << 20,   /* bytes of a SKILL.md */
    SKILL_FRONT_MAX = 64 << 10, /* bytes of front matter; all its fields together need less */
};

struct skill_card {
    const char *name;
    const char *description;
    const char *license;         /* NULL when absent */
    const char *compatibility;   /* NULL when absent */
    const char *allowed_tools;   /* NULL when absent */
    const struct json *metadata; /* NULL when absent */
    const struct json *all;      /* the whole map */
    struct str body;             /* of the text, after the front matter */
};

/* ERR_CONFIG "file:line:column: why". `file` is what messages call the text. The card lives in the
 * arena; its body points into the text. */
int skill_card_parse(struct arena *a, struct str text, const char *file, struct skill_card *ret,
                     struct err *e) MUST_USE;

/* Whether it keeps the form of a name. */
bool skill_name_ok(struct str name);
