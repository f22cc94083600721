/* SPDX-License-Identifier: MIT
 *
 * A program in a view of a tree, from the command line: makes the view, mounts it in a namespace of
 * its own, runs the program there, and writes the patch.
 *
 *   view_run [OPTION…] SOURCE PRIVATE PATCH -- PROGRAM ARGUMENT…
 *
 *   --mode snapshot|overlay|copy|clone|in-place
 *   --no-overlay      as if no overlay could be mounted
 *   --ref REF
 *   --inject PATH     a file of ours
 *   --max-file BYTES
 *   --redirect        mount with redirect_dir=on (root only)
 *   --again           forget the view after the program and take it up from its directory
 *   --keep
 *
 * Prints the result as JSON. Exit status: the program's, 124 when the view or the diff failed, 77
 * when the view cannot be mounted here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "own_mounts.h"
#include "workspace/workspace.h"

struct request {
    struct workspace_opts opts;
    const char *inject, *patch;
    int64_t max_file;
    bool redirect, again, keep;
    char **program;
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "view_run: %s: %s\n", what, strerror(errno));
    return 125;
}

static int complain(const struct err *e)
{
    (void)fprintf(stderr, "view_run: %s\n", e->msg);
    return 124;
}

static int mount_view(const struct sandbox_view *v, const struct request *q)
{
    char options[4 * 4096];
    if (v->bind != NULL) {
        return mount(v->bind, v->path, NULL, MS_BIND, NULL);
    }
    (void)snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,%s",
                   v->lower[0], v->layer, v->layer,
                   geteuid() != 0 ? "userxattr"
                   : q->redirect  ? "redirect_dir=on,index=off,metacopy=off"
                                  : "redirect_dir=nofollow,index=off,metacopy=off");
    return mount("overlay", v->path, "overlay", MS_NOSUID | MS_NODEV, options);
}

static int run(const struct workspace *w, const struct request *q)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (enter_namespaces() < 0 || mount_view(workspace_view(w), q) < 0) {
            (void)fail("mount");
            _exit(77);
        }
        if (chdir(workspace_path(w)) < 0) {
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

static void print(const struct workspace *w, struct arena *a, const struct diff_result *r)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *o = workspace_json(w, a);
    json_setc(a, o, "no_changes", json_boolean(a, r->no_changes));
    json_setc(a, o, "files", r->files);
    json_setc(a, o, "left_out", r->left_out);
    json_setc(a, o, "source_changed", r->source_changed);
    json_setc(a, o, "nested", r->nested);
    json_setc(a, o, "ignored", json_integer(a, r->ignored));
    if (json_write(o, JSON_PRETTY, &text, NULL) == 0) {
        (void)fwrite(text.ptr, 1, text.len, stdout);
    }
}

static int diff(struct workspace *w, const struct request *q)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct err e;
    struct diff_result result;
    CLEANUP(fd) int fd = open(q->patch, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct workspace_diff_opts o = {
        .patch_fd = fd,
        .nested_dir = arena_printf(a, "%s.nested", q->patch),
        .max_file = q->max_file,
    };
    if (workspace_diff(w, a, &o, &result, &e) < 0) {
        return complain(&e);
    }
    print(w, a, &result);
    return 0;
}

static int kind_of(const char *word, enum workspace_kind *ret)
{
    for (enum workspace_kind k = WORKSPACE_SNAPSHOT; k <= WORKSPACE_IN_PLACE; k++) {
        if (strcmp(workspace_kind_word(k), word) == 0) {
            *ret = k;
            return 0;
        }
    }
    return -1;
}

static int parse_option(const char *name, char **argv, int *i, struct request *q)
{
    if (strcmp(name, "--mode") == 0) {
        return kind_of(argv[++*i], &q->opts.kind);
    }
    if (strcmp(name, "--ref") == 0) {
        q->opts.ref = argv[++*i];
    } else if (strcmp(name, "--inject") == 0) {
        q->inject = argv[++*i];
    } else if (strcmp(name, "--max-file") == 0) {
        q->max_file = strtoll(argv[++*i], NULL, 10);
    } else if (strcmp(name, "--no-overlay") == 0) {
        q->opts.overlay = false;
    } else if (strcmp(name, "--redirect") == 0) {
        q->redirect = true;
    } else if (strcmp(name, "--again") == 0) {
        q->again = true;
    } else if (strcmp(name, "--keep") == 0) {
        q->keep = true;
    } else {
        return -1;
    }
    return 0;
}

static int parse(int argc, char **argv, struct request *q)
{
    int i = 1;
    q->opts.overlay = true;
    q->opts.marks = geteuid() == 0 ? NODE_MARKS_TRUSTED : NODE_MARKS_USER;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (parse_option(argv[i], argv, &i, q) < 0) {
            return -1;
        }
    }
    if (argc - i < 5) {
        return -1;
    }
    q->opts.source = argv[i];
    q->opts.dir = argv[i + 1];
    q->patch = argv[i + 2];
    q->program = argv + i + 4;
    return 0;
}

int main(int argc, char **argv)
{
    struct request q = { 0 };
    struct workspace *w = NULL;
    struct err e = { 0 };
    if (parse(argc, argv, &q) < 0) {
        (void)fprintf(stderr, "usage: view_run [OPTION...] SOURCE PRIVATE PATCH -- PROGRAM...\n");
        return 64;
    }
    if (workspace_open(&q.opts, &w, &e) < 0) {
        return complain(&e);
    }
    int status = 0;
    if (q.inject != NULL && workspace_inject(w, q.inject, STR("from cinch\n"), 0644, &e) < 0) {
        status = complain(&e);
    }
    status = status != 0 ? status : run(w, &q);
    if (status == 0 && q.again) {
        workspace_close(w, true);
        if (workspace_reopen(q.opts.dir, &w, &e) < 0) {
            return complain(&e);
        }
    }
    if (status == 0) {
        status = diff(w, &q);
    }
    workspace_close(w, q.keep);
    return status;
}
