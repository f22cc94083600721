/* SPDX-License-Identifier: MIT
 *
 * JSON as Python's json.dumps writes it, in the two forms that prompts need: for hashes, which must
 * be the same as those of other programs, and for examples that a model reads.
 */
#include "prompt/section_priv.h"

#include <stdio.h>
#include <stdlib.h>

#include "template/template_unicode.h"

static void write_ascii(struct buf *out, uint32_t c)
{
    if (c < 0x10000) {
        buf_addf(out, "\\u%04x", c);
    } else {
        buf_addf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
    }
}

static void write_string(struct buf *out, struct str s, enum section_json style)
{
    static const char escapes[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    buf_adds(out, "\"");
    for (size_t at = 0; at < s.len;) {
        size_t from = at;
        uint32_t c = unicode_next(s, &at);
        const char *escape = NULL;
        for (size_t i = 0; i + 1 < sizeof escapes && escape == NULL; i += 2) {
            escape = c == (unsigned char)escapes[i] ? &escapes[i + 1] : NULL;
        }
        if (escape != NULL) {
            buf_addf(out, "\\%c", *escape);
        } else if (c < ' ' || (style == SECTION_JSON_CANONICAL && c >= 0x7f)) {
            write_ascii(out, c);
        } else {
            buf_add(out, str_slice(s, from, at));
        }
    }
    buf_adds(out, "\"");
}

static int by_key(const void *a, const void *b)
{
    const struct json_member *const *x = a;
    const struct json_member *const *y = b;
    return str_cmp((*x)->key, (*y)->key);
}

static void write_object(struct buf *out, const struct json *v, enum section_json style)
{
    size_t len = v->object.len;
    const struct json_member **sorted = xcalloc(len, sizeof(struct json_member *));
    for (size_t i = 0; i < len; i++) {
        sorted[i] = &v->object.members[i];
    }
    bool canonical = style == SECTION_JSON_CANONICAL;
    if (canonical && len > 1) {
        qsort(sorted, len, sizeof(struct json_member *), by_key);
    }
    buf_adds(out, "{");
    bool first = true;
    for (size_t i = 0; i < len; i++) {
        if (!canonical && json_is(sorted[i]->value, JSON_NULL)) {
            continue;
        }
        buf_adds(out, first ? "" : canonical ? "," : ", ");
        write_string(out, sorted[i]->key, style);
        buf_adds(out, canonical ? ":" : ": ");
        section_json_write(out, sorted[i]->value, style);
        first = false;
    }
    buf_adds(out, "}");
    free(sorted);
}

static void write_array(struct buf *out, const struct json *v, enum section_json style)
{
    buf_adds(out, "[");
    for (size_t i = 0; i < v->array.len; i++) {
        buf_adds(out, i == 0 ? "" : style == SECTION_JSON_CANONICAL ? "," : ", ");
        section_json_write(out, v->array.items[i], style);
    }
    buf_adds(out, "]");
}

void section_json_write(struct buf *out, const struct json *v, enum section_json style)
{
    char text[TEMPLATE_FLOAT_LEN];
    switch (v == NULL ? JSON_NULL : v->type) {
    case JSON_NULL:
        buf_adds(out, "null");
        break;
    case JSON_BOOL:
        buf_adds(out, v->boolean ? "true" : "false");
        break;
    case JSON_INT:
        buf_addf(out, "%lld", (long long)v->integer);
        break;
    case JSON_REAL:
        buf_add(out, str_n(text, template_write_float(v->real, text)));
        break;
    case JSON_STRING:
        write_string(out, v->string, style);
        break;
    case JSON_ARRAY:
        write_array(out, v, style);
        break;
    case JSON_OBJECT:
        write_object(out, v, style);
        break;
    }
}

void section_hash_json(const struct json *v, char out[SHA256_HEX])
{
    /* JSON of at most 64 MiB was read; escapes make it six times as long at worst. */
    CLEANUP(buf) struct buf b = BUF_INIT((size_t)1 << 30);
    section_json_write(&b, v, SECTION_JSON_CANONICAL);
    sha256_hex(buf_str(&b), out);
}
