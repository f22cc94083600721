/* SPDX-License-Identifier: MIT
 *
 * Gemini generateContent: where it lives, its errors, its table.
 */
#include "llm/gemini_priv.h"

/* --- paths --- */

static bool has_word(struct str query, const char *word)
{
    while (query.len > 0) {
        if (str_eqc(str_split(&query, '&'), word)) {
            return true;
        }
    }
    return false;
}

/* "" or "/projects/P/locations/L/publishers/O", as Vertex has it. */
static bool is_parent(struct str path)
{
    static const char *const words[] = { "projects", "locations", "publishers" };
    if (path.len == 0) {
        return true;
    }
    (void)str_split(&path, '/');
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        bool known = str_eqc(str_split(&path, '/'), words[i]);
        struct str name = path.ptr == NULL ? STR_EMPTY : str_split(&path, '/');
        if (!known || name.len == 0) {
            return false;
        }
    }
    return path.ptr == NULL;
}

/* "/models/M:method", also below the projects and publishers of Vertex. */
static bool gemini_endpoint(struct str method, struct str path, struct str query,
                            struct llm_endpoint *ret)
{
    static const struct {
        const char *name;
        enum llm_call_kind call;
        bool stream;
    } methods[] = {
        { "generateContent", LLM_CALL_GENERATE, false },
        { "streamGenerateContent", LLM_CALL_GENERATE, true },
        { "countTokens", LLM_CALL_COUNT, false },
        { "embedContent", LLM_CALL_EMBED, false },
        { "batchEmbedContents", LLM_CALL_EMBED, false },
    };
    struct str prefix = STR("/models/");
    size_t at = str_find(path, prefix);
    if (!str_eqc(method, "POST") || at == path.len || !is_parent(str_slice(path, 0, at))) {
        return false;
    }
    struct str rest = str_slice(path, at + prefix.len, path.len);
    struct str model = str_split(&rest, ':');
    for (size_t i = 0; i < ARRAY_LEN(methods) && model.len > 0; i++) {
        if (str_eqc(rest, methods[i].name)) {
            ret->call = methods[i].call;
            ret->stream = methods[i].stream;
            ret->list = methods[i].stream && !has_word(query, "alt=sse");
            ret->model = model;
            return true;
        }
    }
    return false;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static int gemini_path(struct str model, bool stream, struct buf *out, struct err *e)
{
    int r = buf_append(out, STR("/v1beta/models/"), e);
    if (str_starts(model, STR("models/"))) {
        model = str_slice(model, 7, model.len);
    }
    for (size_t i = 0; r == 0 && i < model.len; i++) {
        char c = model.ptr[i];
        r = is_plain(c) ? buf_append_c(out, c, e) : buf_printf(out, e, "%%%02X", (unsigned char)c);
    }
    struct str method = stream ? STR(":streamGenerateContent?alt=sse") : STR(":generateContent");
    return r < 0 ? r : buf_append(out, method, e);
}

/* --- errors --- */

static const struct {
    enum llm_error_kind kind;
    const char *status;
} statuses[] = {
    { LLM_ERR_INVALID, "INVALID_ARGUMENT" },     { LLM_ERR_AUTH, "UNAUTHENTICATED" },
    { LLM_ERR_PERMISSION, "PERMISSION_DENIED" }, { LLM_ERR_NOT_FOUND, "NOT_FOUND" },
    { LLM_ERR_RATE, "RESOURCE_EXHAUSTED" },      { LLM_ERR_SERVER, "INTERNAL" },
    { LLM_ERR_OVERLOADED, "UNAVAILABLE" },       { LLM_ERR_TIMEOUT, "DEADLINE_EXCEEDED" },
    { LLM_ERR_INVALID, "FAILED_PRECONDITION" },  { LLM_ERR_CONTEXT, "INVALID_ARGUMENT" },
    { LLM_ERR_TOO_LARGE, "INVALID_ARGUMENT" },   { LLM_ERR_QUOTA, "RESOURCE_EXHAUSTED" },
};

static const char *status_of(enum llm_error_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (statuses[i].kind == kind) {
            return statuses[i].status;
        }
    }
    return "UNKNOWN";
}

/* Gemini CLI goes on trying after a 429 unless a quota "PerDay" is named as the one that is
 * exhausted; ours is just as final. */
static void put_quota(struct arena *a, struct json *error)
{
    struct json *detail = json_object(a);
    struct json *violation = json_object(a);
    llm_set_cstr(a, detail, "@type", "type.googleapis.com/google.rpc.QuotaFailure");
    json_push(a, llm_set_array(a, detail, "violations"), violation);
    llm_set_cstr(a, violation, "quotaId", "BudgetPerDay");
    json_push(a, llm_set_array(a, error, "details"), detail);
}

struct json *gemini_error_write(struct arena *a, const struct llm_error *error)
{
    struct json *v = json_object(a);
    struct json *inner = llm_set_object(a, v, "error");
    llm_set_int(a, inner, "code", error->status);
    struct str message = error->message;
    if (error->kind == LLM_ERR_CONTEXT && !llm_says_context(message)) { /* the only sign of it */
        message = str_of(arena_printf(
            a, "the input exceeds the maximum number of tokens allowed: %.*s", STR_ARG(message)));
    }
    llm_set_str(a, inner, "message", message);
    llm_set_cstr(a, inner, "status", status_of(error->kind));
    if (error->kind == LLM_ERR_QUOTA) {
        put_quota(a, inner);
    }
    return v;
}

/* What the details say that status and code do not. */
static void read_details(const struct json *details, struct llm_error *ret)
{
    for (size_t i = 0; json_is(details, JSON_ARRAY) && i < json_len(details); i++) {
        const struct json *d = json_item(details, i);
        const struct json *violations = json_get(d, "violations");
        if (str_eqc(json_str(json_get(d, "reason"), STR_EMPTY), "API_KEY_INVALID")) {
            ret->kind = LLM_ERR_AUTH;
        }
        for (size_t j = 0; json_is(violations, JSON_ARRAY) && j < json_len(violations); j++) {
            struct str quota = json_str(json_get(json_item(violations, j), "quotaId"), STR_EMPTY);
            if (str_find(quota, STR("PerDay")) < quota.len) {
                ret->kind = LLM_ERR_QUOTA;
            }
        }
    }
}

void gemini_error_read(const struct json *body, struct llm_error *ret)
{
    /* A failed stream that is a list has the error in its first entry. */
    const struct json *error =
        json_get(json_is(body, JSON_ARRAY) ? json_item(body, 0) : body, "error");
    int64_t code = json_int(json_get(error, "code"), 0);
    if (ret->status == 0 && code >= 400 && code < 600) {
        ret->status = (int)code;
        ret->kind = llm_error_kind_of(ret->status);
    }
    ret->message = json_str(json_get(error, "message"), ret->message);
    ret->type = json_str(json_get(error, "status"), ret->type);
    for (size_t i = 0; i < ARRAY_LEN(statuses) && code == 0; i++) {
        if (str_eqc(ret->type, statuses[i].status)) {
            ret->kind = statuses[i].kind;
            break;
        }
    }
    read_details(json_get(error, "details"), ret);
    if (ret->kind == LLM_ERR_INVALID && llm_says_context(ret->message)) {
        ret->kind = LLM_ERR_CONTEXT;
    }
}

/* --- the table --- */

/* What no other format can answer. */
static const char *unportable(struct arena *a, const struct llm_request *r)
{
    static const char *const configs[] = { "generationConfig", "generation_config" };
    static const char *const modalities[] = { "responseModalities", "response_modalities" };
    (void)a;
    for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
        const struct json *config = json_get(r->extra, configs[i]);
        if (json_int(json_get(config, "candidateCount"), 1) > 1 ||
            json_int(json_get(config, "candidate_count"), 1) > 1) {
            return "candidateCount: several candidates are available from gemini servers only";
        }
        if (json_bool(json_get(config, "responseLogprobs"), false) ||
            json_bool(json_get(config, "response_logprobs"), false)) {
            return "responseLogprobs: token probabilities are available from gemini servers only";
        }
        for (size_t j = 0; j < ARRAY_LEN(modalities); j++) {
            const struct json *list = json_get(config, modalities[j]);
            for (size_t k = 0; json_is(list, JSON_ARRAY) && k < json_len(list); k++) {
                if (!str_eqc(json_str(json_item(list, k), STR_EMPTY), "TEXT")) {
                    return "responseModalities: images and audio as output are available from "
                           "gemini servers only";
                }
            }
        }
    }
    return NULL;
}

static const char *const essential[] = { "cachedContent", "cached_content", NULL };

/* Schemas and words of which the canonical form has the meaning, and roles that have none. */
static const char *const carried[] = {
    "parameters", "responseSchema", "response_schema", "thinkingLevel", "thinking_level", "role",
    NULL,
};

const struct llm_codec llm_codec_gemini = {
    .name = "gemini",
    .endpoint = gemini_endpoint,
    .path = gemini_path,
    .read = gemini_read,
    .write = gemini_write,
    .essential = essential,
    .unportable = unportable,
    .carried = carried,
    .reader_size = sizeof(struct gemini_reading),
    .read_event = gemini_read_event,
    .read_body = gemini_read_body,
    .read_end = gemini_read_end,
    .tap_wants = gemini_tap_wants,
    .writer_size = sizeof(struct gemini_writing),
    .gathers = true,
    .serial = true, /* a call is told whole, when it ends; in the order in which they began */
    .write_event = gemini_write_event,
    .write_body = gemini_write_body,
    .error_write = gemini_error_write,
    .error_read = gemini_error_read,
};
