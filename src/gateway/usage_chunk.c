/* SPDX-License-Identifier: MIT
 *
 * Removing the usage chunk of a stream; see usage_chunk.h.
 */
#include "gateway/usage_chunk.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/macro.h"
#include "wire/sse.h"

struct usage_chunk {
    struct buf held;   /* the bytes of the current event */
    bool passing;      /* the current event is too large and was let through */
    bool line_has_any; /* the current line is not empty */
    bool after_cr;     /* the last line ended with CR: an LF belongs to it */
    bool empty_line;   /* … and that line was empty, so the event ends behind the LF */
};

struct usage_chunk *usage_chunk_new(void)
{
    struct usage_chunk *u = xcalloc(1, sizeof *u);
    buf_init(&u->held, USAGE_CHUNK_MAX);
    return u;
}

struct usage_chunk *usage_chunk_free(struct usage_chunk *u)
{
    if (u != NULL) {
        buf_done(&u->held);
        free(u);
    }
    return NULL;
}

/* No choices, but a usage. */
static bool is_usage_data(struct str data)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v;
    if (json_parse(a, data, NULL, &v, NULL) < 0) {
        return false;
    }
    const struct json *choices = json_get(v, "choices");
    return json_is(choices, JSON_ARRAY) && json_len(choices) == 0 &&
           json_is(json_get(v, "usage"), JSON_OBJECT);
}

static bool is_usage_event(struct str event)
{
    struct sse s;
    struct sse_event ev;
    if (str_find(event, STR("usage")) == event.len) {
        return false; /* almost all events; no parser is needed */
    }
    sse_init(&s, USAGE_CHUNK_MAX);
    sse_feed(&s, event);
    bool found = sse_next(&s, &ev, NULL) > 0 || sse_end(&s, &ev);
    found = found && is_usage_data(ev.data);
    sse_done(&s);
    return found;
}

static void release_event(struct usage_chunk *u, struct buf *out)
{
    if (!is_usage_event(buf_str(&u->held))) {
        buf_add(out, buf_str(&u->held));
    }
    buf_reset(&u->held);
    u->passing = false;
}

static void hold(struct usage_chunk *u, struct str bytes, struct buf *out)
{
    if (!u->passing && u->held.len + bytes.len > USAGE_CHUNK_MAX) {
        buf_add(out, buf_str(&u->held));
        buf_reset(&u->held);
        u->passing = true;
    }
    buf_add(u->passing ? out : &u->held, bytes);
}

/* Whether the byte ends an empty line, and with it the event. A CR that ends one waits for the byte
 * behind it, which may belong to it. */
static bool ends_event(struct usage_chunk *u, char c)
{
    bool ends = false;
    if (c == '\n' && !u->after_cr) {
        ends = !u->line_has_any;
    }
    u->after_cr = c == '\r';
    u->empty_line = c == '\r' && !u->line_has_any;
    u->line_has_any = c != '\n' && c != '\r';
    return ends;
}

void usage_chunk_feed(struct usage_chunk *u, struct str bytes, struct buf *out)
{
    size_t from = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        if (u->empty_line) {
            /* "\r\r" or "\r\n\r": the event is complete, with an LF that may follow */
            size_t to = i + (bytes.ptr[i] == '\n' ? 1 : 0);
            hold(u, str_slice(bytes, from, to), out);
            from = to;
            release_event(u, out);
            u->empty_line = false;
            if (to > i) {
                u->after_cr = false;
                continue;
            }
        }
        if (ends_event(u, bytes.ptr[i])) {
            hold(u, str_slice(bytes, from, i + 1), out);
            from = i + 1;
            release_event(u, out);
        }
    }
    hold(u, str_slice(bytes, from, bytes.len), out);
}

void usage_chunk_end(struct usage_chunk *u, struct buf *out)
{
    release_event(u, out);
}
