/* SPDX-License-Identifier: MIT
 *
 * One table maps the keys of Scylla's files to settings; see scylla_config.h.
 */
#include "config/scylla_config.h"

#include <string.h>

#include "base/buf.h"
#include "config/settings_table.h"

/* "eval.tier", "agent.sampling.temperature": at most three parts. */
struct mapping {
    const char *key;  /* theirs */
    const char *path; /* ours */
};

static const struct mapping dictionary[] = {
    { "tier_id", "eval.tier" },
    { "tier_name", "eval.tier_name" },
    { "tier_prompt", "eval.tier_prompt" },
    { "tools_enabled", "eval.tools_enabled" },
    { "delegation_enabled", "eval.delegation_enabled" },
    { "test_id", "eval.test_id" },
    { "task_description", "eval.task_description" },
    { "run_number", "eval.run_number" },
    { "timeout_seconds", "limits.timeout" },
    { "max_cost_usd", "limits.usd" },
    { "temperature", "agent.sampling.temperature" },
    { "max_tokens", "agent.sampling.max_tokens" },
    { 0 },
};

static const struct mapping model_keys[] = {
    { "model_id", "agent.model" },
    { "temperature", "agent.sampling.temperature" },
    { "max_tokens", "agent.sampling.max_tokens" },
    { "timeout_seconds", "limits.timeout" },
    { "max_cost_usd", "limits.usd" },
    { 0 },
};

static const struct mapping tier_keys[] = {
    { "name", "eval.tier_name" },
    { "tier_name", "eval.tier_name" },
    { "system_prompt", "eval.tier_prompt" },
    { "tier_prompt", "eval.tier_prompt" },
    { "uses_tools", "eval.tools_enabled" },
    { "tools_enabled", "eval.tools_enabled" },
    { "uses_delegation", "eval.delegation_enabled" },
    { "delegation_enabled", "eval.delegation_enabled" },
    { "model", "agent.model" },
    { 0 },
};

static void put(struct arena *a, struct json *tree, const char *path, struct json *value)
{
    struct str rest = str_of(path);
    for (;;) {
        struct str key = str_split(&rest, '.');
        if (rest.ptr == NULL) {
            json_set(a, tree, key, value);
            return;
        }
        struct json *inner = json_find(tree, key);
        if (inner == NULL) {
            inner = json_object(a);
            json_set(a, tree, key, inner);
        }
        tree = inner;
    }
}

static const struct mapping *find_mapping(const struct mapping *table, struct str key)
{
    for (; table->key != NULL; table++) {
        if (str_eqc(key, table->key)) {
            return table;
        }
    }
    return NULL;
}

/* In Scylla's files null is "not given"; in a task it would remove a setting. */
static void map_keys(struct arena *a, const struct mapping *table, const struct json *from,
                     struct json *to)
{
    for (; table->key != NULL; table++) {
        struct json *v = json_get(from, table->key);
        if (v != NULL && v->type != JSON_NULL) {
            put(a, to, table->path, v);
        }
    }
}

/* --- the dictionary --- */

/* The first part of a setting's name. */
static struct str top_of(const struct setting *s)
{
    struct str name = str_of(s->key);
    return str_split(&name, '.');
}

static bool is_setting(struct str key)
{
    for (const struct setting *s = settings_table; s->key != NULL; s++) {
        if (str_eq(key, top_of(s))) {
            return true;
        }
    }
    return false;
}

/* The known key that was probably meant; "" when there is none. Short words
 * are like each other by chance. */
static struct str nearest(struct str key)
{
    enum { FAR = 3, SHORT = 5 };
    size_t best = FAR;
    struct str found = STR_EMPTY;
    for (const struct mapping *m = dictionary; m->key != NULL; m++) {
        size_t d = str_distance(key, str_of(m->key), best - 1);
        found = d < best ? str_of(m->key) : found;
        best = d < best ? d : best;
    }
    for (const struct setting *s = settings_table; s->key != NULL && best > 1; s++) {
        struct str top = top_of(s);
        size_t d = top.len < SHORT ? FAR : str_distance(key, top, best - 1);
        found = d < best ? top : found;
        best = d < best ? d : best;
    }
    return key.len < SHORT ? STR_EMPTY : found;
}

static int check_api_keys(const struct json *keys, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    for (size_t i = 0; json_is(keys, JSON_OBJECT) && i < keys->object.len; i++) {
        const struct json_member *m = &keys->object.members[i];
        if (json_is(m->value, JSON_STRING) && m->value->string.len == 0) {
            return ERR(e, ERR_CONFIG,
                       "%s: the API key '%.*s' is empty: give its value or leave it "
                       "out",
                       json_at(file, m->value, at), STR_ARG(str_slice(m->key, 0, 80)));
        }
    }
    return 0;
}

static int take_other(struct arena *a, const struct json_member *m, const char *file,
                      struct scylla_config *ret, struct json *rest, struct err *e)
{
    char at[JSON_AT_LEN];
    if (is_setting(m->key)) {
        json_set(a, ret->tree, m->key, m->value);
        return 0;
    }
    struct str meant = nearest(m->key);
    if (meant.len > 0) {
        return ERR(e, ERR_CONFIG, "%s: unknown key '%.*s' (did you mean '%.*s'?)",
                   json_at(file, m->value, at), STR_ARG(str_slice(m->key, 0, 80)), STR_ARG(meant));
    }
    json_set(a, rest, m->key, m->value);
    return 0;
}

static const char *warn_of_rest(struct arena *a, const char *file, const struct json *rest)
{
    enum { NAMED = 8 };
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < json_len(rest) && i < NAMED; i++) {
        buf_addf(&names, "%s'%.*s'", i > 0 ? ", " : "",
                 STR_ARG(str_slice(rest->object.members[i].key, 0, 80)));
    }
    return names.len == 0 ? NULL
                          : arena_printf(a,
                                         "%s: %s%s not known to cinch: passed on in `config` of "
                                         "$CINCH_CONFIG_FILE only",
                                         file, names.ptr, json_len(rest) == 1 ? " is" : " are");
}

int scylla_config_read(struct arena *a, const struct json *dict, const char *file,
                       struct scylla_config *ret, struct err *e)
{
    if (!json_is(dict, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "%s: expected a map of settings", file);
    }
    struct json *rest = json_object(a);
    *ret =
        (struct scylla_config) { .tree = json_object(a), .api_keys = json_get(dict, "api_keys") };
    int r = check_api_keys(ret->api_keys, file, e);
    for (size_t i = 0; r == 0 && i < dict->object.len; i++) {
        const struct json_member *m = &dict->object.members[i];
        if (find_mapping(dictionary, m->key) == NULL && !str_eqc(m->key, "api_keys")) {
            r = take_other(a, m, file, ret, rest, e);
        }
    }
    if (r < 0) {
        return r;
    }
    map_keys(a, dictionary, dict, ret->tree);
    ret->warning = warn_of_rest(a, file, rest);
    const struct json *own = json_get(ret->tree, "config"); /* what the file itself passes on */
    json_setc(a, ret->tree, "config", own == NULL ? rest : json_merge(a, rest, own));
    return 0;
}

/* --- model and tier files --- */

bool scylla_is_model(const struct json *tree)
{
    return json_is(json_get(tree, "model_id"), JSON_STRING);
}

bool scylla_is_tier(const struct json *tree)
{
    return json_is(json_get(tree, "tier"), JSON_STRING) ||
           json_is(json_get(tree, "tier_id"), JSON_STRING);
}

/* "claude_code" is claude-code here; codex has another name, too. */
static const char *adapter_name(struct arena *a, struct str name)
{
    if (str_eqc(name, "openai_codex")) {
        return "codex";
    }
    char *ours = arena_dup(a, name);
    for (char *p = ours; *p != '\0'; p++) {
        *p = *p == '_' ? '-' : *p;
    }
    return ours;
}

struct json *scylla_model_layer(struct arena *a, const struct json *tree)
{
    struct json *layer = json_object(a);
    struct json *adapter = json_get(tree, "adapter");
    map_keys(a, model_keys, tree, layer);
    if (json_is(adapter, JSON_STRING)) {
        put(a, layer, "agent.adapter", json_cstr(a, adapter_name(a, adapter->string)));
    }
    return layer;
}

struct json *scylla_tier_layer(struct arena *a, const struct json *tree)
{
    struct json *layer = json_object(a);
    map_keys(a, tier_keys, tree, layer);
    return layer;
}
