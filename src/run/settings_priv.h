/* SPDX-License-Identifier: MIT
 *
 * Between settings.c (typed fields) and settings_gather.c (where the layers come from).
 */
#pragma once

#include "run/settings.h"

/* Fills layers, profile and api_keys. */
int settings_gather(struct arena *a, const struct settings_input *in, struct settings *s,
                    struct err *e) MUST_USE;
