/* SPDX-License-Identifier: MIT
 *
 * The meta-schemas in src/data/meta, as texts that the build puts into the program
 * (scripts/embed.py). They are those of json-schema.org, published under the BSD licence. Private
 * to data.
 */
#pragma once

#include <stddef.h>

struct schema_meta {
    const char *name; /* of the file */
    const char *text;
    size_t len;
};

extern const struct schema_meta schema_metas[];
extern const size_t schema_metas_len;
