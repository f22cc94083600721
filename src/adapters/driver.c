/* SPDX-License-Identifier: MIT
 *
 * The list of drivers, and what they share.
 */
#include "adapters/driver.h"

static const struct driver *const drivers[] = { &driver_acp,   &driver_api,      &driver_claude,
                                                &driver_codex, &driver_contract, &driver_oneshot };

const struct driver *driver_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            return drivers[i];
        }
    }
    return NULL;
}

struct placeholders driver_vars(struct arena *a, const struct launch_spec *spec)
{
    const struct placeholder own[] = {
        { .name = "resume", .value = spec->resume },
        { .name = "mcp_url", .value = str_of(spec->mcp.url) },
    };
    struct placeholder *all = arena_array(a, ARRAY_LEN(own) + spec->vars.len, sizeof *all);
    memcpy(all, own, sizeof own);
    if (spec->vars.len > 0) {
        memcpy(all + ARRAY_LEN(own), spec->vars.items, spec->vars.len * sizeof *all);
    }
    return (struct placeholders) { all, ARRAY_LEN(own) + spec->vars.len };
}

bool driver_is_internal(const struct profile *p)
{
    const struct driver *driver = driver_find(p->driver);
    return driver != NULL && driver->plan == NULL;
}
