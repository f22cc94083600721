/* SPDX-License-Identifier: MIT
 *
 * The table of capabilities that the project publishes, as JSON and from that as Markdown. The JSON
 * is what is added to: an adapter that is not here today keeps the row that it had.
 */
#include "ack/contract_scenarios.h"
#include "ack/report.h"
#include "ack/report_priv.h"
#include "adapters/version.h"
#include "base/json.h"

/* --- one row --- */

/* What the scenarios of one capability said on one adapter. */
struct cell {
    size_t passed, skipped;
    struct json *failed; /* names */
    const char *why;     /* skipped */
};

/* The checks of the file contract are of no capability; together they have a column of their own,
 * and only where something of the kind was tried. */
#define CONTRACT_COLUMN "contract"

static bool needs(const struct scenario *s, const char *capability)
{
    if (s->contract != NULL) {
        return str_eqc(str_of(capability), CONTRACT_COLUMN);
    }
    for (const char **c = s->capabilities; c != NULL && *c != NULL; c++) {
        if (str_eqc(str_of(*c), capability)) {
            return true;
        }
    }
    return false;
}

/* A scenario of two capabilities may be skipped because of the other one: the reason that is about
 * this one is better. */
static void note_skipped(struct arena *a, struct cell *cell, const char *why, const char *about)
{
    struct str text = str_of(why);
    struct str prefix = str_of(arena_printf(a, "%s: ", about));
    if (str_starts(text, prefix)) {
        cell->why = why + prefix.len;
    } else if (cell->why == NULL) {
        cell->why = why;
    }
    cell->skipped++;
}

static struct json *make_cell(struct arena *a, const struct kit_report *r, const char *adapter,
                              const char *capability)
{
    struct cell cell = { .failed = json_array(a) };
    for (size_t i = 0; i < r->len; i++) {
        const struct verdict *v = &r->verdicts[i];
        if (v->adapter != adapter || !needs(v->scenario, capability)) {
            continue;
        }
        if (v->status == VERDICT_SKIPPED) {
            note_skipped(a, &cell, v->why, capability);
        } else if (v->status == VERDICT_PASSED || v->status == VERDICT_STALE) {
            cell.passed++;
        } else {
            json_push(a, cell.failed, json_cstr(a, v->scenario->name));
        }
    }
    struct json *o = json_object(a);
    size_t ran = cell.passed + json_len(cell.failed);
    const char *state = json_len(cell.failed) > 0 ? "failed" : ran > 0 ? "proven" : "skipped";
    json_setc(a, o, "state", json_cstr(a, state));
    if (ran > 0) {
        json_setc(a, o, "scenarios", json_integer(a, (int64_t)ran));
    } else {
        json_setc(a, o, "reason", json_cstr(a, cell.why == NULL ? "no scenario" : cell.why));
    }
    if (json_len(cell.failed) > 0) {
        json_setc(a, o, "failed", cell.failed);
    }
    return o;
}

/* False: no contract applies to the adapter, and it says nothing about it. */
static bool has_cell(const struct kit_adapter *x, struct str column)
{
    return !str_eqc(column, CONTRACT_COLUMN) || contract_applies(x->profile);
}

static struct json *make_row(struct arena *a, const struct kit_report *r,
                             const struct kit_adapter *x, const struct json *columns)
{
    struct json *row = json_object(a);
    struct json *cells = json_object(a);
    for (size_t i = 0; i < json_len(columns); i++) {
        struct str name = json_str(json_item(columns, i), STR_EMPTY);
        if (has_cell(x, name)) {
            json_set(a, cells, name, make_cell(a, r, x->name, name.ptr));
        }
    }
    json_setc(a, row, "adapter", json_cstr(a, x->name));
    json_setc(a, row, "version", json_cstr(a, x->version == NULL ? "" : x->version));
    json_setc(a, row, "cinch", json_cstr(a, CINCH_VERSION));
    json_setc(a, row, "mode", json_cstr(a, r->live ? "live" : "script"));
    json_setc(a, row, "date", json_string(a, str_slice(str_of(r->started_at), 0, 10)));
    json_setc(a, row, "capabilities", cells);
    return row;
}

/* --- the whole --- */

static void add_column(struct arena *a, struct json *columns, struct str name)
{
    for (size_t i = 0; i < json_len(columns); i++) {
        if (str_eq(json_str(json_item(columns, i), STR_EMPTY), name)) {
            return;
        }
    }
    json_push(a, columns, json_string(a, name));
}

static bool same(const struct json *row, const struct json *other, const char *key)
{
    return json_equal(json_get(row, key), json_get(other, key));
}

static bool has_adapter(const struct json *rows, const struct json *row)
{
    for (size_t i = 0; i < json_len(rows); i++) {
        if (same(json_item(rows, i), row, "adapter")) {
            return true;
        }
    }
    return false;
}

/* A row of last time that nothing of now replaces. */
static bool stays(const struct json *rows, const struct json *old)
{
    for (size_t i = 0; i < json_len(rows); i++) {
        if (same(json_item(rows, i), old, "adapter") && same(json_item(rows, i), old, "version")) {
            return false;
        }
    }
    return true;
}

static int check_before(const struct json *before, struct err *e)
{
    const struct json *rows = json_get(before, "rows");
    bool good = before == NULL ||
                (json_int(json_get(before, "version"), 0) == 1 && json_is(rows, JSON_ARRAY) &&
                 json_is(json_get(before, "capabilities"), JSON_ARRAY));
    for (size_t i = 0; good && i < json_len(rows); i++) {
        const struct json *row = json_item(rows, i);
        good = json_is(json_get(row, "adapter"), JSON_STRING) &&
               json_is(json_get(row, "version"), JSON_STRING) &&
               json_is(json_get(row, "capabilities"), JSON_OBJECT);
    }
    return good ? 0
                : ERR(e, ERR_CONFIG,
                      "the existing file is not a table of capabilities: remove it to start a new "
                      "one");
}

static int compare_rows(const struct json *x, const struct json *y)
{
    int d = str_cmp(json_str(json_get(x, "adapter"), STR_EMPTY),
                    json_str(json_get(y, "adapter"), STR_EMPTY));
    return d != 0 ? d
                  : version_compare(json_str(json_get(x, "version"), STR_EMPTY),
                                    json_str(json_get(y, "version"), STR_EMPTY));
}

static void insert_row(struct arena *a, struct json *rows, struct json *row)
{
    json_push(a, rows, row);
    struct json **items = rows->array.items;
    for (size_t i = rows->array.len - 1; i > 0 && compare_rows(items[i - 1], items[i]) > 0; i--) {
        struct json *moved = items[i - 1];
        items[i - 1] = items[i];
        items[i] = moved;
    }
}

static bool tries_contracts(const struct kit_report *r)
{
    bool found = false;
    for (size_t i = 0; !found && i < r->len; i++) {
        found = r->verdicts[i].scenario->contract != NULL;
    }
    for (size_t i = 0; found && i < r->adapters_len; i++) {
        if (contract_applies(r->adapters[i].profile)) {
            return true;
        }
    }
    return false;
}

static struct json *make_table(struct arena *a, const struct kit_report *r,
                               const struct json *before)
{
    struct json *table = json_object(a);
    struct json *columns = json_array(a);
    struct json *rows = json_array(a);
    const struct json *old_rows = json_get(before, "rows");
    const struct json *old_columns = json_get(before, "capabilities");
    for (size_t i = 0; i < r->len; i++) {
        for (const char **c = r->verdicts[i].scenario->capabilities; c != NULL && *c != NULL; c++) {
            add_column(a, columns, str_of(*c));
        }
    }
    if (tries_contracts(r)) {
        add_column(a, columns, STR(CONTRACT_COLUMN));
    }
    for (size_t i = 0; i < r->adapters_len; i++) {
        struct json *row = make_row(a, r, &r->adapters[i], columns);
        if (r->adapters[i].available || !has_adapter(old_rows, row)) {
            insert_row(a, rows, row);
        }
    }
    for (size_t i = 0; i < json_len(old_columns); i++) {
        add_column(a, columns, json_str(json_item(old_columns, i), STR_EMPTY));
    }
    for (size_t i = 0; i < json_len(old_rows); i++) {
        if (stays(rows, json_item(old_rows, i))) {
            insert_row(a, rows, json_item(old_rows, i));
        }
    }
    json_setc(a, table, "version", json_integer(a, 1));
    json_setc(a, table, "capabilities", columns);
    json_setc(a, table, "rows", rows);
    return table;
}

/* --- Markdown --- */

static void add_text(struct buf *b, const struct json *v)
{
    report_text(b, json_str(v, STR_EMPTY), REPORT_MARKDOWN);
}

static const char *mark_of(const struct json *row, struct str capability)
{
    const struct json *cell = json_find(json_get(row, "capabilities"), capability);
    struct str state = json_str(json_get(cell, "state"), STR_EMPTY);
    return str_eqc(state, "proven") ? "✓" : str_eqc(state, "failed") ? "✗" : "–";
}

/* Rows of one adapter are beside each other. */
static size_t end_of_adapter(const struct json *rows, size_t from)
{
    size_t end = from + 1;
    while (end < json_len(rows) && same(json_item(rows, from), json_item(rows, end), "adapter")) {
        end++;
    }
    return end;
}

/* A column for each version, the newest first. */
static void add_adapter(struct buf *b, const struct json *rows, size_t from, size_t end,
                        const struct json *columns)
{
    static const char *const keys[] = { "version", "date" };
    buf_adds(b, "\n## ");
    add_text(b, json_get(json_item(rows, from), "adapter"));
    buf_adds(b, "\n\n");
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        buf_addf(b, "| %s |", k == 0 ? "capability" : "tested on");
        for (size_t i = end; i > from; i--) {
            buf_adds(b, " ");
            add_text(b, json_get(json_item(rows, i - 1), keys[k]));
            buf_adds(b, " |");
        }
        buf_adds(b, k == 0 ? "\n|---|" : "\n");
        for (size_t i = end; k == 0 && i > from; i--) {
            buf_adds(b, ":-:|");
        }
        buf_adds(b, k == 0 ? "\n" : "");
    }
    for (size_t c = 0; c < json_len(columns); c++) {
        struct str name = json_str(json_item(columns, c), STR_EMPTY);
        buf_adds(b, "| ");
        report_text(b, name, REPORT_MARKDOWN);
        buf_adds(b, " |");
        for (size_t i = end; i > from; i--) {
            buf_addf(b, " %s |", mark_of(json_item(rows, i - 1), name));
        }
        buf_adds(b, "\n");
    }
}

static void add_remark(struct buf *b, struct str capability, const struct json *cell)
{
    const struct json *failed = json_get(cell, "failed");
    buf_adds(b, "- ");
    report_text(b, capability, REPORT_MARKDOWN);
    if (json_len(failed) == 0) {
        buf_adds(b, ": ");
        add_text(b, json_get(cell, "reason"));
    } else {
        buf_addf(b, ": **failed** in %zu of %lld: ", json_len(failed),
                 (long long)json_int(json_get(cell, "scenarios"), 0));
    }
    for (size_t i = 0; i < json_len(failed); i++) {
        buf_adds(b, i == 0 ? "" : ", ");
        add_text(b, json_item(failed, i));
    }
    buf_adds(b, "\n");
}

static void add_remarks(struct buf *b, const struct json *row)
{
    const struct json *cells = json_get(row, "capabilities");
    bool any = false;
    for (size_t i = 0; i < json_len(cells); i++) {
        const struct json_member *m = &cells->object.members[i];
        if (str_eqc(json_str(json_get(m->value, "state"), STR_EMPTY), "proven")) {
            continue;
        }
        if (!any) {
            buf_adds(b, "\n### ");
            add_text(b, json_get(row, "adapter"));
            buf_adds(b, " ");
            add_text(b, json_get(row, "version"));
            buf_adds(b, "\n\n");
            any = true;
        }
        add_remark(b, m->key, m->value);
    }
}

static size_t count_cells(const struct json *row, const char *state)
{
    const struct json *cells = json_get(row, "capabilities");
    size_t n = 0;
    for (size_t i = 0; i < json_len(cells); i++) {
        const struct json *cell = cells->object.members[i].value;
        n += str_eqc(json_str(json_get(cell, "state"), STR_EMPTY), state);
    }
    return n;
}

static void add_summary(struct buf *b, const struct json *rows)
{
    buf_adds(
        b, "| adapter | version | date | proven | failed | not tested |\n|---|---|---|--:|--:|--:|"
           "\n");
    for (size_t i = 0; i < json_len(rows); i++) {
        const struct json *row = json_item(rows, i);
        buf_adds(b, "| ");
        add_text(b, json_get(row, "adapter"));
        buf_adds(b, " | ");
        add_text(b, json_get(row, "version"));
        buf_adds(b, " | ");
        add_text(b, json_get(row, "date"));
        buf_addf(b, " | %zu | %zu | %zu |\n", count_cells(row, "proven"),
                 count_cells(row, "failed"), count_cells(row, "skipped"));
    }
}

static void write_markdown(struct buf *b, const struct json *table, bool live)
{
    const struct json *columns = json_get(table, "capabilities");
    const struct json *rows = json_get(table, "rows");
    buf_adds(b, live
                    ? "# Compatibility with real models\n\nGenerated by `cinch ack --live "
                      "--publish`, which runs all scenarios that do not need a script on the real "
                      "agent programs with real models; do not edit it.\n\n"
                    : "# Compatibility\n\nGenerated by `cinch ack --publish` (for several versions "
                      "of a harness: `make compat`), which runs all scenarios on the real agent "
                      "programs; do not edit it.\n\n");
    add_summary(b, rows);
    buf_adds(b,
             "\n✓ proven: at least one scenario of the capability ran, and all that ran passed. ✗ "
             "failed. – not tested; the reason is at the end.\n");
    for (size_t i = 0; i < json_len(rows); i = end_of_adapter(rows, i)) {
        add_adapter(b, rows, i, end_of_adapter(rows, i), columns);
    }
    buf_adds(b, "\n## What is not proven, and why\n");
    for (size_t i = 0; i < json_len(rows); i++) {
        add_remarks(b, json_item(rows, i));
    }
}

int report_compatibility(const struct kit_report *r, const struct json *before,
                         struct buf *markdown, struct buf *json, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int result = check_before(before, e);
    if (result < 0) {
        return result;
    }
    struct json *table = make_table(a, r, before);
    write_markdown(&text, table, r->live);
    result = buf_append(markdown, buf_str(&text), e);
    return result < 0 ? result : json_write(table, JSON_PRETTY, json, e);
}
