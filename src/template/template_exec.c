/* SPDX-License-Identifier: MIT
 *
 * Statements: what they write goes to r->out. Blocks whose text becomes a value (set blocks, filter
 * blocks, macros) swap r->out for a capture while they run.
 */
#include "template/template_render_priv.h"

typedef int exec_fn(struct render *r, struct activation *act, const struct node *n);

void tpl_scope_enter(struct render *r, struct activation *act, const struct scope *s)
{
    r->steps += s->len; /* a loop body with many variables pays for each round */
    for (size_t i = 0; i < s->len; i++) {
        const struct scope_load *load = &s->loads[i];
        struct value *slot = &act->slots[load->slot];
        if (load->action == SCOPE_RESOLVE) {
            *slot = tpl_context_find(r->context, load->name);
        } else if (load->action == SCOPE_ALIAS) {
            *slot = *slot_at(act, load->from);
        } else {
            *slot = (struct value) { .kind = VALUE_MISSING };
        }
    }
}

static int assign_tuple(struct render *r, struct activation *act, const struct node *target,
                        const struct value *v)
{
    struct iter it;
    struct value item;
    int rc = tpl_iter_start(r, v, &it);
    struct list *got = tpl_list_new(r->arena, target->items.len);
    while (rc == 0 && got->len <= target->items.len && (rc = iter_next(r, &it, &item)) > 0) {
        tpl_list_add(r->arena, got, &item);
        rc = 0;
    }
    if (rc < 0) {
        return rc;
    }
    if (got->len != target->items.len) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "cannot unpack %s%zu values into %zu names",
                               got->len > target->items.len ? "more than " : "",
                               got->len > target->items.len ? target->items.len : got->len,
                               target->items.len);
    }
    for (size_t i = 0; i < got->len && rc == 0; i++) {
        rc = tpl_exec_assign(r, act, target->items.items[i], &got->items[i]);
    }
    return rc;
}

int tpl_exec_assign(struct render *r, struct activation *act, const struct node *target,
                    const struct value *v)
{
    if (target->kind == NODE_NAME) {
        *slot_at(act, target->name.ref) = *v;
        return 0;
    }
    if (target->kind == NODE_TUPLE) {
        return assign_tuple(r, act, target, v);
    }
    const struct value *ns = slot_at(act, target->nsref.ref);
    if (ns->kind != VALUE_NAMESPACE) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "cannot assign '%.*s.%.*s': '%.*s' is no namespace",
                               STR_ARG(target->nsref.name->text), STR_ARG(target->nsref.attr),
                               STR_ARG(target->nsref.name->text));
    }
    tpl_dict_set_text(r->arena, ns->names, target->nsref.attr, v);
    return 0;
}

static int exec_text(struct render *r, struct activation *act, const struct node *n)
{
    return render_write(r, r->out, n->text);
}

static int exec_print(struct render *r, struct activation *act, const struct node *n)
{
    struct value v;
    int rc = tpl_eval(r, act, n->expr, &v);
    r->line = n->line;
    if (rc == 0 && v.kind == VALUE_STRING) {
        return render_write(r, r->out, v.string);
    }
    return rc < 0 ? rc : tpl_value_write_str(r, &v, r->out);
}

static int test_branch(struct render *r, struct activation *act, const struct node *n, bool *ret)
{
    struct value v;
    int rc = tpl_eval(r, act, n->branch->test, &v);
    r->line = n->line;
    return rc < 0 ? rc : tpl_value_truth(r, &v, ret);
}

static int exec_if(struct render *r, struct activation *act, const struct node *n)
{
    bool truth = false;
    int rc = test_branch(r, act, n, &truth);
    if (rc < 0 || truth) {
        return rc < 0 ? rc : tpl_exec_body(r, act, &n->branch->body);
    }
    for (size_t i = 0; i < n->branch->elifs.len; i++) {
        const struct node *elif = n->branch->elifs.items[i];
        rc = test_branch(r, act, elif, &truth);
        if (rc < 0 || truth) {
            return rc < 0 ? rc : tpl_exec_body(r, act, &elif->branch->body);
        }
    }
    return tpl_exec_body(r, act, &n->branch->otherwise);
}

static int exec_set(struct render *r, struct activation *act, const struct node *n)
{
    struct value v;
    int rc = tpl_eval(r, act, n->set.value, &v);
    r->line = n->line;
    return rc < 0 ? rc : tpl_exec_assign(r, act, n->set.target, &v);
}

/* The body as text. */
static int capture_body(struct render *r, struct activation *act, const struct node_list *body,
                        struct value *out)
{
    struct buf *saved = r->out;
    r->out = tpl_render_capture(r);
    int rc = tpl_exec_body(r, act, body);
    r->out = saved;
    *out = tpl_render_captured(r);
    return rc;
}

/* A chain of filters whose innermost subject is the text. */
static int apply_filters(struct render *r, struct activation *act, const struct node *n,
                         const struct value *text, struct value *out)
{
    struct value subject = *text;
    struct call_args args;
    int rc = render_enter(r);
    if (rc == 0 && n->apply.subject != NULL) {
        rc = apply_filters(r, act, n->apply.subject, text, &subject);
    }
    rc = rc < 0 ? rc : tpl_call_eval_args(r, act, &n->apply.args, &args);
    r->line = n->line;
    if (rc == 0 && n->apply.filter == NULL) {
        rc = tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "there is no filter named '%.*s'",
                             STR_ARG(n->apply.name));
    }
    rc = rc < 0 ? rc : tpl_filter_apply(r, n->apply.filter, &subject, &args, out);
    render_leave(r);
    return rc;
}

/* What a block writes must be text already; Python would fail to join anything else. */
static int write_text(struct render *r, const struct value *v)
{
    if (v->kind != VALUE_STRING) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "a block must give text, not a %s",
                               tpl_value_type(v));
    }
    return tpl_value_write_str(r, v, r->out);
}

static int exec_capture(struct render *r, struct activation *act, const struct node *n)
{
    struct value v;
    tpl_scope_enter(r, act, &n->capture.scope);
    int rc = capture_body(r, act, &n->capture.body, &v);
    if (rc == 0 && n->capture.filter != NULL) {
        struct value text = v;
        rc = apply_filters(r, act, n->capture.filter, &text, &v);
    }
    r->line = n->line;
    if (rc < 0) {
        return rc;
    }
    return n->kind == NODE_FILTER_BLOCK ? write_text(r, &v)
                                        : tpl_exec_assign(r, act, n->capture.target, &v);
}

static struct value macro_value(struct render *r, struct activation *act,
                                const struct macro_node *node)
{
    struct macro *m = ARENA_NEW(r->arena, struct macro);
    *m = (struct macro) { .node = node, .up = act, .template = r->template, .context = r->context };
    return (struct value) { .kind = VALUE_MACRO, .macro = m };
}

static int exec_macro(struct render *r, struct activation *act, const struct node *n)
{
    *slot_at(act, n->macro->target) = macro_value(r, act, n->macro);
    return 0;
}

/* The call gets its body as the argument `caller`. */
static int exec_call_block(struct render *r, struct activation *act, const struct node *n)
{
    const struct node *call = n->call_block.call;
    struct value caller = macro_value(r, act, n->call_block.body);
    struct value callee;
    struct call_args args;
    struct value v;
    int rc = tpl_eval(r, act, call->call.callee, &callee);
    rc = rc < 0 ? rc : tpl_call_eval_args(r, act, &call->call.args, &args);
    r->line = n->line;
    if (rc < 0) {
        return rc;
    }
    if (tpl_call_named(&args, "caller") != NULL) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "argument 'caller' given twice");
    }
    struct named_value *named = arena_array(r->arena, args.named_len + 1, sizeof *named);
    if (args.named_len > 0) {
        memcpy(named, args.named, args.named_len * sizeof *named);
    }
    named[args.named_len++] = (struct named_value) { STR("caller"), caller };
    args.named = named;
    rc = tpl_call_value(r, &callee, &args, &v);
    return rc < 0 ? rc : write_text(r, &v);
}

static int exec_with(struct render *r, struct activation *act, const struct node *n)
{
    tpl_scope_enter(r, act, &n->with.scope);
    for (size_t i = 0; i < n->with.targets.len; i++) {
        struct value v;
        int rc = tpl_eval(r, act, n->with.values.items[i], &v);
        r->line = n->line;
        rc = rc < 0 ? rc : tpl_exec_assign(r, act, n->with.targets.items[i], &v);
        if (rc < 0) {
            return rc;
        }
    }
    return tpl_exec_body(r, act, &n->with.body);
}

/* --- include --- */

static int load_one(struct render *r, const struct value *name, const struct template **ret)
{
    if (name->kind != VALUE_STRING) {
        return tpl_render_fail_type(r, name, "include needs the name of a template, not a %s",
                                    tpl_value_type(name));
    }
    enum template_fault before = r->set->fault;
    int rc = template_load(r->set, arena_dup(r->arena, name->string), ret, r->e);
    if (rc == -ERR_INPUT) {
        r->set->fault = before;
    }
    return rc;
}

/* One name, or the first that exists of several. */
static int load_any(struct render *r, const struct value *names, const struct template **ret)
{
    if (!value_is_sequence(names)) {
        return load_one(r, names, ret);
    }
    for (size_t i = 0; i < names->list->len; i++) {
        int rc = load_one(r, &names->list->items[i], ret);
        if (rc != -ERR_INPUT) {
            return rc;
        }
    }
    (void)tpl_render_fail(r, TEMPLATE_FAULT_MISSING, "none of the templates to include was found");
    return -ERR_INPUT;
}

static const struct context *include_context(struct render *r, struct activation *act,
                                             const struct node *n)
{
    struct context *ctx = ARENA_NEW(r->arena, struct context);
    if (!n->include.with_context) {
        return ctx; /* the functions only */
    }
    struct value *values = arena_array(r->arena, n->include.locals_len, sizeof *values);
    r->steps += n->include.locals_len;
    for (size_t i = 0; i < n->include.locals_len; i++) {
        values[i] = *slot_at(act, n->include.locals[i].ref);
    }
    *ctx = (struct context) { .up = r->context,
                              .locals = n->include.locals,
                              .values = values,
                              .len = n->include.locals_len };
    return ctx;
}

/* Says where the failing text was included, at the innermost include only: a cycle would fill the
 * message with its own path. */
static int say_included(struct render *r, const struct node *n, int rc)
{
    if (!r->included) {
        r->included = true;
        rc = ERR(r->e, r->e->code, "%s (included at %s:%u)", r->e->msg, r->template->name, n->line);
    }
    return rc;
}

static int exec_include(struct render *r, struct activation *act, const struct node *n)
{
    struct value name;
    const struct template *t = NULL;
    int rc = tpl_eval(r, act, n->include.name, &name);
    r->line = n->line;
    rc = rc < 0 ? rc : load_any(r, &name, &t);
    if (rc == -ERR_INPUT && t == NULL) {
        if (n->include.ignore_missing) {
            return 0;
        }
        r->set->fault = TEMPLATE_FAULT_MISSING;
    }
    if (rc == 0) {
        rc = tpl_exec_template(r, t, include_context(r, act, n));
        r->line = n->line;
    }
    return rc < 0 ? say_included(r, n, rc) : rc;
}

/* --- the table --- */

static exec_fn *const table[NODE_KIND_MAX] = {
    [NODE_TEXT] = exec_text,
    [NODE_PRINT] = exec_print,
    [NODE_IF] = exec_if,
    [NODE_FOR] = tpl_exec_for,
    [NODE_SET] = exec_set,
    [NODE_SET_BLOCK] = exec_capture,
    [NODE_MACRO] = exec_macro,
    [NODE_CALL_BLOCK] = exec_call_block,
    [NODE_FILTER_BLOCK] = exec_capture,
    [NODE_WITH] = exec_with,
    [NODE_INCLUDE] = exec_include,
};

int tpl_exec_body(struct render *r, struct activation *act, const struct node_list *body)
{
    int rc = body->len == 0 ? 0 : render_enter(r);
    if (rc < 0 || body->len == 0) {
        return rc;
    }
    for (size_t i = 0; i < body->len && rc == 0; i++) {
        rc = render_step(r);
        rc = rc < 0 ? rc : table[body->items[i]->kind](r, act, body->items[i]);
    }
    render_leave(r);
    return rc;
}

int tpl_exec_template(struct render *r, const struct template *t, const struct context *ctx)
{
    if (r->calls >= r->set->limits.max_calls) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "includes nest deeper than %u",
                               r->set->limits.max_calls);
    }
    const struct template *template = r->template;
    const struct context *context = r->context;
    struct activation *act = tpl_activation_new(r, t, t->func, NULL);
    r->calls++;
    r->template = t;
    r->context = ctx;
    tpl_scope_enter(r, act, &t->scope);
    int rc = tpl_exec_body(r, act, &t->body);
    r->context = context;
    r->template = template;
    r->calls--;
    tpl_activation_release(r, t, t->func, act);
    return rc;
}
