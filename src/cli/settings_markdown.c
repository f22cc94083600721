/* SPDX-License-Identifier: MIT
 *
 * The table of settings as Markdown: key, value, default, option, meaning.
 */
#include "cli/settings_markdown.h"

#include <string.h>

#include "cli/run_request.h"
#include "data/shape.h"

static void add_words(const char *words, struct buf *out)
{
    struct str rest = str_of(words);
    for (const char *comma = ""; rest.ptr != NULL; comma = ", ") {
        struct str word = str_split(&rest, '|');
        buf_addf(out, "%s`%.*s`", comma, STR_ARG(word));
    }
}

static const char *kind_text(enum shape_kind kind)
{
    static const char *const texts[SHAPE_KIND_MAX] = {
        [SHAPE_STRING] = "string",
        [SHAPE_PATH] = "path",
        [SHAPE_BOOL] = "`true`, `false`",
        [SHAPE_INT] = "whole number",
        [SHAPE_NUMBER] = "number",
        [SHAPE_DURATION] = "duration",
        [SHAPE_SIZE] = "size",
        [SHAPE_STRINGS] = "list of strings",
        [SHAPE_PATHS] = "list of paths",
        [SHAPE_COMMAND] = "command",
        [SHAPE_TEXTS] = "string or list of strings",
        [SHAPE_SOURCE] = "map, or path of a file",
        [SHAPE_MAP] = "map of plain values",
        [SHAPE_ANY] = "anything",
        [SHAPE_ANY_OBJECT] = "map",
        [SHAPE_OBJECT] = "map",
        [SHAPE_LIST] = "list of maps",
    };
    return texts[kind] == NULL ? "" : texts[kind];
}

static void add_kind(const struct shape *s, struct buf *out)
{
    if (s->kind == SHAPE_WORD || s->kind == SHAPE_CHOICE) {
        add_words(s->words, out);
        buf_adds(out, s->kind == SHAPE_CHOICE ? ", or a list of strings" : "");
        return;
    }
    buf_adds(out, kind_text(s->kind));
    if (shape_bounded(s)) {
        buf_addf(out, " from %.10g to %.10g", s->min, s->max);
    }
}

static void add_option(const struct setting *row, struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    char text[OPTION_TEXT_LEN];
    if (row != NULL && row->option.name != NULL) {
        struct option o = request_option(a, row);
        struct str rest = str_of(option_text(&o, text));
        buf_adds(out, "`");
        for (const char *bar = ""; rest.ptr != NULL; bar = "\\|") {
            struct str part = str_split(&rest, '|'); /* a bar would end the cell */
            buf_addf(out, "%s%.*s", bar, STR_ARG(part));
        }
        buf_adds(out, "`");
    }
}

/* Fixed values are code, other defaults are prose. */
static void add_default(const struct setting *row, struct buf *out)
{
    if (row == NULL) {
        return;
    }
    if (row->shown != NULL) {
        buf_adds(out, row->shown);
    } else if (row->fallback != NULL) {
        buf_addf(out, "`%s`", row->fallback);
    }
}

static void add_row(const char *key, const struct shape *s, const struct setting *row,
                    struct buf *out)
{
    buf_addf(out, "| `%s` | ", key);
    add_kind(s, out);
    buf_adds(out, " | ");
    add_default(row, out);
    buf_adds(out, " | ");
    add_option(row, out);
    buf_addf(out, " | %s%s", s->help == NULL ? "" : s->help, s->required ? "; required" : "");
    if (row != NULL && row->shorthand != NULL) {
        buf_adds(out, row->kind == SHAPE_LIST ? "; a plain item stands for its "
                                              : "; a plain value stands for ");
        add_words(row->shorthand, out);
    }
    if (row != NULL && (row->writers & SETTING_BY_PROJECT) != 0) {
        buf_adds(out, " (P)");
    }
    if (row != NULL && row->since != NULL) {
        buf_addf(out, " (since %s)", row->since);
    }
    buf_adds(out, " |\n");
}

/* Members without rows of their own. A table that begins like the one around it holds the same
 * checks again, one level deeper. */
static void add_members(struct arena *a, const char *path, const struct shape *table,
                        struct buf *out)
{
    for (const struct shape *s = table; s != NULL && s->kind != SHAPE_END; s++) {
        const char *key = arena_printf(a, "%s.%s", path, s->key);
        add_row(key, s, NULL, out);
        if (s->inner != NULL && strcmp(s->inner->key, table->key) != 0) {
            add_members(a, s->kind == SHAPE_LIST ? arena_printf(a, "%s[]", key) : key, s->inner,
                        out);
        }
    }
}

static void add_setting(struct arena *a, const struct setting *row, struct buf *out)
{
    struct shape s = { .key = row->key,
                       .kind = row->kind,
                       .words = row->words,
                       .min = row->min,
                       .max = row->max,
                       .help = row->help };
    add_row(row->key, &s, row, out);
    const char *path = row->kind == SHAPE_LIST ? arena_printf(a, "%s[]", row->key) : row->key;
    add_members(a, path, row->inner, out);
}

void settings_markdown(const struct setting *table, struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    buf_adds(out, "| key | value | default | option | meaning |\n|---|---|---|---|---|\n");
    for (const struct setting *row = table; row->key != NULL; row++) {
        add_setting(a, row, out);
    }
}
