/* SPDX-License-Identifier: MIT
 *
 * Listening sockets.
 */
#include "io/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"

#define BACKLOG    512
#define ROUND_MAX  16 /* connections a round of the loop: others have their turn too */
#define FULL_PAUSE (100 * NSEC_PER_MS)

struct listener {
    struct loop *loop;
    void (*fn)(void *arg, int fd);
    void *arg;
    struct watch *watch;
    struct timer *again;
    int fd;
    bool freed;
};

static void on_again(void *arg)
{
    struct listener *l = arg;
    watch_set(l->watch, WATCH_READ);
}

static void on_ready(void *arg, unsigned events)
{
    (void)events;
    struct listener *l = arg;
    for (int i = 0; i < ROUND_MAX && !l->freed; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            int on = 1; /* fails on unix sockets, which need it not */
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            l->fn(l->arg, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            watch_set(l->watch, 0);
            timer_arm(l->again, clock_now() + FULL_PAUSE);
        }
        return; /* EAGAIN, or a connection that is gone again */
    }
}

int listener_new(struct loop *loop, int fd, void (*fn)(void *arg, int fd), void *arg,
                 struct listener **ret, struct err *e)
{
    struct listener *l = xcalloc(1, sizeof *l);
    l->loop = loop;
    l->fn = fn;
    l->arg = arg;
    l->fd = -1;
    int rc = watch_new(loop, fd, on_ready, l, &l->watch, e);
    rc = rc < 0 ? rc : timer_new(loop, on_again, l, &l->again, e);
    if (rc < 0) {
        (void)listener_free(l);
        return rc;
    }
    l->fd = fd;
    watch_set(l->watch, WATCH_READ);
    *ret = l;
    return 0;
}

struct listener *listener_free(struct listener *l)
{
    if (l != NULL) {
        l->freed = true;
        l->watch = watch_free(l->watch);
        l->again = timer_free(l->again);
        cleanup_fd(&l->fd);
        loop_retire(l->loop, free, l);
    }
    return NULL;
}

/* A place that cannot be had is the caller's choice; the rest is the machine's. */
static enum err_code bind_problem(int number)
{
    switch (number) {
    case EADDRINUSE:
        return ERR_EXISTS;
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EROFS:
        return ERR_OUTPUT;
    default:
        return ERR_SYS;
    }
}

static int listen_on(int fd, const struct sockaddr *addr, socklen_t len, const char *what,
                     struct err *e)
{
    if (bind(fd, addr, len) != 0) {
        return ERR_SYS_AS(e, bind_problem(errno), "listen on '%s'", what);
    }
    if (listen(fd, BACKLOG) != 0) {
        return ERR_SYS(e, "listen on '%s'", what);
    }
    return 0;
}

int listener_bind_tcp(const char *host, int port, int *ret_fd, int *ret_port, struct err *e)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
    bool is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, host, &v6.sin6_addr) != 1) {
        return ERR(e, ERR_CONFIG, "'%.80s' is not a numeric address to listen on", host);
    }
    const struct sockaddr *addr = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t len = is_v4 ? sizeof v4 : sizeof v6;
    CLEANUP(fd)
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
        return ERR_SYS(e, "create a socket");
    }
    int rc = listen_on(fd, addr, len, host, e);
    if (rc < 0) {
        return rc;
    }
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0) {
        return ERR_SYS(e, "look at a socket");
    }
    *ret_port = ntohs(is_v4 ? ((struct sockaddr_in *)&bound)->sin_port
                            : ((struct sockaddr_in6 *)&bound)->sin6_port);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Left by a process that is gone? Nobody listens on it then. */
static bool is_stale(const struct sockaddr_un *addr)
{
    struct stat st;
    if (lstat(addr->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    CLEANUP(fd) int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return probe >= 0 && connect(probe, (const struct sockaddr *)addr, sizeof *addr) != 0 &&
           errno == ECONNREFUSED;
}

int listener_bind_unix(const char *path, int *ret_fd, struct err *e)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof addr.sun_path) {
        return ERR(e, ERR_CONFIG, "the path of a socket has 1 to %zu bytes, '%.60s…' has %zu",
                   sizeof addr.sun_path - 1, path, len);
    }
    memcpy(addr.sun_path, path, len + 1);
    CLEANUP(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Before bind(): the file is made with this mode; others can connect at no moment. */
    if (fd < 0 || fchmod(fd, 0600) != 0) {
        return ERR_SYS(e, "create a socket");
    }
    if (is_stale(&addr) && unlink(path) != 0) {
        return ERR_SYS(e, "remove '%s'", path);
    }
    int rc = listen_on(fd, (struct sockaddr *)&addr, sizeof addr, path, e);
    if (rc == 0) {
        *ret_fd = TAKE_FD(fd);
    }
    return rc;
}
