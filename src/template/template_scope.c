/* SPDX-License-Identifier: MIT
 *
 * Gives every name its slot. For each frame, first collect what it reads and writes (the collect_*
 * functions; FrameSymbolVisitor in Jinja2), then walk its code and look the names up (the resolve_*
 * functions; CodeGenerator in Jinja2). Also refuses unknown filters and tests, which is an error
 * when compiling unless a condition guards them.
 */
#include "template/template_ast_priv.h"

#include "template/template_render_priv.h"
#include "template/template_symbols_priv.h"

/* Copied lists of visible variables for includes; who writes thousands of both reaches it. */
enum { LOCALS_TOTAL = 1000000 };

struct frame {
    struct compile *c;
    struct arena *scratch;
    struct symbols *symbols;
    struct func *func;
    bool soft;   /* under a condition: unknown filters wait until reached */
    bool in_for; /* assignments to `loop` are checked already */
    size_t *locals_total;
};

static int resolve_body(struct frame *f, struct node_list *body) MUST_USE;
static int resolve_expr(void *self, struct node *n);
static int collect(void *self, struct node *n);

/* --- walking the tree --- */

static int each(struct node_list *l, node_visit_fn *visit, void *self)
{
    int r = 0;
    for (size_t i = 0; i < l->len && r == 0; i++) {
        r = visit(self, l->items[i]);
    }
    return r;
}

static int one(struct node *n, node_visit_fn *visit, void *self)
{
    return n == NULL ? 0 : visit(self, n);
}

int tpl_arg_nodes_each(struct arg_nodes *args, node_visit_fn *visit, void *self)
{
    int r = each(&args->plain, visit, self);
    for (size_t i = 0; i < args->named_len && r == 0; i++) {
        r = visit(self, args->named[i].value);
    }
    r = r < 0 ? r : one(args->star, visit, self);
    return r < 0 ? r : one(args->star_star, visit, self);
}

static int each_expr_child(struct node *n, node_visit_fn *visit, void *self)
{
    int r = 0;
    switch ((int)n->kind) {
    case NODE_LIST:
    case NODE_TUPLE:
    case NODE_DICT:
    case NODE_CONCAT:
        return each(&n->items, visit, self);
    case NODE_BINARY:
    case NODE_AND:
    case NODE_OR:
        r = visit(self, n->binary.left);
        return r < 0 ? r : visit(self, n->binary.right);
    case NODE_COMPARE:
        r = visit(self, n->compare.first);
        for (size_t i = 0; i < n->compare.len && r == 0; i++) {
            r = visit(self, n->compare.ops[i].expr);
        }
        return r;
    case NODE_COND:
        r = visit(self, n->cond.test);
        r = r < 0 ? r : visit(self, n->cond.then);
        return r < 0 ? r : one(n->cond.otherwise, visit, self);
    case NODE_ATTRIBUTE:
        return visit(self, n->attribute.object);
    case NODE_ITEM:
        r = visit(self, n->item.object);
        return r < 0 ? r : visit(self, n->item.key);
    case NODE_SLICE:
        r = one(n->slice.start, visit, self);
        r = r < 0 ? r : one(n->slice.stop, visit, self);
        return r < 0 ? r : one(n->slice.step, visit, self);
    case NODE_CALL:
        r = visit(self, n->call.callee);
        return r < 0 ? r : tpl_arg_nodes_each(&n->call.args, visit, self);
    case NODE_FILTER:
    case NODE_TEST:
        r = one(n->apply.subject, visit, self);
        return r < 0 ? r : tpl_arg_nodes_each(&n->apply.args, visit, self);
    case NODE_NEGATIVE:
    case NODE_POSITIVE:
    case NODE_NOT:
    case NODE_PRINT:
        return visit(self, n->expr);
    default:
        return 0;
    }
}

static int each_macro_child(struct macro_node *m, node_visit_fn *visit, void *self)
{
    int r = each(&m->params, visit, self);
    r = r < 0 ? r : each(&m->defaults, visit, self);
    return r < 0 ? r : each(&m->body, visit, self);
}

static int each_for_child(struct for_node *f, node_visit_fn *visit, void *self)
{
    int r = visit(self, f->target);
    r = r < 0 ? r : visit(self, f->iter);
    r = r < 0 ? r : each(&f->body, visit, self);
    r = r < 0 ? r : each(&f->otherwise, visit, self);
    return r < 0 ? r : one(f->test, visit, self);
}

int tpl_node_each_child(struct node *n, node_visit_fn *visit, void *self)
{
    int r;
    switch ((int)n->kind) {
    case NODE_IF:
        r = visit(self, n->branch->test);
        r = r < 0 ? r : each(&n->branch->body, visit, self);
        r = r < 0 ? r : each(&n->branch->elifs, visit, self);
        return r < 0 ? r : each(&n->branch->otherwise, visit, self);
    case NODE_FOR:
        return each_for_child(n->loop, visit, self);
    case NODE_SET:
        r = visit(self, n->set.target);
        return r < 0 ? r : visit(self, n->set.value);
    case NODE_SET_BLOCK:
    case NODE_FILTER_BLOCK:
        r = one(n->capture.target, visit, self);
        r = r < 0 ? r : one(n->capture.filter, visit, self);
        return r < 0 ? r : each(&n->capture.body, visit, self);
    case NODE_MACRO:
        return each_macro_child(n->macro, visit, self);
    case NODE_CALL_BLOCK:
        r = visit(self, n->call_block.call);
        return r < 0 ? r : each_macro_child(n->call_block.body, visit, self);
    case NODE_WITH:
        r = each(&n->with.targets, visit, self);
        r = r < 0 ? r : each(&n->with.values, visit, self);
        return r < 0 ? r : each(&n->with.body, visit, self);
    case NODE_INCLUDE:
        return visit(self, n->include.name);
    default:
        return each_expr_child(n, visit, self);
    }
}

/* Is the name read in a body without being assigned before? */
struct reading {
    struct str name;
    bool read, assigned;
};

static int look_for_reading(void *self, struct node *n)
{
    struct reading *s = self;
    if (n->kind == NODE_NAME && str_eq(n->name.name->text, s->name)) {
        s->assigned |= n->name.store;
        s->read |= !n->name.store && !s->assigned;
    }
    return s->read || s->assigned ? 0 : tpl_node_each_child(n, look_for_reading, self);
}

static bool reads(struct node_list *body, const char *name)
{
    struct reading s = { .name = str_of(name) };
    (void)each(body, look_for_reading, &s);
    return s.read;
}

static int refuse_loop_target(void *self, struct node *n)
{
    struct frame *f = self;
    if (n->kind == NODE_NAME && n->name.store && !n->name.param &&
        str_eqc(n->name.name->text, "loop")) {
        return tpl_compile_fail(f->c, TEMPLATE_FAULT_SYNTAX, n->line,
                                "cannot assign to 'loop' inside of a for loop");
    }
    return tpl_node_each_child(n, refuse_loop_target, self);
}

/* --- collecting the names of a frame --- */

static int collect_list(struct symbols *s, struct node_list *l)
{
    return each(l, collect, s);
}

static int collect_if(struct symbols *s, struct node *n)
{
    struct symbols *layers[SYMBOLS_BRANCHES];
    struct node_list *lists[SYMBOLS_BRANCHES] = { &n->branch->body, &n->branch->elifs,
                                                  &n->branch->otherwise };
    int r = collect(s, n->branch->test);
    for (size_t i = 0; i < SYMBOLS_BRANCHES && r == 0; i++) {
        layers[i] = tpl_symbols_layer(s);
        r = collect_list(layers[i], lists[i]);
    }
    if (r == 0) {
        tpl_symbols_merge(s, layers);
    }
    return r;
}

static int collect(void *self, struct node *n)
{
    struct symbols *s = self;
    int r;
    switch ((int)n->kind) {
    case NODE_NAME:
        if (n->name.param) {
            (void)tpl_symbols_param(s, n->name.name);
        } else if (n->name.store) {
            tpl_symbols_write(s, n->name.name);
        } else {
            tpl_symbols_read(s, n->name.name);
        }
        return 0;
    case NODE_NSREF:
        tpl_symbols_read(s, n->nsref.name);
        return 0;
    case NODE_IF:
        return collect_if(s, n);
    case NODE_SET:
        r = collect(s, n->set.value);
        return r < 0 ? r : collect(s, n->set.target);
    case NODE_MACRO:
        tpl_symbols_write(s, n->macro->target_name);
        return 0;
    case NODE_FOR: /* the rest belongs to the frame of the loop */
        return collect(s, n->loop->iter);
    case NODE_CALL_BLOCK:
        return collect(s, n->call_block.call);
    case NODE_FILTER_BLOCK:
        return collect(s, n->capture.filter);
    case NODE_SET_BLOCK:
        return collect(s, n->capture.target);
    case NODE_WITH:
        return collect_list(s, &n->with.values);
    default:
        return tpl_node_each_child(n, collect, s);
    }
}

static int collect_as_param(void *self, struct node *n)
{
    if (n->kind == NODE_NAME) {
        (void)tpl_symbols_param(self, n->name.name);
        return 0;
    }
    return tpl_node_each_child(n, collect_as_param, self);
}

/* --- resolving the code of a frame --- */

static struct frame inner_frame(const struct frame *f, struct func *func)
{
    struct frame inner = *f;
    inner.func = func;
    inner.soft = false;
    inner.symbols = tpl_symbols_new(f->scratch, f->symbols, func);
    return inner;
}

static struct func *func_new(struct compile *c, struct func *up)
{
    struct func *func = ARENA_NEW(c->arena, struct func);
    *func = (struct func) { .up = up, .id = c->funcs++ };
    if (up != NULL) {
        up->captured = true;
    }
    return func;
}

static struct slot_ref ref_to(const struct frame *f, const struct func *owner, uint32_t slot)
{
    struct slot_ref ref = { .slot = slot };
    for (const struct func *at = f->func; at != owner && at != NULL; at = at->up) {
        ref.hops++;
    }
    return ref;
}

static struct slot_ref ref_of(const struct frame *f, const struct name *name)
{
    const struct symbols *home;
    const struct symbol *sym = tpl_symbols_find(f->symbols, name, &home);
    if (sym == NULL) {
        /* Only in the filter of a set block, which nothing collects: read it on entry. */
        tpl_symbols_read(f->symbols, name);
        sym = tpl_symbols_find(f->symbols, name, &home);
    }
    return ref_to(f, home->func, sym->slot);
}

/* What entering the frame does; after its code is resolved. */
static void close_scope(const struct frame *f, struct scope *ret)
{
    const struct symbols *s = f->symbols;
    ret->loads = arena_array(f->c->arena, s->len, sizeof *ret->loads);
    ret->len = 0;
    for (size_t i = 0; i < s->len; i++) {
        const struct symbol *sym = &s->items[i];
        if (!sym->has_ref || sym->load == SYMBOL_PARAM) {
            continue;
        }
        struct scope_load *load = &ret->loads[ret->len++];
        load->slot = sym->slot;
        load->name = sym->name;
        load->action = sym->load == SYMBOL_RESOLVE ? SCOPE_RESOLVE
                       : sym->load == SYMBOL_ALIAS ? SCOPE_ALIAS
                                                   : SCOPE_EMPTY;
        if (sym->load == SYMBOL_ALIAS) {
            load->from = ref_to(f, sym->alias->func, sym->alias_slot);
        }
    }
}

static int resolve_apply(struct frame *f, struct node *n)
{
    bool is_filter = n->kind == NODE_FILTER;
    bool known = is_filter ? n->apply.filter != NULL : n->apply.test != NULL;
    if (!known && !f->soft) {
        return tpl_compile_fail(f->c, TEMPLATE_FAULT_SYNTAX, n->line, "there is no %s named '%.*s'",
                                is_filter ? "filter" : "test", STR_ARG(n->apply.name));
    }
    return tpl_node_each_child(n, resolve_expr, f);
}

static int resolve_expr(void *self, struct node *n)
{
    struct frame *f = self;
    switch ((int)n->kind) {
    case NODE_NAME:
        n->name.ref = ref_of(f, n->name.name);
        return 0;
    case NODE_NSREF:
        n->nsref.ref = ref_of(f, n->nsref.name);
        return 0;
    case NODE_FILTER:
    case NODE_TEST:
        return resolve_apply(f, n);
    case NODE_COND: {
        struct frame soft = *f;
        soft.soft = true;
        return tpl_node_each_child(n, resolve_expr, &soft);
    }
    default:
        return tpl_node_each_child(n, resolve_expr, f);
    }
}

static int resolve_if(struct frame *f, struct node *n)
{
    struct frame soft = *f;
    soft.soft = true;
    int r = resolve_expr(&soft, n->branch->test);
    r = r < 0 ? r : resolve_body(&soft, &n->branch->body);
    r = r < 0 ? r : resolve_body(&soft, &n->branch->elifs);
    return r < 0 ? r : resolve_body(&soft, &n->branch->otherwise);
}

static struct node *clone_target(struct compile *c, const struct node *n)
{
    struct node *copy = tpl_node_new(c, n->kind, n->line);
    *copy = *n;
    if (n->kind == NODE_TUPLE) {
        copy->items = (struct node_list) { 0 };
        for (size_t i = 0; i < n->items.len; i++) {
            tpl_node_list_add(c, &copy->items, clone_target(c, n->items.items[i]));
        }
    }
    return copy;
}

/* The `if` of a loop runs as a generator of its own. */
static int resolve_loop_test(struct frame *f, struct for_node *loop)
{
    loop->test_func = func_new(f->c, f->func);
    loop->test_target = clone_target(f->c, loop->target);
    struct frame test = inner_frame(f, loop->test_func);
    int r = collect_as_param(test.symbols, loop->test_target);
    r = r < 0 ? r : collect(test.symbols, loop->test);
    r = r < 0 ? r : resolve_expr(&test, loop->test_target);
    r = r < 0 ? r : resolve_expr(&test, loop->test);
    close_scope(&test, &loop->test_scope);
    return r;
}

static int resolve_for(struct frame *f, struct node *n)
{
    struct for_node *loop = n->loop;
    int r = f->in_for ? 0 : tpl_node_each_child(n, refuse_loop_target, f);
    r = r < 0 ? r : resolve_expr(f, loop->iter);
    r = r < 0 || loop->test == NULL ? r : resolve_loop_test(f, loop);
    if (r < 0) {
        return r;
    }
    loop->func = loop->recursive ? func_new(f->c, f->func) : NULL;
    loop->uses_loop = loop->recursive || reads(&loop->body, "loop");
    struct frame body = inner_frame(f, loop->recursive ? loop->func : f->func);
    struct frame otherwise = inner_frame(f, body.func);
    body.in_for = true;
    otherwise.in_for = true;
    if (loop->uses_loop) {
        loop->loop_slot =
            tpl_symbols_param(body.symbols, tpl_name_intern(&f->c->names, STR("loop")));
    }
    r = collect_as_param(body.symbols, loop->target);
    r = r < 0 ? r : collect_list(body.symbols, &loop->body);
    r = r < 0 ? r : collect_list(otherwise.symbols, &loop->otherwise);
    r = r < 0 ? r : resolve_expr(&body, loop->target);
    r = r < 0 ? r : resolve_body(&body, &loop->body);
    r = r < 0 ? r : resolve_body(&otherwise, &loop->otherwise);
    close_scope(&body, &loop->scope);
    close_scope(&otherwise, &loop->else_scope);
    return r;
}

static bool has_param(const struct macro_node *m, const char *name, size_t *ret_index)
{
    for (size_t i = 0; i < m->params.len; i++) {
        if (str_eqc(m->params.items[i]->name.name->text, name)) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

/* Declares caller, kwargs and varargs where the body uses them. */
static int declare_specials(struct frame *f, struct macro_node *m, uint32_t line)
{
    size_t i = 0;
    m->explicit_caller = has_param(m, "caller", &i);
    m->uses_caller = reads(&m->body, "caller");
    if (m->uses_caller && m->explicit_caller && i < m->params.len - m->defaults.len) {
        return tpl_compile_fail(f->c, TEMPLATE_FAULT_SYNTAX, line,
                                "the parameter 'caller' must have a default or be left out");
    }
    struct name_table *names = &f->c->names;
    if (m->uses_caller && !m->explicit_caller) {
        m->caller_slot = tpl_symbols_param(f->symbols, tpl_name_intern(names, STR("caller")));
    }
    m->uses_kwargs = !has_param(m, "kwargs", &i) && reads(&m->body, "kwargs");
    if (m->uses_kwargs) {
        m->kwargs_slot = tpl_symbols_param(f->symbols, tpl_name_intern(names, STR("kwargs")));
    }
    m->uses_varargs = !has_param(m, "varargs", &i) && reads(&m->body, "varargs");
    if (m->uses_varargs) {
        m->varargs_slot = tpl_symbols_param(f->symbols, tpl_name_intern(names, STR("varargs")));
    }
    return 0;
}

static int resolve_macro(struct frame *f, struct macro_node *m, uint32_t line)
{
    m->func = func_new(f->c, f->func);
    struct frame inner = inner_frame(f, m->func);
    int r = collect_list(inner.symbols, &m->params);
    r = r < 0 ? r : collect_list(inner.symbols, &m->defaults);
    r = r < 0 ? r : collect_list(inner.symbols, &m->body);
    r = r < 0 ? r : declare_specials(&inner, m, line);
    r = r < 0 ? r : each(&m->params, resolve_expr, &inner);
    r = r < 0 ? r : each(&m->defaults, resolve_expr, &inner);
    r = r < 0 ? r : resolve_body(&inner, &m->body);
    close_scope(&inner, &m->scope);
    return r;
}

static int resolve_capture(struct frame *f, struct node *n)
{
    struct frame inner = inner_frame(f, f->func);
    bool is_filter = n->kind == NODE_FILTER_BLOCK;
    int r = collect_list(inner.symbols, &n->capture.body);
    r = r < 0 || !is_filter ? r : collect(inner.symbols, n->capture.filter);
    r = r < 0 ? r : resolve_body(&inner, &n->capture.body);
    r = r < 0 ? r : one(n->capture.filter, resolve_expr, &inner);
    r = r < 0 ? r : one(n->capture.target, resolve_expr, f);
    close_scope(&inner, &n->capture.scope);
    return r;
}

static int resolve_with(struct frame *f, struct node *n)
{
    struct frame inner = inner_frame(f, f->func);
    int r = collect_list(inner.symbols, &n->with.targets);
    r = r < 0 ? r : collect_list(inner.symbols, &n->with.body);
    r = r < 0 ? r : each(&n->with.targets, resolve_expr, &inner);
    r = r < 0 ? r : each(&n->with.values, resolve_expr, f);
    r = r < 0 ? r : resolve_body(&inner, &n->with.body);
    close_scope(&inner, &n->with.scope);
    return r;
}

/* All variables assigned in this frame and around it: what an included template also sees. */
static int resolve_include(struct frame *f, struct node *n)
{
    size_t max = 0;
    for (const struct symbols *s = f->symbols; s != NULL; s = s->parent) {
        max += s->len;
    }
    *f->locals_total += max;
    if (*f->locals_total > LOCALS_TOTAL) {
        return tpl_compile_fail(f->c, TEMPLATE_FAULT_LIMIT, n->line,
                                "too many includes and variables in one template");
    }
    n->include.locals = arena_array(f->c->arena, max, sizeof *n->include.locals);
    for (const struct symbols *s = f->symbols; s != NULL; s = s->parent) {
        for (size_t i = 0; i < s->len; i++) {
            if (s->items[i].store) {
                n->include.locals[n->include.locals_len++] =
                    (struct local) { .name = s->items[i].name, .ref = ref_of(f, s->items[i].name) };
            }
        }
    }
    return resolve_expr(f, n->include.name);
}

static int resolve_statement(void *self, struct node *n)
{
    struct frame *f = self;
    int r;
    switch ((int)n->kind) {
    case NODE_IF:
        return resolve_if(f, n);
    case NODE_FOR:
        return resolve_for(f, n);
    case NODE_MACRO:
        n->macro->target = ref_of(f, n->macro->target_name);
        return resolve_macro(f, n->macro, n->line);
    case NODE_CALL_BLOCK:
        r = resolve_macro(f, n->call_block.body, n->line);
        return r < 0 ? r : resolve_expr(f, n->call_block.call);
    case NODE_SET_BLOCK:
    case NODE_FILTER_BLOCK:
        return resolve_capture(f, n);
    case NODE_WITH:
        return resolve_with(f, n);
    case NODE_INCLUDE:
        return resolve_include(f, n);
    default:
        return tpl_node_each_child(n, resolve_expr, f);
    }
}

static int resolve_body(struct frame *f, struct node_list *body)
{
    return each(body, resolve_statement, f);
}

int template_resolve(struct compile *c, struct template *t)
{
    struct arena *scratch = arena_new();
    size_t locals_total = 0;
    struct frame f = { .c = c, .scratch = scratch, .locals_total = &locals_total };
    f.func = func_new(c, NULL);
    f.symbols = tpl_symbols_new(scratch, NULL, f.func);
    int r = collect_list(f.symbols, &t->body);
    r = r < 0 ? r : resolve_body(&f, &t->body);
    close_scope(&f, &t->scope);
    t->func = f.func;
    t->funcs = c->funcs;
    (void)arena_free(scratch);
    return r;
}
