/* SPDX-License-Identifier: MIT
 *
 * The record first, then transactions, a turn that was being taken back, and the home: if this is
 * interrupted, doing it again finishes it.
 */
#include "run/recover_run.h"

#include <fcntl.h>
#include <limits.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "gateway/ledger.h"
#include "gateway/meter.h"
#include "io/loop.h"
#include "record/recover.h"
#include "record/rundir.h"
#include "run/helper_environment.h"
#include "run/holon.h"
#include "run/image.h"
#include "run/project_config.h"
#include "run/run_session.h"
#include "run/shared_home.h"
#include "run/short_path.h"
#include "sandbox/cgroup.h"
#include "sandbox/sandbox.h"
#include "workspace/txn.h"
#include "workspace/workspace.h"

/* --- transactions --- */

struct replay {
    const struct json *hidden; /* PROJECT_HIDDEN_NOTE; NULL: there is none */
    struct loop *loop;
    struct sandbox *box;
    struct workspace *workspace;
    struct err *e;
    int result; /* 1: a turn was taken back */
};

static int replay_on(struct workspace *w, int root, const struct json *hidden, struct err *e)
{
    struct savepoint_opts points;
    struct txns_opts o = {
        .workspace_fd = root,
        .dir = workspace_txn_dir(w),
        .layers_fd = -1,
        .overlay = true,
        .marks = sandbox_userxattr() ? NODE_MARKS_USER : NODE_MARKS_TRUSTED,
    };
    int r = txns_recover(&o, e);
    workspace_savepoints(w, &points);
    points.workspace_fd = root;
    r = r < 0 ? r : savepoints_recover(&points, e);
    if (r >= 0) {
        project_recover(root, hidden);
    }
    return r;
}

static void on_ready(void *arg, const struct sandbox_report *report, int listener)
{
    struct replay *p = arg;
    (void)report;
    (void)listener;
    p->result = replay_on(p->workspace, sandbox_workspace(p->box), p->hidden, p->e);
    sandbox_close(p->box);
}

static void on_failed(void *arg, const struct sandbox_report *report, const struct err *why)
{
    struct replay *p = arg;
    (void)report;
    *p->e = *why;
    p->result = -(int)why->code;
    sandbox_close(p->box);
}

static void on_lost(void *arg, const struct err *why)
{
    on_failed(arg, NULL, why);
}

static void on_closed(void *arg)
{
    struct replay *p = arg;
    loop_stop(p->loop);
}

/* What the kernel keeps beside the upper layer says that it was not synced to disk, and is in the
 * way of the next mount. The machine has not crashed, as far as we know, only cinch has. */
static int clear_work(const struct workspace *w, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    return file_remove_tree(AT_FDCWD, arena_printf(a, "%s/work/work", workspace_view(w)->layer), e);
}

static int replay_in_view(struct workspace *w, const struct json *hidden, struct err *e)
{
    CLEANUP(loop) struct loop *loop = NULL;
    struct replay p = { .workspace = w, .hidden = hidden, .e = e };
    struct sandbox_policy policy;
    sandbox_policy_init(&policy);
    struct sandbox_opts o = {
        .policy = &policy,
        .view = workspace_view(w),
        .port = { .on_ready = on_ready,
                  .on_failed = on_failed,
                  .on_lost = on_lost,
                  .on_closed = on_closed,
                  .arg = &p },
    };
    int r = clear_work(w, e);
    r = r < 0 ? r : loop_new(&loop, e);
    p.loop = loop;
    r = r < 0 ? r : sandbox_open(loop, &o, &p.box, e);
    if (r < 0) {
        return r;
    }
    loop_run(loop);
    p.box = sandbox_free(p.box);
    return p.result;
}

/* The record of the turn says that it is being taken back; now it is. */
static void tell_restored(const char *dir, int64_t turn)
{
    enum { TURN_MAX = 64 << 20 };
    CLEANUP(rundir) struct rundir d = RUNDIR_INIT;
    CLEANUP(arena) struct arena *a = arena_new();
    const char *name = arena_printf(a, "savepoints/turn-%lld.json", (long long)turn);
    if (rundir_open(&d, dir, NULL) < 0) {
        return;
    }
    struct json *told = rundir_read_object(&d, name, TURN_MAX, a);
    if (told != NULL) {
        json_setc(a, told, "restored", json_boolean(a, true));
        (void)!rundir_write_json(&d, name, told, NULL);
    }
}

/* Which turn was being taken back; 0: none. */
static int64_t turn_of(struct workspace *w)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct savepoint_opts o;
    struct json *note = NULL;
    workspace_savepoints(w, &o);
    const char *path = arena_printf(a, "%s/%s", o.dir, SAVEPOINT_NOTE);
    return file_read(AT_FDCWD, path, BUF_TEXT, &text, NULL) < 0 ||
                   json_parse(a, buf_str(&text), NULL, &note, NULL) < 0
               ? 0
               : json_int(json_get(note, "turn"), 0);
}

static bool has_savepoints(struct workspace *w)
{
    struct savepoint_opts o;
    workspace_savepoints(w, &o);
    return file_is_dir(AT_FDCWD, o.dir);
}

/* NULL: the run had hidden nothing, or moved all of it back. */
static struct json *read_hidden(const char *dir, struct arena *a)
{
    enum { NOTE_MAX = 4 << 20 };
    CLEANUP(rundir) struct rundir d = RUNDIR_INIT;
    return rundir_open(&d, dir, NULL) < 0
               ? NULL
               : rundir_read_object(&d, PROJECT_HIDDEN_NOTE, NOTE_MAX, a);
}

static void forget_hidden(const char *dir)
{
    CLEANUP(arena) struct arena *a = arena_new();
    (void)unlink(arena_printf(a, "%s/" PROJECT_HIDDEN_NOTE, dir));
}

/* Finishes what was decided, undoes the rest. */
static int replay(const char *dir, struct err *e)
{
    char place[PATH_MAX];
    struct workspace *w;
    int r = path_join(dir, "work", place, sizeof place, e);
    if (r < 0 || !file_is_dir(AT_FDCWD, place)) {
        return r;
    }
    r = workspace_reopen(place, &w, e);
    if (r < 0) {
        return 0; /* it died before there was a workspace */
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *hidden = read_hidden(dir, a);
    int64_t turn = turn_of(w);
    if (file_is_dir(AT_FDCWD, workspace_txn_dir(w)) || has_savepoints(w) || hidden != NULL) {
        r = workspace_fd(w) >= 0 ? replay_on(w, workspace_fd(w), hidden, e)
                                 : replay_in_view(w, hidden, e);
    }
    if (r >= 0 && hidden != NULL) {
        forget_hidden(dir);
    }
    (void)workspace_close(w, true);
    if (r > 0) {
        tell_restored(dir, turn);
    }
    return r < 0 ? err_wrap(e, "unfinished transactions in '%s'", dir) : 0;
}

/* --- the run --- */

/* The run did not live to do it (phase collect). */
static int drop_setid(const char *dir, struct err *e)
{
    static const char *const kept[] = { "artifacts", "work" };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(kept); i++) {
        char path[PATH_MAX];
        r = path_join(dir, kept[i], path, sizeof path, e);
        r = r < 0 ? r : file_drop_setid(AT_FDCWD, path, e);
    }
    return r;
}

static int64_t count_at(const struct json *context, const char *key)
{
    int64_t n = json_int(json_get(context, key), -1);
    return n < 0 ? -1 : n;
}

/* Adds a model.call event to the meter of the run. */
static void add_call(void *arg, const struct json *context)
{
    struct str upstream = json_str(json_get(context, "upstream"), STR_EMPTY);
    double usd = json_real(json_get(context, "cost_usd"), -1);
    int64_t attempts = count_at(context, "attempts");
    const struct meter_call call = {
        .model = json_str(json_get(context, "model"), STR_EMPTY),
        .upstream = upstream,
        .usage = { count_at(context, "input_tokens"), count_at(context, "output_tokens"),
                   count_at(context, "cache_read_tokens"), count_at(context, "cache_write_tokens"),
                   count_at(context, "reasoning_tokens"), -1 },
        .failed = json_int(json_get(context, "status"), 500) >= 400 ||
                  !json_bool(json_get(context, "complete"), false),
        .side = json_is(json_get(context, "side"), JSON_STRING),
        .local = str_eqc(upstream, "script") || str_eqc(upstream, "cassette"),
        .estimated = json_bool(json_get(context, "estimated"), false),
        .attempts = attempts < 0 || attempts > INT32_MAX ? 0 : (int)attempts,
    };
    meter_add_priced(arg, &call, usd < 0 ? -1 : price_pico(usd));
}

/* What the run itself would have written at its end. What the harness may have reported died with
 * it. */
static void write_ledger(const struct rundir *d, const struct meter *m)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct ledger_reported none = { .known = false };
    if (meter_sum(m)->calls > 0 && !file_exists(d->dir_fd, "evidence/ledger.json")) {
        /* the sums are in metrics.json, too */
        (void)!rundir_write_json(d, "evidence/ledger.json", ledger_json(a, m, &none), NULL);
    }
}

static void complete(void *arg, const struct rundir *d)
{
    run_session_recover(d);
    write_ledger(d, arg);
}

int run_recover(const char *dir, enum reason *ret_reason, struct err *e)
{
    char absolute[PATH_MAX]; /* mounts are made by paths that must not depend on where we are */
    struct recover_report report = { .result = RECOVER_NO_RECORD };
    struct meter *meter = meter_new(NULL);
    struct recover_port port = { add_call, complete, meter };
    int r = path_absolute(dir, absolute, sizeof absolute, e);
    r = r < 0 ? r : recover_run_with(absolute, &port, &report, e);
    meter = meter_free(meter);
    if (ret_reason != NULL) {
        *ret_reason = r == 0 && report.result == RECOVER_CLOSED ? report.reason : REASON_NONE;
    }
    if (r < 0) {
        return r;
    }
    switch (report.result) {
    case RECOVER_NO_RECORD:
        return ERR(e, ERR_INPUT, "'%s' holds no run", dir);
    case RECOVER_ALIVE:
        if (report.pid == 0) { /* it has only just begun */
            return ERR(e, ERR_EXISTS, "the run in '%s' is still going on", dir);
        }
        return ERR(e, ERR_EXISTS, "the run in '%s' is still going on (pid %d)", dir,
                   (int)report.pid);
    case RECOVER_FINISHED:
        return replay(absolute, e); /* if that was interrupted */
    case RECOVER_CLOSED:
        break;
    }
    cgroup_sweep();
    short_path_recover(absolute);
    /* The workspace stays for a look, whatever was asked for: it is all there is of the agent's
     * work. What was only needed while it was looked at goes. */
    static const char *const leftovers[] = { "home",         HELPER_HOME,   SHARED_HOME_LAYER,
                                             "work/scratch", "work/copies", HOLON_INPUT,
                                             IMAGE_DOOR };
    r = replay(absolute, e);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(leftovers); i++) {
        char path[PATH_MAX];
        r = path_join(absolute, leftovers[i], path, sizeof path, e);
        r = r < 0 ? r : file_remove_tree(AT_FDCWD, path, e);
    }
    return r < 0 ? r : drop_setid(absolute, e);
}
