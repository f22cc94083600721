/* SPDX-License-Identifier: MIT
 *
 * Ways out through the file system. Attempts that write report what the system call said; the test
 * looks at the real file from outside, because a private copy may be written to.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"

/* read PATH [NEEDLE]: the bytes (which contain the needle) can be read. */
static enum verdict read_file(char **args)
{
    int fd = open(args[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return held_errno(args[0]);
    }
    static char content[65536];
    ssize_t n = read(fd, content, sizeof(content) - 1);
    (void)close(fd);
    if (n < 0) {
        return held_errno(args[0]);
    }
    if (args[1] != NULL && memmem(content, (size_t)n, args[1], strlen(args[1])) == NULL) {
        return held("'%s' opens but is not the one outside", args[0]);
    }
    return escaped("read %zd bytes of '%s'", n, args[0]);
}

static enum verdict list_directory(char **args)
{
    DIR *d = opendir(args[0]);
    if (d == NULL) {
        return held_errno(args[0]);
    }
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        if (args[1] == NULL ? entry->d_name[0] != '.' : strcmp(entry->d_name, args[1]) == 0) {
            enum verdict v = escaped("'%s' lists '%s'", args[0], entry->d_name);
            (void)closedir(d);
            return v;
        }
    }
    (void)closedir(d);
    return held("'%s' shows nothing of the kind", args[0]);
}

static enum verdict write_file(char **args)
{
    int fd = open(args[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        return held_errno(args[0]);
    }
    ssize_t n = write(fd, "planted\n", 8);
    (void)close(fd);
    return n == 8 ? escaped("wrote to '%s'", args[0]) : held_errno(args[0]);
}

static enum verdict remove_file(char **args)
{
    return unlink(args[0]) == 0 ? escaped("removed '%s'", args[0]) : held_errno(args[0]);
}

/* hardlink TARGET NAME: a second name in the workspace for a file outside. */
static enum verdict hard_link(char **args)
{
    if (link(args[0], args[1]) != 0) {
        return held_errno("link");
    }
    return escaped("'%s' is now also '%s'", args[0], args[1]);
}

/* A character device made here must neither be made nor work. */
static enum verdict device_node(char **args)
{
    (void)args;
    (void)unlink("escape-device");
    if (mknod("escape-device", S_IFCHR | 0666, makedev(1, 5)) != 0) {
        return held_errno("mknod");
    }
    int fd = open("escape-device", O_RDONLY | O_CLOEXEC);
    int why = errno;
    (void)unlink("escape-device");
    errno = why;
    return fd < 0 ? held_errno("open of the device") : escaped("a device node was made and opened");
}

/* setuid PROGRAM: runs a program that belongs to root and is setuid; `escape euid` is its job. */
static enum verdict setuid_program(char **args)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(args[0], args[0], "euid", (char *)NULL);
        _exit(126);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return held_errno("fork");
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED) {
        return escaped("'%s' ran with its owner's rights", args[0]);
    }
    return held("'%s' gave no rights (status %d)", args[0], status);
}

static enum verdict effective_uid(char **args)
{
    (void)args;
    return geteuid() != getuid() ? escaped("effective uid %d", (int)geteuid())
                                 : held("effective uid is the real one");
}

/* handle PATH: open_by_handle_at() walks past mount points if one may call it. */
static enum verdict file_handle(char **args)
{
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } h = { .head = { .handle_bytes = MAX_HANDLE_SZ } };
    int mount_id = 0;
    if (name_to_handle_at(AT_FDCWD, args[0], &h.head, &mount_id, 0) != 0) {
        return held_errno("name_to_handle_at");
    }
    int dir = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        return held_errno(args[0]);
    }
    int fd = open_by_handle_at(dir, &h.head, O_RDONLY);
    return fd >= 0 ? escaped("opened a file by its handle") : held_errno("open_by_handle_at");
}

/* swap NAME TARGET: leaves a process behind that swaps a directory and a link to TARGET as fast as
 * it can, to catch whoever works on the workspace after the program's end. */
static enum verdict swap_links(char **args)
{
    char aside[PATH_MAX], link_name[PATH_MAX];
    (void)snprintf(aside, sizeof(aside), "%s.aside", args[0]);
    (void)snprintf(link_name, sizeof(link_name), "%s.link", args[0]);
    if (mkdir(args[0], 0755) != 0 || symlink(args[1], link_name) != 0) {
        return not_applicable("cannot prepare: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid != 0) {
        return held("the swapper runs as %d", (int)pid);
    }
    (void)setsid();
    for (long i = 0; i < 20000000; i++) {
        (void)rename(args[0], aside);
        (void)rename(link_name, args[0]);
        (void)rename(args[0], link_name);
        (void)rename(aside, args[0]);
    }
    _exit(0);
}

const struct attempt file_attempts[] = {
    { "read", "PATH [NEEDLE]", 1, read_file },
    { "entries", "DIRECTORY [NAME]", 1, list_directory },
    { "write", "PATH", 1, write_file },
    { "remove", "PATH", 1, remove_file },
    { "hardlink", "TARGET NAME", 2, hard_link },
    { "device", "", 0, device_node },
    { "setuid", "PROGRAM", 1, setuid_program },
    { "euid", "", 0, effective_uid },
    { "handle", "PATH", 1, file_handle },
    { "swap", "NAME TARGET", 2, swap_links },
    { NULL, NULL, 0, NULL },
};
