/* SPDX-License-Identifier: MIT
 *
 * Programs that are adapters themselves: cinch-adapter-NAME in `path`, or any by exec:PATH, or the
 * entry point of an image by image:REFERENCE, or an agent bundle by bundle:FILE. Their profile is
 * the built-in `contract`, with a program.
 */
#pragma once

#include "adapters/profile.h"

/* The program that the name of an adapter means; NULL: none. Of exec:PATH it need not be there. */
const char *external_program(struct arena *a, const char *path, struct str name);
/* NULL if there is no base. */
const struct profile *external_profile(struct arena *a, const struct profile *base, struct str name,
                                       const char *program);
/* The reference of an image that the name means; NULL: none. A path in it is made absolute. */
const char *external_image(struct arena *a, struct str name);
const struct profile *external_image_profile(struct arena *a, const struct profile *base,
                                             struct str name, const char *image);
/* bundle:FILE, an agent bundle of Holon (adapters/bundle.h): its absolute path; NULL: none is
 * meant. */
const char *external_bundle(struct arena *a, struct str name);
/* Unpacks it if need be. */
int external_bundle_profile(struct arena *a, const struct profile *base, struct str name,
                            const char *file, const struct profile **ret, struct err *e) MUST_USE;
/* The names of those in `path`, each once: a list of strings, at most 256. */
const struct json *external_list(struct arena *a, const char *path);
