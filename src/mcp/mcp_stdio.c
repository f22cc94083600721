/* SPDX-License-Identifier: MIT
 *
 * Lines of JSON to and from a program. What ends it is decided here, that it has ended by proc.
 */
#include "mcp/mcp_stdio.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "io/loop.h"
#include "io/timer.h"
#include "proc/helper_program.h"
#include "proc/proc.h"
#include "wire/lines.h"

struct mcp_stdio {
    struct mcp_transport base; /* first */
    struct loop *loop;
    struct mcp_transport_port port;
    struct proc *proc;
    struct timer *timer; /* for who does not leave */
    struct lines lines;
    struct buf err;
    uint64_t overlong; /* that were told */
    bool closing;
    bool freed;
};

static struct mcp_stdio *self(struct mcp_transport *t)
{
    return (struct mcp_stdio *)t;
}

/* --- what the program says --- */

static void on_stdout(struct mcp_stdio *s, struct str bytes)
{
    struct str line;
    lines_feed(&s->lines, bytes);
    while (!s->freed && lines_next(&s->lines, &line)) {
        s->port.on_message(s->port.arg, line);
    }
    if (!s->freed && s->lines.overlong > s->overlong) {
        struct err e = { 0 };
        s->overlong = s->lines.overlong;
        (void)ERR(&e, ERR_LIMIT, "the server sent a message of more than %zu bytes",
                  MCP_MESSAGE_MAX);
        s->port.on_lost(s->port.arg, 0, &e);
    }
}

static void on_stderr(struct mcp_stdio *s, struct str bytes)
{
    size_t from = bytes.len > MCP_STDIO_STDERR_MAX ? bytes.len - MCP_STDIO_STDERR_MAX : 0;
    bytes = str_slice(bytes, from, bytes.len);
    if (s->err.len + bytes.len > MCP_STDIO_STDERR_MAX) {
        buf_consume(&s->err, s->err.len + bytes.len - MCP_STDIO_STDERR_MAX);
    }
    buf_add(&s->err, bytes);
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct mcp_stdio *s = arg;
    if (s->freed) {
        return;
    }
    if (stream == PROC_STDOUT) {
        on_stdout(s, bytes);
    } else {
        on_stderr(s, bytes);
    }
}

/* The last line that it wrote for people says most. */
static struct str last_words(const struct mcp_stdio *s)
{
    struct str rest = str_trim(buf_str(&s->err));
    struct str line = rest;
    while (rest.ptr != NULL && rest.len > 0) {
        struct str next = str_trim(str_split(&rest, '\n'));
        line = next.len > 0 ? next : line;
    }
    return str_slice(line, 0, 200);
}

static void why_of(const struct mcp_stdio *s, const struct proc_result *r, struct err *e)
{
    struct str words = last_words(s);
    const char *mark = words.len > 0 ? ": " : "";
    if (!r->started) {
        *e = r->error;
        if (e->code == ERR_OK) {
            (void)ERR(e, ERR_UNAVAILABLE, "the server could not be started");
        }
    } else if (r->exit_known && !r->signaled) {
        (void)ERR(e, ERR_UPSTREAM, "the server exited with code %d%s%.*s", r->value, mark,
                  STR_ARG(words));
    } else {
        (void)ERR(e, ERR_UPSTREAM, "the server was ended by %s%s%.*s",
                  r->exit_known ? strsignal(r->value) : "SIGKILL", mark, STR_ARG(words));
    }
}

/* Its output is at an end, or it is: whatever is left of it is of no use without the other. */
static void on_exit_(void *arg, const struct proc_result *r)
{
    struct mcp_stdio *s = arg;
    (void)r;
    if (!s->freed) {
        proc_kill(s->proc);
    }
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct mcp_stdio *s = arg;
    struct err e = { 0 };
    if (s->freed) {
        return;
    }
    s->timer = timer_free(s->timer);
    why_of(s, r, &e);
    s->port.on_end(s->port.arg, s->closing ? NULL : &e);
}

/* --- the transport --- */

static int send_message(struct mcp_transport *t, const struct mcp_outgoing *m, struct err *e)
{
    struct mcp_stdio *s = self(t);
    CLEANUP(buf) struct buf line = BUF_INIT(MCP_STDIO_QUEUE);
    if (s->closing) {
        return ERR(e, ERR_UNAVAILABLE, "the server is being ended");
    }
    int rc = buf_append(&line, m->text, e);
    rc = rc < 0 ? rc : buf_append_c(&line, '\n', e);
    rc = rc < 0 ? rc : proc_write(s->proc, buf_str(&line), e);
    return rc < 0 ? err_wrap(e, "the server does not read") : 0;
}

static void drop(struct mcp_transport *t, uint64_t key)
{
    (void)t; /* answers of all requests share the way back */
    (void)key;
}

static void on_patience_over(void *arg)
{
    struct mcp_stdio *s = arg;
    proc_kill(s->proc);
}

static void close_stdin(struct mcp_transport *t)
{
    struct mcp_stdio *s = self(t);
    if (!s->closing) {
        s->closing = true;
        proc_close_stdin(s->proc);
        if (s->timer != NULL) {
            timer_arm(s->timer, clock_now() + MCP_STDIO_LEAVE);
        }
    }
}

static void kill_stdio(struct mcp_transport *t)
{
    struct mcp_stdio *s = self(t);
    if (s->closing && s->proc != NULL) {
        proc_kill(s->proc);
    }
}

static void destroy(void *arg)
{
    struct mcp_stdio *s = arg;
    lines_done(&s->lines);
    buf_done(&s->err);
    free(s);
}

static void free_stdio(struct mcp_transport *t)
{
    struct mcp_stdio *s = self(t);
    s->freed = true;
    s->timer = timer_free(s->timer);
    s->proc = proc_free(s->proc);
    loop_retire(s->loop, destroy, s);
}

static const struct mcp_transport_ops ops = {
    .send = send_message,
    .drop = drop,
    .close = close_stdin,
    .kill = kill_stdio,
    .free = free_stdio,
};

int mcp_stdio_new(const struct mcp_stdio_opts *o, struct mcp_transport **ret, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct mcp_stdio *s = xcalloc(1, sizeof *s);
    const struct helper_opts eo = {
        .host = o->host, .argv = o->argv, .env = o->env, .outside = o->outside
    };
    struct proc_opts po = {
        .stdin_mode = PROC_STDIN_PIPE,
        .stdin_max = MCP_STDIO_QUEUE,
        .drain = MCP_STDIO_LEAVE,
        .port = { .on_output = on_output, .on_exit = on_exit_, .on_done = on_done, .arg = s },
    };
    s->base.ops = &ops;
    s->loop = o->host->loop;
    s->port = o->port;
    lines_init(&s->lines, MCP_MESSAGE_MAX);
    buf_init(&s->err, MCP_STDIO_STDERR_MAX);
    int rc = timer_new(s->loop, on_patience_over, s, &s->timer, e);
    rc = rc < 0 ? rc : helper_spawn(a, &eo, &po, &s->proc, e);
    if (rc < 0) {
        s->timer = timer_free(s->timer);
        destroy(s);
        return rc;
    }
    *ret = &s->base;
    return 0;
}

struct str mcp_stdio_stderr(const struct mcp_transport *t)
{
    return buf_str(&((const struct mcp_stdio *)t)->err);
}
