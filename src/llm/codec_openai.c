/* SPDX-License-Identifier: MIT
 *
 * Error objects that Responses and Chat Completions share: {"error": {message, type, param, code}}.
 * Compatible servers send less, or other shapes; all are read.
 */
#include "llm/codec_priv.h"

static const struct {
    enum llm_error_kind kind;
    const char *type, *code;
} kinds[] = {
    { LLM_ERR_CONTEXT, "invalid_request_error", "context_length_exceeded" },
    { LLM_ERR_QUOTA, "insufficient_quota", "insufficient_quota" },
    { LLM_ERR_RATE, "rate_limit_error", "rate_limit_exceeded" },
    { LLM_ERR_AUTH, "invalid_request_error", "invalid_api_key" },
    { LLM_ERR_PERMISSION, "invalid_request_error", "permission_denied" },
    { LLM_ERR_NOT_FOUND, "invalid_request_error", "model_not_found" },
    { LLM_ERR_TOO_LARGE, "invalid_request_error", "request_too_large" },
    { LLM_ERR_OVERLOADED, "server_error", "server_is_overloaded" },
    { LLM_ERR_TIMEOUT, "server_error", "timeout" },
    { LLM_ERR_SERVER, "server_error", "server_error" },
    { LLM_ERR_INVALID, "invalid_request_error", NULL },
};

struct json *llm_openai_error(struct arena *a, const struct llm_error *error)
{
    struct json *v = json_object(a);
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(kinds) && kinds[i].kind != error->kind) {
        i++;
    }
    llm_set_str(a, v, "message", error->message);
    llm_set_cstr(a, v, "type", kinds[i].type);
    json_setc(a, v, "param", json_null(a));
    llm_set_cstr(a, v, "code", kinds[i].code);
    return v;
}

struct json *llm_openai_error_body(struct arena *a, const struct llm_error *error)
{
    struct json *v = json_object(a);
    json_setc(a, v, "error", llm_openai_error(a, error));
    return v;
}

/* A code that is a number is the HTTP status that some servers put into a stream. */
static void read_code(const struct json *code, struct llm_error *ret)
{
    int64_t n = json_int(code, 0);
    if (n >= 400 && n < 600) {
        ret->kind = ret->status == 0 ? llm_error_kind_of((int)n) : ret->kind;
        ret->status = ret->status == 0 ? (int)n : ret->status;
    }
    ret->code = json_str(code, ret->code);
}

static void classify(struct llm_error *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].code != NULL &&
            (str_eqc(ret->code, kinds[i].code) ||
             (kinds[i].kind == LLM_ERR_QUOTA && str_eqc(ret->type, kinds[i].type)))) {
            ret->kind = kinds[i].kind;
            return;
        }
    }
    if (ret->status == 0 && str_eqc(ret->type, "invalid_request_error")) {
        ret->kind = LLM_ERR_INVALID;
    } else if (ret->status == 0 && str_eqc(ret->type, "rate_limit_error")) {
        ret->kind = LLM_ERR_RATE;
    }
    if (ret->kind == LLM_ERR_INVALID && llm_says_context(ret->message)) {
        ret->kind = LLM_ERR_CONTEXT;
    }
}

void llm_openai_error_read(const struct json *error, struct llm_error *ret)
{
    if (json_is(error, JSON_STRING)) {
        ret->message = error->string;
    } else {
        ret->message = json_str(json_get(error, "message"), ret->message);
        ret->type = json_str(json_get(error, "type"), ret->type);
        read_code(json_get(error, "code"), ret);
    }
    classify(ret);
}

void llm_openai_error_body_read(const struct json *body, struct llm_error *ret)
{
    static const char *const words[] = { "message", "detail", "error_description" };
    const struct json *error = json_get(body, "error");
    if (error != NULL && error->type != JSON_NULL) {
        llm_openai_error_read(error, ret);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(words) && ret->message.len == 0; i++) {
        ret->message = json_str(json_get(body, words[i]), STR_EMPTY);
    }
    ret->type = json_str(json_get(body, "type"), ret->type);
    read_code(json_get(body, "code"), ret);
    classify(ret);
}

bool llm_says_context(struct str message)
{
    static const char *const phrases[] = {
        "prompt is too long",
        "maximum context length",
        "context_length_exceeded",
        "context window",
        "exceeds the maximum number of tokens",
        "input is too long",
        "maximum number of tokens allowed",
    };
    for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
        if (str_find(message, str_of(phrases[i])) < message.len) {
            return true;
        }
    }
    return false;
}
