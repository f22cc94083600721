/* SPDX-License-Identifier: MIT
 *
 * Text to tokens, with the rules of jinja2/lexer.py: white space control by '-' and '+',
 * trim_blocks, lstrip_blocks, raw blocks, comments, and end tags that count only outside brackets.
 * The whole text is read at once into an array, so that the parser can look ahead freely.
 */
#include "template/template_ast_priv.h"

#include <stdlib.h>

#include "template/template_render_priv.h"
#include "template/template_unicode.h"

struct lexer {
    struct compile *c;
    struct arena *scratch;
    struct str text;
    size_t at;
    uint32_t line;
    bool line_starting; /* what came before ended with a newline, or nothing came before */
    struct token *tokens;
    size_t len, cap;
    char open[100]; /* brackets waiting for their partner */
    size_t open_len;
};

const char *tpl_token_describe(enum token_kind kind)
{
    static const char *const names[TOKEN_KIND_MAX] = {
        [TOKEN_EOF] = "end of template",
        [TOKEN_DATA] = "template data",
        [TOKEN_PRINT_BEGIN] = "begin of print statement",
        [TOKEN_PRINT_END] = "end of print statement",
        [TOKEN_BLOCK_BEGIN] = "begin of statement block",
        [TOKEN_BLOCK_END] = "end of statement block",
        [TOKEN_NAME] = "name",
        [TOKEN_STRING] = "string",
        [TOKEN_INTEGER] = "integer",
        [TOKEN_FLOAT] = "float",
        [TOKEN_ADD] = "+",
        [TOKEN_SUB] = "-",
        [TOKEN_MUL] = "*",
        [TOKEN_DIV] = "/",
        [TOKEN_FLOORDIV] = "//",
        [TOKEN_MOD] = "%",
        [TOKEN_POW] = "**",
        [TOKEN_TILDE] = "~",
        [TOKEN_LBRACKET] = "[",
        [TOKEN_RBRACKET] = "]",
        [TOKEN_LPAREN] = "(",
        [TOKEN_RPAREN] = ")",
        [TOKEN_LBRACE] = "{",
        [TOKEN_RBRACE] = "}",
        [TOKEN_EQ] = "==",
        [TOKEN_NE] = "!=",
        [TOKEN_GT] = ">",
        [TOKEN_GTEQ] = ">=",
        [TOKEN_LT] = "<",
        [TOKEN_LTEQ] = "<=",
        [TOKEN_ASSIGN] = "=",
        [TOKEN_DOT] = ".",
        [TOKEN_COLON] = ":",
        [TOKEN_PIPE] = "|",
        [TOKEN_COMMA] = ",",
        [TOKEN_SEMICOLON] = ";",
    };
    return names[kind];
}

static struct token *push(struct lexer *x, enum token_kind kind)
{
    if (x->len == x->cap) {
        size_t cap = x->cap == 0 ? 64 : x->cap * 2;
        struct token *more = arena_array(x->scratch, cap, sizeof *more);
        if (x->len > 0) {
            memcpy(more, x->tokens, x->len * sizeof *more);
        }
        x->tokens = more;
        x->cap = cap;
    }
    struct token *t = &x->tokens[x->len++];
    *t = (struct token) { .kind = kind, .line = x->line };
    return t;
}

static struct str rest(const struct lexer *x)
{
    return str_n(x->text.ptr + x->at, x->text.len - x->at);
}

static void advance(struct lexer *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x->line += x->text.ptr[x->at + i] == '\n';
    }
    x->at += n;
    if (n > 0) {
        x->line_starting = x->text.ptr[x->at - 1] == '\n';
    }
}

static size_t space_len(struct str s)
{
    return s.len - unicode_strip(s, true, false).len;
}

/* Length of an end tag at s, with the white space that it takes along; 0 when there is none. */
static size_t end_tag(const struct lexer *x, struct str s, const char *tag, bool is_block)
{
    size_t sign = s.len > 0 && (s.ptr[0] == '-' || (is_block && s.ptr[0] == '+'));
    struct str after = str_slice(s, sign, s.len);
    if (!str_starts(after, str_of(tag))) {
        return 0;
    }
    after = str_slice(after, strlen(tag), after.len);
    size_t n = sign + strlen(tag);
    if (sign == 1 && s.ptr[0] == '-') {
        return n + space_len(after);
    }
    bool trims = is_block && sign == 0 && x->c->set->trim_blocks;
    return n + (trims && after.len > 0 && after.ptr[0] == '\n');
}

/* Text before a tag: cut off on the right as the tag's sign and lstrip_blocks say. */
static void push_data(struct lexer *x, size_t len, char sign, bool is_print)
{
    struct str data = str_n(x->text.ptr + x->at, len);
    if (sign == '-') {
        data = unicode_strip(data, false, true);
    } else if (sign != '+' && x->c->set->lstrip_blocks && !is_print) {
        size_t from = len;
        while (from > 0 && data.ptr[from - 1] != '\n') {
            from--;
        }
        struct str last = str_slice(data, from, len);
        if ((from > 0 || x->line_starting) && unicode_strip(last, true, false).len == 0) {
            data.len = from;
        }
    }
    if (data.len > 0) {
        push(x, TOKEN_DATA)->text = data;
    }
    advance(x, len);
}

static char sign_at(struct str s)
{
    return s.len > 2 && (s.ptr[2] == '-' || s.ptr[2] == '+') ? s.ptr[2] : '\0';
}

/* Length of "{%- name" plus blanks at s, or 0. */
static size_t block_word(struct str s, const char *word)
{
    size_t n = 2 + (sign_at(s) != '\0');
    n += space_len(str_slice(s, n, s.len));
    if (!str_starts(s, STR("{%")) || !str_starts(str_slice(s, n, s.len), str_of(word))) {
        return 0;
    }
    n += strlen(word);
    return n + space_len(str_slice(s, n, s.len));
}

/* "{% raw %}": '+' is not known at its end. */
static size_t raw_begin(struct str s)
{
    size_t n = block_word(s, "raw");
    struct str tail = str_slice(s, n, s.len);
    if (n == 0) {
        return 0;
    }
    if (str_starts(tail, STR("-%}"))) {
        return n + 3 + space_len(str_slice(tail, 3, tail.len));
    }
    return str_starts(tail, STR("%}")) ? n + 2 : 0;
}

static int lex_raw(struct lexer *x, size_t begin)
{
    advance(x, begin);
    for (size_t i = x->at; i < x->text.len; i++) {
        struct str s = str_slice(x->text, i, x->text.len);
        size_t n = s.ptr[0] == '{' ? block_word(s, "endraw") : 0;
        if (n == 0) {
            continue;
        }
        size_t tail = end_tag(x, str_slice(s, n, s.len), "%}", true);
        if (tail > 0) {
            push_data(x, i - x->at, sign_at(s), false);
            advance(x, n + tail);
            return 0;
        }
    }
    if (x->at == x->text.len) {
        return 0; /* as Jinja2: nothing after the tag is no error */
    }
    return tpl_compile_fail(x->c, TEMPLATE_FAULT_SYNTAX, x->line, "missing end of raw block");
}

static int lex_comment(struct lexer *x, size_t begin)
{
    advance(x, begin);
    for (size_t i = x->at; i < x->text.len; i++) {
        size_t tail = end_tag(x, str_slice(x->text, i, x->text.len), "#}", true);
        if (tail > 0) {
            advance(x, i - x->at + tail);
            return 0;
        }
    }
    if (x->at == x->text.len) {
        return 0;
    }
    return tpl_compile_fail(x->c, TEMPLATE_FAULT_SYNTAX, x->line, "missing end of comment");
}

static bool is_name_start(uint32_t c)
{
    return unicode_is_word(c) && !(c >= '0' && c <= '9');
}

static int lex_name(struct lexer *x)
{
    size_t end = x->at;
    while (end < x->text.len) {
        size_t next = end;
        if (!unicode_is_word(unicode_next(x->text, &next))) {
            break;
        }
        end = next;
    }
    struct token *t = push(x, TOKEN_NAME);
    t->text = str_n(x->text.ptr + x->at, end - x->at);
    advance(x, end - x->at);
    return 0;
}

static bool is_digit_of(char c, int base)
{
    if (base == 16) {
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    }
    return c >= '0' && c < '0' + base;
}

/* Digits of the base with single underscores between (or before, after a prefix). */
static size_t digits_len(struct str s, int base)
{
    size_t n = 0;
    while (n < s.len) {
        size_t under = s.ptr[n] == '_' && n + 1 < s.len;
        if (!is_digit_of(s.ptr[n + under], base)) {
            break;
        }
        n += under + 1;
    }
    return n;
}

/* Length of a float here: digits, then a fraction, an exponent or both. */
static size_t float_len(struct str s)
{
    size_t n = digits_len(s, 10);
    size_t fraction = 0;
    if (n + 1 < s.len && s.ptr[n] == '.' && is_digit_of(s.ptr[n + 1], 10)) {
        fraction = 1 + digits_len(str_slice(s, n + 1, s.len), 10);
    }
    size_t exp = n + fraction;
    if (exp < s.len && (s.ptr[exp] | 0x20) == 'e') {
        size_t sign = exp + 1 < s.len && (s.ptr[exp + 1] == '+' || s.ptr[exp + 1] == '-');
        struct str tail = str_slice(s, exp + 1 + sign, s.len);
        if (tail.len > 0 && is_digit_of(tail.ptr[0], 10)) {
            return exp + 1 + sign + digits_len(tail, 10);
        }
    }
    return fraction > 0 ? n + fraction : 0;
}

/* The digits without underscores, NUL-terminated. */
static char *plain_digits(struct lexer *x, struct str s)
{
    char *copy = arena_alloc(x->scratch, s.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != '_') {
            copy[n++] = s.ptr[i];
        }
    }
    copy[n] = '\0';
    return copy;
}

static int lex_integer(struct lexer *x, struct str s)
{
    int base = 10;
    size_t n = 0;
    if (s.len > 2 && s.ptr[0] == '0') {
        char mark = (char)(s.ptr[1] | 0x20);
        base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
        n = base == 10 ? 0 : digits_len(str_slice(s, 2, s.len), base);
    }
    struct str digits = str_slice(s, 2, 2 + n);
    size_t total = n + 2;
    if (n == 0) { /* decimal; a leading zero stands alone */
        base = s.ptr[0] == '0' ? 1 : 10;
        total = digits_len(s, base);
        digits = str_slice(s, 0, total);
        base = 10;
    }
    const char *plain = plain_digits(x, digits);
    uint64_t value = 0;
    for (const char *p = plain; *p != '\0'; p++) {
        uint64_t digit = (uint64_t)unicode_digit_value(*p);
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, digit, &value) || value > INT64_MAX) {
            return tpl_compile_fail(x->c, TEMPLATE_FAULT_LIMIT, x->line,
                                    "integer '%.40s' has more than 64 bits", plain);
        }
    }
    push(x, TOKEN_INTEGER)->integer = (int64_t)value;
    advance(x, total);
    return 0;
}

static int lex_number(struct lexer *x)
{
    struct str s = rest(x);
    bool after_dot = x->at > 0 && x->text.ptr[x->at - 1] == '.';
    size_t n = after_dot ? 0 : float_len(s);
    if (n == 0) {
        return lex_integer(x, s);
    }
    push(x, TOKEN_FLOAT)->real = strtod(plain_digits(x, str_slice(s, 0, n)), NULL);
    advance(x, n);
    return 0;
}

/* The character of \xhh, \uhhhh, \Uhhhhhhhh or \ooo. */
static int lex_code(struct lexer *x, struct str s, size_t *at, struct buf *out)
{
    char c = s.ptr[*at];
    int base = c == 'x' || c == 'u' || c == 'U' ? 16 : 8;
    size_t want = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 3;
    size_t from = *at + (base == 16);
    size_t n = 0;
    uint32_t code = 0;
    while (n < want && from + n < s.len && is_digit_of(s.ptr[from + n], base)) {
        code = code * (uint32_t)base + (uint32_t)unicode_digit_value(s.ptr[from + n++]);
    }
    if (n == 0 || (base == 16 && n < want) || !unicode_is_scalar(code)) {
        return tpl_compile_fail(x->c, TEMPLATE_FAULT_SYNTAX, x->line,
                                "invalid escape '\\%c' in string", c);
    }
    char bytes[4];
    *at = from + n;
    return buf_append(out, str_n(bytes, unicode_encode(code, bytes)), x->c->e);
}

/* One escape after the backslash at *at, as Python's unicode-escape codec reads it. */
static int lex_escape(struct lexer *x, struct str s, size_t *at, struct buf *out)
{
    static const char simple[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    char c = s.ptr[*at];
    for (size_t i = 0; i + 1 < sizeof simple; i += 2) {
        if (simple[i] == c) {
            *at += 1;
            return buf_append_c(out, simple[i + 1], x->c->e);
        }
    }
    if (c == '\n') {
        *at += 1;
        return 0;
    }
    if ((unsigned char)c >= 0x80) { /* the codec sees "\\xe9" where the text has U+00E9 */
        uint32_t wide = unicode_next(s, at);
        return buf_printf(out, x->c->e,
                          wide < 0x100     ? "\\x%02x"
                          : wide < 0x10000 ? "\\u%04x"
                                           : "\\U%08x",
                          wide);
    }
    bool known = c != '\0' && strchr("01234567xuUN", c) != NULL;
    return known ? lex_code(x, s, at, out) : buf_append_c(out, '\\', x->c->e);
}

static int unescape(struct lexer *x, struct str s, struct str *ret)
{
    if (s.len == 0 || memchr(s.ptr, '\\', s.len) == NULL) {
        *ret = s;
        return 0;
    }
    CLEANUP(buf) struct buf b = BUF_INIT(s.len * 3 + 16);
    for (size_t at = 0; at < s.len;) {
        int r;
        if (s.ptr[at] == '\\' && at + 1 < s.len) {
            at++;
            r = lex_escape(x, s, &at, &b);
        } else {
            r = buf_append_c(&b, s.ptr[at++], x->c->e);
        }
        if (r < 0) {
            return r;
        }
    }
    *ret = arena_str(x->c->arena, buf_str(&b));
    return 0;
}

static int lex_string(struct lexer *x, bool *ret_done)
{
    struct str s = rest(x);
    size_t end = 1;
    while (end < s.len && s.ptr[end] != s.ptr[0]) {
        end += s.ptr[end] == '\\' ? 2 : 1;
    }
    *ret_done = end < s.len;
    if (end >= s.len) {
        return 0;
    }
    struct str value;
    int r = unescape(x, str_slice(s, 1, end), &value);
    if (r < 0) {
        return r;
    }
    push(x, TOKEN_STRING)->text = value;
    advance(x, end + 1);
    return 0;
}

static enum token_kind operator_at(struct str s, size_t *len)
{
    static const struct {
        char text[3];
        enum token_kind kind;
    } ops[] = {
        { "//", TOKEN_FLOORDIV }, { "**", TOKEN_POW },      { "==", TOKEN_EQ },
        { "!=", TOKEN_NE },       { ">=", TOKEN_GTEQ },     { "<=", TOKEN_LTEQ },
        { "+", TOKEN_ADD },       { "-", TOKEN_SUB },       { "/", TOKEN_DIV },
        { "*", TOKEN_MUL },       { "%", TOKEN_MOD },       { "~", TOKEN_TILDE },
        { "[", TOKEN_LBRACKET },  { "]", TOKEN_RBRACKET },  { "(", TOKEN_LPAREN },
        { ")", TOKEN_RPAREN },    { "{", TOKEN_LBRACE },    { "}", TOKEN_RBRACE },
        { ">", TOKEN_GT },        { "<", TOKEN_LT },        { "=", TOKEN_ASSIGN },
        { ".", TOKEN_DOT },       { ":", TOKEN_COLON },     { "|", TOKEN_PIPE },
        { ",", TOKEN_COMMA },     { ";", TOKEN_SEMICOLON },
    };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (str_starts(s, str_of(ops[i].text))) {
            *len = strlen(ops[i].text);
            return ops[i].kind;
        }
    }
    return TOKEN_EOF;
}

static int balance(struct lexer *x, char c)
{
    const char *opening = "([{";
    const char *closing = ")]}";
    const char *p = strchr(opening, c);
    if (p != NULL && *p != '\0') {
        if (x->open_len == sizeof x->open || x->open_len >= x->c->set->limits.max_nesting) {
            return tpl_compile_fail(x->c, TEMPLATE_FAULT_LIMIT, x->line, "brackets nest too deep");
        }
        x->open[x->open_len++] = closing[p - opening];
        return 0;
    }
    p = strchr(closing, c);
    if (p == NULL || *p == '\0') {
        return 0;
    }
    if (x->open_len == 0) {
        return tpl_compile_fail(x->c, TEMPLATE_FAULT_SYNTAX, x->line, "unexpected '%c'", c);
    }
    char expected = x->open[--x->open_len];
    if (expected != c) {
        return tpl_compile_fail(x->c, TEMPLATE_FAULT_SYNTAX, x->line,
                                "unexpected '%c', expected '%c'", c, expected);
    }
    return 0;
}

static int lex_operator(struct lexer *x)
{
    size_t n = 0;
    enum token_kind kind = operator_at(rest(x), &n);
    if (kind == TOKEN_EOF) {
        size_t next = x->at;
        (void)unicode_next(x->text, &next);
        return tpl_compile_fail(x->c, TEMPLATE_FAULT_SYNTAX, x->line, "unexpected character '%.*s'",
                                (int)(next - x->at), x->text.ptr + x->at);
    }
    int r = balance(x, x->text.ptr[x->at]);
    if (r < 0) {
        return r;
    }
    push(x, kind);
    advance(x, n);
    return 0;
}

/* One token inside a tag. */
static int lex_inside(struct lexer *x)
{
    size_t next = x->at;
    uint32_t c = unicode_next(x->text, &next);
    if (unicode_is_space(c)) {
        advance(x, space_len(rest(x)));
        return 0;
    }
    if (c >= '0' && c <= '9') {
        return lex_number(x);
    }
    if (is_name_start(c)) {
        return lex_name(x);
    }
    if (c == '"' || c == '\'') {
        bool done;
        int r = lex_string(x, &done);
        if (r < 0 || done) {
            return r;
        }
    }
    return lex_operator(x);
}

/* From behind "{%" or "{{" to its end, or the end of the text. */
static int lex_tag(struct lexer *x, bool is_block)
{
    while (x->at < x->text.len) {
        size_t n = x->open_len == 0 ? end_tag(x, rest(x), is_block ? "%}" : "}}", is_block) : 0;
        if (n > 0) {
            push(x, is_block ? TOKEN_BLOCK_END : TOKEN_PRINT_END);
            advance(x, n);
            return 0;
        }
        int r = lex_inside(x);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int lex_one(struct lexer *x)
{
    size_t end = x->at;
    while (end + 1 < x->text.len &&
           !(x->text.ptr[end] == '{' && strchr("%{#", x->text.ptr[end + 1]) != NULL &&
             x->text.ptr[end + 1] != '\0')) {
        end++;
    }
    if (end + 1 >= x->text.len) {
        push(x, TOKEN_DATA)->text = rest(x);
        advance(x, x->text.len - x->at);
        return 0;
    }
    struct str tag = str_slice(x->text, end, x->text.len);
    char sign = sign_at(tag);
    bool is_print = tag.ptr[1] == '{';
    push_data(x, end - x->at, sign, is_print);
    size_t begin = 2 + (sign != '\0');
    if (tag.ptr[1] == '#') {
        return lex_comment(x, begin);
    }
    size_t raw = raw_begin(tag);
    if (raw > 0) {
        return lex_raw(x, raw);
    }
    push(x, is_print ? TOKEN_PRINT_BEGIN : TOKEN_BLOCK_BEGIN);
    advance(x, begin);
    return lex_tag(x, !is_print);
}

/* "\r\n" and "\r" become "\n"; one newline at the end goes unless it is to be kept. */
static struct str normalize(struct lexer *x, struct str text)
{
    char *copy = arena_alloc(x->c->arena, text.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\r') {
            i += i + 1 < text.len && text.ptr[i + 1] == '\n';
            copy[n++] = '\n';
        } else {
            copy[n++] = text.ptr[i];
        }
    }
    if (!x->c->set->keep_trailing_newline && n > 0 && copy[n - 1] == '\n') {
        n--;
    }
    return str_n(copy, n);
}

int template_lex(struct compile *c, struct arena *scratch, struct str text, struct token_list *ret)
{
    struct lexer x = { .c = c, .scratch = scratch, .line = 1, .line_starting = true };
    x.text = normalize(&x, text);
    while (x.at < x.text.len) {
        int r = lex_one(&x);
        if (r < 0) {
            return r;
        }
    }
    push(&x, TOKEN_EOF);
    *ret = (struct token_list) { x.tokens, x.len };
    return 0;
}
