/* SPDX-License-Identifier: MIT
 *
 * Host and token checks.
 */
#include "gateway/admit.h"

#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/macro.h"
#include "gateway/proxy.h"

bool admit_is_here(struct str host)
{
    static const char *const own[] = { "127.0.0.1", "localhost", "::1" };
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (http_name_is(host, own[i])) {
            return true;
        }
    }
    return false;
}

bool admit_host(struct str value, const char *const *hosts)
{
    struct str host;
    int port;
    if (!proxy_split_authority(value, 80, &host, &port)) {
        return false;
    }
    if (admit_is_here(host)) {
        return true;
    }
    for (; hosts != NULL && *hosts != NULL; hosts++) {
        if (http_name_is(host, *hosts)) {
            return true;
        }
    }
    return false;
}

static bool same_secret(struct str given, struct str secret)
{
    unsigned different = given.len != secret.len ? 1u : 0u;
    for (size_t i = 0; i < given.len && secret.len > 0; i++) {
        different |= (unsigned char)given.ptr[i] ^ (unsigned char)secret.ptr[i % secret.len];
    }
    return different == 0 && secret.len > 0;
}

/* "Bearer x": what follows the scheme; empty when it is another one. */
static struct str after_scheme(struct str value, struct str scheme)
{
    bool fits = value.len > scheme.len && strncasecmp(value.ptr, scheme.ptr, scheme.len) == 0 &&
                value.ptr[scheme.len] == ' ';
    return fits ? str_trim(str_slice(value, scheme.len + 1, value.len)) : STR_EMPTY;
}

static const char *const key_fields[] = { "x-api-key", "x-goog-api-key", "api-key" };

bool admit_token(const struct http_head *head, struct str token)
{
    bool good = false;
    const struct str *value = http_find(&head->fields, "authorization");
    if (value != NULL) {
        good |= same_secret(after_scheme(*value, STR("Bearer")), token);
    }
    for (size_t i = 0; i < ARRAY_LEN(key_fields); i++) {
        value = http_find(&head->fields, key_fields[i]);
        good |= value != NULL && same_secret(*value, token);
    }
    struct str key;
    if (http_query_find(head->target, "key", &key)) {
        good |= same_secret(key, token);
    }
    return good;
}

bool admit_pass(struct str *target, struct str token)
{
    struct str rest = *target;
    if (!str_starts(rest, STR(ADMIT_PASS))) {
        return false;
    }
    rest = str_slice(rest, strlen(ADMIT_PASS), rest.len);
    size_t end = 0;
    while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?') {
        end++;
    }
    if (!same_secret(str_slice(rest, 0, end), token) || (end < rest.len && rest.ptr[end] == '?')) {
        return false;
    }
    *target = end == rest.len ? STR("/") : str_slice(rest, end, rest.len);
    return true;
}

bool admit_is_own_key(const struct http_field *field, const char *token)
{
    bool bearer = http_name_is(field->name, "authorization");
    bool key = bearer;
    for (size_t i = 0; !key && i < ARRAY_LEN(key_fields); i++) {
        key = http_name_is(field->name, key_fields[i]);
    }
    struct str value = bearer ? after_scheme(field->value, STR("Bearer")) : field->value;
    return key && (token == NULL || !same_secret(value, str_of(token)));
}

bool admit_is_credential(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(key_fields); i++) {
        if (http_name_is(name, key_fields[i])) {
            return true;
        }
    }
    return http_name_is(name, "authorization") || http_name_is(name, "proxy-authorization") ||
           http_name_is(name, "cookie");
}

bool admit_proxy_token(const struct http_head *head, struct str token)
{
    CLEANUP(buf) struct buf pair = BUF_INIT(512);
    const struct str *value = http_find(&head->fields, "proxy-authorization");
    if (value == NULL) {
        return false;
    }
    bool good = same_secret(after_scheme(*value, STR("Bearer")), token);
    struct str basic = after_scheme(*value, STR("Basic"));
    struct str rest = base64_read(basic, &pair, NULL) < 0 ? STR_EMPTY : buf_str(&pair);
    struct str user = str_split(&rest, ':');
    /* "http://TOKEN@host" and "http://any:TOKEN@host" both work. */
    good |= same_secret(rest.ptr == NULL || rest.len == 0 ? user : rest, token);
    return good;
}
