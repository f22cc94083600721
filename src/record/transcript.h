/* SPDX-License-Identifier: MIT
 *
 * struct transcript: transcript.jsonl, what was said and done between us and the harness, in one
 * form for all harnesses; and agent.log, the same for reading.
 *
 *   transcript_init(&t, &dir, redactor, &agent_log, &loss, e);
 *   transcript_start(&t, "demo:task", "command");
 *   transcript_add(&t, &(struct transcript_entry){ .type = ENTRY_USER_MESSAGE, .detail = d });
 *   transcript_stop(&t);              always, also after a failure; then transcript_done(&t)
 *
 * Lines: {"event":"transcript.start"|"transcript.entry"|"transcript.stop", …}. Entries lie between
 * a start and its stop and are numbered from 1, without gaps, per source ("main", "subagent:<id>");
 * the stop counts them. A start after a stop begins anew. An entry that could not be written has no
 * number; one that comes without a start (a run refused before it began) is dropped.
 *
 * Texts pass the redactor. Adding never fails for the caller (see loss.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "record/jsonl.h"

struct json;
struct logfile;
struct loss;
struct redactor;
struct rundir;

#define ENTRY_LIST(X)                               \
    X(ENTRY_USER_MESSAGE, "user_message")           \
    X(ENTRY_ASSISTANT_MESSAGE, "assistant_message") \
    X(ENTRY_TOOL_USE, "tool_use")                   \
    X(ENTRY_TOOL_RESULT, "tool_result")             \
    X(ENTRY_THINKING, "thinking")                   \
    X(ENTRY_SYSTEM_EVENT, "system_event")           \
    X(ENTRY_TOKEN_USAGE, "token_usage")             \
    X(ENTRY_ERROR, "error")                         \
    X(ENTRY_UNKNOWN, "unknown")

enum entry_type {
#define X(type, word) type,
    ENTRY_LIST(X)
#undef X
        ENTRY_TYPE_MAX
};

const char *entry_type_word(enum entry_type type);
bool entry_type_find(struct str word, enum entry_type *ret);

/* `raw` beyond this is cut (raw_bytes then says how long it was). */
#define TRANSCRIPT_RAW_MAX ((size_t)256 << 10)

struct transcript_entry {
    enum entry_type type;
    const char *source;     /* NULL: "main" */
    const char *session_id; /* NULL: left out */
    /* Object or NULL. Known keys, for agent.log: text, tool_name, input, output, result, error. */
    struct json *detail;
    struct str raw; /* the harness' own line; ptr NULL: left out */
};

/* Entries of one start…stop, counted. */
struct transcript_count {
    int64_t total;
    int64_t by_type[ENTRY_TYPE_MAX];
    struct json *by_source; /* object: source -> number */
};

struct transcript {
    struct jsonl out;
    struct logfile *agent_log;
    const struct redactor *redactor;
    struct arena *arena; /* of one entry */
    struct arena *keep;  /* of one start…stop */
    struct transcript_count count;
    char *prompt_name, *adapter;
    bool open;
    void (*entry)(void *arg, const struct json *line); /* transcript_listen() */
    void *entry_arg;
    bool start_written; /* entries without their start would be worthless: it is tried again */
};

/* `agent_log` may be NULL; it, `r` and `loss` are borrowed. */
int transcript_init(struct transcript *t, const struct rundir *d, const struct redactor *r,
                    struct logfile *agent_log, struct loss *loss, struct err *e) MUST_USE;
/* `entry` gets each entry as it is written; it lives until the function returns. NULL: none. */
void transcript_listen(struct transcript *t, void (*entry)(void *arg, const struct json *line),
                       void *arg);
void transcript_start(struct transcript *t, const char *prompt_name, const char *adapter);
void transcript_add(struct transcript *t, const struct transcript_entry *entry);
void transcript_stop(struct transcript *t); /* nothing when there is no start */
void transcript_done(struct transcript *t); /* idempotent */

/* Counting lines that are already in a file, and stopping there (recovery). */
void transcript_count_reset(struct transcript_count *c, struct arena *a);
void transcript_count_add(struct transcript_count *c, struct arena *a, enum entry_type type,
                          struct str source);
void transcript_write_stop(struct jsonl *out, struct arena *a, const struct transcript_count *c,
                           struct str prompt_name, struct str adapter);

/* Is it a whole and well-formed line of transcript.jsonl? */
bool transcript_is_valid(const struct json *line);

/* An entry (a transcript.entry line) for reading: one head line, then the indented text, of at most
 * TRANSCRIPT_TEXT_MAX bytes. */
#define TRANSCRIPT_TEXT_MAX ((size_t)64 << 10)
void transcript_render(const struct json *line, struct buf *out);
