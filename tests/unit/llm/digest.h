/* SPDX-License-Identifier: MIT
 *
 * What an answer says, as text: one line per block in the order in which they began, pieces joined,
 * then usage, stop and end. Two answers with the same digest mean the same, whatever the chunks and
 * the interleaving were. Breaches of the order that llm/event.h promises are in it, too.
 */
#pragma once

#include "wire_forms.h"

struct digest_block {
    struct llm_event first;
    struct buf text, signature;
    bool ended, redacted;
};

struct digest {
    struct arena *a;
    struct digest_block blocks[256];
    size_t n;
    struct buf out;   /* start, complaints, others; then everything */
    struct buf notes; /* OTHER events, as they came */
    struct llm_usage usage;
    bool started, stopped, ended, failed;
    struct buf tail;
    bool plain; /* without start, ids, thoughts and signatures: what every format carries */
};

static inline void digest_init(struct digest *d)
{
    memset(d, 0, sizeof *d);
    d->a = arena_new();
    d->usage = LLM_USAGE_NONE;
    buf_init(&d->out, BUF_TEXT);
    buf_init(&d->notes, BUF_TEXT);
    buf_init(&d->tail, BUF_TEXT);
}

static inline void digest_done(struct digest *d)
{
    for (size_t i = 0; i < d->n; i++) {
        buf_done(&d->blocks[i].text);
        buf_done(&d->blocks[i].signature);
    }
    buf_done(&d->out);
    buf_done(&d->notes);
    buf_done(&d->tail);
    arena_free(d->a);
}

static inline struct digest_block *digest_block(struct digest *d, const struct llm_event *ev)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->blocks[i].first.block == ev->block) {
            return &d->blocks[i];
        }
    }
    assert_true(d->n < ARRAY_LEN(d->blocks));
    struct digest_block *b = &d->blocks[d->n++];
    b->first = *ev;
    b->first.id = arena_str(d->a, ev->id);
    b->first.name = arena_str(d->a, ev->name);
    b->first.ns = arena_str(d->a, ev->ns);
    buf_init(&b->text, BUF_TEXT);
    buf_init(&b->signature, BUF_TEXT);
    return b;
}

static inline void digest_content(struct digest *d, const struct llm_event *ev)
{
    struct digest_block *b = digest_block(d, ev);
    bool call = ev->kind == LLM_EV_CALL_BEGIN || ev->kind == LLM_EV_CALL_DATA ||
                ev->kind == LLM_EV_CALL_END;
    if (call != (b->first.kind == LLM_EV_CALL_BEGIN) && ev->kind != LLM_EV_SIGNATURE) {
        buf_addf(&d->out, "(%s in another block)\n", kind_words[ev->kind]);
    }
    if (call && b->ended) {
        buf_addf(&d->out, "(%s after the end of a call)\n", kind_words[ev->kind]);
    }
    b->ended = b->ended || ev->kind == LLM_EV_CALL_END;
    b->redacted = b->redacted || ev->redacted;
    if (ev->kind != LLM_EV_CALL_BEGIN && ev->kind != LLM_EV_CALL_END) {
        buf_add(ev->kind == LLM_EV_SIGNATURE ? &b->signature : &b->text, ev->text);
    }
}

/* The position on the wire is not part of what it says. */
static inline void digest_other(struct digest *d, const struct llm_event *ev)
{
    struct json *raw = json_copy(d->a, ev->raw);
    (void)json_remove(raw, STR("index"));
    buf_addf(&d->notes, "other %u ", ev->block);
    buf_add(&d->notes, text_of_json(raw));
    buf_adds(&d->notes, "\n");
}

static inline void digest_event(void *arg, const struct llm_event *ev)
{
    struct digest *d = arg;
    bool early = !d->started && ev->kind != LLM_EV_START && ev->kind != LLM_EV_ERROR &&
                 ev->kind != LLM_EV_PING && !d->failed;
    bool late = d->ended || (d->failed && ev->kind != LLM_EV_END) ||
                (d->stopped && ev->kind != LLM_EV_END && ev->kind != LLM_EV_ERROR);
    if (early || late) {
        buf_addf(&d->out, "(%s too %s)\n", kind_words[ev->kind], early ? "early" : "late");
    }
    switch (ev->kind) {
    case LLM_EV_START:
        if (!d->plain) {
            buf_addf(&d->out, "start %.*s %.*s\n", STR_ARG(ev->id), STR_ARG(ev->model));
        }
        d->started = true;
        break;
    case LLM_EV_USAGE:
        llm_usage_update(&d->usage, &ev->usage);
        break;
    case LLM_EV_STOP:
        d->stopped = true;
        buf_addf(&d->tail, "stop %s%s%.*s\n", stop_words[ev->stop], ev->text.len > 0 ? " " : "",
                 STR_ARG(ev->text));
        break;
    case LLM_EV_ERROR:
        d->failed = true;
        buf_addf(&d->tail, "error %d %d %.*s\n", (int)ev->error.kind, ev->error.status,
                 STR_ARG(ev->error.message));
        break;
    case LLM_EV_END:
        d->ended = true;
        buf_adds(&d->tail, "end\n");
        break;
    case LLM_EV_OTHER:
        digest_other(d, ev);
        break;
    case LLM_EV_PING:
        break;
    case LLM_EV_TEXT:
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
    case LLM_EV_REFUSAL:
    case LLM_EV_CALL_BEGIN:
    case LLM_EV_CALL_DATA:
    case LLM_EV_CALL_END:
        digest_content(d, ev);
        break;
    }
}

static inline void digest_print_block(struct digest *d, const struct digest_block *b)
{
    bool thought = b->first.kind == LLM_EV_THINKING || b->first.kind == LLM_EV_SIGNATURE;
    if (thought && d->plain) {
        return;
    }
    if (b->first.kind == LLM_EV_CALL_BEGIN) {
        buf_addf(&d->out, "call %.*s %.*s%s%.*s%s%s ", STR_ARG(b->first.id), STR_ARG(b->first.ns),
                 b->first.ns.len > 0 ? "/" : "", STR_ARG(b->first.name),
                 b->first.custom ? " custom" : "", b->ended ? "" : " (open)");
    } else {
        buf_addf(&d->out, "%s%s ", thought ? "thinking" : kind_words[b->first.kind],
                 b->redacted ? " redacted" : "");
    }
    buf_add(&d->out, b->text.len > 0 ? buf_str(&b->text) : STR("-"));
    if (b->signature.len > 0 && !d->plain) {
        buf_adds(&d->out, " signed ");
        buf_add(&d->out, buf_str(&b->signature));
    }
    buf_adds(&d->out, "\n");
}

static inline long long count_of(int64_t n, bool plain)
{
    return plain && n < 0 ? 0 : (long long)n;
}

/* The whole; in `arena`. */
static inline const char *digest_text(struct digest *d)
{
    for (size_t i = 0; i < d->n; i++) {
        digest_print_block(d, &d->blocks[i]);
    }
    buf_add(&d->out, d->plain ? STR_EMPTY : buf_str(&d->notes));
    if (d->plain) { /* formats differ in what they tell apart; the sums are the same */
        struct llm_usage in = d->usage;
        in.output = -1;
        buf_addf(&d->out, "usage %lld %lld\n", (long long)llm_usage_total(&in),
                 count_of(d->usage.output, true));
    } else {
        buf_addf(&d->out, "usage %lld+%lld/%lld>%lld/%lld\n", (long long)d->usage.input,
                 (long long)d->usage.cache_read, (long long)d->usage.cache_write,
                 (long long)d->usage.output, (long long)d->usage.reasoning);
    }
    buf_add(&d->out, buf_str(&d->tail));
    return arena_dup(arena, buf_str(&d->out));
}

/* Of the bytes of an answer, in chunks of `step`. */
static inline const char *digest_answer(enum llm_format f, bool stream, struct str answer,
                                        size_t step)
{
    struct digest d;
    struct err e = { 0 };
    digest_init(&d);
    struct llm_reader_opts o = { .format = f, .stream = stream, .sink = { digest_event, &d } };
    if (feed_in_steps(&o, answer, step, &e) < 0) {
        buf_addf(&d.tail, "failed: %s\n", e.msg);
    }
    const char *text = digest_text(&d);
    digest_done(&d);
    return text;
}
