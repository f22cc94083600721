/* SPDX-License-Identifier: MIT
 *
 * An upstream MCP server by hand: opens the one that the definition in argv[1] names and tells what
 * happens as lines of JSON. Lines on stdin say what to do:
 *
 *   {"call": NAME, "arguments": {…}, "id": N, "timeout": SECONDS}   {"cancel": N}   {"stop": true}
 *
 * The end of stdin stops the server too. $SECRET_… are secrets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "io/loop.h"
#include "io/reader.h"
#include "mcp/mcp_link.h"
#include "proc/helper_program.h"
#include "tools/tool_mcp.h"
#include "wire/lines.h"

#define TOOLS_MAX 2048
#define RUNS_MAX  64

extern char **environ;

struct probe {
    struct arena *arena;
    struct loop *loop;
    struct helper_host host;
    struct toolserver *server;
    struct reader *reader;
    struct lines lines;
    struct tool tools[TOOLS_MAX];
    size_t n_tools;
};

struct running {
    struct tool_run run; /* first */
    int64_t id;
};

/* One line, at once. */
static void say(const struct json *v)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    if (json_write(v, JSON_COMPACT, &line, NULL) == 0) {
        (void)printf("%s\n", line.ptr);
        (void)fflush(stdout);
    }
}

static void say_text(const char *key, const char *text)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *o = json_object(a);
    json_setc(a, o, key, json_cstr(a, text));
    say(o);
}

/* --- in place of the bridge --- */

static struct running *runs[RUNS_MAX];

void tool_run_done(struct tool_run *run, const struct tool_result *r)
{
    struct running *x = (struct running *)run;
    struct arena *a = run->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "done", json_integer(a, x->id));
    json_setc(a, o, "failure", json_cstr(a, tool_failure_word(r->failure)));
    json_setc(a, o, "message", json_string(a, r->message));
    json_setc(a, o, "value", r->value == NULL ? NULL : json_copy(a, r->value));
    json_setc(a, o, "content", r->content == NULL ? NULL : json_copy(a, r->content));
    say(o);
    runs[x->id % RUNS_MAX] = NULL;
    arena_free(a);
}

void tool_run_progress(struct tool_run *run, double progress, double total, struct str message)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *o = json_object(a);
    json_setc(a, o, "progress", json_number(a, progress));
    json_setc(a, o, "total", json_number(a, total));
    json_setc(a, o, "message", json_string(a, message));
    json_setc(a, o, "id", json_integer(a, ((struct running *)run)->id));
    say(o);
}

/* --- what happens --- */

static void on_ready(void *arg, struct toolserver *s, const struct tool *tools, size_t n)
{
    struct probe *p = arg;
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *list = json_array(a);
    struct json *o = json_object(a);
    for (size_t i = 0; i < n && i < TOOLS_MAX; i++) {
        struct json *t = json_object(a);
        p->tools[p->n_tools++] = tools[i];
        json_setc(a, t, "name", json_string(a, tools[i].name));
        json_setc(a, t, "description", json_string(a, tools[i].description));
        json_push(a, list, t);
    }
    json_setc(a, o, "ready", list);
    json_setc(a, o, "list", toolserver_list(s, a));
    say(o);
}

static void on_failed(void *arg, struct toolserver *s, const struct err *why)
{
    (void)arg;
    (void)s;
    say_text("failed", why->msg);
}

static void on_event(void *arg, struct toolserver *s, enum toolserver_event ev, struct str tool,
                     const char *text)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *o = json_object(a);
    (void)arg;
    (void)s;
    json_setc(a, o, "event", json_cstr(a, toolserver_event_word(ev)));
    json_setc(a, o, "tool", json_string(a, tool));
    json_setc(a, o, "text", json_cstr(a, text));
    say(o);
}

static void on_stopped(void *arg, struct toolserver *s)
{
    struct probe *p = arg;
    (void)s;
    say_text("stopped", "yes");
    loop_stop(p->loop);
}

static const char *secret(void *arg, const char *name)
{
    (void)arg;
    return strncmp(name, "SECRET_", 7) == 0 ? getenv(name) : NULL;
}

/* --- what to do --- */

static void call(struct probe *p, const struct json *o)
{
    struct str name = json_str(json_get(o, "call"), STR_EMPTY);
    for (size_t i = 0; i < p->n_tools; i++) {
        if (!str_eq(p->tools[i].name, name)) {
            continue;
        }
        struct arena *a = arena_new();
        struct running *x = ARENA_NEW(a, struct running);
        double seconds = json_real(json_get(o, "timeout"), 60);
        const struct json *arguments = json_get(o, "arguments");
        x->id = json_int(json_get(o, "id"), 0);
        x->run = (struct tool_run) {
            .tool = &p->tools[i],
            .arguments = arguments == NULL ? json_object(a) : json_copy(a, arguments),
            .meta = json_copy(a, json_get(o, "meta")),
            .timeout = (nsec)(seconds * (double)NSEC_PER_SEC),
            .arena = a,
        };
        runs[x->id % RUNS_MAX] = x;
        p->tools[i].handler->start(p->tools[i].self, &x->run);
        return;
    }
    say_text("unknown", arena_dup(p->arena, name));
}

static void on_line(struct probe *p, struct str line)
{
    struct json *o;
    CLEANUP(arena) struct arena *a = arena_new();
    if (json_parse(a, line, NULL, &o, NULL) < 0) {
        return;
    }
    int64_t id = json_int(json_get(o, "cancel"), -1);
    if (json_get(o, "call") != NULL) {
        call(p, o);
    } else if (id >= 0 && runs[id % RUNS_MAX] != NULL) {
        struct tool_run *r = &runs[id % RUNS_MAX]->run;
        r->tool->handler->cancel(r->tool->self, r);
    } else if (json_get(o, "stop") != NULL) {
        toolserver_stop(p->server);
    }
}

static void on_bytes(void *arg, struct str chunk)
{
    struct probe *p = arg;
    struct str line;
    lines_feed(&p->lines, chunk);
    while (lines_next(&p->lines, &line)) {
        on_line(p, line);
    }
}

static void on_end(void *arg, const struct err *why)
{
    struct probe *p = arg;
    (void)why;
    toolserver_stop(p->server);
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct probe *p = ARENA_NEW(a, struct probe);
    struct json *definition;
    struct err e = { 0 };
    p->arena = a;
    lines_init(&p->lines, (size_t)1 << 20);
    if (argc != 2 || json_parse(a, str_of(argv[1]), NULL, &definition, &e) < 0 ||
        loop_new(&p->loop, &e) < 0) {
        (void)fprintf(stderr, "toolserver_run DEFINITION: %s\n", e.msg);
        return 64;
    }
    p->host = (struct helper_host) { .loop = p->loop, .envp = (const char *const *)environ };
    const struct toolserver_opts o = { .host = &p->host,
                                       .definition = definition,
                                       .http = mcp_link_new,
                                       .secret = secret,
                                       .ready = on_ready,
                                       .failed = on_failed,
                                       .event = on_event,
                                       .stopped = on_stopped,
                                       .arg = p };
    const struct reader_port port = { on_bytes, on_end, p };
    int rc = toolserver_open(&o, &p->server, &e);
    rc = rc < 0 ? rc : reader_new(p->loop, dup(STDIN_FILENO), &port, &p->reader, &e);
    if (rc < 0) {
        say_text("refused", e.msg);
    } else {
        loop_run(p->loop);
    }
    p->reader = reader_free(p->reader);
    for (size_t i = 0; i < p->n_tools; i++) {
        tool_free(&p->tools[i]);
    }
    p->server = toolserver_free(p->server);
    p->loop = loop_free(p->loop);
    lines_done(&p->lines);
    return rc < 0 ? 1 : 0;
}
