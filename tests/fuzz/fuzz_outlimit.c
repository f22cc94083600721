/* SPDX-License-Identifier: MIT
 *
 * Lowering the output limit of a request that is JSON gives JSON that has this limit and is
 * otherwise the same; the first byte chooses the format.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "gateway/outlimit.h"

enum { LIMIT = 4711 };

static const char *const keys[LLM_FORMAT_MAX][2] = {
    [LLM_ANTHROPIC] = { "max_tokens", NULL },
    [LLM_RESPONSES] = { "max_output_tokens", NULL },
    [LLM_CHAT] = { "max_tokens", "max_completion_tokens" },
    [LLM_GEMINI] = { "generationConfig", NULL },
};

static struct json *without(struct arena *a, struct json *v, enum llm_format f)
{
    struct json *copy = json_copy(a, v);
    for (int i = 0; i < 2 && keys[f][i] != NULL; i++) {
        (void)json_remove(copy, str_of(keys[f][i]));
    }
    return copy;
}

static bool has_limit(const struct json *v, enum llm_format f)
{
    if (f == LLM_GEMINI) {
        return json_int(json_pointer(v, STR("/generationConfig/maxOutputTokens")), 0) == LIMIT;
    }
    for (int i = 0; i < 2 && keys[f][i] != NULL; i++) {
        if (json_int(json_get(v, keys[f][i]), 0) == LIMIT) {
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    enum llm_format f = (enum llm_format)(data[0] % LLM_FORMAT_MAX);
    struct str body = str_n(data + 1, size - 1);
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(size + 128);
    struct err e;
    struct json *before;
    struct json *after;
    int r = outlimit_write(f, STR("m"), body, LIMIT, &out, &e);
    if (json_parse(a, body, NULL, &before, &e) < 0 || r < 0) {
        return 0;
    }
    if (json_parse(a, buf_str(&out), NULL, &after, &e) < 0 || !has_limit(after, f) ||
        !json_equal(without(a, before, f), without(a, after, f))) {
        abort();
    }
    return 0;
}
