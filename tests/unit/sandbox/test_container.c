/* SPDX-License-Identifier: MIT
 *
 * What a container engine is told, and what is read of what it tells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "sandbox/container_priv.h"

static bool has(char **list, const char *word)
{
    for (; *list != NULL; list++) {
        if (strcmp(*list, word) == 0) {
            return true;
        }
    }
    return false;
}

/* The word that follows. */
static const char *after(char **list, const char *option)
{
    for (; *list != NULL; list++) {
        if (strcmp(*list, option) == 0) {
            return list[1];
        }
    }
    return NULL;
}

static char **arguments(struct arena *a, const struct container_opts *o)
{
    struct err e;
    char **argv;
    assert_int_equal(container_args_run(a, o, "img", "/lib/cinch-init", &argv, &e), 0);
    return argv;
}

static void it_is_confined(void **state)
{
    (void)state;
    struct arena *a = arena_new();
    const struct container_mount mounts[] = { { "/a", "/holon/input", false },
                                              { "/b", "/holon/output", true } };
    struct container_opts o = { .engine = "/usr/bin/podman",
                                .name = "n",
                                .dir = "/d",
                                .mounts = mounts,
                                .n_mounts = 2,
                                .memory = 1000,
                                .cpus = 1.5 };
    char **argv = arguments(a, &o);
    assert_string_equal(argv[0], "/usr/bin/podman");
    assert_string_equal(after(argv, "--network"), "none");
    assert_string_equal(after(argv, "--cap-drop"), "ALL");
    assert_string_equal(after(argv, "--memory"), "1000b");
    assert_string_equal(after(argv, "--cpus"), "1.5");
    assert_string_equal(after(argv, "--pids-limit"), "4096");
    assert_string_equal(after(argv, "--user"), "0:0");
    assert_true(has(argv, "no-new-privileges"));
    assert_true(has(argv, "--pull=never"));
    assert_true(has(argv, "--http-proxy=false"));
    assert_true(has(argv, "type=bind,source=/a,target=/holon/input,readonly"));
    assert_true(has(argv, "type=bind,source=/b,target=/holon/output"));
    assert_string_equal(after(argv, "--"), "img"); /* whatever it is called, it is no option */
    assert_string_equal(after(argv, "img"), "door");
    o.net = SANDBOX_NET_OPEN;
    assert_false(has(arguments(a, &o), "--network"));
    (void)arena_free(a);
}

static void docker_is_told_its_own_way(void **state)
{
    (void)state;
    struct arena *a = arena_new();
    struct container_opts o = {
        .engine = "/opt/bin/docker", .name = "n", .dir = "/d", .image = "docker-archive:/x.tar"
    };
    assert_false(has(arguments(a, &o), "--http-proxy=false"));
    assert_string_equal(after(container_args_load(a, &o), "--input"), "/x.tar");
    o.engine = "/opt/docker/podman";
    assert_true(has(arguments(a, &o), "--http-proxy=false"));
    assert_true(has(container_args_load(a, &o), "docker-archive:/x.tar"));
    (void)arena_free(a);
}

static void a_path_that_would_be_read_as_two_is_refused(void **state)
{
    (void)state;
    struct arena *a = arena_new();
    struct err e;
    char **argv;
    const struct container_mount mount = { "/a,readonly=false", "/b", false };
    struct container_opts o = {
        .engine = "podman", .name = "n", .dir = "/d", .mounts = &mount, .n_mounts = 1
    };
    assert_int_equal(container_args_run(a, &o, "img", "/i", &argv, &e), -ERR_CONFIG);
    (void)arena_free(a);
}

static void images_are_read(void **state)
{
    (void)state;
    struct arena *a = arena_new();
    struct err e;
    struct json *info;
    const char *text = "[{\"Id\": \"abc\", \"Config\": {\"Entrypoint\": [\"/e\", \"x\"], \"Cmd\": "
                       "[\"y\"], \"Labels\": {\"k\": \"v\"}}}]";
    assert_int_equal(container_image_read(a, str_of(text), &info, &e), 0);
    assert_string_equal(json_cstring(json_get(info, "id"), ""), "abc");
    const struct json *entry = container_entry(a, info, NULL);
    assert_int_equal(json_len(entry), 5);
    assert_string_equal(json_cstring(json_item(entry, 4), ""), "y");
    struct json *args = json_array(a);
    json_push(a, args, json_cstr(a, "--probe"));
    entry = container_entry(a, info, args);
    assert_int_equal(json_len(entry), 5);
    assert_string_equal(json_cstring(json_item(entry, 4), ""), "--probe");
    /* Engines leave out what is empty, or say null. */
    assert_int_equal(container_image_read(a, STR("[{\"Config\": {\"Cmd\": null}}]"), &info, &e), 0);
    assert_int_equal(json_len(json_get(info, "entrypoint")), 0);
    assert_int_equal(json_len(json_get(info, "command")), 0);
    assert_true(container_image_read(a, STR("[]"), &info, &e) < 0);
    assert_true(container_image_read(a, STR("{}"), &info, &e) < 0);
    assert_true(container_image_read(a, STR("no such image"), &info, &e) < 0);
    (void)arena_free(a);
}

static void files_are_told_from_names(void **state)
{
    (void)state;
    assert_true(container_image_is_file("oci-archive:/a.tar"));
    assert_true(container_image_is_file("oci:/dir"));
    assert_true(container_image_is_file("docker-archive:a.tar"));
    assert_false(container_image_is_file("localhost/oci:1"));
    assert_false(container_image_is_file("registry:5000/oci"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_confined),
        cmocka_unit_test(docker_is_told_its_own_way),
        cmocka_unit_test(a_path_that_would_be_read_as_two_is_refused),
        cmocka_unit_test(images_are_read),
        cmocka_unit_test(files_are_told_from_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
