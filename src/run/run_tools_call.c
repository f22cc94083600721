/* SPDX-License-Identifier: MIT
 *
 * What happens to a run's tools while the agent works: who may call, what was called, which
 * sections were opened, and what the record is told.
 */
#include <stdlib.h>

#include "guard/feedback.h"
#include "guard/guard.h"
#include "mcp/mcp_mount.h"
#include "run/agent_terminals.h"
#include "run/offered.h"
#include "run/run_tools.h"
#include "run/run_tools_priv.h"
#include "tools/bridge.h"
#include "tools/tool_builtin.h"

struct bridge *tools_bridge(const struct run *run)
{
    return run->tools == NULL ? NULL : run->tools->bridge;
}

bool tools_busy(const struct run *run)
{
    const struct run_tools *t = run->tools;
    return t != NULL && (t->checking != NULL || (t->bridge != NULL && bridge_busy(t->bridge)) ||
                         agent_terminals_awaited(run));
}

struct guard *tools_guard(const struct run *run)
{
    return run->tools == NULL || guard_len(run->tools->guard) == 0 ? NULL : run->tools->guard;
}

struct feedback *tools_feedback(const struct run *run)
{
    struct run_tools *t = run->tools;
    return t == NULL || feedback_len(t->feedback) == 0 ? NULL : t->feedback;
}

bool tools_govern(const struct run *run)
{
    return tools_guard(run) != NULL;
}

bool tools_feed_back(const struct run *run)
{
    return tools_feedback(run) != NULL;
}

const struct json *tools_structured(const struct run *run)
{
    return run->tools == NULL || run->tools->answer == NULL ? NULL
                                                            : tool_output_value(run->tools->answer);
}

struct str tools_question(const struct run *run)
{
    return run->tools == NULL || run->tools->ask == NULL ? STR_EMPTY
                                                         : tool_ask_question(run->tools->ask);
}

/* Both are strict: a call that begins is one that may. */
int tools_admit_call(struct run *run, nsec *ret_left, struct err *e)
{
    *ret_left = run->exec.started + run->timeout - clock_now();
    if (*ret_left <= 0) {
        return ERR(e, ERR_TIMEOUT, "the deadline of the run has passed");
    }
    struct budget_left b = gateway_left(run);
    return b.budget <= 0 ? ERR(e, ERR_BUDGET, "the budget of the run is used up") : 0;
}

/* --- what is offered --- */

static void note_name(const char **names, size_t *n, struct arena *a, struct str name)
{
    names[(*n)++] = arena_dup(a, name);
}

/* Tools of sections that are closed are not there, and neither are those that open and read
 * sections when nothing is left to open or to read; all others are. */
static bool is_hidden(const struct run *run, const struct section_rendering *now,
                      const struct tool *t)
{
    bool discloses = str_eqc(t->name, "open_sections") || str_eqc(t->name, "read_section");
    if (t->section.len == 0 && !discloses) {
        return false;
    }
    for (size_t i = 0; i < now->tools_len; i++) {
        if (str_eq(now->tools[i].name, t->name)) {
            return false;
        }
    }
    return run->definition.sections != NULL;
}

static void fill_offer(struct run *run)
{
    struct run_tools *t = run->tools;
    size_t n = bridge_tools_len(t->bridge);
    struct llm_tool *list = arena_array(run->arena, n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        const struct tool *tool = bridge_tool(t->bridge, i);
        list[i] = (struct llm_tool) {
            .name = tool->name,
            .description = tool->description,
            .schema = json_copy(run->arena, tool->input_schema),
        };
    }
    t->offer = (struct driver_tools) { list, n };
}

void tools_offer(struct run *run)
{
    struct run_tools *t = run->tools;
    const struct section_rendering *now = &run->definition.rendering;
    bridge_offer(t->bridge, NULL);
    size_t all = bridge_tools_len(t->bridge);
    const char **names = arena_array(run->arena, all + 1, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; i < all; i++) {
        const struct tool *tool = bridge_tool(t->bridge, i);
        if (!is_hidden(run, now, tool)) {
            note_name(names, &n, run->arena, tool->name);
        }
    }
    bridge_offer(t->bridge, names);
    fill_offer(run);
    if (t->door.upstream != NULL) {
        mcp_mount_changed(t->door.upstream);
    }
    if (run->session != NULL) {
        driver_offer(run->plan->driver, run->session, t->offer);
    }
}

struct driver_tools tools_offered(struct run *run)
{
    return run->tools == NULL ? (struct driver_tools) { 0 } : run->tools->offer;
}

/* --- disclosure --- */

static bool has_tool(const struct section_rendering *sections, struct str name)
{
    for (size_t i = 0; i < sections->tools_len; i++) {
        if (str_eq(sections->tools[i].name, name)) {
            return true;
        }
    }
    return false;
}

static bool brings_tools(const struct section_rendering *before,
                         const struct section_rendering *now)
{
    for (size_t i = 0; i < now->tools_len; i++) {
        if (!has_tool(before, now->tools[i].name)) {
            return true;
        }
    }
    return false;
}

/* A tool that was opened is called: the agent has looked at the list again by itself. */
static void note_use(struct run *run, struct str name)
{
    if (execute_wants_restart(run) && !has_tool(&run->tools->at_start, name) &&
        has_tool(&run->definition.rendering, name)) {
        execute_want_restart(run, false);
    }
}

void tools_opened_sections(void *arg, const struct json *visibility, struct str reason)
{
    struct run *run = arg;
    struct section_rendering now;
    struct err e;
    struct section_request request = { .params = run->plan->settings.params,
                                       .visibility = visibility };
    if (section_tree_render(run->definition.sections, &request, run->arena, &now, &e) < 0) {
        run_warn(run, "sections could not be opened: %s", e.msg);
        return;
    }
    bool more_tools = brings_tools(&run->definition.rendering, &now);
    if (!execute_wants_restart(run)) {
        run->tools->at_start = run->definition.rendering;
    }
    run->definition.rendering = now;
    run->definition.goal = now.text;
    tools_offer(run);
    offered_begin(run);
    bool looks_again = run->plan->driver->kind == DRIVER_MODEL_LOOP;
    if (more_tools && !run->plan->settings.profile->mcp.list_changed && !looks_again) {
        execute_want_restart(run, true); /* unless a call shows that it knows of them */
    }
}

/* --- what was called --- */

void tools_began(void *arg, struct str name, struct str call_id)
{
    struct run *run = arg;
    run_alive(run);
}

static void count(struct run *run, bool success)
{
    run->exec.tool_calls++;
    run->exec.tool_failures += success ? 0 : 1;
}

/* A harness that prints its answer as text reports no calls, so the record gets them from here. */
static bool reports_calls(const struct run *run)
{
    struct str format =
        json_str(json_find(run->plan->settings.profile->output, STR("format")), STR_EMPTY);
    return run->plan->driver->kind != DRIVER_PIPE || str_eqc(format, "json") ||
           str_eqc(format, "ndjson");
}

static void add_call_entries(struct run *run, struct arena *a, const struct bridge_record *r)
{
    struct json *call = json_object(a), *result = json_object(a);
    struct json *both[] = { call, result };
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        json_setc(a, both[i], "tool_name", json_string(a, r->name));
        json_setc(a, both[i], "tool_call_id", json_string(a, r->call_id));
    }
    json_setc(a, call, "input", r->arguments == NULL ? json_null(a) : json_copy(a, r->arguments));
    json_setc(a, result, r->failure == TOOL_OK ? "output" : "error", json_string(a, r->text));
    execute_entry(run, NULL, "tool_use", call, STR_EMPTY);
    execute_entry(run, NULL, "tool_result", result, STR_EMPTY);
}

void tools_invoked(void *arg, const struct bridge_record *r)
{
    struct run *run = arg;
    struct arena *a = arena_new();
    struct event_prompt p = run_event_prompt(run);
    run_alive(run);
    note_use(run, r->name);
    offered_called(run, r->name);
    count(run, r->failure == TOOL_OK);
    if (!reports_calls(run)) {
        add_call_entries(run, a, r);
    }
    events_tool_invoked(&run->record.events, &p,
                        &(struct event_tool) {
                            .name = arena_dup(a, r->name),
                            .params = r->arguments == NULL ? NULL : json_copy(a, r->arguments),
                            .result = bridge_record_result(a, r),
                            .output = r->text,
                            .call_id = arena_dup(a, r->call_id),
                            .success = r->failure == TOOL_OK,
                            .failure = r->failure == TOOL_OK ? NULL : tool_failure_word(r->failure),
                            .policy = r->policy.len == 0 ? NULL : arena_dup(a, r->policy),
                            .took = r->took,
                            .leaked = r->leaked });
    arena_free(a);
}

/* Policies that look back (what was read, what came before) count tools of the harness, too. */
static void note_native(struct run *run, const struct native_call *call)
{
    struct guard *guard = tools_guard(run);
    struct err e;
    if (guard != NULL && call->success &&
        guard_note(guard,
                   &(struct guard_call) { .tool = call->name,
                                          .kind = call->kind,
                                          .arguments = call->arguments,
                                          .call_id = call->call_id,
                                          .native = true },
                   NULL, &e) < 0) {
        run_warn(run, "a policy could not take note of '%.*s': %s", STR_ARG(call->name), e.msg);
    }
}

void tools_observed(struct run *run, const struct native_call *call)
{
    count(run, call->success);
    note_native(run, call);
    struct arena *a = arena_new();
    struct event_prompt p = run_event_prompt(run);
    struct json *result = json_object(a);
    json_setc(a, result, "message", json_string(a, str_slice(call->output, 0, 1000)));
    json_setc(a, result, "value", call->result == NULL ? json_null(a) : json_copy(a, call->result));
    json_setc(a, result, "success", json_boolean(a, call->success));
    events_tool_invoked(
        &run->record.events, &p,
        &(struct event_tool) {
            .name = arena_dup(a, call->name),
            .params = call->arguments == NULL ? NULL : json_copy(a, call->arguments),
            .result = result,
            .output = call->output,
            .call_id = call->call_id.len == 0 ? NULL : arena_dup(a, call->call_id),
            .success = call->success });
    arena_free(a);
}

void tools_tell_denial(struct run *run, const struct guard_decision *d)
{
    struct arena *a = arena_new();
    struct json *context = json_object(a);
    json_setc(a, context, "policy", json_string(a, d->policy));
    json_setc(a, context, "reason", json_string(a, d->reason));
    events_emit(&run->record.events, &(struct event) { .level = EVENT_WARNING,
                                                       .logger = "cinch.tools",
                                                       .event = "tool.denied",
                                                       .context = context });
    arena_free(a);
}
