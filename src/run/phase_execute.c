/* SPDX-License-Identifier: MIT
 *
 * Phase execute: one child from start to the last closed pipe, under its deadlines.
 *
 * Four timers, one for each thing that can run out: total, first output, idle, and a heartbeat that
 * keeps state.json fresh and the watcher informed. A deadline only notes the cause and stops the
 * tree; the phase ends when the process layer says that everything is gone.
 */
#include "io/loop.h"
#include "io/timer.h"
#include "proc/proc.h"
#include "record/redact.h"
#include "run/image.h"
#include "run/project_config.h"
#include "run/run_priv.h"

#define HEARTBEAT     (100 * NSEC_PER_MS)
#define BEAT_OF_STATE (5 * NSEC_PER_SEC)
#define LOOK          NSEC_PER_SEC
/* Waiting programs wake up now and then; half a percent of a period tells work from that. */
#define WORK_SHARE 200

/* --- deadlines --- */

/* From here on the grace period counts; another deadline would only start it anew. */
static void stop(struct run *run, const char *why)
{
    timer_cancel(run->exec.total);
    timer_cancel(run->exec.first_output);
    timer_cancel(run->exec.idle);
    tools_stop(run); /* calls that are under way are rolled back */
    if (run->exec.talk != NULL) {
        talk_stop(run);
    } else if (run->exec.dialogue != NULL && dialogue_interrupt(run)) {
        return; /* it may come to an end by itself, within the grace period */
    } else if (run->exec.proc != NULL) {
        execute_stop(run, why);
    }
}

void execute_stop(struct run *run, const char *why)
{
    events_signal_sent(&run->record.events, "SIGTERM", "tree", why);
    proc_stop(run->exec.proc, run->settings.grace);
}

static void deadline_passed(struct run *run, enum timeout_kind kind, nsec limit)
{
    if (run->cause.reason == REASON_NONE) {
        run->cause.timeout = kind;
        run->cause.limit = limit;
    }
    run_fail(run, REASON_TIMEOUT, "%s deadline of %.10g s passed", timeout_kind_word(kind),
             (double)limit / 1e9);
    events_deadline(&run->record.events, timeout_kind_word(kind), limit);
    stop(run, "deadline");
}

bool execute_meet_deadline(struct run *run)
{
    int64_t when;
    if (run->settings.deadline == NULL || !clock_parse(str_of(run->settings.deadline), &when)) {
        return true;
    }
    nsec left = when - clock_wall();
    if (left <= 0) {
        run->cause.timeout =
            run->cause.reason == REASON_NONE ? TIMEOUT_DEADLINE : run->cause.timeout;
        run_fail(run, REASON_TIMEOUT, "the deadline %s has passed", run->settings.deadline);
        return false;
    }
    if (left < run->settings.timeout) {
        run->settings.timeout = left;
        run->until_deadline = true;
    }
    return true;
}

static void on_total(void *arg)
{
    struct run *run = arg;
    deadline_passed(run, run->until_deadline ? TIMEOUT_DEADLINE : TIMEOUT_TOTAL,
                    run->settings.timeout);
}

static void on_first_output(void *arg)
{
    struct run *run = arg;
    if (run->exec.first_output_at == 0) {
        deadline_passed(run, TIMEOUT_FIRST_OUTPUT, run->settings.first_output);
    }
}

/* Nothing was printed for the whole period. A build or a test run may be silent and busy, so the
 * tree's CPU time is asked for before the verdict. */
static void on_idle(void *arg)
{
    struct run *run = arg;
    struct execution *x = &run->exec;
    nsec due = x->last_life + run->settings.idle;
    if (clock_now() < due) {
        timer_arm(x->idle, due);
        return;
    }
    if (x->proc == NULL) {
        deadline_passed(run, TIMEOUT_IDLE, run->settings.idle);
        return;
    }
    x->asked_cpu = true;
    proc_refresh_cpu(x->proc);
}

/* Without a control group; see memory.h. What is beyond the bound gets no grace. */
static void check_memory(struct run *run)
{
    char text[RUN_MESSAGE_MAX];
    if (run->exec.proc != NULL && run->cause.reason == REASON_NONE &&
        memory_exceeded(run, proc_memory(run->exec.proc), text, sizeof text)) {
        run_fail(run, REASON_FAILURE, "%s", text);
        stop(run, "memory");
        proc_kill(run->exec.proc);
    }
}

static void on_cpu(void *arg, nsec cpu)
{
    struct run *run = arg;
    struct execution *x = &run->exec;
    check_memory(run);
    if (x->asked_life) {
        if (cpu - x->seen_cpu > LOOK / WORK_SHARE) {
            run_beat(run); /* no reason to wait longer for output: that has its own period */
        }
        x->seen_cpu = cpu;
        x->asked_life = false;
    }
    if (!x->asked_cpu || x->ended != 0 || run->cause.reason != REASON_NONE) {
        return;
    }
    bool worked = cpu - x->last_cpu > run->settings.idle / WORK_SHARE;
    x->last_cpu = cpu;
    x->asked_cpu = false;
    if (worked) {
        x->last_life = clock_now();
    }
    if (clock_now() < x->last_life + run->settings.idle) {
        timer_arm(x->idle, x->last_life + run->settings.idle);
    } else {
        deadline_passed(run, TIMEOUT_IDLE, run->settings.idle);
    }
}

/* A tool or a check of ours may be silent for as long as it may take at all; what the agent itself
 * does in silence shows in the processor time of its tree. */
static void look_for_life(struct run *run)
{
    if (tools_busy(run)) {
        run_alive(run);
    } else if (run->exec.proc != NULL) {
        run->exec.asked_life = true;
        proc_refresh_cpu(run->exec.proc);
    }
}

static void check_disk(struct run *run)
{
    char text[RUN_MESSAGE_MAX];
    if (run->cause.reason == REASON_NONE && disk_exceeded(run, text, sizeof text)) {
        run_fail(run, REASON_DISK, "%s", text);
        stop(run, "disk");
    }
}

static void on_heartbeat(void *arg)
{
    struct run *run = arg;
    nsec now = clock_now();
    if (now - run->exec.last_look >= LOOK) {
        run->exec.last_look = now;
        look_for_life(run);
        check_disk(run);
    } else if (run->memory.polled && run->exec.proc != NULL) {
        proc_refresh_cpu(run->exec.proc);
    }
    if (now - run->exec.last_beat >= BEAT_OF_STATE) {
        record_beat(&run->record);
        run->exec.last_beat = now;
    }
    run_show(run);
    timer_arm(run->exec.heartbeat, now + HEARTBEAT);
    const struct run_watcher *w = &run->opts->watcher;
    if (w->cancel != NULL && run->cause.reason == REASON_NONE && w->cancel(w->owner)) {
        run_cancel(run);
    }
}

static int make_timers(struct run *run, struct err *e)
{
    struct execution *x = &run->exec;
    const struct {
        struct timer **timer;
        void (*fn)(void *arg);
    } all[] = {
        { &x->total, on_total },
        { &x->first_output, on_first_output },
        { &x->idle, on_idle },
        { &x->heartbeat, on_heartbeat },
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        int r = timer_new(run->loop, all[i].fn, run, all[i].timer, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* What counts whoever is at work. */
static void arm_watch(struct run *run)
{
    timer_arm(run->exec.total, run->exec.started + run->settings.timeout);
    timer_arm(run->exec.heartbeat, clock_now() + HEARTBEAT);
}

static void arm_timers(struct run *run)
{
    struct execution *x = &run->exec;
    const struct settings *s = &run->settings;
    arm_watch(run);
    if (s->first_output > 0) {
        timer_arm(x->first_output, x->started + s->first_output);
    }
    if (s->idle > 0) {
        timer_arm(x->idle, x->started + s->idle);
    }
}

static void free_timers(struct execution *x)
{
    x->total = timer_free(x->total);
    x->first_output = timer_free(x->first_output);
    x->idle = timer_free(x->idle);
    x->heartbeat = timer_free(x->heartbeat);
}

int execute_watch(struct run *run, struct err *e)
{
    free_timers(&run->exec);
    int r = make_timers(run, e);
    if (r == 0) {
        arm_watch(run);
    }
    return r;
}

/* --- events of the child --- */

static void on_started(void *arg, pid_t pid)
{
    struct run *run = arg;
    run->exec.launched = true;
    run->exec.pid = pid;
    events_spawned(&run->record.events, pid, (const char *const *)run->launch.argv,
                   image_workspace(run));
    run_show(run);
    if (run->cause.reason != REASON_NONE) {
        execute_stop(run, "interrupt"); /* the signal came while the child was being started */
    } else if (run->driver->begin != NULL) {
        dialogue_begin(run);
    }
}

static void on_spawn_failed(void *arg, const struct err *why)
{
    run_fail_err(arg, why);
}

static void note_output(struct run *run, enum agent_stream stream, struct str bytes)
{
    struct execution *x = &run->exec;
    run_alive(run);
    if (x->first_output_at == 0) {
        x->first_output_at = x->last_life;
        if (x->ended == 0) { /* after its end there are no timers any more */
            timer_cancel(x->first_output);
        }
    }
    logfile_write(stream == AGENT_STDERR ? &run->record.err : &run->record.out, bytes);
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct run *run = arg;
    enum agent_stream of_agent = stream == PROC_STDOUT ? AGENT_STDOUT : AGENT_STDERR;
    note_output(run, of_agent, bytes);
    run->driver->feed(run->session, of_agent, bytes);
    if (run->exec.dialogue != NULL) {
        dialogue_fed(run);
    }
}

static void on_own_output(void *owner, enum agent_stream stream, struct str bytes)
{
    note_output(owner, stream, bytes);
}

struct agent_output execute_output(struct run *run)
{
    return (struct agent_output) { on_own_output, run };
}

void execute_ended(struct run *run)
{
    struct execution *x = &run->exec;
    x->ended = clock_now();
    free_timers(x);
}

static void on_exit_of_program(void *arg, const struct proc_result *r)
{
    struct run *run = arg;
    struct execution *x = &run->exec;
    x->ended = clock_now();
    free_timers(x); /* it is over: what is left has the drain period */
    if (r->exit_known) {
        x->exit = (struct engine_exit) { r->signaled ? ENGINE_SIGNALLED : ENGINE_EXITED, r->value };
    }
    events_exited(&run->record.events, r->pid, x->exit, x->ended - x->started);
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct run *run = arg;
    struct execution *x = &run->exec;
    free_timers(x);
    if (x->ended == 0) {
        x->ended = clock_now();
    }
    x->usage.utime = r->usage.user_ns;
    x->usage.stime = r->usage.system_ns;
    x->usage.maxrss_kb = r->usage.max_rss_kib;
    x->usage.leaked = r->leaked;
    if (r->leaked > 0) {
        /* The system cuts names: what looks like the beginning of a secret goes, too. */
        struct str name = str_of(r->n_names > 0 ? r->names[0] : "?");
        name = redact_cut(run->redactor, run->arena, name, REDACT_CUT_END);
        events_leaked(&run->record.events, (int)r->leaked);
        run_warn(run, "%u process%s outlived the program and had to be killed (%.*s%s)", r->leaked,
                 r->leaked == 1 ? "" : "es", STR_ARG(name), r->n_names > 1 ? ", …" : "");
    }
    if (r->stuck > 0) {
        run_warn(run, "%u processes could not be killed", r->stuck);
    }
    if (r->abandoned) {
        run_warn(run, "cinch-init was killed: processes that the program started may still run");
    }
    if (r->started && r->error.code != ERR_OK) {
        run_fail(run, REASON_INTERNAL, "%s", r->error.msg);
    }
    x->proc = proc_free(x->proc);
    dialogue_over(run);
    continuation_after_exit(run);
}

void execute_interrupt(struct run *run, bool at_once)
{
    runtime_probe_interrupt(run);
    sandbox_session_interrupt(run);
    if (at_once) {
        tools_hurry(run);
    }
    if (run->exec.talk != NULL) {
        stop(run, "interrupt");
        return;
    }
    if (run->exec.proc == NULL) {
        tools_stop(run);
        return; /* the phases see the cause and skip */
    }
    if (at_once) {
        proc_kill(run->exec.proc);
    } else if (run->exec.launched && run->exec.ended == 0) {
        stop(run, "interrupt");
    }
}

static void on_entry(void *owner, const char *type, const struct json *detail, struct str raw)
{
    execute_entry(owner, NULL, type, detail, raw);
}

void execute_entry(void *owner, const char *source, const char *type, const struct json *detail,
                   struct str raw)
{
    struct run *run = owner;
    struct transcript_entry entry = { .type = ENTRY_UNKNOWN, .source = source };
    struct arena *a = arena_new();
    (void)entry_type_find(str_of(type), &entry.type);
    entry.detail = json_copy(a, detail);
    entry.raw = raw.len > 0 ? raw : (struct str) { 0 }; /* empty: there is none */
    transcript_add(&run->record.transcript, &entry);
    arena_free(a);
}

/* Starts the agent, inside the sandbox if there is one. */
static int launch(struct run *run, struct err *e)
{
    struct execution *x = &run->exec;
    bool converses = run->driver->begin != NULL;
    bool fed = !converses && run->launch.stdin_text.ptr != NULL;
    struct proc_opts opts = {
        .path = run->paths.executable,
        .argv = (const char *const *)run->launch.argv,
        .envp = (const char *const *)run->environment.envp,
        .cwd = image_workspace(run),
        .place = image_wanted(run) ? image_place(run) : sandbox_session_place(run),
        .orphans = run->opts->orphans,
        .stdin_mode = converses ? PROC_STDIN_PIPE
                      : fed     ? PROC_STDIN_BYTES
                                : PROC_STDIN_CLOSED,
        .stdin_bytes = fed ? run->launch.stdin_text : STR_EMPTY,
        .stdin_max = DIALOGUE_UNREAD_MAX,
        .grace = run->settings.grace,
        .drain = run->settings.drain,
        .port = { on_started, on_spawn_failed, on_output, NULL, on_cpu, on_exit_of_program, on_done,
                  run },
    };
    if (image_wanted(run) && opts.place == NULL) {
        return ERR(e, ERR_BUG, "an image without a container"); /* never here */
    }
    return proc_start(run->loop, &opts, &x->proc, e);
}

/* A driver that hands the tools over itself is told of them before it begins. */
static void offer_tools(struct run *run)
{
    if (run->driver->offer != NULL) {
        run->driver->offer(run->session, tools_offered(run));
    }
}

/* Everything that the agent needs is there. */
static void start(struct run *run)
{
    struct execution *x = &run->exec;
    struct err e;
    memory_begin(run);
    if (run->cause.reason == REASON_NONE) {
        offer_tools(run);
        int r = turn_begin(run, &e);
        r = r < 0 ? r : run->driver->plan == NULL ? talk_start(run, &e) : launch(run, &e);
        if (r < 0) {
            run_fail_err(run, &e);
        } else {
            arm_timers(run);
        }
    }
    if (x->proc == NULL && x->talk == NULL) {
        execute_over(run);
    }
}

static void end_turns(struct run *run)
{
    memory_end(run);
    run_savepoints_close(run);
    run_phase_done(run);
}

/* Tools are rolled back and gone before anybody looks at what came of the run. */
void execute_over(struct run *run)
{
    project_reveal(run, true);
    free_timers(&run->exec);
    tools_warn_names(run);
    tools_close(run, end_turns);
}

/* What the session that is over has used is kept; a new one begins with another prompt. */
int execute_again(struct run *run, struct str prompt, struct err *e)
{
    struct execution *x = &run->exec;
    struct agent_report report;
    launch_take_files(run);
    run->driver->end(run->session, &report);
    continuation_add_usage(&x->past, &report.usage);
    run->session = (run->driver->close(run->session), NULL);
    run->prompt = arena_str(run->arena, prompt);
    int r = context_write_prompt(run, e);
    r = r < 0 ? r : launch_plan(run, &x->spec, e);
    if (r < 0) {
        return r;
    }
    run->session = run->driver->open(&x->spec, (struct entry_sink) { on_entry, run });
    offer_tools(run);
    x->launched = false;
    x->ended = 0;
    x->exit = (struct engine_exit) { 0 };
    x->last_life = clock_now();
    free_timers(x);
    r = make_timers(run, e);
    r = r < 0 ? r : turn_begin(run, e);
    r = r < 0 ? r : launch(run, e);
    if (r == 0) {
        arm_timers(run);
    }
    return r;
}

/* The sandbox stands, or there is none. */
static void go_on(struct run *run)
{
    struct err e;
    if (run->cause.reason == REASON_NONE && project_hide(run, &e) < 0) {
        run_fail_err(run, &e);
    }
    if (run->cause.reason == REASON_NONE) {
        arm_watch(run); /* a server that does not come up has no more time than the run */
        tools_open(run, start);
    } else {
        start(run);
    }
}

int phase_execute(struct run *run, struct err *e)
{
    struct execution *x = &run->exec;
    if (!execute_meet_deadline(run)) {
        return 0; /* the cause is noted, and nothing was started */
    }
    int r = launch_plan(run, &x->spec, e);
    if (r < 0) {
        return r;
    }
    run->session = run->driver->open(&x->spec, (struct entry_sink) { on_entry, run });
    struct event_prompt p = run_event_prompt(run);
    events_call_start(&run->record.events, &p, run->settings.model, run->settings.timeout);
    x->started = x->last_life = clock_now();
    gateway_clock(run);
    disk_begin(run);
    r = make_timers(run, e);
    if (r < 0) {
        free_timers(x);
        return r;
    }
    /* Programs that we start on demand must find the view; the agent's may wait for it inside. */
    bool at_work = tools_wanted(run) || run_savepoints_wanted(run) || project_hides(run);
    sandbox_session_await(run, at_work ? SANDBOX_SESSION_MOUNTED : SANDBOX_SESSION_ENTER, go_on);
    return 1;
}
