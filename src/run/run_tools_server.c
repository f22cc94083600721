/* SPDX-License-Identifier: MIT
 *
 * Servers of others whose tools a run offers: connected before the agent starts, ended when the
 * last call is over.
 */
#include <string.h>

#include "io/loop.h"
#include "mcp/mcp_link.h"
#include "run/run_tools_priv.h"
#include "tools/bridge.h"
#include "tools/tool_kind.h"
#include "tools/tool_mcp.h"

/* --- open --- */

static void on_server_ready(void *arg, struct toolserver *s, const struct tool *tools, size_t n)
{
    struct run *run = arg;
    struct err e;
    for (size_t i = 0; i < n; i++) {
        struct tool tool = tools[i];
        if (bridge_add(run->tools->bridge, &tool, &e) < 0) {
            run_warn(run, "server '%.*s': %s", STR_ARG(toolserver_name(s)), e.msg);
            tool_free(&tool);
        }
    }
    if (--run->tools->waiting == 0) {
        tools_go_on_opened(run);
    }
}

static void on_server_failed(void *arg, struct toolserver *s, const struct err *why)
{
    struct run *run = arg;
    if (run_fail(run, why->code == ERR_SECRET ? REASON_AUTH : REASON_UNAVAILABLE,
                 "tool server '%.*s': %s", STR_ARG(toolserver_name(s)), why->msg)) {
        run->cause.phase = "tool";
    }
    if (--run->tools->waiting == 0) {
        tools_go_on_opened(run);
    }
}

static void on_server_event(void *arg, struct toolserver *s, enum toolserver_event ev,
                            struct str tool, const char *text)
{
    struct run *run = arg;
    bool of_tool = tool.len > 0;
    if (ev == TOOLSERVER_RESTARTED) {
        return;
    }
    run_warn(run, "tool server '%.*s'%s%.*s%s: %s", STR_ARG(toolserver_name(s)),
             of_tool ? ", tool '" : "", STR_ARG(tool), of_tool ? "'" : "", text);
}

static void on_server_stopped(void *arg, struct toolserver *s)
{
    struct run *run = arg;
    struct run_tools *t = run->tools;
    if (t->closed != NULL && --t->waiting == 0) {
        loop_post(run->loop, tools_finish_close, run);
    }
}

static const char *secret_of(void *arg, const char *name)
{
    const struct run *run = arg;
    for (size_t i = 0; i < run->plan->secrets.len; i++) {
        if (strcmp(run->plan->secrets.items[i].name, name) == 0) {
            return arena_dup(run->arena, run->plan->secrets.items[i].value);
        }
    }
    return NULL;
}

int servers_open(struct run *run, struct err *e)
{
    struct run_tools *t = run->tools;
    const struct json *tools = run->plan->settings.tools;
    size_t n = 0;
    int r = 0;
    t->servers = arena_array(run->arena, t->n_servers + 1, sizeof(struct toolserver *));
    t->waiting = 1; /* ourselves: nobody goes on before all are asked */
    for (size_t i = 0; r == 0 && i < json_len(tools); i++) {
        const struct tool_kind *kind;
        if (tool_kind_of(json_item(tools, i), &kind, NULL) < 0 || kind->source != TOOL_SERVER) {
            continue;
        }
        struct toolserver_opts o = {
            .host = &t->host,
            .definition = json_item(tools, i),
            .http = mcp_link_new,
            .secret = secret_of,
            .ready = on_server_ready,
            .failed = on_server_failed,
            .event = on_server_event,
            .stopped = on_server_stopped,
            .arg = run,
        };
        r = toolserver_open(&o, &t->servers[n], e);
        n += r == 0;
        t->waiting += r == 0;
    }
    t->n_servers = n;
    return r;
}

/* --- close --- */

void servers_stop(struct run *run)
{
    struct run_tools *t = run->tools;
    if (t->ending) {
        return;
    }
    size_t n = t->servers == NULL ? 0 : t->n_servers; /* NULL: it did not come to that */
    t->ending = true;
    t->waiting = n;
    if (n == 0) {
        loop_post(run->loop, tools_finish_close, run);
    }
    for (size_t i = 0; i < n; i++) {
        toolserver_stop(t->servers[i]);
    }
    if (t->hurry) {
        servers_kill(run);
    }
}

void servers_kill(struct run *run)
{
    struct run_tools *t = run->tools;
    t->hurry = true;
    for (size_t i = 0; t->ending && t->servers != NULL && i < t->n_servers; i++) {
        toolserver_kill(t->servers[i]);
    }
}

void servers_free(struct run *run)
{
    struct run_tools *t = run->tools;
    for (size_t i = 0; t->servers != NULL && i < t->n_servers; i++) {
        t->servers[i] = toolserver_free(t->servers[i]);
    }
    t->n_servers = 0;
}
