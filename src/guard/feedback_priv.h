/* SPDX-License-Identifier: MIT
 *
 * What the files of feedback share. A provider says a record {summary, observations, suggestions,
 * severity}; feedback.c says when, feedback_provider.c what, feedback_render.c how it looks.
 */
#pragma once

#include "base/arena.h"
#include "guard/feedback.h"
#include "proc/helper_spec.h"

struct feedback_provider;

struct feedback_kind {
    const char *type;
    const char *name; /* of a provider that the task does not name */
    int (*make)(struct feedback_provider *p, struct arena *a, const struct json *definition,
                struct err *e);
    /* Has it anything to go by? NULL: always. */
    bool (*ready)(const struct feedback_left *left);
    /* NULL: a program, or a function in C. */
    struct json *(*say)(const struct feedback_provider *p, struct arena *a,
                        const struct feedback_left *left);
};

struct feedback_provider {
    const struct feedback_kind *kind;
    struct str name;
    /* triggers; 0 or NULL: not this one */
    int64_t every_calls;
    nsec every_time;
    const char *file;
    /* what happened */
    bool spoke;
    int64_t last_call;
    nsec last_time;
    bool file_told;
    /* of its kind */
    nsec time_threshold;
    double share_threshold;
    struct str text;
    struct helper_spec program;
    const struct feedback_callback *callback;
};

extern const struct feedback_kind feedback_kind_callback, feedback_kind_program;
const struct feedback_kind *feedback_kind_find(struct str type); /* NULL: none */

/* "5 seconds", "1 minute", "2.5 hours"; less than nothing is none. */
const char *feedback_duration(struct arena *a, nsec t);
struct json *feedback_record(struct arena *a, struct str summary, const char *severity,
                             const char *const *suggestions);
/* What a program printed: a record; NULL with `ret_why` NULL: nothing; NULL with `ret_why`: it is
 * no answer. */
struct json *feedback_reply_read(struct arena *a, struct str out, const char **ret_why);

void feedback_render(struct buf *out, struct str name, const struct json *record);
