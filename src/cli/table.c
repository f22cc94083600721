/* SPDX-License-Identifier: MIT
 *
 * Aligned columns in two passes: measure, then write.
 */
#include "cli/table.h"

#include <stdarg.h>

#include "base/arena.h"
#include "cli/text.h"

enum { GAP = 2, LAST_MIN = 20, CUT_MIN = 8 };

struct table_line {
    struct table_line *next;
    struct {
        struct str text; /* clean */
        enum style style;
    } cells[TABLE_COLUMNS];
};

static size_t column_count(const struct table *t)
{
    size_t n = 0;
    while (n < TABLE_COLUMNS && t->columns[n].title != NULL) {
        n++;
    }
    return n;
}

void table_cell_str(struct table *t, enum style style, struct str text)
{
    if (t->last == NULL || t->filled == column_count(t)) {
        struct table_line *line = ARENA_NEW(t->arena, struct table_line);
        *(t->last == NULL ? &t->first : &t->last->next) = line;
        t->last = line;
        t->filled = 0;
    }
    CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
    text_clean(&clean, text, TEXT_LINE);
    t->last->cells[t->filled].text = arena_str(t->arena, buf_str(&clean));
    t->last->cells[t->filled].style = style;
    t->filled++;
}

void table_cell(struct table *t, enum style style, const char *text)
{
    table_cell_str(t, style, str_of(text));
}

void table_cellf(struct table *t, enum style style, const char *fmt, ...)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    va_list ap;
    va_start(ap, fmt);
    (void)!buf_vprintf(&text, NULL, fmt, ap);
    va_end(ap);
    table_cell_str(t, style, buf_str(&text));
}

static size_t measure(const struct table *t, size_t column)
{
    size_t widest = 0;
    for (const struct table_line *line = t->first; line != NULL; line = line->next) {
        size_t w = text_width(line->cells[column].text);
        widest = w > widest ? w : widest;
    }
    if (widest == 0) {
        return 0;
    }
    if (t->columns[column].max != 0 && widest > t->columns[column].max) {
        widest = t->columns[column].max;
    }
    size_t title = t->head ? strlen(t->columns[column].title) : 0;
    return widest > title ? widest : title;
}

struct layout {
    size_t count;
    size_t last; /* the last column that is not empty: nothing is padded after it */
    size_t widths[TABLE_COLUMNS];
    size_t width;
};

static void write_cell(const struct table *t, const struct layout *l, size_t column,
                       struct str text, size_t *at, struct buf *out)
{
    if (column == l->last && t->columns[column].right) {
        text_pad_left(out, text, l->widths[column]);
        return;
    }
    if (column == l->last && t->cut_last) {
        text_cut(out, text, l->width < *at + CUT_MIN ? CUT_MIN : l->width - *at);
        return;
    }
    if (column == l->last) {
        size_t width = l->width < *at + LAST_MIN ? *at + LAST_MIN : l->width;
        text_wrap(out, text, (struct text_shape) { *at, *at, width });
        return;
    }
    CLEANUP(buf) struct buf cut = BUF_INIT(BUF_TEXT);
    text_cut(&cut, text, l->widths[column]);
    (t->columns[column].right ? text_pad_left : text_pad)(out, buf_str(&cut), l->widths[column]);
    *at += l->widths[column] + GAP;
}

/* Spaces at the end of a line, where the last cells of a row are empty, are taken back. */
static void trim_end(struct buf *out)
{
    while (out->len > 0 && out->ptr[out->len - 1] == ' ') {
        out->ptr[--out->len] = '\0';
    }
}

static void write_line(const struct table *t, const struct layout *l, const struct table_line *line,
                       bool color, struct buf *out)
{
    size_t at = t->indent;
    text_repeat(out, " ", t->indent);
    for (size_t i = 0; i <= l->last; i++) {
        if (l->widths[i] == 0) {
            continue;
        }
        bool empty = line->cells[i].text.len == 0;
        style_begin(out, color && !empty, line->cells[i].style);
        write_cell(t, l, i, line->cells[i].text, &at, out);
        style_end(out, color && !empty, line->cells[i].style);
        text_repeat(out, " ", i == l->last ? 0 : GAP);
    }
    trim_end(out);
    buf_adds(out, "\n");
}

void table_write(const struct table *t, size_t width, bool color, struct buf *out)
{
    struct layout l = { .count = column_count(t), .width = width };
    for (size_t i = 0; i < l.count; i++) {
        l.widths[i] = measure(t, i);
        l.last = l.widths[i] > 0 ? i : l.last;
    }
    if (t->head && t->first != NULL) {
        struct table_line head = { 0 };
        for (size_t i = 0; i < l.count; i++) {
            head.cells[i].text = str_of(t->columns[i].title);
            head.cells[i].style = STYLE_BOLD;
        }
        write_line(t, &l, &head, color, out);
    }
    for (const struct table_line *line = t->first; line != NULL; line = line->next) {
        write_line(t, &l, line, color, out);
    }
}
