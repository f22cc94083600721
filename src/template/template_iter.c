/* SPDX-License-Identifier: MIT
 *
 * Walking over values: one struct iter per walk, on the stack of whoever walks; or in the arena as
 * a generator, which is a value of its own and remembers how far it came.
 */
#include "template/template_value_priv.h"

#include "template/template_render_priv.h"
#include "template/template_unicode.h"

static int next_item(struct render *r, struct iter *it, struct value *out)
{
    const struct list *l = it->source.list;
    if (it->pos >= l->len) {
        return 0;
    }
    *out = l->items[it->pos++];
    int rc = render_step(r);
    return rc < 0 ? rc : 1;
}

static int next_char(struct render *r, struct iter *it, struct value *out)
{
    struct str s = it->source.string;
    if (it->pos >= s.len) {
        return 0;
    }
    size_t from = it->pos;
    (void)unicode_next(s, &it->pos);
    *out = value_text(str_n(s.ptr + from, it->pos - from));
    int rc = render_step(r);
    return rc < 0 ? rc : 1;
}

static int next_key(struct render *r, struct iter *it, struct value *out)
{
    const struct dict *d = it->source.dict;
    if (it->pos >= d->len) {
        return 0;
    }
    *out = d->entries[it->pos++].key;
    int rc = render_step(r);
    return rc < 0 ? rc : 1;
}

static int next_of_generator(struct render *r, struct iter *it, struct value *out)
{
    int rc = render_step(r);
    return rc < 0 ? rc : it->source.iter->next(r, it->source.iter, out);
}

static int next_nothing(struct render *r, struct iter *it, struct value *out)
{
    return 0;
}

bool tpl_value_is_iterable(const struct value *v)
{
    return v->kind == VALUE_STRING || value_is_sequence(v) || v->kind == VALUE_DICT ||
           v->kind == VALUE_ITER;
}

int tpl_iter_start(struct render *r, const struct value *v, struct iter *it)
{
    *it = (struct iter) { .source = *v };
    switch ((int)v->kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
        it->next = next_item;
        return 0;
    case VALUE_STRING:
        it->next = next_char;
        return 0;
    case VALUE_DICT:
        it->next = next_key;
        return 0;
    case VALUE_ITER:
        it->next = next_of_generator;
        return 0;
    case VALUE_UNDEFINED:
        if (!v->undefined->strict) {
            it->next = next_nothing;
            return 0;
        }
        return tpl_render_fail_undefined(r, v);
    default:
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "a %s cannot be walked over",
                               tpl_value_type(v));
    }
}

int tpl_value_len(struct render *r, const struct value *v, size_t *ret)
{
    switch ((int)v->kind) {
    case VALUE_STRING:
        *ret = unicode_len(v->string);
        return 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
        *ret = v->list->len;
        return 0;
    case VALUE_DICT:
        *ret = v->dict->len;
        return 0;
    case VALUE_UNDEFINED:
        *ret = 0;
        return v->undefined->strict ? tpl_render_fail_undefined(r, v) : 0;
    case VALUE_ITER:
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "a generator has no length, make it a list with '|list'");
    default:
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "a %s has no length", tpl_value_type(v));
    }
}

int tpl_value_to_list(struct render *r, const struct value *v, struct list **ret)
{
    struct list *l = tpl_list_new(r->arena, value_is_sequence(v) ? v->list->len : 0);
    struct iter it;
    struct value item;
    int rc = tpl_iter_start(r, v, &it);
    while (rc == 0 && (rc = iter_next(r, &it, &item)) > 0) {
        tpl_list_add(r->arena, l, &item);
        rc = 0;
    }
    *ret = l;
    return rc;
}

struct iter *tpl_iter_new(struct render *r,
                          int (*next)(struct render *, struct iter *, struct value *),
                          const struct value *source, void *state)
{
    struct iter *it = ARENA_NEW(r->arena, struct iter);
    *it = (struct iter) { .next = next, .source = *source, .state = state };
    return it;
}

/* pos counts down. */
static int next_reversed(struct render *r, struct iter *it, struct value *out)
{
    if (it->pos == 0) {
        return 0;
    }
    it->pos--;
    bool dict = it->source.kind == VALUE_DICT;
    *out = dict ? it->source.dict->entries[it->pos].key : it->source.list->items[it->pos];
    int rc = render_step(r);
    return rc < 0 ? rc : 1;
}

int tpl_iter_reverse(struct render *r, const struct value *v, struct value *out)
{
    struct value source = *v;
    if (v->kind == VALUE_STRING) {
        struct list *chars;
        int rc = tpl_value_to_list(r, v, &chars);
        if (rc < 0) {
            return rc;
        }
        source = value_list(chars);
    } else if (!value_is_sequence(v) && v->kind != VALUE_DICT) {
        return tpl_render_fail_type(r, v, "a %s cannot be walked backwards, try '|list' first",
                                    tpl_value_type(v));
    }
    struct iter *it = tpl_iter_new(r, next_reversed, &source, NULL);
    int rc = tpl_value_len(r, &source, &it->pos);
    *out = value_iter(it);
    return rc;
}
