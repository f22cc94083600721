/* SPDX-License-Identifier: MIT
 *
 * Terminals: one struct for each program, from its start until it is both released and gone. The
 * agent knows it by a number of its driver's.
 */
#include "run/agent_terminals.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "io/loop.h"
#include "proc/proc.h"
#include "run/agent_files.h"
#include "run/run_tools_priv.h"

/* For what holds its pipes after the program itself has ended. */
#define DRAIN (2 * NSEC_PER_SEC)
/* Between the signal that asks it to end and the one that ends it. */
#define GRACE NSEC_PER_SEC

struct waiter {
    struct waiter *next;
    uint64_t id; /* of the question */
    void (*then)(void *arg, const struct driver_reply *reply);
    void *arg;
};

struct terminal {
    struct terminal *next;
    struct run *run;
    struct arena *arena;
    uint64_t number;
    struct proc *proc; /* NULL: it is gone */
    struct buf out;    /* up to twice the limit, so that not every byte moves all others */
    size_t limit;
    bool cut; /* something was dropped */
    bool released;
    struct waiter *waiters;
    struct proc_result result;
    char why[200]; /* it was not started; "": it was */
};

/* --- the list --- */

static struct terminal *find(const struct run *run, uint64_t number)
{
    struct terminal *t = run->tools->terminals;
    while (t != NULL && (t->number != number || t->released)) {
        t = t->next;
    }
    return t;
}

static size_t count(const struct run *run)
{
    size_t n = 0;
    for (const struct terminal *t = run->tools->terminals; t != NULL; t = t->next) {
        n++;
    }
    return n;
}

static void drop(void *arg)
{
    struct terminal *t = arg;
    const struct helper_host *host = &t->run->tools->agent_host;
    struct terminal **at = &t->run->tools->terminals;
    while (*at != t) {
        at = &(*at)->next;
    }
    *at = t->next;
    buf_done(&t->out);
    arena_free(t->arena);
    free(t);
    host->over(host->arg);
}

/* --- what it prints --- */

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct terminal *t = arg;
    (void)stream;
    run_alive(t->run);
    if (bytes.len > t->limit) {
        t->cut = true;
        bytes = str_slice(bytes, bytes.len - t->limit, bytes.len);
    }
    if (t->out.len + bytes.len > 2 * t->limit) {
        t->cut = true;
        buf_consume(&t->out, t->out.len + bytes.len - t->limit);
    }
    buf_add(&t->out, bytes);
}

/* The last bytes within the limit, from the beginning of a character on. */
static struct str output_of(const struct terminal *t, bool *ret_cut)
{
    struct str all = buf_str(&t->out);
    size_t from = all.len > t->limit ? all.len - t->limit : 0;
    *ret_cut = t->cut || from > 0;
    while (*ret_cut && from < all.len && ((unsigned char)all.ptr[from] & 0xc0) == 0x80) {
        from++;
    }
    return str_slice(all, from, all.len);
}

/* --- how it is doing --- */

static struct driver_terminal state_of(const struct terminal *t)
{
    const struct proc_result *r = &t->result;
    struct driver_terminal s = { .ended = t->proc == NULL, .exit_code = -1 };
    if (s.ended && r->exit_known && !r->signaled) {
        s.exit_code = r->value;
    } else if (s.ended && r->started) {
        const char *name = sigabbrev_np(r->exit_known ? r->value : SIGKILL);
        s.signal = arena_printf(t->arena, "SIG%s", name == NULL ? "KILL" : name);
    }
    return s;
}

static void answer_end(const struct terminal *t, const struct waiter *w)
{
    struct driver_terminal s = state_of(t);
    struct driver_reply reply = { .id = w->id, .ok = true, .terminal = &s };
    if (t->why[0] != '\0') {
        reply.ok = false;
        reply.text = str_of(t->why);
    }
    w->then(w->arg, &reply);
}

static void on_spawn_failed(void *arg, const struct err *why)
{
    struct terminal *t = arg;
    struct str text = str_slice(str_of(why->msg), 0, sizeof t->why - 1);
    memcpy(t->why, text.ptr, text.len);
    t->why[text.len] = '\0';
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct terminal *t = arg;
    struct waiter *waiters = t->waiters;
    t->result = *r;
    t->proc = proc_free(t->proc);
    t->waiters = NULL;
    if (t->released) { /* asked before the answers: one of them may end the run, and release it */
        loop_retire(t->run->loop, drop, t);
    }
    for (const struct waiter *w = waiters; w != NULL; w = w->next) {
        answer_end(t, w);
    }
}

/* --- what is asked --- */

static const char *const *argv_of(struct terminal *t, const struct json *list)
{
    const char **argv = arena_array(t->arena, json_len(list) + 1, sizeof *argv);
    for (size_t i = 0; i < json_len(list); i++) {
        argv[i] = arena_dup(t->arena, json_str(json_item(list, i), STR_EMPTY));
    }
    argv[json_len(list)] = NULL;
    return argv;
}

static int start(struct terminal *t, const struct driver_ask *ask, struct err *e)
{
    struct run *run = t->run;
    char cwd[PATH_MAX];
    struct helper_opts o = {
        .host = &run->tools->agent_host,
        .argv = argv_of(t, ask->terminal->argv),
        .env = ask->terminal->env,
        .cwd = cwd,
    };
    struct proc_opts po = {
        .stdin_mode = PROC_STDIN_CLOSED,
        .grace = GRACE,
        .drain = DRAIN,
        .port = { .on_spawn_failed = on_spawn_failed,
                  .on_output = on_output,
                  .on_done = on_done,
                  .arg = t },
    };
    int r = agent_files_dir(run, ask->path, cwd, e);
    return r < 0 ? r : helper_spawn(t->arena, &o, &po, &t->proc, e);
}

static int create(struct run *run, const struct driver_ask *ask, struct err *e)
{
    struct run_tools *tools = run->tools;
    const struct driver_terminal_ask *what = ask->terminal;
    if (tools->agent_host.envp == NULL || tools->closed != NULL ||
        run->cause.reason != REASON_NONE) {
        return ERR(e, ERR_CANCELLED, "the run has ended");
    }
    if (count(run) >= AGENT_TERMINALS_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d terminals", AGENT_TERMINALS_MAX);
    }
    struct terminal *t = xcalloc(1, sizeof *t);
    *t = (struct terminal) {
        .next = tools->terminals,
        .run = run,
        .arena = arena_new(),
        .number = what->number,
        .limit = what->limit,
    };
    buf_init(&t->out, 2 * t->limit + 1);
    int r = start(t, ask, e);
    if (r < 0) {
        buf_done(&t->out);
        arena_free(t->arena);
        free(t);
        return r;
    }
    tools->terminals = t;
    tools->agent_host.began(tools->agent_host.arg);
    return 0;
}

static void wait_for(struct terminal *t, const struct driver_ask *ask, struct waiter w)
{
    w.id = ask->id;
    if (t->proc == NULL) {
        answer_end(t, &w);
        return;
    }
    struct waiter *kept = ARENA_NEW(t->arena, struct waiter);
    *kept = w;
    kept->next = t->waiters;
    t->waiters = kept;
}

static void release(struct terminal *t)
{
    t->released = true;
    if (t->proc == NULL) {
        loop_retire(t->run->loop, drop, t);
    } else {
        proc_kill(t->proc);
    }
}

/* All but create and wait are answered at once. */
static void act(struct terminal *t, enum terminal_action action, struct driver_reply *reply,
                struct driver_terminal *state)
{
    switch (action) {
    case TERMINAL_OUTPUT:
        *state = state_of(t);
        reply->text = output_of(t, &state->truncated);
        reply->terminal = state;
        break;
    case TERMINAL_KILL:
        if (t->proc != NULL) {
            proc_stop(t->proc, GRACE);
        }
        break;
    case TERMINAL_RELEASE:
        release(t);
        break;
    case TERMINAL_CREATE:
    case TERMINAL_WAIT:
        break;
    }
}

void agent_terminals_ask(struct run *run, const struct driver_ask *ask,
                         void (*then)(void *arg, const struct driver_reply *reply), void *arg)
{
    enum terminal_action action = ask->terminal->action;
    struct terminal *t = run->tools == NULL ? NULL : find(run, ask->terminal->number);
    struct driver_reply reply = { .id = ask->id, .ok = true };
    struct driver_terminal state = { 0 };
    struct err e;
    if (run->tools == NULL || (action != TERMINAL_CREATE && t == NULL)) {
        reply.ok = false;
        reply.text = STR("there is no such terminal");
    } else if (action == TERMINAL_CREATE) {
        reply.ok = create(run, ask, &e) == 0;
        reply.text = reply.ok ? STR_EMPTY : str_of(e.msg);
    } else if (action == TERMINAL_WAIT) {
        wait_for(t, ask, (struct waiter) { .then = then, .arg = arg });
        return;
    } else {
        act(t, action, &reply, &state);
    }
    then(arg, &reply);
}

void agent_terminals_stop(struct run *run)
{
    struct terminal *t = run->tools->terminals;
    while (t != NULL) {
        struct terminal *next = t->next;
        if (!t->released) {
            release(t);
        }
        t = next;
    }
}

bool agent_terminals_awaited(const struct run *run)
{
    const struct terminal *t = run->tools->terminals;
    while (t != NULL && t->waiters == NULL) {
        t = t->next;
    }
    return t != NULL;
}
