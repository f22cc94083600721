/* SPDX-License-Identifier: MIT
 *
 * The validator's state: what it remembers of the lines so far. validator.c reads lines and knows
 * conversations, validator_entry.c checks one line, validator_call.c calls and their results,
 * validator_bundle.c the files around the transcript.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "validate/validator.h"
#include "wire/lines.h"

#define VALIDATOR_TIME_MAX 48

/* A line, in either form. */
struct validator_line {
    const struct json *whole;
    const struct json *fields; /* the same, or the context of a log record */
    bool log;
    struct str event;
    int64_t wall; /* of `timestamp`; VALIDATOR_NO_TIME: it is not one */
};

#define VALIDATOR_NO_TIME INT64_MIN

/* Found by key; `conversation` says which one the numbers are of. */
struct validator_source {
    struct str key;
    size_t conversation;
    int64_t last;  /* number */
    int64_t count; /* entries */
    int64_t uses, results, anonymous;
    struct validator_source *next; /* in order of appearance */
};

struct validator_call {
    struct str key;
    size_t conversation;
    size_t use, result; /* lines; 0: none yet */
    const struct validator_source *source;
    bool wanted; /* of opts.tool */
};

/* How often a tool was called, by the name the harness has for it; for events.jsonl. */
struct validator_tool {
    struct str name;
    int64_t left;
    struct validator_tool *next;
};

struct validator {
    struct validator_opts opts;
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
    char last_time[VALIDATOR_TIME_MAX];
    size_t last_time_len;
    size_t tool_used, tool_answered; /* lines; 0: none yet */

    void *sources, *calls; /* trees of tsearch(3), which is no worse with hostile keys */
    size_t n_keys;
    bool told_keys;
    struct validator_source *first_source, *last_source;
    struct validator_tool *tools;
    size_t n_tools;

    /* "source #number type" of each entry, for agent.log; only with a directory. What does not fit
     * is not compared. */
    bool keeps_heads;
    struct buf heads;

    struct validator_finding *findings;
    size_t cap;
    struct validator_report report;
};

void validator_find(struct validator *o, enum validator_check check, size_t line, const char *fmt,
                    ...) PRINTF_LIKE(4, 5);
bool validator_wants(const struct validator *o, enum validator_check check);

/* Foreign text for a sentence: its beginning, for "%.*s". */
struct str validator_short(struct str s);
/* What a tree finds it by: keys of any length take little room. */
struct str validator_key(struct arena *a, struct str s);

/* NULL when there are too many, which is told once. Made new on the first entry of a conversation.
 */
struct validator_source *validator_source_of(struct validator *o, const struct validator_line *l);

/* --- validator_entry.c --- */
bool validator_line_read(const struct json *whole, struct validator_line *ret);
void validator_envelope(struct validator *o, const struct validator_line *l);

/* --- validator_call.c --- */
void validator_tool_use(struct validator *o, const struct validator_line *l,
                        struct validator_source *s);
void validator_tool_result(struct validator *o, const struct validator_line *l,
                           struct validator_source *s);
void validator_calls_end(struct validator *o);
/* Whether an entry told of this call: by its id, or, where the harness did not pass its id on, one
 * of this tool that no other event took. */
bool validator_call_told(struct validator *o, struct str id, struct str tool);
