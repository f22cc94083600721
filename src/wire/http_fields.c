/* SPDX-License-Identifier: MIT
 *
 * Header fields. Sets are small: a walk is cheaper than an index.
 */
#include <strings.h>

#include "wire/http.h"

static bool same_word(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

bool http_name_is(struct str name, const char *lower)
{
    return same_word(name, str_of(lower));
}

const struct str *http_find(const struct http_fields *f, const char *name)
{
    struct str wanted = str_of(name);
    for (size_t i = 0; i < f->len; i++) {
        if (same_word(f->items[i].name, wanted)) {
            return &f->items[i].value;
        }
    }
    return NULL;
}

size_t http_count(const struct http_fields *f, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < f->len; i++) {
        n += http_name_is(f->items[i].name, name) ? 1 : 0;
    }
    return n;
}

bool http_has_word(const struct http_fields *f, const char *name, struct str word)
{
    for (size_t i = 0; i < f->len; i++) {
        struct str rest = f->items[i].value;
        if (!http_name_is(f->items[i].name, name)) {
            continue;
        }
        while (rest.ptr != NULL && rest.len > 0) {
            if (same_word(str_trim(str_split(&rest, ',')), word)) {
                return true;
            }
        }
    }
    return false;
}

bool http_is_hop_by_hop(const struct http_fields *f, struct str name)
{
    static const char *const always[] = {
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    };
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        if (http_name_is(name, always[i])) {
            return true;
        }
    }
    return http_has_word(f, "connection", name);
}

bool http_query_find(struct str target, const char *key, struct str *ret)
{
    (void)str_split(&target, '?');
    while (target.ptr != NULL) {
        struct str value = str_split(&target, '&');
        struct str name = str_split(&value, '=');
        if (str_eqc(name, key)) {
            *ret = value.ptr == NULL ? STR_EMPTY : value;
            return true;
        }
    }
    return false;
}
