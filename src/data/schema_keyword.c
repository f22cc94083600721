/* SPDX-License-Identifier: MIT
 *
 * The keywords of all drafts as a table.
 */
#include "data/schema_keyword.h"

const struct schema_keyword_row schema_keywords[KW_COUNT] = {
#define X(id, name, first, vocabulary, want) \
    { name, sizeof name - 1, SCHEMA_DRAFT_##first, VOCAB_##vocabulary, WANT_##want },
    SCHEMA_KEYWORDS(X)
#undef X
};

enum schema_keyword schema_keyword_find(const struct schema_dialect *d, struct str name)
{
    for (int i = 0; i < KW_COUNT; i++) {
        const struct schema_keyword_row *row = &schema_keywords[i];
        if (name.len == row->len && memcmp(name.ptr, row->name, row->len) == 0) {
            bool known = d->draft >= row->first && (d->vocabularies & row->vocabulary) != 0;
            return known ? (enum schema_keyword)i : KW_NONE;
        }
    }
    return KW_NONE;
}
