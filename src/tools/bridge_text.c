/* SPDX-License-Identifier: MIT
 *
 * What the model and the record get to read of a call: always UTF-8, never more than they can take.
 */

#include "base/id.h"
#include "tools/bridge_priv.h"

#define REPLACEMENT "\xef\xbf\xbd"
/* For the note that something is missing. */
enum { NOTE_MAX = 96 };
/* Bytes of a value or of arguments that the session remembers of a call, each. */
enum { REMEMBERED_MAX = 64 << 10, RENDERED_CHARACTERS = 1000 };

/* Not within a character. */
static struct str cut(struct str s, size_t max)
{
    size_t n = s.len < max ? s.len : max;
    while (n > 0 && n < s.len && ((unsigned char)s.ptr[n] & 0xc0) == 0x80) {
        n--;
    }
    return str_slice(s, 0, n);
}

struct str bridge_text(struct arena *a, struct str text)
{
    struct str rest = text.len <= BRIDGE_TEXT_MAX ? text : cut(text, BRIDGE_TEXT_MAX - NOTE_MAX);
    if (rest.len == text.len && str_is_utf8(text)) {
        return text;
    }
    size_t kept = rest.len;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    while (rest.len > 0 && out.len < BRIDGE_TEXT_MAX - NOTE_MAX) {
        size_t good = str_utf8_prefix(rest);
        buf_add(&out, str_slice(rest, 0, good));
        if (good < rest.len) {
            buf_adds(&out, REPLACEMENT);
            good++;
        }
        rest = str_slice(rest, good, rest.len);
    }
    kept -= rest.len;
    if (kept < text.len) {
        buf_addf(&out, "\n[cut: these are the first %zu of %zu bytes]", kept, text.len);
    }
    return arena_str(a, buf_str(&out));
}

/* --- content blocks --- */

static void cut_block(struct arena *a, struct json *block, struct buf *all)
{
    struct json *text = json_get(block, "text");
    if (!json_is(text, JSON_STRING) ||
        !str_eqc(json_str(json_get(block, "type"), STR_EMPTY), "text")) {
        return;
    }
    size_t room = all->len < BRIDGE_TEXT_MAX ? BRIDGE_TEXT_MAX - all->len : 0;
    if (text->string.len > room) {
        struct str kept = cut(text->string, room > NOTE_MAX ? room - NOTE_MAX : 0);
        text->string = str_of(arena_printf(a, "%.*s\n[cut: these are the first %zu of %zu bytes]",
                                           STR_ARG(kept), kept.len, text->string.len));
    }
    buf_adds(all, all->len > 0 ? "\n" : "");
    buf_add(all, text->string);
}

int bridge_content(struct arena *a, const struct json *content, struct json **ret,
                   struct str *ret_text, struct err *e)
{
    CLEANUP(buf) struct buf all = BUF_INIT(BUF_TEXT);
    if (!json_is(content, JSON_ARRAY)) {
        return ERR(e, ERR_CONFIG, "its content is not a list of blocks");
    }
    for (size_t i = 0; i < json_len(content); i++) {
        const struct json *block = json_item(content, i);
        if (!json_is(json_get(block, "type"), JSON_STRING)) {
            return ERR(e, ERR_CONFIG, "block %zu of its content has no type", i + 1);
        }
    }
    struct json *copy = json_copy(a, content);
    for (size_t i = 0; i < json_len(copy); i++) {
        cut_block(a, json_item(copy, i), &all);
    }
    *ret = copy;
    *ret_text = bridge_text(a, buf_str(&all));
    if (ret_text->ptr == all.ptr) {
        *ret_text = arena_str(a, *ret_text);
    }
    return 0;
}

/* --- the record --- */

static struct str first_characters(struct str s, size_t max)
{
    size_t n = 0, at = 0;
    for (; at < s.len; at++) {
        n += ((unsigned char)s.ptr[at] & 0xc0) != 0x80;
        if (n > max) {
            break;
        }
    }
    return str_slice(s, 0, at);
}

/* What is too large to remember is said to be. */
static struct json *remembered(struct arena *a, const struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(REMEMBERED_MAX);
    if (v == NULL) {
        return json_null(a);
    }
    if (json_write(v, JSON_COMPACT, &text, NULL) == 0) {
        return json_copy(a, v);
    }
    struct json *o = json_object(a);
    json_setc(a, o, "omitted",
              json_string(a, str_of(arena_printf(a, "more than %d bytes", REMEMBERED_MAX))));
    return o;
}

struct json *bridge_record_result(struct arena *a, const struct bridge_record *r)
{
    struct json *o = json_object(a);
    json_setc(a, o, "message", json_string(a, r->message));
    json_setc(a, o, "value", remembered(a, r->value));
    json_setc(a, o, "success", json_boolean(a, r->failure == TOOL_OK));
    json_setc(a, o, "exclude_value_from_context", json_boolean(a, r->exclude_value));
    if (r->failure != TOOL_OK) {
        json_setc(a, o, "failure", json_cstr(a, tool_failure_word(r->failure)));
    }
    if (r->policy.len > 0) {
        json_setc(a, o, "policy", json_string(a, r->policy));
    }
    return o;
}

struct json *bridge_record_json(struct arena *a, const struct bridge_record *r)
{
    char id[ID_LEN], now[CLOCK_ISO_LEN];
    struct json *o = json_object(a);
    json_setc(a, o, "name", json_string(a, r->name));
    json_setc(a, o, "params", remembered(a, r->arguments));
    json_setc(a, o, "result", bridge_record_result(a, r));
    json_setc(a, o, "created_at", json_cstr(a, clock_iso(clock_wall(), now)));
    json_setc(a, o, "rendered_output",
              json_string(a, first_characters(r->text, RENDERED_CHARACTERS)));
    json_setc(a, o, "call_id", json_string(a, r->call_id));
    json_setc(a, o, "event_id", json_cstr(a, id_new(id)));
    json_setc(a, o, "duration_ms", json_integer(a, r->took / NSEC_PER_MS));
    json_setc(a, o, "files", json_integer(a, (int64_t)r->files));
    return o;
}
