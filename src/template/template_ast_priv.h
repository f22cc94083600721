/* SPDX-License-Identifier: MIT
 *
 * The syntax tree of a template, and the passes that make it: lexer -> parser -> scope resolution.
 * The tree lives in the arena of the template set and is only read while rendering.
 *
 * Variables: Jinja2 compiles a template to Python functions and decides at compile time which local
 * of which function a name means (jinja2/idtracking.py). The scope pass does the same, with the
 * same rules, so that the odd corners are the same too: every name becomes a slot in the activation
 * of a function (the template itself, a macro, a call block, a recursive loop, a loop filter),
 * reached over `hops` enclosing activations. A scope says what its slots hold when it is entered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "template/template.h"
#include "template/template_value_priv.h"

enum node_kind {
    /* expressions */
    NODE_CONST,
    NODE_NAME,
    NODE_LIST,
    NODE_TUPLE,
    NODE_DICT, /* key, value, key, value … */
    NODE_CONCAT,
    NODE_BINARY,
    NODE_NEGATIVE,
    NODE_POSITIVE,
    NODE_NOT,
    NODE_AND,
    NODE_OR,
    NODE_COMPARE,
    NODE_COND,
    NODE_ATTRIBUTE,
    NODE_ITEM,
    NODE_SLICE,
    NODE_CALL,
    NODE_FILTER,
    NODE_TEST,
    NODE_NSREF, /* target "ns.name" of set */
    /* statements */
    NODE_TEXT,
    NODE_PRINT,
    NODE_IF,
    NODE_FOR,
    NODE_SET,
    NODE_SET_BLOCK,
    NODE_MACRO,
    NODE_CALL_BLOCK,
    NODE_FILTER_BLOCK,
    NODE_WITH,
    NODE_INCLUDE,
    NODE_KIND_MAX
};

enum compare_op { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_IN, CMP_NOT_IN };

struct node_list {
    struct node **items;
    size_t len, cap;
};

struct slot_ref {
    uint32_t hops, slot;
};

struct name {
    struct str text;
    uint64_t hash;
    uint32_t id; /* within its template */
};

enum scope_action { SCOPE_RESOLVE, SCOPE_ALIAS, SCOPE_EMPTY };
struct scope_load {
    enum scope_action action;
    uint32_t slot;
    struct slot_ref from;    /* SCOPE_ALIAS */
    const struct name *name; /* SCOPE_RESOLVE */
};
struct scope {
    struct scope_load *loads;
    size_t len;
};

/* A function has activations with this many slots. */
struct func {
    struct func *up;
    uint32_t slots;
    uint32_t id;   /* within its template */
    bool captured; /* an inner function may outlive a call */
};

struct keyword {
    struct str name;
    struct node *value;
};
struct arg_nodes {
    struct node_list plain;
    struct keyword *named;
    size_t named_len;
    struct node *star, *star_star;
};

struct operand {
    enum compare_op op;
    struct node *expr;
};

struct local {
    const struct name *name;
    struct slot_ref ref;
};

/* A macro, or the body of a call block. */
struct macro_node {
    struct str name; /* empty for a call block */
    const struct name *target_name;
    struct node_list params, defaults;
    struct node_list body;
    struct scope scope;
    struct func *func;
    struct slot_ref target;
    bool uses_caller, uses_kwargs, uses_varargs, explicit_caller;
    uint32_t caller_slot, kwargs_slot, varargs_slot;
};

struct for_node {
    struct node *target, *iter, *test;
    struct node *test_target; /* the target again, with the slots of test_func */
    struct node_list body, otherwise;
    struct scope scope, else_scope, test_scope;
    struct func *func;      /* of a recursive loop, else NULL */
    struct func *test_func; /* of a loop with `if`, else NULL */
    bool recursive, uses_loop;
    uint32_t loop_slot;
};

struct if_node {
    struct node *test;
    struct node_list body, otherwise;
    struct node_list elifs; /* NODE_IF */
};

struct node {
    enum node_kind kind;
    uint32_t line;
    uint32_t depth; /* of the tree below, bounded by the parser */
    union {
        struct value constant;
        struct str text;
        struct {
            const struct name *name;
            struct slot_ref ref;
            bool store, param;
        } name;
        struct {
            const struct name *name;
            struct slot_ref ref;
            struct str attr;
        } nsref;
        struct node_list items; /* list, tuple, dict, concat */
        struct {
            enum binary_op op;
            struct node *left, *right; /* also of and, or */
        } binary;
        struct node *expr; /* unary, print */
        struct {
            struct node *first;
            struct operand *ops;
            size_t len;
        } compare;
        struct {
            struct node *test, *then, *otherwise;
        } cond;
        struct {
            struct node *object;
            struct str name;
            uint64_t hash;
            uint32_t special; /* kinds of values that have a method or property of that name */
        } attribute;
        struct {
            struct node *object, *key;
        } item;
        struct {
            struct node *start, *stop, *step;
        } slice;
        struct {
            struct node *callee;
            struct arg_nodes args;
        } call;
        struct {
            struct node *subject; /* NULL: the captured text of a block */
            struct str name;
            const struct filter *filter; /* NULL: unknown, an error when reached */
            const struct predicate *test;
            struct arg_nodes args;
        } apply;
        struct if_node *branch;
        struct for_node *loop;
        struct {
            struct node *target, *value;
        } set;
        struct {
            struct node *target, *filter; /* set block; filter block has no target */
            struct node_list body;
            struct scope scope;
        } capture;
        struct macro_node *macro;
        struct {
            struct macro_node *body;
            struct node *call;
        } call_block;
        struct {
            struct node_list targets, values, body;
            struct scope scope;
        } with;
        struct {
            struct node *name;
            struct local *locals;
            size_t locals_len;
            bool ignore_missing, with_context;
        } include;
    };
};

struct template
{
    struct template_set *set;
    const char *name;
    struct node_list body;
    struct scope scope;
    struct func *func;
    uint32_t funcs; /* how many */
};

/* --- names (template_name.c): each spelling once --- */

struct name_table {
    struct arena *arena;
    struct name **slots; /* malloc'ed */
    size_t cap;
    uint32_t len;
};
const struct name *tpl_name_intern(struct name_table *t, struct str text);
void tpl_name_table_done(struct name_table *t);

/* --- lexer (template_lexer.c) --- */

enum token_kind {
    TOKEN_EOF,
    TOKEN_DATA,
    TOKEN_PRINT_BEGIN,
    TOKEN_PRINT_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INTEGER,
    TOKEN_FLOAT,
    TOKEN_ADD,
    TOKEN_SUB,
    TOKEN_MUL,
    TOKEN_DIV,
    TOKEN_FLOORDIV,
    TOKEN_MOD,
    TOKEN_POW,
    TOKEN_TILDE,
    TOKEN_LBRACKET,
    TOKEN_RBRACKET,
    TOKEN_LPAREN,
    TOKEN_RPAREN,
    TOKEN_LBRACE,
    TOKEN_RBRACE,
    TOKEN_EQ,
    TOKEN_NE,
    TOKEN_GT,
    TOKEN_GTEQ,
    TOKEN_LT,
    TOKEN_LTEQ,
    TOKEN_ASSIGN,
    TOKEN_DOT,
    TOKEN_COLON,
    TOKEN_PIPE,
    TOKEN_COMMA,
    TOKEN_SEMICOLON,
    TOKEN_KIND_MAX
};

struct token {
    enum token_kind kind;
    uint32_t line;
    struct str text; /* data, name, or the value of a string */
    int64_t integer;
    double real;
};

struct token_list {
    struct token *items; /* in the arena given */
    size_t len;
};

/* What the passes share. */
struct compile {
    struct template_set *set;
    struct arena *arena;
    const char *name;
    struct name_table names;
    struct err *e;
    uint32_t funcs;
};

/* Fills the error with "name:line: …" and the fault; returns a negative code. */
int tpl_compile_fail(struct compile *c, enum template_fault fault, uint32_t line, const char *fmt,
                     ...) PRINTF_LIKE(4, 5);

int template_lex(struct compile *c, struct arena *scratch, struct str text,
                 struct token_list *ret) MUST_USE;
/* What messages call a token. */
const char *tpl_token_describe(enum token_kind kind);

/* --- parser (template_parser.c, template_expr.c) --- */

struct parser {
    struct compile *c;
    const struct token *at;
    unsigned depth;
    const struct str *waiting; /* tags that would end the innermost block */
    size_t waiting_len;
};

int template_parse_tokens(struct compile *c, const struct token_list *tokens,
                          struct node_list *ret) MUST_USE;

struct node *tpl_node_new(struct compile *c, enum node_kind kind, uint32_t line);
void tpl_node_list_add(struct compile *c, struct node_list *l, struct node *n);
/* Raises the depth of n above that of its child; ERR_LIMIT when too deep. */
int tpl_node_adopt(struct parser *p, struct node *n, const struct node *child) MUST_USE;
int tpl_node_adopt_list(struct parser *p, struct node *n, const struct node_list *l) MUST_USE;

bool tpl_parser_is_name(const struct parser *p, const char *word);
bool tpl_parser_skip_name(struct parser *p, const char *word);
bool tpl_parser_skip(struct parser *p, enum token_kind kind);
int tpl_parser_expect(struct parser *p, enum token_kind kind) MUST_USE;
int tpl_parser_expect_name(struct parser *p, const char *word) MUST_USE;
int tpl_parser_enter(struct parser *p) MUST_USE;
static inline void parser_leave(struct parser *p)
{
    p->depth--;
}

enum tuple_flags {
    TUPLE_SIMPLE = 1u << 0,  /* names and literals only */
    TUPLE_NO_COND = 1u << 1, /* no inline if */
    TUPLE_PARENS = 1u << 2,  /* may be empty */
};
int tpl_parse_tuple(struct parser *p, unsigned flags, struct node **ret) MUST_USE;
int tpl_parse_expression(struct parser *p, bool with_cond, struct node **ret) MUST_USE;
/* One or more filters on subject; `inline_start`: the first has no '|'. */
int tpl_parse_filters(struct parser *p, struct node *subject, bool inline_start,
                      struct node **ret) MUST_USE;

/* --- scopes (template_scope.c) --- */

int template_resolve(struct compile *c, struct template *t) MUST_USE;
/* Calls visit for each direct child. */
typedef int node_visit_fn(void *self, struct node *n);
int tpl_node_each_child(struct node *n, node_visit_fn *visit, void *self) MUST_USE;
int tpl_arg_nodes_each(struct arg_nodes *args, node_visit_fn *visit, void *self) MUST_USE;
