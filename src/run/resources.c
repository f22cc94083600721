/* SPDX-License-Identifier: MIT
 *
 * Opening and closing, one program at a time; see resources.h.
 */
#include "run/resources.h"

#include <fcntl.h>

#include "base/file.h"
#include "data/shape.h"
#include "proc/helper_program.h"
#include "run/helper_environment.h"
#include "run/run_priv.h"

#define OUTPUT_MAX ((size_t)256 << 10) /* of a program */

enum action { RESOURCE_OPEN, RESOURCE_ROLLBACK, RESOURCE_CLOSE };

struct resource {
    const struct json *definition;
    const struct json *state; /* what open() left for later calls; NULL: nothing */
    bool begun;               /* open() was started: there may be something to undo */
    bool opened;
};

struct run_resources {
    struct helper_host host;
    struct resource *items; /* those with a program */
    size_t len, at;         /* at: the one that is worked on */
    enum action action;
    struct helper *helper; /* NULL: none is running */
    struct json *env;
    bool closing;
    void (*then)(struct run *run); /* NULL: not waited for */
};

const struct json *resources_env(const struct run *run)
{
    return run->resources == NULL ? NULL : run->resources->env;
}

static const char *action_word(enum action action)
{
    static const char *const words[] = { "open", "rollback", "close" };
    return words[action];
}

static const char *name_of(const struct resource *r)
{
    return json_cstring(json_get(r->definition, "name"), "");
}

/* --- one call --- */

static struct json *request_of(struct run *run, const struct resource *r, enum action action)
{
    struct arena *a = run->arena;
    struct json *v = json_object(a);
    enum reason reason = run->cause.reason == REASON_NONE ? REASON_SUCCESS : run->cause.reason;
    json_setc(a, v, "action", json_cstr(a, action_word(action)));
    json_setc(a, v, "resource", json_cstr(a, name_of(r)));
    json_setc(a, v, "run_id", json_cstr(a, run->record.state.run_id));
    json_setc(a, v, "workspace", json_cstr(a, run->plan->settings.workspace));
    if (action != RESOURCE_OPEN) {
        json_setc(a, v, "opened", json_boolean(a, r->opened));
        json_setc(a, v, "reason", json_cstr(a, reason_word(reason)));
        json_setc(a, v, "state", r->state == NULL ? json_null(a) : json_copy(a, r->state));
    }
    return v;
}

static void emit(struct run *run, const struct resource *r, const char *why, nsec took)
{
    struct arena *a = run->arena;
    struct json *context = json_object(a);
    const char *action = action_word(run->resources->action);
    json_setc(a, context, "name", json_cstr(a, name_of(r)));
    json_setc(a, context, "ok", json_boolean(a, why == NULL));
    json_setc(a, context, "error", why == NULL ? json_null(a) : json_cstr(a, why));
    json_setc(a, context, "duration_ms", json_integer(a, took / NSEC_PER_MS));
    events_emit(&run->record.events,
                &(struct event) { .level = why == NULL ? EVENT_INFO : EVENT_WARNING,
                                  .logger = "cinch.run",
                                  .event = arena_printf(a, "resource.%s", action),
                                  .context = context });
}

static void go_on(struct run *run);
static void on_done(void *arg, const struct helper_result *result);

static int call(struct run *run, struct err *e)
{
    struct run_resources *x = run->resources;
    const struct resource *r = &x->items[x->at];
    const struct json *command = json_get(r->definition, "command");
    CLEANUP(buf) struct buf input = BUF_INIT(BUF_TEXT);
    const char **argv = arena_array(run->arena, json_len(command) + 1, sizeof *argv);
    for (size_t i = 0; i < json_len(command); i++) {
        argv[i] = json_cstring(json_item(command, i), "");
    }
    int rc = json_write(request_of(run, r, x->action), JSON_COMPACT, &input, e);
    struct helper_opts opts = {
        .host = &x->host,
        .argv = argv,
        .env = json_get(r->definition, "env"),
        .outside = true,
        .input = buf_str(&input),
        .max_output = OUTPUT_MAX,
        .timeout = shape_duration(json_get(r->definition, "timeout"), 0),
        .done = on_done,
        .arg = run,
    };
    return rc < 0 ? rc : helper_start(&opts, &x->helper, e);
}

/* What open() prints is nothing, or an object with `env` and `state`. */
static int take_answer(struct run *run, struct resource *r, struct str out, struct err *e)
{
    struct run_resources *x = run->resources;
    struct json *v = NULL;
    if (str_trim(out).len == 0) {
        return 0;
    }
    if (json_parse(run->arena, str_trim(out), NULL, &v, e) < 0 || !json_is(v, JSON_OBJECT)) {
        return ERR(e, ERR_PROTO, "its output is not a JSON object");
    }
    const struct json *env = json_get(v, "env");
    for (size_t i = 0; json_is(env, JSON_OBJECT) && i < json_len(env); i++) {
        const struct json_member *m = &env->object.members[i];
        if (!json_is(m->value, JSON_STRING)) {
            return ERR(e, ERR_PROTO, "env.%.*s in its output is not a string", STR_ARG(m->key));
        }
        json_set(run->arena, x->env, m->key, json_copy(run->arena, m->value));
    }
    if (env != NULL && !json_is(env, JSON_OBJECT)) {
        return ERR(e, ERR_PROTO, "'env' in its output is not an object");
    }
    r->state = json_get(v, "state");
    return 0;
}

static void fail(struct run *run, const struct resource *r, const char *why)
{
    if (run->resources->action != RESOURCE_OPEN) {
        run_warn(run, "resource '%s': %s failed: %s", name_of(r),
                 action_word(run->resources->action), why);
    } else if (run_fail(run, REASON_UNAVAILABLE, "resource '%s' could not be opened: %s",
                        name_of(r), why)) {
        run->cause.phase = "tool";
    }
}

static const char *reason_of(struct run *run, const struct helper_result *result)
{
    struct str err = str_trim(result->err);
    size_t keep = err.len < 500 ? err.len : 500;
    if (result->why == NULL) {
        return NULL;
    }
    err = str_slice(err, err.len - keep, err.len);
    return err.len == 0 || !str_is_utf8(err)
               ? arena_dup(run->arena, str_of(result->why))
               : arena_printf(run->arena, "%s: %.*s", result->why, STR_ARG(err));
}

static void on_done(void *arg, const struct helper_result *result)
{
    struct run *run = arg;
    struct run_resources *x = run->resources;
    struct resource *r = &x->items[x->at];
    struct err e;
    bool opening = x->action == RESOURCE_OPEN;
    const char *why = reason_of(run, result);
    x->helper = NULL;
    if (why == NULL && opening && take_answer(run, r, result->out, &e) < 0) {
        why = arena_dup(run->arena, str_of(e.msg));
    }
    emit(run, r, why, result->took);
    if (why != NULL && result->end != HELPER_CANCELLED) {
        fail(run, r, why);
    }
    r->opened = r->opened || (opening && why == NULL);
    go_on(run);
}

/* --- order --- */

/* The next call, or false. Opening goes up, closing down; a resource of a failed run is rolled back
 * before it is closed. */
static bool next_call(struct run *run)
{
    struct run_resources *x = run->resources;
    bool failed = run->cause.reason != REASON_NONE;
    if (!x->closing) {
        x->at += x->items[x->at].begun;
        x->items[x->at].begun = x->at < x->len && !failed;
        return x->at < x->len && !failed;
    }
    if (x->action == RESOURCE_ROLLBACK) {
        x->action = RESOURCE_CLOSE;
        return true;
    }
    while (x->at > 0) {
        x->at--;
        if (x->items[x->at].begun) {
            x->action = failed ? RESOURCE_ROLLBACK : RESOURCE_CLOSE;
            return true;
        }
    }
    return false;
}

static void finish(struct run *run)
{
    struct run_resources *x = run->resources;
    void (*then)(struct run * run) = x->then;
    x->then = NULL;
    if (x->closing) {
        (void)!file_remove_tree(run->record.dir.dir_fd, HELPER_HOME, NULL);
        x->len = 0;
    }
    if (then != NULL) {
        then(run);
    }
}

static void go_on(struct run *run)
{
    struct err e;
    while (next_call(run)) {
        if (call(run, &e) == 0) {
            return;
        }
        emit(run, &run->resources->items[run->resources->at], e.msg, 0);
        fail(run, &run->resources->items[run->resources->at], e.msg);
    }
    finish(run);
}

/* --- life --- */

static bool no_place(void *arg, const char *layer, struct proc_place *ret)
{
    (void)arg;
    (void)layer;
    (void)ret;
    return false;
}

static int make_host(struct run *run, struct err *e)
{
    struct helper_environment env;
    int r = helper_environment_make(run, &env, e);
    if (r < 0) {
        return r;
    }
    run->resources->host = (struct helper_host) {
        .loop = run->loop,
        .orphans = run->opts->orphans,
        .place = no_place,
        .arg = run,
        .envp = env.envp,
        .cwd = run->paths.dir,
        .left_out = env.left_out,
        .new_home = env.own_home ? helper_home_new : NULL,
    };
    return 0;
}

void resources_open(struct run *run, void (*then)(struct run *run))
{
    const struct json *list = run->plan->settings.resources;
    struct err e;
    if (json_len(list) == 0) {
        then(run);
        return;
    }
    struct run_resources *x = run->resources = ARENA_NEW(run->arena, struct run_resources);
    *x = (struct run_resources) {
        .items = arena_array(run->arena, json_len(list) + 1, sizeof *x->items),
        .env = json_object(run->arena),
        .then = then,
    };
    for (size_t i = 0; i < json_len(list); i++) {
        if (json_get(json_item(list, i), "command") != NULL) {
            x->items[x->len++].definition = json_item(list, i);
        }
    }
    if (make_host(run, &e) < 0) {
        run_fail_err(run, &e);
    }
    go_on(run);
}

void resources_stop(struct run *run)
{
    struct run_resources *x = run->resources;
    if (x != NULL && x->helper != NULL && !x->closing) {
        helper_cancel(x->helper);
    }
}

void resources_hurry(struct run *run)
{
    struct run_resources *x = run->resources;
    if (x != NULL && x->helper != NULL) {
        helper_cancel(x->helper);
    }
}

bool resources_close(struct run *run, void (*then)(struct run *run))
{
    struct run_resources *x = run->resources;
    if (x == NULL || x->len == 0) {
        return false;
    }
    if (x->helper != NULL) { /* open() was cancelled, and has not ended yet */
        x->then = then;
        return true;
    }
    x->closing = true;
    x->action = RESOURCE_CLOSE;
    x->at = x->len;
    go_on(run);
    x->then = x->len > 0 ? then : NULL;
    return x->len > 0;
}
