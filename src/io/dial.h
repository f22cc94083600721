/* SPDX-License-Identifier: MIT
 *
 * struct resolve: the addresses of a name. struct dial: a connection to one address. Two steps and
 * not one, so that who must not connect everywhere can look at the address before.
 *
 *   resolve_start(loop, "example.org", 443, on_resolved, self, &r, e);
 *       → on_resolved(self, addresses, n, NULL)        at most RESOLVE_MAX, or why
 *   dial_start(loop, &addresses[0], deadline, on_dialled, self, &d, e);
 *       → on_dialled(self, fd, NULL)                   the callee owns fd; or -1 and why
 *
 * Exactly one callback each, from the loop; after it the object must still be freed. Freeing before
 * is cancelling. A numeric address resolves too. Resolving uses libuv's threads and thus the
 * system's resolver.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"

struct loop;
struct resolve;
struct dial;

#define RESOLVE_MAX 16

struct address {
    struct sockaddr_storage addr;
    socklen_t len;
};

typedef void resolve_fn(void *arg, const struct address *found, size_t n, const struct err *why);
int resolve_start(struct loop *l, const char *host, int port, resolve_fn *fn, void *arg,
                  struct resolve **ret) MUST_USE;
struct resolve *resolve_free(struct resolve *r); /* accepts NULL, returns NULL */

typedef void dial_fn(void *arg, int fd, const struct err *why);
struct dial_opts {
    struct address to;
    nsec deadline; /* 0: the kernel's own */
    dial_fn *fn;
    void *arg;
};
int dial_start(struct loop *l, const struct dial_opts *o, struct dial **ret,
               struct err *e) MUST_USE;
struct dial *dial_free(struct dial *d); /* accepts NULL, returns NULL */

/* "192.0.2.1", "2001:db8::1", without the port. */
#define ADDRESS_TEXT_LEN 64
const char *address_text(const struct address *a, char out[ADDRESS_TEXT_LEN]);
