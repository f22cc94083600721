/* SPDX-License-Identifier: MIT
 *
 * Fences and balanced brackets. Nothing here parses JSON: what is found is only worth a try.
 */
#include "prompt/structured_priv.h"

/* Deeper nesting than a candidate may have anyway (json_limits). */
enum { OPEN_MAX = 1024 };
/* Bytes behind a bracket that tell whether it is worth a search for its partner. */
enum { LOOK_AHEAD = 64 };

static bool is_fence_char(char c)
{
    return c == '`' || c == '~';
}

/* How often the fence character at `i` repeats. */
static size_t fence_len(struct str text, size_t i)
{
    size_t n = 0;
    while (i + n < text.len && text.ptr[i + n] == text.ptr[i]) {
        n++;
    }
    return n;
}

static size_t line_end(struct str text, size_t i)
{
    while (i < text.len && text.ptr[i] != '\n') {
        i++;
    }
    return i;
}

/* Where a line begins that is nothing but a closing fence; text.len when there is none. *ret_after
 * is behind that line. */
static size_t find_closing_line(struct str text, size_t from, char mark, size_t len,
                                size_t *ret_after)
{
    for (size_t i = from; i < text.len;) {
        size_t end = line_end(text, i);
        struct str line = str_trim(str_slice(text, i, end));
        if (line.len >= len && line.ptr[0] == mark && fence_len(line, 0) == line.len) {
            *ret_after = end;
            return i;
        }
        i = end + 1;
    }
    *ret_after = text.len;
    return text.len;
}

/* Where a run of at least `len` marks begins, anywhere. */
static size_t find_closing_mark(struct str text, size_t from, char mark, size_t len)
{
    for (size_t i = from; i < text.len; i++) {
        if (text.ptr[i] == mark) {
            size_t n = fence_len(text, i);
            if (n >= len) {
                return i;
            }
            i += n - 1;
        }
    }
    return text.len;
}

static bool is_json_label(struct str word)
{
    return word.len >= 4 && (word.ptr[0] | 0x20) == 'j' && (word.ptr[1] | 0x20) == 's' &&
           (word.ptr[2] | 0x20) == 'o' && (word.ptr[3] | 0x20) == 'n' &&
           (word.len == 4 || word.ptr[4] == 'c' || word.ptr[4] == '5' || word.ptr[4] == ' ');
}

/* The label ends at white space or where the value begins: ```json{"a":1}``` is one line. */
static size_t label_len(struct str s)
{
    size_t n = 0;
    while (n < s.len && strchr(" \t\r\n{[`", s.ptr[n]) == NULL) {
        n++;
    }
    return n;
}

static bool spend(size_t *budget, size_t bytes)
{
    bool enough = bytes <= *budget;
    *budget = enough ? *budget - bytes : 0;
    return enough;
}

bool scan_fence(struct str text, size_t *at, size_t *budget, struct fence *ret)
{
    for (size_t i = *at; i < text.len; i++) {
        if (!is_fence_char(text.ptr[i])) {
            continue;
        }
        size_t len = fence_len(text, i);
        if (len < 3) {
            i += len - 1;
            continue;
        }
        char mark = text.ptr[i];
        struct str rest = str_slice(text, i + len, text.len);
        size_t label = label_len(rest);
        size_t begin = i + len + label;
        size_t after = 0;
        size_t line = find_closing_line(text, begin, mark, len, &after);
        size_t anywhere = find_closing_mark(text, begin, mark, len);
        ret->json = is_json_label(str_slice(rest, 0, label));
        ret->content = str_trim(str_slice(text, begin, line));
        ret->shorter = str_trim(str_slice(text, begin, anywhere));
        if (!spend(budget, after - i + anywhere - i)) {
            return false;
        }
        /* go on behind the nearer end: what follows may be a block of its own */
        *at = anywhere < line ? anywhere + fence_len(text, anywhere) : after;
        return true;
    }
    return false;
}

/* The offset behind the string that begins at `i`; text.len when it does not end. */
static size_t skip_string(struct str text, size_t i)
{
    for (i++; i < text.len; i++) {
        if (text.ptr[i] == '\\') {
            i++;
        } else if (text.ptr[i] == '"') {
            return i + 1;
        }
    }
    return text.len;
}

/* The offset behind the partner of the bracket at `from`; 0 when it has none. *ret_seen is the
 * number of bytes looked at. */
static size_t match_bracket(struct str text, size_t from, size_t *ret_seen)
{
    char closing[OPEN_MAX];
    size_t depth = 0;
    size_t i = from;
    size_t end = 0;
    while (i < text.len && end == 0) {
        char c = text.ptr[i];
        if (c == '"') {
            i = skip_string(text, i);
            continue;
        }
        i++;
        if (c == '{' || c == '[') {
            if (depth == OPEN_MAX) {
                break;
            }
            closing[depth++] = c == '{' ? '}' : ']';
        } else if (c == '}' || c == ']') {
            if (closing[--depth] != c) {
                break;
            }
            end = depth == 0 ? i : 0;
        }
    }
    *ret_seen = i - from;
    return end;
}

/* Whether a value can begin here, judged by what follows the bracket: prose is full of {braces},
 * and code too. */
static bool may_be_value(struct str text, size_t i)
{
    struct str rest = str_trim(str_slice(text, i + 1, i + 1 + LOOK_AHEAD));
    if (rest.len == 0) {
        return true; /* a lot of white space, or the end */
    }
    const char *first = text.ptr[i] == '{' ? "\"}" : "\"{[]-0123456789tfn";
    return rest.ptr[0] != '\0' && strchr(first, rest.ptr[0]) != NULL;
}

bool scan_balanced(struct str text, size_t *at, size_t *budget, struct str *ret)
{
    for (; *at < text.len; (*at)++) {
        char c = text.ptr[*at];
        if ((c != '{' && c != '[') || !may_be_value(text, *at)) {
            continue;
        }
        size_t seen = 0;
        size_t end = match_bracket(text, *at, &seen);
        if (!spend(budget, seen)) {
            return false;
        }
        if (end > 0) {
            *ret = str_slice(text, *at, end);
            return true;
        }
    }
    return false;
}
