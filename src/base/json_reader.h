/* SPDX-License-Identifier: MIT
 *
 * For modules that read struct json from another format or write it: limits, members, duplicates,
 * numbers and names in messages.
 */
#pragma once

#include "base/json.h"

/* The limits with the zeros replaced by the defaults of json.h; `limits` may be NULL. */
struct json_limits json_limits_of(const struct json_limits *limits);

/* json_parse() that begins its messages with "name:LINE:COLUMN: " when `name` is not NULL. */
int json_parse_named(struct arena *a, struct str text, const char *name,
                     const struct json_limits *limits, struct json **ret, struct err *e) MUST_USE;

/* Appends a member without looking for an equal key: readers add all members first and ask
 * json_duplicate() once per object, which keeps a hostile object of many keys from costing its
 * square. `key` is not copied: it must live in the arena, with a NUL behind it. */
struct json_member *json_append(struct arena *a, struct json *object, struct str key,
                                struct json *value);

/* The first member in order that repeats an earlier key, and (in *ret_first) that earlier one; NULL
 * when all keys differ. O(n log n). */
const struct json_member *json_duplicate(const struct json *object,
                                         const struct json_member **ret_first);

/* The shortest text that reads back as the finite `d`, always with '.' or an exponent. Not a
 * locale's business. Lives in json_parse.c, because yyjson does it. */
#define JSON_REAL_LEN 48
const char *json_format_real(double d, char out[JSON_REAL_LEN]);

/* A foreign name made fit for a message: control characters become '?', a long one is cut. */
#define JSON_SHOW_LEN 72
const char *json_show(struct str s, char out[JSON_SHOW_LEN]);
