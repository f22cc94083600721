/* SPDX-License-Identifier: MIT
 *
 * Errands that a test ends by hand, in any way an errand can end: what stands on top of them is
 * tested without programs. Real ones are in test_errand.c and tests/integration.
 */
#pragma once

#include <stdlib.h>

#include "base/arena.h"
#include "proc/errand.h"

#define ERRANDS_MAX 16

struct errand {
    struct errand_opts opts;
    char *input;
    size_t n_argv;
    bool over, cancelled;
};

static struct errand errands[ERRANDS_MAX];
static size_t n_errands;
static bool errands_refused; /* the next errand_start() fails at once */

int errand_start(const struct errand_opts *o, struct errand **ret, struct err *e)
{
    if (errands_refused) {
        return ERR(e, ERR_NOTFOUND, "no such program");
    }
    assert_true(n_errands < ERRANDS_MAX);
    struct errand *x = &errands[n_errands++];
    *x = (struct errand) { .opts = *o, .input = xmalloc(o->input.len + 1) };
    if (o->input.len > 0) {
        memcpy(x->input, o->input.ptr, o->input.len);
    }
    x->input[o->input.len] = '\0';
    *ret = x;
    return 0;
}

void errand_cancel(struct errand *x)
{
    x->cancelled = true;
}

const char *errand_end_word(enum errand_end end)
{
    return "end";
}

static inline void errands_reset(void)
{
    for (size_t i = 0; i < n_errands; i++) {
        assert_true(errands[i].over);
        free(errands[i].input);
    }
    n_errands = 0;
    errands_refused = false;
}

static inline void errand_ends(size_t i, enum errand_end end, int value, const char *out,
                               const char *err)
{
    struct errand *x = &errands[i];
    assert_true(i < n_errands && !x->over);
    x->over = true;
    struct errand_result r = {
        .end = end,
        .value = value,
        .out = str_of(out),
        .err = str_of(err),
        .why = end == ERRAND_EXITED && value == 0 ? NULL : "it failed badly",
    };
    x->opts.done(x->opts.arg, &r);
}

static inline void errand_prints(size_t i, const char *out)
{
    errand_ends(i, ERRAND_EXITED, 0, out, "");
}

static inline const struct json *errand_input(size_t i)
{
    return tree(errands[i].input);
}
