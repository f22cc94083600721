/* SPDX-License-Identifier: MIT
 *
 * Packages in memory: what is read from directories and archives, what is left out, and that what
 * comes back on disk is the same.
 */
#include "skill/package.h"

#include "skill_case.h"
#include "zip_maker.h"

static struct package *read_dir(struct skill_case *c, const char *name,
                                const struct package_limits *limits)
{
    CLEANUP(fd) int fd = openat(c->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct package *p = NULL;
    assert_true(fd >= 0);
    return package_read_dir(c->arena, fd, name, limits, &p, &c->e) == 0 ? p : NULL;
}

static const char *content(const struct package *p, const char *name)
{
    const struct package_file *f = package_find(p, str_of(name));
    return f == NULL ? NULL : f->content.ptr;
}

static void test_directory(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "d/SKILL.md", "one");
    case_put(c, "d/a/b/c.txt", "two");
    case_put(c, "d/run.sh", "three");
    case_put(c, "d/.git/config", "no");
    case_put(c, "d/a/.git", "no");
    case_put(c, "d/.gitignore", "yes");
    case_put(c, "outside", "secret");
    assert_int_equal(fchmodat(c->fd, "d/run.sh", 0755, 0), 0);
    assert_int_equal(mkdirat(c->fd, "d/empty", 0755), 0);
    assert_int_equal(symlinkat("../outside", c->fd, "d/link"), 0);
    assert_int_equal(symlinkat("/etc", c->fd, "d/a/etc"), 0);
    assert_int_equal(mkfifoat(c->fd, "d/pipe", 0600), 0);
    struct package *p = read_dir(c, "d", NULL);
    assert_non_null(p);
    assert_string_equal(content(p, "SKILL.md"), "one");
    assert_string_equal(content(p, "a/b/c.txt"), "two");
    assert_string_equal(content(p, ".gitignore"), "yes");
    assert_true(package_find(p, STR("run.sh"))->executable);
    assert_true(package_find(p, STR("empty"))->dir);
    assert_null(content(p, "link"));
    assert_null(content(p, "a/etc/passwd"));
    assert_null(content(p, ".git/config"));
    assert_null(content(p, "a/.git"));
    assert_int_equal(p->skipped, 3);
    assert_int_equal(p->total, 14);
}

static void test_limits(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "d/a", "12345");
    case_put(c, "d/b", "12345");
    assert_non_null(read_dir(c, "d", &(struct package_limits) { .max_total = 10, .max_files = 2 }));
    assert_null(read_dir(c, "d", &(struct package_limits) { .max_total = 9 }));
    assert_int_equal(c->e.code, ERR_CONFIG);
    expect_message(c, "d: holds more than 9 bytes");
    assert_null(read_dir(c, "d", &(struct package_limits) { .max_files = 1 }));
    expect_message(c, "d: holds more than 1 files");
}

static void test_deep_and_odd_names(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf path = BUF_INIT(BUF_TEXT);
    buf_adds(&path, "d");
    for (int i = 0; i < 40; i++) {
        buf_adds(&path, "/x");
    }
    assert_int_equal(file_mkdirs(c->fd, path.ptr, 0755, NULL), 0);
    assert_null(read_dir(c, "d", NULL));
    expect_message(c, "nested more than 32 deep");
    case_put(c, "n/a\nb", "x");
    assert_null(read_dir(c, "n", NULL));
    expect_message(c, "control character");
    case_put(c, "u/\xff", "x");
    assert_null(read_dir(c, "u", NULL));
    expect_message(c, "not UTF-8");
}

static struct package *read_zip(struct skill_case *c, struct zip_maker *m)
{
    struct package *p = NULL;
    int r = package_read_zip(c->arena, zip_end(m), "x.zip", NULL, &p, &c->e);
    zip_maker_done(m);
    assert_int_equal(r, p == NULL ? -ERR_CONFIG : 0);
    return p;
}

static void test_archive(void **state)
{
    struct skill_case *c = *state;
    struct zip_maker m = ZIP_MAKER;
    zip_add(&m, "__MACOSX/pdf/._SKILL.md", "no");
    zip_add(&m, "pdf/SKILL.md", "one");
    zip_add(&m, "pdf/.git/config", "no");
    zip_add(&m, "pdf/a/b.txt", "two");
    struct package *p = read_zip(c, &m);
    assert_string_equal(p->top, "pdf");
    assert_int_equal(p->len, 2);
    assert_string_equal(content(p, "SKILL.md"), "one");
    assert_string_equal(content(p, "a/b.txt"), "two");
}

static void test_archive_is_one_directory(void **state)
{
    struct skill_case *c = *state;
    struct zip_maker two = ZIP_MAKER;
    zip_add(&two, "a/SKILL.md", "x");
    zip_add(&two, "b/SKILL.md", "x");
    assert_null(read_zip(c, &two));
    expect_message(c, "x.zip: holds both 'a' and 'b'");
    struct zip_maker flat = ZIP_MAKER;
    zip_add(&flat, "SKILL.md", "x");
    assert_null(read_zip(c, &flat));
    expect_message(c, "'SKILL.md' is not inside a directory");
    struct zip_maker nested = ZIP_MAKER;
    zip_add(&nested, "pdf.zip", "PK");
    assert_null(read_zip(c, &nested));
    expect_message(c, "holds the archive 'pdf.zip' where the package's directory should be");
    struct zip_maker empty = ZIP_MAKER;
    assert_null(read_zip(c, &empty));
    expect_message(c, "empty");
    struct zip_maker slip = ZIP_MAKER;
    zip_add(&slip, "a/../../x", "x");
    assert_null(read_zip(c, &slip));
    assert_int_equal(c->e.code, ERR_CONFIG);
}

static void test_write_and_compare(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "d/SKILL.md", "one");
    case_put(c, "d/a/b/c.txt", "two");
    assert_int_equal(fchmodat(c->fd, "d/a/b/c.txt", 0755, 0), 0);
    struct package *p = read_dir(c, "d", NULL);
    struct package *changed = package_with(c->arena, p, STR("SKILL.md"), STR("other"));
    struct package *more = package_with(c->arena, p, STR("NEW.md"), STR("new"));
    assert_string_equal(content(p, "SKILL.md"), "one");
    assert_string_equal(content(changed, "SKILL.md"), "other");
    assert_string_equal(content(more, "NEW.md"), "new");
    assert_false(package_equal(p, changed));
    assert_false(package_equal(p, more));
    assert_false(package_equal(more, p));
    assert_int_equal(mkdirat(c->fd, "out", 0755), 0);
    CLEANUP(fd) int fd = openat(c->fd, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(package_write(changed, fd, &c->e), 0);
    assert_true(package_equal(changed, read_dir(c, "out", NULL)));
    assert_int_equal(fchmodat(fd, "a/b/c.txt", 0644, 0), 0);
    assert_false(package_equal(changed, read_dir(c, "out", NULL)));
    /* nothing is overwritten, nothing followed */
    assert_int_equal(package_write(changed, fd, &c->e), -ERR_EXISTS);
    assert_int_equal(unlinkat(fd, "SKILL.md", 0), 0);
    case_put(c, "victim", "safe");
    assert_int_equal(symlinkat("../victim", fd, "SKILL.md"), 0);
    assert_int_equal(package_write(changed, fd, &c->e), -ERR_EXISTS);
    assert_string_equal(case_read(c, "victim"), "safe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_directory),
        SKILL_TEST(test_limits),
        SKILL_TEST(test_deep_and_odd_names),
        SKILL_TEST(test_archive),
        SKILL_TEST(test_archive_is_one_directory),
        SKILL_TEST(test_write_and_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
