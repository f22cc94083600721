/* SPDX-License-Identifier: MIT
 *
 * Values of a rendering: what Python objects are to Jinja2.
 *
 * A struct value is 24 bytes and copied freely; what it points to lives in the arena of the
 * rendering (or of the template, for constants; or of the variables) and is never changed once it
 * is visible to the template, with three exceptions that the language has: namespaces, generators
 * and the counters cycler, joiner and loop.
 *
 * Strings are UTF-8.
 *
 * What the files of the engine share begins with tpl_, since its nouns are common ones. Functions
 * that can fail take the rendering first and return 0 or a negative code; the message is in the
 * rendering's error then (tpl_render_fail). Recursive ones are bounded by render_enter().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct json;
struct render;
struct method;
struct function;
struct macro;
struct loop;

enum value_kind {
    VALUE_MISSING, /* an empty slot; never seen by the template */
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_DICT,
    VALUE_ITER, /* a generator: can be walked once */
    VALUE_NAMESPACE,
    VALUE_CYCLER,
    VALUE_JOINER,
    VALUE_LOOP,
    VALUE_MACRO,
    VALUE_METHOD, /* bound to its object */
    VALUE_FUNCTION,
    VALUE_KIND_MAX
};

struct value {
    enum value_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct str string;
        struct list *list; /* also of a tuple */
        struct dict *dict;
        struct dict *names; /* of a namespace */
        struct iter *iter;
        struct undefined *undefined;
        struct cycler *cycler;
        struct joiner *joiner;
        struct loop *loop;
        struct macro *macro;
        struct bound *bound;
        const struct function *function;
    };
};

struct list {
    struct value *items;
    size_t len, cap;
    bool group; /* a tuple of groupby: also has .grouper and .list */
};

struct dict_entry {
    struct value key, value;
    uint64_t hash;
};
struct dict {
    struct dict_entry *entries; /* in insertion order */
    size_t len, cap;
    uint32_t *index; /* open addressing, entry number + 1; NULL while small */
    size_t slots;    /* a power of two */
};

/* How a value came to be undefined; the message is made only when somebody trips over it. */
struct undefined {
    struct str name;   /* "'name' is undefined" */
    const char *owner; /* type of the object it was looked up in, or NULL */
    struct value key;  /* the element looked up, when it was no name */
    const char *hint;  /* the whole message instead */
    bool strict;       /* false: prints as nothing, as the missing else of an inline if does */
    bool unsafe;       /* the sandbox forbids it */
};

struct cycler {
    struct list *items;
    size_t pos;
};
struct joiner {
    struct value sep;
    bool used;
};
struct bound {
    struct value self;
    const struct method *method;
};

/* next() gives 1 and an item, 0 at the end, or a negative code. */
struct iter {
    int (*next)(struct render *r, struct iter *it, struct value *out);
    struct value source;
    size_t pos;
    void *state;
    struct value keep; /* what a generator remembers */
    const char *name;  /* "generator", for messages */
};

/* --- making (template_value.c) --- */

#define VALUE_OF_NONE ((struct value) { .kind = VALUE_NONE })

static inline struct value value_bool(bool b)
{
    return (struct value) { .kind = VALUE_BOOL, .boolean = b };
}
static inline struct value value_int(int64_t i)
{
    return (struct value) { .kind = VALUE_INT, .integer = i };
}
static inline struct value value_float(double d)
{
    return (struct value) { .kind = VALUE_FLOAT, .real = d };
}
/* Borrows the text. */
static inline struct value value_text(struct str s)
{
    return (struct value) { .kind = VALUE_STRING, .string = s };
}
static inline struct value value_list(struct list *l)
{
    return (struct value) { .kind = VALUE_LIST, .list = l };
}
static inline struct value value_tuple(struct list *l)
{
    return (struct value) { .kind = VALUE_TUPLE, .list = l };
}
static inline struct value value_dict(struct dict *d)
{
    return (struct value) { .kind = VALUE_DICT, .dict = d };
}
static inline struct value value_iter(struct iter *it)
{
    return (struct value) { .kind = VALUE_ITER, .iter = it };
}

struct list *tpl_list_new(struct arena *a, size_t cap);
void tpl_list_add(struct arena *a, struct list *l, const struct value *v);

/* Deep; the strings are borrowed from the JSON. Too deep a value is cut off as none, which the
 * limits of every reader make impossible. */
struct value tpl_value_from_json(struct arena *a, const struct json *v, unsigned depth);

/* "dict object", "int object": what messages call the type; "None" for none. */
const char *tpl_value_type(const struct value *v);

static inline bool value_is_number(const struct value *v)
{
    return v->kind == VALUE_BOOL || v->kind == VALUE_INT || v->kind == VALUE_FLOAT;
}
static inline bool value_is_integral(const struct value *v)
{
    return v->kind == VALUE_BOOL || v->kind == VALUE_INT;
}
static inline int64_t value_integer(const struct value *v)
{
    return v->kind == VALUE_BOOL ? v->boolean : v->integer;
}
static inline double value_real(const struct value *v)
{
    return v->kind == VALUE_FLOAT ? v->real : (double)value_integer(v);
}
static inline bool value_is_sequence(const struct value *v)
{
    return v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
}

/* --- asking (template_compare.c); the first result is in *ret --- */

int tpl_value_truth(struct render *r, const struct value *v, bool *ret) MUST_USE;
int tpl_value_equal(struct render *r, const struct value *a, const struct value *b,
                    bool *ret) MUST_USE;
int tpl_value_compare_op(struct render *r, const struct value *a, const struct value *b, int op,
                         bool *ret) MUST_USE;
int tpl_value_contains(struct render *r, const struct value *box, const struct value *v,
                       bool *ret) MUST_USE;
int tpl_value_hash(struct render *r, const struct value *v, uint64_t *ret) MUST_USE;
bool tpl_value_same(const struct value *a, const struct value *b); /* Python's `is` */
uint64_t tpl_value_hash_text(struct str s);

/* Sorts stably by keys[i] and moves items along; keys may be the items themselves. */
int tpl_value_sort(struct render *r, struct value *items, struct value *keys, size_t len,
                   bool reverse) MUST_USE;

/* --- dicts (template_dict.c); entries never disappear --- */

struct dict *tpl_dict_new(struct arena *a);
int tpl_dict_set(struct render *r, struct dict *d, const struct value *key,
                 const struct value *value) MUST_USE;
/* For keys that are text: cannot fail and needs no rendering. */
void tpl_dict_set_text(struct arena *a, struct dict *d, struct str key, const struct value *value);
struct value *tpl_dict_find_text(const struct dict *d, struct str key);
struct value *tpl_dict_find_hashed(const struct dict *d, struct str key, uint64_t hash);
/* *ret is NULL when the key is absent; fails when it is not hashable. */
int tpl_dict_find(struct render *r, const struct dict *d, const struct value *key,
                  struct value **ret) MUST_USE;

/* The keys, the values, or tuples of both as a list. */
enum dict_part { DICT_KEYS, DICT_VALUES, DICT_ITEMS };
int tpl_dict_list(struct render *r, const struct dict *d, enum dict_part part,
                  struct value *out) MUST_USE;

/* --- walking (template_iter.c) --- */

/* Prepares `it` for walking v; a value that cannot be walked is an error. */
int tpl_iter_start(struct render *r, const struct value *v, struct iter *it) MUST_USE;
static inline int iter_next(struct render *r, struct iter *it, struct value *out)
{
    return it->next(r, it, out);
}
bool tpl_value_is_iterable(const struct value *v);
/* len(); an error for what has none. */
int tpl_value_len(struct render *r, const struct value *v, size_t *ret) MUST_USE;
/* list(v): always a new list. */
int tpl_value_to_list(struct render *r, const struct value *v, struct list **ret) MUST_USE;
/* A generator in the arena of the rendering. */
struct iter *tpl_iter_new(struct render *r,
                          int (*next)(struct render *, struct iter *, struct value *),
                          const struct value *source, void *state);
/* reversed(v): a generator, or an error. */
int tpl_iter_reverse(struct render *r, const struct value *v, struct value *out) MUST_USE;

/* --- text (template_repr.c) --- */

int tpl_value_write_str(struct render *r, const struct value *v, struct buf *out) MUST_USE;
int tpl_value_write_repr(struct render *r, const struct value *v, struct buf *out) MUST_USE;
int tpl_value_write_json(struct render *r, const struct value *v, const struct value *indent,
                         struct buf *out) MUST_USE;
/* str(v) as a string value. */
int tpl_value_to_text(struct render *r, const struct value *v, struct value *out) MUST_USE;

/* --- operators (template_ops.c) --- */

enum binary_op { OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW };
int tpl_value_binary(struct render *r, enum binary_op op, const struct value *a,
                     const struct value *b, struct value *out) MUST_USE;
int tpl_value_negate(struct render *r, const struct value *v, struct value *out) MUST_USE;
int tpl_value_positive(struct render *r, const struct value *v, struct value *out) MUST_USE;

/* --- access (template_access.c) --- */

int tpl_value_attribute(struct render *r, const struct value *v, struct str name,
                        struct value *out) MUST_USE;
int tpl_value_item(struct render *r, const struct value *v, const struct value *key,
                   struct value *out) MUST_USE;
/* The kinds of values (a bit each) that have a method of that name, or refuse the name. */
uint32_t tpl_value_kinds_with(struct str name);
/* An attribute only, never an item; *out is undefined when there is none. */
int tpl_value_attribute_only(struct render *r, const struct value *v, struct str name,
                             struct value *out) MUST_USE;
struct slice_bounds {
    const struct value *start, *stop, *step; /* NULL: left out */
};
int tpl_value_slice(struct render *r, const struct value *v, const struct slice_bounds *b,
                    struct value *out) MUST_USE;
/* Looks up a dotted path as filters do ("address.city", "0.name"), or one key of another type.
 * `otherwise` (none: nothing) stands in for what is undefined on the way. */
int tpl_value_path(struct render *r, const struct value *v, const struct value *path,
                   const struct value *otherwise, struct value *out) MUST_USE;

/* --- formatting (template_format.c) --- */

/* "%s" % values, and the same with named values. */
int tpl_value_percent(struct render *r, const struct value *format, const struct value *values,
                      struct value *out) MUST_USE;
