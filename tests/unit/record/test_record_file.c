/* SPDX-License-Identifier: MIT
 *
 * The table of record files: rows are consistent, schemas exist, and docs/run-record.md names every
 * file.
 */
#include "record/record_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../values.h"
#include "base/buf.h"
#include "base/file.h"

static void test_rows_are_consistent(void **state)
{
    bool past_final = false;
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        assert_int_equal(f->view != NULL, f->recovery == RECORD_REWRITE);
        assert_true(f->recovery != RECORD_REPAIR || f->form == RECORD_LINES);
        assert_true(f->recovery != RECORD_REWRITE || f->form == RECORD_JSON);
        assert_true(f->schema == NULL || f->form != RECORD_TEXT);
        assert_ptr_equal(record_file_find(f->path), f); /* no path twice */
        /* state.json says that all is written: no final file may come after it */
        assert_false(past_final && f->recovery == RECORD_REWRITE);
        past_final = past_final || f->recovery == RECORD_WRITE_END;
    }
    assert_true(past_final);
    assert_string_equal(record_files[0].path, "events.jsonl");
    assert_null(record_file_find("no such file"));
}

static void test_every_run_has_the_core(void **state)
{
    static const char *const core[] = { "events.jsonl", "stdout.log",  "stderr.log",
                                        "agent.log",    "result.json", "transcript.jsonl",
                                        "metrics.json", "state.json",  "manifest.json" };
    size_t n = 0;
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        n += record_file_is_core(f);
    }
    assert_int_equal(n, ARRAY_LEN(core));
    for (size_t i = 0; i < ARRAY_LEN(core); i++) {
        assert_true(record_file_is_core(record_file_find(core[i])));
    }
}

static void test_schemas_exist(void **state)
{
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        char path[512];
        (void)snprintf(path, sizeof path, SOURCE_ROOT "/schema/%s.schema.json",
                       f->schema == NULL ? "event" : f->schema);
        assert_int_equal(access(path, R_OK), 0);
    }
}

/* By its last part: the page shows a tree. */
static void test_the_page_names_every_file(void **state)
{
    CLEANUP(buf) struct buf page = BUF_INIT(1 << 20);
    struct err e;
    assert_int_equal(file_read(AT_FDCWD, SOURCE_ROOT "/docs/run-record.md", 1 << 20, &page, &e), 0);
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        const char *slash = strrchr(f->path, '/');
        const char *name = slash == NULL ? f->path : slash + 1;
        const char *end = strchr(name, '*');
        size_t len = end == NULL ? strlen(name) : (size_t)(end - name);
        if (memmem(page.ptr, page.len, name, len) == NULL) {
            fail_msg("docs/run-record.md does not mention '%s'", f->path);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_consistent),
        cmocka_unit_test(test_every_run_has_the_core),
        cmocka_unit_test(test_schemas_exist),
        cmocka_unit_test(test_the_page_names_every_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
