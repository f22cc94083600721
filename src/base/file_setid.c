/* SPDX-License-Identifier: MIT
 *
 * A walk over a tree of any depth with one descriptor: names of directories still to be visited are
 * kept per level, and the way up is "..".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"

#define SETID (S_ISUID | S_ISGID)
#define KEEP  ((mode_t)-1)

struct pending {
    struct pending *next;
    char name[];
};

struct level {
    struct level *above;
    struct pending *pending;
    mode_t restore; /* of the directory; KEEP: as it is */
};

struct walk {
    struct level *level;
    int fd; /* the directory of `level` */
    struct err *e;
    int rc;
};

static void note_failure(struct walk *w, const char *what, const char *name)
{
    if (w->rc == 0) {
        w->rc = ERR_SYS(w->e, "%s '%s'", what, name);
    }
}

static void drop_level(struct walk *w)
{
    struct level *l = w->level;
    w->level = l->above;
    while (l->pending != NULL) {
        struct pending *p = l->pending;
        l->pending = p->next;
        free(p);
    }
    free(l);
}

/* Capabilities of a file are as good as a setuid bit. Only a privileged agent can set them. */
static void drop_capabilities(struct walk *w, int at, const char *name)
{
    static const char key[] = "security.capability";
    char path[PATH_MAX];
    char dir[32];
    (void)snprintf(dir, sizeof dir, at == AT_FDCWD ? "." : "/proc/self/fd/%d", at);
    int n = name[0] == '/' ? snprintf(path, sizeof path, "%s", name)
                           : snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n > 0 && (size_t)n < sizeof path && lgetxattr(path, key, NULL, 0) > 0 &&
        lremovexattr(path, key) < 0) {
        note_failure(w, "take the capabilities from", name);
    }
}

/* One entry of the directory `at`; directories are noted for later. */
static void visit(struct walk *w, int at, const char *name, struct pending **ret)
{
    struct stat st;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        note_failure(w, "look at", name);
        return;
    }
    bool dir = S_ISDIR(st.st_mode);
    if (!S_ISLNK(st.st_mode) && (st.st_mode & SETID) != 0 &&
        fchmodat(at, name, st.st_mode & 07777 & ~SETID, AT_SYMLINK_NOFOLLOW) < 0) {
        note_failure(w, "take the setuid and setgid bits from", name);
    }
    if (S_ISREG(st.st_mode)) {
        drop_capabilities(w, at, name);
    }
    if (dir) {
        size_t len = strlen(name);
        struct pending *p = xmalloc(sizeof *p + len + 1);
        memcpy(p->name, name, len + 1);
        p->next = *ret;
        *ret = p;
    }
}

static void read_level(struct walk *w)
{
    int fd = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        note_failure(w, "read", "a directory");
        cleanup_fd(&fd);
        return;
    }
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            visit(w, w->fd, entry->d_name, &w->level->pending);
        }
    }
    (void)closedir(d);
}

/* A directory that its owner may not read is opened for the time of the visit. */
static int open_level(int at, const char *name, mode_t *ret_restore)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    *ret_restore = KEEP;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return -1;
    }
    if ((st.st_mode & S_IRWXU) != S_IRWXU &&
        fchmodat(at, name, (st.st_mode & 07777) | S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret_restore = st.st_mode & 07777;
    }
    return openat(at, name, flags);
}

static void enter_directory(struct walk *w, int at, const char *name)
{
    mode_t restore;
    int fd = open_level(at, name, &restore);
    if (fd < 0) {
        note_failure(w, "open", name);
        return;
    }
    struct level *l = xcalloc(1, sizeof *l);
    l->above = w->level;
    l->restore = restore;
    w->level = l;
    if (l->above != NULL) {
        (void)close(w->fd);
    }
    w->fd = fd;
    read_level(w);
}

static void leave_directory(struct walk *w)
{
    bool top = w->level->above == NULL;
    int up = top ? -1 : openat(w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->level->restore != KEEP) {
        (void)!fchmod(w->fd, w->level->restore & ~SETID);
    }
    (void)close(w->fd);
    w->fd = up;
    drop_level(w);
    while (up < 0 && !top && w->level != NULL) {
        note_failure(w, "return from", "a directory");
        drop_level(w);
    }
}

int file_drop_setid(int dirfd, const char *path, struct err *e)
{
    struct walk w = { .fd = -1, .e = e };
    struct pending *top = NULL;
    if (faccessat(dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
        return 0;
    }
    visit(&w, dirfd, path, &top);
    if (top != NULL) {
        enter_directory(&w, dirfd, path);
    }
    free(top);
    while (w.level != NULL) {
        struct pending *p = w.level->pending;
        if (p == NULL) {
            leave_directory(&w);
            continue;
        }
        w.level->pending = p->next;
        enter_directory(&w, w.fd, p->name);
        free(p);
    }
    return w.rc;
}
