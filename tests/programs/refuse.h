/* SPDX-License-Identifier: MIT
 *
 * A machine that lacks something, for the calling process and all that it starts: a filter that
 * refuses the system calls for it.
 */
#pragma once

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* `call` fails with `error` where argument `arg` and `mask` are `value`. */
struct refusal {
    const char *name;
    uint32_t call;
    uint32_t arg;
    uint32_t mask;
    uint32_t value;
    uint32_t error;
};

static const struct refusal refusals[] = {
    /* Only overlays are given options as strings (init/mounts.c); 1 is FSCONFIG_SET_STRING. */
    { "overlay", SYS_fsconfig, 1, 0xffffffff, 1, EPERM },
    { "user", SYS_unshare, 0, CLONE_NEWUSER, CLONE_NEWUSER, EPERM },
    { "mount", SYS_unshare, 0, CLONE_NEWNS, CLONE_NEWNS, EPERM },
    { "net", SYS_unshare, 0, CLONE_NEWNET, CLONE_NEWNET, EPERM },
    { "pid", SYS_clone, 0, CLONE_NEWPID, CLONE_NEWPID, EPERM },
};

static inline int refuse(const char *name)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *r = &refusals[i];
        if (strcmp(r->name, name) != 0) {
            continue;
        }
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, 4),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                     (uint32_t)offsetof(struct seccomp_data, args) + 8 * r->arg),
            BPF_STMT(BPF_ALU | BPF_AND | BPF_K, r->mask),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->value, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | r->error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { sizeof code / sizeof code[0], code };
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
                   ? 0
                   : -1;
    }
    errno = EINVAL;
    return -1;
}
