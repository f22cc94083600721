/* SPDX-License-Identifier: MIT
 *
 * References, and names in a store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "image/reference.h"
#include "image/store.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static void test_parse(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct image_ref r;
    struct err e;
    char dir[] = "/tmp/cinch-ref-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(dir));
    const char *file = arena_printf(a, "%s/a:b.tar", dir);
    assert_int_equal(file_write_atomic(AT_FDCWD, file, STR("x"), 0600, NULL), 0);

    assert_int_equal(image_ref_parse(a, "golang:1.22", "", &r, &e), 0);
    assert_int_equal(r.kind, IMAGE_STORE);
    assert_string_equal(r.name, "golang:1.22");
    assert_int_equal(image_ref_parse(a, "x@sha256:" ID_A, "", &r, &e), 0);
    assert_string_equal(r.digest, ID_A);
    assert_string_equal(r.name, "x");
    assert_int_equal(image_ref_parse(a, "x@sha256:abc", "", &r, &e), -ERR_USAGE);
    assert_int_equal(image_ref_parse(a, "two words", "", &r, &e), -ERR_USAGE);
    assert_int_equal(image_ref_parse(a, "", "", &r, &e), -ERR_USAGE);

    /* A colon may be part of the file's name. */
    assert_int_equal(
        image_ref_parse(a, arena_printf(a, "oci-archive:%s:name:tag", file), "", &r, &e), 0);
    assert_int_equal(r.kind, IMAGE_ARCHIVE);
    assert_string_equal(r.path, file);
    assert_string_equal(r.name, "name:tag");
    assert_int_equal(image_ref_parse(a, "./a:b.tar", dir, &r, &e), 0);
    assert_null(r.name);
    assert_int_equal(image_ref_parse(a, dir, "", &r, &e), 0);
    assert_int_equal(r.kind, IMAGE_ROOT);
    assert_int_equal(
        file_write_atomic(AT_FDCWD, arena_printf(a, "%s/oci-layout", dir), STR("{}"), 0600, NULL),
        0);
    assert_int_equal(image_ref_parse(a, dir, "", &r, &e), 0);
    assert_int_equal(r.kind, IMAGE_LAYOUT);
    assert_int_equal(image_ref_parse(a, arena_printf(a, "oci:%s", file), "", &r, &e), -ERR_INPUT);
    assert_int_equal(image_ref_parse(a, "/no/such/file", "", &r, &e), -ERR_INPUT);
    assert_int_equal(file_remove_tree(AT_FDCWD, dir, NULL), 0);
}

static const char *choose(struct arena *a, const char *text, int *ret)
{
    static const char table[] =
        "[{\"id\": \"" ID_A "\", \"digest\": \"sha256:" ID_C
        "\", \"names\": [\"docker.io/library/golang:1.22\"]},"
        " {\"id\": \"" ID_B "\", \"names\": [\"localhost/base:latest\", \"quay.io/x/tool:1\"]},"
        " {\"id\": \"" ID_C "\", \"names\": [\"ghcr.io/y/tool:1\"]}, {\"id\": \"../../etc\", "
        "\"names\": [\"bad:latest\"]}]";
    struct json *v = NULL;
    struct image_ref r;
    const char *id = NULL;
    assert_int_equal(json_parse(a, str_of(table), NULL, &v, NULL), 0);
    assert_int_equal(image_ref_parse(a, text, "", &r, NULL), 0);
    *ret = store_choose(a, v, &r, &id, NULL);
    return id == NULL ? "none" : id;
}

static void test_store(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    int r = 0;
    (void)state;
    assert_string_equal(choose(a, "golang:1.22", &r), ID_A);
    assert_string_equal(choose(a, "docker.io/library/golang:1.22", &r), ID_A);
    assert_string_equal(choose(a, "golang:1.22@sha256:" ID_C, &r), ID_A);
    assert_string_equal(choose(a, "golang:1.22@sha256:" ID_B, &r), "none");
    assert_string_equal(choose(a, "golang", &r), "none"); /* :latest */
    assert_string_equal(choose(a, "base", &r), ID_B);
    assert_string_equal(choose(a, "bbbbbbbbbbbb", &r), ID_B);
    assert_string_equal(choose(a, "bbbb", &r), "none"); /* too short for an id */
    assert_string_equal(choose(a, "bad", &r), "none");
    assert_int_equal(r, 0);
    (void)choose(a, "tool:1", &r); /* two registries have it */
    assert_int_equal(r, -ERR_UNAVAILABLE);
    assert_string_equal(choose(a, "quay.io/x/tool:1", &r), ID_B);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_parse),
                                        cmocka_unit_test(test_store) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
