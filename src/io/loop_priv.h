/* SPDX-License-Identifier: MIT
 *
 * What the files of this layer know of the loop. The only header that names libuv.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "io/loop.h"

struct child;

struct loop_call {
    void (*fn)(void *arg);
    void *arg;
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t hurry; /* active while calls are posted: the poll does not sleep then */
    struct loop_call *calls;
    size_t n_calls;
    size_t cap_calls;
    struct child *children; /* all that were started on this loop and not yet reaped */
    void *scratch;          /* read buffer shared by all readers */
    struct loop_stats stats;
    nsec woke; /* the last poll returned; 0: there was none in this run */
};

/* A buffer of LOOP_SCRATCH bytes, valid until the callback that asked for it returns. It starts on
 * a page: measured, read() into what malloc() gives for this size (16 bytes off) takes 2.7 times as
 * long. */
#define LOOP_SCRATCH ((size_t)256 << 10)
char *loop_scratch(struct loop *l);

/* Fills e from a result of libuv, which is a negative errno. */
int loop_error(int rc, const char *what, struct err *e);

/* uv_close() with the handle as first member of a heap object, which is then freed. */
void loop_close_and_free(uv_handle_t *h);

/* For loop_free(): gives up children that nobody waits for any more. */
void child_abandon_all(struct loop *l);
