/* SPDX-License-Identifier: MIT
 *
 * What the tests of trust share: a directory of their own with one trust file in it, and shorthands
 * that fail the test where the call fails.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapters/trust.h"
#include "base/buf.h"
#include "base/file.h"

static char root[64];
static char file[128]; /* the trust file of the test */

static const char *const style_names[] = { "codex", "gemini", "claude" };
static const char *const file_names[] = { "config.toml", "trustedFolders.json", ".claude.json" };

/* --- files --- */

static inline void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, str_of(text), NULL), 0);
    (void)close(fd);
}

static inline void assert_text(const char *path, const char *text)
{
    CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &got, NULL), 0);
    if (!str_eqc(buf_str(&got), text)) {
        fail_msg("'%s' holds\n%.*s\ninstead of\n%s", path, STR_ARG(buf_str(&got)), text);
    }
}

static inline bool text_has(const char *path, const char *part)
{
    CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
    return file_read(AT_FDCWD, path, BUF_TEXT, &got, NULL) == 0 && got.len > 0 &&
           strstr(got.ptr, part) != NULL;
}

static inline const char *with(const char *suffix)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s%s", file, suffix);
    return path;
}

/* Nothing but the file and the lock may remain: no ledger, no temporary file, no <file>.lock. */
static inline void assert_clean(void)
{
    DIR *d = opendir(root);
    assert_non_null(d);
    for (const struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        struct str name = str_of(entry->d_name);
        if (str_ends(name, STR(".cinch.json")) || str_ends(name, STR(".tmp")) ||
            str_ends(name, STR(".json.lock")) || str_ends(name, STR(".toml.lock"))) {
            fail_msg("'%s' is left", entry->d_name);
        }
    }
    (void)closedir(d);
}

static inline void use_style(enum trust_style style)
{
    (void)snprintf(file, sizeof file, "%s/%s", root, file_names[style]);
}

static inline int set_up(void **state)
{
    (void)snprintf(root, sizeof root, "/tmp/cinch-trust-XXXXXX");
    if (mkdtemp(root) == NULL) {
        return -1;
    }
    use_style(TRUST_CODEX);
    return 0;
}

static inline int tear_down(void **state)
{
    return file_remove_tree(AT_FDCWD, root, NULL);
}

/* --- shorthands --- */

static inline void enter(enum trust_style style, const char *dir, const char *run,
                         enum trust_outcome want)
{
    struct err e = { 0 };
    enum trust_outcome got = TRUST_OWN;
    struct trust_entry t = { style, file, dir };
    if (trust_register(&t, run, &got, &e) < 0) {
        fail_msg("register: %s", e.msg);
    }
    assert_int_equal(got, want);
}

static inline void leave(enum trust_style style, const char *dir, const char *run)
{
    struct err e = { 0 };
    struct trust_entry t = { style, file, dir };
    if (trust_remove(&t, run, &e) < 0) {
        fail_msg("remove: %s", e.msg);
    }
}

static inline void assert_refused(enum trust_style style, enum err_code code, const char *message)
{
    struct err e = { 0 };
    struct trust_entry t = { style, file, "/w" };
    assert_int_equal(trust_register(&t, "r1", NULL, &e), -(int)code);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' lacks '%s'", e.msg, message);
    }
    assert_clean();
}

static inline struct trust_swept sweep(enum trust_style style, const struct trust_port *port)
{
    struct err e = { 0 };
    struct trust_swept swept = { 0 };
    if (trust_sweep(style, file, port, &swept, &e) < 0) {
        fail_msg("sweep: %s", e.msg);
    }
    return swept;
}

#define TRUST_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
