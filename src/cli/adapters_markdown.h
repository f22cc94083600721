/* SPDX-License-Identifier: MIT
 *
 * The tables of docs/adapters.md: what the profiles that are built in say about themselves.
 */
#pragma once

#include "adapters/profile.h"
#include "base/buf.h"

void adapters_markdown(const struct profile_list *list, struct buf *out);
