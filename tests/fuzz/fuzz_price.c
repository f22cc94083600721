/* SPDX-License-Identifier: MIT
 *
 * A price table of either format is read or refused; what is read gives costs that are not
 * negative, for any name.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "gateway/price.h"
#include "gateway/price_builtin.h"
#include "llm/event.h"

static void check_costs(const struct price_entry *p, int64_t size)
{
    static const struct price_terms terms[] = { { PRICE_STANDARD, false, false },
                                                { PRICE_FLEX, true, false },
                                                { PRICE_PRIORITY, true, true } };
    struct llm_usage usage = { INT64_MAX / 3, size, -1, 7, 2 };
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        struct price_entry on = price_on(p, &terms[i]);
        if (price_cost(&on, &usage) < 0 || price_ceiling(&on, 10, 20) < 0 ||
            price_affordable(&on, 10, 1000) < 0) {
            abort();
        }
    }
}

/* The first line is the name that is searched for in the rest. */
static void search_text(struct arena *a, struct str text)
{
    struct price_entry entry;
    struct str words;
    struct str name = str_split(&text, '\n');
    if (text.ptr != NULL && price_text_find(text, name, &words) &&
        price_text_read(a, words, &entry)) {
        check_costs(&entry, (int64_t)text.len);
    }
    (void)price_text_header(text, "version");
    if (price_text_read(a, name, &entry)) {
        check_costs(&entry, (int64_t)name.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct str text = str_n(data, size);
    struct price_table *t;
    struct err e;
    search_text(a, text);
    if (price_parse(a, text, "fuzz", &t, &e) < 0) {
        return 0;
    }
    for (size_t i = 0; i < t->len; i++) {
        check_costs(&t->entries[i], (int64_t)size);
    }
    struct price_match match;
    struct price_table *builtin;
    (void)price_find(t, str_slice(text, 0, 100), &match);
    if (price_load(a, NULL, &builtin, &e) == 0) {
        (void)price_find(builtin, str_slice(text, 0, 100), &match);
    }
    return 0;
}
