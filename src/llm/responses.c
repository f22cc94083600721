/* SPDX-License-Identifier: MIT
 *
 * OpenAI Responses: where it lives, what of it no other format can be asked, its errors.
 */
#include "llm/responses_priv.h"

static bool responses_endpoint(struct str method, struct str path, struct str query,
                               struct llm_endpoint *ret)
{
    (void)query;
    if (!str_eqc(method, "POST") || !str_eqc(path, "/responses")) {
        return false;
    }
    ret->call = LLM_CALL_GENERATE;
    return true;
}

static int responses_path(struct str model, bool stream, struct buf *out, struct err *e)
{
    (void)model;
    (void)stream;
    return buf_append(out, STR("/v1/responses"), e);
}

/* They point at what the provider keeps: nobody else has it. */
static const char *const essential[] = { "previous_response_id", "conversation", "prompt",
                                         "item_reference", NULL };

/* Bookkeeping of items, and values that only repeat a default. */
static const char *const carried[] = {
    "id",      "status",  "annotations",     "logprobs",          "phase",
    "store",   "include", "strict",          RESPONSES_NAMESPACE, "format",
    "summary", "content", "client_metadata", "prompt_cache_key",  NULL
};

const struct llm_codec llm_codec_responses = {
    .name = "responses",
    .endpoint = responses_endpoint,
    .path = responses_path,
    .read = responses_read,
    .write = responses_write,
    .essential = essential,
    .carried = carried,
    .custom_tools = true,
    .reader_size = sizeof(struct responses_reading),
    .read_event = responses_read_event,
    .read_body = responses_read_body,
    .tap_wants = responses_tap_wants,
    .writer_size = sizeof(struct responses_writing),
    .gathers = true,
    .write_event = responses_write_event,
    .write_body = responses_write_body,
    .error_write = llm_openai_error_body,
    .error_read = llm_openai_error_body_read,
};
