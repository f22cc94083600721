/* SPDX-License-Identifier: MIT
 *
 * The namespace lives as long as a process in it or a descriptor; so a child is made in it, asked
 * for nothing, and killed as soon as the descriptor is open.
 */
#include "init/idmap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/mounts.h"
#include "init/plan.h"

/* Five extents of at most 35 characters. */
#define TABLE_MAX 256
#define IDS_END   UINT64_C(4294967295) /* -1 is no id */

/* Appends "inside outside count\n" unless it is empty. */
static size_t extent(char *out, size_t at, uint64_t inside, uint64_t outside, uint64_t count)
{
    if (count == 0) {
        return at;
    }
    int n = snprintf(out + at, TABLE_MAX - at, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", inside,
                     outside, count);
    return n < 0 ? at : at + (size_t)n;
}

/* a and b change places, all others stay. */
static size_t swap_table(char out[TABLE_MAX], uint32_t a, uint32_t b)
{
    uint64_t low = a < b ? a : b;
    uint64_t high = a < b ? b : a;
    size_t at = extent(out, 0, 0, 0, low);
    if (low == high) {
        return extent(out, at, low, low, IDS_END - low);
    }
    at = extent(out, at, low, high, 1);
    at = extent(out, at, low + 1, low + 1, high - low - 1);
    at = extent(out, at, high, low, 1);
    return extent(out, at, high + 1, high + 1, IDS_END - high - 1);
}

static int write_table(int host, pid_t pid, const char *name, uint32_t disk, uint32_t shown,
                       struct err *e)
{
    char path[64];
    char table[TABLE_MAX];
    /* A table cannot be empty: this maps an id that is no group of any file. */
    size_t len = disk == PLAN_NO_GROUP ? extent(table, 0, IDS_END - 1, IDS_END - 1, 1)
                                       : swap_table(table, disk, shown);
    (void)snprintf(path, sizeof path, "proc/%d/%s", (int)pid, name);
    int fd = openat(host, path, O_WRONLY | O_CLOEXEC);
    /* All or nothing: the kernel takes a table in one write. */
    bool ok = fd >= 0 && write(fd, table, len) == (ssize_t)len;
    int rc = ok ? 0 : ERR_SYS_AS(e, ERR_UNSUPPORTED, "write the %s of shown owners", name);
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

static void wait_in_it(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        (void)pause();
    }
}

int idmap_open(int host, struct mounts_shift *s, struct err *e)
{
    char path[64];
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        wait_in_it();
    }
    if (pid < 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "create a user namespace for shown owners");
    }
    int rc = write_table(host, pid, "uid_map", s->uid, s->host_uid, e);
    rc = rc < 0 ? rc : write_table(host, pid, "gid_map", s->gid, s->host_gid, e);
    if (rc == 0) {
        (void)snprintf(path, sizeof path, "proc/%d/ns/user", (int)pid);
        s->fd = openat(host, path, O_RDONLY | O_CLOEXEC);
        rc = s->fd < 0 ? ERR_SYS(e, "open a user namespace") : 0;
    }
    (void)kill(pid, SIGKILL); /* the holder reaps it with the others, when it has time */
    return rc;
}
