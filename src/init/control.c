/* SPDX-License-Identifier: MIT
 *
 * Messages between supervisor and cinch-init. Sending never raises SIGPIPE: the death of the peer
 * is an ordinary event on both sides.
 */
#include "init/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init/plan.h"

#define FDS_MAX CONTROL_FDS_MAX
_Static_assert(FDS_MAX >= 2 + PLAN_FDS_MAX, "room for a plan, a socket and what the plan needs");

union control_space {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

static int send_bytes(int sock, const struct msghdr *m, struct err *e)
{
    for (;;) {
        if (sendmsg(sock, m, MSG_NOSIGNAL) >= 0) {
            return 0;
        }
        if (errno != EINTR) {
            return ERR_SYS(e, "send to the other end of the control socket");
        }
    }
}

static int send_with(int sock, const void *bytes, size_t size, const int *fds, size_t n_fds,
                     struct err *e)
{
    if (n_fds > FDS_MAX) {
        return ERR(e, ERR_BUG, "%zu descriptors for one message", n_fds);
    }
    struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    union control_space space = { .bytes = { 0 } };
    if (n_fds > 0) {
        m.msg_control = space.bytes;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(h), fds, n_fds * sizeof(int));
    }
    return send_bytes(sock, &m, e);
}

int control_send_command(int sock, const struct control_command *c, const int *fds, size_t n_fds,
                         struct err *e)
{
    return send_with(sock, c, sizeof *c, fds, n_fds, e);
}

int control_send_status(int sock, const struct control_status *s, struct err *e)
{
    return send_with(sock, s, sizeof *s, NULL, 0, e);
}

int control_send_status_fds(int sock, const struct control_status *s, const int *fds, size_t n_fds,
                            struct err *e)
{
    return send_with(sock, s, sizeof *s, fds, n_fds, e);
}

/* One message of exactly `size` bytes. */
static int recv_bytes(int sock, struct msghdr *m, size_t size, struct err *e)
{
    for (;;) {
        ssize_t n = recvmsg(sock, m, MSG_CMSG_CLOEXEC);
        if (n == 0) {
            return CONTROL_RECV_EOF;
        }
        if (n > 0 && ((size_t)n != size || (m->msg_flags & MSG_TRUNC) != 0)) {
            return ERR(e, ERR_PROTO, "control message of %zd bytes instead of %zu", n, size);
        }
        if (n > 0) {
            return CONTROL_RECV_MESSAGE;
        }
        if (errno == EAGAIN) {
            return CONTROL_RECV_NOTHING;
        }
        /* A peer that dies with unread mail leaves ECONNRESET in front of the messages that it sent
         * before; reading on gives those, then end of file. */
        if (errno != EINTR && errno != ECONNRESET) {
            return ERR_SYS(e, "receive from the control socket");
        }
    }
}

/* Takes the descriptors out of a message; those without room are closed. */
static size_t take_fds(struct msghdr *m, int *fds, size_t max)
{
    size_t n = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (n < max) {
                fds[n++] = fd;
            } else {
                (void)close(fd);
            }
        }
    }
    return n;
}

/* One message with its descriptors; when it is not one, none is kept. */
static int recv_with(int sock, struct iovec *iov, int *fds, size_t max, size_t *ret_n_fds,
                     struct err *e)
{
    *ret_n_fds = 0;
    union control_space space = { .bytes = { 0 } };
    struct msghdr m = { .msg_iov = iov,
                        .msg_iovlen = 1,
                        .msg_control = space.bytes,
                        .msg_controllen = sizeof space.bytes };
    int rc = recv_bytes(sock, &m, iov->iov_len, e);
    if (rc == CONTROL_RECV_NOTHING || rc == CONTROL_RECV_EOF) {
        return rc;
    }
    size_t n = take_fds(&m, fds, max);
    if (rc == CONTROL_RECV_MESSAGE && (m.msg_flags & MSG_CTRUNC) == 0) {
        *ret_n_fds = n;
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
    return rc < 0 ? rc : ERR(e, ERR_PROTO, "descriptors were lost on the way");
}

static void drop_fds(int *fds, size_t *n_fds)
{
    for (size_t i = 0; i < *n_fds; i++) {
        (void)close(fds[i]);
    }
    *n_fds = 0;
}

int control_recv_command(int sock, struct control_command *ret, int *fds, size_t max,
                         size_t *ret_n_fds, struct err *e)
{
    struct iovec iov = { .iov_base = ret, .iov_len = sizeof *ret };
    int rc = recv_with(sock, &iov, fds, max, ret_n_fds, e);
    if (rc == CONTROL_RECV_MESSAGE && !control_command_ok(ret)) {
        drop_fds(fds, ret_n_fds);
        return ERR(e, ERR_PROTO, "malformed command of type %u", ret->type);
    }
    return rc;
}

int control_recv_status_fds(int sock, struct control_status *ret, int *fds, size_t max,
                            size_t *ret_n_fds, struct err *e)
{
    struct iovec iov = { .iov_base = ret, .iov_len = sizeof *ret };
    int rc = recv_with(sock, &iov, fds, max, ret_n_fds, e);
    if (rc == CONTROL_RECV_MESSAGE && !control_status_ok(ret)) {
        drop_fds(fds, ret_n_fds);
        return ERR(e, ERR_PROTO, "malformed status of type %u", ret->type);
    }
    return rc;
}

int control_recv_status(int sock, struct control_status *ret, struct err *e)
{
    size_t none;
    return control_recv_status_fds(sock, ret, NULL, 0, &none, e);
}

bool control_command_ok(const struct control_command *c)
{
    if (c->type == 0 || c->type >= CONTROL_COMMAND_MAX || c->reserved != 0) {
        return false;
    }
    if (c->type == CONTROL_START || c->type == CONTROL_ENTER || c->type == CONTROL_SLAY) {
        return c->id != 0;
    }
    return c->id == 0 && (c->type != CONTROL_SIGNAL || (c->signo > 0 && c->signo <= 64));
}

static bool err_ok(const struct control_err *x)
{
    return x->code > 0 && x->code < ERR_CODE_MAX && memchr(x->msg, '\0', sizeof x->msg) != NULL;
}

static bool finished_ok(const struct control_finished *f)
{
    if (f->n_names > CONTROL_NAMES_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < f->n_names; i++) {
        if (memchr(f->names[i], '\0', CONTROL_NAME_LEN) == NULL) {
            return false;
        }
    }
    return true;
}

bool control_status_ok(const struct control_status *s)
{
    switch ((enum control_status_type)s->type) {
    case CONTROL_STATUS_STARTED:
    case CONTROL_STATUS_ENTERED:
        return s->pid > 0 && s->id != 0;
    case CONTROL_STATUS_START_FAILED:
        return err_ok(&s->error) && s->id != 0;
    case CONTROL_STATUS_ERROR:
        return err_ok(&s->error);
    case CONTROL_STATUS_REFUSED:
        return s->refused.op < PLAN_OP_MAX && err_ok(&s->refused.error);
    case CONTROL_STATUS_EXITED:
    case CONTROL_STATUS_GONE:
        return s->id != 0 && (s->exit.signaled == 0 || s->exit.signaled == 1) &&
               s->exit.value >= 0 && s->exit.value <= 255;
    case CONTROL_STATUS_CPU:
        return s->cpu.ns >= 0 && s->cpu.processes >= 0 && s->cpu.memory >= 0;
    case CONTROL_STATUS_EMPTY:
    case CONTROL_STATUS_READY:
        return true;
    case CONTROL_STATUS_FINISHED:
        return finished_ok(&s->finished);
    case CONTROL_STATUS_MAX:
        break;
    }
    return false;
}

void control_err_from(struct control_err *to, const struct err *from)
{
    *to =
        (struct control_err) { .code = (int32_t)from->code, .sys = from->sys, .line = from->line };
    memcpy(to->msg, from->msg, sizeof to->msg);
    to->msg[sizeof to->msg - 1] = '\0';
}

void control_err_to(const struct control_err *from, struct err *to)
{
    *to = (struct err) { .code = (enum err_code)from->code,
                         .sys = from->sys,
                         .file = "cinch-init",
                         .line = from->line };
    memcpy(to->msg, from->msg, sizeof to->msg);
    to->msg[sizeof to->msg - 1] = '\0';
}
