/* SPDX-License-Identifier: MIT
 *
 * The bridge as a run would have it, alone: a workspace, its sandbox, transactions, a session and
 * tools that are programs, served by MCP over HTTP. For tests and for bench/bridge.
 *
 *   bridge_server [--no-sandbox | --no-files] WORKSPACE PRIVATE TOOLS
 *
 * TOOLS is a file with a list of definitions. Says {"url":…} on stdout, then a line for every call;
 * after SIGTERM {"session":…} and how many transactions are left. --no-sandbox: programs run beside
 * us, in private copies. --no-files: without any transaction on files.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "gateway/gateway.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/sigwatch.h"
#include "mcp/mcp_mount.h"
#include "proc/helper_program.h"
#include "record/state_store.h"
#include "sandbox/sandbox.h"
#include "tools/bridge.h"
#include "tools/tool_program.h"
#include "workspace/txn.h"
#include "workspace/workspace.h"

extern char **environ;

struct server {
    const char *source, *private_dir, *tools;
    bool bare, no_files;
    struct arena *arena;
    struct loop *loop;
    struct workspace *workspace;
    struct sandbox *box;
    struct sandbox_policy policy;
    struct helper_host host;
    struct txns *txns;
    struct state_store *session;
    struct bridge *bridge;
    struct upstream *mount;
    struct gateway_mount door;
    struct gateway *gateway;
    struct sigwatch *watch;
    int status;
};

static void print(const struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (json_write(v, JSON_COMPACT, &text, NULL) == 0) {
        (void)printf("%.*s\n", STR_ARG(buf_str(&text)));
        (void)fflush(stdout);
    }
}

static void stop_for(struct server *s, const struct err *why)
{
    (void)fprintf(stderr, "bridge_server: %s\n", why->msg);
    s->status = 1;
    loop_stop(s->loop);
}

static void invoked(void *arg, const struct bridge_record *r)
{
    (void)arg;
    CLEANUP(arena) struct arena *a = arena_new();
    print(bridge_record_json(a, r));
}

static bool place(void *arg, const char *layer, struct proc_place *ret)
{
    struct server *s = arg;
    if (s->box != NULL) {
        *ret = sandbox_place(s->box, layer);
    }
    return s->box != NULL;
}

/* --- the end, part by part --- */

static void on_gateway_stopped(void *arg)
{
    loop_stop(((struct server *)arg)->loop);
}

static void on_idle(void *arg)
{
    struct server *s = arg;
    gateway_stop(s->gateway, NSEC_PER_SEC, on_gateway_stopped, s);
}

static void on_signal(void *arg, int signo)
{
    struct server *s = arg;
    (void)signo;
    mcp_mount_stop(s->mount);
    bridge_stop(s->bridge);
}

static void release(struct server *s)
{
    s->gateway = gateway_free(s->gateway);
    if (s->mount != NULL) {
        s->mount->ops->free(s->mount);
    }
    s->bridge = bridge_free(s->bridge);
    if (s->txns != NULL) {
        struct json *o = json_object(s->arena);
        json_setc(s->arena, o, "active", json_integer(s->arena, (int64_t)txns_active(s->txns)));
        json_setc(s->arena, o, "session", store_save(s->session, s->arena, STR("now"), true));
        print(o);
    }
    s->txns = txns_close(s->txns);
    s->session = store_free(s->session);
    s->box = sandbox_free(s->box);
    s->watch = sigwatch_free(s->watch);
    s->workspace = workspace_close(s->workspace, true);
    s->loop = loop_free(s->loop);
    s->arena = arena_free(s->arena);
}

/* --- the begin --- */

static int add_tools(struct server *s, struct err *e)
{
    struct json *list;
    CLEANUP(buf) struct buf text = BUF_INIT(1 << 20);
    int r = file_read(AT_FDCWD, s->tools, 1 << 20, &text, e);
    r = r < 0 ? r : json_parse(s->arena, buf_str(&text), NULL, &list, e);
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        struct tool t;
        r = tool_define(s->arena, json_item(list, i), &t, e);
        r = r < 0 ? r : tool_program_bind(s->arena, json_item(list, i), &t, e);
        r = r < 0 ? r : bridge_add(s->bridge, &t, e);
    }
    return r;
}

static int open_txns(struct server *s, struct err *e)
{
    struct txns_opts o = {
        .workspace_fd = s->box == NULL ? workspace_fd(s->workspace) : sandbox_workspace(s->box),
        .dir = workspace_txn_dir(s->workspace),
        .layers_fd = s->box == NULL ? -1 : sandbox_scratch(s->box),
        .overlay = s->box != NULL,
        .marks = sandbox_userxattr() ? NODE_MARKS_USER : NODE_MARKS_TRUSTED,
    };
    return txns_open(&o, &s->txns, e);
}

static int serve(struct server *s, struct err *e)
{
    int fd, port;
    struct bridge_opts o = {
        .loop = s->loop,
        .host = &s->host,
        .session = s->session,
        .txns = s->no_files ? NULL : s->txns,
        .invoked = invoked,
        .idle = on_idle,
        .arg = s,
    };
    s->bridge = bridge_new(&o);
    struct mcp_opts opts = { .tools = bridge_port(s->bridge), .name = "bridge", .version = "1" };
    int r = add_tools(s, e);
    r = r < 0 ? r : mcp_mount_new(s->loop, &opts, &s->mount, e);
    r = r < 0 ? r : listener_bind_tcp("127.0.0.1", 0, &fd, &port, e);
    if (r < 0) {
        return r;
    }
    s->door = (struct gateway_mount) { .path = "/mcp", .upstream = s->mount };
    struct gateway_opts door = {
        .listeners = &fd, .n_listeners = 1, .mounts = &s->door, .n_mounts = 1
    };
    r = gateway_open(s->loop, &door, &s->gateway, e);
    r = r < 0 ? r : sigwatch_new(s->loop, SIGTERM, on_signal, s, &s->watch, e);
    if (r == 0) {
        (void)printf("{\"url\":\"http://127.0.0.1:%d/mcp\"}\n", port);
        (void)fflush(stdout);
    }
    return r;
}

static void begin(struct server *s)
{
    struct err e;
    int r = open_txns(s, &e);
    r = r < 0 ? r : serve(s, &e);
    if (r < 0) {
        stop_for(s, &e);
    }
}

static void on_ready(void *arg, const struct sandbox_report *r, int listener)
{
    (void)r;
    (void)listener;
    begin(arg);
}

static void on_failed(void *arg, const struct sandbox_report *r, const struct err *why)
{
    (void)r;
    stop_for(arg, why);
}

static void on_lost(void *arg, const struct err *why)
{
    stop_for(arg, why);
}

static int open_all(struct server *s, struct err *e)
{
    s->arena = arena_new();
    s->session = store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
    struct workspace_opts w = {
        .source = s->source,
        .kind = s->bare ? WORKSPACE_COPY : WORKSPACE_OVERLAY,
        .dir = s->private_dir,
        .overlay = !s->bare,
        .marks = sandbox_userxattr() ? NODE_MARKS_USER : NODE_MARKS_TRUSTED,
    };
    int r = loop_new(&s->loop, e);
    r = r < 0 ? r : workspace_open(&w, &s->workspace, e);
    if (r < 0) {
        return r;
    }
    s->host = (struct helper_host) {
        .loop = s->loop,
        .place = place,
        .arg = s,
        .envp = (const char *const *)environ,
        .cwd = s->bare ? workspace_dir(s->workspace) : workspace_path(s->workspace),
    };
    if (s->bare) {
        begin(s);
        return 0;
    }
    sandbox_policy_init(&s->policy);
    s->policy.path = getenv("PATH");
    struct sandbox_opts o = {
        .policy = &s->policy,
        .view = workspace_view(s->workspace),
        .port = { .on_ready = on_ready, .on_failed = on_failed, .on_lost = on_lost, .arg = s },
    };
    return sandbox_open(s->loop, &o, &s->box, e);
}

int main(int argc, char **argv)
{
    struct server s = { 0 };
    struct err e;
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        s.bare = s.bare || strcmp(argv[i], "--no-sandbox") == 0;
        s.no_files = s.no_files || strcmp(argv[i], "--no-files") == 0;
    }
    if (argc - i != 3) {
        (void)fprintf(stderr,
                      "usage: bridge_server [--no-sandbox] [--no-files] WORKSPACE PRIVATE TOOLS\n");
        return 64;
    }
    s.source = argv[i];
    s.private_dir = argv[i + 1];
    s.tools = argv[i + 2];
    if (open_all(&s, &e) < 0) {
        (void)fprintf(stderr, "bridge_server: %s\n", e.msg);
        s.status = 1;
    } else if (s.status == 0) {
        loop_run(s.loop);
    }
    release(&s);
    return s.status;
}
