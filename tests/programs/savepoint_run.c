/* SPDX-License-Identifier: MIT
 *
 * Savepoints from the command line, in a mount namespace of its own: an overlay is mounted over a
 * directory, and steps are taken one after the other.
 *
 *   savepoint_run [--copy] [--die-at N] WORKSPACE DIR STEP…
 *
 *   take          savepoint_take()
 *   restore       savepoint_decide() and savepoint_restore(); with --die-at, SIGKILL at the N-th
 *                 call of it that changes a file
 *   recover       what is done for a dead process
 *   anything else is a command of the shell, run in the view
 *
 * --copy: the directory itself is worked on. Exit status: 0, that of a command that failed, 124 for
 * a step that failed, 77 when there is no overlay to be had here.
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

#include "base/arena.h"
#include "base/file.h"
#include "countdown.h"
#include "own_mounts.h"
#include "workspace/savepoint.h"
#include "workspace/txn.h"

COUNTED_ALL

struct request {
    bool copy;
    long die_at;
    const char *workspace, *dir;
    struct savepoint_opts opts;
    struct savepoints *savepoints;
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "savepoint_run: %s: %s\n", what, strerror(errno));
    return 125;
}

/* As workspace.c makes it; a second time over what the first has left. */
static int mount_view(const struct request *q, struct arena *a)
{
    struct stat st;
    const char *upper = arena_printf(a, "%s/upper", q->dir);
    const char *work = arena_printf(a, "%s/work", q->dir);
    bool fresh = mkdir(upper, 0755) == 0;
    (void)mkdir(work, 0755);
    if (fresh && (stat(q->workspace, &st) < 0 || chmod(upper, st.st_mode & 07777) < 0)) {
        return -1;
    }
    (void)!file_remove_tree(AT_FDCWD, arena_printf(a, "%s/work", work), NULL);
    const char *options =
        arena_printf(a, "lowerdir=%s,upperdir=%s,workdir=%s,volatile,%s", q->workspace, upper, work,
                     geteuid() != 0 ? "userxattr" : "redirect_dir=on,index=off,metacopy=off");
    return mount("overlay", q->workspace, "overlay", MS_NOSUID | MS_NODEV, options);
}

static int open_dir(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int prepare(struct request *q, struct arena *a)
{
    struct savepoint_opts *o = &q->opts;
    (void)mkdir(q->dir, 0755);
    *o = (struct savepoint_opts) { .base_fd = -1,
                                   .dir = arena_printf(a, "%s/savepoint", q->dir),
                                   .txn_dir = arena_printf(a, "%s/txn", q->dir) };
    if (q->copy) {
        o->workspace_fd = o->tree_fd = open_dir(q->workspace);
        return 0;
    }
    o->base_fd = open_dir(q->workspace);
    if (enter_namespaces() < 0 || mount_view(q, a) < 0) {
        (void)fail("mount");
        return 77;
    }
    o->marks = geteuid() == 0 ? NODE_MARKS_TRUSTED : NODE_MARKS_USER;
    o->workspace_fd = open_dir(q->workspace);
    o->tree_fd = open_dir(arena_printf(a, "%s/upper", q->dir));
    return o->workspace_fd < 0 || o->tree_fd < 0 ? fail("open") : 0;
}

static int run(const struct request *q, const char *command)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(q->workspace) < 0) {
            _exit(fail("chdir"));
        }
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(fail("sh"));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return fail("fork");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int recover(const struct request *q, struct err *e)
{
    struct txns_opts o = { .workspace_fd = q->opts.workspace_fd,
                           .dir = q->opts.txn_dir,
                           .layers_fd = -1,
                           .overlay = !q->copy,
                           .marks = q->opts.marks };
    int r = txns_recover(&o, e);
    return r < 0 ? r : savepoints_recover(&q->opts, e);
}

static int one_step(struct request *q, const char *word)
{
    struct savepoint_report report = { 0 };
    struct err e;
    int r = q->savepoints != NULL || strcmp(word, "take") != 0
                ? 0
                : savepoints_open(&q->opts, &q->savepoints, &e);
    if (strcmp(word, "take") == 0) {
        r = r < 0 ? r : savepoint_take(q->savepoints, &report, &e);
    } else if (strcmp(word, "restore") == 0) {
        r = savepoint_decide(q->savepoints, STR("{}"), &e);
        countdown = q->die_at;
        r = r < 0 ? r : savepoint_restore(q->savepoints, &report, &e);
        countdown = -1;
    } else if (strcmp(word, "recover") == 0) {
        countdown = q->die_at;
        r = recover(q, &e);
        countdown = -1;
    } else {
        return run(q, word);
    }
    if (r < 0) {
        (void)fprintf(stderr, "savepoint_run: %s\n", e.msg);
        return 124;
    }
    (void)printf("%s entries %zu files %zu removed %zu bytes %lld us %lld\n", word, report.entries,
                 report.files, report.removed, (long long)report.bytes,
                 (long long)report.took / 1000);
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct request q = { .die_at = -1 };
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--copy") == 0) {
            q.copy = true;
        } else if (strcmp(argv[i], "--die-at") == 0 && i + 1 < argc) {
            q.die_at = strtol(argv[++i], NULL, 10);
        } else {
            i = argc;
        }
    }
    if (argc - i < 3) {
        (void)fprintf(stderr, "usage: savepoint_run [--copy] [--die-at N] WORKSPACE DIR STEP...\n");
        return 64;
    }
    q.workspace = argv[i];
    q.dir = argv[i + 1];
    int status = prepare(&q, a);
    for (i += 2; status == 0 && i < argc; i++) {
        status = one_step(&q, argv[i]);
    }
    (void)savepoints_close(q.savepoints);
    cleanup_fd(&q.opts.base_fd);
    if (!q.copy) {
        cleanup_fd(&q.opts.tree_fd);
    }
    cleanup_fd(&q.opts.workspace_fd);
    return status;
}
