/* SPDX-License-Identifier: MIT
 *
 * A foreign cassette: the bytes as they are, and once more packed, so that the fuzzer reaches what
 * is behind zstd. Every exchange of a file that opens is unpacked, and asked for in a replay.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "replay/cassette.h"
#include "replay/cassette_upstream.h"
#include "replay/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void read_all(const struct cassette *c)
{
    for (size_t i = 0; i < cassette_len(c) && i < 20; i++) {
        CLEANUP(playback) struct playback *p = playback_new();
        struct cassette_exchange x;
        struct err e = { 0 };
        if (cassette_exchange(c, i, p->arena, &x, &e) == 0) {
            cassette_playback(&x, 1, p);
            must(p->n_frames == x.n_frames);
            for (size_t k = 0; k < p->n_frames; k++) {
                must(p->frames[k].wait >= 0);
            }
        } else {
            must(e.code == ERR_PARSE || e.code == ERR_LIMIT);
        }
    }
}

static void try_bytes(struct str bytes)
{
    CLEANUP(cassette) struct cassette *c = NULL;
    CLEANUP(cassette_replay) struct cassette_replay *p = NULL;
    CLEANUP(arena) struct arena *a = NULL;
    struct err e = { 0 };
    if (cassette_parse(bytes, "in", &c, &e) < 0) {
        must(e.code == ERR_PARSE || e.code == ERR_LIMIT || e.code == ERR_UNSUPPORTED);
        return;
    }
    read_all(c);
    struct cassette_request r = { .method = STR("POST"),
                                  .target = STR("/v1/messages"),
                                  .body = STR("{\"a\":[1,2]}") };
    struct cassette_exchange x;
    if (cassette_replay_new(TAKE_PTR(c), NULL, NULL, &p, &e) == 0 &&
        cassette_replay_find(p, &r, &a, &x, &e) == 0) {
        must(str_eqc(x.method, "POST"));
    }
}

/* Each paragraph is a frame. */
static void pack_text(struct str text, struct buf *out)
{
    CLEANUP(packer) struct packer *k = packer_new();
    while (text.ptr != NULL && text.len > 0) {
        size_t at = str_find(text, STR("\n\n"));
        struct str part = str_slice(text, 0, at + 1);
        text = str_slice(text, at + 2, text.len);
        must(packer_add(k, part, out, NULL) == 0 && packer_end(k, out, NULL) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf) struct buf packed = BUF_INIT(BUF_TEXT);
    struct str input = str_n(data, size);
    if (size > 64 << 10) {
        return 0;
    }
    try_bytes(input);
    pack_text(input, &packed);
    try_bytes(buf_str(&packed));
    return 0;
}
