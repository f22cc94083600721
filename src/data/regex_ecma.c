/* SPDX-License-Identifier: MIT
 *
 * The syntax of ECMA-262 patterns, read once from left to right and written out for PCRE2. Nothing
 * is passed through by accident: syntax that only PCRE2 knows is an error here, and each character
 * that stands for itself is escaped. Hence no pattern can switch options, name PCRE2's verbs or use
 * its POSIX classes.
 */
#include "data/regex_priv.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* PCRE2 itself stops at 250 open groups, but says so less clearly. */
enum { OPEN_MAX = 200, NAMES_MAX = 200 };
/* The most that PCRE2 repeats. */
enum { REPEAT_MAX = 65535 };

enum { SURROGATE_HIGH = 0xd800, SURROGATE_LOW = 0xdc00, SURROGATE_END = 0xe000 };

struct group_name {
    struct str name;
    unsigned number;
};

struct ecma {
    struct str p;
    size_t at;
    struct buf *out;
    struct err *e;
    unsigned groups; /* capturing groups of the whole pattern */
    struct group_name names[NAMES_MAX];
    size_t name_count;
    bool asserts[OPEN_MAX]; /* the open groups: is it a look-around? */
    size_t depth;
    bool repeatable; /* what was written last may take a quantifier */
};

/* What an escape or a class member stands for: a character, or a ready piece of a class. */
struct atom {
    bool is_set;
    uint32_t c;
    char set[96];
};

#define SPACE_SET                                                                        \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}" \
    "\\x{205f}\\x{3000}\\x{feff}"
#define NOT_SPACE_SET                                                                \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}" \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"   \
    "\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

/* \d \D … as the inside of a class, so that they can stand in one; ASCII as ECMA-262 says. */
static const struct {
    char letter;
    const char *set;
} sets[] = {
    { 'd', "0-9" },
    { 'D', "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}" },
    { 'w', "0-9A-Z_a-z" },
    { 'W', "\\x{0}-\\x{2f}\\x{3a}-\\x{40}\\x{5b}-\\x{5e}\\x{60}\\x{7b}-\\x{10ffff}" },
    { 's', SPACE_SET },
    { 'S', NOT_SPACE_SET },
};

/* Names of general categories that PCRE2 knows by their short form only. */
static const char *const categories[][2] = {
    { "Cased_Letter", "L&" },
    { "LC", "L&" },
    { "Close_Punctuation", "Pe" },
    { "Combining_Mark", "M" },
    { "Connector_Punctuation", "Pc" },
    { "Control", "Cc" },
    { "cntrl", "Cc" },
    { "Currency_Symbol", "Sc" },
    { "Dash_Punctuation", "Pd" },
    { "Decimal_Number", "Nd" },
    { "digit", "Nd" },
    { "Enclosing_Mark", "Me" },
    { "Final_Punctuation", "Pf" },
    { "Format", "Cf" },
    { "Initial_Punctuation", "Pi" },
    { "Letter", "L" },
    { "Letter_Number", "Nl" },
    { "Line_Separator", "Zl" },
    { "Lowercase_Letter", "Ll" },
    { "Mark", "M" },
    { "Math_Symbol", "Sm" },
    { "Modifier_Letter", "Lm" },
    { "Modifier_Symbol", "Sk" },
    { "Nonspacing_Mark", "Mn" },
    { "Number", "N" },
    { "Open_Punctuation", "Ps" },
    { "Other", "C" },
    { "Other_Letter", "Lo" },
    { "Other_Number", "No" },
    { "Other_Punctuation", "Po" },
    { "Other_Symbol", "So" },
    { "Paragraph_Separator", "Zp" },
    { "Private_Use", "Co" },
    { "Punctuation", "P" },
    { "punct", "P" },
    { "Separator", "Z" },
    { "Space_Separator", "Zs" },
    { "Spacing_Mark", "Mc" },
    { "Surrogate", "Cs" },
    { "Symbol", "S" },
    { "Titlecase_Letter", "Lt" },
    { "Unassigned", "Cn" },
    { "Uppercase_Letter", "Lu" },
};

const char *regex_show(struct str pattern, char out[REGEX_SHOW_LEN])
{
    enum { LONGEST = 64 };
    size_t n = pattern.len < LONGEST ? pattern.len : LONGEST;
    while (n < pattern.len && n > 0 && ((unsigned char)pattern.ptr[n] & 0xc0) == 0x80) {
        n--; /* not inside a character */
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)pattern.ptr[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : pattern.ptr[i];
    }
    (void)snprintf(out + n, REGEX_SHOW_LEN - n, "%s", n < pattern.len ? "…" : "");
    return out;
}

static int bad(const struct ecma *x, size_t at, const char *why)
{
    char shown[REGEX_SHOW_LEN];
    return ERR(x->e, ERR_PARSE, "pattern '%s' at offset %zu: %s", regex_show(x->p, shown), at, why);
}

/* The byte `ahead` of the next one; -1 beyond the end. */
static int peek(const struct ecma *x, size_t ahead)
{
    return x->at + ahead < x->p.len ? (unsigned char)x->p.ptr[x->at + ahead] : -1;
}

static bool skip(struct ecma *x, const char *text)
{
    size_t n = strlen(text);
    bool there = x->p.len - x->at >= n && memcmp(x->p.ptr + x->at, text, n) == 0;
    x->at += there ? n : 0;
    return there;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int hex_value(int c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int emit(struct ecma *x, const char *text)
{
    return buf_append(x->out, str_of(text), x->e);
}

static int emit_char(struct ecma *x, uint32_t c)
{
    if (c < 0x80 && is_alnum((int)c)) {
        return buf_append_c(x->out, (char)c, x->e);
    }
    return buf_printf(x->out, x->e, "\\x{%" PRIx32 "}", c);
}

/* The next code point; the pattern is known to be UTF-8. */
static uint32_t take_char(struct ecma *x)
{
    uint32_t c = (unsigned char)x->p.ptr[x->at++];
    if (c < 0x80) {
        return c;
    }
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    c &= 0x3fu >> more;
    while (more-- > 0) {
        c = c << 6 | ((unsigned char)x->p.ptr[x->at++] & 0x3fu);
    }
    return c;
}

/* Exactly `digits` hexadecimal digits. */
static bool take_hex(struct ecma *x, size_t digits, uint32_t *ret)
{
    uint32_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        int v = hex_value(peek(x, i));
        if (v < 0) {
            return false;
        }
        value = value << 4 | (uint32_t)v;
    }
    x->at += digits;
    *ret = value;
    return true;
}

/* What follows \u: {…}, four digits, or two times four digits for a surrogate pair. */
static int take_unicode(struct ecma *x, uint32_t *ret)
{
    size_t begin = x->at;
    if (skip(x, "{")) {
        uint32_t value = 0;
        size_t digits = 0;
        for (int v = hex_value(peek(x, 0)); v >= 0; v = hex_value(peek(x, 0))) {
            value = value << 4 | (uint32_t)v;
            x->at++;
            digits++;
            if (value > 0x10ffff) {
                return bad(x, begin, "no such code point");
            }
        }
        *ret = value;
        return digits > 0 && skip(x, "}") ? 0 : bad(x, begin, "\\u{…} needs hexadecimal digits");
    }
    if (!take_hex(x, 4, ret)) {
        return bad(x, begin, "\\u needs four hexadecimal digits or {…}");
    }
    size_t after = x->at;
    uint32_t low = 0;
    if (*ret >= SURROGATE_HIGH && *ret < SURROGATE_LOW && skip(x, "\\u") && take_hex(x, 4, &low) &&
        low >= SURROGATE_LOW && low < SURROGATE_END) {
        *ret = 0x10000 + ((*ret - SURROGATE_HIGH) << 10) + (low - SURROGATE_LOW);
    } else {
        x->at = after;
    }
    return 0;
}

static const char *short_category(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(categories); i++) {
        if (str_eqc(name, categories[i][0])) {
            return categories[i][1];
        }
    }
    return NULL;
}

static bool is_one_of(struct str s, const char *a, const char *b)
{
    return str_eqc(s, a) || str_eqc(s, b);
}

/* What follows \p or \P: {Name}, {gc=Name}, {Script=Name}, {scx=Name}. */
static int take_property(struct ecma *x, bool negated, struct atom *ret)
{
    size_t begin = x->at;
    if (!skip(x, "{")) {
        return bad(x, begin, "\\p needs a property in braces, as in \\p{L}");
    }
    size_t from = x->at;
    while (is_alnum(peek(x, 0)) || peek(x, 0) == '_' || peek(x, 0) == '=') {
        x->at++;
    }
    struct str value = str_slice(x->p, from, x->at);
    if (!skip(x, "}") || value.len == 0 || value.len > 48) {
        return bad(x, begin, "\\p{…} needs the name of a property");
    }
    struct str name = { 0 };
    if (str_find(value, STR("=")) < value.len) {
        name = str_split(&value, '=');
    }
    const char *prefix = "";
    if (is_one_of(name, "Script", "sc")) {
        prefix = "sc:";
    } else if (is_one_of(name, "Script_Extensions", "scx")) {
        prefix = "scx:";
    } else if (name.ptr != NULL && !is_one_of(name, "General_Category", "gc")) {
        return bad(x, begin, "only gc=, Script= and scx= take a value in \\p{…}");
    } else if (short_category(value) != NULL) {
        value = str_of(short_category(value));
    } else if (str_eqc(value, "Assigned")) {
        value = STR("Cn");
        negated = !negated;
    }
    ret->is_set = true;
    (void)snprintf(ret->set, sizeof ret->set, "\\%c{%s%.*s}", negated ? 'P' : 'p', prefix,
                   STR_ARG(value));
    return 0;
}

static bool named_set(int letter, struct atom *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        if (sets[i].letter == letter) {
            ret->is_set = true;
            ret->c = (uint32_t)i; /* too long to copy: see atom_set() */
            ret->set[0] = '\0';
            return true;
        }
    }
    return false;
}

static const char *atom_set(const struct atom *a)
{
    return a->set[0] != '\0' ? a->set : sets[a->c].set;
}

static bool control_letter(int letter, uint32_t *ret)
{
    static const char letters[] = "tnvfr";
    static const char codes[] = "\t\n\v\f\r";
    const char *found = letter > 0 ? strchr(letters, letter) : NULL;
    if (found != NULL) {
        *ret = (unsigned char)codes[found - letters];
    }
    return found != NULL;
}

/* The escapes that mean the same in and outside of a class; x->at is behind the backslash. */
static int take_escape(struct ecma *x, struct atom *ret)
{
    size_t begin = x->at - 1;
    int c = peek(x, 0);
    if (c < 0) {
        return bad(x, begin, "the pattern ends in a backslash");
    }
    if (named_set(c, ret) || control_letter(c, &ret->c)) {
        x->at++;
        return 0;
    }
    x->at++;
    switch (c) {
    case 'p':
    case 'P':
        return take_property(x, c == 'P', ret);
    case 'u':
        return take_unicode(x, &ret->c);
    case 'x':
        return take_hex(x, 2, &ret->c) ? 0 : bad(x, begin, "\\x needs two hexadecimal digits");
    case 'c':
        c = peek(x, 0);
        if (!is_alnum(c) || is_digit(c)) {
            return bad(x, begin, "\\c needs a letter");
        }
        x->at++;
        ret->c = (uint32_t)c & 0x1f;
        return 0;
    case '0':
        ret->c = 0;
        return is_digit(peek(x, 0)) ? bad(x, begin, "octal escapes are not allowed") : 0;
    default:
        break;
    }
    if (is_alnum(c) || c >= 0x80 || c < 0x20) {
        return bad(x, begin, "unknown escape (patterns follow ECMA-262)");
    }
    ret->c = (uint32_t)c;
    return 0;
}

/* --- classes --- */

static int take_member(struct ecma *x, struct atom *ret)
{
    *ret = (struct atom) { 0 };
    if (peek(x, 0) != '\\') {
        ret->c = take_char(x);
        return 0;
    }
    x->at++;
    if (skip(x, "b")) {
        ret->c = '\b';
        return 0;
    }
    return take_escape(x, ret);
}

static int emit_member(struct ecma *x, const struct atom *a)
{
    return a->is_set ? emit(x, atom_set(a)) : emit_char(x, a->c);
}

static int take_range(struct ecma *x)
{
    size_t begin = x->at;
    struct atom low;
    struct atom high;
    int rc = take_member(x, &low);
    if (rc == 0) {
        rc = emit_member(x, &low);
    }
    if (rc != 0 || peek(x, 0) != '-' || peek(x, 1) == ']' || peek(x, 1) < 0) {
        return rc;
    }
    x->at++;
    rc = take_member(x, &high);
    if (rc == 0 && !low.is_set && !high.is_set && low.c > high.c) {
        return bad(x, begin, "the range in the class is out of order");
    }
    if (rc == 0) {
        /* [\w-.]: with a set at one end the hyphen stands for itself */
        rc = emit(x, low.is_set || high.is_set ? "\\x{2d}" : "-");
    }
    return rc != 0 ? rc : emit_member(x, &high);
}

static int take_class(struct ecma *x)
{
    size_t begin = x->at - 1;
    bool negated = skip(x, "^");
    x->repeatable = true;
    if (skip(x, "]")) {
        return emit(x, negated ? "[\\x{0}-\\x{10ffff}]" : "(?!)");
    }
    int rc = emit(x, negated ? "[^" : "[");
    while (rc == 0 && !skip(x, "]")) {
        if (peek(x, 0) < 0) {
            return bad(x, begin, "the class is not closed, ']' is missing");
        }
        rc = take_range(x);
    }
    return rc != 0 ? rc : emit(x, "]");
}

/* --- groups --- */

static bool is_name_byte(int c)
{
    return is_alnum(c) || c == '_' || c == '$' || c >= 0x80;
}

/* A group name and its '>'; x->at is behind the '<'. */
static bool take_name(struct ecma *x, struct str *ret)
{
    size_t from = x->at;
    while (is_name_byte(peek(x, 0))) {
        x->at++;
    }
    *ret = str_slice(x->p, from, x->at);
    return ret->len > 0 && !is_digit((unsigned char)ret->ptr[0]) && skip(x, ">");
}

static unsigned find_name(const struct ecma *x, struct str name)
{
    for (size_t i = 0; i < x->name_count; i++) {
        if (str_eq(x->names[i].name, name)) {
            return x->names[i].number;
        }
    }
    return 0;
}

/* Counts the groups and learns their names before the pattern is read: \k and \1 may point
 * forward. */
static int survey(struct ecma *x)
{
    bool in_class = false;
    for (x->at = 0; x->at < x->p.len; x->at++) {
        int c = peek(x, 0);
        if (c == '\\') {
            x->at++;
        } else if (in_class || c == '[') {
            in_class = c != ']';
        } else if (c == '(' && peek(x, 1) != '?') {
            x->groups++;
        } else if (c == '(' && peek(x, 2) == '<' && peek(x, 3) != '=' && peek(x, 3) != '!') {
            size_t begin = x->at;
            struct str name;
            x->groups++;
            x->at += 3;
            if (!take_name(x, &name)) {
                return bad(x, begin, "a group name must be an identifier, as in (?<name>…)");
            }
            if (find_name(x, name) != 0 || x->name_count == NAMES_MAX) {
                return bad(x, begin, "the group name is used twice, or there are too many");
            }
            x->names[x->name_count++] = (struct group_name) { name, x->groups };
            x->at--;
        }
    }
    x->at = 0;
    return 0;
}

static int open_group(struct ecma *x)
{
    static const char *const plain[] = { "?:", "?=", "?!", "?<=", "?<!" };
    size_t begin = x->at - 1;
    if (x->depth == OPEN_MAX) {
        return bad(x, begin, "groups are nested too deeply");
    }
    x->repeatable = false;
    x->asserts[x->depth] = false;
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (skip(x, plain[i])) {
            x->asserts[x->depth++] = i > 0;
            return buf_printf(x->out, x->e, "(%s", plain[i]);
        }
    }
    struct str name;
    if (peek(x, 0) == '?' && !(skip(x, "?<") && take_name(x, &name))) {
        return bad(x, begin, "not a group that ECMA-262 knows");
    }
    x->depth++;
    return emit(x, "(");
}

static int close_group(struct ecma *x)
{
    if (x->depth == 0) {
        return bad(x, x->at - 1, "')' without '('");
    }
    x->repeatable = !x->asserts[--x->depth];
    return emit(x, ")");
}

/* --- the rest --- */

static int take_back_reference(struct ecma *x)
{
    size_t begin = x->at - 1;
    unsigned number = 0;
    struct str name;
    if (skip(x, "k")) {
        if (!skip(x, "<") || !take_name(x, &name)) {
            return bad(x, begin, "\\k needs the name of a group, as in \\k<name>");
        }
        number = find_name(x, name);
    } else {
        while (is_digit(peek(x, 0)) && number <= x->groups) {
            number = number * 10 + (unsigned)(peek(x, 0) - '0');
            x->at++;
        }
    }
    if (number == 0 || number > x->groups) {
        return bad(x, begin, "there is no such group to refer to");
    }
    x->repeatable = true;
    return buf_printf(x->out, x->e, "\\g{%u}", number);
}

static int take_escaped_atom(struct ecma *x)
{
    int c = peek(x, 0);
    if (c == 'b' || c == 'B') {
        x->at++;
        x->repeatable = false;
        return emit(x, c == 'b' ? "\\b" : "\\B");
    }
    if (c == 'k' || (is_digit(c) && c != '0')) {
        return take_back_reference(x);
    }
    struct atom a = { 0 };
    int rc = take_escape(x, &a);
    x->repeatable = true;
    if (rc != 0 || !a.is_set) {
        return rc != 0 ? rc : emit_char(x, a.c);
    }
    return buf_printf(x->out, x->e, "[%s]", atom_set(&a));
}

/* Digits at *at; false when there are none. The value stops growing beyond REPEAT_MAX. */
static bool read_count(const struct ecma *x, size_t *at, unsigned *ret)
{
    size_t begin = *at;
    *ret = 0;
    for (; *at < x->p.len && is_digit((unsigned char)x->p.ptr[*at]); (*at)++) {
        *ret = *ret > REPEAT_MAX ? *ret : *ret * 10 + (unsigned)(x->p.ptr[*at] - '0');
    }
    return *at > begin;
}

/* The length of {n}, {n,} or {n,m} at the brace before x->at, or 0 when the brace is a character
 * of its own. */
static size_t braces(const struct ecma *x, unsigned *ret_low, unsigned *ret_high)
{
    size_t at = x->at;
    if (!read_count(x, &at, ret_low)) {
        return 0;
    }
    *ret_high = *ret_low;
    if (at < x->p.len && x->p.ptr[at] == ',') {
        at++;
        if (!read_count(x, &at, ret_high)) {
            *ret_high = UINT32_MAX;
        }
    }
    return at < x->p.len && x->p.ptr[at] == '}' ? at + 1 - x->at : 0;
}

static int take_quantifier(struct ecma *x, size_t len)
{
    size_t begin = x->at - 1;
    if (!x->repeatable) {
        return bad(x, begin, "there is nothing to repeat");
    }
    x->repeatable = false;
    x->at += len;
    if (peek(x, 0) == '?') {
        x->at++;
    }
    return buf_append(x->out, str_slice(x->p, begin, x->at), x->e);
}

static int take_brace(struct ecma *x)
{
    unsigned low = 0;
    unsigned high = 0;
    size_t begin = x->at - 1;
    size_t len = braces(x, &low, &high);
    if (len == 0) {
        x->repeatable = true;
        return emit_char(x, '{');
    }
    if (low > high) {
        return bad(x, begin, "the repeat counts are out of order");
    }
    if (low > REPEAT_MAX || (high > REPEAT_MAX && high != UINT32_MAX)) {
        return bad(x, begin, "a repeat count is at most 65535");
    }
    return take_quantifier(x, len);
}

static int take_term(struct ecma *x)
{
    uint32_t c = take_char(x);
    switch (c) {
    case '\\':
        return take_escaped_atom(x);
    case '[':
        return take_class(x);
    case '(':
        return open_group(x);
    case ')':
        return close_group(x);
    case '*':
    case '+':
    case '?':
        return take_quantifier(x, 0);
    case '{':
        return take_brace(x);
    case '^':
    case '$':
    case '|':
        x->repeatable = false;
        return buf_append_c(x->out, (char)c, x->e);
    case '.':
        x->repeatable = true;
        return emit(x, "[^\\n\\r\\x{2028}\\x{2029}]");
    default:
        x->repeatable = true;
        return emit_char(x, c);
    }
}

int regex_translate(struct str pattern, struct buf *out, struct err *e)
{
    struct ecma x = { .p = pattern, .out = out, .e = e };
    if (pattern.len > REGEX_PATTERN_MAX) {
        return ERR(e, ERR_PARSE, "pattern of %zu bytes is too long, at most %d are allowed",
                   pattern.len, REGEX_PATTERN_MAX);
    }
    if (!str_is_utf8(pattern)) {
        return bad(&x, 0, "not valid UTF-8");
    }
    int rc = survey(&x);
    while (rc == 0 && x.at < x.p.len) {
        rc = take_term(&x);
    }
    if (rc == 0 && x.depth > 0) {
        return bad(&x, x.at, "a group is not closed, ')' is missing");
    }
    return rc;
}
