/* SPDX-License-Identifier: MIT
 *
 * Finding a member of an object in JSON text without building a tree; see outlimit.h. A body that
 * is no JSON is noticed as far as it matters here; the upstream will say the rest.
 */
#include "gateway/outlimit.h"

#include <inttypes.h>

static size_t skip_space(struct str s, size_t i)
{
    while (i < s.len &&
           (s.ptr[i] == ' ' || s.ptr[i] == '\t' || s.ptr[i] == '\n' || s.ptr[i] == '\r')) {
        i++;
    }
    return i;
}

/* Past the string that begins at i; s.len + 1 when it does not end. */
static size_t skip_string(struct str s, size_t i)
{
    for (i++; i < s.len; i++) {
        if (s.ptr[i] == '\\') {
            i++;
        } else if (s.ptr[i] == '"') {
            return i + 1;
        }
    }
    return s.len + 1;
}

/* Past the value that begins at i. Depth is a count: nesting costs nothing. */
static size_t skip_value(struct str s, size_t i)
{
    size_t depth = 0;
    while (i < s.len) {
        char c = s.ptr[i];
        if (c == '"') {
            i = skip_string(s, i);
            if (depth == 0) {
                return i;
            }
            continue;
        }
        bool closes = c == '}' || c == ']';
        if (depth == 0 && (closes || c == ',')) {
            return i;
        }
        depth += c == '{' || c == '[';
        depth -= closes;
        i++;
        if (closes && depth == 0) {
            return i;
        }
    }
    return i;
}

struct place {
    size_t from, to; /* of the value */
};

/* One member: its name at *at, which moves past it and its comma. */
static bool next_member(struct str s, size_t *at, struct str *ret_key, struct place *ret)
{
    size_t end = skip_string(s, *at);
    size_t colon = skip_space(s, end);
    if (colon >= s.len || s.ptr[colon] != ':') {
        return false;
    }
    *ret_key = str_slice(s, *at + 1, end - 1);
    ret->from = skip_space(s, colon + 1);
    ret->to = skip_value(s, ret->from);
    if (ret->to > s.len || ret->to == ret->from) {
        return false;
    }
    *at = skip_space(s, ret->to);
    if (*at < s.len && s.ptr[*at] == ',') {
        *at = skip_space(s, *at + 1);
    }
    ret->to = ret->from + str_trim(str_slice(s, ret->from, ret->to)).len;
    return true;
}

/* The member `key` of the object that begins at `at`. 1 found, 0 not there, -1 no object, or one
 * that readers may understand differently: a name that is there twice or is written with escapes
 * could hide a limit from us. */
static int find_member(struct str s, size_t at, struct str key, struct place *ret)
{
    int found = 0;
    size_t i = skip_space(s, at);
    if (i >= s.len || s.ptr[i] != '{') {
        return -1;
    }
    i = skip_space(s, i + 1);
    while (i < s.len && s.ptr[i] == '"') {
        struct str name;
        struct place place;
        if (!next_member(s, &i, &name, &place) || memchr(name.ptr, '\\', name.len) != NULL) {
            return -1;
        }
        if (str_eq(name, key)) {
            found++;
            *ret = place;
        }
    }
    return i < s.len && s.ptr[i] == '}' && found <= 1 ? found : -1;
}

static int no_object(struct err *e)
{
    return ERR(e, ERR_PARSE, "the request is no JSON object, its output cannot be limited");
}

static int replace(struct str body, struct place at, int64_t limit, struct buf *out, struct err *e)
{
    int r = buf_append(out, str_slice(body, 0, at.from), e);
    if (r == 0) {
        r = buf_printf(out, e, "%" PRId64, limit);
    }
    return r < 0 ? r : buf_append(out, str_slice(body, at.to, body.len), e);
}

/* Right after the brace of the object that begins at `at`. */
static int insert(struct str body, size_t at, const char *key, struct str value, struct buf *out,
                  struct err *e)
{
    size_t brace = skip_space(body, at) + 1;
    size_t next = skip_space(body, brace);
    bool empty = next < body.len && body.ptr[next] == '}';
    int r = buf_append(out, str_slice(body, 0, brace), e);
    if (r == 0) {
        r = buf_printf(out, e, "\"%s\":%.*s%s", key, STR_ARG(value), empty ? "" : ",");
    }
    return r < 0 ? r : buf_append(out, str_slice(body, brace, body.len), e);
}

static int write_at(struct str body, size_t at, const char *key, int64_t limit, struct buf *out,
                    struct err *e)
{
    struct place place;
    int found = find_member(body, at, str_of(key), &place);
    if (found < 0) {
        return no_object(e);
    }
    if (found == 1) {
        return replace(body, place, limit, out, e);
    }
    CLEANUP(buf) struct buf number = BUF_INIT(32);
    buf_addf(&number, "%" PRId64, limit);
    return insert(body, at, key, buf_str(&number), out, e);
}

static int write_gemini(struct str body, int64_t limit, struct buf *out, struct err *e)
{
    struct place place;
    int found = find_member(body, 0, STR("generationConfig"), &place);
    if (found < 0) {
        return no_object(e);
    }
    if (found == 1 && body.ptr[place.from] == '{') {
        return write_at(body, place.from, "maxOutputTokens", limit, out, e);
    }
    CLEANUP(buf) struct buf config = BUF_INIT(64);
    buf_addf(&config, "{\"maxOutputTokens\":%" PRId64 "}", limit);
    if (found == 0) {
        return insert(body, 0, "generationConfig", buf_str(&config), out, e);
    }
    int r = buf_append(out, str_slice(body, 0, place.from), e); /* it was null */
    if (r == 0) {
        r = buf_append(out, buf_str(&config), e);
    }
    return r < 0 ? r : buf_append(out, str_slice(body, place.to, body.len), e);
}

/* Reasoning models of OpenAI know the new name only, other servers perhaps only the old one. */
static const char *chat_key(struct str model, struct str body)
{
    struct place unused;
    if (find_member(body, 0, STR("max_completion_tokens"), &unused) == 1) {
        return "max_completion_tokens";
    }
    if (find_member(body, 0, STR("max_tokens"), &unused) == 1) {
        return "max_tokens";
    }
    bool reasons = str_starts(model, STR("gpt-5")) || str_starts(model, STR("o1")) ||
                   str_starts(model, STR("o3")) || str_starts(model, STR("o4"));
    return reasons ? "max_completion_tokens" : "max_tokens";
}

int outlimit_write(enum llm_format f, struct str model, struct str body, int64_t limit,
                   struct buf *out, struct err *e)
{
    switch (f) {
    case LLM_ANTHROPIC:
        return write_at(body, 0, "max_tokens", limit, out, e);
    case LLM_RESPONSES:
        return write_at(body, 0, "max_output_tokens", limit, out, e);
    case LLM_CHAT:
        return write_at(body, 0, chat_key(model, body), limit, out, e);
    case LLM_GEMINI:
        return write_gemini(body, limit, out, e);
    case LLM_FORMAT_MAX:
        break;
    }
    return ERR(e, ERR_BUG, "no such format");
}
