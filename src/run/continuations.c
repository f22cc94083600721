/* SPDX-License-Identifier: MIT
 *
 * Further turns: when the agent says that it is done, the task's checks say whether that is so; if
 * not, what they say is its next task. At most as many rounds as the task allows, none once time or
 * budget is used up.
 */
#include "guard/completion_check.h"
#include "io/loop.h"
#include "run/deliverables.h"
#include "run/execute_priv.h"
#include "run/run_tools_priv.h"

/* A prompt of so many levels is one that nobody reads. */
enum { RESTARTS_MAX = 10 };

static void tell(struct run *run, const char *what, struct str why)
{
    struct arena *a = run->arena;
    struct json *context = json_object(a);
    json_setc(a, context, "round", json_integer(a, run->exec.round));
    json_setc(a, context, "why", why.len == 0 ? json_null(a) : json_string(a, why));
    events_emit(&run->record.events, &(struct event) { .level = EVENT_INFO,
                                                       .logger = "cinch.tools",
                                                       .event = what,
                                                       .context = context });
}

/* What the agent is told is part of the conversation. */
static void tell_continuation(struct run *run, struct str text)
{
    struct json *detail = json_object(run->arena);
    json_setc(run->arena, detail, "text", json_string(run->arena, text));
    json_setc(run->arena, detail, "continuation",
              json_integer(run->arena, run->exec.round + run->exec.repairs));
    transcript_add(&run->record.transcript,
                   &(struct transcript_entry) { .type = ENTRY_USER_MESSAGE, .detail = detail });
}

/* What the agent was told last, for a message. */
static struct str one_line(struct run *run, struct str text)
{
    enum { KEPT = 240 };
    struct str cut = arena_str(run->arena, str_slice(text, 0, KEPT));
    for (size_t i = 0; i < cut.len; i++) {
        ((char *)cut.ptr)[i] = cut.ptr[i] == '\n' ? ' ' : cut.ptr[i];
    }
    return str_slice(cut, 0, str_utf8_prefix(cut));
}

/* The task is done as far as its checks go. An answer that does not fit is requested again. */
static void review_answer(struct run *run, const struct agent_report *report)
{
    struct str why = STR_EMPTY;
    struct str text = output_repair(run, report, &why);
    if (text.len > 0) {
        tell(run, "structured_output.repair", one_line(run, why));
        tell_continuation(run, text);
    }
    execute_verdict(&run->execute->machine, text);
}

static void on_verdict(void *arg, const struct completion_verdict *v)
{
    struct run *run = arg;
    struct execute_machine *m = &run->execute->machine;
    struct completion *c = run->tools->completion;
    run->tools->checking = NULL;
    if (v->complete || run->cause.reason != REASON_NONE) {
        tell(run, v->complete ? "task_completion.complete" : "task_completion.skipped", v->why);
        if (run->cause.reason == REASON_NONE) {
            review_answer(run, &run->tools->reviewed);
        } else {
            execute_verdict(m, STR_EMPTY);
        }
        return;
    }
    if (v->feedback.len == 0 || run->exec.round >= completion_rounds(c)) {
        tell(run, "task_completion.given_up", v->why);
        run_fail(run, REASON_FAILURE,
                 "the task is not complete after %lld further round%s (%.*s): %.*s",
                 (long long)run->exec.round, run->exec.round == 1 ? "" : "s",
                 STR_ARG(str_slice(v->why, 0, 100)), STR_ARG(one_line(run, v->feedback)));
        execute_verdict(m, STR_EMPTY);
        return;
    }
    run->exec.round++;
    tell(run, "task_completion.incomplete", v->why);
    tell_continuation(run, v->feedback);
    execute_verdict(m, arena_str(run->arena, v->feedback));
}

void continuation_review(struct run *run, const struct agent_report *report)
{
    struct run_tools *t = run->tools;
    nsec left;
    struct err why;
    bool well = run->cause.reason == REASON_NONE && !report->failed;
    bool asks = well && deliverables_question(run) != NULL; /* only a human can continue */
    bool wanted = well && !asks && t != NULL && completion_wanted(t->completion);
    if (well) {
        turn_well(run);
    }
    if (!wanted && well && !asks) {
        review_answer(run, report);
        return;
    }
    if (!wanted) {
        execute_verdict(&run->execute->machine, STR_EMPTY);
        return;
    }
    if (tools_admit_call(run, &left, &why) < 0) {
        tell(run,
             why.code == ERR_BUDGET ? "task_completion.budget_exhausted"
                                    : "task_completion.deadline_exhausted",
             str_of(why.msg));
        execute_verdict(&run->execute->machine, STR_EMPTY);
        return;
    }
    t->reviewed = *report;
    const struct json *by_tool = tools_structured(run);
    const struct json *given = by_tool != NULL ? by_tool : report->structured;
    completion_check(t->completion,
                     &(struct completion_claim) {
                         .text = report->text, .output = given, .stop_reason = "end_turn" },
                     on_verdict, run, &t->checking);
}

static void on_cut(void *arg)
{
    struct run *run = arg;
    execute_verdict(&run->execute->machine, STR_EMPTY);
}

void continuation_stop(struct run *run)
{
    struct run_tools *t = run->tools;
    if (t->checking != NULL) {
        completion_cancel(t->checking);
        t->checking = NULL;
        tell(run, "task_completion.skipped", STR_EMPTY);
        loop_post(run->loop, on_cut, run);
    }
}

void continuation_add_usage(struct agent_usage *sum, const struct agent_usage *u)
{
    sum->known = sum->known || u->known;
    sum->input += u->input;
    sum->output += u->output;
    sum->cache_read += u->cache_read;
    sum->cache_write += u->cache_write;
    sum->reasoning += u->reasoning;
    sum->turns += u->turns;
    sum->api_calls += u->api_calls;
    sum->cost_known = sum->cost_known || u->cost_known;
    sum->cost_usd += u->cost_usd;
}

/* --- programs that end after each turn --- */

/* The next process goes on where the last one was, if the harness can. */
static void keep_conversation(struct run *run)
{
    struct agent_report report = { 0 };
    run->plan->driver->end(run->session, &report);
    if (report.session_id.len > 0 && expand_uses(run->plan->settings.profile, "{resume}")) {
        run->exec.resume = arena_str(run->arena, report.session_id);
    }
}

/* What it opened has tools that it will only see from the start. */
static int prompt_of_restart(struct run *run, struct str *ret)
{
    struct err e;
    run->execute->restart = false;
    if (run->execute->restarts == RESTARTS_MAX) {
        run_fail(run, REASON_FAILURE, "the agent was restarted %d times because it opened sections",
                 RESTARTS_MAX);
        return -ERR_LIMIT;
    }
    run->execute->restarts++;
    keep_conversation(run);
    int r = context_render(run, ret, &e);
    if (r < 0) {
        run_fail_err(run, &e);
        return r;
    }
    tell(run, "prompt.restarted", STR("sections were opened"));
    tell_continuation(run, *ret);
    run->execute->goal = *ret;
    return 0;
}

int continuation_prompt(struct run *run, struct str text, struct str *ret)
{
    if (text.ptr == NULL) {
        return prompt_of_restart(run, ret);
    }
    /* Without a handle to the conversation the agent must be told again what it was about. */
    *ret = run->exec.resume.len > 0
               ? text
               : str_of(arena_printf(run->arena, "%.*s\n\n%.*s", STR_ARG(run->execute->goal),
                                     STR_ARG(text)));
    return 0;
}

enum execute_after continuation_after_exit(struct run *run)
{
    const struct engine_exit *exit = &run->exec.exit;
    bool ended_well = exit->end == ENGINE_EXITED && exit->value == 0;
    bool one_turn =
        run->plan->driver->kind == DRIVER_PIPE || run->plan->driver->kind == DRIVER_CONTRACT;
    if (run->execute->goal.ptr == NULL) {
        run->execute->goal = run->prompt;
    }
    if (run->execute->restart && run->exec.launched && run->cause.reason == REASON_NONE) {
        return EXECUTE_AFTER_RESTART;
    }
    if (!run->exec.launched || !ended_well || !one_turn) {
        return EXECUTE_AFTER_END; /* an agent that outlives its turns has had them */
    }
    launch_take_files(run);
    keep_conversation(run);
    return EXECUTE_AFTER_REVIEW;
}
