/* SPDX-License-Identifier: MIT
 *
 * Requests and answers whose format both sides speak. Bytes of bodies are forwarded as they are; of
 * the request only the model, the limit of output or include_usage is set, in place, where a route
 * or a budget demands it. A tap reads along.
 */
#include "base/macro.h"
#include "gateway/admit.h"
#include "gateway/gateway_priv.h"
#include "gateway/target.h"

static bool is_one_of(struct str name, const char *const *names)
{
    while (*names != NULL && !http_name_is(name, *names)) {
        names++;
    }
    return *names != NULL;
}

/* Not for the upstream: the gateway sets these itself (without Accept-Encoding the response is
 * plain, and the tap can read it), or they would make another request of it, with the real key. */
static bool is_ours(const struct http_fields *all, struct str name)
{
    static const char *const own[] = { "host",
                                       "content-length",
                                       "accept-encoding",
                                       "expect",
                                       "forwarded",
                                       "x-forwarded-for",
                                       "x-forwarded-host",
                                       "x-forwarded-proto",
                                       "x-http-method-override",
                                       "x-http-method",
                                       "x-method-override",
                                       "x-original-url",
                                       "x-rewrite-url",
                                       NULL };
    return is_one_of(name, own) || admit_is_credential(name) || http_is_hop_by_hop(all, name);
}

/* Which account of the key's owner pays: not for a client to choose. */
static bool is_project(struct str name)
{
    static const char *const names[] = { "openai-organization", "openai-project",
                                         "x-goog-user-project", NULL };
    return is_one_of(name, names);
}

/* Where the upstream is to see the client's own credential: that, and the account it is for. */
static bool is_kept(const struct exchange *x, const struct http_field *field)
{
    return x->kind == EXCHANGE_MODEL && x->upstream->keeps_key &&
           (is_project(field->name) || admit_is_own_key(field, x->g->opts.token));
}

static struct http_fields request_fields(struct exchange *x)
{
    const struct http_fields *all = &x->head->fields;
    struct http_field *kept = arena_array(x->arena, all->len + 1, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < all->len; i++) {
        struct str name = all->items[i].name;
        if ((!is_ours(all, name) && !is_project(name)) || is_kept(x, &all->items[i])) {
            kept[n++] = all->items[i];
        }
    }
    return (struct http_fields) { kept, n };
}

/* Takes over `out` as the body for the upstream. */
static void set_body(struct exchange *x, struct buf *out)
{
    buf_done(&x->rewritten);
    x->rewritten = *out;
    x->request.body = buf_str(&x->rewritten);
}

/* The documented path, with another model where the path names it and the route says so. */
static struct str request_target(struct exchange *x)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    target_for_upstream(x->head->target, x->endpoint.model,
                        x->route != NULL ? x->route->model : NULL, &out);
    return arena_str(x->arena, buf_str(&out));
}

/* What the task wants, as an edit of the text. */
static int set_sampling(struct exchange *x, struct err *e)
{
    const struct str *version = http_find(&x->head->fields, "anthropic-version");
    const struct sampling_target target = { .body = x->request.body,
                                            .format = x->endpoint.format,
                                            .model = x->view.upstream_model,
                                            .version = version != NULL ? *version : STR_EMPTY,
                                            .refused = sampling_refusal(x->upstream->name) };
    struct buf out = BUF_INIT(x->rewritten.max);
    if (!exchange_wants_sampling(x)) {
        return 0;
    }
    int rc = sampling_edit(x->arena, &target, x->g->opts.sampling, &out, &x->sampling, e);
    exchange_set_sampling(x);
    struct scan now;
    if (rc == 0 && out.len > 0 && scan_request(buf_str(&out), &now)) {
        x->view.max_output = now.max_output;
    }
    /* A recording holds the requests as the client sent them. */
    if (rc < 0 || out.len == 0 || x->upstream->recorded) {
        buf_done(&out);
        return rc;
    }
    set_body(x, &out);
    return 0;
}

int passthrough_prepare(struct exchange *x, struct err *e)
{
    const char *model = x->route != NULL ? x->route->model : NULL;
    x->request.method = x->head->method;
    x->request.target = x->kind == EXCHANGE_MOUNT ? x->head->target : request_target(x);
    x->request.fields = request_fields(x);
    x->request.endpoint = x->endpoint;
    if (x->kind == EXCHANGE_MODEL && x->endpoint.model.len > 0) {
        x->request.endpoint = llm_endpoint_of(x->request.method, x->request.target);
    }
    x->request.body = body_str(&x->body);
    x->view.upstream_model = model != NULL ? str_of(model) : x->view.model;
    if (model != NULL && x->endpoint.format != LLM_GEMINI && x->scanned) {
        int rc = scan_set_model(x->request.body, &x->scan, str_of(model), &x->rewritten, e);
        if (rc < 0) {
            return rc;
        }
        x->request.body = buf_str(&x->rewritten);
    }
    return set_sampling(x, e);
}

int passthrough_limit(struct exchange *x, int64_t max_output, struct err *e)
{
    static const char *const names[LLM_FORMAT_MAX] = {
        [LLM_ANTHROPIC] = "max_tokens",
        [LLM_RESPONSES] = "max_output_tokens",
        [LLM_CHAT] = "max_completion_tokens",
        [LLM_GEMINI] = "maxOutputTokens",
    };
    const char *name =
        x->endpoint.call == LLM_CALL_COMPLETE ? "max_tokens" : names[x->endpoint.format];
    struct buf out = BUF_INIT(x->rewritten.max);
    struct scan now;
    /* The places of the first look are gone if the model was replaced. */
    int rc = scan_request(x->request.body, &now)
                 ? scan_set_max(x->request.body, &now, name, max_output, &out, e)
                 : ERR(e, ERR_PARSE, "the body is not a JSON object");
    if (rc < 0) {
        buf_done(&out);
        return rc;
    }
    set_body(x, &out);
    x->view.max_output = max_output;
    exchange_add_edit(x, name);
    return 0;
}

int passthrough_ask_usage(struct exchange *x, struct err *e)
{
    enum llm_call_kind call = x->endpoint.call;
    struct buf out = BUF_INIT(x->rewritten.max);
    struct scan now;
    if ((call != LLM_CALL_GENERATE || x->endpoint.format != LLM_CHAT) &&
        call != LLM_CALL_COMPLETE) {
        return 0;
    }
    if (!scan_request(x->request.body, &now)) {
        return ERR(e, ERR_PARSE, "the body is not a JSON object");
    }
    if (!now.stream || now.include_usage) {
        return 0;
    }
    int rc = scan_set_include_usage(x->request.body, &now, &out, e);
    if (rc < 0) {
        buf_done(&out);
        return rc;
    }
    set_body(x, &out);
    x->asked_usage = true;
    exchange_add_edit(x, "stream_options.include_usage");
    return 0;
}

/* --- the answer --- */

static bool is_stream(const struct http_fields *f)
{
    const struct str *type = http_find(f, "content-type");
    return type != NULL && str_starts(*type, STR("text/event-stream"));
}

static int64_t known_length(const struct exchange *x)
{
    const struct str *value = http_find(&x->answer_fields, "content-length");
    int64_t n;
    return value != NULL && str_to_i64(*value, &n) && n >= 0 ? n : -1;
}

void passthrough_head(struct exchange *x)
{
    const struct http_fields *all = &x->answer_fields;
    struct http_field *kept = arena_array(x->arena, all->len + 1, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < all->len; i++) {
        bool framing = http_name_is(all->items[i].name, "content-length") ||
                       (x->encoded && http_name_is(all->items[i].name, "content-encoding"));
        if (!http_is_hop_by_hop(all, all->items[i].name) && !framing) {
            kept[n++] = all->items[i];
        }
    }
    if (x->kind == EXCHANGE_MODEL && x->endpoint.call == LLM_CALL_GENERATE && x->status < 400) {
        x->tap = llm_tap_new(&(struct llm_reader_opts) {
            .format = x->endpoint.format,
            .stream = is_stream(all),
            .sink = { exchange_on_event, x },
            .arena = x->arena,
        });
    }
    bool unread = x->endpoint.call == LLM_CALL_EMBED || x->endpoint.call == LLM_CALL_COMPLETE;
    if (x->kind == EXCHANGE_MODEL && unread && x->status < 400) {
        x->tail = ARENA_NEW(x->arena, struct usage_tail);
        x->tail->len = 0;
    }
    if (x->asked_usage && x->status < 400 && is_stream(all)) {
        x->usage_chunk = usage_chunk_new();
    }
    exchange_send_head(x, x->status, &(struct http_fields) { kept, n },
                       x->encoded               ? 0
                       : x->usage_chunk != NULL ? -1
                                                : known_length(x));
}

static void send_data(struct exchange *x, struct str bytes, bool last)
{
    if (x->usage_chunk == NULL) {
        exchange_send(x, bytes);
        return;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(USAGE_CHUNK_MAX + bytes.len);
    usage_chunk_feed(x->usage_chunk, bytes, &out);
    if (last) {
        usage_chunk_end(x->usage_chunk, &out);
    }
    exchange_send(x, buf_str(&out));
}

void passthrough_data(struct exchange *x, struct str bytes)
{
    send_data(x, bytes, false);
    if (x->tap != NULL && bytes.len > 0 && x->state == EXCHANGE_ANSWERING) {
        llm_tap_feed(x->tap, bytes);
    }
    if (x->tail != NULL) {
        usage_tail_add(x->tail, bytes);
    }
}

/* An embedding that reports nothing has no output either; a completion may have any. */
static void settle_tail(struct exchange *x)
{
    struct llm_usage usage;
    if (usage_tail_read(x->tail, &usage)) {
        x->done.usage = usage;
        x->done.ended = true;
    } else if (x->endpoint.call == LLM_CALL_EMBED) {
        x->done.usage.output = 0;
        x->done.ended = true;
    }
}

void passthrough_end(struct exchange *x)
{
    if (x->tail != NULL) {
        settle_tail(x);
    }
    send_data(x, STR_EMPTY, true);
    exchange_finish(x, true);
}
