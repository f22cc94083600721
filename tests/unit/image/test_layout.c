/* SPDX-License-Identifier: MIT
 *
 * Manifests and configurations that contradict each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "image/layout.h"

#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define MANIFEST                                                                                   \
    "{\"config\": {\"digest\": \"sha256:" HEX "\"}, \"layers\": [{\"digest\": \"sha256:" HEX "\"}" \
    "]}"

static int take(struct arena *a, const char *manifest, const char *config, struct err *e)
{
    struct layout_want want = { .architecture = "amd64" };
    struct layout_image image = { 0 };
    const char *digest = NULL;
    int r = layout_take_manifest(a, str_of(manifest), &image, &digest, e);
    return r < 0 ? r : layout_take_config(a, str_of(config), &want, &image, e);
}

static void test_images(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct err e;
    static const char good[] =
        "{\"architecture\": \"amd64\", \"os\": \"linux\", \"rootfs\": {\"diff_ids\": [\"sha256:" HEX
        "\"]}}";
    (void)state;
    assert_int_equal(take(a, MANIFEST, good, &e), 0);
    assert_int_equal(take(a, "{", good, &e), -ERR_PARSE);
    assert_int_equal(take(a, "[]", good, &e), -ERR_PARSE);
    assert_int_equal(take(a, "{\"config\": {\"digest\": \"md5:1\"}, \"layers\": []}", good, &e),
                     -ERR_PARSE);
    assert_int_equal(take(a,
                          "{\"config\": {\"digest\": \"sha256:" HEX
                          "\"}, \"layers\": [{\"digest\": \"sha256:../../x\"}]}",
                          good, &e),
                     -ERR_PARSE);
    assert_int_equal(take(a, MANIFEST, "{\"rootfs\": {\"diff_ids\": []}}", &e), -ERR_PARSE);
    assert_int_equal(take(a, MANIFEST, "{\"rootfs\": {\"diff_ids\": [1]}}", &e), -ERR_PARSE);
    assert_int_equal(
        take(a, MANIFEST,
             "{\"architecture\": \"arm64\", \"rootfs\": {\"diff_ids\": [\"sha256:" HEX "\"]}}", &e),
        -ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "linux/arm64"));
    assert_int_equal(take(a, MANIFEST,
                          "{\"os\": \"windows\", \"rootfs\": {\"diff_ids\": [\"sha256:" HEX "\"]}}",
                          &e),
                     -ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_images) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
