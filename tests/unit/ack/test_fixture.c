/* SPDX-License-Identifier: MIT
 *
 * The place of a trial: what is laid out, what placeholders become, and that every touch is found.
 */
#include "../values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ack/fixture.h"
#include "base/file.h"

struct place {
    char dir[64];
    struct scenario scenario;
    struct fixture stage;
};

static int set_up(void **state)
{
    arena_setup(state);
    struct place *p = *state = xcalloc(1, sizeof *p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/test_ack_stage_XXXXXX");
    if (mkdtemp(p->dir) == NULL) {
        return -1;
    }
    p->scenario = (struct scenario) {
        .git = true,
        .workspace = tree("{a.txt: 'in %{workspace}', sub/deep.txt: deep}"),
        .outside = tree("{kept.txt: kept}"),
    };
    p->stage = (struct fixture) {
        .arena = arena, .dir = p->dir, .adapter = "mine", .site = "127.0.0.2:1"
    };
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    int r = file_remove_tree(AT_FDCWD, p->dir, NULL);
    free(p);
    arena_teardown(state);
    return r;
}

static void set(struct place *p)
{
    struct err e = { 0 };
    if (fixture_set(&p->stage, &p->scenario, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static const char *in(const struct place *p, const char *name)
{
    return arena_printf(arena, "%s/%s", p->dir, name);
}

static void put(const struct place *p, const char *name, const char *text)
{
    assert_int_equal(file_write_atomic(AT_FDCWD, in(p, name), str_of(text), 0644, NULL), 0);
}

static const char *inspect(const struct place *p)
{
    struct findings f = { .text = BUF_INIT(BUF_TEXT) };
    fixture_inspect(&p->stage, &f);
    const char *text = arena_dup(arena, buf_str(&f.text));
    buf_done(&f.text);
    return text;
}

static void test_layout(void **state)
{
    struct place *p = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    set(p);
    assert_int_equal(file_read(AT_FDCWD, in(p, "workspace/a.txt"), 1000, &text, NULL), 0);
    assert_string_equal(arena_dup(arena, buf_str(&text)),
                        arena_printf(arena, "in %s/workspace", p->dir));
    assert_true(file_exists(AT_FDCWD, in(p, "workspace/sub/deep.txt")));
    assert_true(file_exists(AT_FDCWD, in(p, "workspace/.git/refs/heads/main")));
    assert_true(file_exists(AT_FDCWD, in(p, "outside/kept.txt")));
    assert_true(file_exists(AT_FDCWD, in(p, "home")));
    assert_true(file_exists(AT_FDCWD, in(p, "runs")));
    assert_string_equal(inspect(p), "");
}

static void test_plain(void **state)
{
    struct place *p = *state;
    p->scenario = (struct scenario) { .git = false };
    set(p);
    assert_true(file_exists(AT_FDCWD, in(p, "workspace")));
    assert_false(file_exists(AT_FDCWD, in(p, "workspace/.git")));
    assert_string_equal(inspect(p), "");
}

static void test_placeholders(void **state)
{
    struct place *p = *state;
    set(p);
    struct json *v =
        fixture_fill(&p->stage, tree("{'%{adapter}': ['%{site}!', '%{key}', 5, null, '%{dir}'],"
                                     " b: '%{other} %{ %', c: '%{outside}%{fill:30}', d: true}"));
    assert_string_equal(json_cstring(json_pointer(v, STR("/mine/0")), ""), "127.0.0.2:1!");
    assert_string_equal(json_cstring(json_pointer(v, STR("/mine/1")), ""), "mine");
    assert_int_equal(json_int(json_pointer(v, STR("/mine/2")), 0), 5);
    assert_true(json_is(json_pointer(v, STR("/mine/3")), JSON_NULL));
    assert_string_equal(json_cstring(json_pointer(v, STR("/mine/4")), ""), p->dir);
    assert_string_equal(json_cstring(json_get(v, "b"), ""), "%{other} %{ %");
    assert_string_equal(json_cstring(json_get(v, "c"), ""),
                        arena_printf(arena, "%s/outsideall work and no play all work ", p->dir));
    assert_true(json_bool(json_get(v, "d"), false));
    assert_null(fixture_fill(&p->stage, NULL));
    assert_int_equal(json_len(fixture_fill(&p->stage, tree("'%{fill:1000000}'"))), 1000000);
}

/* What the reader of scenarios would not let pass is not filled in, and ends nothing. */
static void test_too_much(void **state)
{
    static const char *const texts[] = { "%{fill:99999999999}", "%{fill:-1}", "%{fill:0}",
                                         "%{fill:16777217}", "a %{fill:} b" };
    struct place *p = *state;
    set(p);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct json *text = json_cstr(arena, texts[i]);
        assert_int_equal(fixture_fill_cost(str_of(texts[i])), -1);
        assert_true(json_equal(fixture_fill(&p->stage, text), text));
    }
    const char *many = "%{fill:16000000}%{fill:16000000}%{fill:16000000}%{fill:16000000}"
                       "%{fill:16000000}";
    assert_string_equal(json_cstring(fixture_fill(&p->stage, json_cstr(arena, many)), ""), many);
    assert_int_equal(fixture_fill_cost(str_of(many)), 80000000);
    assert_int_equal(fixture_fill_cost(STR("%{key} %{other} %{dir}%{fill:7} %{")),
                     2 * STAGE_VALUE_MAX + 7);
    struct err e = { 0 };
    p->scenario.workspace = json_object(arena);
    json_setc(arena, p->scenario.workspace, "a.txt", json_cstr(arena, many));
    assert_int_equal(fixture_set(&p->stage, &p->scenario, &e), -ERR_LIMIT);
    p->scenario.workspace = NULL;
    char name[STAGE_VALUE_MAX + 2] = "";
    memset(name, 'x', sizeof name - 1);
    p->stage.adapter = name;
    assert_int_equal(fixture_set(&p->stage, &p->scenario, &e), -ERR_LIMIT);
    assert_non_null(strstr(e.msg, "%{adapter} has more than 4096 bytes"));
}

static void test_paths(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };
    p->scenario.workspace = tree("{'for-%{adapter}/%{key}.txt': x}");
    p->scenario.outside = tree("{'%{adapter}': y}");
    p->stage.adapter = "exec:/a/b";
    set(p);
    assert_true(file_exists(AT_FDCWD, in(p, "workspace/for-exec:/a/b/exec__a_b.txt")));
    assert_true(file_exists(AT_FDCWD, in(p, "outside/exec:/a/b")));
    assert_string_equal(inspect(p), "");
    /* What is filled in must not lead out. */
    p->stage.adapter = "exec:/../../../up";
    assert_int_equal(fixture_set(&p->stage, &p->scenario, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "'for-%{adapter}/%{key}.txt' became 'for-exec:/../../../up/"));
    p->scenario.workspace = tree("{'%{outside}/x': x}");
    assert_int_equal(fixture_set(&p->stage, &p->scenario, &e), -ERR_CONFIG);
    assert_false(file_exists(AT_FDCWD, in(p, "up")));
}

/* --- each touch is found --- */

static void rewrite(const struct place *p)
{
    put(p, "workspace/a.txt", "other");
}

static void add(const struct place *p)
{
    put(p, "workspace/sub/new.txt", "");
}

static void take_away(const struct place *p)
{
    assert_int_equal(unlink(in(p, "workspace/sub/deep.txt")), 0);
}

static void touch(const struct place *p)
{
    const struct timespec times[] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    assert_int_equal(utimensat(AT_FDCWD, in(p, "outside/kept.txt"), times, 0), 0);
}

static void change_mode(const struct place *p)
{
    assert_int_equal(chmod(in(p, "workspace/a.txt"), 0755), 0);
}

static void change_silently(const struct place *p)
{
    struct stat st;
    const char *path = in(p, "outside/kept.txt");
    assert_int_equal(stat(path, &st), 0);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "K", 1, 0), 1);
    assert_int_equal(futimens(fd, (struct timespec[]) { st.st_atim, st.st_mtim }), 0);
    close(fd);
}

static void commit_something(const struct place *p)
{
    put(p, "workspace/.git/HEAD", "ref: refs/heads/other\n");
}

static void link_away(const struct place *p)
{
    assert_int_equal(symlink("/etc/passwd", in(p, "outside/link")), 0);
}

static void remove_all(const struct place *p)
{
    assert_int_equal(file_remove_tree(AT_FDCWD, in(p, "outside"), NULL), 0);
}

static void write_home(const struct place *p)
{
    put(p, "home/.profile", "x");
}

static void remove_home(const struct place *p)
{
    assert_int_equal(rmdir(in(p, "home")), 0);
}

static void test_touches(void **state)
{
    static const struct {
        void (*how)(const struct place *p);
        const char *finding;
    } cases[] = {
        { rewrite, "what was given was touched; before: workspace" },
        { add, "workspace/sub" },
        { take_away, "workspace/sub" },
        { touch, "after: outside/kept.txt mode 100644, 4 bytes" },
        { change_mode, "after: workspace/a.txt mode 100755" },
        { change_silently, "before: outside/kept.txt" },
        { commit_something, "workspace/.git" },
        { link_away, "outside" },
        { remove_all, "what was given was touched" },
        { write_home, "something was written into the home" },
        { remove_home, "something was written into the home" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
        struct place *p = *state;
        set(p);
        cases[i].how(p);
        const char *text = inspect(p);
        if (strstr(text, cases[i].finding) == NULL) {
            fail_msg("case %zu: '%s' is not in '%s'", i, cases[i].finding, text);
        }
    }
}

static void test_no_place(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };
    p->stage.dir = "/dev/null/x";
    assert_true(fixture_set(&p->stage, &p->scenario, &e) < 0);
    assert_non_null(strstr(e.msg, "/dev/null"));
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(test_layout),   PLACE_TEST(test_plain), PLACE_TEST(test_placeholders),
        PLACE_TEST(test_too_much), PLACE_TEST(test_paths), PLACE_TEST(test_touches),
        PLACE_TEST(test_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
