/* SPDX-License-Identifier: MIT
 *
 * The table of settings: every row is complete and consistent, and a row that is added brings its
 * check, its default, its typed field, its place in the schemas and in the explanation.
 */
#include "config/settings_table.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "config/layers.h"
#include "config/settings.h"
#include "data/yaml.h"

static struct arena *arena;

static int setup(void **state)
{
    arena = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static struct json *tree_of(const char *text)
{
    struct json *v;
    struct err e = { 0 };
    if (yaml_parse(arena, str_of(text), "t.yaml", NULL, &v, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return v;
}

#define CHECK(condition, row)                           \
    do {                                                \
        if (!(condition)) {                             \
            fail_msg("%s: %s", (row)->key, #condition); \
        }                                               \
    } while (0)

/* --- the rows of cinch --- */

static size_t count_words(const char *words)
{
    size_t n = words == NULL ? 0 : 1;
    for (const char *p = words; p != NULL && *p != '\0'; p++) {
        n += *p == '|';
    }
    return n;
}

static bool is_phrase(const char *text)
{
    size_t n = text == NULL ? 0 : strlen(text);
    return n > 1 && text[n - 1] != '.' && strchr(text, '|') == NULL &&
           (isupper((unsigned char)text[0]) == 0 || isupper((unsigned char)text[1]) != 0);
}

/* The section of a key is a row before it. */
static void check_section(const struct setting *row)
{
    const char *dot = strrchr(row->key, '.');
    if (dot != NULL) {
        const struct setting *s =
            setting_find(settings_table, str_n(row->key, (size_t)(dot - row->key)));
        CHECK(s != NULL && s < row && s->kind == SHAPE_OBJECT && s->inner == NULL, row);
    }
}

static void check_option(const struct setting *row)
{
    for (const struct setting *s = settings_table; s != row; s++) {
        CHECK(s->option.name == NULL || strcmp(s->option.name, row->option.name) != 0, row);
        CHECK(row->option.letter == 0 || s->option.letter != row->option.letter, row);
    }
    bool is_switch = row->kind == SHAPE_BOOL || row->option.on != NULL;
    CHECK((row->option.value == NULL) == is_switch, row);
    CHECK((row->option.on == NULL) == (row->option.off == NULL), row);
    CHECK(row->option.heading < HEADING_MAX, row);
}

static void check_field(const struct setting *row)
{
    bool whole = row->kind == SHAPE_INT || row->kind == SHAPE_DURATION || row->kind == SHAPE_SIZE;
    switch (row->field.type) {
    case SETTING_INT:
        CHECK(whole, row);
        break;
    case SETTING_REAL:
        CHECK(row->kind == SHAPE_NUMBER, row);
        break;
    case SETTING_TEXT:
    case SETTING_STR:
        CHECK(row->kind == SHAPE_STRING || row->kind == SHAPE_PATH ||
                  (row->kind == SHAPE_WORD && row->values == NULL),
              row);
        break;
    case SETTING_BOOL:
    case SETTING_ENUM:
        CHECK(row->kind == SHAPE_BOOL || row->values != NULL, row);
        break;
    case SETTING_JSON:
        CHECK(!whole && row->kind != SHAPE_NUMBER && row->kind != SHAPE_BOOL, row);
        break;
    case SETTING_NO_FIELD:
        break;
    }
    CHECK(row->unit == 0 || row->field.type == SETTING_INT, row);
}

static void test_rows_are_consistent(void **state)
{
    for (const struct setting *row = settings_table; row->key != NULL; row++) {
        CHECK(setting_find(settings_table, str_of(row->key)) == row, row);
        CHECK(is_phrase(row->help), row);
        CHECK(row->kind != SHAPE_END && row->kind < SHAPE_KIND_MAX, row);
        CHECK(row->min <= row->max, row);
        CHECK((row->words != NULL) == (row->kind == SHAPE_WORD || row->kind == SHAPE_CHOICE), row);
        CHECK(row->values == NULL || row->values_len == count_words(row->words), row);
        CHECK((row->flags & SETTING_RECORDED) == 0 || row->fallback != NULL, row);
        CHECK(row->since == NULL || isdigit((unsigned char)row->since[0]) != 0, row);
        check_section(row);
        check_field(row);
        if (row->option.name != NULL) {
            check_option(row);
        }
    }
}

/* A default is a value that a task file could have. */
static void test_defaults_are_valid(void **state)
{
    struct json *tree = json_object(arena);
    struct err e = { 0 };
    for (const struct setting *row = settings_table; row->key != NULL; row++) {
        if (row->fallback != NULL) {
            struct json *v = setting_default(arena, row);
            CHECK(v != NULL, row);
            setting_put(arena, tree, row->key, v);
        }
    }
    if (shape_check(tree, settings_shape(arena, settings_table, 0), "defaults", &e) < 0) {
        fail_msg("%s", e.msg);
    }
    /* task.json has a duration in seconds, as a whole number where it is one. */
    assert_true(json_is(setting_value(tree, "limits.timeout"), JSON_INT));
    assert_int_equal(json_int(setting_value(tree, "limits.timeout"), 0), 3600);
}

/* Members of list items have help, too: the schemas and the reference show it. */
static void check_items(const struct shape *table, const char *key)
{
    for (const struct shape *s = table; s != NULL && s->kind != SHAPE_END; s++) {
        if (!is_phrase(s->help)) {
            fail_msg("%s: member '%s' has no help", key, s->key);
        }
        check_items(s->inner, s->key);
    }
}

static void test_items_are_described(void **state)
{
    for (const struct setting *row = settings_table; row->key != NULL; row++) {
        check_items(row->inner, row->key);
    }
}

/* --- who may set what --- */

static size_t count_keys(const struct shape *table)
{
    size_t n = 0;
    for (const struct shape *s = table; s->kind != SHAPE_END; s++) {
        n++;
    }
    return n;
}

static void test_writers(void **state)
{
    const struct shape *project = settings_shape(arena, settings_table, SETTING_BY_PROJECT);
    const struct shape *skill = settings_shape(arena, settings_table, SETTING_BY_SKILL);
    const struct shape *agent = shape_find(project, STR("agent"));
    assert_int_equal(count_keys(project), 6); /* version name description agent limits eval */
    assert_int_equal(count_keys(agent->inner), 2);
    assert_non_null(shape_find(agent->inner, STR("adapter")));
    assert_null(shape_find(agent->inner, STR("command")));
    assert_null(shape_find(project, STR("sandbox")));
    assert_int_equal(count_keys(skill), 2);
    assert_non_null(shape_find(skill, STR("files")));
    const struct shape *limits = shape_find(skill, STR("limits"));
    assert_int_equal(count_keys(limits->inner), 1);
    assert_string_equal(limits->inner->key, "timeout");
}

/* --- a table with one more setting: the recipe of CONTRIBUTING.md --- */

enum color { COLOR_NONE, COLOR_RED, COLOR_BLUE };

struct paint {
    enum color color;
    int64_t coats;
    nsec drying;
    double gloss;
    const char *brand;
    bool outside;
    enum tristate primer;
};

#define FIELD(member) SETTING_FIELD(struct paint, member)

static const struct setting paint_table[] = {
    { "paint", SHAPE_OBJECT, .help = "how the house is painted", .shorthand = "brand" },
    { "paint.color", SHAPE_WORD, .field = FIELD(color), .fallback = "blue",
      SETTING_WORDS("red|blue", COLOR_RED, COLOR_BLUE), .help = "colour of the house",
      .writers = SETTING_BY_PROJECT },
    { "paint.coats", SHAPE_INT, .field = FIELD(coats), .fallback = "2", .min = 1, .max = 5,
      .flags = SETTING_RECORDED, .help = "number of coats", .option = { "coats", .value = "N" },
      .since = "0.2.0" },
    { "paint.drying", SHAPE_DURATION, .field = FIELD(drying), .fallback = "90m",
      .flags = SETTING_RECORDED | SETTING_REMOVABLE, .help = "time between two coats" },
    { "paint.gloss", SHAPE_NUMBER, .field = FIELD(gloss), .unset = NAN, .help = "gloss" },
    { "paint.brand", SHAPE_STRING, .field = FIELD(brand), .shown = "the cheapest",
      .help = "brand" },
    { "paint.outside", SHAPE_WORD, .field = FIELD(outside), SETTING_WORDS("no|yes", false, true),
      .help = "paint the outside" },
    { "paint.primer", SHAPE_BOOL, .field = FIELD(primer), .fallback = "true",
      .help = "prime first" },
    { 0 },
};

static void read_paint(const char *text, struct paint *ret)
{
    struct json *tree = json_merge(arena, settings_defaults(arena, paint_table), tree_of(text));
    settings_read_table(arena, paint_table, tree, ret);
}

static void test_a_row_brings_its_field(void **state)
{
    struct paint p;
    read_paint("{}", &p);
    assert_int_equal(p.color, COLOR_BLUE);
    assert_int_equal(p.coats, 2);
    assert_true(p.drying == 5400 * NSEC_PER_SEC && isnan(p.gloss));
    assert_null(p.brand);
    assert_false(p.outside);
    assert_int_equal(p.primer, TRI_UNSET);
    read_paint("{paint: {color: red, coats: 3, drying: 10s, gloss: 1, brand: x, outside: 'yes', "
               "primer: false}}",
               &p);
    assert_true(p.color == COLOR_RED && p.coats == 3 && p.drying == 10 * NSEC_PER_SEC);
    assert_true(p.gloss == 1 && p.outside && p.primer == TRI_FALSE);
    assert_string_equal(p.brand, "x");
    /* null restores a default, or switches off what can be switched off. */
    read_paint("{paint: {coats: null, drying: null}}", &p);
    assert_true(p.coats == 2 && p.drying == 0);
}

static void refuse(const char *text, unsigned writer, const char *message)
{
    struct err e = { 0 };
    const struct shape *shape = settings_shape(arena, paint_table, writer);
    assert_int_equal(shape_check(tree_of(text), shape, "t.yaml", &e), -(int)ERR_CONFIG);
    assert_string_equal(e.msg, message);
}

static void test_a_row_brings_its_check(void **state)
{
    refuse("paint:\n  coats: 6", 0, "t.yaml:2:10: 'paint.coats' must be between 1 and 5");
    refuse("paint: {coat: 1}", 0, "t.yaml:1:9: unknown key 'paint.coat' (did you mean 'coats'?)");
    refuse("paint: {color: green}", 0,
           "t.yaml:1:16: 'paint.color' must be one of red|blue, not 'green'");
    refuse("paint: {coats: 1}", SETTING_BY_PROJECT, "t.yaml:1:9: unknown key 'paint.coats'");
}

static void test_a_row_brings_its_schema(void **state)
{
    struct json *file = settings_schema(arena, paint_table, "task-file");
    struct json *full = json_pointer(file, STR("/properties/paint/anyOf/0"));
    const struct json *coats = json_pointer(full, STR("/properties/coats"));
    assert_int_equal(json_int(json_get(coats, "minimum"), 0), 1);
    assert_int_equal(json_int(json_get(coats, "maximum"), 0), 5);
    assert_string_equal(json_cstring(json_get(coats, "description"), ""), "Number of coats.");
    assert_string_equal(json_cstring(json_item(json_get(coats, "type"), 1), ""), "null");
    assert_string_equal(json_cstring(json_pointer(file, STR("/properties/paint/anyOf/1/type")), ""),
                        "string");
    struct json *task = settings_schema(arena, paint_table, "task");
    coats = json_pointer(task, STR("/properties/paint/properties/coats"));
    assert_string_equal(json_cstring(json_get(coats, "type"), ""), "integer");
    assert_null(settings_schema(arena, paint_table, "other"));
}

static const struct json *find_leaf(const struct json *list, const char *path)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *leaf = json_item(list, i);
        if (strcmp(json_cstring(json_get(leaf, "path"), ""), path) == 0) {
            return leaf;
        }
    }
    return NULL;
}

static void test_a_row_brings_its_explanation(void **state)
{
    struct layers l = { 0 };
    struct json *list = json_array(arena);
    layers_add(&l, "task", "t.yaml", tree_of("paint: {color: null, coats: 3}"));
    settings_explain_defaults(arena, paint_table, &l, list);
    assert_null(find_leaf(list, "paint.color")); /* removed by the task */
    assert_null(find_leaf(list, "paint.coats")); /* set by the task */
    const struct json *leaf = find_leaf(list, "paint.drying");
    assert_string_equal(json_cstring(json_get(leaf, "layer"), ""), "default");
    assert_true(json_real(json_get(leaf, "value"), 0) == 5400);
    leaf = find_leaf(list, "paint.brand"); /* not known before the run */
    assert_true(json_is(json_get(leaf, "value"), JSON_NULL));
    assert_string_equal(json_cstring(json_get(leaf, "source"), ""), "the cheapest");
    assert_null(find_leaf(list, "paint.gloss")); /* has no default */
    layers_add(&l, "request", "command line", tree_of("paint: null"));
    list = json_array(arena);
    settings_explain_defaults(arena, paint_table, &l, list);
    assert_int_equal(json_len(list), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rows_are_consistent),     TEST(test_defaults_are_valid),
        TEST(test_items_are_described),     TEST(test_writers),
        TEST(test_a_row_brings_its_field),  TEST(test_a_row_brings_its_check),
        TEST(test_a_row_brings_its_schema), TEST(test_a_row_brings_its_explanation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
