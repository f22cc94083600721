/* SPDX-License-Identifier: MIT
 *
 * Values as JSON Schema sees them: equality by hash, numbers compared exactly although some are
 * 64-bit integers and some doubles, multiples computed in decimal, since that is how the author of
 * a schema wrote 0.01.
 */
#include "data/schema_priv.h"

#include <math.h>
#include <stdlib.h>

#include "base/json_reader.h"

/* Deeper values than this hash alike from here on. Parsed trees are less deep (json_limits). */
enum { HASH_DEPTH = 512 };
/* Up to so many values of an enum are compared rather than hashed. */
enum { FEW_VALUES = 8 };

const char *const schema_type_names[TYPE_COUNT] = { "null",   "boolean", "integer", "number",
                                                    "string", "array",   "object" };

/* --- hashing --- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

uint64_t schema_hash(struct str s)
{
    uint64_t h = mix(0x51ed270b0b2f3a1du, s.len);
    size_t i = 0;
    for (; i + 8 <= s.len; i += 8) {
        uint64_t word;
        memcpy(&word, s.ptr + i, 8);
        h = mix(h, word);
    }
    uint64_t tail = 0;
    if (i < s.len) {
        memcpy(&tail, s.ptr + i, s.len - i);
    }
    return mix(h, tail);
}

static uint64_t hash_number(const struct json *v)
{
    double d = v->type == JSON_REAL ? v->real : 0;
    if (v->type == JSON_REAL && !(d >= -0x1p63 && d < 0x1p63 && trunc(d) == d)) {
        return schema_hash(str_n(&d, sizeof d));
    }
    return mix(2, (uint64_t)(v->type == JSON_INT ? v->integer : (int64_t)d));
}

static uint64_t hash_at(const struct json *v, uint64_t *cost, unsigned depth)
{
    *cost += 1;
    uint64_t h = mix(3, (uint64_t)v->type);
    if (depth == 0) {
        return h;
    }
    switch (v->type) {
    case JSON_NULL:
        return h;
    case JSON_BOOL:
        return mix(h, v->boolean ? 1 : 2);
    case JSON_INT:
    case JSON_REAL:
        return hash_number(v);
    case JSON_STRING:
        *cost += v->string.len / 64;
        return mix(h, schema_hash(v->string));
    case JSON_ARRAY:
        for (size_t i = 0; i < v->array.len; i++) {
            h = mix(h, hash_at(v->array.items[i], cost, depth - 1));
        }
        return h;
    case JSON_OBJECT:
        for (size_t i = 0; i < v->object.len; i++) {
            const struct json_member *m = &v->object.members[i];
            /* a sum, because the order of members does not count */
            h += mix(schema_hash(m->key), hash_at(m->value, cost, depth - 1));
        }
        return mix(h, v->object.len);
    }
    return h;
}

uint64_t schema_value_hash(const struct json *v, uint64_t *cost)
{
    return hash_at(v, cost, HASH_DEPTH);
}

/* --- maps --- */

struct schema_entry {
    struct str key; /* ptr NULL: free */
    uint64_t hash;
    void *value;
};

static struct schema_entry *probe(const struct schema_map *m, struct str key, uint64_t hash)
{
    size_t i = (size_t)hash & (m->cap - 1);
    while (m->entries[i].key.ptr != NULL &&
           (m->entries[i].hash != hash || !str_eq(m->entries[i].key, key))) {
        i = (i + 1) & (m->cap - 1);
    }
    return &m->entries[i];
}

void *schema_map_find(const struct schema_map *m, struct str key)
{
    return m->len == 0 ? NULL : probe(m, key, schema_hash(key))->value;
}

void schema_map_set(struct arena *a, struct schema_map *m, struct str key, void *value)
{
    if (2 * (m->len + 1) > m->cap) {
        struct schema_map bigger = { .cap = m->cap == 0 ? 8 : m->cap * 2 };
        bigger.entries = arena_array(a, bigger.cap, sizeof *bigger.entries);
        for (size_t i = 0; i < m->cap; i++) {
            const struct schema_entry *old = &m->entries[i];
            if (old->key.ptr != NULL) {
                *probe(&bigger, old->key, old->hash) = *old;
            }
        }
        bigger.len = m->len;
        *m = bigger;
    }
    uint64_t hash = schema_hash(key);
    struct schema_entry *entry = probe(m, key, hash);
    m->len += entry->key.ptr == NULL ? 1 : 0;
    *entry = (struct schema_entry) { key, hash, value };
}

/* --- sets of values --- */

static int compare_hashed(const void *a, const void *b)
{
    const struct schema_hashed *x = a;
    const struct schema_hashed *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

struct schema_values *schema_values_new(struct arena *a, struct json *const *items, size_t len)
{
    uint64_t cost = 0;
    struct schema_values *set = ARENA_NEW(a, struct schema_values);
    set->items = items;
    set->len = len;
    set->sorted = arena_array(a, len + 1, sizeof *set->sorted);
    for (size_t i = 0; i < len; i++) {
        set->sorted[i].value = items[i];
        set->sorted[i].hash = schema_value_hash(items[i], &cost);
    }
    qsort(set->sorted, len, sizeof *set->sorted, compare_hashed);
    return set;
}

static bool is_container(const struct json *v)
{
    return v->type == JSON_ARRAY || v->type == JSON_OBJECT;
}

bool schema_values_have(const struct schema_values *set, const struct json *v, uint64_t *cost)
{
    if (set->len <= FEW_VALUES && !is_container(v)) {
        for (size_t i = 0; i < set->len; i++) {
            const struct json *one = set->items[i];
            bool strings = one->type == JSON_STRING && v->type == JSON_STRING;
            if (strings ? str_eq(one->string, v->string)
                        : !is_container(one) && json_equal(one, v)) {
                return true;
            }
        }
        return false;
    }
    uint64_t hash = schema_value_hash(v, cost);
    size_t low = 0;
    size_t high = set->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->sorted[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < set->len && set->sorted[low].hash == hash; low++) {
        if (json_equal(set->sorted[low].value, v)) {
            return true;
        }
    }
    return false;
}

/* Slot of a table over the items: an index plus one, so that zero is free. */
static bool find_equal_by_hash(const struct json *array, const uint64_t *hashes, uint64_t most,
                               uint64_t *cost, size_t found[2])
{
    size_t n = array->array.len;
    size_t cap = 16;
    while (cap < 2 * n) {
        cap *= 2;
    }
    CLEANUP(free) size_t *table = xcalloc(cap, sizeof *table);
    for (size_t i = 0; i < n && *cost <= most; i++) {
        size_t slot = (size_t)hashes[i] & (cap - 1);
        for (; table[slot] != 0; slot = (slot + 1) & (cap - 1)) {
            size_t other = table[slot] - 1;
            *cost += 1;
            if (hashes[other] == hashes[i] &&
                json_equal(array->array.items[other], array->array.items[i])) {
                found[0] = other;
                found[1] = i;
                return true;
            }
        }
        table[slot] = i + 1;
    }
    return false;
}

bool schema_find_equal(const struct json *array, uint64_t most, uint64_t *cost, size_t *ret_first,
                       size_t *ret_second)
{
    size_t n = array->array.len;
    size_t found[2] = { 0, 0 };
    if (n < 2) {
        return false;
    }
    CLEANUP(free) uint64_t *hashes = xcalloc(n, sizeof *hashes);
    for (size_t i = 0; i < n; i++) {
        hashes[i] = schema_value_hash(array->array.items[i], cost);
    }
    bool twice = find_equal_by_hash(array, hashes, most, cost, found);
    *ret_first = found[0];
    *ret_second = found[1];
    return twice;
}

/* --- numbers and texts --- */

bool schema_is_integer(const struct json *v)
{
    return v->type == JSON_INT || (v->type == JSON_REAL && trunc(v->real) == v->real);
}

unsigned schema_types_of(const struct json *v)
{
    switch (v->type) {
    case JSON_NULL:
        return TYPE_NULL;
    case JSON_BOOL:
        return TYPE_BOOLEAN;
    case JSON_INT:
        return TYPE_INTEGER | TYPE_NUMBER;
    case JSON_REAL:
        return schema_is_integer(v) ? TYPE_INTEGER | TYPE_NUMBER : TYPE_NUMBER;
    case JSON_STRING:
        return TYPE_STRING;
    case JSON_ARRAY:
        return TYPE_ARRAY;
    case JSON_OBJECT:
        return TYPE_OBJECT;
    }
    return 0;
}

static int cmp_int_real(int64_t i, double d)
{
    if (d >= 0x1p63) {
        return -1;
    }
    if (d < -0x1p63) {
        return 1;
    }
    int64_t whole = (int64_t)d; /* towards zero */
    double part = d - (double)whole;
    if (i != whole) {
        return i < whole ? -1 : 1;
    }
    return part > 0 ? -1 : part < 0;
}

int schema_number_cmp(const struct json *a, const struct json *b)
{
    if (a->type == JSON_INT && b->type == JSON_INT) {
        return a->integer < b->integer ? -1 : a->integer > b->integer;
    }
    if (a->type == JSON_INT) {
        return cmp_int_real(a->integer, b->real);
    }
    if (b->type == JSON_INT) {
        return -cmp_int_real(b->integer, a->real);
    }
    return a->real < b->real ? -1 : a->real > b->real;
}

/* |value| = digits * 10^exponent, digits without trailing zeros. A double is taken by the shortest
 * text that reads back as it, at most 17 digits: that is what was written in the file. */
struct decimal {
    uint64_t digits;
    int exponent;
};

static struct decimal decimal_of_text(const char *text)
{
    struct decimal d = { 0 };
    bool fraction = false;
    for (; *text != '\0' && *text != 'e' && *text != 'E'; text++) {
        if (*text == '.') {
            fraction = true;
        } else if (*text >= '0' && *text <= '9') {
            bool fits = d.digits < UINT64_MAX / 10 - 1;
            d.digits = fits ? d.digits * 10 + (uint64_t)(*text - '0') : d.digits;
            d.exponent += fits ? (fraction ? -1 : 0) : (fraction ? 0 : 1);
        }
    }
    if (*text != '\0') {
        d.exponent += (int)strtol(text + 1, NULL, 10);
    }
    return d;
}

static struct decimal decimal_of(const struct json *v)
{
    struct decimal d;
    if (v->type == JSON_INT) {
        d = (struct decimal) { v->integer < 0 ? 0 - (uint64_t)v->integer : (uint64_t)v->integer,
                               0 };
    } else {
        char text[JSON_REAL_LEN];
        d = decimal_of_text(json_format_real(v->real, text));
    }
    while (d.digits != 0 && d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

bool schema_is_multiple(const struct json *value, const struct json *unit)
{
    if (value->type == JSON_INT && unit->type == JSON_INT) {
        /* the minimum divided by -1 would trap, but units are positive */
        return value->integer % unit->integer == 0;
    }
    struct decimal v = decimal_of(value);
    struct decimal u = decimal_of(unit);
    if (v.digits == 0 || u.digits == 0) {
        return v.digits == 0;
    }
    /* v = k·u with a coarser u would make v's digits divisible by ten */
    if (v.exponent < u.exponent) {
        return false;
    }
    unsigned __int128 rest = v.digits % u.digits;
    for (int i = u.exponent; i < v.exponent && rest != 0; i++) {
        rest = rest * 10 % u.digits;
    }
    return rest == 0;
}

size_t schema_text_len(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80 ? 1 : 0;
    }
    return n;
}
