/* SPDX-License-Identifier: MIT
 *
 * The one file that knows libmd.
 */
#include "base/sha256.h"

#include <sha2.h>
#include <stdlib.h>

#include "base/arena.h"

struct sha256 {
    SHA2_CTX ctx;
};

struct sha256 *sha256_new(void)
{
    struct sha256 *s = xcalloc(1, sizeof *s);
    SHA256Init(&s->ctx);
    return s;
}

void sha256_add(struct sha256 *s, struct str data)
{
    if (data.len > 0) {
        SHA256Update(&s->ctx, (const uint8_t *)data.ptr, data.len);
    }
}

static void finish(SHA2_CTX *ctx, char out[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Final(digest, ctx);
    for (size_t i = 0; i < sizeof digest; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[SHA256_HEX - 1] = '\0';
}

struct sha256 *sha256_end(struct sha256 *s, char out[SHA256_HEX])
{
    if (s != NULL && out != NULL) {
        finish(&s->ctx, out);
    }
    free(s);
    return NULL;
}

void sha256_hex(struct str data, char out[SHA256_HEX])
{
    SHA2_CTX ctx;
    SHA256Init(&ctx);
    if (data.len > 0) {
        SHA256Update(&ctx, (const uint8_t *)data.ptr, data.len);
    }
    finish(&ctx, out);
}

bool sha256_is_hex(struct str s)
{
    if (s.len != SHA256_HEX - 1) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        bool digit = s.ptr[i] >= '0' && s.ptr[i] <= '9';
        if (!digit && (s.ptr[i] < 'a' || s.ptr[i] > 'f')) {
            return false;
        }
    }
    return true;
}
