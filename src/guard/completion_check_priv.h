/* SPDX-License-Identifier: MIT
 *
 * Rules of completion as a tree. completion_rules.c reads it, completion.c walks it.
 */
#pragma once

#include "base/arena.h"
#include "guard/completion_check.h"
#include "proc/helper_spec.h"

enum completion_kind {
    COMPLETION_ALL,
    COMPLETION_ANY,
    COMPLETION_FILES,
    COMPLETION_SESSION,
    COMPLETION_SCHEMA,
    COMPLETION_COMMAND,
    COMPLETION_CALLBACK,
};

struct completion_predicate {
    struct str slice;
    const struct json *where; /* pointers to values; NULL: every item counts */
    int64_t min, max;         /* max -1: any number */
    bool every;
};

struct completion_node {
    enum completion_kind kind;
    size_t index; /* among all nodes */
    struct completion_node *parent, *child, *last, *next;
    const char **files; /* relative to the workspace, NULL-terminated */
    struct helper_spec command;
    struct schema *schema;
    const struct json *wanted; /* its tree */
    struct completion_predicate predicate;
    const struct completion_callback *callback;
};

#define COMPLETION_NODES_MAX 512

struct completion {
    struct arena *arena;
    struct completion_opts opts;
    struct str root;
    struct completion_node *nodes[COMPLETION_NODES_MAX];
    size_t n;
    int64_t rounds;
    struct completion_check *checks; /* under way */
};

/* The tree of opts.rules and of the callbacks; nodes[0] is its root. What was compiled so far is in
 * nodes also after an error. */
int completion_read(struct completion *c, struct err *e) MUST_USE;
