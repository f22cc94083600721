/* SPDX-License-Identifier: MIT
 *
 * Zip archives: honest ones are read, and each kind of hostile one is refused before anything of it
 * is unpacked, with a message that names the entry.
 */
#include "data/zip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "zip_maker.h"

static void expect_refused(struct str bytes, const struct zip_limits *limits, enum err_code code,
                           const char *text)
{
    struct zip_archive *z = NULL;
    struct err e = { 0 };
    assert_int_equal(zip_archive_open(bytes, "x.zip", limits, &z, &e), -(int)code);
    assert_null(z);
    if (strstr(e.msg, text) == NULL || strncmp(e.msg, "x.zip: ", 7) != 0) {
        fail_msg("'%s' does not say '%s'", e.msg, text);
    }
}

static void expect_item(const struct zip_item *item, enum err_code code, const char *text)
{
    struct zip_maker m = ZIP_MAKER;
    zip_put(&m, item);
    expect_refused(zip_end(&m), NULL, code, text);
    zip_maker_done(&m);
}

static void test_reads_files(void **state)
{
    struct zip_maker m = ZIP_MAKER;
    zip_put(&m, &(struct zip_item) { .name = "a/", .mode = 040755 });
    zip_add(&m, "a/SKILL.md", "hello");
    zip_put(&m, &(struct zip_item) { .name = "a/run.sh", .data = STR("#!"), .mode = 0100755 });
    zip_put(&m, &(struct zip_item) { .name = "a/\xc3\xa4", .data = STR("dos") });
    CLEANUP(zip_archive) struct zip_archive *z = NULL;
    struct err e = { 0 };
    assert_int_equal(zip_archive_open(zip_end(&m), "x.zip", NULL, &z, &e), 0);
    assert_int_equal(zip_archive_len(z), 4);
    assert_true(zip_archive_get(z, 0)->dir);
    assert_string_equal(zip_archive_get(z, 0)->name.ptr, "a");
    assert_string_equal(zip_archive_get(z, 1)->name.ptr, "a/SKILL.md");
    assert_false(zip_archive_get(z, 1)->executable);
    assert_true(zip_archive_get(z, 2)->executable);
    assert_string_equal(zip_archive_get(z, 3)->name.ptr, "a/\xc3\xa4");
    CLEANUP(buf) struct buf out = BUF_INIT(100);
    assert_int_equal(zip_archive_read(z, 1, &out, &e), 0);
    assert_int_equal(zip_archive_read(z, 3, &out, &e), 0);
    assert_string_equal(out.ptr, "hellodos");
    zip_maker_done(&m);
}

static void test_reads_deflate(void **state)
{
    char bytes[ZIP_BOMB_LEN];
    struct zip_maker m = ZIP_MAKER;
    struct zip_item item = zip_bomb("a/zeros", bytes);
    zip_put(&m, &item);
    CLEANUP(zip_archive) struct zip_archive *z = NULL;
    struct zip_limits limits = { .max_ratio = 2000 };
    struct err e = { 0 };
    assert_int_equal(zip_archive_open(zip_end(&m), "x.zip", &limits, &z, &e), 0);
    CLEANUP(buf) struct buf out = BUF_INIT(ZIP_BOMB_SIZE);
    assert_int_equal(zip_archive_read(z, 0, &out, &e), 0);
    assert_int_equal(out.len, ZIP_BOMB_SIZE);
    zip_maker_done(&m);
}

static void test_refuses_names(void **state)
{
    static const struct {
        const char *name, *why;
    } list[] = {
        { "/etc/passwd", "is absolute" },
        { "a/../../b", "has '..'" },
        { "../b", "has '..'" },
        { "a/..", "has '..'" },
        { "a/./b", "has '.'" },
        { "a//b", "empty part" },
        { "a\\..\\b", "backslash" },
        { "C:/x", "drive" },
        { "a/\x1b[31m", "control" },
        { "a/\x7f", "control" },
        { "a/\xff\xfe", "not UTF-8" },
        { "a/\xc0\xaf", "not UTF-8" },
        { "/", "is empty" },
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        expect_item(&(struct zip_item) { .name = list[i].name, .data = STR("x"), .mode = 0100644 },
                    ERR_PARSE, list[i].why);
    }
    char name[1200];
    memset(name, 'x', sizeof name);
    expect_item(&(struct zip_item) { .name = name, .name_len = 300 }, ERR_PARSE, "255 bytes");
    expect_item(&(struct zip_item) { .name = name, .name_len = 1100 }, ERR_PARSE, "1024 bytes");
    for (size_t i = 1; i < 80; i += 2) {
        name[i] = '/';
    }
    expect_item(&(struct zip_item) { .name = name, .name_len = 81 }, ERR_PARSE, "32 deep");
}

static void test_message_shows_no_control_characters(void **state)
{
    struct zip_maker m = ZIP_MAKER;
    struct zip_archive *z = NULL;
    struct err e = { 0 };
    zip_add(&m, "\x1b]0;x\x07../a", "x");
    assert_int_equal(zip_archive_open(zip_end(&m), "x.zip", NULL, &z, &e), -ERR_PARSE);
    assert_null(strchr(e.msg, 0x1b));
    assert_null(strchr(e.msg, 0x07));
    zip_maker_done(&m);
}

static void test_refuses_links_and_devices(void **state)
{
    static const struct {
        uint32_t mode;
        const char *why;
    } list[] = {
        { 0120777, "symbolic link" },
        { 0010644, "neither a file" },
        { 0020644, "neither a file" },
        { 0140644, "neither a file" },
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        expect_item(&(struct zip_item) { .name = "a/b", .data = STR("/etc"), .mode = list[i].mode },
                    ERR_PARSE, list[i].why);
    }
}

static void test_refuses_ambiguous_names(void **state)
{
    static const char *const lists[][3] = {
        { "a/b", "a/b", "'a/b' is there twice" },
        { "a/", "a", "'a' is there twice" },
        { "a/b", "a/b/c", "'a/b' is a file and a directory" },
        { "a/b/c/d", "a/b", "'a/b' is a file and a directory" },
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct zip_maker m = ZIP_MAKER;
        zip_put(&m, &(struct zip_item) { .name = lists[i][0] });
        zip_add(&m, "a-between", "x");
        zip_put(&m, &(struct zip_item) { .name = lists[i][1] });
        expect_refused(zip_end(&m), NULL, ERR_PARSE, lists[i][2]);
        zip_maker_done(&m);
    }
}

static void test_refuses_other_packing(void **state)
{
    expect_item(&(struct zip_item) { .name = "a", .data = STR("x"), .flags = 1 }, ERR_PARSE,
                "encrypted");
    expect_item(&(struct zip_item) { .name = "a", .data = STR("x"), .method = 12 }, ERR_PARSE,
                "other than deflate");
    expect_item(&(struct zip_item) { .name = "a/", .data = STR("x") }, ERR_PARSE, "with content");
}

static void test_refuses_bombs(void **state)
{
    char bytes[ZIP_BOMB_LEN];
    struct zip_item item = zip_bomb("a/zeros", bytes);
    expect_item(&item, ERR_LIMIT, "'a/zeros' unpacks to far more");
    /* by its total, in many entries */
    struct zip_maker m = ZIP_MAKER;
    char names[70][8];
    for (int i = 0; i < 70; i++) {
        (void)snprintf(names[i], sizeof names[i], "a/%d", i);
        item.name = names[i];
        zip_put(&m, &item);
    }
    struct zip_limits limits = { .max_ratio = 2000 };
    expect_refused(zip_end(&m), &limits, ERR_LIMIT, "more than 67108864 bytes");
    zip_maker_done(&m);
    /* by the number of entries */
    struct zip_maker many = ZIP_MAKER;
    zip_add(&many, "a", "");
    zip_add(&many, "b", "");
    zip_add(&many, "c", "");
    limits = (struct zip_limits) { .max_entries = 2 };
    expect_refused(zip_end(&many), &limits, ERR_LIMIT, "more than 2 entries");
    zip_maker_done(&many);
}

/* The size in the headers is small; the content is not. */
static void test_size_that_lies(void **state)
{
    char bytes[ZIP_BOMB_LEN];
    struct zip_item item = zip_bomb("a/zeros", bytes);
    struct zip_maker m = ZIP_MAKER;
    item.size = 100;
    zip_put(&m, &item);
    CLEANUP(zip_archive) struct zip_archive *z = NULL;
    struct err e = { 0 };
    assert_int_equal(zip_archive_open(zip_end(&m), "x.zip", NULL, &z, &e), 0);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(buf_append(&out, STR("before"), NULL), 0);
    assert_int_equal(zip_archive_read(z, 0, &out, &e), -ERR_PARSE);
    assert_string_equal(out.ptr, "before");
    assert_true(out.cap < 100000);
    zip_maker_done(&m);
}

static void test_damage(void **state)
{
    struct zip_maker m = ZIP_MAKER;
    struct err e = { 0 };
    zip_put(&m, &(struct zip_item) { .name = "a", .data = STR("abc"), .size = 3, .crc = 7 });
    CLEANUP(zip_archive) struct zip_archive *z = NULL;
    struct str bytes = zip_end(&m);
    assert_int_equal(zip_archive_open(bytes, "x.zip", NULL, &z, &e), 0);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(zip_archive_read(z, 0, &out, &e), -ERR_PARSE);
    assert_non_null(strstr(e.msg, "'a' is damaged"));
    expect_refused(str_slice(bytes, 0, bytes.len - 30), NULL, ERR_PARSE, "not a usable zip");
    expect_refused(STR("PK\5\6"), NULL, ERR_PARSE, "not a usable zip");
    expect_refused(STR_EMPTY, NULL, ERR_PARSE, "not a usable zip");
    expect_refused(STR("#!/bin/sh\n"), NULL, ERR_PARSE, "not a usable zip");
    zip_maker_done(&m);
}

/* A Zip64 end record can claim 2^64 entries, for which libzip would ask for memory. */
static void test_refuses_zip64(void **state)
{
    struct zip_maker m = ZIP_MAKER;
    zip_add(&m, "a", "x");
    zip_le(&m.central, 0x07064b50, 4);
    for (int i = 0; i < 16; i++) {
        zip_le(&m.central, 0, 1);
    }
    expect_refused(zip_end(&m), NULL, ERR_PARSE, "Zip64");
    zip_maker_done(&m);
}

static void test_archive_inside_is_a_file(void **state)
{
    struct zip_maker inner = ZIP_MAKER;
    struct zip_maker m = ZIP_MAKER;
    zip_add(&inner, "../../evil", "x");
    struct str packed = zip_end(&inner);
    zip_put(&m, &(struct zip_item) { .name = "a/inner.zip", .data = packed });
    CLEANUP(zip_archive) struct zip_archive *z = NULL;
    struct err e = { 0 };
    assert_int_equal(zip_archive_open(zip_end(&m), "x.zip", NULL, &z, &e), 0);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(zip_archive_read(z, 0, &out, &e), 0);
    assert_true(str_eq(buf_str(&out), packed));
    zip_maker_done(&inner);
    zip_maker_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_files),
        cmocka_unit_test(test_reads_deflate),
        cmocka_unit_test(test_refuses_names),
        cmocka_unit_test(test_message_shows_no_control_characters),
        cmocka_unit_test(test_refuses_links_and_devices),
        cmocka_unit_test(test_refuses_ambiguous_names),
        cmocka_unit_test(test_refuses_other_packing),
        cmocka_unit_test(test_refuses_bombs),
        cmocka_unit_test(test_size_that_lies),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refuses_zip64),
        cmocka_unit_test(test_archive_inside_is_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
