/* SPDX-License-Identifier: MIT
 *
 * Front matter of a SKILL.md: cut out, read as YAML, checked; see skill_card.h.
 */
#include "skill/skill_card.h"

#include <stdio.h>

#include "base/json.h"
#include "data/yaml.h"
#include "skill/skill_priv.h"

bool skill_name_ok(struct str name)
{
    bool hyphen = true; /* as if one stood before the name */
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (c != '-' || hyphen)) {
            return false;
        }
        hyphen = !letter;
    }
    return name.len > 0 && name.len <= SKILL_NAME_MAX && !hyphen;
}

static int misfit(const char *file, const struct json *v, const char *key, const char *rule,
                  struct err *e)
{
    char at[JSON_AT_LEN];
    return ERR(e, ERR_CONFIG, "%s: '%s' %s", json_at(file, v, at), key, rule);
}

/* A string of at least `min` and at most `max` characters; NULL when absent. */
static int text_of(const struct json *map, const char *file, const char *key, size_t max,
                   const char **ret, struct err *e)
{
    const struct json *v = json_get(map, key);
    *ret = NULL;
    if (v == NULL) {
        return 0;
    }
    if (v->type != JSON_STRING || str_has_nul(v->string)) {
        return misfit(file, v, key, "must be a string; put it in quotes", e);
    }
    if (max > 0 && skill_chars(v->string) > max) {
        char rule[64];
        (void)snprintf(rule, sizeof rule, "has more than %zu characters", max);
        return misfit(file, v, key, rule, e);
    }
    *ret = v->string.ptr;
    return 0;
}

static int check_metadata(const struct json *map, const char *file, struct err *e)
{
    const struct json *v = json_get(map, "metadata");
    if (v != NULL && v->type != JSON_OBJECT) {
        return misfit(file, v, "metadata", "must be a map of strings to strings", e);
    }
    for (size_t i = 0; i < json_len(v); i++) {
        const struct json_member *m = &v->object.members[i];
        if (m->value->type != JSON_STRING) {
            char at[JSON_AT_LEN];
            return ERR(e, ERR_CONFIG, "%s: 'metadata.%.*s' must be a string; put it in quotes",
                       json_at(file, m->value, at), STR_ARG(str_slice(m->key, 0, 64)));
        }
    }
    return 0;
}

static int check_required(const struct skill_card *card, const char *file, struct err *e)
{
    const struct json *name = json_get(card->all, "name");
    const struct json *description = json_get(card->all, "description");
    if (name == NULL || description == NULL) {
        return ERR(e, ERR_CONFIG, "%s:1:1: the front matter has no '%s'", file,
                   name == NULL ? "name" : "description");
    }
    if (!skill_name_ok(name->string)) {
        return misfit(file, name, "name",
                      "must be 1 to 64 of a-z, 0-9 and hyphens, without a hyphen at either end or "
                      "two in a row",
                      e);
    }
    return description->string.len == 0
               ? misfit(file, description, "description", "must not be empty", e)
               : 0;
}

static int read_fields(struct skill_card *card, const char *file, struct err *e)
{
    const struct {
        const char *key;
        size_t max;
        const char **to;
    } fields[] = {
        { "name", 0, &card->name },
        { "description", SKILL_DESCRIPTION_MAX, &card->description },
        { "license", 0, &card->license },
        { "compatibility", SKILL_COMPATIBILITY_MAX, &card->compatibility },
        { "allowed-tools", 0, &card->allowed_tools },
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        int r = text_of(card->all, file, fields[i].key, fields[i].max, fields[i].to, e);
        if (r < 0) {
            return r;
        }
    }
    card->metadata = json_get(card->all, "metadata");
    int r = check_metadata(card->all, file, e);
    return r < 0 ? r : check_required(card, file, e);
}

/* Length of a line "---" at the beginning, with its end (LF, CR LF or the end of the text); 0: no
 * such line. */
static size_t mark_len(struct str text)
{
    return !str_starts(text, STR("---"))      ? 0
           : text.len == 3                    ? 3
           : str_starts(text, STR("---\n"))   ? 4
           : str_starts(text, STR("---\r\n")) ? 5
                                              : 0;
}

/* Where the line is that closes the front matter; *ret_len 0: nowhere. */
static size_t find_close(struct str text, size_t *ret_len)
{
    *ret_len = 0;
    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i - 1] == '\n' && text.ptr[i] == '-') {
            *ret_len = mark_len(str_slice(text, i, text.len));
            if (*ret_len > 0) {
                return i;
            }
        }
    }
    return text.len;
}

/* The front matter with its opening line, which YAML takes for the start of a document: so lines
 * are counted as in the file. */
static int cut(struct str text, const char *file, struct str *ret_front, struct str *ret_body,
               struct err *e)
{
    if (text.len > SKILL_TEXT_MAX) {
        return ERR(e, ERR_CONFIG, "%s: larger than %d bytes", file, SKILL_TEXT_MAX);
    }
    size_t good = str_utf8_prefix(text);
    if (good < text.len) {
        return ERR(e, ERR_CONFIG, "%s: not UTF-8 at byte %zu", file, good);
    }
    if (str_starts(text, STR("\xef\xbb\xbf"))) {
        text = str_slice(text, 3, text.len); /* byte order mark */
    }
    size_t open = mark_len(text);
    if (open == 0) {
        return ERR(e, ERR_CONFIG, "%s:1:1: must begin with a line '---' and its front matter",
                   file);
    }
    struct str rest = str_slice(text, open, text.len);
    size_t close = 0;
    size_t end = find_close(rest, &close);
    if (close == 0) {
        return ERR(e, ERR_CONFIG, "%s:1:1: the front matter is not closed by a line '---'", file);
    }
    if (end > SKILL_FRONT_MAX) {
        return ERR(e, ERR_CONFIG, "%s:1:1: the front matter has more than %d bytes", file,
                   SKILL_FRONT_MAX);
    }
    *ret_front = str_n(text.ptr, open + end);
    *ret_body = str_slice(rest, end + close, rest.len);
    return 0;
}

int skill_card_parse(struct arena *a, struct str text, const char *file, struct skill_card *ret,
                     struct err *e)
{
    struct json_limits limits = { .max_depth = 16, .max_values = 10000 };
    struct skill_card card = { 0 };
    struct json *map = NULL;
    struct str front;
    int r = cut(text, file, &front, &card.body, e);
    if (r == 0) {
        r = skill_refuse(yaml_parse(a, front, file, &limits, &map, e), e);
    }
    if (r < 0) {
        return r;
    }
    if (!json_is(map, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "%s:2:1: the front matter must be a map", file);
    }
    card.all = map;
    r = read_fields(&card, file, e);
    if (r == 0) {
        *ret = card;
    }
    return r;
}
