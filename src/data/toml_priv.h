/* SPDX-License-Identifier: MIT
 *
 * What the files of toml share: the parser's state and the lexer's functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/toml.h"

/* How a table or array came to be decides who may add to it. */
enum toml_origin {
    TOML_FIXED,    /* scalar, inline table or array literal: complete where it stands */
    TOML_IMPLICIT, /* super-table of a header: a later header may define it */
    TOML_DOTTED,   /* made by a dotted key: no header may define it, dotted keys may add */
    TOML_EXPLICIT, /* has its header */
    TOML_ELEMENTS, /* array of tables */
};

struct toml_slot {
    const struct json *parent; /* NULL: free */
    struct str key;
    uint64_t hash;
    struct json *value;
    enum toml_origin origin;
};

/* All keys of all tables in one hash table: a lookup in json_find() is linear, and a document of a
 * million keys must not take a million squared. */
struct toml_map {
    struct toml_slot *slots;
    size_t len, cap;
};

struct toml_parser {
    struct arena *arena;
    const char *name;
    struct str text;
    size_t begin; /* behind the byte order mark */
    size_t at;    /* offset of the next byte */
    struct {
        size_t offset;
        uint32_t line, column;
    } mark; /* position of an offset already passed; only moves forward */
    size_t max_depth, values_left;
    bool tagged;
    struct buf scratch;
    struct toml_map map;
    struct json *root;
    struct json *table; /* what the last header opened */
    size_t depth;       /* of `table` */
    struct err *e;
};

/* A key of one or more parts. */
struct toml_key {
    struct str *parts;
    size_t len;
    size_t *starts; /* offset of each part */
    size_t end;
};

/* --- toml_lex.c: bytes, strings, keys. All int results: 0 or -code, with p->e filled. --- */

/* ERR_PARSE, with name:line:column of `offset`. */
int toml_fail(const struct toml_parser *p, size_t offset, const char *fmt, ...) PRINTF_LIKE(3, 4);
int toml_limit(const struct toml_parser *p, size_t offset, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "'x'", "the end of the line", "the end of the file", "the byte 0x07", at the cursor. */
#define TOML_FOUND_LEN 32
const char *toml_found(const struct toml_parser *p, char out[TOML_FOUND_LEN]);
/* Line and column of an offset not smaller than the last one asked for. */
void toml_position(struct toml_parser *p, size_t offset, uint32_t *ret_line, uint32_t *ret_column);

int toml_peek(const struct toml_parser *p); /* -1 at the end */
bool toml_looking_at(const struct toml_parser *p, const char *word);
void toml_skip_space(struct toml_parser *p);
bool toml_skip_newline(struct toml_parser *p);
int toml_skip_blank(struct toml_parser *p) MUST_USE; /* space, comments, newlines */
int toml_line_end(struct toml_parser *p) MUST_USE;   /* space, a comment, then newline or the end */
int toml_string(struct toml_parser *p, struct str *ret) MUST_USE; /* the cursor is on a quote */
int toml_key(struct toml_parser *p, struct toml_key *ret) MUST_USE;
int toml_check_utf8(const struct toml_parser *p) MUST_USE;

/* --- toml_scalar.c: numbers, dates, booleans --- */

/* A value of that type with its position; ERR_LIMIT when there are too many. */
int toml_new(struct toml_parser *p, enum json_type type, size_t offset, struct json **ret) MUST_USE;
int toml_scalar(struct toml_parser *p, struct json **ret) MUST_USE;
int toml_make_string(struct toml_parser *p, size_t offset, struct str s,
                     struct json **ret) MUST_USE;

/* --- toml_map.c --- */

struct toml_slot *toml_map_find(const struct toml_map *m, const struct json *parent,
                                struct str key);
void toml_map_add(struct toml_map *m, const struct toml_slot *slot);
void toml_map_done(struct toml_map *m);

/* --- toml_write.c --- */

/* A scalar of the tagged form, as opposed to a table. */
bool toml_is_tagged(const struct json *v);
