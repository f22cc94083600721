/* SPDX-License-Identifier: MIT
 *
 * Checks: what a scenario says must be true after its runs. `expect` is a list; each item is a map
 * with one key, the kind of the check, and what it wants (matchers: ack/matcher.h):
 *
 *   reason: WORD                           why the run ended; or a list of allowed words
 *   exit: MATCHER                          exit status of `cinch run`
 *   said: MATCHER                          what it said on standard error
 *   text: MATCHER                          the final answer
 *   result, metrics, manifest: {POINTER: MATCHER}
 *   event: {name, where, count, each}      events.jsonl; `where` and `each` are {POINTER: MATCHER}
 *   entry: {type, source, where, count, each}    the transcript
 *   order: [{type, where} …]               the first entries that fit come in this order
 *   transcript: [NAME …]                   checks of the validator (validate/validator.h)
 *   request: {number | last | any | none | count, text, where}   what the model was asked
 *   patch: {has, lacks, contains, empty}   diff.patch; has and lacks are lists of paths
 *   session: {slice, count, any, each}     what tools remembered
 *   outside: {PATH: MATCHER}               files beside the workspace; null: must not exist
 *   record: {PATH: MATCHER}                files of the record, as text
 *   usage: {input, output, …}              every answer of the model was counted with these
 *   link: {from, to}                       two events, {name, at}: what is there is the same
 *   visits: MATCHER                        how often the site was reached
 *   any_of: [[CHECK …] …]                  all checks of at least one list hold
 *   same: {runs: [A, B], what: [events, transcript, patch, text]}
 *
 * `expect_script` is a list of the same kind, for what holds for the words of a script only: it is
 * not looked at when the model is a real one. A count that is not given means: at least one. A
 * check that does not hold becomes a finding, one line: "event ToolInvoked: wanted …, found …".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ack/evidence.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct findings {
    struct buf text; /* one a line */
    size_t len;
};

void finding(struct findings *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* What checks may look at. */
struct check_scene {
    struct arena *arena;
    const char *adapter;
    const struct evidence *run;  /* the one that is looked at */
    const struct evidence *runs; /* all of them … */
    const char *const *names;    /* … and their names */
    size_t runs_len;
    const char *outside; /* the directory beside the workspace */
    size_t visits;       /* of the site (ack/test_server.h), by all runs */
    struct findings *findings;
};

/* Files of a scenario lie below the directory that is meant: no part of the path leads out, and it
 * has no NUL. */
bool check_leads_down(struct str path);
#define CHECK_LEADS_DOWN "the path of a file is relative and leads down"

/* ERR_CONFIG: no such check, not what it wants, or a check that ignores a part of what it says or
 * could not fail. */
int checks_read(const struct json *list, const char *file, struct err *e) MUST_USE;
void checks_apply(const struct json *list, const struct check_scene *scene);
