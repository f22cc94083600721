/* SPDX-License-Identifier: MIT
 *
 * What the files of struct profile share.
 */
#pragma once

#include "adapters/profile.h"

/* The profile of a parsed file, without its parts for some versions. */
int profile_read(struct arena *a, struct json *doc, const char *file, struct profile **ret,
                 struct err *e) MUST_USE;
