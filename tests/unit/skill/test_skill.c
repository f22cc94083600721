/* SPDX-License-Identifier: MIT
 *
 * Opening skills of every kind, and refusing what is no good one: with the file and line, and
 * without having written anything.
 */
#include "skill/skill_engine.h"
#include "skill_case.h"
#include "zip_maker.h"

#include "data/schema.h"
#include "skill/package.h"

static void test_plain_directory(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "hello/SKILL.md", CARD("hello"));
    case_put(c, "hello/data.txt", "x");
    struct skill *s = case_open(c, "hello");
    assert_string_equal(s->name, "hello");
    assert_null(s->manifest);
    assert_int_equal(s->package->len, 2);
    assert_int_equal(json_len(s->warnings), 0);
    assert_string_equal(case_open(c, "hello/")->name, "hello");
    assert_string_equal(case_open(c, "hello/../hello/.")->name, "hello");
}

static void test_single_file(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "greet.md", CARD("hello"));
    case_put(c, "SKILL.md", CARD("hello"));
    assert_string_equal(case_open(c, "greet.md")->name, "greet");
    assert_string_equal(case_open(c, "SKILL.md")->name, "hello");
    assert_int_equal(c->skill->package->len, 1);
    struct skill *named = NULL;
    assert_int_equal(skill_open(case_path(c, "greet.md"), "other", &named, &c->e), 0);
    assert_string_equal(named->name, "other");
    skill_free(named);
    case_put(c, "Greet Me.md", CARD("hello"));
    expect_bad(c, "Greet Me.md", ERR_CONFIG, "the name 'Greet Me' must be");
    case_put(c, "greet.txt", CARD("hello"));
    expect_bad(c, "greet.txt", ERR_CONFIG, "neither a directory, a .md file nor a zip archive");
    case_put(c, "bad.md", "no front matter");
    expect_bad(c, "bad.md", ERR_CONFIG, "bad.md:1:1: must begin");
}

static void test_missing(void **state)
{
    struct skill_case *c = *state;
    expect_bad(c, "nothing", ERR_INPUT, "nothing': No such file");
    case_put(c, "empty/x", "");
    expect_bad(c, "empty", ERR_CONFIG, "empty/SKILL.md is missing");
    assert_int_equal(mkfifoat(c->fd, "pipe.md", 0600), 0);
    expect_bad(c, "pipe.md", ERR_CONFIG, "neither a file nor a directory");
    /* SKILL.md behind a link is no SKILL.md */
    case_put(c, "there/SKILL.md", CARD("linked"));
    assert_int_equal(mkdirat(c->fd, "linked", 0755), 0);
    assert_int_equal(symlinkat("../there/SKILL.md", c->fd, "linked/SKILL.md"), 0);
    expect_bad(c, "linked", ERR_CONFIG, "SKILL.md is missing");
}

static void test_names_agree(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "other/SKILL.md", CARD("hello"));
    expect_bad(c, "other", ERR_CONFIG,
               "other/SKILL.md: the skill is named 'hello', but its directory 'other'");
    case_package(c, "{\"id\": \"hallo\", \"execution_modes\": [\"auto\"]}");
    expect_bad(c, "hello", ERR_CONFIG,
               "hello/assets/runner.json: 'id' is 'hallo', but the name in SKILL.md is 'hello'");
}

static void test_package(void **state)
{
    struct skill_case *c = *state;
    case_package(c, RUNNER);
    case_put(c, "hello/assets/input.schema.json", "{\"type\": \"object\"}");
    struct skill *s = case_open(c, "hello");
    assert_non_null(s->manifest);
    assert_non_null(s->schemas[SKILL_OUTPUT].compiled);
    assert_non_null(s->schemas[SKILL_INPUT].compiled);
    assert_null(s->schemas[SKILL_PARAMETER].compiled);
    case_put(c, "hello/assets/runner.json", "{\n \"id\": 7}");
    expect_bad(c, "hello", ERR_CONFIG, "hello/assets/runner.json:2:8: 'id' must be");
}

static void test_schema_places(void **state)
{
    struct skill_case *c = *state;
    case_package(c, "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"schemas\":{\"output\":"
                    "\"my/out.json\",\"input\":\"gone.json\"}}");
    case_put(c, "hello/my/out.json", "{\"type\": \"object\", \"title\": \"mine\"}");
    struct skill *s = case_open(c, "hello");
    assert_string_equal(json_cstring(json_get(s->schemas[SKILL_OUTPUT].tree, "title"), ""), "mine");
    assert_int_equal(json_len(s->warnings), 1);
    assert_non_null(strstr(json_cstring(json_item(s->warnings, 0), ""),
                           "the input schema 'gone.json' is missing"));
    assert_int_equal(unlinkat(c->fd, "hello/my/out.json", 0), 0);
    s = case_open(c, "hello");
    assert_string_equal(s->schemas[SKILL_OUTPUT].file,
                        case_path(c, "hello/assets/output.schema.json"));
    assert_int_equal(json_len(s->warnings), 2);
    assert_int_equal(unlinkat(c->fd, "hello/assets/output.schema.json", 0), 0);
    expect_bad(c, "hello", ERR_CONFIG, "hello/assets/output.schema.json is missing");
}

static void test_bad_schemas(void **state)
{
    static const struct {
        const char *file, *text, *message;
    } list[] = {
        { "output", "{", "output.schema.json:1:" },
        { "output", "[]", "output.schema.json:1:1: the output schema must be of type 'object'" },
        { "output", "{\"type\": \"string\"}",
          "output.schema.json:1:10: the output schema must be" },
        { "output", "{\"type\": \"object\", \"required\": 3}", "output.schema.json: schema at" },
        { "output", "{\"type\": \"object\", \"properties\": {\"a\": {\"x-type\": \"thing\"}}}",
          "output.schema.json:1:51: property 'a' has an 'x-type' other than" },
        { "output", "{\"type\": \"object\", \"properties\": {\"a\": {\"x-type\": \"artifact\"}}}",
          "property 'a' needs an 'x-role'" },
        { "output",
          "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"array\", \"x-type\": "
          "\"artifact-manifest\", \"x-role\": \"x\"}}}",
          "property 'a' is an artifact-manifest, so of type string" },
        { "output",
          "{\"oneOf\": [{\"$ref\": \"#/$defs/x\"}], \"$defs\": {\"x\": {\"type\": \"object\", "
          "\"properties\": {\"b\": {\"x-type\": 1}}}}}",
          "property 'b' has an 'x-type' other than" },
        { "output", "{\"type\": \"object\", \"$ref\": \"http://example.com/x\"}",
          "output.schema.json: " },
        { "input", "{\"type\": \"object\", \"properties\": {\"a\": {\"x-input-source\": \"web\"}}}",
          "input.schema.json:1:59: property 'a' has an 'x-input-source' other than" },
        { "input", "{\"type\": \"object\", \"properties\": {\"a\": true}}", "must be an object" },
        { "input", "{}", "the input schema must be of type 'object'" },
        { "parameter", "{\"oneOf\": []}", "the parameter schema must be of type 'object'" },
    };
    struct skill_case *c = *state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        case_package(c, RUNNER);
        case_put(c, arena_printf(c->arena, "hello/assets/%s.schema.json", list[i].file),
                 list[i].text);
        expect_bad(c, "hello", ERR_CONFIG, list[i].message);
        assert_int_equal(file_remove_tree(c->fd, "hello", NULL), 0);
    }
    CLEANUP(buf) struct buf wide = BUF_INIT(BUF_TEXT);
    case_package(c, RUNNER);
    buf_adds(&wide, "{\"oneOf\": [{}");
    for (int i = 0; i < 100; i++) {
        buf_adds(&wide, ", {}");
    }
    buf_adds(&wide, "]}");
    case_put(c, "hello/assets/output.schema.json", wide.ptr);
    expect_bad(c, "hello", ERR_CONFIG, "'oneOf' has more than 100 branches");
    buf_reset(&wide);
    buf_adds(&wide, "{\"type\": \"object\", \"properties\": {\"x\": {}");
    for (int i = 0; i < 1000; i++) {
        buf_addf(&wide, ", \"%d\": {}", i);
    }
    buf_adds(&wide, "}}");
    case_put(c, "hello/assets/output.schema.json", wide.ptr);
    expect_bad(c, "hello", ERR_CONFIG, "output.schema.json:1:34: more than 1000 properties");
    case_package(c, RUNNER);
    case_put(c, "hello/assets/parameter.schema.json", "{\"type\": \"object\"}");
    case_put(c, "hello/assets/output.schema.json", "{\"oneOf\": [{\"type\": \"object\"}]}");
    (void)case_open(c, "hello");
}

static void test_sizes(void **state)
{
    struct skill_case *c = *state;
    char *big = arena_alloc(c->arena, 11 << 20);
    case_put(c, "hello/SKILL.md", CARD("hello"));
    case_write(c, "hello/big", str_n(big, (10 << 20) - sizeof CARD("hello") + 1));
    (void)case_open(c, "hello");
    case_write(c, "hello/more", STR("x"));
    expect_bad(c, "hello", ERR_CONFIG, "holds more than 10485760 bytes");
    case_package(c, RUNNER); /* a package may be larger */
    (void)case_open(c, "hello");
    CLEANUP(buf) struct buf front = BUF_INIT(BUF_TEXT);
    buf_adds(&front, "---\nname: hello\ndescription: x\ny: \"");
    while (front.len < (10 << 20)) {
        buf_adds(&front, "0123456789012345678901234567890123456789012345678901234567890123");
    }
    buf_adds(&front, "\"\n---\n");
    case_write(c, "hello/SKILL.md", buf_str(&front));
    expect_bad(c, "hello", ERR_CONFIG, "hello/SKILL.md: larger than 1048576 bytes");
    case_write(c, "front.md", buf_str(&front));
    expect_bad(c, "front.md", ERR_CONFIG, "front.md: larger than 1048576 bytes");
    CLEANUP(fd) int fd = openat(c->fd, "huge.zip", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, (20 << 20) + 1), 0);
    expect_bad(c, "huge.zip", ERR_CONFIG, "larger than 20971520 bytes");
}

static void test_archive(void **state)
{
    struct skill_case *c = *state;
    struct zip_maker m = ZIP_MAKER;
    zip_add(&m, "hello/SKILL.md", CARD("hello"));
    zip_add(&m, "hello/assets/runner.json", RUNNER);
    zip_add(&m, "hello/assets/output.schema.json", OUTPUT);
    case_write(c, "package.bin", zip_end(&m));
    zip_maker_done(&m);
    struct skill *s = case_open(c, "package.bin");
    assert_string_equal(s->name, "hello");
    assert_non_null(s->manifest);
    assert_int_equal(case_count(c, ""), 1);
}

/* Whatever is in an archive: an error that says so, and nothing on disk. */
static void test_hostile_archives(void **state)
{
    char bytes[ZIP_BOMB_LEN];
    struct zip_item bomb = zip_bomb("hello/bomb", bytes);
    const struct {
        struct zip_item item;
        const char *message;
    } list[] = {
        { { .name = "hello/../../evil", .data = STR("x") }, "has '..' in it" },
        { { .name = "/tmp/evil", .data = STR("x") }, "is absolute" },
        { { .name = "hello/link", .data = STR("/etc"), .mode = 0120777 }, "symbolic link" },
        { { .name = "hello/SKILL.md", .data = STR("x") }, "there twice" },
        { { .name = "hello/\xff", .data = STR("x") }, "not UTF-8" },
        { { .name = "hello\\evil", .data = STR("x") }, "backslash" },
        { { .name = "other/file", .data = STR("x") }, "one directory" },
        { { .name = "inner.zip", .data = STR("PK") }, "'inner.zip'" },
        { bomb, "far more" },
        { { .name = "hello/x", .data = STR("x"), .size = 1, .crc = 1 }, "damaged" },
    };
    struct skill_case *c = *state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct zip_maker m = ZIP_MAKER;
        zip_add(&m, "hello/SKILL.md", CARD("hello"));
        zip_put(&m, &list[i].item);
        case_write(c, "x.zip", zip_end(&m));
        zip_maker_done(&m);
        expect_bad(c, "x.zip", ERR_CONFIG, list[i].message);
        assert_non_null(strstr(c->e.msg, "x.zip"));
        assert_int_equal(case_count(c, ""), 1);
    }
    case_write(c, "x.zip", STR("PK\3\4 and nothing more"));
    expect_bad(c, "x.zip", ERR_CONFIG, "not a usable zip archive");
}

static void test_admit(void **state)
{
    struct skill_case *c = *state;
    enum skill_mode mode = 0;
    case_package(c,
                 "{\"id\":\"hello\",\"execution_modes\":[\"interactive\"],\"engines\":[\"codex\","
                 "\"claude\"]}");
    struct skill *s = case_open(c, "hello");
    assert_int_equal(skill_admit(s, "codex", 0, &mode, &c->e), 0);
    assert_int_equal(mode, SKILL_INTERACTIVE);
    assert_int_equal(skill_admit(s, "gemini", 0, &mode, &c->e), -ERR_UNAVAILABLE);
    expect_message(c, "skill 'hello' does not support engine 'gemini'; it supports: codex, claude");
    assert_int_equal(skill_admit(s, "codex", SKILL_AUTO, &mode, &c->e), -ERR_UNAVAILABLE);
    expect_message(c, "cannot be run in mode 'auto'");
    case_package(c, "{\"id\":\"hello\",\"execution_modes\":[\"auto\",\"interactive\"],"
                    "\"unsupported_engines\":[\"gemini\"]}");
    s = case_open(c, "hello");
    assert_int_equal(skill_admit(s, "gemini", 0, &mode, &c->e), -ERR_UNAVAILABLE);
    expect_message(c, "it excludes: gemini");
    assert_int_equal(skill_admit(s, "command", 0, &mode, &c->e), 0);
    assert_int_equal(mode, SKILL_AUTO);
    assert_int_equal(skill_admit(s, "command", SKILL_INTERACTIVE, &mode, &c->e), 0);
    case_put(c, "plain.md", CARD("plain"));
    assert_int_equal(skill_admit(case_open(c, "plain.md"), "any", 0, &mode, &c->e), 0);
}

static void test_duplicates(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "hello/SKILL.md", CARD("hello"));
    case_put(c, "hello.md", CARD("other"));
    struct skill *second = NULL;
    struct skill *first = case_open(c, "hello");
    assert_int_equal(skill_open(case_path(c, "hello.md"), NULL, &second, &c->e), 0);
    const struct skill *list[] = { first, second };
    assert_int_equal(skill_check_names(list, 1, &c->e), 0);
    assert_int_equal(skill_check_names(list, 2, &c->e), -ERR_CONFIG);
    expect_message(c, "two skills are named 'hello'");
    skill_free(second);
}

static int config_of(struct skill_case *c, const struct skill *s, const char *name,
                     struct json **tree, const char **source)
{
    struct json *usual = json_array(c->arena);
    json_push(c->arena, usual,
              json_cstr(c->arena, arena_printf(c->arena, "assets/%s_config.toml", name)));
    json_push(c->arena, usual,
              json_cstr(c->arena, arena_printf(c->arena, "assets/%s_settings.json", name)));
    struct skill_engine engine = { .name = name, .configs = usual };
    return skill_engine_config(c->arena, s, &engine, tree, source, &c->e);
}

static void test_engine_config(void **state)
{
    struct skill_case *c = *state;
    struct json *tree = NULL;
    const char *source = NULL;
    case_package(c,
                 "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"engine_configs\":{\"codex\":"
                 "\"my.toml\",\"qwen\":\"gone.json\"}}");
    case_put(c, "hello/my.toml", "model = \"x\"\n[a]\nb = 1\n");
    case_put(c, "hello/assets/codex_config.toml", "model = \"usual\"\n");
    case_put(c, "hello/assets/claude_settings.json", "{\"a\": true}");
    struct skill *s = case_open(c, "hello");
    assert_int_equal(config_of(c, s, "codex", &tree, &source), 0);
    expect_json(c, tree, "{\"model\":\"x\",\"a\":{\"b\":1}}");
    assert_string_equal(source, case_path(c, "hello/my.toml"));
    assert_int_equal(config_of(c, s, "claude", &tree, &source), 0);
    expect_json(c, tree, "{\"a\":true}");
    assert_int_equal(config_of(c, s, "gemini", &tree, &source), 0);
    assert_null(tree);
    assert_int_equal(config_of(c, s, "qwen", &tree, &source), 0);
    assert_null(tree);
    assert_int_equal(json_len(s->warnings), 1);
    assert_non_null(strstr(json_cstring(json_item(s->warnings, 0), ""), "'gone.json'"));
    assert_int_equal(unlinkat(c->fd, "hello/my.toml", 0), 0);
    s = case_open(c, "hello");
    assert_int_equal(config_of(c, s, "codex", &tree, &source), 0);
    expect_json(c, tree, "{\"model\":\"usual\"}");
    case_put(c, "hello/assets/codex_config.toml", "model = \n");
    s = case_open(c, "hello");
    assert_int_equal(config_of(c, s, "codex", &tree, &source), -ERR_CONFIG);
    expect_message(c, "hello/assets/codex_config.toml:1:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_plain_directory), SKILL_TEST(test_single_file),
        SKILL_TEST(test_missing),         SKILL_TEST(test_names_agree),
        SKILL_TEST(test_package),         SKILL_TEST(test_schema_places),
        SKILL_TEST(test_bad_schemas),     SKILL_TEST(test_sizes),
        SKILL_TEST(test_archive),         SKILL_TEST(test_hostile_archives),
        SKILL_TEST(test_admit),           SKILL_TEST(test_duplicates),
        SKILL_TEST(test_engine_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
