/* SPDX-License-Identifier: MIT
 *
 * The description of a task is built from a `struct run` that is filled in only as far as drivers
 * read it when they plan a start.
 */
#include "run/task_preview.h"

#include "adapters/driver.h"
#include "config/support.h"
#include "run/run_priv.h"

static struct json *sections_json(const struct definition *d)
{
    struct arena *a = d->arena;
    struct json *list = json_array(a);
    for (size_t i = 0; i < d->rendering.sections_len; i++) {
        const struct section_view *v = &d->rendering.sections[i];
        struct json *o = json_object(a);
        json_setc(a, o, "number", json_string(a, v->number));
        json_setc(a, o, "path", json_string(a, v->path));
        json_setc(a, o, "title", json_string(a, v->title));
        json_setc(a, o, "visibility",
                  json_cstr(a, v->visibility == SECTION_FULL ? "full" : "summary"));
        json_setc(a, o, "overridden", json_boolean(a, v->overridden));
        json_push(a, list, o);
    }
    return list;
}

static struct json *skills_json(const struct definition *d)
{
    struct arena *a = d->arena;
    struct json *list = json_array(a);
    for (size_t i = 0; i < d->skills_len; i++) {
        const struct definition_skill *s = &d->skills[i];
        struct json *o = json_object(a);
        json_setc(a, o, "name", json_cstr(a, s->skill->name));
        json_setc(a, o, "path", json_cstr(a, s->skill->path));
        json_setc(a, o, "package", json_boolean(a, s->skill == d->package));
        json_setc(a, o, "installed", json_boolean(a, s->wanted));
        json_push(a, list, o);
    }
    return list;
}

static const char *prompt_kind(const struct definition *d)
{
    const struct settings *s = d->settings;
    return d->sections != NULL          ? "sections"
           : s->prompt_file != NULL     ? "file"
           : s->prompt_text.ptr != NULL ? "text"
           : d->package != NULL         ? "skill"
                                        : "none";
}

static struct json *prompt_json(const struct definition *d)
{
    struct arena *a = d->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "kind", json_cstr(a, prompt_kind(d)));
    json_setc(a, o, "name", json_cstr(a, d->settings->prompt_name));
    json_setc(a, o, "bytes", json_integer(a, (int64_t)d->goal.len));
    json_setc(a, o, "sections", sections_json(d));
    return o;
}

static struct json *warnings_json(const struct definition *d)
{
    struct arena *a = d->arena;
    struct json *list = json_copy(a, d->warnings);
    const struct settings *s = d->settings;
    struct err why;
    if (s->adapter != NULL && settings_adapter(s, &why) < 0) {
        json_push(a, list, json_cstr(a, why.msg));
    }
    if (support_check(a, s, &why) < 0) {
        json_push(a, list, json_cstr(a, arena_printf(a, "a run would be refused: %s", why.msg)));
    }
    for (size_t i = 0; support_warning(a, s, i) != NULL; i++) {
        json_push(a, list, json_cstr(a, support_warning(a, s, i)));
    }
    return list;
}

static struct json *describe_task(const struct definition *d)
{
    struct arena *a = d->arena;
    const struct settings *s = d->settings;
    struct json *o = json_object(a);
    struct json *output = json_object(a);
    struct json *none = json_array(a);
    json_setc(a, o, "name", json_cstr(a, s->name));
    json_setc(a, o, "adapter", json_cstr(a, s->adapter));
    json_setc(a, o, "model", json_cstr(a, s->model));
    json_setc(a, o, "prompt", prompt_json(d));
    json_setc(a, o, "tools", d->tools);
    json_setc(a, o, "skills", skills_json(d));
    json_setc(a, output, "schema", json_copy(a, d->contract));
    json_setc(a, output, "artifacts", s->artifacts == NULL ? none : json_copy(a, s->artifacts));
    json_setc(a, o, "output", output);
    json_setc(a, o, "warnings", warnings_json(d));
    return o;
}

/* --- what would be sent --- */

/* Names of places that only a run has. */
static const char run_dir[] = "RUN";
static const char home_dir[] = "RUN/home";

static struct run sketch(struct definition *d)
{
    const struct settings *s = d->settings;
    struct run_plan *plan = ARENA_NEW(d->arena, struct run_plan);
    const char *first = json_cstring(json_item(s->profile->binary, 0), NULL);
    plan->settings = *s;
    return (struct run) {
        .arena = d->arena,
        .plan = plan,
        .timeout = s->timeout,
        .definition = *d,
        .files_fd = -1,
        .confine = { .spare_fd = -1, .copies_fd = -1 },
        .record.dir.path = arena_dup(d->arena, str_of(run_dir)),
        .paths = { .dir = run_dir,
                   .home = home_dir,
                   .prompt_file = "RUN/home/.cinch/prompt.md",
                   .config_file = "RUN/task.json",
                   .program = first != NULL ? first : json_cstring(json_item(s->command, 0), ""),
                   .view = s->workspace,
                   .workspace = s->workspace,
                   .artifacts = "RUN/artifacts",
                   .skills = arena_printf(d->arena, "%s/%s", home_dir,
                                          definition_skills_folder(s->profile)),
                   .schema_file =
                       d->contract == NULL ? NULL : "RUN/home/.cinch/output.schema.json" },
    };
}

static int plan_arguments(struct definition *d, struct str prompt, struct json *ret, struct err *e)
{
    const struct settings *s = d->settings;
    const struct driver *driver = s->profile == NULL ? NULL : driver_find(s->profile->driver);
    if (driver == NULL || driver->kind == DRIVER_MODEL_LOOP ||
        (json_len(s->profile->binary) == 0 && json_len(s->command) == 0)) {
        return 0; /* nobody said who is to do it */
    }
    struct run run = sketch(d);
    struct launch launch = { 0 };
    run.prompt = prompt;
    struct launch_spec spec = {
        .profile = s->profile, .delivery = s->delivery, .prompt = prompt, .vars = execute_vars(&run)
    };
    int r = driver->program->plan(d->arena, &spec, &launch, e);
    for (size_t i = 0; r == 0 && launch.argv[i] != NULL; i++) {
        json_push(d->arena, ret, json_cstr(d->arena, launch.argv[i]));
    }
    return r;
}

int task_preview(struct definition *d, struct json **ret, struct err *e)
{
    struct arena *a = d->arena;
    const struct settings *s = d->settings;
    struct str prompt;
    struct definition_place place = {
        .run_fd = -1,
        .run_dir = run_dir,
        .home_fd = -1,
        .skills_dir = arena_printf(a, "%s/%s", home_dir, definition_skills_folder(s->profile)),
    };
    struct json *argv = json_array(a);
    int r = admit_look(a, s, e);
    if (r == 0) {
        r = definition_prompt(d, &place, &prompt, e);
    }
    if (r == 0) {
        r = plan_arguments(d, prompt, argv, e);
    }
    if (r < 0) {
        return r;
    }
    struct json *o = describe_task(d);
    struct json *sent = json_object(a);
    json_setc(a, sent, "prompt", json_string(a, prompt));
    json_setc(a, sent, "delivery", json_cstr(a, prompt_delivery_word(s->delivery)));
    json_setc(a, sent, "arguments", argv);
    json_setc(a, sent, "output_schema", json_copy(a, d->asked));
    json_setc(a, sent, "sampling", json_copy(a, json_get(json_get(s->tree, "agent"), "sampling")));
    json_setc(a, sent, "effort", json_cstr(a, s->sampling.effort));
    json_setc(a, o, "sent", sent);
    *ret = o;
    return 0;
}
