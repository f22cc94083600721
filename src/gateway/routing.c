/* SPDX-License-Identifier: MIT
 *
 * Reading the words of a route; see routing.h.
 */
#include "gateway/routing.h"

#include "base/arena.h"
#include "llm/codec.h"

static const struct provider {
    const char *host;
    enum llm_format format;
    unsigned formats; /* further ones */
    const char *key;
} providers[] = {
    { "api.anthropic.com", LLM_ANTHROPIC, 0, "ANTHROPIC_API_KEY" },
    { "api.openai.com", LLM_RESPONSES, 1u << LLM_CHAT, "OPENAI_API_KEY" },
    { "generativelanguage.googleapis.com", LLM_GEMINI, 0, "GEMINI_API_KEY" },
    { "openrouter.ai", LLM_CHAT, 0, "OPENROUTER_API_KEY" },
};

/* "host" and "host:port" of "https://host:port/path". */
static struct str authority_of(struct str url)
{
    struct str rest = str_slice(url, str_find(url, STR("://")) + 3, url.len);
    return str_split(&rest, '/');
}

static int check_url(struct str url, struct err *e)
{
    struct str authority = authority_of(url);
    bool scheme = str_starts(url, STR("http://")) || str_starts(url, STR("https://"));
    if (!scheme || authority.len == 0 || authority.ptr[0] == ':') {
        return ERR(e, ERR_CONFIG,
                   "upstream '%.*s' is not an address: use https://HOST, http://HOST:PORT, "
                   "script:FILE or cassette:FILE",
                   STR_ARG(url));
    }
    if (memchr(authority.ptr, '@', authority.len) != NULL ||
        memchr(url.ptr, '?', url.len) != NULL || memchr(url.ptr, '#', url.len) != NULL) {
        return ERR(
            e, ERR_CONFIG,
            "an upstream's address holds no user, key or query: name the variable that holds "
            "the key instead");
    }
    for (size_t i = 0; i < url.len; i++) {
        if ((unsigned char)url.ptr[i] <= ' ' || (unsigned char)url.ptr[i] >= 0x7F) {
            return ERR(e, ERR_CONFIG, "an upstream's address has only printable ASCII characters");
        }
    }
    return 0;
}

static const struct provider *find_provider(struct str host)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
        if (str_eqc(host, providers[i].host)) {
            return &providers[i];
        }
    }
    return NULL;
}

static void apply_provider(const struct provider *p, struct routing_target *ret)
{
    ret->any_format = false;
    ret->format = p->format;
    ret->formats = p->formats;
    ret->key = p->key;
    ret->key_required = true;
}

static int read_http(struct arena *a, const struct routing_words *w, struct routing_target *ret,
                     struct err *e)
{
    struct str url = str_of(w->upstream);
    int r = check_url(url, e);
    if (r < 0) {
        return r;
    }
    while (str_ends(url, STR("/"))) {
        url.len--;
    }
    struct str authority = authority_of(url);
    struct str rest = authority;
    *ret = (struct routing_target) { .kind = ROUTING_HTTP,
                                     .where = arena_dup(a, url),
                                     .name = arena_dup(a, authority),
                                     .any_format = true };
    const struct provider *p = find_provider(str_split(&rest, ':'));
    if (p != NULL) {
        apply_provider(p, ret);
    }
    if (w->key != NULL) {
        ret->key = w->key;
        ret->key_required = true;
    }
    return 0;
}

int routing_read(struct arena *a, const struct routing_words *w, struct routing_target *ret,
                 struct err *e)
{
    struct str words = str_of(w->upstream);
    bool script = str_starts(words, STR("script:"));
    int r = 0;
    if (script || str_starts(words, STR("cassette:"))) {
        const char *path = strchr(w->upstream, ':') + 1;
        if (path[0] == '\0') {
            return ERR(e, ERR_CONFIG, "upstream '%s' names no file", w->upstream);
        }
        *ret = (struct routing_target) { .kind = script ? ROUTING_SCRIPT : ROUTING_CASSETTE,
                                         .where = path,
                                         .name = script ? "script" : "cassette",
                                         .any_format = true };
    } else {
        r = read_http(a, w, ret, e);
    }
    if (r == 0 && w->format != NULL) {
        ret->any_format = false;
        ret->formats = 0;
        if (!llm_format_parse(str_of(w->format), &ret->format)) {
            return ERR(e, ERR_CONFIG,
                       "'%s' is not a format: use anthropic, responses, chat or gemini", w->format);
        }
    }
    return r;
}
