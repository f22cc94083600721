/* SPDX-License-Identifier: MIT
 *
 * The scenarios of ack/ as text, made into C by scripts/embed.py at build time.
 */
#pragma once

#include <stddef.h>

struct builtin_scenarios {
    const char *file; /* "base.yaml" */
    const char *text;
    size_t len;
};

extern const struct builtin_scenarios builtin_scenarios[];
extern const size_t builtin_scenarios_len;
