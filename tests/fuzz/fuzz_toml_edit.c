/* SPDX-License-Identifier: MIT
 *
 * Editing TOML text. Input: the keys of a path, each ended by 0x1f, then 0x1e, then the text. An
 * edit is refused, or it changes the value at the path and nothing else; it must never come to the
 * point where the editor's own proof fails (ERR_BUG). Removing what was set where nothing was
 * restores the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KEYS_MAX = 8 };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t read_path(struct str *in, struct str path[KEYS_MAX])
{
    size_t n = 0;
    size_t end = str_find(*in, STR("\x1e"));
    struct str keys = str_slice(*in, 0, end);
    *in = str_slice(*in, end + 1, in->len);
    while (n < KEYS_MAX && keys.ptr != NULL && keys.len > 0) {
        path[n++] = str_split(&keys, '\x1f');
    }
    return n;
}

/* In the tagged form a scalar is an object too; only its members are bare strings. */
static struct json *at_path(struct json *v, const struct toml_edit *ed)
{
    for (size_t i = 0; i < ed->path_len && v != NULL; i++) {
        bool leaf = json_is(json_get(v, "type"), JSON_STRING);
        v = leaf ? NULL : json_find(v, ed->path[i]);
    }
    return v;
}

static struct json *parse(struct arena *a, struct str text)
{
    struct json *v = NULL;
    return toml_parse(a, text, &(struct toml_opts) { .tagged = true }, &v, NULL) == 0 ? v : NULL;
}

static void check_removal(struct arena *a, const struct toml_edit *set, struct str now)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct toml_edit ed = *set;
    ed.text = now;
    ed.drop_table = set->made_table;
    must(toml_edit_remove(&ed, &out, NULL) == 0);
    struct json *v = parse(a, buf_str(&out));
    must(v != NULL && at_path(v, &ed) == NULL);
    if (at_path(parse(a, set->text), set) == NULL) {
        must(str_eq(buf_str(&out), set->text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct str path[KEYS_MAX];
    struct str text = str_n(data, size);
    struct err e = { 0 };
    struct toml_edit ed = { .path = path, .path_len = read_path(&text, path) };
    ed.text = text;
    const struct json *value = size % 2 == 0 ? json_string(a, STR("trusted")) : json_integer(a, 7);
    if (toml_edit_set(&ed, value, &out, &e) < 0) {
        must(e.code != ERR_BUG && out.len == 0);
        must(toml_edit_remove(&ed, &out, &e) == 0 || e.code != ERR_BUG);
        return 0;
    }
    struct json *v = parse(a, buf_str(&out));
    must(v != NULL);
    struct str want = size % 2 == 0 ? STR("trusted") : STR("7");
    must(str_eq(json_str(json_get(at_path(v, &ed), "value"), STR_EMPTY), want));
    check_removal(a, &ed, buf_str(&out));
    return 0;
}
