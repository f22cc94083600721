/* SPDX-License-Identifier: MIT
 *
 * struct shape: which keys a configuration object may have, and of what kind. One const table per
 * file format; the check gives the messages that a person who mistyped a key needs.
 *
 *   static const struct shape limits[] = { { "timeout", SHAPE_DURATION }, { 0 } };
 *   static const struct shape task[] = {
 *       { "name", SHAPE_STRING },
 *       { "limits", SHAPE_OBJECT, .inner = limits },
 *       { "exit_profile", SHAPE_WORD, .words = "native|holon|scylla" },
 *       { 0 } };
 *   shape_check(tree, task, "task.yaml", e)
 *     -> "task.yaml:3:1: unknown key 'limts' (did you mean 'limits'?)"
 *     -> "task.yaml:4:12: 'limits.timeout' must be a duration such as 600, 90s or 10m, not a list"
 *     -> "task.yaml:9:5: unknown key 'tools[1].comand' (did you mean 'command'?)"
 *     -> "task.yaml:9:5: tools[1] needs a 'name'"
 *
 * null is allowed for every key: in a configuration layer it removes the value below.
 */
#pragma once

#include "base/json.h"

enum shape_kind {
    SHAPE_END, /* ends a table, so that { 0 } does */
    SHAPE_STRING,
    SHAPE_WORD, /* one of `words` */
    SHAPE_BOOL,
    SHAPE_INT,      /* not negative */
    SHAPE_DURATION, /* number of seconds, or text such as "10m"; not negative */
    SHAPE_NUMBER,   /* whole or not, of any sign */
    SHAPE_SIZE,     /* bytes as a whole number, or text such as "512M" */
    SHAPE_STRINGS,  /* list of strings */
    SHAPE_PATH,     /* string that names a file or directory */
    SHAPE_PATHS,    /* list of such strings */
    SHAPE_COMMAND,  /* list of strings: a program and its arguments */
    SHAPE_TEXTS,    /* a string, or a list of strings */
    SHAPE_CHOICE,   /* one of `words`, or a list of strings */
    SHAPE_SOURCE,   /* an object, or a string that names a file with one */
    SHAPE_MAP,      /* object whose values are strings, numbers or booleans */
    SHAPE_ANY,
    SHAPE_ANY_OBJECT,
    SHAPE_OBJECT, /* object checked against `inner` */
    SHAPE_LIST,   /* list of objects, each checked against `inner`; NULL: of any objects */
    SHAPE_KIND_MAX
};

struct shape {
    const char *key;
    enum shape_kind kind;
    const struct shape *inner;
    const char *words; /* "a|b|c" */
    double min, max;   /* bounds of a number, both included; no bounds if both are 0 */
    bool required;     /* the object must have it, neither null nor an empty string */

    /* Not checked here; for shape_schema(). */
    const char *shorthand; /* members that a plain value stands for: "path", "text|sections" */
    const char *pattern;   /* of a string */
    int max_len;           /* of a string */
    const char *help;      /* lower case, no full stop */
};

/* ERR_CONFIG, with the position when it is known. `file` names the input in messages. */
int shape_check(const struct json *v, const struct shape *table, const char *file,
                struct err *e) MUST_USE;

/* The entry of a key, or NULL; also when `table` is NULL. */
const struct shape *shape_find(const struct shape *table, struct str key);

/* Does the entry have bounds of its own? */
bool shape_bounded(const struct shape *s);

/* Bytes of a value that passed SHAPE_SIZE; `otherwise` when absent or null. */
int64_t shape_size(const struct json *v, int64_t otherwise);

/* Nanoseconds of a value that passed SHAPE_DURATION; `otherwise` when absent or null. */
int64_t shape_duration(const struct json *v, int64_t otherwise);
