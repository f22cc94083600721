/* SPDX-License-Identifier: MIT
 *
 * A task as a program builds it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/task_priv.h"

const char *cinch_version(void)
{
    return CINCH_VERSION;
}

int task_fail(struct cinch_task *t, enum cinch_error code, const char *fmt, ...)
{
    va_list ap;
    if (t == NULL) {
        return -(int)code;
    }
    va_start(ap, fmt);
    (void)vsnprintf(t->error.msg, sizeof t->error.msg, fmt, ap);
    va_end(ap);
    return -(int)code;
}

int task_fail_err(struct cinch_task *t, const struct err *e)
{
    static const enum reason of_task[] = { REASON_USAGE, REASON_BAD_TASK,    REASON_MISSING_INPUT,
                                           REASON_AUTH,  REASON_UNAVAILABLE, REASON_NOT_FOUND };
    enum reason why = reason_of_err(e->code);
    enum cinch_error code = why == REASON_CANNOT_WRITE_OUTPUT ? CINCH_EOUTPUT : CINCH_EFAILED;
    for (size_t i = 0; i < ARRAY_LEN(of_task); i++) {
        code = why == of_task[i] ? CINCH_ETASK : code;
    }
    return task_fail(t, code, "%s", e->msg);
}

/* No struct will ever be larger: a size beyond it was never set. */
enum { STRUCT_MAX = 4096 };

bool task_take(void *ours, size_t size, const void *theirs, size_t minimum)
{
    size_t given;
    if (theirs == NULL) {
        return false;
    }
    memcpy(&given, theirs, sizeof given);
    if (given < minimum || given > STRUCT_MAX) {
        return false;
    }
    for (size_t i = size; i < given; i++) {
        if (((const unsigned char *)theirs)[i] != 0) {
            return false;
        }
    }
    memset(ours, 0, size);
    memcpy(ours, theirs, given < size ? given : size);
    return true;
}

struct cinch_task *cinch_task_new(void)
{
    struct cinch_task *t = xcalloc(1, sizeof *t);
    t->arena = arena_new();
    t->request = json_object(t->arena);
    return t;
}

void cinch_task_free(struct cinch_task *t)
{
    if (t != NULL && t->running) {
        t->freed = true;
    } else if (t != NULL) {
        task_hooks_done(t);
        arena_free(t->arena);
        free(t);
    }
}

const char *cinch_task_error(const struct cinch_task *t)
{
    return t == NULL ? "" : t->error.msg;
}

int cinch_task_load(struct cinch_task *t, const char *file)
{
    if (t == NULL || file == NULL || file[0] == '\0') {
        return task_fail(t, CINCH_EUSAGE, "a task file needs a name");
    }
    t->file = arena_dup(t->arena, str_of(file));
    return 0;
}

int cinch_task_merge(struct cinch_task *t, const char *json)
{
    struct json *tree;
    struct err e;
    if (t == NULL || json == NULL || json_parse(t->arena, str_of(json), NULL, &tree, &e) < 0) {
        return task_fail(t, CINCH_EUSAGE, "task: %s",
                         t == NULL || json == NULL ? "nothing given" : e.msg);
    }
    if (!json_is(tree, JSON_OBJECT)) {
        return task_fail(t, CINCH_EUSAGE, "task: it must be an object");
    }
    t->request = json_merge(t->arena, t->request, tree);
    return 0;
}
