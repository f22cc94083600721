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
#include "base/toml.h"
#include "base/yaml.h"
#include "run/run_priv.h"

/* A prompt beyond this is a mistake; harnesses give up far earlier. */
enum { PROMPT_MAX = 16 << 20 };

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

static int write_below_home(struct run *run, const char *path, struct str text, struct err *e)
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

static int write_config_file(struct run *run, const struct profile_file *file, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const struct json *tree = json_get(json_get(run->settings.tree, "files"), file->name);
    int r = render_config(tree == NULL ? json_object(run->arena) : tree, file->format, &text, e);
    if (r == 0) {
        r = write_below_home(run, file->path, buf_str(&text), e);
    }
    return r < 0 ? err_wrap(e, "configuration file '%s'", file->name) : 0;
}

/* With a shared home the harness' configuration is the user's, and stays as it is. */
static int write_config_files(struct run *run, struct err *e)
{
    const struct profile *p = run->settings.profile;
    for (size_t i = 0; i < p->files_len && run->settings.home == HOME_PRIVATE; i++) {
        int r = write_config_file(run, &p->files[i], e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int phase_configure(struct run *run, struct err *e)
{
    struct settings *s = &run->settings;
    run->paths.home = arena_printf(run->arena, "%s/home", run->record.dir.path);
    if (mkdir(run->paths.home, 0700) < 0 && errno != EEXIST) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", run->paths.home);
    }
    struct json *explained = layers_explain(run->arena, &s->layers, s->tree);
    int r = record_write_json(&run->record, "evidence/config.json", explained, e);
    return r < 0 ? r : write_config_files(run, e);
}

int phase_prepare(struct run *run, struct err *e)
{
    /* The normalised task is in the record already, without secrets; the program may read it
     * there. */
    run->paths.config_file = arena_printf(run->arena, "%s/task.json", run->record.dir.path);
    return 0;
}

static int load_prompt(struct run *run, struct err *e)
{
    const struct settings *s = &run->settings;
    run->prompt = s->prompt_text.ptr == NULL ? STR_EMPTY : s->prompt_text;
    if (s->prompt_file == NULL) {
        return s->prompt_text.ptr != NULL && s->prompt_text.len == 0
                   ? ERR(e, ERR_INPUT, "the prompt is empty")
                   : 0;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(PROMPT_MAX);
    int r = file_read(AT_FDCWD, s->prompt_file, PROMPT_MAX, &text, e);
    if (r == -ERR_LIMIT) {
        e->code = ERR_INPUT; /* what is wrong is the file, not cinch */
    }
    if (r < 0) {
        return err_wrap(e, "prompt");
    }
    if (text.len == 0) {
        return ERR(e, ERR_INPUT, "prompt file '%s' is empty", s->prompt_file);
    }
    run->prompt = arena_str(run->arena, buf_str(&text));
    return 0;
}

static void tell(struct run *run)
{
    char id[ID_LEN];
    struct event_prompt p = run_event_prompt(run);
    struct events *ev = &run->record.events;
    events_render_start(ev, &p);
    events_render_complete(ev, &p, 1, 0, run->prompt.len);
    events_prompt_rendered(ev, &p, run->prompt, id);
    events_rendered_tools(ev, &p, id, NULL);
    transcript_start(&run->record.transcript, run->settings.prompt_name, run->settings.adapter);
    struct json *detail = json_object(run->arena);
    json_setc(run->arena, detail, "text", json_string(run->arena, run->prompt));
    transcript_add(&run->record.transcript,
                   &(struct transcript_entry) { .type = ENTRY_USER_MESSAGE, .detail = detail });
}

int phase_context(struct run *run, struct err *e)
{
    int r = load_prompt(run, e);
    if (r == 0) {
        run->paths.prompt_file = arena_printf(run->arena, "%s/.cinch/prompt.md", run->paths.home);
        r = write_below_home(run, ".cinch/prompt.md", run->prompt, e);
    }
    if (r == 0) {
        r = record_write_text(&run->record, "logs/prompt.txt", run->prompt, e);
    }
    if (r == 0) {
        tell(run);
    }
    return r;
}
