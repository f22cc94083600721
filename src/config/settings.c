/* SPDX-License-Identifier: MIT
 *
 * The merged tree into typed fields, and the checks that need more than one key.
 */
#include "config/settings.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "config/settings_priv.h"
#include "data/shape.h"

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
    struct str auth = json_str(value_at(s, "agent", "auth"), STR_EMPTY);
    s->auth = str_eqc(auth, "host") ? AUTH_HOST : str_eqc(auth, "env") ? AUTH_ENV : AUTH_GATEWAY;
    s->trust_project =
        str_eqc(json_str(value_at(s, "agent", "project_config"), STR_EMPTY), "trusted");
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

static int word_at(const struct json *v, const char *const *words, size_t len)
{
    struct str word = json_str(v, STR_EMPTY);
    for (size_t i = 1; i < len; i++) {
        if (str_eqc(word, words[i])) {
            return (int)i;
        }
    }
    return 0;
}

static const struct json *list_of(struct arena *a, const struct json *v)
{
    if (!json_is(v, JSON_STRING)) {
        return v;
    }
    struct json *list = json_array(a);
    json_push(a, list, json_string(a, v->string));
    return list;
}

static void read_sampling(struct arena *a, struct settings *s)
{
    const struct json *v = value_at(s, "agent", "sampling");
    s->sampling = (struct sampling) {
        .temperature = json_real(json_get(v, "temperature"), NAN),
        .top_p = json_real(json_get(v, "top_p"), NAN),
        .presence_penalty = json_real(json_get(v, "presence_penalty"), NAN),
        .frequency_penalty = json_real(json_get(v, "frequency_penalty"), NAN),
        .max_tokens = json_int(json_get(v, "max_tokens"), 0),
        .seed = json_int(json_get(v, "seed"), -1),
        .stop = list_of(a, json_get(v, "stop")),
        .effort = text_at(s, "agent", "effort"),
    };
}

static void read_definition(struct settings *s)
{
    s->metadata = json_get(s->tree, "metadata");
    s->prompt = json_get(s->tree, "prompt");
    s->params = json_get(s->tree, "params");
    s->skills = json_get(s->tree, "skills");
    s->inputs = json_get(s->tree, "inputs");
    s->tools = json_get(s->tree, "tools");
    s->policies = json_get(s->tree, "policies");
    s->feedback = json_get(s->tree, "feedback");
    s->completion = json_get(s->tree, "completion");
    s->session = json_get(s->tree, "session");
    s->output_schema = value_at(s, "output", "schema");
    s->artifacts = value_at(s, "output", "artifacts");
}

static void read_view(struct settings *s)
{
    static const char *const modes[] = {
        [WORKSPACE_MODE_OVERLAY] = "overlay",   [WORKSPACE_MODE_COPY] = "copy",
        [WORKSPACE_MODE_CLONE] = "clone",       [WORKSPACE_MODE_IN_PLACE] = "in-place",
        [WORKSPACE_MODE_SNAPSHOT] = "snapshot",
    };
    const struct json *v = json_get(s->tree, "workspace");
    s->view = (struct workspace_settings) {
        .mode = (enum workspace_mode)word_at(json_get(v, "mode"), modes, ARRAY_LEN(modes)),
        .ref = json_cstring(json_get(v, "ref"), NULL),
        .context = json_get(v, "context"),
        .mounts = json_get(v, "mounts"),
        .savepoints = str_eqc(json_str(json_get(v, "savepoint"), STR_EMPTY), "turn"),
    };
}

static void read_sandbox(struct settings *s)
{
    static const char *const modes[] = {
        [SANDBOX_MODE_READ_ONLY] = "read-only",
        [SANDBOX_MODE_WORKSPACE_WRITE] = "workspace-write",
        [SANDBOX_MODE_OFF] = "off",
    };
    static const char *const nets[] = {
        [NET_NONE] = "none",
        [NET_OPEN] = "open",
    };
    const struct json *v = json_get(s->tree, "sandbox");
    const struct json *net = json_get(v, "net");
    s->sandbox = (struct sandbox_settings) {
        .mode = (enum settings_sandbox_mode)word_at(json_get(v, "mode"), modes, ARRAY_LEN(modes)),
        .read = json_get(v, "read"),
        .write = json_get(v, "write"),
        .deny = json_get(v, "deny"),
        .net = (enum settings_net)word_at(net, nets, ARRAY_LEN(nets)),
        .memory = shape_size(json_get(v, "memory"), 0),
        .disk = shape_size(json_get(v, "disk"), 0),
        .pids = json_int(json_get(v, "pids"), 0),
        .cpus = json_real(json_get(v, "cpus"), 0),
        .allow_degraded = tristate_at(s, "sandbox", "allow_degraded"),
        .engine = json_cstring(json_get(v, "engine"), NULL),
    };
    if (json_is(net, JSON_ARRAY)) {
        s->sandbox.net = NET_HOSTS;
        s->sandbox.hosts = net;
    }
}

static void read_gateway(struct settings *s)
{
    const struct json *v = json_get(s->tree, "gateway");
    const struct json *t = json_get(s->tree, "throttle");
    s->gateway = (struct gateway_settings) {
        .upstream = json_cstring(json_get(v, "upstream"), NULL),
        .routes = json_get(v, "routes"),
        .script = json_cstring(json_get(v, "script"), NULL),
        .cassette = json_cstring(json_get(v, "cassette"), NULL),
        .record = tristate_at(s, "gateway", "record"),
        .replay_speed = json_real(json_get(v, "replay_speed"), 0),
        .prices = json_cstring(json_get(v, "prices"), NULL),
    };
    s->throttle = (struct throttle_settings) {
        .max_attempts = json_int(json_get(t, "max_attempts"), 5),
        .base = json_int(json_get(t, "base_ms"), 500) * NSEC_PER_MS,
        .cap = json_int(json_get(t, "cap_ms"), 8000) * NSEC_PER_MS,
        .total = json_int(json_get(t, "total_ms"), 30000) * NSEC_PER_MS,
        .concurrency = json_int(json_get(t, "concurrency"), 0),
        .per_minute = json_int(json_get(t, "per_minute"), 0),
    };
}

static void read_limits(struct settings *s)
{
    s->timeout = limit_at(s, "timeout", 3600 * NSEC_PER_SEC);
    s->first_output = limit_at(s, "first_output", 0);
    s->idle = limit_at(s, "idle", 0);
    s->grace = limit_at(s, "grace", 0);
    s->drain = limit_at(s, "drain", 0);
    s->budget = (struct budget_settings) {
        .tokens_input = json_int(value_at(s, "limits", "tokens_input"), 0),
        .tokens_output = json_int(value_at(s, "limits", "tokens_output"), 0),
        .tokens_total = json_int(value_at(s, "limits", "tokens_total"), 0),
        .usd = json_real(value_at(s, "limits", "usd"), 0),
        .calls = json_int(value_at(s, "limits", "calls"), 0),
        .prompt_bytes =
            str_eqc(str_of(json_cstring(value_at(s, "limits", "prompt_estimate"), "")), "bytes"),
    };
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
    s->tier_strict = json_bool(value_at(s, "eval", "strict"), false);
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

static void read_all(struct arena *a, struct settings *s)
{
    s->tree = layers_merge(a, &s->layers);
    read_agent(s);
    read_sampling(a, s);
    read_definition(s);
    read_view(s);
    read_sandbox(s);
    read_gateway(s);
    read_limits(s);
    read_surroundings(s);
    read_eval(s);
}

void settings_add_layer(struct arena *a, struct settings *s, const char *name, const char *source,
                        const struct json *tree)
{
    struct layers all = { .len = 0 };
    bool added = false;
    for (size_t i = 0; i < s->layers.len; i++) {
        const struct layer *l = &s->layers.items[i];
        bool above = strcmp(l->name, "request") == 0 || strcmp(l->name, "enforced") == 0;
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
