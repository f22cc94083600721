/* SPDX-License-Identifier: MIT
 *
 * Landlock and seccomp from data.
 */
#include "init/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "init/mounts.h"
#include "init/plan.h"

/* Rights that a file can have; a rule for a file with others is refused. The last two are newer
 * than Debian 12's header. */
#define LANDLOCK_FS_TRUNCATE  (1ULL << 14)
#define LANDLOCK_FS_IOCTL_DEV (1ULL << 15)
#define FILE_RIGHTS                                                                              \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | \
     LANDLOCK_FS_TRUNCATE | LANDLOCK_FS_IOCTL_DEV)

int lockdown_rlimit(const struct plan_record *r, struct err *e)
{
    struct rlimit limit = { .rlim_cur = r->limit.soft, .rlim_max = r->limit.hard };
    if (setrlimit((__rlimit_resource_t)r->limit.resource, &limit) != 0) {
        return ERR_SYS(e, "set resource limit %u to %llu", r->limit.resource,
                       (unsigned long long)r->limit.soft);
    }
    return 0;
}

/* A bound may be lower already; that one then holds. */
static int tighten(const struct plan_record *r, struct err *e)
{
    struct rlimit now;
    struct plan_record lower = *r;
    if (getrlimit((__rlimit_resource_t)r->limit.resource, &now) == 0) {
        lower.limit.hard = lower.limit.hard < now.rlim_max ? lower.limit.hard : now.rlim_max;
        lower.limit.soft =
            lower.limit.soft < lower.limit.hard ? lower.limit.soft : lower.limit.hard;
    }
    return lockdown_rlimit(&lower, e);
}

static int make_ruleset(const struct plan_record *r, int *ret_fd, struct err *e)
{
    /* Older kernels know a shorter struct, and refuse a longer one unless the rest is zero. */
    *ret_fd = (int)syscall(SYS_landlock_create_ruleset, &r->ruleset, sizeof r->ruleset, 0);
    return *ret_fd < 0 ? ERR_SYS_AS(e, ERR_UNSUPPORTED, "create a Landlock ruleset") : 0;
}

static int add_rule(int ruleset, const struct plan_record *r, struct err *e)
{
    CLEANUP(fd) int at = -1;
    struct stat st;
    if (mounts_open(r->to, &at, NULL) < 0 || fstat(at, &st) != 0) {
        return 0; /* a right to what is not there is none */
    }
    struct landlock_path_beneath_attr a = {
        .allowed_access = S_ISDIR(st.st_mode) ? r->access : r->access & FILE_RIGHTS,
        .parent_fd = at,
    };
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &a, 0) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "add a Landlock rule for '%s'", r->to);
    }
    return 0;
}

int lockdown_limits(struct plan *entry, struct err *e)
{
    int ruleset = -1;
    int rc = 0;
    struct plan_record r;
    plan_rewind(entry);
    while (rc == 0 && plan_next(entry, &r)) {
        if (r.op == PLAN_OP_RLIMIT) {
            rc = tighten(&r, e);
        } else if (r.op == PLAN_OP_UMASK) {
            (void)umask(r.mask);
        } else if (r.op == PLAN_OP_LANDLOCK) {
            rc = make_ruleset(&r, &ruleset, e);
        } else if (r.op == PLAN_OP_LANDLOCK_RULE) {
            rc = add_rule(ruleset, &r, e);
        }
    }
    if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        rc = ERR_SYS(e, "give up new privileges");
    }
    if (rc == 0 && ruleset >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
        rc = ERR_SYS_AS(e, ERR_UNSUPPORTED, "enforce the Landlock rules");
    }
    return rc;
}

static int load_filter(struct str program, struct err *e)
{
    struct sock_fprog f = { .len = (unsigned short)(program.len / sizeof(struct sock_filter)),
                            .filter = (struct sock_filter *)(uintptr_t)program.ptr };
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "load the system call filter");
    }
    return 0;
}

int lockdown_filter(struct plan *entry, struct err *e)
{
    int rc = 0;
    struct plan_record r;
    plan_rewind(entry);
    while (rc == 0 && plan_next(entry, &r)) {
        if (r.op == PLAN_OP_SECCOMP) {
            rc = load_filter(r.bytes, e);
        }
    }
    return rc;
}
