/* SPDX-License-Identifier: MIT
 *
 * Configuration files of ProjectScylla in the words of a task file (docs/guides/scylla.md). Values
 * keep their positions, so that later messages name the right line.
 */
#pragma once

#include <stdbool.h>

#include "base/json.h"

struct scylla_config {
    struct json *tree;           /* a layer of settings */
    const struct json *api_keys; /* names to values, in no layer; NULL: none */
    const char *warning;         /* about keys that are only passed on; NULL: none */
};

/* The dictionary of `-c FILE`: keys of the evaluation contract, limits, and settings of cinch. A
 * key that is almost one of them is ERR_CONFIG with its line; any other is passed on in `config`.
 */
int scylla_config_read(struct arena *a, const struct json *dict, const char *file,
                       struct scylla_config *ret, struct err *e) MUST_USE;

/* Is this a model file ("model_id") or a tier file ("tier") of Scylla? */
bool scylla_is_model(const struct json *tree);
bool scylla_is_tier(const struct json *tree);
struct json *scylla_model_layer(struct arena *a, const struct json *tree);
struct json *scylla_tier_layer(struct arena *a, const struct json *tree);
