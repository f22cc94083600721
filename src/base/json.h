/* SPDX-License-Identifier: MIT
 *
 * struct json: a value tree, the one shape that JSON, YAML and TOML are read into and JSON is
 * written from. Lives in an arena; nothing is freed singly. Objects keep insertion order and have
 * unique keys.
 *
 *   struct json *v;
 *   json_parse(arena, text, NULL, &v, e);                 strict RFC 8259, no NaN
 *   int64_t n = json_int(json_get(v, "timeout"), 0);      getters accept NULL and wrong types
 *   struct json *o = json_object(arena);
 *   json_set(arena, o, STR("name"), json_string(arena, STR("x")));
 *   json_write(o, JSON_PRETTY, &buf, e);
 *
 * Values that were read carry the line and column where they began (0 = unknown, for values that
 * code made), so that a semantic error can say file:line:column as well as a syntax error does: see
 * json_at(). Columns count characters.
 *
 * Looking up, setting and removing a key cost the number of members: fine for what people write,
 * not for a table of 100,000 keys. Reading, writing, copying and comparing are cheap at any size,
 * and nothing here recurses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,  /* fits int64_t */
    JSON_REAL, /* finite double */
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json_member {
    struct str key; /* NUL-terminated */
    struct json *value;
    uint32_t line, column; /* of the key */
};

struct json {
    enum json_type type;
    uint32_t line, column;
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct str string; /* NUL-terminated, may contain NUL */
        struct {
            struct json **items;
            size_t len, cap;
        } array;
        struct {
            struct json_member *members;
            size_t len, cap;
        } object;
    };
};

struct json_limits {
    size_t max_bytes;  /* 0: 64 MiB */
    size_t max_depth;  /* 0: 256 */
    size_t max_values; /* 0: 4 million; YAML aliases count each time they are used */
    /* JSON only: values get no line and column, which saves a third of the time; for the messages
     * of programs, where nobody is told a place */
    bool no_positions;
};

/* --- reading (json_parse.c; yyjson is included there only) --- */

/* ERR_PARSE with "line L, column C: why" on bad input, also for a duplicate key; ERR_LIMIT beyond
 * the limits; *ret is set on success only. Numbers beyond int64_t become reals; a real that
 * overflows to infinity is an error. Strings must be valid UTF-8. `limits` may be NULL. */
int json_parse(struct arena *a, struct str text, const struct json_limits *limits,
               struct json **ret, struct err *e) MUST_USE;

/* --- writing (json_write.c) --- */

enum json_style {
    JSON_COMPACT, /* one line, no spaces */
    JSON_PRETTY,  /* two spaces, final newline */
};

/* Never fails but for the buffer's limit; `out` is then as it was. NULL is written as null. Invalid
 * UTF-8 in strings is written as U+FFFD; reals in the shortest form that reads back equal, always
 * with '.' or an exponent; NaN and infinity as null. */
int json_write(const struct json *v, enum json_style style, struct buf *out,
               struct err *e) MUST_USE;
/* The text of s as a JSON string, with quotes; as json_write() otherwise. */
int json_write_string(struct str s, struct buf *out, struct err *e) MUST_USE;

/* --- building (json.c) --- */

struct json *json_null(struct arena *a);
struct json *json_boolean(struct arena *a, bool b);
struct json *json_integer(struct arena *a, int64_t i);
struct json *json_number(struct arena *a, double d);
struct json *json_string(struct arena *a, struct str s); /* copies */
struct json *json_cstr(struct arena *a, const char *s);  /* NULL becomes JSON null */
struct json *json_array(struct arena *a);
struct json *json_object(struct arena *a);
/* The value is not copied and must live as long as the tree; NULL stands for a JSON null. */
void json_push(struct arena *a, struct json *array, struct json *value);
/* Copies the key; replaces the value of a key that is there, which keeps its place. */
void json_set(struct arena *a, struct json *object, struct str key, struct json *value);
void json_setc(struct arena *a, struct json *object, const char *key, struct json *value);
bool json_remove(struct json *object, struct str key);
struct json *json_copy(struct arena *a, const struct json *v); /* deep */

/* Merge for configuration, as RFC 7396: maps deep, scalars and arrays replace, null removes the key
 * (and is dropped where there was none). `over` NULL changes nothing. Returns a new tree in `a`
 * that shares nothing with either input. */
struct json *json_merge(struct arena *a, const struct json *under, const struct json *over);

/* --- reading values; all accept NULL --- */

/* NULL when absent or no object. */
struct json *json_get(const struct json *object, const char *key);
struct json *json_find(const struct json *object, struct str key);
/* RFC 6901; NULL when absent. */
struct json *json_pointer(const struct json *v, struct str pointer);
bool json_is(const struct json *v, enum json_type type);
bool json_bool(const struct json *v, bool otherwise);
int64_t json_int(const struct json *v, int64_t otherwise); /* also a real with integral value */
double json_real(const struct json *v, double otherwise);  /* also an integer */
struct str json_str(const struct json *v, struct str otherwise);
/* `otherwise` also if it holds a NUL. */
const char *json_cstring(const struct json *v, const char *otherwise);
size_t json_len(const struct json *v); /* of array, object or string; else 0 */
struct json *json_item(const struct json *array, size_t i);
/* 1 equals 1.0; member order is ignored. */
bool json_equal(const struct json *a, const struct json *b);
const char *json_type_name(enum json_type type); /* "string", "object", … */

/* "file:12:3" (or just "file" when the position is unknown) for messages; writes into `out`. */
#define JSON_AT_LEN 320
const char *json_at(const char *file, const struct json *v, char out[JSON_AT_LEN]);
