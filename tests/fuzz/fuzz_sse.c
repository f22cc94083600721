/* SPDX-License-Identifier: MIT
 *
 * Events come out the same whatever the chunks were, none is larger than allowed, and what is
 * written reads back. The first byte chooses the size of the chunks.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/sse.h"

enum { EVENT_MAX_BYTES = 48 };

static void check_again(const struct sse_event *ev)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct sse s;
    struct sse_event back;
    if (sse_write(ev->name, ev->data, &text, NULL) < 0) {
        abort();
    }
    sse_init(&s, 4096);
    sse_feed(&s, buf_str(&text));
    if (sse_next(&s, &back, NULL) != 1 || !str_eq(back.data, ev->data) ||
        !str_eq(back.name, ev->name)) {
        abort();
    }
    sse_done(&s);
}

static void take(const struct sse_event *ev, struct buf *out)
{
    if (ev->data.len > EVENT_MAX_BYTES || ev->name.len > EVENT_MAX_BYTES) {
        abort();
    }
    buf_add(out, ev->name);
    buf_adds(out, "|");
    buf_add(out, ev->data);
    buf_addf(out, "|%.*s|%lld>", STR_ARG(ev->id), (long long)ev->retry);
    check_again(ev);
}

static void split(struct str text, size_t step, struct buf *out)
{
    struct sse s;
    struct sse_event ev;
    int r = 0;
    sse_init(&s, EVENT_MAX_BYTES);
    for (size_t i = 0; i < text.len && r >= 0; i += step) {
        sse_feed(&s, str_slice(text, i, i + step));
        while ((r = sse_next(&s, &ev, NULL)) > 0) {
            take(&ev, out);
        }
    }
    if (sse_end(&s, &ev)) {
        take(&ev, out);
    }
    buf_addf(out, "%d", r);
    sse_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct str text = str_n(data + 1, size - 1);
    CLEANUP(buf) struct buf whole = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf pieces = BUF_INIT(BUF_TEXT);
    split(text, text.len + 1, &whole);
    split(text, (size_t)data[0] % 60 + 1, &pieces);
    if (!str_eq(buf_str(&whole), buf_str(&pieces))) {
        abort();
    }
    return 0;
}
