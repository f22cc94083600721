/* SPDX-License-Identifier: MIT
 *
 * OpenAI Responses: where it lives, what of it no other format can be asked, its errors.
 */
#include "llm/responses_priv.h"

static bool responses_endpoint(struct str method, struct str path, struct str query,
                               struct llm_endpoint *ret)
{
    (void)query;
    ret->call = str_eqc(path, "/responses")                ? LLM_CALL_GENERATE
                : str_eqc(path, "/responses/input_tokens") ? LLM_CALL_COUNT
                                                           : LLM_CALL_NONE;
    return str_eqc(method, "POST") && ret->call != LLM_CALL_NONE;
}

static int responses_path(struct str model, bool stream, struct buf *out, struct err *e)
{
    (void)model;
    (void)stream;
    return buf_append(out, STR("/v1/responses"), e);
}

/* They point at what the provider keeps: nobody else has it. */
static const char *const essential[] = { "previous_response_id", "conversation", "prompt", NULL };

/* What no other format can answer. */
static const char *unportable(struct arena *a, const struct llm_request *r)
{
    static const char *const chosen[] = { "function", "custom", "allowed_tools", "namespace",
                                          NULL };
    const struct json *include = json_get(r->extra, "include");
    struct str choice = json_str(json_pointer(r->extra, STR("/tool_choice/type")), STR_EMPTY);
    if (json_bool(json_get(r->extra, "background"), false)) {
        return "background: only a responses server can answer later";
    }
    bool probabilities = json_int(json_get(r->extra, "top_logprobs"), 0) > 0;
    for (size_t i = 0; json_is(include, JSON_ARRAY) && i < json_len(include); i++) {
        probabilities = probabilities || str_eqc(json_str(json_item(include, i), STR_EMPTY),
                                                 "message.output_text.logprobs");
    }
    if (probabilities) {
        return "logprobs: token probabilities are available from responses servers only";
    }
    if (choice.len > 0 && !llm_word_in(choice, chosen)) {
        return arena_printf(a,
                            "the request requires the tool '%.*s', which runs at the provider; use "
                            "an upstream that speaks responses",
                            STR_ARG(choice));
    }
    return NULL;
}

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
    .resolve = responses_resolve,
    .unportable = unportable,
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
