/* SPDX-License-Identifier: MIT
 *
 * What schema_convert.c and schema_strict.c share.
 */
#pragma once

#include "base/json.h"

/* Deeper subschemas than this are copied as they are; parsed ones are less deep (json_limits). */
enum { CONVERT_DEPTH = 400 };

/* Follows $ref within the document; NULL when one leads elsewhere, nowhere or round in circles. */
const struct json *schema_deref(const struct json *root, const struct json *schema);
/* Whether "type" allows this type; true when there is no "type". */
bool schema_type_allows(const struct json *schema, const char *type);
bool schema_is_object(const struct json *root, const struct json *schema);
/* Whether null is among the values, as far as the schema says so plainly. */
bool schema_takes_null(const struct json *root, const struct json *schema);
/* Adds "null" to type and enum of a schema that has them; false when it has neither. */
bool schema_add_null(struct arena *a, struct json *schema);
