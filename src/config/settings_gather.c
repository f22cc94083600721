/* SPDX-License-Identifier: MIT
 *
 * Finding, reading and checking every configuration layer of a run, in the order in which later
 * ones win. Each file is checked for unknown keys and wrong kinds before it is merged, so that a
 * message can name the file and the line.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "config/scylla_config.h"
#include "config/scylla_subtest.h"
#include "config/scylla_test.h"
#include "config/settings_priv.h"
#include "config/task_format.h"
#include "data/yaml.h"
#include "workspace/git.h"

static const struct json_limits limits = { .max_bytes = 8 << 20,
                                           .max_depth = 64,
                                           .max_values = 200000 };

static const char *dir_of(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return ".";
    }
    return slash == path ? "/" : arena_dup(a, str_n(path, (size_t)(slash - path)));
}

/* The layers in groups, because some can only be found when others are known; they are put into
 * order at the end. */
enum group {
    GROUP_BASE,
    GROUP_ADAPTER,
    GROUP_PLACES,
    GROUP_NAMED,
    GROUP_REQUEST,
    GROUP_ENFORCED,
    GROUP_MAX
};

struct gathering {
    struct arena *a;
    const struct settings_input *in;
    struct settings *s;
    struct layers groups[GROUP_MAX];
    const char *scylla_dir; /* of the test; NULL: the task is not one of Scylla's */
    const struct shape *task_shape, *project_shape;
    struct err *e;
};

static int prepare(struct gathering *g, struct json *tree, const char *file, const char *dir,
                   const struct shape *shape)
{
    if (json_is(tree, JSON_NULL)) {
        tree->type = JSON_OBJECT; /* an empty file says nothing, which is fine */
        tree->object.len = tree->object.cap = 0;
        tree->object.members = NULL;
    }
    int r = 0;
    if (shape == g->project_shape) {
        r = settings_check_project(g->a, tree, &g->s->profiles, file, g->e);
    }
    r = r < 0 ? r : settings_check_layer(g->a, tree, shape, file, g->e);
    return r < 0 ? r : settings_resolve_paths(g->a, tree, shape, dir, g->e);
}

/* A file that is too large is wrong as a file, not a failure of cinch. */
static int load(struct gathering *g, const char *path, struct json **ret)
{
    int r = yaml_load(g->a, path, &limits, ret, g->e);
    if (r == -ERR_LIMIT) {
        g->e->code = ERR_CONFIG;
        r = -ERR_CONFIG;
    }
    return r;
}

static int add_file(struct gathering *g, enum group group, const char *layer, const char *path,
                    const struct shape *shape)
{
    struct json *tree;
    int r = load(g, path, &tree);
    if (r == 0 && strcmp(layer, "model") == 0 && scylla_is_model(tree)) {
        tree = scylla_model_layer(g->a, tree);
    } else if (r == 0 && strcmp(layer, "tier") == 0 && scylla_is_tier(tree)) {
        tree = scylla_tier_layer(g->a, tree);
    }
    if (r == 0) {
        r = prepare(g, tree, path, dir_of(g->a, path), shape);
    }
    if (r == 0) {
        layers_add(&g->groups[group], layer, arena_dup(g->a, str_of(path)), tree);
    }
    return r;
}

/* The task itself, in whichever format the user has it. */
static int add_task(struct gathering *g, const char *path)
{
    struct task_loaded task;
    int r = task_load(g->a, path, &limits, &task, g->e);
    bool scylla = r == 0 && task.format != NULL && strcmp(task.format, "scylla") == 0;
    const char *file = scylla ? scylla_test_file(g->a, task.dir) : arena_dup(g->a, str_of(path));
    if (r == 0) {
        r = prepare(g, task.tree, file, task.dir, g->task_shape);
    }
    if (r == 0) {
        layers_add(&g->groups[GROUP_REQUEST], "task", file, task.tree);
        g->s->notes = task.notes;
        g->scylla_dir = scylla ? task.dir : NULL;
    }
    return r;
}

/* What the layers known so far say about a key; the model's, tier's and adapter's layers depend on
 * it. */
static const struct json *peek(const struct gathering *g, const char *section, const char *key)
{
    for (size_t group = GROUP_MAX; group-- > 0;) {
        const struct layers *l = &g->groups[group];
        for (size_t i = l->len; i-- > 0;) {
            const struct json *v = json_get(l->items[i].tree, section);
            v = key == NULL ? v : json_get(v, key);
            if (v != NULL && !json_is(v, JSON_NULL)) {
                return v;
            }
        }
    }
    return NULL;
}

/* Model and tier of a Scylla test, as the files around it say. */
static int add_scylla_named(struct gathering *g, const char *model, const char *tier)
{
    struct json *tree = NULL;
    const char *source = NULL;
    const char *file = g->scylla_dir == NULL || model == NULL
                           ? NULL
                           : scylla_test_model_file(g->a, g->scylla_dir, model);
    int r = file == NULL ? 0 : add_file(g, GROUP_NAMED, "model", file, g->task_shape);
    if (r == 0 && g->scylla_dir != NULL && tier != NULL) {
        r = scylla_test_tier(g->a, g->scylla_dir, tier, &tree, &source, g->e);
    }
    if (r == 0 && tree != NULL) {
        r = prepare(g, tree, source, ".", g->task_shape);
        layers_add(&g->groups[GROUP_NAMED], "tier", source, tree);
    }
    return r;
}

/* A layer that sets one key. */
static void add_value(struct gathering *g, enum group group, const char *layer, const char *source,
                      const char *key, const char *value)
{
    struct json *tree = json_object(g->a);
    setting_put(g->a, tree, key, json_cstr(g->a, value));
    layers_add(&g->groups[group], layer, source, tree);
}

/* The sub-test that --subtest names. */
static int add_subtest(struct gathering *g, const char *tier)
{
    const char *id = json_cstring(peek(g, "eval", "subtest"), NULL);
    struct json *tree = NULL;
    const char *file = NULL;
    if (id == NULL) {
        return 0;
    }
    if (g->scylla_dir == NULL || tier == NULL) {
        return ERR(g->e, ERR_USAGE, "--subtest needs a test directory of Scylla and a --tier");
    }
    const struct scylla_subtest_name name = { g->scylla_dir, tier, id };
    int r = scylla_subtest_load(g->a, &name, &tree, &file, g->e);
    if (r == 0) {
        r = prepare(g, tree, file, dir_of(g->a, file), g->task_shape);
        layers_add(&g->groups[GROUP_NAMED], "subtest", file, tree);
    }
    return r;
}

/* With --mirror, the clone of the test's repository is the workspace. */
static int add_mirror(struct gathering *g)
{
    const char *mirror = json_cstring(peek(g, "eval", "mirror"), NULL);
    const struct json *source = json_get(peek(g, "metadata", "scylla"), "source");
    const char *repo = json_cstring(json_get(source, "repo"), NULL);
    if (mirror == NULL || repo == NULL) {
        return 0;
    }
    const char *dir = scylla_test_mirror(g->a, mirror, repo);
    if (dir == NULL) {
        return ERR(g->e, ERR_INPUT,
                   "there is no clone of '%.200s' in '%s': run 'git clone' there, or leave out "
                   "--mirror and give a clone with -w",
                   repo, mirror);
    }
    add_value(g, GROUP_REQUEST, "mirror", mirror, "workspace.path", dir);
    return 0;
}

/* dir/name, if it exists. */
static int add_if_there(struct gathering *g, enum group group, const char *layer, const char *dir,
                        const char *name)
{
    char path[PATH_MAX];
    if (dir == NULL) {
        return 0;
    }
    int r = path_join(dir, name, path, sizeof path, g->e);
    if (r < 0 || !file_exists(AT_FDCWD, path)) {
        return r;
    }
    return add_file(g, group, layer, path, g->task_shape);
}

static int add_defaults(struct gathering *g)
{
    struct json *tree = settings_defaults(g->a, settings_table);
    int r = prepare(g, tree, "built in", ".", g->task_shape);
    layers_add(&g->groups[GROUP_BASE], SETTINGS_DEFAULT_LAYER, "built in", tree);
    return r;
}

/* A tree that is part of a profile. */
static int add_profile_part(struct gathering *g, enum group group, const char *layer,
                            const struct json *part)
{
    if (part == NULL) {
        return 0;
    }
    const struct profile *p = g->s->profile;
    const char *source = arena_printf(g->a, "profile %s (%s)", p->name, p->source);
    struct json *tree = json_copy(g->a, part);
    int r = prepare(g, tree, source, ".", g->task_shape);
    if (r == 0) {
        layers_add(&g->groups[group], layer, source, tree);
    }
    return r;
}

/* A file of another user decides nothing, unless git is told to trust the directory. */
static bool is_obeyed(const char *dir, const char *file)
{
    char folder[PATH_MAX];
    struct stat above;
    struct stat own;
    return path_join(dir, ".cinch", folder, sizeof folder, NULL) == 0 &&
           lstat(folder, &above) == 0 && lstat(file, &own) == 0 &&
           ((file_owner_is_trusted(above.st_uid) && file_owner_is_trusted(own.st_uid)) ||
            git_lists_as_safe(dir));
}

static bool is_link(const char *file)
{
    struct stat st;
    return lstat(file, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Messages about a file quote it: a link would show a file that the repository does not have. */
static int refuse_link(const char *file, struct err *e)
{
    return ERR(e, ERR_CONFIG,
               "'%s' is a symbolic link, which is not followed: replace it by the file itself",
               file);
}

/* .cinch/config.yaml of the nearest directory, from the workspace upwards. */
static int add_project(struct gathering *g, const char *workspace)
{
    char dir[PATH_MAX];
    int r = path_absolute(workspace, dir, sizeof dir, g->e);
    while (r == 0) {
        char path[PATH_MAX + 32];
        (void)snprintf(path, sizeof path, "%s/.cinch/config.yaml",
                       strcmp(dir, "/") == 0 ? "" : dir);
        if (file_exists(AT_FDCWD, path)) {
            if (is_obeyed(dir, path)) {
                return is_link(path) ? refuse_link(path, g->e)
                                     : add_file(g, GROUP_PLACES, "project", path, g->project_shape);
            }
            g->s->foreign_project = arena_dup(g->a, str_of(path));
        }
        char *slash = strrchr(dir, '/');
        if (slash == NULL || dir[1] == '\0') {
            break;
        }
        slash[slash == dir ? 1 : 0] = '\0';
    }
    return r;
}

/* models/<model>.yaml or tiers/<tier>.yaml of the site's and the user's directory. */
static int add_named(struct gathering *g, const char *layer, const char *folder, const char *name)
{
    char file[NAME_MAX + 16];
    if (name == NULL || name[0] == '\0' || name[0] == '.' || strlen(name) > NAME_MAX - 16) {
        return 0;
    }
    (void)snprintf(file, sizeof file, "%s/%s.yaml", folder, name);
    for (char *p = file + strlen(folder) + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '_'; /* "vendor/model" is looked for as vendor_model.yaml */
        }
    }
    /* Scylla calls the file of tier T1 t1.yaml. */
    char lower[sizeof file];
    for (size_t i = 0; i < sizeof file; i++) {
        lower[i] = (char)tolower((unsigned char)file[i]);
    }
    bool other = strcmp(layer, "tier") == 0 && strcmp(lower, file) != 0;
    const char *const dirs[] = { g->in->site_dir, g->in->user_dir };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++) {
        r = other ? add_if_there(g, GROUP_NAMED, layer, dirs[i], lower) : 0;
        r = r < 0 ? r : add_if_there(g, GROUP_NAMED, layer, dirs[i], file);
    }
    return r;
}

/* The dictionary of the evaluation contract (scylla_config.h). The keys go to the child and nowhere
 * else. */
static int add_dictionary(struct gathering *g)
{
    struct json *dict;
    struct scylla_config config;
    const char *path = g->in->config_file;
    int r = load(g, path, &dict);
    if (r == 0) {
        g->s->api_keys = json_get(dict, "api_keys");
        r = scylla_config_read(g->a, dict, path, &config, g->e);
    }
    if (r == 0) {
        g->s->config_warning = config.warning;
        r = prepare(g, config.tree, path, dir_of(g->a, path), g->task_shape);
        layers_add(&g->groups[GROUP_REQUEST], "task", path, config.tree);
    }
    return r;
}

/* A command without an adapter means the adapter `command`. The user has then said what to run; a
 * project file may not change that: called before that file is read, and its layer is above. */
static void imply_adapter(struct gathering *g)
{
    if (peek(g, "agent", "adapter") == NULL &&
        (g->in->rest != NULL || json_len(peek(g, "agent", "command")) > 0)) {
        struct json *tree = json_object(g->a);
        struct json *agent = json_object(g->a);
        json_setc(g->a, agent, "adapter", json_cstr(g->a, "command"));
        json_setc(g->a, tree, "agent", agent);
        layers_add(&g->groups[GROUP_REQUEST], SETTINGS_DEFAULT_LAYER, "built in", tree);
    }
}

/* What followed "--" is the command for an adapter without a program of its own, and further
 * arguments for one that has a program. */
static void place_rest(struct gathering *g)
{
    struct json *request = g->in->request;
    const char *adapter = json_cstring(peek(g, "agent", "adapter"), NULL);
    const struct json *rest = g->in->rest;
    if (adapter != NULL) {
        g->s->profile = profile_find(&g->s->profiles, str_of(adapter));
    }
    if (rest == NULL || request == NULL) {
        return;
    }
    struct json *agent = json_get(request, "agent");
    if (agent == NULL) {
        agent = json_object(g->a);
        json_setc(g->a, request, "agent", agent);
    } else if (!json_is(agent, JSON_OBJECT)) {
        return; /* --set agent=...; the check of the request says what is wrong with it */
    }
    bool own_program = g->s->profile != NULL && json_len(g->s->profile->binary) > 0;
    json_setc(g->a, agent, own_program ? "args" : "command", json_copy(g->a, rest));
}

static int add_request(struct gathering *g)
{
    int r = 0;
    struct json *request = g->in->request;
    if (request != NULL) {
        layers_add(&g->groups[GROUP_REQUEST], "request", "command line", request);
        settings_widen(g->a, request);
    }
    imply_adapter(g);
    r = add_project(g, json_cstring(peek(g, "workspace", "path"), "."));
    place_rest(g);
    if (r == 0 && request != NULL) {
        r = prepare(g, request, "command line", ".", g->task_shape);
    }
    return r;
}

/* Copies section.key (key NULL: the section) of an earlier task unless a layer says it already. */
static void inherit(const struct gathering *g, struct json *tree, const struct json *earlier,
                    const char *section, const char *key)
{
    struct json *value = json_get(earlier, section);
    value = key == NULL ? value : json_get(value, key);
    if (value == NULL || peek(g, section, key) != NULL) {
        return;
    }
    setting_put(g->a, tree, key == NULL ? section : arena_printf(g->a, "%s.%s", section, key),
                json_copy(g->a, value));
}

/* A run that continues one that asked a question is its next turn: the same agent, skill and output
 * schema, unless the task names others. A record that cannot be read is reported later. */
static int add_resumed(struct gathering *g)
{
    const char *dir = json_cstring(peek(g, "session", "resume"), NULL);
    struct json *manifest, *earlier;
    struct json *tree = json_object(g->a);
    if (dir == NULL ||
        yaml_load(g->a, arena_printf(g->a, "%s/manifest.json", dir), &limits, &manifest, NULL) <
            0 ||
        yaml_load(g->a, arena_printf(g->a, "%s/task.json", dir), &limits, &earlier, NULL) < 0 ||
        !str_eqc(json_str(json_get(manifest, "reason"), STR_EMPTY), "needs_human")) {
        return 0;
    }
    inherit(g, tree, earlier, "agent", "adapter");
    inherit(g, tree, earlier, "agent", "model");
    inherit(g, tree, earlier, "skills", NULL);
    inherit(g, tree, earlier, "output", "schema");
    const char *file = arena_printf(g->a, "%s/task.json", dir);
    layers_add(&g->groups[GROUP_REQUEST], "resumed", file, tree);
    return prepare(g, tree, file, dir, g->task_shape);
}

static int add_places(struct gathering *g)
{
    int r = add_if_there(g, GROUP_PLACES, "site", g->in->site_dir, "config.yaml");
    return r < 0 ? r : add_if_there(g, GROUP_PLACES, "user", g->in->user_dir, "config.yaml");
}

/* A model file may say which adapter the model is for, if nothing else does. With no adapter at all
 * it is the built-in agent. */
static void find_profile(struct gathering *g)
{
    const char *adapter = json_cstring(peek(g, "agent", "adapter"), NULL);
    if (adapter == NULL && peek(g, "agent", "adapter") == NULL) {
        adapter = SETTINGS_DEFAULT_ADAPTER;
        add_value(g, GROUP_ADAPTER, SETTINGS_DEFAULT_LAYER, "built in", "agent.adapter", adapter);
    }
    if (g->s->profile == NULL && adapter != NULL) {
        g->s->profile = profile_find(&g->s->profiles, str_of(adapter));
    }
}

static int add_dependent(struct gathering *g)
{
    const char *model = json_cstring(peek(g, "agent", "model"), NULL);
    const char *tier = json_cstring(peek(g, "eval", "tier"), NULL);
    const struct json *models = json_get(peek(g, "metadata", "scylla"), "models");
    if (model == NULL && g->scylla_dir != NULL) {
        model = scylla_test_tier_model(models, tier);
        if (model != NULL) {
            add_value(g, GROUP_NAMED, "task", scylla_test_file(g->a, g->scylla_dir), "agent.model",
                      model);
        }
    }
    int r = add_mirror(g);
    r = r < 0 ? r : add_scylla_named(g, model, tier);
    r = r < 0 ? r : add_subtest(g, tier);
    if (r == 0) {
        r = add_named(g, "model", "models", model);
    }
    if (r == 0) {
        r = add_named(g, "tier", "tiers", tier);
    }
    find_profile(g);
    if (r == 0 && g->s->profile != NULL) {
        r = add_profile_part(g, GROUP_ADAPTER, "adapter", g->s->profile->settings);
    }
    if (r == 0 && g->s->profile != NULL) {
        r = add_profile_part(g, GROUP_ENFORCED, "enforced", g->s->profile->enforced);
    }
    return r < 0 ? r
                 : add_if_there(g, GROUP_ENFORCED, "enforced", g->in->site_dir, "enforced.yaml");
}

int settings_gather(struct arena *a, const struct settings_input *in, struct settings *s,
                    struct err *e)
{
    struct gathering g = {
        .a = a,
        .in = in,
        .s = s,
        .task_shape = settings_shape(a, settings_table, 0),
        .project_shape = settings_shape(a, settings_table, SETTING_BY_PROJECT),
        .e = e,
    };
    int r = add_defaults(&g);
    if (r == 0) {
        r = add_places(&g);
    }
    if (r == 0 && in->task_file != NULL) {
        r = add_task(&g, in->task_file);
    }
    if (r == 0 && in->config_file != NULL) {
        r = add_dictionary(&g);
    }
    if (r == 0) {
        r = add_request(&g);
    }
    if (r == 0) {
        r = add_resumed(&g);
    }
    if (r == 0) {
        r = add_dependent(&g);
    }
    for (size_t group = 0; group < GROUP_MAX; group++) {
        for (size_t i = 0; i < g.groups[group].len; i++) {
            const struct layer *l = &g.groups[group].items[i];
            layers_add(&s->layers, l->name, l->source, l->tree);
        }
    }
    return r;
}
