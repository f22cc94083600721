/* SPDX-License-Identifier: MIT
 *
 * Reading cassettes: at opening only the first line of each exchange, the rest when asked for.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "replay/cassette.h"
#include "replay/pack.h"

struct entry {
    uint64_t number;
    struct str method, target;
    struct str frame; /* packed */
};

struct cassette {
    struct arena *arena;
    const char *name;
    struct buf file; /* empty when the bytes are the caller's */
    struct json *about;
    struct entry *entries;
    size_t len, cap;
    bool torn;
};

static const struct json_limits line_limits = {
    .max_bytes = PACK_LINE_MAX,
    .max_depth = 64, /* lines are flat; bodies are strings in them */
    .max_values = 100000,
    .no_positions = true,
};

static int64_t nanoseconds(const struct json *ms)
{
    double v = json_real(ms, 0);
    return v > 0 && v < 1e12 ? (int64_t)(v * 1e6 + 0.5) : 0; /* thirty years; else none */
}

/* The first line of a frame: what it is about. */
static int first_line(struct arena *a, struct str frame, struct json **ret, struct err *e)
{
    CLEANUP(unpacker) struct unpacker *u = unpacker_new(frame, CASSETTE_EXCHANGE_MAX);
    struct str line;
    int r = unpacker_line(u, &line, e);
    if (r == 0) {
        return ERR(e, ERR_PARSE, "an empty frame");
    }
    return r < 0 ? r : json_parse(a, line, &line_limits, ret, e);
}

static bool is_type(const struct json *line, const char *type)
{
    return str_eqc(json_str(json_get(line, "type"), STR_EMPTY), type);
}

static int add_entry(struct cassette *c, struct str frame, struct err *e)
{
    struct json *about = NULL;
    int r = first_line(c->arena, frame, &about, e);
    if (r < 0) {
        return r;
    }
    if (!is_type(about, "exchange") || json_int(json_get(about, "number"), 0) < 1) {
        return ERR(e, ERR_PARSE, "no exchange");
    }
    if (c->len >= CASSETTE_EXCHANGES_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d exchanges", CASSETTE_EXCHANGES_MAX);
    }
    if (c->len == c->cap) {
        c->cap = c->cap == 0 ? 64 : c->cap * 2;
        c->entries = xrealloc(c->entries, c->cap * sizeof *c->entries);
    }
    c->entries[c->len++] = (struct entry) {
        .number = (uint64_t)json_int(json_get(about, "number"), 0),
        .method = json_str(json_get(about, "method"), STR_EMPTY),
        .target = json_str(json_get(about, "target"), STR_EMPTY),
        .frame = frame,
    };
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    return x->number != y->number ? (x->number > y->number ? 1 : -1)
                                  : (x->frame.ptr > y->frame.ptr) - (x->frame.ptr < y->frame.ptr);
}

static int read_about(struct cassette *c, struct str *rest, struct err *e)
{
    struct str frame;
    int r = pack_frame(rest, &frame, e);
    if (r == 0) {
        return ERR(e, ERR_PARSE, "no cassette: it is empty or cut");
    }
    r = r < 0 ? r : first_line(c->arena, frame, &c->about, e);
    if (r < 0) {
        return r;
    }
    if (!is_type(c->about, "cassette")) {
        return ERR(e, ERR_PARSE, "no cassette");
    }
    int64_t version = json_int(json_get(c->about, "version"), 0);
    if (version != CASSETTE_VERSION) {
        return ERR(e, ERR_UNSUPPORTED, "a cassette of version %" PRId64 "; this program reads %d",
                   version, CASSETTE_VERSION);
    }
    return 0;
}

static int index_file(struct cassette *c, struct str bytes, struct err *e)
{
    struct str rest = bytes;
    struct str frame;
    int r = read_about(c, &rest, e);
    if (r < 0) {
        return err_wrap(e, "%s", c->name);
    }
    while ((r = pack_frame(&rest, &frame, e)) > 0) {
        r = add_entry(c, frame, e);
        if (r < 0) {
            break;
        }
    }
    if (r < 0) {
        return err_wrap(e, "%s: frame at byte %zu", c->name, (size_t)(rest.ptr - bytes.ptr));
    }
    c->torn = rest.len > 0;
    if (c->len > 0) {
        qsort(c->entries, c->len, sizeof *c->entries, by_number);
    }
    return 0;
}

static struct cassette *make(const char *name)
{
    struct cassette *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    c->name = arena_dup(c->arena, str_of(name));
    buf_init(&c->file, CASSETTE_FILE_MAX);
    return c;
}

int cassette_open(const char *path, struct cassette **ret, struct err *e)
{
    CLEANUP(cassette) struct cassette *c = make(path);
    int r = file_read(AT_FDCWD, path, CASSETTE_FILE_MAX, &c->file, e);
    r = r < 0 ? r : index_file(c, buf_str(&c->file), e);
    if (r == 0) {
        *ret = TAKE_PTR(c);
    }
    return r;
}

int cassette_parse(struct str bytes, const char *name, struct cassette **ret, struct err *e)
{
    CLEANUP(cassette) struct cassette *c = make(name);
    int r = index_file(c, bytes, e);
    if (r == 0) {
        *ret = TAKE_PTR(c);
    }
    return r;
}

struct cassette *cassette_free(struct cassette *c)
{
    if (c != NULL) {
        arena_free(c->arena);
        buf_done(&c->file);
        free(c->entries);
        free(c);
    }
    return NULL;
}

size_t cassette_len(const struct cassette *c)
{
    return c->len;
}

bool cassette_torn(const struct cassette *c)
{
    return c->torn;
}

const struct json *cassette_about(const struct cassette *c)
{
    return c->about;
}

uint64_t cassette_number(const struct cassette *c, size_t i)
{
    return c->entries[i].number;
}

struct str cassette_method(const struct cassette *c, size_t i)
{
    return c->entries[i].method;
}

struct str cassette_target(const struct cassette *c, size_t i)
{
    return c->entries[i].target;
}

/* --- one exchange --- */

struct reading {
    struct arena *arena;
    struct cassette_exchange *exchange;
    struct playback_frame *frames;
    size_t cap;
    bool ended;
};

/* "text", or "base64" for what is no text. */
static int read_bytes(struct reading *g, const struct json *line, struct str *ret, struct err *e)
{
    const struct json *coded = json_get(line, "base64");
    *ret = json_str(json_get(line, "text"), STR_EMPTY);
    if (!json_is(coded, JSON_STRING)) {
        return 0;
    }
    CLEANUP(buf) struct buf bytes = BUF_INIT(CASSETTE_EXCHANGE_MAX);
    int r = base64_read(coded->string, &bytes, e);
    *ret = r == 0 ? arena_str(g->arena, buf_str(&bytes)) : STR_EMPTY;
    return r;
}

static int read_data(struct reading *g, const struct json *line, struct err *e)
{
    struct cassette_exchange *x = g->exchange;
    if (x->n_frames >= CASSETTE_FRAMES_MAX) {
        return ERR(e, ERR_LIMIT, "more than %zu pieces of an answer", CASSETTE_FRAMES_MAX);
    }
    if (x->n_frames == g->cap) {
        g->cap = g->cap == 0 ? 64 : g->cap * 2;
        struct playback_frame *bigger = arena_array(g->arena, g->cap, sizeof *bigger);
        if (x->n_frames > 0) {
            memcpy(bigger, g->frames, x->n_frames * sizeof *bigger);
        }
        g->frames = bigger;
        x->frames = bigger;
    }
    struct playback_frame *f = &g->frames[x->n_frames];
    f->wait = nanoseconds(json_get(line, "at_ms"));
    int r = read_bytes(g, line, &f->bytes, e);
    x->n_frames += r == 0;
    return r;
}

static int read_end(struct reading *g, struct json *line, struct err *e)
{
    struct cassette_exchange *x = g->exchange;
    struct str word = json_str(json_get(line, "end"), STR_EMPTY);
    if (!str_eqc(word, "complete") && !str_eqc(word, "cut") && !str_eqc(word, "cancelled")) {
        return ERR(e, ERR_PARSE, "unknown 'end' value '%.*s'", STR_ARG(str_slice(word, 0, 40)));
    }
    x->end = str_eqc(word, "complete") ? CASSETTE_COMPLETE
             : str_eqc(word, "cut")    ? CASSETTE_CUT
                                       : CASSETTE_CANCELLED;
    x->took = nanoseconds(json_get(line, "at_ms"));
    x->closing = line;
    g->ended = true;
    return 0;
}

static int read_line(struct reading *g, struct json *line, struct err *e)
{
    struct cassette_exchange *x = g->exchange;
    if (is_type(line, "exchange")) {
        x->about = line;
        x->number = (uint64_t)json_int(json_get(line, "number"), 0);
        x->method = json_str(json_get(line, "method"), STR_EMPTY);
        x->target = json_str(json_get(line, "target"), STR_EMPTY);
        x->began = nanoseconds(json_get(line, "at_ms"));
        return 0;
    }
    if (is_type(line, "request")) {
        x->fields = json_get(line, "headers");
        x->body_missing = json_bool(json_get(line, "missing"), false);
        return read_bytes(g, line, &x->body, e);
    }
    if (is_type(line, "head")) {
        x->status = (int)json_int(json_get(line, "status"), 0);
        x->answer_fields = json_get(line, "headers");
        x->answered = nanoseconds(json_get(line, "at_ms"));
        return x->status >= 100 && x->status <= 999
                   ? 0
                   : ERR(e, ERR_PARSE, "invalid HTTP status %d", x->status);
    }
    if (is_type(line, "data")) {
        return read_data(g, line, e);
    }
    return is_type(line, "end") ? read_end(g, line, e) : 0; /* other types: of later versions */
}

int cassette_exchange(const struct cassette *c, size_t i, struct arena *a,
                      struct cassette_exchange *ret, struct err *e)
{
    CLEANUP(unpacker)
    struct unpacker *u = unpacker_new(c->entries[i].frame, CASSETTE_EXCHANGE_MAX);
    struct reading g = { .arena = a, .exchange = ret };
    struct str text;
    size_t number = 0;
    int r = 0;
    *ret = (struct cassette_exchange) { 0 };
    while (!g.ended && (r = unpacker_line(u, &text, e)) > 0) {
        struct json *line = NULL;
        number++;
        r = json_parse(a, text, &line_limits, &line, e);
        r = r < 0 ? r : read_line(&g, line, e);
        if (r < 0) {
            break;
        }
    }
    if (r == 0 && !g.ended) {
        r = ERR(e, ERR_PARSE, "no end");
    }
    return r < 0 ? err_wrap(e, "%s: exchange %" PRIu64 ", line %zu", c->name, c->entries[i].number,
                            number)
                 : 0;
}
