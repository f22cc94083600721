/* SPDX-License-Identifier: MIT
 *
 * Which tools of an upstream MCP server are offered. Its list is foreign text that a model will
 * read: names are held to a small alphabet, descriptions are cut, and what was approved once is
 * known by its hash.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/macro.h"
#include "data/schema.h"
#include "mcp/mcp_fields.h"
#include "tools/tool_mcp_priv.h"

#define UPSTREAM_NAME_MAX 128 /* as the protocol has it */
#define SCHEMA_SIZE_MAX   ((size_t)64 << 10)

/* --- characters --- */

/* Length of the UTF-8 sequence at i; the text is valid. */
static size_t sequence(struct str s, size_t i)
{
    unsigned char c = (unsigned char)s.ptr[i];
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

static uint32_t code_point(struct str s, size_t i, size_t n)
{
    uint32_t cp = (unsigned char)s.ptr[i];
    cp = n == 1 ? cp : cp & (0x7fu >> n);
    for (size_t k = 1; k < n && i + k < s.len; k++) {
        cp = cp << 6 | ((unsigned char)s.ptr[i + k] & 0x3f);
    }
    return cp;
}

/* Characters that smuggle: controls, marks that turn the direction of text, tags. No schema needs
 * them. */
static bool is_foul(uint32_t cp)
{
    return (cp < 0x20 && cp != '\n' && cp != '\t' && cp != '\r') || (cp >= 0x7f && cp < 0xa0) ||
           (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) ||
           (cp >= 0xe0000 && cp <= 0xe0fff);
}

/* These, and all that nobody sees: text that a person approves must be the text that a model
 * reads. */
static bool is_hidden(uint32_t cp)
{
    return is_foul(cp) || cp == '\r' || cp == 0xad || cp == 0x61c ||
           (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2060 && cp <= 0x206f) ||
           (cp >= 0xfe00 && cp <= 0xfe0f) || cp == 0xfeff;
}

static bool has_foul(struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = sequence(text, i);
        if (is_foul(code_point(text, i, n))) {
            return true;
        }
        i += n;
    }
    return false;
}

/* --- pins --- */

static int by_key(const void *a, const void *b)
{
    const struct json_member *x = a, *y = b;
    return str_cmp(x->key, y->key);
}

/* Sorts the keys of all objects, or says whether some text in them is foul. Not recursive: how deep
 * a server nests is its business, our stack is ours. */
static bool walk(struct json *root, bool sort)
{
    struct json **stack = NULL;
    size_t len = 0, cap = 0;
    struct json *v = root;
    bool foul = false;
    while (v != NULL) {
        size_t n = v->type == JSON_ARRAY ? v->array.len : 0;
        if (v->type == JSON_OBJECT) {
            n = v->object.len;
        }
        if (sort && v->type == JSON_OBJECT && n > 1) {
            qsort(v->object.members, n, sizeof *v->object.members, by_key);
        }
        if (len + n > cap) {
            cap = (len + n) * 2;
            stack = xrealloc(stack, cap * sizeof *stack);
        }
        foul = foul || (v->type == JSON_STRING && has_foul(v->string));
        for (size_t i = 0; i < n; i++) {
            bool array = v->type == JSON_ARRAY;
            foul = foul || (!array && has_foul(v->object.members[i].key));
            stack[len++] = array ? v->array.items[i] : v->object.members[i].value;
        }
        v = len > 0 ? stack[--len] : NULL;
    }
    free(stack);
    return foul;
}

void mcp_pin(const struct json *tool, char out[SHA256_HEX])
{
    static const char *const keys[] = { "description", "inputSchema", "name", "outputSchema" };
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *some = json_object(a);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct json *v = json_get(tool, keys[i]);
        if (v != NULL) {
            json_setc(a, some, keys[i], json_copy(a, v));
        }
    }
    (void)walk(some, true);
    (void)!json_write(some, JSON_COMPACT, &text, NULL); /* a list is bounded far below */
    sha256_hex(buf_str(&text), out);
}

/* --- names and descriptions --- */

bool mcp_tool_name(struct str upstream, struct str prefix, char out[TOOL_NAME_MAX + 1])
{
    size_t n = 0;
    if (upstream.len == 0 || upstream.len > UPSTREAM_NAME_MAX ||
        prefix.len + upstream.len > TOOL_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < prefix.len; i++) {
        out[n++] = prefix.ptr[i];
    }
    for (size_t i = 0; i < upstream.len; i++) {
        char c = upstream.ptr[i];
        bool upper = c >= 'A' && c <= 'Z';
        bool same = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!upper && !same && c != '.') {
            return false;
        }
        out[n++] = (char)(upper ? c - 'A' + 'a' : c == '.' ? '_' : c);
    }
    out[n] = '\0';
    return true;
}

/* A name for people, whatever it is. */
static struct str shown(struct arena *a, struct str name)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < name.len && i < UPSTREAM_NAME_MAX; i++) {
        char c = name.ptr[i];
        buf_addf(&text, "%c", c > 0x20 && c < 0x7f ? c : '?');
    }
    return arena_str(a, buf_str(&text));
}

static struct str clean_description(struct arena *a, struct str text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    size_t characters = 0;
    for (size_t i = 0; i < text.len && characters < TOOLSERVER_DESCRIPTION_MAX;) {
        size_t n = sequence(text, i);
        if (!is_hidden(code_point(text, i, n))) {
            buf_add(&out, str_slice(text, i, i + n));
            characters++;
        }
        i += n;
    }
    return arena_str(a, str_trim(buf_str(&out)));
}

/* --- one tool --- */

static bool has_word(const struct json *list, struct str word)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (str_eq(json_str(json_item(list, i), STR_EMPTY), word)) {
            return true;
        }
    }
    return false;
}

static const struct served *find_served(const struct served_list *l, struct str name)
{
    for (size_t i = 0; i < l->len; i++) {
        if (str_eq(l->items[i].name, name)) {
            return &l->items[i];
        }
    }
    return NULL;
}

/* NULL, or why not. */
static const char *choose_name(struct arena *a, const struct toolserver_plan *plan,
                               const struct served_list *so_far, struct served *s)
{
    char out[TOOL_NAME_MAX + 1];
    const struct json *given = json_find(plan->rename, s->upstream);
    bool renamed = json_is(given, JSON_STRING);
    struct str from = renamed ? given->string : s->upstream;
    if (!mcp_tool_name(from, renamed ? STR_EMPTY : plan->prefix, out)) {
        return "its name cannot be one of ours (1 to 64 letters, digits, _ - and .)";
    }
    s->name = arena_str(a, str_of(out));
    return find_served(so_far, s->name) != NULL ? "another tool has this name already: rename one"
                                                : NULL;
}

static const char *check_pin(struct arena *a, const struct toolserver_plan *plan,
                             const struct served *s)
{
    struct str wanted = json_str(json_find(plan->pin, s->upstream), STR_EMPTY);
    if (plan->pin == NULL || str_eqc(wanted, s->pin)) {
        return NULL;
    }
    if (wanted.len == 0) {
        return arena_printf(a, "it is not pinned; what it says now has the hash %s", s->pin);
    }
    return arena_printf(a, "its description or schema is not what was approved: the hash is %s",
                        s->pin);
}

static const char *compile(struct arena *a, const struct json *schema, const char *what,
                           struct schema **ret)
{
    struct err e = { 0 };
    const struct json *type = json_get(schema, "type");
    if (!json_is(schema, JSON_OBJECT)) {
        return arena_printf(a, "%s is no object", what);
    }
    if (strcmp(what, "inputSchema") == 0 && !str_eqc(json_str(type, STR_EMPTY), "object")) {
        return "inputSchema is not of type object";
    }
    if (schema_compile(schema, NULL, ret, &e) < 0) {
        return arena_printf(a, "%s: %s", what, e.msg);
    }
    CLEANUP(buf) struct buf text = BUF_INIT(SCHEMA_SIZE_MAX);
    if (json_write(schema, JSON_COMPACT, &text, NULL) < 0) {
        return arena_printf(a, "%s is larger than %zu bytes", what, SCHEMA_SIZE_MAX);
    }
    return walk(json_copy(a, schema), false)
               ? arena_printf(a, "%s has characters that hide something", what)
               : NULL;
}

/* NULL, or why it is not offered. */
static const char *take(struct arena *a, const struct toolserver_plan *plan,
                        const struct json *listed, struct served_list *so_far)
{
    struct served *s = &so_far->items[so_far->len];
    struct tool *t = &so_far->tools[so_far->len];
    struct err e = { 0 };
    *t = (struct tool) { 0 };
    const struct json *output = json_get(listed, "outputSchema");
    mcp_pin(listed, s->pin);
    const char *why = choose_name(a, plan, so_far, s);
    why = why != NULL ? why : check_pin(a, plan, s);
    why = why != NULL ? why : compile(a, json_get(listed, "inputSchema"), "inputSchema", &t->input);
    if (why == NULL && plan->url != NULL &&
        mcp_fields_check(json_get(listed, "inputSchema"), &e) < 0) {
        why = arena_dup(a, str_of(e.msg));
    }
    if (why == NULL && output != NULL) {
        why = compile(a, output, "outputSchema", &t->output);
    }
    if (why != NULL) {
        t->input = schema_free(t->input);
        t->output = schema_free(t->output);
        return why;
    }
    t->name = s->name;
    t->description = clean_description(a, json_str(json_get(listed, "description"), STR_EMPTY));
    t->input_schema = s->schema = json_copy(a, json_get(listed, "inputSchema"));
    t->output_schema = output == NULL ? NULL : json_copy(a, output);
    t->timeout = plan->timeout;
    t->max_output = plan->max_output;
    t->self = s;
    so_far->len++;
    return NULL;
}

/* --- lists --- */

static const struct json *find_listed(const struct json *list, struct str upstream)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *name = json_get(json_item(list, i), "name");
        if (json_is(name, JSON_STRING) && str_eq(name->string, upstream)) {
            return json_item(list, i);
        }
    }
    return NULL;
}

static void report_missing(struct arena *a, const struct json *names, const struct json *list,
                           const char *key, served_report *report, void *arg)
{
    for (size_t i = 0; i < json_len(names); i++) {
        struct str name = json_is(names, JSON_OBJECT) ? names->object.members[i].key
                                                      : json_str(json_item(names, i), STR_EMPTY);
        if (find_listed(list, name) == NULL) {
            report(arg, TOOLSERVER_MISSING, shown(a, name),
                   arena_printf(a, "'%s' names it, and the server has no such tool", key));
        }
    }
}

void served_choose(struct arena *a, const struct toolserver_plan *plan, const struct json *list,
                   struct served_list *ret, served_report *report, void *arg)
{
    size_t n = json_len(list);
    *ret = (struct served_list) { .tools = arena_array(a, n + 1, sizeof(struct tool)),
                                  .items = arena_array(a, n + 1, sizeof(struct served)) };
    for (size_t i = 0; i < n; i++) {
        const struct json *listed = json_item(list, i);
        const struct json *name = json_get(listed, "name");
        struct str upstream = json_str(name, STR_EMPTY);
        if (plan->tools != NULL && !has_word(plan->tools, upstream)) {
            continue;
        }
        ret->items[ret->len].upstream = arena_str(a, upstream);
        const char *why = take(a, plan, listed, ret);
        if (why != NULL) {
            report(arg, TOOLSERVER_REFUSED, shown(a, upstream), why);
        }
    }
    report_missing(a, plan->tools, list, "tools", report, arg);
    report_missing(a, plan->rename, list, "rename", report, arg);
    report_missing(a, plan->pin, list, "pin", report, arg);
}

void served_compare(struct arena *a, struct served_list *served, const struct json *list,
                    served_report *report, void *arg)
{
    for (size_t i = 0; i < served->len; i++) {
        struct served *s = &served->items[i];
        const struct json *listed = find_listed(list, s->upstream);
        char pin[SHA256_HEX] = "";
        if (s->refused != NULL) {
            continue;
        }
        if (listed != NULL) {
            mcp_pin(listed, pin);
        }
        if (strcmp(pin, s->pin) != 0) {
            s->refused = listed == NULL
                             ? "the server does not have it any more"
                             : arena_printf(a,
                                            "the server describes it otherwise than when it was "
                                            "approved: the hash was %s and is %s",
                                            s->pin, pin);
            report(arg, TOOLSERVER_CHANGED, s->name, s->refused);
        }
    }
}
