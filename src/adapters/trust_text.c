/* SPDX-License-Identifier: MIT
 *
 * The three trust tables as text: what they say on a directory, how an entry is added and taken
 * out. Pure: text in, text out.
 */
#include "adapters/trust_text.h"

#include "adapters/trust_priv.h"
#include "base/file.h"
#include "data/toml.h"

enum { PATH_KEYS = 3 };

struct table {
    struct str keys[PATH_KEYS];
    size_t len;
};

static struct table path_of(const struct trust_entry *t)
{
    struct str dir = str_of(t->dir);
    switch (t->style) {
    case TRUST_CODEX:
        return (struct table) { { STR("projects"), dir, STR("trust_level") }, 3 };
    case TRUST_CLAUDE:
        return (struct table) { { STR("projects"), dir, STR("hasTrustDialogAccepted") }, 3 };
    case TRUST_GEMINI:
        break;
    }
    return (struct table) { { dir }, 1 };
}

/* In messages the name of the file is enough: callers wrap the rest around it. */
static const char *name_of(const struct trust_entry *t)
{
    return path_base(str_of(t->file)).ptr;
}

struct str trust_text_new(enum trust_style style)
{
    return style == TRUST_CODEX ? STR("") : STR("{\n}\n");
}

/* --- what it says --- */

static int parse(struct arena *a, const struct trust_entry *t, struct str text, struct json **ret,
                 struct err *e)
{
    if (t->style == TRUST_CODEX) {
        /* Tagged, since a file that holds an infinity somewhere is still a good file. */
        struct toml_opts opts = { .name = name_of(t), .tagged = true };
        return toml_parse(a, text, &opts, ret, e);
    }
    int r = json_parse(a, text, NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", name_of(t)) : 0;
}

static int unknown_value(const struct trust_entry *t, const struct json *v, struct err *e)
{
    char where[JSON_AT_LEN];
    return ERR(e, ERR_UNSUPPORTED, "%s: the trust entry of '%s' has an unknown value",
               json_at(name_of(t), v, where), t->dir);
}

static int word_state(const struct trust_entry *t, const struct json *v, enum trust_state *ret,
                      struct err *e)
{
    static const struct {
        enum trust_style style;
        const char *word;
        enum trust_state state;
    } words[] = {
        { TRUST_CODEX, "trusted", TRUST_STATE_GRANTED },
        { TRUST_CODEX, "untrusted", TRUST_STATE_REFUSED },
        { TRUST_GEMINI, "TRUST_FOLDER", TRUST_STATE_GRANTED },
        { TRUST_GEMINI, "TRUST_PARENT", TRUST_STATE_GRANTED },
        { TRUST_GEMINI, "DO_NOT_TRUST", TRUST_STATE_REFUSED },
    };
    const struct json *word = v;
    if (t->style == TRUST_CODEX) {
        bool string = str_eqc(json_str(json_get(v, "type"), STR_EMPTY), "string");
        word = string ? json_get(v, "value") : NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (words[i].style == t->style && json_is(word, JSON_STRING) &&
            str_eqc(word->string, words[i].word)) {
            *ret = words[i].state;
            return 0;
        }
    }
    return unknown_value(t, v, e);
}

int trust_text_state(const struct trust_entry *t, struct str text, enum trust_state *ret,
                     struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table path = path_of(t);
    struct json *v = NULL;
    int r = parse(a, t, text, &v, e);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < path.len && v != NULL; i++) {
        v = json_find(v, path.keys[i]);
    }
    if (v == NULL) {
        *ret = TRUST_STATE_ABSENT;
        return 0;
    }
    if (t->style != TRUST_CLAUDE) {
        return word_state(t, v, ret, e);
    }
    if (!json_is(v, JSON_BOOL)) {
        return unknown_value(t, v, e);
    }
    /* Claude Code writes false for every directory it has been started in; it means: not asked yet.
     */
    *ret = v->boolean ? TRUST_STATE_GRANTED : TRUST_STATE_ABSENT;
    return 0;
}

/* --- adding and taking out --- */

static int add_toml(const struct trust_entry *t, struct str text, struct trust_mark *ret,
                    struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table path = path_of(t);
    struct toml_edit ed = {
        .name = name_of(t),
        .text = text,
        .path = path.keys,
        .path_len = path.len,
    };
    int r = toml_edit_set(&ed, json_cstr(a, "trusted"), out, e);
    *ret = (struct trust_mark) { .made = ed.made_table ? 1 : 0 };
    return r;
}

/* Only false can be there: any other value is refused before. */
static bool has_value(struct str text, const struct table *path)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    if (json_parse(a, text, NULL, &v, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < path->len && v != NULL; i++) {
        v = json_find(v, path->keys[i]);
    }
    return v != NULL;
}

int trust_text_add(const struct trust_entry *t, struct str text, struct trust_mark *ret,
                   struct buf *out, struct err *e)
{
    if (t->style == TRUST_CODEX) {
        return add_toml(t, text, ret, out, e);
    }
    struct table path = path_of(t);
    struct trust_json ed = {
        .name = name_of(t),
        .text = text,
        .path = path.keys,
        .path_len = path.len,
    };
    struct str value = t->style == TRUST_GEMINI ? STR("\"TRUST_FOLDER\"") : STR("true");
    bool was_false = has_value(text, &path);
    int r = trust_json_set(&ed, value, out, e);
    *ret = (struct trust_mark) { .made = ed.made, .was_false = was_false };
    return r;
}

int trust_text_remove(const struct trust_entry *t, struct str text, const struct trust_mark *mark,
                      struct buf *out, struct err *e)
{
    struct table path = path_of(t);
    if (t->style == TRUST_CODEX) {
        struct toml_edit toml = {
            .name = name_of(t),
            .text = text,
            .path = path.keys,
            .path_len = path.len,
            .drop_table = mark->made > 0,
        };
        return toml_edit_remove(&toml, out, e);
    }
    struct trust_json ed = {
        .name = name_of(t),
        .text = text,
        .path = path.keys,
        .path_len = path.len,
        .made = mark->made,
    };
    return mark->was_false ? trust_json_set(&ed, STR("false"), out, e)
                           : trust_json_remove(&ed, out, e);
}
