/* SPDX-License-Identifier: MIT
 *
 * HTTP messages come out the same whatever the chunks were, within the bounds. The first byte
 * chooses the size of the chunks and the kind of message. What is accepted as a request is written
 * again and must read back as the same head.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/http.h"

static void print_head(const struct http_head *h, struct buf *out)
{
    if (h->fields.len > HTTP_FIELDS_MAX || (h->chunked && h->length >= 0)) {
        abort();
    }
    buf_addf(out, "<%.*s %.*s %d %d %lld", STR_ARG(h->method), STR_ARG(h->target), h->status,
             h->minor, (long long)h->length);
    for (size_t i = 0; i < h->fields.len; i++) {
        buf_addf(out, "|%.*s=%.*s", STR_ARG(h->fields.items[i].name),
                 STR_ARG(h->fields.items[i].value));
    }
    buf_adds(out, ">");
}

static void write_again(const struct http_head *h)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct err e;
    if (h->minor == 0 || h->status != 0) {
        return;
    }
    if (http_write_request(h->method, h->target, &text, &e) < 0) {
        abort();
    }
    for (size_t i = 0; i < h->fields.len; i++) {
        if (http_write_field(h->fields.items[i].name, h->fields.items[i].value, &text, &e) < 0) {
            abort();
        }
    }
    buf_adds(&text, "\r\n");
    CLEANUP(buf) struct buf before = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf after = BUF_INIT(BUF_TEXT);
    struct http *again = http_new(HTTP_REQUESTS);
    struct str in = buf_str(&text), body;
    int r = http_next(again, &in, &body, &e);
    print_head(h, &before);
    if (r == HTTP_EV_HEAD) {
        print_head(http_head(again), &after);
    }
    /* Padding that the fields had may have made the difference to a head that is just too large. */
    bool same = str_eq(buf_str(&before), buf_str(&after));
    if (!same && text.len < HTTP_HEAD_MAX) {
        abort();
    }
    http_free(again);
}

static void parse(enum http_kind kind, struct str text, size_t step, struct buf *out)
{
    struct http *h = http_new(kind);
    struct err e;
    int r = 0;
    for (size_t i = 0; i < text.len && r >= 0; i += step) {
        struct str in = str_slice(text, i, i + step), body;
        while ((r = http_next(h, &in, &body, &e)) > HTTP_EV_MORE) {
            if (r == HTTP_EV_HEAD) {
                print_head(http_head(h), out);
                write_again(http_head(h));
            } else if (r == HTTP_EV_BODY) {
                buf_add(out, body);
            } else {
                buf_adds(out, "$");
            }
        }
    }
    buf_addf(out, "%d", r < 0 ? r : http_end(h, &e));
    http_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct str text = str_n(data + 1, size - 1);
    enum http_kind kind = data[0] >= 128 ? HTTP_RESPONSES : HTTP_REQUESTS;
    CLEANUP(buf) struct buf whole = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf pieces = BUF_INIT(BUF_TEXT);
    parse(kind, text, text.len + 1, &whole);
    parse(kind, text, (size_t)data[0] % 64 + 1, &pieces);
    if (!str_eq(buf_str(&whole), buf_str(&pieces))) {
        abort();
    }
    return 0;
}
