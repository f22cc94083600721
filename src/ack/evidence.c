/* SPDX-License-Identifier: MIT
 *
 * Reading a record. JSON Lines are read line by line, so that one broken line is named by its
 * number.
 */
#include "ack/evidence.h"

#include <fcntl.h>

#include "base/file.h"
#include "replay/cassette.h"

enum {
    RECORD_FILE_MAX = 256 << 20,
    REQUEST_TEXT_MAX = 64 << 20,
    LINES_MAX = 1000000,
};

static int read_file(struct arena *a, const char *dir, const char *name, struct str *ret,
                     struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(RECORD_FILE_MAX);
    const char *path = arena_printf(a, "%s/%s", dir, name);
    int r = file_read(AT_FDCWD, path, RECORD_FILE_MAX, &text, e);
    if (r == 0) {
        *ret = arena_str(a, buf_str(&text));
    }
    return r;
}

static int read_json(struct arena *a, const char *dir, const char *name, struct json **ret,
                     struct err *e)
{
    struct str text;
    int r = read_file(a, dir, name, &text, e);
    r = r < 0 ? r : json_parse(a, text, NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", name) : 0;
}

/* A list of the file's lines. */
static int read_lines(struct arena *a, const char *dir, const char *name, struct json **ret,
                      struct err *e)
{
    struct str text;
    int r = read_file(a, dir, name, &text, e);
    if (r < 0) {
        return r;
    }
    struct json *list = json_array(a);
    struct json_limits limits = { .no_positions = true };
    for (size_t number = 1; text.len > 0; number++) {
        struct str line = str_split(&text, '\n');
        struct json *v;
        if (number > LINES_MAX) {
            return ERR(e, ERR_LIMIT, "%s has more than %d lines", name, LINES_MAX);
        }
        r = json_parse(a, line, &limits, &v, e);
        if (r < 0) {
            return err_wrap(e, "%s, line %zu", name, number);
        }
        json_push(a, list, v);
    }
    *ret = list;
    return 0;
}

static int read_transcript(struct arena *a, const char *dir, struct json **ret, struct err *e)
{
    struct json *lines;
    int r = read_lines(a, dir, "transcript.jsonl", &lines, e);
    if (r < 0) {
        return r;
    }
    *ret = json_array(a);
    for (size_t i = 0; i < lines->array.len; i++) {
        struct json *line = lines->array.items[i];
        if (str_eqc(json_str(json_get(line, "event"), STR_EMPTY), "transcript.entry")) {
            json_push(a, *ret, line);
        }
    }
    return 0;
}

/* session/after.jsonl is one snapshot; absent where the run had no session. */
static int read_session(struct arena *a, const char *dir, struct json **ret, struct err *e)
{
    *ret = NULL;
    if (!file_exists(AT_FDCWD, arena_printf(a, "%s/session/after.jsonl", dir))) {
        return 0;
    }
    struct json *lines;
    int r = read_lines(a, dir, "session/after.jsonl", &lines, e);
    if (r < 0) {
        return r;
    }
    struct json *slices = json_get(json_item(lines, 0), "slices");
    *ret = json_object(a);
    for (size_t i = 0; i < json_len(slices); i++) {
        struct json *slice = json_item(slices, i);
        json_set(a, *ret, json_str(json_get(slice, "slice_type"), STR_EMPTY),
                 json_get(slice, "items"));
    }
    return 0;
}

/* All strings of a tree, in order; what does not fit is left out. Recursion is bounded by the depth
 * limit of the parser. */
static int collect_text(const struct json *v, struct buf *out)
{
    int r = 0;
    if (v->type == JSON_STRING) {
        r = buf_append(out, v->string, NULL);
        r = r < 0 ? r : buf_append_c(out, '\n', NULL);
    }
    for (size_t i = 0; r == 0 && v->type == JSON_ARRAY && i < v->array.len; i++) {
        r = collect_text(v->array.items[i], out);
    }
    for (size_t i = 0; r == 0 && v->type == JSON_OBJECT && i < v->object.len; i++) {
        r = collect_text(v->object.members[i].value, out);
    }
    return r;
}

/* What the gateway marked, and counting of tokens. */
static struct str side_of(const struct cassette_exchange *x)
{
    bool counts = str_find(x->target, STR("count_tokens")) < x->target.len ||
                  str_find(x->target, STR(":countTokens")) < x->target.len;
    return counts ? STR("count") : json_str(json_get(x->answer_fields, "x-cinch-side"), STR_EMPTY);
}

static int read_request(struct arena *a, const struct cassette *c, size_t i,
                        struct evidence_request *ret, struct err *e)
{
    struct cassette_exchange x;
    int r = cassette_exchange(c, i, a, &x, e);
    if (r < 0) {
        return r;
    }
    *ret = (struct evidence_request) {
        .target = arena_dup(a, x.target),
        .side = side_of(&x),
        .status = x.status,
        .complete = x.end == CASSETTE_COMPLETE,
        .text = arena_str(a, x.body),
    };
    struct json *body;
    struct json_limits limits = { .no_positions = true };
    if (x.body.len > 0 && json_parse(a, x.body, &limits, &body, NULL) == 0) {
        CLEANUP(buf) struct buf text = BUF_INIT(REQUEST_TEXT_MAX);
        (void)collect_text(body, &text);
        ret->body = body;
        ret->text = arena_str(a, buf_str(&text));
    }
    return 0;
}

static int read_traffic(struct arena *a, const char *dir, struct evidence *ev, struct err *e)
{
    const char *path = arena_printf(a, "%s/evidence/traffic.cassette", dir);
    if (!file_exists(AT_FDCWD, path)) {
        return 0;
    }
    struct cassette *c;
    int r = cassette_open(path, &c, e);
    if (r < 0) {
        return r;
    }
    ev->requests = arena_array(a, cassette_len(c), sizeof *ev->requests);
    for (size_t i = 0; r == 0 && i < cassette_len(c); i++) {
        if (str_eqc(cassette_method(c, i), "POST")) {
            r = read_request(a, c, i, &ev->requests[ev->requests_len++], e);
        }
    }
    cassette_free(c);
    return r;
}

int evidence_load(struct arena *a, const char *dir, struct evidence *ret, struct err *e)
{
    *ret = (struct evidence) { .dir = arena_dup(a, str_of(dir)) };
    int r = read_json(a, dir, "manifest.json", &ret->manifest, e);
    r = r < 0 ? r : read_json(a, dir, "metrics.json", &ret->metrics, e);
    r = r < 0 ? r : read_json(a, dir, "result.json", &ret->result, e);
    r = r < 0 ? r : read_lines(a, dir, "events.jsonl", &ret->events, e);
    r = r < 0 ? r : read_transcript(a, dir, &ret->transcript, e);
    r = r < 0 ? r : read_session(a, dir, &ret->session, e);
    r = r < 0 ? r : read_traffic(a, dir, ret, e);
    if (r == 0 && file_exists(AT_FDCWD, arena_printf(a, "%s/diff.patch", dir))) {
        r = read_file(a, dir, "diff.patch", &ret->patch, e);
    }
    return r;
}
