/* SPDX-License-Identifier: MIT
 *
 * What the files of driver `codex-app-server` share.
 *
 *   codex.c          lines in, messages told apart, life and report
 *   codex_thread.c   what we ask: initialize, rules, thread, turn, interrupt, steer
 *   codex_item.c     what the notifications mean for the transcript and for those who watch calls
 *   codex_ask.c      what Codex asks of us: approvals, tools of the run
 *
 * Everything that the program can make grow has a bound: lines, items under way, open questions.
 */
#pragma once

#include "adapters/driver.h"
#include "base/buf.h"
#include "wire/jsonrpc.h"
#include "wire/lines.h"

/* Questions of Codex, and words of ours under way to it, at the same time; more are refused. */
#define CODEX_ASKS_MAX 64
/* Files of one patch that the policies are asked about; a patch of more is denied. */
#define CODEX_CHANGES_MAX 64
/* Items under way at the same time; the oldest is given up for one more. */
#define CODEX_ITEMS_MAX 128
/* Larger items are not kept: what they would do is then unknown, and denied. */
#define CODEX_ITEM_BYTES ((size_t)4 << 20)
/* Kept of the final text: the last message, and of feedback that waits. */
#define CODEX_TEXT_MAX ((size_t)16 << 20)
/* Longer ids are cut. */
#define CODEX_ID_MAX ((size_t)256)

enum codex_stage {
    CODEX_NEW, /* the program does not run yet */
    CODEX_INITIALIZE,
    CODEX_FOLDER, /* of the rules that let it ask about every command */
    CODEX_RULES,
    CODEX_THREAD,
    CODEX_TURN,    /* under way, its id may not be known yet */
    CODEX_WAITING, /* the turn is over */
    CODEX_OVER,    /* nothing can be said any more */
};

enum codex_ask_kind {
    CODEX_ASK_APPROVAL,    /* { "decision": … } */
    CODEX_ASK_ELICITATION, /* { "action": … } */
    CODEX_ASK_TOOL,
    CODEX_ASK_FEEDBACK, /* a question of ours to the run, nobody waits */
    CODEX_ASK_STEER,    /* words of ours, until Codex says that it has them */
};

struct codex_ask {
    struct arena *arena; /* NULL: the place is free */
    enum codex_ask_kind kind;
    uint64_t first, open; /* ids first … first + 63 that the run has not answered, as bits */
    bool denied;
    const struct json *rpc_id; /* Codex' */
    struct str tool, call_id;
    struct str why;  /* it was denied; STEER: what was said */
    int64_t request; /* the words that go ahead of the answer, or that STEER is about; 0: none */
};

/* Something that Codex has begun and that it may ask about. */
struct codex_item {
    struct arena *arena; /* NULL: the place is free */
    struct str id;
    const struct json *item;
    bool asked;
};

struct codex {
    struct arena *keep;    /* of the session */
    struct arena *scratch; /* of the message at hand */
    struct entry_sink sink;
    struct driver_port port;
    enum system_prompt_style system_style;
    struct str prompt, system_prompt, model, effort, resume, workspace;
    struct str turn_model; /* of later turns; empty: that of the thread */
    const struct json *schema;
    struct json *tools; /* as thread/start takes them; NULL: none */
    struct arena *tools_arena;
    bool has_policies, has_feedback;

    struct lines lines;
    struct str raw; /* the line at hand */
    int depth;      /* of calls into the driver */
    bool turn_due;  /* to be told when the last of them returns */
    const char *stop_reason;

    enum codex_stage stage;
    int64_t request; /* id of ours that the stage waits for; 0: none */
    int64_t requests;
    bool interrupted;
    struct str codex_home;
    struct buf turn_id;

    struct codex_ask asks[CODEX_ASKS_MAX];
    uint64_t ask_ids;
    struct codex_item items[CODEX_ITEMS_MAX];
    size_t next_item;

    struct buf said;                /* the last whole message */
    struct buf partial;             /* what came of the one at hand */
    struct buf feedback;            /* goes out with the next prompt */
    struct agent_usage base, total; /* of the thread: before this process; now */
    struct agent_report report;
    bool answered; /* a turn has ended well */
};

/* --- codex.c --- */

/* The id of the request. */
int64_t codex_send_request(struct codex *c, const char *method, struct json *params);
void codex_send_result(struct codex *c, const struct json *id, struct json *result);
void codex_send_error(struct codex *c, const struct json *id, int64_t code, struct str text);
/* A string in the memory of the message at hand. */
void codex_set(struct codex *c, struct json *object, const char *key, struct str text);
/* The report says that it failed; the first words count if there are several. */
void codex_failed(struct codex *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* That, and the conversation cannot go on. */
void codex_give_up(struct codex *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A turn is over; told when all calls into the driver have returned. */
void codex_end_turn(struct codex *c, const char *stop_reason);
/* Replaces what is kept. */
void codex_keep(struct buf *b, struct str text);

/* --- codex_thread.c --- */

void codex_start(struct codex *c);
void codex_answer(struct codex *c, const struct jsonrpc_message *m);
void codex_turn(struct codex *c, struct str text);
/* Words into the turn at hand; 0: there is none that would hear them. */
int64_t codex_steer(struct codex *c, struct str text);
void codex_interrupt(struct codex *c);
void codex_turn_began(struct codex *c, const struct json *turn); /* its id is known now */
const char *codex_stage_name(enum codex_stage stage);

/* --- codex_item.c --- */

void codex_notified(struct codex *c, const struct jsonrpc_message *m);
struct codex_item *codex_item_find(struct codex *c, struct str id);
/* The call of this server that Codex has begun and not asked about. */
struct codex_item *codex_item_of_server(struct codex *c, struct str server);
void codex_items_done(struct codex *c);
/* An entry of the main agent. `detail` gets the message at hand as "notification". */
void codex_entry(struct codex *c, const char *type, struct json *detail,
                 const struct json *notification);
/* How many calls an item is: one for each file of a patch (two if it is moved), else one. */
size_t codex_calls_of(const struct json *item);
struct json *codex_arguments(struct codex *c, const struct json *item, size_t i);
struct str codex_tool_name(struct codex *c, const struct json *item); /* empty: it is no tool */

/* --- codex_ask.c --- */

void codex_request(struct codex *c, const struct jsonrpc_message *m);
void codex_reply(struct codex *c, const struct driver_reply *reply);
void codex_ask_feedback(struct codex *c, const struct native_call *call);
/* The answer to words of ours; false: they are not what it is about. */
bool codex_steered(struct codex *c, int64_t request, bool taken);
/* Approvals that nobody will give any more; `tell`: Codex still waits for them. */
void codex_cancel_asks(struct codex *c, bool tell);
void codex_asks_done(struct codex *c);
