/* SPDX-License-Identifier: MIT
 *
 * From the holder's child to a keeper that can do nothing but start, signal and reap.
 */
#include "init/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "init/mounts.h"
#include "init/plan.h"
#include "init/view.h"

/* "0" is whoever writes it, in version 1 and in version 2. */
static int do_join(const struct entry *x, const struct plan_record *r, struct err *e)
{
    if (write(x->fds[r->number], "0", 1) != 1) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "enter the control group");
    }
    return 0;
}

/* In a user namespace the kernel mounts a new /proc only where an unspoilt one is in sight; that is
 * why the view holds the host's, and why it goes away only after the new one is made. */
static int do_proc(const struct plan_record *r, struct err *e)
{
    CLEANUP(fd) int fs = fsopen("proc", FSOPEN_CLOEXEC);
    if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "create a /proc for the sandbox");
    }
    CLEANUP(fd)
    int tree =
        fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (tree < 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "mount a /proc for the sandbox");
    }
    (void)umount2("/proc", MNT_DETACH);
    if (move_mount(tree, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) != 0) {
        return ERR_SYS(e, "mount at '/proc'");
    }
    if (r->number != 0) {
        return 0;
    }
    /* What is set there is set for the whole machine, and the kernel looks at the global user id
     * alone. */
    struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                        MOUNT_ATTR_NOEXEC };
    CLEANUP(fd)
    int sys = open_tree(AT_FDCWD, "/proc/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (sys < 0 || mount_setattr(sys, "", AT_EMPTY_PATH, &a, sizeof a) != 0 ||
        move_mount(sys, "", AT_FDCWD, "/proc/sys", MOVE_MOUNT_F_EMPTY_PATH) != 0) {
        return ERR_SYS(e, "make '/proc/sys' read-only");
    }
    return 0;
}

static int become(const struct plan_ids *ids, struct err *e)
{
    if (setgroups(0, NULL) != 0 ||
        setresgid(ids->outside_gid, ids->outside_gid, ids->outside_gid) != 0 ||
        setresuid(ids->outside_uid, ids->outside_uid, ids->outside_uid) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "become user %u", ids->outside_uid);
    }
    return 0;
}

static int do_identity(const struct plan_record *r, struct err *e)
{
    const struct plan_ids *ids = &r->ids;
    int rc = (ids->flags & PLAN_KEEP) != 0 ? 0 : become(ids, e);
    if (rc < 0 || (ids->flags & PLAN_PLAIN) != 0) {
        return rc;
    }
    /* A change of user has made our files in /proc root's; they are needed once more. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (unshare(CLONE_NEWUSER) != 0) {
        /* Where users may not have one, root's programs go on as what they are outside. */
        return (ids->flags & PLAN_KEEP) == 0
                   ? 0
                   : ERR_SYS_AS(e, ERR_UNSUPPORTED, "create a user namespace");
    }
    return view_map_ids(ids, e);
}

static int do_record(const struct entry *x, struct mounts *m, const struct plan_record *r,
                     struct err *e)
{
    if (mounts_knows(r)) {
        return mounts_do(m, r, e);
    }
    if (r->op == PLAN_OP_JOIN) {
        return do_join(x, r, e);
    }
    if (r->op == PLAN_OP_PROC) {
        return do_proc(r, e);
    }
    if (r->op == PLAN_OP_HIDE) {
        return umount2(r->text, MNT_DETACH) == 0 ? 0 : ERR_SYS(e, "take '%s' away", r->text);
    }
    return r->op == PLAN_OP_IDENTITY ? do_identity(r, e) : 0; /* the rest is for programs */
}

/* All sets, the bounding one too: nothing that is executed later can bring one back. */
static int drop_capabilities(struct err *e)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };
    int cap = 0;
    while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0) {
        cap++; /* the first that the kernel does not know ends it; so does a lack of privilege, when
                  there is nothing that could be brought back either */
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, none) != 0) {
        return ERR_SYS(e, "give up all capabilities");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return ERR_SYS(e, "give up new privileges");
    }
    return 0;
}

/* After the last change of credentials, which would undo it. */
static int tie_to_holder(int holder, struct err *e)
{
    struct pollfd p = { .fd = holder, .events = POLLIN };
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return ERR_SYS(e, "tie the keeper to the holder");
    }
    /* Before prctl(): no signal would come. */
    return poll(&p, 1, 0) == 0 ? 0 : ERR(e, ERR_CANCELLED, "the holder of the sandbox died");
}

int entry_make(const struct entry *x, struct plan_record *failed, struct err *e)
{
    struct mounts m = MOUNTS_INIT;
    struct plan_record r = { 0 };
    int rc = 0;
    plan_rewind(x->plan);
    while (rc == 0 && plan_next(x->plan, &r)) {
        rc = do_record(x, &m, &r, e);
    }
    *failed = r;
    mounts_done(&m);
    rc = rc < 0 ? rc : drop_capabilities(e);
    return rc < 0 ? rc : tie_to_holder(x->holder, e);
}
