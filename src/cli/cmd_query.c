/* SPDX-License-Identifier: MIT
 *
 * cinch query: SQL over the records of runs.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/result_table.h"
#include "cli/run_name.h"
#include "cli/run_request.h"
#include "cli/table.h"
#include "record/run_store.h"
#include "view/database.h"
#include "view/query_index.h"
#include "view/query_schema.h"

static const char *const forms[] = { "text", "json", "jsonl", "csv", "quiet", NULL };

static const struct option options[] = {
    { "schema", 0, OPTION_FLAG, .help = "print tables, views and named queries" },
    { "format", 0, OPTION_ENUM, .words = forms, .shown = "text",
      .help = "set the output format; quiet prints values without titles, separated by tabs" },
    { "full", 0, OPTION_FLAG, .help = "do not shorten long values of a table" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN", "run, or directory of runs (default: all runs of the store)", .optional = true,
      .repeat = true, .complete = COMPLETE_DIRECTORY },
    { 0 },
};

/* --- which runs --- */

struct selection {
    struct cli *cli;
    const char **runs;
    size_t count, cap;
    struct buf key;
};

static void add_run(struct selection *s, const char *path)
{
    if (s->count == s->cap) {
        size_t cap = s->cap == 0 ? 64 : 2 * s->cap;
        const char **more = arena_array(s->cli->arena, cap, sizeof *more);
        if (s->count > 0) {
            memcpy(more, s->runs, s->count * sizeof *more);
        }
        s->runs = more;
        s->cap = cap;
    }
    s->runs[s->count++] = path;
}

static bool is_run(const char *path)
{
    char file[PATH_MAX];
    static const char *const names[] = { "state.json", "manifest.json" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (path_join(path, names[i], file, sizeof file, NULL) == 0 &&
            file_exists(AT_FDCWD, file)) {
            return true;
        }
    }
    return false;
}

static int add_store(struct selection *s, const char *dir, struct err *e)
{
    struct run_list list;
    char absolute[PATH_MAX];
    int r = path_absolute(dir, absolute, sizeof absolute, e);
    r = r < 0 ? r : run_store_list(s->cli->arena, absolute, &list, e);
    if (r < 0) {
        return r;
    }
    buf_addf(&s->key, "directory %s\n", absolute);
    for (size_t i = list.count; i > 0; i--) {
        add_run(s, list.runs[i - 1].path);
    }
    return 0;
}

static int add_argument(struct selection *s, const char *name, struct err *e)
{
    const char *path;
    char absolute[PATH_MAX];
    if (file_is_dir(AT_FDCWD, name) && !is_run(name)) {
        return add_store(s, name, e);
    }
    int r = run_name_find(s->cli, name, &path, e);
    r = r < 0 ? r : path_absolute(path, absolute, sizeof absolute, e);
    if (r == 0 && !is_run(absolute)) {
        return ERR(e, ERR_INPUT, "'%s' is neither a run directory nor a directory of runs", name);
    }
    if (r == 0) {
        add_run(s, arena_dup(s->cli->arena, str_of(absolute)));
        buf_addf(&s->key, "run %s\n", absolute);
    }
    return r;
}

/* `count` arguments name runs; without any, the store is meant. */
static int select_runs(struct selection *s, const struct options *opt, size_t count, struct err *e)
{
    int r = count == 0 ? add_store(s, request_runs_dir(s->cli->arena), e) : 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = add_argument(s, options_arg(opt, i), e);
    }
    return r;
}

/* --- what can be asked for --- */

static struct json *describe_table(const struct query_table *t, struct arena *a)
{
    struct json *o = json_object(a);
    struct json *columns = json_array(a);
    json_setc(a, o, "name", json_cstr(a, t->name));
    json_setc(a, o, "description", json_cstr(a, t->help));
    for (const struct query_column *c = t->columns; c->name != NULL; c++) {
        struct json *column = json_object(a);
        json_setc(a, column, "name", json_cstr(a, c->name));
        json_setc(a, column, "type", json_string(a, str_n(c->type, strcspn(c->type, " "))));
        json_setc(a, column, "description", json_cstr(a, c->help));
        json_push(a, columns, column);
    }
    json_setc(a, o, "columns", columns);
    return o;
}

static void push_text(struct arena *a, struct json *list, const char *name, const char *help,
                      const char *sql)
{
    struct json *o = json_object(a);
    json_setc(a, o, "name", json_cstr(a, name));
    json_setc(a, o, "description", json_cstr(a, help));
    json_setc(a, o, "sql", json_cstr(a, sql));
    json_push(a, list, o);
}

static struct json *schema_json(struct arena *a)
{
    struct json *o = json_object(a);
    struct json *tables = json_array(a);
    struct json *views = json_array(a);
    struct json *named = json_array(a);
    for (size_t i = 0; i < QUERY_TABLES_MAX; i++) {
        json_push(a, tables, describe_table(&query_tables[i], a));
    }
    for (const struct query_view *v = query_views; v->name != NULL; v++) {
        push_text(a, views, v->name, v->help, v->sql);
    }
    for (const struct query_named *q = query_named_list; q->name != NULL; q++) {
        push_text(a, named, q->name, q->help, q->sql);
    }
    json_setc(a, o, "tables", tables);
    json_setc(a, o, "views", views);
    json_setc(a, o, "queries", named);
    return o;
}

static void write_columns(struct cli *cli, const struct query_table *t, struct buf *out)
{
    struct table lines = { .arena = cli->arena,
                           .indent = 2,
                           .columns = { { "column" }, { "type" }, { "description" } } };
    style_add(out, cli->out.color, STYLE_BOLD, t->name);
    buf_addf(out, ": %s\n", t->help);
    for (const struct query_column *c = t->columns; c->name != NULL; c++) {
        table_cell(&lines, STYLE_NAME, c->name);
        table_cell_str(&lines, STYLE_DIM, str_n(c->type, strcspn(c->type, " ")));
        table_cell(&lines, STYLE_PLAIN, c->help);
    }
    table_write(&lines, terminal_width(&cli->out), cli->out.color, out);
    buf_adds(out, "\n");
}

static void write_names(struct cli *cli, struct buf *out)
{
    struct table views = { .arena = cli->arena,
                           .indent = 2,
                           .columns = { { "view" }, { "what" } } };
    struct table named = views;
    for (const struct query_view *v = query_views; v->name != NULL; v++) {
        table_cell(&views, STYLE_NAME, v->name);
        table_cell(&views, STYLE_PLAIN, v->help);
    }
    table_cell(&views, STYLE_NAME, QUERY_FULL_TEXT);
    table_cell(&views, STYLE_PLAIN,
               "words of the transcript: WHERE " QUERY_FULL_TEXT " MATCH 'segfault'");
    for (const struct query_named *q = query_named_list; q->name != NULL; q++) {
        table_cell(&named, STYLE_NAME, q->name);
        table_cell(&named, STYLE_PLAIN, q->help);
    }
    style_add(out, cli->out.color, STYLE_BOLD, "views");
    buf_adds(out, "\n");
    table_write(&views, terminal_width(&cli->out), cli->out.color, out);
    buf_adds(out, "\n");
    style_add(out, cli->out.color, STYLE_BOLD, "named queries");
    buf_adds(out, "\n");
    table_write(&named, terminal_width(&cli->out), cli->out.color, out);
}

static int print_schema(struct cli *cli)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (cli->format == CLI_JSON) {
        cli_print_json(cli, schema_json(cli->arena));
        return 0;
    }
    for (size_t i = 0; i < QUERY_TABLES_MAX; i++) {
        write_columns(cli, &query_tables[i], &out);
    }
    write_names(cli, &out);
    cli_print(cli, &out);
    return 0;
}

/* --- the query --- */

/* A word is a named query; SQL has spaces. */
static int resolve_query(struct cli *cli, const char *text, const char **ret, struct err *e)
{
    const struct query_named *named = query_named_find(text);
    const char *names[64];
    size_t n = 0;
    if (named != NULL || strpbrk(text, " \t\n(") != NULL) {
        *ret = named != NULL ? named->sql : text;
        return 0;
    }
    for (const struct query_named *q = query_named_list; q->name != NULL && n < 63; q++) {
        names[n++] = q->name;
    }
    names[n] = NULL;
    const char *near = option_suggest(text, names);
    cli_hint(cli, "the query comes last; 'cinch query --schema' lists tables and named queries");
    return ERR(e, ERR_USAGE, "'%.80s' is neither SQL nor a named query%s%s%s", text,
               near == NULL ? "" : "; did you mean ", near == NULL ? "" : near,
               near == NULL ? "" : "?");
}

static bool mentions_full_text(const char *sql)
{
    return strcasestr(sql, QUERY_FULL_TEXT) != NULL;
}

static int answer(struct cli *cli, struct database *db, const char *sql,
                  const struct result_style *style, struct err *e)
{
    CLEANUP(statement) struct statement *s = NULL;
    CLEANUP(statement) struct statement *next = NULL;
    struct str rest;
    int r = database_prepare(db, str_of(sql), &s, &rest, e);
    if (r < 0) {
        return r;
    }
    if (s == NULL) {
        return ERR(e, ERR_USAGE, "the query is empty");
    }
    r = database_prepare(db, rest, &next, NULL, e);
    if (r == 0 && next != NULL) {
        r = ERR(e, ERR_USAGE, "only one statement at a time");
    }
    return r < 0 ? r : result_print(cli, s, style, e);
}

static int run_query(struct cli *cli, const struct options *opt, struct err *e)
{
    size_t count = options_arg_count(opt);
    const char *form = options_string(opt, "format", "text");
    const char *cache = query_cache_dir(cli->arena);
    struct result_style style = { .form = cli->format == CLI_JSON      ? RESULT_JSON
                                          : cli->format == CLI_QUIET   ? RESULT_TABS
                                          : strcmp(form, "csv") == 0   ? RESULT_CSV
                                          : strcmp(form, "jsonl") == 0 ? RESULT_JSONL
                                                                       : RESULT_TABLE,
                                  .full = options_flag(opt, "full", false) };
    CLEANUP(database) struct database *db = NULL;
    struct selection s = { .cli = cli, .key = BUF_INIT(BUF_TEXT) };
    const char *sql = NULL;
    if (options_flag(opt, "schema", false)) {
        return print_schema(cli);
    }
    if (count == 0) {
        cli_hint(cli, "try 'cinch query runs', or 'cinch query --schema' for tables and names");
        return ERR(e, ERR_USAGE, "no query: give SQL or the name of a query");
    }
    if (cache == NULL) {
        return ERR(e, ERR_CONFIG, "there is no cache: set HOME or XDG_CACHE_HOME");
    }
    int r = resolve_query(cli, options_arg(opt, count - 1), &sql, e);
    r = r < 0 ? r : select_runs(&s, opt, count - 1, e);
    if (r == 0) {
        struct query_selection runs = { .key = s.key.ptr, .runs = s.runs, .count = s.count };
        r = query_index_open(cache, &runs, mentions_full_text(sql), &db, e);
    }
    r = r < 0 ? r : answer(cli, db, sql, &style, e);
    buf_done(&s.key);
    return r;
}

static const char *const usage[] = {
    "[options] [RUN...] SQL",
    "[options] [RUN...] NAME",
    "--schema",
    NULL,
};

static const char *const description[] = {
    "Answers a question about runs in SQL (SQLite), or one of the named queries. Without RUN, all "
    "runs of the store are meant; a RUN may also be a directory that contains runs. The query "
    "comes "
    "last and can only read.",
    "The records are indexed in ~/.cache/cinch/query; later queries read only what has changed. "
    "Full text is indexed when a query first mentions " QUERY_FULL_TEXT ".",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch query cost-by-model", "what each model cost" },
    { "cinch query last slowest-tools", "where the time of the last run went" },
    { "cinch query \"SELECT reason, count(*) FROM runs GROUP BY reason\"", "how runs ended" },
    { "cinch query --format csv out/ runs > runs.csv", "runs below a directory, as CSV" },
    { 0 },
};

const struct command cmd_query = {
    .name = "query",
    .summary = "ask questions about runs in SQL",
    .minor = true,
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_query,
};
