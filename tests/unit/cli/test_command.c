/* SPDX-License-Identifier: MIT
 *
 * A walk over the table of commands: whatever is added must be named, worded and sized like the
 * rest, because help, pages and completions are made from it without a second look.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/macro.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/text.h"
#include "record/reason.h"

#define CHECK(condition, where, what)                             \
    do {                                                          \
        if (!(condition)) {                                       \
            fail_msg("%s: %s (%s)", (where), (what), #condition); \
        }                                                         \
    } while (0)

static bool is_plain(const char *name)
{
    return name[0] != '\0' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name);
}

/* A value may be a word of a file format, as the record and its JSON have them. */
static bool is_word(const char *name)
{
    return name[0] != '\0' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name);
}

static bool is_phrase(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && text[n - 1] != '.' && text[n - 1] != ' ' &&
           (isupper((unsigned char)text[0]) == 0 || isupper((unsigned char)text[1]) != 0);
}

static void check_option(const struct option *o, const char *where)
{
    bool flag = o->kind == OPTION_FLAG;
    CHECK(is_plain(o->name), where, o->name);
    CHECK(strncmp(o->name, "no-", 3) != 0, where, "negate with OPTION_NEGATABLE");
    CHECK(o->letter == 0 || isalpha((unsigned char)o->letter), where, o->name);
    CHECK(o->help != NULL && is_phrase(o->help), where, o->name);
    CHECK((o->value == NULL) == (flag || (o->kind == OPTION_ENUM && o->value == NULL)), where,
          o->name);
    CHECK((o->words != NULL) == (o->kind == OPTION_ENUM), where, o->name);
    for (const char *const *w = o->words; w != NULL && *w != NULL; w++) {
        CHECK(is_word(*w), where, *w);
    }
    CHECK((o->min == 0 && o->max == 0) || (o->kind == OPTION_INT && o->min <= o->max), where,
          o->name);
    CHECK((o->flags & OPTION_NEGATABLE) == 0 || flag, where, o->name);
    CHECK((o->flags & OPTION_BARE) == 0 || o->kind == OPTION_PAIR, where, o->name);
    CHECK((o->flags & OPTION_POSITIVE) == 0 || o->kind == OPTION_DURATION, where, o->name);
    char text[OPTION_TEXT_LEN];
    CHECK(strlen(option_text(o, text)) < OPTION_TEXT_LEN - 1, where, "too long");
}

/* A command may accept more words than a global option does. */
static bool extends(const struct option *a, const struct option *global)
{
    bool all = a->kind == OPTION_ENUM && global->kind == OPTION_ENUM && a->letter == 0;
    for (const char *const *w = global->words; all && w != NULL && *w != NULL; w++) {
        const char *const *same = a->words;
        while (*same != NULL && strcmp(*same, *w) != 0) {
            same++;
        }
        all = *same != NULL;
    }
    return all;
}

static void check_unique(const struct option *a, const struct option *b, const char *where)
{
    for (; a != NULL && a->name != NULL; a++) {
        for (const struct option *o = b; o->name != NULL; o++) {
            if (o != a) {
                CHECK(strcmp(a->name, o->name) != 0 || extends(a, o), where, a->name);
                CHECK(a->letter == 0 || a->letter != o->letter, where, a->name);
                CHECK(a->old_letter == 0 || a->old_letter != o->letter, where, a->name);
                CHECK(a->old_letter == 0 || a->old_letter != o->old_letter, where, a->name);
                CHECK(a->old_name == NULL || strcmp(a->old_name, o->name) != 0, where, a->name);
            }
        }
    }
}

static void check_options(const struct command *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct option *options = command_options(c, a);
    for (const struct option *o = options; o != NULL && o->name != NULL; o++) {
        check_option(o, c->name);
    }
    check_unique(options, command_globals(), c->name);
    if (options != NULL) {
        check_unique(options, options, c->name);
    }
}

/* docs/adr/0012-command-map.md: a letter means the same option in every command. */
static void check_letters(const struct command *c, const char *names[128])
{
    CLEANUP(arena) struct arena *a = arena_new();
    for (const struct option *o = command_options(c, a); o != NULL && o->name != NULL; o++) {
        unsigned letter = (unsigned char)o->letter;
        if (letter != 0 && names[letter] != NULL) {
            CHECK(strcmp(names[letter], o->name) == 0, c->name, o->name);
        }
        names[letter] = o->name;
        CHECK(o->old_letter == 0 || isalpha((unsigned char)o->old_letter), c->name, o->name);
        CHECK(o->old_name == NULL || is_plain(o->old_name), c->name, o->name);
    }
}

static void test_letters(void **state)
{
    const char *names[128] = { NULL };
    for (const struct option *o = command_globals(); o->name != NULL; o++) {
        names[(unsigned char)o->letter] = o->name;
    }
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        check_letters(*c, names);
    }
}

static void check_positionals(const struct command *c)
{
    bool optional = false;
    for (const struct positional *p = c->positionals; p != NULL && p->name != NULL; p++) {
        CHECK(p->help != NULL && is_phrase(p->help), c->name, p->name);
        CHECK(!optional || p->optional, c->name, "only the last ones may be optional");
        CHECK(!p->repeat || p[1].name == NULL, c->name, "only the last one may repeat");
        CHECK((p->complete == COMPLETE_WORDS) == (p->words != NULL), c->name, p->name);
        optional = p->optional;
    }
}

static void test_commands(void **state)
{
    check_unique(command_globals(), command_globals(), "globals");
    for (const struct option *o = command_globals(); o->name != NULL; o++) {
        check_option(o, "globals");
    }
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        CHECK(is_plain((*c)->name), (*c)->name, "name");
        CHECK(is_phrase((*c)->summary), (*c)->name, "summary");
        CHECK((*c)->run != NULL, (*c)->name, "run");
        CHECK(command_find((*c)->name) == *c, (*c)->name, "found by its name");
        check_options(*c);
        check_positionals(*c);
        for (const struct command_example *x = (*c)->examples; x != NULL && x->line != NULL; x++) {
            CHECK(strstr(x->line, "cinch ") != NULL, (*c)->name, x->line);
            CHECK(strlen(x->line) <= 78, (*c)->name, x->line);
            CHECK(is_phrase(x->why), (*c)->name, x->why);
        }
    }
}

static void check_width(const struct buf *text, size_t width, const char *where)
{
    struct str rest = buf_str(text);
    while (rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        if (text_width(line) > width) {
            fail_msg("%s: wider than %zu: %.*s", where, width, STR_ARG(line));
        }
        if (str_ends(line, STR(" "))) {
            fail_msg("%s: blank at the end: '%.*s'", where, STR_ARG(line));
        }
    }
}

static size_t count_lines(const struct buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++) {
        n += text->ptr[i] == '\n';
    }
    return n;
}

static void test_overview_is_one_screen(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    help_overview((struct help_style) { .width = 80 }, &out);
    check_width(&out, 80, "overview");
    assert_true(count_lines(&out) <= 23); /* the 24th is for the prompt */
}

static void test_pages_fit(void **state)
{
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        CLEANUP(arena) struct arena *a = arena_new();
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        help_command(*c, (struct help_style) { .width = 80 }, &out);
        check_width(&out, 80, (*c)->name);
        for (const struct option *o = command_options(*c, a); o != NULL && o->name != NULL; o++) {
            char text[OPTION_TEXT_LEN];
            bool shown = strstr(out.ptr, option_text(o, text)) != NULL;
            CHECK(shown == ((o->flags & OPTION_HIDDEN) == 0), (*c)->name, o->name);
        }
    }
}

static bool is_explained(int status)
{
    for (const struct manual_status *s = manual_statuses; s->status >= 0; s++) {
        if (s->status == status) {
            return true;
        }
    }
    return false;
}

static void test_every_exit_status_is_explained(void **state)
{
    for (int i = 0; i < (int)ERR_CODE_MAX; i++) {
        enum err_code code = (enum err_code)i;
        CHECK(is_explained(err_exit_status(code)), err_word(code), "not in the manual");
    }
    for (int i = (int)REASON_NONE + 1; i < (int)REASON_MAX; i++) {
        enum reason reason = (enum reason)i;
        int status = reason_exit_status(reason, EXIT_NATIVE, (struct engine_exit) { 0 });
        CHECK(is_explained(status), reason_word(reason), "not in the manual");
    }
}

static void test_unknown(void **state)
{
    struct err e;
    assert_int_equal(command_unknown("hepl", &e), -ERR_USAGE);
    assert_string_equal(e.msg, "unknown command 'hepl'; did you mean help?");
    assert_int_equal(command_unknown("frobnicate", &e), -ERR_USAGE);
    assert_string_equal(e.msg, "unknown command 'frobnicate'");
    assert_null(command_find("hepl"));
    assert_null(command_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_overview_is_one_screen),
        cmocka_unit_test(test_pages_fit),
        cmocka_unit_test(test_every_exit_status_is_explained),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
