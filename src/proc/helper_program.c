/* SPDX-License-Identifier: MIT
 *
 * Errands on top of proc: how one ends is decided here once, by the first thing that goes wrong;
 * when it is over is said by proc alone, after the last process of the tree is gone.
 */
#include "proc/helper_program.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "io/loop.h"
#include "io/timer.h"
#include "proc/which.h"

/* For what holds its pipes after the program itself has ended; a part of a pipeline that writes its
 * last lines needs less, a daemon would use up any time. */
#define DRAIN (2 * NSEC_PER_SEC)

#define ENV_MAX 4096 /* variables; more is no environment */

struct helper {
    struct loop *loop;
    struct arena *arena;
    struct proc *proc;
    struct timer *timer;
    struct buf out, err;
    size_t max_output;
    nsec timeout;
    nsec started_at;
    const char *home; /* made for it; NULL: none was */
    bool exited;      /* the program itself is over: a timeout is none any more */
    bool cut;         /* it was made to end, for the reason in `end` */
    enum helper_end end;
    void (*done)(void *arg, const struct helper_result *r);
    void *arg;
    void (*over)(void *arg); /* the host's; NULL: nobody counts */
    void *host_arg;
};

static void helper_destroy(void *arg)
{
    struct helper *x = arg;
    x->proc = proc_free(x->proc);
    x->timer = timer_free(x->timer);
    buf_done(&x->out);
    buf_done(&x->err);
    if (x->home != NULL) {
        (void)!file_remove_tree(AT_FDCWD, x->home, NULL); /* else the run removes it */
    }
    x->arena = arena_free(x->arena);
    if (x->over != NULL) {
        x->over(x->host_arg);
    }
    free(x);
}

static void cut(struct helper *x, enum helper_end end)
{
    if (!x->cut) {
        x->cut = true;
        x->end = end;
    }
    proc_kill(x->proc);
}

/* --- what the program does --- */

static void on_stdout(struct helper *x, struct str bytes)
{
    if (bytes.len > x->max_output - x->out.len) {
        bytes.len = x->max_output - x->out.len;
        cut(x, HELPER_FLOOD);
    }
    buf_add(&x->out, bytes);
}

/* The end of it tells most: that is where a program says why it gave up. */
static void on_stderr(struct helper *x, struct str bytes)
{
    if (bytes.len > HELPER_STDERR_MAX) {
        bytes = str_slice(bytes, bytes.len - HELPER_STDERR_MAX, bytes.len);
    }
    size_t len = x->err.len + bytes.len;
    if (len > HELPER_STDERR_MAX) {
        buf_consume(&x->err, len - HELPER_STDERR_MAX);
    }
    buf_add(&x->err, bytes);
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    if (stream == PROC_STDOUT) {
        on_stdout(arg, bytes);
    } else {
        on_stderr(arg, bytes);
    }
}

static void on_exit_(void *arg, const struct proc_result *r)
{
    struct helper *x = arg;
    (void)r;
    x->exited = true;
}

static void on_timeout(void *arg)
{
    struct helper *x = arg;
    if (x->exited) {
        proc_kill(x->proc); /* what it left behind had its time too */
    } else {
        cut(x, HELPER_TIMEOUT);
    }
}

/* --- how it ended --- */

static const char *why_of(const struct helper *x, const struct helper_result *r,
                          const struct proc_result *p)
{
    switch (r->end) {
    case HELPER_EXITED:
        return r->value == 0 ? NULL : arena_printf(x->arena, "it exited with code %d", r->value);
    case HELPER_SIGNALLED:
        return arena_printf(x->arena, "it was ended by signal %d (%s)", r->value,
                            strsignal(r->value));
    case HELPER_TIMEOUT:
        return arena_printf(x->arena, "it took more than %.6g seconds and was killed",
                            (double)x->timeout / (double)NSEC_PER_SEC);
    case HELPER_FLOOD:
        return arena_printf(x->arena, "it printed more than %zu bytes and was killed",
                            x->max_output);
    case HELPER_CANCELLED:
        return "it was cancelled";
    case HELPER_NOT_STARTED:
        break;
    }
    return p->error.code == ERR_OK ? "it could not be started" : p->error.msg;
}

static void on_done(void *arg, const struct proc_result *p)
{
    struct helper *x = arg;
    struct helper_result r = {
        .end = HELPER_EXITED,
        .value = p->value,
        .out = buf_str(&x->out),
        .err = buf_str(&x->err),
        .leaked = p->leaked,
        .took = clock_now() - x->started_at,
    };
    if (x->cut) {
        r.end = x->end;
    } else if (!p->started) {
        r.end = HELPER_NOT_STARTED;
    } else if (!p->exit_known || p->signaled) {
        r.end = HELPER_SIGNALLED;
        r.value = p->exit_known ? p->value : SIGKILL;
    }
    r.why = why_of(x, &r, p);
    x->timer = timer_free(x->timer);
    x->done(x->arg, &r);
    loop_retire(x->loop, helper_destroy, x);
}

/* --- starting --- */

static bool env_given(const struct json *env, const char *entry)
{
    size_t len = strcspn(entry, "=");
    return json_find(env, str_n(entry, len)) != NULL;
}

/* "NAME=value"; NULL in *ret for a null, which takes the variable away. */
static int env_entry(struct arena *a, const struct json_member *m, const char **ret, struct err *e)
{
    if (m->key.len == 0 || str_has_nul(m->key) || memchr(m->key.ptr, '=', m->key.len) != NULL) {
        return ERR(e, ERR_CONFIG, "'%.*s' cannot be the name of a variable", STR_ARG(m->key));
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    switch (m->value->type) {
    case JSON_NULL:
        *ret = NULL;
        return 0;
    case JSON_STRING:
        buf_add(&text, m->value->string);
        break;
    case JSON_BOOL:
    case JSON_INT:
    case JSON_REAL:
        if (json_write(m->value, JSON_COMPACT, &text, e) < 0) {
            return -(int)e->code;
        }
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return ERR(e, ERR_CONFIG, "the variable '%.*s' cannot hold an %s", STR_ARG(m->key),
                   json_type_name(m->value->type));
    }
    if (str_has_nul(buf_str(&text))) {
        return ERR(e, ERR_CONFIG, "the variable '%.*s' cannot hold a NUL", STR_ARG(m->key));
    }
    *ret = arena_printf(a, "%.*s=%.*s", STR_ARG(m->key), STR_ARG(buf_str(&text)));
    return 0;
}

/* The host's variables, with those of the helper in their place or behind them. */
static int env_merge(struct arena *a, const char *const *host, const struct json *env,
                     const char *const **ret, struct err *e)
{
    size_t n_host = 0;
    size_t n_own = json_is(env, JSON_OBJECT) ? env->object.len : 0;
    while (host != NULL && host[n_host] != NULL) {
        n_host++;
    }
    if (n_host > ENV_MAX || n_own > ENV_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d variables", ENV_MAX);
    }
    const char **all = arena_array(a, n_host + n_own + 1, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < n_host; i++) {
        if (!env_given(env, host[i])) {
            all[n++] = host[i];
        }
    }
    for (size_t i = 0; i < n_own; i++) {
        const char *entry = NULL;
        int rc = env_entry(a, &env->object.members[i], &entry, e);
        if (rc < 0) {
            return rc;
        }
        if (entry != NULL) {
            all[n++] = entry;
        }
    }
    all[n] = NULL;
    *ret = all;
    return 0;
}

/* A path that is relative to the working directory is resolved where that directory is: inside, by
 * whoever starts it. */
static const char *cwd_of(const struct helper_opts *o)
{
    bool apart = o->outside && o->host->outside_cwd != NULL;
    return o->cwd != NULL ? o->cwd : apart ? o->host->outside_cwd : o->host->cwd;
}

static int find_program(const struct helper_opts *o, const char *cwd, bool placed, const char *root,
                        char out[PATH_MAX], struct err *e)
{
    const char *name = o->argv[0];
    if (placed && root != NULL && strchr(name, '/') == NULL) {
        return which_find_in(root, name, which_path(o->host->envp), out, e);
    }
    if (placed && strchr(name, '/') != NULL) {
        size_t len = strlen(name);
        if (len >= PATH_MAX) {
            return ERR(e, ERR_NOTFOUND, "the path of the program is too long");
        }
        memcpy(out, name, len + 1);
        return 0;
    }
    int rc = which_find(name, which_path(o->host->envp), placed ? NULL : cwd, out, e);
    if (rc == 0 && placed && out[0] != '/') {
        return ERR(e, ERR_NOTFOUND, "program '%s' was found by a relative entry of PATH", name);
    }
    if (rc == -ERR_NOTFOUND && o->host->left_out != NULL && strchr(name, '/') == NULL) {
        return ERR(e, ERR_NOTFOUND,
                   "program '%s' not found in PATH without the entries that the agent can write "
                   "(%s): name it by its path",
                   name, o->host->left_out);
    }
    return rc;
}

static const char *const *with_home(struct arena *a, const char *const *envp, const char *home)
{
    size_t n = 0;
    size_t at = 0;
    while (envp[n] != NULL) {
        n++;
    }
    const char **all = arena_array(a, n + 2, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        if (!str_starts(str_of(envp[i]), STR("HOME="))) {
            all[at++] = envp[i];
        }
    }
    all[at++] = arena_printf(a, "HOME=%s", home);
    all[at] = NULL;
    return all;
}

/* As helper_spawn(); *ret_home is the home that was made for this program, NULL: none was. */
static int spawn(struct arena *a, const struct helper_opts *o, struct proc_opts *po,
                 struct proc **ret, const char **ret_home, struct err *e)
{
    char path[PATH_MAX];
    char home[PATH_MAX];
    struct proc_place place = { 0 };
    bool placed =
        !o->outside && o->host->place != NULL && o->host->place(o->host->arg, o->layer, &place);
    const char *cwd = cwd_of(o);
    const char *const *envp = NULL;
    bool own_home = !placed && o->host->new_home != NULL;
    int rc = env_merge(a, o->host->envp, placed ? o->host->inside_env : NULL, &envp, e);
    rc = rc < 0 || !own_home ? rc : o->host->new_home(o->host->arg, home, e);
    if (rc == 0 && own_home) {
        envp = with_home(a, envp, home);
        *ret_home = arena_dup(a, str_of(home));
        cwd = cwd == o->host->judge_cwd && cwd != NULL ? *ret_home : cwd;
    }
    rc = rc < 0 ? rc : env_merge(a, envp, o->env, &envp, e);
    rc = rc < 0 ? rc : find_program(o, cwd, placed, place.root, path, e);
    if (rc < 0) {
        return rc;
    }
    po->path = path;
    po->argv = o->argv;
    po->envp = envp;
    po->cwd = cwd;
    po->place = placed ? &place : NULL;
    po->orphans = o->host->orphans;
    return proc_start(o->host->loop, po, ret, e);
}

int helper_spawn(struct arena *a, const struct helper_opts *o, struct proc_opts *po,
                 struct proc **ret, struct err *e)
{
    const char *home = NULL;
    int rc = spawn(a, o, po, ret, &home, e);
    if (rc < 0 && home != NULL) {
        (void)!file_remove_tree(AT_FDCWD, home, NULL);
    }
    return rc;
}

static int launch(struct helper *x, const struct helper_opts *o, struct err *e)
{
    struct proc_opts po = {
        .stdin_mode = PROC_STDIN_BYTES,
        .stdin_bytes = o->input,
        .drain = DRAIN,
        .port = { .on_output = on_output, .on_exit = on_exit_, .on_done = on_done, .arg = x },
    };
    int rc = timer_new(x->loop, on_timeout, x, &x->timer, e);
    rc = rc < 0 ? rc : spawn(x->arena, o, &po, &x->proc, &x->home, e);
    if (rc == 0) {
        timer_arm(x->timer, x->started_at + x->timeout);
    }
    return rc;
}

int helper_start(const struct helper_opts *o, struct helper **ret, struct err *e)
{
    if (o->argv == NULL || o->argv[0] == NULL) {
        return ERR(e, ERR_CONFIG, "no program is named");
    }
    if (o->env != NULL && !json_is(o->env, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "variables are an object of names and values, not %s",
                   json_type_name(o->env->type));
    }
    struct helper *x = xcalloc(1, sizeof *x);
    x->loop = o->host->loop;
    x->arena = arena_new();
    x->max_output = o->max_output == 0 ? HELPER_OUTPUT : o->max_output;
    x->timeout = o->timeout <= 0 ? HELPER_TIME : o->timeout;
    x->started_at = clock_now();
    x->done = o->done;
    x->arg = o->arg;
    buf_init(&x->out, x->max_output);
    buf_init(&x->err, HELPER_STDERR_MAX);
    struct err why = { .code = ERR_OK };
    int rc = launch(x, o, &why);
    if (rc < 0) {
        helper_destroy(x);
        if (e != NULL) {
            *e = why;
        }
        return rc;
    }
    x->over = o->host->over;
    x->host_arg = o->host->arg;
    if (o->host->began != NULL) {
        o->host->began(x->host_arg);
    }
    *ret = x;
    return 0;
}

void helper_cancel(struct helper *x)
{
    cut(x, HELPER_CANCELLED);
}
