/* SPDX-License-Identifier: MIT
 *
 * Methods: which values have which, and those of dicts and lists. What Python has and this table
 * has not is refused by name, so that a template learns the reason. Arguments that Python takes by
 * position only have names with a blank here, which no call can write.
 */
#include "template/template_render_priv.h"

/* --- dicts --- */

static struct value view_of(struct render *r, const struct value *self, enum view_kind what)
{
    struct view *view = ARENA_NEW(r->arena, struct view);
    *view = (struct view) { self->dict, what };
    return (struct value) { .kind = VALUE_VIEW, .view = view };
}

static int dict_keys(struct render *r, const struct value *self, const struct value *args,
                     struct value *out)
{
    *out = view_of(r, self, VIEW_KEYS);
    return 0;
}

static int dict_values(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    *out = view_of(r, self, VIEW_VALUES);
    return 0;
}

static int dict_items(struct render *r, const struct value *self, const struct value *args,
                      struct value *out)
{
    *out = view_of(r, self, VIEW_ITEMS);
    return 0;
}

static int dict_get(struct render *r, const struct value *self, const struct value *args,
                    struct value *out)
{
    struct value *found;
    int rc = tpl_dict_find(r, self->dict, &args[0], &found);
    *out = rc == 0 && found != NULL        ? *found
           : args[1].kind == VALUE_MISSING ? VALUE_OF_NONE
                                           : args[1];
    return rc;
}

/* Nothing can change a list or dict, so a copy is the thing itself. */
static int same_again(struct render *r, const struct value *self, const struct value *args,
                      struct value *out)
{
    *out = *self;
    return 0;
}

const struct method tpl_methods_dict[] = {
    { .name = "keys", .run = dict_keys },
    { .name = "values", .run = dict_values },
    { .name = "items", .run = dict_items },
    { .name = "get", .run = dict_get, .params = { { "a key", "a default" }, 2, 1 } },
    { .name = "copy", .run = same_again },
};
const size_t tpl_methods_dict_len = ARRAY_LEN(tpl_methods_dict);

/* --- lists and tuples --- */

static int list_count(struct render *r, const struct value *self, const struct value *args,
                      struct value *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < self->list->len; i++) {
        bool same = tpl_value_same(&self->list->items[i], &args[0]);
        int rc = same ? 0 : tpl_value_equal(r, &self->list->items[i], &args[0], &same);
        rc = rc < 0 ? rc : render_step(r);
        if (rc < 0) {
            return rc;
        }
        n += same;
    }
    *out = value_int(n);
    return 0;
}

static int64_t bound_index(int64_t i, int64_t len)
{
    i += i < 0 ? len : 0;
    return i < 0 ? 0 : i > len ? len : i;
}

static int list_index(struct render *r, const struct value *self, const struct value *args,
                      struct value *out)
{
    int64_t len = (int64_t)self->list->len;
    int64_t from;
    int64_t to;
    int rc = tpl_arg_int(r, &args[1], 0, &from);
    rc = rc < 0 ? rc : tpl_arg_int(r, &args[2], len, &to);
    for (int64_t i = bound_index(from, len); rc == 0 && i < bound_index(to, len); i++) {
        bool same = tpl_value_same(&self->list->items[i], &args[0]);
        rc = same ? 0 : tpl_value_equal(r, &self->list->items[i], &args[0], &same);
        rc = rc < 0 ? rc : render_step(r);
        if (rc == 0 && same) {
            *out = value_int(i);
            return 0;
        }
    }
    return rc < 0 ? rc
                  : tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "index(): the value is not there");
}

/* A range is short (range() sees to that): as a list it has the same methods. */
static int range_count(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    struct list *l;
    int rc = tpl_value_to_list(r, self, &l);
    struct value list = value_list(l);
    return rc < 0 ? rc : list_count(r, &list, args, out);
}

static int range_index(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    struct list *l;
    struct value all[3] = { args[0] };
    int rc = tpl_value_to_list(r, self, &l);
    struct value list = value_list(l);
    return rc < 0 ? rc : list_index(r, &list, all, out);
}

static const struct method methods_range[] = {
    { .name = "count", .run = range_count, .params = { { "a value" }, 1, 1 } },
    { .name = "index", .run = range_index, .params = { { "a value" }, 1, 1 } },
};
static const size_t methods_range_len = ARRAY_LEN(methods_range);

const struct method tpl_methods_list[] = {
    { .name = "count", .run = list_count, .params = { { "a value" }, 1, 1 } },
    { .name = "index", .run = list_index, .params = { { "a value", "a start", "a stop" }, 3, 1 } },
    { .name = "copy", .run = same_again },
};
const size_t tpl_methods_list_len = ARRAY_LEN(tpl_methods_list);

/* --- who has what --- */

static bool is_one_of(struct str name, const char *words)
{
    struct str left = str_of(words);
    while (left.ptr != NULL && left.len > 0) {
        if (str_eq(str_split(&left, ' '), name)) {
            return true;
        }
    }
    return false;
}

struct method_table {
    const struct method *items;
    const size_t *len;
    const char *refused; /* Python's others */
};

static const struct method_table *table_of(const struct value *v)
{
    static const struct method_table strings = {
        tpl_methods_string, &tpl_methods_string_len,
        "casefold encode expandtabs format_map isascii isdecimal isidentifier isnumeric "
        "isprintable istitle maketrans translate"
    };
    static const struct method_table dicts = { tpl_methods_dict, &tpl_methods_dict_len,
                                               "clear fromkeys pop popitem setdefault update" };
    static const struct method_table lists = {
        tpl_methods_list, &tpl_methods_list_len,
        "append clear extend insert pop remove reverse sort"
    };
    static const struct method_table tuples = { tpl_methods_list, &tpl_methods_list_len, "" };
    static const struct method_table ranges = { methods_range, &methods_range_len, "" };
    static const struct method_table loops = { tpl_methods_loop, &tpl_methods_loop_len, "" };
    static const struct method_table cyclers = { tpl_methods_cycler, &tpl_methods_cycler_len, "" };
    static const size_t zero = 0;
    static const struct method_table numbers = {
        NULL, &zero,
        "as_integer_ratio bit_count bit_length conjugate denominator from_bytes fromhex hex imag "
        "is_integer numerator real to_bytes"
    };
    static const struct method_table generators = {
        NULL, &zero, "close gi_code gi_frame gi_running gi_yieldfrom send throw"
    };
    switch ((int)v->kind) {
    case VALUE_STRING:
        return &strings;
    case VALUE_DICT:
        return &dicts;
    case VALUE_LIST:
        return &lists;
    case VALUE_TUPLE:
        return &tuples;
    case VALUE_RANGE:
        return &ranges;
    case VALUE_LOOP:
        return &loops;
    case VALUE_CYCLER:
        return &cyclers;
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_FLOAT:
        return &numbers;
    case VALUE_ITER:
        return &generators;
    default:
        return NULL;
    }
}

const struct method *tpl_method_find(const struct value *self, struct str name, bool *unsafe)
{
    const struct method_table *t = table_of(self);
    *unsafe = false;
    if (t == NULL) {
        return NULL;
    }
    bool tuple = self->kind == VALUE_TUPLE;
    for (size_t i = 0; i < *t->len; i++) {
        if (str_eqc(name, t->items[i].name) && !(tuple && t->items[i].run == same_again)) {
            return &t->items[i];
        }
    }
    *unsafe = is_one_of(name, t->refused);
    return NULL;
}
