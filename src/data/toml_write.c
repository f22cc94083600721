/* SPDX-License-Identifier: MIT
 *
 * struct json as TOML. Within a table the plain values come first, since everything behind a header
 * belongs to it; then one section per sub-table and per element of an array of tables. What stands
 * inside an array of mixed content is written inline.
 */
#include "data/toml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/toml_priv.h"

/* The trees we write were read by a bounded parser or made by us; this only keeps a cycle in a
 * faulty tree from eating the stack. */
enum { MAX_DEPTH = 1000 };

/* The way from the root to a value, for headers and messages; lives on the stack of the recursion.
 */
struct step {
    const struct step *up;
    struct str key;
    size_t index; /* of an array element when key.ptr is NULL */
    size_t depth;
};

struct writer {
    struct buf *out;
    struct err *e;
    bool tagged;
    bool quiet_start; /* nothing written yet: no blank line before the first header */
};

/* Tables of the tagged form hold objects and arrays only, so a string tells a scalar. */
bool toml_is_tagged(const struct json *v)
{
    return json_is(v, JSON_OBJECT) && v->object.len == 2 &&
           json_is(json_get(v, "type"), JSON_STRING) && json_is(json_get(v, "value"), JSON_STRING);
}

static int add(struct writer *w, const char *text)
{
    return buf_append(w->out, str_of(text), w->e);
}

static int write_key(struct str key, struct buf *out, struct err *e);

static void path_text(const struct step *s, struct buf *out)
{
    if (s == NULL) {
        return;
    }
    path_text(s->up, out);
    if (s->key.ptr == NULL) {
        buf_addf(out, "[%zu]", s->index);
        return;
    }
    buf_adds(out, out->len > 0 ? "." : "");
    if (write_key(s->key, out, NULL) < 0) {
        buf_adds(out, "?");
    }
}

static int refuse(struct writer *w, const struct step *at, const char *why)
{
    CLEANUP(buf) struct buf path = BUF_INIT(BUF_TEXT);
    path_text(at, &path);
    return ERR(w->e, ERR_UNSUPPORTED, "'%.*s' cannot be written as TOML: %s",
               (int)(path.len > 200 ? 200 : path.len), path.len > 0 ? path.ptr : "", why);
}

/* --- strings and keys --- */

static int write_quoted(struct str s, struct buf *out, struct err *e)
{
    static const char letters[] = "btnfr\"\\";
    static const char values[] = "\b\t\n\f\r\"\\";
    int r = buf_append_c(out, '"', e);
    size_t run = 0;
    for (size_t i = 0; i < s.len && r == 0; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        const char *hit = c > 0 ? strchr(values, c) : NULL;
        if (hit == NULL && c >= 0x20 && c != 0x7f) {
            continue;
        }
        r = buf_append(out, str_slice(s, run, i), e);
        run = i + 1;
        if (r == 0) {
            r = hit != NULL ? buf_printf(out, e, "\\%c", letters[hit - values])
                            : buf_printf(out, e, "\\u%04X", c);
        }
    }
    if (r == 0) {
        r = buf_append(out, str_slice(s, run, s.len), e);
    }
    return r < 0 ? r : buf_append_c(out, '"', e);
}

static bool is_bare_key(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-') {
            return false;
        }
    }
    return key.len > 0;
}

static int write_key(struct str key, struct buf *out, struct err *e)
{
    if (!str_is_utf8(key)) {
        return ERR(e, ERR_UNSUPPORTED, "a key that is not UTF-8 cannot be written as TOML");
    }
    return is_bare_key(key) ? buf_append(out, key, e) : write_quoted(key, out, e);
}

/* --- scalars --- */

/* The shortest form that reads back equal; a float shows a point or an exponent. */
static int write_real(struct writer *w, double d)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d) {
            break;
        }
    }
    int r = add(w, text);
    return r < 0 || strpbrk(text, ".en") != NULL ? r : add(w, ".0");
}

/* Letters, digits and what dates and numbers are made of: nothing that could end the value. */
static bool is_literal(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (c == '\0' || strchr("+-.:", c) == NULL)) {
            return false;
        }
    }
    return text.len > 0;
}

static int write_tagged(struct writer *w, const struct step *at, const struct json *v)
{
    struct str type = json_str(json_get(v, "type"), STR_EMPTY);
    struct str text = json_str(json_get(v, "value"), STR_EMPTY);
    if (str_eqc(type, "string")) {
        return str_is_utf8(text) ? write_quoted(text, w->out, w->e)
                                 : refuse(w, at, "a string that is not UTF-8");
    }
    if (str_eqc(type, "float")) {
        /* "inf", "nan" and their signed forms are read by strtod too. */
        return write_real(w, strtod(json_cstring(json_get(v, "value"), "nan"), NULL));
    }
    return is_literal(text) ? buf_append(w->out, text, w->e)
                            : refuse(w, at, "not the text of a scalar");
}

static int write_scalar(struct writer *w, const struct step *at, const struct json *v)
{
    switch (v->type) {
    case JSON_NULL:
        return refuse(w, at, "null has no TOML form");
    case JSON_BOOL:
        return add(w, v->boolean ? "true" : "false");
    case JSON_INT:
        return buf_printf(w->out, w->e, "%lld", (long long)v->integer);
    case JSON_REAL:
        return isfinite(v->real) ? write_real(w, v->real) : refuse(w, at, "a number not finite");
    case JSON_STRING:
        return str_is_utf8(v->string) ? write_quoted(v->string, w->out, w->e)
                                      : refuse(w, at, "a string that is not UTF-8");
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return refuse(w, at, "not a scalar");
}

/* --- inline --- */

static int write_value(struct writer *w, const struct step *at, const struct json *v);

static int write_key_of(struct writer *w, const struct step *at)
{
    return str_is_utf8(at->key) ? write_key(at->key, w->out, w->e)
                                : refuse(w, at, "a key that is not UTF-8");
}

static int write_array(struct writer *w, const struct step *at, const struct json *v)
{
    int r = add(w, "[");
    for (size_t i = 0; i < v->array.len && r == 0; i++) {
        struct step here = { .up = at, .index = i, .depth = at->depth + 1 };
        r = i == 0 ? 0 : add(w, ", ");
        if (r == 0) {
            r = write_value(w, &here, v->array.items[i]);
        }
    }
    return r < 0 ? r : add(w, "]");
}

static int write_pair(struct writer *w, const struct step *here, const struct json *v)
{
    int r = write_key_of(w, here);
    if (r == 0) {
        r = add(w, " = ");
    }
    return r < 0 ? r : write_value(w, here, v);
}

static int write_inline_table(struct writer *w, const struct step *at, const struct json *v)
{
    if (v->object.len == 0) {
        return add(w, "{}");
    }
    int r = add(w, "{ ");
    for (size_t i = 0; i < v->object.len && r == 0; i++) {
        const struct json_member *m = &v->object.members[i];
        struct step here = { .up = at, .key = m->key, .depth = at->depth + 1 };
        r = i == 0 ? 0 : add(w, ", ");
        if (r == 0) {
            r = write_pair(w, &here, m->value);
        }
    }
    return r < 0 ? r : add(w, " }");
}

static int write_value(struct writer *w, const struct step *at, const struct json *v)
{
    if (at->depth > MAX_DEPTH) {
        return ERR(w->e, ERR_LIMIT, "nested deeper than %d levels", MAX_DEPTH);
    }
    if (w->tagged && toml_is_tagged(v)) {
        return write_tagged(w, at, v);
    }
    if (v->type == JSON_ARRAY) {
        return write_array(w, at, v);
    }
    return v->type == JSON_OBJECT ? write_inline_table(w, at, v) : write_scalar(w, at, v);
}

/* --- sections --- */

static bool is_table(const struct writer *w, const struct json *v)
{
    return v->type == JSON_OBJECT && !(w->tagged && toml_is_tagged(v));
}

static bool is_table_array(const struct writer *w, const struct json *v)
{
    if (v->type != JSON_ARRAY || v->array.len == 0) {
        return false;
    }
    for (size_t i = 0; i < v->array.len; i++) {
        if (!is_table(w, v->array.items[i])) {
            return false;
        }
    }
    return true;
}

static bool is_section(const struct writer *w, const struct json *v)
{
    return is_table(w, v) || is_table_array(w, v);
}

/* a.b.c without the indices: a header below an array of tables means its last element. */
static int write_path(struct writer *w, const struct step *at)
{
    const struct step *up = at->up;
    while (up != NULL && up->key.ptr == NULL) {
        up = up->up;
    }
    int r = 0;
    if (up != NULL) {
        r = write_path(w, up);
        if (r == 0) {
            r = add(w, ".");
        }
    }
    return r < 0 ? r : write_key_of(w, at);
}

static int write_header(struct writer *w, const struct step *at, bool element)
{
    int r = w->quiet_start ? 0 : add(w, "\n");
    w->quiet_start = false;
    if (r == 0) {
        r = add(w, element ? "[[" : "[");
    }
    if (r == 0) {
        r = write_path(w, at);
    }
    return r < 0 ? r : add(w, element ? "]]\n" : "]\n");
}

static int write_section(struct writer *w, const struct step *at, const struct json *v);

static int write_plain_members(struct writer *w, const struct step *at, const struct json *v)
{
    for (size_t i = 0; i < v->object.len; i++) {
        const struct json_member *m = &v->object.members[i];
        if (is_section(w, m->value)) {
            continue;
        }
        struct step here = { .up = at, .key = m->key, .depth = at == NULL ? 1 : at->depth + 1 };
        int r = write_pair(w, &here, m->value);
        if (r == 0) {
            r = add(w, "\n");
        }
        if (r < 0) {
            return r;
        }
        w->quiet_start = false;
    }
    return 0;
}

static int write_members(struct writer *w, const struct step *at, const struct json *v)
{
    int r = write_plain_members(w, at, v);
    for (size_t i = 0; i < v->object.len && r == 0; i++) {
        const struct json_member *m = &v->object.members[i];
        struct step here = { .up = at, .key = m->key, .depth = at == NULL ? 1 : at->depth + 1 };
        if (is_section(w, m->value)) {
            r = write_section(w, &here, m->value);
        }
    }
    return r;
}

static bool needs_header(const struct writer *w, const struct json *table)
{
    for (size_t i = 0; i < table->object.len; i++) {
        if (!is_section(w, table->object.members[i].value)) {
            return true;
        }
    }
    return table->object.len == 0;
}

static int write_section(struct writer *w, const struct step *at, const struct json *v)
{
    if (at->depth > MAX_DEPTH) {
        return ERR(w->e, ERR_LIMIT, "nested deeper than %d levels", MAX_DEPTH);
    }
    if (v->type == JSON_OBJECT) {
        int r = needs_header(w, v) ? write_header(w, at, false) : 0;
        return r < 0 ? r : write_members(w, at, v);
    }
    for (size_t i = 0; i < v->array.len; i++) {
        struct step here = { .up = at, .index = i, .depth = at->depth + 1 };
        int r = write_header(w, at, true);
        if (r == 0) {
            r = write_members(w, &here, v->array.items[i]);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int toml_write(const struct json *v, const struct toml_opts *opts, struct buf *out, struct err *e)
{
    struct writer w = {
        .out = out,
        .e = e,
        .tagged = opts != NULL && opts->tagged,
        .quiet_start = true,
    };
    if (v == NULL || !is_table(&w, v)) {
        return ERR(e, ERR_UNSUPPORTED, "a TOML document must be an object, not %s",
                   v == NULL ? "nothing" : json_type_name(v->type));
    }
    size_t start = out->len;
    int r = write_members(&w, NULL, v);
    if (r < 0 && out->ptr != NULL) {
        out->len = start;
        out->ptr[start] = '\0';
    }
    return r;
}
