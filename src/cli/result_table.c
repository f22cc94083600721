/* SPDX-License-Identifier: MIT
 *
 * Rows of a query in the forms of result_table.h.
 */
#include "cli/result_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "cli/text.h"
#include "view/database.h"

enum { VALUE_MAX = 50, TABLE_ROWS = 1000, FLUSH = 64 << 10 };

struct result {
    struct cli *cli;
    struct statement *statement;
    const struct result_style *style;
    int columns;
    int64_t rows;
    struct buf out;
    struct arena *arena; /* of the rows that are not printed yet */
    struct table table;
    bool decided[TABLE_COLUMNS]; /* whether a column holds numbers */
};

static void add_hex(struct str bytes, struct buf *out)
{
    for (size_t i = 0; i < bytes.len; i++) {
        buf_addf(out, "%02x", (unsigned char)bytes.ptr[i]);
    }
}

/* A real in the shortest form that reads back equal. */
static void add_real(double value, struct buf *out)
{
    struct json v = { .type = JSON_REAL, .real = value };
    (void)!json_write(&v, JSON_COMPACT, out, NULL);
}

/* As text; NULL is empty. */
static void add_plain(const struct statement *s, int column, struct buf *out)
{
    switch (statement_type(s, column)) {
    case COLUMN_NULL:
        break;
    case COLUMN_INT:
        buf_addf(out, "%" PRId64, statement_int(s, column));
        break;
    case COLUMN_REAL:
        add_real(statement_real(s, column), out);
        break;
    case COLUMN_TEXT:
        buf_add(out, statement_text(s, column));
        break;
    case COLUMN_BLOB:
        add_hex(statement_text(s, column), out);
        break;
    }
}

/* --- JSON --- */

static void add_object(struct result *x)
{
    const struct statement *s = x->statement;
    struct buf *out = &x->out;
    buf_adds(out, "{");
    for (int i = 0; i < x->columns; i++) {
        enum column_type type = statement_type(s, i);
        buf_adds(out, i == 0 ? "" : ",");
        (void)!json_write_string(str_of(statement_name(s, i)), out, NULL);
        buf_adds(out, ":");
        if (type == COLUMN_TEXT) {
            (void)!json_write_string(statement_text(s, i), out, NULL);
        } else if (type == COLUMN_BLOB) {
            buf_adds(out, "\"");
            add_hex(statement_text(s, i), out);
            buf_adds(out, "\"");
        } else if (type == COLUMN_NULL) {
            buf_adds(out, "null");
        } else {
            add_plain(s, i, out);
        }
    }
    buf_adds(out, "}");
}

/* --- lines --- */

static void add_csv(struct result *x, struct str value)
{
    struct buf *out = &x->out;
    bool quoted = false;
    for (size_t i = 0; i < value.len && !quoted; i++) {
        quoted = strchr(",\"\r\n", value.ptr[i]) != NULL;
    }
    buf_adds(out, quoted ? "\"" : "");
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '"') {
            buf_adds(out, "\"");
        }
        buf_add(out, str_n(&value.ptr[i], 1));
    }
    buf_adds(out, quoted ? "\"" : "");
}

static void add_tabbed(struct result *x, struct str value)
{
    CLEANUP(buf) struct buf clean = BUF_INIT(SIZE_MAX);
    buf_add(&clean, value);
    for (size_t i = 0; i < clean.len; i++) {
        clean.ptr[i] = strchr("\t\r\n", clean.ptr[i]) != NULL ? ' ' : clean.ptr[i];
    }
    buf_add(&x->out, buf_str(&clean));
}

static void add_values(struct result *x)
{
    bool csv = x->style->form == RESULT_CSV;
    for (int i = 0; i < x->columns; i++) {
        CLEANUP(buf) struct buf value = BUF_INIT(SIZE_MAX);
        add_plain(x->statement, i, &value);
        buf_adds(&x->out, i == 0 ? "" : csv ? "," : "\t");
        (csv ? add_csv : add_tabbed)(x, buf_str(&value));
    }
    buf_adds(&x->out, csv ? "\r\n" : "\n");
}

static void add_csv_titles(struct result *x)
{
    for (int i = 0; i < x->columns; i++) {
        buf_adds(&x->out, i == 0 ? "" : ",");
        add_csv(x, str_of(statement_name(x->statement, i)));
    }
    buf_adds(&x->out, "\r\n");
}

/* --- tables --- */

static void begin_table(struct result *x)
{
    arena_reset(x->arena);
    x->table = (struct table) { .arena = x->arena, .head = true, .cut_last = !x->style->full };
    for (int i = 0; i < x->columns; i++) {
        x->table.columns[i].title = arena_dup(x->arena, str_of(statement_name(x->statement, i)));
        x->decided[i] = false;
        x->table.columns[i].max = x->style->full ? 0 : VALUE_MAX;
    }
}

static void end_table(struct result *x)
{
    table_write(&x->table, terminal_width(&x->cli->out), x->cli->out.color, &x->out);
}

static void add_table_row(struct result *x)
{
    if (x->rows % TABLE_ROWS == 0) {
        if (x->rows > 0) {
            end_table(x);
            buf_adds(&x->out, "\n");
        }
        begin_table(x);
    }
    for (int i = 0; i < x->columns; i++) {
        CLEANUP(buf) struct buf value = BUF_INIT(SIZE_MAX);
        enum column_type type = statement_type(x->statement, i);
        if (!x->decided[i] && type != COLUMN_NULL) {
            x->decided[i] = true;
            x->table.columns[i].right = type == COLUMN_INT || type == COLUMN_REAL;
        }
        add_plain(x->statement, i, &value);
        table_cell_str(&x->table, STYLE_PLAIN, buf_str(&value));
    }
}

/* More columns than a table has: a line per value. */
static void add_vertical_row(struct result *x)
{
    buf_addf(&x->out, "%srow %" PRId64 "\n", x->rows > 0 ? "\n" : "", x->rows + 1);
    for (int i = 0; i < x->columns; i++) {
        CLEANUP(buf) struct buf value = BUF_INIT(SIZE_MAX);
        add_plain(x->statement, i, &value);
        buf_adds(&x->out, "  ");
        text_clean(&x->out, str_of(statement_name(x->statement, i)), TEXT_LINE);
        buf_adds(&x->out, ": ");
        text_clean(&x->out, buf_str(&value), TEXT_LINE);
        buf_adds(&x->out, "\n");
    }
}

/* --- --- */

static void add_row(struct result *x)
{
    switch (x->style->form) {
    case RESULT_TABLE:
        (x->columns > TABLE_COLUMNS ? add_vertical_row : add_table_row)(x);
        break;
    case RESULT_JSON:
        buf_adds(&x->out, x->rows == 0 ? "[\n  " : ",\n  ");
        add_object(x);
        break;
    case RESULT_JSONL:
        add_object(x);
        buf_adds(&x->out, "\n");
        break;
    case RESULT_CSV:
    case RESULT_TABS:
        add_values(x);
        break;
    }
    x->rows++;
}

static void add_end(struct result *x)
{
    enum result_form form = x->style->form;
    if (form == RESULT_JSON) {
        buf_adds(&x->out, x->rows == 0 ? "[]\n" : "\n]\n");
    } else if (form == RESULT_TABLE && x->rows == 0) {
        buf_adds(&x->out, "no rows\n");
    } else if (form == RESULT_TABLE && x->columns <= TABLE_COLUMNS) {
        end_table(x);
    }
}

static void flush(struct result *x)
{
    cli_print(x->cli, &x->out);
    buf_reset(&x->out);
}

int result_print(struct cli *cli, struct statement *s, const struct result_style *style,
                 struct err *e)
{
    struct result x = { .cli = cli,
                        .statement = s,
                        .style = style,
                        .columns = statement_columns(s),
                        .out = BUF_INIT(SIZE_MAX),
                        .arena = arena_new() };
    if (style->form == RESULT_CSV) {
        add_csv_titles(&x);
    }
    int r = statement_next(s, e);
    for (; r == 1; r = statement_next(s, e)) {
        add_row(&x);
        if (x.out.len > FLUSH) {
            flush(&x);
        }
    }
    if (r == 0) {
        add_end(&x);
        flush(&x);
    }
    buf_done(&x.out);
    arena_free(x.arena);
    return r;
}
