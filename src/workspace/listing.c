/* SPDX-License-Identifier: MIT
 *
 * Reads a directory with getdents64 into one block of names, then sorts pointers into it.
 */
#include "workspace/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"

/* Names of one directory; a program that makes more files than this in one place gets ERR_LIMIT. */
#define NAMES_MAX ((size_t)256 << 20)
enum { READ_BYTES = 32 << 10 };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int gather(int fd, struct buf *names, size_t *count, struct err *e)
{
    CLEANUP(free) char *block = xmalloc(READ_BYTES);
    for (;;) {
        ssize_t n = getdents64(fd, block, READ_BYTES);
        if (n <= 0) {
            return n == 0 ? 0 : ERR_SYS(e, "read a directory");
        }
        for (ssize_t at = 0; at < n;) {
            struct dirent64 *d = (void *)(block + at);
            at += d->d_reclen;
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) {
                continue;
            }
            int r = buf_append(names, str_n(d->d_name, strlen(d->d_name) + 1), e);
            if (r < 0) {
                return r;
            }
            (*count)++;
        }
    }
}

int listing_read(struct listing *l, int fd, struct err *e)
{
    CLEANUP(buf) struct buf names = BUF_INIT(NAMES_MAX);
    size_t count = 0;
    *l = (struct listing) { 0 };
    (void)lseek(fd, 0, SEEK_SET);
    int r = gather(fd, &names, &count, e);
    if (r < 0 || count == 0) {
        return r;
    }
    l->text = buf_take(&names, NULL);
    l->items = xcalloc(count, sizeof *l->items);
    char *at = l->text;
    for (l->len = 0; l->len < count; l->len++) {
        l->items[l->len] = at;
        at += strlen(at) + 1;
    }
    qsort(l->items, l->len, sizeof *l->items, by_name);
    return 0;
}

void listing_done(struct listing *l)
{
    free(l->items);
    free(l->text);
    *l = (struct listing) { 0 };
}

int listing_open(int fd, const char *name, struct err *e)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int r = openat(fd, name, flags);
    if (r < 0 && errno == EACCES) {
        char path[64];
        struct stat st;
        CLEANUP(fd) int pin = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", pin);
        if (pin >= 0 && fstat(pin, &st) == 0 && chmod(path, (st.st_mode & 07777) | S_IRWXU) == 0) {
            r = openat(fd, name, flags);
            (void)!chmod(path, st.st_mode & 07777);
        }
        errno = EACCES;
    }
    return r < 0 ? ERR_SYS(e, "open directory '%s'", name) : r;
}
