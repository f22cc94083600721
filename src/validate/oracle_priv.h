/* SPDX-License-Identifier: MIT
 *
 * The inside of the oracle: what it remembers of the lines so far. oracle.c reads lines and knows
 * conversations, oracle_entry.c looks at one line, oracle_call.c at calls and their results,
 * oracle_bundle.c at the files around the transcript.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "validate/oracle.h"
#include "wire/lines.h"

#define ORACLE_TIME_MAX 48

/* A line, in either form. */
struct oracle_line {
    const struct json *whole;
    const struct json *fields; /* the same, or the context of a log record */
    bool log;
    struct str event;
    int64_t wall; /* of `timestamp`; ORACLE_NO_TIME: it is not one */
};

#define ORACLE_NO_TIME INT64_MIN

/* Found by key; `conversation` says which one the numbers are of. */
struct oracle_source {
    struct str key;
    size_t conversation;
    int64_t last;  /* number */
    int64_t count; /* entries */
    int64_t uses, results, anonymous;
    struct oracle_source *next; /* in order of appearance */
};

struct oracle_call {
    struct str key;
    size_t conversation;
    size_t use, result; /* lines; 0: none yet */
    const struct oracle_source *source;
    bool wanted; /* of opts.tool */
};

/* How often a tool was called, by the name the harness has for it; for events.jsonl. */
struct oracle_tool {
    struct str name;
    int64_t left;
    struct oracle_tool *next;
};

struct oracle {
    struct oracle_opts opts;
    const char *about; /* file that findings are in; NULL: the transcript */
    struct arena *keep, *scratch;
    struct lines lines;
    uint64_t overlong; /* lines that were too long, as far as they were told */
    size_t line;
    bool blank_only, seen_transcript, seen_log, seen_other, seen_bracket;

    /* the conversation */
    size_t conversation;
    bool open, told_outside;
    size_t start_line;
    struct str prompt_name;
    int64_t total, by_type[ENTRY_TYPE_MAX];
    size_t n_sources;

    struct str adapter;
    int64_t last_wall;
    size_t last_line;
    char last_time[ORACLE_TIME_MAX];
    size_t last_time_len;
    size_t tool_used, tool_answered; /* lines; 0: none yet */

    void *sources, *calls; /* trees of tsearch(3), which is no worse with hostile keys */
    size_t n_keys;
    bool told_keys;
    struct oracle_source *first_source, *last_source;
    struct oracle_tool *tools;
    size_t n_tools;

    /* "source #number type" of each entry, for agent.log; only with a directory. What does not fit
     * is not compared. */
    bool keeps_heads;
    struct buf heads;

    struct oracle_finding *findings;
    size_t cap;
    struct oracle_report report;
};

void oracle_find(struct oracle *o, enum oracle_check check, size_t line, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
bool oracle_wants(const struct oracle *o, enum oracle_check check);

/* Foreign text for a sentence: its beginning, for "%.*s". */
struct str oracle_short(struct str s);
/* What a tree finds it by: keys of any length take little room. */
struct str oracle_key(struct arena *a, struct str s);

/* NULL when there are too many, which is told once. Made new on the first entry of a conversation.
 */
struct oracle_source *oracle_source_of(struct oracle *o, const struct oracle_line *l);

/* --- oracle_entry.c --- */
bool oracle_line_read(const struct json *whole, struct oracle_line *ret);
void oracle_envelope(struct oracle *o, const struct oracle_line *l);

/* --- oracle_call.c --- */
void oracle_tool_use(struct oracle *o, const struct oracle_line *l, struct oracle_source *s);
void oracle_tool_result(struct oracle *o, const struct oracle_line *l, struct oracle_source *s);
void oracle_calls_end(struct oracle *o);
/* Whether an entry told of this call: by its id, or, where the harness did not pass its id on, one
 * of this tool that no other event took. */
bool oracle_call_told(struct oracle *o, struct str id, struct str tool);
