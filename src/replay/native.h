/* SPDX-License-Identifier: MIT
 *
 * src/replay/native.yaml as text, made into C by scripts/embed.py at build time: what the names
 * native.write_file, native.shell … of a script mean in the harnesses we know.
 */
#pragma once

#include <stddef.h>

struct native_table {
    const char *file;
    const char *text;
    size_t len;
};

extern const struct native_table native_tables[];
extern const size_t native_tables_len;
