/* SPDX-License-Identifier: MIT
 *
 * The control protocol of Claude Code (seen with 2.1.197): requests and responses that share the
 * two streams with the conversation. It asks by hooks, which we register with `initialize`, and by
 * can_use_tool; each request gets exactly one response, because it waits for it.
 *
 * A policy must not be passed by: what cannot be asked is denied.
 */
#include "adapters/claude_priv.h"

/* Seconds that Claude waits for the answer to a hook. When they are over it goes on as if nothing
 * had been registered, which would be consent; the run's own deadlines are much shorter. */
enum { HOOK_TIMEOUT = 7 * 24 * 3600 };

static const struct hook {
    const char *event;
    const char *id;
    enum { HOOK_ALWAYS, HOOK_GOVERNS, HOOK_FEEDS_BACK } wanted;
} hooks[] = {
    { "PreToolUse", "pre_tool_use", HOOK_GOVERNS },
    { "PostToolUse", "post_tool_use", HOOK_FEEDS_BACK },
    { "PostToolUseFailure", "post_tool_use_failure", HOOK_FEEDS_BACK },
    { "Stop", "stop", HOOK_ALWAYS },
    { "SubagentStop", "subagent_stop", HOOK_ALWAYS },
    { "PreCompact", "pre_compact", HOOK_ALWAYS },
};

/* --- our requests --- */

static void request(struct claude *c, struct arena *a, struct json *body)
{
    struct json *m = json_object(a);
    json_setc(a, m, "type", json_cstr(a, "control_request"));
    json_setc(a, m, "request_id", json_cstr(a, arena_printf(a, "cinch_%u", ++c->last_request)));
    json_setc(a, m, "request", body);
    (void)claude_send(c, m);
}

static struct json *hooks_wanted(const struct claude *c, struct arena *a)
{
    struct json *all = json_object(a);
    for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
        const struct hook *h = &hooks[i];
        if ((h->wanted == HOOK_GOVERNS && !c->has_policies) ||
            (h->wanted == HOOK_FEEDS_BACK && !c->has_feedback)) {
            continue;
        }
        struct json *ids = json_array(a);
        struct json *matcher = json_object(a);
        struct json *list = json_array(a);
        json_push(a, ids, json_cstr(a, h->id));
        json_setc(a, matcher, "hookCallbackIds", ids);
        json_setc(a, matcher, "timeout", json_integer(a, HOOK_TIMEOUT));
        json_push(a, list, matcher);
        json_setc(a, all, h->event, list);
    }
    return all;
}

/* Schema and system prompt could be arguments, too; but those are visible to everybody on the
 * machine, and bounded. */
void claude_initialize(struct claude *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *body = json_object(a);
    json_setc(a, body, "subtype", json_cstr(a, "initialize"));
    json_setc(a, body, "hooks", hooks_wanted(c, a));
    if (c->schema != NULL) {
        json_setc(a, body, "jsonSchema", json_copy(a, c->schema));
    }
    if (c->system_prompt.len > 0 && c->system_style == SYSTEM_PROMPT_APPEND) {
        json_setc(a, body, "appendSystemPrompt", json_string(a, c->system_prompt));
    } else if (c->system_prompt.len > 0 && c->system_style == SYSTEM_PROMPT_REPLACE) {
        struct json *parts = json_array(a);
        json_push(a, parts, json_string(a, c->system_prompt));
        json_setc(a, body, "systemPrompt", parts);
    }
    request(c, a, body);
}

void claude_interrupt(struct claude *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *body = json_object(a);
    json_setc(a, body, "subtype", json_cstr(a, "interrupt"));
    request(c, a, body);
}

bool claude_tune(struct claude *c, enum driver_option option, struct str value)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *body = json_object(a);
    bool model = option == DRIVER_OPTION_MODEL;
    json_setc(a, body, "subtype", json_cstr(a, model ? "set_model" : "set_permission_mode"));
    json_setc(a, body, model ? "model" : "mode", json_string(a, value));
    request(c, a, body);
    return true;
}

/* --- our responses --- */

static void respond_error(struct claude *c, struct str request_id, const char *why)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *m = json_object(a);
    struct json *r = json_object(a);
    json_setc(a, r, "subtype", json_cstr(a, "error"));
    json_setc(a, r, "request_id", json_string(a, request_id));
    json_setc(a, r, "error", json_cstr(a, why));
    json_setc(a, m, "type", json_cstr(a, "control_response"));
    json_setc(a, m, "response", r);
    (void)claude_send(c, m);
}

static void respond(struct claude *c, struct str request_id, struct arena *a, struct json *body)
{
    struct json *m = json_object(a);
    struct json *r = json_object(a);
    json_setc(a, r, "subtype", json_cstr(a, "success"));
    json_setc(a, r, "request_id", json_string(a, request_id));
    json_setc(a, r, "response", body);
    json_setc(a, m, "type", json_cstr(a, "control_response"));
    json_setc(a, m, "response", r);
    if (!claude_send(c, m)) {
        respond_error(c, request_id, "the response would be too large");
    }
}

static void set_hook_output(struct arena *a, struct json *body, const char *event,
                            struct json *output)
{
    json_setc(a, output, "hookEventName", json_cstr(a, event));
    json_setc(a, body, "hookSpecificOutput", output);
}

static void answer_pre(struct claude *c, struct str request_id, bool ok, struct str why)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *body = json_object(a);
    struct json *output = json_object(a);
    json_setc(a, output, "permissionDecision", json_cstr(a, ok ? "allow" : "deny"));
    if (!ok) {
        json_setc(a, output, "permissionDecisionReason", json_string(a, why));
    }
    set_hook_output(a, body, "PreToolUse", output);
    respond(c, request_id, a, body);
}

static void answer_post(struct claude *c, struct str request_id, const char *event,
                        struct str feedback)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *body = json_object(a);
    if (feedback.len > 0) {
        struct json *output = json_object(a);
        json_setc(a, output, "additionalContext", json_string(a, feedback));
        set_hook_output(a, body, event, output);
    }
    respond(c, request_id, a, body);
}

/* Without updatedInput an allowance counts as a refusal. */
static void answer_can_use(struct claude *c, struct str request_id, const struct json *input,
                           bool ok, struct str why)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *body = json_object(a);
    json_setc(a, body, "behavior", json_cstr(a, ok ? "allow" : "deny"));
    if (ok) {
        json_setc(a, body, "updatedInput", input == NULL ? json_object(a) : json_copy(a, input));
    } else {
        json_setc(a, body, "message", json_string(a, why));
    }
    respond(c, request_id, a, body);
}

static void answer_nothing(struct claude *c, struct str request_id)
{
    answer_post(c, request_id, NULL, STR_EMPTY);
}

/* --- questions to the run --- */

static struct claude_question *question_of_claude(struct claude *c, struct str request_id)
{
    for (size_t i = 0; i < QUESTIONS_MAX; i++) {
        struct claude_question *q = &c->questions[i];
        if (q->kind != QUESTION_NONE && str_eq(q->request_id, request_id)) {
            return q;
        }
    }
    return NULL;
}

static void question_done(struct claude_question *q)
{
    arena_free(q->arena);
    *q = (struct claude_question) { 0 };
}

void claude_questions_done(struct claude *c)
{
    for (size_t i = 0; i < QUESTIONS_MAX; i++) {
        question_done(&c->questions[i]);
    }
}

/* NULL: too many are open. */
static struct claude_question *question_new(struct claude *c, enum claude_question_kind kind,
                                            struct str request_id)
{
    for (size_t i = 0; i < QUESTIONS_MAX; i++) {
        struct claude_question *q = &c->questions[i];
        if (q->kind == QUESTION_NONE) {
            struct arena *a = arena_new();
            *q = (struct claude_question) { .kind = kind,
                                            .id = ++c->last_question,
                                            .arena = a,
                                            .request_id = arena_str(a, request_id) };
            return q;
        }
    }
    return NULL;
}

static const struct json *object_of(const struct json *v)
{
    return json_is(v, JSON_OBJECT) ? v : NULL;
}

/* May it use this tool? `what` is the input of the hook, or the request itself. */
static void ask_permission(struct claude *c, enum claude_question_kind kind, struct str request_id,
                           const struct json *what, const struct json *input)
{
    struct str tool = json_str(json_get(what, "tool_name"), STR_EMPTY);
    struct str call_id = json_str(json_get(what, "tool_use_id"), STR_EMPTY);
    struct claude_question *q = question_new(c, kind, request_id);
    if (q == NULL) {
        struct str why = STR("too many questions are open");
        if (kind == QUESTION_HOOK_PRE) {
            answer_pre(c, request_id, false, why);
        } else {
            answer_can_use(c, request_id, NULL, false, why);
        }
        return;
    }
    (void)claude_call_begin(c, call_id, tool, input);
    q->call_id = arena_str(q->arena, call_id);
    q->input = kind == QUESTION_CAN_USE && input != NULL ? json_copy(q->arena, input) : NULL;
    c->port.ask(c->port.owner, &(struct driver_ask) { .kind = ASK_PERMISSION,
                                                      .id = q->id,
                                                      .tool = tool,
                                                      .arguments = input,
                                                      .call_id = call_id });
}

static void on_pre(struct claude *c, struct str request_id, const struct json *input)
{
    if (!claude_is_native(c, json_str(json_get(input, "tool_name"), STR_EMPTY))) {
        answer_nothing(c, request_id);
        return;
    }
    ask_permission(c, QUESTION_HOOK_PRE, request_id, input,
                   object_of(json_get(input, "tool_input")));
}

/* Text of what a tool of Claude's own has returned, as far as there is a text in it. */
static struct str output_of(const struct json *response)
{
    struct str text = json_str(response, STR_EMPTY);
    text = text.len > 0 ? text : json_str(json_get(response, "stdout"), STR_EMPTY);
    return text.len > 0 ? text : json_str(json_pointer(response, STR("/content/0/text")), text);
}

static void on_post(struct claude *c, struct str request_id, const struct json *input,
                    const struct hook *hook)
{
    struct str tool = json_str(json_get(input, "tool_name"), STR_EMPTY);
    struct str call_id = json_str(json_get(input, "tool_use_id"), STR_EMPTY);
    bool success = strcmp(hook->event, "PostToolUse") == 0;
    const struct json *result = json_get(input, success ? "tool_response" : "error");
    const struct json *arguments = object_of(json_get(input, "tool_input"));
    struct claude_call *call = claude_call_begin(c, call_id, tool, arguments);
    if (!claude_is_native(c, tool) || call == NULL) {
        answer_nothing(c, request_id);
        return;
    }
    claude_call_observed(c, call, result, output_of(result), success);
    struct claude_question *q = question_new(c, QUESTION_HOOK_POST, request_id);
    if (q == NULL) {
        answer_nothing(c, request_id);
        return;
    }
    q->event = hook->event;
    c->port.ask(c->port.owner, &(struct driver_ask) { .kind = ASK_FEEDBACK,
                                                      .id = q->id,
                                                      .tool = tool,
                                                      .arguments = arguments,
                                                      .call_id = call_id,
                                                      .success = success });
}

/* What happened, with those members of the hook's input that say more about it. */
static void tell_event(struct claude *c, const char *source, const char *subtype,
                       const struct json *input, const char *const *members)
{
    struct arena *a = c->scratch;
    struct json *detail = json_object(a);
    json_setc(a, detail, "subtype", json_cstr(a, subtype));
    for (; *members != NULL; members++) {
        const struct json *value = json_get(input, *members);
        if (value != NULL) {
            json_setc(a, detail, *members, json_copy(a, value));
        }
    }
    claude_entry(c, source, "system_event", detail, STR_EMPTY);
}

/* What a sub-agent says last is in no line of the stream, unless it works in the background. */
static void on_subagent_stop(struct claude *c, struct str request_id, const struct json *input)
{
    static const char *const members[] = { "agent_id", "agent_type", NULL };
    struct str agent = json_str(json_get(input, "agent_id"), STR_EMPTY);
    struct str text = json_str(json_get(input, "last_assistant_message"), STR_EMPTY);
    const char *source = claude_source_of_agent(c, agent);
    answer_nothing(c, request_id);
    if (text.len > 0 && !claude_said(c, source, text)) {
        claude_entry_text(c, source, "assistant_message", text);
    }
    tell_event(c, source, "subagent_stop", input, members);
}

/* The program is about to end its turn; tasks of its own may go on. */
static void on_stop(struct claude *c, struct str request_id, const struct json *input)
{
    static const char *const members[] = { "stop_hook_active", "background_tasks", NULL };
    c->background = claude_background_of(json_get(input, "background_tasks"), "type");
    answer_nothing(c, request_id);
    tell_event(c, NULL, "stop", input, members);
}

static void on_compact(struct claude *c, struct str request_id, const struct json *input)
{
    static const char *const members[] = { "trigger", NULL };
    answer_nothing(c, request_id);
    tell_event(c, NULL, "compaction", input, members);
}

static void on_hook(struct claude *c, struct str request_id, const struct json *body)
{
    struct str id = json_str(json_get(body, "callback_id"), STR_EMPTY);
    const struct json *input = json_get(body, "input");
    for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
        if (!str_eqc(id, hooks[i].id)) {
            continue;
        }
        if (str_eqc(id, "pre_tool_use")) {
            on_pre(c, request_id, input);
        } else if (str_eqc(id, "subagent_stop")) {
            on_subagent_stop(c, request_id, input);
        } else if (str_eqc(id, "pre_compact")) {
            on_compact(c, request_id, input);
        } else if (str_eqc(id, "stop")) {
            on_stop(c, request_id, input);
        } else {
            on_post(c, request_id, input, &hooks[i]);
        }
        return;
    }
    respond_error(c, request_id, "no such hook was registered");
}

static void on_can_use(struct claude *c, struct str request_id, const struct json *body)
{
    struct str tool = json_str(json_get(body, "tool_name"), STR_EMPTY);
    const struct json *input = object_of(json_get(body, "input"));
    if (str_eqc(tool, "AskUserQuestion")) {
        answer_can_use(c, request_id, NULL, false,
                       STR("nobody is here to answer: decide yourself and go on"));
    } else if (!c->has_policies || !claude_is_native(c, tool)) {
        answer_can_use(c, request_id, input, true, STR_EMPTY);
    } else {
        ask_permission(c, QUESTION_CAN_USE, request_id, body, input);
    }
}

/* --- Claude's requests --- */

void claude_control_request(struct claude *c, const struct json *line)
{
    struct str id = json_str(json_get(line, "request_id"), STR_EMPTY);
    const struct json *body = json_get(line, "request");
    struct str subtype = json_str(json_get(body, "subtype"), STR_EMPTY);
    if (id.len == 0 || question_of_claude(c, id) != NULL) {
        return; /* nobody to answer to; or it will be answered once */
    }
    if (str_eqc(subtype, "hook_callback")) {
        on_hook(c, id, body);
    } else if (str_eqc(subtype, "can_use_tool")) {
        on_can_use(c, id, body);
    } else {
        respond_error(c, id, "unsupported control request");
    }
}

/* It does not want the answer any more; the run's is dropped when it comes. */
void claude_control_cancel(struct claude *c, const struct json *line)
{
    struct claude_question *q =
        question_of_claude(c, json_str(json_get(line, "request_id"), STR_EMPTY));
    if (q != NULL) {
        question_done(q);
    }
}

void claude_reply(struct claude *c, const struct driver_reply *reply)
{
    struct claude_question *q = NULL;
    for (size_t i = 0; i < QUESTIONS_MAX; i++) {
        if (c->questions[i].kind != QUESTION_NONE && c->questions[i].id == reply->id) {
            q = &c->questions[i];
        }
    }
    if (q == NULL) {
        return;
    }
    if (q->kind == QUESTION_HOOK_POST) {
        answer_post(c, q->request_id, q->event, reply->text);
        question_done(q);
        return;
    }
    struct claude_call *call = claude_call_begin(c, q->call_id, STR_EMPTY, NULL);
    if (call != NULL && !reply->ok) { /* it will never run, so that this is its end */
        claude_call_observed(c, call, NULL, reply->text, false);
        call->denied = true;
    }
    if (q->kind == QUESTION_HOOK_PRE) {
        answer_pre(c, q->request_id, reply->ok, reply->text);
    } else {
        answer_can_use(c, q->request_id, q->input, reply->ok, reply->text);
    }
    question_done(q);
}
