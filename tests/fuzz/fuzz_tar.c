/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a tar stream, fed in pieces whose size the first byte decides. The pieces must not
 * matter: content has the announced size, and names end where they say.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "data/tar.h"

enum { TOTAL = 1 << 20, ENTRIES = 64 };

struct watch {
    uint64_t left, total;
    size_t entries;
    bool open;
};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int on_entry(void *ctx, const struct tar_entry *entry, struct err *e)
{
    struct watch *w = ctx;
    (void)e;
    must(!w->open);
    must(strlen(entry->name.ptr) == entry->name.len);
    must(entry->kind == TAR_FILE || entry->size == 0);
    must(entry->target.len == 0 || strlen(entry->target.ptr) == entry->target.len);
    must((entry->mode & ~0777U) == 0);
    must(++w->entries <= ENTRIES);
    w->left = entry->size;
    w->total += entry->size;
    w->open = entry->kind == TAR_FILE;
    must(w->total <= TOTAL);
    return 0;
}

static int on_data(void *ctx, struct str bytes, struct err *e)
{
    struct watch *w = ctx;
    (void)e;
    must(w->open && bytes.len > 0 && bytes.len <= w->left);
    w->left -= bytes.len;
    return 0;
}

static int on_done(void *ctx, struct err *e)
{
    struct watch *w = ctx;
    (void)e;
    must(w->open && w->left == 0);
    w->open = false;
    return 0;
}

static int read_in_pieces(struct str bytes, size_t piece, size_t *ret_entries)
{
    struct watch w = { 0 };
    const struct tar_port port = { on_entry, on_data, on_done, &w };
    struct tar_reader *t =
        tar_reader_new(&port, &(struct tar_limits) { .max_entries = ENTRIES, .max_total = TOTAL });
    struct err e = { 0 };
    int r = 0;
    while (r == 0 && bytes.len > 0) {
        struct str part = str_slice(bytes, 0, piece);
        r = tar_reader_feed(t, part, &e);
        bytes = str_slice(bytes, part.len, bytes.len);
    }
    r = r < 0 ? r : tar_reader_end(t, &e);
    must(r == 0 || e.code == ERR_PARSE || e.code == ERR_LIMIT);
    must(r < 0 || !w.open);
    (void)tar_reader_free(t);
    *ret_entries = w.entries;
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct str bytes = str_n(data + 1, size - 1);
    size_t one;
    size_t many;
    int whole = read_in_pieces(bytes, SIZE_MAX, &one);
    int parts = read_in_pieces(bytes, (size_t)data[0] + 1, &many);
    must(whole == parts && one == many);
    return 0;
}
