/* SPDX-License-Identifier: MIT
 *
 * The redactor against the plain reference: up to four secrets and a text, cut at arbitrary places.
 *
 * Input: byte 0 = number of secrets (low 2 bits, plus 1) and which alphabet is used: a small one
 * (bit 2, which makes overlaps likely) or one with escapes and line breaks (bit 3); then per secret
 * one length byte and its bytes; then one byte that drives the cuts; the rest is the text.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/record/redact_reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append(void *ctx, struct str piece)
{
    buf_add(ctx, piece);
}

static uint8_t take_byte(struct str *in)
{
    if (in->len == 0) {
        return 0;
    }
    uint8_t b = (uint8_t)in->ptr[0];
    *in = str_slice(*in, 1, in->len);
    return b;
}

static struct redactor *take_secrets(struct str *in, size_t count)
{
    struct redactor *r = redactor_new();
    for (size_t i = 0; i < count; i++) {
        size_t len = 4 + take_byte(in) % 20;
        if (redactor_add(r, STR("N"), str_slice(*in, 0, len), NULL) < 0) {
            continue; /* too short once trimmed */
        }
        *in = str_slice(*in, len, in->len);
    }
    redactor_compile(r);
    return r;
}

/* A mask made of characters that secrets use can only happen when they use all of them. */
static bool masks_are_safe(const struct redactor *r)
{
    for (size_t i = 0; i < r->secret_count; i++) {
        for (size_t k = 0; k < r->pattern_count && r->secrets[i].mask[0] != '['; k++) {
            if (memchr(r->patterns[k].bytes, r->secrets[i].mask[0], r->patterns[k].len) != NULL) {
                return false;
            }
        }
    }
    return true;
}

static void compare(const struct redactor *r, struct str text, uint32_t cuts)
{
    CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    redact_reference(r, text, &expected);
    struct redact_stream s;
    redact_stream_init(&s, r, append, &out);
    for (size_t at = 0; at < text.len;) {
        cuts = cuts * 1664525u + 1013904223u;
        size_t len = cuts >> 24 & (cuts & 0x100 ? 7 : 63);
        redact_stream_feed(&s, str_slice(text, at, at + len));
        at += len;
    }
    redact_stream_flush(&s);
    redact_stream_done(&s);
    if (!str_eq(buf_str(&out), buf_str(&expected)) ||
        (masks_are_safe(r) && redact_leaks(r, buf_str(&out)))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8 || size > 4096) {
        return 0;
    }
    CLEANUP(buf) struct buf input = BUF_INIT(BUF_TEXT);
    buf_add(&input, str_n(data, size));
    uint8_t mode = data[0];
    for (size_t i = 1; i < input.len && mode & 4; i++) {
        input.ptr[i] = "ab[:"[data[i] & 3];
    }
    for (size_t i = 1; i < input.len && mode & 8; i++) {
        input.ptr[i] = "ab6%\\\n+u0"[data[i] % 9];
    }
    struct str rest = str_slice(buf_str(&input), 1, input.len);
    CLEANUP(redactor) struct redactor *r = take_secrets(&rest, (mode & 3u) + 1);
    uint8_t cuts = take_byte(&rest);
    compare(r, rest, cuts);
    return 0;
}
