/* SPDX-License-Identifier: MIT
 *
 * Whole runs inside of the test program: a task as text, run_execute(), and what the record says.
 */
#pragma once

#include "../workspace/scene.h"
#include "base/json.h"
#include "run/run.h"

struct run_case {
    struct run_opts opts;
    struct run_summary sum;
    struct err e;
    const char *out; /* the run directory */
    int result;      /* of run_execute() */
    int phases, warnings;
    bool cancel;
};

static inline void on_case_phase(void *owner, const struct run_view *view)
{
    struct run_case *c = owner;
    assert_non_null(view->phase);
    c->phases++;
}

static inline void on_case_warning(void *owner, const char *text)
{
    struct run_case *c = owner;
    c->warnings++;
}

static inline bool on_case_cancel(void *owner)
{
    struct run_case *c = owner;
    return c->cancel;
}

static inline void put_script(struct scene *s, const char *name, const char *text)
{
    put(s, name, text);
    assert_int_equal(chmod(at(s, name), 0755), 0);
}

/* Runs a task: what the caller says, and where everything is. */
static inline void run_task(struct scene *s, struct run_case *c, const char *task)
{
    extern char **environ;
    const char *dirs[] = { at(s, "profiles"), NULL };
    const char *file = at(s, "task.yaml");
    static int number;
    c->out = arena_printf(s->arena, "%s/out-%d", s->path, ++number);
    make_dir(s, "ws");
    make_dir(s, "profiles");
    put(s, "task.yaml", task);
    struct json *request = json_object(s->arena);
    struct json *output = json_object(s->arena);
    struct json *workspace = json_object(s->arena);
    json_setc(s->arena, output, "dir", json_cstr(s->arena, c->out));
    json_setc(s->arena, request, "output", output);
    json_setc(s->arena, workspace, "path", json_cstr(s->arena, at(s, "ws")));
    json_setc(s->arena, request, "workspace", workspace);
    c->opts.settings.request = request;
    c->opts.settings.task_file = file;
    c->opts.settings.adapter_dirs = dirs;
    c->opts.settings.site_dir = at(s, "site");
    c->opts.runs_dir = at(s, "runs");
    c->opts.environ = (const char *const *)environ;
    c->opts.no_signals = true;
    c->opts.watcher = (struct run_watcher) {
        .phase = on_case_phase, .warning = on_case_warning, .cancel = on_case_cancel, .owner = c
    };
    c->result = run_execute(&c->opts, &c->sum, &c->e);
}

static inline struct json *read_record(struct scene *s, const struct run_case *c, const char *name)
{
    struct err e = { 0 };
    struct json *tree = NULL;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const char *path = arena_printf(s->arena, "%s/%s", c->out, name);
    if (file_read(AT_FDCWD, path, text.max, &text, &e) < 0 ||
        json_parse(s->arena, buf_str(&text), NULL, &tree, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return tree;
}

static inline const char *read_text(struct scene *s, const struct run_case *c, const char *name)
{
    struct err e = { 0 };
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const char *path = arena_printf(s->arena, "%s/%s", c->out, name);
    if (file_read(AT_FDCWD, path, text.max, &text, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return arena_dup(s->arena, buf_str(&text));
}

static inline void expect_reason(const struct run_case *c, enum reason reason)
{
    if (c->result < 0 || c->sum.reason != reason) {
        fail_msg("%s: %s%s", reason_word(c->sum.reason), c->sum.message,
                 c->result < 0 ? c->e.msg : "");
    }
}
