/* SPDX-License-Identifier: MIT
 *
 * A price table is read or refused; what is read gives costs that are not negative, for any name.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "gateway/price.h"
#include "llm/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct str text = str_n(data, size);
    struct price_table *t;
    struct err e;
    if (price_parse(a, text, "fuzz", &t, &e) < 0) {
        return 0;
    }
    struct llm_usage usage = { INT64_MAX / 3, (int64_t)size, -1, 7, 2 };
    for (size_t i = 0; i < t->len; i++) {
        int64_t cost = price_cost(&t->entries[i], &usage);
        if (cost < 0 || price_ceiling(&t->entries[i], 10, 20) < 0 ||
            price_affordable(&t->entries[i], 10, 1000) < 0) {
            abort();
        }
    }
    struct price_match match;
    (void)price_find(t, str_slice(text, 0, 100), &match);
    return 0;
}
