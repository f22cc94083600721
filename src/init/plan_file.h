/* SPDX-License-Identifier: MIT
 *
 * A plan as it arrives: in a memfd that is sealed, so that it can neither change nor shrink while
 * it is used.
 *
 *   plan_map(fd, PLAN_VIEW, &plan, e);  …  plan_unmap(&plan);
 */
#pragma once

#include "base/err.h"
#include "init/plan.h"

/* Maps and checks it; ERR_PROTO for what is no sealed memfd, or no plan of that kind. */
int plan_map(int fd, enum plan_kind kind, struct plan *ret, struct err *e) MUST_USE;
void plan_unmap(struct plan *p); /* accepts one that is all zero */
