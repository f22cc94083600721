/* SPDX-License-Identifier: MIT
 *
 * The other side of a driver that converses, without any process: everything that the driver does
 * goes into one log, a line each, and its questions are answered at once unless the test wants to
 * do it itself. For drivers that are told apart by `driver` only.
 */
#pragma once

#include <stdlib.h>

#include "adapters/driver.h"
#include "values.h"

struct host {
    const struct driver *driver;
    const char *original; /* member of an entry that repeats what the program printed: not logged */
    bool judges;          /* at the end of a turn it looks how that ended */
    void *session;
    struct buf log;
    const char *deny;  /* this tool */
    const char *why;   /* it is denied; NULL: no words */
    const char *about; /* feedback; NULL: none */
    bool later;        /* questions are answered by the test */
    unsigned sequels;  /* so many turns are followed by another one */
    unsigned turns, asks;
    nsec settle; /* of the last one */
    uint64_t last_ask;
    struct agent_report report;
};

static inline void log_json(struct host *h, const char *what, const struct json *v)
{
    buf_addf(&h->log, " %s ", what);
    assert_int_equal(json_write(v, JSON_COMPACT, &h->log, NULL), 0);
}

static inline void on_send(void *owner, struct str bytes)
{
    struct host *h = owner;
    assert_true(str_ends(bytes, STR("\n")));
    buf_addf(&h->log, "send %.*s", STR_ARG(bytes));
}

static inline void on_close(void *owner)
{
    struct host *h = owner;
    buf_adds(&h->log, "close\n");
}

static inline void on_entry_of(void *owner, const char *source, const char *type,
                               const struct json *detail, struct str raw)
{
    struct host *h = owner;
    struct json *d = json_copy(arena, detail);
    bool whole = json_remove(d, str_of(h->original));
    buf_addf(&h->log, "entry %s %s", source, type);
    log_json(h, whole ? arena_printf(arena, "+%s", h->original) : "", d);
    buf_adds(&h->log, raw.len > 0 ? " +raw\n" : "\n");
}

static inline void on_entry(void *owner, const char *type, const struct json *detail,
                            struct str raw)
{
    on_entry_of(owner, "main", type, detail, raw);
}

static inline void reply(struct host *h, uint64_t id, bool ok, const char *text)
{
    h->driver->dialogue->reply(h->session,
                               &(struct driver_reply) { .id = id, .ok = ok, .text = str_of(text) });
}

static inline void answer(struct host *h, const struct driver_ask *ask)
{
    if (ask->kind == ASK_PERMISSION) {
        bool ok = h->deny == NULL || !str_eqc(ask->tool, h->deny);
        reply(h, ask->id, ok, ok || h->why == NULL ? "" : h->why);
    } else if (ask->kind == ASK_TOOL) {
        reply(h, ask->id, true, "done");
    } else {
        reply(h, ask->id, true, h->about == NULL ? "" : h->about);
    }
}

static inline void on_ask(void *owner, const struct driver_ask *ask)
{
    static const char *const words[] = {
        [ASK_PERMISSION] = "permission", [ASK_TOOL] = "tool", [ASK_FEEDBACK] = "feedback"
    };
    struct host *h = owner;
    bool failed = ask->kind == ASK_FEEDBACK && !ask->success;
    assert_true(ask->kind <= ASK_FEEDBACK);
    buf_addf(&h->log, "ask %s %.*s %.*s%s", words[ask->kind], STR_ARG(ask->tool),
             STR_ARG(ask->call_id), failed ? " failed" : "");
    log_json(h, "", ask->arguments);
    buf_adds(&h->log, "\n");
    h->asks++;
    h->last_ask = ask->id;
    if (!h->later) {
        answer(h, ask);
    }
}

static inline void on_observed(void *owner, const struct native_call *call)
{
    struct host *h = owner;
    buf_addf(&h->log, "observed %.*s %.*s %s '%.*s'", STR_ARG(call->name), STR_ARG(call->call_id),
             call->success ? "ok" : "failed", STR_ARG(call->output));
    log_json(h, "of", call->arguments);
    if (call->result != NULL) {
        log_json(h, "=", call->result);
    }
    buf_adds(&h->log, "\n");
}

static inline void on_turn(void *owner, const struct driver_turn *turn)
{
    struct host *h = owner;
    h->turns++;
    h->settle = turn->settle;
    buf_addf(&h->log, "turn %s%s\n", turn->stop_reason == NULL ? "-" : turn->stop_reason,
             turn->settle > 0 ? " not settled" : "");
    if (h->judges) {
        h->driver->end(h->session, &h->report);
    }
    if (h->judges && h->report.failed) {
        buf_addf(&h->log, "failed %.*s\n", STR_ARG(h->report.error));
    }
    if (h->turns <= h->sequels) {
        h->driver->dialogue->prompt(h->session, STR("go on"));
    }
}

static inline void host_open(struct host *h, struct launch_spec *spec)
{
    buf_init(&h->log, BUF_TEXT);
    spec->prompt = spec->prompt.ptr == NULL ? STR("do it") : spec->prompt;
    spec->port = (struct driver_port) { .send = on_send,
                                        .close_input = on_close,
                                        .ask = on_ask,
                                        .observed = on_observed,
                                        .turn = on_turn,
                                        .entry = on_entry_of,
                                        .owner = h };
    h->session = h->driver->open(spec, (struct entry_sink) { on_entry, h });
}

static inline void feed(struct host *h, const char *bytes)
{
    h->driver->program->feed(h->session, AGENT_STDOUT, str_of(bytes));
}

static inline void finish(struct host *h)
{
    h->driver->dialogue->finish(h->session);
    h->driver->end(h->session, &h->report);
}

static inline void stop(struct host *h)
{
    h->driver->close(h->session);
    buf_done(&h->log);
}

static inline void assert_logged(const struct host *h, const char *text)
{
    if (h->log.ptr == NULL || strstr(h->log.ptr, text) == NULL) {
        fail_msg("no '%s' in:\n%s", text, h->log.ptr);
    }
}

static inline void assert_not_logged(const struct host *h, const char *text)
{
    if (h->log.ptr != NULL && strstr(h->log.ptr, text) != NULL) {
        fail_msg("'%s' in:\n%s", text, h->log.ptr);
    }
}
