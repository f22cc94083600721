/* SPDX-License-Identifier: MIT
 *
 * Tools that are C functions of whoever runs cinch as a library.
 *
 *   static bool add(void *arg, struct tool_run *run, struct tool_result *ret)
 *   {
 *       int64_t sum = json_int(json_get(run->arguments, "a"), 0) + …;
 *       ret->value = json_integer(run->arena, sum);
 *       return true;
 *   }
 *   tool_define(a, definition, &tool, e);
 *   tool_callback_bind(&tool, &(struct tool_callback){ .call = add });
 *   bridge_add(b, &tool, e);
 *
 * The function works on files below run->cwd (NULL: the transaction is a layer of the sandbox that
 * only programs see; then it must not touch the workspace by itself) and on run->session.
 */
#pragma once

#include <stdbool.h>

#include "tools/tool.h"

struct tool_callback {
    /* true: it is over and `ret` (empty before: a success without a value) says how. false:
     * tool_run_done() comes later, exactly once; `run` lives until then. */
    bool (*call)(void *arg, struct tool_run *run, struct tool_result *ret);
    /* For a call that is not over: end it soon, by tool_run_done(). NULL: it cannot be hurried. */
    void (*cancel)(void *arg, struct tool_run *run);
    void (*free)(void *arg); /* with the tool; may be NULL */
    void *arg;
};

/* Copied. */
void tool_callback_bind(struct tool *t, const struct tool_callback *c);
