/* SPDX-License-Identifier: MIT
 *
 * What a task may ask for that no part of this cinch does: told before anything is started.
 *
 * A guarantee that nobody keeps is refused; an offer that nobody makes is a warning. Whoever adds
 * the part that does it takes its line out of the table in support.c.
 */
#pragma once

#include "config/settings.h"

/* ERR_UNSUPPORTED, or ERR_CONFIG for a strict tier, names the setting and where it was said. */
int support_check(struct arena *a, const struct settings *s, struct err *e) MUST_USE;

/* The i-th thing that the agent will not get, as a sentence; NULL when there are no more. */
const char *support_warning(struct arena *a, const struct settings *s, size_t i);
