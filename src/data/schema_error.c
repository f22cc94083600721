/* SPDX-License-Identifier: MIT
 *
 * Errors: where (two JSON Pointers), what (a sentence for a model and a person), and which branch
 * of anyOf or oneOf was probably meant.
 */
#include "data/schema_priv.h"

#include <stdarg.h>
#include <stdio.h>

/* A message shows so many bytes of a value, and so many of a name. */
enum { SHOWN_BYTES = 60 };
/* So many errors of each branch are looked at to find the closest one. */
enum { BRANCH_FAULTS = 8 };
/* What noting an error costs: branches within branches note many that nobody gets to see, and each
 * takes some hundred bytes. */
enum { FAULT_STEPS = 500 };
/* Candidates looked at for "did you mean", and the longest word worth the trouble. */
enum { SUGGEST_CANDIDATES = 500, SUGGEST_BYTES = 64 };

/* --- values in words --- */

static struct str cut(struct str s)
{
    size_t n = s.len < SHOWN_BYTES ? s.len : SHOWN_BYTES;
    while (n < s.len && n > 0 && ((unsigned char)s.ptr[n] & 0xc0) == 0x80) {
        n--; /* not inside a character */
    }
    return str_slice(s, 0, n);
}

const char *schema_cut(struct arena *a, struct str s)
{
    struct str head = cut(s);
    return head.len == s.len ? arena_dup(a, s) : arena_printf(a, "%.*s…", STR_ARG(head));
}

static const char *show_string(struct arena *a, struct str s)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct str head = cut(s);
    if (json_write_string(head, &text, NULL) != 0) {
        return "a string";
    }
    if (head.len < s.len) {
        text.ptr[text.len - 1] = '\0'; /* the quote moves behind the dots */
        return arena_printf(a, "%s…\"", text.ptr);
    }
    return arena_dup(a, buf_str(&text));
}

const char *schema_show(struct arena *a, const struct json *v)
{
    if (v->type == JSON_STRING) {
        return show_string(a, v->string);
    }
    CLEANUP(buf) struct buf text = BUF_INIT(2 * SHOWN_BYTES);
    if (json_write(v, JSON_COMPACT, &text, NULL) == 0) {
        return arena_dup(a, buf_str(&text));
    }
    return v->type == JSON_ARRAY ? arena_printf(a, "an array of %zu items", v->array.len)
                                 : arena_printf(a, "an object of %zu properties", v->object.len);
}

const char *schema_describe(struct arena *a, const struct json *v)
{
    switch (v->type) {
    case JSON_NULL:
        return "null";
    case JSON_ARRAY:
        return arena_printf(a, "array of %zu item%s", v->array.len, v->array.len == 1 ? "" : "s");
    case JSON_OBJECT:
        return "object";
    case JSON_BOOL:
    case JSON_INT:
    case JSON_REAL:
    case JSON_STRING:
        break;
    }
    return arena_printf(a, "%s %s", json_type_name(v->type), schema_show(a, v));
}

/* Whether both are made of the same bytes: "anme" and "name". */
static bool is_shuffled(struct str a, struct str b)
{
    signed char count[256] = { 0 };
    for (size_t i = 0; i < a.len; i++) {
        count[(unsigned char)a.ptr[i]]++;
    }
    for (size_t i = 0; i < b.len; i++) {
        if (--count[(unsigned char)b.ptr[i]] < 0) {
            return false;
        }
    }
    return a.len == b.len;
}

/* 1 … 3 for words that are easily mistaken for each other, the fewer the closer; 0 for others. In a
 * short word two changes are too many, unless two letters only changed places. */
static size_t likeness(struct str word, struct str name)
{
    if (word.len > SUGGEST_BYTES || name.len > SUGGEST_BYTES || name.len == 0) {
        return 0;
    }
    size_t most = word.len < 10 ? 2 : 3;
    size_t distance = str_distance(word, name, most);
    if (distance > most || (word.len < 3 && distance > 0)) {
        return 0;
    }
    return word.len >= 6 || distance < 2 || is_shuffled(word, name) ? distance : 0;
}

const char *schema_suggest(struct arena *a, struct str word, const struct schema_names *names)
{
    struct str best = STR_EMPTY;
    size_t nearest = SIZE_MAX;
    size_t count = names->count < SUGGEST_CANDIDATES ? names->count : SUGGEST_CANDIDATES;
    for (size_t i = 0; i < count && nearest > 1; i++) {
        struct str name = names->at(names->context, i);
        size_t distance = likeness(word, name);
        if (distance > 0 && distance < nearest &&
            (names->taken == NULL || !names->taken(names->context, name))) {
            best = name;
            nearest = distance;
        }
    }
    return best.len == 0 ? "" : arena_printf(a, " (did you mean '%.*s'?)", STR_ARG(best));
}

/* --- paths --- */

/* Writes before `end`, in front of what is there; returns the new beginning. */
static char *prepend(char *end, struct str s)
{
    memcpy(end - s.len, s.ptr, s.len);
    return end - s.len;
}

struct str schema_node_path(struct arena *a, const struct schema_node *n, const char *keyword)
{
    struct str tail = str_of(keyword != NULL ? arena_printf(a, "/%s", keyword) : "");
    struct str document = n->resource != NULL ? n->resource->document : STR_EMPTY;
    size_t len = tail.len + document.len + 1;
    for (const struct schema_node *i = n; i != NULL; i = i->parent) {
        len += i->path.len;
    }
    char *text = arena_alloc(a, len + 1);
    char *at = prepend(text + len, tail);
    for (const struct schema_node *i = n; i != NULL; i = i->parent) {
        at = prepend(at, i->path);
    }
    if (document.len > 0) {
        at = prepend(prepend(at, STR("#")), document);
    }
    return str_n(at, (size_t)(text + len - at));
}

/* "/a~1b" in front of `at`. */
static char *prepend_key(char *at, struct str key)
{
    for (size_t i = key.len; i > 0; i--) {
        char c = key.ptr[i - 1];
        if (c == '~' || c == '/') {
            *--at = c == '~' ? '0' : '1';
            c = '~';
        }
        *--at = c;
    }
    *--at = '/';
    return at;
}

static struct str place_path(struct arena *a, const struct schema_place *place)
{
    size_t most = 1;
    for (const struct schema_place *p = place; p->up != NULL; p = p->up) {
        most += 1 + (p->key.ptr != NULL ? 2 * p->key.len : 20);
    }
    char *text = arena_alloc(a, most + 1);
    char *at = text + most;
    for (const struct schema_place *p = place; p->up != NULL; p = p->up) {
        char number[24];
        if (p->is_name) {
            continue;
        }
        if (p->key.ptr == NULL) {
            (void)snprintf(number, sizeof number, "%zu", p->index);
        }
        at = prepend_key(at, p->key.ptr != NULL ? p->key : str_of(number));
    }
    return str_n(at, (size_t)(text + most - at));
}

/* --- collecting --- */

bool schema_collects(const struct schema_run *r)
{
    return r->sink != NULL && r->rc == 0 && r->sink->len < r->sink->max;
}

static size_t place_depth(const struct schema_place *at)
{
    size_t depth = 0;
    for (; at->up != NULL; at = at->up) {
        depth++;
    }
    return depth;
}

static struct schema_fault *fault_add(struct schema_run *r)
{
    struct schema_sink *s = r->sink;
    if (s->faults == NULL) {
        s->faults = arena_array(r->arena, s->max, sizeof *s->faults);
    }
    return &s->faults[s->len++];
}

/* The property whose name is being judged, if it is one. */
static const struct schema_place *name_place(const struct schema_place *at)
{
    while (at != NULL && !at->is_name) {
        at = at->up;
    }
    return at;
}

static void note(struct schema_run *r, const struct schema_node *n, const struct schema_place *at,
                 const char *keyword, const char *message)
{
    const struct schema_place *name = name_place(at);
    if (!schema_spend(r, FAULT_STEPS)) {
        return;
    }
    if (name != NULL) {
        message =
            arena_printf(r->arena, "property name '%.*s': %s", STR_ARG(cut(name->key)), message);
        at = name->up;
    }
    struct schema_fault *f = fault_add(r);
    f->depth = place_depth(at);
    f->error = (struct schema_error) {
        .instance_path = place_path(r->arena, at),
        .schema_path = schema_node_path(r->arena, n, keyword),
        .keyword = str_of(keyword != NULL ? keyword : "false"),
        .message = str_of(message),
        .value = at->value,
    };
}

bool schema_fail(const struct schema_context *c, enum schema_keyword keyword, const char *fmt, ...)
{
    if (!schema_collects(c->run)) {
        return false;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    va_list ap;
    va_start(ap, fmt);
    int rc = buf_vprintf(&text, NULL, fmt, ap);
    va_end(ap);
    note(c->run, c->node, c->at, schema_keywords[keyword].name,
         rc == 0 ? arena_dup(c->run->arena, buf_str(&text)) : "is not valid");
    return false;
}

/* "string, number or null"; integer is left out where number is there. */
static const char *name_types(struct arena *a, unsigned types)
{
    const char *names[TYPE_COUNT];
    size_t count = 0;
    if ((types & TYPE_NUMBER) != 0) {
        types &= ~(unsigned)TYPE_INTEGER;
    }
    /* null reads best at the end */
    for (size_t i = 1; i <= TYPE_COUNT; i++) {
        if ((types & 1u << i % TYPE_COUNT) != 0) {
            names[count++] = schema_type_names[i % TYPE_COUNT];
        }
    }
    const char *text = count > 0 ? names[0] : "nothing";
    for (size_t i = 1; i < count; i++) {
        text = arena_printf(a, "%s%s%s", text, i + 1 == count ? " or " : ", ", names[i]);
    }
    return text;
}

static bool fail_types(const struct schema_context *c, enum schema_keyword keyword, unsigned types)
{
    if (!schema_collects(c->run)) {
        return false;
    }
    struct schema_sink *sink = c->run->sink;
    (void)schema_fail(c, keyword, "expected %s, got %s", name_types(c->run->arena, types),
                      schema_describe(c->run->arena, c->at->value));
    if (c->run->rc == 0) {
        sink->faults[sink->len - 1].types = types;
    }
    return false;
}

bool schema_fail_type(const struct schema_context *c)
{
    return fail_types(c, KW_TYPE, c->op->types);
}

bool schema_fail_never(struct schema_run *r, const struct schema_node *n,
                       const struct schema_place *at)
{
    if (schema_collects(r)) {
        note(r, n, at, NULL, at->up == NULL ? "no value is allowed here" : "is not allowed here");
    }
    return false;
}

/* --- the closest branch --- */

/* How far a branch is from what was meant: a wrong type or a wrong constant that tells variants
 * apart says "another branch", a missing or surplus property less so, all else still less. */
static unsigned distance(const struct schema_sink *s, size_t depth)
{
    unsigned sum = 0;
    for (size_t i = 0; i < s->len; i++) {
        const struct schema_fault *f = &s->faults[i];
        size_t below = f->depth - depth;
        bool constant = str_eqc(f->error.keyword, "const") || str_eqc(f->error.keyword, "enum");
        if (f->types != 0 && below == 0) {
            sum += 1000;
        } else if (constant && below <= 1) {
            sum += 100;
        } else if (below == 0) {
            sum += 10;
        } else {
            sum += 3;
        }
    }
    return sum;
}

static bool is_wrong_type(const struct schema_sink *s, size_t depth)
{
    return s->len > 0 && s->faults[0].types != 0 && s->faults[0].depth == depth;
}

static struct schema_sink collect_branch(const struct schema_context *c, size_t i)
{
    struct schema_sink own = { .max = BRANCH_FAULTS };
    struct schema_sink *outer = c->run->sink;
    c->run->sink = &own;
    (void)schema_apply(c->run, c->op->nodes.items[i], c->at, NULL);
    c->run->sink = outer;
    return own;
}

static void pass_on(struct schema_run *r, const struct schema_sink *from)
{
    for (size_t i = 0; i < from->len && schema_collects(r); i++) {
        *fault_add(r) = from->faults[i];
    }
}

bool schema_fail_branches(const struct schema_context *c, enum schema_keyword keyword)
{
    struct schema_run *r = c->run;
    struct schema_sink best = { 0 };
    size_t best_index = 0;
    size_t plausible = 0; /* branches of the right type */
    unsigned types = 0;
    size_t depth = place_depth(c->at);
    for (size_t i = 0; i < c->op->nodes.len && schema_collects(r); i++) {
        struct schema_sink own = collect_branch(c, i);
        if (is_wrong_type(&own, depth)) {
            types |= own.faults[0].types;
        } else {
            plausible++;
        }
        if (i == 0 || distance(&own, depth) < distance(&best, depth)) {
            best = own;
            best_index = i;
        }
    }
    if (!schema_collects(r)) {
        return false;
    }
    if (plausible == 0) {
        return fail_types(c, keyword, types);
    }
    if (plausible > 1) {
        (void)schema_fail(c, keyword,
                          "fits none of the %zu alternatives of %s; the closest is number %zu",
                          c->op->nodes.len, schema_keywords[keyword].name, best_index + 1);
    }
    pass_on(r, &best);
    return false;
}

/* --- results --- */

void schema_result_fill(struct schema_sink *sink, bool ended, const struct schema_node *root,
                        const struct schema_place *at, struct arena *a, struct schema_result *ret)
{
    size_t most = sink->max - 1; /* one more was asked for, to know whether there is one */
    ret->more = sink->len > most || ended;
    ret->len = sink->len < most ? sink->len : most;
    if (ret->len == 0) {
        struct schema_run r = { .arena = a, .sink = sink, .steps = FAULT_STEPS };
        sink->len = 0;
        note(&r, root, at, NULL, "is not valid, but to say why takes too many steps");
        ret->len = 1;
    }
    ret->errors = arena_array(a, ret->len, sizeof *ret->errors);
    for (size_t i = 0; i < ret->len; i++) {
        ret->errors[i] = sink->faults[i].error;
    }
}

int schema_error_write(const struct schema_error *error, struct buf *out, struct err *e)
{
    int rc = buf_append(out, error->instance_path, e);
    if (rc == 0 && error->instance_path.len > 0) {
        rc = buf_append(out, STR(": "), e);
    }
    return rc != 0 ? rc : buf_append(out, error->message, e);
}

int schema_result_write(const struct schema_result *result, struct buf *out, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < result->len && rc == 0; i++) {
        rc = schema_error_write(&result->errors[i], out, e);
        if (rc == 0) {
            rc = buf_append_c(out, '\n', e);
        }
    }
    if (rc == 0 && result->more) {
        rc = buf_append(out, STR("… and more\n"), e);
    }
    return rc;
}
