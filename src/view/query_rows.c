/* SPDX-License-Identifier: MIT
 *
 * Rows are filled column by column in the order of query_schema.c; see query_rows.h.
 */
#include "view/query_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "record/jsonl.h"
#include "record/patch_stat.h"
#include "view/database.h"
#include "view/entry_view.h"
#include "view/query_schema.h"
#include "wire/lines.h"

/* Longer texts are cut and longer JSON is left out: the index is for finding, the record for
 * reading. */
#define TEXT_MAX ((size_t)64 << 10)
/* A patch beyond this is not counted. */
#define PATCH_MAX ((size_t)64 << 20)
/* Bad lines that are listed of one file; a file of another kind has nothing else. */
enum { PROBLEMS_MAX = 20 };
enum { CHUNK = 256 << 10, METRICS_DEPTH = 6, METRICS_MAX = 500 };

struct query_rows {
    struct statement *insert[QUERY_TABLES_MAX];
    struct arena *arena;        /* of one line */
    struct buf text, json, key; /* of one row */
};

int query_rows_open(struct database *db, struct query_rows **ret, struct err *e)
{
    CLEANUP(query_rows) struct query_rows *q = xcalloc(1, sizeof *q);
    q->arena = arena_new();
    buf_init(&q->text, SIZE_MAX);
    buf_init(&q->json, SIZE_MAX);
    buf_init(&q->key, SIZE_MAX);
    for (size_t i = 0; i < QUERY_TABLES_MAX; i++) {
        CLEANUP(buf) struct buf sql = BUF_INIT(BUF_TEXT);
        query_schema_insert(&query_tables[i], &sql);
        int r = database_prepare(db, buf_str(&sql), &q->insert[i], NULL, e);
        if (r < 0) {
            return r;
        }
    }
    *ret = TAKE_PTR(q);
    return 0;
}

struct query_rows *query_rows_close(struct query_rows *q)
{
    if (q != NULL) {
        for (size_t i = 0; i < QUERY_TABLES_MAX; i++) {
            q->insert[i] = statement_free(q->insert[i]);
        }
        arena_free(q->arena);
        buf_done(&q->text);
        buf_done(&q->json);
        buf_done(&q->key);
        free(q);
    }
    return NULL;
}

/* --- rows --- */

struct row {
    struct statement *insert;
    int column; /* last one that was set */
};

static struct row row_begin(struct query_rows *q, enum query_table_id table, int64_t run)
{
    struct row r = { q->insert[table], 1 };
    statement_set_int(r.insert, 1, run);
    return r;
}

static void put_int(struct row *r, int64_t value)
{
    statement_set_int(r->insert, ++r->column, value);
}

/* An empty text is not known. */
static void put_text(struct row *r, struct str value)
{
    r->column++;
    if (value.len > 0) {
        statement_set_text(r->insert, r->column, value);
    }
}

/* The same of bytes that may be anything. */
static void put_bytes(struct row *r, struct str value)
{
    r->column++;
    if (value.len > 0) {
        statement_set_bytes(r->insert, r->column, value);
    }
}

/* A scalar as it is; anything else is not known. */
static void put_value(struct row *r, const struct json *v)
{
    r->column++;
    if (json_is(v, JSON_INT)) {
        statement_set_int(r->insert, r->column, v->integer);
    } else if (json_is(v, JSON_REAL)) {
        statement_set_real(r->insert, r->column, v->real);
    } else if (json_is(v, JSON_BOOL)) {
        statement_set_int(r->insert, r->column, v->boolean);
    } else if (json_is(v, JSON_STRING)) {
        statement_set_text(r->insert, r->column, v->string);
    }
}

/* As JSON text; `scratch` keeps it until the row is inserted. */
static void put_json(struct row *r, const struct json *v, struct buf *scratch)
{
    r->column++;
    buf_reset(scratch);
    if (v != NULL && !json_is(v, JSON_NULL) && json_write(v, JSON_COMPACT, scratch, NULL) == 0 &&
        scratch->len <= TEXT_MAX) {
        statement_set_text(r->insert, r->column, buf_str(scratch));
    }
}

/* Cut between characters. */
static struct str cut_text(struct str s)
{
    struct str cut = str_slice(s, 0, TEXT_MAX);
    return cut.len == s.len ? s : str_slice(cut, 0, str_utf8_prefix(cut));
}

static int add_problem(struct query_rows *q, int64_t run, const char *file, int64_t line,
                       const char *why, struct err *e)
{
    struct row r = row_begin(q, QUERY_PROBLEMS, run);
    put_text(&r, str_of(file));
    r.column++;
    if (line > 0) {
        statement_set_int(r.insert, r.column, line);
    }
    put_bytes(&r, str_of(why));
    return statement_insert(r.insert, e);
}

/* --- the run --- */

struct run_documents {
    int dir_fd;
    struct json *state, *manifest, *metrics, *result, *task;
    struct patch_stat changes;
    bool has_changes;
};

static int read_documents(struct query_rows *q, int64_t run, struct run_documents *d,
                          struct arena *a, struct err *e)
{
    const struct {
        const char *name;
        struct json **ret;
    } documents[] = {
        { "state.json", &d->state },     { "manifest.json", &d->manifest },
        { "metrics.json", &d->metrics }, { "result.json", &d->result },
        { "task.json", &d->task },
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(documents); i++) {
        const char *why = NULL;
        *documents[i].ret = run_file_json(d->dir_fd, documents[i].name, a, &why);
        if (*documents[i].ret == NULL && strcmp(why, "missing") != 0) {
            r = add_problem(q, run, documents[i].name, 0, why, e);
        }
    }
    return r;
}

static int read_changes(struct query_rows *q, int64_t run, struct run_documents *d,
                        struct buf *text, struct arena *a, struct err *e)
{
    const char *why = NULL;
    CLEANUP(fd) int fd = run_file_open(d->dir_fd, "diff.patch", &why);
    if (fd < 0) {
        return strcmp(why, "missing") == 0 ? 0 : add_problem(q, run, "diff.patch", 0, why, e);
    }
    if (run_file_read(fd, text, NULL) < 0) {
        return add_problem(q, run, "diff.patch", 0, "too large to be counted", e);
    }
    patch_stat(a, buf_str(text), &d->changes);
    d->has_changes = true;
    return 0;
}

/* A count whose source says that nothing was measured is not 0 but unknown. */
static const struct json *unless_none(const struct json *value, const struct json *source)
{
    return str_eqc(json_str(source, STR("none")), "none") ? NULL : value;
}

static int add_run_row(struct query_rows *q, int64_t run, const char *path,
                       const struct run_documents *d, enum run_status status, struct err *e)
{
    const struct json *metadata = json_get(d->manifest, "metadata");
    const struct json *ext = json_get(d->metrics, "ext");
    const struct json *tokens = json_get(ext, "tokens");
    const struct json *tokens_source = json_get(ext, "tokens_source");
    const struct json *cost_source = json_get(ext, "cost_source");
    const struct json *tools = json_get(ext, "tool_calls");
    const struct json *id = json_get(d->state, "run_id");
    const struct json *model = json_get(json_get(metadata, "engine"), "model");
    const struct json *adapter = json_get(metadata, "agent");
    enum reason reason = run_reason_find(d->state, d->manifest, d->result);
    bool over = d->metrics != NULL && status != RUN_STATUS_RUNNING;
    struct row r = row_begin(q, QUERY_RUNS, run);
    put_value(&r, id != NULL ? id : json_get(d->manifest, "run_id"));
    put_bytes(&r, str_of(path));
    put_text(&r, run_task_name(d->task));
    put_value(&r, adapter != NULL ? adapter : json_get(d->state, "adapter"));
    put_value(&r, json_is(model, JSON_STRING) ? model : json_get(ext, "model"));
    put_text(&r, str_of(run_status_word(status)));
    put_text(&r, reason == REASON_NONE ? STR_EMPTY : str_of(reason_word(reason)));
    put_value(&r, over ? json_get(d->manifest, "outcome") : NULL);
    put_value(&r, json_get(d->result, "passed"));
    put_value(&r, json_get(d->manifest, "exit_code"));
    put_value(&r, json_get(d->manifest, "error"));
    put_value(&r, json_get(d->state, "started_at"));
    put_value(&r, json_get(d->state, "ended_at"));
    put_value(&r, over ? json_get(d->metrics, "duration_seconds") : NULL);
    put_value(&r, unless_none(json_get(d->metrics, "cost_usd"), cost_source));
    put_value(&r, cost_source);
    put_value(&r, unless_none(json_get(d->metrics, "tokens_input"), tokens_source));
    put_value(&r, unless_none(json_get(d->metrics, "tokens_output"), tokens_source));
    put_value(&r, unless_none(json_get(tokens, "cache_read"), tokens_source));
    put_value(&r, unless_none(json_get(tokens, "cache_creation"), tokens_source));
    put_value(&r, unless_none(json_get(tokens, "reasoning"), tokens_source));
    put_value(&r, json_get(d->metrics, "api_calls"));
    put_value(&r, json_get(ext, "turns"));
    put_value(&r, json_get(tools, "total"));
    put_value(&r, json_get(tools, "failed"));
    if (d->has_changes) {
        put_int(&r, (int64_t)d->changes.count);
        put_int(&r, d->changes.added);
        put_int(&r, d->changes.removed);
    } else {
        r.column += 3;
    }
    put_value(&r, json_get(metadata, "version"));
    return statement_insert(r.insert, e);
}

static int add_changes(struct query_rows *q, int64_t run, const struct patch_stat *changes,
                       struct err *e)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < changes->count; i++) {
        const struct patch_file *f = &changes->files[i];
        struct row r = row_begin(q, QUERY_CHANGES, run);
        put_bytes(&r, f->path);
        put_text(&r, str_n(&f->status, 1));
        put_bytes(&r, f->from);
        put_int(&r, f->added);
        put_int(&r, f->removed);
        put_int(&r, f->binary);
        result = statement_insert(r.insert, e);
    }
    return result;
}

static int add_files(struct query_rows *q, int64_t run, int dir_fd, const struct json *list,
                     struct err *e)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < json_len(list); i++) {
        struct stat st;
        const char *path = json_cstring(json_item(list, i), NULL);
        if (path == NULL || path[0] == '/') {
            continue;
        }
        struct row r = row_begin(q, QUERY_FILES, run);
        put_text(&r, str_of(path));
        if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            put_int(&r, (int64_t)st.st_size);
        }
        result = statement_insert(r.insert, e);
    }
    return result;
}

static int add_warnings(struct query_rows *q, int64_t run, const struct json *list, struct err *e)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < json_len(list); i++) {
        struct row r = row_begin(q, QUERY_WARNINGS, run);
        put_text(&r, cut_text(json_str(json_item(list, i), STR_EMPTY)));
        result = statement_insert(r.insert, e);
    }
    return result;
}

/* Every scalar below `v`, by its path. */
static int add_metrics(struct query_rows *q, int64_t run, const struct json *v, int depth,
                       int *left, struct err *e)
{
    size_t prefix = q->key.len;
    int result = 0;
    for (size_t i = 0; result == 0 && json_is(v, JSON_OBJECT) && i<v->object.len && * left> 0;
         i++) {
        const struct json_member *m = &v->object.members[i];
        q->key.len = prefix;
        buf_addf(&q->key, "%s%.*s", prefix > 0 ? "." : "", STR_ARG(m->key));
        if (json_is(m->value, JSON_OBJECT) && depth < METRICS_DEPTH) {
            result = add_metrics(q, run, m->value, depth + 1, left, e);
            continue;
        }
        struct row r = row_begin(q, QUERY_METRICS, run);
        put_text(&r, buf_str(&q->key));
        if (json_is(m->value, JSON_ARRAY) || json_is(m->value, JSON_OBJECT)) {
            put_json(&r, m->value, &q->json);
        } else {
            put_value(&r, m->value);
        }
        --*left;
        result = statement_insert(r.insert, e);
    }
    q->key.len = prefix;
    return result;
}

int query_rows_add_run(struct query_rows *q, int64_t run, int dir_fd, const char *path,
                       enum run_status *ret_status, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf patch = BUF_INIT(PATCH_MAX);
    struct run_documents d = { .dir_fd = dir_fd };
    int64_t pid;
    int left = METRICS_MAX;
    int r = read_documents(q, run, &d, a, e);
    r = r < 0 ? r : read_changes(q, run, &d, &patch, a, e);
    if (r < 0) {
        return r;
    }
    *ret_status = run_status_find(dir_fd, d.state, d.manifest, &pid);
    r = add_run_row(q, run, path, &d, *ret_status, e);
    r = r < 0 ? r : add_changes(q, run, &d.changes, e);
    r = r < 0 ? r : add_files(q, run, dir_fd, json_get(d.manifest, "artifacts"), e);
    r = r < 0 ? r : add_warnings(q, run, json_get(d.manifest, "warnings"), e);
    return r < 0 ? r : add_metrics(q, run, d.metrics, 0, &left, e);
}

/* --- lines --- */

bool query_mark_holds(const struct query_mark *m, int dir_fd, const char *name)
{
    struct stat st;
    bool exists = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    return m->inode == 0 ||
           (exists && (int64_t)st.st_ino == m->inode && (int64_t)st.st_size >= m->offset);
}

typedef int add_line(struct query_rows *q, int64_t run, const struct json *line, struct err *e);

struct line_file {
    struct query_rows *rows;
    const char *name;
    int64_t run;
    add_line *add;
    int64_t line;
    int problems;
};

static int note_bad_line(struct line_file *f, const char *why, struct err *e)
{
    f->problems++;
    return f->problems <= PROBLEMS_MAX
               ? add_problem(f->rows, f->run, f->name, f->line,
                             f->problems == PROBLEMS_MAX ? "and more bad lines" : why, e)
               : 0;
}

static int take_line(struct line_file *f, struct str text, struct err *e)
{
    static const struct json_limits limits = { .no_positions = true };
    struct json *line;
    struct err why = { 0 };
    f->line++;
    if (text.len == 0) {
        return 0;
    }
    arena_reset(f->rows->arena);
    if (json_parse(f->rows->arena, text, &limits, &line, &why) < 0) {
        return note_bad_line(f, why.msg, e);
    }
    return json_is(line, JSON_OBJECT) ? f->add(f->rows, f->run, line, e)
                                      : note_bad_line(f, "not a JSON object", e);
}

static int take_lines(struct line_file *f, struct lines *lines, struct err *e)
{
    struct str text;
    int r = 0;
    uint64_t overlong = lines->overlong;
    while (r == 0 && lines_next(lines, &text)) {
        for (; r == 0 && overlong < lines->overlong; overlong++) {
            f->line++;
            r = note_bad_line(f, "longer than 16 MiB", e);
        }
        r = r < 0 ? r : take_line(f, text, e);
    }
    return r;
}

/* Whole lines only: what stands after the last newline is being written, or was torn. */
static int64_t last_newline(const char *chunk, ssize_t n)
{
    const char *at = memrchr(chunk, '\n', (size_t)n);
    return at == NULL ? -1 : at - chunk;
}

static int read_lines(struct line_file *f, int fd, struct query_mark *mark, struct err *e)
{
    CLEANUP(free) char *chunk = xmalloc(CHUNK);
    struct lines lines;
    off_t at = (off_t)mark->offset;
    int r = 0;
    lines_init(&lines, JSONL_LINE_MAX);
    while (r == 0) {
        ssize_t n = pread(fd, chunk, CHUNK, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        int64_t newline = last_newline(chunk, n);
        mark->offset = newline < 0 ? mark->offset : (int64_t)at + newline + 1;
        at += n;
        lines_feed(&lines, str_n(chunk, (size_t)n));
        r = take_lines(f, &lines, e);
    }
    mark->line = f->line;
    lines_done(&lines);
    return r;
}

static int add_file(struct line_file *f, int dir_fd, struct query_mark *mark, struct err *e)
{
    const char *why = NULL;
    struct stat st;
    CLEANUP(fd) int fd = run_file_open(dir_fd, f->name, &why);
    if (fd < 0) {
        return strcmp(why, "missing") == 0 ? 0 : add_problem(f->rows, f->run, f->name, 0, why, e);
    }
    if (fstat(fd, &st) != 0) {
        return ERR_SYS(e, "stat '%s'", f->name);
    }
    f->line = mark->line;
    mark->inode = (int64_t)st.st_ino;
    return read_lines(f, fd, mark, e);
}

static int add_tool_call(struct query_rows *q, int64_t run, const struct json *event, struct err *e)
{
    const struct json *c = json_get(event, "context");
    struct row r = row_begin(q, QUERY_TOOL_CALLS, run);
    put_value(&r, json_get(event, "seq"));
    put_value(&r, json_get(event, "timestamp"));
    put_value(&r, json_get(c, "name"));
    put_value(&r, json_get(c, "call_id"));
    put_json(&r, json_get(c, "params"), &q->json);
    put_text(&r, cut_text(json_str(json_get(c, "rendered_output"), STR_EMPTY)));
    put_value(&r, json_get(c, "success"));
    put_value(&r, json_get(c, "failure"));
    put_value(&r, json_get(c, "policy"));
    put_value(&r, json_get(c, "duration_ms"));
    return statement_insert(r.insert, e);
}

static int add_model_call(struct query_rows *q, int64_t run, const struct json *event,
                          struct err *e)
{
    static const char *const keys[] = {
        "model",
        "format",
        "upstream",
        "status",
        "attempts",
        "complete",
        "side",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "estimated",
        "cost_usd",
        "first_byte_ms",
        "duration_ms",
    };
    const struct json *c = json_get(event, "context");
    struct row r = row_begin(q, QUERY_MODEL_CALLS, run);
    put_value(&r, json_get(c, "exchange"));
    put_value(&r, json_get(event, "timestamp"));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        put_value(&r, json_get(c, keys[i]));
    }
    return statement_insert(r.insert, e);
}

static int add_event(struct query_rows *q, int64_t run, const struct json *event, struct err *e)
{
    static const char *const keys[] = { "seq", "timestamp", "level", "logger", "event", "message" };
    struct str name = json_str(json_get(event, "event"), STR_EMPTY);
    struct row r = row_begin(q, QUERY_EVENTS, run);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        put_value(&r, json_get(event, keys[i]));
    }
    put_json(&r, json_get(event, "context"), &q->json);
    int result = statement_insert(r.insert, e);
    if (result == 0 && str_eqc(name, "ToolInvoked")) {
        result = add_tool_call(q, run, event, e);
    } else if (result == 0 && str_eqc(name, "model.call")) {
        result = add_model_call(q, run, event, e);
    }
    return result;
}

static int add_entry(struct query_rows *q, int64_t run, const struct json *line, struct err *e)
{
    struct entry_view v;
    if (!entry_view_read(line, &v)) {
        return 0;
    }
    struct row r = row_begin(q, QUERY_TRANSCRIPT, run);
    buf_reset(&q->text);
    entry_view_text(&v, &q->text);
    put_text(&r, v.source);
    put_int(&r, v.sequence);
    put_text(&r, v.timestamp);
    put_text(&r, str_of(entry_type_word(v.type)));
    put_text(&r, str_of(entry_view_role(&v)));
    put_text(&r, v.tool);
    put_text(&r, v.call_id);
    put_int(&r, v.failed);
    put_text(&r, cut_text(buf_str(&q->text)));
    put_int(&r, (int64_t)q->text.len);
    put_json(&r, v.detail, &q->json);
    return statement_insert(r.insert, e);
}

int query_rows_add_events(struct query_rows *q, int64_t run, int dir_fd, struct query_mark *mark,
                          struct err *e)
{
    struct line_file f = { .rows = q, .run = run, .name = "events.jsonl", .add = add_event };
    return add_file(&f, dir_fd, mark, e);
}

int query_rows_add_transcript(struct query_rows *q, int64_t run, int dir_fd,
                              struct query_mark *mark, struct err *e)
{
    struct line_file f = { .rows = q, .run = run, .name = "transcript.jsonl", .add = add_entry };
    return add_file(&f, dir_fd, mark, e);
}
