/* SPDX-License-Identifier: MIT
 *
 * struct sigwatch: delivers a signal of this process as a callback of the loop; for SIGINT,
 * SIGTERM, SIGHUP, SIGWINCH. While one exists the signal's default action is off; after the last
 * one is freed it is back. Does not keep loop_run() going. Children are not watched by SIGCHLD: see
 * io/child.h.
 */
#pragma once

#include "base/err.h"

struct loop;
struct sigwatch;

int sigwatch_new(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg,
                 struct sigwatch **ret, struct err *e) MUST_USE;
struct sigwatch *sigwatch_free(struct sigwatch *w); /* accepts NULL, returns NULL */
