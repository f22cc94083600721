/* SPDX-License-Identifier: MIT
 *
 * The merged tree into typed fields, and the checks that need more than one key.
 */
#include "run/settings.h"

#include <stdio.h>

#include "base/file.h"
#include "base/shape.h"
#include "run/settings_priv.h"

static const char *text_at(const struct settings *s, const char *section, const char *key)
{
    return json_cstring(json_get(json_get(s->tree, section), key), NULL);
}

static const struct json *value_at(const struct settings *s, const char *section, const char *key)
{
    return json_get(json_get(s->tree, section), key);
}

static enum tristate tristate_at(const struct settings *s, const char *section, const char *key)
{
    const struct json *v = value_at(s, section, key);
    if (!json_is(v, JSON_BOOL)) {
        return TRI_UNSET;
    }
    return v->boolean ? TRI_TRUE : TRI_FALSE;
}

/* `null` takes a setting out of the tree; the total deadline is there in any case. */
static nsec limit_at(const struct settings *s, const char *key, nsec otherwise)
{
    return shape_duration(value_at(s, "limits", key), otherwise);
}

static void read_agent(struct settings *s)
{
    const struct json *prompt = json_get(s->tree, "prompt");
    const struct json *text = json_get(prompt, "text");
    s->name = json_cstring(json_get(s->tree, "name"), "task");
    s->adapter = text_at(s, "agent", "adapter");
    s->model = text_at(s, "agent", "model");
    s->command = value_at(s, "agent", "command");
    s->args = value_at(s, "agent", "args");
    if (json_is(text, JSON_STRING)) {
        s->prompt_text = text->string;
    }
    s->prompt_file = json_cstring(json_get(prompt, "file"), NULL);
    s->prompt_name = json_cstring(json_get(prompt, "name"), s->name);
    s->delivery = s->profile == NULL ? PROMPT_FILE : s->profile->prompt;
    (void)prompt_delivery_of(json_str(json_get(prompt, "delivery"), STR_EMPTY), &s->delivery);
    s->workspace = text_at(s, "workspace", "path");
    s->output_dir = text_at(s, "output", "dir");
}

static void read_limits(struct settings *s)
{
    s->timeout = limit_at(s, "timeout", 3600 * NSEC_PER_SEC);
    s->first_output = limit_at(s, "first_output", 0);
    s->idle = limit_at(s, "idle", 0);
    s->grace = limit_at(s, "grace", 0);
    s->drain = limit_at(s, "drain", 0);
}

static void read_surroundings(struct settings *s)
{
    const char *home = json_cstring(json_get(s->tree, "home"), NULL);
    s->env_set = value_at(s, "env", "set");
    s->env_pass = value_at(s, "env", "pass");
    s->env_inherit = json_bool(value_at(s, "env", "inherit"), false);
    s->secret_names = value_at(s, "secrets", "names");
    s->secret_files = value_at(s, "secrets", "files");
    s->exit_profile = json_cstring(json_get(s->tree, "exit_profile"), "native");
    s->home = s->profile == NULL ? HOME_PRIVATE : s->profile->home;
    if (home != NULL) {
        s->home = strcmp(home, "shared") == 0 ? HOME_SHARED : HOME_PRIVATE;
    }
}

static void read_eval(struct settings *s)
{
    s->test_id = text_at(s, "eval", "test_id");
    s->tier = text_at(s, "eval", "tier");
    s->tier_name = text_at(s, "eval", "tier_name");
    s->tier_prompt = text_at(s, "eval", "tier_prompt");
    s->run_number = json_int(value_at(s, "eval", "run_number"), 0);
    s->tools_enabled = tristate_at(s, "eval", "tools_enabled");
    s->delegation_enabled = tristate_at(s, "eval", "delegation_enabled");
}

/* Where a key of the merged tree came from, for a message. */
static const char *origin(struct arena *a, const struct settings *s, const char *section,
                          const char *key)
{
    for (size_t i = s->layers.len; i-- > 0;) {
        const struct json *v = json_get(json_get(s->layers.items[i].tree, section), key);
        if (v != NULL) {
            char at[JSON_AT_LEN];
            return arena_dup(a, str_of(json_at(s->layers.items[i].source, v, at)));
        }
    }
    return "settings";
}

static bool from_request(const struct settings *s, const char *section, const char *key)
{
    for (size_t i = s->layers.len; i-- > 0;) {
        if (json_get(json_get(s->layers.items[i].tree, section), key) != NULL) {
            return strcmp(s->layers.items[i].name, "request") == 0;
        }
    }
    return false;
}

static int check(struct arena *a, const struct settings *s, struct err *e)
{
    if (s->timeout <= 0) {
        bool request = from_request(s, "limits", "timeout");
        return ERR(e, request ? ERR_USAGE : ERR_CONFIG,
                   "%s: the timeout must be greater than 0 (for no practical limit use 30d)",
                   origin(a, s, "limits", "timeout"));
    }
    if (s->workspace == NULL) {
        return ERR(e, ERR_CONFIG, "a layer removes 'workspace' with null, but a run needs one");
    }
    if (s->prompt_text.ptr != NULL && s->prompt_file != NULL) {
        return ERR(e, ERR_USAGE, "the prompt is given twice: as text by %s and as file by %s",
                   origin(a, s, "prompt", "text"), origin(a, s, "prompt", "file"));
    }
    if (value_at(s, "eval", "run_number") != NULL && (s->run_number < 1 || s->run_number > 99)) {
        return ERR(e, ERR_CONFIG, "%s: run_number must be between 1 and 99",
                   origin(a, s, "eval", "run_number"));
    }
    return 0;
}

int settings_load(struct arena *a, const struct settings_input *in, struct settings *ret,
                  struct err *e)
{
    *ret = (struct settings) { 0 };
    int r = profile_load_all(a, in->adapter_dirs, &ret->profiles, e);
    if (r < 0) {
        return r;
    }
    r = settings_gather(a, in, ret, e);
    if (r < 0) {
        return r;
    }
    ret->tree = layers_merge(a, &ret->layers);
    read_agent(ret);
    read_limits(ret);
    read_surroundings(ret);
    read_eval(ret);
    return check(a, ret, e);
}

int settings_adapter(const struct settings *s, struct err *e)
{
    const struct profile *unused;
    if (s->adapter == NULL) {
        return ERR(e, ERR_USAGE,
                   "which adapter? use --adapter NAME ('cinch adapters' lists them), or give a "
                   "command after --");
    }
    return profile_require(&s->profiles, str_of(s->adapter), &unused, e);
}

struct json *settings_task(struct arena *a, const struct settings *s)
{
    struct json *task = json_copy(a, s->tree);
    json_setc(a, task, "version", json_integer(a, 1));
    return task;
}
