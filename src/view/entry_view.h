/* SPDX-License-Identifier: MIT
 *
 * A line of transcript.jsonl, typed, and the texts that people look for in it, whatever harness it
 * came from. Used by everything that shows, indexes or exports a transcript. Pure.
 *
 *   struct entry_view v;
 *   if (entry_view_read(line, &v)) {
 *       entry_view_text(&v, &buf);
 *   }
 *
 * All texts point into the line. They come from agents: clean them before they are printed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "record/transcript.h"

struct json;

struct entry_view {
    enum entry_type type;
    struct str source;    /* "main", "subagent:…" */
    int64_t sequence;     /* of its source; 0: not known */
    struct str timestamp; /* empty: not known */
    struct str tool;      /* of calls and results; empty: not known */
    struct str call_id;   /* likewise */
    bool failed;          /* a result that says so */
    int64_t exit_code;    /* of a command; 0: none, or success */
    const struct json *detail;
};

/* False: this line is no entry (the start or the stop of a transcript, or not of one at all). A log
 * record with the entry in its `context`, as WINK writes them, is an entry, too. */
bool entry_view_read(const struct json *line, struct entry_view *ret);
/* Who speaks: "user", "assistant", "tool"; NULL for entries about the protocol. */
const char *entry_view_role(const struct entry_view *v);
/* System events, token counts and lines that no adapter understood are not for people. */
bool entry_view_is_protocol(const struct entry_view *v);
/* What was said or returned: a message, a thought, the text of a result however it was wrapped, an
 * error; the arguments of a call as JSON. */
void entry_view_text(const struct entry_view *v, struct buf *out);
/* A call as people write it: "$ npm test", "Read src/a.c", "lookup {"id":3}". */
void entry_view_call(const struct entry_view *v, struct buf *out);
