/* SPDX-License-Identifier: MIT
 *
 * Runs git on the host without executing anything that a workspace contains: no hooks, fsmonitor,
 * filters, external diffs, pagers, editors or prompts, and no transport, so that a missing object
 * is never fetched. The environment is built here. System, user and repository configuration is not
 * read unless a call asks for the user's (`user_config`).
 *
 *   struct git_call c = { .args = (const char *const[]){ "write-tree", NULL }, .git_dir = dir };
 *   CLEANUP(buf) struct buf out = BUF_INIT(4096);
 *   c.out = &out;
 *   git_run(&c, e);                       ERR_SYS with git's own words when it exits with non-zero
 *
 * Blocks until git is gone. It runs under proc, so it dies with this process.
 */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

struct git_call {
    const char *const *args; /* after "git"; NULL-terminated */
    const char *cwd;         /* NULL: "/" */
    const char *git_dir;     /* NULL: cwd/.git, where git's owner rule decides */
    const char *work_tree;   /* NULL: none */
    const char *index;       /* NULL: the git directory's */
    /* Directory of the user's objects that may be read, too. Only for calls that write none: git
     * refreshes the time of an object that it would have written and finds there. */
    const char *objects;
    const char *new_objects; /* where objects are written; NULL: the git directory's */
    struct str input;        /* standard input, or … */
    const int *input_fd;     /* … a file that is at its beginning; NULL: none */
    struct buf *out;         /* standard output, appended; ERR_LIMIT beyond its maximum */
    const int *out_fd;       /* or into a file; NULL: none */
    int64_t out_max;         /* bytes into the file; 0: no bound */
    bool user_config;        /* the user asked for it, in a repository that git would obey */
    bool system_config;      /* the system's too, as the user's environment selects them */
    const char *safe;        /* directory for safe.directory; NULL: the owner rule alone decides */
    const char *const *config; /* "key=value", NULL-terminated: overrides what git reads; or NULL */
    int ok_status;             /* another exit status that is fine (1 of check-ignore) */
    nsec timeout;              /* 0: 10 minutes */
};

/* The exit status, 0 or ok_status; ERR_UNAVAILABLE when there is no git. */
int git_run(const struct git_call *c, struct err *e) MUST_USE;

/* Whether safe.directory in the system's or the user's configuration lists `dir`. Starts git, so
 * ask only about a directory of another user. */
bool git_lists_as_safe(const char *dir);

/* A repository of our own without configuration, hooks or refs; `objects` (may be NULL) is a
 * directory of objects that it borrows. Made without starting git. */
int git_make_repo(const char *dir, const char *objects, bool sha256, struct err *e) MUST_USE;
