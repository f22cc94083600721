/* SPDX-License-Identifier: MIT
 *
 * struct scenario: one claim about adapters that can be tried on any of them, as data. The table is
 * made of the YAML files in ack/ of the source (compiled in) and of files that a user adds; no
 * entry knows an adapter.
 *
 *   struct scenario_list list;
 *   scenario_load_all(arena, NULL, &list, e);
 *   const struct scenario *s = scenario_find(&list, "test_returns_text_response");
 *
 * A scenario says what is given (files of the workspace, files outside of it, a task, a model that
 * follows a script), what happens (one or more runs) and what must be true then (checks, see
 * ack/check.h). docs/ack.md explains every key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "adapters/capability.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

/* To whom a signal goes. */
enum signal_target { SIGNAL_NONE, SIGNAL_CINCH, SIGNAL_HARNESS };

/* When `event` has come `count` times (in events.jsonl, or as the type of a transcript entry), the
 * signal is sent. */
struct scenario_signal {
    enum signal_target to;
    int signo;
    const char *event;
    int64_t count;
};

/* One run of `cinch run`. */
struct scenario_run_spec {
    const char *name;     /* "first"; NULL: it is the only one */
    struct json *task;    /* merged over that of the scenario */
    struct json *script;  /* in place of that of the scenario; NULL: the scenario's */
    struct json *options; /* more arguments for `cinch run` */
    const char *resume;   /* go on with the session of this earlier run */
    const char *replay;   /* the recording of this earlier run is the model */
    struct scenario_signal signal;
    int64_t copies;             /* so many at the same time */
    bool lingers;               /* the adapter's program does not go (ack/hang_fixture.h) */
    struct json *expect;        /* list of checks */
    struct json *expect_script; /* those that hold for the words of a script only */
};

/* Of one run: `cinch run` has four fifths of it, in whole seconds. Less would be none. */
#define SCENARIO_TIME_MIN (2 * NSEC_PER_SEC)

struct scenario {
    const char *name;
    const char *summary;       /* one sentence */
    enum capability_tier tier; /* of its first capability */
    const char **capabilities; /* names; all must be declared; NULL-terminated */
    bool git;                  /* the workspace is a repository with one commit */
    bool hermetic;             /* asks no model that could be a real one: not in live mode */
    struct json *workspace;    /* path → content */
    struct json *outside;      /* path → content, in a directory beside the workspace */
    struct json *task;
    struct json *script;
    struct json *live; /* merged over the task in live mode; NULL: as it is */
    nsec timeout;      /* 0: the kit's */
    struct scenario_run_spec *runs;
    size_t runs_len;
    struct json *expect; /* of all runs together, after the last */
    struct json *expect_script;
    const char *file; /* where it stands, for messages */
    /* Not run by itself: one check of the file contract, with this name
     * (ack/contract_scenarios.h). It has no capability, no task and no runs. NULL: an ordinary
     * scenario. */
    const char *contract;
};

struct scenario_list {
    const struct scenario **items; /* in the order of the table */
    size_t len;
};

/* ERR_CONFIG with file:line:column. */
int scenario_parse(struct arena *a, struct str text, const char *file, struct scenario_list *list,
                   struct err *e) MUST_USE;
/* The table, and the scenarios of `files` (NULL-terminated; NULL: none) in it. */
int scenario_load_all(struct arena *a, const char *const *files, struct scenario_list *ret,
                      struct err *e) MUST_USE;
const struct scenario *scenario_find(const struct scenario_list *list, const char *name);
