/* SPDX-License-Identifier: MIT
 *
 * YAML 1.2, chapter 10.3: the regular expressions of the core schema, written out. "yes", "no",
 * "on", "0777" as octal and "1_000" belong to YAML 1.1 and are strings or decimal numbers here.
 */
#include "data/yaml_priv.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

static const struct {
    const char *word;
    enum yaml_tag tag;
} tags[] = {
    { "str", YAML_TAG_STR }, { "null", YAML_TAG_NULL },   { "bool", YAML_TAG_BOOL },
    { "int", YAML_TAG_INT }, { "float", YAML_TAG_FLOAT }, { "seq", YAML_TAG_SEQ },
    { "map", YAML_TAG_MAP },
};

bool yaml_tag_parse(struct str name, enum yaml_tag *ret)
{
    static const struct str prefix = { "tag:yaml.org,2002:", 18 };
    if (str_eqc(name, "!")) {
        *ret = YAML_TAG_ANY;
        return true;
    }
    if (!str_starts(name, prefix)) {
        return false;
    }
    struct str word = str_slice(name, prefix.len, name.len);
    for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
        if (str_eqc(word, tags[i].word)) {
            *ret = tags[i].tag;
            return true;
        }
    }
    return false;
}

const char *yaml_tag_name(enum yaml_tag tag)
{
    static const char *const names[] = {
        [YAML_TAG_NONE] = "",         [YAML_TAG_ANY] = "!",       [YAML_TAG_STR] = "!!str",
        [YAML_TAG_NULL] = "!!null",   [YAML_TAG_BOOL] = "!!bool", [YAML_TAG_INT] = "!!int",
        [YAML_TAG_FLOAT] = "!!float", [YAML_TAG_SEQ] = "!!seq",   [YAML_TAG_MAP] = "!!map",
    };
    return names[tag];
}

static bool is_one_of(struct str s, const char *const words[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eqc(s, words[i])) {
            return true;
        }
    }
    return false;
}

static bool is_null(struct str s)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };
    return is_one_of(s, words, ARRAY_LEN(words));
}

static bool is_bool(struct str s, bool *ret)
{
    static const char *const yes[] = { "true", "True", "TRUE" };
    static const char *const no[] = { "false", "False", "FALSE" };
    *ret = is_one_of(s, yes, ARRAY_LEN(yes));
    return *ret || is_one_of(s, no, ARRAY_LEN(no));
}

static struct str without_sign(struct str s)
{
    bool is_signed = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+');
    return is_signed ? str_slice(s, 1, s.len) : s;
}

static bool is_inf_or_nan(struct str s)
{
    static const char *const inf[] = { ".inf", ".Inf", ".INF" };
    static const char *const nan[] = { ".nan", ".NaN", ".NAN" };
    return is_one_of(without_sign(s), inf, ARRAY_LEN(inf)) || is_one_of(s, nan, ARRAY_LEN(nan));
}

/* The digits at *at; advances and returns how many. */
static size_t digits(struct str s, size_t *at)
{
    size_t start = *at;
    while (*at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9') {
        ++*at;
    }
    return *at - start;
}

static bool is_decimal(struct str s)
{
    size_t at = 0;
    s = without_sign(s);
    return digits(s, &at) > 0 && at == s.len;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(struct str s)
{
    s = without_sign(s);
    size_t at = 0;
    size_t whole = digits(s, &at);
    if (at < s.len && s.ptr[at] == '.') {
        at++;
        if (digits(s, &at) == 0 && whole == 0) {
            return false;
        }
    } else if (whole == 0) {
        return false;
    }
    if (at < s.len && (s.ptr[at] == 'e' || s.ptr[at] == 'E')) {
        at++;
        if (at < s.len && (s.ptr[at] == '-' || s.ptr[at] == '+')) {
            at++;
        }
        if (digits(s, &at) == 0) {
            return false;
        }
    }
    return at == s.len;
}

/* "0x1F" or "0o17". */
static bool is_based(struct str s)
{
    bool hex = str_starts(s, STR("0x"));
    if (s.len < 3 || (!hex && !str_starts(s, STR("0o")))) {
        return false;
    }
    for (size_t i = 2; i < s.len; i++) {
        char c = s.ptr[i];
        bool ok = hex ? (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')
                      : c >= '0' && c <= '7';
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool based_value(struct str s, int64_t *ret)
{
    int shift = s.ptr[1] == 'x' ? 4 : 3;
    uint64_t value = 0;
    for (size_t i = 2; i < s.len; i++) {
        char c = s.ptr[i];
        uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        if (value > (uint64_t)INT64_MAX >> shift) {
            return false;
        }
        value = value << shift | digit;
    }
    *ret = (int64_t)value;
    return true;
}

/* strtod() needs an end that a str does not have; `s` has been checked, so all of it is the number.
 */
static double float_value(struct str s)
{
    CLEANUP(free) char *text = xmalloc(s.len + 1);
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return strtod(text, NULL);
}

static struct json *real_or_fail(struct arena *a, struct str s, const char **ret_why)
{
    double d = float_value(s);
    if (!isfinite(d)) {
        *ret_why = "is too large for a number";
        return NULL;
    }
    return json_number(a, d);
}

static struct json *int_or_fail(struct arena *a, struct str s, const char **ret_why)
{
    int64_t i;
    if (is_based(s)) {
        *ret_why = "is too large for an integer";
        return based_value(s, &i) ? json_integer(a, i) : NULL;
    }
    /* As in JSON, decimals beyond 64 bits become reals. */
    struct str plain = s.ptr[0] == '+' ? str_slice(s, 1, s.len) : s;
    return str_to_i64(plain, &i) ? json_integer(a, i) : real_or_fail(a, s, ret_why);
}

static struct json *resolve_plain(struct arena *a, struct str s, const char **ret_why)
{
    bool b;
    if (is_null(s)) {
        return json_null(a);
    }
    if (is_bool(s, &b)) {
        return json_boolean(a, b);
    }
    if (is_decimal(s) || is_based(s)) {
        return int_or_fail(a, s, ret_why);
    }
    if (is_float(s)) {
        return real_or_fail(a, s, ret_why);
    }
    if (is_inf_or_nan(s)) {
        *ret_why = "is not allowed as a number (put it in quotes if text is meant)";
        return NULL;
    }
    return json_string(a, s);
}

/* A scalar with one of the tags that demand a type, whatever its style. */
static struct json *resolve_tagged(struct arena *a, struct str s, enum yaml_tag tag,
                                   const char **ret_why)
{
    bool b;
    switch (tag) {
    case YAML_TAG_NULL:
        *ret_why = "is not a null, as its tag says";
        return is_null(s) ? json_null(a) : NULL;
    case YAML_TAG_BOOL:
        *ret_why = "is not true or false, as its tag says";
        return is_bool(s, &b) ? json_boolean(a, b) : NULL;
    case YAML_TAG_INT:
        *ret_why = "is not an integer, as its tag says";
        return is_decimal(s) || is_based(s) ? int_or_fail(a, s, ret_why) : NULL;
    case YAML_TAG_FLOAT:
        *ret_why = "is not a finite number, as its tag says";
        return is_float(s) ? real_or_fail(a, s, ret_why) : NULL;
    case YAML_TAG_SEQ:
    case YAML_TAG_MAP:
        *ret_why = "is a scalar, not what its tag says";
        return NULL;
    case YAML_TAG_NONE:
    case YAML_TAG_ANY:
    case YAML_TAG_STR:
        break;
    }
    return json_string(a, s);
}

bool yaml_resolve(struct arena *a, struct str text, enum yaml_tag tag, struct json **ret,
                  const char **ret_why)
{
    struct json *v = tag == YAML_TAG_NONE ? resolve_plain(a, text, ret_why)
                                          : resolve_tagged(a, text, tag, ret_why);
    *ret = v;
    return v != NULL;
}

bool yaml_is_disputed(struct str text, size_t i, unsigned *ret)
{
    const unsigned char *p = (const unsigned char *)text.ptr + i;
    if (p[0] < 0x80) {
        *ret = p[0];
        return (p[0] < 0x20 && p[0] != '\n' && p[0] != '\r' && p[0] != '\t') || p[0] == 0x7f;
    }
    if (p[0] == 0xc2) {
        *ret = p[1];
        return p[1] < 0xa0;
    }
    if (p[0] == 0xe2 || p[0] == 0xef) {
        *ret = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        return *ret == 0x2028 || *ret == 0x2029 || *ret == 0xfeff || *ret >= 0xfffe;
    }
    return false;
}
