/* SPDX-License-Identifier: MIT
 *
 * Taking members out of JSON objects so that the rest is known, and putting them back.
 */
#include "llm/codec_priv.h"

#include <string.h>

void llm_fields_init(struct llm_fields *f, struct arena *a, const struct json *object)
{
    size_t n = json_is(object, JSON_OBJECT) ? json_len(object) : 0;
    *f = (struct llm_fields) { .a = a, .object = n > 0 ? object : NULL };
    f->taken = arena_array(a, n, sizeof *f->taken);
}

static size_t find_member(const struct llm_fields *f, const char *key)
{
    size_t n = json_len(f->object);
    for (size_t i = 0; i < n; i++) {
        if (str_eqc(f->object->object.members[i].key, key)) {
            return i;
        }
    }
    return n;
}

struct json *llm_take(struct llm_fields *f, const char *key)
{
    size_t i = find_member(f, key);
    if (i == json_len(f->object)) {
        return NULL;
    }
    f->taken[i] = true;
    return f->object->object.members[i].value;
}

struct json *llm_take_type(struct llm_fields *f, const char *key, enum json_type type)
{
    size_t i = find_member(f, key);
    if (i == json_len(f->object) || !json_is(f->object->object.members[i].value, type)) {
        return NULL;
    }
    f->taken[i] = true;
    return f->object->object.members[i].value;
}

/* An empty string is left where it is: a writer that omits empty ones must not lose it. */
struct str llm_take_str(struct llm_fields *f, const char *key)
{
    size_t i = find_member(f, key);
    if (i == json_len(f->object)) {
        return STR_EMPTY;
    }
    struct str s = json_str(f->object->object.members[i].value, STR_EMPTY);
    f->taken[i] = f->taken[i] || s.len > 0;
    return s;
}

bool llm_take_bool(struct llm_fields *f, const char *key, bool *ret)
{
    const struct json *v = llm_take_type(f, key, JSON_BOOL);
    if (v != NULL) {
        *ret = v->boolean;
    }
    return v != NULL;
}

bool llm_take_true(struct llm_fields *f, const char *key)
{
    size_t i = find_member(f, key);
    if (i == json_len(f->object) || !json_bool(f->object->object.members[i].value, false)) {
        return false;
    }
    f->taken[i] = true;
    return true;
}

bool llm_take_int(struct llm_fields *f, const char *key, int64_t *ret)
{
    const struct json *v = llm_take_type(f, key, JSON_INT);
    if (v != NULL) {
        *ret = v->integer;
    }
    return v != NULL;
}

bool llm_take_real(struct llm_fields *f, const char *key, double *ret)
{
    const struct json *v = llm_take_type(f, key, JSON_REAL);
    if (v == NULL) {
        v = llm_take_type(f, key, JSON_INT);
    }
    if (v != NULL) {
        *ret = json_real(v, 0);
    }
    return v != NULL;
}

bool llm_take_word(struct llm_fields *f, const char *key, const char *word)
{
    size_t i = find_member(f, key);
    if (i == json_len(f->object) ||
        !str_eqc(json_str(f->object->object.members[i].value, STR_EMPTY), word)) {
        return false;
    }
    f->taken[i] = true;
    return true;
}

bool llm_open(struct llm_fields *f, const char *key, struct llm_fields *ret)
{
    size_t i = find_member(f, key);
    const struct json *v = i == json_len(f->object) ? NULL : f->object->object.members[i].value;
    if (!json_is(v, JSON_OBJECT) || json_len(v) == 0) {
        return false;
    }
    f->taken[i] = true;
    llm_fields_init(ret, f->a, v);
    return true;
}

void llm_close(struct llm_fields *f, const char *key, struct llm_fields *inner)
{
    llm_keep(f, key, llm_rest(inner));
}

void llm_keep(struct llm_fields *f, const char *key, struct json *rest)
{
    if (rest == NULL) {
        return;
    }
    if (f->rest == NULL) {
        f->rest = json_object(f->a);
    }
    json_setc(f->a, f->rest, key, rest);
}

struct json *llm_rest(struct llm_fields *f)
{
    struct json *rest = f->rest;
    for (size_t i = 0; i < json_len(f->object); i++) {
        const struct json_member *m = &f->object->object.members[i];
        if (f->taken[i]) {
            continue;
        }
        if (rest == NULL) {
            rest = json_object(f->a);
        }
        json_set(f->a, rest, m->key, m->value);
    }
    return rest;
}

void llm_put(struct arena *a, struct json *object, const char *key, struct json *value)
{
    if (value != NULL) {
        json_setc(a, object, key, value);
    }
}

void llm_put_str(struct arena *a, struct json *object, const char *key, struct str s)
{
    if (s.len > 0) {
        json_setc(a, object, key, json_string(a, s));
    }
}

void llm_set_str(struct arena *a, struct json *object, const char *key, struct str s)
{
    json_setc(a, object, key, json_string(a, s.ptr == NULL ? STR_EMPTY : s));
}

void llm_set_cstr(struct arena *a, struct json *object, const char *key, const char *s)
{
    json_setc(a, object, key, json_cstr(a, s));
}

void llm_set_int(struct arena *a, struct json *object, const char *key, int64_t i)
{
    json_setc(a, object, key, json_integer(a, i));
}

void llm_set_bool(struct arena *a, struct json *object, const char *key, bool b)
{
    json_setc(a, object, key, json_boolean(a, b));
}

struct json *llm_set_object(struct arena *a, struct json *object, const char *key)
{
    struct json *v = json_object(a);
    json_setc(a, object, key, v);
    return v;
}

struct json *llm_set_array(struct arena *a, struct json *object, const char *key)
{
    struct json *v = json_array(a);
    json_setc(a, object, key, v);
    return v;
}

/* As deep as leftovers nest, which the readers decide: two or three. */
void llm_put_rest(struct arena *a, struct json *object, const struct json *extra)
{
    for (size_t i = 0; json_is(extra, JSON_OBJECT) && i < extra->object.len; i++) {
        const struct json_member *m = &extra->object.members[i];
        struct json *there = json_find(object, m->key);
        if (there == NULL) {
            json_set(a, object, m->key, m->value);
        } else if (json_is(there, JSON_OBJECT) && there != m->value) {
            llm_put_rest(a, there, m->value);
        }
    }
}

bool llm_word_in(struct str s, const char *const *words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        if (str_eqc(s, words[i])) {
            return true;
        }
    }
    return false;
}

static struct str skip_spaces(struct str s)
{
    size_t i = 0;
    while (i < s.len &&
           (s.ptr[i] == ' ' || s.ptr[i] == '\t' || s.ptr[i] == '\n' || s.ptr[i] == '\r')) {
        i++;
    }
    return str_slice(s, i, s.len);
}

/* Takes the character off, with the spaces behind it. */
static bool take_char(struct str *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c) {
        return false;
    }
    *s = skip_spaces(str_slice(*s, 1, s->len));
    return true;
}

struct str llm_type_at_front(struct str data)
{
    const struct str key = STR("\"type\"");
    struct str rest = skip_spaces(data);
    if (!take_char(&rest, '{') || !str_starts(rest, key)) {
        return STR_EMPTY;
    }
    rest = skip_spaces(str_slice(rest, key.len, rest.len));
    if (!take_char(&rest, ':') || rest.len == 0 || rest.ptr[0] != '"') {
        return STR_EMPTY;
    }
    rest = str_slice(rest, 1, rest.len);
    size_t end = 0;
    while (end < rest.len && rest.ptr[end] != '"' && rest.ptr[end] != '\\') {
        end++;
    }
    return end < rest.len && rest.ptr[end] == '"' ? str_slice(rest, 0, end) : STR_EMPTY;
}

bool llm_may_hide_names(struct str data)
{
    const struct str escape = STR("\\u00");
    for (size_t at; (at = str_find(data, escape)) < data.len;) {
        data = str_slice(data, at + escape.len, data.len);
        if (data.len > 0 && data.ptr[0] >= '2' && data.ptr[0] <= '7') {
            return true;
        }
    }
    return false;
}

void *llm_grow(struct arena *a, void *items, size_t size, size_t n, size_t *cap)
{
    if (n < *cap) {
        return items;
    }
    size_t more = *cap == 0 ? 8 : *cap * 2;
    void *grown = arena_array(a, more, size);
    if (n > 0) {
        memcpy(grown, items, n * size);
    }
    *cap = more;
    return grown;
}

int llm_read_messages(struct llm_fields *f, struct llm_request *ret,
                      int (*read)(struct arena *a, const struct json *v, size_t i,
                                  struct llm_message *ret, struct err *e),
                      struct err *e)
{
    const struct json *list = llm_take_type(f, "messages", JSON_ARRAY);
    if (list == NULL) {
        return LLM_BAD(e, "messages: must be a list");
    }
    size_t n = json_len(list);
    struct llm_message *messages = arena_array(f->a, n, sizeof *messages);
    for (size_t i = 0; i < n; i++) {
        if (!json_is(json_item(list, i), JSON_OBJECT)) {
            return LLM_BAD(e, "messages[%zu]: must be an object", i);
        }
        int r = read(f->a, json_item(list, i), i, &messages[i], e);
        if (r < 0) {
            return r;
        }
    }
    ret->messages = messages;
    ret->n_messages = n;
    return 0;
}
