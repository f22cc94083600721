/* SPDX-License-Identifier: MIT
 *
 * Whatever a tool answers as `state`: it is refused as a whole before anything has happened, or its
 * changes are in the transaction; an abort leaves the session as it was.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "record/state_store.h"
#include "tools/tool_state.h"

static void must(int r)
{
    if (r < 0) {
        abort();
    }
}

static size_t items(const struct state_store *s)
{
    return store_len(s, NULL, STR("plan")) + store_len(s, NULL, STR("steps"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *state;
    struct arena *a = arena_new();
    struct json_limits limits = { .max_bytes = 1 << 16, .max_depth = 64 };
    struct state_store *s = store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
    struct store_rule rule = { STR("StepDone"), STR("steps"), REDUCE_UPSERT_BY, STR("/id") };
    must(store_reduce(s, &rule, NULL));
    must(store_dispatch(s, STR("plan"), json_integer(a, 1), NULL));
    if (json_parse(a, str_n(data, size), &limits, &state, NULL) == 0) {
        struct store_txn *t = store_begin(s);
        bool good = tool_state_check(state, NULL) == 0;
        bool done = tool_state_apply(t, state, NULL) == 0;
        bool changed = store_len(s, t, STR("plan")) != 1 || store_len(s, t, STR("steps")) != 0;
        if ((done && !good) || (changed && !good) || store_len(s, t, STR("ToolInvoked")) != 0) {
            abort();
        }
        must(store_abort(t, NULL));
        if (items(s) != 1) {
            abort();
        }
    }
    store_free(s);
    arena_free(a);
    return 0;
}
