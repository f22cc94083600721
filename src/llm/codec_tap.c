/* SPDX-License-Identifier: MIT
 *
 * The tap: reads what is metered out of an answer that passes unchanged. Of a stream it parses the
 * few events that a look at their bytes says may matter; of a body it keeps the skeleton, that is
 * everything but long strings. So its memory does not follow the length of an answer.
 */
#include <stdlib.h>

#include "llm/codec_priv.h"
#include "wire/sse.h"

#define EVENT_MAX    ((size_t)8 << 20) /* the last event of Responses repeats the request's tools */
#define SKELETON_MAX ((size_t)1 << 20) /* beyond it a body is not metered */
#define STRING_MAX   512               /* names, ids and models are shorter */

struct skeleton {
    struct buf out;
    size_t string; /* where the current one began in `out` */
    bool inside, escape, cut;
    bool begun; /* until then `out` is the body as it came */
    bool lost;  /* too large */
};

struct llm_tap {
    const struct llm_codec *codec;
    struct llm_read rd;
    struct arena *own; /* NULL: its memory is the owner's */
    struct llm_sink sink;
    struct sse sse;
    struct skeleton body;
    bool whole, decided, dead;
};

static void add(struct skeleton *s, const char *bytes, size_t n)
{
    s->lost = s->lost || buf_append(&s->out, str_n(bytes, n), NULL) < 0;
}

static void add_text(struct skeleton *s, const char *bytes, size_t n)
{
    s->cut = s->cut || s->out.len - s->string + n > STRING_MAX;
    if (!s->cut) {
        add(s, bytes, n);
    }
}

/* Inside of a string: takes bytes up to its end, or to the next that needs a look. */
static size_t string_bytes(struct skeleton *s, const char *p, size_t n)
{
    size_t i = 0;
    if (s->escape) {
        s->escape = false;
        add_text(s, p, 1);
        return 1;
    }
    while (i < n && p[i] != '"' && p[i] != '\\') {
        i++;
    }
    if (i > 0) {
        add_text(s, p, i);
        return i;
    }
    if (p[0] == '\\') {
        s->escape = true;
        add_text(s, p, 1);
        return 1;
    }
    if (s->cut) {
        s->out.len = s->string;
    }
    add(s, p, 1);
    s->inside = false;
    return 1;
}

static void skeleton_feed(struct skeleton *s, struct str bytes)
{
    for (size_t i = 0; i < bytes.len && !s->lost;) {
        const char *p = bytes.ptr + i;
        if (s->inside) {
            i += string_bytes(s, p, bytes.len - i);
            continue;
        }
        const char *quote = memchr(p, '"', bytes.len - i);
        size_t n = quote == NULL ? bytes.len - i : (size_t)(quote - p) + 1;
        add(s, p, n);
        i += n;
        s->inside = quote != NULL;
        s->cut = false;
        s->string = s->out.len;
    }
}

/* No string of a body that short is too long: it is kept as it is. */
static void body_feed(struct skeleton *s, struct str bytes)
{
    if (!s->begun && s->out.len + bytes.len <= STRING_MAX) {
        add(s, bytes.ptr, bytes.len);
        return;
    }
    if (!s->begun) {
        struct buf whole = s->out;
        buf_init(&s->out, SKELETON_MAX);
        s->begun = true;
        skeleton_feed(s, buf_str(&whole));
        buf_done(&whole);
    }
    skeleton_feed(s, bytes);
}

/* Neither words nor inputs of tools go further than this. */
static void pass(void *arg, const struct llm_event *ev)
{
    const struct llm_tap *t = arg;
    struct llm_event bare = { .kind = LLM_EV_CALL_BEGIN, .block = ev->block, .name = ev->name };
    switch (ev->kind) {
    case LLM_EV_CALL_BEGIN:
        bare.ns = ev->ns;
        t->sink.on_event(t->sink.arg, &bare);
        break;
    case LLM_EV_START:
    case LLM_EV_USAGE:
    case LLM_EV_STOP:
    case LLM_EV_ERROR:
    case LLM_EV_END:
        t->sink.on_event(t->sink.arg, ev);
        break;
    case LLM_EV_TEXT:
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
    case LLM_EV_REFUSAL:
    case LLM_EV_CALL_DATA:
    case LLM_EV_CALL_END:
    case LLM_EV_PING:
    case LLM_EV_OTHER:
        break;
    }
}

struct llm_tap *llm_tap_new(const struct llm_reader_opts *o)
{
    struct llm_tap *t = xcalloc(1, sizeof *t);
    t->codec = llm_codec_of(o->format);
    t->sink = o->sink;
    t->rd.tapping = true;
    t->rd.sink = (struct llm_sink) { .on_event = pass, .arg = t };
    t->own = o->arena == NULL ? arena_new() : NULL;
    t->rd.memory = t->own != NULL ? t->own : o->arena;
    t->rd.arena = o->stream ? arena_new() : t->rd.memory; /* a body is read once */
    t->rd.state = arena_alloc(t->rd.memory, t->codec->reader_size);
    t->whole = !o->stream;
    t->decided = !o->stream;
    sse_init(&t->sse, EVENT_MAX);
    buf_init(&t->body.out, SKELETON_MAX);
    return t;
}

struct llm_tap *llm_tap_free(struct llm_tap *t)
{
    if (t != NULL) {
        sse_done(&t->sse);
        buf_done(&t->body.out);
        if (t->rd.arena != t->rd.memory) {
            arena_free(t->rd.arena);
        }
        arena_free(t->own);
        free(t);
    }
    return NULL;
}

static void tap_event(struct llm_tap *t, const struct sse_event *ev)
{
    if (!t->rd.ended && t->codec->tap_wants(ev->name, ev->data)) {
        (void)t->codec->read_event(&t->rd, ev->name, ev->data, NULL);
        arena_reset(t->rd.arena);
    }
}

/* Blanks before the first other byte belong to the line that it is on, should it be a stream. */
static void decide(struct llm_tap *t, struct str bytes)
{
    struct str rest = str_trim(bytes);
    if (!t->decided && rest.len > 0) {
        t->decided = true;
        t->whole = rest.ptr[0] == '{' || rest.ptr[0] == '[';
    }
}

void llm_tap_feed(struct llm_tap *t, struct str bytes)
{
    struct sse_event ev;
    decide(t, bytes);
    if (t->dead) {
        return;
    }
    if (t->whole) {
        body_feed(&t->body, bytes);
        return;
    }
    sse_feed(&t->sse, bytes);
    int r;
    while ((r = sse_next(&t->sse, &ev, NULL)) > 0) {
        tap_event(t, &ev);
    }
    t->dead = r < 0;
}

void llm_tap_end(struct llm_tap *t)
{
    struct sse_event ev;
    struct json *v = NULL;
    if (t->whole && !t->body.lost && !t->dead) {
        if (json_parse(t->rd.arena, buf_str(&t->body.out), &llm_json_limits, &v, NULL) == 0) {
            (void)t->codec->read_body(&t->rd, v, NULL);
        }
    } else if (!t->whole && !t->dead) {
        if (sse_end(&t->sse, &ev)) {
            tap_event(t, &ev);
        }
        if (!t->rd.ended && t->codec->read_end != NULL) {
            t->codec->read_end(&t->rd);
        }
    }
    t->dead = true;
}
