/* SPDX-License-Identifier: MIT
 *
 * The disk space of a run: what the agent adds to its layer of the workspace, its home, the
 * artifacts and the logs, all below the run directory.
 *
 *  1. disk_begin(run)   before the agent starts: the limit, and what is there already
 *  2. disk_exceeded(run, …)   each second, while it runs
 *  3. disk_judge(run)   after it: was a full disk the cause of a failure?
 *
 * The check is a statfs(2). The directory is walked when the free space of its file system has
 * fallen so far that the run may have reached half of what it had left, and every few seconds in
 * any case, since other programs may free as much as the run writes. The limit is a bound for
 * accidents, not a quota: it may be passed for some seconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct arena;
struct run;

/* Unless the task says otherwise: this much, and never more than half of what is free. */
#define DISK_DEFAULT (UINT64_C(20) << 30)

struct run_disk {
    uint64_t limit;      /* of what the run adds; 0: unknown, hence none */
    uint64_t before;     /* what was below the run directory at the start */
    uint64_t free_start; /* of the file system */
    uint64_t walk_below; /* free space at which the directory is walked */
    nsec walk_at;        /* time at which it is walked in any case */
    bool full;           /* the file system was seen full */
};

void disk_begin(struct run *run);
/* True: the run has used more than it may; `text` says how much. */
bool disk_exceeded(struct run *run, char *text, size_t size);
/* A failure on a full disk becomes reason `disk`. Before anything of the run is removed. */
void disk_look(struct run *run);
void disk_judge(struct run *run);

/* The limit for this much free space; `wanted` 0: the default. */
uint64_t disk_limit(uint64_t wanted, uint64_t free_space);
/* "1.2 KiB" */
const char *disk_size_text(struct arena *a, uint64_t bytes);
/* Bytes on disk below a directory, links not followed, other file systems not entered. False when
 * it is too large or too deep to be counted; then *ret is a part. */
bool disk_usage(int dir_fd, uint64_t *ret);
