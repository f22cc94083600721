/* SPDX-License-Identifier: MIT
 *
 * Phase admit: is everything there that the run needs? Nothing is started, nothing outside the
 * run's directory is touched; a refusal costs nothing and leaves a complete record.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "adapters/node.h"
#include "adapters/version.h"
#include "base/file.h"
#include "config/support.h"
#include "proc/which.h"
#include "run/harness_session.h"
#include "run/image_root.h"
#include "run/project_config.h"
#include "run/run_priv.h"
#include "run/run_session.h"

static int check_workspace(const struct settings *s, struct err *e)
{
    struct stat st;
    if (stat(s->workspace, &st) < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "workspace '%s'", s->workspace);
    }
    if (!S_ISDIR(st.st_mode)) {
        return ERR(e, ERR_INPUT, "workspace '%s' is not a directory", s->workspace);
    }
    return 0;
}

static int check_prompt(const struct settings *s, const struct definition *d, struct err *e)
{
    if (s->prompt_file != NULL && access(s->prompt_file, R_OK) < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "prompt file '%s'", s->prompt_file);
    }
    bool asked = s->prompt_file != NULL || s->prompt_text.ptr != NULL || d->sections != NULL ||
                 d->package != NULL;
    if (!asked &&
        (json_len(s->profile->binary) > 0 || driver_is_kind(s->profile, DRIVER_MODEL_LOOP))) {
        return ERR(e, ERR_INPUT, "no prompt: give a goal, --prompt FILE or a task file");
    }
    return 0;
}

static int find_driver(struct run *run, struct err *e)
{
    const struct profile *p = run->plan->settings.profile;
    run->draft->driver = driver_find(p->driver);
    if (run->plan->driver == NULL) {
        return ERR(e, ERR_UNAVAILABLE, "adapter '%s' needs driver '%s', which this cinch lacks",
                   p->name, p->driver);
    }
    return 0;
}

/* PATH as the child will have it. */
static const char *child_path(const struct run *run)
{
    const char *set = json_cstring(json_get(run->plan->settings.env_set, "PATH"), NULL);
    return set != NULL ? set : which_path(run->opts->environ);
}

/* The version that is installed, without starting the program. */
static void note_version(struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    if (p->image != NULL || json_len(p->binary) == 0) {
        return;
    }
    run->draft->program_version = version_of_program(run->arena, p, run->paths.program);
    const char *warning = version_warning(run->arena, p, run->plan->program_version);
    if (warning != NULL) {
        run_warn(run, "%s", warning);
    }
}

/* A node that the agent can run on comes first in its PATH. */
static int choose_node(struct run *run, struct err *e)
{
    struct arena *a = run->arena;
    const struct profile *p = run->plan->settings.profile;
    const char *dir;
    if (p->node == NULL) {
        return 0;
    }
    int r = node_find(a, p->node, child_path(run), &dir, e);
    if (r < 0 || dir == NULL) {
        return r;
    }
    const struct json *set = run->plan->settings.env_set;
    struct json *env = set == NULL ? json_object(a) : json_copy(a, set);
    json_setc(a, env, "PATH", json_cstr(a, arena_printf(a, "%s:%s", dir, child_path(run))));
    run->draft->settings.env_set = env;
    return 0;
}

/* The first candidate of the profile that exists, or the command of the request. */
static int find_program(struct run *run, struct err *e)
{
    const struct json *candidates = run->plan->settings.profile->binary;
    char found[PATH_MAX];
    if (run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        return 0; /* it starts none */
    }
    const char *engine =
        run->plan->settings.profile->image == NULL ? NULL : run->plan->settings.sandbox.engine;
    int r = -ERR_USAGE;
    if (engine != NULL) {
        r = which_find(engine, which_path(run->opts->environ), NULL, found, e);
    } else if (json_len(candidates) == 0 && image_root_wanted(run)) {
        run->paths.program = json_cstring(json_item(run->plan->settings.command, 0), "");
        return 0; /* looked for in the image, once it is there */
    } else if (json_len(candidates) == 0) {
        const char *name = json_cstring(json_item(run->plan->settings.command, 0), "");
        r = which_find(name, child_path(run), run->paths.view, found, e);
    } else {
        for (size_t i = 0; r < 0 && i < json_len(candidates); i++) {
            const char *name = json_cstring(json_item(candidates, i), "");
            r = which_find(name, child_path(run), NULL, found, e);
        }
    }
    if (image_root_brings_program(run, r == 0)) {
        run->paths.program = json_cstring(json_item(candidates, 0), "");
        return 0;
    }
    r = r < 0 ? r : choose_node(run, e);
    if (r < 0) {
        return err_wrap(e, "adapter '%s'", run->plan->settings.profile->name);
    }
    run->paths.program = arena_dup(run->arena, str_of(found));
    note_version(run);
    return 0;
}

/* Names under `files` must be known to the profile, or they would be silently ignored. */
static int check_files(const struct settings *s, struct err *e)
{
    const struct json *files = json_get(s->tree, "files");
    for (size_t i = 0; i < json_len(files); i++) {
        struct str name = files->object.members[i].key;
        bool known = false;
        for (size_t j = 0; j < s->profile->files_len; j++) {
            known = known || str_eqc(name, s->profile->files[j].name);
        }
        if (!known) {
            return ERR(e, ERR_CONFIG, "adapter '%s' has no configuration file '%.*s'",
                       s->profile->name, STR_ARG(name));
        }
    }
    return 0;
}

/* What was found when the task was read. */
static void report_notes(struct run *run)
{
    const struct json *notes = run->plan->settings.notes;
    for (size_t i = 0; i < json_len(notes); i++) {
        run_warn(run, "%s", json_cstring(json_item(notes, i), ""));
    }
}

static int check_support(struct run *run, struct err *e)
{
    int r = support_check(run->arena, &run->plan->settings, e);
    for (size_t i = 0; r == 0; i++) {
        const char *text = support_warning(run->arena, &run->plan->settings, i);
        if (text == NULL) {
            break;
        }
        run_warn(run, "%s", text);
    }
    const struct profile *p = run->plan->settings.profile;
    if (r == 0 && p != NULL && p->unverified != NULL) {
        run_warn(run, "adapter '%s' is unverified: %s", p->name, p->unverified);
    }
    if (r == 0 && p != NULL) {
        project_admit(run);
    }
    return r;
}

static int bind_definition(struct run *run, struct err *e)
{
    int r = definition_bind(&run->definition, e);
    run->draft->unrendered = r == -ERR_CONFIG || r == -ERR_PARSE;
    const struct json *warnings = run->definition.warnings;
    for (size_t i = 0; i < json_len(warnings); i++) {
        run_warn(run, "%s", json_cstring(json_item(warnings, i), ""));
    }
    return r;
}

int admit_look(struct arena *a, const struct settings *s, struct err *e)
{
    int r = gateway_look(a, s, e);
    if (r == 0) {
        r = check_workspace(s, e);
    }
    if (r == 0) {
        r = environment_names(s, e);
    }
    return r < 0 || s->profile == NULL ? r : check_files(s, e);
}

int phase_admit(struct run *run, struct err *e)
{
    struct settings *s = &run->draft->settings;
    report_notes(run);
    int r = record_write_json(&run->record, "task.json", settings_task(run->arena, s), e);
    if (r == 0 && !execute_meet_deadline(run)) {
        return 0; /* the cause is noted */
    }
    if (r == 0) {
        r = settings_adapter(s, e);
    }
    if (r == 0 && run->plan->secrets_error.code != ERR_OK) {
        *e = run->plan->secrets_error;
        r = -(int)e->code;
    }
    if (r == 0) {
        r = auth_admit(run, e);
    }
    if (r == 0) {
        r = gateway_admit(run, e);
    }
    if (r == 0) {
        r = check_support(run, e);
    }
    if (r == 0) {
        r = check_workspace(s, e);
    }
    if (r == 0) {
        r = check_prompt(s, &run->definition, e);
    }
    if (r == 0) {
        r = bind_definition(run, e);
    }
    if (r == 0) {
        r = check_files(s, e);
    }
    if (r == 0) {
        r = find_driver(run, e);
    }
    if (r == 0) {
        r = harness_session_admit(run, e);
    }
    if (r == 0) {
        r = tools_admit(run, e);
    }
    if (r == 0) {
        r = sandbox_session_admit(run, e);
    }
    if (r == 0) {
        r = image_root_admit(run, e);
    }
    return r < 0 ? r : find_program(run, e);
}
