/* SPDX-License-Identifier: MIT
 *
 * Redaction of single strings and of JSON trees. Clean input, the normal case, is returned as it
 * is.
 */
#include <stdlib.h>

#include "base/json.h"
#include "record/redact_priv.h"

static void append_piece(void *ctx, struct str piece)
{
    buf_add(ctx, piece);
}

bool redact_is_clean(const struct redactor *r, struct str s)
{
    size_t at;
    const struct redact_pattern *found;
    if (r == NULL || r->pattern_count == 0) {
        return true;
    }
    if (redactor_find(r, s, 0, s.len, &at, &found)) {
        return false;
    }
    struct redact_hits hits = { 0 };
    redactor_collect(r, s, true, &hits);
    free(hits.items);
    return hits.len == 0;
}

struct str redact_str(const struct redactor *r, struct arena *a, struct str s)
{
    if (redact_is_clean(r, s)) {
        return s;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(SIZE_MAX / 2);
    struct redact_stream stream;
    redact_stream_init(&stream, r, append_piece, &out);
    redact_stream_feed(&stream, s);
    redact_stream_flush(&stream);
    redact_stream_done(&stream);
    return arena_str(a, buf_str(&out));
}

/* How many bytes at the front are the end of a secret. */
static size_t head_len(const struct redactor *r, struct str s, const struct redact_pattern **ret)
{
    size_t best = 0;
    for (size_t i = 0; i < r->pattern_count; i++) {
        const struct redact_pattern *p = &r->patterns[i];
        for (size_t len = p->len - 1; len > best; len--) {
            if (len <= s.len && memcmp(s.ptr, p->bytes + p->len - len, len) == 0) {
                best = len;
                *ret = p;
            }
        }
    }
    return best;
}

struct str redact_cut(const struct redactor *r, struct arena *a, struct str s, unsigned edges)
{
    enum { PART_MIN = 4 /* fewer bytes tell nothing, and end many an ordinary word */ };
    struct str clean = redact_str(r, a, s);
    if (r == NULL || r->pattern_count == 0) {
        return clean;
    }
    const struct redact_pattern *first = NULL;
    const struct redact_pattern *last = NULL;
    size_t from = edges & REDACT_CUT_FRONT ? head_len(r, clean, &first) : 0;
    size_t to = edges & REDACT_CUT_END ? redactor_tail(r, clean, &last) : clean.len;
    from = from >= PART_MIN ? from : 0;
    to = clean.len - to >= PART_MIN ? to : clean.len;
    if (from == 0 && to == clean.len) {
        return clean;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(SIZE_MAX / 2);
    if (from > 0) {
        buf_adds(&out, r->secrets[first->secret].mask);
    }
    buf_add(&out, str_slice(clean, from, to));
    if (to < clean.len) {
        buf_adds(&out, r->secrets[last->secret].mask);
    }
    return arena_str(a, buf_str(&out));
}

static struct json *redact_number(const struct redactor *r, struct arena *a, struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(64);
    if (json_write(v, JSON_COMPACT, &text, NULL) < 0) {
        return v;
    }
    struct str clean = redact_str(r, a, buf_str(&text));
    return clean.ptr == text.ptr ? v : json_string(a, clean);
}

static struct json *redact_array(const struct redactor *r, struct arena *a, struct json *v)
{
    struct json *copy = NULL;
    for (size_t i = 0; i < v->array.len; i++) {
        struct json *item = redact_json(r, a, v->array.items[i]);
        if (copy == NULL && item != v->array.items[i]) {
            copy = json_array(a);
            for (size_t k = 0; k < i; k++) {
                json_push(a, copy, v->array.items[k]);
            }
        }
        if (copy != NULL) {
            json_push(a, copy, item);
        }
    }
    return copy != NULL ? copy : v;
}

static struct json *redact_object(const struct redactor *r, struct arena *a, struct json *v)
{
    struct json *copy = NULL;
    for (size_t i = 0; i < v->object.len; i++) {
        struct json_member *m = &v->object.members[i];
        struct str key = redact_str(r, a, m->key);
        struct json *value = redact_json(r, a, m->value);
        if (copy == NULL && (key.ptr != m->key.ptr || value != m->value)) {
            copy = json_object(a);
            for (size_t k = 0; k < i; k++) {
                json_set(a, copy, v->object.members[k].key, v->object.members[k].value);
            }
        }
        if (copy != NULL) {
            json_set(a, copy, key, value);
        }
    }
    return copy != NULL ? copy : v;
}

/* Recursion is bounded by the depth limit of whatever parsed the tree. */
struct json *redact_json(const struct redactor *r, struct arena *a, struct json *v)
{
    if (v == NULL || r == NULL || r->pattern_count == 0) {
        return v;
    }
    switch (v->type) {
    case JSON_NULL:
    case JSON_BOOL:
        return v;
    case JSON_INT:
    case JSON_REAL:
        return redact_number(r, a, v);
    case JSON_STRING: {
        struct str clean = redact_str(r, a, v->string);
        return clean.ptr == v->string.ptr ? v : json_string(a, clean);
    }
    case JSON_ARRAY:
        return redact_array(r, a, v);
    case JSON_OBJECT:
        return redact_object(r, a, v);
    }
    return v;
}
