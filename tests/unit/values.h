/* SPDX-License-Identifier: MIT
 *
 * Tests on values: an arena that lives for one test, and trees written as YAML.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/yaml.h"

static struct arena *arena;

static inline int arena_setup(void **state)
{
    arena = arena_new();
    return 0;
}

static inline int arena_teardown(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static inline struct json *tree(const char *text)
{
    struct json *t = NULL;
    struct err e;
    if (yaml_parse(arena, str_of(text), "test", NULL, &t, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return t;
}
