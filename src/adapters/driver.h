/* SPDX-License-Identifier: MIT
 *
 * struct driver: the code half of an adapter, one per protocol. A driver sees bytes and values
 * only: no loop, no descriptor, no clock. So each can be tested from a captured transcript, fuzzed,
 * and cannot block.
 *
 *  1. plan():  what to start: arguments, environment of its own, what goes to standard input
 *  2. open():  a session; transcript entries go to the sink as they come
 *  3. feed():  bytes of the harness, any number of times
 *  4. end():   after the last byte: the report; valid until close()
 *  5. close()
 *
 * A driver that talks to a model itself starts no program. It has ask(), answer() and answered()
 * instead of plan() and feed(), and the run carries questions to its gateway and answers back:
 *
 *   while ((step = ask(self, &question, e)) != DRIVER_OVER)
 *       DRIVER_ASK:   send the question; answer() with bytes as they come; answered() once
 *       DRIVER_CALL:  run question.call with the tools of the spec; result() once
 *
 * Its end() may come more than once.
 *
 * A driver whose program takes part in a dialogue over its standard input and output has begin()
 * and what follows it. Everything it wants goes out by its port, everything it is told comes in by
 * its functions:
 *
 *   begin(self)                     the program runs; the first words (initialize, …, the prompt)
 *   port.send(bytes)                to its standard input
 *   port.ask(&ask) → reply(self)    may it run this command? carry out this tool; read this file …
 *   port.observed(&call)            it has used a tool of its own
 *   port.turn(&turn)                it has said what it had to say and waits:
 *       → say(self, text)           there is more to do (completion, feedback), or
 *       → finish(self)              that was all: it shall end
 *   port.pause(quiet) → go_on(self) nothing has come for so long: it can be spoken to
 *   interrupt(self)                 no time is left: the turn shall end; a turn or nothing follows
 *
 * Any of these may come from inside of feed() and of each other, but for turn(), which is always
 * the last thing that a driver does before it returns.
 *
 * A driver whose program leaves files has a list of their names. The run takes them out of the
 * directory `output` of the private home when the program is gone, and hands each to file() before
 * end().
 *
 * To add one: write <name>.c with a const struct driver at its end and list it in driver.c.
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
    /* go_on() shall come when nothing has been heard for so long. NULL: nobody can wait. */
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
    struct str resume;     /* handle of the conversation to go on with; empty: a new one */
    bool governs;          /* policies want to be asked about the harness' own tools */
    bool feeds_back;       /* feedback wants to hear of them */
    const char *home;      /* private place of the harness, as it sees it */
    const char *workspace; /* as it sees it */
};

/* What the driver wants started. */
struct launch {
    char **argv;           /* NULL-terminated */
    struct json *env;      /* names to values, in addition to the run's own */
    struct str stdin_text; /* ptr NULL: standard input is empty, unless it is a dialogue */
};

enum driver_step { DRIVER_OVER, DRIVER_ASK, DRIVER_CALL };

/* Valid until the driver is told what came of it. */
struct driver_question {
    enum llm_format format;
    struct str target; /* "/v1/messages" */
    struct str body;
    const struct llm_call *call; /* DRIVER_CALL */
};

/* A request to the harness that must be answered before the first turn can begin. */
struct driver_wait {
    const char *method; /* NULL: none is under way */
    nsec limit;         /* for the answer */
};

/* For a harness whose profile does not say how long it may take. */
#define DRIVER_START_TIME (120 * NSEC_PER_SEC)

/* What a later turn may change. */
enum driver_knob {
    KNOB_MODEL,
    KNOB_MODE, /* of permissions, by the harness' own word */
};

struct driver {
    const char *name;
    int (*plan)(struct arena *a, const struct launch_spec *spec, struct launch *ret, struct err *e);
    void *(*open)(const struct launch_spec *spec, struct entry_sink sink);
    void (*feed)(void *self, enum agent_stream stream, struct str bytes);
    void (*end)(void *self, struct agent_report *ret);
    void (*close)(void *self);

    /* Negative: there is nothing that could be sent; the session is over. */
    int (*ask)(void *self, struct driver_question *ret, struct err *e);
    void (*answer)(void *self, int status, struct str bytes);
    /* The answer is complete; or `error` says why there is none, or no rest of it. */
    void (*answered)(void *self, int status, const char *error);
    void (*result)(void *self, struct str text, bool is_error);
    /* From now on these tools are there; also before the first question. Borrowed. */
    void (*offer)(void *self, struct driver_tools tools);

    /* One more turn, after the last one has ended; NULL: there is only one. */
    void (*say)(void *self, struct str text);

    /* Holds from the next turn on; before say(). False: not with this harness. NULL: nothing can be
     * changed. */
    bool (*tune)(void *self, enum driver_knob knob, struct str value);

    const char *const *files; /* NULL-terminated; NULL: none */
    void (*file)(void *self, const char *name, struct str bytes);

    /* --- dialogue; begin NULL: there is none --- */
    void (*begin)(void *self);
    void (*reply)(void *self, const struct driver_reply *reply);
    void (*go_on)(void *self);                /* after port.pause; NULL where that is not called */
    struct driver_wait (*awaits)(void *self); /* NULL: never anything */
    void (*interrupt)(void *self);
    void (*finish)(void *self);
};

extern const struct driver driver_acp, driver_api, driver_claude, driver_codex, driver_contract,
    driver_oneshot;

/* For `plan` of a driver that starts what the profile says. */
int driver_plan(struct arena *a, const struct launch_spec *spec, struct launch *ret,
                struct err *e) MUST_USE;
/* What stands for a placeholder of the spec; empty: nothing. */
struct str driver_var(const struct launch_spec *spec, const char *name);

const struct driver *driver_find(const char *name); /* NULL when there is none */
/* The adapter starts no program: its driver talks to a model itself. */
bool driver_is_internal(const struct profile *p);
