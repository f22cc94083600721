/* SPDX-License-Identifier: MIT
 *
 * Values of a request as header fields. What a server's schema asks for is its own wish: names are
 * held to the syntax of fields, values are encoded, so that neither can say something else.
 */
#include "mcp/mcp_fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/macro.h"

#define HEADER     "x-mcp-header"
#define PREFIX     "=?base64?"
#define SUFFIX     "?="
#define NAME_MAX_  64
#define DEPTH_MAX  32
#define VALUES_MAX 100000 /* of a schema */

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!isalnum((unsigned char)c) && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return s.len > 0 && s.len <= NAME_MAX_;
}

/* --- out --- */

static bool is_safe(struct str s)
{
    bool sentinel = str_starts(s, STR(PREFIX)) && str_ends(s, STR(SUFFIX));
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < 0x20 || s.ptr[i] > 0x7e) {
            return false;
        }
    }
    return !sentinel && str_trim(s).len == s.len;
}

static struct str encode(struct arena *a, struct str value)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (is_safe(value)) {
        return arena_str(a, value);
    }
    buf_adds(&out, PREFIX);
    if (base64_write(value, &out, NULL) < 0) {
        return STR_EMPTY;
    }
    buf_adds(&out, SUFFIX);
    return arena_str(a, buf_str(&out));
}

/* ptr NULL: not a value that a field can say. */
static struct str text_of(struct arena *a, const struct json *value)
{
    if (json_is(value, JSON_STRING)) {
        return encode(a, value->string);
    }
    if (json_is(value, JSON_BOOL)) {
        return value->boolean ? STR("true") : STR("false");
    }
    if (json_is(value, JSON_INT)) {
        return str_of(arena_printf(a, "%lld", (long long)value->integer));
    }
    return (struct str) { 0 };
}

struct writer {
    struct arena *a;
    struct http_field *out;
    size_t len;
};

static void add_params(struct writer *w, const struct json *schema, const struct json *arguments,
                       int depth)
{
    const struct json *properties = json_get(schema, "properties");
    size_t n = json_is(properties, JSON_OBJECT) && depth < DEPTH_MAX ? properties->object.len : 0;
    for (size_t i = 0; i < n; i++) {
        const struct json_member *p = &properties->object.members[i];
        const struct json *value = json_find(arguments, p->key);
        struct str header = json_str(json_get(p->value, HEADER), STR_EMPTY);
        struct str text = is_token(header) ? text_of(w->a, value) : (struct str) { 0 };
        if (text.ptr != NULL && w->len < MCP_FIELDS_MAX) {
            const char *name = arena_printf(w->a, "Mcp-Param-%.*s", STR_ARG(header));
            w->out[w->len++] = (struct http_field) { str_of(name), text };
        } else if (json_is(value, JSON_OBJECT)) {
            add_params(w, p->value, value, depth + 1);
        }
    }
}

size_t mcp_fields(struct arena *a, const struct mcp_outgoing *m,
                  struct http_field out[MCP_FIELDS_MAX])
{
    struct writer w = { .a = a, .out = out };
    if (!m->stateless) {
        return 0;
    }
    out[w.len++] = (struct http_field) { STR("Mcp-Method"), encode(a, m->method) };
    if (m->name.len > 0) {
        out[w.len++] = (struct http_field) { STR("Mcp-Name"), encode(a, m->name) };
    }
    add_params(&w, m->schema, m->arguments, 0);
    return w.len;
}

/* --- the check of a schema --- */

struct census {
    struct str names[MCP_FIELDS_MAX];
    size_t len;
};

static bool same_name(struct str a, struct str b)
{
    bool same = a.len == b.len;
    for (size_t i = 0; same && i < a.len; i++) {
        same = tolower((unsigned char)a.ptr[i]) == tolower((unsigned char)b.ptr[i]);
    }
    return same;
}

static int count_one(struct census *c, const struct json *property, struct str header,
                     struct err *e)
{
    struct str type = json_str(json_get(property, "type"), STR_EMPTY);
    if (!is_token(header)) {
        return ERR(e, ERR_CONFIG, HEADER ": '%.*s' is not a valid field name",
                   STR_ARG(str_slice(header, 0, 40)));
    }
    if (!str_eqc(type, "string") && !str_eqc(type, "integer") && !str_eqc(type, "boolean")) {
        return ERR(e, ERR_CONFIG, HEADER ": '%.*s' has a type that a field cannot carry",
                   STR_ARG(header));
    }
    for (size_t i = 0; i < c->len; i++) {
        if (same_name(c->names[i], header)) {
            return ERR(e, ERR_CONFIG, HEADER ": '%.*s' is there twice", STR_ARG(header));
        }
    }
    if (c->len >= MCP_FIELDS_MAX - 2) {
        return ERR(e, ERR_CONFIG, HEADER ": more than %d", MCP_FIELDS_MAX - 2);
    }
    c->names[c->len++] = header;
    return 0;
}

static int count_reachable(struct census *c, const struct json *schema, int depth, struct err *e)
{
    const struct json *properties = json_get(schema, "properties");
    size_t n = json_is(properties, JSON_OBJECT) && depth < DEPTH_MAX ? properties->object.len : 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct json *property = properties->object.members[i].value;
        const struct json *header = json_get(property, HEADER);
        rc = header == NULL ? 0 : count_one(c, property, json_str(header, STR_EMPTY), e);
        rc = rc < 0 ? rc : count_reachable(c, property, depth + 1, e);
    }
    return rc;
}

/* All of them, wherever they are; values of schemas that only look like it count too. */
static size_t count_all(const struct json *schema)
{
    const struct json **stack = xcalloc(VALUES_MAX, sizeof *stack);
    size_t len = 0, found = 0;
    const struct json *v = schema;
    while (v != NULL) {
        size_t n = v->type == JSON_ARRAY    ? v->array.len
                   : v->type == JSON_OBJECT ? v->object.len
                                            : 0;
        found += json_is(json_get(v, HEADER), JSON_STRING) ? 1 : 0;
        for (size_t i = 0; i < n && len < VALUES_MAX; i++) {
            stack[len++] = v->type == JSON_ARRAY ? v->array.items[i] : v->object.members[i].value;
        }
        v = len > 0 ? stack[--len] : NULL;
    }
    free(stack);
    return found;
}

int mcp_fields_check(const struct json *schema, struct err *e)
{
    struct census c = { 0 };
    int rc = count_reachable(&c, schema, 0, e);
    if (rc == 0 && count_all(schema) != c.len) {
        return ERR(e, ERR_CONFIG, HEADER " at a place that is not reached by properties alone");
    }
    return rc;
}
