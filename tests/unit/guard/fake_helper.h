/* SPDX-License-Identifier: MIT
 *
 * Helpers that a test ends by hand, in any way a helper can end: what stands on top of them is
 * tested without programs. Real ones are in test_helper.c and tests/integration.
 */
#pragma once

#include <stdlib.h>

#include "base/arena.h"
#include "proc/helper_program.h"

#define ERRANDS_MAX 16

struct helper {
    struct helper_opts opts;
    char *input;
    size_t n_argv;
    bool over, cancelled;
};

static struct helper helpers[ERRANDS_MAX];
static size_t n_helpers;
static bool errands_refused; /* the next helper_start() fails at once */

int helper_start(const struct helper_opts *o, struct helper **ret, struct err *e)
{
    if (errands_refused) {
        return ERR(e, ERR_NOTFOUND, "no such program");
    }
    assert_true(n_helpers < ERRANDS_MAX);
    struct helper *x = &helpers[n_helpers++];
    *x = (struct helper) { .opts = *o, .input = xmalloc(o->input.len + 1) };
    if (o->input.len > 0) {
        memcpy(x->input, o->input.ptr, o->input.len);
    }
    x->input[o->input.len] = '\0';
    *ret = x;
    return 0;
}

void helper_cancel(struct helper *x)
{
    x->cancelled = true;
}

static inline void errands_reset(void)
{
    for (size_t i = 0; i < n_helpers; i++) {
        assert_true(helpers[i].over);
        free(helpers[i].input);
    }
    n_helpers = 0;
    errands_refused = false;
}

static inline void helper_ends(size_t i, enum helper_end end, int value, const char *out,
                               const char *err)
{
    struct helper *x = &helpers[i];
    assert_true(i < n_helpers && !x->over);
    x->over = true;
    struct helper_result r = {
        .end = end,
        .value = value,
        .out = str_of(out),
        .err = str_of(err),
        .why = end == HELPER_EXITED && value == 0 ? NULL : "it failed badly",
    };
    x->opts.done(x->opts.arg, &r);
}

static inline void helper_prints(size_t i, const char *out)
{
    helper_ends(i, HELPER_EXITED, 0, out, "");
}

static inline const struct json *helper_input(size_t i)
{
    return tree(helpers[i].input);
}
