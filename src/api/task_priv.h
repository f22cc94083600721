/* SPDX-License-Identifier: MIT
 *
 * struct cinch_task, shared by task.c (what is to be done), hooks.c (functions of the caller) and
 * execution.c (doing it).
 */
#pragma once

#include <cinch.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "run/run.h"

/* A function of the caller's, of any kind; all live in the task's arena. */
struct hook {
    struct cinch_task *task;
    union {
        struct cinch_tool tool;
        struct cinch_policy policy;
        struct cinch_feedback feedback;
        struct cinch_completion completion;
    } of;
    struct buf json, text; /* what goes in, and what came out: each until the next call */
    struct hook *next;
};

/* A list that grows; items are kept in the arena. */
struct hook_list {
    struct hook *first;
    size_t len;
};

struct cinch_task {
    struct arena *arena;
    const char *file;     /* NULL: none */
    struct json *request; /* what was merged */
    struct err error;
    struct hook_list tools, policies, feedback, completion;
    bool running; /* its callbacks are at work: nothing of it may go */
    bool freed;   /* by one of them; goes with the run */
};

/* Notes the sentence; returns the negative code of the border. */
int task_fail(struct cinch_task *t, enum cinch_error code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int task_fail_err(struct cinch_task *t, const struct err *e);
/* Takes as much of a struct of the caller's as this library knows. False: it has members that are
 * set and not known here, or is too short to be one. */
bool task_take(void *ours, size_t size, const void *theirs, size_t minimum);
/* The functions as the run wants them; in `a`. */
void task_hooks(const struct cinch_task *t, struct arena *a, struct run_hooks *ret);
void task_hooks_done(struct cinch_task *t);
