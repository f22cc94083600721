/* SPDX-License-Identifier: MIT
 *
 * The list of drivers, and what they share.
 */
#include "adapters/driver.h"

#include <stdio.h>

#define X(name) &driver_##name,
static const struct driver *const drivers[] = { DRIVER_LIST(X) };
#undef X

const struct driver *driver_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            return drivers[i];
        }
    }
    return NULL;
}

const struct driver *driver_at(size_t i)
{
    return i < ARRAY_LEN(drivers) ? drivers[i] : NULL;
}

int driver_check(const struct json *name, const char *file, struct err *e)
{
    char names[256] = "", place[JSON_AT_LEN];
    size_t len = 0;
    if (name == NULL || driver_find(json_cstring(name, "")) != NULL) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(drivers) && len < sizeof names; i++) {
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i == 0 ? "" : "|",
                                drivers[i]->name);
    }
    return ERR(e, ERR_CONFIG, "%s: 'driver' must be one of %s, not '%s'",
               json_at(file, name, place), names, json_cstring(name, ""));
}

struct str driver_var(const struct launch_spec *spec, const char *name)
{
    const struct placeholder *found = placeholder_find(&spec->vars, str_of(name));
    return found == NULL || found->value.ptr == NULL ? STR_EMPTY : found->value;
}

int driver_plan(struct arena *a, const struct launch_spec *spec, struct launch *ret, struct err *e)
{
    int r = expand_argv(a, spec->profile, &spec->vars, &ret->argv, e);
    if (r < 0) {
        return r;
    }
    ret->stdin_text = spec->delivery == PROMPT_STDIN ? spec->prompt : (struct str) { NULL, 0 };
    ret->env = json_object(a);
    r = expand_env(a, spec->profile->env, &spec->vars, ret->env, e);
    return r < 0 ? err_wrap(e, "adapter '%s'", spec->profile->name) : 0;
}

void driver_ignores_tools(void *self, struct driver_tools tools)
{
    (void)self;
    (void)tools;
}

struct driver_wait driver_nothing_pending(void *self)
{
    (void)self;
    return (struct driver_wait) { 0 };
}

void driver_never_paused(void *self)
{
    (void)self;
}

bool driver_sets_nothing(void *self, enum driver_option option, struct str value)
{
    (void)self;
    (void)option;
    (void)value;
    return false;
}

void driver_offer(const struct driver *d, void *self, struct driver_tools tools)
{
    if (d->kind == DRIVER_DIALOGUE) {
        d->dialogue->offer(self, tools);
    } else if (d->kind == DRIVER_MODEL_LOOP) {
        d->model->offer(self, tools);
    }
}

bool driver_is_kind(const struct profile *p, enum driver_kind kind)
{
    const struct driver *driver = driver_find(p->driver);
    return driver != NULL && driver->kind == kind;
}
