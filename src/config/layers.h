/* SPDX-License-Identifier: MIT
 *
 * struct layers: configuration from many places, merged with provenance.
 *
 * Later layers win: default, adapter, site, user, project, model, tier, skill, task, request,
 * enforced. Maps merge deep, scalars and arrays replace, null removes. Nothing is lost:
 * layers_explain() says for every leaf which layer and which line it came from.
 */
#pragma once

#include "base/json.h"

enum { LAYERS_MAX = 20 };

struct layer {
    const char *name;   /* "task" */
    const char *source; /* file name, or "command line", or "built in" */
    const struct json *tree;
};

struct layers {
    struct layer items[LAYERS_MAX];
    size_t len;
};

/* A NULL tree is ignored. The strings must outlive the layers. */
void layers_add(struct layers *l, const char *name, const char *source, const struct json *tree);
struct json *layers_merge(struct arena *a, const struct layers *l);

/* List of {path, value, layer, source} for every leaf of the merged tree, in its order; `path` is
 * dotted, `source` has line and column where they are known. */
struct json *layers_explain(struct arena *a, const struct layers *l, const struct json *merged);
