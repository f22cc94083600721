/* SPDX-License-Identifier: MIT
 *
 * A run that claims success without any sign of work. cinch sees the model traffic, the tools and
 * the workspace, so it can tell an agent that did nothing from one that did little.
 */
#include <stdarg.h>
#include <stdio.h>

#include "adapters/driver.h"
#include "base/file.h"
#include "run/gateway_run_priv.h"
#include "run/offered.h"
#include "run/run_priv.h"

/* The task relies on what cinch controls: without it, the result means something else. */
static bool relies_on_control(const struct run *run)
{
    const struct settings *s = &run->plan->settings;
    const struct budget_settings *b = &s->budget;
    bool budget = b->tokens_input > 0 || b->tokens_output > 0 || b->tokens_total > 0 ||
                  b->calls > 0 || b->usd > 0;
    return budget || json_len(s->tools) > 0 || json_len(s->policies) > 0 ||
           json_len(s->completion) > 0 || run->definition.schema != NULL;
}

void run_doubt(struct run *run, const char *fmt, ...)
{
    char text[RUN_MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (run->plan->settings.strict || relies_on_control(run)) {
        run_fail(run, REASON_FAILURE, "%s", text);
    } else {
        run_warn(run, "%s", text);
    }
}

/* Of a program that cinch knows as an agent; `command` and adapter programs need no model. */
bool plausibility_is_agent(const struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    return !driver_is_kind(p, DRIVER_CONTRACT) && strcmp(p->name, "command") != 0 &&
           !driver_is_kind(p, DRIVER_MODEL_LOOP);
}

static void judge_traffic(struct run *run)
{
    const struct run_gateway *g = run->gateway;
    const struct agent_usage *u = &run->outcome.report.usage;
    const struct meter_sum *sum = meter_sum(account_meter(g->assembly.account));
    if (sum->calls == 0 && g->calls.refused == 0) {
        run_doubt(run, "the agent made no model call through the gateway%s", last_output(run));
        return;
    }
    bool exact =
        sum->estimated == 0 && sum->failed == 0 && u->known &&
        capability_lack(&run->plan->settings.profile->capabilities, CAPABILITY_USAGE_TRUTH) == NULL;
    if (exact && u->output > sum->usage.output) {
        run_doubt(run,
                  "the agent reports more usage than the gateway saw (%lld output tokens, %lld on "
                  "the wire): it may have reached a model by another way",
                  (long long)u->output, (long long)sum->usage.output);
    }
}

void plausibility_judge(struct run *run)
{
    offered_report(run);
    if (run->cause.reason != REASON_NONE || !run->exec.launched || !plausibility_is_agent(run)) {
        return;
    }
    if (run->gateway->assembly.account != NULL && run->gateway->len > 0) {
        judge_traffic(run);
    }
    offered_judge(run);
    if (run->outcome.report.answer_missed && run->outcome.report.text.len == 0) {
        run_doubt(run, "the agent's output has no final answer where the profile looks for it "
                       "(output.rules); stdout.log has the output");
    }
}

static bool has_artifacts(const struct run *run)
{
    bool empty = true;
    return file_dir_is_empty(run->record.dir.dir_fd, "artifacts", &empty, NULL) == 0 && !empty;
}

/* An adapter program that succeeds has to show something for it. */
void plausibility_gate(struct run *run)
{
    const struct agent_report *r = &run->outcome.report;
    const struct run_gateway *g = run->gateway;
    bool called =
        g->assembly.account != NULL && meter_sum(account_meter(g->assembly.account))->calls > 0;
    bool quiet = r->text.len == 0 && r->structured == NULL && r->entries == 0 && !r->left_files;
    if (run->plan->driver->kind == DRIVER_CONTRACT && run->exec.launched && quiet && !called &&
        run->exec.tool_calls == 0 && run->outcome.no_changes != FLAG_NO && !has_artifacts(run)) {
        run_fail(run, REASON_NO_RESULT,
                 "the adapter program exited with 0 and did nothing: no output, manifest, event, "
                 "change or model call%s",
                 last_output(run));
    }
}
