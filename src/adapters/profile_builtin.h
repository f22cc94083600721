/* SPDX-License-Identifier: MIT
 *
 * The profiles of adapters/ as text, made into C by scripts/embed.py at build time.
 */
#pragma once

#include <stddef.h>

struct builtin_profile {
    const char *file; /* "command.yaml" */
    const char *text;
    size_t len;
};

extern const struct builtin_profile builtin_profiles[];
extern const size_t builtin_profiles_len;
