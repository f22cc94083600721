/* SPDX-License-Identifier: MIT
 *
 * A conversation of driver acp without any process: what it sends, asks and tells is written to a
 * log, one line each; questions are answered at once unless a test wants to do it itself.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "adapters/driver.h"
#include "base/json.h"

struct talk {
    struct arena *arena;
    struct profile *profile;
    struct launch_spec spec;
    void *session;
    struct buf log;
    struct agent_report report;
    bool by_hand;      /* the test replies */
    bool deny;         /* else what is replied */
    uint64_t last_ask; /* its id */
    int turns;
    const char *say; /* at the next turn, from inside of it; NULL: nothing */
};

static inline void log_json(struct talk *t, const struct json *v)
{
    assert_int_equal(json_write(v, JSON_COMPACT, &t->log, NULL), 0);
}

static inline void on_entry(void *owner, const char *type, const struct json *detail,
                            struct str raw)
{
    struct talk *t = owner;
    buf_addf(&t->log, "entry %s ", type);
    log_json(t, detail);
    buf_adds(&t->log, raw.len > 0 ? " raw\n" : "\n");
}

static inline void on_send(void *owner, struct str bytes)
{
    struct talk *t = owner;
    buf_adds(&t->log, "send ");
    buf_add(&t->log, bytes);
}

static inline void on_close(void *owner)
{
    buf_adds(&((struct talk *)owner)->log, "close\n");
}

static inline void on_ask(void *owner, const struct driver_ask *ask)
{
    static const char *const words[] = { "permission", "tool",  "feedback",
                                         "read",       "write", "terminal" };
    struct talk *t = owner;
    t->last_ask = ask->id;
    buf_addf(&t->log, "ask %s %.*s%.*s", words[ask->kind], STR_ARG(ask->tool), STR_ARG(ask->path));
    if (ask->kind == ASK_READ) {
        buf_addf(&t->log, " %lld+%lld", (long long)ask->line, (long long)ask->limit);
    }
    if (ask->arguments != NULL) {
        buf_adds(&t->log, " ");
        log_json(t, ask->arguments);
    }
    if (ask->kind == ASK_TERMINAL) {
        buf_addf(&t->log, " %d of %llu", (int)ask->terminal->action,
                 (unsigned long long)ask->terminal->number);
    }
    if (ask->kind == ASK_TERMINAL && ask->terminal->argv != NULL) {
        buf_addf(&t->log, " %zu ", ask->terminal->limit);
        log_json(t, ask->terminal->argv);
        log_json(t, ask->terminal->env);
    }
    buf_adds(&t->log, "\n");
    if (!t->by_hand) {
        struct driver_reply reply = { .id = ask->id, .ok = !t->deny, .text = STR("as told") };
        driver_acp.dialogue->reply(t->session, &reply);
    }
}

static inline void on_observed(void *owner, const struct native_call *call)
{
    struct talk *t = owner;
    buf_addf(&t->log, "observed %.*s %.*s %s ", STR_ARG(call->name), STR_ARG(call->call_id),
             call->success ? "ok" : "failed");
    log_json(t, call->arguments);
    buf_adds(&t->log, " ");
    assert_int_equal(json_write_string(call->output, &t->log, NULL), 0);
    buf_adds(&t->log, "\n");
}

static inline void on_turn(void *owner, const struct driver_turn *turn)
{
    struct talk *t = owner;
    t->turns++;
    buf_addf(&t->log, "turn %s %lld\n", turn->stop_reason, (long long)(turn->settle / NSEC_PER_MS));
    if (t->say != NULL) {
        struct str text = str_of(t->say);
        t->say = NULL;
        driver_acp.dialogue->prompt(t->session, text);
    }
}

static inline void on_pause(void *owner, nsec quiet)
{
    buf_addf(&((struct talk *)owner)->log, "pause %lld\n", (long long)(quiet / NSEC_PER_MS));
}

static inline void talk_init(struct talk *t, const char *sections)
{
    struct err e = { 0 };
    *t = (struct talk) { .arena = arena_new() };
    buf_init(&t->log, BUF_TEXT);
    const char *text = arena_printf(t->arena, "name: t\ndriver: acp\nargv: [agent]\n%s", sections);
    if (profile_parse(t->arena, str_of(text), "t.yaml", &t->profile, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    t->spec = (struct launch_spec) {
        .profile = t->profile,
        .prompt = STR("do it"),
        .workspace = "/workspace",
        .port = { .send = on_send,
                  .close_input = on_close,
                  .ask = on_ask,
                  .observed = on_observed,
                  .turn = on_turn,
                  .pause = on_pause,
                  .owner = t },
    };
}

static inline void talk_begin(struct talk *t)
{
    t->session = driver_acp.open(&t->spec, (struct entry_sink) { on_entry, t });
    driver_acp.dialogue->begin(t->session);
}

static inline void talk_feed(struct talk *t, struct str bytes, size_t step)
{
    for (size_t i = 0; i < bytes.len; i += step) {
        /* As from a pipe: memory that is gone afterwards. */
        struct arena *a = arena_new();
        driver_acp.program->feed(t->session, AGENT_STDOUT,
                                 arena_str(a, str_slice(bytes, i, i + step)));
        arena_free(a);
    }
}

static inline void talk_end(struct talk *t)
{
    driver_acp.end(t->session, &t->report);
}

static inline void talk_done(struct talk *t)
{
    if (t->session != NULL) {
        driver_acp.close(t->session);
    }
    buf_done(&t->log);
    arena_free(t->arena);
}

/* --- tests by hand --- */

static inline int setup(void **state)
{
    *state = calloc(1, sizeof(struct talk));
    return *state == NULL;
}

static inline int teardown(void **state)
{
    talk_done(*state);
    free(*state);
    return 0;
}

static inline void hear(struct talk *t, const char *line)
{
    talk_feed(t, str_of(arena_printf(t->arena, "%s\n", line)), SIZE_MAX / 2);
}

#define ANSWER(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"result\":" result "}"
#define UPDATE(text)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\"," \
    "\"update\":{" text "}}}"
#define WORDS(text)                                                                             \
    UPDATE("\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":" \
           "\"" text "\"}")
#define PERMISSION(id, options)                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"session/request_permission\","          \
    "\"params\":{\"sessionId\":\"s1\",\"toolCall\":{\"toolCallId\":\"c1\",\"title\":"         \
    "\"shell\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"ls\"}},\"options\":[" options \
    "]}}"
#define OPTION(id, kind) "{\"optionId\":\"" id "\",\"name\":\"" id "\",\"kind\":\"" kind "\"}"
#define INIT             ANSWER(1, "{\"protocolVersion\":1}")
#define SESSION          ANSWER(2, "{\"sessionId\":\"s1\"}")
#define END              ANSWER(3, "{\"stopReason\":\"end_turn\"}")

/* Up to the prompt. */
static inline void open_talk(struct talk *t, const char *sections)
{
    talk_init(t, sections);
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
}

static inline bool has(const struct talk *t, const char *text)
{
    return str_find(buf_str(&t->log), str_of(text)) < t->log.len;
}

static inline void assert_has(const struct talk *t, const char *text)
{
    if (!has(t, text)) {
        fail_msg("no '%s' in:\n%.*s", text, STR_ARG(buf_str(&t->log)));
    }
}

static inline void assert_not(const struct talk *t, const char *text)
{
    if (has(t, text)) {
        fail_msg("'%s' is in:\n%.*s", text, STR_ARG(buf_str(&t->log)));
    }
}

static inline void assert_failed(struct talk *t, const char *words)
{
    talk_end(t);
    assert_true(t->report.failed);
    assert_false(t->report.result_seen);
    if (str_find(t->report.error, str_of(words)) == t->report.error.len) {
        fail_msg("'%s' is not in '%.*s'", words, STR_ARG(t->report.error));
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
