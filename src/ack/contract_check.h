/* SPDX-License-Identifier: MIT
 *
 * Does an adapter keep the file contract (docs/images.md)? Runs it a few times, as `cinch run` runs
 * it, on a small workspace of its own, and looks at what each run left in its record. Works for
 * images, for programs (exec:PATH) and for names; for adapters of other drivers it makes no sense.
 *
 *   struct contract_report r;
 *   contract_check(a, &(struct contract_opts){ .adapter = "image:localhost/mine", .dir = scratch,
 *                                              .environ = environ }, &r, e)
 *   for (size_t i = 0; i < r.len; i++) … r.items[i].name, .verdict, .detail
 *
 * Blocks until all is known: four runs, each bounded by the timeout. SIGINT and SIGTERM end the one
 * under way (ERR_CANCELLED). An adapter that needs a model gets one by `args`: { "--script",
 * "model.yaml", NULL }.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

/* X(id, name, what it means) */
#define CONTRACT_CHECKS(X)                                                                      \
    X(CONTRACT_MANIFEST, "manifest", "manifest.json is there and says how it ended")            \
    X(CONTRACT_OUTPUTS, "required_outputs", "what the spec requires is among the outputs")      \
    X(CONTRACT_LISTED, "listed_artifacts", "what the manifest lists is among the outputs")      \
    X(CONTRACT_EXIT, "exit_code", "0, 1 or 2, as the outcome is")                               \
    X(CONTRACT_INPUTS, "inputs_untouched", "its inputs are as they were given")                 \
    X(CONTRACT_FRESH, "no_contamination", "nothing of an earlier run is in the outputs")        \
    X(CONTRACT_PATCH, "patch", "diff.patch tells of changes where there are some")              \
    X(CONTRACT_PROMPTS, "no_prompts", "it ends without anybody to ask and without a terminal")  \
    X(CONTRACT_SECRETS, "secrets_redacted", "no secret is in its outputs, nor in what it says") \
    X(CONTRACT_MISSING, "missing_secret", "without its secret it fails at once, and says why")  \
    X(CONTRACT_PROBE, "probe", "--probe succeeds, with a manifest, and changes nothing")

enum contract_check_id {
#define X(id, name, meaning) id,
    CONTRACT_CHECKS(X)
#undef X
        CONTRACT_CHECK_MAX
};

enum contract_verdict { CONTRACT_PASSED, CONTRACT_FAILED, CONTRACT_SKIPPED };

struct contract_finding {
    const char *name, *meaning;
    enum contract_verdict verdict;
    const char *detail; /* why not, or what was seen; never NULL */
};

struct contract_report {
    struct contract_finding items[CONTRACT_CHECK_MAX];
    size_t len;
    bool passed; /* nothing failed */
};

struct loop;

/* Of a caller that hears signals on a loop of its own, so that none between two runs is lost: he
 * sets `interrupted` and stops the loop. */
struct contract_watch {
    struct loop *loop; /* NULL: nobody; each run has its own, and hears them itself */
    const bool *interrupted;
};

struct contract_opts {
    const char *adapter;        /* as --adapter takes it */
    const char *dir;            /* exists, is empty, stays */
    const char *const *environ; /* for `cinch run` */
    const char *const *args;    /* more arguments of each run; NULL: none */
    const char *const *secrets; /* variables that the adapter needs; NULL: it says it needs none,
                                      and one that it knows nothing of is tried */
    nsec timeout;               /* of one run; 0: 60 s */
    const char *cinch;          /* the program; NULL: proc/locate.h */
    struct contract_watch watch;
};

/* Negative when nothing can be said: no program, no directory, the adapter cannot be started. */
int contract_check(struct arena *a, const struct contract_opts *o, struct contract_report *ret,
                   struct err *e) MUST_USE;

/* Only asks it whether it could work (--probe): what its manifest said, NULL if it left none, or
 * one that is no object. The directory is as for contract_check(), another one. */
int contract_probe(struct arena *a, const struct contract_opts *o, const struct json **ret,
                   struct err *e) MUST_USE;

const char *contract_verdict_word(enum contract_verdict v); /* "passed" … */
/* [{check, meaning, verdict, detail}] */
struct json *contract_report_json(struct arena *a, const struct contract_report *r);
