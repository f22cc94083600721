/* SPDX-License-Identifier: MIT
 *
 * struct open_calls: the model calls that are under way, on disk. A run that is killed cannot
 * report them, though the provider bills them: recovery reads them from here and charges what was
 * reserved.
 *
 *   struct open_calls open = OPEN_CALLS_INIT;
 *   open_calls_add(&open, &record, &call);          before the request is sent, for each attempt
 *   open_calls_remove(&open, call.exchange);        after its model.call event was written
 *   open_calls_done(&open, &record.dir);            the gateway is closed: removes the file
 *
 *   list = open_calls_read(&dir, arena);            recovery
 *
 * The file has one line of fixed length for each call under way; a line of blanks is free. Adding
 * and removing is one system call each. What cannot be written is noted as a loss of the record.
 */
#pragma once

#include <stdint.h>

#include "record/events.h"

#define OPEN_CALLS_NAME "evidence/open-calls.jsonl"

struct record;

struct open_calls {
    int fd;         /* -1: nothing was added so far */
    int64_t *slots; /* the exchange of each line; 0: the line is free */
    size_t len;
};

#define OPEN_CALLS_INIT \
    {                   \
        .fd = -1        \
    }

void open_calls_add(struct open_calls *o, struct record *rec, const struct event_model_call *call);
void open_calls_remove(struct open_calls *o, int64_t exchange);
void open_calls_done(struct open_calls *o, const struct rundir *d); /* idempotent */

/* The calls that a dead run left, oldest first; NULL-terminated, in the arena. Damaged lines are
 * skipped. */
struct event_model_call **open_calls_read(const struct rundir *d, struct arena *a);
