/* SPDX-License-Identifier: MIT
 *
 * Turns as savepoints (workspace.savepoint: turn): before the agent is told anything, the workspace
 * and the session are kept as they are; a turn that fails is taken back when the last process of
 * the agent is gone. What a turn made is in savepoints/turn-N.patch in either case.
 *
 * A turn fails when the harness says so (error, refusal), when its program does not end well, and
 * when it was cut off: deadline, budget, a signal. One that ends by itself stands, also when the
 * task's checks want more: the next turn goes on from what it made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "record/state_store.h"
#include "run/run_priv.h"
#include "run/run_session.h"
#include "workspace/workspace.h"

#define RECORD_DIR "savepoints"

struct run_turns {
    struct savepoints *savepoints;
    struct store_moment moment; /* of the session, at the begin of the turn */
    int64_t journal;            /* bytes of its journal by then */
    int64_t number;             /* of the turn, from 1 */
    bool running;               /* what it made is not in the record yet */
    bool well;                  /* it came to its end by itself */
};

bool run_savepoints_wanted(const struct run *run)
{
    return run->plan->settings.view.savepoints;
}

/* --- the record of a turn --- */

/* With a sandbox the agent does not see the record, without one it may have put anything there. */
static int make_dir(struct run *run, struct err *e)
{
    struct stat st;
    int at = run->record.dir.dir_fd;
    if (fstatat(at, RECORD_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
        rundir_move_aside(&run->record.dir, RECORD_DIR);
    }
    return mkdirat(at, RECORD_DIR, 0700) < 0 && errno != EEXIST
               ? ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", RECORD_DIR)
               : 0;
}

static const char *name_of(struct run *run, const char *suffix)
{
    return arena_printf(run->arena, RECORD_DIR "/turn-%lld%s", (long long)run->turns->number,
                        suffix);
}

static int describe(struct run *run, const struct diff_result *d, const char *why, bool restored,
                    struct err *e)
{
    struct arena *a = run->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "turn", json_integer(a, run->turns->number));
    json_setc(a, o, "outcome", json_cstr(a, why == NULL ? "completed" : "failed"));
    json_setc(a, o, "why", json_cstr(a, why));
    json_setc(a, o, "restored", json_boolean(a, restored));
    json_setc(a, o, "patch", json_cstr(a, name_of(run, ".patch")));
    json_setc(a, o, "no_changes", json_boolean(a, d->no_changes));
    json_setc(a, o, "files", d->files);
    json_setc(a, o, "left_out", d->left_out);
    json_setc(a, o, "nested", d->nested);
    json_setc(a, o, "ignored", json_integer(a, d->ignored));
    return record_write_json(&run->record, name_of(run, ".json"), o, e);
}

/* --- the begin --- */

static int open_savepoints(struct run *run, struct err *e)
{
    struct savepoint_opts o;
    struct sandbox *box = sandbox_session_sandbox(run);
    run->turns = ARENA_NEW(run->arena, struct run_turns);
    workspace_savepoints(run->workspace, &o);
    o.workspace_fd = box != NULL ? sandbox_workspace(box) : o.workspace_fd;
    return savepoints_open(&o, &run->turns->savepoints, e);
}

static int record_turn(struct run *run, const char *why, struct diff_result *ret, struct err *e)
{
    int r = make_dir(run, e);
    r = r < 0 ? r : run_make_patch(run, name_of(run, ".patch"), name_of(run, ".nested"), ret, e);
    r = r < 0 ? r : describe(run, ret, why, false, e);
    run->turns->running = false;
    return r < 0 ? err_wrap(e, "turn %lld", (long long)run->turns->number) : 0;
}

int turn_begin(struct run *run, struct err *e)
{
    struct savepoint_report report;
    struct diff_result ignored;
    if (!run_savepoints_wanted(run)) {
        return 0;
    }
    int r = run->turns == NULL ? open_savepoints(run, e) : 0;
    struct run_turns *t = run->turns;
    r = r < 0 || !t->running ? r : record_turn(run, NULL, &ignored, e);
    r = r < 0 ? r : savepoint_take(t->savepoints, &report, e);
    if (r < 0) {
        return r;
    }
    t->number++;
    t->running = true;
    t->well = false;
    t->moment = store_snapshot(run->state);
    t->journal = run_session_journal(run);
    events_savepoint_taken(&run->record.events, t->number, (int64_t)report.entries, report.bytes,
                           report.took);
    return 0;
}

void turn_well(struct run *run)
{
    if (run->turns != NULL) {
        run->turns->well = true;
    }
}

/* --- the end --- */

static const char *why_failed(struct run *run)
{
    struct agent_report report = { 0 };
    const struct engine_exit *exit = &run->exec.exit;
    if (run->cause.reason != REASON_NONE) {
        return arena_printf(run->arena, "%s: %s", reason_word(run->cause.reason),
                            run->cause.message);
    }
    if (run->session != NULL) {
        run->plan->driver->end(run->session, &report);
    }
    if (report.failed && report.error.len > 0) {
        return arena_dup(run->arena, report.error);
    }
    return exit->end == ENGINE_SIGNALLED
               ? arena_printf(run->arena, "the program was ended by signal %d", exit->value)
               : arena_printf(run->arena, "the program ended with exit code %d", exit->value);
}

/* From the note on, whoever recovers finishes it. */
static int take_back(struct run *run, struct savepoint_report *ret, struct err *e)
{
    struct run_turns *t = run->turns;
    char note[96];
    (void)snprintf(note, sizeof note, "{\"turn\":%lld,\"journal\":%lld}\n", (long long)t->number,
                   (long long)t->journal);
    int r = savepoint_decide(t->savepoints, str_of(note), e);
    run_stop_for_test("restore");
    r = r < 0 ? r : store_restore(run->state, t->moment, true, e);
    return r < 0 ? r : savepoint_restore(t->savepoints, ret, e);
}

static void fail_turn(struct run *run)
{
    struct run_turns *t = run->turns;
    struct savepoint_report report = { 0 };
    struct diff_result d;
    struct err e;
    const char *why = why_failed(run);
    int r = record_turn(run, why, &d, &e);
    r = r < 0 ? r : take_back(run, &report, &e);
    if (r < 0) { /* better two turns in one patch than one that is nowhere */
        run_warn(run, "turn %lld failed, and its changes were not rolled back: %s",
                 (long long)t->number, e.msg);
        return;
    }
    events_savepoint_restored(&run->record.events,
                              &(struct event_savepoint) { .turn = t->number,
                                                          .why = why,
                                                          .patch = name_of(run, ".patch"),
                                                          .entries = (int64_t)report.entries,
                                                          .removed = (int64_t)report.removed,
                                                          .took = report.took });
    if (describe(run, &d, why, true, &e) < 0) {
        run_warn(run, "%s", e.msg);
    }
}

void run_savepoints_close(struct run *run)
{
    struct run_turns *t = run->turns;
    struct diff_result d;
    struct err e;
    if (t != NULL && t->running && run->exec.launched) {
        if (!t->well) {
            fail_turn(run);
        } else if (record_turn(run, NULL, &d, &e) < 0) {
            run_warn(run, "%s", e.msg);
        }
    }
    if (t != NULL) {
        t->savepoints = savepoints_close(t->savepoints);
        run->turns = NULL;
    }
}
