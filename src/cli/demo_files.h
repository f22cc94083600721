/* SPDX-License-Identifier: MIT
 *
 * The files of examples/fix as text, made into C by scripts/embed.py at build time.
 */
#pragma once

#include <stddef.h>

struct demo_file {
    const char *file; /* "task.yaml" */
    const char *text;
    size_t len;
};

extern const struct demo_file demo_files[];
extern const size_t demo_files_len;
