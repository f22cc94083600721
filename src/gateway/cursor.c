/* SPDX-License-Identifier: MIT
 *
 * Moving through JSON text.
 */
#include "gateway/cursor.h"

int cursor_peek(struct cursor *c)
{
    while (c->at < c->text.len) {
        char ch = c->text.ptr[c->at];
        if (ch != ' ' && ch != '\n' && ch != '\r' && ch != '\t') {
            return (unsigned char)ch;
        }
        c->at++;
    }
    return -1;
}

/* At a quote: moves behind the closing one. Strings are most of a prompt: memchr() finds the quote,
 * and only a backslash right before it asks for a closer look. */
bool cursor_skip_string(struct cursor *c)
{
    size_t start = ++c->at;
    for (;;) {
        const char *from = c->text.ptr + c->at;
        const char *quote = c->at < c->text.len ? memchr(from, '"', c->text.len - c->at) : NULL;
        if (quote == NULL) {
            return false;
        }
        size_t end = (size_t)(quote - c->text.ptr);
        size_t slashes = 0;
        while (end - slashes > start && c->text.ptr[end - slashes - 1] == '\\') {
            slashes++;
        }
        c->at = end + 1;
        if (slashes % 2 == 0) {
            return true;
        }
    }
}

static bool is_scalar_byte(char ch)
{
    return ch != ',' && ch != '}' && ch != ']' && ch != ' ' && ch != '\n' && ch != '\r' &&
           ch != '\t';
}

/* At a value: moves behind it. Brackets are counted, not matched: who reads the body validates. */
bool cursor_skip_value(struct cursor *c)
{
    int first = cursor_peek(c);
    if (first == '"') {
        return cursor_skip_string(c);
    }
    if (first != '{' && first != '[') {
        size_t from = c->at;
        while (c->at < c->text.len && is_scalar_byte(c->text.ptr[c->at])) {
            c->at++;
        }
        return c->at > from;
    }
    size_t depth = 0;
    while (c->at < c->text.len) {
        char ch = c->text.ptr[c->at];
        if (ch == '"') {
            if (!cursor_skip_string(c)) {
                return false;
            }
            continue;
        }
        depth += ch == '{' || ch == '[' ? 1 : 0;
        depth -= ch == '}' || ch == ']' ? 1 : 0;
        c->at++;
        if (depth == 0) {
            return true;
        }
    }
    return false;
}

/* At a string: its content. False when it is none, or has escapes. */
bool cursor_plain_string(struct cursor *c, struct str *ret)
{
    size_t from = c->at;
    if (cursor_peek(c) != '"' || (from = c->at, !cursor_skip_string(c))) {
        return false;
    }
    *ret = str_n(c->text.ptr + from + 1, c->at - from - 2);
    return memchr(ret->ptr, '\\', ret->len) == NULL;
}

bool cursor_each_member(struct cursor *c, cursor_member_fn *fn, void *arg)
{
    if (cursor_peek(c) != '{') {
        return false;
    }
    c->at++;
    if (cursor_peek(c) == '}') {
        c->at++;
        return true;
    }
    for (;;) {
        struct str key;
        if (!cursor_plain_string(c, &key) || cursor_peek(c) != ':') {
            return false;
        }
        c->at++;
        if (cursor_peek(c) < 0 || !fn(c, key, arg)) {
            return false;
        }
        int next = cursor_peek(c);
        c->at++;
        if (next != ',') {
            return next == '}';
        }
    }
}
