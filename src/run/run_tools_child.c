/* SPDX-License-Identifier: MIT
 *
 * What the harness gets of the run's tools: where they are, in variables, configuration files and
 * what its driver is told.
 */
#include "proc/locate.h"
#include "run/run_tools.h"
#include "run/run_tools_priv.h"

struct driver_mcp tools_mcp(struct run *run)
{
    const struct run_tools *t = run->tools;
    if (t == NULL || t->door.upstream == NULL || gateway_url(run) == NULL) {
        return (struct driver_mcp) { 0 };
    }
    const char **shim = arena_array(run->arena, 3, sizeof *shim);
    shim[0] = locate_self(run->arena);
    shim[1] = "mcp";
    return (struct driver_mcp) {
        .url = arena_printf(run->arena, "%s%s", gateway_url(run), t->door.path),
        .token = gateway_token(run),
        .shim = shim[0] == NULL ? NULL : shim,
    };
}

/* For programs that look for their tools themselves. */
int tools_environment(struct run *run, const struct placeholders *vars, struct json *env,
                      struct err *e)
{
    struct driver_mcp mcp = tools_mcp(run);
    if (mcp.url == NULL) {
        return 0;
    }
    json_setc(run->arena, env, "CINCH_MCP_URL", json_cstr(run->arena, mcp.url));
    json_setc(run->arena, env, "CINCH_MCP_TOKEN", json_cstr(run->arena, mcp.token));
    return expand_env(run->arena, run->settings.profile->mcp.env, vars, env, e);
}

int tools_file(struct run *run, const char *name, struct json *tree, struct json **ret,
               struct err *e)
{
    const struct json *over = json_get(run->settings.profile->mcp.files, name);
    struct driver_mcp mcp = tools_mcp(run);
    struct json *filled = NULL;
    *ret = tree;
    if (over == NULL || mcp.url == NULL) {
        return 0;
    }
    struct placeholder vars[] = {
        { .name = "mcp_url", .value = str_of(mcp.url) },
        { .name = "mcp_token", .value = str_of(mcp.token) },
        { .name = "home", .value = str_of(run->paths.home) },
    };
    int r =
        expand_tree(run->arena, over, &(struct placeholders) { vars, ARRAY_LEN(vars) }, &filled, e);
    if (r < 0) {
        return err_wrap(e, "values of '%s' for tools", name);
    }
    *ret = json_merge(run->arena, tree, filled);
    return 0;
}
