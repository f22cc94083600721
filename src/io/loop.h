/* SPDX-License-Identifier: MIT
 *
 * struct loop: the event loop of a process. One thread, one loop; everything in this layer belongs
 * to one, and all callbacks run from loop_run().
 *
 *  1. loop_new(&l, e)
 *  2. make timers, watches, readers, children on it; loop_post() work that must not run at once
 *  3. loop_run(l) returns after loop_stop(), or when nothing is left that could happen
 *  4. free what was made, then loop_free(l)
 *
 * Rules that hold in the whole layer:
 *  - X_free() may be called at any time, also from the callbacks of X. No callback comes after it.
 *    The memory goes later, when the loop is outside of all callbacks.
 *  - An object of an upper layer that owns such things is released with loop_retire(), for the same
 *    reason: it then dies after the present batch of callbacks, and after everything that was
 *    posted before.
 *  - Nothing blocks. An iteration that keeps the loop busy for more than 50 ms is counted, and
 *    logged at debug level.
 *
 * loop_new() does two things to the process: it ignores SIGPIPE, unless the process has a handler
 * for it (a child that closes its input is an ordinary event), and it opens /dev/null in place of a
 * missing stdin, stdout or stderr (else the next pipe would get that number, and libuv aborts when
 * it is closed).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct loop;

struct loop_stats {
    uint64_t iterations;
    uint64_t slow; /* iterations that were busy for more than LOOP_SLOW */
    nsec longest;  /* busy time of the worst one */
};

#define LOOP_SLOW (50 * NSEC_PER_MS)

int loop_new(struct loop **ret, struct err *e) MUST_USE;
struct loop *loop_free(struct loop *l); /* accepts NULL, returns NULL; not from a callback */

void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Calls fn(arg) from the loop soon, in the order of posting. */
void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);
/* As loop_post(), for destructors. */
void loop_retire(struct loop *l, void (*destroy)(void *arg), void *arg);

/* Ignores a signal whose default action would end the process. A handler of the host stays: with
 * that, too, the call that failed returns its error. */
void loop_ignore_signal(int signo);

struct loop_stats loop_stats(const struct loop *l);

static inline void cleanup_loop(struct loop **l)
{
    *l = loop_free(*l);
}
