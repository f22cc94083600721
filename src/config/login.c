/* SPDX-License-Identifier: MIT
 *
 * Reading logins; see login.h. Nothing here is ever logged.
 */
#include "config/login.h"

#include <ctype.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/macro.h"

static const struct json_limits limits = {
    .max_bytes = LOGIN_MAX, .max_depth = 32, .max_values = 10000, .no_positions = true
};
enum { LINES_MAX = 1000 };

/* --- lines --- */

/* One pair of quotes off both ends. */
static struct str unquoted(struct str s)
{
    bool quoted =
        s.len >= 2 && (s.ptr[0] == '"' || s.ptr[0] == '\'') && s.ptr[s.len - 1] == s.ptr[0];
    return quoted ? str_slice(s, 1, s.len - 1) : s;
}

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (!isalnum(c) && c != '_') {
            return false;
        }
    }
    return s.len > 0;
}

static struct json *read_lines(struct arena *a, struct str text)
{
    struct json *found = json_object(a);
    for (size_t n = 0; text.ptr != NULL && n < LINES_MAX; n++) {
        struct str value = str_trim(str_split(&text, '\n'));
        if (str_starts(value, STR("export "))) {
            value = str_trim(str_slice(value, 7, value.len));
        }
        struct str name = str_trim(str_split(&value, '='));
        if (value.ptr != NULL && is_name(name)) {
            json_set(a, found, name, json_string(a, unquoted(str_trim(value))));
        }
    }
    return json_len(found) > 0 ? found : NULL;
}

struct json *login_read(struct arena *a, struct str text)
{
    struct json *tree;
    text = str_trim(text);
    if (text.len > LOGIN_MAX || str_has_nul(text)) {
        return NULL;
    }
    if (json_parse(a, text, &limits, &tree, NULL) < 0) {
        return read_lines(a, text);
    }
    return json_is(tree, JSON_OBJECT) ? tree : NULL;
}

/* --- renewed --- */

static bool is_scalar(const struct json *v)
{
    return v != NULL && !json_is(v, JSON_OBJECT) && !json_is(v, JSON_ARRAY);
}

/* As the scopes of a token. */
static bool is_list_of_scalars(const struct json *v)
{
    bool good = json_is(v, JSON_ARRAY);
    for (size_t i = 0; good && i < json_len(v); i++) {
        good = is_scalar(json_item(v, i));
    }
    return good;
}

/* The limits of login_read() bound the recursion. */
static bool fits(const struct json *before, const struct json *after)
{
    if (!json_is(after, JSON_OBJECT)) {
        return is_scalar(before) ? is_scalar(after)
                                 : json_is(before, JSON_ARRAY) && is_list_of_scalars(after);
    }
    bool good = json_is(before, JSON_OBJECT);
    for (size_t i = 0; good && i < json_len(after); i++) {
        const struct json_member *m = &after->object.members[i];
        good = !str_has_nul(m->key) && fits(json_get(before, m->key.ptr), m->value);
    }
    return good;
}

bool login_renews(struct arena *a, struct str before, struct str after)
{
    struct json *old, *new;
    if (before.len > LOGIN_MAX || after.len > LOGIN_MAX) {
        return false;
    }
    return json_parse(a, before, &limits, &old, NULL) == 0 &&
           json_parse(a, after, &limits, &new, NULL) == 0 && json_is(new, JSON_OBJECT) &&
           fits(old, new);
}

/* --- when it ends --- */

/* Base64 as the web has it: another alphabet, no padding. */
static bool read_base64url(struct str text, struct buf *out)
{
    CLEANUP(buf) struct buf plain = BUF_INIT(LOGIN_MAX + 4);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        c = c == '-' ? '+' : c == '_' ? '/' : c;
        buf_add(&plain, str_n(&c, 1));
    }
    while (plain.len % 4 != 0) {
        buf_adds(&plain, "=");
    }
    return base64_read(buf_str(&plain), out, NULL) == 0;
}

/* The claims of HEADER.CLAIMS.SIGNATURE; NULL: it is none. */
static struct json *claims_of(struct arena *a, struct str token)
{
    CLEANUP(buf) struct buf bytes = BUF_INIT(LOGIN_MAX);
    struct json *claims;
    struct str rest = token;
    struct str head = str_split(&rest, '.');
    if (token.len > LOGIN_MAX || head.len == 0 || rest.ptr == NULL) {
        return NULL;
    }
    struct str middle = str_split(&rest, '.');
    bool three = rest.ptr != NULL && memchr(rest.ptr, '.', rest.len) == NULL;
    if (!three || !read_base64url(middle, &bytes) ||
        json_parse(a, buf_str(&bytes), &limits, &claims, NULL) < 0) {
        return NULL;
    }
    return claims;
}

bool login_expires(struct arena *a, const struct json *v, int64_t *ret)
{
    /* Seconds as large as this are in the year 5138, milliseconds in 1973. */
    static const int64_t milliseconds = INT64_C(100000000000);
    int64_t when = 0;
    if (json_is(v, JSON_STRING)) {
        when = str_to_i64(v->string, &when) ? when
                                            : json_int(json_get(claims_of(a, v->string), "exp"), 0);
    } else {
        when = json_int(v, 0);
    }
    if (when <= 0) {
        return false;
    }
    *ret = when >= milliseconds ? when / 1000 : when;
    return true;
}

/* --- what is secret --- */

/* Shorter texts are found all over ordinary output. */
enum { NAMED_MIN = 8, ANY_MIN = 20 };

static bool has_word(struct str name, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= name.len; i++) {
        if (strncasecmp(name.ptr + i, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_secret_name(struct str name)
{
    static const char *const words[] = { "token",  "key",        "secret", "password",
                                         "cookie", "credential", "bearer" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (has_word(name, words[i])) {
            return true;
        }
    }
    return false;
}

/* What is long and has no spaces is rather one too many than one too few; what it is good for, and
 * whose it is, stands in logs for a reason. */
static bool looks_secret(struct str name, struct str value)
{
    if (is_secret_name(name)) {
        return value.len >= NAMED_MIN;
    }
    if (has_word(name, "scope") || has_word(name, "url") || has_word(name, "email")) {
        return false;
    }
    for (size_t i = 0; i < value.len; i++) {
        if (isspace((unsigned char)value.ptr[i])) {
            return false;
        }
    }
    return value.len >= ANY_MIN;
}

static void walk(const struct json *v, struct str name, void (*add)(void *arg, struct str value),
                 void *arg)
{
    if (json_is(v, JSON_STRING) && looks_secret(name, v->string)) {
        add(arg, v->string);
    }
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        walk(v->array.items[i], name, add, arg);
    }
    for (size_t i = 0; json_is(v, JSON_OBJECT) && i < v->object.len; i++) {
        walk(v->object.members[i].value, v->object.members[i].key, add, arg);
    }
}

void login_secrets(const struct json *tree, void (*add)(void *arg, struct str value), void *arg)
{
    walk(tree, STR_EMPTY, add, arg); /* its depth is limited */
}
