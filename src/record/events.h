/* SPDX-License-Identifier: MIT
 *
 * struct events: events.jsonl, the history of a run as it happens.
 *
 *   events_init(&ev, &dir, &(struct events_opts){ .run_id = id, .redactor = r, .loss = &loss }, e);
 *   events_phase(&ev, "prepare", "execute", took);
 *   events_spawned(&ev, pid, argv, cwd);
 *   events_done(&ev);
 *
 * Every line has the same eight keys: timestamp, level, logger, event, message, context, seq,
 * run_id. The first six are those of WINK's log records; seq counts from 1 without gaps. If the
 * caller has ids of its own, each line also has run_context. Kinds with a fixed context are in
 * event_kind.h; other layers add their own through events_emit().
 *
 * Emitting never fails for the caller: what cannot be written is noted in `loss`. All texts from
 * outside (paths, arguments, messages, trees) pass the redactor; words of our own (reasons, phases,
 * event names) do not, so that a secret that happens to be the word "failure" cannot break the
 * format.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "record/event_kind.h"
#include "record/jsonl.h"
#include "record/reason.h"

struct json;
struct loss;
struct redactor;
struct rundir;

struct events {
    struct jsonl out;
    const struct redactor *redactor;
    struct loss *loss;
    bool loss_told;
    void (*line)(void *arg, struct str text); /* events_listen() */
    void *line_arg;
    struct arena *arena; /* of one event */
    struct arena *keep;  /* of the whole run */
    struct json *run_context;
    bool has_caller; /* run_context has ids of the caller and is part of every line */
    char run_id[ID_LEN];
    int64_t seq; /* of the last line written */
    void (*told)(void *arg, enum event_kind kind, const struct json *context);
    void *told_arg;
};

struct events_opts {
    const char *run_id;
    const struct redactor *redactor; /* borrowed, may be NULL */
    struct loss *loss;               /* borrowed */
    /* Ids of the caller: a map of scalars, copied; NULL: none. request_id, attempt and worker_id
     * replace those that are made up here. */
    const struct json *run_context;
    int64_t seq; /* of the last line that is already there */
};

/* `d` may be NULL: then lines go to the listener of events_listen() alone. */
int events_init(struct events *ev, const struct rundir *d, const struct events_opts *opts,
                struct err *e) MUST_USE;
void events_done(struct events *ev); /* idempotent */

/* `told` hears of each event with a fixed context just before it is written; what it gets is
 * redacted and lives until it returns. It must not emit events itself. NULL: nobody listens. */
void events_watch(struct events *ev,
                  void (*told)(void *arg, enum event_kind kind, const struct json *context),
                  void *arg);

/* `line` hears each line as it was written, without its end. NULL: nobody listens. */
void events_listen(struct events *ev, void (*line)(void *arg, struct str text), void *arg);

/* Any event: `event` is words joined by dots, logger starts with "cinch."; context is an object or
 * NULL, from outside and therefore redacted as a whole. */
struct event {
    enum event_level level;
    const char *logger;
    const char *event;
    const char *message; /* for people; NULL: the event's name */
    struct json *context;
};
void events_emit(struct events *ev, const struct event *event);

/* --- the run --- */
void events_started(struct events *ev, const char *adapter, const char *output_dir);
/* `from` may be NULL. */
void events_phase(struct events *ev, const char *from, const char *to, nsec took);
void events_warning(struct events *ev, const char *text);
/* cinch got SIGINT, SIGTERM … */
void events_signal(struct events *ev, const char *signal, int count);
void events_finished(struct events *ev, enum reason reason, int exit_code, nsec took,
                     const char *error);

struct event_recovery {
    enum reason reason;
    const char *phase; /* in which the owner died; NULL: unknown */
    pid_t pid;         /* of the dead owner; 0: unknown */
    int64_t torn_bytes, dropped_lines;
};
void events_recovered(struct events *ev, const struct event_recovery *recovery);

/* --- processes --- */
void events_spawned(struct events *ev, pid_t pid, const char *const *argv, const char *cwd);
void events_exited(struct events *ev, pid_t pid, struct engine_exit exit, nsec took);
/* kind: "first_output", "idle", "total", "deadline". */
void events_deadline(struct events *ev, const char *kind, nsec limit);
/* signal "SIGTERM", target "tree" or "process", why "deadline", "interrupt", "leaked" … */
void events_signal_sent(struct events *ev, const char *signal, const char *target, const char *why);
/* The workspace and the session before a turn were kept; a turn that failed was taken back. */
struct event_savepoint {
    int64_t turn;
    const char *why;   /* it failed */
    const char *patch; /* what it had changed, in the record */
    int64_t entries, removed;
    nsec took;
};
void events_savepoint_taken(struct events *ev, int64_t turn, int64_t entries, int64_t bytes,
                            nsec took);
void events_savepoint_restored(struct events *ev, const struct event_savepoint *s);
void events_leaked(struct events *ev, int count);
/* Processes that were killed because the run reached its bound of memory. */
void events_oom(struct events *ev, int64_t count, int64_t limit_bytes);

/* --- the prompt (WINK's telemetry) --- */

/* Which prompt, by which adapter. `name` may be NULL: then events say "ns:key". */
struct event_prompt {
    const char *ns, *key, *name;
    const char *adapter;
    const char *session_id; /* NULL while unknown */
};

void events_render_start(struct events *ev, const struct event_prompt *p);
void events_render_complete(struct events *ev, const struct event_prompt *p, int sections,
                            int tools, size_t text_length);
/* model NULL: the harness' own; timeout 0: none. */
void events_call_start(struct events *ev, const struct event_prompt *p, const char *model,
                       nsec timeout);

struct event_call {
    nsec took;
    int64_t input_tokens, output_tokens; /* -1: unknown */
    const char *stop_reason;             /* NULL: unknown */
};
void events_call_complete(struct events *ev, const struct event_prompt *p,
                          const struct event_call *call);
/* phase: "request", "response", "tool" or "budget". */
void events_prompt_error(struct events *ev, const struct event_prompt *p, const char *phase,
                         enum reason reason, const char *error);

struct event_throttle {
    const char *kind; /* "rate_limit", "quota_exhausted", "timeout", "server_error" */
    int attempt;      /* that failed, from 1 */
    nsec delay;       /* before the next one; -1: given up */
    nsec retry_after; /* -1: the provider did not say */
    bool retry_safe;  /* false: given up, or not worth it */
};
void events_throttled(struct events *ev, const struct event_prompt *p,
                      const struct event_throttle *throttle);

/* --- the gateway --- */

void events_gateway_opened(struct events *ev, const char *address, const char *const *upstreams);
/* exchange 0: it did not get that far. kind: which limit, or "token", "egress" … */
void events_gateway_refused(struct events *ev, int64_t exchange, const char *kind, const char *why);

#define EVENT_DROPPED_MAX 64
#define EVENT_EDITS_MAX   12

/* A model call that is over. Counts are -1 where they are not known. */
struct event_model_call {
    int64_t exchange;
    const char *format; /* of the client: "anthropic", "responses", "chat", "gemini" */
    struct str model;
    const char *upstream;
    int status;       /* that the client got; 0: it left before */
    int attempts;     /* at the upstream */
    bool complete;    /* the client got all of the answer */
    bool translated;  /* the upstream speaks another format */
    const char *side; /* what a side request was for ("title" …); NULL: the conversation */
    int64_t input, output, cache_read, cache_write, reasoning;
    bool estimated;  /* the answer did not tell its usage */
    double cost_usd; /* negative: not known */
    nsec first_byte; /* -1: none came */
    nsec took;
    const char
        *dropped[EVENT_DROPPED_MAX + 1];    /* what a translation could not express; NULL ends */
    const char *edits[EVENT_EDITS_MAX + 1]; /* members that the gateway set; NULL ends */
    const char *const *unsent;        /* sampling parameters that it could not have; NULL: none */
    const char *const *fallback_from; /* upstreams that failed before this one; NULL: none */
};
void events_model_call(struct events *ev, const struct event_model_call *call);

/* PromptRendered. Its id goes into `ret_id`: RenderedTools refers to it. */
void events_prompt_rendered(struct events *ev, const struct event_prompt *p, struct str text,
                            char ret_id[ID_LEN]);
/* RenderedTools. tools: array of { name, description, parameters }, or NULL for none. */
void events_rendered_tools(struct events *ev, const struct event_prompt *p, const char *render_id,
                           struct json *tools);

struct event_tool {
    const char *name;
    struct json *params;
    /* Of a tool of ours: {message, value, success, exclude_value_from_context}. NULL: null. */
    struct json *result;
    struct str output;   /* as the model sees it; the first 1000 characters are kept */
    const char *call_id; /* NULL: the harness gave none */
    bool success;
    const char *failure; /* word for what went wrong (tools/tool.h); NULL: nothing, or not known */
    const char *policy;  /* that denied it; NULL: none */
    nsec took;           /* 0: not known */
    int64_t leaked;      /* processes that outlived the call and were killed */
};
void events_tool_invoked(struct events *ev, const struct event_prompt *p,
                         const struct event_tool *tool);

struct event_executed {
    struct str text;                                    /* ptr NULL: no text */
    struct json *output;                                /* structured output, or NULL */
    int64_t input_tokens, output_tokens, cached_tokens; /* all -1: usage unknown */
};
void events_executed(struct events *ev, const struct event_prompt *p,
                     const struct event_executed *executed);
