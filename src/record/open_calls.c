/* SPDX-License-Identifier: MIT
 *
 * Calls under way; see open_calls.h.
 */
#include "record/open_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/macro.h"
#include "record/record.h"
#include "record/redact.h"

enum {
    LINE_LEN = 512, /* with its newline */
    CALLS_MAX = 65536,
    NAME_LEN = 200,
};

/* --- writing --- */

static void note_failure(struct record *rec, const char *what)
{
    struct err e;
    (void)ERR_SYS_AS(&e, ERR_OUTPUT, "%s '%s'", what, OPEN_CALLS_NAME);
    loss_note(&rec->loss, OPEN_CALLS_NAME, &e, 0, 1);
}

static bool open_file(struct open_calls *o, struct record *rec)
{
    if (o->fd < 0) {
        o->fd = openat(rec->dir.dir_fd, OPEN_CALLS_NAME,
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (o->fd < 0) {
            note_failure(rec, "create");
        }
    }
    return o->fd >= 0;
}

/* The line of this exchange, or a free one. */
static size_t find_slot(struct open_calls *o, int64_t exchange)
{
    size_t at = o->len;
    for (size_t i = 0; i < o->len; i++) {
        if (o->slots[i] == exchange) {
            return i;
        }
        at = o->slots[i] == 0 && at == o->len ? i : at;
    }
    if (at == o->len) {
        o->slots = xrealloc(o->slots, (o->len + 1) * sizeof *o->slots);
        o->slots[o->len++] = 0;
    }
    return at;
}

static bool write_slot(const struct open_calls *o, size_t at, struct str text)
{
    char line[LINE_LEN];
    memset(line, ' ', sizeof line);
    memcpy(line, text.ptr, text.len);
    line[LINE_LEN - 1] = '\n';
    ssize_t n;
    do {
        n = pwrite(o->fd, line, sizeof line, (off_t)(at * LINE_LEN));
    } while (n < 0 && errno == EINTR);
    return n == LINE_LEN;
}

static struct json *name_json(struct arena *a, const struct redactor *r, struct str name)
{
    struct str clean = redact_cut(r, a, str_slice(name, 0, NAME_LEN), REDACT_CUT_END);
    return json_string(a, clean);
}

static void write_call(struct arena *a, const struct redactor *r,
                       const struct event_model_call *call, bool names, struct buf *out)
{
    struct json *o = json_object(a);
    json_setc(a, o, "exchange", json_integer(a, call->exchange));
    json_setc(a, o, "attempts", json_integer(a, call->attempts));
    json_setc(a, o, "translated", json_boolean(a, call->translated));
    json_setc(a, o, "input", json_integer(a, call->input));
    json_setc(a, o, "output", json_integer(a, call->output));
    json_setc(a, o, "cost_usd", json_number(a, call->cost_usd));
    json_setc(a, o, "format", json_cstr(a, call->format));
    if (names) {
        json_setc(a, o, "model", name_json(a, r, call->model));
        json_setc(a, o, "upstream", name_json(a, r, str_of(call->upstream)));
    }
    buf_reset(out);
    if (json_write(o, JSON_COMPACT, out, NULL) < 0) {
        buf_reset(out);
    }
}

void open_calls_add(struct open_calls *o, struct record *rec, const struct event_model_call *call)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (!open_file(o, rec)) {
        return;
    }
    write_call(a, rec->redactor, call, true, &text);
    if (text.len >= LINE_LEN) { /* names of many escaped characters */
        write_call(a, rec->redactor, call, false, &text);
    }
    size_t at = find_slot(o, call->exchange);
    o->slots[at] = call->exchange;
    if (!write_slot(o, at, buf_str(&text))) {
        note_failure(rec, "write");
    }
}

void open_calls_remove(struct open_calls *o, int64_t exchange)
{
    for (size_t i = 0; i < o->len && o->fd >= 0; i++) {
        if (o->slots[i] == exchange) {
            o->slots[i] = 0;
            (void)write_slot(o, i, STR_EMPTY); /* recovery knows a call that has its event */
            return;
        }
    }
}

void open_calls_done(struct open_calls *o, const struct rundir *d)
{
    if (o->fd >= 0) {
        cleanup_fd(&o->fd);
        o->fd = -1;
        (void)unlinkat(d->dir_fd, OPEN_CALLS_NAME, 0);
    }
    free(TAKE_PTR(o->slots));
    o->len = 0;
}

/* --- reading --- */

static int64_t count_at(const struct json *o, const char *key)
{
    int64_t n = json_int(json_get(o, key), 0);
    return n < 0 ? 0 : n;
}

static const char *known_format(struct str word)
{
    static const char *const words[] = { "anthropic", "responses", "chat", "gemini" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqc(word, words[i])) {
            return words[i];
        }
    }
    return NULL;
}

static struct event_model_call *read_call(struct arena *a, struct str line)
{
    struct json *o;
    if (str_trim(line).len == 0 || json_parse(a, line, NULL, &o, NULL) < 0) {
        return NULL;
    }
    const char *format = known_format(json_str(json_get(o, "format"), STR_EMPTY));
    int64_t exchange = json_int(json_get(o, "exchange"), 0);
    int64_t attempts = json_int(json_get(o, "attempts"), 0);
    if (exchange <= 0 || format == NULL || attempts < 1 || attempts > INT32_MAX) {
        return NULL;
    }
    struct event_model_call *c = ARENA_NEW(a, struct event_model_call);
    *c = (struct event_model_call) {
        .exchange = exchange,
        .format = format,
        .model = json_str(json_get(o, "model"), STR_EMPTY),
        .upstream = json_cstring(json_get(o, "upstream"), "unknown"),
        .attempts = (int)attempts,
        .translated = json_bool(json_get(o, "translated"), false),
        .input = count_at(o, "input"),
        .output = count_at(o, "output"),
        .cache_read = -1,
        .cache_write = -1,
        .reasoning = -1,
        .estimated = true,
        .cost_usd = json_real(json_get(o, "cost_usd"), -1),
        .first_byte = -1,
    };
    return c;
}

struct event_model_call **open_calls_read(const struct rundir *d, struct arena *a)
{
    CLEANUP(buf) struct buf text = BUF_INIT((size_t)CALLS_MAX * LINE_LEN);
    size_t n = 0;
    if (rundir_read(d, OPEN_CALLS_NAME, text.max, &text, NULL) < 0) {
        buf_reset(&text); /* there is none, or what stands there is none of ours */
    }
    struct event_model_call **calls = arena_array(a, text.len / LINE_LEN + 1, sizeof *calls);
    for (size_t at = 0; at + LINE_LEN <= text.len; at += LINE_LEN) {
        calls[n] = read_call(a, str_slice(buf_str(&text), at, at + LINE_LEN));
        n += calls[n] != NULL ? 1 : 0;
    }
    calls[n] = NULL;
    return calls;
}
