/* SPDX-License-Identifier: MIT
 *
 * The global functions: range, dict, namespace, cycler, joiner; and the methods of a cycler.
 */
#include "template/template_render_priv.h"

/* As jinja2.sandbox.MAX_RANGE. */
enum { RANGE_MAX = 100000 };

static int64_t range_len(int64_t start, int64_t stop, int64_t step)
{
    __int128 distance = step > 0 ? (__int128)stop - start : (__int128)start - stop;
    __int128 stride = step > 0 ? step : -(__int128)step;
    if (distance <= 0) {
        return 0;
    }
    __int128 len = (distance - 1) / stride + 1;
    return len > INT64_MAX ? INT64_MAX : (int64_t)len;
}

static int make_range(struct render *r, const struct value *in, const struct call_args *args,
                      struct value *out)
{
    int64_t n[3] = { 0, 0, 1 };
    if (args->named_len > 0 || args->plain_len < 1 || args->plain_len > 3) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "range() takes one to three integers");
    }
    for (size_t i = 0; i < args->plain_len; i++) {
        if (!value_is_integral(&args->plain[i])) { /* TypeError in Python, also when undefined */
            return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "range() needs integers, not a %s",
                                   tpl_value_type(&args->plain[i]));
        }
        n[i] = value_integer(&args->plain[i]);
    }
    if (args->plain_len == 1) {
        n[1] = n[0];
        n[0] = 0;
    }
    if (n[2] == 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the step of range() cannot be zero");
    }
    int64_t len = range_len(n[0], n[1], n[2]);
    if (len > RANGE_MAX) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "range() with more than %d members",
                               RANGE_MAX);
    }
    struct list *l = tpl_list_new(r->arena, (size_t)len);
    for (int64_t i = 0; i < len; i++) {
        struct value item = value_int(n[0] + i * n[2]);
        tpl_list_add(r->arena, l, &item);
    }
    r->steps += (uint64_t)len;
    *out = value_list(l);
    return 0;
}

static int add_pair(struct render *r, struct dict *d, const struct value *pair)
{
    struct list *l;
    int rc = tpl_value_to_list(r, pair, &l);
    if (rc < 0) {
        return rc;
    }
    if (l->len != 2) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "dict() needs pairs, got %zu values",
                               l->len);
    }
    return tpl_dict_set(r, d, &l->items[0], &l->items[1]);
}

static int add_all(struct render *r, struct dict *d, const struct value *from)
{
    struct iter it;
    struct value item;
    int rc;
    if (from->kind == VALUE_DICT) {
        for (size_t i = 0; i < from->dict->len; i++) {
            rc = tpl_dict_set(r, d, &from->dict->entries[i].key, &from->dict->entries[i].value);
            if (rc < 0) {
                return rc;
            }
        }
        return 0;
    }
    rc = tpl_iter_start(r, from, &it);
    while (rc == 0 && (rc = iter_next(r, &it, &item)) > 0) {
        rc = add_pair(r, d, &item);
    }
    return rc;
}

static int fill_dict(struct render *r, const struct call_args *args, struct dict **ret)
{
    struct dict *d = *ret = tpl_dict_new(r->arena);
    if (args->plain_len > 1) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "dict() takes at most one plain argument");
    }
    int rc = args->plain_len == 1 ? add_all(r, d, &args->plain[0]) : 0;
    for (size_t i = 0; i < args->named_len && rc == 0; i++) {
        tpl_dict_set_text(r->arena, d, args->named[i].name, &args->named[i].value);
    }
    return rc;
}

static int make_dict(struct render *r, const struct value *in, const struct call_args *args,
                     struct value *out)
{
    struct dict *d;
    int rc = fill_dict(r, args, &d);
    *out = value_dict(d);
    return rc;
}

static int make_namespace(struct render *r, const struct value *in, const struct call_args *args,
                          struct value *out)
{
    struct dict *d;
    int rc = fill_dict(r, args, &d);
    *out = (struct value) { .kind = VALUE_NAMESPACE, .names = d };
    return rc;
}

static int make_cycler(struct render *r, const struct value *in, const struct call_args *args,
                       struct value *out)
{
    if (args->plain_len == 0 || args->named_len > 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "cycler() needs at least one item");
    }
    struct cycler *c = ARENA_NEW(r->arena, struct cycler);
    c->items = tpl_list_new(r->arena, args->plain_len);
    for (size_t i = 0; i < args->plain_len; i++) {
        tpl_list_add(r->arena, c->items, &args->plain[i]);
    }
    *out = (struct value) { .kind = VALUE_CYCLER, .cycler = c };
    return 0;
}

static int make_joiner(struct render *r, const struct value *in, const struct call_args *args,
                       struct value *out)
{
    static const struct params params = { { "sep" }, 1, 0 };
    struct joiner *j = ARENA_NEW(r->arena, struct joiner);
    int rc = tpl_call_bind(r, args, &params, "joiner", &j->sep);
    if (rc == 0 && j->sep.kind == VALUE_MISSING) {
        j->sep = value_text(STR(", "));
    }
    *out = (struct value) { .kind = VALUE_JOINER, .joiner = j };
    return rc;
}

static const struct function functions[] = {
    { "range", make_range },   { "dict", make_dict },     { "namespace", make_namespace },
    { "cycler", make_cycler }, { "joiner", make_joiner },
};

const struct function *tpl_function_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        if (str_eqc(name, functions[i].name)) {
            return &functions[i];
        }
    }
    return NULL;
}

static int cycler_next(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    struct cycler *c = self->cycler;
    *out = c->items->items[c->pos];
    c->pos = (c->pos + 1) % c->items->len;
    return 0;
}

static int cycler_reset(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    self->cycler->pos = 0;
    *out = VALUE_OF_NONE;
    return 0;
}

const struct method tpl_methods_cycler[TPL_METHODS_CYCLER] = {
    { .name = "next", .run = cycler_next },
    { .name = "reset", .run = cycler_reset },
};
