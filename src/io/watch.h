/* SPDX-License-Identifier: MIT
 *
 * struct watch: tells when a descriptor can be read or written. For pipes, sockets, pidfds:
 * whatever poll(2) makes sense for. Regular files are refused.
 *
 *   watch_new(loop, fd, on_ready, self, &w, e);    makes fd non-blocking; nothing is watched yet
 *   watch_set(w, WATCH_READ);                      on; again with 0: off (backpressure)
 *   watch_free(w);                                 before close(fd)
 *
 * An error or a hang-up counts as "ready" for all that is watched: the next read() or write()
 * tells. The descriptor stays the caller's. A watch with events set keeps loop_run() going, unless
 * watch_unref() says that it must not.
 */
#pragma once

#include "base/err.h"

struct loop;
struct watch;

enum watch_events { WATCH_READ = 1u << 0, WATCH_WRITE = 1u << 1 };

int watch_new(struct loop *l, int fd, void (*fn)(void *arg, unsigned events), void *arg,
              struct watch **ret, struct err *e) MUST_USE;
struct watch *watch_free(struct watch *w); /* accepts NULL, returns NULL */
void watch_set(struct watch *w, unsigned events);
void watch_unref(struct watch *w);
