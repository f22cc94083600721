/* SPDX-License-Identifier: MIT
 *
 * Installing skills: all of it or nothing, once, and over nothing that is not ours.
 */
#include "skill/skill_install.h"

#include "skill/package.h"
#include "skill_case.h"
#include "zip_maker.h"

static const struct skill_install_opts opts = { .patch = { .mode = SKILL_AUTO } };

static int folder(struct skill_case *c)
{
    assert_int_equal(file_mkdirs(c->fd, "home/skills", 0755, NULL), 0);
    return openat(c->fd, "home/skills", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void install(struct skill_case *c, int fd, const struct skill_install_opts *o)
{
    if (skill_install(c->skill, fd, o, &c->e) != 0) {
        fail_msg("%s", c->e.msg);
    }
}

static void test_plain(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(fd) int fd = folder(c);
    case_put(c, "hello/SKILL.md", CARD("hello"));
    case_put(c, "hello/scripts/run.sh", "#!/bin/sh\n");
    assert_int_equal(fchmodat(c->fd, "hello/scripts/run.sh", 0755, 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", c->fd, "hello/link"), 0);
    (void)case_open(c, "hello");
    install(c, fd, &opts);
    assert_string_equal(case_read(c, "home/skills/hello/SKILL.md"), CARD("hello"));
    assert_int_equal(faccessat(fd, "hello/scripts/run.sh", X_OK, 0), 0);
    assert_int_equal(case_count(c, "home/skills/hello"), 2);
    assert_int_equal(case_count(c, "home/skills"), 1);
    assert_non_null(strstr(json_cstring(json_item(c->skill->warnings, 0), ""), "1 symbolic links"));
}

static void test_single_file(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(fd) int fd = folder(c);
    case_put(c, "greet.md", CARD("greet"));
    (void)case_open(c, "greet.md");
    install(c, fd, &opts);
    assert_string_equal(case_read(c, "home/skills/greet/SKILL.md"), CARD("greet"));
}

static void test_package_is_patched_once(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(fd) int fd = folder(c);
    struct stat before;
    struct stat after;
    case_package(c, RUNNER);
    (void)case_open(c, "hello");
    install(c, fd, &opts);
    const char *text = case_read(c, "home/skills/hello/SKILL.md");
    assert_non_null(strstr(text, "<!-- cinch: artifacts -->"));
    assert_int_equal(fstatat(fd, "hello", &before, 0), 0);
    install(c, fd, &opts);
    assert_string_equal(case_read(c, "home/skills/hello/SKILL.md"), text);
    assert_int_equal(fstatat(fd, "hello", &after, 0), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    /* the source is as it was */
    assert_string_equal(case_read(c, "hello/SKILL.md"), CARD("hello"));
    /* a package made from an installed one is not patched again */
    assert_int_equal(file_remove_tree(c->fd, "hello", NULL), 0);
    assert_int_equal(renameat(fd, "hello", c->fd, "hello"), 0);
    (void)case_open(c, "hello");
    install(c, fd, &opts);
    assert_string_equal(case_read(c, "home/skills/hello/SKILL.md"), text);
}

static void test_from_archive(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(fd) int fd = folder(c);
    struct zip_maker m = ZIP_MAKER;
    zip_add(&m, "hello/SKILL.md", CARD("hello"));
    zip_put(&m, &(struct zip_item) { .name = "hello/run.sh", .data = STR("x"), .mode = 0100755 });
    zip_put(&m, &(struct zip_item) { .name = "hello/inner.zip", .data = STR("PK\3\4") });
    zip_put(&m, &(struct zip_item) { .name = "hello/empty/", .mode = 040755 });
    case_write(c, "x.zip", zip_end(&m));
    zip_maker_done(&m);
    (void)case_open(c, "x.zip");
    install(c, fd, &opts);
    assert_int_equal(faccessat(fd, "hello/run.sh", X_OK, 0), 0);
    assert_string_equal(case_read(c, "home/skills/hello/inner.zip"), "PK\3\4");
    assert_int_equal(case_count(c, "home/skills/hello/empty"), 0);
}

static void test_something_else_is_there(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(fd) int fd = folder(c);
    case_put(c, "hello/SKILL.md", CARD("hello"));
    case_put(c, "home/skills/hello/SKILL.md", "the user's own");
    case_put(c, "home/skills/hello/__pycache__/x", "made by a run");
    (void)case_open(c, "hello");
    assert_int_equal(skill_install(c->skill, fd, &opts, &c->e), -ERR_EXISTS);
    expect_message(c, "another skill 'hello' is installed already");
    assert_string_equal(case_read(c, "home/skills/hello/SKILL.md"), "the user's own");
    assert_int_equal(case_count(c, "home/skills"), 1);
    struct skill_install_opts replace = { .patch = { .mode = SKILL_AUTO }, .replace = true };
    install(c, fd, &replace);
    assert_string_equal(case_read(c, "home/skills/hello/SKILL.md"), CARD("hello"));
    assert_int_equal(case_count(c, "home/skills/hello"), 1);
}

/* A link in the place of the skill is neither followed nor taken for it. */
static void test_link_is_there(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(fd) int fd = folder(c);
    case_put(c, "hello/SKILL.md", CARD("hello"));
    case_put(c, "victim/SKILL.md", CARD("hello"));
    assert_int_equal(symlinkat("../../victim", fd, "hello"), 0);
    (void)case_open(c, "hello");
    assert_int_equal(skill_install(c->skill, fd, &opts, &c->e), -ERR_EXISTS);
    struct skill_install_opts replace = { .patch = { .mode = SKILL_AUTO }, .replace = true };
    install(c, fd, &replace);
    assert_int_equal(case_count(c, "victim"), 1);
    struct stat st;
    assert_int_equal(fstatat(fd, "hello", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISDIR(st.st_mode));
}

static void test_folder_cannot_be_written(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "hello/SKILL.md", CARD("hello"));
    (void)case_open(c, "hello");
    CLEANUP(fd) int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = skill_install(c->skill, proc, &opts, &c->e);
    assert_int_equal(r, -ERR_OUTPUT);
    expect_message(c, "skill 'hello': ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_plain),
        SKILL_TEST(test_single_file),
        SKILL_TEST(test_package_is_patched_once),
        SKILL_TEST(test_from_archive),
        SKILL_TEST(test_something_else_is_there),
        SKILL_TEST(test_link_is_there),
        SKILL_TEST(test_folder_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
