/* SPDX-License-Identifier: MIT
 *
 * What `cinch doctor` looks at: one const table of checks. A check looks at one thing, changes
 * nothing, and says what it found and what to do about it.
 *
 * To add one: write a function in check.c (or in a file of its own for a group, check_sandbox.c),
 * and add a line to the table. The test `check` runs all of them.
 */
#pragma once

#include "base/macro.h"

enum check_state {
    CHECK_OK,
    CHECK_WARN, /* works, but something will be missing or slow */
    CHECK_FAIL, /* `cinch run` will not work */
};

struct check_result {
    enum check_state state;
    char detail[240]; /* what was found */
    char advice[240]; /* what to do; empty when all is well */
};

struct check {
    const char *name; /* NULL ends the table */
    void (*look)(struct check_result *r);
};

extern const struct check checks[];

/* Mechanisms that the sandbox uses, and what it promises with them (check_sandbox.c). Each
 * guarantee is reported to `found`, under the name "sandbox: …". */
void check_user_namespaces(struct check_result *r);
void check_seccomp(struct check_result *r);
void check_landlock(struct check_result *r);
void check_overlay(struct check_result *r);
void check_podman(struct check_result *r);
void check_guarantees(void (*found)(void *arg, const char *name, const struct check_result *r),
                      void *arg);

const char *check_state_word(enum check_state s); /* "ok", "warn", "fail" */

/* For the functions of checks: state and detail, then the advice. */
void check_found(struct check_result *r, enum check_state s, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void check_advise(struct check_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
