/* SPDX-License-Identifier: MIT
 *
 * struct live: what the agent does, one line per message and tool call, above the status line of
 * a run:
 *
 *   07:15 > Fix the failing test
 *   07:15 I will run the tests first.
 *   07:16 $ npm test  failed, 4.1s
 *
 * A call gets its line when it ends, with its duration; until then live_note() has it, for the
 * status line.
 */
#pragma once

#include "base/clock.h"
#include "cli/progress.h"

struct json;

enum { LIVE_CALLS = 16, LIVE_ID = 80, LIVE_TEXT = 240 };

struct live {
    struct progress *progress; /* borrowed */
    struct {
        char id[LIVE_ID]; /* "": free */
        char text[LIVE_TEXT];
        nsec began;
    } calls[LIVE_CALLS]; /* under way; more than that get no duration */
};

/* A line of transcript.jsonl. */
void live_entry(struct live *l, const struct json *entry, nsec now);
/* The call that was begun last and has not ended; NULL: none. */
const char *live_note(const struct live *l);
