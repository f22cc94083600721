/* SPDX-License-Identifier: MIT
 *
 * RFC 3986 as far as references between schemas need it: taking a reference apart and resolving it
 * against a base.
 */
#include "data/schema_priv.h"

/* The part up to the first of the bytes in `stops`, cut off *s. */
static struct str take_until(struct str *s, const char *stops)
{
    size_t n = 0;
    while (n < s->len && (s->ptr[n] == '\0' || strchr(stops, s->ptr[n]) == NULL)) {
        n++;
    }
    struct str part = str_slice(*s, 0, n);
    *s = str_slice(*s, n, s->len);
    return part;
}

static bool is_scheme(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (!letter && (i == 0 || !other)) {
            return false;
        }
    }
    return s.len > 0;
}

struct schema_uri schema_uri_split(struct str uri)
{
    struct schema_uri u = { .path = STR_EMPTY };
    struct str rest = uri;
    struct str head = take_until(&rest, ":/?#");
    if (rest.len > 0 && rest.ptr[0] == ':' && is_scheme(head)) {
        u.scheme = head;
        rest = str_slice(rest, 1, rest.len);
    } else {
        rest = uri;
    }
    if (str_starts(rest, STR("//"))) {
        rest = str_slice(rest, 2, rest.len);
        u.authority = take_until(&rest, "/?#");
    }
    u.path = take_until(&rest, "?#");
    if (rest.len > 0 && rest.ptr[0] == '?') {
        rest = str_slice(rest, 1, rest.len);
        u.query = take_until(&rest, "#");
    }
    if (rest.len > 0) {
        u.fragment = str_slice(rest, 1, rest.len);
    }
    return u;
}

/* RFC 3986 section 5.2.4, in place; returns the new length. */
static size_t remove_dots(char *path, size_t len)
{
    size_t out = 0;
    size_t i = 0;
    while (i < len) {
        /* a segment with the slash before it, if there is one */
        size_t end = i + (path[i] == '/' ? 1 : 0);
        while (end < len && path[end] != '/') {
            end++;
        }
        struct str name =
            str_n(path + i + (path[i] == '/' ? 1 : 0), end - i - (path[i] == '/' ? 1 : 0));
        bool one = str_eqc(name, ".");
        bool two = str_eqc(name, "..");
        if (!one && !two) {
            memmove(path + out, path + i, end - i);
            out += end - i;
        } else {
            while (two && out > 0 && path[--out] != '/') {
            }
            if (end == len && path[i] == '/') {
                path[out++] = '/'; /* "a/." and "a/.." end in a slash */
            }
        }
        i = end;
    }
    return out;
}

/* The path of a reference that has one of its own but does not begin with a slash. */
static struct str merge_paths(struct arena *a, const struct schema_uri *base, struct str path)
{
    size_t keep = base->path.len;
    while (keep > 0 && base->path.ptr[keep - 1] != '/') {
        keep--;
    }
    if (base->path.len == 0 && base->authority.ptr != NULL) {
        return str_of(arena_printf(a, "/%.*s", STR_ARG(path)));
    }
    return str_of(arena_printf(a, "%.*s%.*s", (int)keep, base->path.ptr, STR_ARG(path)));
}

static struct str without_dots(struct arena *a, struct str path)
{
    char *copy = arena_dup(a, path);
    return str_n(copy, remove_dots(copy, path.len));
}

static struct str join(struct arena *a, const struct schema_uri *u)
{
    return str_of(arena_printf(
        a, "%.*s%s%s%.*s%.*s%s%.*s", STR_ARG(u->scheme), u->scheme.ptr != NULL ? ":" : "",
        u->authority.ptr != NULL ? "//" : "", STR_ARG(u->authority), STR_ARG(u->path),
        u->query.ptr != NULL ? "?" : "", STR_ARG(u->query)));
}

struct str schema_uri_resolve(struct arena *a, struct str base, struct str reference)
{
    struct schema_uri b = schema_uri_split(base);
    struct schema_uri r = schema_uri_split(reference);
    if (r.scheme.ptr != NULL) {
        /* "urn:a:b" has a path that must not be touched */
        r.path = r.authority.ptr != NULL ? without_dots(a, r.path) : r.path;
        return join(a, &r);
    }
    r.scheme = b.scheme;
    if (r.authority.ptr != NULL) {
        r.path = without_dots(a, r.path);
        return join(a, &r);
    }
    r.authority = b.authority;
    if (r.path.len == 0) {
        r.path = b.path;
        r.query = r.query.ptr != NULL ? r.query : b.query;
    } else if (r.path.ptr[0] == '/') {
        r.path = without_dots(a, r.path);
    } else {
        r.path = without_dots(a, merge_paths(a, &b, r.path));
    }
    return join(a, &r);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool schema_uri_unescape(struct arena *a, struct str text, struct str *ret)
{
    char *out = arena_alloc(a, text.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
            int low = high >= 0 ? hex_value(text.ptr[i + 2]) : -1;
            if (low < 0) {
                return false;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        out[n++] = c;
    }
    *ret = str_n(out, n);
    return true;
}
