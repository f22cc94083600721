/* SPDX-License-Identifier: MIT
 *
 * A run from a program, and what came of it.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "api/task_priv.h"
#include "base/file.h"
#include "proc/which.h"

extern char **environ;

enum { RESULT_MAX = 64 << 20 };

struct cinch_result {
    struct run_summary summary;
    struct buf json;
};

/* The caller's ears. */
struct audience {
    struct cinch_options options;
    struct buf line;
    bool cancelled;
};

static void on_event(void *owner, struct str line)
{
    struct audience *w = owner;
    if (w->options.event == NULL) {
        return;
    }
    buf_reset(&w->line);
    if (buf_append(&w->line, line, NULL) == 0 && buf_append_c(&w->line, '\0', NULL) == 0) {
        w->options.event(w->options.arg, w->line.ptr);
    }
}

static bool is_cancelled(void *owner)
{
    struct audience *w = owner;
    return w->options.beat != NULL && w->options.beat(w->options.arg) != 0;
}

static const char *runs_dir(struct arena *a, const struct cinch_options *o)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (o->runs_dir != NULL) {
        return o->runs_dir;
    }
    if (state != NULL && state[0] == '/') {
        return arena_printf(a, "%s/cinch/runs", state);
    }
    return home == NULL ? "/tmp/cinch/runs" : arena_printf(a, "%s/.local/state/cinch/runs", home);
}

static int execute(struct cinch_task *t, struct audience *w, struct arena *a,
                   struct cinch_result *r)
{
    const struct cinch_options *o = &w->options;
    const char *search = which_path(o->environment);
    struct err e;
    struct run_opts opts = {
        .settings = { .task_file = t->file,
                      .request = json_copy(a, t->request),
                      .adapter_dirs = o->adapter_dirs,
                      .path = o->environment != NULL && search == NULL ? "" : search },
        .runs_dir = runs_dir(a, o),
        .force = o->force != 0,
        .no_signals = o->signals == 0,
        .environ = o->environment != NULL ? o->environment : (const char *const *)environ,
        .watcher = { .event = on_event, .cancel = is_cancelled, .owner = w },
    };
    task_hooks(t, a, &opts.hooks);
    if (run_execute(&opts, &r->summary, &e) < 0) {
        return task_fail_err(t, &e);
    }
    const char *path = arena_printf(a, "%s/result.json", r->summary.output_dir);
    if (file_read(AT_FDCWD, path, RESULT_MAX, &r->json, &e) < 0 ||
        buf_append_c(&r->json, '\0', &e) < 0) {
        return task_fail_err(t, &e);
    }
    return 0;
}

int cinch_run(struct cinch_task *t, const struct cinch_options *options,
              struct cinch_result **result)
{
    struct audience w = { 0 };
    if (result == NULL) {
        return task_fail(t, CINCH_EUSAGE, "there is no place for the result");
    }
    *result = NULL;
    if (t == NULL || t->running) {
        return task_fail(t, CINCH_EUSAGE, "the task is running already");
    }
    t->error.msg[0] = '\0';
    if (options != NULL && !task_take(&w.options, sizeof w.options, options, sizeof(size_t))) {
        return task_fail(t, CINCH_EUSAGE, "options: `size` is not one that this library knows");
    }
    struct cinch_result *r = xcalloc(1, sizeof *r);
    struct arena *a = arena_new();
    buf_init(&r->json, RESULT_MAX);
    buf_init(&w.line, BUF_TEXT);
    t->running = true;
    int rc = execute(t, &w, a, r);
    t->running = false;
    buf_done(&w.line);
    arena_free(a);
    if (t->freed) {
        cinch_task_free(t);
    }
    if (rc < 0) {
        cinch_result_free(r);
        return rc;
    }
    *result = r;
    return 0;
}

void cinch_result_free(struct cinch_result *r)
{
    if (r != NULL) {
        buf_done(&r->json);
        free(r);
    }
}

const char *cinch_result_json(const struct cinch_result *r)
{
    return r == NULL ? NULL : r->json.ptr;
}

const char *cinch_result_dir(const struct cinch_result *r)
{
    return r == NULL ? NULL : r->summary.output_dir;
}

const char *cinch_result_reason(const struct cinch_result *r)
{
    return r == NULL ? NULL : reason_word(r->summary.reason);
}

int cinch_result_exit_status(const struct cinch_result *r)
{
    return r == NULL ? -1 : r->summary.exit_status;
}
