/* SPDX-License-Identifier: MIT
 *
 * Comparing a request with the recorded one. Only what differs is looked at twice: a difference is
 * none if it stands at a volatile path, or if two texts are equal once volatile patterns and
 * redacted values are left out.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "data/json_diff.h"
#include "data/regex.h"
#include "replay/cassette.h"

/* Rules of a profile; more would be a mistake. */
enum { RULES_MAX = 256, PLACES_MAX = 16, PLACE_LEN_MIN = 4 };

/* What changes with every start of the harnesses we know. */
static const char *const builtin_paths[] = {
    "/metadata/user_id", /* claude-code: device, account and session ids */
    "/client_metadata",  /* codex: installation and turn ids */
    "/prompt_cache_key", /* codex, opencode: session id */
    /* gemini-cli: ids of calls, which the wire format lacks, from the clock */
    "/contents/*/parts/*/functionCall/id",
    "/contents/*/parts/*/functionResponse/id",
};
static const char *const builtin_patterns[] = {
    /* UUIDs: sessions, threads, installations */
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "\\d{4}-\\d\\d-\\d\\d(?:[T ]\\d\\d:\\d\\d(?::\\d\\d(?:\\.\\d+)?)?(?:Z|[+-]\\d\\d:?\\d\\d)?)?",
    /* "Sunday, November 15, 2026" (gemini), "Sun Nov 15 2026" (opencode) */
    "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [A-Z][a-z]{2,8} \\d{1,2},? \\d{4}",
    "cch=[0-9a-zA-Z]+",     /* claude-code: checksum in its billing header */
    "ses_[0-9a-zA-Z]{20,}", /* opencode: session */
    "Chunk ID: [0-9a-f]+\\nWall time: [0-9.]+ seconds", /* codex: results of its shell */
};

/* A directory under the name that both sides know it by. */
struct place {
    struct str path;
    char mark[4]; /* what stands for it in a comparison */
};

struct places {
    struct place items[2 * PLACES_MAX];
    size_t n;
};

struct cassette_rules {
    struct arena *arena;
    struct str *paths;
    size_t n_paths;
    struct regex **patterns;
    size_t n_patterns;
    struct places recorded, now;
    const char *names[PLACES_MAX]; /* of the places, by the numbers of their marks */
};

/* --- rules --- */

static int add_pattern(struct cassette_rules *r, struct str pattern, struct err *e)
{
    int result = regex_compile(pattern, 0, &r->patterns[r->n_patterns], e);
    r->n_patterns += result == 0;
    return result < 0 ? err_wrap(e, "volatile pattern") : 0;
}

static int add_given(struct cassette_rules *r, const struct json *rules, struct err *e)
{
    const struct json *paths = json_get(rules, "paths");
    const struct json *patterns = json_get(rules, "patterns");
    if (json_len(paths) > RULES_MAX || json_len(patterns) > RULES_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d volatile paths or patterns", RULES_MAX);
    }
    for (size_t i = 0; json_is(paths, JSON_ARRAY) && i < json_len(paths); i++) {
        struct str path = json_str(json_item(paths, i), STR_EMPTY);
        if (!str_starts(path, STR("/"))) {
            return ERR(e, ERR_CONFIG, "volatile path '%.*s' must begin with '/'",
                       STR_ARG(str_slice(path, 0, 80)));
        }
        r->paths[r->n_paths++] = arena_str(r->arena, path);
    }
    int result = 0;
    for (size_t i = 0; result == 0 && json_is(patterns, JSON_ARRAY) && i < json_len(patterns);
         i++) {
        result = add_pattern(r, json_str(json_item(patterns, i), STR_EMPTY), e);
    }
    return result;
}

int cassette_rules_new(const struct json *rules, struct cassette_rules **ret, struct err *e)
{
    CLEANUP(cassette_rules) struct cassette_rules *r = xcalloc(1, sizeof *r);
    r->arena = arena_new();
    r->paths = arena_array(r->arena, RULES_MAX + ARRAY_LEN(builtin_paths), sizeof *r->paths);
    r->patterns =
        arena_array(r->arena, RULES_MAX + ARRAY_LEN(builtin_patterns), sizeof *r->patterns);
    for (size_t i = 0; i < ARRAY_LEN(builtin_paths); i++) {
        r->paths[r->n_paths++] = str_of(builtin_paths[i]);
    }
    int result = 0;
    for (size_t i = 0; result == 0 && i < ARRAY_LEN(builtin_patterns); i++) {
        result = add_pattern(r, str_of(builtin_patterns[i]), e);
    }
    result = result < 0 ? result : add_given(r, rules, e);
    if (result == 0) {
        *ret = TAKE_PTR(r);
    }
    return result;
}

struct cassette_rules *cassette_rules_free(struct cassette_rules *r)
{
    if (r != NULL) {
        for (size_t i = 0; i < r->n_patterns; i++) {
            regex_free(r->patterns[i]);
        }
        arena_free(r->arena);
        free(r);
    }
    return NULL;
}

static int by_length(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    return (x->path.len < y->path.len) - (x->path.len > y->path.len);
}

static void add_place(struct places *p, struct str path, size_t number)
{
    p->items[p->n].path = path;
    p->items[p->n].mark[0] = '\x02';
    p->items[p->n].mark[1] = (char)('A' + number);
    p->n++;
}

/* `names` is the side that gives the numbers: marks of equal names are equal. */
static void set_places(struct cassette_rules *r, struct places *p, const struct json *paths,
                       const struct json *names)
{
    p->n = 0;
    for (size_t i = 0; json_is(names, JSON_OBJECT) && i < json_len(names) && i < PLACES_MAX; i++) {
        const struct json *v = json_find(paths, names->object.members[i].key);
        struct str path = arena_str(r->arena, json_str(v, STR_EMPTY));
        if (path.len < PLACE_LEN_MIN) {
            continue;
        }
        char *dashed = arena_dup(r->arena, path);
        for (char *c = dashed; *c != '\0'; c++) {
            *c = (char)(isalnum((unsigned char)*c) ? *c : '-');
        }
        add_place(p, path, i);
        add_place(p, str_of(dashed), i);
    }
    qsort(p->items, p->n, sizeof *p->items, by_length); /* a home lies within the run's directory */
}

void cassette_rules_places(struct cassette_rules *r, const struct json *recorded,
                           const struct json *now)
{
    for (size_t i = 0; json_is(recorded, JSON_OBJECT) && i < json_len(recorded) && i < PLACES_MAX;
         i++) {
        r->names[i] = arena_dup(r->arena, recorded->object.members[i].key);
    }
    set_places(r, &r->recorded, recorded, recorded);
    set_places(r, &r->now, now, recorded);
}

/* Cuts the first step off "/a/b": "a". */
static struct str next_step(struct str *path)
{
    struct str rest = str_slice(*path, 1, path->len);
    struct str step = str_slice(rest, 0, str_find(rest, STR("/")));
    *path = str_slice(rest, step.len, rest.len);
    return step;
}

/* Whether the pointer is at or below the path. Recursion is as deep as the path has "**", which its
 * author limits; each tries the steps of one pointer. */
static bool covers(struct str path, struct str pointer, unsigned depth)
{
    while (path.len > 0) {
        struct str want = next_step(&path);
        if (str_eqc(want, "**")) {
            for (struct str at = pointer; depth < 4; (void)next_step(&at)) {
                if (covers(path, at, depth + 1)) {
                    return true;
                }
                if (at.len == 0) {
                    break;
                }
            }
            return false;
        }
        if (pointer.len == 0) {
            return false;
        }
        struct str have = next_step(&pointer);
        if (!str_eqc(want, "*") && !str_eq(want, have)) {
            return false;
        }
    }
    return true;
}

/* --- texts --- */

static struct str replace_places(const struct places *p, struct arena *a, struct str text)
{
    for (size_t i = 0; i < p->n; i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT * 2);
        struct str rest = text;
        size_t at = str_find(rest, p->items[i].path);
        while (at < rest.len) {
            buf_add(&out, str_slice(rest, 0, at));
            buf_adds(&out, p->items[i].mark);
            rest = str_slice(rest, at + p->items[i].path.len, rest.len);
            at = str_find(rest, p->items[i].path);
        }
        if (out.len > 0) {
            buf_add(&out, rest);
            text = arena_str(a, buf_str(&out));
        }
    }
    return text;
}

/* The text with a mark in place of what each pattern matches. */
static struct str scrub(const struct cassette_rules *r, struct arena *a, struct str text)
{
    for (size_t i = 0; i < r->n_patterns; i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct str rest = text;
        struct regex_span span;
        while (rest.len > 0 && regex_find(r->patterns[i], rest, &span, 1, NULL) == 1 &&
               span.to > span.from) {
            buf_add(&out, str_slice(rest, 0, span.from));
            buf_adds(&out, "\x01");
            rest = str_slice(rest, span.to, rest.len);
        }
        if (out.len > 0) {
            buf_add(&out, rest);
            text = arena_str(a, buf_str(&out));
        }
    }
    return text;
}

/* "a [REDACTED:KEY] b" against "a secret b": what stands between the marks must come in order. */
static bool fits_redacted(struct str recorded, struct str now)
{
    static const char mark[] = "[REDACTED:";
    bool first = true;
    for (;;) {
        size_t at = str_find(recorded, STR(mark));
        struct str piece = str_slice(recorded, 0, at);
        if (at == recorded.len) {
            return first ? str_eq(piece, now) : str_ends(now, piece);
        }
        size_t found = first ? (str_starts(now, piece) ? 0 : now.len + 1) : str_find(now, piece);
        if (found + piece.len > now.len) {
            return false;
        }
        now = str_slice(now, found + piece.len, now.len);
        recorded = str_slice(recorded, at, recorded.len);
        recorded = str_slice(recorded, str_find(recorded, STR("]")) + 1, recorded.len);
        first = false;
    }
}

struct asking {
    const struct cassette_rules *rules;
    struct arena *arena;
};

static bool same_words(const struct cassette_rules *r, struct arena *a, struct str recorded,
                       struct str now)
{
    recorded = scrub(r, a, replace_places(&r->recorded, a, recorded));
    now = scrub(r, a, replace_places(&r->now, a, now));
    return str_eq(recorded, now) || fits_redacted(recorded, now);
}

/* Of two long texts, what lies around their differences: patterns take their time. */
static void cut_common_ends(struct str *a, struct str *b)
{
    enum { AROUND = 1024 }; /* longer than what patterns and places match */
    size_t least = a->len < b->len ? a->len : b->len;
    size_t front = 0, back = 0;
    while (front < least && a->ptr[front] == b->ptr[front]) {
        front++;
    }
    while (back < least - front && a->ptr[a->len - back - 1] == b->ptr[b->len - back - 1]) {
        back++;
    }
    front = front > AROUND ? front - AROUND : 0;
    back = back > AROUND ? back - AROUND : 0;
    *a = str_slice(*a, front, a->len - back);
    *b = str_slice(*b, front, b->len - back);
}

bool cassette_volatile(const struct cassette_rules *r, struct arena *a, struct str pointer,
                       const struct json *left, const struct json *right)
{
    for (size_t i = 0; i < r->n_paths; i++) {
        if (covers(r->paths[i], pointer, 0)) {
            return true;
        }
    }
    if (!json_is(left, JSON_STRING) || !json_is(right, JSON_STRING)) {
        return false;
    }
    struct str recorded = left->string;
    struct str now = right->string;
    cut_common_ends(&recorded, &now);
    /* what was cut might have mattered: only a difference asks for the whole */
    return same_words(r, a, recorded, now) ||
           (recorded.len < left->string.len && same_words(r, a, left->string, right->string));
}

static bool is_volatile(void *arg, struct str pointer, const struct json *left,
                        const struct json *right)
{
    const struct asking *q = arg;
    return cassette_volatile(q->rules, q->arena, pointer, left, right);
}

struct json *cassette_body_tree(struct arena *a, struct str body)
{
    const struct json_limits limits = { .no_positions = true };
    struct json *v = NULL;
    return json_parse(a, body, &limits, &v, NULL) < 0 ? json_string(a, body) : v;
}

void cassette_compare(struct cassette_rules *r, const struct json *recorded, const struct json *now,
                      size_t max, struct arena *a, struct json_diff *ret)
{
    struct asking q = { r, a };
    struct json_diff_opts opts = { .max = max, .ignore = is_volatile, .arg = &q };
    json_diff(recorded, now, &opts, a, ret);
}

/* For people: names of places instead of marks, "…" for what a pattern matches. */
static struct json *shown_text(const struct cassette_rules *r, struct arena *a,
                               const struct places *p, struct str text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT * 2);
    text = scrub(r, a, replace_places(p, a, text));
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\x02' && i + 1 < text.len) {
            size_t number = (size_t)(text.ptr[++i] - 'A');
            buf_addf(&out, "<%s>",
                     number < PLACES_MAX && r->names[number] != NULL ? r->names[number] : "path");
        } else if (text.ptr[i] == '\x01') {
            buf_adds(&out, "…");
        } else {
            buf_add(&out, str_slice(text, i, i + 1));
        }
    }
    return json_string(a, arena_str(a, buf_str(&out)));
}

void cassette_show_differences(const struct cassette_rules *r, struct arena *a, struct json_diff *d)
{
    for (size_t i = 0; i < d->len; i++) {
        struct json_change *c = &d->changes[i];
        if (c->kind == JSON_CHANGED && json_is(c->left, JSON_STRING) &&
            json_is(c->right, JSON_STRING)) {
            c->left = shown_text(r, a, &r->recorded, c->left->string);
            c->right = shown_text(r, a, &r->now, c->right->string);
        }
    }
}
