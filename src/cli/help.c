/* SPDX-License-Identifier: MIT
 *
 * Help on a terminal: the overview and the page of one command.
 */
#include "cli/help.h"

#include <string.h>

#include "cli/command.h"
#include "cli/option.h"
#include "cli/terminal.h"
#include "cli/text.h"

enum {
    INDENT = 2,
    GAP = 2,
    TERM_MAX = 30, /* a longer option has its help on the next line */
    TERM_WIDTH = OPTION_TEXT_LEN + 8,
};

bool help_usage(const struct command *c, size_t i, struct buf *out)
{
    if (c->usage != NULL) {
        buf_adds(out, c->usage[i] == NULL ? "" : c->usage[i]);
        return c->usage[i] != NULL;
    }
    if (i > 0) {
        return false;
    }
    buf_adds(out, "[OPTIONS]");
    for (const struct positional *p = c->positionals; p != NULL && p->name != NULL; p++) {
        buf_addf(out, p->optional ? " [%s%s]" : " %s%s", p->name, p->repeat ? "..." : "");
    }
    if (c->rest != NULL) {
        buf_addf(out, " [-- %s]", c->rest);
    }
    return true;
}

static void add_note(struct buf *notes, const char *text)
{
    buf_addf(notes, "%s%s", notes->len == 0 ? "" : "; ", text);
}

void help_option(const struct option *o, struct buf *out)
{
    CLEANUP(buf) struct buf notes = BUF_INIT(BUF_TEXT);
    /* Without a placeholder of its own the words stand in its place. */
    for (size_t i = 0; o->kind == OPTION_ENUM && o->value != NULL && o->words[i] != NULL; i++) {
        buf_addf(&notes, "%s%s", i == 0 ? "" : ", ", o->words[i]);
    }
    if (o->shown != NULL) {
        add_note(&notes, "default: ");
        buf_adds(&notes, o->shown);
    }
    if ((o->flags & OPTION_REPEAT) != 0 && o->kind != OPTION_FLAG) {
        add_note(&notes, "repeatable");
    }
    buf_adds(out, o->help);
    if (notes.len > 0) {
        buf_addf(out, " (%s)", notes.ptr);
    }
}

/* --- pieces --- */

static void add_heading(struct buf *out, struct help_style style, const char *text)
{
    buf_adds(out, "\n");
    style_add(out, style.color, STYLE_BOLD, text);
    buf_adds(out, "\n");
}

/* One line of a list: term, then text wrapped beside it. */
static void add_item(struct buf *out, struct help_style style, size_t term_width, const char *term,
                     const char *text)
{
    size_t column = INDENT + term_width + GAP;
    size_t width = strlen(term);
    text_repeat(out, " ", INDENT);
    style_add(out, style.color, STYLE_NAME, term);
    if (width > term_width) {
        buf_adds(out, "\n");
        text_repeat(out, " ", column);
    } else {
        text_repeat(out, " ", term_width - width + GAP);
    }
    text_wrap(out, str_of(text), (struct text_shape) { column, column, style.width });
    buf_adds(out, "\n");
}

/* "-t, --timeout TIME", with the long names of options without a letter under each other. */
static const char *option_term(const struct option *o, char out[TERM_WIDTH])
{
    char text[OPTION_TEXT_LEN];
    option_text(o, text);
    (void)snprintf(out, TERM_WIDTH, "%s%s", o->letter == 0 ? "    " : "", text);
    return out;
}

static size_t widest_option(const struct option *o, size_t max)
{
    size_t widest = 0;
    char term[TERM_WIDTH];
    for (; o != NULL && o->name != NULL; o++) {
        size_t w = strlen(option_term(o, term));
        if ((o->flags & OPTION_HIDDEN) == 0 && w <= max && w > widest) {
            widest = w;
        }
    }
    return widest;
}

static void add_options(struct buf *out, struct help_style style, size_t term_width,
                        const struct option *o)
{
    const char *section = "Options";
    bool headed = false;
    for (; o != NULL && o->name != NULL; o++) {
        if ((o->flags & OPTION_HIDDEN) != 0) {
            continue;
        }
        if (!headed || (o->section != NULL && strcmp(o->section, section) != 0)) {
            section = o->section != NULL ? o->section : section;
            headed = true;
            CLEANUP(buf) struct buf title = BUF_INIT(BUF_TEXT);
            buf_addf(&title, "%s:", section);
            add_heading(out, style, title.ptr);
        }
        char term[TERM_WIDTH];
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        help_option(o, &text);
        add_item(out, style, term_width, option_term(o, term), text.ptr);
    }
}

/* --- the overview --- */

static void add_command_list(struct buf *out, struct help_style style)
{
    size_t widest = 0;
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        size_t w = strlen((*c)->name);
        widest = w > widest ? w : widest;
    }
    add_heading(out, style, "Commands:");
    CLEANUP(buf) struct buf more = BUF_INIT(BUF_TEXT);
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        if ((*c)->minor) {
            buf_addf(&more, "%s%s", more.len == 0 ? "" : ", ", (*c)->name);
        } else {
            add_item(out, style, widest, (*c)->name, (*c)->summary);
        }
    }
    if (more.len > 0) {
        add_item(out, style, widest, "also", more.ptr);
    }
}

/* All global options in a line or two: the overview must fit on a screen. */
static void add_global_line(struct buf *out, struct help_style style)
{
    size_t column = 0;
    add_heading(out, style, "Options:");
    for (const struct option *o = command_globals(); o->name != NULL; o++) {
        char text[OPTION_TEXT_LEN];
        size_t w = strlen(option_text(o, text));
        if (column + GAP + w > style.width && column > 0) {
            buf_adds(out, "\n");
            column = 0;
        }
        text_repeat(out, " ", column == 0 ? INDENT : GAP + 1);
        style_add(out, style.color, STYLE_NAME, text);
        column += w + (column == 0 ? INDENT : GAP + 1);
    }
    buf_adds(out, "\n");
}

void help_overview(struct help_style style, struct buf *out)
{
    style_add(out, style.color, STYLE_BOLD, "cinch");
    buf_adds(out, " " CINCH_VERSION ": run any coding agent under one contract\n\n");
    buf_adds(out, "Usage: cinch [OPTIONS] COMMAND [...]\n");
    add_command_list(out, style);
    add_global_line(out, style);
    buf_adds(out, "\nSee 'cinch help COMMAND' for its options and examples.\n");
}

/* --- one command --- */

static void add_usage(struct buf *out, const struct command *c, struct help_style style)
{
    for (size_t i = 0;; i++) {
        CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
        if (!help_usage(c, i, &line)) {
            return;
        }
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        buf_addf(&text, "cinch %s %s", c->name, line.ptr == NULL ? "" : line.ptr);
        buf_adds(out, i == 0 ? "Usage: " : "       ");
        text_wrap(out, str_trim(buf_str(&text)), (struct text_shape) { 7, 11, style.width });
        buf_adds(out, "\n");
    }
}

static void add_arguments(struct buf *out, const struct command *c, struct help_style style,
                          size_t term_width)
{
    if (c->positionals == NULL || c->positionals->name == NULL) {
        return;
    }
    add_heading(out, style, "Arguments:");
    for (const struct positional *p = c->positionals; p->name != NULL; p++) {
        add_item(out, style, term_width, p->name, p->help);
    }
}

static void add_examples(struct buf *out, const struct command *c, struct help_style style)
{
    if (c->examples == NULL) {
        return;
    }
    add_heading(out, style, "Examples:");
    for (const struct command_example *x = c->examples; x->line != NULL; x++) {
        buf_addf(out, "  %s\n", x->line);
        text_repeat(out, " ", 6);
        style_begin(out, style.color, STYLE_DIM);
        text_wrap(out, str_of(x->why), (struct text_shape) { 6, 6, style.width });
        style_end(out, style.color, STYLE_DIM);
        buf_adds(out, "\n");
    }
}

void help_command(const struct command *c, struct help_style style, struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct option *options = command_options(c, a);
    style_begin(out, style.color, STYLE_BOLD);
    buf_addf(out, "cinch %s", c->name);
    style_end(out, style.color, STYLE_BOLD);
    buf_addf(out, ": %s\n\n", c->summary);
    add_usage(out, c, style);
    for (const char *const *d = c->description; d != NULL && *d != NULL; d++) {
        buf_adds(out, "\n");
        text_wrap(out, str_of(*d), (struct text_shape) { 0, 0, style.width });
        buf_adds(out, "\n");
    }
    /* On a narrow screen the text gets at least half of it. */
    size_t max =
        style.width / 2 < TERM_MAX + INDENT + GAP ? style.width / 2 - INDENT - GAP : TERM_MAX;
    size_t own = widest_option(options, max);
    size_t shared = widest_option(command_globals(), max);
    size_t term_width = own > shared ? own : shared;
    add_arguments(out, c, style, term_width);
    add_options(out, style, term_width, options);
    add_options(out, style, term_width, command_globals());
    add_examples(out, c, style);
}
