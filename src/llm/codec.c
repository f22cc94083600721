/* SPDX-License-Identifier: MIT
 *
 * The table of formats and what goes through it in one step: endpoints, requests, errors. Readers
 * and writers of answers have files of their own.
 */
#include "llm/codec.h"

#include "llm/codec_priv.h"

static const struct llm_codec *const codecs[LLM_FORMAT_MAX] = {
    [LLM_ANTHROPIC] = &llm_codec_anthropic,
    [LLM_RESPONSES] = &llm_codec_responses,
    [LLM_CHAT] = &llm_codec_chat,
    [LLM_GEMINI] = &llm_codec_gemini,
};

const struct llm_codec *llm_codec_of(enum llm_format f)
{
    return codecs[f < LLM_FORMAT_MAX ? f : LLM_CHAT];
}

const char *llm_format_name(enum llm_format f)
{
    return llm_codec_of(f)->name;
}

bool llm_format_parse(struct str name, enum llm_format *ret)
{
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        if (str_eqc(name, codecs[f]->name)) {
            *ret = f;
            return true;
        }
    }
    return false;
}

/* --- endpoints --- */

/* Takes "/v1", "/v1beta", "/v1alpha" off the front and returns it. */
static struct str take_version(struct str *path)
{
    static const char *const versions[] = { "/v1", "/v1beta", "/v1alpha", "/v1beta1" };
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct str v = str_of(versions[i]);
        if (str_starts(*path, v) && path->len > v.len && path->ptr[v.len] == '/') {
            *path = str_slice(*path, v.len, path->len);
            return v;
        }
    }
    return STR_EMPTY;
}

/* Anthropic and OpenAI share this path; who cares looks at the client's headers. */
static void models_endpoint(struct str version, struct str path, struct llm_endpoint *ret)
{
    struct str prefix = STR("/models");
    if (!str_starts(path, prefix) || (path.len > prefix.len && path.ptr[prefix.len] != '/')) {
        return;
    }
    ret->call = LLM_CALL_MODELS;
    ret->format = version.len > 3 ? LLM_GEMINI : LLM_CHAT;
    ret->model = str_slice(path, prefix.len + 1, path.len);
}

/* Is it `prefix`, or a path below it? */
static bool is_below(struct str path, const char *prefix)
{
    struct str p = str_of(prefix);
    return str_starts(path, p) && (path.len == p.len || path.ptr[p.len] == '/');
}

/* What is stored at the provider. `path` is without its version. */
static bool account_endpoint(struct str version, struct str path, struct llm_endpoint *ret)
{
    static const struct {
        const char *path;
        enum llm_call_kind call;
        enum llm_format format;
    } known[] = {
        { "/files", LLM_CALL_FILES, LLM_CHAT },
        { "/uploads", LLM_CALL_FILES, LLM_CHAT },
        { "/batches", LLM_CALL_BATCHES, LLM_CHAT },
        { "/messages/batches", LLM_CALL_BATCHES, LLM_ANTHROPIC },
        { "/responses", LLM_CALL_STORED, LLM_RESPONSES },
        { "/conversations", LLM_CALL_STORED, LLM_RESPONSES },
        { "/chat/completions", LLM_CALL_STORED, LLM_CHAT },
    };
    /* No action of Google's but these: "/files/models/M:generateContent" would be a model call. */
    bool acts = memchr(path.ptr, ':', path.len) != NULL && !str_ends(path, STR(":cancel")) &&
                !str_ends(path, STR(":download"));
    for (size_t i = 0; !acts && i < ARRAY_LEN(known); i++) {
        if (is_below(path, known[i].path)) {
            ret->call = known[i].call;
            ret->format = known[i].format;
            ret->shared = i == 0 && version.len <= 3;
            bool google = version.len > 3;
            ret->format = google ? LLM_GEMINI : ret->format;
            return !google || ret->call == LLM_CALL_FILES || ret->call == LLM_CALL_BATCHES;
        }
    }
    if (version.len > 3 && is_below(path, "/models") &&
        str_ends(path, STR(":batchGenerateContent"))) {
        ret->call = LLM_CALL_BATCHES;
        ret->format = LLM_GEMINI;
        return true;
    }
    return false;
}

/* "/responses/compact" makes a response, which nobody would meter. */
static bool is_stored(struct str method, struct str path, const struct llm_endpoint *ep)
{
    bool reads = str_eqc(method, "GET") || str_eqc(method, "HEAD") || str_eqc(method, "DELETE");
    if (ep->call != LLM_CALL_STORED) {
        return reads || str_eqc(method, "POST");
    }
    return reads || (str_eqc(method, "POST") &&
                     (str_ends(path, STR("/cancel")) || is_below(path, "/conversations")));
}

static struct llm_endpoint stored_endpoint(struct str method, struct str version, struct str path)
{
    struct llm_endpoint ep = { .call = LLM_CALL_NONE, .model = STR_EMPTY };
    struct str upload = STR("/upload");
    if (version.len == 0 && is_below(path, "/upload")) { /* Gemini */
        path = str_slice(path, upload.len, path.len);
        version = take_version(&path);
    }
    if (account_endpoint(version, path, &ep) && is_stored(method, path, &ep)) {
        return ep;
    }
    return (struct llm_endpoint) { .call = LLM_CALL_NONE, .model = STR_EMPTY };
}

struct llm_endpoint llm_endpoint_of(struct str method, struct str target)
{
    struct llm_endpoint ep = { .call = LLM_CALL_NONE, .model = STR_EMPTY };
    struct str query = target;
    struct str path = str_split(&query, '?');
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    struct str version = take_version(&path);
    if (str_eqc(method, "GET") || str_eqc(method, "HEAD")) {
        models_endpoint(version, path, &ep);
        return ep.call != LLM_CALL_NONE ? ep : stored_endpoint(method, version, path);
    }
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        struct llm_endpoint found = { .format = f, .model = STR_EMPTY };
        if (codecs[f]->endpoint(method, path, query, &found)) {
            return found;
        }
    }
    return stored_endpoint(method, version, path);
}

int llm_path(enum llm_format f, struct str model, bool stream, struct buf *out, struct err *e)
{
    return llm_codec_of(f)->path(model, stream, out, e);
}

const char *llm_content_type(enum llm_format f, bool stream)
{
    return stream ? "text/event-stream" : "application/json";
}

/* --- requests --- */

const struct json_limits llm_json_limits = { .no_positions = true };

int llm_request_read(struct arena *a, const struct llm_endpoint *where, struct str body,
                     struct llm_request *ret, struct err *e)
{
    const struct llm_codec *codec = llm_codec_of(where->format);
    struct json *tree = NULL;
    int r = json_parse(a, body, &llm_json_limits, &tree, e);
    if (r < 0) {
        return err_wrap(e, "%s request", codec->name);
    }
    if (!json_is(tree, JSON_OBJECT)) {
        return LLM_BAD(e, "%s request: must be an object, not %s", codec->name,
                       json_type_name(tree->type));
    }
    struct llm_request request = { .format = where->format, .raw = tree };
    request.stream = where->stream;
    request.list = where->list;
    r = codec->read(a, where, tree, &request, e);
    if (r < 0) {
        return err_wrap(e, "%s request", codec->name);
    }
    *ret = request;
    return 0;
}

int llm_request_write(struct arena *a, enum llm_format f, const struct llm_request *r,
                      struct llm_losses *losses, struct buf *out, struct err *e)
{
    struct llm_request prepared;
    struct json *tree = NULL;
    if (r->format != f) {
        int result = llm_prepare(a, f, r, losses, &prepared, e);
        if (result < 0) {
            return result;
        }
        r = &prepared;
    }
    int result = llm_codec_of(f)->write(a, r, losses, &tree, e);
    if (result < 0) {
        return result;
    }
    return json_write(tree, JSON_COMPACT, out, e);
}

/* --- errors --- */

int llm_error_write(enum llm_format f, const struct llm_error *error, struct buf *out,
                    struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct llm_error full = *error;
    if (full.status == 0) {
        full.status = llm_error_status(full.kind);
    }
    return json_write(llm_codec_of(f)->error_write(a, &full), JSON_COMPACT, out, e);
}

#define LLM_ERROR_TEXT 500 /* bytes of a body that is no JSON (a proxy's page) worth keeping */

static struct str text_of_body(struct arena *a, struct str body)
{
    struct str s = str_slice(body, 0, LLM_ERROR_TEXT);
    return str_trim(arena_str(a, str_slice(s, 0, str_utf8_prefix(s))));
}

void llm_error_read(struct arena *a, enum llm_format f, int status, struct str body,
                    struct llm_error *ret)
{
    static const struct json_limits limits = { .max_bytes = 1 << 20, .max_depth = 64 };
    struct json *tree = NULL;
    *ret = (struct llm_error) {
        .kind = llm_error_kind_of(status),
        .status = status,
        .type = STR_EMPTY,
        .code = STR_EMPTY,
        .message = STR_EMPTY,
    };
    if (json_parse(a, body, &limits, &tree, NULL) == 0) {
        llm_codec_of(f)->error_read(tree, ret);
    }
    if (ret->message.len == 0) {
        ret->message = text_of_body(a, body);
    }
    if (ret->message.len == 0) {
        ret->message = str_of(arena_printf(a, "HTTP status %d without a body", status));
    }
    if (ret->kind == LLM_ERR_INVALID && llm_says_context(ret->message)) {
        ret->kind = LLM_ERR_CONTEXT;
    }
}
