/* SPDX-License-Identifier: MIT
 *
 * filter_generate OUT.c: runs at build time and writes the system call filters as C.
 *
 * The filter refuses what no program under development needs and what has been a way out before.
 * It is the third line, behind namespaces and lost capabilities, so it names what to refuse rather
 * than what to allow: a compiler of next year shall still work. ptrace stays: it reaches only the
 * program's own pid namespace, whose first process is not dumpable, and leak checkers need it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"

/* For whom a filter is made. */
enum {
    NESTED = 1, /* a harness that brings a sandbox of its own */
    SETGID = 2, /* programs may set S_ISGID, which directories have a use for */
    KINDS = 4,
};

/* Arguments that the kernel takes as 32 bits: what stands above them does not count. */
#define LOW 0xffffffffu

/* Of ioprio_set(2), which libc does not declare. */
enum { IO_PROCESS = 1, IO_USER = 3 };

/* Newer than the library. */
#define NR_FCHMODAT2      452
#define NR_OPEN_TREE_ATTR 467

/* Refused in any case. */
static const int refused[] = {
    /* keys of the user's session, and of other runs of the same user */
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
    /* programs in the kernel, its counters, its page faults: long lists of past holes */
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    /* the machine; needs capabilities that nobody has here */
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(syslog),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(vhangup),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(lookup_dcookie),
    /* old doors of one architecture */
    SCMP_SYS(modify_ldt),
    SCMP_SYS(uselib),
    SCMP_SYS(_sysctl),
    SCMP_SYS(sysfs),
    SCMP_SYS(ustat),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(vm86),
    SCMP_SYS(vm86old),
};

/* Building another sandbox. */
static const int mounting[] = {
    SCMP_SYS(mount),    SCMP_SYS(umount2),    SCMP_SYS(umount),    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),   SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig), SCMP_SYS(fsmount),    SCMP_SYS(fspick),    SCMP_SYS(mount_setattr),
    SCMP_SYS(setns),    NR_OPEN_TREE_ATTR,
};

/* Programs know how to do without: they ask whether the kernel has them. io_uring does what it is
 * told behind the filter's back; the flags of clone3 and the mode of openat2 are in memory, where a
 * filter cannot look. */
static const int missing[] = {
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(openat2),
};

static void check(int rc, const char *what)
{
    if (rc < 0) {
        (void)fprintf(stderr, "filter_generate: %s: %s\n", what, strerror(-rc));
        abort();
    }
}

/* A negative number is a call that this architecture does not have. */
static void refuse(scmp_filter_ctx f, int error, int nr, unsigned n,
                   const struct scmp_arg_cmp *args)
{
    if (nr >= 0) {
        check(seccomp_rule_add_array(f, SCMP_ACT_ERRNO((uint32_t)error), nr, n, args), "rule");
    }
}

static void refuse_all(scmp_filter_ctx f, int error, const int *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        refuse(f, error, list[i], 0, NULL);
    }
}

static void refuse_bits(scmp_filter_ctx f, int nr, unsigned arg, uint64_t bits)
{
    struct scmp_arg_cmp a = SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, bits, bits);
    refuse(f, EPERM, nr, 1, &a);
}

/* Only what programs speak: local sockets, IP, and questions about interfaces. */
static void refuse_sockets(scmp_filter_ctx f)
{
    static const unsigned allowed[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
    const int calls[] = { SCMP_SYS(socket), SCMP_SYS(socketpair) };
    for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
        struct scmp_arg_cmp above = SCMP_CMP64(0, SCMP_CMP_GT, AF_NETLINK);
        refuse(f, EAFNOSUPPORT, calls[c], 1, &above);
        for (unsigned family = 0; family < AF_NETLINK; family++) {
            bool good = false;
            for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
                good = good || allowed[i] == family;
            }
            struct scmp_arg_cmp same = SCMP_CMP64(0, SCMP_CMP_EQ, family);
            if (!good) {
                refuse(f, EAFNOSUPPORT, calls[c], 1, &same);
            }
        }
    }
    const struct scmp_arg_cmp odd_netlink[] = { SCMP_CMP64(0, SCMP_CMP_EQ, AF_NETLINK),
                                                SCMP_CMP64(2, SCMP_CMP_NE, NETLINK_ROUTE) };
    refuse(f, EPROTONOSUPPORT, SCMP_SYS(socket), 2, odd_netlink);
}

/* A file that runs as its owner or group has no use inside, where nosuid holds, and would have one
 * outside. Calls that create files cannot make directories, so S_ISGID is refused there in any
 * case; chmod() cannot be told what it is about. O_TMPFILE makes a file without O_CREAT. */
static void refuse_setid_creation(scmp_filter_ctx f, uint64_t bit)
{
    static const uint64_t creating[] = { O_CREAT, O_TMPFILE & ~O_DIRECTORY };
    refuse_bits(f, SCMP_SYS(creat), 1, bit);
    refuse_bits(f, SCMP_SYS(mknod), 1, bit);
    refuse_bits(f, SCMP_SYS(mknodat), 2, bit);
    for (size_t i = 0; i < ARRAY_LEN(creating); i++) {
        uint64_t flag = creating[i];
        const struct scmp_arg_cmp open[] = { SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, flag, flag),
                                             SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, bit, bit) };
        const struct scmp_arg_cmp openat[] = { SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, flag, flag),
                                               SCMP_CMP64(3, SCMP_CMP_MASKED_EQ, bit, bit) };
        refuse(f, EPERM, SCMP_SYS(open), 2, open);
        refuse(f, EPERM, SCMP_SYS(openat), 2, openat);
    }
}

static void refuse_setid_change(scmp_filter_ctx f, uint64_t bit)
{
    refuse_bits(f, SCMP_SYS(chmod), 1, bit);
    refuse_bits(f, SCMP_SYS(fchmod), 1, bit);
    refuse_bits(f, SCMP_SYS(fchmodat), 2, bit);
    refuse_bits(f, NR_FCHMODAT2, 2, bit);
}

static void refuse_setid_files(scmp_filter_ctx f, bool setgid)
{
    refuse_setid_creation(f, S_ISUID);
    refuse_setid_creation(f, S_ISGID);
    refuse_setid_change(f, S_ISUID);
    if (!setgid) {
        refuse_setid_change(f, S_ISGID);
    }
}

/* Typing into a terminal, and the console's own calls: the way from a program to the shell that
 * started it. */
static void refuse_typing(scmp_filter_ctx f)
{
    const struct scmp_arg_cmp sti = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW, TIOCSTI);
    const struct scmp_arg_cmp console = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW, TIOCLINUX);
    refuse(f, EPERM, SCMP_SYS(ioctl), 1, &sti);
    refuse(f, EPERM, SCMP_SYS(ioctl), 1, &console);
}

/* The first process of the namespace is our keeper, which has the user of the programs: limits,
 * priorities and processors of it are not theirs to set. */
static void refuse_keeper(scmp_filter_ctx f)
{
    static const int calls[] = {
        SCMP_SYS(sched_setaffinity),
        SCMP_SYS(sched_setscheduler),
        SCMP_SYS(sched_setparam),
        SCMP_SYS(sched_setattr),
    };
    const struct scmp_arg_cmp first = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW, 1);
    const struct scmp_arg_cmp limits[] = { first, SCMP_CMP64(2, SCMP_CMP_NE, 0) };
    refuse(f, EPERM, SCMP_SYS(prlimit64), 2, limits); /* looking at them is allowed */
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        refuse(f, EPERM, calls[i], 1, &first);
    }
    const struct scmp_arg_cmp user[] = { SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW, PRIO_USER) };
    const struct scmp_arg_cmp process[] = { SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW, PRIO_PROCESS),
                                            SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW, 1) };
    refuse(f, EPERM, SCMP_SYS(setpriority), 1, user);
    refuse(f, EPERM, SCMP_SYS(setpriority), 2, process);
    const struct scmp_arg_cmp io_user[] = { SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW, IO_USER) };
    const struct scmp_arg_cmp io_process[] = { SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW, IO_PROCESS),
                                               SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW, 1) };
    refuse(f, EPERM, SCMP_SYS(ioprio_set), 1, io_user);
    refuse(f, EPERM, SCMP_SYS(ioprio_set), 2, io_process);
}

static void refuse_nesting(scmp_filter_ctx f)
{
    refuse_bits(f, SCMP_SYS(unshare), 0, CLONE_NEWUSER);
    refuse_bits(f, SCMP_SYS(clone), 0, CLONE_NEWUSER);
    refuse(f, ENOSYS, SCMP_SYS(clone3), 0, NULL);
    refuse_all(f, EPERM, mounting, ARRAY_LEN(mounting));
}

/* The bytes of the program, in a static buffer's stead: a memfd. */
static int export(unsigned kind)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    int fd = memfd_create("filter", MFD_CLOEXEC);
    if (f == NULL || fd < 0) {
        check(-ENOMEM, "init");
    }
    /* Another architecture's calls have other numbers: none of the rules would hold. */
    check(seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "architecture");
    check(seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
    refuse_all(f, EPERM, refused, ARRAY_LEN(refused));
    refuse_all(f, ENOSYS, missing, ARRAY_LEN(missing));
    refuse_sockets(f);
    refuse_setid_files(f, (kind & SETGID) != 0);
    refuse_typing(f);
    refuse_keeper(f);
    if ((kind & NESTED) == 0) {
        refuse_nesting(f);
    }
    check(seccomp_export_bpf(f, fd), "export");
    seccomp_release(f);
    return fd;
}

static void write_table(FILE *out, unsigned kind, int fd)
{
    uint64_t instruction;
    (void)lseek(fd, 0, SEEK_SET);
    (void)fprintf(out, "static const uint64_t kind_%u[] = {\n", kind);
    while (read(fd, &instruction, sizeof instruction) == (ssize_t)sizeof instruction) {
        (void)fprintf(out, "    0x%016llx,\n", (unsigned long long)instruction);
    }
    (void)fprintf(out, "};\n");
    (void)close(fd);
}

int main(int argc, char **argv)
{
    FILE *out = argc == 2 ? fopen(argv[1], "we") : NULL;
    if (out == NULL) {
        return 64;
    }
    (void)fprintf(out,
                  "/* Made by filter_generate.c. */\n#include \"sandbox/seccomp_filter.h\"\n\n");
    for (unsigned kind = 0; kind < KINDS; kind++) {
        write_table(out, kind, export(kind));
    }
    (void)fprintf(out,
                  "\nstruct str sandbox_filter(bool nested, bool setgid)\n{\n"
                  "    const struct str all[] = { str_n(kind_0, sizeof kind_0), str_n(kind_1, "
                  "sizeof kind_1),\n"
                  "                               str_n(kind_2, sizeof kind_2), str_n(kind_3, "
                  "sizeof kind_3) };\n"
                  "    return all[(nested ? %d : 0) + (setgid ? %d : 0)];\n}\n",
                  NESTED, SETGID);
    return fclose(out) == 0 ? 0 : 73;
}
