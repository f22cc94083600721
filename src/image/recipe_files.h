/* SPDX-License-Identifier: MIT
 *
 * images/install.sh and images/layers.txt as text, made into C by scripts/embed.py at build time.
 */
#pragma once

#include <stddef.h>

struct recipe_file {
    const char *file;
    const char *text;
    size_t len;
};

extern const struct recipe_file recipe_files[];
extern const size_t recipe_files_len;
