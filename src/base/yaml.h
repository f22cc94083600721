/* SPDX-License-Identifier: MIT
 *
 * YAML 1.2 (core schema) into struct json; libfyaml is included by yaml.c only.
 *
 * One document. Keys must be scalars and become strings. Anchors and aliases work and are bounded
 * by limits->max_values (no billion laughs); merge keys "<<" are refused; tags other than the core
 * ones are refused. Duplicate keys, tabs as indentation, and more than one document are errors.
 * Plain scalars resolve as the core schema says (true, 1, 0x1f, 1.5, null, ~); .nan and .inf are
 * errors. JSON is valid YAML: a .json file read through here has positions too (file_parse_config
 * does both).
 */
#pragma once

#include "base/json.h"

/* `name` is what messages call the input ("task.yaml"). Errors read "task.yaml:3:7: why". */
int yaml_parse(struct arena *a, struct str text, const char *name, const struct json_limits *limits,
               struct json **ret, struct err *e) MUST_USE;

/* Reads a configuration file by its suffix: .json is checked by the strict JSON reader first and
 * has positions; .yaml and .yml by yaml_parse; anything else is tried as YAML. ERR_INPUT when
 * absent. */
int yaml_load(struct arena *a, const char *path, const struct json_limits *limits,
              struct json **ret, struct err *e) MUST_USE;
