/* SPDX-License-Identifier: MIT
 *
 * Skills of a task: opened and checked before anything exists, bound to what the user gives, then
 * installed into the run's own home. skill/skill.h has the life of one skill.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/file.h"
#include "config/definition_priv.h"
#include "skill/skill_contract.h"
#include "skill/skill_engine.h"
#include "skill/skill_install.h"
#include "skill/skill_patch.h"
#include "skill/skill_prompt.h"

enum { UNDEFINED_NAMED = 8 /* in one warning */ };

struct undefined_names {
    struct arena *arena;
    struct json *names;
};

/* --- open --- */

/* The package's configuration of the harness is a layer like others: what the user says wins. */
static int add_engine_config(struct definition *d, struct err *e)
{
    struct arena *a = d->arena;
    const struct profile *p = d->settings->profile;
    struct json *config = NULL;
    const char *source = NULL;
    int r = skill_engine_config(a, d->package, &d->engine, &config, &source, e);
    if (r < 0 || config == NULL) {
        return r;
    }
    if (p == NULL || p->files_len == 0) {
        definition_warn(d,
                        "skill '%s' brings configuration for '%s' (%s), which the adapter "
                        "does not take",
                        d->package->name, d->engine.name, source);
        return 0;
    }
    struct json *files = json_object(a);
    struct json *tree = json_object(a);
    json_setc(a, files, p->files[0].name, config);
    json_setc(a, tree, "files", files);
    return settings_add_layer(a, d->settings, "skill",
                              arena_printf(a, "%s/%s", d->package->path, source), tree, e);
}

/* Options that a package sets for itself: a time limit. The others concern the service that the
 * format comes from. */
static int add_default_options(struct definition *d, struct err *e)
{
    struct arena *a = d->arena;
    const struct json *options = d->package->manifest->default_options;
    struct json *timeout = json_get(options, "hard_timeout_seconds");
    if (timeout == NULL) {
        return 0;
    }
    struct json *limits = json_object(a);
    struct json *tree = json_object(a);
    json_setc(a, limits, "timeout", timeout);
    json_setc(a, tree, "limits", limits);
    return settings_add_layer(a, d->settings, "skill",
                              arena_printf(a, "%s/assets/runner.json", d->package->path), tree, e);
}

static int adopt_package(struct definition *d, const struct skill *s, struct err *e)
{
    if (d->package != NULL) {
        return ERR(e, ERR_CONFIG, "a run accepts one skill package, not both '%s' and '%s'",
                   d->package->name, s->name);
    }
    if (d->contract != NULL) {
        return ERR(e, ERR_CONFIG,
                   "skill package '%s' has an output schema of its own: leave output.schema out",
                   s->name);
    }
    if (json_len(s->manifest->required_servers) > 0) {
        definition_warn(d,
                        "skill '%s' needs MCP servers of the harness ('%s' …): add them to the "
                        "configuration of the harness",
                        s->name, json_cstring(json_item(s->manifest->required_servers, 0), ""));
    }
    d->package = s;
    const struct profile *p = d->settings->profile;
    const char *adapter = d->settings->adapter == NULL ? "command" : d->settings->adapter;
    bool named = p != NULL && p->skill_packages.engine != NULL;
    d->engine = (struct skill_engine) {
        .name = named ? p->skill_packages.engine : adapter,
        .invoke = p == NULL ? NULL : p->skill_packages.invoke,
        .configs = p == NULL ? NULL : p->skill_packages.configs,
    };
    return 0;
}

static int open_one(struct definition *d, const struct json *item, struct err *e)
{
    const char *path = json_cstring(json_get(item, "path"), "");
    struct definition_skill *s = &d->skills[d->skills_len];
    int r = skill_open(path, json_cstring(json_get(item, "name"), NULL), &s->skill, e);
    if (r < 0) {
        return err_wrap(e, "skill");
    }
    d->skills_len++;
    s->file = settings_origin(d->settings, d->arena, "skills", NULL).file;
    for (size_t i = 0; i < json_len(s->skill->warnings); i++) {
        definition_warn(d, "skill '%s': %s", s->skill->name,
                        json_cstring(json_item(s->skill->warnings, i), ""));
    }
    return s->skill->manifest == NULL ? 0 : adopt_package(d, s->skill, e);
}

int definition_open_skills(struct definition *d, struct err *e)
{
    const struct json *list = d->settings->skills;
    size_t len = json_len(list);
    int r = 0;
    d->skills = arena_array(d->arena, len + 1, sizeof *d->skills);
    for (size_t i = 0; r == 0 && i < len; i++) {
        r = open_one(d, json_item(list, i), e);
    }
    const struct skill **names = arena_array(d->arena, len + 1, sizeof *names);
    for (size_t i = 0; i < d->skills_len; i++) {
        names[i] = d->skills[i].skill;
    }
    r = r < 0 ? r : skill_check_names(names, d->skills_len, e);
    if (r == 0 && d->package == NULL && json_len(d->settings->inputs) > 0) {
        return ERR(e, ERR_CONFIG, "%s: 'inputs' are for a skill package, and there is none",
                   settings_origin(d->settings, d->arena, "inputs", NULL).file);
    }
    r = r < 0 || d->package == NULL ? r : add_default_options(d, e);
    return r < 0 || d->package == NULL ? r : add_engine_config(d, e);
}

/* --- bind --- */

static struct definition_skill *find(struct definition *d, struct str name)
{
    for (size_t i = 0; i < d->skills_len; i++) {
        if (str_eqc(name, d->skills[i].skill->name)) {
            return &d->skills[i];
        }
    }
    return NULL;
}

static int choose(struct definition *d, struct err *e)
{
    for (size_t i = 0; i < d->skills_len; i++) {
        struct definition_skill *s = &d->skills[i];
        s->wanted = !definition_mentioned(d, "skills", str_of(s->skill->name));
    }
    for (size_t i = 0; i < d->rendering.skills_len; i++) {
        const struct section_skill *shown = &d->rendering.skills[i];
        struct definition_skill *s = find(d, shown->name);
        if (s == NULL) {
            return ERR(e, ERR_CONFIG, "%s: section '%.*s': there is no skill '%.*s' in 'skills'",
                       settings_origin(d->settings, d->arena, "prompt", "sections").file,
                       STR_ARG(shown->path), STR_ARG(shown->name));
        }
        s->wanted = true;
    }
    return 0;
}

/* What cannot be installed must not be promised. With a shared home it would stay in the user's own
 * skills folder and reach every later session. */
static int check_folder(const struct definition *d, struct err *e)
{
    const struct profile *p = d->settings->profile;
    if (d->skills_len == 0 || p == NULL) {
        return 0;
    }
    for (size_t i = 0; p->skills == NULL && i < d->skills_len; i++) {
        if (d->skills[i].skill != d->package) { /* the text of a package is in the prompt */
            return ERR(e, ERR_UNSUPPORTED,
                       "adapter '%s' has no skills folder, so it cannot use skill '%s'", p->name,
                       d->skills[i].skill->name);
        }
    }
    if (d->settings->home == HOME_SHARED) {
        return ERR(e, ERR_UNSUPPORTED,
                   "skill '%s' would be left in your own home: skills need --home private",
                   d->skills[0].skill->name);
    }
    return 0;
}

/* A path is relative to who says it: a task file, or the command line. */
static struct json *resolve_inputs(const struct definition *d)
{
    struct arena *a = d->arena;
    struct json *inputs = json_copy(a, d->settings->inputs);
    const struct json *schema = d->package->schemas[SKILL_INPUT].tree;
    for (size_t i = 0; i < json_len(inputs); i++) {
        struct json_member *m = &inputs->object.members[i];
        const struct json *property = json_find(json_get(schema, "properties"), m->key);
        const char *path = json_cstring(m->value, NULL);
        char joined[PATH_MAX];
        const char *dir = settings_origin(d->settings, a, "inputs", m->key.ptr).dir;
        bool is_inline =
            str_eqc(json_str(json_get(property, "x-input-source"), STR_EMPTY), "inline");
        if (!is_inline && path != NULL && path[0] != '\0' &&
            path_join(dir, path, joined, sizeof joined, NULL) == 0) {
            m->value = json_cstr(a, joined);
        }
    }
    return inputs;
}

/* Adds the name of something that the prompt prints as nothing to a list, once. */
static void note_undefined(void *self, struct str name)
{
    struct undefined_names *u = self;
    for (size_t i = 0; i < json_len(u->names); i++) {
        if (str_eq(json_item(u->names, i)->string, name)) {
            return;
        }
    }
    if (json_len(u->names) < UNDEFINED_NAMED) {
        json_push(u->arena, u->names, json_string(u->arena, str_slice(name, 0, 64)));
    }
}

/* Renders the prompt before anything starts, so that a template with an error is refused and what
 * it lacks is reported. */
static int check_prompt(struct definition *d, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(DEFINITION_PROMPT_MAX);
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    struct undefined_names u = { d->arena, json_array(d->arena) };
    struct skill_prompt_opts opts = {
        .engine = &d->engine,
        .run_dir = "RUN",
        .skill_dir = "SKILL",
        .values = &d->values,
        .undefined = { note_undefined, &u },
    };
    int r = skill_prompt(d->package, &opts, &text, e);
    for (size_t i = 0; i < json_len(u.names); i++) {
        buf_addf(&names, "%s'%s'", i > 0 ? ", " : "", json_cstring(json_item(u.names, i), ""));
    }
    if (r == 0 && names.len > 0) {
        definition_warn(d, "skill '%s': its prompt uses %s, which %s not given and left empty",
                        d->package->name, names.ptr, json_len(u.names) == 1 ? "is" : "are");
    }
    return r;
}

/* A prompt that continues a conversation is the reply to a question of the package: it has its
 * inputs and its instructions already. */
static bool is_reply(const struct definition *d)
{
    return json_get(d->settings->session, "resume") != NULL && d->goal.ptr != NULL;
}

static int bind_package(struct definition *d, struct err *e)
{
    int r = skill_admit(d->package, d->engine.name, 0, &d->mode, e);
    if (r < 0) {
        return r;
    }
    d->contract = skill_contract(d->arena, d->package, d->mode);
    if (is_reply(d)) {
        return 0;
    }
    struct skill_request request = {
        .input = resolve_inputs(d),
        .parameter = d->settings->params,
    };
    r = skill_bind(d->arena, d->package, &request, &d->values, e);
    return r < 0 ? r : check_prompt(d, e);
}

int definition_bind_skills(struct definition *d, struct err *e)
{
    int r = choose(d, e);
    if (r == 0) {
        r = check_folder(d, e);
    }
    return r < 0 || d->package == NULL ? r : bind_package(d, e);
}

/* --- install --- */

const char *definition_skills_folder(const struct profile *p)
{
    return p == NULL || p->skills == NULL ? ".cinch/skills" : p->skills;
}

static int open_folder(const struct definition *d, const struct definition_place *place, int *ret,
                       struct err *e)
{
    const char *folder = definition_skills_folder(d->settings->profile);
    int r = file_mkdirs(place->home_fd, folder, 0700, e);
    if (r < 0) {
        return r;
    }
    *ret = openat(place->home_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "skills folder '%s'", folder) : 0;
}

/* Results go below the agent's directory, where its own tools may write; a workspace that is
 * read-only has no such place. */
static struct skill_patch patch_of(const struct definition *d, const struct definition_place *place)
{
    bool locked = d->settings->sandbox.mode == SANDBOX_READ_ONLY;
    return (struct skill_patch) {
        .mode = d->mode,
        .artifacts_dir = locked ? arena_printf(d->arena, "%s/artifacts", place->run_dir) : NULL,
    };
}

int definition_install(struct definition *d, const struct definition_place *place, struct err *e)
{
    CLEANUP(fd) int folder = -1;
    struct skill_install_opts opts = { .patch = patch_of(d, place), .replace = true };
    int r = d->skills_len == 0 ? 0 : open_folder(d, place, &folder, e);
    for (size_t i = 0; r == 0 && i < d->skills_len; i++) {
        if (d->skills[i].wanted) {
            r = skill_install(d->skills[i].skill, folder, &opts, e);
        }
    }
    if (r == 0 && d->package != NULL && !is_reply(d)) {
        r = skill_stage(d->arena, &d->values, place->run_fd, place->run_dir, e);
    }
    return r;
}

/* For a harness that loads no skills: the text that it would have loaded. */
static int write_text(struct definition *d, const struct definition_place *place, struct str *ret,
                      struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(DEFINITION_PROMPT_MAX);
    const struct profile *p = d->settings->profile;
    struct skill_patch patch = patch_of(d, place);
    if (p == NULL || p->skills != NULL) {
        return 0;
    }
    int r = skill_patch_write(d->package, &patch, d->package->card.body, &text, e);
    *ret = arena_str(d->arena, buf_str(&text));
    return r;
}

int definition_package_prompt(struct definition *d, const struct definition_place *place,
                              struct buf *out, struct err *e)
{
    struct skill_prompt_opts opts = {
        .engine = &d->engine,
        .run_dir = place->run_dir,
        .skill_dir = arena_printf(d->arena, "%s/%s", place->skills_dir, d->package->name),
        .values = &d->values,
        .goal = d->goal.ptr == NULL ? STR_EMPTY : d->goal,
    };
    int r = 0;
    if (is_reply(d)) {
        return buf_append(out, d->goal, e);
    }
    if (place->run_fd < 0) {
        skill_stage_names(d->arena, &d->values, place->run_dir);
    } else {
        r = skill_resolve(d->arena, d->package, place->run_fd, place->run_dir, &d->values, e);
    }
    r = r < 0 ? r : write_text(d, place, &opts.text, e);
    return r < 0 ? r : skill_prompt(d->package, &opts, out, e);
}
