/* SPDX-License-Identifier: MIT
 *
 * Expressions, by recursive descent with Jinja2's precedence: inline if, or, and, not, comparison
 * (with in), + -, ~, * / // %, **, unary, postfix, filters and tests.
 */
#include "template/template_ast_priv.h"

#include "template/template_render_priv.h"

static int parse_unary(struct parser *p, bool with_filter, struct node **ret) MUST_USE;
static int parse_postfix(struct parser *p, struct node *n, struct node **ret) MUST_USE;

static int fail_token(struct parser *p, const char *what)
{
    const struct token *t = p->at;
    if (t->kind == TOKEN_NAME) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, t->line, "%s, got '%.*s'", what,
                                STR_ARG(t->text));
    }
    return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, t->line, "%s, got '%s'", what,
                            tpl_token_describe(t->kind));
}

/* --- the ends of the grammar --- */

static int parse_list(struct parser *p, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_LIST, p->at->line);
    p->at++;
    while (p->at->kind != TOKEN_RBRACKET) {
        int r = n->items.len > 0 ? tpl_parser_expect(p, TOKEN_COMMA) : 0;
        if (r == 0 && p->at->kind == TOKEN_RBRACKET) {
            break;
        }
        struct node *item = NULL;
        r = r < 0 ? r : tpl_parse_expression(p, true, &item);
        r = r < 0 ? r : tpl_node_adopt(p, n, item);
        if (r < 0) {
            return r;
        }
        tpl_node_list_add(p->c, &n->items, item);
    }
    *ret = n;
    return tpl_parser_expect(p, TOKEN_RBRACKET);
}

static int parse_dict(struct parser *p, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_DICT, p->at->line);
    p->at++;
    while (p->at->kind != TOKEN_RBRACE) {
        int r = n->items.len > 0 ? tpl_parser_expect(p, TOKEN_COMMA) : 0;
        if (r == 0 && p->at->kind == TOKEN_RBRACE) {
            break;
        }
        struct node *key = NULL;
        struct node *value = NULL;
        r = r < 0 ? r : tpl_parse_expression(p, true, &key);
        r = r < 0 ? r : tpl_parser_expect(p, TOKEN_COLON);
        r = r < 0 ? r : tpl_parse_expression(p, true, &value);
        r = r < 0 ? r : tpl_node_adopt(p, n, key);
        r = r < 0 ? r : tpl_node_adopt(p, n, value);
        if (r < 0) {
            return r;
        }
        tpl_node_list_add(p->c, &n->items, key);
        tpl_node_list_add(p->c, &n->items, value);
    }
    *ret = n;
    return tpl_parser_expect(p, TOKEN_RBRACE);
}

static struct node *const_node(struct parser *p, struct value v)
{
    struct node *n = tpl_node_new(p->c, NODE_CONST, p->at->line);
    n->constant = v;
    p->at++;
    return n;
}

static struct node *parse_name(struct parser *p)
{
    struct str text = p->at->text;
    if (str_eqc(text, "true") || str_eqc(text, "True")) {
        return const_node(p, value_bool(true));
    }
    if (str_eqc(text, "false") || str_eqc(text, "False")) {
        return const_node(p, value_bool(false));
    }
    if (str_eqc(text, "none") || str_eqc(text, "None")) {
        return const_node(p, VALUE_OF_NONE);
    }
    struct node *n = tpl_node_new(p->c, NODE_NAME, p->at->line);
    n->name.name = tpl_name_intern(&p->c->names, text);
    p->at++;
    return n;
}

/* Adjacent string literals are one. */
static int parse_string(struct parser *p, struct node **ret)
{
    struct str text = p->at->text;
    *ret = const_node(p, value_text(text));
    if (p->at->kind != TOKEN_STRING) {
        return 0;
    }
    CLEANUP(buf) struct buf b = BUF_INIT(p->c->set->limits.max_source);
    int r = buf_append(&b, text, p->c->e);
    while (r == 0 && p->at->kind == TOKEN_STRING) {
        r = buf_append(&b, p->at->text, p->c->e);
        p->at++;
    }
    (*ret)->constant = value_text(arena_str(p->c->arena, buf_str(&b)));
    return r;
}

static int parse_primary(struct parser *p, struct node **ret)
{
    const struct token *t = p->at;
    switch ((int)t->kind) {
    case TOKEN_NAME:
        *ret = parse_name(p);
        return 0;
    case TOKEN_STRING:
        return parse_string(p, ret);
    case TOKEN_INTEGER:
        *ret = const_node(p, value_int(t->integer));
        return 0;
    case TOKEN_FLOAT:
        *ret = const_node(p, value_float(t->real));
        return 0;
    case TOKEN_LPAREN: {
        p->at++;
        int r = tpl_parse_tuple(p, TUPLE_PARENS, ret);
        return r < 0 ? r : tpl_parser_expect(p, TOKEN_RPAREN);
    }
    case TOKEN_LBRACKET:
        return parse_list(p, ret);
    case TOKEN_LBRACE:
        return parse_dict(p, ret);
    default:
        return fail_token(p, "expected an expression");
    }
}

static bool is_tuple_end(const struct parser *p)
{
    return p->at->kind == TOKEN_PRINT_END || p->at->kind == TOKEN_BLOCK_END ||
           p->at->kind == TOKEN_RPAREN;
}

int tpl_parse_tuple(struct parser *p, unsigned flags, struct node **ret)
{
    struct node *tuple = tpl_node_new(p->c, NODE_TUPLE, p->at->line);
    bool is_tuple = false;
    for (;;) {
        int r = tuple->items.len > 0 ? tpl_parser_expect(p, TOKEN_COMMA) : 0;
        if (r < 0) {
            return r;
        }
        if (is_tuple_end(p)) {
            break;
        }
        struct node *item = NULL;
        r = (flags & TUPLE_SIMPLE) ? parse_primary(p, &item)
                                   : tpl_parse_expression(p, !(flags & TUPLE_NO_COND), &item);
        r = r < 0 ? r : tpl_node_adopt(p, tuple, item);
        if (r < 0) {
            return r;
        }
        tpl_node_list_add(p->c, &tuple->items, item);
        if (p->at->kind != TOKEN_COMMA) {
            break;
        }
        is_tuple = true;
    }
    if (!is_tuple && tuple->items.len > 0) {
        *ret = tuple->items.items[0];
        return 0;
    }
    if (!is_tuple && !(flags & TUPLE_PARENS)) {
        return fail_token(p, "expected an expression");
    }
    *ret = tuple;
    return 0;
}

/* --- calls, subscripts, filters, tests --- */

static bool has_keyword(const struct arg_nodes *args, struct str name)
{
    for (size_t i = 0; i < args->named_len; i++) {
        if (str_eq(args->named[i].name, name)) {
            return true;
        }
    }
    return false;
}

static int add_keyword(struct parser *p, struct arg_nodes *args, struct node **ret)
{
    struct str name = p->at->text;
    uint32_t line = p->at->line;
    p->at += 2;
    int r = tpl_parse_expression(p, true, ret);
    if (r < 0) {
        return r;
    }
    if (has_keyword(args, name)) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, line, "argument '%.*s' given twice",
                                STR_ARG(name));
    }
    if ((args->named_len & (args->named_len - 1)) == 0) { /* grows at powers of two */
        size_t cap = args->named_len == 0 ? 1 : args->named_len * 2;
        struct keyword *more = arena_array(p->c->arena, cap, sizeof *more);
        if (args->named_len > 0) {
            memcpy(more, args->named, args->named_len * sizeof *more);
        }
        args->named = more;
    }
    args->named[args->named_len++] = (struct keyword) { arena_str(p->c->arena, name), *ret };
    return 0;
}

static int parse_arg(struct parser *p, struct arg_nodes *args, struct node **ret)
{
    bool named = p->at->kind == TOKEN_NAME && p->at[1].kind == TOKEN_ASSIGN;
    bool star = p->at->kind == TOKEN_MUL;
    bool star_star = p->at->kind == TOKEN_POW;
    bool ok = args->star_star == NULL && (args->star == NULL || star_star || named) &&
              (args->named_len == 0 || named || star || star_star);
    if (!ok) {
        return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, p->at->line,
                                "invalid order of arguments in a call");
    }
    if (named) {
        return add_keyword(p, args, ret);
    }
    p->at += star || star_star;
    int r = tpl_parse_expression(p, true, ret);
    if (r < 0) {
        return r;
    }
    if (star) {
        args->star = *ret;
    } else if (star_star) {
        args->star_star = *ret;
    } else {
        tpl_node_list_add(p->c, &args->plain, *ret);
    }
    return 0;
}

/* owner gets the depth of the arguments. */
static int parse_args(struct parser *p, struct node *owner, struct arg_nodes *args)
{
    int r = tpl_parser_expect(p, TOKEN_LPAREN);
    bool first = true;
    while (r == 0 && p->at->kind != TOKEN_RPAREN) {
        if (!first) {
            r = tpl_parser_expect(p, TOKEN_COMMA);
            if (r < 0 || p->at->kind == TOKEN_RPAREN) {
                break;
            }
        }
        struct node *arg = NULL;
        r = parse_arg(p, args, &arg);
        r = r < 0 ? r : tpl_node_adopt(p, owner, arg);
        first = false;
    }
    return r < 0 ? r : tpl_parser_expect(p, TOKEN_RPAREN);
}

static int parse_call(struct parser *p, struct node *callee, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_CALL, p->at->line);
    n->call.callee = callee;
    *ret = n;
    int r = tpl_node_adopt(p, n, callee);
    return r < 0 ? r : parse_args(p, n, &n->call.args);
}

/* "a", "a:b", ":b:c" … inside brackets. */
static int parse_subscript_part(struct parser *p, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_SLICE, p->at->line);
    struct node **parts[] = { &n->slice.start, &n->slice.stop, &n->slice.step };
    for (size_t i = 0; i < 3; i++) {
        bool empty = p->at->kind == TOKEN_COLON ||
                     (i > 0 && (p->at->kind == TOKEN_RBRACKET || p->at->kind == TOKEN_COMMA));
        if (!empty) {
            int r = tpl_parse_expression(p, true, parts[i]);
            r = r < 0 ? r : tpl_node_adopt(p, n, *parts[i]);
            if (r < 0) {
                return r;
            }
        }
        if (i == 2 || !tpl_parser_skip(p, TOKEN_COLON)) {
            *ret = i == 0 ? n->slice.start : n;
            return 0;
        }
    }
    return 0;
}

static int parse_subscript(struct parser *p, struct node *object, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_ITEM, p->at->line);
    struct node *keys = tpl_node_new(p->c, NODE_TUPLE, p->at->line);
    p->at++;
    while (p->at->kind != TOKEN_RBRACKET) {
        struct node *key = NULL;
        int r = keys->items.len > 0 ? tpl_parser_expect(p, TOKEN_COMMA) : 0;
        r = r < 0 ? r : parse_subscript_part(p, &key);
        r = r < 0 ? r : tpl_node_adopt(p, keys, key);
        if (r < 0) {
            return r;
        }
        tpl_node_list_add(p->c, &keys->items, key);
    }
    p->at++;
    for (size_t i = 0; keys->items.len > 1 && i < keys->items.len; i++) {
        if (keys->items.items[i]->kind == NODE_SLICE) {
            return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, n->line,
                                    "a slice cannot stand among several subscripts");
        }
    }
    n->item.object = object;
    n->item.key = keys->items.len == 1 ? keys->items.items[0] : keys;
    *ret = n;
    int r = tpl_node_adopt(p, n, object);
    return r < 0 ? r : tpl_node_adopt(p, n, n->item.key);
}

static int parse_dot(struct parser *p, struct node *object, struct node **ret)
{
    uint32_t line = p->at->line;
    p->at++;
    struct node *n;
    if (p->at->kind == TOKEN_NAME) {
        n = tpl_node_new(p->c, NODE_ATTRIBUTE, line);
        n->attribute.object = object;
        n->attribute.name = arena_str(p->c->arena, p->at->text);
        n->attribute.hash = tpl_value_hash_text(n->attribute.name);
        n->attribute.special = tpl_value_kinds_with(n->attribute.name);
        p->at++;
    } else if (p->at->kind == TOKEN_INTEGER) {
        n = tpl_node_new(p->c, NODE_ITEM, line);
        n->item.object = object;
        n->item.key = const_node(p, value_int(p->at->integer));
    } else {
        return fail_token(p, "expected a name or number after '.'");
    }
    *ret = n;
    return tpl_node_adopt(p, n, object);
}

static int parse_postfix(struct parser *p, struct node *n, struct node **ret)
{
    int r = 0;
    for (;;) {
        if (p->at->kind == TOKEN_DOT) {
            r = parse_dot(p, n, &n);
        } else if (p->at->kind == TOKEN_LBRACKET) {
            r = parse_subscript(p, n, &n);
        } else if (p->at->kind == TOKEN_LPAREN) {
            r = parse_call(p, n, &n);
        } else {
            break;
        }
        if (r < 0) {
            return r;
        }
    }
    *ret = n;
    return 0;
}

/* "name" or "a.b.c", which no filter or test is called, but the grammar allows. */
static int parse_dotted(struct parser *p, struct str *ret)
{
    const struct token *first = p->at;
    int r = tpl_parser_expect(p, TOKEN_NAME);
    if (r < 0) {
        return r;
    }
    *ret = arena_str(p->c->arena, first->text);
    while (r == 0 && tpl_parser_skip(p, TOKEN_DOT)) {
        const struct token *part = p->at;
        r = tpl_parser_expect(p, TOKEN_NAME);
        if (r == 0) {
            *ret =
                str_of(arena_printf(p->c->arena, "%.*s.%.*s", STR_ARG(*ret), STR_ARG(part->text)));
        }
    }
    return r;
}

int tpl_parse_filters(struct parser *p, struct node *subject, bool inline_start, struct node **ret)
{
    while (p->at->kind == TOKEN_PIPE || inline_start) {
        p->at += !inline_start;
        inline_start = false;
        struct node *n = tpl_node_new(p->c, NODE_FILTER, p->at->line);
        int r = parse_dotted(p, &n->apply.name);
        if (r < 0) {
            return r;
        }
        n->apply.filter = tpl_filter_find(n->apply.name);
        n->apply.subject = subject;
        r = subject != NULL ? tpl_node_adopt(p, n, subject) : 0;
        if (r == 0 && p->at->kind == TOKEN_LPAREN) {
            r = parse_args(p, n, &n->apply.args);
        }
        if (r < 0) {
            return r;
        }
        subject = n;
    }
    *ret = subject;
    return 0;
}

static bool test_has_argument(const struct parser *p)
{
    enum token_kind k = p->at->kind;
    if (k == TOKEN_NAME) {
        return !tpl_parser_is_name(p, "else") && !tpl_parser_is_name(p, "or") &&
               !tpl_parser_is_name(p, "and");
    }
    return k == TOKEN_STRING || k == TOKEN_INTEGER || k == TOKEN_FLOAT || k == TOKEN_LBRACKET ||
           k == TOKEN_LBRACE;
}

static int parse_test(struct parser *p, struct node *subject, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_TEST, p->at->line);
    p->at++;
    bool negated = tpl_parser_skip_name(p, "not");
    int r = parse_dotted(p, &n->apply.name);
    if (r < 0) {
        return r;
    }
    n->apply.test = tpl_predicate_find(n->apply.name);
    n->apply.subject = subject;
    r = tpl_node_adopt(p, n, subject);
    if (r == 0 && p->at->kind == TOKEN_LPAREN) {
        r = parse_args(p, n, &n->apply.args);
    } else if (r == 0 && test_has_argument(p)) {
        if (tpl_parser_is_name(p, "is")) {
            return tpl_compile_fail(p->c, TEMPLATE_FAULT_SYNTAX, p->at->line,
                                    "tests with 'is' cannot be chained");
        }
        struct node *arg = NULL;
        r = parse_primary(p, &arg);
        r = r < 0 ? r : parse_postfix(p, arg, &arg);
        r = r < 0 ? r : tpl_node_adopt(p, n, arg);
        tpl_node_list_add(p->c, &n->apply.args.plain, arg);
    }
    *ret = n;
    if (r == 0 && negated) {
        *ret = tpl_node_new(p->c, NODE_NOT, n->line);
        (*ret)->expr = n;
        r = tpl_node_adopt(p, *ret, n);
    }
    return r;
}

static int parse_filter_expr(struct parser *p, struct node *n, struct node **ret)
{
    int r = 0;
    for (;;) {
        if (p->at->kind == TOKEN_PIPE) {
            r = tpl_parse_filters(p, n, false, &n);
        } else if (tpl_parser_is_name(p, "is")) {
            r = parse_test(p, n, &n);
        } else if (p->at->kind == TOKEN_LPAREN) {
            r = parse_call(p, n, &n);
        } else {
            break;
        }
        if (r < 0) {
            return r;
        }
    }
    *ret = n;
    return 0;
}

/* --- operators, from tight to loose --- */

static int parse_sign(struct parser *p, struct node **ret)
{
    bool negative = p->at->kind == TOKEN_SUB;
    struct node *n = tpl_node_new(p->c, negative ? NODE_NEGATIVE : NODE_POSITIVE, p->at->line);
    p->at++;
    int r = tpl_parser_enter(p); /* "- - - x" recurses without a bracket */
    r = r < 0 ? r : parse_unary(p, false, &n->expr);
    parser_leave(p);
    *ret = n;
    return r < 0 ? r : tpl_node_adopt(p, n, n->expr);
}

static int parse_unary(struct parser *p, bool with_filter, struct node **ret)
{
    bool sign = p->at->kind == TOKEN_SUB || p->at->kind == TOKEN_ADD;
    struct node *n = NULL;
    int r = sign ? parse_sign(p, &n) : parse_primary(p, &n);
    r = r < 0 ? r : parse_postfix(p, n, ret);
    return r < 0 || !with_filter ? r : parse_filter_expr(p, *ret, ret);
}

struct operator_token {
    enum token_kind token;
    enum binary_op op;
};

static const struct operator_token *find_operator(const struct parser *p,
                                                  const struct operator_token *ops, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (ops[i].token == p->at->kind) {
            return &ops[i];
        }
    }
    return NULL;
}

typedef int parse_fn(struct parser *p, struct node **ret);

static int parse_binary(struct parser *p, parse_fn *operand, const struct operator_token *ops,
                        size_t len, struct node **ret)
{
    struct node *left = NULL;
    int r = operand(p, &left);
    for (;;) {
        const struct operator_token *op = r < 0 ? NULL : find_operator(p, ops, len);
        if (op == NULL) {
            break;
        }
        struct node *n = tpl_node_new(p->c, NODE_BINARY, p->at->line);
        p->at++;
        n->binary.op = op->op;
        n->binary.left = left;
        r = operand(p, &n->binary.right);
        r = r < 0 ? r : tpl_node_adopt(p, n, left);
        r = r < 0 ? r : tpl_node_adopt(p, n, n->binary.right);
        left = n;
    }
    *ret = left;
    return r;
}

static int parse_filtered_unary(struct parser *p, struct node **ret)
{
    return parse_unary(p, true, ret);
}

static int parse_power(struct parser *p, struct node **ret)
{
    static const struct operator_token ops[] = { { TOKEN_POW, OP_POW } };
    return parse_binary(p, parse_filtered_unary, ops, ARRAY_LEN(ops), ret);
}

static int parse_product(struct parser *p, struct node **ret)
{
    static const struct operator_token ops[] = { { TOKEN_MUL, OP_MUL },
                                                 { TOKEN_DIV, OP_DIV },
                                                 { TOKEN_FLOORDIV, OP_FLOORDIV },
                                                 { TOKEN_MOD, OP_MOD } };
    return parse_binary(p, parse_power, ops, ARRAY_LEN(ops), ret);
}

static int parse_concat(struct parser *p, struct node **ret)
{
    struct node *n = tpl_node_new(p->c, NODE_CONCAT, p->at->line);
    int r;
    do {
        struct node *item = NULL;
        r = parse_product(p, &item);
        r = r < 0 ? r : tpl_node_adopt(p, n, item);
        tpl_node_list_add(p->c, &n->items, item);
    } while (r == 0 && tpl_parser_skip(p, TOKEN_TILDE));
    *ret = n->items.len == 1 ? n->items.items[0] : n;
    return r;
}

static int parse_sum(struct parser *p, struct node **ret)
{
    static const struct operator_token ops[] = { { TOKEN_ADD, OP_ADD }, { TOKEN_SUB, OP_SUB } };
    return parse_binary(p, parse_concat, ops, ARRAY_LEN(ops), ret);
}

/* The comparison operator here, consumed; false when there is none. */
static bool compare_op(struct parser *p, enum compare_op *ret)
{
    static const struct {
        enum token_kind token;
        enum compare_op op;
    } ops[] = { { TOKEN_EQ, CMP_EQ },   { TOKEN_NE, CMP_NE }, { TOKEN_LT, CMP_LT },
                { TOKEN_LTEQ, CMP_LE }, { TOKEN_GT, CMP_GT }, { TOKEN_GTEQ, CMP_GE } };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (tpl_parser_skip(p, ops[i].token)) {
            *ret = ops[i].op;
            return true;
        }
    }
    if (tpl_parser_skip_name(p, "in")) {
        *ret = CMP_IN;
        return true;
    }
    if (tpl_parser_is_name(p, "not") && p->at[1].kind == TOKEN_NAME &&
        str_eqc(p->at[1].text, "in")) {
        p->at += 2;
        *ret = CMP_NOT_IN;
        return true;
    }
    return false;
}

static int parse_compare(struct parser *p, struct node **ret)
{
    struct node *first = NULL;
    int r = parse_sum(p, &first);
    struct node *n = NULL;
    enum compare_op op;
    while (r == 0 && compare_op(p, &op)) {
        if (n == NULL) {
            n = tpl_node_new(p->c, NODE_COMPARE, first->line);
            n->compare.first = first;
            r = tpl_node_adopt(p, n, first);
        }
        size_t len = n->compare.len;
        if ((len & (len - 1)) == 0) {
            struct operand *more = arena_array(p->c->arena, len == 0 ? 1 : len * 2, sizeof *more);
            if (len > 0) {
                memcpy(more, n->compare.ops, len * sizeof *more);
            }
            n->compare.ops = more;
        }
        struct operand *o = &n->compare.ops[n->compare.len++];
        o->op = op;
        r = r < 0 ? r : parse_sum(p, &o->expr);
        r = r < 0 ? r : tpl_node_adopt(p, n, o->expr);
    }
    *ret = n == NULL ? first : n;
    return r;
}

static int parse_not(struct parser *p, struct node **ret)
{
    if (!tpl_parser_is_name(p, "not")) {
        return parse_compare(p, ret);
    }
    struct node *n = tpl_node_new(p->c, NODE_NOT, p->at->line);
    p->at++;
    int r = tpl_parser_enter(p);
    r = r < 0 ? r : parse_not(p, &n->expr);
    parser_leave(p);
    *ret = n;
    return r < 0 ? r : tpl_node_adopt(p, n, n->expr);
}

static int parse_logic(struct parser *p, bool is_or, struct node **ret);

static int parse_and(struct parser *p, struct node **ret)
{
    return parse_logic(p, false, ret);
}

static int parse_logic(struct parser *p, bool is_or, struct node **ret)
{
    parse_fn *operand = is_or ? parse_and : parse_not;
    struct node *left = NULL;
    int r = operand(p, &left);
    while (r == 0 && tpl_parser_skip_name(p, is_or ? "or" : "and")) {
        struct node *n = tpl_node_new(p->c, is_or ? NODE_OR : NODE_AND, left->line);
        n->binary.left = left;
        r = operand(p, &n->binary.right);
        r = r < 0 ? r : tpl_node_adopt(p, n, left);
        r = r < 0 ? r : tpl_node_adopt(p, n, n->binary.right);
        left = n;
    }
    *ret = left;
    return r;
}

static int parse_cond(struct parser *p, struct node **ret)
{
    struct node *then = NULL;
    int r = parse_logic(p, true, &then);
    while (r == 0 && tpl_parser_skip_name(p, "if")) {
        struct node *n = tpl_node_new(p->c, NODE_COND, then->line);
        n->cond.then = then;
        r = parse_logic(p, true, &n->cond.test);
        if (r == 0 && tpl_parser_skip_name(p, "else")) {
            r = tpl_parse_expression(p, true, &n->cond.otherwise);
            r = r < 0 ? r : tpl_node_adopt(p, n, n->cond.otherwise);
        }
        r = r < 0 ? r : tpl_node_adopt(p, n, then);
        r = r < 0 ? r : tpl_node_adopt(p, n, n->cond.test);
        then = n;
    }
    *ret = then;
    return r;
}

int tpl_parse_expression(struct parser *p, bool with_cond, struct node **ret)
{
    int r = tpl_parser_enter(p);
    if (r == 0) {
        r = with_cond ? parse_cond(p, ret) : parse_logic(p, true, ret);
    }
    parser_leave(p);
    return r;
}
