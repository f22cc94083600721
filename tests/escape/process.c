/* SPDX-License-Identifier: MIT
 *
 * Ways out through other processes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "escape.h"

static int is_pid(const char *name)
{
    return name[0] >= '1' && name[0] <= '9';
}

/* environ NEEDLE: some other process' environment shows the needle. Ours does not count. */
static enum verdict foreign_environment(char **args)
{
    DIR *d = opendir("/proc");
    if (d == NULL) {
        return held_errno("/proc");
    }
    static char content[1 << 20];
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        if (!is_pid(entry->d_name) || strtol(entry->d_name, NULL, 10) == getpid()) {
            continue;
        }
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/%.20s/environ", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, content, sizeof(content));
        if (fd >= 0) {
            (void)close(fd);
        }
        if (n > 0 && memmem(content, (size_t)n, args[0], strlen(args[0])) != NULL) {
            return escaped("process %s shows it", entry->d_name);
        }
    }
    (void)closedir(d);
    return held("no process shows it");
}

/* root PATH NEEDLE: the file as other processes' roots and working directories show it. */
static enum verdict foreign_root(char **args)
{
    DIR *d = opendir("/proc");
    if (d == NULL) {
        return held_errno("/proc");
    }
    static char content[65536];
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        char path[4200];
        (void)snprintf(path, sizeof(path), "/proc/%.20s/root%.4096s", entry->d_name, args[0]);
        int fd = is_pid(entry->d_name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t n = fd < 0 ? -1 : read(fd, content, sizeof(content));
        if (fd >= 0) {
            (void)close(fd);
        }
        if (n > 0 && memmem(content, (size_t)n, args[1], strlen(args[1])) != NULL) {
            return escaped("read through the root of process %s", entry->d_name);
        }
    }
    (void)closedir(d);
    return held("no process' root shows it");
}

/* The pids to attack: the one given, who started us, and the first one. */
static enum verdict each_victim(char **args, int (*attack)(pid_t), const char *how)
{
    pid_t victims[] = { (pid_t)strtol(args[0], NULL, 10), getppid(), 1 };
    for (size_t i = 0; i < sizeof(victims) / sizeof(victims[0]); i++) {
        if (victims[i] > 0 && attack(victims[i]) == 0) {
            return escaped("%s of process %d", how, (int)victims[i]);
        }
    }
    return held_errno(how);
}

static int trace(pid_t pid)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) {
        return -1;
    }
    return 0; /* a seized process is let go when we end */
}

static enum verdict ptrace_others(char **args)
{
    return each_victim(args, trace, "ptrace");
}

static int peek(pid_t pid)
{
    /* An address that any process has: that of the stack, from its maps. */
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return -1;
    }
    unsigned long at = 0;
    int found = fscanf(f, "%lx-", &at);
    (void)fclose(f);
    char byte;
    struct iovec local = { &byte, 1 };
    struct iovec remote = { (void *)at, 1 }; /* NOLINT: an address of the other process */
    return found == 1 && process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1 ? 0 : -1;
}

static enum verdict read_memory(char **args)
{
    return each_victim(args, peek, "process_vm_readv");
}

static int open_memory(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0 ? 0 : -1;
}

static enum verdict memory_file(char **args)
{
    return each_victim(args, open_memory, "/proc/PID/mem");
}

/* signal PID: a process outside can be reached. */
static enum verdict signal_others(char **args)
{
    pid_t pid = (pid_t)strtol(args[0], NULL, 10);
    return kill(pid, 0) == 0 ? escaped("process %d can be signalled", (int)pid)
                             : held_errno("kill");
}

/* pidfd PID: descriptors of a process outside can be taken. */
static enum verdict steal_descriptor(char **args)
{
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(args[0], NULL, 10), 0);
    if (pidfd < 0) {
        return held_errno("pidfd_open");
    }
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, 0, 0);
    return fd >= 0 ? escaped("took descriptor 0 of process %s", args[0])
                   : held_errno("pidfd_getfd");
}

/* Any descriptor beyond the three standard ones and the one we read the list with. */
static enum verdict inherited_descriptors(char **args)
{
    (void)args;
    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            char path[64], target[256];
            (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
            ssize_t n = readlink(path, target, sizeof(target) - 1);
            target[n < 0 ? 0 : n] = '\0';
            return escaped("descriptor %d is open: %s", fd, target);
        }
    }
    return held("no descriptor but 0, 1 and 2");
}

/* tiocsti: puts a character into the input of our own terminal, as if the user had typed it. */
static enum verdict type_into_terminal(char **args)
{
    (void)args;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        return not_applicable("no pseudo terminal: %s", strerror(errno));
    }
    (void)setsid();
    int slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
    if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) != 0) {
        return not_applicable("no controlling terminal: %s", strerror(errno));
    }
    char c = 'x';
    return ioctl(slave, TIOCSTI, &c) == 0 ? escaped("TIOCSTI typed a character")
                                          : held_errno("TIOCSTI");
}

/* daemon FILE: leaves a daemon behind that keeps appending to FILE; the test sees it stop. */
static enum verdict daemonise(char **args)
{
    if (fork() != 0) {
        (void)wait(NULL);
        return held("a daemon was started");
    }
    (void)setsid();
    if (fork() != 0) {
        _exit(0);
    }
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    for (int s = 1; s < 32; s++) {
        (void)sigaction(s, &ignore, NULL);
    }
    for (int i = 0; i < 36000; i++) {
        int fd = open(args[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd >= 0) {
            ssize_t n = write(fd, ".", 1);
            (void)n;
            (void)close(fd);
        }
        struct timespec pause_time = { .tv_nsec = 100000000 };
        (void)nanosleep(&pause_time, NULL);
    }
    _exit(0);
}

/* core: a crash leaves no core file in the working directory. */
static enum verdict core_dump(char **args)
{
    (void)args;
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    if (setrlimit(RLIMIT_CORE, &all) == 0) {
        return escaped("the core limit could be raised");
    }
    pid_t pid = fork();
    if (pid == 0) {
        abort();
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return held_errno("fork");
    }
    return WCOREDUMP(status) ? escaped("a core was dumped") : held("no core was dumped");
}

const struct attempt process_attempts[] = {
    { "environ", "NEEDLE", 1, foreign_environment },
    { "root", "PATH NEEDLE", 2, foreign_root },
    { "ptrace", "PID", 1, ptrace_others },
    { "vm", "PID", 1, read_memory },
    { "mem", "PID", 1, memory_file },
    { "signal", "PID", 1, signal_others },
    { "pidfd", "PID", 1, steal_descriptor },
    { "fds", "", 0, inherited_descriptors },
    { "tiocsti", "", 0, type_into_terminal },
    { "daemon", "FILE", 1, daemonise },
    { "core", "", 0, core_dump },
    { NULL, NULL, 0, NULL },
};
