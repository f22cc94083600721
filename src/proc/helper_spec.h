/* SPDX-License-Identifier: MIT
 *
 * struct helper_spec: a program as a task names it, for a policy, a feedback provider or a check:
 *
 *   command: [./decide, --strict]     a path, or a name that is looked up along PATH
 *   timeout: 10s                      10 seconds unless it says otherwise
 *   sandbox: true                     false: beside cinch, out of the agent's reach
 *
 * helper_spec_read() says what is wrong with it before anything runs; helper_spec_start() runs it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

struct helper;
struct helper_host;
struct helper_result;
struct json;

struct helper_spec {
    const char *const *argv; /* NULL-terminated; lives in the arena */
    nsec timeout;
    bool outside;
    size_t max_output; /* set by the module: what an answer may be at most */
};

/* ERR_CONFIG for a name that cannot mean a program of the task's. */
int helper_spec_check(const char *program, struct err *e) MUST_USE;
/* ERR_CONFIG without a command, or with one that is no list of strings without NUL. */
int helper_spec_read(struct arena *a, const struct json *definition, nsec otherwise,
                     struct helper_spec *ret, struct err *e) MUST_USE;
/* NULL when it could not be started, also without a host; `done` does not come then. */
struct helper *helper_spec_start(const struct helper_spec *s, const struct helper_host *host,
                                 struct str input,
                                 void (*done)(void *arg, const struct helper_result *r), void *arg,
                                 struct err *e) MUST_USE;
