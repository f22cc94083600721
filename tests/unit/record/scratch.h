/* SPDX-License-Identifier: MIT
 *
 * A directory of its own for each test, removed after it; and looking into the files that appear
 * there.
 */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"

struct scratch {
    char path[256];
    struct arena *arena;
};

static inline int scratch_make(void **state)
{
    struct scratch *s = xcalloc(1, sizeof *s);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(s->path, sizeof s->path, "%s/cinch-record-XXXXXX", tmp != NULL ? tmp : "/tmp");
    s->arena = arena_new();
    *state = s;
    return mkdtemp(s->path) == NULL ? -1 : 0;
}

static inline int scratch_remove(void **state)
{
    struct scratch *s = *state;
    int r = file_remove_tree(AT_FDCWD, s->path, NULL);
    s->arena = arena_free(s->arena);
    free(s);
    return r;
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

/* An absolute name stays as it is. */
static inline const char *scratch_path(struct scratch *s, const char *name)
{
    if (name[0] == '/') {
        return name;
    }
    return arena_printf(s->arena, "%s/%s", s->path, name);
}

/* Whole content; fails the test when the file is not there. */
static inline struct str scratch_read(struct scratch *s, const char *name)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    if (file_read(AT_FDCWD, scratch_path(s, name), BUF_TEXT, &text, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return arena_str(s->arena, buf_str(&text));
}

static inline void scratch_write(struct scratch *s, const char *name, struct str text)
{
    CLEANUP(fd)
    int fd = open(scratch_path(s, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text, NULL), 0);
}

static inline struct json *scratch_json(struct scratch *s, struct str text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(s->arena, text, NULL, &v, &e) < 0) {
        fail_msg("%s in %.*s", e.msg, STR_ARG(text));
    }
    return v;
}

/* The n-th line, from 0, as a tree; NULL beyond the end. */
static inline struct json *scratch_line(struct scratch *s, const char *name, size_t n)
{
    struct str rest = scratch_read(s, name);
    struct str line = STR_EMPTY;
    for (size_t i = 0; i <= n && rest.ptr != NULL; i++) {
        line = str_split(&rest, '\n');
    }
    return rest.ptr == NULL ? NULL : scratch_json(s, line);
}

static inline void assert_str_eq(struct str s, const char *expected)
{
    if (!str_eqc(s, expected)) {
        fail_msg("'%.*s' is not '%s'", STR_ARG(s), expected);
    }
}

static inline const char *word(const struct json *v, const char *pointer)
{
    return json_cstring(json_pointer(v, str_of(pointer)), "(none)");
}
