/* SPDX-License-Identifier: MIT
 *
 * What a process that died left of its transactions: decided changes are finished, all others are
 * removed without a trace.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "workspace/listing.h"
#include "workspace/txn_priv.h"

/* The layer of a transaction; -1 when it went with the memory that it lay in. */
static int open_source(const struct txns_opts *o, int dir_fd, const char *id)
{
    const char *const names[] = { TXN_UPPER, TXN_COPY };
    CLEANUP(fd)
    int layers = o->layers_fd >= 0
                     ? openat(o->layers_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                     : -1;
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < ARRAY_LEN(names); i++) {
        fd = openat(layers >= 0 ? layers : dir_fd, names[i],
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    return fd;
}

/* 1 when a decided change was finished. */
static int finish(const struct txns_opts *o, int dir_fd, const char *id, struct err *e)
{
    char stage[sizeof TXN_STAGE_PREFIX + NAME_MAX];
    CLEANUP(delta) struct delta d;
    delta_init(&d);
    (void)snprintf(stage, sizeof stage, "%s%s", TXN_STAGE_PREFIX, id);
    CLEANUP(fd) int source = open_source(o, dir_fd, id);
    struct merge m = {
        .workspace_fd = o->workspace_fd,
        .dir_fd = dir_fd,
        .source_fd = source,
        .marks = o->overlay ? o->marks : NODE_MARKS_NONE,
        .owner = o->owner,
        .stage_name = stage,
        .stage_fd = -1,
    };
    int r = merge_load(&m, &d, e);
    if (r > 0) {
        r = merge_apply(&m, e);
        r = r < 0 ? r : 1;
    } else {
        struct stat st;
        m.inside = true; /* it may have died before it could say so */
        m.before = fstat(o->workspace_fd, &st) == 0 ? st.st_mtim : m.before;
    }
    if (r >= 0) {
        merge_drop(&m);
    }
    cleanup_fd(&m.stage_fd);
    return r;
}

static int recover_one(const struct txns_opts *o, int all_fd, const char *id, struct err *e)
{
    CLEANUP(fd) int dir = openat(all_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) {
        return ERR_SYS(e, "open transaction '%s'", id);
    }
    int r = finish(o, dir, id, e);
    if (r >= 0) {
        if (o->layers_fd >= 0) {
            (void)!file_remove_tree(o->layers_fd, id, NULL);
        }
        int removed = file_remove_tree(all_fd, id, e);
        r = removed < 0 ? removed : r;
    }
    return r < 0 ? err_wrap(e, "transaction '%s'", id) : r;
}

int txns_recover(const struct txns_opts *o, struct err *e)
{
    int finished = 0;
    CLEANUP(fd) int all = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all < 0) {
        return 0; /* there never was one */
    }
    CLEANUP(listing) struct listing names;
    int r = listing_read(&names, all, e);
    /* In the order of their ids, which is the order of time. */
    for (size_t i = 0; r >= 0 && i < names.len; i++) {
        r = strlen(names.items[i]) == ID_LEN - 1 ? recover_one(o, all, names.items[i], e) : 0;
        finished += r > 0;
    }
    return r < 0 ? r : finished;
}
