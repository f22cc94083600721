/* SPDX-License-Identifier: MIT
 *
 * Building, asking, comparing and merging value trees. Nothing here recurses: trees that code
 * builds have no depth limit, so walks over whole trees keep their work in a list on the heap.
 */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_reader.h"

/* Up to this many members, comparing each with each is faster than sorting. */
enum { FEW_MEMBERS = 16 };

/* Two values that stand at the same place of two trees. */
struct pair {
    const struct json *a;
    struct json *b;
};

struct work {
    struct pair *pairs;
    size_t len, cap;
};

static void work_push(struct work *w, const struct json *a, struct json *b)
{
    if (w->len == w->cap) {
        w->cap = w->cap == 0 ? 32 : w->cap * 2;
        w->pairs = xrealloc(w->pairs, w->cap * sizeof *w->pairs);
    }
    w->pairs[w->len++] = (struct pair) { a, b };
}

static struct pair work_pop(struct work *w)
{
    return w->pairs[--w->len];
}

static void cleanup_work(struct work *w)
{
    free(w->pairs);
}

struct json_limits json_limits_of(const struct json_limits *limits)
{
    struct json_limits l = limits != NULL ? *limits : (struct json_limits) { 0 };
    return (struct json_limits) {
        .max_bytes = l.max_bytes != 0 ? l.max_bytes : (size_t)64 << 20,
        .max_depth = l.max_depth != 0 ? l.max_depth : 256,
        .max_values = l.max_values != 0 ? l.max_values : 4000000,
        .no_positions = l.no_positions,
    };
}

const char *json_show(struct str s, char out[JSON_SHOW_LEN])
{
    enum { LONGEST = JSON_SHOW_LEN - sizeof "…" };
    size_t n = s.len < LONGEST ? s.len : LONGEST;
    while (n < s.len && n > 0 && ((unsigned char)s.ptr[n] & 0xc0) == 0x80) {
        n--; /* not inside a character */
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : s.ptr[i];
    }
    memcpy(out + n, n < s.len ? "…" : "", n < s.len ? sizeof "…" : 1);
    return out;
}

/* --- building --- */

static struct json *make(struct arena *a, enum json_type type)
{
    struct json *v = ARENA_NEW(a, struct json);
    v->type = type;
    return v;
}

struct json *json_null(struct arena *a)
{
    return make(a, JSON_NULL);
}

struct json *json_boolean(struct arena *a, bool b)
{
    struct json *v = make(a, JSON_BOOL);
    v->boolean = b;
    return v;
}

struct json *json_integer(struct arena *a, int64_t i)
{
    struct json *v = make(a, JSON_INT);
    v->integer = i;
    return v;
}

struct json *json_number(struct arena *a, double d)
{
    struct json *v = make(a, JSON_REAL);
    v->real = d;
    return v;
}

struct json *json_string(struct arena *a, struct str s)
{
    struct json *v = make(a, JSON_STRING);
    v->string = arena_str(a, s);
    return v;
}

struct json *json_cstr(struct arena *a, const char *s)
{
    return s == NULL ? json_null(a) : json_string(a, str_of(s));
}

struct json *json_array(struct arena *a)
{
    return make(a, JSON_ARRAY);
}

struct json *json_object(struct arena *a)
{
    return make(a, JSON_OBJECT);
}

/* A bigger copy of a vector in the arena. The old one stays behind as waste, at most as much as
 * what is in use, since sizes double. */
static void *grow(struct arena *a, const void *old, size_t len, size_t *cap, size_t size)
{
    *cap = *cap == 0 ? 4 : *cap * 2;
    void *bigger = arena_array(a, *cap, size);
    if (len > 0) {
        memcpy(bigger, old, len * size);
    }
    return bigger;
}

void json_push(struct arena *a, struct json *array, struct json *value)
{
    if (array->array.len == array->array.cap) {
        array->array.items =
            grow(a, array->array.items, array->array.len, &array->array.cap, sizeof(struct json *));
    }
    array->array.items[array->array.len++] = value != NULL ? value : json_null(a);
}

struct json_member *json_append(struct arena *a, struct json *object, struct str key,
                                struct json *value)
{
    if (object->object.len == object->object.cap) {
        object->object.members = grow(a, object->object.members, object->object.len,
                                      &object->object.cap, sizeof(struct json_member));
    }
    struct json_member *m = &object->object.members[object->object.len++];
    *m = (struct json_member) { .key = key, .value = value };
    return m;
}

static struct json_member *find_member(const struct json *object, struct str key)
{
    if (object == NULL || object->type != JSON_OBJECT) {
        return NULL;
    }
    for (size_t i = 0; i < object->object.len; i++) {
        if (str_eq(object->object.members[i].key, key)) {
            return &object->object.members[i];
        }
    }
    return NULL;
}

static struct json_member *set_member(struct arena *a, struct json *object, struct str key,
                                      struct json *value)
{
    struct json_member *m = find_member(object, key);
    if (m == NULL) {
        return json_append(a, object, arena_str(a, key), value);
    }
    m->value = value;
    return m;
}

void json_set(struct arena *a, struct json *object, struct str key, struct json *value)
{
    (void)set_member(a, object, key, value != NULL ? value : json_null(a));
}

void json_setc(struct arena *a, struct json *object, const char *key, struct json *value)
{
    json_set(a, object, str_of(key), value);
}

bool json_remove(struct json *object, struct str key)
{
    struct json_member *m = find_member(object, key);
    if (m == NULL) {
        return false;
    }
    size_t after = object->object.len - (size_t)(m - object->object.members) - 1;
    memmove(m, m + 1, after * sizeof *m);
    object->object.len--;
    return true;
}

/* Fills `to` like `from`; the children of containers are made and left to the work list. */
static void copy_one(struct arena *a, const struct json *from, struct json *to, struct work *w)
{
    *to = *from;
    if (from->type == JSON_STRING) {
        to->string = arena_str(a, from->string);
    } else if (from->type == JSON_ARRAY) {
        size_t n = to->array.cap = from->array.len;
        to->array.items = n == 0 ? NULL : arena_array(a, n, sizeof(struct json *));
        for (size_t i = 0; i < n; i++) {
            to->array.items[i] = ARENA_NEW(a, struct json);
            work_push(w, from->array.items[i], to->array.items[i]);
        }
    } else if (from->type == JSON_OBJECT) {
        size_t n = to->object.cap = from->object.len;
        to->object.members = n == 0 ? NULL : arena_array(a, n, sizeof(struct json_member));
        for (size_t i = 0; i < n; i++) {
            struct json_member *m = &to->object.members[i];
            *m = from->object.members[i];
            m->key = arena_str(a, m->key);
            m->value = ARENA_NEW(a, struct json);
            work_push(w, from->object.members[i].value, m->value);
        }
    }
}

struct json *json_copy(struct arena *a, const struct json *v)
{
    if (v == NULL) {
        return NULL;
    }
    CLEANUP(work) struct work w = { 0 };
    struct json *copy = ARENA_NEW(a, struct json);
    work_push(&w, v, copy);
    while (w.len > 0) {
        struct pair p = work_pop(&w);
        copy_one(a, p.a, p.b, &w);
    }
    return copy;
}

/* Lays the members of `over` onto `to`; pairs of objects are left to the work list. */
static void merge_members(struct arena *a, const struct json *over, struct json *to, struct work *w)
{
    for (size_t i = 0; i < over->object.len; i++) {
        const struct json_member *m = &over->object.members[i];
        if (m->value->type == JSON_NULL) {
            (void)json_remove(to, m->key);
            continue;
        }
        struct json *value = json_find(to, m->key);
        if (m->value->type != JSON_OBJECT) {
            value = json_copy(a, m->value);
        } else if (!json_is(value, JSON_OBJECT)) {
            /* An object over nothing still goes through the merge: it may hold nulls, which must
             * not survive as values. */
            value = json_object(a);
            value->line = m->value->line;
            value->column = m->value->column;
        }
        if (m->value->type == JSON_OBJECT) {
            work_push(w, m->value, value);
        }
        struct json_member *set = set_member(a, to, m->key, value);
        set->line = m->line;
        set->column = m->column;
    }
}

struct json *json_merge(struct arena *a, const struct json *under, const struct json *over)
{
    if (over == NULL) {
        return json_copy(a, under);
    }
    if (over->type != JSON_OBJECT) {
        return json_copy(a, over);
    }
    struct json *merged = json_is(under, JSON_OBJECT) ? json_copy(a, under) : json_object(a);
    CLEANUP(work) struct work w = { 0 };
    work_push(&w, over, merged);
    while (w.len > 0) {
        struct pair p = work_pop(&w);
        merge_members(a, p.a, p.b, &w);
    }
    merged->line = over->line;
    merged->column = over->column;
    return merged;
}

/* --- reading values --- */

struct json *json_find(const struct json *object, struct str key)
{
    const struct json_member *m = find_member(object, key);
    return m == NULL ? NULL : m->value;
}

struct json *json_get(const struct json *object, const char *key)
{
    return json_find(object, str_of(key));
}

bool json_is(const struct json *v, enum json_type type)
{
    return v != NULL && v->type == type;
}

bool json_bool(const struct json *v, bool otherwise)
{
    return json_is(v, JSON_BOOL) ? v->boolean : otherwise;
}

/* Whether d is integral and fits: the bounds are -2^63 and 2^63, both exact as doubles. */
static bool real_is_int(double d)
{
    return d >= -0x1p63 && d < 0x1p63 && (double)(int64_t)d == d;
}

int64_t json_int(const struct json *v, int64_t otherwise)
{
    if (json_is(v, JSON_REAL) && real_is_int(v->real)) {
        return (int64_t)v->real;
    }
    return json_is(v, JSON_INT) ? v->integer : otherwise;
}

double json_real(const struct json *v, double otherwise)
{
    if (json_is(v, JSON_INT)) {
        return (double)v->integer;
    }
    return json_is(v, JSON_REAL) ? v->real : otherwise;
}

struct str json_str(const struct json *v, struct str otherwise)
{
    return json_is(v, JSON_STRING) ? v->string : otherwise;
}

const char *json_cstring(const struct json *v, const char *otherwise)
{
    return json_is(v, JSON_STRING) && !str_has_nul(v->string) ? v->string.ptr : otherwise;
}

size_t json_len(const struct json *v)
{
    if (json_is(v, JSON_ARRAY)) {
        return v->array.len;
    }
    if (json_is(v, JSON_OBJECT)) {
        return v->object.len;
    }
    return json_is(v, JSON_STRING) ? v->string.len : 0;
}

struct json *json_item(const struct json *array, size_t i)
{
    return json_is(array, JSON_ARRAY) && i < array->array.len ? array->array.items[i] : NULL;
}

/* Whether the pointer token, with ~0 for '~' and ~1 for '/', names the key. A wrong escape names
 * nothing. */
static bool token_names(struct str token, struct str key)
{
    size_t k = 0;
    for (size_t i = 0; i < token.len; i++, k++) {
        char c = token.ptr[i];
        if (c == '~') {
            char escape = ++i < token.len ? token.ptr[i] : '\0';
            if (escape != '0' && escape != '1') {
                return false;
            }
            c = escape == '0' ? '~' : '/';
        }
        if (k >= key.len || key.ptr[k] != c) {
            return false;
        }
    }
    return k == key.len;
}

static struct json *pointer_step(const struct json *v, struct str token)
{
    if (json_is(v, JSON_OBJECT)) {
        for (size_t i = 0; i < v->object.len; i++) {
            if (token_names(token, v->object.members[i].key)) {
                return v->object.members[i].value;
            }
        }
        return NULL;
    }
    int64_t i;
    bool is_index = token.len > 0 && (token.len == 1 || token.ptr[0] != '0') &&
                    str_to_i64(token, &i) && i >= 0 && token.ptr[0] != '-';
    return is_index ? json_item(v, (size_t)i) : NULL;
}

struct json *json_pointer(const struct json *v, struct str pointer)
{
    if (pointer.len > 0 && pointer.ptr[0] != '/') {
        return NULL;
    }
    struct json *at = (struct json *)v;
    struct str rest = pointer.len == 0 ? (struct str) { 0 } : str_slice(pointer, 1, pointer.len);
    while (at != NULL && rest.ptr != NULL) {
        at = pointer_step(at, str_split(&rest, '/'));
    }
    return at;
}

const char *json_type_name(enum json_type type)
{
    switch (type) {
    case JSON_NULL:
        return "null";
    case JSON_BOOL:
        return "boolean";
    case JSON_INT:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_STRING:
        return "string";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    }
    return "unknown";
}

const char *json_at(const char *file, const struct json *v, char out[JSON_AT_LEN])
{
    /* A long name loses its tail rather than the position. */
    enum { LONGEST_NAME = JSON_AT_LEN - 24 };
    if (v == NULL || v->line == 0) {
        (void)snprintf(out, JSON_AT_LEN, "%.*s", LONGEST_NAME, file);
    } else {
        (void)snprintf(out, JSON_AT_LEN, "%.*s:%" PRIu32 ":%" PRIu32, LONGEST_NAME, file, v->line,
                       v->column);
    }
    return out;
}

/* --- comparing --- */

static int compare_members(const void *a, const void *b)
{
    const struct json_member *const *x = a;
    const struct json_member *const *y = b;
    int c = str_cmp((*x)->key, (*y)->key);
    return c != 0 ? c : *x < *y ? -1 : *x > *y;
}

/* Pointers to the members, by key and then by position; malloc'ed. */
static const struct json_member **sorted_members(const struct json *object)
{
    const struct json_member **sorted = xcalloc(object->object.len, sizeof(struct json_member *));
    for (size_t i = 0; i < object->object.len; i++) {
        sorted[i] = &object->object.members[i];
    }
    qsort(sorted, object->object.len, sizeof *sorted, compare_members);
    return sorted;
}

static const struct json_member *duplicate_of_few(const struct json *object,
                                                  const struct json_member **ret_first)
{
    const struct json_member *m = object->object.members;
    for (size_t i = 1; i < object->object.len; i++) {
        for (size_t j = 0; j < i; j++) {
            if (str_eq(m[i].key, m[j].key)) {
                *ret_first = &m[j];
                return &m[i];
            }
        }
    }
    return NULL;
}

const struct json_member *json_duplicate(const struct json *object,
                                         const struct json_member **ret_first)
{
    if (object->object.len <= FEW_MEMBERS) {
        return duplicate_of_few(object, ret_first);
    }
    CLEANUP(free) const struct json_member **sorted = sorted_members(object);
    const struct json_member *found = NULL;
    for (size_t i = 1; i < object->object.len; i++) {
        if (str_eq(sorted[i - 1]->key, sorted[i]->key) && (found == NULL || sorted[i] < found)) {
            found = sorted[i];
            *ret_first = sorted[i - 1];
        }
    }
    return found;
}

static bool equal_objects(const struct json *a, const struct json *b, struct work *w)
{
    if (a->object.len != b->object.len) {
        return false;
    }
    CLEANUP(free) const struct json_member **x = sorted_members(a);
    CLEANUP(free) const struct json_member **y = sorted_members(b);
    for (size_t i = 0; i < a->object.len; i++) {
        if (!str_eq(x[i]->key, y[i]->key)) {
            return false;
        }
        work_push(w, x[i]->value, y[i]->value);
    }
    return true;
}

static bool equal_numbers(const struct json *a, const struct json *b)
{
    if (a->type == b->type) {
        return a->type == JSON_INT ? a->integer == b->integer : a->real == b->real;
    }
    /* Through int64_t and not through double: 2^53 + 1 is not equal to 2^53. */
    double real = a->type == JSON_REAL ? a->real : b->real;
    int64_t integer = a->type == JSON_INT ? a->integer : b->integer;
    return real_is_int(real) && (int64_t)real == integer;
}

static bool is_number(const struct json *v)
{
    return v->type == JSON_INT || v->type == JSON_REAL;
}

/* Equal as far as this level goes; the children are left to the work list. */
static bool equal_one(const struct json *a, const struct json *b, struct work *w)
{
    if (is_number(a) && is_number(b)) {
        return equal_numbers(a, b);
    }
    if (a->type != b->type) {
        return false;
    }
    switch (a->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_STRING:
        return str_eq(a->string, b->string);
    case JSON_ARRAY:
        for (size_t i = 0; a->array.len == b->array.len && i < a->array.len; i++) {
            work_push(w, a->array.items[i], b->array.items[i]);
        }
        return a->array.len == b->array.len;
    case JSON_OBJECT:
        return equal_objects(a, b, w);
    case JSON_INT:
    case JSON_REAL:
        break;
    }
    return false;
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    CLEANUP(work) struct work w = { 0 };
    work_push(&w, a, (struct json *)b);
    while (w.len > 0) {
        struct pair p = work_pop(&w);
        if (!equal_one(p.a, p.b, &w)) {
            return false;
        }
    }
    return true;
}
