/* SPDX-License-Identifier: MIT
 *
 * What is watched while phase execute goes on, beside the deadlines of its machine: first output
 * and idle time of the agent, and a heartbeat that keeps state.json fresh, informs the watcher and
 * looks at memory, disk and cancellation. Whatever is exceeded only notes the cause and stops the
 * machine.
 */
#include "io/timer.h"
#include "proc/proc.h"
#include "run/execute_priv.h"

#define HEARTBEAT     (100 * NSEC_PER_MS)
#define BEAT_OF_STATE (5 * NSEC_PER_SEC)
#define LOOK          NSEC_PER_SEC
/* Waiting programs wake up now and then; half a percent of a period tells work from that. */
#define WORK_SHARE 200

void execute_note_timeout(struct run *run, enum timeout_kind kind, nsec limit)
{
    if (run->cause.reason == REASON_NONE) {
        run->cause.timeout = kind;
        run->cause.limit = limit;
    }
    run_fail(run, REASON_TIMEOUT, "%s deadline of %.10g s passed", timeout_kind_word(kind),
             (double)limit / 1e9);
    events_deadline(&run->record.events, timeout_kind_word(kind), limit);
}

static void deadline_passed(struct run *run, enum timeout_kind kind, nsec limit)
{
    execute_note_timeout(run, kind, limit);
    execute_stop(&run->execute->machine, "deadline");
}

static void on_first_output(void *arg)
{
    struct run *run = arg;
    if (run->exec.first_output_at == 0) {
        deadline_passed(run, TIMEOUT_FIRST_OUTPUT, run->plan->settings.first_output);
    }
}

/* Nothing was printed for the whole period. A build or a test run may be silent and busy, so the
 * tree's CPU time is asked for before the verdict. */
static void on_idle(void *arg)
{
    struct run *run = arg;
    nsec due = run->execute->last_life + run->plan->settings.idle;
    if (clock_now() < due) {
        timer_arm(run->execute->idle, due);
        return;
    }
    if (run->execute->proc == NULL) {
        deadline_passed(run, TIMEOUT_IDLE, run->plan->settings.idle);
        return;
    }
    run->execute->asked_cpu = true;
    proc_refresh_cpu(run->execute->proc);
}

/* Without a control group; see memory.h. What is beyond the bound gets no grace. */
static void check_memory(struct run *run)
{
    char text[RUN_MESSAGE_MAX];
    if (run->execute->proc != NULL && run->cause.reason == REASON_NONE &&
        memory_exceeded(run, proc_memory(run->execute->proc), text, sizeof text)) {
        run_fail(run, REASON_FAILURE, "%s", text);
        execute_stop(&run->execute->machine, "memory");
        execute_kill(&run->execute->machine);
    }
}

void execute_watch_cpu(void *arg, nsec cpu)
{
    struct run *run = arg;
    struct execution *x = &run->exec;
    check_memory(run);
    if (run->execute->asked_life) {
        if (cpu - run->execute->seen_cpu > LOOK / WORK_SHARE) {
            run_beat(run); /* no reason to wait longer for output: that has its own period */
        }
        run->execute->seen_cpu = cpu;
        run->execute->asked_life = false;
    }
    if (!run->execute->asked_cpu || x->ended != 0 || run->cause.reason != REASON_NONE) {
        return;
    }
    bool worked = cpu - run->execute->last_cpu > run->plan->settings.idle / WORK_SHARE;
    run->execute->last_cpu = cpu;
    run->execute->asked_cpu = false;
    if (worked) {
        run->execute->last_life = clock_now();
    }
    if (clock_now() < run->execute->last_life + run->plan->settings.idle) {
        timer_arm(run->execute->idle, run->execute->last_life + run->plan->settings.idle);
    } else {
        deadline_passed(run, TIMEOUT_IDLE, run->plan->settings.idle);
    }
}

/* A tool or a check of ours may be silent for as long as it may take at all; what the agent itself
 * does in silence shows in the processor time of its tree. */
static void look_for_life(struct run *run)
{
    if (tools_busy(run)) {
        run_alive(run);
    } else if (run->execute->proc != NULL) {
        run->execute->asked_life = true;
        proc_refresh_cpu(run->execute->proc);
    }
}

static void check_disk(struct run *run)
{
    char text[RUN_MESSAGE_MAX];
    if (run->cause.reason == REASON_NONE && disk_exceeded(run, text, sizeof text)) {
        run_fail(run, REASON_DISK, "%s", text);
        execute_stop(&run->execute->machine, "disk");
    }
}

static void on_heartbeat(void *arg)
{
    struct run *run = arg;
    nsec now = clock_now();
    timer_arm(run->execute->heartbeat, now + HEARTBEAT); /* what follows may end the watch */
    if (now - run->execute->last_look >= LOOK) {
        run->execute->last_look = now;
        look_for_life(run);
        check_disk(run);
    } else if (run->memory.polled && run->execute->proc != NULL) {
        proc_refresh_cpu(run->execute->proc);
    }
    if (now - run->execute->last_beat >= BEAT_OF_STATE) {
        record_beat(&run->record);
        run->execute->last_beat = now;
    }
    run_show(run);
    const struct run_watcher *w = &run->opts->watcher;
    if (w->cancel != NULL && run->cause.reason == REASON_NONE && w->cancel(w->owner)) {
        run_cancel(run);
    }
}

int execute_watch_open(struct run *run, struct err *e)
{
    int r = timer_new(run->loop, on_first_output, run, &run->execute->first_output, e);
    r = r < 0 ? r : timer_new(run->loop, on_idle, run, &run->execute->idle, e);
    return r < 0 ? r : timer_new(run->loop, on_heartbeat, run, &run->execute->heartbeat, e);
}

static void watch_agent(struct run *run)
{
    struct execution *x = &run->exec;
    const struct settings *s = &run->plan->settings;
    if (s->first_output > 0 && x->first_output_at == 0 &&
        !timer_armed(run->execute->first_output)) {
        timer_arm(run->execute->first_output, x->started + s->first_output);
    }
    if (s->idle > 0 && !timer_armed(run->execute->idle) && !run->execute->asked_cpu) {
        timer_arm(run->execute->idle, run->execute->last_life + s->idle);
    }
}

void execute_watch(struct run *run, enum execute_watch what)
{
    if (run->execute->heartbeat == NULL) {
        return; /* closed */
    }
    if (what == EXECUTE_WATCH_OFF) {
        timer_cancel(run->execute->heartbeat);
    } else if (!timer_armed(run->execute->heartbeat)) {
        timer_arm(run->execute->heartbeat, clock_now() + HEARTBEAT);
    }
    if (what == EXECUTE_WATCH_AGENT) {
        watch_agent(run);
    } else {
        timer_cancel(run->execute->first_output);
        timer_cancel(run->execute->idle);
        run->execute->asked_cpu = false;
    }
}

void execute_alive(struct run *run)
{
    run->execute->last_life = clock_now();
}

void execute_watch_output(struct run *run)
{
    struct execution *x = &run->exec;
    run_alive(run);
    if (x->first_output_at == 0) {
        x->first_output_at = run->execute->last_life;
        if (run->execute->first_output != NULL) {
            timer_cancel(run->execute->first_output);
        }
    }
}

void execute_watch_close(struct run *run)
{
    run->execute->first_output = timer_free(run->execute->first_output);
    run->execute->idle = timer_free(run->execute->idle);
    run->execute->heartbeat = timer_free(run->execute->heartbeat);
}
