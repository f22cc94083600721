/* SPDX-License-Identifier: MIT
 *
 * struct state: state.json, the one file that is replaced while a run goes on. It says in which
 * phase the run is, who runs it and when that owner last gave a sign of life; at the end, how it
 * ended. It is written last: a terminal state.json means that the record is complete.
 *
 * The owner is a pid together with the start time of that process and the boot it belongs to,
 * because pids are used again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "record/reason.h"

struct arena;
struct rundir;

#define STATE_BOOT_LEN  37
#define STATE_PHASE_MAX 32

struct owner {
    pid_t pid;                 /* 0: unknown */
    uint64_t start;            /* clock ticks since boot, field 22 of /proc/<pid>/stat */
    char boot[STATE_BOOT_LEN]; /* /proc/sys/kernel/random/boot_id; "" when it cannot be read */
};

struct state {
    char run_id[ID_LEN];
    const char *adapter;         /* borrowed; from state_read: in its arena */
    char phase[STATE_PHASE_MAX]; /* lower-case word; "done" at the end */
    enum reason reason;          /* REASON_NONE while running */
    int exit_code;               /* what `cinch run` returned; at the end only */
    struct owner owner;
    int64_t started_wall;
    int64_t heartbeat_wall;
    int64_t ended_wall; /* 0 while running */
};

/* The calling process. */
void owner_self(struct owner *o);
/* Is exactly this process still there? */
bool owner_is_alive(const struct owner *o);

int state_write(const struct state *s, const struct rundir *d, struct err *e) MUST_USE;
/* Whatever of state.json can be made sense of: fields that are missing or damaged stay zero.
 * ERR_INPUT when there is no file, ERR_PARSE when it is not JSON; `ret` is then all zero. */
int state_read(struct state *ret, const struct rundir *d, struct arena *a, struct err *e) MUST_USE;
