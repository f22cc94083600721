/* SPDX-License-Identifier: MIT
 *
 * Building blocks that the three views of a summary share. Words of our own are written as they
 * are, texts from outside pass the redactor: see events.h for why.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "record/redact.h"
#include "record/summary.h"

struct view {
    struct arena *arena;
    const struct redactor *redactor;
    struct json *object;
};

void view_word(struct view *v, const char *key, const char *ours); /* NULL: null */
/* A short text, which may have been cut to fit a message; NULL: null. */
void view_text(struct view *v, const char *key, const char *foreign);
void view_int(struct view *v, const char *key, int64_t n);
void view_real(struct view *v, const char *key, double d); /* not finite: 0 */
void view_bool(struct view *v, const char *key, bool b);
void view_flag(struct view *v, const char *key, enum answer_flag f);
void view_stamp(struct view *v, const char *key, int64_t wall); /* 0: null */
void view_ms(struct view *v, const char *key, nsec t);          /* 0: null */
void view_list(struct view *v, const char *key, const char *const *foreign);
void view_engine_exit(struct view *v, const char *key, struct engine_exit exit);
struct view view_inner(struct view *v, const char *key); /* an object within */
double view_seconds(nsec t);                             /* to the millisecond */

const char *tokens_source_word(enum tokens_source s);
const char *cost_source_word(enum cost_source s);
