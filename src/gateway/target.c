/* SPDX-License-Identifier: MIT
 *
 * Checking and rewriting request targets.
 */
#include "gateway/target.h"

#include <stddef.h>

#include "base/macro.h"
#include "wire/http.h"

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The character at `i`, decoded; *len is how many bytes it takes. -1: a broken escape. */
static int char_at(struct str s, size_t i, size_t *len)
{
    *len = 1;
    if (s.ptr[i] != '%') {
        return (unsigned char)s.ptr[i];
    }
    int high = i + 2 < s.len ? hex_value(s.ptr[i + 1]) : -1;
    int low = i + 2 < s.len ? hex_value(s.ptr[i + 2]) : -1;
    *len = 3;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static struct str path_of(struct str target)
{
    return str_split(&target, '?');
}

static const char *char_fault(int c, bool encoded)
{
    if (c < 0) {
        return "the path has a broken percent escape";
    }
    if (c == '\\' || c == '#' || c < ' ' || c == 0x7f) {
        return "the path has a backslash, a fragment or a control character";
    }
    if (encoded && (c == '.' || c == '%')) {
        return "the path has an encoded dot or percent sign";
    }
    return NULL;
}

const char *target_fault(struct str target)
{
    struct str path = path_of(target);
    bool dots = true; /* the segment so far has nothing but dots */
    size_t n = 0;     /* of them */
    size_t len;
    for (size_t i = 0; i < path.len; i += len) {
        int c = char_at(path, i, &len);
        const char *why = char_fault(c, path.ptr[i] == '%');
        if (why != NULL) {
            return why;
        }
        if (c == '/' || c == ';') {
            if (dots && (n == 1 || n == 2)) {
                return "the path has a dot segment";
            }
            if (dots && n == 0 && i > 0) {
                return "the path has an empty segment";
            }
            dots = c == '/'; /* what follows a ';' are parameters of the segment */
            n = 0;
        } else {
            dots = dots && c == '.';
            n++;
        }
    }
    return dots && (n == 1 || n == 2) ? "the path has a dot segment" : NULL;
}

bool target_has_slash(struct str target, struct str model)
{
    struct str path = path_of(target);
    size_t len;
    for (size_t i = 0; i < path.len; i += len) {
        bool inside =
            model.len > 0 && path.ptr + i >= model.ptr && path.ptr + i < model.ptr + model.len;
        if (char_at(path, i, &len) == '/' && len > 1 && !inside) {
            return true;
        }
    }
    return false;
}

/* Does the name of a parameter, however it is written, say `lower`? */
static bool name_says(struct str name, const char *lower)
{
    size_t len;
    size_t i = 0;
    for (; i < name.len && *lower != '\0'; i += len, lower++) {
        int c = char_at(name, i, &len);
        c = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
        if (c != *lower) {
            return false;
        }
    }
    return i >= name.len && *lower == '\0';
}

static bool is_dropped(struct str pair)
{
    static const char *const names[] = {
        "key",       "api_key",     "api-key",    "apikey",  "access_token",          "oauth_token",
        "quotauser", "userproject", "httpmethod", "_method", "x-http-method-override"
    };
    struct str name = str_split(&pair, '=');
    if (str_starts(name, STR("$"))) { /* Google's system parameters have two spellings */
        name = str_slice(name, 1, name.len);
    } else if (str_starts(name, STR("%24"))) {
        name = str_slice(name, 3, name.len);
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (name_says(name, names[i])) {
            return true;
        }
    }
    return false;
}

static void add_model(struct str model, struct buf *out)
{
    while (model.ptr != NULL && model.len > 0) {
        struct str part = str_split(&model, '/');
        buf_add(out, part);
        buf_adds(out, model.ptr == NULL ? "" : "%2F");
    }
}

void target_for_upstream(struct str target, struct str model, const char *name, struct buf *out)
{
    struct str query = target;
    struct str path = str_split(&query, '?');
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    if (model.len > 0) {
        size_t at = (size_t)(model.ptr - path.ptr);
        buf_add(out, str_slice(path, 0, at));
        add_model(name != NULL ? str_of(name) : model, out);
        buf_add(out, str_slice(path, at + model.len, path.len));
    } else {
        buf_add(out, path);
    }
    char separator = '?';
    while (query.ptr != NULL) {
        struct str pair = str_split(&query, '&');
        if (pair.len > 0 && !is_dropped(pair)) {
            buf_addf(out, "%c%.*s", separator, STR_ARG(pair));
            separator = '&';
        }
    }
}
