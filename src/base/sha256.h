/* SPDX-License-Identifier: MIT
 *
 * SHA-256 of bytes, as 64 lower-case hexadecimal digits: what prompts, tools and artifacts are
 * known by.
 *
 *   char hash[SHA256_HEX];
 *   sha256_hex(STR("abc"), hash);
 *
 * libmd does the work and is included by sha256.c only. It was taken over libcrypto because it
 * costs 1.2 MB of memory and under 1 ms of start instead of 5 MB and 3 ms (measured on Debian 12).
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

#define SHA256_HEX 65 /* with the NUL */

void sha256_hex(struct str data, char out[SHA256_HEX]);
/* The same of bytes that come piece by piece: sha256_new(), sha256_add()…, then sha256_end(), which
 * frees it and returns NULL; `out` may be NULL, and so may the state. */
struct sha256;
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *s, struct str data);
struct sha256 *sha256_end(struct sha256 *s, char out[SHA256_HEX]);
/* Whether s looks like what sha256_hex() writes. */
bool sha256_is_hex(struct str s);
