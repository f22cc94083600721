/* SPDX-License-Identifier: MIT
 *
 * The core schema of YAML 1.2: what a scalar means, and which characters it may have. Private to
 * base.
 */
#pragma once

#include "base/json.h"

enum yaml_tag {
    YAML_TAG_NONE, /* plain scalars resolve by their looks */
    YAML_TAG_ANY,  /* "!": a scalar is text whatever it looks like; a container is what it is */
    YAML_TAG_STR,  /* !!str, and quoted and block scalars without a tag */
    YAML_TAG_NULL,
    YAML_TAG_BOOL,
    YAML_TAG_INT,
    YAML_TAG_FLOAT,
    YAML_TAG_SEQ,
    YAML_TAG_MAP,
};

/* From the full name ("tag:yaml.org,2002:int", "!"); false when it is not a core tag. */
bool yaml_tag_parse(struct str name, enum yaml_tag *ret);
const char *yaml_tag_name(enum yaml_tag tag); /* "!!int" */

/* The value of a scalar. On failure *ret_why says what is wrong with the text, for "'text' why". */
bool yaml_resolve(struct arena *a, struct str text, enum yaml_tag tag, struct json **ret,
                  const char **ret_why);

/* Whether `text`, which is valid UTF-8, has at `i` a character that YAML readers disagree about,
 * and its number: control characters, byte order marks and non-characters, and the line breaks of
 * YAML 1.1 that are none in 1.2. The reader refuses them, the writer escapes them. */
bool yaml_is_disputed(struct str text, size_t i, unsigned *ret);
