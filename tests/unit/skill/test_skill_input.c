/* SPDX-License-Identifier: MIT
 *
 * Inputs and parameters: what is missing is told before anything starts, what does not fit is
 * named, and files are taken only from where they belong.
 */
#include "skill/skill_input.h"

#include "skill_case.h"

static const char input_schema[] =
    "{\"type\":\"object\",\"properties\":{\"csv\":{\"type\":\"string\"},\"notes\":{\"type\":"
    "\"string\",\"x-input-source\":\"file\"},\"topic\":{\"type\":\"string\",\"x-input-source\":"
    "\"inline\",\"default\":\"all\"}},\"required\":[\"csv\"]}";
static const char parameter_schema[] =
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"maximum\":10},\"on\":{"
    "\"type\":\"boolean\",\"default\":false},\"word\":{\"type\":\"string\"},\"list\":{\"type\":"
    "\"array\"},\"free\":{}},\"additionalProperties\":false}";

static struct skill *make(struct skill_case *c)
{
    case_package(c, RUNNER);
    case_put(c, "hello/assets/input.schema.json", input_schema);
    case_put(c, "hello/assets/parameter.schema.json", parameter_schema);
    case_put(c, "data/table.csv", "a,b\n");
    return case_open(c, "hello");
}

static int bind(struct skill_case *c, const char *input, const char *parameter,
                struct skill_values *values)
{
    struct skill_request q = { .input = input == NULL ? NULL : case_json(c, input),
                               .parameter = parameter == NULL ? NULL : case_json(c, parameter),
                               .base = c->path };
    c->e = (struct err) { 0 };
    return skill_bind(c->arena, c->skill, &q, values, &c->e);
}

static void expect_refused(struct skill_case *c, const char *input, const char *parameter,
                           enum err_code code, const char *message)
{
    struct skill_values values;
    assert_int_equal(bind(c, input, parameter, &values), -(int)code);
    expect_message(c, message);
}

static void test_bind(void **state)
{
    struct skill_case *c = *state;
    struct skill_values v;
    (void)make(c);
    assert_int_equal(bind(c, "{\"csv\": \"data/../data/table.csv\"}", "{\"n\": 3}", &v), 0);
    expect_json(
        c, v.input,
        arena_printf(c->arena, "{\"csv\":\"%s/data/table.csv\",\"topic\":\"all\"}", c->path));
    expect_json(c, v.parameter, "{\"n\":3,\"on\":false}");
    assert_int_equal(v.files_len, 1);
    assert_string_equal(v.files[0].key, "csv");
    assert_string_equal(v.files[0].to, "csv/table.csv");
    const char *absolute = arena_printf(
        c->arena, "{\"csv\": \"%s/data/table.csv\", \"topic\": \"no file at all\"}", c->path);
    assert_int_equal(bind(c, absolute, NULL, &v), 0);
    assert_string_equal(json_cstring(json_get(v.input, "topic"), ""), "no file at all");
}

static void test_missing_files(void **state)
{
    struct skill_case *c = *state;
    (void)make(c);
    expect_refused(c, NULL, NULL, ERR_INPUT,
                   "MissingInputError: input 'csv' of skill 'hello' is a file and was not given");
    expect_refused(c, "{\"csv\": \"data/gone.csv\"}", NULL, ERR_INPUT,
                   "MissingInputError: input 'csv' of skill 'hello': file '");
    expect_message(c, "data/gone.csv': No such file");
    expect_refused(c, "{\"csv\": \"a text that is no path\"}", NULL, ERR_INPUT,
                   "MissingInputError");
    expect_refused(c, "{\"csv\": \"data\"}", NULL, ERR_INPUT, "is not a file");
    /* also one that need not be there, once it is named */
    expect_refused(c, "{\"csv\": \"data/table.csv\", \"notes\": \"x\"}", NULL, ERR_INPUT,
                   "'notes'");
    assert_int_equal(mkfifoat(c->fd, "pipe", 0600), 0);
    expect_refused(c, "{\"csv\": \"pipe\"}", NULL, ERR_INPUT, "is not a file");
    expect_refused(c, "{\"csv\": 3}", NULL, ERR_CONFIG, "must be the path of a file");
    expect_refused(c, "{\"csv\": \"\"}", NULL, ERR_CONFIG, "must be the path of a file");
}

static void test_unknown_names(void **state)
{
    struct skill_case *c = *state;
    (void)make(c);
    expect_refused(c, "{\"csw\": \"x\"}", NULL, ERR_CONFIG,
                   "skill 'hello' has no input 'csw' (did you mean 'csv'?)");
    expect_refused(c, "{\"csv\": \"data/table.csv\"}", "{\"volume\": 3}", ERR_CONFIG,
                   "has no parameter 'volume'; it has 'n', 'on', 'word', 'list', 'free'");
    case_put(c, "plain.md", CARD("plain"));
    (void)case_open(c, "plain.md");
    expect_refused(c, "{\"x\": \"y\"}", NULL, ERR_CONFIG, "has no input");
    /* without a schema its prompt says which parameters there are */
    struct skill_values v;
    assert_int_equal(bind(c, NULL, "{\"x\": \"y\"}", &v), 0);
    expect_json(c, v.parameter, "{\"x\":\"y\"}");
    assert_int_equal(bind(c, NULL, NULL, &v), 0);
    case_put(c, "hello/assets/parameter.schema.json",
             "{\"type\": \"object\", \"additionalProperties\": false}");
    (void)case_open(c, "hello");
    expect_refused(c, NULL, "{\"x\": \"y\"}", ERR_CONFIG, "has no parameter");
}

/* The command line has only text. */
static void test_text_becomes_what_the_schema_wants(void **state)
{
    struct skill_case *c = *state;
    struct skill_values v;
    (void)make(c);
    const char *csv = "{\"csv\": \"data/table.csv\"}";
    assert_int_equal(bind(c, csv,
                          "{\"n\": \"5\", \"on\": \"true\", \"word\": \"7\", \"list\": \"[1]\", "
                          "\"free\": \"1\"}",
                          &v),
                     0);
    expect_json(c, v.parameter, "{\"n\":5,\"on\":true,\"word\":\"7\",\"list\":[1],\"free\":\"1\"}");
    expect_refused(c, csv, "{\"n\": \"eleven\"}", ERR_CONFIG,
                   "the parameter of skill 'hello' does not fit its schema: /n: expected integer");
    expect_refused(c, csv, "{\"n\": \"11\"}", ERR_CONFIG, "/n: ");
    expect_message(c, "11");
    expect_refused(c, csv, "{\"n\": \"\\\"5\\\"\"}", ERR_CONFIG, "expected integer");
    /* a file is never read as a value */
    case_put(c, "5", "five");
    assert_int_equal(bind(c, "{\"csv\": \"5\"}", NULL, &v), 0);
    assert_true(json_is(json_get(v.input, "csv"), JSON_STRING));
}

static void test_required_values(void **state)
{
    struct skill_case *c = *state;
    case_package(c, RUNNER);
    case_put(c, "hello/assets/parameter.schema.json",
             "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":["
             "\"n\"]}");
    (void)case_open(c, "hello");
    expect_refused(c, NULL, NULL, ERR_CONFIG, "the parameter of skill 'hello' does not fit");
    expect_message(c, "'n'");
}

static void test_hostile_keys(void **state)
{
    static const char *const keys[] = { "..", ".", "a/b", "/x", "a\\\\b", "" };
    struct skill_case *c = *state;
    case_put(c, "f", "x");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        case_package(c, RUNNER);
        case_put(
            c, "hello/assets/input.schema.json",
            arena_printf(c->arena, "{\"type\":\"object\",\"properties\":{\"%s\":{}}}", keys[i]));
        (void)case_open(c, "hello");
        expect_refused(c, arena_printf(c->arena, "{\"%s\": \"f\"}", keys[i]), NULL, ERR_CONFIG,
                       "the name ");
    }
}

static void test_stage_and_resolve(void **state)
{
    struct skill_case *c = *state;
    struct skill_values v;
    struct skill *s = make(c);
    assert_int_equal(bind(c, "{\"csv\": \"data/table.csv\"}", NULL, &v), 0);
    assert_int_equal(mkdirat(c->fd, "run", 0755), 0);
    CLEANUP(fd) int run = openat(c->fd, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(skill_stage(c->arena, &v, run, "/box/run", &c->e), 0);
        assert_string_equal(case_read(c, "run/uploads/csv/table.csv"), "a,b\n");
        assert_int_equal(case_count(c, "run/uploads/csv"), 1);
        assert_int_equal(skill_resolve(c->arena, s, run, "/box/run", &v, &c->e), 0);
        expect_json(c, v.input, "{\"csv\":\"/box/run/uploads/csv/table.csv\",\"topic\":\"all\"}");
    }
    struct json *stored = case_json(c, case_read(c, "run/input.json"));
    expect_json(c, stored,
                "{\"input\":{\"csv\":\"/box/run/uploads/csv/table.csv\",\"topic\":\"all\"},"
                "\"parameter\":{\"on\":false}}");
    /* one that is put there under its exact name is found */
    case_put(c, "run/uploads/notes", "n");
    assert_int_equal(skill_resolve(c->arena, s, run, "/box/run", &v, &c->e), 0);
    assert_string_equal(json_cstring(json_get(v.input, "notes"), ""), "/box/run/uploads/notes");
}

static void test_resolve_is_strict(void **state)
{
    struct skill_case *c = *state;
    struct skill_values v;
    struct skill *s = make(c);
    case_put(c, "secret", "x");
    assert_int_equal(bind(c, "{\"csv\": \"data/table.csv\"}", NULL, &v), 0);
    assert_int_equal(mkdirat(c->fd, "run", 0755), 0);
    CLEANUP(fd) int run = openat(c->fd, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(skill_resolve(c->arena, s, run, "/r", &v, &c->e), -ERR_INPUT);
    expect_message(c, "MissingInputError: input 'csv' of skill 'hello' is not at "
                      "'/r/uploads/csv/table.csv'");
    assert_int_equal(skill_stage(c->arena, &v, run, "/r", &c->e), 0);
    assert_int_equal(unlinkat(run, "uploads/csv/table.csv", 0), 0);
    assert_int_equal(symlinkat("../../../secret", run, "uploads/csv/table.csv"), 0);
    assert_int_equal(skill_resolve(c->arena, s, run, "/r", &v, &c->e), -ERR_INPUT);
    /* required, not staged, and only there under another spelling */
    struct skill_values none = { .input = json_object(c->arena) };
    assert_int_equal(file_remove_tree(run, "uploads", NULL), 0);
    case_put(c, "run/uploads/CSV", "x");
    assert_int_equal(skill_resolve(c->arena, s, run, "/r", &none, &c->e), -ERR_INPUT);
    expect_message(c, "is not at '/r/uploads/csv'");
}

/* The file went away between admission and copying. */
static void test_stage_without_source(void **state)
{
    struct skill_case *c = *state;
    struct skill_values v;
    (void)make(c);
    assert_int_equal(bind(c, "{\"csv\": \"data/table.csv\"}", NULL, &v), 0);
    assert_int_equal(unlinkat(c->fd, "data/table.csv", 0), 0);
    assert_int_equal(skill_stage(c->arena, &v, c->fd, "/r", &c->e), -ERR_INPUT);
    expect_message(c, "MissingInputError");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_bind),
        SKILL_TEST(test_missing_files),
        SKILL_TEST(test_unknown_names),
        SKILL_TEST(test_text_becomes_what_the_schema_wants),
        SKILL_TEST(test_required_values),
        SKILL_TEST(test_hostile_keys),
        SKILL_TEST(test_stage_and_resolve),
        SKILL_TEST(test_resolve_is_strict),
        SKILL_TEST(test_stage_without_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
