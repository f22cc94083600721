/* SPDX-License-Identifier: MIT
 *
 * A journal, or (first byte 'd') a snapshot of a session. What was read is saved and read again: it
 * must be the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "record/state_store.h"

static void goes_round(struct arena *a, const struct state_store *s)
{
    struct json *saved = store_save(s, a, STR("2026-01-01T00:00:00Z"), true);
    struct state_store *again =
        store_new(&(struct store_opts) { .id = STR("i"), .journal_fd = -1 });
    const struct json *policies = json_get(saved, "policies");
    for (size_t i = 0; i < policies->object.len; i++) {
        const struct json_member *m = &policies->object.members[i];
        enum slice_policy policy = str_eqc(m->value->string, "log") ? SLICE_LOG : SLICE_STATE;
        if (store_declare(again, m->key, policy, NULL) < 0) {
            abort();
        }
    }
    if (store_load(again, saved, NULL) < 0 ||
        !json_equal(saved, store_save(again, a, STR("2026-01-01T00:00:00Z"), true))) {
        abort();
    }
    (void)store_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct arena *a = arena_new();
    struct str text = str_n(data + 1, size - 1);
    struct state_store *s = store_new(&(struct store_opts) { .id = STR("i"), .journal_fd = -1 });
    struct json *saved;
    struct err e;
    if (data[0] != 'd') {
        (void)!store_replay(s, text, &e);
    } else if (json_parse(a, text, NULL, &saved, &e) == 0) {
        (void)!store_declare(s, STR("x"), SLICE_STATE, NULL);
        (void)!store_declare(s, STR("log"), SLICE_LOG, NULL);
        (void)!store_load(s, saved, &e);
    }
    goes_round(a, s);
    (void)store_free(s);
    (void)arena_free(a);
    return 0;
}
