/* SPDX-License-Identifier: MIT
 *
 * struct sse: server-sent events out of bytes, whatever the chunks were; and back. A pure codec.
 *
 *   struct sse s;
 *   sse_init(&s, 8 << 20);                              the largest event, in bytes
 *   sse_feed(&s, bytes);                                must stay valid until sse_next() is dry
 *   while ((r = sse_next(&s, &ev, e)) > 0) { … }        0: dry; ERR_LIMIT: an event is too large
 *   if (sse_end(&s, &ev)) { … }                         an event that lacked its empty line
 *   sse_done(&s);
 *
 * As the HTML standard has it: lines end with LF, CR or CRLF, a byte order mark at the start is
 * skipped, comments and unknown fields are ignored, several data lines are joined with a newline,
 * and an event without data is none. Unlike there, an id belongs to its event only.
 *
 * Strings of an event are valid until the next call. An event that lies whole within one chunk and
 * has one data line is not copied. After ERR_LIMIT the parser stays failed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct sse_event {
    struct str name; /* empty: "message" */
    struct str data;
    struct str id;
    int64_t retry; /* milliseconds, or -1 */
};

struct sse {
    struct str input;    /* borrowed: what is left of the last feed */
    struct buf line;     /* start of a line whose end has not come yet */
    struct buf data;     /* of the event so far, unless borrowed */
    struct buf name, id; /* the same */
    struct str borrowed; /* the only data line so far, inside of input */
    bool has_data;       /* also when it is empty */
    bool has_borrowed;
    bool started;    /* the place for a byte order mark has passed */
    bool skip_lf;    /* the last line ended with CR: an LF belongs to it */
    bool handed_out; /* line and event were returned and are to be dropped */
    bool line_handed_out;
    bool failed;
    int64_t retry;
    size_t max;
};

void sse_init(struct sse *s, size_t max);
void sse_done(struct sse *s);
void sse_feed(struct sse *s, struct str bytes);
int sse_next(struct sse *s, struct sse_event *ret, struct err *e) MUST_USE;
bool sse_end(struct sse *s, struct sse_event *ret);

/* Appends one event. `name` may be empty; data of several lines becomes several data fields.
 * Neither may hold a CR, which would end a line. */
int sse_write(struct str name, struct str data, struct buf *out, struct err *e) MUST_USE;
