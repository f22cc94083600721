/* SPDX-License-Identifier: MIT
 *
 * The file system operations of a plan. Used by the holder, which composes the view from the
 * host's files, and by a keeper that adds mounts of its own.
 *
 *   struct mounts m = MOUNTS_INIT;
 *   mounts_do(&m, &record, e) …          ROOT first; CLOSE_ROOT when nothing of the host is needed
 *   mounts_done(&m);
 *
 * Sources are looked up below the host's root and cannot leave it; targets below the new one, where
 * no symbolic link is followed: what a repository holds cannot direct a mount elsewhere. Missing
 * targets are made. Everything is mounted nosuid, and nodev unless the plan says otherwise.
 *
 * Privileged directories of the view are below MOUNTS_OWN, which no program ever sees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct plan_record;

#define MOUNTS_OWN  "/.cinch"
#define MOUNTS_HOST "/.host"

/* Different owners whose files are shown as the program's; more than a handful is a mistake. */
#define MOUNTS_SHIFTS_MAX 16

struct mounts_shift {
    uint32_t uid, gid, host_uid, host_gid;
    int fd; /* user namespace that says so */
};

struct mounts {
    int host; /* the host's root, -1 when it is out of reach */
    struct mounts_shift shifts[MOUNTS_SHIFTS_MAX];
    size_t n_shifts;
    bool no_links; /* a foreign tree is in the view: its links may lead anywhere */
};

#define MOUNTS_INIT \
    {               \
        .host = -1  \
    }

/* Carries out one operation, 0 also for one that is not about files. */
int mounts_do(struct mounts *m, const struct plan_record *r, struct err *e) MUST_USE;
bool mounts_knows(const struct plan_record *r);
void mounts_done(struct mounts *m);

/* A directory or file of the view by its path, without following a link; O_PATH. */
int mounts_open(const char *path, int *ret_fd, struct err *e) MUST_USE;
