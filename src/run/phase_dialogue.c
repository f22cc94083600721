/* SPDX-License-Identifier: MIT
 *
 * Phase execute for harnesses that converse: the run's half of a dialogue (adapters/driver.h). What
 * the driver asks goes to the guard, the bridge, the feedback or the workspace, and the answers go
 * back; when the agent has come to the end of a turn it is decided whether there is another.
 *
 * Deadlines are those of phase_execute.c. One that passes interrupts the turn first, so that the
 * harness can say what it has used; who does not listen within the grace period is stopped.
 */
#include "guard/feedback.h"
#include "guard/guard.h"
#include "io/loop.h"
#include "io/timer.h"
#include "proc/proc.h"
#include "run/agent_files.h"
#include "run/agent_terminals.h"
#include "run/harness_session.h"
#include "run/run_tools_priv.h"
#include "tools/bridge.h"

/* After an interrupt, until the signal; part of the grace period. */
#define INTERRUPT_TIME (2 * NSEC_PER_SEC)
/* For going after the last turn. */
#define END_TIME (1 * NSEC_PER_SEC)
/* Between looks at whether the conversation is written down. */
#define WRITING_LOOK  (5 * NSEC_PER_MS)
#define WORDS_LONGEST 64

enum stage {
    STAGE_TALKING,
    STAGE_PAUSED,   /* the driver waits for silence */
    STAGE_SETTLING, /* the turn is over, but more may come */
    STAGE_JUDGING,  /* is there another? */
    STAGE_WRITING,  /* there is none, but the conversation may not be written down yet */
    STAGE_ENDING,   /* it was told to end */
};

struct dialogue {
    struct run *run;
    struct timer *timer; /* of settling, of an interrupt and of the end */
    enum stage stage;
    nsec settle;
    struct str words;   /* of its last answer, that stand in what is written down as they are */
    size_t written;     /* how often they did at the end of the turn */
    nsec written_until; /* they may take so long */
    bool found;
    bool interrupted;
    struct timer *start_timer; /* of requests before the first turn */
    const char *awaited;       /* the one that it runs for; NULL: none */
};

/* --- the end of a turn --- */

static void end_it(struct dialogue *d)
{
    struct run *run = d->run;
    nsec grace = run->settings.grace;
    d->stage = STAGE_ENDING;
    run->driver->finish(run->session);
    if (run->settings.profile->acp.stays) {
        run->exec.let_go = true;
        execute_stop(run, "finished");
        return;
    }
    timer_arm(d->timer, clock_now() + (grace < END_TIME ? grace : END_TIME));
}

/* There is nothing to wait on: the files are known by patterns, and some are not there yet. */
static void look_at_conversation(struct dialogue *d)
{
    if (d->found || clock_now() >= d->written_until) {
        end_it(d);
        return;
    }
    d->found = harness_session_count(d->run, d->words) > d->written;
    d->stage = STAGE_WRITING;
    timer_arm(d->timer, clock_now() + WRITING_LOOK); /* found: for the rest of its line */
}

static void end_when_written(struct dialogue *d)
{
    const struct run *run = d->run;
    bool kept = run->settings.home == HOME_PRIVATE && run->cause.reason == REASON_NONE;
    if (!kept || run->settings.profile->session_written_ms == 0) {
        end_it(d);
    } else {
        look_at_conversation(d);
    }
}

static void next_turn(struct run *run, struct str text)
{
    struct dialogue *d = run->exec.dialogue;
    struct err e;
    if (d == NULL || run->exec.proc == NULL) {
        return; /* it died meanwhile */
    }
    if (text.len == 0) {
        end_when_written(d);
        return;
    }
    if (turn_begin(run, &e) < 0) {
        run_fail_err(run, &e);
        end_it(d);
        return;
    }
    d->stage = STAGE_TALKING;
    run_alive(run);
    struct str model = json_str(json_get(run->settings.completion, "model"), STR_EMPTY);
    if (model.len > 0 && run->exec.round == 1) { /* it stays what it is from then on */
        (void)run->driver->tune(run->session, KNOB_MODEL, model);
    }
    run->driver->say(run->session, text);
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

static void note_words(struct dialogue *d, struct str answer)
{
    nsec time = d->run->settings.profile->session_written_ms * NSEC_PER_MS;
    d->written_until = clock_now() + time;
    d->found = false;
    if (time > 0) {
        d->words = arena_str(d->run->arena, plain_words(answer));
        d->written = harness_session_count(d->run, d->words);
    }
}

static void judge(void *arg)
{
    struct dialogue *d = arg;
    struct run *run = d->run;
    struct agent_report report;
    if (run->exec.dialogue != d || run->exec.proc == NULL) {
        return;
    }
    if (d->interrupted || run->exec.restart || run->cause.reason != REASON_NONE) {
        end_it(d);
        return;
    }
    d->stage = STAGE_JUDGING;
    run->driver->end(run->session, &report);
    note_words(d, report.text);
    continuation_judge(run, &report, next_turn);
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
    struct dialogue *d = run->exec.dialogue;
    if (d == NULL || d->stage != STAGE_TALKING) {
        return; /* a second result of the same turn */
    }
    tell_turn(run);
    d->settle = turn->settle;
    d->stage = STAGE_SETTLING;
    if (d->settle > 0) {
        timer_arm(d->timer, clock_now() + d->settle);
    } else {
        loop_post(run->loop, judge, d); /* not from inside of the driver */
    }
}

static void on_pause(void *owner, nsec quiet)
{
    struct run *run = owner;
    struct dialogue *d = run->exec.dialogue;
    if (d != NULL && d->stage == STAGE_TALKING) {
        d->stage = STAGE_PAUSED;
        d->settle = quiet;
        timer_arm(d->timer, clock_now() + quiet);
    }
}

static void end_pause(struct dialogue *d)
{
    d->stage = STAGE_TALKING;
    d->run->driver->go_on(d->run->session);
}

/* --- requests before the first turn --- */

static void on_start_deadline(void *arg)
{
    struct dialogue *d = arg;
    struct run *run = d->run;
    struct driver_wait wait = run->driver->awaits(run->session);
    if (wait.method == NULL) {
        return;
    }
    run_fail(run, REASON_FAILURE, "the agent did not answer '%s' within %lld s%s", wait.method,
             (long long)(wait.limit / NSEC_PER_SEC), last_output(run));
    execute_stop(run, "deadline");
}

/* Each of them has a deadline of its own, from when it was sent. */
static void watch_start(struct dialogue *d)
{
    struct run *run = d->run;
    struct driver_wait wait = { 0 };
    if (run->driver->awaits != NULL) {
        wait = run->driver->awaits(run->session);
    }
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
    struct dialogue *d = run->exec.dialogue;
    watch_start(d);
    bool waits = d->stage == STAGE_SETTLING || d->stage == STAGE_PAUSED;
    if (waits && d->settle > 0) {
        timer_arm(d->timer, clock_now() + d->settle);
    }
}

static void on_timer(void *arg)
{
    struct dialogue *d = arg;
    switch (d->stage) {
    case STAGE_SETTLING:
        judge(d);
        break;
    case STAGE_PAUSED:
        end_pause(d);
        break;
    case STAGE_TALKING: /* it did not listen */
        execute_stop(d->run, "deadline");
        break;
    case STAGE_ENDING: /* its result stands; it only does not go */
        d->run->exec.let_go = true;
        execute_stop(d->run, "finished");
        break;
    case STAGE_WRITING:
        look_at_conversation(d);
        break;
    case STAGE_JUDGING:
        break;
    }
}

bool dialogue_interrupt(struct run *run)
{
    struct dialogue *d = run->exec.dialogue;
    if (d->stage == STAGE_PAUSED) {
        d->stage = STAGE_TALKING; /* go_on() will not come any more */
    }
    if (d->stage != STAGE_TALKING || d->interrupted || run->driver->interrupt == NULL) {
        return false;
    }
    nsec grace = run->settings.grace;
    d->interrupted = true;
    run->driver->interrupt(run->session);
    timer_arm(d->timer, clock_now() + (grace < INTERRUPT_TIME ? grace : INTERRUPT_TIME));
    return true;
}

/* --- what the driver wants --- */

static void on_send(void *owner, struct str bytes)
{
    struct run *run = owner;
    struct err e;
    if (run->exec.proc != NULL && proc_write(run->exec.proc, bytes, &e) < 0) {
        run_fail(run, REASON_FAILURE, "the agent does not read its input: %s", e.msg);
        execute_stop(run, "deaf");
    }
}

static void on_close_input(void *owner)
{
    struct run *run = owner;
    if (run->exec.proc != NULL) {
        proc_close_stdin(run->exec.proc);
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
    *p = (struct pending) { .run = run, .dialogue = run->exec.dialogue, .id = id };
    return p;
}

static void reply(const struct pending *p, bool ok, struct str text, struct str feedback)
{
    struct run *run = p->run;
    if (run->exec.dialogue != p->dialogue || run->exec.proc == NULL) {
        return;
    }
    run_alive(run);
    run->driver->reply(
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
    if (run->exec.dialogue == p->dialogue && run->exec.proc != NULL) {
        run_alive(run);
        run->driver->reply(run->session, r);
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
    if (timer_new(run->loop, on_timer, d, &d->timer, &e) < 0 ||
        timer_new(run->loop, on_start_deadline, d, &d->start_timer, &e) < 0) {
        d->timer = timer_free(d->timer);
        run_fail_err(run, &e);
        execute_stop(run, "failed");
        return;
    }
    run->exec.dialogue = d;
    run->driver->begin(run->session);
    watch_start(d);
}

void dialogue_over(struct run *run)
{
    if (run->exec.dialogue != NULL) {
        run->exec.dialogue->timer = timer_free(run->exec.dialogue->timer);
        run->exec.dialogue->start_timer = timer_free(run->exec.dialogue->start_timer);
        run->exec.dialogue = NULL;
    }
}
