/* SPDX-License-Identifier: MIT
 *
 * The state of a rendering: failing with a position, counting, captures, activations, variables.
 */
#include "template/template_render_priv.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

struct free_list {
    struct free_list *next;
    const struct template *template;
    struct activation *by_func[]; /* chains of free activations */
};

static enum err_code fault_code(enum template_fault fault)
{
    switch (fault) {
    case TEMPLATE_FAULT_SYNTAX:
        return ERR_PARSE;
    case TEMPLATE_FAULT_MISSING:
        return ERR_INPUT;
    case TEMPLATE_FAULT_UNSAFE:
        return ERR_DENIED;
    case TEMPLATE_FAULT_LIMIT:
        return ERR_LIMIT;
    case TEMPLATE_FAULT_NONE:
    case TEMPLATE_FAULT_UNDEFINED:
    case TEMPLATE_FAULT_VALUE:
        break;
    }
    return ERR_CONFIG;
}

static int fail_text(struct render *r, enum template_fault fault, const char *text)
{
    r->set->fault = fault;
    return ERR(r->e, fault_code(fault), "%s:%u: %s", r->template->name, r->line, text);
}

int tpl_render_fail(struct render *r, enum template_fault fault, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return fail_text(r, fault, text);
}

int tpl_render_fail_type(struct render *r, const struct value *v, const char *fmt, ...)
{
    if (v->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(r, v);
    }
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return fail_text(r, TEMPLATE_FAULT_VALUE, text);
}

int tpl_render_fail_undefined(struct render *r, const struct value *v)
{
    const struct undefined *u = v->undefined;
    if (u->unsafe) {
        return tpl_render_fail(r, TEMPLATE_FAULT_UNSAFE,
                               "attribute '%.*s' of a %s is not available in templates",
                               STR_ARG(u->name), u->owner);
    }
    if (u->hint != NULL) {
        return tpl_render_fail(r, TEMPLATE_FAULT_UNDEFINED, "%s", u->hint);
    }
    if (u->owner == NULL) {
        return tpl_render_fail(r, TEMPLATE_FAULT_UNDEFINED, "'%.*s' is undefined",
                               STR_ARG(u->name));
    }
    if (u->key.kind == VALUE_INT) {
        return tpl_render_fail(r, TEMPLATE_FAULT_UNDEFINED, "a %s has no element %lld", u->owner,
                               (long long)u->key.integer);
    }
    if (u->key.kind != VALUE_MISSING) {
        return tpl_render_fail(r, TEMPLATE_FAULT_UNDEFINED, "a %s has no such element (a %s)",
                               u->owner, tpl_value_type(&u->key));
    }
    return tpl_render_fail(r, TEMPLATE_FAULT_UNDEFINED, "a %s has no attribute '%.*s'", u->owner,
                           STR_ARG(u->name));
}

int tpl_render_fail_output(struct render *r)
{
    return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "the text is longer than %zu bytes",
                           r->set->limits.max_output);
}

int tpl_render_check(struct render *r)
{
    enum { OFTEN = 64 };
    r->check_at = r->steps + OFTEN;
    if (r->steps > r->set->limits.max_steps) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "more than %llu steps",
                               (unsigned long long)r->set->limits.max_steps);
    }
    if (arena_used(r->arena) > r->set->limits.max_memory) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "values need more than %zu bytes",
                               r->set->limits.max_memory);
    }
    return 0;
}

int tpl_render_too_deep(struct render *r)
{
    return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "values or calls nest too deep");
}

int tpl_render_check_size(struct render *r, uint64_t count, size_t size)
{
    size_t max = size == 1 ? r->set->limits.max_output : r->set->limits.max_memory / size;
    if (count > max) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "a value of more than %zu elements", max);
    }
    r->steps += count / 16; /* copying is work too */
    return arena_used(r->arena) + count * size > r->set->limits.max_memory
               ? tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "values need more than %zu bytes",
                                 r->set->limits.max_memory)
               : 0;
}

/* --- captures --- */

struct buf *tpl_render_capture(struct render *r)
{
    struct template_set *set = r->set;
    if (set->captures_used == set->captures_len) {
        set->captures = xrealloc(set->captures, (set->captures_len + 1) * sizeof(struct buf *));
        struct buf *b = xcalloc(1, sizeof *b);
        buf_init(b, set->limits.max_output);
        set->captures[set->captures_len++] = b;
    }
    struct buf *b = set->captures[set->captures_used++];
    buf_reset(b);
    return b;
}

struct value tpl_render_captured(struct render *r)
{
    struct str s = buf_str(r->set->captures[r->set->captures_used - 1]);
    r->steps += s.len / 64;
    struct value v = value_text(arena_str(r->arena, s));
    tpl_render_drop(r);
    return v;
}

void tpl_render_drop(struct render *r)
{
    r->set->captures_used--;
}

/* --- activations --- */

static struct free_list *free_list_of(struct render *r, const struct template *t)
{
    for (struct free_list *l = r->free_lists; l != NULL; l = l->next) {
        if (l->template == t) {
            return l;
        }
    }
    struct free_list *l = arena_alloc(r->arena, sizeof *l + t->funcs * sizeof(struct activation *));
    l->template = t;
    l->next = r->free_lists;
    r->free_lists = l;
    return l;
}

struct activation *tpl_activation_new(struct render *r, const struct template *t,
                                      const struct func *f, struct activation *up)
{
    struct free_list *l = f->captured ? NULL : free_list_of(r, t);
    struct activation *act = l == NULL ? NULL : l->by_func[f->id];
    if (act != NULL) {
        l->by_func[f->id] = act->next_free;
        memset(act->slots, 0, f->slots * sizeof act->slots[0]);
    } else {
        act = arena_alloc(r->arena, sizeof *act + f->slots * sizeof act->slots[0]);
    }
    r->steps += f->slots / 16;
    act->up = up;
    return act;
}

void tpl_activation_release(struct render *r, const struct template *t, const struct func *f,
                            struct activation *act)
{
    if (!f->captured) { /* else a macro made inside may still look at it */
        struct free_list *l = free_list_of(r, t);
        act->next_free = l->by_func[f->id];
        l->by_func[f->id] = act;
    }
}

/* --- variables --- */

struct template_vars *template_vars_new(const struct json *object)
{
    struct template_vars *vars = xcalloc(1, sizeof *vars);
    vars->arena = arena_new();
    vars->object = object;
    if (!json_is(object, JSON_OBJECT) || object->object.len == 0) {
        vars->object = NULL;
        return vars;
    }
    size_t len = object->object.len;
    vars->slots = 4;
    while (vars->slots < len * 2) {
        vars->slots *= 2;
    }
    vars->index = arena_array(vars->arena, vars->slots, sizeof *vars->index);
    vars->values = arena_array(vars->arena, len, sizeof *vars->values);
    for (size_t i = 0; i < len; i++) {
        size_t at = (size_t)tpl_value_hash_text(object->object.members[i].key) & (vars->slots - 1);
        while (vars->index[at] != 0) {
            at = (at + 1) & (vars->slots - 1);
        }
        vars->index[at] = (uint32_t)i + 1;
    }
    return vars;
}

struct template_vars *template_vars_free(struct template_vars *vars)
{
    if (vars != NULL) {
        (void)arena_free(vars->arena);
        free(vars);
    }
    return NULL;
}

static struct value vars_find(struct template_vars *vars, const struct name *name)
{
    if (vars == NULL || vars->object == NULL) {
        return (struct value) { .kind = VALUE_MISSING };
    }
    for (size_t at = (size_t)name->hash & (vars->slots - 1); vars->index[at] != 0;
         at = (at + 1) & (vars->slots - 1)) {
        size_t i = vars->index[at] - 1;
        const struct json_member *m = &vars->object->object.members[i];
        if (!str_eq(m->key, name->text)) {
            continue;
        }
        if (vars->values[i].kind == VALUE_MISSING) {
            vars->values[i] = tpl_value_from_json(vars->arena, m->value, 0);
        }
        return vars->values[i];
    }
    return (struct value) { .kind = VALUE_MISSING };
}

struct value tpl_context_find(const struct context *ctx, const struct name *name)
{
    for (; ctx != NULL; ctx = ctx->up) {
        for (size_t i = 0; i < ctx->len; i++) {
            if (ctx->values[i].kind != VALUE_MISSING && ctx->locals[i].name->hash == name->hash &&
                str_eq(ctx->locals[i].name->text, name->text)) {
                return ctx->values[i];
            }
        }
        struct value v = vars_find(ctx->vars, name);
        if (v.kind != VALUE_MISSING) {
            return v;
        }
    }
    const struct function *f = tpl_function_find(name->text);
    return f == NULL ? (struct value) { .kind = VALUE_MISSING }
                     : (struct value) { .kind = VALUE_FUNCTION, .function = f };
}
