/* SPDX-License-Identifier: MIT
 *
 * The man page in mdoc(7), held to `mandoc -Tlint` by a test.
 */
#include "cli/help.h"

#include <ctype.h>
#include <string.h>

#include "cli/command.h"
#include "cli/manual.h"
#include "cli/option.h"
#include "cli/text.h"

#define MAN_DATE "November 15, 2026" /* of the release that CINCH_VERSION names */

enum { LINE = 78 }; /* mandoc frowns on source lines of more than 80 */

/* One line of text. A '-' that is no hyphen between letters is an ASCII dash, to be copied; in
 * literal text all are, and the quotes and accents too. */
static void add_escaped(struct buf *out, struct str line, bool literal)
{
    if (line.len > 0 && (line.ptr[0] == '.' || line.ptr[0] == '\'')) {
        buf_adds(out, "\\&");
    }
    for (size_t i = 0; i < line.len; i++) {
        char c = line.ptr[i];
        bool hyphen = i > 0 && i + 1 < line.len && isalpha((unsigned char)line.ptr[i - 1]) != 0 &&
                      isalpha((unsigned char)line.ptr[i + 1]) != 0;
        if (c == '\\') {
            buf_adds(out, "\\e");
        } else if (c == '-' && (literal || !hyphen)) {
            buf_adds(out, "\\-");
        } else if (c == '\'') {
            buf_adds(out, "\\(aq");
        } else if (literal && (c == '~' || c == '^' || c == '`')) {
            buf_adds(out, c == '~' ? "\\(ti" : c == '^' ? "\\(ha" : "\\(ga");
        } else {
            buf_add(out, str_n(&c, 1));
        }
    }
    buf_adds(out, "\n");
}

/* Running text: each sentence on lines of its own, as mdoc wants it. */
static void add_text(struct buf *out, const char *text)
{
    struct str rest = str_of(text);
    while (rest.len > 0) {
        size_t end = str_find(rest, STR(". "));
        struct str sentence = str_slice(rest, 0, end + 1);
        rest = str_trim(str_slice(rest, end + 1, rest.len));
        CLEANUP(buf) struct buf wrapped = BUF_INIT(BUF_TEXT);
        text_wrap(&wrapped, sentence, (struct text_shape) { 0, 0, LINE - 10 });
        struct str lines = buf_str(&wrapped);
        while (lines.ptr != NULL) {
            add_escaped(out, str_split(&lines, '\n'), false);
        }
    }
}

/* An argument of a macro: never taken for a macro itself. */
static void add_argument(struct buf *out, const char *macro, const char *text)
{
    CLEANUP(buf) struct buf escaped = BUF_INIT(BUF_TEXT);
    add_escaped(&escaped, str_of(text), true);
    const char *quote = strchr(text, ' ') != NULL ? "\"" : "";
    buf_addf(out, " %s %s\\&%.*s%s", macro, quote, (int)(escaped.len - 1), escaped.ptr, quote);
}

static void add_option(struct buf *out, const struct option *o)
{
    CLEANUP(buf) struct buf value = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf help = BUF_INIT(BUF_TEXT);
    option_placeholder(o, &value);
    buf_adds(out, ".It");
    if (o->letter != 0) {
        buf_addf(out, " Fl %c ,", o->letter);
    }
    buf_addf(out, " Fl -%s%s", (o->flags & OPTION_NEGATABLE) != 0 ? "[no-]" : "", o->name);
    if (value.len > 1) {
        add_argument(out, "Ar", value.ptr + 1);
    }
    buf_adds(out, "\n");
    help_option(o, &help);
    add_text(out, help.ptr);
}

static void add_options(struct buf *out, const struct option *o)
{
    if (o == NULL || o->name == NULL) {
        return;
    }
    buf_adds(out, ".Bl -tag -width Ds\n");
    for (const struct option *first = o; o->name != NULL; o++) {
        if (o->section != NULL && o != first) {
            buf_addf(out, ".El\n.Pp\n%s:\n.Bl -tag -width Ds\n", o->section);
        }
        if ((o->flags & OPTION_HIDDEN) == 0) {
            add_option(out, o);
        }
    }
    buf_adds(out, ".El\n");
}

static void add_command(struct buf *out, const struct command *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    buf_addf(out, ".Ss cinch %s\n", c->name);
    for (size_t i = 0;; i++) {
        CLEANUP(buf) struct buf usage = BUF_INIT(BUF_TEXT);
        if (!help_usage(c, i, &usage)) {
            break;
        }
        CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
        buf_addf(&line, "cinch %s %s", c->name, usage.ptr == NULL ? "" : usage.ptr);
        buf_adds(out, i == 0 ? ".Bd -literal\n" : "");
        add_escaped(out, str_trim(buf_str(&line)), true);
    }
    buf_adds(out, ".Ed\n");
    for (const char *const *d = c->description; d != NULL && *d != NULL; d++) {
        buf_adds(out, ".Pp\n");
        add_text(out, *d);
    }
    if (c->positionals != NULL && c->positionals->name != NULL) {
        buf_adds(out, ".Bl -tag -width Ds\n");
        for (const struct positional *p = c->positionals; p->name != NULL; p++) {
            buf_adds(out, ".It");
            add_argument(out, "Ar", p->name);
            buf_adds(out, "\n");
            add_text(out, p->help);
        }
        buf_adds(out, ".El\n");
    }
    const struct option *options = command_options(c, a);
    if (options != NULL && options->section != NULL) {
        buf_addf(out, ".Pp\n%s:\n", options->section);
    }
    add_options(out, options);
}

static void add_entries(struct buf *out, const char *macro, const struct manual_entry *m)
{
    buf_adds(out, ".Bl -tag -width Ds\n");
    for (; m->term != NULL; m++) {
        buf_adds(out, ".It");
        add_argument(out, macro, m->term);
        buf_adds(out, "\n");
        add_text(out, m->text);
    }
    buf_adds(out, ".El\n");
}

static void add_statuses(struct buf *out)
{
    buf_adds(out, ".Sh EXIT STATUS\n.Bl -tag -width Ds\n");
    for (const struct manual_status *s = manual_statuses; s->status >= 0; s++) {
        buf_addf(out, ".It %d\n", s->status);
        add_text(out, s->text);
    }
    buf_adds(out, ".El\n");
}

static void add_examples(struct buf *out)
{
    const char *between = ".Sh EXAMPLES\n"; /* no .Pp right after a heading */
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        for (const struct command_example *x = (*c)->examples; x != NULL && x->line != NULL; x++) {
            CLEANUP(buf) struct buf why = BUF_INIT(BUF_TEXT);
            buf_addf(&why, "%c%s:", toupper((unsigned char)x->why[0]), x->why + 1);
            buf_adds(out, between);
            between = ".Pp\n";
            add_text(out, why.ptr);
            buf_adds(out, ".Bd -literal -offset indent\n");
            add_escaped(out, str_of(x->line), true);
            buf_adds(out, ".Ed\n");
        }
    }
}

void help_man(struct buf *out)
{
    buf_adds(out, ".\\\" Made by 'cinch help --man'; do not edit.\n"
                  ".Dd " MAN_DATE "\n.Dt CINCH 1\n.Os\n"
                  ".Sh NAME\n.Nm cinch\n.Nd run any coding agent under one contract\n"
                  ".Sh SYNOPSIS\n.Nm\n.Op Ar OPTIONS\n.Ar COMMAND\n.Op Ar ...\n"
                  ".Sh DESCRIPTION\n");
    for (const char *const *p = manual_about; *p != NULL; p++) {
        buf_adds(out, p == manual_about ? "" : ".Pp\n");
        add_text(out, *p);
    }
    buf_adds(out, ".Sh COMMANDS\n");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        add_command(out, *c);
    }
    buf_adds(out,
             ".Sh OPTIONS\nAll commands accept these, before or after the name of the command.\n");
    add_options(out, command_globals());
    buf_adds(out, ".Sh ENVIRONMENT\n");
    add_entries(out, "Ev", manual_environment);
    buf_adds(out, ".Sh FILES\n");
    add_entries(out, "Pa", manual_settings);
    buf_adds(out, ".Pp\nA run directory holds:\n");
    add_entries(out, "Pa", manual_files);
    add_statuses(out);
    add_examples(out);
}
