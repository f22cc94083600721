/* SPDX-License-Identifier: MIT
 *
 * The search: Wu-Manber with blocks of two bytes. A window as long as the shortest pattern moves
 * over the text; the pair of bytes at its end says how far it may jump. Most of the text is never
 * looked at, which is what lets capture keep the pace of cat(1).
 */
#include "record/redact.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "record/redact_priv.h"

enum { WINDOW_MAX = 256 /* a shift fits a byte */ };

struct redactor *redactor_new(void)
{
    return xcalloc(1, sizeof(struct redactor));
}

struct redactor *redactor_free(struct redactor *r)
{
    if (r == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < r->pattern_count; i++) {
        explicit_bzero(r->patterns[i].bytes, r->patterns[i].len);
        free(r->patterns[i].bytes);
    }
    redactor_index_free(r);
    for (size_t i = 0; i < r->secret_count; i++) {
        free(r->secrets[i].name);
        free(r->secrets[i].mask);
    }
    free(r->secrets);
    free(r->patterns);
    free(r->shift);
    free(r);
    return NULL;
}

static struct redact_pattern *find_pattern(struct redactor *r, struct str bytes)
{
    for (size_t i = 0; i < r->pattern_count; i++) {
        if (str_eq(str_n(r->patterns[i].bytes, r->patterns[i].len), bytes)) {
            return &r->patterns[i];
        }
    }
    return NULL;
}

static struct redact_pattern *new_pattern(struct redactor *r, size_t secret, struct str bytes)
{
    if (r->pattern_count == r->pattern_cap) {
        r->pattern_cap = r->pattern_cap == 0 ? 32 : r->pattern_cap * 2;
        r->patterns = xrealloc(r->patterns, r->pattern_cap * sizeof *r->patterns);
    }
    uint8_t *copy = xmalloc(bytes.len);
    memcpy(copy, bytes.ptr, bytes.len);
    r->patterns[r->pattern_count] =
        (struct redact_pattern) { .bytes = copy, .len = bytes.len, .secret = secret };
    return &r->patterns[r->pattern_count++];
}

static struct redact_pattern *add_pattern(struct redactor *r, size_t secret, struct str bytes,
                                          enum redact_form form)
{
    struct redact_pattern *p = find_pattern(r, bytes);
    p = p != NULL ? p : new_pattern(r, secret, bytes);
    p->encoded = p->encoded || form != REDACT_EXACT;
    p->breakable = p->breakable || form == REDACT_BREAKABLE;
    p->modes = p->breakable ? REDACT_MODE_PATCH : 0;
    p->modes |= memchr(p->bytes, '%', p->len) != NULL ? REDACT_MODE_PERCENT : 0;
    p->modes |= memchr(p->bytes, '\\', p->len) != NULL ? 3u << REDACT_MODE_LEVEL : 0;
    return p;
}

void redactor_add_pattern(struct redactor *r, size_t secret, struct str bytes,
                          enum redact_form form)
{
    /* What is left of shorter forms would be most of it. */
    enum { SHORT = 16 };
    struct redact_pattern *p = add_pattern(r, secret, bytes, form);
    bool whole = form != REDACT_BREAKABLE || bytes.len < SHORT;
    p->indexed = p->indexed || form != REDACT_EXACT;
    p->least_part = whole ? 1 : REDACT_PART;
    if (!whole) {
        /* Fewer characters on the first line: they remain, the rest is found by itself. */
        struct str rest = str_slice(bytes, REDACT_PART - 1, bytes.len);
        p = add_pattern(r, secret, rest, form);
        p->least_part = REDACT_PART;
    }
}

/* The name goes into JSON strings and terminals, whatever the user called the secret. */
static char *clean_name(struct str name)
{
    enum { NAME_MAX_LEN = 64 };
    size_t len = name.len < NAME_MAX_LEN ? name.len : NAME_MAX_LEN;
    char *out = xcalloc(len + 1, 1);
    for (size_t i = 0; i < len; i++) {
        char c = name.ptr[i];
        bool fine = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '.' || c == '-';
        out[i] = fine ? c : '_';
    }
    return out;
}

int redactor_add(struct redactor *r, struct str name, struct str value, struct err *e)
{
    assert(!r->compiled);
    /* Secret files end with a newline that logs do not show. */
    struct str trimmed = str_trim(value);
    if (trimmed.len < REDACT_VALUE_MIN) {
        return ERR(e, ERR_SECRET,
                   "secret '%.*s' has %zu bytes; at least %d are needed to recognise it in output",
                   STR_ARG(name), trimmed.len, REDACT_VALUE_MIN);
    }
    if (trimmed.len > REDACT_VALUE_MAX) {
        return ERR(e, ERR_SECRET,
                   "secret '%.*s' has %zu bytes; at most %zu can be recognised in output",
                   STR_ARG(name), trimmed.len, REDACT_VALUE_MAX);
    }
    r->secrets = xrealloc(r->secrets, (r->secret_count + 1) * sizeof *r->secrets);
    r->secrets[r->secret_count] = (struct redact_secret) { .name = clean_name(name) };
    redactor_add_forms(r, r->secret_count++, trimmed);
    return 0;
}

static int compare_patterns(const void *va, const void *vb)
{
    const struct redact_pattern *a = va;
    const struct redact_pattern *b = vb;
    if (a->bytes[0] != b->bytes[0]) {
        return a->bytes[0] < b->bytes[0] ? -1 : 1;
    }
    if (a->len != b->len) {
        return a->len > b->len ? -1 : 1;
    }
    return 0;
}

static inline uint16_t pair_at(const uint8_t *p)
{
    uint16_t pair;
    memcpy(&pair, p, sizeof pair);
    return pair;
}

static void fill_shifts(struct redactor *r)
{
    r->window = r->shortest < WINDOW_MAX ? r->shortest : WINDOW_MAX;
    r->shift = xmalloc(65536);
    memset(r->shift, (int)(r->window - 1), 65536);
    for (size_t i = 0; i < r->pattern_count; i++) {
        const uint8_t *p = r->patterns[i].bytes;
        for (size_t at = 0; at + 1 < r->window; at++) {
            uint8_t *shift = &r->shift[pair_at(p + at)];
            uint8_t here = (uint8_t)(r->window - 2 - at);
            *shift = here < *shift ? here : *shift;
        }
    }
}

/* Could the text, with anything before and after it, make up a pattern or a part of one? */
static bool touches(const struct redact_pattern *p, struct str text)
{
    struct str pattern = str_n(p->bytes, p->len);
    if (str_find(text, pattern) < text.len || str_find(pattern, text) < pattern.len) {
        return true;
    }
    for (size_t n = 1; n <= text.len && n <= pattern.len; n++) {
        if (memcmp(pattern.ptr, text.ptr + text.len - n, n) == 0 ||
            memcmp(pattern.ptr + pattern.len - n, text.ptr, n) == 0) {
            return true;
        }
    }
    return false;
}

static char unused_character(const struct redactor *r)
{
    for (const char *c = "*#?_.-+=~^%@!ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"; *c != '\0'; c++) {
        bool used = false;
        for (size_t i = 0; i < r->pattern_count && !used; i++) {
            used = memchr(r->patterns[i].bytes, *c, r->patterns[i].len) != NULL;
        }
        if (!used) {
            return *c;
        }
    }
    return '*'; /* secrets that use all of these: the mask may then look like a part of one */
}

static void choose_mask(const struct redactor *r, struct redact_secret *s)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_addf(&text, "[REDACTED:%s]", s->name);
    for (size_t i = 0; i < r->pattern_count; i++) {
        if (touches(&r->patterns[i], buf_str(&text))) {
            char c = unused_character(r);
            buf_reset(&text);
            buf_addf(&text, "%c%c%c", c, c, c);
            break;
        }
    }
    s->mask = buf_take(&text, &s->mask_len);
}

void redactor_compile(struct redactor *r)
{
    assert(!r->compiled);
    r->compiled = true;
    if (r->pattern_count == 0) {
        return;
    }
    qsort(r->patterns, r->pattern_count, sizeof *r->patterns, compare_patterns);
    r->shortest = SIZE_MAX;
    for (size_t i = 0; i < r->pattern_count; i++) {
        size_t len = r->patterns[i].len;
        r->shortest = len < r->shortest ? len : r->shortest;
        r->longest = len > r->longest ? len : r->longest;
        r->first[r->patterns[i].bytes[0] + 1]++;
    }
    for (size_t b = 0; b < 256; b++) {
        r->first[b + 1] += r->first[b];
    }
    fill_shifts(r);
    redactor_index(r);
    for (size_t i = 0; i < r->secret_count; i++) {
        choose_mask(r, &r->secrets[i]);
    }
}

size_t redactor_longest(const struct redactor *r)
{
    return r == NULL ? 0 : r->reach;
}

/* The longest pattern at this very place. */
static const struct redact_pattern *match_at(const struct redactor *r, const uint8_t *p, size_t len)
{
    for (uint32_t i = r->first[*p]; i < r->first[*p + 1]; i++) {
        const struct redact_pattern *c = &r->patterns[i];
        if (c->len <= len && memcmp(c->bytes, p, c->len) == 0) {
            return c;
        }
    }
    return NULL;
}

bool redactor_find(const struct redactor *r, struct str text, size_t from, size_t stop,
                   size_t *ret_at, const struct redact_pattern **ret)
{
    if (text.len < r->window) {
        return false;
    }
    /* One comparison and two dependent loads per jump: this loop is the cost of redaction. */
    const uint8_t *p = (const uint8_t *)text.ptr;
    const uint8_t *shift = r->shift;
    size_t lead = r->window - 2;
    size_t limit = text.len - r->window + 1;
    limit = stop < limit ? stop : limit;
    for (size_t at = from; at < limit;) {
        size_t jump = shift[pair_at(p + at + lead)];
        at += jump;
        if (jump > 0) {
            continue;
        }
        const struct redact_pattern *found = match_at(r, p + at, text.len - at);
        if (found != NULL) {
            *ret_at = at;
            *ret = found;
            return true;
        }
        at++;
    }
    return false;
}

size_t redactor_tail(const struct redactor *r, struct str text, const struct redact_pattern **ret)
{
    const uint8_t *p = (const uint8_t *)text.ptr;
    size_t at = text.len > r->longest - 1 ? text.len - (r->longest - 1) : 0;
    for (; at < text.len; at++) {
        size_t left = text.len - at;
        for (uint32_t i = r->first[p[at]]; i < r->first[p[at] + 1]; i++) {
            const struct redact_pattern *c = &r->patterns[i];
            if (c->len <= left) {
                break; /* longest first: the rest is shorter still */
            }
            if (memcmp(c->bytes, p + at, left) == 0) {
                if (ret != NULL) {
                    *ret = c;
                }
                return at;
            }
        }
    }
    return text.len;
}

static void pass(struct redact_stream *s, struct str piece)
{
    if (piece.len > 0) {
        s->port(s->ctx, piece);
    }
}

/* The occurrences of a text in order: exact ones are searched as one goes on, the others have been
 * collected. */
struct walk {
    const struct redactor *r;
    struct str text;
    size_t stop;
    size_t hit; /* next of the collected ones */
    bool found; /* an exact one, at `exact` */
    struct redact_hit exact;
};

static void find_exact(struct walk *w, size_t from)
{
    const struct redact_pattern *p;
    w->found = redactor_find(w->r, w->text, from, w->stop, &w->exact.at, &p);
    if (w->found) {
        w->exact.len = p->len;
        w->exact.secret = p->secret;
    }
}

static bool next_occurrence(struct walk *w, const struct redact_hits *hits, struct redact_hit *ret)
{
    const struct redact_hit *h = w->hit < hits->len ? &hits->items[w->hit] : NULL;
    h = h != NULL && h->at < w->stop ? h : NULL;
    if (h == NULL && !w->found) {
        return false;
    }
    if (h != NULL &&
        (!w->found || h->at < w->exact.at || (h->at == w->exact.at && h->len > w->exact.len))) {
        *ret = *h;
        w->hit++;
    } else {
        *ret = w->exact;
        find_exact(w, w->exact.at + 1); /* occurrences may overlap */
    }
    return true;
}

/* The line breaks of what is taken out, each with the mark of the next line. */
static void pass_lines(struct redact_stream *s, struct str gone)
{
    for (size_t at = str_find(gone, STR("\n")); at < gone.len;) {
        bool marked = at + 1 < gone.len && memchr("+- \\", gone.ptr[at + 1], 4) != NULL;
        pass(s, str_slice(gone, at, at + 1 + marked));
        struct str rest = str_slice(gone, at + 1, gone.len);
        at += 1 + str_find(rest, STR("\n"));
    }
}

/* Passes on text[0, stop) with every occurrence that starts there replaced; s->hits are those of
 * the text. A replacement already stands for text[0, covered). Returns up to where, at or after
 * `stop`, the text is dealt with. */
static size_t pass_redacted(struct redact_stream *s, struct str text, size_t stop, size_t covered)
{
    size_t end = covered; /* of the bytes dealt with */
    struct walk w = { .r = s->redactor, .text = text, .stop = stop };
    struct redact_hit o;
    find_exact(&w, 0);
    while (next_occurrence(&w, &s->hits, &o)) {
        if (o.at >= end) {
            const struct redact_secret *secret = &s->redactor->secrets[o.secret];
            pass(s, str_slice(text, end, o.at));
            pass(s, str_n(secret->mask, secret->mask_len));
            s->removed++;
        }
        if (s->keep_lines && o.at + o.len > end) {
            pass_lines(s, str_slice(text, o.at > end ? o.at : end, o.at + o.len));
        }
        end = o.at + o.len > end ? o.at + o.len : end;
    }
    if (end < stop) {
        pass(s, str_slice(text, end, stop));
        end = stop;
    }
    return end;
}

static void pass_and_hold(struct redact_stream *s, struct str text, size_t covered)
{
    redactor_collect(s->redactor, text, false, &s->hits);
    size_t stop = redactor_tail(s->redactor, text, NULL);
    stop = s->hits.partial < stop ? s->hits.partial : stop;
    size_t end = pass_redacted(s, text, stop, covered);
    buf_reset(&s->hold);
    buf_add(&s->hold, str_slice(text, stop, text.len));
    s->covered = end - stop;
}

void redact_stream_init(struct redact_stream *s, const struct redactor *r, redact_port *port,
                        void *ctx)
{
    assert(r == NULL || r->compiled);
    *s = (struct redact_stream) {
        .redactor = r != NULL && r->pattern_count > 0 ? r : NULL,
        .port = port,
        .ctx = ctx,
        .hold = BUF_INIT(BUF_TEXT),
        .join = BUF_INIT(BUF_TEXT),
    };
}

void redact_stream_feed(struct redact_stream *s, struct str chunk)
{
    if (s->redactor == NULL || chunk.len == 0) {
        pass(s, chunk);
        return;
    }
    if (s->hold.len == 0) {
        pass_and_hold(s, chunk, 0);
        return;
    }
    /* Only what may still belong to a secret begun in `hold` is copied beside it. */
    size_t reach = s->redactor->reach - 1;
    size_t held = s->hold.len;
    buf_reset(&s->join);
    buf_add(&s->join, buf_str(&s->hold));
    buf_add(&s->join, str_slice(chunk, 0, reach));
    if (chunk.len <= reach) {
        pass_and_hold(s, buf_str(&s->join), s->covered);
        return;
    }
    redactor_collect(s->redactor, buf_str(&s->join), false, &s->hits);
    size_t end = pass_redacted(s, buf_str(&s->join), held, s->covered);
    pass_and_hold(s, chunk, end - held);
}

void redact_stream_flush(struct redact_stream *s)
{
    if (s->hold.len == 0) {
        return;
    }
    /* Pieces stay valid until we return, so what they point into must not be emptied here. */
    struct buf held = s->hold;
    s->hold = s->join;
    s->join = held;
    buf_reset(&s->hold);
    redactor_collect(s->redactor, buf_str(&held), true, &s->hits);
    (void)pass_redacted(s, buf_str(&held), held.len, s->covered);
    s->covered = 0;
}

void redact_stream_done(struct redact_stream *s)
{
    buf_done(&s->hold);
    buf_done(&s->join);
    free(s->hits.items);
    s->hits = (struct redact_hits) { 0 };
}
