/* SPDX-License-Identifier: MIT
 *
 * A test directory of ProjectScylla as a task: test.yaml, prompt.md, config.yaml, and what stands
 * around it (docs/guides/scylla.md).
 *
 * A row of the table of task formats (task_format.h).
 */
#pragma once

#include <stdbool.h>

#include "base/json.h"

struct task_source;

/* The settings that a test.yaml stands for. ERR_CONFIG with the place in `file`. */
int scylla_test_layer(struct arena *a, const struct json *test, const char *file, struct json **ret,
                      struct err *e) MUST_USE;

bool scylla_test_recognise(const struct task_source *src); /* a directory with a test.yaml */
int scylla_test_load(struct arena *a, const struct task_source *src, struct json *notes,
                     struct json **ret, struct err *e) MUST_USE;
/* The file that messages name. */
const char *scylla_test_file(struct arena *a, const char *dir);

/* The directory of sub-tests above a test or in it; NULL: there is none. */
const char *scylla_test_subtests(struct arena *a, const char *dir);
/* The clone of a repository below a directory of clones: its last part, without ".git"; or NULL. */
const char *scylla_test_mirror(struct arena *a, const char *mirror, const char *repo);
/* The model that `models` of a test names for a tier, or for all; NULL: none, or several. */
const char *scylla_test_tier_model(const struct json *models, const char *tier);

/* What the tier table of the tests says about a tier: tiers.yaml in a directory above the test, or
 * in `shared` there, else the built-in table. *ret is NULL when none of them knows the tier. */
int scylla_test_tier(struct arena *a, const char *dir, const char *tier, struct json **ret,
                     const char **ret_source, struct err *e) MUST_USE;

/* The file of a model above the test (models/ or config/models/); or NULL. */
const char *scylla_test_model_file(struct arena *a, const char *dir, const char *model);
