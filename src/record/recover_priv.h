/* SPDX-License-Identifier: MIT
 *
 * What a dead run left behind: gathered by recover_scan.c, turned into a closed record by
 * recover.c.
 */
#pragma once

#include "base/arena.h"
#include "record/jsonl.h"
#include "record/open_calls.h"
#include "record/rundir.h"
#include "record/state.h"
#include "record/summary.h"
#include "record/transcript.h"

struct leftovers {
    const struct recover_port *port; /* NULL: nobody else has anything to finish */
    struct arena *arena;             /* of everything below */
    struct jsonl_damage damage;

    struct state state;                       /* zero where state.json says nothing */
    struct json *manifest, *metrics, *result; /* NULL when absent or damaged */

    /* from events.jsonl */
    char run_id[ID_LEN]; /* of its last line, "" when it has none */
    int64_t seq;         /* of its last line */
    int64_t first_wall, last_wall;
    bool recovered;          /* its last line is run.recovered */
    struct json *phase_ms;   /* object: phase -> milliseconds */
    struct engine_exit exit; /* of the harness */
    const char *program;     /* that was started, or NULL */
    struct {                 /* sums of the model calls that were told */
        int64_t input, output, cache_read, cache_write, reasoning;
        int64_t total, failed, side, estimated, refused;
        double cost_usd;      /* of calls to providers */
        double simulated_usd; /* of those that a script or a cassette answered */
        int64_t real;         /* calls to providers */
        bool unpriced;        /* of one at least the cost is not known */
    } calls;
    struct event_model_call **open; /* under way when the run died; ends with NULL */

    /* from transcript.jsonl: the pair of start and stop that was open last */
    bool transcript_open;
    int64_t last_entry; /* its time */
    struct transcript_count count;
    const char *prompt_name, *adapter;
    const char *session_id; /* the last one seen */
};

/* Repairs both files of lines on the way. `open` is then what has no event of its own. */
int leftovers_gather(struct leftovers *l, const struct rundir *d, struct err *e) MUST_USE;
/* For events_watch(): counts the model calls that recovery itself reports. */
void leftovers_add_call(void *leftovers, enum event_kind kind, const struct json *context);
