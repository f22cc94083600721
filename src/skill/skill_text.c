/* SPDX-License-Identifier: MIT
 *
 * Small operations on texts of skill packages; see skill_priv.h.
 */
#include <stdio.h>

#include "skill/skill_priv.h"

enum { JSON_BYTES = 1 << 20, JSON_DEPTH = 64 };

int skill_refuse(int r, struct err *e)
{
    if (r != -ERR_PARSE && r != -ERR_LIMIT) {
        return r;
    }
    if (e != NULL) {
        e->code = ERR_CONFIG;
    }
    return -ERR_CONFIG;
}

size_t skill_chars(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    }
    return n;
}

int skill_json_parse(struct arena *a, struct str text, const char *file, struct json **ret,
                     struct err *e)
{
    struct json_limits limits = { .max_bytes = JSON_BYTES, .max_depth = JSON_DEPTH };
    struct err why = { 0 };
    if (json_parse(a, text, &limits, ret, &why) == 0) {
        return 0;
    }
    unsigned line = 0;
    unsigned column = 0;
    int used = 0;
    if (sscanf(why.msg, "line %u, column %u: %n", &line, &column, &used) == 2 && used > 0) {
        return ERR(e, ERR_CONFIG, "%s:%u:%u: %s", file, line, column, why.msg + used);
    }
    return ERR(e, ERR_CONFIG, "%s: %s", file, why.msg);
}
