/* SPDX-License-Identifier: MIT
 *
 * Making values, and values from JSON.
 */
#include "template/template_value_priv.h"

#include "base/json.h"

struct list *tpl_list_new(struct arena *a, size_t cap)
{
    struct list *l = ARENA_NEW(a, struct list);
    l->cap = cap;
    l->items = cap == 0 ? NULL : arena_array(a, cap, sizeof *l->items);
    return l;
}

void tpl_list_add(struct arena *a, struct list *l, const struct value *v)
{
    if (l->len == l->cap) {
        size_t cap = l->cap == 0 ? 4 : l->cap * 2;
        struct value *more = arena_array(a, cap, sizeof *more);
        if (l->len > 0) {
            memcpy(more, l->items, l->len * sizeof *more);
        }
        l->items = more;
        l->cap = cap;
    }
    l->items[l->len++] = *v;
}

static struct value from_array(struct arena *a, const struct json *v, unsigned depth)
{
    struct list *l = tpl_list_new(a, v->array.len);
    for (size_t i = 0; i < v->array.len; i++) {
        struct value item = tpl_value_from_json(a, v->array.items[i], depth);
        tpl_list_add(a, l, &item);
    }
    return value_list(l);
}

static struct value from_object(struct arena *a, const struct json *v, unsigned depth)
{
    struct dict *d = tpl_dict_new(a);
    for (size_t i = 0; i < v->object.len; i++) {
        struct value item = tpl_value_from_json(a, v->object.members[i].value, depth);
        tpl_dict_set_text(a, d, v->object.members[i].key, &item);
    }
    return value_dict(d);
}

struct value tpl_value_from_json(struct arena *a, const struct json *v, unsigned depth)
{
    enum { DEEPEST = 400 }; /* json_parse stops at 256 */
    if (v == NULL || depth > DEEPEST) {
        return VALUE_OF_NONE;
    }
    switch (v->type) {
    case JSON_NULL:
        return VALUE_OF_NONE;
    case JSON_BOOL:
        return value_bool(v->boolean);
    case JSON_INT:
        return value_int(v->integer);
    case JSON_REAL:
        return value_float(v->real);
    case JSON_STRING:
        return value_text(v->string);
    case JSON_ARRAY:
        return from_array(a, v, depth + 1);
    case JSON_OBJECT:
        return from_object(a, v, depth + 1);
    }
    return VALUE_OF_NONE;
}

const char *tpl_value_type(const struct value *v)
{
    static const char *const names[VALUE_KIND_MAX] = {
        [VALUE_MISSING] = "nothing",
        [VALUE_UNDEFINED] = "undefined",
        [VALUE_NONE] = "None",
        [VALUE_BOOL] = "bool object",
        [VALUE_INT] = "int object",
        [VALUE_FLOAT] = "float object",
        [VALUE_STRING] = "str object",
        [VALUE_LIST] = "list object",
        [VALUE_TUPLE] = "tuple object",
        [VALUE_DICT] = "dict object",
        [VALUE_ITER] = "generator object",
        [VALUE_NAMESPACE] = "namespace object",
        [VALUE_CYCLER] = "cycler object",
        [VALUE_JOINER] = "joiner object",
        [VALUE_LOOP] = "loop object",
        [VALUE_MACRO] = "macro object",
        [VALUE_METHOD] = "method",
        [VALUE_FUNCTION] = "function",
    };
    return names[v->kind];
}
