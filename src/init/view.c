/* SPDX-License-Identifier: MIT
 *
 * Namespaces, network, and what is passed out; files are in mounts.c.
 */
#include "init/view.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"

static int write_small(const char *path, const char *text, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int rc = ok ? 0 : ERR_SYS_AS(e, ERR_UNSUPPORTED, "write '%s'", path);
    cleanup_fd(&fd);
    return rc;
}

int view_map_ids(const struct plan_ids *ids, struct err *e)
{
    char text[64];
    /* Else the group map is refused: a user could drop a group that keeps it out. */
    int rc = write_small("/proc/self/setgroups", "deny", e);
    (void)snprintf(text, sizeof text, "%u %u 1\n", ids->inside_uid, ids->outside_uid);
    rc = rc < 0 ? rc : write_small("/proc/self/uid_map", text, e);
    (void)snprintf(text, sizeof text, "%u %u 1\n", ids->inside_gid, ids->outside_gid);
    return rc < 0 ? rc : write_small("/proc/self/gid_map", text, e);
}

static int do_namespaces(const struct plan_record *r, struct err *e)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } kinds[] = {
        { CLONE_NEWUSER, "user" }, { CLONE_NEWNS, "mount" },      { CLONE_NEWNET, "network" },
        { CLONE_NEWIPC, "IPC" },   { CLONE_NEWCGROUP, "cgroup" },
    };
    if (unshare((int)r->number) == 0) {
        return 0;
    }
    int why = errno;
    const char *name = "other";
    for (size_t i = ARRAY_LEN(kinds); i > 0; i--) {
        name = (r->number & kinds[i - 1].flag) != 0 ? kinds[i - 1].name : name;
    }
    errno = why;
    return ERR_SYS_AS(e, ERR_UNSUPPORTED, "create a %s namespace", name);
}

static int do_loopback(struct err *e)
{
    CLEANUP(fd) int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = { .ifr_name = "lo" };
    lo.ifr_flags = IFF_UP | IFF_RUNNING;
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &lo) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "set up the loopback interface");
    }
    return 0;
}

/* A socket belongs to the namespace in which it was made, whoever holds it. */
static int do_listen(struct view *v, const struct plan_record *r, struct err *e)
{
    CLEANUP(fd) int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)r->number) };
    if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(s, (struct sockaddr *)&at, sizeof at) != 0 || listen(s, SOMAXCONN) != 0) {
        return ERR_SYS(e, "listen on port %u of the sandbox", r->number);
    }
    v->passed[v->n_passed++] = TAKE_FD(s);
    return 0;
}

static int do_pass(struct view *v, const struct plan_record *r, struct err *e)
{
    int fd = open(r->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return ERR_SYS(e, "open '%s' of the view", r->text);
    }
    v->passed[v->n_passed++] = fd;
    return 0;
}

static int do_record(struct view *v, const struct plan_record *r, struct err *e)
{
    if (mounts_knows(r)) {
        return mounts_do(&v->mounts, r, e);
    }
    if (r->op == PLAN_OP_NAMESPACES) {
        return do_namespaces(r, e);
    }
    if (r->op == PLAN_OP_MAP) {
        return view_map_ids(&r->ids, e);
    }
    if (r->op == PLAN_OP_HOSTNAME) {
        return sethostname(r->text, strlen(r->text)) == 0 ? 0 : ERR_SYS(e, "set the host name");
    }
    if (r->op == PLAN_OP_LOOPBACK) {
        return do_loopback(e);
    }
    if (r->op == PLAN_OP_LISTEN) {
        return do_listen(v, r, e);
    }
    if (r->op == PLAN_OP_NO_LINKS) {
        v->mounts.no_links = true;
        return 0;
    }
    return r->op == PLAN_OP_PASS ? do_pass(v, r, e)
                                 : ERR(e, ERR_PROTO, "operation %d in a view", (int)r->op);
}

int view_build(struct view *v, struct plan *p, struct err *e)
{
    mode_t mask = umask(0);
    int rc = 0;
    struct plan_record r;
    plan_rewind(p);
    while (rc == 0 && plan_next(p, &r)) {
        rc = do_record(v, &r, e);
        if (rc < 0) {
            v->failed = r;
        }
    }
    (void)umask(mask);
    return rc;
}

void view_done(struct view *v)
{
    mounts_done(&v->mounts);
    for (size_t i = 0; i < v->n_passed; i++) {
        cleanup_fd(&v->passed[i]);
    }
    v->n_passed = 0;
}
