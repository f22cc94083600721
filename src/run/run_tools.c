/* SPDX-License-Identifier: MIT
 *
 * The life of a run's tools: compiled in admit, at work in execute, gone before anybody looks at
 * what came of the run.
 */
#include "run/run_tools.h"

#include "guard/completion_check.h"
#include "guard/feedback.h"
#include "guard/guard.h"
#include "io/loop.h"
#include "mcp/mcp_mount.h"
#include "run/agent_files.h"
#include "run/agent_terminals.h"
#include "run/helper_environment.h"
#include "run/offered.h"
#include "run/run_session.h"
#include "run/run_tools_priv.h"
#include "tools/bridge.h"
#include "tools/builtin_tools.h"
#include "tools/tool_builtin.h"
#include "tools/tool_kind.h"
#include "tools/tool_mcp.h"
#include "workspace/txn.h"

/* --- what is asked for --- */

static bool discloses(const struct run *run)
{
    const struct section_rendering *r = &run->definition.rendering;
    for (size_t i = 0; i < r->tools_len; i++) {
        if (r->tools[i].path.len == 0) {
            return true; /* open_sections, read_section */
        }
    }
    return false;
}

static bool reaches_tools(const struct run *run)
{
    const struct profile_mcp *mcp = &run->plan->settings.profile->mcp;
    return mcp->prefix[0] != '\0' || json_len(mcp->files) > 0 ||
           run->plan->driver->kind == DRIVER_DIALOGUE;
}

/* Where the harness does not take the output contract by itself, a tool takes the answer. */
static bool takes_answer(const struct run *run)
{
    return run->definition.schema != NULL && run->definition.package == NULL &&
           reaches_tools(run) && !definition_native_schema(run->plan->settings.profile);
}

/* An agent that has no tools of ours leaves its question in a file (deliverables.h). */
static bool takes_questions(const struct run *run)
{
    bool api = run->plan->driver->kind == DRIVER_MODEL_LOOP;
    return run->plan->settings.ask && (api || reaches_tools(run));
}

/* The built-in agent has tools, unless the tier takes them away. */
static bool has_builtin_tools(const struct run *run)
{
    const struct settings *s = &run->plan->settings;
    return s->profile->api.builtin_tools && s->tools_enabled != TRI_FALSE;
}

static bool offers(const struct run *run)
{
    return has_builtin_tools(run) || json_len(run->plan->settings.tools) > 0 || discloses(run) ||
           takes_answer(run) || takes_questions(run) || run->opts->hooks.n_tools > 0;
}

bool tools_wanted(const struct run *run)
{
    return run->tools != NULL;
}

static bool asks(const struct run *run)
{
    const struct settings *s = &run->plan->settings;
    const struct run_hooks *h = &run->opts->hooks;
    return offers(run) || json_len(s->policies) > 0 || json_len(s->feedback) > 0 ||
           json_len(s->completion) > 0 || h->n_policies > 0 || h->n_feedback > 0 ||
           h->n_completion > 0 || s->profile->acp.terminal;
}

/* --- admit --- */

static bool agent_place(void *arg, const char *layer, struct proc_place *ret)
{
    struct run *run = arg;
    struct sandbox *box = sandbox_session_sandbox(run);
    if (box == NULL) {
        return false;
    }
    *ret = sandbox_place(box, layer);
    return true;
}

static bool helper_place(void *arg, const char *layer, struct proc_place *ret)
{
    struct run *run = arg;
    struct sandbox *box = sandbox_session_sandbox(run);
    if (box == NULL) {
        return false;
    }
    *ret = sandbox_helper_place(box, layer);
    return true;
}

static void look_for_end(struct run *run);

static void helper_began(void *arg)
{
    struct run *run = arg;
    run->tools->helpers++;
}

static void helper_over(void *arg)
{
    struct run *run = arg;
    run->tools->helpers--;
    look_for_end(run);
}

static const char *layer_of(void *arg, struct arena *a, const struct txn *x)
{
    return run_txn_layer(arg, a, x);
}

static struct feedback_left left(void *arg)
{
    struct run *run = arg;
    struct budget_left b = gateway_left(run);
    nsec now = clock_now();
    return (struct feedback_left) {
        .time = run->exec.started + run->timeout - now,
        .elapsed = now - run->exec.started,
        .budget = b.budget,
    };
}

/* A guard that does not work is no reason to end a run, but somebody must know. */
static void on_problem(void *arg, struct str text)
{
    run_warn(arg, "%.*s", STR_ARG(str_slice(text, 0, 400)));
}

static int make_guards(struct run *run, struct err *e)
{
    const struct settings *s = &run->plan->settings;
    const struct run_hooks *h = &run->opts->hooks;
    struct run_tools *t = run->tools;
    int r = guard_new(&(struct guard_opts) { .policies = s->policies,
                                             .callbacks = h->policies,
                                             .n_callbacks = h->n_policies,
                                             .host = &t->host,
                                             .session = run->state,
                                             .exists = agent_files_exist,
                                             .arg = run,
                                             .problem = on_problem },
                      &t->guard, e);
    if (r == 0) {
        r = feedback_new(&(struct feedback_opts) { .providers = s->feedback,
                                                   .callbacks = h->feedback,
                                                   .n_callbacks = h->n_feedback,
                                                   .host = &t->host,
                                                   .session = run->state,
                                                   .exists = agent_files_exist,
                                                   .left = left,
                                                   .prompt_name = s->prompt_name,
                                                   .arg = run,
                                                   .problem = on_problem },
                         &t->feedback, e);
    }
    if (r == 0) {
        r = completion_new(&(struct completion_opts) { .rules = s->completion,
                                                       .callbacks = h->completion,
                                                       .n_callbacks = h->n_completion,
                                                       .host = &t->host,
                                                       .session = run->state,
                                                       .exists = agent_files_exist,
                                                       .arg = run },
                           &t->completion, e);
    }
    return r;
}

static int admit_call(void *arg, nsec *ret_left, struct err *e)
{
    return tools_admit_call(arg, ret_left, e);
}

static void on_idle(void *arg);

static void make_bridge(struct run *run)
{
    struct run_tools *t = run->tools;
    t->bridge = bridge_new(&(struct bridge_opts) { .loop = run->loop,
                                                   .host = &t->host,
                                                   .session = run->state,
                                                   .guard = tools_guard(run),
                                                   .feedback = tools_feedback(run),
                                                   .prompt_name = run->plan->settings.prompt_name,
                                                   .adapter = run->plan->settings.adapter,
                                                   .admit = admit_call,
                                                   .layer = layer_of,
                                                   .began = tools_began,
                                                   .invoked = tools_invoked,
                                                   .idle = on_idle,
                                                   .arg = run });
}

/* The definition with what an override file says about it. */
static const struct json *overridden(const struct section_rendering *all, const struct json *tool)
{
    struct str name = json_str(json_get(tool, "name"), STR_EMPTY);
    for (size_t i = 0; i < all->tools_len; i++) {
        if (str_eq(all->tools[i].name, name) && all->tools[i].definition != NULL) {
            return all->tools[i].definition;
        }
    }
    return tool;
}

static struct str section_of(const struct section_rendering *all, struct str name)
{
    for (size_t i = 0; i < all->tools_len; i++) {
        if (str_eq(all->tools[i].name, name)) {
            return all->tools[i].path;
        }
    }
    return STR_EMPTY;
}

static int add(struct run *run, struct tool *tool, struct err *e)
{
    int r = bridge_add(run->tools->bridge, tool, e);
    if (r < 0) {
        tool_free(tool);
    }
    return r;
}

static int add_single(struct run *run, const struct tool_kind *kind,
                      const struct section_rendering *all, const struct json *definition,
                      struct err *e)
{
    struct tool tool;
    const struct json *shown = overridden(all, definition);
    int r = tool_define(run->arena, shown, &tool, e);
    if (r < 0) {
        return r;
    }
    tool.section = section_of(all, tool.name);
    r = kind->bind(run->arena, definition, &tool, e);
    if (r < 0) {
        tool_free(&tool);
        return r;
    }
    return add(run, &tool, e);
}

static int add_one(struct run *run, const struct section_rendering *all, const struct json *d,
                   struct err *e)
{
    const struct tool_kind *kind;
    int r = tool_kind_of(d, &kind, e);
    if (r < 0) {
        return err_wrap(e, "tool '%s'", json_cstring(json_get(d, "name"), "?"));
    }
    if (kind->source == TOOL_SERVER) {
        run->tools->n_servers++;
        return kind->check(d, e);
    }
    return add_single(run, kind, all, d, e);
}

/* Those of the whole prompt first, then those of its sections in their order. */
static int add_defined(struct run *run, const struct section_rendering *all, struct err *e)
{
    const struct json *tools = run->plan->settings.tools;
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(tools); i++) {
        const struct json *d = json_item(tools, i);
        if (section_of(all, json_str(json_get(d, "name"), STR_EMPTY)).len == 0) {
            r = add_one(run, all, d, e);
        }
    }
    for (size_t k = 0; r == 0 && k < all->tools_len; k++) {
        for (size_t i = 0; r == 0 && i < json_len(tools); i++) {
            const struct json *d = json_item(tools, i);
            if (all->tools[k].path.len > 0 &&
                str_eq(json_str(json_get(d, "name"), STR_EMPTY), all->tools[k].name)) {
                r = add_one(run, all, d, e);
            }
        }
    }
    return r;
}

/* Every section as if it were open: what tools there can ever be. */
static int render_all(struct run *run, struct section_rendering *ret, struct err *e)
{
    struct section_tree *tree = run->definition.sections;
    *ret = (struct section_rendering) { 0 };
    if (tree == NULL) {
        return 0;
    }
    struct section_request all = { .params = run->plan->settings.params, .everything = true };
    return section_tree_render(tree, &all, run->arena, ret, e);
}

static int add_sections(struct run *run, struct err *e)
{
    struct run_tools *t = run->tools;
    struct tool tool;
    t->sections = tool_sections_new(&(struct tool_sections_opts) {
        .tree = run->definition.sections,
        .params = run->plan->settings.params,
        .opened = tools_opened_sections,
        .arg = run,
    });
    int r = tool_sections_open(t->sections, run->arena, &tool, e);
    r = r < 0 ? r : add(run, &tool, e);
    r = r < 0 ? r : tool_sections_read(t->sections, run->arena, &tool, e);
    return r < 0 ? r : add(run, &tool, e);
}

static int add_answer(struct run *run, struct err *e)
{
    struct run_tools *t = run->tools;
    struct tool tool;
    t->answer = tool_output_new(&(struct tool_output_opts) {
        .contract = run->definition.contract,
        .schema = run->definition.schema,
    });
    int r = tool_output_tool(t->answer, run->arena, &tool, e);
    return r < 0 ? r : add(run, &tool, e);
}

static int add_ask(struct run *run, struct err *e)
{
    struct tool tool;
    run->tools->ask = tool_ask_new();
    int r = tool_ask_tool(run->tools->ask, run->arena, &tool, e);
    return r < 0 ? r : add(run, &tool, e);
}

/* A tool of the task with the same name replaces it. */
static int add_agent_tools(struct run *run, struct err *e)
{
    struct run_tools *t = run->tools;
    const struct json *list = NULL;
    const char *program = tools_builtin_program(run, e);
    /* Where nothing can be written there is nothing to commit. */
    bool read_only = run->plan->settings.sandbox.mode == SANDBOX_READ_ONLY;
    int r = program == NULL ? -(int)e->code : builtin_tools_load(run->arena, &list, e);
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        struct tool tool;
        r = builtin_tool(run->arena, json_item(list, i), program, &t->agent_host, &tool, e);
        if (r == 0 && bridge_find(t->bridge, tool.name) != NULL) {
            tool_free(&tool);
        } else if (r == 0) {
            tool.reads_only = tool.reads_only || read_only;
            r = add(run, &tool, e);
        }
    }
    return r;
}

static int add_builtins(struct run *run, struct err *e)
{
    int r = has_builtin_tools(run) ? add_agent_tools(run, e) : 0;
    r = r == 0 && discloses(run) ? add_sections(run, e) : r;
    r = r == 0 && takes_questions(run) ? add_ask(run, e) : r;
    return r == 0 && takes_answer(run) ? add_answer(run, e) : r;
}

static int add_callbacks(struct run *run, struct err *e)
{
    const struct run_hooks *h = &run->opts->hooks;
    int r = 0;
    for (size_t i = 0; r == 0 && i < h->n_tools; i++) {
        struct tool tool;
        r = tool_define(run->arena, h->tools[i].definition, &tool, e);
        if (r == 0) {
            tool_callback_bind(&tool, &h->tools[i].callback);
            r = add(run, &tool, e);
        }
    }
    return r;
}

static int make_tools(struct run *run, struct err *e)
{
    struct section_rendering all;
    int r = render_all(run, &all, e);
    if (r < 0) {
        return r;
    }
    make_bridge(run);
    r = add_defined(run, &all, e);
    r = r < 0 ? r : add_callbacks(run, e);
    r = r < 0 ? r : add_builtins(run, e);
    if (r == 0) {
        tools_offer(run);
    }
    return r;
}

/* --- names in policies --- */

static enum guard_tool find_task_tool(void *arg, struct str name)
{
    const struct run *run = arg;
    const struct run_tools *t = run->tools;
    if (guard_is_builtin(name)) {
        return GUARD_TOOL_EXISTS;
    }
    if (t->bridge != NULL && bridge_find(t->bridge, name) != NULL) {
        return GUARD_TOOL_EXISTS;
    }
    return t->n_servers > 0 ? GUARD_TOOL_UNSURE : GUARD_TOOL_MISSING;
}

static enum guard_tool find_native_tool(void *arg, struct str name)
{
    const struct run *run = arg;
    const struct json *known = run->plan->settings.profile->tool_names;
    for (size_t i = 0; i < json_len(known); i++) {
        if (str_glob(json_str(json_item(known, i), STR_EMPTY), name, false)) {
            return GUARD_TOOL_EXISTS;
        }
    }
    return known == NULL ? GUARD_TOOL_UNSURE : GUARD_TOOL_MISSING;
}

static int check_names(struct run *run, struct err *e)
{
    const struct settings *s = &run->plan->settings;
    struct guard_tools tools = { find_task_tool, find_native_tool, run };
    int r = guard_check_names(run->tools->guard, &tools, e);
    return r < 0 ? err_wrap(e, "%s", settings_origin(s, run->arena, "policies", NULL).file) : 0;
}

void tools_warn_names(struct run *run)
{
    enum { SHOWN_MAX = 8 };
    struct guard_unmatched list[SHOWN_MAX];
    struct guard_tools tools = { find_task_tool, find_native_tool, run };
    bool ran = run->exec.launched ||
               (run->plan->driver != NULL && run->plan->driver->kind == DRIVER_MODEL_LOOP);
    if (run->tools == NULL || run->tools->guard == NULL || !ran) {
        return;
    }
    size_t n = guard_unmatched_names(run->tools->guard, &tools, list, SHOWN_MAX);
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        run_warn(run,
                 "policies[%zu] names '%.*s', but no tool of that name was offered or called: "
                 "check the spelling (ToolInvoked in events.jsonl shows the names)",
                 list[i].policy, STR_ARG(str_slice(list[i].name, 0, 200)));
    }
    if (n > SHOWN_MAX) {
        run_warn(run, "%zu more names in policies matched no tool", n - SHOWN_MAX);
    }
}

int tools_admit(struct run *run, struct err *e)
{
    int r = run_session_open(run, e);
    if (r < 0 || !asks(run)) {
        return r;
    }
    struct run_tools *t = run->tools = ARENA_NEW(run->arena, struct run_tools);
    t->host = (struct helper_host) {
        .loop = run->loop,
        .orphans = run->opts->orphans,
        .place = helper_place,
        .arg = run,
        .cwd = run->paths.view,
        .began = helper_began,
        .over = helper_over,
    };
    r = make_guards(run, e);
    if (r == 0 && offers(run)) {
        r = make_tools(run, e);
    }
    r = r < 0 ? r : check_names(run, e);
    return r < 0 && e->code != ERR_CONFIG ? err_wrap(e, "tools") : r;
}

/* --- configure --- */

int tools_mount(struct run *run, struct err *e)
{
    struct run_tools *t = run->tools;
    bool by_itself =
        run->plan->driver->kind == DRIVER_MODEL_LOOP; /* it calls the bridge without a protocol */
    if (t == NULL || t->bridge == NULL || by_itself) {
        return 0;
    }
    t->door.path = "/mcp";
    return mcp_mount_new(run->loop,
                         &(struct mcp_opts) { .tools = bridge_port(t->bridge),
                                              .name = "cinch",
                                              .version = CINCH_VERSION },
                         (struct upstream **)&t->door.upstream, e);
}

const struct gateway_mount *tools_door(const struct run *run)
{
    return run->tools == NULL || run->tools->door.upstream == NULL ? NULL : &run->tools->door;
}

/* --- execute: open --- */

/* The agent's environment without what leads to the gateway; only those inside are led to listed
 * hosts. */
static int make_agent_host(struct run *run, struct err *e)
{
    struct run_tools *t = run->tools;
    int r = launch_environment(run, NULL, &t->agent_environment, e);
    t->agent_host = t->host;
    t->agent_host.place = agent_place;
    t->agent_host.envp = (const char *const *)t->agent_environment.envp;
    t->agent_host.inside_env = gateway_proxy_environment(run);
    t->agent_host.left_out = NULL;
    t->agent_host.new_home = NULL;
    return r;
}

static int make_hosts(struct run *run, struct err *e)
{
    struct run_tools *t = run->tools;
    struct helper_environment env;
    bool confined = sandbox_session_sandbox(run) != NULL;
    int r = helper_environment_make(run, &env, e);
    if (r < 0) {
        return r;
    }
    t->host.envp = env.envp;
    t->host.inside_env = env.inside;
    t->host.left_out = env.left_out;
    t->host.new_home = env.own_home ? helper_home_new : NULL;
    /* The agent's view: without a sandbox that is another directory than the user named. */
    t->host.cwd = run->paths.view;
    t->host.outside_cwd = confined ? run->paths.artifacts : NULL;
    t->host.judge_cwd = confined ? env.home : NULL;
    return make_agent_host(run, e);
}

void tools_go_on_opened(void *arg)
{
    struct run *run = arg;
    struct run_tools *t = run->tools;
    void (*then)(struct run * run) = t->opened;
    if (then == NULL) {
        return; /* stopped, and gone on already */
    }
    t->opened = NULL;
    if (t->bridge != NULL) {
        tools_offer(run);
        offered_begin(run);
    }
    then(run);
}

void tools_open(struct run *run, void (*then)(struct run *run))
{
    struct run_tools *t = run->tools;
    struct err e;
    if (t == NULL) {
        then(run);
        return;
    }
    t->opened = then;
    int r = make_hosts(run, &e);
    if (r == 0 && t->bridge != NULL) {
        r = run_txns_open(run, &t->txns, &e);
    }
    if (r == 0 && t->bridge != NULL) {
        bridge_set_txns(t->bridge, t->txns);
        r = servers_open(run, &e);
    } else {
        t->waiting = 1;
    }
    if (r < 0 && run_fail_err(run, &e)) {
        run->cause.phase = "tool";
    }
    if (--t->waiting == 0) {
        tools_go_on_opened(run);
    }
}

/* --- execute: close --- */

void tools_stop(struct run *run)
{
    struct run_tools *t = run->tools;
    if (t == NULL) {
        return;
    }
    continuation_stop(run);
    agent_terminals_stop(run);
    if (t->bridge != NULL) {
        bridge_stop(t->bridge);
    }
    if (t->opened != NULL) { /* servers that are on their way are not waited for */
        loop_post(run->loop, tools_go_on_opened, run);
    }
}

void tools_hurry(struct run *run)
{
    if (run->tools != NULL) {
        servers_kill(run);
    }
}

void tools_finish_close(void *arg)
{
    struct run *run = arg;
    struct run_tools *t = run->tools;
    t->txns = txns_close(t->txns);
    void (*then)(struct run * run) = t->closed;
    t->closed = NULL;
    then(run);
}

/* The last call is over, and every program of a call or a check is gone: they use the sandbox, the
 * transactions and what servers offer. */
static void look_for_end(struct run *run)
{
    struct run_tools *t = run->tools;
    bool busy = t->helpers > 0 || (t->bridge != NULL && bridge_busy(t->bridge));
    if (t->closed != NULL && !busy) {
        servers_stop(run);
    }
}

static void on_idle(void *arg)
{
    look_for_end(arg);
}

void tools_close(struct run *run, void (*then)(struct run *run))
{
    struct run_tools *t = run->tools;
    if (t == NULL) {
        then(run);
        return;
    }
    t->closed = then;
    if (t->door.upstream != NULL) {
        mcp_mount_stop(t->door.upstream);
    }
    tools_stop(run);
    guard_stop(t->guard);
    feedback_stop(t->feedback);
    look_for_end(run);
}

void tools_done(struct run *run)
{
    struct run_tools *t = run->tools;
    if (t == NULL) {
        return;
    }
    if (t->door.upstream != NULL) {
        t->door.upstream->ops->free(t->door.upstream);
        t->door.upstream = NULL;
    }
    t->bridge = bridge_free(t->bridge);
    t->sections = tool_sections_free(t->sections);
    t->answer = tool_output_free(t->answer);
    t->ask = tool_ask_free(t->ask);
    servers_free(run);
    t->txns = txns_close(t->txns);
    t->completion = completion_free(t->completion);
    t->feedback = feedback_free(t->feedback);
    t->guard = guard_free(t->guard);
}
