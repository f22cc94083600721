/* SPDX-License-Identifier: MIT
 *
 * struct record: the whole record of one run, put together, and the order in which it is opened and
 * closed.
 *
 *  1. record_open(&rec, &(struct record_opts){ .path = "out", .adapter = "command",
 *                                              .redactor = r }, e)
 *     makes the run directory with all its files; state.json says "running" from here on
 *  2. record_phase(&rec, "execute") at each change of phase; record_beat(&rec) every few seconds;
 *     child bytes go to logfile_write(&rec.out, …) and &rec.err; events to &rec.events; entries to
 *     &rec.transcript; task.json and evidence through record_write_json(), prompt.txt through
 *     record_write_text()
 *  3. record_finish(&rec, &summary) closes everything; the summary's byte counts, phases, run id,
 *     start and warnings about losses are filled in by it
 *  4. record_done(&rec)
 *
 * If the process dies anywhere between 1 and the end of 3, recover.h closes the record. The order
 * in record_finish() is what makes that possible: result, metrics, manifest, and state.json last.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "record/events.h"
#include "record/logfile.h"
#include "record/rundir.h"
#include "record/state.h"
#include "record/summary.h"
#include "record/transcript.h"
#include "record/write_errors.h"

struct redactor;

struct record_opts {
    const char *path;
    bool force; /* see rundir.h */
    const char *const *keep;
    const char *adapter;
    const char *run_id;              /* NULL: a new one */
    const struct redactor *redactor; /* compiled; borrowed; may be NULL */
    const struct json *run_context;  /* see events.h */
};

enum { RECORD_PHASES_MAX = 32 /* the run's table has eleven */ };

struct record {
    struct rundir dir;
    struct loss loss;
    struct logfile out, err, agent;
    struct events events;
    struct transcript transcript;
    struct state state;
    const struct redactor *redactor;
    struct err damage;   /* what the harness did to the directory; record_reclaim */
    struct arena *arena; /* of the whole run */
    nsec started, phase_started;
    struct summary_phase phases[RECORD_PHASES_MAX];
    size_t phase_count;
    int life_fd; /* of `heartbeat`; -1: not opened so far, -2: it cannot be */
};

/* On failure nothing is left open; a directory that was made stays. */
int record_open(struct record *rec, const struct record_opts *opts, struct err *e) MUST_USE;
void record_done(
    struct record *rec); /* idempotent; accepts a zeroed record that was never opened */

/* `phase` is a static lower-case word. */
void record_phase(struct record *rec, const char *phase);
/* The same for a phase that is over at once: told in events.jsonl, but state.json stays as it is,
 * because replacing a file costs more than such a phase does. */
void record_brief_phase(struct record *rec, const char *phase);
void record_beat(struct record *rec); /* this process is alive: state.json */
/* The agent is: the file `heartbeat` gets the time. One system call, so that every sign of life may
 * be told. */
void record_life(struct record *rec);

/* Redacted, then written as a whole. */
int record_write_json(struct record *rec, const char *name, struct json *v, struct err *e) MUST_USE;
int record_write_text(struct record *rec, const char *name, struct str text,
                      struct err *e) MUST_USE;

/* Writes manifest.json with status "running", for who watches the directory. */
int record_announce(struct record *rec, const struct summary *s, struct err *e) MUST_USE;

/* When the harness is gone, and before anything else is written: see rundir_reclaim(). `dirs`
 * (NULL-terminated, may be NULL) are further directories that must still exist. Negative when the
 * record is damaged; `damage` has the reason, and record_finish() reports it. */
int record_reclaim(struct record *rec, const char *const *dirs);

/* All files are tried even if one fails; the first failure is returned. A success whose record is
 * damaged is none: the reason of the summary is then `cannot_write_output`. Afterwards only
 * record_done(). */
int record_finish(struct record *rec, struct summary *s, struct err *e) MUST_USE;
