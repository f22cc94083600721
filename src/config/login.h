/* SPDX-License-Identifier: MIT
 *
 * What stands in the file of a login: a harness' credentials as JSON, or as lines NAME=value. Pure:
 * where the file is and what is done with it says auth.c.
 *
 *   struct json *tree = login_read(arena, text);                 NULL: it is neither
 *   json_pointer(tree, STR("/claudeAiOauth/accessToken"))
 *   login_expires(arena, json_pointer(tree, …), &seconds)        a time, or a token that says one
 *   login_renews(arena, before, after)                           it may replace the user's
 *   login_secrets(tree, add, arg)                                what no record may show
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

/* Larger files are none. */
#define LOGIN_MAX ((size_t)256 << 10)

/* An object; of lines the members are the variables. */
struct json *login_read(struct arena *a, struct str text);

/* Seconds since 1970: a number of seconds or milliseconds, or the claim `exp` of a JSON Web Token.
 * False: it says nothing about that. */
bool login_expires(struct arena *a, const struct json *v, int64_t *ret);

/* Is the second text the login of the first with other values: JSON, without members that the first
 * lacks? Lines NAME=value are none: no harness renews a key, and any variable could be added. */
bool login_renews(struct arena *a, struct str before, struct str after);

/* Every text that is a credential by its name or its look. */
void login_secrets(const struct json *tree, void (*add)(void *arg, struct str value), void *arg);
