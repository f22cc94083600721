/* SPDX-License-Identifier: MIT
 *
 * Whole cassettes: copied without what must not be in them, and compared with each other.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "data/json_diff.h"
#include "replay/cassette.h"

/* Differences of one exchange that are listed. */
enum { FIELDS_MAX = 20 };

/* --- copy --- */

/* Fields of a recorded exchange, as many as fit. */
static struct http_fields fields_of(const struct json *v, struct arena *a)
{
    struct http_field *items = arena_array(a, json_len(v) + 1, sizeof *items);
    size_t n = 0;
    for (size_t i = 0; json_is(v, JSON_OBJECT) && i < json_len(v); i++) {
        items[n].name = v->object.members[i].key;
        items[n++].value = json_str(v->object.members[i].value, STR_EMPTY);
    }
    return (struct http_fields) { items, n };
}

/* The last line but for what the writer says itself. */
static struct json *closing_of(const struct cassette_exchange *x, struct arena *a)
{
    struct json *closing = json_copy(a, x->closing);
    json_remove(closing, STR("type"));
    json_remove(closing, STR("at_ms"));
    json_remove(closing, STR("end"));
    return closing;
}

static int copy_exchange(struct cassette_writer *w, const struct cassette_exchange *x,
                         struct arena *a, struct err *e)
{
    struct cassette_request r = {
        .number = x->number,
        .method = x->method,
        .target = x->target,
        .fields = fields_of(x->fields, a),
        .body = x->body,
        .model = json_str(json_get(x->about, "model"), STR_EMPTY),
        .stream = json_bool(json_get(x->about, "stream"), false),
        .began = json_str(json_get(x->about, "began"), STR_EMPTY),
    };
    if (x->body_missing) {
        return ERR(e, ERR_UNSUPPORTED, "exchange %" PRIu64 " was recorded without its request",
                   x->number);
    }
    struct cassette_take *t = cassette_take_new(w, &r, x->began);
    if (x->status != 0) {
        struct http_fields fields = fields_of(x->answer_fields, a);
        cassette_take_head(t, x->status, &fields, x->began + x->answered);
    }
    for (size_t i = 0; i < x->n_frames; i++) {
        cassette_take_data(t, x->frames[i].bytes, x->began + x->frames[i].wait);
    }
    return cassette_take_end(t, x->end, closing_of(x, a), x->began + x->took, e);
}

int cassette_copy(const struct cassette *from, const char *path, const struct redactor *r,
                  struct err *e)
{
    CLEANUP(cassette_writer) struct cassette_writer *w = NULL;
    struct cassette_writer_opts opts = { .redactor = r, .about = cassette_about(from) };
    int result = cassette_writer_new(path, &opts, &w, e);
    for (size_t i = 0; result == 0 && i < cassette_len(from); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct cassette_exchange x;
        result = cassette_exchange(from, i, a, &x, e);
        result = result < 0 ? result : copy_exchange(w, &x, a, e);
    }
    if (result < 0 && w != NULL) {
        (void)unlink(path); /* ours: the writer takes no file that is there */
    }
    return result;
}

/* --- diff --- */

static struct str answer_of(const struct cassette_exchange *x, struct arena *a)
{
    CLEANUP(buf) struct buf b = BUF_INIT(CASSETTE_EXCHANGE_MAX);
    for (size_t i = 0; i < x->n_frames; i++) {
        buf_add(&b, x->frames[i].bytes);
    }
    return arena_str(a, buf_str(&b));
}

static int write_title(const struct cassette_exchange *x, struct buf *out, struct err *e)
{
    return buf_printf(out, e, "exchange %" PRIu64 ", %.*s %.*s\n", x->number, STR_ARG(x->method),
                      STR_ARG(x->target));
}

/* 1 when they differ, and `out` says how. */
static int diff_exchange(const struct cassette_exchange *l, const struct cassette_exchange *r,
                         struct cassette_rules *rules, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json_diff d;
    struct str left = answer_of(l, a);
    struct str right = answer_of(r, a);
    bool place = str_eq(l->method, r->method) && str_eq(l->target, r->target);
    bool answer = l->status == r->status && l->end == r->end && str_eq(left, right);
    cassette_compare(rules, cassette_body_tree(a, l->body), cassette_body_tree(a, r->body),
                     FIELDS_MAX, a, &d);
    if (place && answer && d.len == 0) {
        return 0;
    }
    int result = write_title(l, out, e);
    if (result == 0 && !place) {
        result = buf_printf(out, e, "  is now %.*s %.*s\n", STR_ARG(r->method), STR_ARG(r->target));
    }
    CLEANUP(buf) struct buf lines = BUF_INIT(BUF_TEXT);
    result = result < 0 ? result : json_diff_write(&d, &lines, e);
    struct str rest = buf_str(&lines);
    while (result == 0 && rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        result = buf_printf(out, e, "  request %.*s\n", STR_ARG(line));
    }
    if (result == 0 && !answer) {
        result = buf_printf(out, e, "  answer: status %d, %zu bytes is now status %d, %zu bytes\n",
                            l->status, left.len, r->status, right.len);
    }
    return result < 0 ? result : 1;
}

int cassette_diff(const struct cassette *left, const struct cassette *right,
                  struct cassette_rules *rules, size_t max, struct buf *out, struct err *e)
{
    size_t n = cassette_len(left) < cassette_len(right) ? cassette_len(left) : cassette_len(right);
    int found = 0;
    for (size_t i = 0; i < n && (size_t)found < max; i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct cassette_exchange l;
        struct cassette_exchange r;
        int result = cassette_exchange(left, i, a, &l, e);
        result = result < 0 ? result : cassette_exchange(right, i, a, &r, e);
        result = result < 0 ? result : diff_exchange(&l, &r, rules, out, e);
        if (result < 0) {
            return result;
        }
        found += result;
    }
    if (cassette_len(left) != cassette_len(right) && (size_t)found < max) {
        int result = buf_printf(out, e, "%zu exchanges are now %zu\n", cassette_len(left),
                                cassette_len(right));
        return result < 0 ? result : found + 1;
    }
    return found;
}
