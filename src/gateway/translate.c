/* SPDX-License-Identifier: MIT
 *
 * Requests and answers between two formats, through the canonical form of llm. The answer is
 * translated as it comes. What a format cannot say is refused or noted as a loss, which the event
 * of the call carries. The head of our answer waits for its first bytes: until then an upstream
 * that talks nonsense can still be told as an error.
 */
#include <stdlib.h>

#include "base/macro.h"
#include "gateway/gateway_priv.h"

#define ERROR_BODY_MAX ((size_t)1 << 20)
#define OUT_MAX        ((size_t)64 << 20)

struct translation {
    struct exchange *x;
    struct llm_request request;
    struct llm_losses losses; /* what is dropped */
    struct llm_reader *reader;
    struct llm_writer *writer;
    struct buf out;   /* for the client, of the bytes fed last */
    struct buf error; /* body of an answer with an error status */
    bool failed;      /* the writer could not; `why` */
    struct err why;
};

struct translation *translation_free(struct translation *t)
{
    if (t != NULL) {
        t->reader = llm_reader_free(t->reader);
        t->writer = llm_writer_free(t->writer);
        buf_done(&t->out);
        buf_done(&t->error);
        free(t);
    }
    return NULL;
}

/* --- the request --- */

static void set_fields(struct exchange *x)
{
    static const struct http_field fields[] = {
        { STR("Content-Type"), STR("application/json") },
        { STR("Accept"), STR("application/json, text/event-stream") },
        { STR("anthropic-version"), STR("2023-06-01") }, /* the last: only Anthropic wants it */
    };
    size_t n = ARRAY_LEN(fields) - (x->upstream->format == LLM_ANTHROPIC ? 0 : 1);
    x->request.fields = (struct http_fields) { fields, n };
}

static int write_request(struct exchange *x, struct err *e)
{
    struct translation *t = x->translation;
    buf_reset(&x->rewritten);
    int rc =
        llm_request_write(x->arena, x->upstream->format, &t->request, &t->losses, &x->rewritten, e);
    x->request.body = buf_str(&x->rewritten);
    return rc;
}

static void set_sampling(struct exchange *x)
{
    struct llm_request *r = &x->translation->request;
    const struct llm_sampling_mode mode = {
        .format = x->upstream->format,
        .model = r->model,
        .thinks = r->reasoning.given && !r->reasoning.off,
        .budget = r->reasoning.budget,
        .effort = r->reasoning.off ? STR("none") : r->reasoning.effort,
    };
    if (exchange_wants_sampling(x)) {
        sampling_merge(x->arena, &mode, sampling_refusal(x->upstream->name), x->g->opts.sampling,
                       &r->sampling, &x->sampling);
        exchange_set_sampling(x);
    }
}

int translate_prepare(struct exchange *x, struct err *e)
{
    struct translation *t = xcalloc(1, sizeof *t);
    CLEANUP(buf) struct buf path = BUF_INIT(BUF_TEXT);
    x->translation = t;
    t->x = x;
    buf_init(&t->out, OUT_MAX);
    buf_init(&t->error, ERROR_BODY_MAX);
    llm_losses_init(&t->losses, x->arena);
    x->losses = &t->losses;
    x->view.dropped = &t->losses;
    int rc = llm_request_read(x->arena, &x->endpoint, body_str(&x->body), &t->request, e);
    if (rc < 0) {
        return rc;
    }
    t->request.store = x->g->store;
    x->view.model = x->view.model.len > 0 ? x->view.model : t->request.model;
    if (x->route->model != NULL) {
        t->request.model = str_of(x->route->model);
    }
    x->view.upstream_model = t->request.model;
    set_sampling(x);
    x->view.max_output = t->request.sampling.max_tokens;
    rc = llm_path(x->upstream->format, t->request.model, t->request.stream, &path, e);
    rc = rc < 0 ? rc : write_request(x, e);
    x->request.method = STR("POST");
    x->request.target = arena_str(x->arena, buf_str(&path));
    x->request.endpoint = llm_endpoint_of(x->request.method, x->request.target);
    set_fields(x);
    return rc;
}

int translate_limit(struct exchange *x, int64_t max_output, struct err *e)
{
    x->translation->request.sampling.max_tokens = max_output;
    x->view.max_output = max_output;
    return write_request(x, e);
}

/* --- the answer --- */

static void on_event(void *arg, const struct llm_event *ev)
{
    struct translation *t = arg;
    exchange_on_event(t->x, ev);
    if (!t->failed && llm_writer_event(t->writer, ev, &t->out, &t->why) < 0) {
        t->failed = true;
    }
}

static bool is_stream(const struct http_fields *f)
{
    const struct str *type = http_find(f, "content-type");
    return type != NULL && str_starts(*type, STR("text/event-stream"));
}

/* For ids of calls: unique in a conversation, also in one that another run began, and the same
 * when that run is replayed. */
static uint64_t seed_of(const struct exchange *x)
{
    const struct llm_request *r = &x->translation->request;
    uint64_t calls = 0;
    for (size_t i = 0; i < r->n_messages; i++) {
        for (size_t j = 0; j < r->messages[i].n_parts; j++) {
            calls += r->messages[i].parts[j].kind == LLM_PART_CALL;
        }
    }
    return x->view.id + (calls << 32);
}

void translate_head(struct exchange *x)
{
    struct translation *t = x->translation;
    x->state = EXCHANGE_ANSWERING;
    if (x->status >= 400) {
        return;
    }
    t->reader = llm_reader_new(&(struct llm_reader_opts) {
        .format = x->upstream->format,
        .stream = is_stream(&x->answer_fields),
        .sink = { on_event, t },
    });
    t->writer = llm_writer_new(&(struct llm_writer_opts) {
        .format = x->endpoint.format,
        .stream = t->request.stream,
        .list = t->request.list,
        .include_usage = t->request.include_usage,
        .model = x->view.model,
        .seed = seed_of(x),
        .created = clock_wall() / NSEC_PER_SEC,
        .losses = &t->losses,
        .request = &t->request,
        .translated = true,
        .from = x->upstream->format,
        .store = x->g->store,
    });
}

/* What was dropped until now, as a header field; returns how many fields that are. */
static size_t add_dropped(struct exchange *x, struct http_field *ret)
{
    struct str list = llm_losses_line(x->arena, &x->translation->losses);
    *ret = (struct http_field) { STR("X-Cinch-Dropped"), list };
    return list.len > 0 ? 1 : 0;
}

/* What a client may look for in any response: the provider's id of the request, for its support,
 * and how much of the rate is left. Names differ between providers and are kept. */
static bool is_kept(struct str name)
{
    static const char *const names[] = { "request-id", "x-request-id", "retry-after",
                                         "retry-after-ms", "openai-processing-ms" };
    static const char *const prefixes[] = { "x-ratelimit-", "anthropic-ratelimit-" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (http_name_is(name, names[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        struct str prefix = str_of(prefixes[i]);
        if (http_name_is(str_slice(name, 0, prefix.len), prefixes[i])) {
            return true;
        }
    }
    return false;
}

/* The fields of our response: `type`, what is kept of the upstream's, and what was dropped. */
static struct http_fields response_fields(struct exchange *x, const char *type, bool cache)
{
    const struct http_fields *all = &x->answer_fields;
    struct http_field *fields = arena_array(x->arena, all->len + 3, sizeof *fields);
    size_t n = 0;
    fields[n++] = (struct http_field) { STR("Content-Type"), str_of(type) };
    if (!cache) {
        fields[n++] = (struct http_field) { STR("Cache-Control"), STR("no-cache") };
    }
    for (size_t i = 0; i < all->len; i++) {
        if (is_kept(all->items[i].name)) {
            fields[n++] = all->items[i];
        }
    }
    n += add_dropped(x, &fields[n]);
    return (struct http_fields) { fields, n };
}

/* Sends what the writer has made so far, behind our head. */
static void flush(struct exchange *x, bool last)
{
    struct translation *t = x->translation;
    if (t->out.len == 0) {
        return;
    }
    if (x->told_status == 0) {
        bool stream = t->request.stream;
        const char *type = llm_content_type(x->endpoint.format, stream && !t->request.list);
        struct http_fields fields = response_fields(x, type, false);
        exchange_send_head(x, 200, &fields, last && !stream ? (int64_t)t->out.len : -1);
    }
    exchange_send(x, buf_str(&t->out));
    buf_reset(&t->out);
}

/* The answer makes no sense from here on. What has begun as a stream ends with an error event, so
 * that the client does not take a part for the whole. */
static void fail(struct exchange *x, const char *why)
{
    struct translation *t = x->translation;
    const char *message = arena_printf(x->arena, "upstream '%s': %s", x->upstream->name, why);
    const struct llm_event error = {
        .kind = LLM_EV_ERROR,
        .usage = LLM_USAGE_NONE,
        .error = { .kind = LLM_ERR_SERVER, .status = 502, .message = str_of(message) },
    };
    if (x->told_status == 0) {
        exchange_refuse(x, NULL,
                        &(struct refusal) {
                            .status = 502, .kind = LLM_ERR_SERVER, .message = str_of(message) });
        return;
    }
    if (t->request.stream && !t->failed &&
        llm_writer_event(t->writer, &error, &t->out, NULL) == 0) {
        flush(x, false);
    }
    exchange_finish(x, false);
}

void translate_data(struct exchange *x, struct str bytes)
{
    struct translation *t = x->translation;
    struct err e;
    if (x->state != EXCHANGE_ANSWERING || bytes.len == 0) {
        return;
    }
    if (x->status >= 400) {
        (void)!buf_append(&t->error, bytes, NULL); /* an error beyond a megabyte is cut */
        return;
    }
    int rc = llm_reader_feed(t->reader, bytes, &e);
    if (t->request.stream) {
        flush(x, false);
    }
    if (x->state == EXCHANGE_ANSWERING && (rc < 0 || t->failed)) {
        fail(x, rc < 0 ? e.msg : t->why.msg);
    }
}

static void end_error(struct exchange *x)
{
    struct translation *t = x->translation;
    struct llm_error error;
    struct http_fields fields = response_fields(x, "application/json", true);
    llm_error_read(x->arena, x->upstream->format, x->status, buf_str(&t->error), &error);
    if (llm_error_write(x->endpoint.format, &error, &t->out, NULL) < 0) {
        buf_reset(&t->out);
    }
    exchange_send_head(x, error.status != 0 ? error.status : x->status, &fields,
                       (int64_t)t->out.len);
    exchange_send(x, buf_str(&t->out));
    exchange_finish(x, true);
}

void translate_end(struct exchange *x)
{
    struct translation *t = x->translation;
    struct err e;
    if (x->status >= 400) {
        end_error(x);
        return;
    }
    int rc = llm_reader_end(t->reader, &e);
    if (rc == 0 && !t->failed) {
        flush(x, true);
        exchange_finish(x, x->told_status != 0);
    } else {
        fail(x, rc < 0 ? e.msg : t->why.msg);
    }
}

void translate_cut(struct exchange *x)
{
    fail(x, "the answer broke off");
}
