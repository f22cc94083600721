/* SPDX-License-Identifier: MIT
 *
 * Any bytes as the journal of a merge or an apply, as a baseline or as a list of files that were
 * left out: either refused, or every path stays below the root.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/apply_txn.h"
#include "workspace/baseline.h"
#include "workspace/left_out.h"
#include "workspace/merge.h"

static void check(const char *path)
{
    if (path != NULL && (path[0] == '/' || strncmp(path, "../", 3) == 0 ||
                         strstr(path, "/../") != NULL || strcmp(path, "..") == 0)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct delta d;
    struct baseline b = { 0 };
    bool in;
    delta_init(&d);
    if (merge_parse_journal(str_n(data, size), &d, &in, NULL) == 0) {
        for (size_t i = 0; i < d.len; i++) {
            check(d.items[i].path);
            check(d.items[i].from);
        }
    }
    delta_done(&d);
    if (baseline_parse(&b, str_n(data, size), NULL) == 0) {
        CLEANUP(buf) struct buf again = BUF_INIT(BUF_TEXT);
        if (baseline_write(&b, &again, NULL) < 0 || again.len != size) {
            abort();
        }
    }
    baseline_done(&b);
    struct arena *a = arena_new();
    struct apply_txn *t = ARENA_NEW(a, struct apply_txn);
    if (apply_journal_parse(a, str_n(data, size), t, NULL) == 0) {
        for (size_t i = 0; i < t->len; i++) {
            check(t->entries[i].path);
        }
    }
    struct left_out list = { 0 };
    if (left_out_parse(a, str_n(data, size), &list, NULL) == 0) {
        for (size_t i = 0; list.paths[i] != NULL; i++) {
            check(list.paths[i]);
            check(list.places[i]);
        }
    }
    (void)arena_free(a);
    return 0;
}
