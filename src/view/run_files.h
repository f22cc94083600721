/* SPDX-License-Identifier: MIT
 *
 * The files of a run directory, read without trusting any of them: the agent may have been able to
 * put a pipe, a link or garbage in their place, and the directories that people look at are the
 * ones where something went wrong. Reading takes no lock and changes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "record/reason.h"

struct arena;
struct json;

/* A regular file, opened for reading. -1: *ret_why says why not, in words that follow its name
 * ("missing", "is a symbolic link"). */
int run_file_open(int dir_fd, const char *name, const char **ret_why);
/* Everything from where the descriptor is; ERR_LIMIT beyond the maximum of the buffer. */
int run_file_read(int fd, struct buf *ret, struct err *e) MUST_USE;
/* The object in a file. NULL: *ret_why says why, as above ("damaged: line 3: …"), in the arena. */
struct json *run_file_json(int dir_fd, const char *name, struct arena *a, const char **ret_why);
/* The end of a file, at most `max` bytes; empty if it cannot be read. */
struct str run_file_tail(int dir_fd, const char *name, size_t max, struct arena *a);
/* Of a regular file; -1: there is none. */
int64_t run_file_size(int dir_fd, const char *name);

#define RUN_STATUS_LIST(X)                                                       \
    X(RUN_STATUS_RUNNING, "running")                                             \
    X(RUN_STATUS_SUCCEEDED, "succeeded")                                         \
    X(RUN_STATUS_FAILED, "failed")                                               \
    X(RUN_STATUS_CANCELED, "canceled")                                           \
    /* says it is running, but its process is gone: `cinch recover` closes it */ \
    X(RUN_STATUS_ABANDONED, "abandoned")                                         \
    /* too much is missing */                                                    \
    X(RUN_STATUS_UNKNOWN, "unknown")

enum run_status {
#define X(status, word) status,
    RUN_STATUS_LIST(X)
#undef X
};

const char *run_status_word(enum run_status s);
/* state.json is written last and replaced while the run goes on: it decides. The manifest is the
 * next best witness. Both may be NULL. *ret_pid is that of cinch while the run goes on, else 0. */
enum run_status run_status_find(int dir_fd, const struct json *state, const struct json *manifest,
                                int64_t *ret_pid);
/* From the first of state.json, manifest.json and result.json that has one. */
enum reason run_reason_find(const struct json *state, const struct json *manifest,
                            const struct json *result);
/* The name of the task, or the first line of its prompt; empty when neither is known. */
struct str run_task_name(const struct json *task);
