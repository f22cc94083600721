/* SPDX-License-Identifier: MIT
 *
 * struct secrets: the values that must never reach a file, an event, an argument or the terminal.
 *
 * Collected before anything is started: variables named by the task (--secret NAME), key
 * dictionaries, files given as secrets, every variable of the caller or the task whose name looks
 * like a key, and every variable of the task whose value looks like the token of a provider.
 */
#pragma once

#include <stdbool.h>

#include "config/settings.h"

struct secret {
    const char *name; /* shown in place of the value */
    struct str value;
    bool to_child; /* given to the child as variable `name` */
    bool named;    /* somebody said that it is one; not guessed from the name of a variable */
};

struct secrets {
    struct secret *items;
    size_t len, cap;
};

/* ERR_SECRET (77) when a named variable or file is missing or empty; all the others are in the list
 * even then, so that the record of the failure is clean. `caller` is the caller's environment. */
int secrets_collect(struct arena *a, const struct settings *s, const char *const *caller,
                    struct secrets *ret, struct err *e) MUST_USE;

/* One more, which does not go to the child. */
void secrets_add(struct arena *a, struct secrets *list, const char *name, struct str value);

/* One more, which does. */
void secrets_give(struct arena *a, struct secrets *list, const char *name, struct str value);

/* OPENAI_API_KEY, GH_TOKEN, DB_PASSWORD … but not KEYBOARD or TOKENIZERS_PARALLELISM. */
bool secret_like_name(struct str name);
