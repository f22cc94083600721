/* SPDX-License-Identifier: MIT
 *
 * Calls: evaluating arguments, binding them to parameters, and what can be called: macros, methods,
 * the global functions, joiners and recursive loops.
 */
#include "template/template_render_priv.h"

const struct value *tpl_call_named(const struct call_args *args, const char *name)
{
    for (size_t i = 0; i < args->named_len; i++) {
        if (str_eqc(args->named[i].name, name)) {
            return &args->named[i].value;
        }
    }
    return NULL;
}

/* --- evaluating --- */

static int spread_plain(struct render *r, const struct value *star, struct call_args *args)
{
    struct list *more;
    int rc = tpl_value_to_list(r, star, &more);
    if (rc < 0) {
        return rc;
    }
    struct value *all = arena_array(r->arena, args->plain_len + more->len, sizeof *all);
    memcpy(all, args->plain, args->plain_len * sizeof *all);
    if (more->len > 0) {
        memcpy(all + args->plain_len, more->items, more->len * sizeof *all);
    }
    args->plain = all;
    args->plain_len += more->len;
    return 0;
}

static int spread_named(struct render *r, const struct value *star, struct call_args *args)
{
    if (star->kind != VALUE_DICT) {
        return tpl_render_fail_type(r, star, "the argument after '**' must be a dict, not a %s",
                                    tpl_value_type(star));
    }
    const struct dict *d = star->dict;
    struct named_value *all = arena_array(r->arena, args->named_len + d->len, sizeof *all);
    if (args->named_len > 0) {
        memcpy(all, args->named, args->named_len * sizeof *all);
    }
    args->named = all;
    size_t given = args->named_len;
    for (size_t i = 0; i < d->len; i++) {
        const struct value *key = &d->entries[i].key;
        if (key->kind != VALUE_STRING) {
            return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "names of arguments must be strings");
        }
        for (size_t k = 0; k < given; k++) {
            if (str_eq(all[k].name, key->string)) {
                return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "argument '%.*s' given twice",
                                       STR_ARG(key->string));
            }
        }
        all[args->named_len++] = (struct named_value) { key->string, d->entries[i].value };
    }
    return 0;
}

static int eval_spread(struct render *r, struct activation *act, const struct arg_nodes *nodes,
                       struct call_args *args)
{
    struct value v;
    int rc = 0;
    if (nodes->star != NULL) {
        rc = tpl_eval(r, act, nodes->star, &v);
        rc = rc < 0 ? rc : spread_plain(r, &v, args);
    }
    if (rc == 0 && nodes->star_star != NULL) {
        rc = tpl_eval(r, act, nodes->star_star, &v);
        rc = rc < 0 ? rc : spread_named(r, &v, args);
    }
    return rc;
}

int tpl_call_eval_args(struct render *r, struct activation *act, const struct arg_nodes *nodes,
                       struct call_args *ret)
{
    ret->plain = ret->plain_inline;
    ret->plain_len = nodes->plain.len;
    ret->named = NULL;
    ret->named_len = nodes->named_len;
    if (ret->plain_len > CALL_ARGS_INLINE) {
        ret->plain = arena_array(r->arena, ret->plain_len, sizeof *ret->plain);
    }
    int rc = 0;
    for (size_t i = 0; i < ret->plain_len && rc == 0; i++) {
        rc = tpl_eval(r, act, nodes->plain.items[i], &ret->plain[i]);
    }
    if (rc == 0 && ret->named_len > 0) {
        ret->named = arena_array(r->arena, ret->named_len, sizeof *ret->named);
    }
    for (size_t i = 0; i < ret->named_len && rc == 0; i++) {
        ret->named[i].name = nodes->named[i].name;
        rc = tpl_eval(r, act, nodes->named[i].value, &ret->named[i].value);
    }
    if (rc == 0 && (nodes->star != NULL || nodes->star_star != NULL)) {
        rc = eval_spread(r, act, nodes, ret);
    }
    return rc;
}

/* --- binding --- */

static int bind_named(struct render *r, const struct named_value *named,
                      const struct params *params, const char *what, struct value *values)
{
    for (unsigned i = 0; i < params->len; i++) {
        if (!str_eqc(named->name, params->names[i])) {
            continue;
        }
        if (values[i].kind != VALUE_MISSING) {
            return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "'%s': argument '%s' given twice", what,
                                   params->names[i]);
        }
        values[i] = named->value;
        return 0;
    }
    return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "'%s' has no argument '%.*s'", what,
                           STR_ARG(named->name));
}

int tpl_call_bind(struct render *r, const struct call_args *args, const struct params *params,
                  const char *what, struct value *values)
{
    if (args->plain_len > params->len) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "'%s' takes at most %u arguments, not %zu",
                               what, params->len, args->plain_len);
    }
    for (unsigned i = 0; i < params->len; i++) {
        values[i] = i < args->plain_len ? args->plain[i] : (struct value) { .kind = VALUE_MISSING };
    }
    for (size_t i = 0; i < args->named_len; i++) {
        int rc = bind_named(r, &args->named[i], params, what, values);
        if (rc < 0) {
            return rc;
        }
    }
    for (unsigned i = 0; i < params->required; i++) {
        if (values[i].kind == VALUE_MISSING) {
            return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "'%s' needs the argument '%s'", what,
                                   params->names[i]);
        }
    }
    return 0;
}

int tpl_arg_int(struct render *r, const struct value *v, int64_t otherwise, int64_t *ret)
{
    if (v->kind == VALUE_MISSING) {
        *ret = otherwise;
        return 0;
    }
    if (!value_is_integral(v)) {
        return tpl_render_fail_type(r, v, "an integer is needed, not a %s", tpl_value_type(v));
    }
    *ret = value_integer(v);
    return 0;
}

int tpl_arg_bool(struct render *r, const struct value *v, bool otherwise, bool *ret)
{
    *ret = otherwise;
    return v->kind == VALUE_MISSING ? 0 : tpl_value_truth(r, v, ret);
}

int tpl_arg_text(struct render *r, const struct value *v, const char *what, struct str *ret)
{
    if (v->kind != VALUE_STRING) {
        return tpl_render_fail_type(r, v, "%s must be a string, not a %s", what, tpl_value_type(v));
    }
    *ret = v->string;
    return 0;
}

/* --- macros --- */

static const struct value *take_named(const struct call_args *args, bool *used, struct str name)
{
    for (size_t i = 0; i < args->named_len; i++) {
        if (!used[i] && str_eq(args->named[i].name, name)) {
            used[i] = true;
            return &args->named[i].value;
        }
    }
    return NULL;
}

static struct value *param_slot(struct activation *act, const struct macro_node *m, size_t i)
{
    return slot_at(act, m->params.items[i]->name.ref);
}

static void bind_params(const struct macro_node *m, const struct call_args *args, bool *used,
                        struct activation *act, bool *found_caller)
{
    size_t off = args->plain_len < m->params.len ? args->plain_len : m->params.len;
    *found_caller = off == m->params.len && m->explicit_caller;
    for (size_t i = 0; i < m->params.len; i++) {
        struct value *slot = param_slot(act, m, i);
        struct str name = m->params.items[i]->name.name->text;
        const struct value *given = i < off ? &args->plain[i] : take_named(args, used, name);
        *slot = given != NULL ? *given : (struct value) { .kind = VALUE_MISSING };
        *found_caller |= i >= off && str_eqc(name, "caller");
    }
}

/* What is left of the arguments: kwargs and varargs, or errors. */
static int bind_rest(struct render *r, const struct macro_node *m, const struct call_args *args,
                     const bool *used, struct activation *act)
{
    struct dict *kwargs = tpl_dict_new(r->arena);
    for (size_t i = 0; i < args->named_len; i++) {
        if (used[i]) {
            continue;
        }
        if (!m->uses_kwargs) {
            return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "macro '%.*s' has no argument '%.*s'",
                                   STR_ARG(m->name), STR_ARG(args->named[i].name));
        }
        tpl_dict_set_text(r->arena, kwargs, args->named[i].name, &args->named[i].value);
    }
    if (m->uses_kwargs) {
        act->slots[m->kwargs_slot] = value_dict(kwargs);
    }
    if (!m->uses_varargs && args->plain_len > m->params.len) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "macro '%.*s' takes at most %zu arguments",
                               STR_ARG(m->name), m->params.len);
    }
    if (m->uses_varargs) {
        struct list *more = tpl_list_new(r->arena, 0);
        for (size_t i = m->params.len; i < args->plain_len; i++) {
            tpl_list_add(r->arena, more, &args->plain[i]);
        }
        act->slots[m->varargs_slot] = value_tuple(more);
    }
    return 0;
}

static int fill_defaults(struct render *r, const struct macro_node *m, struct activation *act)
{
    size_t without = m->params.len - m->defaults.len;
    for (size_t i = 0; i < m->params.len; i++) {
        struct value *slot = param_slot(act, m, i);
        if (slot->kind != VALUE_MISSING) {
            continue;
        }
        struct value v;
        if (i < without) {
            struct str name = m->params.items[i]->name.name->text;
            v = tpl_undefined_hint(
                r, arena_printf(r->arena, "parameter '%.*s' was not provided", STR_ARG(name)));
        } else {
            int rc = tpl_eval(r, act, m->defaults.items[i - without], &v);
            if (rc < 0) {
                return rc;
            }
        }
        *slot = v;
    }
    return 0;
}

static int run_macro(struct render *r, const struct macro_node *m, const struct call_args *args,
                     struct activation *act)
{
    bool *used = arena_array(r->arena, args->named_len, sizeof *used);
    bool found_caller;
    bind_params(m, args, used, act, &found_caller);
    if (m->uses_caller && !found_caller) {
        const struct value *caller = take_named(args, used, STR("caller"));
        bool given = caller != NULL && caller->kind != VALUE_NONE;
        act->slots[m->caller_slot] = given ? *caller : tpl_undefined_hint(r, "no caller defined");
    }
    int rc = bind_rest(r, m, args, used, act);
    if (rc < 0) {
        return rc;
    }
    tpl_scope_enter(r, act, &m->scope);
    rc = fill_defaults(r, m, act);
    return rc < 0 ? rc : tpl_exec_body(r, act, &m->body);
}

int tpl_macro_call(struct render *r, const struct macro *m, const struct call_args *args,
                   struct value *out)
{
    if (r->calls >= r->set->limits.max_calls) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "calls of macros nest deeper than %u",
                               r->set->limits.max_calls);
    }
    const struct template *template = r->template;
    const struct context *context = r->context;
    struct buf *saved = r->out;
    uint32_t line = r->line;
    struct activation *act = tpl_activation_new(r, m->template, m->node->func, m->up);
    r->calls++;
    r->out = tpl_render_capture(r);
    r->template = m->template;
    r->context = m->context;
    int rc = run_macro(r, m->node, args, act);
    r->context = context;
    r->template = template;
    r->out = saved;
    r->calls--;
    *out = tpl_render_captured(r);
    if (rc == 0) {
        r->line = line;
    }
    tpl_activation_release(r, m->template, m->node->func, act);
    return rc;
}

/* --- everything that can be called --- */

static int call_method(struct render *r, const struct bound *b, const struct call_args *args,
                       struct value *out)
{
    if (b->method->raw != NULL) {
        return b->method->raw(r, &b->self, args, out);
    }
    struct value values[PARAMS_MAX];
    int rc = tpl_call_bind(r, args, &b->method->params, b->method->name, values);
    return rc < 0 ? rc : b->method->run(r, &b->self, values, out);
}

static int call_joiner(struct render *r, struct joiner *j, const struct call_args *args,
                       struct value *out)
{
    static const struct params none = { { NULL }, 0, 0 };
    struct value unused[1];
    int rc = tpl_call_bind(r, args, &none, "joiner", unused);
    *out = j->used ? j->sep : value_text(STR_EMPTY);
    j->used = true;
    return rc;
}

int tpl_call_value(struct render *r, const struct value *callee, const struct call_args *args,
                   struct value *out)
{
    switch ((int)callee->kind) {
    case VALUE_MACRO:
        return tpl_macro_call(r, callee->macro, args, out);
    case VALUE_METHOD:
        return call_method(r, callee->bound, args, out);
    case VALUE_FUNCTION:
        return callee->function->run(r, NULL, args, out);
    case VALUE_JOINER:
        return call_joiner(r, callee->joiner, args, out);
    case VALUE_LOOP:
        return tpl_loop_call(r, callee->loop, args, out);
    default:
        return tpl_render_fail_type(r, callee, "a %s cannot be called", tpl_value_type(callee));
    }
}
