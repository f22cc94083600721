/* SPDX-License-Identifier: MIT
 *
 * The one file that knows libmd.
 */
#include "base/sha256.h"

#include <sha2.h>

void sha256_hex(struct str data, char out[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX ctx;
    SHA256Init(&ctx);
    if (data.len > 0) {
        SHA256Update(&ctx, (const uint8_t *)data.ptr, data.len);
    }
    SHA256Final(digest, &ctx);
    for (size_t i = 0; i < sizeof digest; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[SHA256_HEX - 1] = '\0';
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
