/* SPDX-License-Identifier: MIT
 *
 * What the files of struct container share: how an engine is told.
 */
#pragma once

#include "sandbox/container.h"

struct arena;
struct str;

bool container_engine_is_docker(const char *engine);

/* Arguments of the engine, NULL-terminated, in the arena. */
char **container_args_load(struct arena *a, const struct container_opts *o);
char **container_args_look(struct arena *a, const struct container_opts *o, const char *image);
int container_args_run(struct arena *a, const struct container_opts *o, const char *image,
                       const char *init, char ***ret, struct err *e) MUST_USE;
char **container_args_remove(struct arena *a, const struct container_opts *o);

/* What `image inspect` said, as container_image() gives it. */
int container_image_read(struct arena *a, struct str text, struct json **ret,
                         struct err *e) MUST_USE;
