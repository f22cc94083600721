/* SPDX-License-Identifier: MIT
 *
 * Artifacts that an output names: found below the run's directory, and nowhere else.
 */
#include "skill/skill_artifact.h"

#include "skill_case.h"

static void open_with(struct skill_case *c, const char *runner, const char *output)
{
    case_package(c, runner);
    case_put(c, "hello/assets/output.schema.json", output);
    (void)case_open(c, "hello");
}

static struct skill_artifact_list look(struct skill_case *c, const char *output)
{
    struct skill_artifact_list list = { 0 };
    CLEANUP(fd) int fd = openat(c->fd, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct skill_root root = { .fd = fd, .path = "/box/run" };
    assert_true(fd >= 0);
    if (skill_artifacts(c->arena, c->skill, case_json(c, output), &root, &list, &c->e) != 0) {
        fail_msg("%s", c->e.msg);
    }
    return list;
}

static void expect_one(struct skill_case *c, const char *path, const char *found, const char *fault)
{
    struct skill_artifact_list l =
        look(c, arena_printf(c->arena, "{\"count\":1,\"report\":\"%s\"}", path));
    assert_int_equal(l.len, 1);
    assert_string_equal(l.items[0].field, "/report");
    assert_string_equal(l.items[0].role, "report");
    assert_true(l.items[0].required);
    assert_string_equal(l.items[0].path, found);
    assert_string_equal(l.items[0].fault == NULL ? "" : l.items[0].fault, fault);
    assert_int_equal(l.missing, fault[0] != '\0');
}

static void test_paths(void **state)
{
    struct skill_case *c = *state;
    open_with(c, RUNNER, OUTPUT);
    case_put(c, "run/artifacts/sub/r.md", "12345");
    case_put(c, "run/r.md", "1");
    case_put(c, "outside.md", "secret");
    assert_int_equal(symlinkat("../outside.md", c->fd, "run/link.md"), 0);
    assert_int_equal(symlinkat("..", c->fd, "run/up"), 0);
    expect_one(c, "artifacts/sub/r.md", "artifacts/sub/r.md", "");
    expect_one(c, "/box/run/artifacts/sub/r.md", "artifacts/sub/r.md", "");
    expect_one(c, "./r.md", "r.md", "");
    expect_one(c, " r.md\\n", "r.md", "");
    expect_one(c, "gone.md", "gone.md", "is not there");
    expect_one(c, "artifacts", "artifacts", "is not a file");
    expect_one(c, "/etc/passwd", "/etc/passwd", "is outside of the run directory");
    expect_one(c, "/box/running/x", "/box/running/x", "is outside of the run directory");
    expect_one(c, "../outside.md", "../outside.md", "is not a plain path");
    expect_one(c, "/box/run/../outside.md", "/box/run/../outside.md", "is not a plain path");
    expect_one(c, "link.md", "link.md", "is behind a symbolic link");
    expect_one(c, "up/outside.md", "up/outside.md", "is not there");
    expect_one(c, "", "", "is not given");
    struct skill_artifact_list l = look(c, "{\"count\":1,\"report\":\"/box/run/r.md\"}");
    expect_json(c, l.output, "{\"count\":1,\"report\":\"r.md\"}");
    assert_int_equal(l.items[0].size, 1);
}

static void test_optional_and_nested(void **state)
{
    struct skill_case *c = *state;
    open_with(
        c, RUNNER,
        "{\"type\":\"object\",\"properties\":{\"log\":{\"type\":\"string\",\"x-type\":\"file\"},"
        "\"all\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/f\"}},\"in\":{\"type\":"
        "\"object\",\"properties\":{\"f\":{\"x-type\":\"artifact\",\"x-role\":\"inner\"}},"
        "\"required\":[\"f\"]}},\"$defs\":{\"f\":{\"type\":\"string\",\"x-type\":\"artifact\","
        "\"x-role\":\"each\"}}}");
    case_put(c, "run/a", "");
    struct skill_artifact_list l =
        look(c, "{\"log\":\"gone\",\"all\":[\"a\",\"b\"],\"in\":{\"f\":\"a\"}}");
    assert_int_equal(l.len, 4);
    assert_string_equal(l.items[0].fault, "is not there");
    assert_false(l.items[0].required);
    assert_string_equal(l.items[0].role, "output");
    assert_string_equal(l.items[1].field, "/all/0");
    assert_null(l.items[1].fault);
    assert_string_equal(l.items[2].fault, "is not there");
    assert_string_equal(l.items[3].field, "/in/f");
    assert_int_equal(l.missing, 1);
    assert_int_equal(look(c, "{\"log\":null}").len, 0);
}

static void test_branch_by_constant(void **state)
{
    struct skill_case *c = *state;
    open_with(
        c, RUNNER,
        "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"s\":{\"const\":\"ok\"},\"f\":{"
        "\"x-type\":\"artifact\",\"x-role\":\"r\"}},\"required\":[\"f\"]},{\"type\":\"object\","
        "\"properties\":{\"s\":{\"const\":\"failed\"},\"f\":{\"type\":\"string\"}}}]}");
    case_put(c, "run/a", "");
    assert_int_equal(look(c, "{\"s\":\"ok\",\"f\":\"a\"}").len, 1);
    assert_int_equal(look(c, "{\"s\":\"failed\",\"f\":\"no path\"}").len, 0);
}

static void test_manifest(void **state)
{
    struct skill_case *c = *state;
    open_with(c, RUNNER,
              "{\"type\":\"object\",\"properties\":{\"m\":{\"type\":\"string\",\"x-type\":"
              "\"artifact-manifest\",\"x-role\":\"all\"}},\"required\":[\"m\"]}");
    case_put(c, "run/a", "1");
    case_put(c, "run/m.json", "{\"first\":\"a\",\"second\":\"/box/run/b\",\"third\":\"../x\"}");
    struct skill_artifact_list l = look(c, "{\"m\":\"m.json\"}");
    assert_int_equal(l.len, 4);
    assert_null(l.items[0].fault);
    assert_string_equal(l.items[1].role, "first");
    assert_null(l.items[1].fault);
    assert_string_equal(l.items[2].path, "b");
    assert_string_equal(l.items[2].fault, "is not there");
    assert_non_null(l.items[3].fault);
    assert_int_equal(l.missing, 2);
    static const char *const bad[] = { "[]", "{", "{\"a\": 1}", "{\"a\": {\"b\": \"a\"}}", "" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        case_put(c, "run/m.json", bad[i]);
        assert_int_equal(look(c, "{\"m\":\"m.json\"}").missing, 1);
    }
}

static void test_declared(void **state)
{
    struct skill_case *c = *state;
    open_with(
        c,
        "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"artifacts\":[{\"role\":\"report\","
        "\"pattern\":\"report.md\",\"required\":true},{\"role\":\"logs\",\"pattern\":"
        "\"logs/*.txt\"}]}",
        "{\"type\":\"object\"}");
    assert_int_equal(mkdirat(c->fd, "run", 0755), 0);
    struct skill_artifact_list l = look(c, "{}");
    assert_int_equal(l.len, 2);
    assert_int_equal(l.missing, 1);
    case_put(c, "run/artifacts/report.md", "x");
    case_put(c, "run/artifacts/logs/1.txt", "x");
    case_put(c, "run/artifacts/logs/2.txt", "x");
    case_put(c, "run/artifacts/logs/3.bin", "x");
    l = look(c, "{}");
    assert_int_equal(l.len, 3);
    assert_int_equal(l.missing, 0);
    assert_string_equal(l.items[0].path, "artifacts/report.md");
    struct skill_artifact_fields f = skill_artifact_fields(c->arena, c->skill);
    assert_int_equal(f.len, 2);
    assert_true(str_eqc(f.items[1].pattern, "logs/*.txt"));
}

static void test_too_many(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    open_with(
        c, RUNNER,
        "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{\"x-type\":"
        "\"file\"}}}}");
    buf_adds(&text, "{\"l\":[\"x\"");
    for (int i = 0; i < 1000; i++) {
        buf_adds(&text, ",\"x\"");
    }
    buf_adds(&text, "]}");
    struct skill_artifact_list list;
    struct skill_root root = { .fd = c->fd, .path = c->path };
    assert_int_equal(
        skill_artifacts(c->arena, c->skill, case_json(c, text.ptr), &root, &list, &c->e),
        -ERR_CONFIG);
    expect_message(c, "more than 1000 files");
}

/* A schema and an output that together would take hours. */
static void test_work_ends(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf schema = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf output = BUF_INIT(BUF_TEXT);
    buf_adds(&schema, "{\"anyOf\":[{\"$ref\":\"#/$defs/a\"}");
    for (int i = 0; i < 99; i++) {
        buf_adds(&schema, ",{\"$ref\":\"#/$defs/a\"}");
    }
    buf_adds(&schema, "],\"$defs\":{\"a\":{\"properties\":{\"x\":{}");
    buf_adds(&output, "{\"x\":0");
    for (int i = 0; i < 999; i++) {
        buf_addf(&schema, ",\"p%d\":{\"const\":1}", i);
    }
    for (int i = 0; i < 20000; i++) {
        buf_addf(&output, ",\"q%d\":0", i);
    }
    buf_adds(&schema, "}}}}");
    buf_adds(&output, "}");
    open_with(c, RUNNER, schema.ptr);
    struct skill_artifact_list list;
    struct skill_root root = { .fd = c->fd, .path = c->path };
    assert_int_equal(
        skill_artifacts(c->arena, c->skill, case_json(c, output.ptr), &root, &list, &c->e),
        -ERR_CONFIG);
    expect_message(c, "too large to look for files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_paths),     SKILL_TEST(test_optional_and_nested),
        SKILL_TEST(test_manifest),  SKILL_TEST(test_branch_by_constant),
        SKILL_TEST(test_declared),  SKILL_TEST(test_too_many),
        SKILL_TEST(test_work_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
