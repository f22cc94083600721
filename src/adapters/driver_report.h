/* SPDX-License-Identifier: MIT
 *
 * What a driver learns from a harness while it runs: transcript entries as they come (through a
 * sink that the run fills in), and one report at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/str.h"

/* Where transcript entries go. `type` is one of the nine canonical words; `detail` lives until the
 * call returns; `raw` is the line it came from, empty when there is none. */
struct entry_sink {
    void (*entry)(void *owner, const char *type, const struct json *detail, struct str raw);
    void *owner;
};

struct agent_usage {
    bool known; /* the harness reported tokens */
    int64_t input, output, cache_read, cache_write, reasoning;
    int64_t turns, api_calls;
    bool cost_known;
    double cost_usd;
};

struct agent_report {
    struct str text;               /* final text; borrowed from the driver */
    bool text_truncated;           /* the head was dropped, stdout.log has it all */
    struct str session_id;         /* empty: none */
    struct str model;              /* what the harness says it used; empty: nothing */
    struct str version;            /* of itself, as it says; empty: it does not */
    struct str error;              /* the harness' own words for its failure; empty: none */
    bool failed;                   /* the harness said that it failed */
    bool needs_human;              /* it said that a person has to look at it */
    int review_exit;               /* the exit code that says so, too; 0: none */
    bool told;                     /* text and usage are transcript entries already */
    bool result_seen;              /* a valid final result was there; plain text can never tell */
    bool answer_missed;            /* a rule selects the final text, and none has matched */
    bool ended_early;              /* it ended before it answered a request */
    bool left_files;               /* of an adapter program: manifest, metrics or a log */
    uint64_t entries;              /* that its output made by rules */
    const struct json *structured; /* NULL: none */
    struct agent_usage usage;
    uint64_t overlong_lines;   /* lines beyond the parser's limit, in stdout.log only */
    uint64_t unparsable_lines; /* lines that should have been JSON and were not */
};
