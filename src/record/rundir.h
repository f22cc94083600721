/* SPDX-License-Identifier: MIT
 *
 * struct rundir: the directory that is the only truth about one run.
 *
 *  1. rundir_create(&d, "out", &(struct rundir_opts){ .force = true }, e) makes the directory with
 *     its sub-directories and takes the owner lock, or rundir_open(&d, "out", e) looks into an
 *     existing one
 *  2. writers (logfile.h, jsonl.h, rundir_write_json) work relative to d.dir_fd
 *  3. rundir_done(&d) lets go of the lock
 *
 * The owner lock is a flock(2) on the directory itself: it leaves no file behind, and the kernel
 * drops it when the owner dies, however it dies. Where the file system knows no such locks,
 * `locked` is false and the owner is told by the pid in state.json (state.h).
 *
 * While a run goes on, some blocks are kept aside in an unlinked file, so that a disk that the
 * harness filled up still takes metrics.json and manifest.json: rundir_release_reserve() gives them
 * back.
 *
 * Nothing here follows symbolic links inside the directory or opens anything but regular files: the
 * harness may have been able to write there.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct json;

struct rundir {
    char *path; /* absolute */
    int dir_fd;
    int reserve_fd;
    bool locked;
    char *archived; /* where the former content went, or NULL; with force only */
};

#define RUNDIR_INIT                    \
    {                                  \
        .dir_fd = -1, .reserve_fd = -1 \
    }

struct rundir_opts {
    bool force;              /* rename what is there to "<dir>.<time>" instead of refusing it */
    const char *const *keep; /* but never a directory that holds one of these; NULL-terminated */
};

/* ERR_OUTPUT when the path cannot be a directory of ours: not a directory, not empty (without
 * force), in use by a living run, holding the current directory or a path to keep (with force), not
 * writable. */
int rundir_create(struct rundir *d, const char *path, const struct rundir_opts *opts,
                  struct err *e) MUST_USE;

/* Opens without changing anything and tries to become the owner: `locked` tells whether it worked.
 * ERR_EXISTS while another process holds the lock (d is then open all the same, for reading);
 * ERR_INPUT when there is no such directory. */
int rundir_open(struct rundir *d, const char *path, struct err *e) MUST_USE;
void rundir_done(struct rundir *d); /* idempotent */

void rundir_release_reserve(struct rundir *d);

/* Makes the sub-directories and the files that exist from the start, as far as they are missing.
 * Something of another kind that stands in their place is renamed to "<name>.damaged".
 * rundir_create does this. */
int rundir_complete(const struct rundir *d, struct err *e) MUST_USE;

/* Before the verdict, when the harness is gone: gives the owner its permissions back, renames what
 * stands where a file of ours belongs to "<name>.damaged", and makes what is missing, a removed
 * directory included. ERR_OUTPUT when the record is not what and where it should be (removed, moved
 * away); `d` can be written to all the same as far as that is possible. */
int rundir_reclaim(struct rundir *d, struct err *e) MUST_USE;

/* A regular file of at most `max` bytes, appended to `ret`. ERR_INPUT when absent or no regular
 * file. */
int rundir_read(const struct rundir *d, const char *name, size_t max, struct buf *ret,
                struct err *e) MUST_USE;
/* The whole of a JSON object; NULL when it is absent, too large, damaged or no object. */
struct json *rundir_read_object(const struct rundir *d, const char *name, size_t max,
                                struct arena *a);
/* Renames to "<name>.damaged": what is no record but may be worth a look. */
void rundir_move_aside(const struct rundir *d, const char *name);
/* Opens or creates a regular file for appending; returns the descriptor or a negative code. */
int rundir_open_append(const struct rundir *d, const char *name, struct err *e) MUST_USE;
int rundir_write_json(const struct rundir *d, const char *name, const struct json *v,
                      struct err *e) MUST_USE;
int rundir_write_text(const struct rundir *d, const char *name, struct str text,
                      struct err *e) MUST_USE;
/* Size of a regular file, 0 when there is none. */
int64_t rundir_size(const struct rundir *d, const char *name);

/* Sorted JSON array of the relative paths of all regular files but state.json, manifest.json,
 * heartbeat, temporary ones and those below home/: what the manifest lists. At most
 * RUNDIR_LIST_MAX. */
#define RUNDIR_LIST_MAX 10000
struct json *rundir_list(const struct rundir *d, struct arena *a);

static inline void cleanup_rundir(struct rundir *d)
{
    rundir_done(d);
}
