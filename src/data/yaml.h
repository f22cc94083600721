/* SPDX-License-Identifier: MIT
 *
 * YAML 1.2 (core schema) into struct json; libyaml is included by yaml.c only.
 *
 * One document; an empty one is null. Keys must be scalars and become strings. Anchors and aliases
 * work and are bounded by limits->max_values (no billion laughs); each alias becomes a copy. Merge
 * keys "<<", tags other than the core ones, "%YAML" other than 1.2, duplicate keys, tabs as
 * indentation and more than one document are errors. Plain scalars resolve as the core schema says
 * (true, 1, 0x1f, 1.5, null, ~); "yes" is a string; .nan and .inf are errors. A closing bracket
 * need not be indented.
 */
#pragma once

#include "base/json.h"

/* `name` is what messages call the input ("task.yaml"). Errors read "task.yaml:3:7: why". */
int yaml_parse(struct arena *a, struct str text, const char *name, const struct json_limits *limits,
               struct json **ret, struct err *e) MUST_USE;

/* Reads a configuration file by its suffix: .json by the strict JSON reader, everything else as
 * YAML. Both give positions and the same form of message. ERR_INPUT when absent. */
int yaml_load(struct arena *a, const char *path, const struct json_limits *limits,
              struct json **ret, struct err *e) MUST_USE;

/* Block style, two spaces; yaml_parse() reads it back equal (json_equal). ERR_LIMIT when the buffer
 * is full or the tree deeper than 256. */
int yaml_write(const struct json *v, struct buf *out, struct err *e) MUST_USE;
