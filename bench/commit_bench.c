/* SPDX-License-Identifier: MIT
 *
 * Commits of tool transactions in this process, without a sandbox: scripts/instructions counts the
 * instructions of it. Each transaction changes ten files, as an overlay would leave them.
 *
 *   commit_bench DIR COMMITS
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "workspace/txn.h"

enum { CHANGES = 10 };

/* valgrind 3.19 does not know openat2, which the linker sends here; this tree has no links. */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    va_start(args, number);
    int dir = va_arg(args, int);
    const char *path = va_arg(args, const char *);
    const struct open_how *how = va_arg(args, const struct open_how *);
    va_end(args);
    if (number != SYS_openat2) {
        abort();
    }
    return openat(dir, path, (int)how->flags, (mode_t)how->mode);
}

static int write_change(const char *dir, const struct txn *x, int i, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const char *path = arena_printf(a, "%s/private/%s/upper/file%d", dir, txn_layer(x), i);
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd < 0 ? ERR_SYS(e, "cannot create '%s'", path)
                  : file_write_all(fd, STR("changed\n"), e);
}

static int commit_once(struct txns *t, const char *dir, struct err *e)
{
    struct txn *x = NULL;
    int r = txn_begin(t, &x, e);
    for (int i = 0; r == 0 && i < CHANGES; i++) {
        r = write_change(dir, x, i, e);
    }
    if (r < 0) {
        (void)txn_rollback(x);
        return r;
    }
    return txn_commit(x, NULL, e);
}

static int commit_all(const char *dir, int64_t commits, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const char *workspace = arena_printf(a, "%s/workspace", dir);
    int r = file_mkdirs(AT_FDCWD, workspace, 0755, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int fd = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct txns *t = NULL;
    const struct txns_opts opts = { .workspace_fd = fd,
                                    .dir = arena_printf(a, "%s/private", dir),
                                    .layers_fd = -1,
                                    .overlay = true,
                                    .marks = NODE_MARKS_USER };
    r = txns_open(&opts, &t, e);
    for (int64_t i = 0; r == 0 && i < commits; i++) {
        r = commit_once(t, dir, e);
    }
    (void)txns_close(t);
    return r;
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    int64_t commits;
    if (argc != 3 || !str_to_i64(str_of(argv[2]), &commits)) {
        (void)fputs("usage: commit_bench DIR COMMITS\n", stderr);
        return 64;
    }
    if (commit_all(argv[1], commits, &e) < 0) {
        (void)fprintf(stderr, "commit_bench: %s\n", e.msg);
        return 1;
    }
    return 0;
}
