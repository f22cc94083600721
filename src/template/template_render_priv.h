/* SPDX-License-Identifier: MIT
 *
 * One rendering: its limits, its variables, the tables of filters, tests, functions and methods,
 * and the two halves of the evaluator, tpl_eval (expressions) and exec (statements).
 *
 * The struct err of the rendering is in struct render, since every function below can fail:
 * functions return 0 (or 1 where said) or what tpl_render_fail() returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "template/template.h"
#include "template/template_ast_priv.h"
#include "template/template_value_priv.h"

struct template_set {
    struct arena *arena;
    struct template_loader loader;
    struct template_limits limits; /* no zeros */
    struct template_undefined undefined;
    bool trim_blocks, lstrip_blocks, keep_trailing_newline;
    enum template_fault fault;
    struct arena *spare;   /* of the last rendering, for the next */
    struct buf **captures; /* a stack of texts being built, kept for reuse */
    size_t captures_len, captures_used;
    struct loaded {
        struct loaded *next;
        const struct template *template;
        char name[];
    } * loaded;
};

struct template_vars {
    struct arena *arena;
    const struct json *object;
    uint32_t *index; /* member number + 1 by hash of its key */
    size_t slots;
    struct value *values; /* converted members; VALUE_MISSING: not yet */
};

/* Variables of the template being rendered: those of the caller, and for an included template the
 * locals of the including one on top. */
struct context {
    const struct context *up;
    struct template_vars *vars;
    const struct local *locals;
    const struct value *values;
    size_t len;
};

struct activation {
    struct activation *up;
    struct activation *next_free;
    struct value slots[];
};

struct render {
    struct template_set *set;
    const struct template *template; /* whose code runs, for messages */
    const struct context *context;
    struct arena *arena;
    struct buf *out;
    struct err *e;
    uint32_t line;
    unsigned depth; /* of C recursion */
    unsigned calls;
    uint64_t steps, rounds;
    uint64_t check_at;            /* so many steps: look at the limits again */
    bool included;                /* the error says already where its file was included */
    struct free_list *free_lists; /* activations by template and function */
};

/* Bounded so that the deepest legal recursion needs well under 2 MiB of C stack. */
enum { RENDER_DEPTH = 1200 };

/* Whether using an undefined value is an error. */
static inline bool render_is_strict(const struct render *r)
{
    return r->set->undefined.report == NULL;
}

int tpl_render_fail(struct render *r, enum template_fault fault, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* For values of the wrong kind: undefined ones fail as undefined, all others with the text. */
int tpl_render_fail_type(struct render *r, const struct value *v, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
int tpl_render_fail_undefined(struct render *r, const struct value *v);
/* Adds to the error of a buffer that is full. */
int tpl_render_fail_output(struct render *r);

/* Appends, without a call where there is room: this is what a rendering does most. */
static inline int render_write(struct render *r, struct buf *out, struct str s)
{
    if (out->cap > out->len && s.len < out->cap - out->len && out->len + s.len <= out->max) {
        memcpy(out->ptr + out->len, s.ptr, s.len);
        out->len += s.len;
        out->ptr[out->len] = '\0';
        return 0;
    }
    return buf_append(out, s, NULL) < 0 ? tpl_render_fail_output(r) : 0;
}

int tpl_render_check(struct render *r); /* the rare part of render_step */
/* Counts a step; now and then it fails, when there were too many or too much memory is in use. */
static inline int render_step(struct render *r)
{
    return __builtin_expect(++r->steps >= r->check_at, 0) ? tpl_render_check(r) : 0;
}
int tpl_render_too_deep(struct render *r);
/* Bounds the recursion in C; render_leave() must follow when it succeeds. */
static inline int render_enter(struct render *r)
{
    return __builtin_expect(++r->depth > RENDER_DEPTH, 0) ? tpl_render_too_deep(r) : 0;
}
static inline void render_leave(struct render *r)
{
    r->depth--;
}
/* Fails when a string, list or the like of so many elements of `size` bytes would be too large. */
int tpl_render_check_size(struct render *r, uint64_t count, size_t size) MUST_USE;

/* Text being built; becomes a string value in the arena. */
struct buf *tpl_render_capture(struct render *r);
struct value tpl_render_captured(struct render *r); /* ends the innermost capture */
void tpl_render_drop(struct render *r);             /* the same, forgetting the text */

/* --- arguments of a call --- */

struct named_value {
    struct str name;
    struct value value;
};
enum { CALL_ARGS_INLINE = 6 };
struct call_args {
    struct value *plain;
    size_t plain_len;
    struct named_value *named;
    size_t named_len;
    struct value plain_inline[CALL_ARGS_INLINE];
};
/* A signature: names of parameters; the first `required` have no default. */
enum { PARAMS_MAX = 6 };
struct params {
    const char *names[PARAMS_MAX];
    unsigned len, required;
};
/* values[i] is VALUE_MISSING where nothing was given. `what` is what messages call the function. */
int tpl_call_bind(struct render *r, const struct call_args *args, const struct params *params,
                  const char *what, struct value *values) MUST_USE;
int tpl_call_eval_args(struct render *r, struct activation *act, const struct arg_nodes *nodes,
                       struct call_args *ret) MUST_USE;
int tpl_call_value(struct render *r, const struct value *callee, const struct call_args *args,
                   struct value *out) MUST_USE;
const struct value *tpl_call_named(const struct call_args *args, const char *name);

/* Conversions of arguments, with the default where nothing was given. */
int tpl_arg_int(struct render *r, const struct value *v, int64_t otherwise, int64_t *ret) MUST_USE;
int tpl_arg_bool(struct render *r, const struct value *v, bool otherwise, bool *ret) MUST_USE;
int tpl_arg_text(struct render *r, const struct value *v, const char *what,
                 struct str *ret) MUST_USE;

/* --- filters (template_filter.c and its parts) --- */

typedef int filter_fn(struct render *r, const struct value *in, const struct value *args,
                      struct value *out);
typedef int filter_raw_fn(struct render *r, const struct value *in, const struct call_args *args,
                          struct value *out);
struct filter {
    const char *name;
    filter_fn *run;     /* with bound arguments, or */
    filter_raw_fn *raw; /* with all that was given */
    struct params params;
};
const struct filter *tpl_filter_find(struct str name);
int tpl_filter_apply(struct render *r, const struct filter *f, const struct value *in,
                     const struct call_args *args, struct value *out) MUST_USE;
extern const struct filter tpl_filters_text[], tpl_filters_list[], tpl_filters_number[],
    tpl_filters_select[];
extern const size_t tpl_filters_text_len, tpl_filters_list_len, tpl_filters_number_len,
    tpl_filters_select_len;

/* Text functions that filters and methods share; `s` is a string value. */
int tpl_text_strip(struct render *r, const struct value *s, const struct value *chars,
                   unsigned sides, struct value *out) MUST_USE;
enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 };
int tpl_text_replace(struct render *r, struct str s, struct str old, struct str new, int64_t count,
                     struct value *out) MUST_USE;
/* Cuts the first line off *rest; `with_end` keeps its line end. False at the end of the text. */
bool tpl_text_next_line(struct str *rest, bool with_end, struct str *ret);
int tpl_text_join(struct render *r, const struct value *items, struct str sep,
                  struct value *out) MUST_USE;
/* Key of an item for sorting and grouping: its attribute, in lower case when it is text. */
struct key_of {
    const struct value *attribute; /* path, or none for the item itself */
    const struct value *otherwise; /* instead of what is undefined, or none */
    bool ignore_case;
};
int tpl_key_get(struct render *r, const struct key_of *k, const struct value *item,
                struct value *out) MUST_USE;

/* --- tests, which are predicates here (template_predicate.c) --- */

struct predicate {
    const char *name;
    int (*run)(struct render *r, const struct value *in, const struct value *arg, bool *ret);
    unsigned args;           /* 0 or 1 */
    const char *param;       /* name of the argument, if it has one */
    uint32_t kinds;          /* without run and args: true for these kinds, a bit each */
    enum compare_op compare; /* without run, with args: this comparison */
};
const struct predicate *tpl_predicate_find(struct str name);
int tpl_predicate_apply(struct render *r, const struct predicate *p, const struct value *in,
                        const struct call_args *args, bool *ret) MUST_USE;

/* --- methods and functions --- */

struct method {
    const char *name;
    int (*run)(struct render *r, const struct value *self, const struct value *args,
               struct value *out);
    filter_raw_fn *raw;
    struct params params;
};
const struct method *tpl_method_find(const struct value *self, struct str name); /* or NULL */
enum { TPL_METHODS_LOOP = 2, TPL_METHODS_CYCLER = 2 };
extern const struct method tpl_methods_loop[TPL_METHODS_LOOP];
extern const struct method tpl_methods_cycler[TPL_METHODS_CYCLER];

struct function {
    const char *name;
    filter_raw_fn *run; /* `in` is NULL */
};
const struct function *tpl_function_find(struct str name);

/* --- macros and loops --- */

struct macro {
    const struct macro_node *node;
    struct activation *up;
    const struct template *template;
    const struct context *context;
};
int tpl_macro_call(struct render *r, const struct macro *m, const struct call_args *args,
                   struct value *out) MUST_USE;
struct loop {
    struct iter iter;
    struct value iterable;
    int64_t index0;
    bool have_length;
    size_t length;
    bool peeked, at_end;
    struct value after, current, before;
    struct value changed; /* VALUE_MISSING: never called */
    unsigned depth0;
    const struct node *node; /* of a recursive loop */
    struct activation *up;
};
/* *ret is VALUE_MISSING when a loop has no such attribute. */
int tpl_loop_attribute(struct render *r, struct loop *loop, struct str name, struct value *out);
int tpl_loop_call(struct render *r, struct loop *loop, const struct call_args *args,
                  struct value *out) MUST_USE;
struct activation *tpl_activation_new(struct render *r, const struct template *t,
                                      const struct func *f, struct activation *up);
void tpl_activation_release(struct render *r, const struct template *t, const struct func *f,
                            struct activation *act);

/* --- the evaluator --- */

int tpl_eval(struct render *r, struct activation *act, const struct node *n,
             struct value *out) MUST_USE;
int tpl_exec_body(struct render *r, struct activation *act, const struct node_list *body) MUST_USE;
int tpl_exec_for(struct render *r, struct activation *act, const struct node *n) MUST_USE;
/* Runs a loop over `iterable`; the text of a recursive one goes to the current output. */
int tpl_exec_recursion(struct render *r, const struct node *n, struct activation *up,
                       const struct value *iterable, unsigned depth0) MUST_USE;
int tpl_exec_assign(struct render *r, struct activation *act, const struct node *target,
                    const struct value *v) MUST_USE;
int tpl_exec_template(struct render *r, const struct template *t,
                      const struct context *ctx) MUST_USE;
void tpl_scope_enter(struct render *r, struct activation *act, const struct scope *s);
struct value tpl_context_find(const struct context *ctx, const struct name *name);
struct value tpl_undefined_name(struct render *r, struct str name);
struct value tpl_undefined_hint(struct render *r, const char *hint);

static inline struct value *slot_at(struct activation *act, struct slot_ref ref)
{
    for (uint32_t i = 0; i < ref.hops; i++) {
        act = act->up;
    }
    return &act->slots[ref.slot];
}
