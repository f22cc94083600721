/* SPDX-License-Identifier: MIT
 *
 * Schemas in the dialects of model providers. All functions make new trees in the arena; inputs are
 * not changed. What comes back from a model is always validated against the author's own schema, so
 * a converted one only has to lead the model there, not to say all of it.
 *
 *   out = schema_wrap(a, mine);                  an object at the root, as all providers want
 *   schema_to_strict(a, out, &out, e);           OpenAI;  or  out = schema_fold_null(a, out);
 *   … send out, receive value …
 *   value = schema_from_strict(a, schema_wrap(a, mine), value);
 *   value = schema_unwrap(mine, value);
 *   schema_validate(compiled_mine, value, …);
 */
#pragma once

#include <stdbool.h>

#include "base/json.h"

/* {"type": "object", "properties": {key: schema}}, the key required and the only one: how the input
 * of a tool holds a schema. Definitions move to the new root, references are adjusted. */
struct json *schema_nest(struct arena *a, const struct json *schema, const char *key);

/* A schema that is not of an object, nested in one: {"items": …} for an array, {"value": …} for
 * anything else. A schema of an object comes back as a copy. */
struct json *schema_wrap(struct arena *a, const struct json *schema);
/* The value without the wrapping that schema_wrap(schema) added, if it has it. */
const struct json *schema_unwrap(const struct json *schema, const struct json *value);

/* The strict form of OpenAI: additionalProperties false and all properties required, everywhere;
 * optional ones also take null; oneOf becomes anyOf; constraints that the form does not know are
 * left out. ERR_UNSUPPORTED, with the path, for what it cannot express: a root that is no object,
 * objects with free keys, tuples, arrays or values of anything, several schemas in allOf,
 * references to other documents. */
int schema_to_strict(struct arena *a, const struct json *schema, struct json **ret,
                     struct err *e) MUST_USE;
/* The value without the nulls that stand for absent optional properties in the strict form. */
struct json *schema_from_strict(struct arena *a, const struct json *schema,
                                const struct json *value);

/* anyOf of a schema with a type and of null becomes {"type": […, "null"]}, which Claude takes. */
struct json *schema_fold_null(struct arena *a, const struct json *schema);

/* The schema without what a strict validator of draft 07 refuses: keywords that it does not know
 * ("x-type", "prefixItems" …), formats, and patterns that are not JavaScript's. */
struct json *schema_to_draft_07(struct arena *a, const struct json *schema);

/* Alternatives of objects as one object that has the properties of all, for providers that take no
 * alternatives at the root; what all of them require is required. Any other schema is treated as
 * by schema_wrap(), and so is one that cannot be expressed that way. */
struct json *schema_join(struct arena *a, const struct json *schema);
