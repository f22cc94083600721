/* SPDX-License-Identifier: MIT
 *
 * struct json as YAML in block style, for configuration files that people will read. Strings are
 * written plain only when no reader could take them for something else, and as JSON strings
 * otherwise.
 */
#include "data/yaml.h"

#include <strings.h>

#include "data/yaml_priv.h"

/* Trees that code has built may be deeper than what a parser admits; beyond this they are refused.
 */
enum { DEPTH_MAX = 256 };

static bool is_plain(struct str s)
{
    static const char *const reserved[] = { "true", "false", "null", "yes", "no",
                                            "on",   "off",   "y",    "n" };
    if (s.len == 0 || s.len > 120) {
        return false;
    }
    bool letter = false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        letter = letter || alpha;
        if (!alpha && (i == 0 || strchr("0123456789_-./", c) == NULL || c == '\0')) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (s.len == strlen(reserved[i]) && strncasecmp(s.ptr, reserved[i], s.len) == 0) {
            return false;
        }
    }
    return letter;
}

/* A JSON string is a YAML one, but for characters that JSON lets stand and YAML readers dispute. */
static int put_quoted(struct str s, struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf json = BUF_INIT(out->max);
    int r = json_write_string(s, &json, e);
    struct str text = buf_str(&json);
    size_t clean = 0; /* start of the run that can be copied as it is */
    for (size_t i = 0; r == 0 && i < text.len; i++) {
        unsigned c;
        if (yaml_is_disputed(text, i, &c)) {
            r = buf_append(out, str_slice(text, clean, i), e);
            r = r == 0 ? buf_printf(out, e, "\\u%04x", c) : r;
            i += c < 0x80 ? 0 : c < 0x800 ? 1 : 2;
            clean = i + 1;
        }
    }
    return r == 0 ? buf_append(out, str_slice(text, clean, text.len), e) : r;
}

static int put_text(struct str s, struct buf *out, struct err *e)
{
    return is_plain(s) ? buf_append(out, s, e) : put_quoted(s, out, e);
}

static int put_value(const struct json *v, int depth, struct buf *out, struct err *e);

static int indent(int depth, struct buf *out, struct err *e)
{
    return buf_printf(out, e, "%*s", depth * 2, "");
}

/* "key:". Readers take a key for one only within 1024 characters, unless it is marked; this many
 * bytes stay below that even when each is escaped. */
static int put_key(struct str key, int depth, struct buf *out, struct err *e)
{
    enum { LONGEST_UNMARKED = 160 };
    bool marked = key.len > LONGEST_UNMARKED;
    int r = marked ? buf_append(out, STR("? "), e) : 0;
    r = r == 0 ? put_text(key, out, e) : r;
    if (r == 0 && marked) {
        r = buf_append_c(out, '\n', e);
        r = r == 0 ? indent(depth, out, e) : r;
    }
    return r == 0 ? buf_append_c(out, ':', e) : r;
}

static int put_children(const struct json *v, int depth, struct buf *out, struct err *e)
{
    bool map = v->type == JSON_OBJECT;
    for (size_t i = 0; i < json_len(v); i++) {
        int r = indent(depth, out, e);
        if (r == 0) {
            r = map ? put_key(v->object.members[i].key, depth, out, e) : buf_append_c(out, '-', e);
        }
        if (r == 0) {
            r = put_value(map ? v->object.members[i].value : v->array.items[i], depth, out, e);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* What stands after "key:" or "-", with the newline. */
static int put_value(const struct json *v, int depth, struct buf *out, struct err *e)
{
    bool nested = (v->type == JSON_ARRAY || v->type == JSON_OBJECT) && json_len(v) > 0;
    if (depth >= DEPTH_MAX) {
        return ERR(e, ERR_LIMIT, "nested deeper than %d", DEPTH_MAX);
    }
    int r = buf_append(out, nested ? STR("\n") : STR(" "), e);
    if (r < 0) {
        return r;
    }
    if (nested) {
        return put_children(v, depth + 1, out, e);
    }
    r = v->type == JSON_STRING ? put_text(v->string, out, e) : json_write(v, JSON_COMPACT, out, e);
    return r < 0 ? r : buf_append(out, STR("\n"), e);
}

int yaml_write(const struct json *v, struct buf *out, struct err *e)
{
    bool nested = (v->type == JSON_ARRAY || v->type == JSON_OBJECT) && json_len(v) > 0;
    if (nested) {
        return put_children(v, 0, out, e);
    }
    int r =
        v->type == JSON_STRING ? put_text(v->string, out, e) : json_write(v, JSON_COMPACT, out, e);
    return r < 0 ? r : buf_append(out, STR("\n"), e);
}
