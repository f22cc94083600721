/* SPDX-License-Identifier: MIT
 *
 * struct validator: reports what is wrong with a transcript. The transcript is the common form in
 * which all adapters record what happened; tests of adapters and readers of records validate it
 * before they rely on it.
 *
 *   struct validator *o = validator_new(&(struct validator_opts) { .adapter = "codex" });
 *   validator_feed(o, bytes);  …  validator_end(o);
 *   const struct validator_report *r = validator_report(o);
 *   for (size_t i = 0; i < r->n_findings; i++) { … r->findings[i].sentence … }
 *   o = validator_free(o);
 *
 * or, for a file or a run directory, validator_look("out", &opts, &o, e) in place of the first two
 * lines. The answer is a list of findings with their place, never only yes or no; `checks` chooses
 * what is looked for, so that a scenario can ask for one thing.
 *
 * The bytes may be anything, in pieces of any size. Lines of transcript.jsonl are read, and log
 * records of the form {timestamp, level, logger, event, message, context} with the envelope in
 * their context (WINK's transcript.jsonl, which holds entries only, and its logs/app.jsonl, whose
 * other records are passed over). Memory is bounded: a line by JSONL_LINE_MAX, findings by
 * VALIDATOR_FINDINGS_MAX, sources and calls by VALIDATOR_KEYS_MAX.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "record/transcript.h"

struct json;

/* X(check, word, what it holds) */
#define VALIDATOR_LIST(X)                                                                         \
    X(VALIDATOR_ENVELOPE, "envelope", "each line is whole and has the fields of its kind")        \
    X(VALIDATOR_CANONICAL_TYPES, "canonical_types", "each entry is of one of the nine types")     \
    X(VALIDATOR_SEQUENCE, "sequence", "entries of a source are numbered from 1 without gaps")     \
    X(VALIDATOR_ADAPTER_LABEL, "adapter_label", "all lines name the same, the expected, adapter") \
    X(VALIDATOR_CAUSAL_ORDER, "causal_order", "a call comes before its one result; time goes on") \
    X(VALIDATOR_BRACKETING, "bracketing",                                                         \
      "entries lie between a start and a stop that counts them")                                  \
    X(VALIDATOR_BUNDLE, "bundle", "the rest of the record tells of the same transcript")

enum validator_check {
#define X(check, word, holds) check,
    VALIDATOR_LIST(X)
#undef X
        VALIDATOR_CHECK_MAX
};

const char *validator_check_word(enum validator_check check);
bool validator_check_find(struct str word, enum validator_check *ret);

#define VALIDATOR_FINDINGS_MAX 1000
#define VALIDATOR_KEYS_MAX     100000

struct validator_opts {
    unsigned checks; /* 1u << VALIDATOR_…, or 0: all */
    /* What `adapter` must be; NULL: in a run directory what the manifest says, else that of the
     * first line. */
    const char *adapter;
    /* causal_order: a tool that must have been called and answered; NULL: none. Matches "NAME" and
     * what ends in "_NAME", as harnesses put prefixes before names of bridged tools. */
    const char *tool;
    /* Sees each entry: an object with the fields of the envelope, valid during the call. */
    void (*entry)(void *arg, size_t line, const struct json *fields);
    void *arg;
};

struct validator_finding {
    enum validator_check check;
    const char *file; /* of the record, "manifest.json"; NULL: the transcript */
    size_t line;      /* from 1; 0: the file as a whole */
    const char *sentence;
};

/* What is there, however much of it is wrong. */
struct validator_summary {
    int64_t conversations; /* transcript.start lines */
    int64_t entries;
    int64_t by_type[ENTRY_TYPE_MAX];
    struct json *by_source;            /* source -> number */
    const char *adapter, *prompt_name; /* of the first line; "" when there is none */
    const char *first, *last;          /* timestamps of entries; "" when there are none */
};

struct validator_report {
    const struct validator_finding *findings;
    size_t n_findings;
    size_t left_out;    /* findings beyond VALIDATOR_FINDINGS_MAX */
    bool is_transcript; /* false: bytes, but not one line of a transcript */
    struct validator_summary summary;
};

/* Strings of `opts` are borrowed. */
struct validator *validator_new(const struct validator_opts *opts);
void validator_feed(struct validator *o, struct str bytes);
void validator_end(struct validator *o); /* after the last byte, once */
/* After the end; lives as long as the validator. */
const struct validator_report *validator_report(const struct validator *o);
struct validator *validator_free(struct validator *o); /* accepts NULL, returns NULL */

/* A file, or transcript.jsonl of a directory with all that surrounds it (a run directory, or an
 * unpacked debug bundle); done with all of it when it returns. `bundle` is for directories:
 * ERR_USAGE when it is asked for by name with a file. ERR_INPUT when there is nothing, ERR_PARSE
 * when it is no transcript. */
int validator_look(const char *path, const struct validator_opts *opts, struct validator **ret,
                   struct err *e) MUST_USE;

static inline void cleanup_validator(struct validator **o)
{
    *o = validator_free(*o);
}
