/* SPDX-License-Identifier: MIT
 *
 * Ways out through the kernel's larger doors: system calls that no coding agent needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"

/* In a child, so that a filter that kills is told from one that refuses, and so that what the
 * attempt changes goes away with it. The child's exit code: 0 refused, 1 went through. */
static enum verdict in_child(int (*attack)(void), const char *what)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(attack());
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return not_applicable("fork: %s", strerror(errno));
    }
    if (WIFSIGNALED(status)) {
        return held("%s: killed by signal %d", what, WTERMSIG(status));
    }
    return WEXITSTATUS(status) == 0 ? held("%s was refused", what)
                                    : escaped("%s went through", what);
}

static int new_user_namespace(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}

static enum verdict nested_namespace(char **args)
{
    (void)args;
    return in_child(new_user_namespace, "unshare(CLONE_NEWUSER)");
}

static int clone3_user_namespace(void)
{
    struct clone_args a = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    long pid = syscall(SYS_clone3, &a, sizeof(a));
    if (pid == 0) {
        _exit(0);
    }
    if (pid > 0) {
        (void)waitpid((pid_t)pid, NULL, 0);
    }
    return pid > 0;
}

static enum verdict nested_clone3(char **args)
{
    (void)args;
    return in_child(clone3_user_namespace, "clone3(CLONE_NEWUSER)");
}

static int clone_user_namespace(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        _exit(0);
    }
    if (pid > 0) {
        (void)waitpid((pid_t)pid, NULL, 0);
    }
    return pid > 0;
}

static enum verdict nested_clone(char **args)
{
    (void)args;
    return in_child(clone_user_namespace, "clone(CLONE_NEWUSER)");
}

static int mount_something(void)
{
    /* Alone, and after becoming root of a namespace of its own if that is possible. */
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0) {
        return 1;
    }
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           mount("escape", "/mnt", "tmpfs", 0, NULL) == 0;
}

static enum verdict mount_call(char **args)
{
    (void)args;
    return in_child(mount_something, "mount");
}

static int fsopen_something(void)
{
    return (int)syscall(SYS_fsopen, "tmpfs", 0) >= 0;
}

static enum verdict fsopen_call(char **args)
{
    (void)args;
    return in_child(fsopen_something, "fsopen");
}

static int ring(void)
{
    char params[120] = { 0 };
    return (int)syscall(SYS_io_uring_setup, 4, params) >= 0;
}

static enum verdict io_uring_call(char **args)
{
    (void)args;
    return in_child(ring, "io_uring_setup");
}

static int keyring(void)
{
    return syscall(SYS_add_key, "user", "escape", "x", (size_t)1, -3 /* session keyring */) >= 0;
}

static enum verdict keyring_call(char **args)
{
    (void)args;
    return in_child(keyring, "add_key");
}

static int bpf_map(void)
{
    union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY };
    attr.key_size = 4;
    attr.value_size = 4;
    attr.max_entries = 1;
    return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)) >= 0;
}

static enum verdict bpf_call(char **args)
{
    (void)args;
    return in_child(bpf_map, "bpf");
}

static int perf(void)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr) };
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) >= 0;
}

static enum verdict perf_call(char **args)
{
    (void)args;
    return in_child(perf, "perf_event_open");
}

static int fault_descriptor(void)
{
    return (int)syscall(SYS_userfaultfd, 1 /* user mode only */) >= 0;
}

static enum verdict userfaultfd_call(char **args)
{
    (void)args;
    return in_child(fault_descriptor, "userfaultfd");
}

#ifdef __x86_64__
static int call_as_i386(void)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(20L /* getpid */)
                     : "memory", "r8", "r9", "r10", "r11");
    return result > 0;
}

static int call_as_x32(void)
{
    return syscall(0x40000000 | SYS_getpid) > 0;
}

static enum verdict foreign_abi(char **args)
{
    (void)args;
    return in_child(call_as_i386, "a 32-bit system call");
}

static enum verdict x32_abi(char **args)
{
    (void)args;
    return in_child(call_as_x32, "an x32 system call");
}
#else
static enum verdict foreign_abi(char **args)
{
    (void)args;
    return not_applicable("only x86-64 has a second system call table here");
}

static enum verdict x32_abi(char **args)
{
    (void)args;
    return not_applicable("only x86-64 has x32");
}
#endif

/* sysctl: core_pattern opens for writing. Nothing is written. */
static enum verdict global_setting(char **args)
{
    (void)args;
    int fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return held_errno("core_pattern");
    }
    (void)close(fd);
    return escaped("core_pattern opens for writing");
}

static enum verdict host_name(char **args)
{
    return sethostname(args[0], strlen(args[0])) == 0 ? escaped("the host name was set")
                                                      : held_errno("sethostname");
}

/* cgroup: the group of a process can be changed from inside. */
static enum verdict cgroup_write(char **args)
{
    (void)args;
    static const char *const files[] = {
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/unified/cgroup.procs",
        "/sys/fs/cgroup/memory/cgroup.procs",
        "/sys/fs/cgroup/memory/release_agent",
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = open(files[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)close(fd);
            return escaped("'%s' opens for writing", files[i]);
        }
    }
    return held_errno("cgroup files");
}

const struct attempt kernel_attempts[] = {
    { "userns", "", 0, nested_namespace },
    { "userns_clone", "", 0, nested_clone },
    { "userns_clone3", "", 0, nested_clone3 },
    { "mount", "", 0, mount_call },
    { "fsopen", "", 0, fsopen_call },
    { "io_uring", "", 0, io_uring_call },
    { "keyring", "", 0, keyring_call },
    { "bpf", "", 0, bpf_call },
    { "perf", "", 0, perf_call },
    { "userfaultfd", "", 0, userfaultfd_call },
    { "i386", "", 0, foreign_abi },
    { "x32", "", 0, x32_abi },
    { "sysctl", "", 0, global_setting },
    { "hostname", "NAME", 1, host_name },
    { "cgroup", "", 0, cgroup_write },
    { NULL, NULL, 0, NULL },
};
