/* SPDX-License-Identifier: MIT
 *
 * The last bytes of a response; see usage_tail.h.
 */
#include "gateway/usage_tail.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "gateway/cursor.h"

void usage_tail_add(struct usage_tail *t, struct str bytes)
{
    size_t n = bytes.len < USAGE_TAIL ? bytes.len : USAGE_TAIL;
    size_t keep = t->len + n <= USAGE_TAIL ? t->len : USAGE_TAIL - n;
    memmove(t->bytes, t->bytes + (t->len - keep), keep);
    if (n > 0) {
        memcpy(t->bytes + keep, bytes.ptr + (bytes.len - n), n);
    }
    t->len = keep + n;
}

/* What follows the last `name` in the text; empty: it is not there. */
static struct str behind_last(struct str text, struct str name)
{
    struct str rest = STR_EMPTY;
    for (size_t at; (at = str_find(text, name)) < text.len;) {
        text = str_slice(text, at + name.len, text.len);
        rest = text;
    }
    return rest;
}

static bool read_object(struct arena *a, struct str rest, const struct json **ret)
{
    struct cursor c = { .text = rest };
    struct json *v;
    if (cursor_peek(&c) != ':') {
        return false;
    }
    c.at++;
    if (cursor_peek(&c) != '{') {
        return false; /* "usage": null of a stream */
    }
    size_t from = c.at;
    if (!cursor_skip_value(&c) || json_parse(a, str_slice(rest, from, c.at), NULL, &v, NULL) < 0) {
        return false;
    }
    *ret = v;
    return true;
}

bool usage_tail_read(const struct usage_tail *t, struct llm_usage *ret)
{
    static const struct {
        const char *name, *input, *output;
    } forms[] = {
        { "\"usage\"", "prompt_tokens", "completion_tokens" },
        { "\"usageMetadata\"", "promptTokenCount", "candidatesTokenCount" },
    };
    CLEANUP(arena) struct arena *a = arena_new();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct json *v;
        struct str rest = behind_last(str_n(t->bytes, t->len), str_of(forms[i].name));
        int64_t input = rest.len > 0 && read_object(a, rest, &v)
                            ? json_int(json_get(v, forms[i].input), -1)
                            : -1;
        if (input >= 0) {
            int64_t output = json_int(json_get(v, forms[i].output), 0);
            *ret = LLM_USAGE_NONE;
            ret->input = input;
            ret->output = output < 0 ? 0 : output;
            return true;
        }
    }
    return false;
}
