/* SPDX-License-Identifier: MIT
 *
 * struct summary: all that is known about a run when it ends. The run layer fills it once;
 * metrics.json, manifest.json and result.json are three views of it, so they cannot contradict each
 * other. Recovery fills it from what a dead run left behind.
 *
 * Zero is the sane default of every field ("unknown", "none"). Strings are borrowed and come from
 * outside: the views redact them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"
#include "record/reason.h"

struct arena;
struct buf;
struct json;
struct redactor;
struct rundir;

#define SUMMARY_SCHEMA_VERSION 1

enum answer_flag { FLAG_UNKNOWN, FLAG_NO, FLAG_YES }; /* null, false, true in JSON */

enum timeout_kind {
    TIMEOUT_NONE,
    TIMEOUT_FIRST_OUTPUT,
    TIMEOUT_IDLE,
    TIMEOUT_TOTAL,
    TIMEOUT_DEADLINE
};
const char *timeout_kind_word(
    enum timeout_kind kind); /* "first_output", …; NULL for TIMEOUT_NONE */

/* Where numbers come from. */
enum tokens_source { TOKENS_NONE, TOKENS_STREAM, TOKENS_REGEX, TOKENS_WIRE };
/* Simulated: what the calls would have cost that a script or a cassette answered. */
enum cost_source { COST_NONE, COST_CLI, COST_TABLE, COST_SIMULATED };

struct summary_phase {
    const char *name;
    nsec took;
};

struct summary {
    /* who */
    const char *run_id;
    const char *adapter; /* name of the profile */
    const char *mode;    /* NULL: "run" */
    struct {
        const char *name;    /* the harness program */
        const char *version; /* NULL: not asked or not told */
        const char *model;   /* NULL: the harness' own choice */
    } engine;
    const char *session_id;

    /* what it was asked, for summary.md */
    const char *task; /* its name; NULL: not known */
    struct str goal;

    /* how it ended */
    enum reason reason;
    const char *error; /* why, for people; NULL on success */
    enum timeout_kind timeout;
    struct engine_exit engine_exit;
    enum exit_profile exit_profile;
    enum answer_flag passed;     /* quality, said by a judge or verifier */
    enum answer_flag no_changes; /* known once there is a workspace view */
    bool recovered;              /* closed by recovery, not by the run itself */

    /* when */
    int64_t started_wall, ended_wall; /* ended 0: still running */
    nsec duration;                    /* by the monotonic clock */
    const struct summary_phase *phases;
    size_t phase_count;
    nsec first_output; /* since the harness was started; 0: none seen */
    nsec first_token;  /* the same, for the first token of an answer; 0: not known */

    /* what it used */
    struct {
        int64_t input, output, cache_read, cache_creation, reasoning;
        enum tokens_source source;
    } tokens;
    double cost_usd;
    enum cost_source cost_source;
    struct {
        int64_t total, failed, refused, side, estimated;
    } calls;            /* at the gateway */
    struct json *usage; /* {wire, reported, difference}; NULL: there was no gateway */
    struct {
        const char *version, *source;
    } prices; /* version NULL: no table was used */
    int64_t api_calls, turns, tool_calls, tool_failures;
    struct {
        nsec utime, stime;
        int64_t maxrss_kb;
    } rusage; /* of the whole process tree */
    int64_t leaked_children;
    struct {
        int64_t out, err; /* bytes that the harness wrote */
        int64_t lost;     /* log bytes that could not be kept */
    } bytes;
    int64_t redactions;

    /* what it said */
    struct str text;     /* final text; ptr NULL: none */
    bool text_cut;       /* it is only the end of what was said; stdout.log has it all */
    struct json *output; /* structured output, or NULL */
    /* rungs of the repair ladder that were needed for it; -1: none was asked for */
    int repair_level;
    const char *output_source; /* "native", "tool", "text"; NULL: none was asked for */
    const char *output_repair; /* "none", "envelope", "fence", "balanced"; NULL as above */
    struct json *output_error; /* why there is none: {type, message, …}; NULL: it is there */
    /* {type, message, prompt_name, phase, provider_payload, details}; NULL: nothing went wrong */
    struct json *evaluation_error;

    struct {
        const char *requested; /* policy; NULL: "off" */
        /* NULL-terminated lists, or NULL: guarantees that held; those that this machine could not
         * give, with the reason; attempts that were seen and refused */
        const char *const *enforced, *const *lost, *const *denied;
        const char *plan_sha256; /* NULL: no plan was carried out */
    } sandbox;
    const char *const *warnings; /* NULL-terminated, or NULL */
    const struct json *changes;  /* [{path, status}]; NULL: not known */
    const char *const *checks;   /* lines about what was checked; NULL-terminated, or NULL */
};

/* The views, as trees in `a`. `r` may be NULL. */
struct json *metrics_json(const struct summary *s, const struct redactor *r, struct arena *a);
struct json *result_json(const struct summary *s, const struct redactor *r, struct arena *a);
/* Lists the files that are there (rundir_list). */
struct json *manifest_json(const struct summary *s, const struct rundir *d,
                           const struct redactor *r, struct arena *a);

/* summary.md, where the agent did not write one: its answer, the task, changes, checks, cost. `r`
 * may be NULL. */
void summary_markdown(const struct summary *s, const struct redactor *r, struct arena *a,
                      struct buf *out);

/* Final text beyond this stays in stdout.log only; result.json then says truncated. */
#define RESULT_TEXT_MAX ((size_t)1 << 20)

/* What metrics.json says as exit_code: the Scylla profile's value (124 on timeout). */
int summary_metrics_exit(const struct summary *s);
/* What `cinch run` returns. */
int summary_contract_exit(const struct summary *s);

/* Takes over what an earlier metrics.json and result.json of the same run knew and the summary does
 * not (usage, numbers, text, session id); either may be NULL; values of a wrong type are passed
 * over. Strings are borrowed from the trees. */
void summary_adopt(struct summary *s, const struct json *metrics, const struct json *result,
                   struct arena *a);
/* The same for durations: an object of milliseconds by phase. */
void summary_adopt_phases(struct summary *s, const struct json *phase_ms, struct arena *a);
