/* SPDX-License-Identifier: MIT
 *
 * One transaction from the command line: begins it, mounts its view in a namespace of its own, runs
 * a program there, commits when that exits with 0 and rolls back otherwise.
 *
 *   txn_run [OPTION…] WORKSPACE DIR -- PROGRAM ARGUMENT…
 *   txn_run [OPTION…] --recover WORKSPACE DIR
 *
 *   --copy            without an overlay
 *   --redirect        overlay with redirect_dir=on (root only)
 *   --layers PLACE    upper layers elsewhere
 *   --die-at N        SIGKILL at the N-th call of the commit that changes a file
 *   --parallel        a second transaction is open all the time, and is rolled back at the end
 *   --owner UID       the program runs as UID; what it makes comes back to the workspace's owner
 *
 * Exit status: the program's; 124 when the commit failed, with the reason on stderr; 77 when there
 * is no overlay to be had here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "countdown.h"
#include "own_mounts.h"
#include "workspace/txn.h"

COUNTED_ALL

struct request {
    struct txns_opts opts;
    const char *workspace, *layers;
    bool redirect, recover, parallel;
    long die_at;
    uid_t uid; /* 0: ours */
    char **program;
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "txn_run: %s: %s\n", what, strerror(errno));
    return 125;
}

static int mount_view(const struct txn *x, const struct request *q)
{
    char options[4 * 4096];
    const char *layers = q->layers == NULL ? q->opts.dir : q->layers;
    const char *target = q->workspace;
    if (txn_copy(x) != NULL) {
        return mount(txn_copy(x), target, NULL, MS_BIND, NULL);
    }
    (void)snprintf(options, sizeof options,
                   "lowerdir=%s,upperdir=%s/%s/upper,workdir=%s/%s/work,volatile,%s", target,
                   layers, txn_layer(x), layers, txn_layer(x),
                   geteuid() != 0 ? "userxattr"
                   : q->redirect  ? "redirect_dir=on,index=off,metacopy=off"
                                  : "redirect_dir=nofollow,index=off,metacopy=off");
    return mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options);
}

static int run(const struct txn *x, const struct request *q)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (enter_namespaces() < 0 || mount_view(x, q) < 0) {
            (void)fail("mount");
            _exit(77);
        }
        if (chdir(q->workspace) < 0 ||
            (q->uid != 0 && (setgid(q->uid) < 0 || setuid(q->uid) < 0))) {
            _exit(fail("enter"));
        }
        execvp(q->program[0], q->program);
        _exit(fail(q->program[0]));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return fail("fork");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int transact(struct txns *t, const struct request *q)
{
    struct txn *x;
    struct txn *other = NULL;
    struct err e;
    struct txn_report report;
    if ((q->parallel && txn_begin(t, &other, &e) < 0) || txn_begin(t, &x, &e) < 0) {
        (void)fprintf(stderr, "txn_run: %s\n", e.msg);
        return 124;
    }
    int status = run(x, q);
    if (status != 0) {
        txn_rollback(x);
        return status;
    }
    countdown = q->die_at;
    if (txn_commit(x, &report, &e) < 0) {
        (void)fprintf(stderr, "txn_run: %s\n", e.msg);
        return 124;
    }
    countdown = -1;
    (void)printf("entries %zu files %zu removed %zu bytes %lld us %lld\n", report.entries,
                 report.files, report.removed, (long long)report.bytes,
                 (long long)report.took / 1000);
    return 0;
}

static int parse(int argc, char **argv, struct request *q)
{
    int i = 1;
    q->opts.overlay = true;
    q->opts.marks = geteuid() == 0 ? NODE_MARKS_TRUSTED : NODE_MARKS_USER;
    q->die_at = -1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--copy") == 0) {
            q->opts.overlay = false;
        } else if (strcmp(argv[i], "--redirect") == 0) {
            q->redirect = true;
        } else if (strcmp(argv[i], "--recover") == 0) {
            q->recover = true;
        } else if (strcmp(argv[i], "--parallel") == 0) {
            q->parallel = true;
        } else if (strcmp(argv[i], "--layers") == 0) {
            q->layers = argv[++i];
        } else if (strcmp(argv[i], "--die-at") == 0) {
            q->die_at = strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--owner") == 0) {
            q->uid = (uid_t)strtoul(argv[++i], NULL, 10);
        } else {
            return -1;
        }
    }
    if (argc - i < 2) {
        return -1;
    }
    q->workspace = argv[i];
    q->opts.dir = argv[i + 1];
    q->program = argc - i > 3 ? argv + i + 3 : NULL;
    return q->recover || q->program != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct request q = { 0 };
    struct err e;
    struct stat st;
    if (parse(argc, argv, &q) < 0) {
        (void)fprintf(stderr, "usage: txn_run [OPTION...] WORKSPACE DIR -- PROGRAM...\n");
        return 64;
    }
    CLEANUP(fd) int root = open(q.workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &st) < 0) {
        return fail(q.workspace);
    }
    q.opts.workspace_fd = root;
    CLEANUP(fd)
    int layers = q.layers == NULL ? -1 : open(q.layers, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    q.opts.layers_fd = layers;
    if (q.uid != 0) {
        q.opts.owner = (struct node_owner) { true, q.uid, st.st_uid, q.uid, st.st_gid };
    }
    if (q.recover) {
        countdown = q.die_at;
        int r = txns_recover(&q.opts, &e);
        (void)fprintf(r < 0 ? stderr : stdout, "%s\n", r < 0 ? e.msg : r > 0 ? "finished" : "none");
        return r < 0 ? 124 : 0;
    }
    struct txns *t;
    if (txns_open(&q.opts, &t, &e) < 0) {
        (void)fprintf(stderr, "txn_run: %s\n", e.msg);
        return 124;
    }
    int status = transact(t, &q);
    txns_close(t);
    return status;
}
