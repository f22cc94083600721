/* SPDX-License-Identifier: MIT
 *
 * Identifiers: time-ordered UUIDs (version 7, RFC 9562) for runs, sessions and events.
 */
#pragma once

#define ID_LEN 37 /* 36 characters and a NUL */

/* Fills and returns `out`. Aborts only if the kernel has no randomness to give. */
char *id_new(char out[ID_LEN]);
