/* SPDX-License-Identifier: MIT
 *
 * object.name, object[key] and slices. The dot prefers attributes, which for us are methods and a
 * few properties, then items; brackets prefer items. What is not there is an undefined value that
 * says what was looked up where. Attributes that Python has but a sandbox must not give out are
 * undefined too, and unsafe.
 */
#include "template/template_value_priv.h"

#include "template/template_render_priv.h"
#include "template/template_unicode.h"

static struct value not_found(struct render *r, const struct value *owner, const struct value *key)
{
    struct undefined *u = ARENA_NEW(r->arena, struct undefined);
    *u = (struct undefined) { .owner = tpl_value_type(owner), .strict = render_is_strict(r) };
    if (key->kind == VALUE_STRING) {
        u->name = key->string;
    } else {
        u->key = *key;
    }
    return (struct value) { .kind = VALUE_UNDEFINED, .undefined = u };
}

static struct value unsafe(struct render *r, const struct value *owner, struct str name)
{
    struct undefined *u = ARENA_NEW(r->arena, struct undefined);
    *u = (struct undefined) {
        .owner = tpl_value_type(owner), .name = name, .strict = true, .unsafe = true
    };
    return (struct value) { .kind = VALUE_UNDEFINED, .undefined = u };
}

static bool is_dunder(struct str name)
{
    return name.len > 4 && str_starts(name, STR("__")) && str_ends(name, STR("__"));
}

uint32_t tpl_value_kinds_with(struct str name)
{
    uint32_t kinds = 0;
    for (unsigned kind = 0; kind < VALUE_KIND_MAX; kind++) {
        struct value v = { .kind = (enum value_kind)kind };
        if (tpl_method_find(&v, name) != NULL) {
            kinds |= 1u << kind;
        }
    }
    return is_dunder(name) ? UINT32_MAX : kinds;
}

static int cycler_attribute(const struct cycler *c, struct str name, struct value *out)
{
    if (str_eqc(name, "current")) {
        *out = c->items->items[c->pos];
    } else if (str_eqc(name, "items")) {
        *out = value_tuple(c->items);
    } else if (str_eqc(name, "pos")) {
        *out = value_int((int64_t)c->pos);
    }
    return 0;
}

/* Properties that are no methods. *out stays VALUE_MISSING when there is none of that name. */
static int property(struct render *r, const struct value *v, struct str name, struct value *out)
{
    switch ((int)v->kind) {
    case VALUE_NAMESPACE: {
        const struct value *found = tpl_dict_find_text(v->names, name);
        if (found != NULL) {
            *out = *found;
        }
        return 0;
    }
    case VALUE_LOOP:
        return tpl_loop_attribute(r, v->loop, name, out);
    case VALUE_CYCLER:
        return cycler_attribute(v->cycler, name, out);
    case VALUE_TUPLE:
        if (v->list->group && str_eqc(name, "grouper")) {
            *out = v->list->items[0];
        } else if (v->list->group && str_eqc(name, "list")) {
            *out = v->list->items[1];
        }
        return 0;
    default:
        return 0;
    }
}

/* Python's getattr(): *out is VALUE_MISSING when there is no such attribute. */
static int attribute(struct render *r, const struct value *v, struct str name, struct value *out)
{
    *out = (struct value) { .kind = VALUE_MISSING };
    int rc = property(r, v, name, out);
    if (rc < 0 || out->kind != VALUE_MISSING || v->kind == VALUE_NAMESPACE) {
        return rc;
    }
    const struct method *m = tpl_method_find(v, name);
    if (m != NULL) {
        struct bound *bound = ARENA_NEW(r->arena, struct bound);
        *bound = (struct bound) { *v, m };
        *out = (struct value) { .kind = VALUE_METHOD, .bound = bound };
    }
    return 0;
}

int tpl_value_attribute(struct render *r, const struct value *v, struct str name, struct value *out)
{
    if (v->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(r, v);
    }
    int rc = attribute(r, v, name, out);
    if (rc < 0 || out->kind != VALUE_MISSING) {
        return rc;
    }
    const struct value *found = v->kind == VALUE_DICT ? tpl_dict_find_text(v->dict, name) : NULL;
    struct value key = value_text(name);
    *out = found != NULL ? *found : is_dunder(name) ? unsafe(r, v, name) : not_found(r, v, &key);
    return 0;
}

int tpl_value_attribute_only(struct render *r, const struct value *v, struct str name,
                             struct value *out)
{
    if (v->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(r, v);
    }
    int rc = attribute(r, v, name, out);
    if (rc == 0 && out->kind == VALUE_MISSING) {
        struct value key = value_text(name);
        *out = is_dunder(name) ? unsafe(r, v, name) : not_found(r, v, &key);
    }
    return rc;
}

/* The element at an index counted from either end; false when out of range. */
static bool at_index(const struct value *v, int64_t i, struct value *out)
{
    if (v->kind == VALUE_STRING) {
        size_t len = unicode_len(v->string);
        i += i < 0 ? (int64_t)len : 0;
        if (i < 0 || (uint64_t)i >= len) {
            return false;
        }
        size_t from = unicode_offset(v->string, (size_t)i);
        size_t to = from;
        (void)unicode_next(v->string, &to);
        *out = value_text(str_n(v->string.ptr + from, to - from));
        return true;
    }
    int64_t len = (int64_t)v->list->len;
    i += i < 0 ? len : 0;
    if (i < 0 || i >= len) {
        return false;
    }
    *out = v->list->items[i];
    return true;
}

int tpl_value_item(struct render *r, const struct value *v, const struct value *key,
                   struct value *out)
{
    if (v->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(r, v);
    }
    if (v->kind == VALUE_DICT) {
        if (value_is_sequence(key) || key->kind == VALUE_DICT) {
            if (key->kind != VALUE_TUPLE) { /* not hashable: not there */
                *out = not_found(r, v, key);
                return 0;
            }
        }
        struct value *found;
        int rc = tpl_dict_find(r, v->dict, key, &found);
        if (rc < 0 || found != NULL) {
            *out = rc < 0 ? VALUE_OF_NONE : *found;
            return rc;
        }
    }
    bool indexed = v->kind == VALUE_STRING || value_is_sequence(v);
    if (indexed && value_is_integral(key) && at_index(v, value_integer(key), out)) {
        return 0;
    }
    if (key->kind == VALUE_STRING) {
        int rc = attribute(r, v, key->string, out);
        if (rc < 0 || out->kind != VALUE_MISSING) {
            return rc;
        }
        if (is_dunder(key->string)) {
            *out = unsafe(r, v, key->string);
            return 0;
        }
    }
    *out = not_found(r, v, key);
    return 0;
}

/* --- slices --- */

static int slice_number(struct render *r, const struct value *v, int64_t otherwise, int64_t *ret)
{
    if (v == NULL || v->kind == VALUE_NONE) {
        *ret = otherwise;
        return 0;
    }
    if (!value_is_integral(v)) {
        /* Python says TypeError even for an undefined value: it has no __index__. */
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "slices need integers, not a %s",
                               tpl_value_type(v));
    }
    *ret = value_integer(v);
    return 0;
}

struct span {
    int64_t start, stop, step, len;
};

static int64_t clamp(int64_t i, int64_t len, int64_t low, int64_t high)
{
    if (i < 0) {
        i = i < -len ? low : i + len;
        return i < low ? low : i;
    }
    return i > high ? high : i;
}

static int slice_span(struct render *r, const struct slice_bounds *b, int64_t len, struct span *ret)
{
    int64_t step = 1;
    int rc = slice_number(r, b->step, 1, &step);
    if (rc < 0) {
        return rc;
    }
    if (step == 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the step of a slice cannot be zero");
    }
    step = step < -INT64_MAX ? -INT64_MAX : step;
    int64_t low = step < 0 ? -1 : 0;
    int64_t high = step < 0 ? len - 1 : len;
    int64_t start = 0;
    int64_t stop = 0;
    rc = slice_number(r, b->start, step < 0 ? INT64_MAX : 0, &start);
    rc = rc < 0 ? rc : slice_number(r, b->stop, step < 0 ? INT64_MIN : INT64_MAX, &stop);
    if (rc < 0) {
        return rc;
    }
    start = clamp(start, len, low, high);
    stop = clamp(stop, len, low, high);
    ret->start = start;
    ret->stop = stop;
    ret->step = step;
    int64_t distance = step < 0 ? start - stop : stop - start;
    int64_t stride = step < 0 ? -step : step;
    ret->len = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    return 0;
}

static int slice_text(struct render *r, const struct value *v, const struct span *s,
                      struct value *out)
{
    if (s->step == 1) {
        size_t from = unicode_offset(v->string, (size_t)s->start);
        struct str tail = str_slice(v->string, from, v->string.len);
        *out = value_text(str_n(tail.ptr, unicode_offset(tail, (size_t)s->len)));
        return 0;
    }
    struct list *chars;
    int rc = tpl_value_to_list(r, v, &chars);
    if (rc < 0) {
        return rc;
    }
    struct buf *b = tpl_render_capture(r);
    for (int64_t i = 0; i < s->len && rc == 0; i++) {
        rc = buf_append(b, chars->items[s->start + i * s->step].string, NULL);
    }
    *out = tpl_render_captured(r);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

int tpl_value_slice(struct render *r, const struct value *v, const struct slice_bounds *b,
                    struct value *out)
{
    bool can = v->kind == VALUE_STRING || value_is_sequence(v);
    if (!can) {
        return tpl_render_fail_type(r, v, "a %s has no slices", tpl_value_type(v));
    }
    size_t len;
    struct span s = { 0 };
    int rc = tpl_value_len(r, v, &len);
    rc = rc < 0 ? rc : slice_span(r, b, (int64_t)len, &s);
    if (rc < 0) {
        return rc;
    }
    if (v->kind == VALUE_STRING) {
        return slice_text(r, v, &s, out);
    }
    struct list *l = tpl_list_new(r->arena, (size_t)s.len);
    for (int64_t i = 0; i < s.len; i++) {
        tpl_list_add(r->arena, l, &v->list->items[s.start + i * s.step]);
    }
    *out = v->kind == VALUE_TUPLE ? value_tuple(l) : value_list(l);
    return 0;
}

/* --- dotted paths --- */

static struct value path_part(struct str part)
{
    int64_t n;
    bool digits = part.len > 0;
    for (size_t i = 0; i < part.len; i++) {
        digits = digits && part.ptr[i] >= '0' && part.ptr[i] <= '9';
    }
    return digits && str_to_i64(part, &n) ? value_int(n) : value_text(part);
}

static int path_step(struct render *r, const struct value *part, const struct value *otherwise,
                     struct value *out)
{
    struct value from = *out;
    int rc = tpl_value_item(r, &from, part, out);
    if (rc == 0 && out->kind == VALUE_UNDEFINED && otherwise->kind != VALUE_NONE) {
        *out = *otherwise;
    }
    return rc;
}

int tpl_value_path(struct render *r, const struct value *v, const struct value *path,
                   const struct value *otherwise, struct value *out)
{
    *out = *v;
    if (path->kind == VALUE_NONE) {
        return 0;
    }
    if (path->kind != VALUE_STRING) {
        return path_step(r, path, otherwise, out);
    }
    struct str left = path->string;
    int rc = 0;
    while (rc == 0 && left.ptr != NULL) {
        struct value part = path_part(str_split(&left, '.'));
        rc = path_step(r, &part, otherwise, out);
    }
    return rc;
}
