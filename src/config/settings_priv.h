/* SPDX-License-Identifier: MIT
 *
 * Between settings.c (typed fields), settings_table.c (which keys there are), settings_fields.c
 * (what is made from the table), settings_gather.c (where the layers come from), settings_check.c
 * (what a single layer must keep) and settings_project.c (what a project file may say).
 */
#pragma once

#include "config/settings.h"
#include "config/settings_table.h"
#include "data/shape.h"

/* Fills layers, profile and api_keys. */
int settings_gather(struct arena *a, const struct settings_input *in, struct settings *s,
                    struct err *e) MUST_USE;

/* Does a project file set only what it may (settings_project.c)? ERR_CONFIG names key and place. */
int settings_check_project(struct arena *a, const struct json *tree,
                           const struct profile_list *profiles, const char *file,
                           struct err *e) MUST_USE;

/* Widens the shorthands of a layer and looks whether what it says is possible: keys and kinds by
 * the shape, then ranges, names that must be unique, members that belong together. `file` names the
 * layer in messages. ERR_CONFIG. */
int settings_check_layer(struct arena *a, struct json *tree, const struct shape *shape,
                         const char *file, struct err *e) MUST_USE;

/* Shorthands into their long form: `prompt: text`, `sandbox: off`, `skills: [dir]` … */
void settings_widen(struct arena *a, struct json *tree);

/* Makes the paths of a layer absolute, relative to `dir`. `shape` tells which values are paths. */
int settings_resolve_paths(struct arena *a, struct json *tree, const struct shape *shape,
                           const char *dir, struct err *e) MUST_USE;
