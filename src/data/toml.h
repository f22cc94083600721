/* SPDX-License-Identifier: MIT
 *
 * TOML 1.0.0: read into struct json, write from struct json, and edit a text in place.
 *
 *   struct json *v;
 *   toml_parse(arena, text, &(struct toml_opts){ .name = "config.toml" }, &v, e);
 *   toml_write(v, NULL, &buf, e);
 *
 *   struct str path[] = { STR("projects"), str_of(dir), STR("trust_level") };
 *   struct toml_edit ed = { .name = file, .text = text, .path = path, .path_len = 3 };
 *   toml_edit_set(&ed, json_string(arena, STR("trusted")), &out, e);
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

/* --- editing a text ---
 *
 * One value at one path is set or removed; every other byte stays: comments, blank lines, order,
 * quoting, CRLF, a missing final newline. The path is compared with the decoded keys, so "a", 'a'
 * and a are the same key. After each edit the new text is parsed and compared with the old one: it
 * differs at the path only, or the edit is refused with ERR_BUG and nothing is written.
 *
 * Refused (ERR_UNSUPPORTED, with position): a path that leads through an array or a scalar, a path
 * that names a table. A text that does not parse is refused as by toml_parse(). */
struct toml_edit {
    const char *name; /* for messages; NULL: "toml" */
    struct str text;
    const struct str *path; /* decoded keys, outermost first */
    size_t path_len;        /* at least 1 */
    bool drop_table;        /* for remove: also remove the header [a.b] that has become empty */
    bool made_table;        /* from set: a header was added. Undo with drop_table */
};

/* Appends the new text to `out`. A new value goes, by what there is: into the inline table on its
 * path, to the end of its [table], beside dotted keys of its table, or into a new [table] at the
 * end of the text. `value` is plain, not tagged; a table is written inline. Setting an equal value
 * changes nothing. Removing what was set when the path was absent gives the old bytes back (with
 * drop_table = made_table). */
int toml_edit_set(struct toml_edit *ed, const struct json *value, struct buf *out,
                  struct err *e) MUST_USE;

/* Removes the line of the value, with a comment on that line; within an inline table only the pair.
 * A path that is not there changes nothing. */
int toml_edit_remove(const struct toml_edit *ed, struct buf *out, struct err *e) MUST_USE;
