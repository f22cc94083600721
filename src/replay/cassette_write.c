/* SPDX-License-Identifier: MIT
 *
 * Recording cassettes. An exchange is packed as it goes and appended to the file in one write when
 * it is over: the file is a row of whole frames at any time, but for a write that a crash tore.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "record/redact.h"
#include "replay/cassette.h"
#include "replay/pack.h"

/* Packed bytes of one exchange; beyond it the exchange is lost, and told to be. */
#define TAKE_MAX ((size_t)128 << 20)
/* A body beyond this is not kept, since its line could not be read again. */
#define BODY_MAX (PACK_LINE_MAX / 3)

struct cassette_writer {
    int fd;
    off_t size;
    nsec began;
    const struct redactor *redactor;
    uint64_t lost;
    struct err first;
};

struct cassette_take {
    struct cassette_writer *writer;
    struct packer *packer;
    struct arena *arena; /* emptied after each line */
    struct buf packed, line;
    struct redact_stream stream;
    struct cassette_request request; /* without its strings */
    nsec began, now;
    int status;      /* of the head that is not yet written; 0: none */
    struct str head; /* its line */
    struct arena *head_arena;
    bool head_written;
    int failed;
    struct err why;
};

/* --- lines --- */

static void fail(struct cassette_take *t, int r)
{
    t->failed = t->failed < 0 ? t->failed : r;
}

static void put_line(struct cassette_take *t, const struct json *line)
{
    buf_reset(&t->line);
    int r = t->failed;
    r = r < 0 ? r : json_write(line, JSON_COMPACT, &t->line, &t->why);
    r = r < 0 ? r : buf_append_c(&t->line, '\n', &t->why);
    r = r < 0 ? r : packer_add(t->packer, buf_str(&t->line), &t->packed, &t->why);
    fail(t, r);
    arena_reset(t->arena);
}

static struct json *milliseconds(struct arena *a, nsec t)
{
    return json_number(a, (double)(t / 1000) / 1000);
}

static struct json *new_line(struct cassette_take *t, const char *type)
{
    struct json *line = json_object(t->arena);
    json_setc(t->arena, line, "type", json_cstr(t->arena, type));
    return line;
}

/* "text", or "base64" for what is no text. */
static void set_bytes(struct cassette_take *t, struct json *line, struct str bytes)
{
    if (str_is_utf8(bytes)) {
        json_setc(t->arena, line, "text", json_string(t->arena, bytes));
        return;
    }
    CLEANUP(buf) struct buf coded = BUF_INIT(PACK_LINE_MAX);
    fail(t, base64_write(bytes, &coded, &t->why));
    json_setc(t->arena, line, "base64", json_string(t->arena, buf_str(&coded)));
}

static struct json *fields_json(struct arena *a, const struct redactor *r,
                                const struct http_fields *f)
{
    struct json *o = json_object(a);
    for (size_t i = 0; i < f->len; i++) {
        if (!cassette_keeps_field(f->items[i].name)) {
            continue;
        }
        char *name = arena_dup(a, f->items[i].name);
        for (char *p = name; *p != '\0'; p++) {
            *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
        }
        json_setc(a, o, name, json_string(a, cassette_clean_text(r, a, f->items[i].value)));
    }
    return o;
}

/* --- the file --- */

/* All or nothing: a frame that the disk takes only in part is taken back. */
static int append(struct cassette_writer *w, struct str frame, struct err *e)
{
    int r = file_write_all(w->fd, frame, e);
    if (r < 0) {
        if (ftruncate(w->fd, w->size) < 0) {
            return err_wrap(e, "cassette, and taking a torn frame back: errno %d", errno);
        }
        return err_wrap(e, "cassette");
    }
    w->size += (off_t)frame.len;
    return 0;
}

static int write_about(struct cassette_writer *w, const struct cassette_writer_opts *o,
                       struct err *e)
{
    char iso[CLOCK_ISO_LEN];
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf packed = BUF_INIT(BUF_TEXT);
    struct json *about = o->about != NULL ? json_copy(a, o->about) : json_object(a);
    json_setc(a, about, "type", json_cstr(a, "cassette"));
    json_setc(a, about, "version", json_integer(a, CASSETTE_VERSION));
    json_setc(a, about, "cinch", json_cstr(a, CINCH_VERSION));
    if (o->about == NULL) {
        json_setc(a, about, "created", json_cstr(a, clock_iso(clock_wall(), iso)));
    }
    if (o->adapter.len > 0) {
        json_setc(a, about, "adapter", json_string(a, o->adapter));
    }
    if (o->places != NULL) {
        json_setc(a, about, "places", json_copy(a, o->places));
    }
    if (o->volatile_rules != NULL) {
        json_setc(a, about, "volatile", json_copy(a, o->volatile_rules));
    }
    int r = json_write(about, JSON_COMPACT, &line, e);
    r = r < 0 ? r : buf_append_c(&line, '\n', e);
    r = r < 0 ? r : pack_whole(buf_str(&line), &packed, e);
    return r < 0 ? r : append(w, buf_str(&packed), e);
}

int cassette_writer_new(const char *path, const struct cassette_writer_opts *o,
                        struct cassette_writer **ret, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        return ERR(e, ERR_EXISTS, "cassette '%s' is there already; choose another name", path);
    }
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create cassette '%s'", path);
    }
    CLEANUP(cassette_writer) struct cassette_writer *w = xcalloc(1, sizeof *w);
    *w = (struct cassette_writer) { .fd = fd,
                                    .began = o->about != NULL ? 0 : clock_now(),
                                    .redactor = o->redactor };
    int r = write_about(w, o, e);
    if (r == 0) {
        *ret = TAKE_PTR(w);
    }
    return r;
}

struct cassette_writer *cassette_writer_free(struct cassette_writer *w)
{
    if (w != NULL) {
        (void)close(w->fd);
        free(w);
    }
    return NULL;
}

uint64_t cassette_writer_lost(const struct cassette_writer *w, struct err *ret_first)
{
    if (ret_first != NULL) {
        *ret_first = w->first;
    }
    return w->lost;
}

/* --- an exchange --- */

static void put_exchange(struct cassette_take *t, const struct cassette_request *r)
{
    char iso[CLOCK_ISO_LEN];
    const struct redactor *red = t->writer->redactor;
    struct str target =
        cassette_clean_text(red, t->arena, cassette_clean_target(t->arena, r->target));
    struct json *line = new_line(t, "exchange");
    json_setc(t->arena, line, "number", json_integer(t->arena, (int64_t)r->number));
    struct str began = r->began.len > 0 ? r->began : str_of(clock_iso(clock_wall(), iso));
    json_setc(t->arena, line, "began", json_string(t->arena, began));
    json_setc(t->arena, line, "at_ms", milliseconds(t->arena, t->began - t->writer->began));
    json_setc(t->arena, line, "method", json_string(t->arena, r->method));
    json_setc(t->arena, line, "target", json_string(t->arena, target));
    json_setc(t->arena, line, "model", json_string(t->arena, r->model));
    json_setc(t->arena, line, "stream", json_boolean(t->arena, r->stream));
    put_line(t, line);
}

static void put_request(struct cassette_take *t, const struct cassette_request *r)
{
    struct json *line = new_line(t, "request");
    json_setc(t->arena, line, "headers", fields_json(t->arena, t->writer->redactor, &r->fields));
    if (r->body.len > BODY_MAX) {
        json_setc(t->arena, line, "missing", json_boolean(t->arena, true));
        json_setc(t->arena, line, "bytes", json_integer(t->arena, (int64_t)r->body.len));
    } else {
        set_bytes(t, line, cassette_clean_text(t->writer->redactor, t->arena, r->body));
    }
    put_line(t, line);
}

/* Bytes that the redactor lets pass, told as a piece of the answer that came now. */
static void on_clean(void *ctx, struct str piece)
{
    struct cassette_take *t = ctx;
    struct json *line = new_line(t, "data");
    json_setc(t->arena, line, "at_ms", milliseconds(t->arena, t->now - t->began));
    set_bytes(t, line, cassette_clean_text(NULL, t->arena, piece));
    put_line(t, line);
}

struct cassette_take *cassette_take_new(struct cassette_writer *w, const struct cassette_request *r,
                                        nsec now)
{
    struct cassette_take *t = xcalloc(1, sizeof *t);
    *t = (struct cassette_take) {
        .writer = w,
        .packer = packer_new(),
        .arena = arena_new(),
        .head_arena = arena_new(),
        .packed = BUF_INIT(TAKE_MAX),
        .line = BUF_INIT(PACK_LINE_MAX),
        .began = now,
        .now = now,
    };
    redact_stream_init(&t->stream, w->redactor, on_clean, t);
    put_exchange(t, r);
    put_request(t, r);
    return t;
}

/* A head is written when the first byte of its body comes, or at the end: an attempt that is
 * repeated leaves nothing behind. */
void cassette_take_head(struct cassette_take *t, int status, const struct http_fields *fields,
                        nsec now)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct arena *a = t->head_arena;
    arena_reset(a);
    struct json *line = json_object(a);
    json_setc(a, line, "type", json_cstr(a, "head"));
    json_setc(a, line, "at_ms", milliseconds(a, now - t->began));
    json_setc(a, line, "status", json_integer(a, status));
    json_setc(a, line, "headers", fields_json(a, t->writer->redactor, fields));
    fail(t, json_write(line, JSON_COMPACT, &text, &t->why));
    fail(t, buf_append_c(&text, '\n', &t->why));
    t->head = arena_str(a, buf_str(&text));
}

static void flush_head(struct cassette_take *t)
{
    if (!t->head_written && t->head.len > 0 && t->failed == 0) {
        fail(t, packer_add(t->packer, t->head, &t->packed, &t->why));
        t->head_written = true;
    }
}

void cassette_take_data(struct cassette_take *t, struct str bytes, nsec now)
{
    t->now = now;
    flush_head(t);
    if (t->failed == 0) {
        redact_stream_feed(&t->stream, bytes);
    }
}

static void take_free(struct cassette_take *t)
{
    redact_stream_done(&t->stream);
    packer_free(t->packer);
    arena_free(t->arena);
    arena_free(t->head_arena);
    buf_done(&t->packed);
    buf_done(&t->line);
    free(t);
}

int cassette_take_end(struct cassette_take *t, enum cassette_end end, const struct json *closing,
                      nsec now, struct err *e)
{
    static const char *const words[] = {
        [CASSETTE_COMPLETE] = "complete",
        [CASSETTE_CUT] = "cut",
        [CASSETTE_CANCELLED] = "cancelled",
    };
    struct cassette_writer *w = t->writer;
    flush_head(t);
    if (t->failed == 0) {
        redact_stream_flush(&t->stream);
    }
    t->now = now;
    struct json *line = new_line(t, "end");
    json_setc(t->arena, line, "at_ms", milliseconds(t->arena, now - t->began));
    json_setc(t->arena, line, "end", json_cstr(t->arena, words[end]));
    for (size_t i = 0; json_is(closing, JSON_OBJECT) && i < closing->object.len; i++) {
        const struct json_member *m = &closing->object.members[i];
        json_set(t->arena, line, m->key, json_copy(t->arena, m->value));
    }
    put_line(t, line);
    int r = t->failed;
    r = r < 0 ? r : packer_end(t->packer, &t->packed, &t->why);
    r = r < 0 ? r : append(w, buf_str(&t->packed), &t->why);
    if (r < 0) {
        w->first = w->lost == 0 ? t->why : w->first;
        w->lost++;
        if (e != NULL) {
            *e = t->why;
        }
    }
    take_free(t);
    return r;
}
