/* SPDX-License-Identifier: MIT
 *
 * What the files of struct profile share.
 */
#pragma once

#include "adapters/profile.h"
#include "data/shape.h"

/* The profile of a parsed file, without its parts for some versions. */
int profile_read(struct arena *a, struct json *doc, const char *file, struct profile **ret,
                 struct err *e) MUST_USE;

/* profile_driver.c */
extern const struct shape profile_acp_shape[], profile_api_shape[], profile_by_model_shape[];
void profile_read_acp(struct profile *p);
int profile_read_api(struct profile *p, const char *file, struct err *e) MUST_USE;
