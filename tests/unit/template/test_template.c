/* SPDX-License-Identifier: MIT
 *
 * Templates as a caller sees them: errors with position, limits, loaders, reuse. What the language
 * means is held against Jinja2 itself by template_against_jinja2.py.
 */
#include "template/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"

struct fixture {
    struct arena *arena;
    struct err e;
    struct buf out;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    buf_init(&f->out, BUF_TEXT);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    (void)arena_free(f->arena);
    buf_done(&f->out);
    free(f);
    return 0;
}

static int render_with(struct fixture *f, const struct template_opts *opts, const char *text,
                       const char *json, enum template_fault *ret_fault)
{
    struct json *vars = NULL;
    if (json != NULL) {
        assert_int_equal(json_parse(f->arena, str_of(json), NULL, &vars, &f->e), 0);
    }
    struct template_set *set = template_set_new(opts);
    struct template_vars *v = template_vars_new(vars);
    const struct template *t = NULL;
    int r = template_parse(set, "main.md", str_of(text), &t, &f->e);
    r = r < 0 ? r : template_render(t, v, &f->out, &f->e);
    if (ret_fault != NULL) {
        *ret_fault = template_set_fault(set);
    }
    (void)template_vars_free(v);
    (void)template_set_free(set);
    return r;
}

static void assert_renders(struct fixture *f, const char *text, const char *json, const char *want)
{
    buf_reset(&f->out);
    int r = render_with(f, NULL, text, json, NULL);
    if (r < 0) {
        fail_msg("%s: %s", text, f->e.msg);
    }
    assert_string_equal(f->out.ptr == NULL ? "" : f->out.ptr, want);
}

static void assert_fails(struct fixture *f, const struct template_opts *opts, const char *text,
                         enum err_code code, const char *message)
{
    int r = render_with(f, opts, text, "{\"name\": \"x\", \"list\": [1, 2]}", NULL);
    if (r == 0) {
        fail_msg("rendered: %s", text);
    }
    if (r != -(int)code || strstr(f->e.msg, message) == NULL) {
        fail_msg("%s: got %s: %s", text, err_word(f->e.code), f->e.msg);
    }
}

static void appends_to_the_output(void **state)
{
    struct fixture *f = *state;
    buf_adds(&f->out, "before ");
    assert_int_equal(render_with(f, NULL, "{{ a }}", "{\"a\": 1}", NULL), 0);
    assert_string_equal(f->out.ptr, "before 1");
}

static void failure_leaves_the_output(void **state)
{
    struct fixture *f = *state;
    buf_adds(&f->out, "before ");
    assert_true(render_with(f, NULL, "much text {{ nope }}", "{}", NULL) < 0);
    assert_string_equal(f->out.ptr, "before ");
}

static void add_name(void *self, struct str name)
{
    buf_addf(self, "%.*s ", STR_ARG(name));
}

static void undefined_prints_as_nothing(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf names = BUF_INIT(1000);
    struct template_opts opts = { .undefined = { add_name, &names } };
    static const char text[] =
        "[{{ nope }}|{{ d.gone }}|{{ d['gone'] }}|{{ l[9] }}|{% for x in nope %}x{% endfor %}|"
        "{% if nope %}y{% endif %}{{ nope == other }}|{{ nope | default('z') }}|{{ nope | upper }}|"
        "{{ nope is defined }}|{{ nope | length }}|{{ 'a' ~ nope }}]";
    assert_int_equal(render_with(f, &opts, text, "{\"d\": {}, \"l\": []}", NULL), 0);
    assert_string_equal(f->out.ptr, "[|||||True|z||False|0|a]");
    assert_string_equal(names.ptr, "nope gone gone nope nope ");
    assert_fails(f, &opts, "{{ nope.deeper }}", ERR_CONFIG, "'nope' is undefined");
    assert_fails(f, &opts, "{{ nope + 1 }}", ERR_CONFIG, "'nope' is undefined");
    assert_fails(f, &opts, "{{ ''.__class__ }}", ERR_DENIED, "__class__");
}

static void errors_name_file_line_and_variable(void **state)
{
    struct fixture *f = *state;
    assert_fails(f, NULL, "one\ntwo\n{{ nope }}", ERR_CONFIG, "main.md:3: 'nope' is undefined");
    assert_fails(f, NULL, "one\n{{ nope|tojson }}", ERR_CONFIG,
                 "main.md:2: 'nope' is undefined and cannot become JSON");
    assert_fails(f, NULL, "{{ {'a': [nope]}|tojson }}", ERR_CONFIG,
                 "main.md:1: 'nope' is undefined and cannot become JSON");
    assert_fails(f, NULL, "a\n{{ name.foo }}", ERR_CONFIG,
                 "main.md:2: a str object has no attribute 'foo'");
    assert_fails(f, NULL, "\n\n{{ list[7] }}", ERR_CONFIG,
                 "main.md:3: a list object has no element 7");
    assert_fails(f, NULL, "a\n{% if %}", ERR_PARSE, "main.md:2: ");
    assert_fails(f, NULL, "{% for x in list %}\n{% endif %}", ERR_PARSE,
                 "main.md:2: unknown tag 'endif' where 'endfor' was expected");
    assert_fails(f, NULL, "{{ name\n + 1 }}", ERR_CONFIG, "main.md:2: '+' does not work on");
    assert_fails(f, NULL, "x\n{{ name|nope }}", ERR_PARSE,
                 "main.md:2: there is no filter named 'nope'");
    assert_fails(f, NULL, "{{ name.__class__ }}", ERR_DENIED, "'__class__'");
    assert_fails(f, NULL, "{% extends 'x' %}", ERR_PARSE, "'extends' of Jinja2 is not supported");
    assert_fails(f, NULL, "{% macro m(a) %}\n{{ a }}{% endmacro %}\n\n{{ m() }}", ERR_CONFIG,
                 "main.md:2: parameter 'a' was not provided");
}

static void faults_are_finer_than_codes(void **state)
{
    struct fixture *f = *state;
    enum template_fault fault;
    assert_true(render_with(f, NULL, "{{ nope }}", NULL, &fault) < 0);
    assert_int_equal(fault, TEMPLATE_FAULT_UNDEFINED);
    assert_true(render_with(f, NULL, "{{ 1 + 'a' }}", NULL, &fault) < 0);
    assert_int_equal(fault, TEMPLATE_FAULT_VALUE);
    assert_int_equal(render_with(f, NULL, "x", NULL, &fault), 0);
    assert_int_equal(fault, TEMPLATE_FAULT_NONE);
}

static void compiles_once_renders_many(void **state)
{
    struct fixture *f = *state;
    struct template_set *set = template_set_new(NULL);
    const struct template *t = NULL;
    char text[] = "{% for x in l %}{{ x }}{% endfor %}";
    assert_int_equal(template_parse(set, "t", str_of(text), &t, &f->e), 0);
    memset(text, 'z', sizeof text - 1); /* the text need not outlive the call */
    for (int i = 0; i < 3; i++) {
        struct json *vars = json_object(f->arena);
        struct json *list = json_array(f->arena);
        json_push(f->arena, list, json_integer(f->arena, i));
        json_setc(f->arena, vars, "l", list);
        struct template_vars *v = template_vars_new(vars);
        buf_reset(&f->out);
        assert_int_equal(template_render(t, v, &f->out, &f->e), 0);
        assert_int_equal(template_render(t, v, &f->out, &f->e), 0);
        assert_int_equal(f->out.len, 2);
        assert_int_equal(f->out.ptr[1], '0' + i);
        (void)template_vars_free(v);
    }
    (void)template_set_free(set);
}

static void errors_may_be_ignored(void **state)
{
    struct fixture *f = *state;
    struct template_set *set = template_set_new(NULL);
    const struct template *t = NULL;
    assert_int_equal(template_parse(set, "t", STR("{{ x"), &t, NULL), -ERR_PARSE);
    assert_int_equal(template_parse(set, "t", STR("{{ x }}{% include 'y' %}"), &t, NULL), 0);
    assert_int_equal(template_render(t, NULL, &f->out, NULL), -ERR_CONFIG);
    (void)template_set_free(set);
}

static void text_must_be_utf8(void **state)
{
    struct fixture *f = *state;
    assert_fails(f, NULL, "a\xff", ERR_PARSE, "UTF-8");
}

static void the_buffers_own_maximum_counts(void **state)
{
    struct fixture *f = *state;
    buf_done(&f->out);
    buf_init(&f->out, 10);
    assert_fails(f, NULL, "{{ 'x' * 20 }}", ERR_LIMIT, "main.md:1");
    assert_int_equal(f->out.len, 0);
}

/* Every bomb ends with the limit that it hits, and says where. */
static void bombs_end(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text, *message;
    } bombs[] = {
        { "{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}", "main.md:1: calls of macros" },
        { "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
          "rounds" },
        { "{{ range(999999999) }}", "range() with more than" },
        { "{{ 'x' * 999999999999 }}", "elements" },
        { "{{ [1] * 999999999999 }}", "elements" },
        { "{{ 'x'|center(999999999999) }}", "elements" },
        { "{{ '%9999999999d' % 1 }}", "width" },
        { "{{ 9223372036854775807 * 2 }}", "64 bits" },
        { "{% set ns = namespace(x='ab') %}{% for i in range(90) %}{% set ns.x = ns.x ~ ns.x %}"
          "{% endfor %}",
          "longer than" },
        { "{% set ns = namespace(x=[1, 2]) %}{% for i in range(90) %}{% set ns.x = ns.x + ns.x %}"
          "{% endfor %}",
          "main.md:1: " },
        { "{% set ns = namespace(x=[1]) %}{% for i in range(9000) %}{% set ns.x = [ns.x] %}"
          "{% endfor %}{{ ns.x }}",
          "nest too deep" },
        { "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
          "{% endfor %}{{ ns.x == [ns.x] }}{{ ns.x }}",
          "main.md:1: " },
        { "{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}", "recursive loop" },
        { "{{ '{{' * 1000 }}{% for i in range(9999) %}{{ 'y' * 9999 }}{% endfor %}",
          "longer than" },
        { "{% for i in range(9999) %}{% set x = 'y' * 9999 %}{% endfor %}{% for i in range(99999) "
          "%}"
          "{% set x = ('y' * 99999).replace('y', 'zz') %}{% endfor %}",
          "main.md:1: " },
    };
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        assert_fails(f, NULL, bombs[i].text, ERR_LIMIT, bombs[i].message);
    }
}

static void repeated(struct buf *b, const char *what, int times)
{
    for (int i = 0; i < times; i++) {
        buf_adds(b, what);
    }
}

static void deep_templates_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const parts[] = { "{% if name %}",   "{{ [",        "{{ (",
                                         "{{ - ",           "{{ not ",     "{{ {1:",
                                         "{{ a[",           "{{ a(",       "{% for x in list %}",
                                         "{{ 1 if 1 else ", "{% set x %}", "{% call m() %}" };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
        const char *again = strncmp(parts[i], "{{", 2) == 0 ? parts[i] + 2 : parts[i];
        buf_adds(&b, parts[i]);
        repeated(&b, again, 20000);
        assert_fails(f, NULL, b.ptr, ERR_LIMIT, "main.md:1: ");
    }
    static const char *const chains[] = { "|upper", ".a", "[0]", "()", " + 1", " ** 1", " and 1" };
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
        buf_adds(&b, "{{ a");
        repeated(&b, chains[i], 20000);
        buf_adds(&b, " }}");
        assert_fails(f, NULL, b.ptr, ERR_LIMIT, "inside each other");
    }
}

/* Many names, branches and includes must not take quadratic time or memory. */
static void wide_templates_compile(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 9000; i++) {
        buf_addf(&b, "{%% if name %%}{%% set v%d = %d %%}{%% endif %%}{{ v%d }}\n", i, i, i);
    }
    buf_reset(&f->out);
    assert_int_equal(render_with(f, NULL, b.ptr, "{\"name\": 1}", NULL), 0);
    assert_true(f->out.len > 9000);
    buf_reset(&b);
    for (int i = 0; i < 9000; i++) {
        buf_addf(&b, "{%% set v%d = 1 %%}{%% include 'x' ignore missing %%}", i);
    }
    assert_fails(f, NULL, b.ptr, ERR_LIMIT, "includes and variables");
}

static void own_limits(void **state)
{
    struct fixture *f = *state;
    struct template_opts opts = { .limits = { .max_rounds = 3 } };
    assert_fails(f, &opts, "{% for x in range(4) %}{% endfor %}", ERR_LIMIT, "more than 3 rounds");
    opts = (struct template_opts) { .limits = { .max_source = 5 } };
    assert_fails(f, &opts, "123456", ERR_LIMIT, "larger than 5 bytes");
    opts = (struct template_opts) { .limits = { .max_output = 5 } };
    assert_fails(f, &opts, "123456", ERR_LIMIT, "longer than 5 bytes");
    opts = (struct template_opts) { .limits = { .max_calls = 2 } };
    assert_fails(f, &opts, "{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}{{ m(5) }}", ERR_LIMIT,
                 "deeper than 2");
    opts = (struct template_opts) { .limits = { .max_steps = 100 } };
    assert_fails(f, &opts, "{% for x in range(99) %}{{ x + 1 }}{% endfor %}", ERR_LIMIT,
                 "more than 100 steps");
    opts = (struct template_opts) { .limits = { .max_nesting = 3 } };
    assert_fails(f, &opts, "{{ ((((1)))) }}", ERR_LIMIT, "main.md:1");
    opts = (struct template_opts) { .limits = { .max_memory = 100000 } };
    assert_fails(f, &opts, "{% for x in range(9999) %}{% set y = [1, 2, 3] %}{% endfor %}",
                 ERR_LIMIT, "more than 100000 bytes");
}

static void options_change_white_space(void **state)
{
    struct fixture *f = *state;
    const char *text = "  {% if 1 %}\nx\n  {% endif %}\n";
    struct template_opts opts = { .trim_blocks = true, .lstrip_blocks = true };
    assert_int_equal(render_with(f, &opts, text, NULL, NULL), 0);
    assert_string_equal(f->out.ptr, "x\n");
    buf_reset(&f->out);
    opts = (struct template_opts) { .keep_trailing_newline = true };
    assert_int_equal(render_with(f, &opts, text, NULL, NULL), 0);
    assert_string_equal(f->out.ptr, "  \nx\n  \n");
    assert_renders(f, text, NULL, "  \nx\n  ");
}

/* --- loaders --- */

struct memory {
    unsigned reads;
};

static int read_memory(void *self, const char *name, struct buf *ret, struct err *e)
{
    struct memory *m = self;
    m->reads++;
    if (strcmp(name, "part") == 0) {
        return buf_append(ret, STR("[{{ x }}]"), e);
    }
    if (strcmp(name, "bad") == 0) {
        return buf_append(ret, STR("one\n{{ nope }}"), e);
    }
    if (strcmp(name, "broken") == 0) {
        return buf_append(ret, STR("one\n{% if"), e);
    }
    if (strcmp(name, "cycle") == 0) {
        return buf_append(ret, STR("{% include 'cycle' %}"), e);
    }
    if (strcmp(name, "macros") == 0) {
        return buf_append(ret,
                          STR("{% macro hi(a) %}hi {{ a }} {{ b }}{% endmacro %}"
                              "{% set ns.hi = hi %}"),
                          e);
    }
    return ERR(e, ERR_INPUT, "no '%s'", name);
}

static void included_files_load_once(void **state)
{
    struct fixture *f = *state;
    struct memory m = { 0 };
    struct template_opts opts = { .loader = { read_memory, &m } };
    assert_int_equal(
        render_with(f, &opts, "{% for x in [1,2,3] %}{% include 'part' %}{% endfor %}", NULL, NULL),
        0);
    assert_string_equal(f->out.ptr, "[1][2][3]");
    assert_int_equal(m.reads, 1);
}

static void errors_in_included_files(void **state)
{
    struct fixture *f = *state;
    struct memory m = { 0 };
    struct template_opts opts = { .loader = { read_memory, &m } };
    assert_fails(f, &opts, "a\n\n{% include 'bad' %}", ERR_CONFIG,
                 "bad:2: 'nope' is undefined (included at main.md:3)");
    assert_fails(f, &opts, "{% include 'broken' %}", ERR_PARSE, "broken:2: ");
    assert_fails(f, &opts, "{% include 'nope' %}", ERR_INPUT, "no 'nope' (included at main.md:1)");
    assert_fails(f, &opts, "{% include 'cycle' %}", ERR_LIMIT, "includes nest deeper than 64");
    assert_fails(f, NULL, "{% include 'x' %}", ERR_INPUT, "no directory");
}

static void macros_outlive_their_file(void **state)
{
    struct fixture *f = *state;
    struct memory m = { 0 };
    struct template_opts opts = { .loader = { read_memory, &m } };
    assert_int_equal(render_with(f, &opts,
                                 "{% set ns = namespace() %}{% with b = 2 %}{% include 'macros' %}"
                                 "{% endwith %}{{ ns.hi(1) }}",
                                 NULL, NULL),
                     0);
    assert_string_equal(f->out.ptr, "hi 1 2");
}

static void write_file(int dir, const char *name, const char *text)
{
    assert_int_equal(file_write_atomic(dir, name, str_of(text), 0644, NULL), 0);
}

static void directory_loader_stays_inside(void **state)
{
    struct fixture *f = *state;
    char root[] = "/tmp/cinch-template-XXXXXX";
    assert_non_null(mkdtemp(root));
    CLEANUP(fd) int outer = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(outer, "in", 0755), 0);
    assert_int_equal(mkdirat(outer, "in/sub", 0755), 0);
    write_file(outer, "secret", "SECRET");
    write_file(outer, "in/a", "A");
    write_file(outer, "in/sub/b", "B{% include 'a' %}");
    CLEANUP(fd) int dir = openat(outer, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(symlinkat("../secret", dir, "escape"), 0);
    assert_int_equal(symlinkat("../a", dir, "sub/inside"), 0);
    assert_int_equal(symlinkat("/etc/passwd", dir, "absolute"), 0);
    assert_int_equal(symlinkat("loop", dir, "loop"), 0);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    struct template_dir loader;
    template_dir_init(&loader, dir);
    struct template_opts opts = { .loader = loader.loader };

    assert_int_equal(
        render_with(f, &opts, "{% include 'sub/b' %}{% include './a' %}{% include 'sub/inside' %}",
                    NULL, NULL),
        0);
    assert_string_equal(f->out.ptr, "BAAA");
    static const struct {
        const char *name;
        enum err_code code;
    } refused[] = {
        { "../secret", ERR_INPUT },   { "sub/../../secret", ERR_INPUT },
        { "/etc/passwd", ERR_INPUT }, { "", ERR_INPUT },
        { "nope", ERR_INPUT },        { "sub", ERR_INPUT },
        { "fifo", ERR_INPUT },        { "escape", ERR_DENIED },
        { "absolute", ERR_DENIED },   { "a/b", ERR_INPUT },
        { "loop", ERR_DENIED },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "{%% include '%s' %%}", refused[i].name);
        assert_fails(f, &opts, text, refused[i].code, "main.md:1");
    }
    loader.max = 0;
    assert_fails(f, &opts, "{% include 'a' %}", ERR_LIMIT, "too large");
    assert_int_equal(file_remove_tree(AT_FDCWD, root, NULL), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(appends_to_the_output),
        T(failure_leaves_the_output),
        T(undefined_prints_as_nothing),
        T(errors_name_file_line_and_variable),
        T(faults_are_finer_than_codes),
        T(compiles_once_renders_many),
        T(errors_may_be_ignored),
        T(text_must_be_utf8),
        T(the_buffers_own_maximum_counts),
        T(bombs_end),
        T(deep_templates_are_refused),
        T(wide_templates_compile),
        T(own_limits),
        T(options_change_white_space),
        T(included_files_load_once),
        T(errors_in_included_files),
        T(macros_outlive_their_file),
        T(directory_loader_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
