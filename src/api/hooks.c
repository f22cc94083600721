/* SPDX-License-Identifier: MIT
 *
 * Functions of the caller's as tools, policies, feedback and completion checks: values in here,
 * JSON out there.
 */
#include <string.h>

#include "api/task_priv.h"
#include "tools/tool_program.h"

/* One call of a tool while the caller's function works on it. */
struct cinch_call {
    struct tool_run *run;
    struct buf arguments;
    struct json *answer; /* NULL: none yet */
};

/* --- lists --- */

static struct hook *add(struct cinch_task *t, struct hook_list *list)
{
    struct hook *h = ARENA_NEW(t->arena, struct hook);
    struct hook **end = &list->first;
    h->task = t;
    buf_init(&h->json, BUF_TEXT);
    buf_init(&h->text, BUF_TEXT);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = h;
    list->len++;
    return h;
}

void task_hooks_done(struct cinch_task *t)
{
    struct hook_list *const lists[] = { &t->tools, &t->policies, &t->feedback, &t->completion };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        for (struct hook *h = lists[i]->first; h != NULL; h = h->next) {
            buf_done(&h->json);
            buf_done(&h->text);
        }
    }
}

static int bad_struct(struct cinch_task *t, const char *what)
{
    return task_fail(t, CINCH_EUSAGE,
                     "%s: a member is missing, or `size` is not that of a struct this library "
                     "knows",
                     what);
}

int cinch_task_add_tool(struct cinch_task *t, const struct cinch_tool *tool)
{
    struct cinch_tool copy;
    if (t == NULL || !task_take(&copy, sizeof copy, tool, sizeof copy) || copy.definition == NULL ||
        copy.call == NULL) {
        return bad_struct(t, "tool");
    }
    struct json *definition;
    struct err e;
    if (json_parse(t->arena, str_of(copy.definition), NULL, &definition, &e) < 0) {
        return task_fail(t, CINCH_EUSAGE, "tool: %s", e.msg);
    }
    struct tool checked;
    if (tool_define(t->arena, definition, &checked, &e) < 0) {
        return task_fail(t, CINCH_ETASK, "%s", e.msg);
    }
    tool_free(&checked);
    copy.definition = arena_dup(t->arena, str_of(copy.definition));
    add(t, &t->tools)->of.tool = copy;
    return 0;
}

int cinch_task_add_policy(struct cinch_task *t, const struct cinch_policy *policy)
{
    struct cinch_policy copy;
    if (t == NULL || !task_take(&copy, sizeof copy, policy, sizeof copy) || copy.name == NULL ||
        copy.check == NULL) {
        return bad_struct(t, "policy");
    }
    copy.name = arena_dup(t->arena, str_of(copy.name));
    add(t, &t->policies)->of.policy = copy;
    return 0;
}

int cinch_task_add_feedback(struct cinch_task *t, const struct cinch_feedback *feedback)
{
    struct cinch_feedback copy;
    if (t == NULL || !task_take(&copy, sizeof copy, feedback, sizeof copy) || copy.name == NULL ||
        copy.say == NULL) {
        return bad_struct(t, "feedback");
    }
    copy.name = arena_dup(t->arena, str_of(copy.name));
    add(t, &t->feedback)->of.feedback = copy;
    return 0;
}

int cinch_task_add_completion(struct cinch_task *t, const struct cinch_completion *completion)
{
    struct cinch_completion copy;
    if (t == NULL || !task_take(&copy, sizeof copy, completion, sizeof copy) || copy.name == NULL ||
        copy.check == NULL) {
        return bad_struct(t, "completion");
    }
    copy.name = arena_dup(t->arena, str_of(copy.name));
    add(t, &t->completion)->of.completion = copy;
    return 0;
}

/* --- values to JSON --- */

static const char *written(struct buf *out, const struct json *v)
{
    buf_reset(out);
    return json_write(v, JSON_COMPACT, out, NULL) < 0 || buf_append_c(out, '\0', NULL) < 0
               ? "null"
               : out->ptr;
}

static struct json *copy_or_null(struct arena *a, const struct json *v)
{
    return v == NULL ? json_null(a) : json_copy(a, v);
}

/* What the caller said, for as long as its own promise holds and longer. */
static struct str kept(struct hook *h, const char *text)
{
    buf_reset(&h->text);
    return text == NULL || buf_append(&h->text, str_of(text), NULL) < 0 ? STR_EMPTY
                                                                        : buf_str(&h->text);
}

/* --- tools --- */

const char *cinch_call_name(const struct cinch_call *c)
{
    return c->run->tool->name.ptr;
}

const char *cinch_call_id(const struct cinch_call *c)
{
    return arena_dup(c->run->arena, c->run->call_id);
}

const char *cinch_call_arguments(struct cinch_call *c)
{
    return written(&c->arguments, c->run->arguments);
}

int cinch_call_answer(struct cinch_call *c, const char *json)
{
    struct json *v;
    struct err e;
    if (c == NULL || c->answer != NULL || json == NULL ||
        json_parse(c->run->arena, str_of(json), NULL, &v, &e) < 0 || !json_is(v, JSON_OBJECT)) {
        return -CINCH_EUSAGE;
    }
    c->answer = v;
    return 0;
}

static bool on_call(void *arg, struct tool_run *run, struct tool_result *ret)
{
    struct hook *h = arg;
    struct cinch_call c = { .run = run };
    buf_init(&c.arguments, BUF_TEXT);
    h->of.tool.call(h->of.tool.arg, &c);
    buf_done(&c.arguments);
    if (c.answer == NULL) {
        *ret = (struct tool_result) { .failure = TOOL_BAD_OUTPUT,
                                      .message = STR("the tool gave no answer") };
    } else if (!tool_program_answer(c.answer, run->arena, ret)) {
        *ret = (struct tool_result) { .failure = TOOL_BAD_OUTPUT,
                                      .message = STR("what the tool answered is no answer") };
    }
    return true;
}

/* --- guards --- */

static bool on_check(void *arg, const struct guard_call *call, struct str *reason)
{
    struct hook *h = arg;
    const char *why = NULL;
    struct arena *a = arena_new();
    struct json *o = json_object(a);
    json_setc(a, o, "tool", json_string(a, call->tool));
    json_setc(a, o, "arguments", copy_or_null(a, call->arguments));
    json_setc(a, o, "call_id", json_string(a, call->call_id));
    json_setc(a, o, "native", json_boolean(a, call->native));
    json_setc(a, o, "section", json_string(a, call->section));
    bool allowed = h->of.policy.check(h->of.policy.arg, written(&h->json, o), &why) == 1;
    *reason = kept(h, why);
    arena_free(a);
    return allowed;
}

static void on_say(void *arg, const struct feedback_call *call, struct str *ret)
{
    struct hook *h = arg;
    struct arena *a = arena_new();
    struct json *o = json_object(a);
    json_setc(a, o, "tool", json_string(a, call->tool));
    json_setc(a, o, "arguments", copy_or_null(a, call->arguments));
    json_setc(a, o, "success", json_boolean(a, call->success));
    json_setc(a, o, "native", json_boolean(a, call->native));
    *ret = kept(h, h->of.feedback.say(h->of.feedback.arg, written(&h->json, o)));
    arena_free(a);
}

static bool on_claim(void *arg, const struct completion_claim *claim, struct str *feedback)
{
    struct hook *h = arg;
    const char *why = NULL;
    struct arena *a = arena_new();
    struct json *o = json_object(a);
    json_setc(a, o, "text", json_string(a, claim->text));
    json_setc(a, o, "output", copy_or_null(a, claim->output));
    json_setc(a, o, "stop_reason", json_cstr(a, claim->stop_reason));
    bool complete = h->of.completion.check(h->of.completion.arg, written(&h->json, o), &why) == 1;
    *feedback = kept(h, why);
    arena_free(a);
    return complete;
}

/* --- for the run --- */

static struct run_hook_tool *tools_of(const struct cinch_task *t, struct arena *a)
{
    struct run_hook_tool *list = arena_array(a, t->tools.len + 1, sizeof *list);
    size_t n = 0;
    for (struct hook *h = t->tools.first; h != NULL; h = h->next) {
        struct json *definition = NULL; /* it was read before */
        (void)!json_parse(a, str_of(h->of.tool.definition), NULL, &definition, NULL);
        list[n++] = (struct run_hook_tool) { definition, { .call = on_call, .arg = h } };
    }
    return list;
}

void task_hooks(const struct cinch_task *t, struct arena *a, struct run_hooks *ret)
{
    struct guard_callback *policies = arena_array(a, t->policies.len + 1, sizeof *policies);
    struct feedback_callback *feedback = arena_array(a, t->feedback.len + 1, sizeof *feedback);
    struct completion_callback *done = arena_array(a, t->completion.len + 1, sizeof *done);
    size_t n[3] = { 0 };
    for (struct hook *h = t->policies.first; h != NULL; h = h->next) {
        policies[n[0]++] = (struct guard_callback) { h->of.policy.name, on_check, h };
    }
    for (struct hook *h = t->feedback.first; h != NULL; h = h->next) {
        const struct cinch_feedback *f = &h->of.feedback;
        feedback[n[1]++] =
            (struct feedback_callback) { f->name, f->every_n_calls, f->every_n_seconds, on_say, h };
    }
    for (struct hook *h = t->completion.first; h != NULL; h = h->next) {
        done[n[2]++] = (struct completion_callback) { h->of.completion.name, on_claim, h };
    }
    *ret = (struct run_hooks) {
        .tools = tools_of(t, a),
        .n_tools = t->tools.len,
        .policies = policies,
        .n_policies = n[0],
        .feedback = feedback,
        .n_feedback = n[1],
        .completion = done,
        .n_completion = n[2],
    };
}
