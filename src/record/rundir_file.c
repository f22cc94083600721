/* SPDX-License-Identifier: MIT
 *
 * Files inside a run directory: reading, appending, replacing, listing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "record/record_file.h"
#include "record/rundir.h"

/* O_NONBLOCK: a FIFO that somebody put in the way must not hang us; it is refused below. */
static int open_regular(int dir_fd, const char *name, int flags, struct err *e)
{
    CLEANUP(fd)
    int fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0) {
        return ERR_SYS_AS(e, errno == ENOENT ? ERR_INPUT : ERR_OUTPUT, "open '%s'", name);
    }
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return ERR(e, ERR_INPUT, "open '%s': not a regular file", name);
    }
    return TAKE_FD(fd);
}

int rundir_read(const struct rundir *d, const char *name, size_t max, struct buf *ret,
                struct err *e)
{
    CLEANUP(fd) int fd = open_regular(d->dir_fd, name, O_RDONLY, e);
    if (fd < 0) {
        return fd;
    }
    for (size_t total = 0;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return ERR_SYS(e, "read '%s'", name);
        }
        if (n == 0) {
            return 0;
        }
        total += (size_t)n;
        if (total > max || buf_append(ret, str_n(chunk, (size_t)n), NULL) < 0) {
            return ERR(e, ERR_LIMIT, "read '%s': larger than %zu bytes", name, max);
        }
    }
}

struct json *rundir_read_object(const struct rundir *d, const char *name, size_t max,
                                struct arena *a)
{
    CLEANUP(buf) struct buf text = BUF_INIT(max);
    struct json *v;
    if (rundir_read(d, name, max, &text, NULL) < 0 ||
        json_parse(a, buf_str(&text), NULL, &v, NULL) < 0 || !json_is(v, JSON_OBJECT)) {
        return NULL;
    }
    return v;
}

void rundir_move_aside(const struct rundir *d, const char *name)
{
    char to[NAME_MAX * 2];
    int n = snprintf(to, sizeof to, "%s.damaged", name);
    if (n > 0 && (size_t)n < sizeof to) {
        (void)renameat(d->dir_fd, name, d->dir_fd, to);
    }
}

int rundir_open_append(const struct rundir *d, const char *name, struct err *e)
{
    return open_regular(d->dir_fd, name, O_WRONLY | O_APPEND | O_CREAT, e);
}

int rundir_write_text(const struct rundir *d, const char *name, struct str text, struct err *e)
{
    return file_write_atomic(d->dir_fd, name, text, 0666, e);
}

int rundir_write_json(const struct rundir *d, const char *name, const struct json *v, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = json_write(v, JSON_PRETTY, &text, e);
    if (r < 0) {
        (void)err_wrap(e, "write '%s'", name);
        return r;
    }
    return rundir_write_text(d, name, buf_str(&text), e);
}

int64_t rundir_size(const struct rundir *d, const char *name)
{
    struct stat st;
    bool regular = fstatat(d->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    return regular ? (int64_t)st.st_size : 0;
}

struct listing {
    struct arena *arena;
    struct str *paths;
    size_t len;
};

/* The harness' private home and the layers of its workspace are no output, even when they are kept
 * for a look. */
static bool is_entered(const char *path)
{
    return strcmp(path, "home") != 0 && strcmp(path, "work") != 0;
}

static bool is_listed(const char *path)
{
    const struct record_file *f = record_file_find(path);
    bool unlisted = f != NULL && (f->flags & RECORD_UNLISTED) != 0;
    return !unlisted && !str_ends(str_of(path), STR(".tmp"));
}

static void list_directory(struct listing *l, int parent, const char *name, const char *prefix,
                           int depth)
{
    enum { DEPTH_MAX = 16 /* what the harness nests deeper is there, but not listed */ };
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        cleanup_fd(&fd);
        return;
    }
    for (struct dirent *d = readdir(dir); d != NULL && l->len < RUNDIR_LIST_MAX; d = readdir(dir)) {
        struct stat st;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
            fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            continue;
        }
        char *path = arena_printf(l->arena, "%s%s", prefix, d->d_name);
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX && is_entered(path)) {
            list_directory(l, fd, d->d_name, arena_printf(l->arena, "%s/", path), depth + 1);
        } else if (S_ISREG(st.st_mode) && is_listed(path)) {
            l->paths[l->len++] = str_of(path);
        }
    }
    (void)closedir(dir);
}

static int compare_paths(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

struct json *rundir_list(const struct rundir *d, struct arena *a)
{
    struct listing l = { .arena = a, .paths = arena_array(a, RUNDIR_LIST_MAX, sizeof(struct str)) };
    list_directory(&l, d->dir_fd, ".", "", 0);
    qsort(l.paths, l.len, sizeof l.paths[0], compare_paths);
    struct json *list = json_array(a);
    for (size_t i = 0; i < l.len; i++) {
        json_push(a, list, json_string(a, l.paths[i]));
    }
    return list;
}
