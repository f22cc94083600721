/* SPDX-License-Identifier: MIT
 *
 * docs/cli.md. The overview in it is the very text that `cinch --help` prints.
 */
#include "cli/help.h"

#include <ctype.h>
#include <string.h>

#include "cli/command.h"
#include "cli/manual.h"
#include "cli/option.h"

/* Running text: what Markdown would take for emphasis, a tag or the end of a table cell is escaped,
 * but not within `code`. */
static void add_prose(struct buf *out, const char *text)
{
    bool code = false;
    for (; *text != '\0'; text++) {
        code = code != (*text == '`');
        if (*text == '|' || (*text == '*' && !code)) {
            buf_adds(out, "\\");
        }
        if (*text == '<' && !code) {
            buf_adds(out, "&lt;");
        } else {
            buf_add(out, str_n(text, 1));
        }
    }
}

static void add_row(struct buf *out, const char *term, const char *text)
{
    buf_adds(out, "| `");
    for (; *term != '\0'; term++) {
        buf_adds(out, *term == '|' ? "\\" : "");
        buf_add(out, str_n(term, 1));
    }
    buf_adds(out, "` | ");
    add_prose(out, text);
    buf_adds(out, " |\n");
}

static void add_head(struct buf *out, const char *left, const char *right)
{
    buf_addf(out, "\n| %s | %s |\n|---|---|\n", left, right);
}

static void add_options(struct buf *out, const struct option *o)
{
    const char *section = "Option";
    bool headed = false;
    for (; o != NULL && o->name != NULL; o++) {
        if ((o->flags & OPTION_HIDDEN) != 0) {
            continue;
        }
        if (!headed || (o->section != NULL && strcmp(o->section, section) != 0)) {
            section = o->section != NULL ? o->section : section;
            headed = true;
            add_head(out, section, "meaning");
        }
        char term[OPTION_TEXT_LEN];
        CLEANUP(buf) struct buf help = BUF_INIT(BUF_TEXT);
        help_option(o, &help);
        add_row(out, option_text(o, term), help.ptr);
    }
}

static void add_command(struct buf *out, const struct command *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    buf_addf(out, "\n## cinch %s\n\n%c%s.\n\n```text\n", c->name,
             toupper((unsigned char)c->summary[0]), c->summary + 1);
    for (size_t i = 0;; i++) {
        CLEANUP(buf) struct buf usage = BUF_INIT(BUF_TEXT);
        if (!help_usage(c, i, &usage)) {
            break;
        }
        bool empty = usage.len == 0;
        buf_addf(out, "cinch %s%s%s\n", c->name, empty ? "" : " ", empty ? "" : usage.ptr);
    }
    buf_adds(out, "```\n");
    for (const char *const *d = c->description; d != NULL && *d != NULL; d++) {
        buf_adds(out, "\n");
        add_prose(out, *d);
        buf_adds(out, "\n");
    }
    if (c->positionals != NULL && c->positionals->name != NULL) {
        add_head(out, "Argument", "meaning");
        for (const struct positional *p = c->positionals; p->name != NULL; p++) {
            add_row(out, p->name, p->help);
        }
    }
    add_options(out, command_options(c, a));
    for (const struct command_example *x = c->examples; x != NULL && x->line != NULL; x++) {
        buf_addf(out, "%s# %s\n%s\n", x == c->examples ? "\n```sh\n" : "", x->why, x->line);
    }
    buf_adds(out, c->examples != NULL ? "```\n" : "");
}

static void add_entries(struct buf *out, const char *title, const char *term,
                        const struct manual_entry *m)
{
    buf_addf(out, "\n## %s\n", title);
    add_head(out, term, "meaning");
    for (; m->term != NULL; m++) {
        add_row(out, m->term, m->text);
    }
}

void help_markdown(struct buf *out)
{
    buf_adds(out, "<!-- Made by `cinch help --markdown`; do not edit: "
                  "`ninja -C build docs-update`. -->\n\n# cinch on the command line\n\n```text\n");
    help_overview((struct help_style) { .width = 80 }, out);
    buf_adds(out, "```\n");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        add_command(out, *c);
    }
    buf_adds(out, "\n## Options of all commands\n");
    add_options(out, command_globals());
    buf_adds(out, "\n## Exit status\n");
    add_head(out, "Status", "meaning");
    for (const struct manual_status *s = manual_statuses; s->status >= 0; s++) {
        buf_addf(out, "| %d | ", s->status);
        add_prose(out, s->text);
        buf_adds(out, " |\n");
    }
    add_entries(out, "Environment", "Variable", manual_environment);
    add_entries(out, "Files", "File", manual_settings);
    add_entries(out, "Files of a run directory", "File", manual_files);
}
