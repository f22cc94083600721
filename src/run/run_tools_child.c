/* SPDX-License-Identifier: MIT
 *
 * What the harness gets of the run's tools: where they are, in variables, configuration files and
 * what its driver is told.
 */
#include <limits.h>
#include <unistd.h>

#include "proc/locate.h"
#include "run/image_root.h"
#include "run/run_tools.h"
#include "run/run_tools_priv.h"
#include "tools/tool_kind.h"

const char *tools_shim(struct run *run)
{
    char path[PATH_MAX];
    struct err ignored;
    if (tools_door(run) == NULL || locate_cinch(path, &ignored) < 0) {
        return NULL;
    }
    return image_root_inside(run, arena_dup(run->arena, str_of(path)));
}

const char *tools_builtin_program(struct run *run, struct err *e)
{
    char path[PATH_MAX];
    if (locate_tools(path, e) < 0) {
        return NULL;
    }
    return image_root_inside(run, arena_dup(run->arena, str_of(path)));
}

struct driver_mcp tools_mcp(struct run *run)
{
    const struct run_tools *t = run->tools;
    if (t == NULL || t->door.upstream == NULL || gateway_address(run) == NULL) {
        return (struct driver_mcp) { 0 };
    }
    const char **shim = arena_array(run->arena, 3, sizeof *shim);
    shim[0] = tools_shim(run);
    shim[1] = "mcp";
    return (struct driver_mcp) {
        .url = arena_printf(run->arena, "%s%s", gateway_address(run), t->door.path),
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
    return expand_env(run->arena, run->plan->settings.profile->mcp.env, vars, env, e);
}

int tools_file(struct run *run, const char *name, struct json *tree, struct json **ret,
               struct err *e)
{
    const struct json *over = json_get(run->plan->settings.profile->mcp.files, name);
    struct driver_mcp mcp = tools_mcp(run);
    *ret = tree;
    if (mcp.url == NULL) {
        return 0;
    }
    struct placeholder vars[] = {
        { .name = "mcp_url", .value = str_of(mcp.url) },
        { .name = "mcp_token", .value = str_of(mcp.token) },
        { .name = "home", .value = str_of(run->paths.home) },
    };
    int r = expand_over(run->arena, over, &(struct placeholders) { vars, ARRAY_LEN(vars) }, ret, e);
    return r < 0 ? err_wrap(e, "values of '%s' for tools", name) : 0;
}

static void add_command(struct arena *a, struct json *out, const struct json *command)
{
    for (size_t i = 0; i < json_len(command); i++) {
        struct json *word = json_item(command, i);
        const char *path = json_cstring(word, "");
        if (path[0] == '/' && access(path, R_OK) == 0) { /* a script that is given by name, too */
            json_push(a, out, word);
        }
    }
}

/* At any depth that the shape of settings allows. */
static void add_checks(struct arena *a, struct json *out, const struct json *rules)
{
    static const char *const groups[] = { "all", "any" };
    add_command(a, out, json_get(rules, "command"));
    for (size_t k = 0; k < ARRAY_LEN(groups); k++) {
        const struct json *list = json_get(rules, groups[k]);
        for (size_t i = 0; i < json_len(list); i++) {
            add_checks(a, out, json_item(list, i));
        }
    }
}

const char *const *tools_programs(struct run *run)
{
    const struct settings *s = &run->plan->settings;
    const struct json *const lists[] = { s->policies, s->feedback };
    struct arena *a = run->arena;
    struct json *found = json_array(a);
    for (size_t i = 0; i < json_len(s->tools); i++) {
        add_command(a, found, tool_kind_command(json_item(s->tools, i)));
    }
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        for (size_t i = 0; i < json_len(lists[k]); i++) {
            add_command(a, found, json_get(json_item(lists[k], i), "command"));
        }
    }
    add_checks(a, found, s->completion);
    const char **list = arena_array(a, json_len(found) + 3, sizeof *list);
    size_t n = 0;
    struct err ignored;
    for (size_t i = 0; i < json_len(found); i++) {
        list[n++] = json_cstring(json_item(found, i), "");
    }
    if (s->profile != NULL && s->profile->api.builtin_tools) {
        list[n] = tools_builtin_program(run, &ignored);
        n += list[n] != NULL;
    }
    list[n] = tools_shim(run);
    return list;
}
