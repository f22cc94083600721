/* SPDX-License-Identifier: MIT
 *
 * Tests on codecs: a request read and written again, answers as a readable list of events, and the
 * same answer in every size of chunk.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"
#include "llm/codec.h"
#include "llm/dropped.h"

static struct arena *arena;

static inline int arena_setup(void **state)
{
    arena = arena_new();
    return 0;
}

static inline int arena_teardown(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static inline struct json *parse(struct str text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(arena, text, NULL, &v, &e) < 0) {
        fail_msg("%s in %.*s", e.msg, STR_ARG(text));
    }
    return v;
}

static inline struct str text_of_json(const struct json *v)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &out, NULL), 0);
    return arena_str(arena, buf_str(&out));
}

/* JSON in C without a forest of backslashes: ' stands for ". */
static inline const char *quoted(const char *text)
{
    char *copy = arena_dup(arena, str_of(text));
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return copy;
}

/* The text, quoted, with the value where it has an @. */
static inline const char *filled(const char *text, struct str value)
{
    struct str rest = str_of(quoted(text));
    struct str head = str_split(&rest, '@');
    return arena_printf(arena, "%.*s%.*s%.*s", STR_ARG(head), STR_ARG(value), STR_ARG(rest));
}

/* --- requests --- */

static inline int try_read(const char *target, struct str body, struct llm_request *ret,
                           struct err *e)
{
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), str_of(target));
    assert_int_not_equal(where.call, LLM_CALL_NONE);
    return llm_request_read(arena, &where, body, ret, e);
}

static inline struct llm_request read_request(const char *target, const char *body)
{
    struct llm_request r;
    struct err e = { 0 };
    if (try_read(target, str_of(body), &r, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return r;
}

static inline struct json *write_request(enum llm_format f, const struct llm_request *r,
                                         struct llm_losses *losses)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    if (llm_request_write(arena, f, r, losses, &out, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return parse(arena_str(arena, buf_str(&out)));
}

/* What is read and written again in its own format is what it was. */
static inline void assert_same(const char *target, const char *body)
{
    struct llm_losses losses;
    struct llm_request r = read_request(target, body);
    llm_losses_init(&losses, arena);
    struct json *was = parse(str_of(body));
    struct json *is = write_request(r.format, &r, &losses);
    if (!json_equal(was, is)) {
        fail_msg("was %.*s\nis  %.*s", STR_ARG(text_of_json(was)), STR_ARG(text_of_json(is)));
    }
    assert_int_equal(losses.n, 0);
}

static inline void assert_bad(const char *target, const char *body, const char *message)
{
    struct llm_request r;
    struct err e = { 0 };
    assert_int_equal(try_read(target, str_of(body), &r, &e), -ERR_PARSE);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' does not say '%s'", e.msg, message);
    }
}

static inline void assert_json(const struct json *v, const char *pointer, const char *expected)
{
    const struct json *at = json_pointer(v, str_of(pointer));
    struct json *want = parse(str_of(expected));
    if (at == NULL || !json_equal(at, want)) {
        fail_msg("%s is %.*s, not %s, in %.*s", pointer,
                 STR_ARG(at == NULL ? STR("absent") : text_of_json(at)), expected,
                 STR_ARG(text_of_json(v)));
    }
}

static inline bool has_loss(const struct llm_losses *l, const char *what)
{
    for (size_t i = 0; i < l->n && i < LLM_LOSSES_MAX; i++) {
        if (strstr(l->items[i].what, what) != NULL) {
            return true;
        }
    }
    return false;
}

/* --- answers --- */

/* Events as lines; pieces of one text are joined, so that chunks do not matter. */
struct listing {
    struct buf out;
    enum llm_event_kind last;
    uint32_t block;
    struct llm_writer *writer; /* also passed on to this */
    struct buf written;
};

static const char *const kind_words[] = {
    [LLM_EV_START] = "start",       [LLM_EV_TEXT] = "text",
    [LLM_EV_THINKING] = "thinking", [LLM_EV_SIGNATURE] = "signature",
    [LLM_EV_REFUSAL] = "refusal",   [LLM_EV_CALL_BEGIN] = "call",
    [LLM_EV_CALL_DATA] = "data",    [LLM_EV_CALL_END] = "call_end",
    [LLM_EV_USAGE] = "usage",       [LLM_EV_STOP] = "stop",
    [LLM_EV_ERROR] = "error",       [LLM_EV_PING] = "ping",
    [LLM_EV_OTHER] = "other",       [LLM_EV_END] = "end",
};

static const char *const stop_words[] = {
    [LLM_STOP_END] = "end",           [LLM_STOP_LENGTH] = "length",   [LLM_STOP_TOOL] = "tool",
    [LLM_STOP_SEQUENCE] = "sequence", [LLM_STOP_REFUSAL] = "refusal", [LLM_STOP_PAUSE] = "pause",
    [LLM_STOP_OTHER] = "other",
};

static inline void list_event(void *arg, const struct llm_event *ev)
{
    struct listing *l = arg;
    struct err e = { 0 };
    bool words = ev->kind == LLM_EV_TEXT || ev->kind == LLM_EV_THINKING ||
                 ev->kind == LLM_EV_REFUSAL || ev->kind == LLM_EV_CALL_DATA ||
                 ev->kind == LLM_EV_SIGNATURE;
    if (l->writer != NULL && llm_writer_event(l->writer, ev, &l->written, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    if (words && ev->kind == l->last && ev->block == l->block) {
        buf_add(&l->out, ev->text);
        return;
    }
    buf_addf(&l->out, "\n%s", kind_words[ev->kind]);
    l->last = ev->kind;
    l->block = ev->block;
    if (words) {
        buf_addf(&l->out, "%u%s ", ev->block, ev->redacted ? " redacted" : "");
        buf_add(&l->out, ev->text);
    } else if (ev->kind == LLM_EV_CALL_BEGIN) {
        buf_addf(&l->out, "%u %.*s %.*s%s%.*s%s", ev->block, STR_ARG(ev->id), STR_ARG(ev->ns),
                 ev->ns.len > 0 ? "/" : "", STR_ARG(ev->name), ev->custom ? " custom" : "");
    } else if (ev->kind == LLM_EV_CALL_END) {
        buf_addf(&l->out, "%u", ev->block);
    } else if (ev->kind == LLM_EV_START) {
        buf_addf(&l->out, " %.*s %.*s", STR_ARG(ev->id), STR_ARG(ev->model));
    } else if (ev->kind == LLM_EV_USAGE) {
        buf_addf(&l->out, " %lld+%lld/%lld>%lld/%lld", (long long)ev->usage.input,
                 (long long)ev->usage.cache_read, (long long)ev->usage.cache_write,
                 (long long)ev->usage.output, (long long)ev->usage.reasoning);
    } else if (ev->kind == LLM_EV_STOP) {
        buf_addf(&l->out, " %s %.*s", stop_words[ev->stop], STR_ARG(ev->text));
    } else if (ev->kind == LLM_EV_ERROR) {
        buf_addf(&l->out, " %d %.*s: %.*s", (int)ev->error.kind, STR_ARG(ev->error.code),
                 STR_ARG(ev->error.message));
    } else if (ev->kind == LLM_EV_OTHER) {
        buf_addf(&l->out, "%u %.*s", ev->block, STR_ARG(text_of_json(ev->raw)));
    }
}

static inline int feed_in_steps(const struct llm_reader_opts *o, struct str answer, size_t step,
                                struct err *e)
{
    struct llm_reader *r = llm_reader_new(o);
    int result = 0;
    for (size_t i = 0; i < answer.len && result >= 0; i += step) {
        /* A copy of its own for each chunk, so that a string kept beyond its life is seen. */
        CLEANUP(buf) struct buf chunk = BUF_INIT(BUF_TEXT);
        buf_add(&chunk, str_slice(answer, i, i + step));
        result = llm_reader_feed(r, buf_str(&chunk), e);
    }
    if (result >= 0) {
        result = llm_reader_end(r, e);
    }
    llm_reader_free(r);
    return result;
}

/* The events of an answer. */
static inline const char *list_answer(enum llm_format f, bool stream, struct str answer,
                                      size_t step)
{
    struct listing l = { .out = BUF_INIT(BUF_TEXT), .last = LLM_EV_END };
    struct llm_reader_opts o = { .format = f, .stream = stream, .sink = { list_event, &l } };
    struct err e = { 0 };
    if (feed_in_steps(&o, answer, step, &e) < 0) {
        buf_addf(&l.out, "\nfailed: %s", e.msg);
    }
    const char *text = arena_dup(arena, buf_str(&l.out));
    buf_done(&l.out);
    return text;
}

/* The answer again, in another format or in the same. */
static inline struct str rewrite_answer(const struct llm_reader_opts *from,
                                        const struct llm_writer_opts *to, struct str answer)
{
    struct listing l = { .out = BUF_INIT(BUF_TEXT), .last = LLM_EV_END };
    struct llm_reader_opts o = *from;
    struct err e = { 0 };
    buf_init(&l.written, BUF_TEXT);
    l.writer = llm_writer_new(to);
    o.sink = (struct llm_sink) { list_event, &l };
    if (feed_in_steps(&o, answer, answer.len, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    struct str text = arena_str(arena, buf_str(&l.written));
    llm_writer_free(l.writer);
    buf_done(&l.out);
    buf_done(&l.written);
    return text;
}

/* Every cut gives the same events. */
static inline void assert_events(enum llm_format f, bool stream, const char *answer,
                                 const char *expected)
{
    struct str text = str_of(answer);
    for (size_t step = 1; step <= text.len; step++) {
        assert_string_equal(list_answer(f, stream, text, step), expected);
    }
}
