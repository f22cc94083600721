/* SPDX-License-Identifier: MIT
 *
 * A directory of its own for each test of skills, with a small package in it to open and to spoil.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "skill/skill.h"

struct skill_case {
    char path[128];
    int fd;
    struct arena *arena;
    struct skill *skill;
    struct err e;
};

#define CARD(name) "---\nname: " name "\ndescription: Says hello.\n---\nDo it.\n"
#define OUTPUT                                                                           \
    "{\"type\":\"object\",\"properties\":{\"count\":{\"type\":\"integer\"},\"report\":{" \
    "\"type\":\"string\",\"x-type\":\"artifact\",\"x-role\":\"report\"}},\"required\":[" \
    "\"count\",\"report\"],\"additionalProperties\":false}"
#define RUNNER "{\"id\":\"hello\",\"execution_modes\":[\"auto\"]}"

static inline int case_make(void **state)
{
    struct skill_case *c = xcalloc(1, sizeof *c);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(c->path, sizeof c->path, "%s/cinch-skill-XXXXXX", tmp != NULL ? tmp : "/tmp");
    c->arena = arena_new();
    *state = c;
    if (mkdtemp(c->path) == NULL) {
        return -1;
    }
    c->fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return c->fd < 0 ? -1 : 0;
}

static inline int case_remove(void **state)
{
    struct skill_case *c = *state;
    skill_free(c->skill);
    int r = file_remove_tree(AT_FDCWD, c->path, NULL);
    (void)close(c->fd);
    arena_free(c->arena);
    free(c);
    return r;
}

#define SKILL_TEST(f) cmocka_unit_test_setup_teardown(f, case_make, case_remove)

static inline const char *case_path(struct skill_case *c, const char *name)
{
    return arena_printf(c->arena, "%s/%s", c->path, name);
}

/* Writes a file below the test's directory, with the directories above it. */
static inline void case_write(struct skill_case *c, const char *name, struct str text)
{
    char *above = arena_dup(c->arena, str_of(name));
    char *slash = strrchr(above, '/');
    if (slash != NULL) {
        *slash = '\0';
        assert_int_equal(file_mkdirs(c->fd, above, 0755, NULL), 0);
    }
    CLEANUP(fd) int fd = openat(c->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text, NULL), 0);
}

static inline void case_put(struct skill_case *c, const char *name, const char *text)
{
    case_write(c, name, str_of(text));
}

/* The package hello/ with the given runner.json. */
static inline void case_package(struct skill_case *c, const char *runner)
{
    case_put(c, "hello/SKILL.md", CARD("hello"));
    case_put(c, "hello/assets/runner.json", runner);
    case_put(c, "hello/assets/output.schema.json", OUTPUT);
}

static inline struct skill *case_open(struct skill_case *c, const char *name)
{
    c->skill = skill_free(c->skill);
    if (skill_open(case_path(c, name), NULL, &c->skill, &c->e) != 0) {
        fail_msg("%s", c->e.msg);
    }
    return c->skill;
}

static inline void expect_message(const struct skill_case *c, const char *text)
{
    if (strstr(c->e.msg, text) == NULL) {
        fail_msg("'%s' does not say '%s'", c->e.msg, text);
    }
}

static inline void expect_bad(struct skill_case *c, const char *name, enum err_code code,
                              const char *text)
{
    struct skill *s = NULL;
    assert_int_equal(skill_open(case_path(c, name), NULL, &s, &c->e), -(int)code);
    assert_null(s);
    assert_int_equal(c->e.code, code);
    expect_message(c, text);
}

static inline struct json *case_json(struct skill_case *c, const char *text)
{
    struct json *v = NULL;
    if (json_parse(c->arena, str_of(text), NULL, &v, &c->e) != 0) {
        fail_msg("%s: %s", text, c->e.msg);
    }
    return v;
}

static inline void expect_json(struct skill_case *c, const struct json *v, const char *text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &out, NULL), 0);
    assert_string_equal(out.ptr, text);
}

static inline const char *case_read(struct skill_case *c, const char *name)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (file_read(c->fd, name, BUF_TEXT, &text, &c->e) < 0) {
        fail_msg("%s", c->e.msg);
    }
    return arena_dup(c->arena, buf_str(&text));
}

/* How many entries a directory has, hidden ones too. */
static inline size_t case_count(struct skill_case *c, const char *name)
{
    DIR *d = opendir(case_path(c, name));
    size_t n = 0;
    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n - 2;
}
