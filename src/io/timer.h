/* SPDX-License-Identifier: MIT
 *
 * struct timer: calls back once, at or after a moment of the monotonic clock (base/clock.h).
 *
 *   timer_new(loop, on_timeout, self, &t, e);
 *   timer_arm(t, clock_now() + 5 * NSEC_PER_SEC);   re-arming replaces the old moment
 *   timer_cancel(t);
 *   timer_free(t);
 *
 * Never early; late by at most about a millisecond plus what the loop is busy with. An armed timer
 * keeps loop_run() going.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"

struct loop;
struct timer;

int timer_new(struct loop *l, void (*fn)(void *arg), void *arg, struct timer **ret,
              struct err *e) MUST_USE;
struct timer *timer_free(struct timer *t); /* accepts NULL, returns NULL */
void timer_arm(struct timer *t, nsec deadline);
void timer_cancel(struct timer *t);
bool timer_armed(const struct timer *t);
