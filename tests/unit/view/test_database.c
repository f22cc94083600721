/* SPDX-License-Identifier: MIT
 *
 * Databases: values come back as they were, and one that is opened for reading cannot be changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "view/database.h"

static char path[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/cinch-database-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static struct database *open_as(enum database_mode mode)
{
    struct database *d = NULL;
    assert_int_equal(database_open(path, mode, &d, NULL), 0);
    return d;
}

static void fill(void)
{
    CLEANUP(database) struct database *d = open_as(DATABASE_UPDATE);
    CLEANUP(statement) struct statement *s = NULL;
    assert_int_equal(database_execute(d, "CREATE TABLE t (a, b, c, d)", NULL), 0);
    assert_int_equal(database_prepare(d, STR("INSERT INTO t VALUES (?, ?, ?, ?)"), &s, NULL, NULL),
                     0);
    statement_set_int(s, 1, -7);
    statement_set_real(s, 2, 0.25);
    statement_set_text(s, 3, STR("a\0b"));
    statement_set_bytes(s, 4, STR("\xff\xfe"));
    assert_int_equal(statement_insert(s, NULL), 0);
    assert_int_equal(statement_insert(s, NULL), 0); /* all values are unset again */
}

static void test_values(void **state)
{
    (void)state;
    fill();
    CLEANUP(database) struct database *d = open_as(DATABASE_READ);
    CLEANUP(statement) struct statement *s = NULL;
    struct str rest;
    assert_int_equal(
        database_prepare(d, STR("SELECT * FROM t ORDER BY rowid; more"), &s, &rest, NULL), 0);
    assert_true(str_eqc(rest, " more"));
    assert_int_equal(statement_columns(s), 4);
    assert_string_equal(statement_name(s, 1), "b");
    assert_int_equal(statement_next(s, NULL), 1);
    assert_int_equal(statement_int(s, 0), -7);
    assert_true(statement_real(s, 1) == 0.25);
    assert_int_equal(statement_type(s, 2), COLUMN_TEXT);
    assert_true(str_eq(statement_text(s, 2), STR("a\0b")));
    assert_int_equal(statement_type(s, 3), COLUMN_BLOB);
    assert_true(str_eq(statement_text(s, 3), STR("\xff\xfe")));
    assert_int_equal(statement_next(s, NULL), 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(statement_type(s, i), COLUMN_NULL);
    }
    assert_int_equal(statement_next(s, NULL), 0);
}

static void test_reading_only(void **state)
{
    static const char *const refused[] = {
        "DELETE FROM t",
        "INSERT INTO t VALUES (1, 2, 3, 4)",
        "DROP TABLE t",
        "ATTACH ':memory:' AS m",
        "CREATE TEMP TABLE x (a)",
        "PRAGMA journal_mode = DELETE",
        "VACUUM",
        "SELECT load_extension('x')",
        "BEGIN",
        "SELECT FROM",
    };
    (void)state;
    fill();
    CLEANUP(database) struct database *d = open_as(DATABASE_READ);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CLEANUP(statement) struct statement *s = NULL;
        struct err e = { 0 };
        int r = database_prepare(d, str_of(refused[i]), &s, NULL, &e);
        if (r == 0) {
            r = statement_next(s, &e);
        }
        assert_int_equal(r, -ERR_USAGE);
    }
}

static void test_no_database(void **state)
{
    (void)state;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 100; i++) {
        (void)fputs("this is a text and no database\n", f);
    }
    assert_int_equal(fclose(f), 0);
    CLEANUP(database) struct database *d = open_as(DATABASE_UPDATE);
    assert_int_equal(database_execute(d, "CREATE TABLE t (a)", NULL), -ERR_PARSE);
    struct database *none = NULL;
    struct err e = { 0 };
    assert_int_equal(database_open("/nonexistent/x", DATABASE_UPDATE, &none, &e), -ERR_OUTPUT);
    assert_non_null(strstr(e.msg, "/nonexistent/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reading_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_database, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
