/* SPDX-License-Identifier: MIT
 *
 * Between walking a tree and killing it.
 */
#pragma once

#include "init/process_tree.h"

struct tree_pids {
    pid_t *pids;
    size_t n;
    size_t cap;
};

/* The children of one process, all its threads taken together; replaces the content of l. None when
 * the process is gone. Only where tree_has_children_files(). */
int tree_children(struct tree_pids *l, pid_t pid, struct err *e) MUST_USE;
bool tree_has_children_files(void);
/* The direct children of the caller where those files are missing. */
int tree_children_slowly(struct tree_pids *l, const struct tree_filter *f, struct err *e) MUST_USE;
