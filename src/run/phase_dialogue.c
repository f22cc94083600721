/* SPDX-License-Identifier: MIT
 *
 * Phase execute for harnesses that converse: the run's half of a dialogue (adapters/driver.h). What
 * the driver asks goes to the guard, the bridge, the feedback or the workspace, and the answers go
 * back; when the agent has come to the end of a turn it is decided whether there is another.
 *
 * When a turn ends, and how long anything may take, is decided by the machine of phase execute
 * (execute_machine.h); what the driver waits for before its first turn has deadlines here.
 */
#include "guard/feedback.h"
#include "guard/guard.h"
#include "io/timer.h"
#include "proc/proc.h"
#include "run/agent_files.h"
#include "run/agent_terminals.h"
#include "run/execute_priv.h"
#include "run/harness_session.h"
#include "run/run_tools_priv.h"
#include "tools/bridge.h"

#define WORDS_LONGEST 64

struct dialogue {
    struct run *run;
    struct str words;   /* of its last answer, that stand in what is written down as they are */
    size_t written;     /* how often they did at the end of the turn */
    nsec written_until; /* they may take so long */
    bool found;
    struct timer *start_timer; /* of requests before the first turn */
    const char *awaited;       /* the one that it runs for; NULL: none */
};

/* --- the end of a turn --- */

/* There is nothing to wait on: the files are known by patterns, and some are not there yet. */
bool dialogue_is_saved(struct run *run)
{
    struct dialogue *d = run->execute->dialogue;
    bool kept = run->plan->settings.home == HOME_PRIVATE && run->cause.reason == REASON_NONE;
    if (!kept || run->plan->settings.profile->session_written_ms == 0 || d->found ||
        clock_now() >= d->written_until) {
        return true;
    }
    d->found = harness_session_count(run, d->words) > d->written;
    return false; /* found: it is still to write the rest of its line */
}

void dialogue_say(struct run *run, struct str text)
{
    run_alive(run);
    struct str model = json_str(json_get(run->plan->settings.completion, "model"), STR_EMPTY);
    if (model.len > 0 && run->exec.round == 1) { /* it stays what it is from then on */
        (void)run->plan->driver->dialogue->set_option(run->session, DRIVER_OPTION_MODEL, model);
    }
    run->plan->driver->dialogue->prompt(run->session, text);
}

static bool is_plain(char c)
{
    char letter = (char)(c | 0x20);
    return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == ' ';
}

/* Of an answer, the longest part that no format writes in another way. */
static struct str plain_words(struct str text)
{
    struct str best = STR_EMPTY;
    for (size_t from = 0, to = 0; from < text.len; from = to + 1) {
        for (to = from; to < text.len && (is_plain(text.ptr[to])); to++) {
        }
        best = to - from > best.len ? str_slice(text, from, to) : best;
    }
    return str_slice(best, 0, WORDS_LONGEST);
}

void dialogue_note_words(struct run *run, struct str answer)
{
    struct dialogue *d = run->execute->dialogue;
    nsec time = run->plan->settings.profile->session_written_ms * NSEC_PER_MS;
    d->written_until = clock_now() + time;
    d->found = false;
    if (time > 0) {
        d->words = arena_str(run->arena, plain_words(answer));
        d->written = harness_session_count(run, d->words);
    }
}

static void tell_turn(struct run *run)
{
    struct json *context = json_object(run->arena);
    json_setc(run->arena, context, "round", json_integer(run->arena, run->exec.round));
    events_emit(&run->record.events, &(struct event) { .level = EVENT_DEBUG,
                                                       .logger = "cinch.prompt",
                                                       .event = "prompt.turn.complete",
                                                       .context = context });
}

static void on_turn(void *owner, const struct driver_turn *turn)
{
    struct run *run = owner;
    const struct execute_machine *m = &run->execute->machine;
    bool works = m->state == EXECUTE_TURN || m->state == EXECUTE_INTERRUPT;
    bool waits = m->state == EXECUTE_SETTLE && m->quiet > 0;
    if (run->execute->dialogue == NULL || (!works && !waits)) {
        return; /* a second result of the same turn */
    }
    tell_turn(run);
    execute_turn_ended(&run->execute->machine, turn->settle);
}

static void on_pause(void *owner, nsec quiet)
{
    struct run *run = owner;
    if (run->execute->dialogue != NULL) {
        execute_paused(&run->execute->machine, quiet);
    }
}

/* --- requests before the first turn --- */

static void on_start_deadline(void *arg)
{
    struct dialogue *d = arg;
    struct run *run = d->run;
    struct driver_wait wait = run->plan->driver->dialogue->pending(run->session);
    if (wait.method == NULL) {
        return;
    }
    run_fail(run, REASON_FAILURE, "the agent did not answer '%s' within %lld s%s", wait.method,
             (long long)(wait.limit / NSEC_PER_SEC), last_output(run));
    execute_terminate(&run->execute->machine, "deadline");
}

/* Each of them has a deadline of its own, from when it was sent. */
static void watch_start(struct dialogue *d)
{
    struct run *run = d->run;
    struct driver_wait wait = run->plan->driver->dialogue->pending(run->session);
    if (wait.method == d->awaited) {
        return;
    }
    d->awaited = wait.method;
    if (wait.method != NULL && wait.limit > 0) {
        timer_arm(d->start_timer, clock_now() + wait.limit);
    } else {
        timer_cancel(d->start_timer);
    }
}

void dialogue_fed(struct run *run)
{
    watch_start(run->execute->dialogue);
    execute_output(&run->execute->machine);
}

/* --- what the driver wants --- */

static void on_send(void *owner, struct str bytes)
{
    struct run *run = owner;
    struct err e;
    if (run->execute->proc != NULL && proc_write(run->execute->proc, bytes, &e) < 0) {
        run_fail(run, REASON_FAILURE, "the agent does not read its input: %s", e.msg);
        execute_terminate(&run->execute->machine, "deaf");
    }
}

static void on_close_input(void *owner)
{
    struct run *run = owner;
    if (run->execute->proc != NULL) {
        proc_close_stdin(run->execute->proc);
    }
}

/* An answer that takes time; the run may be over when it comes. */
struct pending {
    struct run *run;
    struct dialogue *dialogue;
    uint64_t id;
};

static struct pending *pend(struct run *run, uint64_t id)
{
    struct pending *p = ARENA_NEW(run->arena, struct pending);
    *p = (struct pending) { .run = run, .dialogue = run->execute->dialogue, .id = id };
    return p;
}

static void reply(const struct pending *p, bool ok, struct str text, struct str feedback)
{
    struct run *run = p->run;
    if (run->execute->dialogue != p->dialogue || run->execute->proc == NULL) {
        return;
    }
    run_alive(run);
    run->plan->driver->dialogue->reply(
        run->session,
        &(struct driver_reply) { .id = p->id, .ok = ok, .text = text, .feedback = feedback });
}

static void on_decided(void *arg, const struct guard_decision *d)
{
    const struct pending *p = arg;
    if (!d->allowed) {
        tools_tell_denial(p->run, d);
    }
    reply(p, d->allowed, d->reason, STR_EMPTY);
}

static void ask_permission(struct run *run, const struct driver_ask *ask)
{
    struct pending *p = pend(run, ask->id);
    struct guard *guard = tools_guard(run);
    struct guard_check *check; /* guard_stop() ends it with all others */
    if (guard == NULL) {
        reply(p, true, STR_EMPTY, STR_EMPTY);
        return;
    }
    guard_check(guard,
                &(struct guard_call) { .tool = ask->tool,
                                       .kind = ask->tool_kind,
                                       .arguments = ask->arguments,
                                       .call_id = ask->call_id,
                                       .native = true },
                on_decided, p, &check);
}

static void on_answer(void *arg, const struct bridge_answer *a)
{
    reply(arg, !a->is_error, a->text, a->feedback);
}

static void ask_tool(struct run *run, const struct driver_ask *ask)
{
    struct pending *p = pend(run, ask->id);
    struct bridge *bridge = tools_bridge(run);
    struct bridge_call *call;
    if (bridge == NULL) {
        reply(p, false, STR("there are no tools"), STR_EMPTY);
        return;
    }
    bridge_call(bridge,
                &(struct bridge_request) { .name = ask->tool,
                                           .arguments = ask->arguments,
                                           .call_id = ask->call_id,
                                           .done = on_answer,
                                           .arg = p },
                &call);
}

static void on_feedback(void *arg, struct str text)
{
    reply(arg, true, text, STR_EMPTY);
}

static void ask_feedback(struct run *run, const struct driver_ask *ask)
{
    struct pending *p = pend(run, ask->id);
    struct feedback *feedback = tools_feedback(run);
    struct feedback_round *round;
    if (feedback == NULL) {
        reply(p, true, STR_EMPTY, STR_EMPTY);
        return;
    }
    feedback_after(feedback,
                   &(struct feedback_call) { .tool = ask->tool,
                                             .arguments = ask->arguments,
                                             .success = ask->success,
                                             .native = true },
                   on_feedback, p, &round);
}

static void ask_file(struct run *run, const struct driver_ask *ask)
{
    struct pending *p = pend(run, ask->id);
    CLEANUP(buf) struct buf text = BUF_INIT(AGENT_FILE_MAX);
    struct err e;
    int r = ask->kind == ASK_READ
                ? agent_files_read(run, ask->path, ask->line, ask->limit, &text, &e)
                : agent_files_write(run, ask->path, ask->text, &e);
    reply(p, r == 0, r == 0 ? buf_str(&text) : str_of(e.msg), STR_EMPTY);
}

static void on_terminal(void *arg, const struct driver_reply *r)
{
    const struct pending *p = arg;
    struct run *run = p->run;
    if (run->execute->dialogue == p->dialogue && run->execute->proc != NULL) {
        run_alive(run);
        run->plan->driver->dialogue->reply(run->session, r);
    }
}

static void on_ask(void *owner, const struct driver_ask *ask)
{
    struct run *run = owner;
    run_alive(run);
    switch (ask->kind) {
    case ASK_PERMISSION:
        ask_permission(run, ask);
        break;
    case ASK_TOOL:
        ask_tool(run, ask);
        break;
    case ASK_FEEDBACK:
        ask_feedback(run, ask);
        break;
    case ASK_READ:
    case ASK_WRITE:
        ask_file(run, ask);
        break;
    case ASK_TERMINAL:
        agent_terminals_ask(run, ask, on_terminal, pend(run, ask->id));
        break;
    }
}

static void on_observed(void *owner, const struct native_call *call)
{
    tools_observed(owner, call);
}

struct driver_port dialogue_port(struct run *run)
{
    return (struct driver_port) { .send = on_send,
                                  .close_input = on_close_input,
                                  .ask = on_ask,
                                  .observed = on_observed,
                                  .turn = on_turn,
                                  .entry = execute_entry,
                                  .pause = on_pause,
                                  .owner = run };
}

/* --- life --- */

void dialogue_begin(struct run *run)
{
    struct err e;
    struct dialogue *d = ARENA_NEW(run->arena, struct dialogue);
    d->run = run;
    if (timer_new(run->loop, on_start_deadline, d, &d->start_timer, &e) < 0) {
        run_fail_err(run, &e);
        execute_terminate(&run->execute->machine, "failed");
        return;
    }
    run->execute->dialogue = d;
    run->plan->driver->dialogue->begin(run->session);
    watch_start(d);
}

void dialogue_over(struct run *run)
{
    if (run->execute->dialogue != NULL) {
        run->execute->dialogue->start_timer = timer_free(run->execute->dialogue->start_timer);
        run->execute->dialogue = NULL;
    }
}
