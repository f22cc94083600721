/* SPDX-License-Identifier: MIT
 *
 * Server-sent events. Lines are cut out of the input where they lie; only what crosses the border
 * of a chunk, or is joined from several lines, is copied.
 */
#include "wire/sse.h"

void sse_init(struct sse *s, size_t max)
{
    *s = (struct sse) {
        .line = BUF_INIT(max),
        .data = BUF_INIT(max),
        .name = BUF_INIT(max),
        .id = BUF_INIT(max),
        .retry = -1,
        .max = max,
    };
}

void sse_done(struct sse *s)
{
    buf_done(&s->line);
    buf_done(&s->data);
    buf_done(&s->name);
    buf_done(&s->id);
    s->input = STR_EMPTY;
}

void sse_feed(struct sse *s, struct str bytes)
{
    s->input = bytes;
}

static void forget_event(struct sse *s)
{
    buf_reset(&s->data);
    buf_reset(&s->name);
    buf_reset(&s->id);
    s->has_data = s->has_borrowed = s->handed_out = false;
    s->borrowed = STR_EMPTY;
    s->retry = -1;
}

static int too_large(struct sse *s, struct err *e)
{
    s->failed = true;
    return ERR(e, ERR_LIMIT, "an event of the stream is larger than %zu bytes", s->max);
}

/* Moves a borrowed data line to memory of our own: its chunk ends, or another line follows. */
static int keep_data(struct sse *s)
{
    int rc = s->has_borrowed ? buf_append(&s->data, s->borrowed, NULL) : 0;
    s->has_borrowed = false;
    return rc;
}

static int add_data(struct sse *s, struct str value, bool in_input)
{
    if (value.len > s->max) {
        return -ERR_LIMIT;
    }
    if (!s->has_data && in_input) {
        s->borrowed = value;
        s->has_data = s->has_borrowed = true;
        return 0;
    }
    int rc = keep_data(s);
    if (rc == 0 && s->has_data) {
        rc = buf_append_c(&s->data, '\n', NULL);
    }
    s->has_data = true;
    return rc < 0 ? rc : buf_append(&s->data, value, NULL);
}

static int set_text(struct buf *to, struct str value)
{
    buf_reset(to);
    return buf_append(to, value, NULL);
}

static int take_field(struct sse *s, struct str line, bool in_input)
{
    struct str value = line;
    struct str name = str_split(&value, ':');
    if (value.ptr == NULL) {
        value = STR_EMPTY;
    } else if (value.len > 0 && value.ptr[0] == ' ') {
        value = str_slice(value, 1, value.len);
    }
    if (str_eqc(name, "data")) {
        return add_data(s, value, in_input);
    }
    if (str_eqc(name, "event")) {
        return set_text(&s->name, value);
    }
    if (str_eqc(name, "id") && !str_has_nul(value)) {
        return set_text(&s->id, value);
    }
    int64_t retry;
    if (str_eqc(name, "retry") && str_to_i64(value, &retry) && retry >= 0) {
        s->retry = retry;
    }
    return 0;
}

static size_t line_end(struct str s)
{
    const char *lf = memchr(s.ptr, '\n', s.len);
    size_t n = lf == NULL ? s.len : (size_t)(lf - s.ptr);
    const char *cr = memchr(s.ptr, '\r', n);
    return cr == NULL ? n : (size_t)(cr - s.ptr);
}

enum line_result { LINE_NONE, LINE_IN_INPUT, LINE_COPIED, LINE_TOO_LONG };

/* The next line without its end. */
static enum line_result next_line(struct sse *s, struct str *ret)
{
    if (s->line_handed_out) {
        buf_reset(&s->line);
        s->line_handed_out = false;
    }
    if (s->skip_lf && s->input.len > 0) {
        s->input = str_slice(s->input, s->input.ptr[0] == '\n' ? 1 : 0, s->input.len);
        s->skip_lf = false;
    }
    if (s->input.len == 0) {
        return LINE_NONE;
    }
    size_t n = line_end(s->input);
    struct str piece = str_slice(s->input, 0, n);
    bool whole = n < s->input.len;
    s->skip_lf = whole && s->input.ptr[n] == '\r';
    s->input = str_slice(s->input, n + 1, s->input.len);
    if (whole && s->line.len == 0) {
        *ret = piece;
        return piece.len > s->max ? LINE_TOO_LONG : LINE_IN_INPUT;
    }
    if (buf_append(&s->line, piece, NULL) < 0) {
        return LINE_TOO_LONG;
    }
    if (!whole) {
        return LINE_NONE;
    }
    *ret = buf_str(&s->line);
    s->line_handed_out = true;
    return LINE_COPIED;
}

static void fill_event(struct sse *s, struct sse_event *ret)
{
    *ret = (struct sse_event) {
        .name = buf_str(&s->name),
        .data = s->has_borrowed ? s->borrowed : buf_str(&s->data),
        .id = buf_str(&s->id),
        .retry = s->retry,
    };
    s->handed_out = true;
}

static struct str without_mark(struct sse *s, struct str line)
{
    bool first = !s->started;
    s->started = true;
    return first && str_starts(line, STR("\xef\xbb\xbf")) ? str_slice(line, 3, line.len) : line;
}

int sse_next(struct sse *s, struct sse_event *ret, struct err *e)
{
    if (s->failed) {
        return ERR(e, ERR_LIMIT, "the stream had an event that was too large");
    }
    if (s->handed_out) {
        forget_event(s);
    }
    for (;;) {
        struct str line;
        enum line_result found = next_line(s, &line);
        if (found == LINE_TOO_LONG || (found == LINE_NONE && keep_data(s) < 0)) {
            return too_large(s, e);
        }
        if (found == LINE_NONE) {
            return 0;
        }
        line = without_mark(s, line);
        if (line.len > 0) {
            if (take_field(s, line, found == LINE_IN_INPUT) < 0) {
                return too_large(s, e);
            }
        } else if (s->has_data) {
            fill_event(s, ret);
            return 1;
        } else {
            forget_event(s);
        }
    }
}

bool sse_end(struct sse *s, struct sse_event *ret)
{
    if (s->handed_out) {
        forget_event(s);
    }
    if (s->line_handed_out) {
        buf_reset(&s->line);
        s->line_handed_out = false;
    }
    if (s->failed) {
        return false;
    }
    if (s->line.len > 0 && take_field(s, without_mark(s, buf_str(&s->line)), false) < 0) {
        return false;
    }
    buf_reset(&s->line);
    if (s->has_data) {
        fill_event(s, ret);
    }
    return s->has_data;
}

int sse_write(struct str name, struct str data, struct buf *out, struct err *e)
{
    int rc = name.len == 0 ? 0 : buf_append(out, STR("event: "), e);
    rc = rc < 0 || name.len == 0 ? rc : buf_append(out, name, e);
    rc = rc < 0 || name.len == 0 ? rc : buf_append_c(out, '\n', e);
    do {
        struct str line = str_split(&data, '\n');
        rc = rc < 0 ? rc : buf_append(out, STR("data: "), e);
        rc = rc < 0 ? rc : buf_append(out, line, e);
        rc = rc < 0 ? rc : buf_append_c(out, '\n', e);
    } while (data.ptr != NULL);
    return rc < 0 ? rc : buf_append_c(out, '\n', e);
}
