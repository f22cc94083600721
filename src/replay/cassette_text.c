/* SPDX-License-Identifier: MIT
 *
 * Comparing a request with the recorded one as texts. Requests of two runs differ in a few values
 * among many thousand: both texts are walked side by side, what is equal is skipped at the speed of
 * memory, and only values that differ are read. Where the texts differ in more than values, or in a
 * value that matters, the trees must tell (cassette_compare()).
 */
#include "base/arena.h"
#include "base/json.h"
#include "gateway/cursor.h"
#include "replay/cassette.h"

enum { DEPTH_MAX = 64 };

struct level {
    bool object;
    size_t index;
    struct str key;
};

/* Where we are in the recorded text. */
struct walk {
    struct cursor c;
    struct level levels[DEPTH_MAX];
    size_t depth;
    bool key_next;
};

struct value {
    size_t from, to;
};

/* How many bytes are the same. */
static size_t common(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    size_t i = 0;
    enum { STEP = 256 }; /* memcmp() does not say where; it is many times faster than a loop */
    while (i + STEP <= n && memcmp(a.ptr + i, b.ptr + i, STEP) == 0) {
        i += STEP;
    }
    while (i < n && a.ptr[i] == b.ptr[i]) {
        i++;
    }
    return i;
}

static bool open_level(struct walk *w, bool object)
{
    if (w->depth == DEPTH_MAX) {
        return false;
    }
    w->levels[w->depth++] = (struct level) { .object = object };
    w->key_next = object;
    w->c.at++;
    return true;
}

/* A mark between values. False: this is no JSON, or too deep. */
static bool take_mark(struct walk *w, int mark)
{
    struct level *top = w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
    if (mark == '{' || mark == '[') {
        return open_level(w, mark == '{');
    }
    if (top == NULL) {
        return false;
    }
    if (mark == ',') {
        top->index++;
        w->key_next = top->object;
    } else if (mark != ':') {
        w->depth--;
        w->key_next = false;
    }
    w->c.at++;
    return true;
}

/* The next value that is no list and no object. False: there is none, or the text is odd. */
static bool next_value(struct walk *w, struct value *ret)
{
    for (;;) {
        int next = cursor_peek(&w->c);
        if (next < 0) {
            return false;
        }
        bool good = true;
        if (strchr("{}[],:", next) != NULL) {
            good = take_mark(w, next);
        } else if (w->key_next) {
            good = cursor_plain_string(&w->c, &w->levels[w->depth - 1].key);
            w->key_next = false;
        } else {
            ret->from = w->c.at;
            good = cursor_skip_value(&w->c);
            ret->to = w->c.at;
            return good;
        }
        if (!good) {
            return false;
        }
    }
}

static void write_pointer(const struct walk *w, struct buf *out)
{
    for (size_t i = 0; i < w->depth; i++) {
        const struct level *l = &w->levels[i];
        if (!l->object) {
            buf_addf(out, "/%zu", l->index);
            continue;
        }
        buf_adds(out, "/");
        for (size_t k = 0; k < l->key.len; k++) {
            char c = l->key.ptr[k];
            buf_add(out, c == '~' ? STR("~0") : c == '/' ? STR("~1") : str_n(&c, 1));
        }
    }
}

static bool is_harmless(struct cassette_rules *r, const struct redactor *redactor,
                        const struct walk *w, struct str recorded, struct str now)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf pointer = BUF_INIT(BUF_TEXT);
    write_pointer(w, &pointer);
    const struct json *left = cassette_body_tree(a, recorded);
    const struct json *right = cassette_body_tree(a, cassette_clean_text(redactor, a, now));
    return cassette_volatile(r, a, buf_str(&pointer), left, right);
}

bool cassette_same_text(struct cassette_rules *r, const struct redactor *redactor,
                        struct str recorded, struct str now)
{
    struct walk w = { .c = { .text = recorded } };
    for (size_t mine = 0, theirs = 0;;) {
        struct value v;
        size_t differ =
            mine + common(str_slice(recorded, mine, recorded.len), str_slice(now, theirs, now.len));
        if (differ == recorded.len && theirs + (differ - mine) == now.len) {
            return true;
        }
        do {
            if (!next_value(&w, &v)) {
                return false;
            }
        } while (v.to <= differ);
        struct cursor c = { now, theirs + (v.from - mine) };
        size_t from = c.at;
        if (v.from > differ || !cursor_skip_value(&c) ||
            !is_harmless(r, redactor, &w, str_slice(recorded, v.from, v.to),
                         str_slice(now, from, c.at))) {
            return false;
        }
        mine = v.to;
        theirs = c.at;
    }
}
