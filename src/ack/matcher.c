/* SPDX-License-Identifier: MIT
 *
 * Matchers as a table: one function per word.
 */
#include "ack/matcher.h"

#include "data/regex.h"

enum {
    SHOWN_MAX = 300,         /* bytes of a value in a sentence */
    BOUNDS_MAX = 64,         /* numbers of a matcher around which counts are tried */
    COUNT_LARGE = 1000000000 /* what is counted comes to less */
};

const char *matcher_shown(struct arena *a, const struct json *v)
{
    if (v == NULL) {
        return "nothing";
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (json_write(v, JSON_COMPACT, &text, NULL) < 0) {
        return "a value that is too long to be shown";
    }
    struct str s = buf_str(&text);
    bool cut = s.len > SHOWN_MAX;
    s.len = cut ? SHOWN_MAX : s.len;
    s.len = str_utf8_prefix(s);
    return arena_printf(a, "%.*s%s", STR_ARG(s), cut ? "…" : "");
}

static bool has_text(const struct json *v, struct str part)
{
    return json_is(v, JSON_STRING) && str_find(v->string, part) < v->string.len + (part.len == 0);
}

static bool holds_equals(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    return v != NULL && json_equal(want, v);
}

static bool holds_contains(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    struct str part = json_str(want, STR_EMPTY);
    if (!json_is(v, JSON_ARRAY)) {
        return json_is(want, JSON_STRING) && has_text(v, part);
    }
    for (size_t i = 0; i < v->array.len; i++) {
        const struct json *item = v->array.items[i];
        if (json_equal(want, item) || (json_is(want, JSON_STRING) && has_text(item, part))) {
            return true;
        }
    }
    return false;
}

static bool holds_matches(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    CLEANUP(regex) struct regex *r = NULL;
    return json_is(v, JSON_STRING) && regex_compile(json_str(want, STR_EMPTY), 0, &r, NULL) == 0 &&
           regex_match(r, v->string, NULL) == 1;
}

static bool holds_starts(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    return json_is(v, JSON_STRING) && str_starts(v->string, json_str(want, STR_EMPTY));
}

static bool holds_ends(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    return json_is(v, JSON_STRING) && str_ends(v->string, json_str(want, STR_EMPTY));
}

static bool holds_nonblank(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    return json_is(v, JSON_STRING) && (str_trim(v->string).len > 0) == json_bool(want, true);
}

static bool holds_present(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    return (v != NULL && v->type != JSON_NULL) == json_bool(want, true);
}

static bool is_number(const struct json *v)
{
    return json_is(v, JSON_INT) || json_is(v, JSON_REAL);
}

static bool holds_at_least(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    return is_number(v) && json_real(v, 0) >= json_real(want, 0);
}

static bool holds_at_most(struct arena *a, const struct json *want, const struct json *v)
{
    (void)a;
    return is_number(v) && json_real(v, 0) <= json_real(want, 0);
}

static bool holds_len(struct arena *a, const struct json *want, const struct json *v)
{
    bool counted = json_is(v, JSON_STRING) || json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT);
    return counted && matcher_holds(a, want, json_integer(a, (int64_t)json_len(v)), NULL);
}

static bool holds_any(struct arena *a, const struct json *want, const struct json *v)
{
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        if (matcher_holds(a, want, v->array.items[i], NULL)) {
            return true;
        }
    }
    return false;
}

static bool holds_each(struct arena *a, const struct json *want, const struct json *v)
{
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        if (!matcher_holds(a, want, v->array.items[i], NULL)) {
            return false;
        }
    }
    return json_is(v, JSON_ARRAY) && v->array.len > 0;
}

static bool holds_at(struct arena *a, const struct json *want, const struct json *v)
{
    for (size_t i = 0; i < want->object.len; i++) {
        const struct json_member *m = &want->object.members[i];
        if (!matcher_holds(a, m->value, json_pointer(v, m->key), NULL)) {
            return false;
        }
    }
    return v != NULL;
}

static bool holds_not(struct arena *a, const struct json *want, const struct json *v)
{
    return !matcher_holds(a, want, v, NULL);
}

/* What the word wants to be told, for the check at reading time. */
enum operand {
    OPERAND_ANY,
    OPERAND_PART, /* any value, but no empty text */
    OPERAND_TEXT,
    OPERAND_PATTERN,
    OPERAND_NUMBER,
    OPERAND_BOOL,
    OPERAND_MATCHER,
    OPERAND_COUNT, /* a matcher of a number from 0 on */
    OPERAND_MAP
};

static const struct word {
    const char *name;
    enum operand operand;
    bool (*holds)(struct arena *a, const struct json *want, const struct json *v);
} words[] = {
    { "equals", OPERAND_ANY, holds_equals },
    { "contains", OPERAND_PART, holds_contains },
    { "matches", OPERAND_PATTERN, holds_matches },
    { "starts", OPERAND_TEXT, holds_starts },
    { "ends", OPERAND_TEXT, holds_ends },
    { "nonblank", OPERAND_BOOL, holds_nonblank },
    { "present", OPERAND_BOOL, holds_present },
    { "at_least", OPERAND_NUMBER, holds_at_least },
    { "at_most", OPERAND_NUMBER, holds_at_most },
    { "len", OPERAND_COUNT, holds_len },
    { "any", OPERAND_MATCHER, holds_any },
    { "each", OPERAND_MATCHER, holds_each },
    { "at", OPERAND_MAP, holds_at },
    { "not", OPERAND_MATCHER, holds_not },
};

static const struct word *word_of(struct str name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_eqc(name, words[i].name)) {
            return &words[i];
        }
    }
    return NULL;
}

static int wrong(const struct json_member *m, const char *file, const char *wanted, struct err *e)
{
    char at[JSON_AT_LEN];
    return ERR(e, ERR_CONFIG, "%s: '%.*s' must be %s", json_at(file, m->value, at), STR_ARG(m->key),
               wanted);
}

/* Every text has it, and begins and ends with it. */
static int check_says(const struct json_member *m, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    bool empty = json_is(m->value, JSON_STRING) && m->value->string.len == 0;
    return !empty ? 0
                  : ERR(e, ERR_CONFIG, "%s: '%.*s' of an empty text holds always",
                        json_at(file, m->value, at), STR_ARG(m->key));
}

static int check_pattern(const struct json_member *m, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(m->value, JSON_STRING)) {
        return wrong(m, file, "a pattern", e);
    }
    struct err why = { 0 };
    return regex_check(m->value->string, &why) == 0
               ? check_says(m, file, e)
               : ERR(e, ERR_CONFIG, "%s: %s", json_at(file, m->value, at), why.msg);
}

static int check_len(const struct json_member *m, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    int r = matcher_check(m->value, file, e);
    return r < 0 || !matcher_holds_for_counts(m->value)
               ? r
               : ERR(e, ERR_CONFIG, "%s: this holds for every length", json_at(file, m->value, at));
}

static int check_operand(const struct word *w, const struct json_member *m, const char *file,
                         struct err *e)
{
    switch (w->operand) {
    case OPERAND_ANY:
        return 0;
    case OPERAND_PART:
        return check_says(m, file, e);
    case OPERAND_TEXT:
        return json_is(m->value, JSON_STRING) ? check_says(m, file, e)
                                              : wrong(m, file, "a text", e);
    case OPERAND_PATTERN:
        return check_pattern(m, file, e);
    case OPERAND_NUMBER:
        return is_number(m->value) ? 0 : wrong(m, file, "a number", e);
    case OPERAND_BOOL:
        return json_is(m->value, JSON_BOOL) ? 0 : wrong(m, file, "true or false", e);
    case OPERAND_MATCHER:
        return matcher_check(m->value, file, e);
    case OPERAND_COUNT:
        return check_len(m, file, e);
    case OPERAND_MAP:
        return matcher_check_pointers(m->value, file, e);
    }
    return 0;
}

/* Recursion is bounded by the depth limit of whatever parsed the file. */
int matcher_check(const struct json *m, const char *file, struct err *e)
{
    if (!json_is(m, JSON_OBJECT)) {
        return 0;
    }
    char at[JSON_AT_LEN];
    if (m->object.len == 0) {
        return ERR(e, ERR_CONFIG, "%s: an empty matcher holds always", json_at(file, m, at));
    }
    for (size_t i = 0; i < m->object.len; i++) {
        const struct json_member *member = &m->object.members[i];
        const struct word *w = word_of(member->key);
        if (w == NULL) {
            return ERR(e, ERR_CONFIG, "%s: no matcher is called '%.*s'",
                       json_at(file, member->value, at), STR_ARG(member->key));
        }
        int r = check_operand(w, member, file, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int matcher_check_pointers(const struct json *map, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(map, JSON_OBJECT) || map->object.len == 0) {
        return ERR(e, ERR_CONFIG, "%s: expected a map of JSON Pointers to matchers",
                   json_at(file, map, at));
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < map->object.len; i++) {
        const struct json_member *m = &map->object.members[i];
        if (!str_starts(m->key, STR("/"))) {
            return ERR(e, ERR_CONFIG, "%s: '%.*s' is not a JSON Pointer: it must start with '/'",
                       json_at(file, m->value, at), STR_ARG(m->key));
        }
        r = matcher_check(m->value, file, e);
    }
    return r;
}

static void explain(struct arena *a, const struct json *m, const struct json *v,
                    const char **ret_why)
{
    if (ret_why != NULL) {
        *ret_why = arena_printf(a, "wanted %s, found %s", matcher_shown(a, m), matcher_shown(a, v));
    }
}

bool matcher_holds(struct arena *a, const struct json *m, const struct json *v,
                   const char **ret_why)
{
    bool holds = true;
    if (!json_is(m, JSON_OBJECT)) {
        holds = holds_equals(a, m, v);
    }
    for (size_t i = 0; holds && json_is(m, JSON_OBJECT) && i < m->object.len; i++) {
        const struct word *w = word_of(m->object.members[i].key);
        holds = w != NULL && w->holds(a, m->object.members[i].value, v);
    }
    if (!holds) {
        explain(a, m, v, ret_why);
    }
    return holds;
}

/* --- what can be counted --- */

static bool holds_at_count(struct arena *a, const struct json *m, int64_t n)
{
    return n < 0 || matcher_holds(a, m, json_integer(a, n), NULL);
}

static bool holds_near(struct arena *a, const struct json *m, double bound)
{
    if (!(bound >= 0 && bound < COUNT_LARGE)) {
        return true; /* as for 0, and for a large number */
    }
    int64_t n = (int64_t)bound;
    return holds_at_count(a, m, n - 1) && holds_at_count(a, m, n) && holds_at_count(a, m, n + 1);
}

/* Does it hold near all numbers in this part of it? With too many of them: no. */
static bool holds_near_bounds(struct arena *a, const struct json *m, const struct json *part,
                              int *left)
{
    if (is_number(part)) {
        return (*left)-- > 0 && holds_near(a, m, json_real(part, 0));
    }
    bool holds = true;
    for (size_t i = 0; holds && json_is(part, JSON_ARRAY) && i < part->array.len; i++) {
        holds = holds_near_bounds(a, m, part->array.items[i], left);
    }
    for (size_t i = 0; holds && json_is(part, JSON_OBJECT) && i < part->object.len; i++) {
        holds = holds_near_bounds(a, m, part->object.members[i].value, left);
    }
    return holds;
}

/* Whether a number fits can only change where the matcher names one: it is enough to look there. */
bool matcher_holds_for_counts(const struct json *m)
{
    CLEANUP(arena) struct arena *a = arena_new();
    int left = BOUNDS_MAX;
    return holds_at_count(a, m, 0) && holds_at_count(a, m, COUNT_LARGE) &&
           holds_near_bounds(a, m, m, &left);
}
