/* SPDX-License-Identifier: MIT
 *
 * struct driver: the code half of an adapter, one per protocol. A driver sees bytes and values
 * only: no loop, no descriptor, no clock. So each can be tested from a captured transcript, fuzzed,
 * and cannot block.
 *
 * A driver is of one kind (enum driver_kind) and has the tables of operations of that kind.
 * Each session goes through
 *
 *  1. program->plan():  what to start: arguments, environment of its own, standard input
 *  2. open():           a session; transcript entries go to the sink as they come
 *  3. program->feed():  bytes of the harness, any number of times
 *  4. end():            after the last byte: the report; valid until close()
 *  5. close()
 *
 * A model loop starts no program. The run sends its requests to the gateway and returns responses:
 *
 *   while ((step = model->next(self, &request, e)) != DRIVER_DONE)
 *       DRIVER_REQUEST:    send it; response() with bytes as they come; response_end() once
 *       DRIVER_TOOL_CALL:  execute request.call with the tools of the spec; tool_result() once
 *
 * Its end() may come more than once.
 *
 * A dialogue is with a program that exchanges messages over its standard input and output. What the
 * driver wants goes out by its port, and what happens comes in by its operations:
 *
 *   begin(self)                      the program runs; first messages (initialize, …, the prompt)
 *   port.send(bytes)                 to its standard input
 *   port.ask(&ask) → reply(self)     may it run this command? execute this tool; read this file …
 *   port.observed(&call)             it has used a tool of its own
 *   port.turn(&turn)                 the turn has ended, and the harness waits:
 *       → prompt(self, text)         there is more to do (completion check, feedback), or
 *       → finish(self)               that was all: it shall exit
 *   port.pause(quiet) → resume(self) nothing was received for so long: it accepts messages
 *   interrupt(self)                  no time is left: the turn shall end; a turn or nothing follows
 *
 * Any of these may come from inside of feed() and of each other, except turn(), which is always
 * the last thing that a driver does before it returns.
 *
 * A contract is kept by a program that leaves files. The run takes them out of the directory
 * `output` of the private home when the program has exited, and passes each to take_file() before
 * end().
 *
 * To add one: CONTRIBUTING.md, "A driver".
 */
#pragma once

#include "adapters/driver_report.h"
#include "adapters/expand.h"
#include "adapters/profile.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "llm/request.h"

enum agent_stream { AGENT_STDOUT, AGENT_STDERR };

/* What the model may call, for drivers that run the loop of calls themselves. */
struct driver_tools {
    const struct llm_tool *items;
    size_t len;
};

/* Where such a driver prints what a program would print. */
struct agent_output {
    void (*write)(void *owner, enum agent_stream stream, struct str bytes);
    void *owner;
};

/* --- dialogue --- */

enum driver_ask_kind {
    ASK_PERMISSION, /* may it use this tool of its own? */
    ASK_TOOL,       /* carry out this tool of ours */
    ASK_FEEDBACK,   /* it has used a tool of its own: is there anything to say about it? */
    ASK_READ,       /* a file of the workspace */
    ASK_WRITE,
    ASK_TERMINAL, /* start a program for it, or say how one is doing */
};

/* A program that we run for the agent. Its number is the driver's: CREATE gives it, RELEASE is the
 * last word about it. */
enum terminal_action {
    TERMINAL_CREATE,
    TERMINAL_OUTPUT,
    TERMINAL_WAIT, /* the answer comes when it has ended */
    TERMINAL_KILL,
    TERMINAL_RELEASE,
};

struct driver_terminal_ask {
    enum terminal_action action;
    uint64_t number;
    const struct json *argv; /* CREATE: strings, at least one */
    const struct json *env;  /* CREATE: names to strings; NULL: no more than others have */
    size_t limit;            /* CREATE: bytes of output that are kept, the last ones */
};

/* How one is doing; its output is the text of the reply. */
struct driver_terminal {
    bool ended, truncated;
    int exit_code;      /* -1: it was ended by a signal, or was not started */
    const char *signal; /* "SIGTERM"; NULL: none */
};

/* Borrowed until ask() returns; `id` is the driver's own and comes back with the answer. */
struct driver_ask {
    enum driver_ask_kind kind;
    uint64_t id;
    struct str tool;              /* PERMISSION, TOOL, FEEDBACK */
    struct str tool_kind;         /* PERMISSION: as native_call.kind */
    const struct json *arguments; /* an object; NULL: not known */
    struct str call_id;           /* empty: none */
    bool success;                 /* FEEDBACK: how it ended */
    /* READ, WRITE: as the harness wrote it, usually absolute; TERMINAL: where the program works,
     * empty: in the workspace */
    struct str path;
    const struct driver_terminal_ask *terminal;
    struct str text;     /* WRITE */
    int64_t line, limit; /* READ: from which line (1 is the first), how many; 0: all */
};

/* Borrowed until reply() returns. */
struct driver_reply {
    uint64_t id;
    bool ok;             /* allowed; carried out without an error; read; written */
    struct str text;     /* why not; result; feedback (empty: none); content */
    struct str feedback; /* TOOL: beside the result; empty: none */
    const struct driver_terminal *terminal; /* OUTPUT, WAIT that are ok; else NULL */
};

/* A tool of the harness' own that has ended. Names as docs/run-record.md says. */
struct native_call {
    struct str name, call_id;
    struct str kind;              /* of tool, as a second name for policies; empty: none */
    const struct json *arguments; /* NULL: not known */
    const struct json *result;    /* NULL: not known */
    struct str output;            /* text of the result */
    bool success;
};

struct driver_turn {
    const char *stop_reason; /* "end_turn", "max_turns", "interrupted" …; NULL: unknown */
    nsec settle;             /* more may come for so long after the last byte; 0: nothing will */
};

struct driver_port {
    void (*send)(void *owner, struct str bytes);
    void (*close_input)(void *owner); /* after what was sent */
    void (*ask)(void *owner, const struct driver_ask *ask);
    void (*observed)(void *owner, const struct native_call *call);
    void (*turn)(void *owner, const struct driver_turn *turn);
    /* As the sink of open(), but of another source than the main agent: "subagent:<id>". NULL: the
     * sink gets it. */
    void (*entry)(void *owner, const char *source, const char *type, const struct json *detail,
                  struct str raw);
    /* Wants resume() when nothing was received for so long. NULL: the caller cannot wait. */
    void (*pause)(void *owner, nsec quiet);
    void *owner;
};

/* How a harness reaches the tools of the run; url NULL: there are none. */
struct driver_mcp {
    const char *url;         /* "http://127.0.0.1:PORT/mcp" */
    const char *token;       /* Authorization: Bearer … */
    const char *const *shim; /* the same over standard input and output; NULL-terminated */
};

/* What the run knows about the launch. */
struct launch_spec {
    const struct profile *profile;
    enum prompt_delivery delivery;
    struct str prompt;
    const struct json *output_schema; /* in the profile's form; NULL: the answer may be anything */
    struct placeholders vars;
    struct driver_tools tools;  /* len 0: none */
    struct agent_output output; /* write NULL: nowhere */
    struct driver_port port;    /* for dialogues */
    struct driver_mcp mcp;
    struct str resume;     /* handle of the conversation to continue; empty: a new one */
    bool has_policies;     /* the harness' own tools need permission */
    bool has_feedback;     /* feedback is given on their results */
    const char *home;      /* private place of the harness, as it sees it */
    const char *workspace; /* as it sees it */
};

/* What the driver wants started. */
struct launch {
    char **argv;           /* NULL-terminated */
    struct json *env;      /* names to values, in addition to the run's own */
    struct str stdin_text; /* ptr NULL: standard input is empty, unless it is a dialogue */
};

enum driver_step { DRIVER_DONE, DRIVER_REQUEST, DRIVER_TOOL_CALL };

/* Valid until the driver gets its result. */
struct driver_request {
    enum llm_format format;
    struct str target; /* "/v1/messages" */
    struct str body;
    const struct llm_call *call; /* DRIVER_TOOL_CALL */
};

/* A request to the harness that must be answered before the first turn can begin. */
struct driver_wait {
    const char *method; /* NULL: none is under way */
    nsec limit;         /* for the answer */
};

/* For a harness whose profile does not say how long it may take. */
#define DRIVER_START_TIME (120 * NSEC_PER_SEC)

/* What a later turn may change. */
enum driver_option {
    DRIVER_OPTION_MODEL,
    DRIVER_OPTION_MODE, /* of permissions, by the harness' own word */
};

/* How a driver works with its harness. The kind decides which tables of operations it has; each
 * table is complete (tests/unit/adapters/test_driver.c), so that a caller looks at the kind and
 * never at a pointer. */
enum driver_kind {
    DRIVER_PIPE,       /* a program gets the prompt and prints its answer */
    DRIVER_DIALOGUE,   /* a program exchanges messages over stdin and stdout until finish() */
    DRIVER_MODEL_LOOP, /* no program: the driver makes model requests and wants tools called */
    DRIVER_CONTRACT,   /* a program that finds its input in files and leaves its result in files */
};

/* PIPE, DIALOGUE, CONTRACT */
struct driver_program_ops {
    int (*plan)(struct arena *a, const struct launch_spec *spec, struct launch *ret, struct err *e);
    void (*feed)(void *self, enum agent_stream stream, struct str bytes);
};

/* DIALOGUE. What a protocol lacks is one of the shared functions below. */
struct driver_dialogue_ops {
    void (*begin)(void *self);
    void (*reply)(void *self, const struct driver_reply *reply);
    void (*prompt)(void *self, struct str text); /* one more turn, after the last one has ended */
    void (*interrupt)(void *self);
    void (*finish)(void *self);
    /* From now on these tools exist; also before begin(). Borrowed. */
    void (*offer)(void *self, struct driver_tools tools);
    struct driver_wait (*pending)(void *self);
    void (*resume)(void *self); /* after port.pause */
    bool sets_model;            /* set_option() knows DRIVER_OPTION_MODEL */
    /* Holds from the next turn on; before prompt(). False: not with this harness. */
    bool (*set_option)(void *self, enum driver_option option, struct str value);
};

/* MODEL_LOOP */
struct driver_model_ops {
    /* Returns a driver_step. Negative: there is nothing that could be sent; the session is over. */
    int (*next)(void *self, struct driver_request *ret, struct err *e);
    void (*response)(void *self, int status, struct str bytes);
    /* The response is complete; or `error` says why there is none, or no rest of it. */
    void (*response_end)(void *self, int status, const char *error);
    void (*tool_result)(void *self, struct str text, bool is_error);
    void (*offer)(void *self, struct driver_tools tools); /* as in a dialogue */
    void (*prompt)(void *self, struct str text);
};

/* CONTRACT */
struct driver_contract_ops {
    const char *const *files; /* names; NULL-terminated */
    void (*take_file)(void *self, const char *name, struct str bytes);
};

struct driver {
    const char *name;
    enum driver_kind kind;
    /* Default of a profile's `tier.prompt`; NULL: "system" where {system_prompt} is used, else
     * "none". */
    const char *tier_prompt;
    void *(*open)(const struct launch_spec *spec, struct entry_sink sink);
    void (*end)(void *self, struct agent_report *ret);
    void (*close)(void *self);
    const struct driver_program_ops *program;
    const struct driver_dialogue_ops *dialogue;
    const struct driver_model_ops *model;
    const struct driver_contract_ops *contract;
};

/* Each NAME is a `const struct driver driver_NAME`. */
#define DRIVER_LIST(X) \
    X(acp)             \
    X(api)             \
    X(claude)          \
    X(codex)           \
    X(contract)        \
    X(oneshot)

#define X(name) extern const struct driver driver_##name;
DRIVER_LIST(X)
#undef X

/* For `plan` of a driver that starts what the profile says. */
int driver_plan(struct arena *a, const struct launch_spec *spec, struct launch *ret,
                struct err *e) MUST_USE;
/* What stands for a placeholder of the spec; empty: nothing. */
struct str driver_var(const struct launch_spec *spec, const char *name);

/* For dialogues: a protocol that has no such thing. */
void driver_ignores_tools(void *self, struct driver_tools tools);
struct driver_wait driver_nothing_pending(void *self);
void driver_never_paused(void *self);
bool driver_sets_nothing(void *self, enum driver_option option, struct str value);

/* Hands the tools to a driver that takes them by itself; nothing with the other kinds. */
void driver_offer(const struct driver *d, void *self, struct driver_tools tools);

const struct driver *driver_find(const char *name); /* NULL when there is none */
const struct driver *driver_at(size_t i);           /* NULL after the last one */
/* The member `driver` of a profile: absent, or the name of one. ERR_CONFIG lists them. */
int driver_check(const struct json *name, const char *file, struct err *e) MUST_USE;
/* False for a profile whose driver does not exist. */
bool driver_is_kind(const struct profile *p, enum driver_kind kind);
