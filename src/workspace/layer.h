/* SPDX-License-Identifier: MIT
 *
 * What entries of an overlay's layer mean: whiteouts (nothing is here any more), opaque directories
 * (nothing shows through), redirects (a directory that was renamed). Only marks of the namespace
 * that the overlay was mounted with count, see node.h.
 */
#pragma once

#include "workspace/node.h"

struct arena;

bool layer_is_whiteout(struct node_at at, const struct stat *st, enum node_marks marks);
bool layer_is_opaque(struct node_at at, enum node_marks marks);
/* Which directory of the tree below it shows, by its path there; NULL: the one of its own name.
 * `base` is the path of what its parent shows, or NULL. In the arena. */
const char *layer_redirect(struct arena *a, struct node_at at, enum node_marks marks,
                           const char *base);
/* A whiteout, and the marks of a directory, for a copy of a layer. */
int layer_put_whiteout(struct node_at at, struct err *e) MUST_USE;
int layer_copy_marks(struct node_at from, struct node_at to, enum node_marks marks,
                     struct err *e) MUST_USE;
