/* SPDX-License-Identifier: MIT
 *
 * The shell of all readers: bytes to SSE events or one body, the codec of the format in the middle,
 * and events in their order out of it.
 */
#include <stdlib.h>

#include "llm/codec_priv.h"
#include "wire/sse.h"

#define MAX_BYTES ((size_t)32 << 20)

struct llm_reader {
    const struct llm_codec *codec;
    struct llm_read rd;
    struct sse sse;
    struct buf body;
    bool whole;    /* one JSON body, not events */
    bool decided;  /* … which the first byte of a stream tells */
    bool finished; /* failed or ended: further bytes are not read */
};

/* --- order --- */

static void send_event(struct llm_read *rd, const struct llm_event *ev)
{
    rd->sink.on_event(rd->sink.arg, ev);
}

static struct llm_open_call *open_call(struct llm_read *rd, uint32_t block)
{
    for (size_t i = rd->open.n; i > 0; i--) {
        if (rd->open.items[i - 1].block == block) {
            return &rd->open.items[i - 1];
        }
    }
    return NULL;
}

static void close_call(struct llm_read *rd, struct llm_open_call *c)
{
    struct llm_open_call call = *c;
    *c = rd->open.items[--rd->open.n];
    if (!call.has_data && !call.custom) {
        send_event(rd, &(struct llm_event) {
                           .kind = LLM_EV_CALL_DATA, .block = call.block, .text = STR("{}") });
    }
    send_event(rd, &(struct llm_event) {
                       .kind = LLM_EV_CALL_END, .block = call.block, .custom = call.custom });
}

static void close_calls(struct llm_read *rd)
{
    while (rd->open.n > 0) {
        struct llm_open_call *first = &rd->open.items[0];
        for (size_t i = 1; i < rd->open.n; i++) {
            first = rd->open.items[i].block < first->block ? &rd->open.items[i] : first;
        }
        close_call(rd, first);
    }
}

static void call_event(struct llm_read *rd, const struct llm_event *ev)
{
    struct llm_open_call *c = open_call(rd, ev->block);
    if (ev->kind == LLM_EV_CALL_BEGIN) {
        *LLM_ADD(rd->memory, &rd->open) =
            (struct llm_open_call) { .block = ev->block, .custom = ev->custom };
        rd->calls++;
        send_event(rd, ev);
    } else if (c != NULL && ev->kind == LLM_EV_CALL_DATA) {
        c->has_data = true;
        send_event(rd, ev);
    } else if (c != NULL) {
        close_call(rd, c);
    }
}

/* Servers differ in whether calls end a response with a reason of their own. */
static enum llm_stop stop_with_calls(const struct llm_read *rd)
{
    enum llm_stop stop = rd->has_stop ? rd->stop : LLM_STOP_END;
    if (rd->calls > 0 && (stop == LLM_STOP_END || stop == LLM_STOP_OTHER)) {
        return LLM_STOP_TOOL;
    }
    return rd->calls == 0 && stop == LLM_STOP_TOOL ? LLM_STOP_END : stop;
}

static void finish(struct llm_read *rd)
{
    close_calls(rd);
    send_event(rd, &(struct llm_event) {
                       .kind = LLM_EV_STOP,
                       .stop = stop_with_calls(rd),
                       .text = rd->has_stop ? rd->stop_text : STR_EMPTY,
                   });
    rd->ended = true;
    send_event(rd, &(struct llm_event) { .kind = LLM_EV_END });
}

static void fail(struct llm_read *rd, const struct llm_event *ev)
{
    rd->failed = true;
    rd->ended = true;
    send_event(rd, ev);
    send_event(rd, &(struct llm_event) { .kind = LLM_EV_END });
}

static void keep_stop(struct llm_read *rd, const struct llm_event *ev)
{
    close_calls(rd);
    rd->has_stop = true;
    rd->stop = ev->stop;
    rd->stop_text = ev->text.len > 0 ? arena_str(rd->memory, ev->text) : STR_EMPTY;
}

void llm_emit(struct llm_read *rd, const struct llm_event *ev)
{
    if (rd->ended) {
        return;
    }
    if (!rd->started && ev->kind != LLM_EV_PING && ev->kind != LLM_EV_ERROR) {
        rd->started = true;
        if (ev->kind != LLM_EV_START) {
            send_event(rd, &(struct llm_event) { .kind = LLM_EV_START });
        }
    } else if (ev->kind == LLM_EV_START) {
        return;
    }
    switch (ev->kind) {
    case LLM_EV_CALL_BEGIN:
    case LLM_EV_CALL_DATA:
    case LLM_EV_CALL_END:
        call_event(rd, ev);
        return;
    case LLM_EV_STOP:
        keep_stop(rd, ev);
        return;
    case LLM_EV_END:
        finish(rd);
        return;
    case LLM_EV_ERROR:
        fail(rd, ev);
        return;
    case LLM_EV_START:
    case LLM_EV_TEXT:
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
    case LLM_EV_REFUSAL:
    case LLM_EV_USAGE:
    case LLM_EV_PING:
    case LLM_EV_OTHER:
        break;
    }
    send_event(rd, ev);
}

void llm_emit_text(struct llm_read *rd, enum llm_event_kind kind, uint32_t block, struct str text)
{
    llm_emit(rd, &(struct llm_event) { .kind = kind, .block = block, .text = text });
}

void llm_emit_usage(struct llm_read *rd, const struct llm_usage *u)
{
    if (u->input >= 0 || u->output >= 0 || u->cache_read >= 0 || u->cache_write >= 0 ||
        u->reasoning >= 0) {
        llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_USAGE, .usage = *u });
    }
}

void llm_emit_stop(struct llm_read *rd, enum llm_stop stop, struct str text)
{
    llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_STOP, .stop = stop, .text = text });
}

void llm_emit_end(struct llm_read *rd)
{
    llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_END });
}

int llm_read_json(struct llm_read *rd, struct str data, struct json **ret, struct err *e)
{
    struct err why = { 0 };
    struct json *v = NULL;
    if (json_parse(rd->arena, data, &llm_json_limits, &v, &why) < 0) {
        return ERR(e, ERR_PROTO, "invalid response: an event is not JSON: %s", why.msg);
    }
    if (!json_is(v, JSON_OBJECT)) {
        return ERR(e, ERR_PROTO, "invalid response: an event is %s, not an object",
                   json_type_name(v->type));
    }
    *ret = v;
    return 0;
}

/* --- the reader --- */

struct llm_reader *llm_reader_new(const struct llm_reader_opts *o)
{
    struct llm_reader *r = xcalloc(1, sizeof *r);
    size_t max = o->max_bytes > 0 ? o->max_bytes : MAX_BYTES;
    r->codec = llm_codec_of(o->format);
    r->rd.sink = o->sink;
    r->rd.arena = arena_new();
    r->rd.memory = arena_new();
    r->rd.state = arena_alloc(r->rd.memory, r->codec->reader_size);
    r->whole = !o->stream;
    r->decided = !o->stream;
    sse_init(&r->sse, max);
    buf_init(&r->body, max);
    return r;
}

struct llm_reader *llm_reader_free(struct llm_reader *r)
{
    if (r != NULL) {
        sse_done(&r->sse);
        buf_done(&r->body);
        arena_free(r->rd.arena);
        arena_free(r->rd.memory);
        free(r);
    }
    return NULL;
}

static int read_event(struct llm_reader *r, const struct sse_event *ev, struct err *e)
{
    int result = r->codec->read_event(&r->rd, ev->name, ev->data, e);
    arena_reset(r->rd.arena);
    r->finished = result < 0 || r->rd.ended;
    return result;
}

/* Blanks before the first other byte belong to the line that it is on, should it be a stream. */
static void decide(struct llm_reader *r, struct str bytes)
{
    struct str rest = str_trim(bytes);
    if (!r->decided && rest.len > 0) {
        r->decided = true;
        r->whole = rest.ptr[0] == '{' || rest.ptr[0] == '[';
    }
}

int llm_reader_feed(struct llm_reader *r, struct str bytes, struct err *e)
{
    struct sse_event ev;
    int result = 0;
    decide(r, bytes);
    if (r->finished) {
        return 0;
    }
    if (r->whole) {
        result = buf_append(&r->body, bytes, e);
        r->finished = result < 0;
        return result < 0 ? err_wrap(e, "the answer is too large") : 0;
    }
    sse_feed(&r->sse, bytes);
    while (!r->finished) {
        result = sse_next(&r->sse, &ev, e);
        if (result <= 0) {
            r->finished = result < 0;
            return result;
        }
        result = read_event(r, &ev, e);
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

static int read_body(struct llm_reader *r, struct err *e)
{
    struct err why = { 0 };
    struct json *v = NULL;
    if (json_parse(r->rd.arena, buf_str(&r->body), &llm_json_limits, &v, &why) < 0) {
        return ERR(e, ERR_PROTO, "invalid response: %s", why.msg);
    }
    return r->codec->read_body(&r->rd, v, e);
}

int llm_reader_end(struct llm_reader *r, struct err *e)
{
    struct sse_event ev;
    int result = 0;
    if (r->rd.ended) {
        return 0;
    }
    if (!r->finished && r->whole) {
        result = read_body(r, e);
    } else if (!r->finished) {
        result = sse_end(&r->sse, &ev) ? read_event(r, &ev, e) : 0;
        if (result == 0 && !r->rd.ended && r->codec->read_end != NULL) {
            r->codec->read_end(&r->rd);
        }
    }
    r->finished = true;
    if (result < 0) {
        return result;
    }
    if (!r->rd.ended && !r->rd.started) {
        return ERR(e, ERR_PROTO, "invalid response: it is not in the expected format");
    }
    return r->rd.ended ? 0 : ERR(e, ERR_PROTO, "the response was cut short");
}
