/* SPDX-License-Identifier: MIT
 *
 * From the events of an answer to bytes with pauses. Faults of the wire happen here, after the
 * codec: what is cut, doubled or replaced by garbage are the bytes that the client would have got.
 */
#include "replay/script_priv.h"

#include <stdlib.h>

#include "base/buf.h"
#include "llm/codec.h"
#include "replay/playback.h"

/* The bytes of one answer, and the pieces it goes out in; both are reached only by scripts that
 * expand a huge capture. */
#define BODY_MAX   ((size_t)64 << 20)
#define FRAMES_MAX ((size_t)1 << 20)

/* When every scripted answer was "created": 2026-01-01. A clock would make the bytes differ. */
#define CREATED 1767225600

#define GARBAGE_LEN 256

/* A frame while the body still moves: offsets instead of pointers. */
struct mark {
    nsec wait;
    size_t end;
};

struct rendering {
    struct buf body;
    struct mark *marks;
    size_t n, cap;
};

static void cleanup_rendering(struct rendering *g)
{
    buf_done(&g->body);
    free(g->marks);
}

static int add_mark(struct rendering *g, nsec wait, size_t end, struct err *e)
{
    if (g->n >= FRAMES_MAX) {
        return ERR(e, ERR_LIMIT, "an answer of more than %zu pieces", FRAMES_MAX);
    }
    if (g->n == g->cap) {
        g->cap = g->cap == 0 ? 32 : g->cap * 2;
        g->marks = xrealloc(g->marks, g->cap * sizeof *g->marks);
    }
    g->marks[g->n++] = (struct mark) { wait, end };
    return 0;
}

static int render_events(struct rendering *g, const struct script_answer *answer,
                         const struct llm_request *how, struct err *e)
{
    struct llm_writer *w = llm_writer_new(&(struct llm_writer_opts) {
        .format = how->format,
        .stream = how->stream,
        .list = how->list,
        .include_usage = how->include_usage,
        .model = answer->n_events > 0 ? answer->events[0].event.model : how->model,
        .seed = answer->seed,
        .created = CREATED,
    });
    int r = 0;
    nsec wait = 0; /* of events that the format writes nothing for */
    for (size_t i = 0; r == 0 && i < answer->n_events; i++) {
        size_t before = g->body.len;
        r = llm_writer_event(w, &answer->events[i].event, &g->body, e);
        wait += answer->events[i].wait;
        if (r == 0 && g->body.len > before) {
            r = add_mark(g, wait, g->body.len, e);
            wait = 0;
        }
    }
    llm_writer_free(w);
    return r;
}

static int render_error(struct rendering *g, const struct script_fault *f, enum llm_format format,
                        struct err *e)
{
    int r = 0;
    if (f->body == NULL) {
        r = llm_error_write(format, &f->error, &g->body, e);
    } else if (json_is(f->body, JSON_STRING)) {
        r = buf_append(&g->body, f->body->string, e);
    } else {
        r = json_write(f->body, JSON_COMPACT, &g->body, e);
    }
    return r < 0 ? r : add_mark(g, 0, g->body.len, e);
}

/* The bytes after `at` are gone, and the frames with them. */
static void truncate_at(struct rendering *g, size_t at)
{
    if (at >= g->body.len) {
        return;
    }
    size_t n = 0;
    while (n < g->n && g->marks[n].end < at) {
        n++;
    }
    g->body.len = at;
    g->marks[n].end = at;
    g->n = at == 0 ? 0 : n + 1;
}

/* The n-th event of the stream once more, right behind itself. */
static int duplicate(struct rendering *g, int64_t n, struct err *e)
{
    struct str all = buf_str(&g->body);
    size_t from = 0;
    size_t to = 0;
    for (int64_t i = 0; i < n; i++) {
        from = to;
        size_t at = str_find(str_slice(all, from, all.len), STR("\n\n"));
        if (from + at >= all.len) {
            return 0; /* the stream has fewer */
        }
        to = from + at + 2;
    }
    CLEANUP(buf) struct buf tail = BUF_INIT(BODY_MAX);
    size_t len = to - from;
    int r = buf_append(&tail, str_slice(all, from, all.len), e);
    g->body.len = to;
    r = r < 0 ? r : buf_append(&g->body, buf_str(&tail), e);
    for (size_t i = 0; r == 0 && i < g->n; i++) {
        g->marks[i].end += g->marks[i].end >= to ? len : 0;
    }
    return r;
}

static int spoil(struct rendering *g, const struct script_answer *answer, struct err *e)
{
    const struct script_fault *f = &answer->fault;
    char noise[GARBAGE_LEN];
    uint64_t x = answer->seed | 1;
    for (size_t i = 0; i < sizeof noise; i++) { /* xorshift64 */
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        noise[i] = (char)(x >> 32);
    }
    truncate_at(g, (size_t)f->garbage);
    struct str text = f->garbage_text.len > 0 ? f->garbage_text : str_n(noise, sizeof noise);
    int r = buf_append(&g->body, text, e);
    return r < 0 ? r : add_mark(g, 0, g->body.len, e);
}

static int drip(struct rendering *g, const struct script_fault *f, struct err *e)
{
    size_t step = (size_t)f->drip;
    g->n = 0;
    int r = 0;
    for (size_t at = 0; r == 0 && at < g->body.len;) {
        at = g->body.len - at > step ? at + step : g->body.len;
        r = add_mark(g, f->drip_every, at, e);
    }
    return r;
}

static void hand_over(const struct rendering *g, struct playback *ret)
{
    struct str body = arena_str(ret->arena, buf_str(&g->body));
    struct playback_frame *frames = arena_array(ret->arena, g->n + 1, sizeof *frames);
    size_t from = 0;
    for (size_t i = 0; i < g->n; i++) {
        frames[i].wait = g->marks[i].wait;
        frames[i].bytes = str_slice(body, from, g->marks[i].end);
        from = g->marks[i].end;
    }
    ret->frames = frames;
    ret->n_frames = g->n;
}

/* The connection breaks, or nothing comes any more, after so many bytes or before the head. */
static void stop_at(struct rendering *g, int64_t at, enum playback_end end, struct playback *ret)
{
    if (at == SCRIPT_NEVER) {
        return;
    }
    ret->headless = at == SCRIPT_HEAD;
    ret->end = end;
    ret->error = (struct upstream_error) { .kind = UPSTREAM_CUT,
                                           .retry_after = -1,
                                           .message = "cut by the script" };
    truncate_at(g, at == SCRIPT_HEAD ? 0 : (size_t)at);
}

static int apply_faults(struct rendering *g, const struct script_answer *answer,
                        struct playback *ret, struct err *e)
{
    const struct script_fault *f = &answer->fault;
    int r = f->duplicate > 0 ? duplicate(g, f->duplicate, e) : 0;
    if (r == 0 && f->garbage >= 0) {
        r = spoil(g, answer, e);
    }
    stop_at(g, f->cut, PLAYBACK_FAILS, ret);
    stop_at(g, f->hang, PLAYBACK_HANGS, ret);
    return r == 0 && f->drip > 0 ? drip(g, f, e) : r;
}

int script_render(const struct script_answer *answer, const struct llm_request *how,
                  struct playback *ret, struct err *e)
{
    const struct script_fault *f = &answer->fault;
    CLEANUP(rendering) struct rendering g = { .body = BUF_INIT(BODY_MAX) };
    bool is_error = f->status != 0 || (f->in_stream && !how->stream);
    const char *type = llm_content_type(how->format, how->stream && !how->list);
    ret->delay = answer->delay;
    if (is_error) {
        ret->status = f->status != 0 ? f->status : llm_error_status(f->error.kind);
        type = json_is(f->body, JSON_STRING) ? "text/plain" : "application/json";
    }
    playback_field(ret, STR("content-type"), str_of(type));
    if (f->retry_after.len > 0) {
        playback_field(ret, STR("retry-after"), f->retry_after);
    }
    int r = is_error ? render_error(&g, f, how->format, e) : render_events(&g, answer, how, e);
    r = r < 0 ? r : apply_faults(&g, answer, ret, e);
    if (r == 0) {
        hand_over(&g, ret);
    }
    return r;
}
