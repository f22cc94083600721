/* SPDX-License-Identifier: MIT
 *
 * struct oracle: says what is wrong with a transcript. The transcript is the one form in which all
 * adapters tell what happened; whoever relies on it (a test of an adapter, a reader of records)
 * asks here first whether it can be relied on.
 *
 *   struct oracle *o = oracle_new(&(struct oracle_opts) { .adapter = "codex" });
 *   oracle_feed(o, bytes);  …  oracle_end(o);
 *   const struct oracle_report *r = oracle_report(o);
 *   for (size_t i = 0; i < r->n_findings; i++) { … r->findings[i].sentence … }
 *   o = oracle_free(o);
 *
 * or, for a file or a run directory, oracle_look("out", &opts, &o, e) in place of the first two
 * lines. The answer is a list of findings with their place, never only yes or no; `checks` chooses
 * what is looked for, so that a scenario can ask for one thing.
 *
 * The bytes may be anything, in pieces of any size. Lines of transcript.jsonl are read, and log
 * records of the form {timestamp, level, logger, event, message, context} with the envelope in
 * their context (WINK's transcript.jsonl, which holds entries only, and its logs/app.jsonl, whose
 * other records are passed over). Memory is bounded: a line by JSONL_LINE_MAX, findings by
 * ORACLE_FINDINGS_MAX, sources and calls by ORACLE_KEYS_MAX.
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
#define ORACLE_LIST(X)                                                                            \
    X(ORACLE_ENVELOPE, "envelope", "each line is whole and has the fields of its kind")           \
    X(ORACLE_CANONICAL_TYPES, "canonical_types", "each entry is of one of the nine types")        \
    X(ORACLE_SEQUENCE, "sequence", "entries of a source are numbered from 1 without gaps")        \
    X(ORACLE_ADAPTER_LABEL, "adapter_label", "all lines name the same, the expected, adapter")    \
    X(ORACLE_CAUSAL_ORDER, "causal_order", "a call comes before its one result; time goes on")    \
    X(ORACLE_BRACKETING, "bracketing", "entries lie between a start and a stop that counts them") \
    X(ORACLE_BUNDLE, "bundle", "the rest of the record tells of the same transcript")

enum oracle_check {
#define X(check, word, holds) check,
    ORACLE_LIST(X)
#undef X
        ORACLE_CHECK_MAX
};

const char *oracle_check_word(enum oracle_check check);
const char *oracle_check_meaning(enum oracle_check check);
bool oracle_check_find(struct str word, enum oracle_check *ret);

#define ORACLE_FINDINGS_MAX 1000
#define ORACLE_KEYS_MAX     100000

struct oracle_opts {
    unsigned checks; /* 1u << ORACLE_…, or 0: all */
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

struct oracle_finding {
    enum oracle_check check;
    const char *file; /* of the record, "manifest.json"; NULL: the transcript */
    size_t line;      /* from 1; 0: the file as a whole */
    const char *sentence;
};

/* What is there, however much of it is wrong. */
struct oracle_summary {
    int64_t conversations; /* transcript.start lines */
    int64_t entries;
    int64_t by_type[ENTRY_TYPE_MAX];
    struct json *by_source;            /* source -> number */
    const char *adapter, *prompt_name; /* of the first line; "" when there is none */
    const char *first, *last;          /* timestamps of entries; "" when there are none */
};

struct oracle_report {
    const struct oracle_finding *findings;
    size_t n_findings;
    size_t left_out;    /* findings beyond ORACLE_FINDINGS_MAX */
    bool is_transcript; /* false: bytes, but not one line of a transcript */
    struct oracle_summary summary;
};

/* Strings of `opts` are borrowed. */
struct oracle *oracle_new(const struct oracle_opts *opts);
void oracle_feed(struct oracle *o, struct str bytes);
void oracle_end(struct oracle *o); /* after the last byte, once */
/* After the end; lives as long as the oracle. */
const struct oracle_report *oracle_report(const struct oracle *o);
struct oracle *oracle_free(struct oracle *o); /* accepts NULL, returns NULL */

/* A file, or transcript.jsonl of a directory with all that surrounds it (a run directory, or an
 * unpacked debug bundle); done with all of it when it returns. `bundle` is for directories:
 * ERR_USAGE when it is asked for by name with a file. ERR_INPUT when there is nothing, ERR_PARSE
 * when it is no transcript. */
int oracle_look(const char *path, const struct oracle_opts *opts, struct oracle **ret,
                struct err *e) MUST_USE;

static inline void cleanup_oracle(struct oracle **o)
{
    *o = oracle_free(*o);
}
