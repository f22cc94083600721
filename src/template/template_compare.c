/* SPDX-License-Identifier: MIT
 *
 * Truth, equality, order, hashes and membership, with Python's rules: numbers of different types
 * compare by value, other types are unequal and have no order, and an undefined value fails in all
 * of them. Nested values are bounded by depth and by the step limit of the rendering.
 */
#include "template/template_value_priv.h"

#include <math.h>

#include "template/template_render_priv.h"
#include "template/template_unicode.h"

int tpl_value_truth(struct render *r, const struct value *v, bool *ret)
{
    size_t n = 1;
    int rc = 0;
    switch ((int)v->kind) {
    case VALUE_UNDEFINED:
        if (v->undefined->strict) {
            return tpl_render_fail_undefined(r, v);
        }
        n = 0;
        break;
    case VALUE_NONE:
        n = 0;
        break;
    case VALUE_BOOL:
        n = v->boolean;
        break;
    case VALUE_INT:
        n = v->integer != 0;
        break;
    case VALUE_FLOAT:
        n = v->real != 0;
        break;
    case VALUE_STRING:
        n = v->string.len;
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
        rc = tpl_value_len(r, v, &n);
        break;
    default: /* objects without a length are true */
        break;
    }
    *ret = n != 0;
    return rc;
}

/* -1, 0, 1; 2 when one of them is not a number. */
static int compare_int_real(int64_t i, double d)
{
    if (isnan(d)) {
        return 2;
    }
    if (d >= 0x1p63) {
        return -1;
    }
    if (d < -0x1p63) {
        return 1;
    }
    int64_t whole = (int64_t)d; /* towards zero */
    if (i != whole) {
        return i < whole ? -1 : 1;
    }
    double fraction = d - (double)whole;
    return fraction > 0 ? -1 : fraction < 0;
}

static int compare_numbers(const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_FLOAT && b->kind == VALUE_FLOAT) {
        if (isnan(a->real) || isnan(b->real)) {
            return 2;
        }
        return a->real < b->real ? -1 : a->real > b->real;
    }
    if (a->kind == VALUE_FLOAT) {
        int c = compare_int_real(value_integer(b), a->real);
        return c == 2 ? 2 : -c;
    }
    if (b->kind == VALUE_FLOAT) {
        return compare_int_real(value_integer(a), b->real);
    }
    int64_t x = value_integer(a);
    int64_t y = value_integer(b);
    return x < y ? -1 : x > y;
}

static const void *identity(const struct value *v)
{
    switch ((int)v->kind) {
    case VALUE_UNDEFINED:
        return v->undefined;
    case VALUE_STRING:
        return v->string.ptr;
    case VALUE_METHOD:
        return v->bound->method;
    default:
        return v->list; /* any pointer of the union */
    }
}

bool tpl_value_same(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    switch ((int)a->kind) {
    case VALUE_NONE:
        return true;
    case VALUE_BOOL:
        return a->boolean == b->boolean;
    case VALUE_INT: /* Python shares small integers only, but nobody can rely on that */
        return a->integer == b->integer;
    case VALUE_FLOAT:
        return a->real == b->real;
    case VALUE_STRING:
        return a->string.ptr == b->string.ptr && a->string.len == b->string.len;
    default:
        return identity(a) == identity(b);
    }
}

static int equal_lists(struct render *r, const struct list *a, const struct list *b, bool *ret)
{
    *ret = a->len == b->len;
    for (size_t i = 0; i < a->len && *ret; i++) {
        bool same = tpl_value_same(&a->items[i], &b->items[i]); /* Python looks at that first */
        int rc = same ? 0 : tpl_value_equal(r, &a->items[i], &b->items[i], ret);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int equal_dicts(struct render *r, const struct dict *a, const struct dict *b, bool *ret)
{
    *ret = a->len == b->len;
    for (size_t i = 0; i < a->len && *ret; i++) {
        struct value *other;
        int rc = tpl_dict_find(r, b, &a->entries[i].key, &other);
        if (rc < 0) {
            return rc;
        }
        *ret = other != NULL;
        rc = other == NULL ? 0 : tpl_value_equal(r, &a->entries[i].value, other, ret);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int equal_deep(struct render *r, const struct value *a, const struct value *b, bool *ret)
{
    switch ((int)a->kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
        return equal_lists(r, a->list, b->list, ret);
    case VALUE_DICT:
        return equal_dicts(r, a->dict, b->dict, ret);
    default:
        *ret = tpl_value_same(a, b);
        return 0;
    }
}

int tpl_value_equal(struct render *r, const struct value *a, const struct value *b, bool *ret)
{
    if (a->kind == VALUE_STRING && b->kind == VALUE_STRING) {
        *ret = str_eq(a->string, b->string);
        return 0;
    }
    if (value_is_number(a) && value_is_number(b)) {
        *ret = compare_numbers(a, b) == 0;
        return 0;
    }
    if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED) {
        const struct value *u = a->kind == VALUE_UNDEFINED ? a : b;
        if (!u->undefined->strict && b->kind == VALUE_UNDEFINED && b->undefined->strict) {
            u = b;
        }
        *ret = a->kind == b->kind;
        return u->undefined->strict ? tpl_render_fail_undefined(r, u) : 0;
    }
    if (a->kind != b->kind) {
        *ret = false;
        return 0;
    }
    int rc = render_step(r);
    rc = rc < 0 ? rc : render_enter(r);
    if (rc < 0) {
        return rc;
    }
    rc = equal_deep(r, a, b, ret);
    render_leave(r);
    return rc;
}

static int fail_order(struct render *r, const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(r, a->kind == VALUE_UNDEFINED ? a : b);
    }
    return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "a %s and a %s have no order",
                           tpl_value_type(a), tpl_value_type(b));
}

/* Lists order by their first difference, which is found by equality. */
static int order_lists(struct render *r, const struct value *a, const struct value *b, int op,
                       bool *ret)
{
    size_t n = a->list->len < b->list->len ? a->list->len : b->list->len;
    for (size_t i = 0; i < n; i++) {
        bool same = tpl_value_same(&a->list->items[i], &b->list->items[i]);
        int rc = same ? 0 : tpl_value_equal(r, &a->list->items[i], &b->list->items[i], &same);
        if (rc < 0) {
            return rc;
        }
        if (!same) {
            return tpl_value_compare_op(r, &a->list->items[i], &b->list->items[i], op, ret);
        }
    }
    struct value x = value_int((int64_t)a->list->len);
    struct value y = value_int((int64_t)b->list->len);
    return tpl_value_compare_op(r, &x, &y, op, ret);
}

static bool holds(int order, int op)
{
    if (order == 2) {
        return false;
    }
    return op == CMP_LT   ? order < 0
           : op == CMP_LE ? order <= 0
           : op == CMP_GT ? order > 0
                          : order >= 0;
}

int tpl_value_compare_op(struct render *r, const struct value *a, const struct value *b, int op,
                         bool *ret)
{
    if (op == CMP_EQ || op == CMP_NE) {
        int rc = tpl_value_equal(r, a, b, ret);
        *ret = rc == 0 && *ret == (op == CMP_EQ);
        return rc;
    }
    if (op == CMP_IN || op == CMP_NOT_IN) {
        int rc = tpl_value_contains(r, b, a, ret);
        *ret = rc == 0 && *ret == (op == CMP_IN);
        return rc;
    }
    if (a->kind == VALUE_STRING && b->kind == VALUE_STRING) {
        int c = str_cmp(a->string, b->string); /* UTF-8 sorts like its code points */
        *ret = holds(c < 0 ? -1 : c > 0, op);
        return 0;
    }
    if (value_is_number(a) && value_is_number(b)) {
        *ret = holds(compare_numbers(a, b), op);
        return 0;
    }
    if (!value_is_sequence(a) || a->kind != b->kind) {
        return fail_order(r, a, b);
    }
    int rc = render_step(r);
    rc = rc < 0 ? rc : render_enter(r);
    if (rc < 0) {
        return rc;
    }
    rc = order_lists(r, a, b, op, ret);
    render_leave(r);
    return rc;
}

static int text_contains(struct render *r, const struct value *box, const struct value *v,
                         bool *ret)
{
    if (v->kind != VALUE_STRING) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "'in' a string needs a string, not a %s",
                               tpl_value_type(v));
    }
    *ret = v->string.len == 0 || str_find(box->string, v->string) < box->string.len;
    return 0;
}

static int walk_contains(struct render *r, const struct value *box, const struct value *v,
                         bool *ret)
{
    struct iter it;
    struct value item;
    int rc = tpl_iter_start(r, box, &it);
    *ret = false;
    while (rc == 0 && (rc = iter_next(r, &it, &item)) > 0) {
        *ret = tpl_value_same(&item, v);
        rc = *ret ? 0 : tpl_value_equal(r, &item, v, ret);
        if (rc < 0 || *ret) {
            return rc;
        }
    }
    return rc;
}

int tpl_value_contains(struct render *r, const struct value *box, const struct value *v, bool *ret)
{
    if (box->kind == VALUE_STRING) {
        return text_contains(r, box, v, ret);
    }
    if (box->kind == VALUE_DICT) {
        struct value *found;
        int rc = tpl_dict_find(r, box->dict, v, &found);
        *ret = rc == 0 && found != NULL;
        return rc;
    }
    if (box->kind == VALUE_UNDEFINED || !tpl_value_is_iterable(box)) {
        if (box->kind == VALUE_UNDEFINED && !box->undefined->strict) {
            *ret = false;
            return 0;
        }
        return tpl_render_fail_type(r, box, "'in' needs something to look into, not a %s",
                                    tpl_value_type(box));
    }
    return walk_contains(r, box, v, ret);
}

/* --- hashes --- */

uint64_t tpl_value_hash_text(struct str s)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, then mixed: short keys need spread low bits */
    for (size_t i = 0; i < s.len; i++) {
        h = (h ^ (unsigned char)s.ptr[i]) * 0x100000001b3u;
    }
    return h ^ h >> 32;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash_number(const struct value *v)
{
    if (v->kind != VALUE_FLOAT) {
        return mix((uint64_t)value_integer(v));
    }
    if (v->real >= -0x1p63 && v->real < 0x1p63 && v->real == floor(v->real)) {
        return mix((uint64_t)(int64_t)v->real); /* 1.0 is the key 1 */
    }
    uint64_t bits;
    memcpy(&bits, &v->real, sizeof bits);
    return mix(bits);
}

static int hash_tuple(struct render *r, const struct list *l, uint64_t *ret)
{
    uint64_t h = 0x345678;
    int rc = render_step(r);
    rc = rc < 0 ? rc : render_enter(r);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        uint64_t item = 0;
        rc = tpl_value_hash(r, &l->items[i], &item);
        h = mix(h ^ item) + i;
    }
    render_leave(r);
    *ret = h;
    return rc;
}

int tpl_value_hash(struct render *r, const struct value *v, uint64_t *ret)
{
    switch ((int)v->kind) {
    case VALUE_STRING:
        *ret = tpl_value_hash_text(v->string);
        return 0;
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_FLOAT:
        *ret = hash_number(v);
        return 0;
    case VALUE_NONE:
        *ret = 0x4e6f6e65;
        return 0;
    case VALUE_TUPLE:
        return hash_tuple(r, v->list, ret);
    case VALUE_UNDEFINED:
        if (v->undefined->strict) {
            return tpl_render_fail_undefined(r, v);
        }
        *ret = 1;
        return 0;
    case VALUE_LIST:
    case VALUE_DICT:
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "a %s cannot be a key", tpl_value_type(v));
    default:
        *ret = mix((uint64_t)(uintptr_t)identity(v));
        return 0;
    }
}

/* --- sorting: a stable merge sort that can fail in the middle --- */

struct sorting {
    struct render *r;
    const struct value *keys;
    uint32_t *order, *spare;
    bool reverse;
};

static int merge(struct sorting *s, size_t from, size_t mid, size_t to)
{
    size_t a = from;
    size_t b = mid;
    for (size_t i = from; i < to; i++) {
        bool take_b = a == mid;
        if (a < mid && b < to) {
            const struct value *x = &s->keys[s->order[a]];
            const struct value *y = &s->keys[s->order[b]];
            int rc = s->reverse ? tpl_value_compare_op(s->r, x, y, CMP_LT, &take_b)
                                : tpl_value_compare_op(s->r, y, x, CMP_LT, &take_b);
            rc = rc < 0 ? rc : render_step(s->r);
            if (rc < 0) {
                return rc;
            }
        }
        s->spare[i] = s->order[take_b ? b++ : a++];
    }
    memcpy(&s->order[from], &s->spare[from], (to - from) * sizeof *s->order);
    return 0;
}

int tpl_value_sort(struct render *r, struct value *items, struct value *keys, size_t len,
                   bool reverse)
{
    struct sorting s = { .r = r, .keys = keys, .reverse = reverse };
    s.order = arena_array(r->arena, len, sizeof *s.order);
    s.spare = arena_array(r->arena, len, sizeof *s.spare);
    for (size_t i = 0; i < len; i++) {
        s.order[i] = (uint32_t)i;
    }
    for (size_t width = 1; width < len; width *= 2) {
        for (size_t from = 0; from + width < len; from += 2 * width) {
            size_t to = from + 2 * width < len ? from + 2 * width : len;
            int rc = merge(&s, from, from + width, to);
            if (rc < 0) {
                return rc;
            }
        }
    }
    struct value *sorted = arena_array(r->arena, len, sizeof *sorted);
    for (size_t i = 0; i < len; i++) {
        sorted[i] = items[s.order[i]];
    }
    if (len > 0) {
        memcpy(items, sorted, len * sizeof *sorted);
        for (size_t i = 0; keys != items && i < len; i++) {
            sorted[i] = keys[s.order[i]];
        }
        if (keys != items) {
            memcpy(keys, sorted, len * sizeof *sorted);
        }
    }
    return 0;
}
