/* SPDX-License-Identifier: MIT
 *
 * Inside of struct schema. The way of a schema through the files:
 *
 *   schema_ref.c        documents and resources: finds all subschemas, $id, anchors; resolves
 *                       references
 *   schema_meta.c       the built-in meta-schemas; which dialect "$schema" means
 *   schema_keyword.c    the table of keywords: since which draft, which vocabulary, what shape
 *   schema_compile.c    each subschema becomes a node: a list of operations
 *   schema_cycle.c      refuses references that go round in circles
 *   schema_validate.c   runs the operations of a node on a value; the combining keywords
 *   schema_assert.c     the operations on one value; schema_array.c and schema_object.c on
 *                       containers
 *   schema_error.c      errors: paths, sentences, the closest branch
 *   schema_value.c      hashes and sets of values, exact numbers; schema_uri.c RFC 3986
 */
#pragma once

#include "data/regex.h"
#include "data/schema.h"
#include "data/schema_keyword.h"

/* --- schema_uri.c --- */

/* A URI reference in its parts; an absent part has ptr NULL. */
struct schema_uri {
    struct str scheme, authority, path, query, fragment;
};

struct schema_uri schema_uri_split(struct str uri);
/* `reference` against `base`, RFC 3986 section 5.2, without fragment; made in the arena. */
struct str schema_uri_resolve(struct arena *a, struct str base, struct str reference);
/* %41 becomes A; false for a bad escape. */
bool schema_uri_unescape(struct arena *a, struct str text, struct str *ret);

/* --- schema_value.c --- */

struct schema_values;

uint64_t schema_hash(struct str s);

/* From a key to a pointer. Keys are not copied; zero is an empty map. */
struct schema_map {
    struct schema_entry *entries;
    size_t len, cap;
};
void *schema_map_find(const struct schema_map *m, struct str key);
void schema_map_set(struct arena *a, struct schema_map *m, struct str key, void *value);

/* Equal values have equal hashes: 1 and 1.0, objects in any order. Adds the number of values seen
 * to *cost. */
uint64_t schema_value_hash(const struct json *v, uint64_t *cost);
bool schema_is_integer(const struct json *v);                               /* 1.0 is one */
int schema_number_cmp(const struct json *a, const struct json *b);          /* exact */
bool schema_is_multiple(const struct json *value, const struct json *unit); /* as decimals */
size_t schema_text_len(struct str s);                                       /* code points */
bool schema_values_have(const struct schema_values *set, const struct json *v, uint64_t *cost);
struct schema_values *schema_values_new(struct arena *a, struct json *const *items, size_t len);
/* The first two items that are equal; false when all differ. Stops, and returns false, once *cost
 * passes `most`. */
bool schema_find_equal(const struct json *array, uint64_t most, uint64_t *cost, size_t *ret_first,
                       size_t *ret_second);

/* --- nodes: compiled subschemas --- */

struct schema_node;

struct schema_resource {
    struct str uri; /* absolute where the schema says so; without fragment */
    const struct json *root;
    struct schema_node *node;
    struct schema_dialect dialect;
    struct schema_map anchors;         /* name -> node */
    struct schema_map dynamic_anchors; /* name -> node */
    struct str document;               /* URI of the document, empty for the schema itself */
};

enum schema_op_kind {
    OP_TYPE,
    OP_ENUM,
    OP_CONST,
    OP_MULTIPLE_OF,
    OP_MINIMUM,
    OP_MAXIMUM,
    OP_EXCLUSIVE_MINIMUM,
    OP_EXCLUSIVE_MAXIMUM,
    OP_MIN_LENGTH,
    OP_MAX_LENGTH,
    OP_PATTERN,
    OP_MIN_ITEMS,
    OP_MAX_ITEMS,
    OP_UNIQUE_ITEMS,
    OP_ITEMS,
    OP_CONTAINS,
    OP_MIN_PROPERTIES,
    OP_MAX_PROPERTIES,
    OP_OBJECT,
    OP_PROPERTY_NAMES,
    OP_DEPENDENT_REQUIRED,
    OP_DEPENDENT_SCHEMAS,
    OP_REF,
    OP_DYNAMIC_REF,
    OP_ALL_OF,
    OP_ANY_OF,
    OP_ONE_OF,
    OP_NOT,
    OP_IF,
    OP_UNEVALUATED_ITEMS,
    OP_UNEVALUATED_PROPERTIES,
    OP_COUNT
};

/* One bit for each name that "type" can have, in the order of schema_type_names. */
enum schema_type {
    TYPE_NULL = 1u << 0,
    TYPE_BOOLEAN = 1u << 1,
    TYPE_INTEGER = 1u << 2,
    TYPE_NUMBER = 1u << 3,
    TYPE_STRING = 1u << 4,
    TYPE_ARRAY = 1u << 5,
    TYPE_OBJECT = 1u << 6,
};
enum { TYPE_COUNT = 7 };
extern const char *const schema_type_names[TYPE_COUNT];
unsigned schema_types_of(const struct json *v); /* all that fit: 1 is integer and number */

struct schema_pattern {
    struct regex *regex;
    struct str source;
    struct schema_node *node; /* of patternProperties */
};

struct schema_nodes {
    struct schema_node **items;
    size_t len;
};

struct schema_hashed {
    uint64_t hash;
    const struct json *value;
};

/* enum or const: few values are compared one by one, many are looked up by hash. */
struct schema_values {
    struct json *const *items; /* in the order of the schema */
    struct schema_hashed *sorted;
    size_t len;
};

struct schema_items {
    struct schema_nodes prefix;
    enum schema_keyword prefix_keyword;
    struct schema_node *rest; /* NULL: anything */
    enum schema_keyword rest_keyword;
};

struct schema_contains {
    struct schema_node *node;
    size_t min, max;
};

struct schema_property {
    struct str name;
    struct schema_node *node; /* NULL: only required */
    bool required;
};

struct schema_object {
    struct schema_property *properties;
    size_t len, required;
    struct schema_map by_name;
    struct schema_pattern *patterns;
    size_t pattern_len;
    struct schema_node *additional; /* NULL: anything */
};

/* If the property `name` is there: these others must be, or the whole must satisfy `node`. */
struct schema_dependency {
    struct str name;
    const struct json *needs;
    struct schema_node *node;
};

struct schema_dependencies {
    struct schema_dependency *items;
    size_t len;
    enum schema_keyword keyword;
};

struct schema_dynamic {
    struct schema_node *node; /* where the reference leads without dynamic scope */
    struct str anchor;
    bool moves; /* the target is a dynamic anchor, so the outermost one of that name counts */
};

struct schema_branch {
    struct schema_node *condition, *yes, *no; /* yes, no: may be NULL */
};

struct schema_op {
    enum schema_op_kind kind;
    union {
        unsigned types;
        size_t count;
        const struct json *value; /* a number */
        const struct schema_values *values;
        const struct schema_pattern *pattern;
        struct schema_node *node;
        struct schema_nodes nodes;
        const struct schema_items *items;
        const struct schema_contains *contains;
        const struct schema_object *object;
        const struct schema_dependencies *dependencies;
        const struct schema_dynamic *dynamic;
        const struct schema_branch *branch;
    };
};

struct schema_node {
    const struct json *json;
    struct schema_resource *resource;
    const struct schema_node *parent;
    struct str path; /* JSON Pointer from the parent, or from the document's root */
    struct schema_op *ops;
    size_t op_count;
    bool never;  /* the schema `false` */
    bool tracks; /* has unevaluated…: keeps its own account of what was evaluated */
    uint8_t mark;
};

struct schema_regexes {
    struct regex *regex;
    struct schema_regexes *next;
};

struct schema {
    struct arena *arena;
    struct schema_node *root;
    struct schema_regexes *regexes;
};

/* --- compiling --- */

struct schema_loader {
    struct schema *schema;
    const struct schema_options *options;
    struct arena *arena;         /* of the schema */
    struct arena *scratch;       /* dies with the compilation */
    struct schema_map nodes;     /* address of a tree -> its node */
    struct schema_map resources; /* URI -> resource */
    struct schema_node **all;    /* every node, in the order of discovery */
    size_t len, cap;
    struct err *e;
};

/* ERR_CONFIG "schema at /a/b (line 3): …"; keyword may be NULL. */
int schema_bad(struct err *e, const struct schema_node *n, const char *keyword, const char *fmt,
               ...) PRINTF_LIKE(4, 5);

/* Takes a copy of a document and finds its subschemas. */
int schema_load(struct schema_loader *l, struct str uri, const struct json *root,
                struct schema_node **ret) MUST_USE;
/* The node that a reference in `from` means. *ret_anchor is its plain-name fragment, or empty. */
int schema_resolve(struct schema_loader *l, const struct schema_node *from, const char *keyword,
                   struct str reference, struct schema_node **ret, struct str *ret_anchor) MUST_USE;
/* The node of a subschema that schema_load() found; NULL for any other tree. */
struct schema_node *schema_node_of(const struct schema_loader *l, const struct json *tree);

/* A document by its URI: given, built in, or resolved. ERR_CONFIG when there is none. */
int schema_document_find(struct schema_loader *l, struct str uri, const struct json **ret) MUST_USE;
const struct json *schema_meta_find(struct arena *a, struct str uri); /* NULL: not built in */
/* The dialect of a document with this "$schema". */
int schema_dialect_find(struct schema_loader *l, struct str meta,
                        struct schema_dialect *ret) MUST_USE;

int schema_compile_node(struct schema_loader *l, struct schema_node *n) MUST_USE;
int schema_refuse_cycles(struct schema_loader *l) MUST_USE;

/* --- validating --- */

/* Where in the value: a chain on the stack up to the root. */
struct schema_place {
    const struct schema_place *up;
    const struct json *value;
    struct str key; /* ptr NULL: an array's item, or the root */
    size_t index;
    bool is_name; /* the value is the name of a property, not what is under it */
};

/* Which members or items of the present value have been evaluated: a range of bits in
 * run->bits. */
struct schema_seen {
    size_t offset, words;
};

/* The resources that were entered, innermost first. */
struct schema_scope {
    const struct schema_scope *up;
    const struct schema_resource *resource;
};

/* An error as it is collected; `types` and `depth` serve the choice of the closest branch. */
struct schema_fault {
    struct schema_error error;
    unsigned types;
    size_t depth;
};

struct schema_sink {
    struct schema_fault *faults;
    size_t len, max;
    bool more;
};

struct schema_run {
    struct arena *arena;      /* of the errors */
    struct schema_sink *sink; /* NULL: only the verdict is wanted */
    const struct schema_scope *scope;
    uint64_t steps; /* left */
    unsigned depth; /* left */
    uint64_t *bits; /* stack of the schema_seen in use */
    size_t bits_len, bits_cap;
    int rc; /* not 0: the run has ended, with *e filled */
    struct err *e;
};

/* Takes n steps; false, and the run has ended, when there are not so many left. */
bool schema_spend(struct schema_run *r, uint64_t n);

/* Applies a node to the value at a place. `seen` may be NULL. */
bool schema_apply(struct schema_run *r, const struct schema_node *n, const struct schema_place *at,
                  struct schema_seen *seen);
/* The same without errors. */
bool schema_try(struct schema_run *r, const struct schema_node *n, const struct schema_place *at,
                struct schema_seen *seen);
void schema_mark(struct schema_run *r, const struct schema_seen *seen, size_t i);
void schema_mark_all(struct schema_run *r, const struct schema_seen *seen, size_t n);
bool schema_marked(const struct schema_run *r, const struct schema_seen *seen, size_t i);

/* What an operation gets. */
struct schema_context {
    struct schema_run *run;
    const struct schema_node *node;
    const struct schema_op *op;
    const struct schema_place *at;
    struct schema_seen *seen; /* NULL: nobody wants to know */
};

typedef bool schema_op_fn(const struct schema_context *c);

schema_op_fn schema_op_type, schema_op_enum, schema_op_const, schema_op_multiple_of,
    schema_op_limit, schema_op_length, schema_op_pattern;
schema_op_fn schema_op_item_count, schema_op_unique_items, schema_op_items, schema_op_contains,
    schema_op_unevaluated_items;
schema_op_fn schema_op_property_count, schema_op_object, schema_op_property_names,
    schema_op_dependent_required, schema_op_dependent_schemas, schema_op_unevaluated_properties;

/* --- errors --- */

/* Whether another error would be kept. Always false when only the verdict is wanted. */
bool schema_collects(const struct schema_run *r);
/* Notes an error at the place of the context; always false, for `return schema_fail(…)`. */
bool schema_fail(const struct schema_context *c, enum schema_keyword keyword, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
bool schema_fail_type(const struct schema_context *c);
bool schema_fail_never(struct schema_run *r, const struct schema_node *n,
                       const struct schema_place *at);
/* No branch fits: says so, and why the closest one does not. */
bool schema_fail_branches(const struct schema_context *c, enum schema_keyword keyword);
/* What was collected, as the caller gets it; `ended` when the collecting run was stopped early. */
void schema_result_fill(struct schema_sink *sink, bool ended, const struct schema_node *root,
                        const struct schema_place *at, struct arena *a, struct schema_result *ret);

/* `string "12"`, `integer 5`, `array of 3 items`: fit for a message. */
const char *schema_describe(struct arena *a, const struct json *v);
/* JSON text of the value, cut to be fit for a message. */
const char *schema_show(struct arena *a, const struct json *v);
/* The text, cut to be fit for a message. */
const char *schema_cut(struct arena *a, struct str s);
/* Names to choose from when a word is not one of them. */
struct schema_names {
    struct str (*at)(const void *context, size_t i);
    bool (*taken)(const void *context, struct str name); /* not what was meant; may be NULL */
    const void *context;
    size_t count;
};
/* " (did you mean 'name'?)" or "". */
const char *schema_suggest(struct arena *a, struct str word, const struct schema_names *names);
struct str schema_node_path(struct arena *a, const struct schema_node *n, const char *keyword);
