/* SPDX-License-Identifier: MIT
 *
 * Driver `api`: cinch itself talks to a model and runs the loop of tool calls. One question is the
 * whole conversation so far in the wire format of the profile; the gateway behind it routes,
 * translates, meters and tries again, so nothing of that is here.
 */
#include <stdlib.h>

#include "adapters/api_context.h"
#include "adapters/driver.h"
#include "llm/codec.h"
#include "llm/dropped.h"

/* What a model may say at most, where neither task nor caller says it: Scylla's number. */
enum { MAX_TOKENS = 4096 };
/* Turns with calls; a model that goes on after so many will not come to an end. */
enum { TURNS_MAX = 200 };
/* For servers that have one model only, and scripts. */
#define NO_MODEL "default"
/* A provider's page of an error; the message is in its beginning. */
#define ERROR_BODY_MAX ((size_t)64 << 10)
/* Bytes of a request per token, until the first response says how many tokens it was. Code in
 * JSON has about 3.5; a low guess trims a little early. */
#define BYTES_PER_TOKEN 3.5
/* How often one request is sent again, shorter, because the provider says that it is too long. */
enum { OVERFLOWS_MAX = 3 };

/* A piece of the answer that is being received. */
struct piece {
    struct llm_part part;
    uint32_t block;
    struct buf text, signature;
};

/* The context window of the model. */
struct window {
    int64_t context;        /* tokens; 0: unknown, nothing is trimmed */
    double bytes_per_token; /* as measured */
    size_t shrink_to;       /* the provider wants it shorter: bytes; 0: no */
    int overflows;          /* in a row */
};

struct api {
    struct arena *arena; /* of the session: the conversation */
    struct entry_sink sink;
    struct agent_output output;
    struct llm_request request; /* head of every question */
    struct llm_message *messages;
    size_t n_messages, messages_cap;
    struct buf target, body;

    struct window window;

    /* the answer */
    struct llm_reader *reader;
    struct buf refusal; /* body of an answer with an error status */
    struct piece *pieces;
    size_t n_pieces, pieces_cap;
    enum llm_stop stop;
    struct llm_usage usage; /* of this answer */

    /* calls of the last answer that the client must run */
    const struct llm_message *calls; /* NULL: none are open */
    size_t next_call;
    struct llm_part *results;
    size_t n_results;

    struct agent_report report;
    struct buf text; /* of the last answer */
    bool over;
};

static void say(struct api *p, enum agent_stream stream, struct str text)
{
    if (p->output.write != NULL && text.len > 0) {
        p->output.write(p->output.owner, stream, text);
    }
}

static void add_entry(struct api *p, const char *type, const char *key, struct str text)
{
    struct arena *a = arena_new();
    struct json *detail = json_object(a);
    json_setc(a, detail, key, json_string(a, text));
    p->sink.entry(p->sink.owner, type, detail, STR_EMPTY);
    arena_free(a);
}

static void fail(struct api *p, const char *why)
{
    p->over = true;
    p->report.failed = true;
    p->report.error = arena_str(p->arena, str_of(why));
    say(p, AGENT_STDERR, p->report.error);
    say(p, AGENT_STDERR, STR("\n"));
}

/* --- the conversation --- */

static void add_message(struct api *p, enum llm_role role, const struct llm_part *parts, size_t n)
{
    if (p->n_messages == p->messages_cap) {
        p->messages_cap = p->messages_cap == 0 ? 16 : 2 * p->messages_cap;
        struct llm_message *more = arena_array(p->arena, p->messages_cap, sizeof *more);
        if (p->n_messages > 0) {
            memcpy(more, p->messages, p->n_messages * sizeof *more);
        }
        p->messages = more;
    }
    p->messages[p->n_messages++] =
        (struct llm_message) { .role = role, .parts = parts, .n_parts = n };
}

static struct llm_part *text_part(struct arena *a, struct str text)
{
    struct llm_part *part = ARENA_NEW(a, struct llm_part);
    *part = (struct llm_part) { .kind = LLM_PART_TEXT, .text = arena_str(a, text) };
    return part;
}

static void set_stops(struct api *p, struct str list)
{
    struct llm_sampling *s = &p->request.sampling;
    struct json *stops = NULL;
    if (list.len == 0 || json_parse(p->arena, list, NULL, &stops, NULL) < 0) {
        return;
    }
    struct str *words = arena_array(p->arena, json_len(stops) + 1, sizeof *words);
    for (size_t i = 0; i < json_len(stops); i++) {
        words[s->n_stops++] = json_str(json_item(stops, i), STR_EMPTY);
    }
    s->stops = words;
}

static void set_sampling(struct api *p, const struct launch_spec *spec)
{
    struct llm_sampling *s = &p->request.sampling;
    s->has_temperature = str_to_double(driver_var(spec, "temperature"), &s->temperature);
    s->has_top_p = str_to_double(driver_var(spec, "top_p"), &s->top_p);
    s->has_seed = str_to_i64(driver_var(spec, "seed"), &s->seed);
    s->has_presence = str_to_double(driver_var(spec, "presence_penalty"), &s->presence_penalty);
    s->has_frequency = str_to_double(driver_var(spec, "frequency_penalty"), &s->frequency_penalty);
    set_stops(p, driver_var(spec, "stop"));
    if (!str_to_i64(driver_var(spec, "max_tokens"), &s->max_tokens)) {
        int64_t own = spec->profile == NULL ? 0 : spec->profile->api.max_tokens;
        s->max_tokens = own > 0 ? own : MAX_TOKENS;
    }
    if (!str_to_i64(driver_var(spec, "context"), &p->window.context)) {
        p->window.context = spec->profile == NULL ? 0 : spec->profile->api.context;
    }
    struct llm_reasoning *q = &p->request.reasoning;
    q->effort = arena_str(p->arena, driver_var(spec, "effort"));
    q->given = q->effort.len > 0;
    q->off = str_eqc(q->effort, "none");
}

static void set_contract(struct api *p, const struct launch_spec *spec)
{
    if (spec->output_schema != NULL) {
        p->request.output = (struct llm_output) {
            .json = true,
            .schema = json_copy(p->arena, spec->output_schema),
            .name = STR("output"),
        };
    }
}

static enum llm_format format_of(const struct launch_spec *spec)
{
    enum llm_format f = LLM_ANTHROPIC;
    if (spec->profile != NULL && spec->profile->gateway.format != NULL) {
        (void)llm_format_parse(str_of(spec->profile->gateway.format), &f);
    }
    return f;
}

/* That of the profile, then that of the task. */
static void set_system_prompt(struct api *p, const struct launch_spec *spec)
{
    struct str own = spec->profile == NULL ? STR_EMPTY : spec->profile->api.system_prompt;
    struct str task = driver_var(spec, "system_prompt");
    struct err ignored;
    if (driver_var(spec, "system_prompt_none").len > 0 ||
        expand_text(p->arena, own, &spec->vars, false, &own, &ignored) < 0) {
        own = STR_EMPTY;
    }
    own = str_trim(own);
    if (own.len + task.len == 0) {
        return;
    }
    struct llm_part *part = text_part(
        p->arena, str_of(arena_printf(p->arena, "%.*s%s%.*s", STR_ARG(own),
                                      own.len > 0 && task.len > 0 ? "\n\n" : "", STR_ARG(task))));
    p->request.system = part;
    p->request.n_system = 1;
}

static void *api_open(const struct launch_spec *spec, struct entry_sink sink)
{
    struct api *p = xcalloc(1, sizeof *p);
    struct str model = driver_var(spec, "model");
    p->arena = arena_new();
    p->sink = sink;
    p->output = spec->output;
    buf_init(&p->target, BUF_TEXT);
    buf_init(&p->body, BUF_TEXT);
    buf_init(&p->refusal, ERROR_BODY_MAX);
    buf_init(&p->text, BUF_TEXT);
    p->request = (struct llm_request) {
        .format = format_of(spec),
        .model = model.len > 0 ? arena_str(p->arena, model) : STR(NO_MODEL),
        .stream = true,
        .include_usage = true,
        .tools = spec->tools.items,
        .n_tools = spec->tools.len,
    };
    p->window.bytes_per_token = BYTES_PER_TOKEN;
    set_system_prompt(p, spec);
    set_sampling(p, spec);
    set_contract(p, spec);
    add_message(p, LLM_USER, text_part(p->arena, spec->prompt), 1);
    return p;
}

/* --- the answer --- */

static struct piece *piece_of(struct api *p, uint32_t block, enum llm_part_kind kind)
{
    for (size_t i = 0; i < p->n_pieces; i++) {
        if (p->pieces[i].block == block) {
            return &p->pieces[i];
        }
    }
    if (p->n_pieces == p->pieces_cap) {
        p->pieces_cap = p->pieces_cap == 0 ? 8 : 2 * p->pieces_cap;
        p->pieces = xrealloc(p->pieces, p->pieces_cap * sizeof *p->pieces);
    }
    struct piece *piece = &p->pieces[p->n_pieces++];
    *piece = (struct piece) { .part = { .kind = kind }, .block = block };
    buf_init(&piece->text, BUF_TEXT);
    buf_init(&piece->signature, BUF_TEXT);
    return piece;
}

static void begin_call(struct api *p, const struct llm_event *ev)
{
    struct llm_call *c = &piece_of(p, ev->block, LLM_PART_CALL)->part.call;
    c->id = arena_str(p->arena, ev->id);
    c->name = arena_str(p->arena, ev->name);
    c->ns = arena_str(p->arena, ev->ns);
    c->custom = ev->custom;
    if (c->id.len == 0) { /* a format without ids: we need one for the result */
        c->id = str_of(arena_printf(p->arena, "call_%zu_%u", p->n_messages, ev->block));
    }
}

/* The reader bounds one event, not the whole answer. */
static void keep(struct api *p, struct buf *to, struct str text)
{
    if (buf_append(to, text, NULL) < 0) {
        fail(p, "the answer is too large");
    }
}

static void on_event(void *arg, const struct llm_event *ev)
{
    struct api *p = arg;
    struct piece *piece;
    switch (ev->kind) {
    case LLM_EV_START:
        if (ev->model.len > 0) {
            p->report.model = arena_str(p->arena, ev->model);
        }
        break;
    case LLM_EV_TEXT:
    case LLM_EV_REFUSAL:
        piece = piece_of(p, ev->block, ev->kind == LLM_EV_TEXT ? LLM_PART_TEXT : LLM_PART_REFUSAL);
        keep(p, &piece->text, ev->text);
        say(p, AGENT_STDOUT, ev->text);
        break;
    case LLM_EV_THINKING:
        piece = piece_of(p, ev->block, LLM_PART_THINKING);
        keep(p, &piece->text, ev->text);
        piece->part.id = piece->part.id.len > 0 ? piece->part.id : arena_str(p->arena, ev->id);
        break;
    case LLM_EV_SIGNATURE:
        piece = piece_of(p, ev->block, LLM_PART_THINKING);
        keep(p, &piece->signature, ev->text);
        piece->part.redacted = ev->redacted;
        break;
    case LLM_EV_CALL_BEGIN:
        begin_call(p, ev);
        break;
    case LLM_EV_CALL_DATA:
        keep(p, &piece_of(p, ev->block, LLM_PART_CALL)->text, ev->text);
        break;
    case LLM_EV_USAGE:
        llm_usage_update(&p->usage, &ev->usage);
        break;
    case LLM_EV_STOP:
        p->stop = ev->stop;
        break;
    case LLM_EV_ERROR:
        fail(p, arena_printf(p->arena, "the model's answer failed: %.*s",
                             STR_ARG(str_slice(ev->error.message, 0, 400))));
        break;
    case LLM_EV_END:
    case LLM_EV_CALL_END:
    case LLM_EV_PING:
    case LLM_EV_OTHER:
        break;
    }
}

/* Providers count what a request has; a proxy that says nonsense must not disturb the trimming. */
static void measure_tokens(struct api *p)
{
    const struct llm_usage *u = &p->usage;
    int64_t tokens = (u->input > 0 ? u->input : 0) + (u->cache_read > 0 ? u->cache_read : 0) +
                     (u->cache_write > 0 ? u->cache_write : 0);
    double ratio = tokens > 0 ? (double)p->body.len / (double)tokens : 0;
    if (tokens >= 200 && ratio >= 1.5 && ratio <= 8) {
        p->window.bytes_per_token = ratio;
    }
}

static void add_usage(struct api *p)
{
    struct agent_usage *u = &p->report.usage;
    const struct llm_usage *now = &p->usage;
    u->known = u->known || now->input >= 0 || now->output >= 0;
    u->input += now->input > 0 ? now->input : 0;
    u->output += now->output > 0 ? now->output : 0;
    u->cache_read += now->cache_read > 0 ? now->cache_read : 0;
    u->cache_write += now->cache_write > 0 ? now->cache_write : 0;
    u->reasoning += now->reasoning > 0 ? now->reasoning : 0;
    measure_tokens(p);
    p->usage = LLM_USAGE_NONE;
}

static struct json *call_detail(struct arena *a, const struct llm_call *c)
{
    struct json *detail = json_object(a);
    json_setc(a, detail, "tool_name", json_string(a, c->name));
    json_setc(a, detail, "tool_call_id", json_string(a, c->id));
    return detail;
}

/* After the words of the same answer: they lead up to the calls. */
static void tell_calls(struct api *p, const struct llm_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct llm_call *c = &parts[i].call;
        if (parts[i].kind != LLM_PART_CALL) {
            continue;
        }
        struct arena *a = arena_new();
        struct json *detail = call_detail(a, c);
        json_setc(a, detail, "input",
                  c->input != NULL ? json_copy(a, c->input) : json_string(a, c->text));
        p->sink.entry(p->sink.owner, "tool_use", detail, STR_EMPTY);
        arena_free(a);
    }
}

static void tell_result(struct api *p, const struct llm_call *c, struct str text, bool is_error)
{
    struct arena *a = arena_new();
    struct json *detail = call_detail(a, c);
    json_setc(a, detail, is_error ? "error" : "output", json_string(a, text));
    p->sink.entry(p->sink.owner, "tool_result", detail, STR_EMPTY);
    arena_free(a);
}

static struct json *input_of(struct arena *a, struct str text)
{
    struct json *v = NULL;
    if (str_trim(text).len == 0) {
        return json_object(a);
    }
    return json_parse(a, text, NULL, &v, NULL) == 0 && json_is(v, JSON_OBJECT) ? v : NULL;
}

/* The pieces as parts of a message, in the session's memory; the number of calls among them. */
static size_t settle_pieces(struct api *p, struct llm_part *parts)
{
    size_t calls = 0;
    buf_reset(&p->text);
    for (size_t i = 0; i < p->n_pieces; i++) {
        struct piece *from = &p->pieces[i];
        parts[i] = from->part;
        parts[i].text = arena_str(p->arena, buf_str(&from->text));
        parts[i].signature = arena_str(p->arena, buf_str(&from->signature));
        if (from->part.kind == LLM_PART_CALL) {
            struct llm_call *c = &parts[i].call;
            c->text = parts[i].text;
            c->input = c->custom ? NULL : input_of(p->arena, c->text);
            parts[i].text = STR_EMPTY;
            calls++;
        } else if (from->part.kind == LLM_PART_TEXT) {
            keep(p, &p->text, parts[i].text);
        } else if (from->part.kind == LLM_PART_THINKING && parts[i].text.len > 0) {
            add_entry(p, "thinking", "text", parts[i].text);
        }
        buf_done(&from->text);
        buf_done(&from->signature);
    }
    p->n_pieces = 0;
    return calls;
}

static void finish(struct api *p)
{
    p->over = true;
    if (p->stop == LLM_STOP_LENGTH) {
        fail(p,
             arena_printf(p->arena, "the answer was cut at %lld tokens: raise sampling.max_tokens",
                          (long long)p->request.sampling.max_tokens));
    } else if (p->stop == LLM_STOP_REFUSAL) {
        fail(p, "the model refused to answer");
    } else {
        p->report.result_seen = true;
    }
}

/* What the answer means for the conversation. */
static void settle(struct api *p)
{
    size_t n = p->n_pieces;
    struct llm_part *parts = arena_array(p->arena, n, sizeof *parts);
    size_t calls = settle_pieces(p, parts);
    add_message(p, LLM_ASSISTANT, parts, n);
    p->report.usage.turns++;
    if (p->text.len > 0) {
        say(p, AGENT_STDOUT, STR("\n"));
    }
    if (calls == 0 && p->stop != LLM_STOP_PAUSE) {
        finish(p);
        return;
    }
    bool limit = p->report.usage.turns >= TURNS_MAX;
    if (p->text.len > 0 && !limit) { /* the last one is told with the report */
        add_entry(p, "assistant_message", "text", buf_str(&p->text));
    }
    tell_calls(p, parts, n);
    if (limit) {
        fail(p, arena_printf(p->arena, "the conversation has not ended after %d turns", TURNS_MAX));
        return;
    }
    if (calls > 0) {
        p->calls = &p->messages[p->n_messages - 1];
        p->next_call = 0;
        p->results = arena_array(p->arena, calls, sizeof *p->results);
        p->n_results = 0;
    }
}

static void api_answer(void *self, int status, struct str bytes)
{
    struct api *p = self;
    struct err e = { 0 };
    if (p->over || p->reader == NULL) {
        return;
    }
    if (status >= 400) {
        keep(p, &p->refusal, str_slice(bytes, 0, ERROR_BODY_MAX - p->refusal.len));
    } else if (llm_reader_feed(p->reader, bytes, &e) < 0) {
        fail(p, e.msg);
    }
}

/* The same request once more, shorter, when that is what the provider complains about. */
static bool shrinks(struct api *p, int status, struct str message)
{
    if (p->window.context == 0 || p->window.overflows == OVERFLOWS_MAX ||
        !context_is_overflow(status, message)) {
        return false;
    }
    p->window.overflows++;
    p->window.shrink_to = p->body.len / 10 * 6;
    return true;
}

static void refused(struct api *p, int status)
{
    struct llm_error error;
    llm_error_read(p->arena, p->request.format, status, buf_str(&p->refusal), &error);
    if (shrinks(p, status, error.message)) {
        return;
    }
    fail(p, arena_printf(p->arena, "HTTP status %d: %.*s", status,
                         STR_ARG(str_slice(error.message, 0, 400))));
}

static void api_answered(void *self, int status, const char *error)
{
    struct api *p = self;
    struct err e = { 0 };
    if (!p->over && error != NULL) {
        fail(p, error);
    } else if (!p->over && status >= 400) {
        refused(p, status);
    } else if (!p->over && llm_reader_end(p->reader, &e) < 0) {
        fail(p, e.msg);
    }
    p->reader = llm_reader_free(p->reader);
    add_usage(p);
    if (!p->over && p->window.shrink_to == 0) {
        p->window.overflows = 0;
        settle(p);
    }
}

/* --- calls --- */

static const struct llm_call *open_call(struct api *p)
{
    while (p->calls != NULL && p->next_call < p->calls->n_parts) {
        const struct llm_part *part = &p->calls->parts[p->next_call];
        if (part->kind == LLM_PART_CALL) {
            return &part->call;
        }
        p->next_call++;
    }
    return NULL;
}

static void api_result(void *self, struct str text, bool is_error)
{
    struct api *p = self;
    const struct llm_call *c = open_call(p);
    if (c == NULL) {
        return;
    }
    struct llm_part *part = &p->results[p->n_results++];
    part->kind = LLM_PART_RESULT;
    part->result = (struct llm_result) {
        .call_id = c->id,
        .name = c->name,
        .custom = c->custom,
        .is_error = is_error,
        .parts = text_part(p->arena, text),
        .n_parts = 1,
    };
    tell_result(p, c, text, is_error);
    p->next_call++;
}

/* In Chat every result is a message of its own; in the others they are parts of one. */
static void add_results(struct api *p)
{
    bool apart = p->request.format == LLM_CHAT;
    p->calls = NULL;
    for (size_t i = 0; apart && i < p->n_results; i++) {
        add_message(p, LLM_USER, &p->results[i], 1);
    }
    if (!apart) {
        add_message(p, LLM_USER, p->results, p->n_results);
    }
}

/* --- questions --- */

/* Anthropic keeps what is before a mark in its cache; the others do so by themselves. */
static const struct llm_part *marked(struct arena *a, const struct llm_part *parts, size_t n)
{
    struct llm_part *copy = arena_array(a, n, sizeof *copy);
    memcpy(copy, parts, n * sizeof *copy);
    struct json *kind = json_object(a), *extra = json_object(a);
    json_setc(a, kind, "type", json_cstr(a, "ephemeral"));
    json_setc(a, extra, "cache_control", kind);
    copy[n - 1].extra = extra;
    return copy;
}

static bool can_mark(const struct llm_part *parts, size_t n)
{
    return n > 0 && parts[n - 1].extra == NULL &&
           (parts[n - 1].kind == LLM_PART_TEXT || parts[n - 1].kind == LLM_PART_RESULT);
}

/* The request as it is now into `body`; what is made for it is gone afterwards. */
static int write_body(struct api *p, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct llm_request q = p->request;
    struct llm_message *messages = arena_array(a, p->n_messages, sizeof *messages);
    memcpy(messages, p->messages, p->n_messages * sizeof *messages);
    struct llm_message *last = &messages[p->n_messages - 1];
    q.messages = messages;
    q.n_messages = p->n_messages;
    if (q.format == LLM_ANTHROPIC && p->window.context > 0) { /* an agent: many requests alike */
        q.system = can_mark(q.system, q.n_system) ? marked(a, q.system, q.n_system) : q.system;
        last->parts = can_mark(last->parts, last->n_parts) ? marked(a, last->parts, last->n_parts)
                                                           : last->parts;
    }
    buf_reset(&p->body);
    return llm_request_write(a, q.format, &q, NULL, &p->body, e);
}

static void report_trim(struct api *p, size_t before, const struct context_trim *t)
{
    struct arena *a = arena_new();
    struct json *detail = json_object(a);
    json_setc(a, detail, "subtype", json_cstr(a, "context_trimmed"));
    json_setc(a, detail, "bytes_before", json_integer(a, (int64_t)before));
    json_setc(a, detail, "bytes_after", json_integer(a, (int64_t)p->body.len));
    json_setc(a, detail, "tokens_before",
              json_integer(a, (int64_t)((double)before / p->window.bytes_per_token)));
    json_setc(a, detail, "results", json_integer(a, (int64_t)t->results));
    json_setc(a, detail, "calls", json_integer(a, (int64_t)t->calls));
    p->sink.entry(p->sink.owner, "system_event", detail, STR_EMPTY);
    arena_free(a);
}

/* Far below the limit, so that it is rare: each time the provider's cache begins anew. */
static int fit_context(struct api *p, struct err *e)
{
    double room = (double)(p->window.context - p->request.sampling.max_tokens);
    size_t most = (size_t)((room > 1000 ? room : 1000) * p->window.bytes_per_token);
    size_t before = p->body.len;
    struct context_trim t = { .bytes = before, .target = p->window.shrink_to };
    if (p->window.context == 0 || (p->window.shrink_to == 0 && before <= most)) {
        return 0;
    }
    t.target = t.target > 0 ? t.target : most / 10 * 6;
    p->window.shrink_to = 0;
    if (!context_shorten(p->arena, p->messages, p->n_messages, &t)) {
        return 0;
    }
    int r = write_body(p, e);
    if (r == 0) {
        report_trim(p, before, &t);
    }
    return r;
}

static int next_question(struct api *p, struct driver_request *ret, struct err *e)
{
    buf_reset(&p->target);
    buf_reset(&p->refusal);
    int r = llm_path(p->request.format, p->request.model, true, &p->target, e);
    r = r < 0 ? r : write_body(p, e);
    r = r < 0 ? r : fit_context(p, e);
    if (r < 0) {
        return r;
    }
    p->stop = LLM_STOP_END;
    p->usage = LLM_USAGE_NONE;
    p->reader = llm_reader_free(p->reader);
    p->reader = llm_reader_new(&(struct llm_reader_opts) {
        .format = p->request.format, .stream = true, .sink = { on_event, p } });
    p->report.usage.api_calls++;
    ret->format = p->request.format;
    ret->target = buf_str(&p->target);
    ret->body = buf_str(&p->body);
    return DRIVER_REQUEST;
}

static int api_ask(void *self, struct driver_request *ret, struct err *e)
{
    struct api *p = self;
    const struct llm_call *c;
    *ret = (struct driver_request) { 0 };
    if (p->over) {
        return DRIVER_DONE;
    }
    if ((c = open_call(p)) != NULL) { /* also of a tool that nobody offered: that is the run's */
        ret->call = c;
        return DRIVER_TOOL_CALL;
    }
    if (p->calls != NULL) {
        add_results(p);
    }
    return next_question(p, ret, e);
}

/* --- the end --- */

static void api_end(void *self, struct agent_report *ret)
{
    struct api *p = self;
    p->report.text = buf_str(&p->text);
    *ret = p->report;
}

static void api_close(void *self)
{
    struct api *p = self;
    llm_reader_free(p->reader);
    for (size_t i = 0; i < p->n_pieces; i++) {
        buf_done(&p->pieces[i].text);
        buf_done(&p->pieces[i].signature);
    }
    free(p->pieces);
    buf_done(&p->target);
    buf_done(&p->body);
    buf_done(&p->refusal);
    buf_done(&p->text);
    arena_free(p->arena);
    free(p);
}

/* The list may be another one in every question; calls of a tool that is gone are answered. */
static void api_offer(void *self, struct driver_tools tools)
{
    struct api *p = self;
    p->request.tools = tools.items;
    p->request.n_tools = tools.len;
}

static void api_say(void *self, struct str text)
{
    struct api *p = self;
    if (p->text.len > 0) { /* only the last one is told with the report */
        add_entry(p, "assistant_message", "text", buf_str(&p->text));
    }
    add_message(p, LLM_USER, text_part(p->arena, text), 1);
    p->over = false;
    p->report.result_seen = false;
}

static const struct driver_model_ops model_ops = {
    .next = api_ask,
    .response = api_answer,
    .response_end = api_answered,
    .tool_result = api_result,
    .offer = api_offer,
    .prompt = api_say,
};

const struct driver driver_api = {
    .name = "api",
    .kind = DRIVER_MODEL_LOOP,
    .tier_prompt = "system",
    .open = api_open,
    .end = api_end,
    .close = api_close,
    .model = &model_ops,
};
