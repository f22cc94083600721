/* SPDX-License-Identifier: MIT
 *
 * Placeholders in arguments and environment values: {model}, {prompt_file}, … and, for lists,
 * {command...} and {args...}, which stand alone and become as many arguments as the list has.
 * {model|gpt-5} is gpt-5 where there is no model.
 *
 * Text of a profile is strict: an unknown {name} is an error. Text of a request (the user's own
 * command) is lenient: what is not a known placeholder stays as it is, so that '{"a": 1}' survives.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct profile;

struct placeholder {
    const char *name;
    struct str value;        /* ptr NULL: has no value; a `when` with it is not met */
    const struct json *list; /* for {name...} */
};

struct placeholders {
    const struct placeholder *items;
    size_t len;
};

const struct placeholder *placeholder_find(const struct placeholders *vars, struct str name);
bool placeholder_has_value(const struct placeholder *p);

int expand_text(struct arena *a, struct str text, const struct placeholders *vars, bool strict,
                struct str *ret, struct err *e) MUST_USE;

/* A copy of a tree of a profile with the placeholders in all its strings filled in. Strict, but for
 * keys, where an unknown {name} stays as it is. */
int expand_tree(struct arena *a, const struct json *tree, const struct placeholders *vars,
                struct json **ret, struct err *e) MUST_USE;

/* `*tree` with a tree of a profile, filled in, merged over it; `over` NULL: stays as it is. */
int expand_over(struct arena *a, const struct json *over, const struct placeholders *vars,
                struct json **tree, struct err *e) MUST_USE;

/* Variables of a profile (names to values, NULL: none), filled in, added to `env`; one that comes
 * to nothing because its placeholder has no value is left out. Strict. */
int expand_env(struct arena *a, const struct json *vars_of_profile, const struct placeholders *vars,
               struct json *env, struct err *e) MUST_USE;

/* Do the profile's arguments mention a placeholder that begins so ("{resume", "{output_schema")? */
bool expand_uses(const struct profile *p, const char *placeholder);

/* The argument vector of a profile, NULL-terminated, in the arena. ERR_CONFIG when it would be
 * empty, an argument holds a NUL, or there are too many. */
int expand_argv(struct arena *a, const struct profile *p, const struct placeholders *vars,
                char ***ret, struct err *e) MUST_USE;
