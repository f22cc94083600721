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
 * To add one: write <name>.c with a const struct driver at its end and list it in driver.c.
 */
#pragma once

#include "adapters/expand.h"
#include "adapters/profile.h"
#include "adapters/report.h"
#include "base/arena.h"
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

/* What the run knows about the launch. */
struct launch_spec {
    const struct profile *profile;
    enum prompt_delivery delivery;
    struct str prompt;
    const struct json *output_schema; /* in the profile's form; NULL: the answer may be anything */
    struct placeholders vars;
    struct driver_tools tools;  /* len 0: none */
    struct agent_output output; /* write NULL: nowhere */
};

/* What the driver wants started. */
struct launch {
    char **argv;           /* NULL-terminated */
    struct json *env;      /* names to values, in addition to the run's own */
    struct str stdin_text; /* ptr NULL: standard input is empty */
};

enum driver_step { DRIVER_OVER, DRIVER_ASK, DRIVER_CALL };

/* Valid until the driver is told what came of it. */
struct driver_question {
    enum llm_format format;
    struct str target; /* "/v1/messages" */
    struct str body;
    const struct llm_call *call; /* DRIVER_CALL */
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
};

extern const struct driver driver_api, driver_oneshot;

const struct driver *driver_find(const char *name); /* NULL when there is none */
/* The adapter starts no program: its driver talks to a model itself. */
bool driver_is_internal(const struct profile *p);
