/* SPDX-License-Identifier: MIT
 *
 * Prints what a program inherits, one fact per line: env NAME=value, arg, cwd, umask, fd NUMBER
 * TARGET, session (is it a session leader), signals ignored and blocked, core limit.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static void print_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        char target[PATH_MAX];
        int fd = (int)strtol(entry->d_name, NULL, 10);
        ssize_t n = readlinkat(dirfd(d), entry->d_name, target, sizeof target - 1);
        if (n > 0 && fd != dirfd(d)) {
            target[n] = '\0';
            (void)printf("fd %d %s\n", fd, target);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

static void print_signals(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0) {
            (void)fputs(line, stdout);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

int main(int argc, char **argv)
{
    char cwd[PATH_MAX];
    struct rlimit core;
    struct rlimit files;
    for (char **v = environ; *v != NULL; v++) {
        (void)printf("env %s\n", *v);
    }
    for (int i = 0; i < argc; i++) {
        (void)printf("arg %s\n", argv[i]);
    }
    mode_t mask = umask(0);
    (void)getrlimit(RLIMIT_CORE, &core);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    (void)printf("cwd %s\numask %03o\nsession %d\n", getcwd(cwd, sizeof cwd), (unsigned)mask,
                 getsid(0) == getpid());
    (void)printf("core %lld\nfiles %lld\n", (long long)core.rlim_cur, (long long)files.rlim_cur);
    print_fds();
    print_signals();
    return 0;
}
