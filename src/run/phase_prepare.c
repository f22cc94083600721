/* SPDX-License-Identifier: MIT
 *
 * Phases configure, prepare and context: what the child will find. The harness' configuration and
 * the prompt are written below the run's own home, the record gets what was decided and why.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "data/toml.h"
#include "data/yaml.h"
#include "run/dependencies.h"
#include "run/harness_session.h"
#include "run/holon.h"
#include "run/image.h"
#include "run/image_root.h"
#include "run/project_config.h"
#include "run/run_priv.h"
#include "run/short_path.h"
#include "run/task_files.h"

static int render_config(const struct json *tree, enum config_format format, struct buf *out,
                         struct err *e)
{
    switch (format) {
    case CONFIG_JSON:
        return json_write(tree, JSON_PRETTY, out, e);
    case CONFIG_TOML:
        return toml_write(tree, NULL, out, e);
    case CONFIG_YAML:
        return yaml_write(tree, out, e);
    }
    return ERR(e, ERR_BUG, "unknown configuration format");
}

int home_write(struct run *run, const char *path, struct str text, struct err *e)
{
    char full[PATH_MAX];
    int r = path_join(run->paths.home, path, full, sizeof full, e);
    char *slash = strrchr(full, '/');
    if (r == 0 && slash != NULL) {
        *slash = '\0';
        r = file_mkdirs(AT_FDCWD, full, 0700, e);
        *slash = '/';
    }
    return r < 0 ? r : file_write_atomic(AT_FDCWD, full, text, 0600, e);
}

int home_append(struct run *run, const char *path, struct str text, struct err *e)
{
    enum { WHOLE_MAX = 8 << 20 };
    char full[PATH_MAX];
    CLEANUP(buf) struct buf all = BUF_INIT(WHOLE_MAX);
    int r = path_join(run->paths.home, path, full, sizeof full, e);
    if (r == 0 && file_exists(AT_FDCWD, full)) {
        r = file_read(AT_FDCWD, full, all.max, &all, e);
        buf_add(&all, STR("\n\n"));
    }
    buf_add(&all, text);
    return r < 0 ? r : home_write(run, path, buf_str(&all), e);
}

static int write_config_file(struct run *run, const struct profile_file *file, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const struct json *settings = json_get(json_get(run->plan->settings.tree, "files"), file->name);
    struct json *tree;
    int r = gateway_file(run, file->name, settings, &tree, e);
    r = r < 0 ? r : tier_file(run, file->name, tree, &tree, e);
    r = r < 0 ? r : tools_file(run, file->name, tree, &tree, e);
    r = r < 0 ? r : project_file(run, file->name, tree, &tree, e);
    if (r == 0) {
        r = render_config(tree, file->format, &text, e);
    }
    if (r == 0) {
        r = home_write(run, file->path, buf_str(&text), e);
    }
    return r < 0 ? err_wrap(e, "configuration file '%s'", file->name) : 0;
}

/* With a shared home the harness' configuration is the user's, and stays as it is. */
int config_write_files(struct run *run, struct err *e)
{
    const struct profile *p = run->plan->settings.profile;
    for (size_t i = 0; i < p->files_len; i++) {
        bool wanted = run->plan->settings.home == HOME_PRIVATE || p->files[i].always;
        int r = wanted ? write_config_file(run, &p->files[i], e) : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int phase_configure(struct run *run, struct err *e)
{
    const struct settings *s = &run->plan->settings;
    int r = image_wanted(run) ? 0 : short_path_make(run, e);
    if (r < 0) {
        return r;
    }
    run->paths.home = arena_printf(run->arena, "%s/home", run->paths.dir);
    if (mkdir(run->paths.home, 0700) < 0 && errno != EEXIST) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", run->paths.home);
    }
    struct json *explained = layers_explain(run->arena, &s->layers, s->tree);
    r = record_write_json(&run->record, "evidence/config.json", explained, e);
    if (r == 0) {
        r = tools_mount(run, e);
    }
    if (r == 0) {
        r = gateway_start(run, e);
    }
    if (r == 0) {
        r = tier_install(run, e);
    }
    if (r == 0) {
        r = task_files_install(run, e);
    }
    return r < 0 ? r : auth_install(run, e);
}

/* Where the run keeps things, as the agent will find them. */
static struct definition_place place_of(const struct run *run, int home_fd)
{
    return (struct definition_place) {
        .run_fd = run->record.dir.dir_fd,
        .run_dir = run->paths.dir,
        .home_fd = home_fd,
        .skills_dir = run->paths.skills,
    };
}

static int install_skills(struct run *run, struct err *e)
{
    if (run->definition.skills_len == 0) {
        return 0;
    }
    run->paths.skills = arena_printf(run->arena, "%s/%s", run->paths.home,
                                     definition_skills_folder(run->plan->settings.profile));
    CLEANUP(fd)
    int home =
        openat(run->record.dir.dir_fd, "home", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (home < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", run->paths.home);
    }
    struct definition_place place = place_of(run, home);
    return definition_install(&run->definition, &place, e);
}

int phase_prepare(struct run *run, struct err *e)
{
    struct arena *a = run->arena;
    /* The normalised task is in the record already, without secrets; the program may read it
     * there. */
    run->paths.config_file = arena_printf(a, "%s/task.json", run->paths.dir);
    run->paths.artifacts = arena_printf(a, "%s/artifacts", run->paths.dir);
    run->paths.workspace = run->paths.view;
    int r = run_open_workspace(run, e);
    r = r < 0 ? r : config_write_files(run, e);
    r = r < 0 ? r : harness_session_put(run, e);
    r = r < 0 ? r : install_skills(run, e);
    r = r < 0 ? r : project_prose(run, e);
    r = r < 0 ? r : project_lock_shells(run, e);
    r = r < 0 ? r : holon_prepare(run, e);
    r = r < 0 ? r : image_root_start(run, e);
    return r != 0 ? r : prepare_sandbox(run, e);
}

int prepare_sandbox(struct run *run, struct err *e)
{
    int r = dependencies_start(run, e);
    return r != 0 ? r : sandbox_session_start(run, e);
}

static void tell(struct run *run)
{
    struct event_prompt p = run_event_prompt(run);
    struct events *ev = &run->record.events;
    const struct definition *d = &run->definition;
    size_t sections = d->sections == NULL ? 1 : d->rendering.sections_len;
    size_t tools = json_len(d->tools);
    events_render_start(ev, &p);
    events_render_complete(ev, &p, (int)sections, (int)tools, run->prompt.len);
    events_prompt_rendered(ev, &p, run->prompt, run->render_id);
    if (!tools_wanted(run)) { /* else they are told when they are all there */
        events_rendered_tools(ev, &p, run->render_id, NULL);
    }
    transcript_start(&run->record.transcript, run->plan->settings.prompt_name,
                     run->plan->settings.adapter);
    struct json *detail = json_object(run->arena);
    json_setc(run->arena, detail, "text", json_string(run->arena, run->prompt));
    transcript_add(&run->record.transcript,
                   &(struct transcript_entry) { .type = ENTRY_USER_MESSAGE, .detail = detail });
}

static int write_contract(struct run *run, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (run->definition.contract == NULL) {
        return 0;
    }
    run->paths.schema_file =
        arena_printf(run->arena, "%s/.cinch/output.schema.json", run->paths.home);
    int r = json_write(run->definition.asked, JSON_PRETTY, &text, e);
    return r < 0 ? r : home_write(run, ".cinch/output.schema.json", buf_str(&text), e);
}

int context_write_prompt(struct run *run, struct err *e)
{
    run->paths.prompt_file = arena_printf(run->arena, "%s/.cinch/prompt.md", run->paths.home);
    return home_write(run, ".cinch/prompt.md", run->prompt, e);
}

int context_render(struct run *run, struct str *ret, struct err *e)
{
    struct definition_place place = place_of(run, -1);
    int r = definition_prompt(&run->definition, &place, ret, e);
    r = r < 0 ? r : holon_name_paths(run, ret, e);
    if (r == 0) {
        *ret = task_files_prompt(run, tier_prompt(run, *ret));
    }
    return r;
}

int phase_context(struct run *run, struct err *e)
{
    int r = context_render(run, &run->prompt, e);
    if (r == 0) {
        r = context_write_prompt(run, e);
    }
    if (r == 0) {
        r = write_contract(run, e);
    }
    if (r == 0) {
        r = record_write_text(&run->record, "logs/prompt.txt", run->prompt, e);
    }
    if (r == 0) {
        tell(run);
    }
    return r;
}
