/* SPDX-License-Identifier: MIT
 *
 * Expressions to values: one small function per kind of node, found through a table. Operands are
 * evaluated left to right as Python does; r->line is set just before an operation that can fail.
 */
#include "template/template_render_priv.h"

typedef int eval_fn(struct render *r, struct activation *act, const struct node *n,
                    struct value *out);

struct value tpl_undefined_name(struct render *r, struct str name)
{
    struct undefined *u = ARENA_NEW(r->arena, struct undefined);
    *u = (struct undefined) { .name = name, .strict = render_is_strict(r) };
    return (struct value) { .kind = VALUE_UNDEFINED, .undefined = u };
}

struct value tpl_undefined_hint(struct render *r, const char *hint)
{
    struct undefined *u = ARENA_NEW(r->arena, struct undefined);
    *u = (struct undefined) { .hint = hint, .strict = render_is_strict(r) };
    return (struct value) { .kind = VALUE_UNDEFINED, .undefined = u };
}

static int eval_name(struct render *r, struct activation *act, const struct node *n,
                     struct value *out)
{
    *out = *slot_at(act, n->name.ref);
    if (out->kind == VALUE_MISSING) {
        *out = tpl_undefined_name(r, n->name.name->text);
    }
    return 0;
}

static int eval_list(struct render *r, struct activation *act, const struct node *n,
                     struct value *out)
{
    struct list *l = tpl_list_new(r->arena, n->items.len);
    for (size_t i = 0; i < n->items.len; i++) {
        int rc = tpl_eval(r, act, n->items.items[i], &l->items[i]);
        if (rc < 0) {
            return rc;
        }
    }
    l->len = n->items.len;
    *out = n->kind == NODE_TUPLE ? value_tuple(l) : value_list(l);
    return 0;
}

static int eval_dict(struct render *r, struct activation *act, const struct node *n,
                     struct value *out)
{
    struct dict *d = tpl_dict_new(r->arena);
    struct value all;
    int rc = eval_list(r, act, n, &all); /* everything is evaluated before the first key is used */
    r->line = n->line;
    for (size_t i = 0; i < n->items.len && rc == 0; i += 2) {
        rc = tpl_dict_set(r, d, &all.list->items[i], &all.list->items[i + 1]);
    }
    *out = value_dict(d);
    return rc;
}

static int eval_concat(struct render *r, struct activation *act, const struct node *n,
                       struct value *out)
{
    struct list *parts = tpl_list_new(r->arena, n->items.len);
    int rc = 0;
    for (size_t i = 0; i < n->items.len && rc == 0; i++) {
        rc = tpl_eval(r, act, n->items.items[i], &parts->items[i]);
    }
    if (rc < 0) {
        return rc;
    }
    r->line = n->line;
    struct buf *b = tpl_render_capture(r);
    for (size_t i = 0; i < n->items.len && rc == 0; i++) {
        rc = tpl_value_write_str(r, &parts->items[i], b);
    }
    if (rc < 0) {
        tpl_render_drop(r);
        return rc;
    }
    *out = tpl_render_captured(r);
    return 0;
}

static int eval_binary(struct render *r, struct activation *act, const struct node *n,
                       struct value *out)
{
    struct value left;
    struct value right;
    int rc = tpl_eval(r, act, n->binary.left, &left);
    rc = rc < 0 ? rc : tpl_eval(r, act, n->binary.right, &right);
    r->line = n->line;
    return rc < 0 ? rc : tpl_value_binary(r, n->binary.op, &left, &right, out);
}

static int eval_unary(struct render *r, struct activation *act, const struct node *n,
                      struct value *out)
{
    struct value v;
    int rc = tpl_eval(r, act, n->expr, &v);
    r->line = n->line;
    if (rc < 0) {
        return rc;
    }
    if (n->kind != NODE_NOT) {
        return n->kind == NODE_NEGATIVE ? tpl_value_negate(r, &v, out)
                                        : tpl_value_positive(r, &v, out);
    }
    bool truth;
    rc = tpl_value_truth(r, &v, &truth);
    *out = value_bool(rc == 0 && !truth);
    return rc;
}

static int eval_logic(struct render *r, struct activation *act, const struct node *n,
                      struct value *out)
{
    bool truth;
    int rc = tpl_eval(r, act, n->binary.left, out);
    r->line = n->line;
    rc = rc < 0 ? rc : tpl_value_truth(r, out, &truth);
    if (rc < 0 || truth == (n->kind == NODE_OR)) {
        return rc;
    }
    return tpl_eval(r, act, n->binary.right, out);
}

static int eval_compare(struct render *r, struct activation *act, const struct node *n,
                        struct value *out)
{
    struct value left;
    int rc = tpl_eval(r, act, n->compare.first, &left);
    bool holds = true;
    for (size_t i = 0; i < n->compare.len && rc == 0 && holds; i++) {
        struct value right;
        rc = tpl_eval(r, act, n->compare.ops[i].expr, &right);
        r->line = n->line;
        rc =
            rc < 0 ? rc : tpl_value_compare_op(r, &left, &right, (int)n->compare.ops[i].op, &holds);
        if (rc == 0) {
            left = right;
        }
    }
    *out = value_bool(holds);
    return rc;
}

static int eval_cond(struct render *r, struct activation *act, const struct node *n,
                     struct value *out)
{
    struct value test;
    bool truth;
    int rc = tpl_eval(r, act, n->cond.test, &test);
    r->line = n->line;
    rc = rc < 0 ? rc : tpl_value_truth(r, &test, &truth);
    if (rc < 0) {
        return rc;
    }
    if (!truth && n->cond.otherwise == NULL) {
        *out = tpl_undefined_hint(r, "the inline if was false and has no else");
        out->undefined->strict = false; /* Jinja2 prints nothing here, strict or not */
        return 0;
    }
    return tpl_eval(r, act, truth ? n->cond.then : n->cond.otherwise, out);
}

static int eval_attribute(struct render *r, struct activation *act, const struct node *n,
                          struct value *out)
{
    struct value object;
    int rc = tpl_eval(r, act, n->attribute.object, &object);
    r->line = n->line;
    bool key = object.kind == VALUE_DICT && !(n->attribute.special & 1u << VALUE_DICT);
    if (rc == 0 && key) { /* the common case, quickly */
        const struct value *found =
            tpl_dict_find_hashed(object.dict, n->attribute.name, n->attribute.hash);
        if (found != NULL) {
            *out = *found;
            return 0;
        }
    }
    return rc < 0 ? rc : tpl_value_attribute(r, &object, n->attribute.name, out);
}

static int eval_slice(struct render *r, struct activation *act, const struct value *object,
                      const struct node *key, struct value *out)
{
    const struct node *parts[] = { key->slice.start, key->slice.stop, key->slice.step };
    struct value values[3];
    const struct value *given[3] = { NULL, NULL, NULL };
    for (size_t i = 0; i < 3; i++) {
        if (parts[i] != NULL) {
            int rc = tpl_eval(r, act, parts[i], &values[i]);
            if (rc < 0) {
                return rc;
            }
            given[i] = &values[i];
        }
    }
    r->line = key->line;
    return tpl_value_slice(r, object, &(struct slice_bounds) { given[0], given[1], given[2] }, out);
}

static int eval_item(struct render *r, struct activation *act, const struct node *n,
                     struct value *out)
{
    struct value object;
    int rc = tpl_eval(r, act, n->item.object, &object);
    if (rc < 0) {
        return rc;
    }
    if (n->item.key->kind == NODE_SLICE) {
        return eval_slice(r, act, &object, n->item.key, out);
    }
    struct value key;
    rc = tpl_eval(r, act, n->item.key, &key);
    r->line = n->line;
    return rc < 0 ? rc : tpl_value_item(r, &object, &key, out);
}

static int eval_call(struct render *r, struct activation *act, const struct node *n,
                     struct value *out)
{
    struct value callee;
    struct call_args args;
    int rc = tpl_eval(r, act, n->call.callee, &callee);
    rc = rc < 0 ? rc : tpl_call_eval_args(r, act, &n->call.args, &args);
    r->line = n->line;
    return rc < 0 ? rc : tpl_call_value(r, &callee, &args, out);
}

static int eval_filter(struct render *r, struct activation *act, const struct node *n,
                       struct value *out)
{
    struct value subject;
    struct call_args args;
    int rc = tpl_eval(r, act, n->apply.subject, &subject);
    rc = rc < 0 ? rc : tpl_call_eval_args(r, act, &n->apply.args, &args);
    r->line = n->line;
    if (rc == 0 && n->apply.filter == NULL) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "there is no filter named '%.*s'",
                               STR_ARG(n->apply.name));
    }
    return rc < 0 ? rc : tpl_filter_apply(r, n->apply.filter, &subject, &args, out);
}

static int eval_test(struct render *r, struct activation *act, const struct node *n,
                     struct value *out)
{
    struct value subject;
    struct call_args args;
    int rc = tpl_eval(r, act, n->apply.subject, &subject);
    rc = rc < 0 ? rc : tpl_call_eval_args(r, act, &n->apply.args, &args);
    r->line = n->line;
    if (rc == 0 && n->apply.test == NULL) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "there is no test named '%.*s'",
                               STR_ARG(n->apply.name));
    }
    bool holds = false;
    rc = rc < 0 ? rc : tpl_predicate_apply(r, n->apply.test, &subject, &args, &holds);
    *out = value_bool(holds);
    return rc;
}

static eval_fn *const table[NODE_KIND_MAX] = {
    [NODE_LIST] = eval_list,           [NODE_TUPLE] = eval_list,
    [NODE_DICT] = eval_dict,           [NODE_CONCAT] = eval_concat,
    [NODE_BINARY] = eval_binary,       [NODE_NEGATIVE] = eval_unary,
    [NODE_POSITIVE] = eval_unary,      [NODE_NOT] = eval_unary,
    [NODE_AND] = eval_logic,           [NODE_OR] = eval_logic,
    [NODE_COMPARE] = eval_compare,     [NODE_COND] = eval_cond,
    [NODE_ATTRIBUTE] = eval_attribute, [NODE_ITEM] = eval_item,
    [NODE_CALL] = eval_call,           [NODE_FILTER] = eval_filter,
    [NODE_TEST] = eval_test,
};

int tpl_eval(struct render *r, struct activation *act, const struct node *n, struct value *out)
{
    int rc = render_step(r);
    if (rc < 0) {
        return rc;
    }
    if (n->kind == NODE_NAME) { /* leaves need no depth */
        return eval_name(r, act, n, out);
    }
    if (n->kind == NODE_CONST) {
        *out = n->constant;
        return 0;
    }
    rc = render_enter(r);
    if (rc < 0) {
        return rc;
    }
    rc = table[n->kind](r, act, n, out);
    render_leave(r);
    return rc;
}
