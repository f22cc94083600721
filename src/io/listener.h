/* SPDX-License-Identifier: MIT
 *
 * struct listener: hands out connections that come to a listening socket.
 *
 *   listener_bind_tcp("127.0.0.1", 0, &fd, &port, e);     or listener_bind_unix(path, &fd, e),
 *   listener_new(loop, fd, on_connection, self, &l, e);   or a socket that somebody passed to us
 *   … on_connection(self, socket)                         which the callee owns
 *   listener_free(l);
 *
 * Takes over fd. When the process is out of descriptors it stops accepting for a moment instead of
 * spinning; the kernel keeps the waiting connections.
 */
#pragma once

#include "base/err.h"

struct loop;
struct listener;

/* On failure fd stays the caller's. */
int listener_new(struct loop *l, int fd, void (*fn)(void *arg, int fd), void *arg,
                 struct listener **ret, struct err *e) MUST_USE;
struct listener *listener_free(struct listener *l); /* accepts NULL, returns NULL */

/* host is a numeric address, v4 or v6; port 0 lets the kernel choose. Non-blocking, CLOEXEC. */
int listener_bind_tcp(const char *host, int port, int *ret_fd, int *ret_port,
                      struct err *e) MUST_USE;
/* Only this user may connect (mode 0600). A socket file that nobody listens on is replaced;
 * anything else in the way is ERR_EXISTS. Removing it at the end is up to the caller. */
int listener_bind_unix(const char *path, int *ret_fd, struct err *e) MUST_USE;
