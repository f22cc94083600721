/* SPDX-License-Identifier: MIT
 *
 * What the files of driver `acp` share. acp.c is the driver: lines in, messages told apart, life
 * and report. acp_session.c asks: initialize … model. acp_turn.c prompts. acp_update.c reads what
 * the agent says about its turn. acp_call.c follows its tool calls. acp_client.c answers what the
 * agent asks of us, acp_terminal.c what it asks about programs that we run for it.
 */
#pragma once

#include "adapters/driver.h"
#include "base/buf.h"
#include "wire/jsonrpc.h"
#include "wire/lines.h"

/* The version that we speak; an agent that knows it not answers with another one. */
#define ACP_VERSION 1
/* Name of the server with our tools, in the agent's list. */
#define ACP_SERVER "cinch"
/* The protocol's code for a file or a terminal that is not there, and for what may not be read. */
#define ACP_NOT_FOUND (-32002)
/* Questions of the agent that wait for an answer at the same time; more are refused. */
#define ACP_ASKS_MAX 64
/* Tool calls that are under way at the same time; the oldest is given up for one more. */
#define ACP_CALLS_MAX 128
/* Kept of a call's arguments (else they are unknown) and of its output (the rest is cut). */
#define ACP_INPUT_MAX  ((size_t)1 << 20)
#define ACP_OUTPUT_MAX ((size_t)64 << 10)
/* Programs that we run for the agent at the same time, and bytes of output that are kept of one. */
#define ACP_TERMINALS_MAX       32
#define ACP_TERMINAL_OUTPUT     ((size_t)1 << 20)
#define ACP_TERMINAL_OUTPUT_MAX ((size_t)8 << 20)
/* Kept of the final text: its end. */
#define ACP_TEXT_MAX ((size_t)4 << 20)
/* Longer names and ids are cut; they are for people and for comparing. */
#define ACP_NAME_MAX ((size_t)1024)

enum acp_stage {
    ACP_NEW, /* the program does not run yet */
    ACP_INITIALIZE,
    ACP_AUTHENTICATE,
    ACP_SESSION,
    ACP_MODE,
    ACP_MODEL,
    ACP_EFFORT,
    ACP_PROMPT,  /* a turn is under way */
    ACP_WAITING, /* the turn is over */
    ACP_OVER,    /* nothing can be said any more */
};

/* Whose words the pieces are that come. */
enum acp_voice { ACP_NOBODY, ACP_AGENT, ACP_THOUGHT, ACP_USER };

/* A request of the agent that the run has to decide. */
struct acp_ask {
    uint64_t id; /* ours; 0: free */
    enum driver_ask_kind kind;
    struct arena *arena;
    const struct json *rpc_id;     /* the agent's */
    struct str allow, reject;      /* options; empty: there is none of the kind */
    const struct json *create;     /* PERMISSION: of this terminal; NULL: of a tool call */
    enum terminal_action terminal; /* TERMINAL: what was asked */
    uint64_t number;               /* TERMINAL: of which */
};

/* A tool call that the agent has told of. */
struct acp_call {
    struct arena *arena;
    struct str id, name, title, kind;
    struct buf input;  /* JSON; empty: not known */
    struct buf output; /* text */
    char status[16];
    bool told; /* as tool_use */
    bool ours; /* a tool of the run: the bridge has reported it */
};

struct acp {
    struct arena *keep;    /* of the session */
    struct arena *scratch; /* of the message at hand */
    struct entry_sink sink;
    struct driver_port port;
    const struct profile_acp *quirks;
    struct str tool_prefix; /* what the agent puts before the names of our tools */
    struct str prompt, system_prompt, model, effort, resume, workspace;
    struct driver_mcp mcp;
    const struct json *session_meta; /* `_meta` of the session; NULL: none */
    bool has_policies, has_feedback;

    struct lines lines;
    struct str raw; /* the line at hand */
    int depth;      /* of calls into the driver */
    bool turn_due;  /* to be told when the last of them returns */
    const char *stop_reason;

    enum acp_stage stage;
    int64_t request; /* id of ours that waits for its answer; 0: none does */
    int64_t requests;
    bool interrupted;
    bool hushed; /* what was said before is being told: nothing is asked until that is over */
    bool offers_http, offers_load, offers_resume;
    struct json *auth_methods, *modes, *models; /* as offered; NULL: not */
    struct json *options;
    struct arena *options_arena; /* of what changes again and again */
    struct buf used_model;

    struct acp_ask asks[ACP_ASKS_MAX];
    uint64_t ask_ids;
    uint64_t terminals[ACP_TERMINALS_MAX]; /* numbers of those that are not released; 0: free */
    uint64_t terminal_numbers;
    struct acp_call *calls;
    size_t n_calls, calls_cap;
    uint64_t nameless; /* calls without an id so far */

    enum acp_voice voice;
    struct buf message_id; /* of the words at hand */
    struct buf pending;    /* words that are no entry yet */
    struct buf said;       /* by the agent since its last call or pause: the final text */
    struct buf feedback;   /* goes out with the next thing that is said */
    bool new_words;        /* the next words of the agent are a new message */
    bool acted;            /* words or calls in this turn */

    int64_t context_used;
    struct agent_usage turn_usage; /* what the agent tells of the turn at hand */
    struct agent_report report;
    bool answered; /* a turn has ended well */
};

/* --- acp.c --- */

void acp_send_request(struct acp *p, const char *method, const struct json *params);
void acp_send_notification(struct acp *p, const char *method, const struct json *params);
void acp_send_result(struct acp *p, const struct json *id, const struct json *result);
void acp_send_error(struct acp *p, const struct json *id, int64_t code, struct str text);
void acp_entry(struct acp *p, const char *type, const struct json *detail);
/* {subtype: …} as system_event. */
void acp_event(struct acp *p, const char *subtype, const char *key, struct json *value);
/* The report says that it failed; the words are the first ones if there are several. */
void acp_failed(struct acp *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* That, and the conversation cannot go on. */
void acp_give_up(struct acp *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A turn is over; told when all calls into the driver have returned. */
void acp_end_turn(struct acp *p, const char *stop_reason);

/* A string in the memory of the message at hand. */
void acp_set(struct acp *p, struct json *object, const char *key, struct str text);

/* --- acp_session.c --- */

void acp_start(struct acp *p);
void acp_go_on(struct acp *p); /* it has told all that was said before */
void acp_answer(struct acp *p, const struct jsonrpc_message *m);
const char *acp_stage_name(enum acp_stage stage); /* "session/new" … */

/* --- acp_turn.c --- */

void acp_prompt(struct acp *p, struct str text, bool first);
void acp_prompted(struct acp *p, const struct json *result);
void acp_count(struct acp *p, const struct json *usage);

/* --- acp_update.c --- */

void acp_update(struct acp *p, const struct json *update);
void acp_flush(struct acp *p);                                     /* words become an entry */
void acp_learn_options(struct acp *p, const struct json *options); /* NULL: nothing new */
void acp_learn_model(struct acp *p, const struct json *name);

/* --- acp_call.c --- */

void acp_call_update(struct acp *p, const struct json *update, bool is_new);
/* The call that a question is about; made if it is new. */
struct acp_call *acp_call_of(struct acp *p, const struct json *question);
void acp_call_tell(struct acp *p, struct acp_call *c, const struct json *locations);
void acp_calls_tell(struct acp *p);   /* those that are not told yet */
void acp_calls_settle(struct acp *p); /* none of them will go on */
void acp_calls_free(struct acp *p);
struct json *acp_call_arguments(struct acp *p, const struct acp_call *c,
                                const struct json *update); /* in scratch; never NULL */
/* Second name of the tool for policies; empty: none. */
struct str acp_call_kind(struct acp *p, const struct acp_call *c);

/* --- acp_terminal.c --- */

/* False: it is no request about terminals. */
bool acp_terminal_request(struct acp *p, const struct jsonrpc_message *m);
/* Whether the terminal may be made is decided. */
void acp_terminal_decided(struct acp *p, const struct acp_ask *q, const struct driver_reply *reply);
void acp_terminal_reply(struct acp *p, const struct acp_ask *q, const struct driver_reply *reply);

/* --- acp_client.c --- */

/* A question to the run; rpc_id NULL: the agent waits for no answer. NULL: too many wait. */
struct acp_ask *acp_ask_new(struct acp *p, enum driver_ask_kind kind, const struct json *rpc_id);
void acp_ask_done(struct acp_ask *q);
void acp_request(struct acp *p, const struct jsonrpc_message *m);
void acp_reply(struct acp *p, const struct driver_reply *reply);
void acp_ask_feedback(struct acp *p, const struct native_call *call);
void acp_cancel_asks(struct acp *p); /* permissions that nobody will give any more */
