/* SPDX-License-Identifier: MIT
 *
 * What is started in phase execute: arguments, environment, what the driver is told.
 */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "record/redact.h"
#include "run/dependencies.h"
#include "run/execute_priv.h"
#include "run/holon.h"
#include "run/image.h"
#include "run/image_root.h"
#include "run/project_config.h"
#include "run/resources.h"

/* execve() takes no single argument beyond 32 pages. */
enum { ARGUMENT_MAX = 131071 };

static struct str text_or_none(const char *text)
{
    return text == NULL ? (struct str) { 0 } : str_of(text);
}

static struct str number_text(struct run *run, double n)
{
    return isnan(n) ? (struct str) { 0 } : str_of(arena_printf(run->arena, "%.17g", n));
}

/* A list, as JSON. */
static struct str stop_text(struct run *run)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const struct json *stop = run->plan->settings.sampling.stop;
    if (json_len(stop) == 0 || json_write(stop, JSON_COMPACT, &out, NULL) < 0) {
        return (struct str) { 0 };
    }
    return arena_str(run->arena, buf_str(&out));
}

static struct str contract_text(struct run *run)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (run->definition.contract == NULL ||
        json_write(run->definition.asked, JSON_COMPACT, &out, NULL) < 0) {
        return (struct str) { 0 };
    }
    return arena_str(run->arena, buf_str(&out));
}

/* Of a tier: has a value when it is switched off, so that a profile can say `when: tools_off`. */
static struct str when_off(enum tristate t)
{
    return t == TRI_FALSE ? STR("true") : (struct str) { 0 };
}

/* Has a value when the harness must be told what it does not know about the model. */
static struct str when_unknown(const struct settings *s)
{
    const struct json *known = s->profile->known_models;
    bool found = s->model == NULL || s->model[0] == '\0' || known == NULL;
    for (size_t i = 0; !found && i < json_len(known); i++) {
        found = fnmatch(json_cstring(json_item(known, i), ""), s->model, 0) == 0;
    }
    return found ? (struct str) { 0 } : STR("true");
}

/* Some harnesses make a repository where there is none. */
static struct str when_repository(struct run *run)
{
    const char *dir = run->paths.view;
    return dir != NULL && file_exists(AT_FDCWD, arena_printf(run->arena, "%s/.git", dir))
               ? STR("true")
               : (struct str) { 0 };
}

/* For a harness that does not announce its skills to the model by itself; empty: there are none. */
static struct str skills_text(struct run *run)
{
    const struct definition *d = &run->definition;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < d->skills_len && run->paths.skills != NULL; i++) {
        const struct skill *s = d->skills[i].skill;
        if (d->skills[i].wanted) {
            buf_addf(&out, "%s- %s: %s (%s/%s/SKILL.md)",
                     out.len == 0 ? "Skills for special tasks. Read the file before you start if "
                                    "one fits:\n"
                                  : "\n",
                     s->name, s->card.description, run->paths.skills, s->name);
        }
    }
    return arena_str(run->arena, buf_str(&out));
}

struct placeholders execute_vars(struct run *run)
{
    const struct settings *s = &run->plan->settings;
    struct driver_mcp mcp = tools_mcp(run);
    nsec seconds = (run->timeout + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
    const struct placeholder vars[] = {
        { .name = "prompt", .value = run->prompt },
        { .name = "prompt_file", .value = str_of(run->paths.prompt_file) },
        { .name = "model", .value = str_of(s->model) },
        { .name = "model_unknown", .value = when_unknown(s) },
        { .name = "workspace", .value = str_of(image_workspace(run)) },
        { .name = "output_dir", .value = str_of(run->paths.dir) },
        { .name = "timeout",
          .value = str_of(arena_printf(run->arena, "%lld", (long long)seconds)) },
        { .name = "home",
          .value = str_of(s->home == HOME_PRIVATE ? run->paths.home : getenv("HOME")) },
        { .name = "config_file", .value = str_of(run->paths.config_file) },
        { .name = "system_prompt", .value = str_of(s->tier_prompt) },
        { .name = "artifacts_dir", .value = str_of(run->paths.artifacts) },
        { .name = "skills_dir", .value = text_or_none(run->paths.skills) },
        { .name = "skills_list", .value = skills_text(run) },
        { .name = "output_schema_file", .value = text_or_none(run->paths.schema_file) },
        { .name = "output_schema", .value = contract_text(run) },
        { .name = "effort", .value = text_or_none(s->sampling.effort) },
        { .name = "temperature", .value = number_text(run, s->sampling.temperature) },
        { .name = "top_p", .value = number_text(run, s->sampling.top_p) },
        { .name = "max_tokens",
          .value =
              number_text(run, s->sampling.max_tokens > 0 ? (double)s->sampling.max_tokens : NAN) },
        { .name = "context",
          .value = number_text(run, s->sampling.context > 0 ? (double)s->sampling.context : NAN) },
        { .name = "seed",
          .value = number_text(run, s->sampling.seed >= 0 ? (double)s->sampling.seed : NAN) },
        { .name = "presence_penalty", .value = number_text(run, s->sampling.presence_penalty) },
        { .name = "frequency_penalty", .value = number_text(run, s->sampling.frequency_penalty) },
        { .name = "stop", .value = stop_text(run) },
        { .name = "gateway_url", .value = text_or_none(gateway_url(run)) },
        { .name = "gateway_token", .value = text_or_none(gateway_token(run)) },
        { .name = "mcp_url", .value = text_or_none(mcp.url) },
        { .name = "mcp_token", .value = text_or_none(mcp.token) },
        { .name = "resume", .value = run->exec.resume },
        { .name = "system_prompt_none",
          .value = s->no_system_prompt ? STR("true") : (struct str) { 0 } },
        { .name = "tools_off", .value = when_off(s->tools_enabled) },
        { .name = "delegation_off", .value = when_off(s->delegation_enabled) },
        { .name = "git", .value = when_repository(run) },
        { .name = "project_trusted", .value = s->trust_project ? STR("true") : (struct str) { 0 } },
        { .name = "run_home", .value = str_of(run->paths.home) },
        { .name = "binary", .value = str_of(run->paths.program) },
        { .name = "adapter_input", .value = str_of(holon_input(run)) },
        { .name = "adapter_output", .value = str_of(holon_output(run)) },
        { .name = "entry", .list = image_entry(run) },
        { .name = "command", .list = s->command },
        { .name = "args", .list = s->args },
    };
    struct placeholder *copy = arena_array(run->arena, ARRAY_LEN(vars), sizeof *copy);
    memcpy(copy, vars, sizeof vars);
    return (struct placeholders) { copy, ARRAY_LEN(vars) };
}

/* Arguments are visible to every user of the machine: a secret has no business there. */
static int check_arguments(const struct run *run, struct err *e)
{
    for (size_t i = 0; run->launch.argv[i] != NULL; i++) {
        struct str arg = str_of(run->launch.argv[i]);
        if (redact_str(run->redactor, run->arena, arg).ptr != arg.ptr) {
            return ERR(e, ERR_USAGE,
                       "argument %zu of the program holds the value of a secret: pass it by "
                       "environment, or the prompt by file (--prompt-via file)",
                       i);
        }
        if (arg.len > ARGUMENT_MAX) {
            return ERR(e, ERR_CONFIG,
                       "argument %zu of the program has %zu bytes and the system allows %d: pass "
                       "the prompt by file (--prompt-via file)",
                       i, arg.len, ARGUMENT_MAX);
        }
    }
    return 0;
}

/* --- files that the program leaves --- */

/* Reached by a program that writes a huge log; it is then not looked at. */
enum { LEFT_FILE_MAX = 8 << 20 };

/* The directory itself stays: a container has it mounted. */
static int empty(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (d == NULL) { /* the agent may have put something else there */
        cleanup_fd(&fd);
        r = file_remove_tree(AT_FDCWD, dir, e);
        return r < 0 ? r : file_mkdirs(AT_FDCWD, dir, 0700, e);
    }
    for (struct dirent *i = readdir(d); r == 0 && i != NULL; i = readdir(d)) {
        if (strcmp(i->d_name, ".") != 0 && strcmp(i->d_name, "..") != 0) {
            r = file_remove_tree(dirfd(d), i->d_name, e);
        }
    }
    (void)closedir(d);
    return r;
}

static int fresh_files(struct run *run, struct err *e)
{
    const char *dir = arena_printf(run->arena, "%s/" HOLON_OUTPUT, run->paths.home);
    run->execute->files_taken = false;
    if (run->plan->driver->kind != DRIVER_CONTRACT) {
        return 0;
    }
    return empty(dir, e);
}

static void take_file(struct run *run, int home, const char *name)
{
    struct err e;
    CLEANUP(buf) struct buf text = BUF_INIT(LEFT_FILE_MAX);
    const char *path = arena_printf(run->arena, HOLON_OUTPUT "/%s", name);
    int fd = file_open_below(home, str_of(path));
    if (fd < 0) {
        return; /* it need not leave one */
    }
    if (file_read_fd(fd, name, text.max, &text, &e) < 0) {
        run_warn(run, "the adapter program left: %s", e.msg);
    } else {
        run->plan->driver->contract->take_file(run->session, name, buf_str(&text));
    }
    (void)close(fd);
}

void launch_take_files(struct run *run)
{
    if (run->plan->driver->kind != DRIVER_CONTRACT || run->execute->files_taken ||
        !run->exec.launched) {
        return;
    }
    int home = open(run->paths.home, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    run->execute->files_taken = true;
    for (size_t i = 0; home >= 0 && run->plan->driver->contract->files[i] != NULL; i++) {
        take_file(run, home, run->plan->driver->contract->files[i]);
    }
    if (home >= 0) {
        (void)close(home);
    }
}

int launch_set_environment(struct run *run, struct err *e)
{
    if (run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        return 0; /* nothing is started */
    }
    int r = launch_environment(run, run->launch.env, &run->environment, e);
    return r < 0 ? r
                 : record_write_json(&run->record, "evidence/environment.json",
                                     run->environment.names, e);
}

int launch_plan(struct run *run, struct launch_spec *spec, struct err *e)
{
    *spec = (struct launch_spec) {
        .profile = run->plan->settings.profile,
        .delivery = run->plan->settings.delivery,
        .prompt = run->prompt,
        .output_schema = run->definition.asked,
        .vars = execute_vars(run),
        .output = execute_agent_output(run),
        .port = dialogue_port(run),
        .mcp = tools_mcp(run),
        .resume = run->exec.resume,
        .has_policies = tools_govern(run),
        .has_feedback = tools_feed_back(run),
        .home = run->paths.home,
        .workspace = image_workspace(run),
    };
    if (run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        return 0;
    }
    int r = run->plan->driver->program->plan(run->arena, spec, &run->launch, e);
    if (r == 0) {
        r = fresh_files(run, e);
    }
    if (r == 0) {
        r = holon_write_input(run, e);
    }
    if (r == 0) {
        r = gateway_environment(run, &spec->vars, run->launch.env, e);
    }
    if (r == 0) {
        r = tools_environment(run, &spec->vars, run->launch.env, e);
    }
    if (r == 0) {
        r = project_environment(run, &spec->vars, run->launch.env, e);
    }
    if (r == 0 && run->confine.policy.mode != SANDBOX_OFF && !run->confine.open) {
        r = config_write_files(run, e); /* the sandbox was lost, and the workspace with it */
    }
    if (r == 0) {
        run->paths.executable =
            run->plan->settings.profile->image == NULL ? run->paths.program : image_program();
        image_root_launch(run);
        r = check_arguments(run, e);
    }
    return r < 0 ? r : launch_set_environment(run, e);
}

int launch_environment(struct run *run, const struct json *adapter_env, struct environment *ret,
                       struct err *e)
{
    bool foreign = adapter_env != NULL && run->plan->settings.profile->image != NULL;
    struct environment_input in = {
        .settings = &run->plan->settings,
        .timeout = run->timeout,
        .secrets = &run->plan->secrets,
        .caller = run->opts->environ,
        .adapter_env = adapter_env,
        .withheld = gateway_withheld(run),
        .run_id = run->record.state.run_id,
        .home = run->plan->settings.home == HOME_PRIVATE && !foreign ? run->paths.home : NULL,
        .foreign = foreign,
        .image_env = image_root_env(run),
        .workspace = foreign ? image_workspace(run) : run->paths.view,
        .prompt_file = run->paths.prompt_file,
        .output_dir = run->paths.dir,
        .config_file = run->paths.config_file,
        .artifacts_dir = run->paths.artifacts,
        .user = foreign ? NULL : sandbox_session_user(run),
        .skills_dir = run->paths.skills,
        .schema_file = run->paths.schema_file,
        .resource_env = resources_env(run),
        .python_env = foreign ? NULL : dependencies_dir(run),
    };
    return environment_build(run->arena, &in, ret, e);
}
