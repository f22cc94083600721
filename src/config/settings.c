/* SPDX-License-Identifier: MIT
 *
 * The merged tree into typed fields (by the table of settings), and what needs more than one key.
 */
#include "config/settings.h"

#include "adapters/driver.h"
#include "config/settings_priv.h"
#include "data/shape.h"

/* Fields that depend on more than one key. */
static void read_dependent(struct settings *s)
{
    s->strict = s->tier_strict = s->strict || s->tier_strict;
    const struct json *net = setting_value(s->tree, "sandbox.net");
    if (s->prompt_name == NULL) {
        s->prompt_name = s->name;
    }
    if (setting_value(s->tree, "prompt.delivery") == NULL && s->profile != NULL) {
        s->delivery = s->profile->prompt;
    }
    if (setting_value(s->tree, "home") == NULL && s->profile != NULL) {
        s->home = s->profile->home;
    }
    s->sandbox.hosts = NULL;
    if (json_is(net, JSON_ARRAY)) {
        s->sandbox.net = SANDBOX_NET_HOSTS;
        s->sandbox.hosts = net;
    }
}

/* The highest layer that says something about section.key. */
static const struct layer *layer_of(const struct settings *s, const char *section, const char *key,
                                    const struct json **ret)
{
    for (size_t i = s->layers.len; i-- > 0;) {
        const struct json *v = json_get(s->layers.items[i].tree, section);
        v = key == NULL ? v : json_get(v, key);
        if (v != NULL) {
            *ret = v;
            return &s->layers.items[i];
        }
    }
    return NULL;
}

/* Where a key of the merged tree came from, for a message. */
static const char *origin(struct arena *a, const struct settings *s, const char *section,
                          const char *key)
{
    char at[JSON_AT_LEN];
    const struct json *v;
    const struct layer *l = layer_of(s, section, key, &v);
    return l == NULL ? "settings" : arena_dup(a, str_of(json_at(l->source, v, at)));
}

static bool from_request(const struct settings *s, const char *section, const char *key)
{
    const struct json *v;
    const struct layer *l = layer_of(s, section, key, &v);
    return l != NULL && strcmp(l->name, "request") == 0;
}

struct settings_origin settings_origin(const struct settings *s, struct arena *a,
                                       const char *section, const char *key)
{
    const struct json *v;
    const struct layer *l = layer_of(s, section, key, &v);
    if (l == NULL) {
        return (struct settings_origin) { NULL, "settings", "." };
    }
    bool file = strcmp(l->source, "command line") != 0 && strcmp(l->source, "built in") != 0 &&
                !str_starts(str_of(l->source), STR("profile "));
    const char *slash = file ? strrchr(l->source, '/') : NULL;
    const char *dir =
        slash == NULL ? "." : arena_dup(a, str_n(l->source, (size_t)(slash - l->source)));
    return (struct settings_origin) { l->name, l->source, dir[0] == '\0' ? "/" : dir };
}

/* A script or a recording answers in place of an upstream, but never silently in place of what the
 * command line asks for, nor of each other. */
static int check_gateway(struct arena *a, const struct settings *s, struct err *e)
{
    const struct gateway_settings *g = &s->gateway;
    const char *taken = g->script != NULL ? "script" : g->cassette != NULL ? "cassette" : NULL;
    const char *other = NULL;
    if (g->script != NULL && g->cassette != NULL) {
        other = "cassette";
    } else if (taken != NULL && from_request(s, "gateway", "upstream") &&
               !from_request(s, "gateway", taken)) {
        other = "upstream";
    }
    if (other == NULL) {
        return 0;
    }
    return ERR(e, ERR_USAGE,
               "the model is given twice: gateway.%s by %s and gateway.%s by %s; '--set "
               "gateway.%s=null' removes one",
               taken, origin(a, s, "gateway", taken), other, origin(a, s, "gateway", other), taken);
}

static int check(struct arena *a, const struct settings *s, struct err *e)
{
    int r = check_gateway(a, s, e);
    if (r < 0) {
        return r;
    }
    if (s->timeout <= 0) {
        bool request = from_request(s, "limits", "timeout");
        return ERR(e, request ? ERR_USAGE : ERR_CONFIG,
                   "%s: the timeout must be greater than 0 (for no practical limit use 30d)",
                   origin(a, s, "limits", "timeout"));
    }
    int64_t when;
    if (s->deadline != NULL && !clock_parse(str_of(s->deadline), &when)) {
        bool request = from_request(s, "limits", "deadline");
        return ERR(e, request ? ERR_USAGE : ERR_CONFIG,
                   "%s: the deadline must be a time with its zone, such as 2026-11-18T20:30:00Z",
                   origin(a, s, "limits", "deadline"));
    }
    if (s->workspace == NULL) {
        return ERR(e, ERR_CONFIG, "a layer removes 'workspace' with null, but a run needs one");
    }
    if (s->prompt_text.ptr != NULL && s->prompt_file != NULL) {
        return ERR(e, ERR_USAGE, "the prompt is given twice: as text by %s and as file by %s",
                   origin(a, s, "prompt", "text"), origin(a, s, "prompt", "file"));
    }
    return 0;
}

static void read_all(struct arena *a, struct settings *s)
{
    s->tree = layers_merge(a, &s->layers);
    settings_read_table(a, settings_table, s->tree, s);
    read_dependent(s);
}

/* What a profile would say of an agent that has none. */
static int override_acp(struct arena *a, struct settings *s, struct err *e)
{
    if (json_len(s->acp) == 0 || s->profile == NULL) {
        return 0;
    }
    if (strcmp(s->profile->driver, "acp") != 0) {
        return ERR(e, ERR_CONFIG,
                   "agent.acp: adapter '%s' does not use the Agent Client Protocol (set by %s)",
                   s->profile->name, origin(a, s, "agent", "acp"));
    }
    int r = profile_override(a, s->profile, "acp", s->acp, &s->profile, e);
    return r < 0 ? err_wrap(e, "agent.acp") : 0;
}

/* An adapter that works with any provider takes the one that serves the model, unless the task
 * names an upstream. */
static int choose_provider(struct arena *a, struct settings *s, struct err *e)
{
    if (s->profile == NULL || s->gateway.upstream != NULL || json_len(s->gateway.routes) > 0) {
        return 0;
    }
    return profile_for_model(a, s->profile, s->model, &s->profile, e);
}

int settings_add_layer(struct arena *a, struct settings *s, const char *name, const char *source,
                       const struct json *tree, struct err *e)
{
    const struct shape *shape = settings_shape(a, settings_table, SETTING_BY_SKILL);
    int r = shape_check(tree, shape, source, e);
    if (r < 0) {
        return r;
    }
    struct layers all = { .len = 0 };
    bool added = false;
    for (size_t i = 0; i < s->layers.len; i++) {
        const struct layer *l = &s->layers.items[i];
        bool above = strcmp(l->name, "task") == 0 || strcmp(l->name, "request") == 0 ||
                     strcmp(l->name, "enforced") == 0;
        if (above && !added) {
            layers_add(&all, name, source, tree);
            added = true;
        }
        layers_add(&all, l->name, l->source, l->tree);
    }
    if (!added) {
        layers_add(&all, name, source, tree);
    }
    s->layers = all;
    read_all(a, s);
    return 0;
}

/* A server is a resource for the run and tools for the agent. */
static void offer_servers(struct arena *a, struct settings *s)
{
    static const char *const members[] = { "name", "mcp", "timeout" };
    struct json *tools = json_array(a);
    for (size_t i = 0; i < json_len(s->tools); i++) {
        json_push(a, tools, json_item(s->tools, i));
    }
    for (size_t i = 0; i < json_len(s->resources); i++) {
        const struct json *resource = json_item(s->resources, i);
        struct json *tool = json_object(a);
        for (size_t k = 0; k < ARRAY_LEN(members); k++) {
            struct json *v = json_get(resource, members[k]);
            if (v != NULL) {
                json_setc(a, tool, members[k], v);
            }
        }
        if (json_get(resource, "mcp") != NULL) {
            json_push(a, tools, tool);
            s->tools = tools;
        }
    }
}

int settings_load(struct arena *a, const struct settings_input *in, struct settings *ret,
                  struct err *e)
{
    *ret = (struct settings) { 0 };
    int r = profile_load_named(a, in->adapter_dirs, &ret->profiles, e);
    if (r < 0) {
        return r;
    }
    ret->profiles.path = in->path != NULL ? in->path : ret->profiles.path;
    r = settings_gather(a, in, ret, e);
    if (r < 0) {
        return r;
    }
    read_all(a, ret);
    offer_servers(a, ret);
    r = override_acp(a, ret, e);
    r = r < 0 ? r : choose_provider(a, ret, e);
    return r < 0 ? r : check(a, ret, e);
}

/* An agent that is cinch itself has nothing to run without a model. */
static int check_model(const struct settings *s, struct err *e)
{
    if (s->profile == NULL || !driver_is_kind(s->profile, DRIVER_MODEL_LOOP) ||
        settings_gateway(s)) {
        return 0;
    }
    if (s->model == NULL || s->model[0] == '\0') {
        return ERR(
            e, ERR_USAGE,
            "no model: name one with --model (claude-…, gpt-…, gemini-… or VENDOR/MODEL), or "
            "another agent with --adapter ('cinch adapters' lists them)");
    }
    return ERR(e, ERR_USAGE,
               "no provider is known for model '%.100s': name its server with --upstream URL (a "
               "local one: http://127.0.0.1:11434/v1)",
               s->model);
}

int settings_adapter(const struct settings *s, struct err *e)
{
    const struct profile *unused;
    if (s->adapter == NULL) {
        return ERR(e, ERR_USAGE,
                   "no adapter: use --adapter NAME ('cinch adapters' lists them), or give a "
                   "command after --");
    }
    int r = profile_require(&s->profiles, str_of(s->adapter), &unused, e);
    return r < 0 ? r : check_model(s, e);
}

bool settings_gateway(const struct settings *s)
{
    const struct gateway_settings *g = &s->gateway;
    return g->upstream != NULL || g->script != NULL || g->cassette != NULL ||
           json_len(g->routes) > 0 || (s->profile != NULL && s->profile->gateway.upstream != NULL);
}

struct json *settings_task(struct arena *a, const struct settings *s)
{
    struct json *task = json_copy(a, s->tree);
    json_setc(a, task, "version", json_integer(a, 1));
    return task;
}
