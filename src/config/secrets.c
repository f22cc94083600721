/* SPDX-License-Identifier: MIT
 *
 * Gathering secret values; see secrets.h. Nothing here is ever logged.
 */
#include "config/secrets.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"

/* Shorter values of variables that merely look like keys ("1", "true", "auto") would turn ordinary
 * words of every log into noise. A secret that was named is taken whatever its length. */
enum { GUESSED_MIN = 8 };
/* Shorter values are not tokens of a provider, whatever they begin with. */
enum { TOKEN_MIN = 20 };
/* Lines of a secret file (a PEM block, a JSON credential) count by themselves from this length on.
 */
enum { FILE_LINE_MIN = 16 };
enum { FILE_MAX = 1 << 20 };

bool secret_like_name(struct str name)
{
    static const char *const words[] = { "KEY",    "TOKEN",       "SECRET",  "PASSWORD",
                                         "PASSWD", "PASSPHRASE",  "APIKEY",  "CREDENTIAL",
                                         "PAT",    "CREDENTIALS", "SECRETS", "TOKENS" };
    while (name.ptr != NULL) {
        struct str part = str_split(&name, '_');
        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
            if (part.len == strlen(words[i]) && strncasecmp(part.ptr, words[i], part.len) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Beginnings of tokens that providers issue. */
static bool secret_like_value(struct str value)
{
    static const char *const prefixes[] = { "sk-",    "sk_live_", "ghp_",       "gho_",
                                            "ghu_",   "ghs_",     "ghr_",       "github_pat_",
                                            "glpat-", "xoxb-",    "xoxp-",      "AKIA",
                                            "ASIA",   "AIza",     "ya29.",      "hf_",
                                            "npm_",   "pypi-",    "-----BEGIN " };
    for (size_t i = 0; value.len >= TOKEN_MIN && i < ARRAY_LEN(prefixes); i++) {
        if (str_starts(value, str_of(prefixes[i]))) {
            return true;
        }
    }
    return false;
}

static struct secret *add(struct arena *a, struct secrets *list, const char *name, struct str value)
{
    if (list->len == list->cap) {
        size_t cap = list->cap == 0 ? 16 : list->cap * 2;
        struct secret *items = arena_array(a, cap, sizeof *items);
        if (list->len > 0) {
            memcpy(items, list->items, list->len * sizeof *items);
        }
        list->items = items;
        list->cap = cap;
    }
    struct secret *s = &list->items[list->len++];
    *s = (struct secret) { .name = arena_dup(a, str_of(name)), .value = arena_str(a, value) };
    return s;
}

static const char *lookup(const char *const *caller, struct str name)
{
    for (; caller != NULL && *caller != NULL; caller++) {
        struct str entry = str_of(*caller);
        if (entry.len > name.len && entry.ptr[name.len] == '=' && str_starts(entry, name)) {
            return *caller + name.len + 1;
        }
    }
    return NULL;
}

static int add_variable(struct arena *a, const char *name, const char *const *caller,
                        struct secrets *list, struct err *e)
{
    const char *value = lookup(caller, str_of(name));
    if (value == NULL || value[0] == '\0') {
        return ERR(e, ERR_SECRET, "secret '%s' is not set: export it in the environment of cinch",
                   name);
    }
    struct secret *s = add(a, list, name, str_of(value));
    s->to_child = s->named = true;
    return 0;
}

static int add_file(struct arena *a, const char *path, struct secrets *list, struct err *e)
{
    CLEANUP(buf) struct buf content = BUF_INIT(FILE_MAX);
    if (file_read(AT_FDCWD, path, FILE_MAX, &content, e) < 0) {
        e->code = ERR_SECRET;
        return err_wrap(e, "secret file");
    }
    struct str whole = str_trim(buf_str(&content));
    if (whole.len == 0) {
        return ERR(e, ERR_SECRET, "secret file '%s' is empty", path);
    }
    add(a, list, arena_dup(a, path_base(str_of(path))), whole)->named = true;
    return 0;
}

static void add_api_keys(struct arena *a, const struct json *keys, struct secrets *list)
{
    for (size_t i = 0; i < json_len(keys); i++) {
        const struct json_member *m = &keys->object.members[i];
        struct str value = json_str(m->value, STR_EMPTY);
        if (value.len > 0) {
            struct secret *s = add(a, list, m->key.ptr, value);
            s->to_child = s->named = true;
        }
    }
}

static void add_guessed(struct arena *a, const struct settings *s, const char *const *caller,
                        struct secrets *list)
{
    for (; caller != NULL && *caller != NULL; caller++) {
        struct str value = str_of(*caller);
        struct str name = str_split(&value, '=');
        if (value.ptr != NULL && value.len >= GUESSED_MIN && secret_like_name(name)) {
            (void)add(a, list, arena_dup(a, name), value);
        }
    }
    for (size_t i = 0; i < json_len(s->env_set); i++) {
        const struct json_member *m = &s->env_set->object.members[i];
        struct str value = json_str(m->value, STR_EMPTY);
        if (value.len >= GUESSED_MIN && (secret_like_name(m->key) || secret_like_value(value))) {
            (void)add(a, list, m->key.ptr, value);
        }
    }
}

void secrets_add(struct arena *a, struct secrets *list, const char *name, struct str value)
{
    add(a, list, name, value)->named = true;
}

void secrets_give(struct arena *a, struct secrets *list, const char *name, struct str value)
{
    struct secret *s = add(a, list, name, value);
    s->to_child = s->named = true;
}

int secrets_collect(struct arena *a, const struct settings *s, const char *const *caller,
                    struct secrets *ret, struct err *e)
{
    *ret = (struct secrets) { 0 };
    int first = 0;
    for (size_t i = 0; i < json_len(s->secret_names); i++) {
        const char *name = json_cstring(json_item(s->secret_names, i), "");
        int r = add_variable(a, name, caller, ret, first == 0 ? e : NULL);
        first = first == 0 ? r : first;
    }
    for (size_t i = 0; i < json_len(s->secret_files); i++) {
        struct err why;
        int r = add_file(a, json_cstring(json_item(s->secret_files, i), ""), ret, &why);
        if (r < 0 && first == 0) {
            first = r;
            *e = why;
        }
    }
    add_api_keys(a, s->api_keys, ret);
    add_guessed(a, s, caller, ret);
    return first;
}
