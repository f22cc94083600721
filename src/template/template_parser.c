/* SPDX-License-Identifier: MIT
 *
 * Statements: what stands between "{%" and "%}", and the bodies between tags. Expressions are in
 * template_expr.c. Depth is bounded twice: of the recursion here, and of the tree, since a long
 * chain of operators makes a deep tree without recursion.
 */
#include "template/template_ast_priv.h"

#include <stdio.h>

#include "template/template_render_priv.h"

static int parse_body(struct parser *p, const struct str *ends, size_t ends_len,
                      struct node_list *ret) MUST_USE;

int tpl_compile_fail(struct compile *c, enum template_fault fault, uint32_t line, const char *fmt,
                     ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->set->fault = fault;
    return ERR(c->e, fault == TEMPLATE_FAULT_LIMIT ? ERR_LIMIT : ERR_PARSE, "%s:%u: %s", c->name,
               line, text);
}

struct node *tpl_node_new(struct compile *c, enum node_kind kind, uint32_t line)
{
    struct node *n = ARENA_NEW(c->arena, struct node);
    n->kind = kind;
    n->line = line;
    n->depth = 1;
    return n;
}

void tpl_node_list_add(struct compile *c, struct node_list *l, struct node *n)
{
    if (l->len == l->cap) {
        size_t cap = l->cap == 0 ? 2 : l->cap * 2;
        struct node **more = arena_array(c->arena, cap, sizeof(struct node *));
        if (l->len > 0) {
            memcpy(more, l->items, l->len * sizeof(struct node *));
        }
        l->items = more;
        l->cap = cap;
    }
    l->items[l->len++] = n;
}

int tpl_node_adopt(struct parser *p, struct node *n, const struct node *child)
{
    if (child->depth >= n->depth) {
        n->depth = child->depth + 1;
    }
    if (n->depth > 2 * p->c->set->limits.max_nesting) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_LIMIT, n->line,
                                "more than %u operations inside each other",
                                2 * p->c->set->limits.max_nesting);
    }
    return 0;
}

int tpl_node_adopt_list(struct parser *p, struct node *n, const struct node_list *l)
{
    int r = 0;
    for (size_t i = 0; i < l->len && r == 0; i++) {
        r = tpl_node_adopt(p, n, l->items[i]);
    }
    return r;
}

bool tpl_parser_is_name(const struct parser *p, const char *word)
{
    return p->at->kind == TOKEN_NAME && str_eqc(p->at->text, word);
}

bool tpl_parser_skip_name(struct parser *p, const char *word)
{
    bool is = tpl_parser_is_name(p, word);
    p->at += is;
    return is;
}

bool tpl_parser_skip(struct parser *p, enum token_kind kind)
{
    bool is = p->at->kind == kind;
    p->at += is && kind != TOKEN_EOF;
    return is;
}

static int fail_expected(struct parser *p, const char *what)
{
    const struct token *t = p->at;
    if (t->kind == TOKEN_NAME) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, t->line, "expected '%s', got '%.*s'",
                                what, STR_ARG(t->text));
    }
    return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, t->line, "expected '%s', got '%s'", what,
                            tpl_token_describe(t->kind));
}

int tpl_parser_expect(struct parser *p, enum token_kind kind)
{
    return tpl_parser_skip(p, kind) ? 0 : fail_expected(p, tpl_token_describe(kind));
}

int tpl_parser_expect_name(struct parser *p, const char *word)
{
    return tpl_parser_skip_name(p, word) ? 0 : fail_expected(p, word);
}

int tpl_parser_enter(struct parser *p)
{
    p->depth++;
    if (p->depth > p->c->set->limits.max_nesting) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_LIMIT, p->at->line,
                                "blocks or expressions nest deeper than %u",
                                p->c->set->limits.max_nesting);
    }
    return 0;
}

/* --- targets of assignments --- */

static int mark_target(struct parser *p, struct node *n, bool param)
{
    if (n->kind == NODE_NAME) {
        n->name.store = true;
        n->name.param = param;
        return 0;
    }
    if (n->kind != NODE_TUPLE) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, n->line,
                                "can assign only to names and tuples of names");
    }
    int r = 0;
    for (size_t i = 0; i < n->items.len && r == 0; i++) {
        r = mark_target(p, n->items.items[i], param);
    }
    return r;
}

static int parse_target(struct parser *p, unsigned flags, bool param, struct node **ret)
{
    int r = tpl_parse_tuple(p, flags | TUPLE_SIMPLE, ret);
    return r < 0 ? r : mark_target(p, *ret, param);
}

static int parse_name_target(struct parser *p, bool param, struct node **ret)
{
    static const char *const constants[] = { "true", "false", "none", "True", "False", "None" };
    for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
        if (tpl_parser_is_name(p, constants[i])) {
            return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, p->at->line,
                                    "cannot assign to '%s'", constants[i]);
        }
    }
    struct node *n = tpl_node_new(p->c, NODE_NAME, p->at->line);
    const struct token *t = p->at;
    int r = tpl_parser_expect(p, TOKEN_NAME);
    if (r < 0) {
        return r;
    }
    n->name.name = tpl_name_intern(&p->c->names, t->text);
    n->name.store = true;
    n->name.param = param;
    *ret = n;
    return 0;
}

static int parse_set_target(struct parser *p, struct node **ret)
{
    if (p->at->kind == TOKEN_EOF || p->at[1].kind != TOKEN_DOT) {
        return parse_target(p, 0, false, ret);
    }
    struct node *n = tpl_node_new(p->c, NODE_NSREF, p->at->line);
    const struct token *name = p->at;
    const struct token *attr = p->at + 2;
    int r = tpl_parser_expect(p, TOKEN_NAME);
    p->at += r == 0;
    r = r < 0 ? r : tpl_parser_expect(p, TOKEN_NAME);
    if (r < 0) {
        return r;
    }
    n->nsref.name = tpl_name_intern(&p->c->names, name->text);
    n->nsref.attr = arena_str(p->c->arena, attr->text);
    *ret = n;
    return 0;
}

/* --- statements; each starts behind its keyword --- */

#define ENDS(...) \
    (const struct str[]) { __VA_ARGS__ }, ARRAY_LEN(((const struct str[]) { __VA_ARGS__ }))

/* ":"? "%}" body "{%" and one of the ends, which stays the current token. */
static int parse_block(struct parser *p, const struct str *ends, size_t ends_len,
                       struct node_list *ret)
{
    (void)tpl_parser_skip(p, TOKEN_COLON);
    int r = tpl_parser_expect(p, TOKEN_BLOCK_END);
    r = r < 0 ? r : tpl_parser_enter(p);
    if (r < 0) {
        return r;
    }
    r = parse_body(p, ends, ends_len, ret);
    parser_leave(p);
    if (r == 0 && p->at->kind == TOKEN_EOF) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, p->at->line,
                                "unexpected end of template, '%.*s' is missing",
                                STR_ARG(ends[ends_len - 1]));
    }
    return r;
}

static int parse_if(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *top = tpl_node_new(p->c, NODE_IF, line);
    struct node *n = top;
    for (;;) {
        n->branch = ARENA_NEW(p->c->arena, struct if_node);
        int r = tpl_parse_tuple(p, TUPLE_NO_COND, &n->branch->test);
        r = r < 0 ? r
                  : parse_block(p, ENDS(STR("elif"), STR("else"), STR("endif")), &n->branch->body);
        r = r < 0 ? r : tpl_node_adopt(p, n, n->branch->test);
        r = r < 0 ? r : tpl_node_adopt_list(p, n, &n->branch->body);
        if (r < 0) {
            return r;
        }
        if (n != top) {
            tpl_node_list_add(p->c, &top->branch->elifs, n);
        }
        if (!tpl_parser_is_name(p, "elif")) {
            break;
        }
        p->at++;
        n = tpl_node_new(p->c, NODE_IF, p->at->line);
    }
    bool has_else = tpl_parser_is_name(p, "else");
    p->at++;
    *ret = top;
    if (has_else) {
        int r = parse_block(p, ENDS(STR("endif")), &top->branch->otherwise);
        r = r < 0 ? r : tpl_node_adopt_list(p, top, &top->branch->otherwise);
        if (r < 0) {
            return r;
        }
        p->at++;
    }
    return tpl_node_adopt_list(p, top, &top->branch->elifs);
}

static int parse_for_head(struct parser *p, struct node *n)
{
    struct for_node *f = n->loop;
    int r = parse_target(p, 0, false, &f->target);
    r = r < 0 ? r : tpl_parser_expect_name(p, "in");
    r = r < 0 ? r : tpl_parse_tuple(p, TUPLE_NO_COND, &f->iter);
    r = r < 0 ? r : tpl_node_adopt(p, n, f->iter);
    if (r == 0 && tpl_parser_skip_name(p, "if")) {
        r = tpl_parse_expression(p, true, &f->test);
        r = r < 0 ? r : tpl_node_adopt(p, n, f->test);
    }
    f->recursive = tpl_parser_skip_name(p, "recursive");
    return r;
}

static int parse_for(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_FOR, line);
    n->loop = ARENA_NEW(p->c->arena, struct for_node);
    int r = parse_for_head(p, n);
    r = r < 0 ? r : parse_block(p, ENDS(STR("else"), STR("endfor")), &n->loop->body);
    r = r < 0 ? r : tpl_node_adopt_list(p, n, &n->loop->body);
    if (r < 0) {
        return r;
    }
    bool has_else = tpl_parser_is_name(p, "else");
    p->at++;
    if (has_else) {
        r = parse_block(p, ENDS(STR("endfor")), &n->loop->otherwise);
        r = r < 0 ? r : tpl_node_adopt_list(p, n, &n->loop->otherwise);
        p->at += r == 0;
    }
    *ret = n;
    return r;
}

static int parse_set(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *target = NULL;
    int r = parse_set_target(p, &target);
    if (r < 0) {
        return r;
    }
    if (tpl_parser_skip(p, TOKEN_ASSIGN)) {
        struct node *n = tpl_node_new(p->c, NODE_SET, line);
        n->set.target = target;
        r = tpl_parse_tuple(p, 0, &n->set.value);
        *ret = n;
        return r < 0 ? r : tpl_node_adopt(p, n, n->set.value);
    }
    struct node *n = tpl_node_new(p->c, NODE_SET_BLOCK, line);
    n->capture.target = target;
    r = tpl_parse_filters(p, NULL, false, &n->capture.filter);
    r = r < 0 || n->capture.filter == NULL ? r : tpl_node_adopt(p, n, n->capture.filter);
    r = r < 0 ? r : parse_block(p, ENDS(STR("endset")), &n->capture.body);
    r = r < 0 ? r : tpl_node_adopt_list(p, n, &n->capture.body);
    p->at += r == 0;
    *ret = n;
    return r;
}

static int parse_signature(struct parser *p, struct node *n, struct macro_node *m)
{
    int r = tpl_parser_expect(p, TOKEN_LPAREN);
    while (r == 0 && p->at->kind != TOKEN_RPAREN) {
        struct node *param = NULL;
        r = m->params.len > 0 ? tpl_parser_expect(p, TOKEN_COMMA) : 0;
        r = r < 0 ? r : parse_name_target(p, true, &param);
        if (r < 0) {
            return r;
        }
        for (size_t i = 0; i < m->params.len; i++) {
            if (m->params.items[i]->name.name == param->name.name) {
                return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, param->line,
                                        "parameter '%.*s' given twice",
                                        STR_ARG(param->name.name->text));
            }
        }
        if (tpl_parser_skip(p, TOKEN_ASSIGN)) {
            struct node *value = NULL;
            r = tpl_parse_expression(p, true, &value);
            r = r < 0 ? r : tpl_node_adopt(p, n, value);
            tpl_node_list_add(p->c, &m->defaults, value);
        } else if (m->defaults.len > 0) {
            return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, param->line,
                                    "parameter '%.*s' without default follows one with",
                                    STR_ARG(param->name.name->text));
        }
        tpl_node_list_add(p->c, &m->params, param);
    }
    return r < 0 ? r : tpl_parser_expect(p, TOKEN_RPAREN);
}

static int parse_macro(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_MACRO, line);
    n->macro = ARENA_NEW(p->c->arena, struct macro_node);
    struct node *name = NULL;
    int r = parse_name_target(p, false, &name);
    r = r < 0 ? r : parse_signature(p, n, n->macro);
    r = r < 0 ? r : parse_block(p, ENDS(STR("endmacro")), &n->macro->body);
    r = r < 0 ? r : tpl_node_adopt_list(p, n, &n->macro->body);
    if (r < 0) {
        return r;
    }
    n->macro->name = name->name.name->text;
    n->macro->target_name = name->name.name;
    p->at++;
    *ret = n;
    return 0;
}

static bool names_caller(const struct arg_nodes *args)
{
    for (size_t i = 0; i < args->named_len; i++) {
        if (str_eqc(args->named[i].name, "caller")) {
            return true;
        }
    }
    return false;
}

static int parse_call_block(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_CALL_BLOCK, line);
    struct macro_node *m = n->call_block.body = ARENA_NEW(p->c->arena, struct macro_node);
    int r = p->at->kind == TOKEN_LPAREN ? parse_signature(p, n, m) : 0;
    r = r < 0 ? r : tpl_parse_expression(p, true, &n->call_block.call);
    if (r == 0 && n->call_block.call->kind != NODE_CALL) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, line, "expected a call after 'call'");
    }
    if (r == 0 && names_caller(&n->call_block.call->call.args)) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, line, "argument 'caller' given twice");
    }
    r = r < 0 ? r : tpl_node_adopt(p, n, n->call_block.call);
    r = r < 0 ? r : parse_block(p, ENDS(STR("endcall")), &m->body);
    r = r < 0 ? r : tpl_node_adopt_list(p, n, &m->body);
    p->at += r == 0;
    *ret = n;
    return r;
}

static int parse_filter_block(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_FILTER_BLOCK, line);
    int r = tpl_parse_filters(p, NULL, true, &n->capture.filter);
    r = r < 0 ? r : tpl_node_adopt(p, n, n->capture.filter);
    r = r < 0 ? r : parse_block(p, ENDS(STR("endfilter")), &n->capture.body);
    r = r < 0 ? r : tpl_node_adopt_list(p, n, &n->capture.body);
    p->at += r == 0;
    *ret = n;
    return r;
}

static int parse_with(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_WITH, line);
    int r = 0;
    while (r == 0 && p->at->kind != TOKEN_BLOCK_END) {
        struct node *target = NULL;
        struct node *value = NULL;
        r = n->with.targets.len > 0 ? tpl_parser_expect(p, TOKEN_COMMA) : 0;
        r = r < 0 ? r : parse_target(p, 0, true, &target);
        r = r < 0 ? r : tpl_parser_expect(p, TOKEN_ASSIGN);
        r = r < 0 ? r : tpl_parse_expression(p, true, &value);
        r = r < 0 ? r : tpl_node_adopt(p, n, value);
        tpl_node_list_add(p->c, &n->with.targets, target);
        tpl_node_list_add(p->c, &n->with.values, value);
    }
    r = r < 0 ? r : parse_block(p, ENDS(STR("endwith")), &n->with.body);
    r = r < 0 ? r : tpl_node_adopt_list(p, n, &n->with.body);
    p->at += r == 0;
    *ret = n;
    return r;
}

static bool two_names(const struct parser *p, const char *first, const char *second)
{
    return tpl_parser_is_name(p, first) && p->at[1].kind == TOKEN_NAME &&
           str_eqc(p->at[1].text, second);
}

static int parse_include(struct parser *p, uint32_t line, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_INCLUDE, line);
    int r = tpl_parse_expression(p, true, &n->include.name);
    if (r < 0) {
        return r;
    }
    if (two_names(p, "ignore", "missing")) {
        n->include.ignore_missing = true;
        p->at += 2;
    }
    n->include.with_context = !two_names(p, "without", "context");
    if (!n->include.with_context || two_names(p, "with", "context")) {
        p->at += 2;
    }
    *ret = n;
    return tpl_node_adopt(p, n, n->include.name);
}

/* --- bodies --- */

static const struct {
    const char *tag;
    int (*parse)(struct parser *p, uint32_t line, struct node **ret);
} statements[] = {
    { "if", parse_if },       { "for", parse_for },         { "set", parse_set },
    { "macro", parse_macro }, { "call", parse_call_block }, { "filter", parse_filter_block },
    { "with", parse_with },   { "include", parse_include },
};

static int fail_tag(struct parser *p, const struct token *t)
{
    static const char *const known[] = { "extends", "block", "import", "from",     "autoescape",
                                         "print",   "do",    "break",  "continue", "trans" };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eqc(t->text, known[i])) {
            return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, t->line,
                                    "the tag '%s' of Jinja2 is not supported", known[i]);
        }
    }
    if (p->waiting_len > 0) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, t->line,
                                "unknown tag '%.*s' where '%.*s' was expected", STR_ARG(t->text),
                                STR_ARG(p->waiting[p->waiting_len - 1]));
    }
    return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, t->line, "unknown tag '%.*s'",
                            STR_ARG(t->text));
}

static int parse_statement(struct parser *p, struct node **ret)
{
    const struct token *t = p->at;
    if (t->kind != TOKEN_NAME) {
        return fail_expected(p, "a tag name");
    }
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        if (str_eqc(t->text, statements[i].tag)) {
            p->at++;
            int r = statements[i].parse(p, t->line, ret);
            return r < 0 ? r : tpl_parser_expect(p, TOKEN_BLOCK_END);
        }
    }
    return fail_tag(p, t);
}

static bool at_end_tag(const struct parser *p, const struct str *ends, size_t ends_len)
{
    for (size_t i = 0; i < ends_len; i++) {
        if (p->at->kind == TOKEN_NAME && str_eq(p->at->text, ends[i])) {
            return true;
        }
    }
    return false;
}

static int parse_print(struct parser *p, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_PRINT, p->at->line);
    p->at++;
    int r = tpl_parse_tuple(p, 0, &n->expr);
    r = r < 0 ? r : tpl_node_adopt(p, n, n->expr);
    *ret = n;
    return r < 0 ? r : tpl_parser_expect(p, TOKEN_PRINT_END);
}

static int parse_body(struct parser *p, const struct str *ends, size_t ends_len,
                      struct node_list *ret)
{
    const struct str *waiting = p->waiting;
    size_t waiting_len = p->waiting_len;
    int r = 0;
    while (r == 0 && p->at->kind != TOKEN_EOF) {
        struct node *n = NULL;
        p->waiting = ends;
        p->waiting_len = ends_len;
        if (p->at->kind == TOKEN_DATA) {
            n = tpl_node_new(p->c, NODE_TEXT, p->at->line);
            n->text = p->at->text;
            p->at++;
        } else if (p->at->kind == TOKEN_PRINT_BEGIN) {
            r = parse_print(p, &n);
        } else {
            p->at++; /* "{%": the lexer gives nothing else here */
            if (at_end_tag(p, ends, ends_len)) {
                break;
            }
            r = parse_statement(p, &n);
        }
        if (r == 0) {
            tpl_node_list_add(p->c, ret, n);
        }
    }
    p->waiting = waiting;
    p->waiting_len = waiting_len;
    return r;
}

int template_parse_tokens(struct compile *c, const struct token_list *tokens, struct node_list *ret)
{
    struct parser p = { .c = c, .at = tokens->items };
    return parse_body(&p, NULL, 0, ret);
}
