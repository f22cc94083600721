/* SPDX-License-Identifier: MIT
 *
 * Files of logins: whatever stands in them, reading ends, times are positive, and what is told as a
 * secret is long enough to be recognised.
 */
#include <stdint.h>
#include <stdlib.h>

#include "config/login.h"
#include "record/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct arena *arena;
    size_t secrets;
};

static void add(void *arg, struct str value)
{
    struct seen *s = arg;
    int64_t when = 1;
    s->secrets++;
    if (value.len < REDACT_VALUE_MIN ||
        (login_expires(s->arena, json_string(s->arena, value), &when) && when <= 0)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct seen s = { .arena = a };
    int64_t when = 1;
    struct str text = str_n(data, size);
    struct json *tree = login_read(a, text);
    if (tree != NULL) {
        if (!json_is(tree, JSON_OBJECT)) {
            abort();
        }
        login_secrets(tree, add, &s);
    }
    if (login_expires(a, json_string(a, text), &when) && when <= 0) {
        abort();
    }
    return 0;
}
