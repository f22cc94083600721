/* SPDX-License-Identifier: MIT
 *
 * What a project file (.cinch/config.yaml of a workspace) may say. It comes with a repository, so a
 * key that only the user may set is refused with its name and its place, before anything is merged.
 */
#include <stdio.h>
#include <string.h>

#include "config/settings_priv.h"

static int refuse_key(const struct json_member *m, const char *section, const char *file,
                      struct err *e)
{
    char at[JSON_AT_LEN];
    struct json where = { .line = m->line, .column = m->column };
    return ERR(e, ERR_CONFIG,
               "%s: a project file may not set '%s%s%.*s'; set it in the task, on the command line "
               "or in your own config.yaml",
               json_at(file, &where, at), section, section[0] == '\0' ? "" : ".",
               STR_ARG(str_slice(m->key, 0, 64)));
}

/* `null` removes what other layers say, also what this file may not set. */
static int refuse_null(const struct json_member *m, const char *section, const char *file,
                       struct err *e)
{
    char at[JSON_AT_LEN];
    struct json where = { .line = m->line, .column = m->column };
    return ERR(e, ERR_CONFIG,
               "%s: '%s%s%.*s' is null, but a project file may not remove settings; delete the key",
               json_at(file, &where, at), section, section[0] == '\0' ? "" : ".",
               STR_ARG(str_slice(m->key, 0, 64)));
}

/* Keys that no file may have are left to shape_check(), which knows similar ones. */
static int check_keys(const struct json *v, const char *section, const struct shape *allowed,
                      const struct shape *known, const char *file, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && json_is(v, JSON_OBJECT) && i < v->object.len; i++) {
        const struct json_member *m = &v->object.members[i];
        const struct shape *mine = shape_find(allowed, m->key);
        const struct shape *full = shape_find(known, m->key);
        if (mine == NULL && full != NULL) {
            return refuse_key(m, section, file, e);
        }
        if (mine != NULL && json_is(m->value, JSON_NULL)) {
            return refuse_null(m, section, file, e);
        }
        if (mine != NULL && mine->kind == SHAPE_OBJECT) {
            r = check_keys(m->value, mine->key, mine->inner, full->inner, file, e);
        }
    }
    return r;
}

static int check_adapter(const struct json *adapter, const struct profile_list *profiles,
                         const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(adapter, JSON_STRING)) {
        return 0; /* absent, or of a type that shape_check() refuses */
    }
    struct str name = adapter->string;
    if (!str_eqc(name, "contract") && profile_installed(profiles, name) != NULL) {
        return 0;
    }
    return ERR(
        e, ERR_CONFIG,
        "%s: 'agent.adapter' of a project file must be the name of an installed profile, not "
        "'%.*s'; to run another program use --adapter",
        json_at(file, adapter, at), STR_ARG(str_slice(name, 0, 80)));
}

/* A harness would read such a name as an option. */
static int check_model(const struct json *model, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(model, JSON_STRING) || !str_starts(model->string, STR("-"))) {
        return 0;
    }
    return ERR(e, ERR_CONFIG, "%s: 'agent.model' must not begin with '-': '%.*s'",
               json_at(file, model, at), STR_ARG(str_slice(model->string, 0, 80)));
}

int settings_check_project(struct arena *a, const struct json *tree,
                           const struct profile_list *profiles, const char *file, struct err *e)
{
    const struct shape *allowed = settings_shape(a, settings_table, SETTING_BY_PROJECT);
    const struct shape *known = settings_shape(a, settings_table, 0);
    const struct json *agent = json_get(tree, "agent");
    int r = check_keys(tree, "", allowed, known, file, e);
    r = r < 0 ? r : check_adapter(json_get(agent, "adapter"), profiles, file, e);
    return r < 0 ? r : check_model(json_get(agent, "model"), file, e);
}
