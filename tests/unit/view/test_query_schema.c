/* SPDX-License-Identifier: MIT
 *
 * The tables, views and named queries of `cinch query`: SQLite takes all of them, and every column
 * of every table can be inserted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "view/database.h"
#include "view/query_schema.h"

static struct database *make_tables(void)
{
    struct database *d = NULL;
    CLEANUP(buf) struct buf sql = BUF_INIT(BUF_TEXT);
    query_schema_create(&sql);
    assert_int_equal(database_open(":memory:", DATABASE_UPDATE, &d, NULL), 0);
    assert_int_equal(database_execute(d, sql.ptr, NULL), 0);
    return d;
}

static void test_insert(void **state)
{
    (void)state;
    CLEANUP(database) struct database *d = make_tables();
    for (size_t i = 0; i < QUERY_TABLES_MAX; i++) {
        const struct query_table *t = &query_tables[i];
        CLEANUP(statement) struct statement *s = NULL;
        CLEANUP(buf) struct buf sql = BUF_INIT(BUF_TEXT);
        query_schema_insert(t, &sql);
        assert_int_equal(database_prepare(d, buf_str(&sql), &s, NULL, NULL), 0);
        for (size_t n = 0; n < query_table_width(t); n++) {
            statement_set_int(s, (int)n + 1, (int64_t)n);
        }
        assert_int_equal(statement_insert(s, NULL), 0);
        assert_string_equal(t->columns[0].name, "run");
    }
}

static void test_queries(void **state)
{
    (void)state;
    CLEANUP(database) struct database *d = make_tables();
    for (const struct query_view *v = query_views; v->name != NULL; v++) {
        CLEANUP(statement) struct statement *s = NULL;
        CLEANUP(buf) struct buf sql = BUF_INIT(BUF_TEXT);
        buf_addf(&sql, "SELECT * FROM %s", v->name);
        assert_int_equal(database_prepare(d, buf_str(&sql), &s, NULL, NULL), 0);
        assert_string_equal(statement_name(s, 0), "run");
    }
    for (const struct query_named *q = query_named_list; q->name != NULL; q++) {
        CLEANUP(statement) struct statement *s = NULL;
        assert_int_equal(database_prepare(d, str_of(q->sql), &s, NULL, NULL), 0);
        assert_int_equal(statement_next(s, NULL), 0);
        assert_ptr_equal(query_named_find(q->name), q);
    }
    assert_null(query_named_find("nothing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_insert),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
