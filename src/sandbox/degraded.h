/* SPDX-License-Identifier: MIT
 *
 * What this machine could not give: which guarantee, why, and what to do about it.
 */
#pragma once

#include "base/err.h"
#include "sandbox/sandbox.h"

struct compose;
struct control_refused;

/* The guarantee that is lost when cinch-init refuses an operation; SANDBOX_GUARANTEE_MAX: that is
 * no matter of the machine. */
enum sandbox_guarantee loss_of(const struct control_refused *r, const struct compose *c);
/* Adds it to the report, with a remedy; once per guarantee. */
void loss_note(struct sandbox_report *r, enum sandbox_guarantee g, const char *why);
/* ERR_UNSUPPORTED when something is lost that may not be. */
int loss_check(const struct sandbox_report *r, uint32_t may_lose, struct err *e) MUST_USE;
/* Completes an error of cinch-init by what to do. */
void loss_explain(const struct sandbox_report *r, struct err *e);
/* What was asked for and not lost is enforced. */
void loss_settle(struct sandbox_report *r);
