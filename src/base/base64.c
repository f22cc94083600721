/* SPDX-License-Identifier: MIT
 *
 * Base64; see base64.h. Reading is strict: each text stands for one sequence of bytes only.
 */
#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_write(struct str bytes, struct buf *out, struct err *e)
{
    char *to = NULL;
    size_t n = (bytes.len + 2) / 3 * 4;
    int r = buf_reserve(out, n, &to, e);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        const unsigned char *p = (const unsigned char *)bytes.ptr + i;
        unsigned b1 = left > 1 ? p[1] : 0;
        unsigned b2 = left > 2 ? p[2] : 0;
        *to++ = digits[p[0] >> 2];
        *to++ = digits[(p[0] & 3) << 4 | b1 >> 4];
        *to++ = left > 1 ? digits[(b1 & 15) << 2 | b2 >> 6] : '=';
        *to++ = left > 2 ? digits[b2 & 63] : '=';
    }
    buf_commit(out, n);
    return 0;
}

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_read(struct str text, struct buf *out, struct err *e)
{
    char *to = NULL;
    size_t pad = str_ends(text, STR("==")) ? 2 : str_ends(text, STR("=")) ? 1 : 0;
    size_t n = text.len / 4 * 3;
    if (text.len % 4 != 0 || text.len < pad) {
        return ERR(e, ERR_PARSE, "base64 of %zu characters: not a multiple of four", text.len);
    }
    int r = buf_reserve(out, n, &to, e);
    if (r < 0) {
        return r;
    }
    unsigned bits = 0;
    for (size_t i = 0; i < text.len - pad; i++) {
        int d = digit(text.ptr[i]);
        if (d < 0) {
            return ERR(e, ERR_PARSE, "base64: bad character at %zu", i);
        }
        bits = bits << 6 | (unsigned)d;
        if (i % 4 != 0) {
            *to++ = (char)(bits >> (6 - i % 4 * 2));
        }
    }
    if (pad > 0 && (bits & (pad == 2 ? 15u : 3u)) != 0) {
        return ERR(e, ERR_PARSE, "base64: stray bits at the end");
    }
    buf_commit(out, n - pad);
    return 0;
}
