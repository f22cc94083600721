/* SPDX-License-Identifier: MIT
 *
 * A file of expected failures is read or refused; of what is read, every entry is whole.
 */
#include <stdint.h>
#include <stdlib.h>

#include "ack/expected.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct expected x;
    struct err e;
    if (expected_parse(a, str_n(data, size), "fuzz", &x, &e) < 0) {
        return 0;
    }
    bool flaky = true;
    for (size_t i = 0; i < x.len; i++) {
        const struct expected_entry *it = &x.items[i];
        if (it->adapter[0] == '\0' || it->scenario[0] == '\0' || it->reason[0] == '\0' ||
            (it->flaky && !flaky)) {
            abort();
        }
        flaky = it->flaky;
        const struct expected_entry *hit = expected_find(&x, "codex", it->scenario);
        if (hit != NULL && !expected_matches(hit, "codex", it->scenario)) {
            abort();
        }
    }
    return 0;
}
