/* SPDX-License-Identifier: MIT
 *
 * Between workspace.c (kinds, life), workspace_git.c (what needs git), workspace_inject.c (files of
 * ours in the view) and workspace_diff.c (what came of it).
 */
#pragma once

#include "workspace/baseline.h"
#include "workspace/repo.h"
#include "workspace/tree.h"
#include "workspace/workspace.h"

struct workspace {
    struct arena *arena;
    enum workspace_kind kind;
    bool layered; /* an overlay over `base`, whose upper layer is `tree` */
    const char *source;
    const char *path;   /* inside */
    const char *dir;    /* private */
    const char *inner;  /* the run's directory relative to the source, when it lies in there */
    const char *within; /* the agent's directory below path, when the view is more than that */
    const char *ref;
    const char *base;            /* the tree before: source, or what was checked out */
    const char *tree;            /* what is written to: upper layer, copy, clone, or source */
    const char *baseline_commit; /* contents before, where there is no directory that has them */
    char head[REPO_ID_MAX];
    int dir_fd, base_fd, tree_fd;
    enum node_marks marks;
    const char *why_not; /* it is no overlay; NULL: it is, or was not meant to be */
    int64_t created;
    bool has_repo;
    bool had_git;   /* the tree had a .git when it was pinned */
    bool has_files; /* the tree had something in it; set by workspace_note_baseline() */
    struct repo repo;
    struct json *hidden;                           /* list of paths */
    struct json *git_dirs, *pinned, *placeholders; /* see workspace_pins.c */
    size_t read_only_repositories;
    struct json *nested; /* paths of repositories within a tree that is worked on directly */
    struct tree_stats copied;
    struct json *not_copied; /* [{path, why}] */
    const char *lowers[2];
    struct sandbox_view view;
};

/* Adds {path, why}; a very long path is cut. */
void workspace_note_left_out(struct arena *a, struct json *list, const char *path, const char *why);
/* For delta_filter. */
bool workspace_skip(void *arg, const char *path);
int workspace_save(const struct workspace *w, struct err *e) MUST_USE;
const char *workspace_place(const struct workspace *w, const char *name);
int workspace_note_baseline(struct workspace *w, struct err *e) MUST_USE;

/* base and base_fd: the commit of ref, or HEAD, in a repository of its own. */
int workspace_checkout(struct workspace *w, struct err *e) MUST_USE;
/* Of a tree that is worked on directly: which git directories there are, and what the sandbox needs
 * to pin the files in them that decide what git executes. workspace_unpin() removes what was made
 * for that. */
int workspace_pin(struct workspace *w, struct err *e) MUST_USE;
void workspace_unpin(struct workspace *w);
/* Directories that have become repositories since, of which nothing is pinned. */
void workspace_note_new_repositories(const struct workspace *w, const struct delta *d,
                                     struct arena *a, struct json *list);
/* The directory of the repository's objects; of a foreign one, our copy that workspace_checkout()
 * made. */
const char *workspace_objects(const struct workspace *w);
/* The source as it is now, in the index of a repository in the private directory; baseline_commit
 * is made from that, when something has changed. */
int workspace_keep_contents(struct workspace *w, struct err *e) MUST_USE;
int workspace_name_contents(struct workspace *w, struct err *e) MUST_USE;
/* A worktree's or submodule's .git file leads to the user's repository, which must not be written:
 * the view gets a git directory of its own that borrows the objects. */
int workspace_graft_git(struct workspace *w, struct err *e) MUST_USE;
