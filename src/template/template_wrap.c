/* SPDX-License-Identifier: MIT
 *
 * Python's textwrap.wrap() for one paragraph: text is cut into chunks (words, parts of hyphenated
 * words, blanks), and lines are filled with as many as fit. A line is always a stretch of the text,
 * so chunks and lines are pairs of positions.
 */
#include "template/template_render_priv.h"

#include "template/template_unicode.h"

struct wrapping {
    struct str text;
    uint32_t *chars;
    uint32_t *offsets;  /* of each character in the text, and one behind the last */
    uint32_t *dash_end; /* where the run of dashes that begins here ends */
    size_t len;
    bool on_hyphens;
};

static bool is_blank(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_letter(const struct wrapping *w, size_t i)
{
    return i < w->len && unicode_is_word(w->chars[i]) && !unicode_is_digit(w->chars[i]);
}

static bool is_word_or_mark(uint32_t c)
{
    return unicode_is_word(c) || (c < 0x80 && c != 0 && strchr("!\"'&.,?", (int)c) != NULL);
}

/* Two dashes or more at i, after a word and before one. */
static bool is_em_dash(const struct wrapping *w, size_t i)
{
    return i > 0 && i < w->len && is_word_or_mark(w->chars[i - 1]) && w->dash_end[i] >= i + 2 &&
           w->dash_end[i] < w->len && unicode_is_word(w->chars[w->dash_end[i]]);
}

/* A hyphen at i after which the word may be broken. */
static bool is_break(const struct wrapping *w, size_t i)
{
    if (i >= w->len || w->chars[i] != '-') {
        return false;
    }
    bool before =
        i >= 2 &&
        ((is_letter(w, i - 2) && is_letter(w, i - 1)) ||
         (i >= 3 && is_letter(w, i - 3) && w->chars[i - 2] == '-' && is_letter(w, i - 1)));
    bool after =
        is_letter(w, i + 1) &&
        (is_letter(w, i + 2) || (i + 2 < w->len && w->chars[i + 2] == '-' && is_letter(w, i + 3)));
    return before && after;
}

/* End of the chunk that begins at i. */
static size_t chunk_end(const struct wrapping *w, size_t i)
{
    size_t j = i + 1;
    if (is_blank(w->chars[i])) {
        while (j < w->len && is_blank(w->chars[j])) {
            j++;
        }
        return j;
    }
    if (w->on_hyphens && is_em_dash(w, i)) {
        return w->dash_end[i];
    }
    while (j < w->len && !is_blank(w->chars[j])) {
        if (w->on_hyphens && is_break(w, j)) {
            return j + 1;
        }
        if (w->on_hyphens && is_em_dash(w, j)) {
            return j;
        }
        j++;
    }
    return j;
}

/* Where to cut the chunk [from, to) so that `room` characters stay on the line. */
static size_t cut_word(const struct wrapping *w, size_t from, size_t to, size_t room)
{
    if (to - from <= room) {
        return to;
    }
    size_t words = from; /* the first that is no hyphen */
    while (words < to && w->chars[words] == '-') {
        words++;
    }
    for (size_t i = from + room; w->on_hyphens && i > from + 1; i--) {
        if (w->chars[i - 1] == '-') {
            return words < i - 1 ? i : from + room;
        }
    }
    return from + room;
}

static bool all_blank(const struct wrapping *w, size_t from, size_t to)
{
    while (from < to && unicode_is_space(w->chars[from])) {
        from++;
    }
    return from == to;
}

struct line {
    size_t from, to;
    size_t last; /* where its last chunk begins */
};

/* Fills one line from *at on. A chunk that was cut continues at *at, up to *cut. */
static struct line fill_line(const struct wrapping *w, size_t *at, size_t *cut, size_t width,
                             bool break_words)
{
    struct line l = { *at, *at, *at };
    bool empty_piece = false;
    while (*at < w->len) {
        size_t end = *cut > *at ? *cut : chunk_end(w, *at);
        size_t used = *at - l.from;
        if (used + (end - *at) <= width) {
            l.last = *at;
            *at = end;
            continue;
        }
        if (end - *at > width && (break_words || *at == l.from)) {
            size_t piece = break_words ? cut_word(w, *at, end, width - used) : end;
            empty_piece = piece == *at; /* Python drops that instead of the blank before it */
            l.last = *at;
            *cut = end;
            *at = piece;
        }
        break;
    }
    l.to = *at;
    if (!empty_piece && all_blank(w, l.last, l.to)) {
        l.to = l.last;
    }
    return l;
}

static void measure(struct render *r, struct wrapping *w)
{
    size_t n = unicode_len(w->text);
    w->chars = arena_array(r->arena, n + 1, sizeof *w->chars);
    w->offsets = arena_array(r->arena, n + 1, sizeof *w->offsets);
    w->dash_end = arena_array(r->arena, n + 1, sizeof *w->dash_end);
    for (size_t at = 0; at < w->text.len && w->len < n; w->len++) {
        w->offsets[w->len] = (uint32_t)at;
        w->chars[w->len] = unicode_next(w->text, &at);
    }
    w->offsets[w->len] = (uint32_t)w->text.len;
    for (size_t i = w->len; i > 0; i--) {
        bool more = i < w->len && w->chars[i] == '-';
        w->dash_end[i - 1] = w->chars[i - 1] != '-' ? (uint32_t)i - 1
                             : more                 ? w->dash_end[i]
                                                    : (uint32_t)i;
    }
    r->steps += w->len / 4;
}

int tpl_text_wrap(struct render *r, struct str line, int64_t width, bool break_words,
                  bool on_hyphens, struct list *out)
{
    struct wrapping w = { .text = line, .on_hyphens = on_hyphens };
    if (width <= 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the width of a line must be positive");
    }
    measure(r, &w);
    size_t at = 0;
    size_t cut = 0;
    while (at < w.len) {
        if (out->len > 0 && at > 0 && cut <= at && all_blank(&w, at, chunk_end(&w, at))) {
            at = chunk_end(&w, at);
        }
        struct line l = fill_line(&w, &at, &cut, (size_t)width, break_words);
        if (l.to > l.from) {
            struct value v = value_text(str_slice(line, w.offsets[l.from], w.offsets[l.to]));
            tpl_list_add(r->arena, out, &v);
        }
        int rc = render_step(r);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
