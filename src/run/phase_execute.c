/* SPDX-License-Identifier: MIT
 *
 * Phase execute: the effects of its machine (execute_machine.h) on a run. The machine says when
 * something happens, this file does it: sandbox, tools, the agent's process, the ends of all three.
 * What differs between agents is in phase_dialogue.c (they converse), phase_talk.c (cinch runs the
 * loop) and continuations.c (they end with their turn).
 */
#include "io/loop.h"
#include "io/timer.h"
#include "proc/proc.h"
#include "record/redact.h"
#include "run/dependencies.h"
#include "run/execute_priv.h"
#include "run/image.h"
#include "run/image_root.h"
#include "run/project_config.h"
#include "run/resources.h"

/* For exiting after the last turn. */
#define END_TIME (1 * NSEC_PER_SEC)

bool execute_meet_deadline(struct run *run)
{
    int64_t when;
    if (run->plan->settings.deadline == NULL ||
        !clock_parse(str_of(run->plan->settings.deadline), &when)) {
        return true;
    }
    nsec left = when - clock_wall();
    if (left <= 0) {
        run->cause.timeout =
            run->cause.reason == REASON_NONE ? TIMEOUT_DEADLINE : run->cause.timeout;
        run_fail(run, REASON_TIMEOUT, "the deadline %s has passed", run->plan->settings.deadline);
        return false;
    }
    if (left < run->timeout) {
        run->timeout = left;
        run->until_deadline = true;
    }
    return true;
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
    execute_send(&run->execute->machine, EXECUTE_STARTED);
}

static void on_spawn_failed(void *arg, const struct err *why)
{
    run_fail_err(arg, why);
}

static void on_own_output(void *owner, enum agent_stream stream, struct str bytes)
{
    struct run *run = owner;
    execute_watch_output(run);
    logfile_write(stream == AGENT_STDERR ? &run->record.err : &run->record.out, bytes);
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct run *run = arg;
    enum agent_stream of_agent = stream == PROC_STDOUT ? AGENT_STDOUT : AGENT_STDERR;
    on_own_output(run, of_agent, bytes);
    run->plan->driver->program->feed(run->session, of_agent, bytes);
    if (run->execute->dialogue != NULL) {
        dialogue_fed(run);
    }
}

struct agent_output execute_agent_output(struct run *run)
{
    return (struct agent_output) { on_own_output, run };
}

static void on_exit(void *arg, const struct proc_result *r)
{
    struct run *run = arg;
    struct execution *x = &run->exec;
    x->ended = clock_now();
    if (r->exit_known) {
        x->exit = (struct engine_exit) { r->signaled ? ENGINE_SIGNALLED : ENGINE_EXITED, r->value };
    }
    events_exited(&run->record.events, r->pid, x->exit, x->ended - x->started);
    execute_send(&run->execute->machine, EXECUTE_EXITED);
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct run *run = arg;
    struct execution *x = &run->exec;
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
        if (!x->let_go) { /* else the whole tree got a signal, and these were a moment slower */
            run_warn(run, "%u process%s outlived the program and had to be killed (%.*s%s)",
                     r->leaked, r->leaked == 1 ? "" : "es", STR_ARG(name),
                     r->n_names > 1 ? ", …" : "");
        }
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
    run->execute->proc = proc_free(run->execute->proc);
    dialogue_over(run);
    execute_send(&run->execute->machine, EXECUTE_GONE);
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
    if (str_eqc(json_str(json_get(detail, "subtype"), STR_EMPTY), "context_trimmed") &&
        run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        struct json *context = json_copy(a, detail);
        (void)json_remove(context, STR("subtype"));
        events_emit(&run->record.events,
                    &(struct event) { .level = EVENT_INFO,
                                      .logger = "cinch.agent",
                                      .event = "prompt.context_trimmed",
                                      .message = "old tool results were shortened to fit the "
                                                 "context of the model",
                                      .context = context });
    }
    arena_free(a);
}

/* Starts the agent, inside the sandbox if there is one. */
static int launch(struct run *run, struct err *e)
{
    bool converses = run->plan->driver->kind == DRIVER_DIALOGUE;
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
        .grace = run->plan->settings.grace,
        .drain = run->plan->settings.drain,
        .port = { on_started, on_spawn_failed, on_output, NULL, execute_watch_cpu, on_exit, on_done,
                  run },
    };
    if (image_wanted(run) && opts.place == NULL) {
        return ERR(e, ERR_BUG, "an image without a container"); /* never here */
    }
    return proc_start(run->loop, &opts, &run->execute->proc, e);
}

/* --- effects of the machine: what is there --- */

static nsec now(void *owner)
{
    return clock_now();
}

static void on_deadline(void *arg)
{
    struct run *run = arg;
    execute_wake(&run->execute->machine);
}

/* What is due already comes from the loop, too: never from inside of what armed it. */
static void arm(void *owner, nsec when)
{
    struct run *run = owner;
    if (when == 0) {
        timer_cancel(run->execute->deadline);
    } else if (when <= clock_now()) {
        timer_cancel(run->execute->deadline);
        loop_post(run->loop, on_deadline, run);
    } else {
        timer_arm(run->execute->deadline, when);
    }
}

static bool has_failed(void *owner)
{
    const struct run *run = owner;
    return run->cause.reason != REASON_NONE;
}

static bool has_agent(void *owner)
{
    const struct run *run = owner;
    return run->execute->proc != NULL || run->execute->talk != NULL;
}

static void watch(void *owner, enum execute_watch what)
{
    /* A check that is going on after the agent's end is bounded by the total time alone. */
    bool alone = what == EXECUTE_WATCH_AGENT && !has_agent(owner);
    execute_watch(owner, alone ? EXECUTE_WATCH_RUN : what);
}

static bool can_interrupt(void *owner)
{
    const struct run *run = owner;
    return run->execute->dialogue != NULL;
}

struct execute *execute_new(struct arena *a)
{
    return ARENA_NEW(a, struct execute);
}

struct proc *execute_proc(const struct run *run)
{
    return run->execute->proc;
}

bool execute_wants_restart(const struct run *run)
{
    return run->execute->restart;
}

void execute_want_restart(struct run *run, bool wanted)
{
    run->execute->restart = wanted;
}

static bool must_restart(void *owner)
{
    const struct run *run = owner;
    return run->execute->restart;
}

/* --- effects of the machine: sandbox and tools --- */

static void on_sandbox_ready(struct run *run)
{
    struct err e;
    if (run->cause.reason == REASON_NONE && project_hide(run, &e) < 0) {
        run_fail_err(run, &e);
    }
    execute_send(&run->execute->machine, EXECUTE_READY);
}

static void wait_sandbox(void *owner)
{
    struct run *run = owner;
    /* Programs that we start on demand must find the view; the agent's may wait for it inside. */
    bool at_work = tools_wanted(run) || run_savepoints_wanted(run) || project_hides(run);
    sandbox_session_await(run, at_work ? SANDBOX_SESSION_MOUNTED : SANDBOX_SESSION_ENTER,
                          on_sandbox_ready);
}

static void on_tools_opened(struct run *run)
{
    memory_begin(run);
    execute_send(&run->execute->machine, EXECUTE_OPENED);
}

static void on_resources_opened(struct run *run)
{
    struct err e;
    if (run->cause.reason == REASON_NONE && resources_env(run) != NULL &&
        launch_set_environment(run, &e) < 0) {
        run_fail_err(run, &e);
    }
    if (run->cause.reason == REASON_NONE) {
        tools_open(run, on_tools_opened);
    } else {
        execute_send(&run->execute->machine, EXECUTE_OPENED);
    }
}

static void open_tools(void *owner)
{
    resources_open(owner, on_resources_opened);
}

static void unblock(void *owner)
{
    sandbox_session_interrupt(owner);
    resources_stop(owner);
    tools_stop(owner); /* calls that are under way are rolled back */
}

static void on_tools_closed(struct run *run)
{
    execute_send(&run->execute->machine, EXECUTE_CLOSED);
}

/* Tools are rolled back and gone before anything looks at the result of the run. */
static void close_tools(void *owner)
{
    struct run *run = owner;
    project_reveal(run, true);
    execute_watch_close(run);
    resources_stop(run);
    tools_warn_names(run);
    tools_close(run, on_tools_closed);
}

/* --- effects of the machine: the agent --- */

static void start(void *owner)
{
    struct run *run = owner;
    struct err e;
    bool loop_is_ours = run->plan->driver->kind == DRIVER_MODEL_LOOP;
    driver_offer(run->plan->driver, run->session, tools_offered(run)); /* before it begins */
    int r = turn_begin(run, &e);
    r = r < 0 ? r : loop_is_ours ? talk_start(run, &e) : launch(run, &e);
    if (r < 0) {
        run_fail_err(run, &e);
        execute_send(&run->execute->machine, EXECUTE_FAILED);
        return;
    }
    watch(run, EXECUTE_WATCH_AGENT);
    if (loop_is_ours) {
        execute_send(&run->execute->machine, EXECUTE_STARTED);
    }
}

static void begin(void *owner)
{
    struct run *run = owner;
    if (run->execute->talk != NULL) {
        talk_begin(run);
    } else if (run->plan->driver->kind == DRIVER_DIALOGUE) {
        dialogue_begin(run);
    }
}

static void resume(void *owner)
{
    struct run *run = owner;
    run->plan->driver->dialogue->resume(run->session);
}

static void say(void *owner, struct str text)
{
    struct run *run = owner;
    struct err e;
    if (turn_begin(run, &e) < 0) {
        run_fail_err(run, &e);
        execute_send(&run->execute->machine, EXECUTE_FAILED);
    } else if (run->execute->talk != NULL) {
        talk_say(run, text);
    } else {
        dialogue_say(run, text);
    }
}

static void review(void *owner)
{
    struct run *run = owner;
    struct agent_report report = { 0 };
    run->plan->driver->end(run->session, &report);
    if (run->execute->dialogue != NULL) {
        dialogue_note_words(run, report.text);
    }
    continuation_review(run, &report);
}

static bool is_saved(void *owner)
{
    struct run *run = owner;
    return run->execute->dialogue == NULL || dialogue_is_saved(run);
}

static nsec finish(void *owner)
{
    struct run *run = owner;
    nsec grace = run->plan->settings.grace;
    nsec time = grace < END_TIME ? grace : END_TIME;
    if (run->execute->talk != NULL) {
        talk_stop(run);
        return time;
    }
    run->plan->driver->dialogue->finish(run->session);
    return run->plan->settings.profile->acp.stays ? 0 : time;
}

static void interrupt(void *owner)
{
    struct run *run = owner;
    run->plan->driver->dialogue->interrupt(run->session);
}

static void stop(void *owner, const char *why)
{
    struct run *run = owner;
    if (run->execute->talk != NULL) {
        talk_stop(run);
    } else if (run->execute->proc != NULL) {
        events_signal_sent(&run->record.events, "SIGTERM", "tree", why);
        proc_stop(run->execute->proc, run->plan->settings.grace);
    }
}

static void linger(void *owner)
{
    struct run *run = owner;
    run->exec.let_go = true;
}

static void force(void *owner)
{
    struct run *run = owner;
    tools_hurry(run);
    if (run->execute->proc != NULL) {
        proc_kill(run->execute->proc);
    }
}

static enum execute_after after_exit(void *owner)
{
    return continuation_after_exit(owner);
}

/* What the session that is over has used is kept; a new one begins with another prompt. */
static int open_next_session(struct run *run, struct str prompt, struct err *e)
{
    struct execution *x = &run->exec;
    struct agent_report report;
    launch_take_files(run);
    run->plan->driver->end(run->session, &report);
    continuation_add_usage(&x->past, &report.usage);
    run->session = (run->plan->driver->close(run->session), NULL);
    run->prompt = arena_str(run->arena, prompt);
    int r = context_write_prompt(run, e);
    r = r < 0 ? r : launch_plan(run, &run->execute->spec, e);
    if (r < 0) {
        return r;
    }
    run->session =
        run->plan->driver->open(&run->execute->spec, (struct entry_sink) { on_entry, run });
    x->launched = false;
    x->ended = 0;
    x->exit = (struct engine_exit) { 0 };
    run->execute->last_life = clock_now();
    return 0;
}

static void restart(void *owner, struct str text)
{
    struct run *run = owner;
    struct str prompt;
    struct err e;
    int r = continuation_prompt(run, text, &prompt);
    if (r == 0) {
        r = open_next_session(run, prompt, &e);
        if (r < 0) {
            run_fail_err(run, &e);
        }
    }
    execute_send(&run->execute->machine, r < 0 ? EXECUTE_FAILED : EXECUTE_PREPARED);
}

/* --- the phase --- */

static void timed_out(void *owner)
{
    struct run *run = owner;
    execute_note_timeout(run, run->until_deadline ? TIMEOUT_DEADLINE : TIMEOUT_TOTAL, run->timeout);
}

static void done(void *owner)
{
    struct run *run = owner;
    run->execute->deadline = timer_free(run->execute->deadline);
    memory_end(run);
    run_savepoints_close(run);
    run_phase_done(run);
}

void execute_interrupt(struct run *run, bool at_once)
{
    image_root_interrupt(run);
    dependencies_interrupt(run);
    if (at_once) {
        resources_hurry(run);
    }
    if (run->execute->machine.state == EXECUTE_IDLE) { /* the phases see the cause and skip */
        unblock(run);
        return;
    }
    if (at_once) {
        execute_kill(&run->execute->machine);
    }
    if (!at_once || run->execute->proc == NULL) {
        execute_stop(&run->execute->machine, "interrupt");
    }
}

static int open_timers(struct run *run, struct err *e)
{
    int r = timer_new(run->loop, on_deadline, run, &run->execute->deadline, e);
    r = r < 0 ? r : execute_watch_open(run, e);
    if (r < 0) {
        run->execute->deadline = timer_free(run->execute->deadline);
        execute_watch_close(run);
    }
    return r;
}

static const struct execute_port *make_port(struct run *run)
{
    struct execute_port *port = ARENA_NEW(run->arena, struct execute_port);
    *port = (struct execute_port) { .now = now,
                                    .arm = arm,
                                    .watch = watch,
                                    .has_failed = has_failed,
                                    .has_agent = has_agent,
                                    .can_interrupt = can_interrupt,
                                    .must_restart = must_restart,
                                    .wait_sandbox = wait_sandbox,
                                    .open_tools = open_tools,
                                    .unblock = unblock,
                                    .start = start,
                                    .begin = begin,
                                    .resume = resume,
                                    .say = say,
                                    .review = review,
                                    .is_saved = is_saved,
                                    .finish = finish,
                                    .interrupt = interrupt,
                                    .stop = stop,
                                    .linger = linger,
                                    .force = force,
                                    .after_exit = after_exit,
                                    .restart = restart,
                                    .close_tools = close_tools,
                                    .timed_out = timed_out,
                                    .done = done,
                                    .owner = run };
    return port;
}

int phase_execute(struct run *run, struct err *e)
{
    struct execution *x = &run->exec;
    if (!execute_meet_deadline(run)) {
        return 0; /* the cause is noted, and nothing was started */
    }
    int r = launch_plan(run, &run->execute->spec, e);
    if (r < 0) {
        return r;
    }
    run->session =
        run->plan->driver->open(&run->execute->spec, (struct entry_sink) { on_entry, run });
    struct event_prompt p = run_event_prompt(run);
    events_call_start(&run->record.events, &p, run->plan->settings.model, run->timeout);
    x->started = run->execute->last_life = clock_now();
    gateway_clock(run);
    disk_begin(run);
    r = open_timers(run, e);
    if (r < 0) {
        return r;
    }
    execute_begin(&run->execute->machine, make_port(run), x->started + run->timeout,
                  run->plan->settings.grace);
    return 1;
}
