/* SPDX-License-Identifier: MIT
 *
 * Arithmetic on usage, and what HTTP status a kind of error has.
 */
#include "llm/event.h"

#include "llm/codec_priv.h"

static void update(int64_t *to, int64_t with)
{
    if (with >= 0) {
        *to = with;
    }
}

void llm_usage_update(struct llm_usage *to, const struct llm_usage *with)
{
    update(&to->input, with->input);
    update(&to->output, with->output);
    update(&to->cache_read, with->cache_read);
    update(&to->cache_write, with->cache_write);
    update(&to->reasoning, with->reasoning);
    update(&to->cache_write_long, with->cache_write_long);
    update(&to->searches, with->searches);
}

/* Providers are not trusted to send sane numbers: the sum saturates. */
static int64_t add(int64_t sum, int64_t n)
{
    return n <= 0 ? sum : sum > INT64_MAX - n ? INT64_MAX : sum + n;
}

int64_t llm_usage_total(const struct llm_usage *u)
{
    return add(add(add(add(0, u->input), u->output), u->cache_read), u->cache_write);
}

static const int statuses[LLM_ERR_MAX] = {
    [LLM_ERR_INVALID] = 400,    [LLM_ERR_AUTH] = 401,      [LLM_ERR_PERMISSION] = 403,
    [LLM_ERR_NOT_FOUND] = 404,  [LLM_ERR_TOO_LARGE] = 413, [LLM_ERR_RATE] = 429,
    [LLM_ERR_QUOTA] = 429,      [LLM_ERR_CONTEXT] = 400,   [LLM_ERR_SERVER] = 500,
    [LLM_ERR_OVERLOADED] = 503, [LLM_ERR_TIMEOUT] = 504,
};

int llm_error_status(enum llm_error_kind kind)
{
    return kind < LLM_ERR_MAX ? statuses[kind] : 500;
}

enum llm_error_kind llm_error_kind_of(int status)
{
    switch (status) {
    case 401:
        return LLM_ERR_AUTH;
    case 402:
        return LLM_ERR_QUOTA;
    case 403:
        return LLM_ERR_PERMISSION;
    case 404:
        return LLM_ERR_NOT_FOUND;
    case 408:
    case 504:
        return LLM_ERR_TIMEOUT;
    case 413:
        return LLM_ERR_TOO_LARGE;
    case 429:
        return LLM_ERR_RATE;
    case 503:
    case 529:
        return LLM_ERR_OVERLOADED;
    default:
        return status >= 400 && status < 500 ? LLM_ERR_INVALID : LLM_ERR_SERVER;
    }
}
