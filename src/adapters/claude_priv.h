/* SPDX-License-Identifier: MIT
 *
 * Inside of the driver `claude-stream`: the session, and what its three files offer each other.
 *
 *   claude.c           lines in, the report, the turns
 *   claude_control.c   control requests: ours (initialize, interrupt) and Claude's (may I …?)
 *   claude_entry.c     what a line means for the transcript and for those who watch tool calls
 *
 * Everything that the program can make grow has a bound: lines, calls under way, open questions,
 * sub-agents, entries about garbage.
 */
#pragma once

#include "adapters/driver.h"
#include "base/sha256.h"
#include "wire/lines.h"

/* A tool call that has begun and whose result has not come. Holds what the result does not say. */
struct claude_call {
    struct arena *arena; /* of the rest; NULL: the place is free */
    struct str id, name;
    const struct json *input; /* may be NULL */
    size_t bytes;
    bool denied;   /* by us: it was never carried out */
    bool observed; /* told already */
};

/* Claude runs about ten calls at a time; where more are open, the oldest is forgotten, and its
 * result then has no name. */
enum { CALLS_MAX = 256, SUBAGENTS_MAX = 64, QUESTIONS_MAX = 256 };

struct claude_subagent {
    struct arena *arena;
    struct str call_id;         /* of the call that started it */
    const char *source;         /* "subagent:<id>" */
    char last_text[SHA256_HEX]; /* hash of its last message; "": none was in the stream */
};

enum claude_background {
    CLAUDE_IDLE,
    CLAUDE_SHELLS, /* commands only, which may run for ever */
    CLAUDE_AGENTS, /* also sub-agents, whose end begins another turn */
};

enum claude_question_kind {
    QUESTION_NONE, /* the place is free */
    QUESTION_HOOK_PRE,
    QUESTION_HOOK_POST,
    QUESTION_CAN_USE,
};

/* A control request that waits for the answer of the run. */
struct claude_question {
    enum claude_question_kind kind;
    uint64_t id; /* as the run knows it */
    struct arena *arena;
    struct str request_id; /* as Claude knows it */
    struct str call_id;
    const char *event;        /* of a hook */
    const struct json *input; /* what an allowance must repeat */
};

struct claude {
    struct arena *keep;    /* lives as long as the session */
    struct arena *scratch; /* of the line at hand */
    struct entry_sink sink;
    struct driver_port port;
    struct lines lines;
    struct str prompt, prefix, system_prompt;
    enum system_prompt_style system_style;
    const struct json *schema;
    bool has_policies, has_feedback;

    struct claude_call calls[CALLS_MAX];
    size_t next_call; /* where the next one goes if no place is free */
    size_t calls_bytes;
    struct claude_subagent subagents[SUBAGENTS_MAX];
    size_t next_subagent;
    struct claude_question questions[QUESTIONS_MAX];
    uint64_t last_question;
    unsigned last_request; /* number of our own requests */

    bool prompted;                     /* the prompt was sent */
    bool interrupted;                  /* we have asked for the end of the turn */
    bool finished;                     /* nothing is to be said any more */
    bool turn_due;                     /* a result has come; reported when all bytes are read */
    enum claude_background background; /* tasks that were at work when it stopped */
    bool waits;                        /* a result has come, and sub-agents were at work */
    const char *stop_reason;
    unsigned garbage_told;

    struct agent_report report;
    struct buf text, answer, error;   /* of the last message; of the last result; its error */
    struct agent_usage turns_usage;   /* summed over turns, for results without totals */
    struct agent_usage results_usage; /* summed over results that report what is new */
};

/* --- claude.c --- */

/* Replaces what is kept; no text is longer than the line it came from. */
void claude_keep(struct buf *b, struct str text);
/* One line to the program; false if it would be too large, nothing is sent then. */
bool claude_send(struct claude *c, const struct json *message);

/* --- claude_control.c --- */

/* The first of our requests. Its success is the sign to begin: where hooks are not in place, a
 * policy would be passed by. */
#define CLAUDE_INITIALIZE "cinch_1"
void claude_initialize(struct claude *c);
void claude_interrupt(struct claude *c);
bool claude_tune(struct claude *c, enum driver_option option, struct str value);
void claude_control_request(struct claude *c, const struct json *line);
void claude_control_cancel(struct claude *c, const struct json *line);
void claude_reply(struct claude *c, const struct driver_reply *reply);
void claude_questions_done(struct claude *c);

/* --- claude_entry.c --- */

/* `source` NULL: the main agent. */
void claude_entry(struct claude *c, const char *source, const char *type, struct json *detail,
                  struct str raw);
/* An entry whose detail is { "text": text }. */
void claude_entry_text(struct claude *c, const char *source, const char *type, struct str text);
void claude_entry_garbage(struct claude *c, struct str line, const char *why);
void claude_message(struct claude *c, const struct json *line, struct str raw);
void claude_system(struct claude *c, const struct json *line, struct str raw);

/* Is it one of the run's tools, or how Claude takes a structured answer? Those are nothing that
 * policies and feedback for native tools would be asked about. */
bool claude_is_native(const struct claude *c, struct str tool);
/* Finds the call or begins it; NULL if there is no id. */
struct claude_call *claude_call_begin(struct claude *c, struct str id, struct str name,
                                      const struct json *input);
void claude_call_observed(struct claude *c, struct claude_call *call, const struct json *result,
                          struct str output, bool success);
/* The source of what carries this parent_tool_use_id; NULL: the main agent. */
const char *claude_source(struct claude *c, struct str parent);
const char *claude_source_of_agent(struct claude *c, struct str agent_id);
/* Whether the last message of the sub-agent in the stream was this one. */
bool claude_said(struct claude *c, const char *source, struct str text);
/* Of a list of tasks; `type` is the member with their kind. */
enum claude_background claude_background_of(const struct json *tasks, const char *type);
/* Another turn began by itself, after a result. */
void claude_turn_began(struct claude *c);
void claude_calls_done(struct claude *c);
