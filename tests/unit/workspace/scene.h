/* SPDX-License-Identifier: MIT
 *
 * A directory of its own for each test, and short words for making and reading trees in it.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/file.h"

struct scene {
    char path[256];
    int fd;
    struct arena *arena;
};

static inline int scene_make(void **state)
{
    struct scene *s = xcalloc(1, sizeof *s);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(s->path, sizeof s->path, "%s/cinch-workspace-XXXXXX", tmp ? tmp : "/tmp");
    *state = s;
    if (mkdtemp(s->path) == NULL) {
        return -1;
    }
    s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->arena = arena_new();
    return s->fd < 0 ? -1 : 0;
}

static inline int scene_remove(void **state)
{
    struct scene *s = *state;
    int r = file_remove_tree(AT_FDCWD, s->path, NULL);
    (void)close(s->fd);
    arena_free(s->arena);
    free(s);
    return r;
}

#define SCENE_TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

static inline const char *at(struct scene *s, const char *name)
{
    return name[0] == '/' ? name : arena_printf(s->arena, "%s/%s", s->path, name);
}

/* Makes the directories on the way. */
static inline void put(struct scene *s, const char *name, const char *text)
{
    char *path = arena_dup(s->arena, str_of(at(s, name)));
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(file_mkdirs(AT_FDCWD, path, 0755, NULL), 0);
    *slash = '/';
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, str_of(text), NULL), 0);
}

static inline void make_dir(struct scene *s, const char *name)
{
    assert_int_equal(file_mkdirs(AT_FDCWD, at(s, name), 0755, NULL), 0);
}

static inline int open_dir(struct scene *s, const char *name)
{
    make_dir(s, name);
    int fd = open(at(s, name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* As an overlay does it. */
static inline void whiteout(struct scene *s, const char *name)
{
    assert_int_equal(mknod(at(s, name), S_IFCHR, makedev(0, 0)), 0);
}

static inline bool there(struct scene *s, const char *name)
{
    return file_exists(AT_FDCWD, at(s, name));
}

static inline const char *text_of(struct scene *s, const char *name)
{
    CLEANUP(buf) struct buf b = BUF_INIT(1 << 20);
    struct err e = { 0 };
    if (file_read(AT_FDCWD, at(s, name), 1 << 20, &b, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return arena_dup(s->arena, buf_str(&b));
}

static inline void assert_ok(int r, const struct err *e)
{
    if (r < 0) {
        fail_msg("%s", e->msg);
    }
}
