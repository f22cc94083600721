/* SPDX-License-Identifier: MIT
 *
 * Base URLs, targets and key fields.
 */
#include "gateway/provider.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "gateway/proxy.h"

static char *dup_str(struct str s)
{
    char *copy = xmalloc(s.len + 1);
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

static bool is_path(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c >= 0x7f || c == '?' || c == '#' || c == '\\') {
            return false;
        }
    }
    return true;
}

int provider_init(struct provider *p, const char *url, const char *key, struct err *e)
{
    *p = (struct provider) { .tls = strncmp(url, "https://", 8) == 0 };
    struct str rest = str_of(url), host;
    bool scheme = p->tls || str_starts(rest, STR("http://"));
    rest = str_slice(rest, p->tls ? 8 : 7, rest.len);
    struct str path = rest;
    struct str authority = str_split(&path, '/');
    path = path.ptr == NULL ? STR_EMPTY : str_n(path.ptr - 1, path.len + 1);
    while (path.len > 0 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    if (!scheme || !is_path(path) ||
        !proxy_split_authority(authority, p->tls ? 443 : 80, &host, &p->port)) {
        return ERR(
            e, ERR_CONFIG,
            "'%.100s' is not a base URL: use http:// or https://, a host, and optionally a path",
            url);
    }
    p->host = dup_str(host);
    p->authority = dup_str(authority);
    p->path = dup_str(path);
    CLEANUP(buf) struct buf origin = BUF_INIT(BUF_TEXT);
    buf_addf(&origin, "%s://%s", p->tls ? "https" : "http", p->authority);
    p->origin = dup_str(buf_str(&origin));
    p->loopback =
        str_starts(host, STR("127.")) || str_eqc(host, "localhost") || str_eqc(host, "::1");
    p->key = key == NULL ? NULL : xstrdup(key);
    return 0;
}

void provider_done(struct provider *p)
{
    if (p->key != NULL) {
        explicit_bzero(p->key, strlen(p->key));
    }
    free(p->key);
    free(p->origin);
    free(p->host);
    free(p->authority);
    free(p->path);
    *p = (struct provider) { 0 };
}

void provider_target(const struct provider *p, struct str target, struct buf *out)
{
    struct str base = str_of(p->path);
    struct str rest = str_slice(target, 1, target.len);
    struct str first = str_split(&rest, '/');
    struct str tail =
        str_slice(base, base.len > first.len ? base.len - first.len - 1 : 0, base.len);
    bool twice = first.len > 1 && first.ptr[0] == 'v' && tail.len == first.len + 1 &&
                 tail.ptr[0] == '/' && str_eq(str_slice(tail, 1, tail.len), first);
    buf_add(out, twice ? str_slice(base, 0, base.len - tail.len) : base);
    buf_add(out, target);
}

bool provider_key_field(const struct provider *p, enum llm_format f, struct str *ret_name,
                        struct buf *value)
{
    if (p->key == NULL) {
        return false;
    }
    switch (f) {
    case LLM_ANTHROPIC:
        *ret_name = STR("x-api-key");
        break;
    case LLM_GEMINI:
        *ret_name = STR("x-goog-api-key");
        break;
    case LLM_RESPONSES:
    case LLM_CHAT:
    case LLM_FORMAT_MAX:
        *ret_name = STR("Authorization");
        buf_adds(value, "Bearer ");
        break;
    }
    buf_adds(value, p->key);
    return true;
}
