/* SPDX-License-Identifier: MIT
 *
 * TOML 1.0.0: read into struct json, write from struct json.
 *
 *   struct json *v;
 *   toml_parse(arena, text, &(struct toml_opts){ .name = "config.toml" }, &v, e);
 *   toml_write(v, NULL, &buf, e);
 *
 * Reading is strict and bounded: whatever the specification forbids is ERR_PARSE with
 * "name:line:column: why" (columns count characters), whatever passes the limits is ERR_LIMIT.
 * Values and keys carry their line and column. Members keep the order in which they first appear.
 *
 * struct json has no dates, no infinity and no NaN. In the plain form a date or time becomes its
 * RFC 3339 text as a string ("1979-05-27T07:32:00Z"), and an infinity or NaN is an error at its
 * position. In the tagged form every scalar is an object {"type": t, "value": text}, with t one of
 * string, integer, float, bool, datetime, datetime-local, date-local, time-local (the form of the
 * toml-test corpus): nothing is lost, and toml_write() with `tagged` gives an equal document back.
 * A table of the document cannot be mistaken for a tagged scalar: its members are never bare JSON
 * strings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct toml_opts {
    const char *name; /* for messages; NULL: "toml" */
    bool tagged;
    /* nested tables and arrays count as depth, also those of dotted keys */
    struct json_limits limits;
};

/* `opts` may be NULL. The result is an object and shares no memory with `text`. */
int toml_parse(struct arena *a, struct str text, const struct toml_opts *opts, struct json **ret,
               struct err *e) MUST_USE;

/* Appends the text of `v`, which must be an object: values first, then [tables] and [[arrays of
 * tables]], in member order. Reads back equal (json_equal). Only `tagged` of `opts` is looked at.
 * ERR_UNSUPPORTED with the path in the message for what TOML cannot hold: null, a number that is
 * not finite (unless tagged), a string that is not UTF-8. */
int toml_write(const struct json *v, const struct toml_opts *opts, struct buf *out,
               struct err *e) MUST_USE;
