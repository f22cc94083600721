/* SPDX-License-Identifier: MIT
 *
 * Times of this program's own work for bench/workspace: making a view (with its mount), and the
 * begin, commit and rollback of a transaction with ten changes, in seconds, as JSON.
 *
 *   workspace_bench TREE PRIVATE
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "workspace/txn.h"
#include "workspace/workspace.h"

enum { ROUNDS = 15 };

struct figures {
    double view[ROUNDS], begin[ROUNDS], commit[ROUNDS], rollback[ROUNDS];
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "workspace_bench: %s: %s\n", what, strerror(errno));
    return 1;
}

static double since(nsec start)
{
    return (double)(clock_now() - start) / 1e9;
}

static int mount_overlay(const char *lower, const char *upper, const char *work, const char *at)
{
    char options[3 * 4096];
    (void)snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,volatile", lower,
                   upper, work);
    return mount("overlay", at, "overlay", MS_NOSUID | MS_NODEV, options);
}

static int time_view(const char *tree, const char *private_dir, double *ret)
{
    struct err e = { 0 };
    struct workspace *w = NULL;
    struct workspace_opts o = {
        .source = tree, .dir = private_dir, .overlay = true, .marks = NODE_MARKS_TRUSTED
    };
    nsec start = clock_now();
    if (workspace_open(&o, &w, &e) < 0) {
        (void)fprintf(stderr, "workspace_bench: %s\n", e.msg);
        return -1;
    }
    const struct sandbox_view *v = workspace_view(w);
    char upper[4096];
    char work[4096];
    (void)snprintf(upper, sizeof upper, "%s/upper", v->layer);
    (void)snprintf(work, sizeof work, "%s/work", v->layer);
    if (mount_overlay(v->lower[0], upper, work, v->path) < 0) {
        return -1;
    }
    *ret = since(start);
    (void)umount2(v->path, MNT_DETACH);
    workspace_close(w, false);
    return 0;
}

static void put(const char *dir, const char *name, int round)
{
    char path[4096 + 256];
    (void)snprintf(path, sizeof path, "%s/d000/s00/%s", dir, name);
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
        (void)dprintf(fd, "round %d\n", round);
    }
}

/* Five edits, two new files, two deletions, one rename. */
static void work_in(const char *dir, int round)
{
    static const char *const edited[] = { "f000010.c", "f000011.c", "f000012.c", "f000013.c",
                                          "f000014.c" };
    char name[64];
    char from[4096 + 256];
    char to[4096 + 256];
    for (size_t i = 0; i < 5; i++) {
        put(dir, edited[i], round);
    }
    for (int i = 0; i < 2; i++) {
        (void)snprintf(name, sizeof name, "made%d_%d", round, i);
        put(dir, name, round);
        (void)snprintf(from, sizeof from, "%s/d000/s00/f0000%02d.c", dir,
                       16 + (round * 2 + i) % 30);
        (void)unlink(from);
    }
    (void)snprintf(from, sizeof from, "%s/d000/s00/f000015.c", dir);
    (void)snprintf(to, sizeof to, "%s/d000/s00/moved%d", dir, round);
    (void)rename(from, to);
    put(dir, "f000015.c", round);
}

static int time_txn(struct txns *t, const char *tree, const char *layers, int round,
                    struct figures *f)
{
    struct txn *x = NULL;
    struct err e = { 0 };
    char upper[4096];
    char work[4096];
    for (int k = 0; k < 2; k++) {
        nsec start = clock_now();
        if (txn_begin(t, &x, &e) < 0) {
            (void)fprintf(stderr, "workspace_bench: %s\n", e.msg);
            return -1;
        }
        (void)snprintf(upper, sizeof upper, "%s/%s/upper", layers, txn_layer(x));
        (void)snprintf(work, sizeof work, "%s/%s/work", layers, txn_layer(x));
        if (mount_overlay(tree, upper, work, tree) < 0) {
            return fail("mount");
        }
        f->begin[round] = since(start);
        work_in(tree, round * 2 + k);
        (void)umount2(tree, MNT_DETACH);
        start = clock_now();
        if (k == 0) {
            txn_rollback(x);
            f->rollback[round] = since(start);
        } else if (txn_commit(x, NULL, &e) < 0) {
            (void)fprintf(stderr, "workspace_bench: %s\n", e.msg);
            return -1;
        } else {
            f->commit[round] = since(start);
        }
    }
    return 0;
}

static void print(const char *name, const double *values, const char *end)
{
    (void)printf("\"%s\": [", name);
    for (int i = 0; i < ROUNDS; i++) {
        (void)printf("%s%.6f", i == 0 ? "" : ", ", values[i]);
    }
    (void)printf("]%s", end);
}

int main(int argc, char **argv)
{
    static struct figures f;
    struct err e = { 0 };
    if (argc != 3) {
        (void)fprintf(stderr, "usage: workspace_bench TREE PRIVATE\n");
        return 64;
    }
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        (void)printf("{\"skipped\": \"needs root to mount without a sandbox\"}\n");
        return 0;
    }
    const char *tree = argv[1];
    char txn_dir[4096];
    char layers[] = "/dev/shm/cinch-bench-XXXXXX";
    (void)snprintf(txn_dir, sizeof txn_dir, "%s.txn", argv[2]);
    CLEANUP(fd) int root = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || mkdtemp(layers) == NULL) {
        return fail("set up");
    }
    CLEANUP(fd) int layers_fd = open(layers, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct txns *t = NULL;
    struct txns_opts o = { .workspace_fd = root,
                           .dir = txn_dir,
                           .layers_fd = layers_fd,
                           .overlay = true,
                           .marks = NODE_MARKS_TRUSTED };
    int r = 0;
    for (int i = 0; r == 0 && i < ROUNDS; i++) {
        r = time_view(tree, argv[2], &f.view[i]);
    }
    r = r < 0 ? r : txns_open(&o, &t, &e);
    for (int i = 0; r == 0 && i < ROUNDS; i++) {
        r = time_txn(t, tree, layers, i, &f);
    }
    txns_close(t);
    (void)!file_remove_tree(AT_FDCWD, layers, NULL);
    if (r < 0) {
        return fail("measure");
    }
    (void)printf("{");
    print("view", f.view, ", ");
    print("begin", f.begin, ", ");
    print("commit", f.commit, ", ");
    print("rollback", f.rollback, "}\n");
    return 0;
}
