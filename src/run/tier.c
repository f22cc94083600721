/* SPDX-License-Identifier: MIT
 *
 * What the tier of an evaluation says about prompt, tools and sub-agents, in the words of the
 * harness: by its configuration files here, by arguments in launch.c, by drivers on their own.
 * Whether it can be had at all is asked before, in support.c.
 */
#include "run/run_priv.h"

/* Where the prompt of the tier lies for configuration files that name it. */
#define TIER_FILE ".cinch/tier.md"

static int merge_over(struct run *run, const struct json *over, struct json **tree, struct err *e)
{
    const struct placeholder vars[] = {
        { .name = "home", .value = str_of(run->paths.home) },
        { .name = "system_prompt", .value = str_of(run->plan->settings.tier_prompt) },
        { .name = "system_prompt_file",
          .value = str_of(arena_printf(run->arena, "%s/" TIER_FILE, run->paths.home)) },
    };
    return expand_over(run->arena, over, &(struct placeholders) { vars, ARRAY_LEN(vars) }, tree, e);
}

static bool has_prompt(const struct run *run)
{
    return run->plan->settings.tier_prompt != NULL && run->plan->settings.tier_prompt[0] != '\0';
}

int tier_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
              struct err *e)
{
    const struct settings *s = &run->plan->settings;
    const struct profile_tier *t = &s->profile->tier;
    int r = 0;
    *ret = json_copy(run->arena, tree);
    if (has_prompt(run)) {
        r = merge_over(run, json_get(t->prompt_files, name), ret, e);
    }
    if (r == 0 && s->delegation_enabled == TRI_FALSE) {
        r = merge_over(run, json_get(t->delegation_off, name), ret, e);
    }
    if (r == 0 && s->tools_enabled == TRI_FALSE) { /* the last, as it takes away more */
        r = merge_over(run, json_get(t->tools_off, name), ret, e);
    }
    return r < 0 ? err_wrap(e, "values of the tier for '%s'", name) : 0;
}

int tier_install(struct run *run, struct err *e)
{
    const struct settings *s = &run->plan->settings;
    const struct profile_tier *t = &s->profile->tier;
    const char *path = t->prompt_file == NULL ? TIER_FILE : t->prompt_file;
    bool wanted = t->prompt_file != NULL || t->prompt_files != NULL;
    if (!has_prompt(run) || !wanted || s->home != HOME_PRIVATE) {
        return 0;
    }
    int r = home_write(run, path, str_of(s->tier_prompt), e);
    return r < 0 ? err_wrap(e, "prompt of the tier") : 0;
}

struct str tier_prompt(struct run *run, struct str prompt)
{
    const struct profile *p = run->plan->settings.profile;
    /* A driver with a dialogue says it by itself, before the first turn only. */
    bool here = run->plan->driver != NULL && run->plan->driver->kind != DRIVER_DIALOGUE &&
                p != NULL && p->tier.prompt == TIER_PROMPT_TEXT && has_prompt(run);
    if (!here) {
        return prompt;
    }
    return str_of(
        arena_printf(run->arena, "%s\n\n%.*s", run->plan->settings.tier_prompt, STR_ARG(prompt)));
}
