/* SPDX-License-Identifier: MIT
 *
 * What the session costs at a size, in nanoseconds an operation, as JSON: for bench/bridge.
 *
 *   bridge_bench ITEMS...
 *
 * append: an event into a slice of that many items; snapshot: taking a moment; both: the two in
 * turn, so that each append follows a snapshot; call: what a tool call does, begin, append and
 * commit; undo: the same, aborted; restore: back to a moment.
 */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "record/state_store.h"

enum { OPERATIONS = 2000, ROUNDS = 7 };

static struct json *item;

static void must(int r)
{
    if (r < 0) {
        abort();
    }
}

static void append(struct state_store *s)
{
    must(store_dispatch(s, STR("plan"), item, NULL));
}

static void snapshot(struct state_store *s)
{
    struct store_moment m = store_snapshot(s);
    if (m.table == NULL) {
        abort();
    }
}

static void both(struct state_store *s)
{
    snapshot(s);
    append(s);
}

static void call(struct state_store *s)
{
    struct store_txn *t = store_begin(s);
    must(store_txn_dispatch(t, STR("plan"), item, NULL));
    must(store_commit(t, NULL));
}

static void undo(struct state_store *s)
{
    struct store_txn *t = store_begin(s);
    must(store_txn_dispatch(t, STR("plan"), item, NULL));
    must(store_abort(t, NULL));
}

static void restore(struct state_store *s)
{
    must(store_restore(s, store_snapshot(s), true, NULL));
}

static double measure(size_t items, void (*operation)(struct state_store *s))
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct state_store *s =
            store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
        for (size_t i = 0; i < items; i++) {
            append(s);
        }
        nsec start = clock_now();
        for (int i = 0; i < OPERATIONS; i++) {
            operation(s);
        }
        double each = (double)(clock_now() - start) / OPERATIONS;
        best = round == 0 || each < best ? each : best;
        s = store_free(s);
    }
    return best;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*operation)(struct state_store *s);
    } all[] = { { "append", append }, { "snapshot", snapshot }, { "both", both },
                { "call", call },     { "undo", undo },         { "restore", restore } };
    /* Memory that was used once stays: first touches of pages would be measured otherwise, and only
     * at the larger sizes. */
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    struct arena *a = arena_new();
    item = json_object(a);
    json_setc(a, item, "id", json_integer(a, 7));
    json_setc(a, item, "text", json_cstr(a, "look at the tests that fail, one after the other"));
    (void)printf("{");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)printf("%s\"%s\":[", i == 0 ? "" : ",", all[i].name);
        for (int k = 1; k < argc; k++) {
            (void)printf("%s%.1f", k == 1 ? "" : ",",
                         measure(strtoul(argv[k], NULL, 10), all[i].operation));
        }
        (void)printf("]");
    }
    (void)printf("}\n");
    arena_free(a);
    return 0;
}
