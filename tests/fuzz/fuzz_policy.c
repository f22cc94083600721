/* SPDX-License-Identifier: MIT
 *
 * What a program that decides on tools prints. It allows only by an object that says so.
 */
#include <stdint.h>
#include <stdlib.h>

#include "guard/guard_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct policy_reply reply;
    struct json *v = NULL;
    struct str out = str_n(data, size);
    policy_reply_read(a, out, &reply);
    if (reply.allowed && (json_parse(a, out, NULL, &v, NULL) < 0 ||
                          !str_eqc(json_str(json_get(v, "decision"), STR_EMPTY), "allow"))) {
        abort();
    }
    if (!str_is_utf8(reply.reason) || (reply.allowed && reply.detail.len > 0)) {
        abort();
    }
    arena_free(a);
    return 0;
}
