/* SPDX-License-Identifier: MIT
 *
 * Words of upstream errors.
 */
#include "gateway/upstream.h"

#include "base/macro.h"

const char *upstream_error_word(enum upstream_error_kind kind)
{
    static const char *const words[] = {
        [UPSTREAM_CONNECT] = "connect", [UPSTREAM_TLS] = "tls",
        [UPSTREAM_TIMEOUT] = "timeout", [UPSTREAM_CUT] = "cut",
        [UPSTREAM_BROKEN] = "broken",   [UPSTREAM_REFUSED] = "refused",
    };
    return (size_t)kind < ARRAY_LEN(words) ? words[kind] : "broken";
}
