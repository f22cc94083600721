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
 * To add one: write <name>.c with a const struct driver at its end and list it in driver.c.
 */
#pragma once

#include "adapters/expand.h"
#include "adapters/profile.h"
#include "adapters/report.h"
#include "base/arena.h"
#include "base/err.h"

enum agent_stream { AGENT_STDOUT, AGENT_STDERR };

/* What the run knows about the launch. */
struct launch_spec {
    const struct profile *profile;
    enum prompt_delivery delivery;
    struct str prompt;
    const struct json *output_schema; /* in the profile's form; NULL: the answer may be anything */
    struct placeholders vars;
};

/* What the driver wants started. */
struct launch {
    char **argv;           /* NULL-terminated */
    struct json *env;      /* names to values, in addition to the run's own */
    struct str stdin_text; /* ptr NULL: standard input is empty */
};

struct driver {
    const char *name;
    int (*plan)(struct arena *a, const struct launch_spec *spec, struct launch *ret, struct err *e);
    void *(*open)(const struct launch_spec *spec, struct entry_sink sink);
    void (*feed)(void *self, enum agent_stream stream, struct str bytes);
    void (*end)(void *self, struct agent_report *ret);
    void (*close)(void *self);
};

extern const struct driver driver_oneshot;

const struct driver *driver_find(const char *name); /* NULL when there is none */
