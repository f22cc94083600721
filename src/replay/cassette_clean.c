/* SPDX-License-Identifier: MIT
 *
 * What of an exchange may be kept. Three nets, since one may have a hole: header fields by an allow
 * list, known secret values by the redactor of the run, and the shapes of providers' keys, for keys
 * that nobody registered (in a prompt, in a file that a tool read).
 */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "record/redact.h"
#include "replay/cassette.h"

/* Fields that matter for a replay or for a reader, and never carry a credential. */
static const char *const kept_fields[] = {
    "accept",           "anthropic-beta", "anthropic-version",
    "content-encoding", "content-type",   "openai-beta",
    "openai-model",     "request-id",     "retry-after",
    "retry-after-ms",   "user-agent",     "x-cinch-side",
    "x-cinch-step",     "x-request-id",   "x-stainless-retry-count",
};

bool cassette_keeps_field(struct str lower_name)
{
    for (size_t i = 0; i < ARRAY_LEN(kept_fields); i++) {
        if (http_name_is(lower_name, kept_fields[i])) {
            return true;
        }
    }
    return false;
}

struct str cassette_clean_target(struct arena *a, struct str target)
{
    static const char *const keys[] = { "key", "api_key", "api-key", "access_token", "token" };
    struct str rest = target;
    struct str path = str_split(&rest, '?');
    if (rest.ptr == NULL) {
        return target;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    bool removed = false;
    buf_add(&out, path);
    for (char sep = '?'; rest.ptr != NULL;) {
        struct str pair = str_split(&rest, '&');
        struct str name = str_slice(pair, 0, str_find(pair, STR("=")));
        bool secret = false;
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
            secret |= str_eqc(name, keys[i]);
        }
        removed |= secret;
        if (!secret) {
            buf_addf(&out, "%c%.*s", sep, STR_ARG(pair));
            sep = '&';
        }
    }
    return removed ? arena_str(a, buf_str(&out)) : target;
}

/* How keys begin, and how many characters must follow for it to be one. */
static const struct {
    const char *prefix;
    size_t least;
} shapes[] = {
    { "sk-", 20 },  { "AIza", 30 },  { "ghp_", 30 },  { "gho_", 30 },
    { "ghs_", 30 }, { "xoxb-", 20 }, { "xoxp-", 20 }, { "github_pat_", 30 },
    { "hf_", 30 },  { "gsk_", 30 },  { "AKIA", 16 },  { "glpat-", 20 },
};

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* Length of the key that begins at `at`, or 0. Words such as "task-…" are none: a key begins where
 * no letter goes before. */
static size_t key_at(struct str s, size_t at)
{
    if (at > 0 && is_key_char(s.ptr[at - 1])) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct str rest = str_slice(s, at, s.len);
        size_t n = strlen(shapes[i].prefix);
        if (!str_starts(rest, str_n(shapes[i].prefix, n))) {
            continue;
        }
        size_t end = n;
        bool digit = false; /* prose in kebab case has none */
        while (end < rest.len && is_key_char(rest.ptr[end])) {
            digit |= rest.ptr[end] >= '0' && rest.ptr[end] <= '9';
            end++;
        }
        return digit && end - n >= shapes[i].least ? end : 0;
    }
    return 0;
}

/* All of a prompt passes here, so it is not looked at byte by byte: a key has one of these marks at
 * its beginning, or within the first letters of it. */
static const char marks[] = { '-', '_', 'A' };
#define MARK_MAX 6 /* "github_" */

/* The beginning of the word whose first mark stands at `at`; SIZE_MAX: too far away for a key. */
static size_t word_of(struct str s, size_t at)
{
    for (size_t back = 0; back <= MARK_MAX; back++) {
        if (at == back || !is_key_char(s.ptr[at - back - 1])) {
            return at - back;
        }
    }
    return SIZE_MAX;
}

struct found {
    size_t at, len; /* len 0: none from here on */
};

static struct found next_key(struct str s, size_t from, char mark)
{
    while (from < s.len) {
        const char *hit = memchr(s.ptr + from, mark, s.len - from);
        if (hit == NULL) {
            break;
        }
        size_t at = (size_t)(hit - s.ptr);
        size_t start = word_of(s, at);
        size_t len = start == SIZE_MAX ? 0 : key_at(s, start);
        if (len > 0) {
            return (struct found) { start, len };
        }
        from = at + 1;
    }
    return (struct found) { s.len, 0 };
}

static struct str clean_shapes(struct arena *a, struct str s)
{
    CLEANUP(buf) struct buf out = BUF_INIT(SIZE_MAX);
    struct found next[ARRAY_LEN(marks)];
    size_t from = 0;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        next[i] = next_key(s, 0, marks[i]);
    }
    for (;;) {
        const struct found *first = &next[0];
        for (size_t i = 1; i < ARRAY_LEN(marks); i++) {
            first = next[i].at < first->at ? &next[i] : first;
        }
        if (first->len == 0) {
            break;
        }
        buf_add(&out, str_slice(s, from, first->at));
        buf_adds(&out, "[REDACTED:key]");
        from = first->at + first->len;
        for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
            next[i] = next[i].at < from ? next_key(s, from, marks[i]) : next[i];
        }
    }
    if (from == 0) {
        return s;
    }
    buf_add(&out, str_slice(s, from, s.len));
    return arena_str(a, buf_str(&out));
}

struct str cassette_clean_text(const struct redactor *r, struct arena *a, struct str text)
{
    return clean_shapes(a, redact_str(r, a, text));
}
