/* SPDX-License-Identifier: MIT
 *
 * The tools of a run and what guards them: from the task to a bridge that any harness reaches.
 *
 *   admit      tools_admit()       definitions, policies, feedback, completion: compiled
 *   configure  tools_mount()       the MCP server for the gateway's door, where a harness needs it
 *   execute    tools_open(run, f)  the sandbox stands: transactions, servers of others; then f(run)
 *              … calls …
 *              tools_stop(run)     calls that are under way are rolled back
 *              tools_close(run, f) nothing of them is left; then f(run)
 *   (end)      tools_done(run)
 *
 * A run without tools, policies and the like has none of this: everything here then does nothing.
 */
#pragma once

#include "adapters/driver.h"
#include "base/err.h"

struct bridge;
struct feedback;
struct gateway_mount;
struct guard;
struct guard_decision;
struct run;

int tools_admit(struct run *run, struct err *e) MUST_USE;
int tools_mount(struct run *run, struct err *e) MUST_USE;
void tools_open(struct run *run, void (*then)(struct run *run));
void tools_stop(struct run *run);
void tools_hurry(struct run *run); /* what is told to end has no time for it any more */
void tools_close(struct run *run, void (*then)(struct run *run));
/* Warns about names in policies that no tool had; before tools_done(). */
void tools_warn_names(struct run *run);
void tools_done(struct run *run); /* idempotent; also after a failed admission */

/* Does the run start programs of its own, or carry out calls? */
bool tools_wanted(const struct run *run);
/* For gateway_opts; NULL: nothing to mount. */
const struct gateway_mount *tools_door(const struct run *run);

/* What drivers are told. */
struct driver_tools tools_offered(struct run *run);
struct driver_mcp tools_mcp(struct run *run);
/* The program that brings the tools to a harness which speaks to programs only; NULL: none. */
const char *tools_shim(struct run *run);
/* Programs that tools and guards of the task name: the sandbox shows them. NULL-terminated. */
const char *const *tools_programs(struct run *run);
bool tools_govern(const struct run *run);    /* there are policies */
bool tools_feed_back(const struct run *run); /* there is feedback */
int tools_environment(struct run *run, const struct placeholders *vars, struct json *env,
                      struct err *e) MUST_USE;
/* A configuration file of the harness with the profile's values for the tools over it. */
int tools_file(struct run *run, const char *name, struct json *tree, struct json **ret,
               struct err *e) MUST_USE;

bool tools_busy(const struct run *run);                 /* a call or a check is under way */
struct bridge *tools_bridge(const struct run *run);     /* NULL: no tools */
struct guard *tools_guard(const struct run *run);       /* NULL: no policies */
struct feedback *tools_feedback(const struct run *run); /* NULL: none */

/* May a call be made now? ERR_TIMEOUT or ERR_BUDGET; else what is left until the deadline. */
int tools_admit_call(struct run *run, nsec *ret_left, struct err *e) MUST_USE;
/* A tool of the harness' own has ended. */
void tools_observed(struct run *run, const struct native_call *call);
void tools_tell_denial(struct run *run, const struct guard_decision *d);
/* The answer that was given by the tool structured_output; NULL: none. */
const struct json *tools_structured(const struct run *run);
/* The question of ask_human; empty: none. */
struct str tools_question(const struct run *run);
