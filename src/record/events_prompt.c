/* SPDX-License-Identifier: MIT
 *
 * WINK's telemetry: the four prompt.* log events and PromptRendered, RenderedTools, ToolInvoked,
 * PromptExecuted, with the field names that its consumers know.
 */
#include "record/events_priv.h"
#include "record/redact.h"

enum { RENDERED_OUTPUT_CHARACTERS = 1000 };

/* Of arguments and of a result. A call is told whatever it returned, and a line has its limit. */
#define TOOL_TREE_MAX ((size_t)4 << 20)

static const char *prompt_name(struct events *ev, const struct event_prompt *p)
{
    return p->name != NULL ? p->name : arena_printf(ev->arena, "%s:%s", p->ns, p->key);
}

static struct json *prompt_context(struct events *ev, const struct event_prompt *p)
{
    struct json *c = event_context(ev);
    event_text(ev, c, "prompt_name", prompt_name(ev, p));
    event_text(ev, c, "adapter", p->adapter);
    return c;
}

void events_render_start(struct events *ev, const struct event_prompt *p)
{
    event_send(ev, EVENT_PROMPT_RENDER_START, NULL, prompt_context(ev, p));
}

void events_render_complete(struct events *ev, const struct event_prompt *p, int sections,
                            int tools, size_t text_length)
{
    struct json *c = prompt_context(ev, p);
    event_int(ev, c, "section_count", sections);
    event_int(ev, c, "tool_count", tools);
    event_int(ev, c, "text_length", (int64_t)text_length);
    event_send(ev, EVENT_PROMPT_RENDER_COMPLETE, NULL, c);
}

void events_call_start(struct events *ev, const struct event_prompt *p, const char *model,
                       nsec timeout)
{
    struct json *c = prompt_context(ev, p);
    event_text(ev, c, "model", model);
    event_ms(ev, c, "timeout_ms", timeout > 0 ? timeout : -1);
    event_send(ev, EVENT_PROMPT_CALL_START, NULL, c);
}

void events_call_complete(struct events *ev, const struct event_prompt *p,
                          const struct event_call *call)
{
    struct json *c = prompt_context(ev, p);
    event_int(ev, c, "duration_ms", call->took / NSEC_PER_MS);
    event_count(ev, c, "input_tokens", call->input_tokens);
    event_count(ev, c, "output_tokens", call->output_tokens);
    event_text(ev, c, "stop_reason", call->stop_reason);
    event_send(ev, EVENT_PROMPT_CALL_COMPLETE, NULL, c);
}

void events_prompt_error(struct events *ev, const struct event_prompt *p, const char *phase,
                         enum reason reason, const char *error)
{
    struct json *c = prompt_context(ev, p);
    event_word(ev, c, "phase", phase);
    event_word(ev, c, "reason", reason_word(reason));
    event_text(ev, c, "error", error);
    event_send(ev, EVENT_PROMPT_ERROR, error, c);
}

void events_throttled(struct events *ev, const struct event_prompt *p,
                      const struct event_throttle *throttle)
{
    struct json *c = prompt_context(ev, p);
    event_word(ev, c, "kind", throttle->kind);
    event_int(ev, c, "attempt", throttle->attempt);
    event_ms(ev, c, "delay_ms", throttle->delay);
    event_ms(ev, c, "retry_after_ms", throttle->retry_after);
    event_bool(ev, c, "retry_safe", throttle->retry_safe);
    event_send(ev, EVENT_PROMPT_THROTTLED, NULL, c);
}

/* The last fields of the four telemetry events; returns the id in ev->arena. */
static const char *put_identity(struct events *ev, struct json *c, bool with_run_context)
{
    char now[CLOCK_ISO_LEN];
    char *id = arena_alloc(ev->arena, ID_LEN);
    event_word(ev, c, "created_at", jsonl_now(&ev->out, now));
    if (with_run_context) {
        json_setc(ev->arena, c, "run_context", ev->run_context);
    }
    event_word(ev, c, "event_id", id_new(id));
    return id;
}

void events_prompt_rendered(struct events *ev, const struct event_prompt *p, struct str text,
                            char ret_id[ID_LEN])
{
    struct json *c = event_context(ev);
    event_text(ev, c, "prompt_ns", p->ns);
    event_text(ev, c, "prompt_key", p->key);
    event_text(ev, c, "prompt_name", p->name);
    event_text(ev, c, "adapter", p->adapter);
    event_text(ev, c, "session_id", p->session_id);
    json_setc(ev->arena, c, "render_inputs", json_array(ev->arena));
    event_str(ev, c, "rendered_prompt", text);
    event_word(ev, c, "descriptor", NULL);
    memcpy(ret_id, put_identity(ev, c, true), ID_LEN);
    event_send(ev, EVENT_PROMPT_RENDERED, NULL, c);
}

void events_rendered_tools(struct events *ev, const struct event_prompt *p, const char *render_id,
                           struct json *tools)
{
    struct json *c = event_context(ev);
    event_text(ev, c, "prompt_ns", p->ns);
    event_text(ev, c, "prompt_key", p->key);
    event_tree(ev, c, "tools", tools != NULL ? tools : json_array(ev->arena));
    event_word(ev, c, "render_event_id", render_id);
    event_text(ev, c, "session_id", p->session_id);
    (void)put_identity(ev, c, false);
    event_send(ev, EVENT_RENDERED_TOOLS, NULL, c);
}

/* Cut between characters: continuation bytes of UTF-8 do not start one. */
static struct str first_characters(struct str s, size_t count)
{
    for (size_t i = 0; i < s.len; i++) {
        bool starts = ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
        if (starts && count-- == 0) {
            return str_slice(s, 0, i);
        }
    }
    return s;
}

static void bounded_tree(struct events *ev, struct json *c, const char *key, struct json *foreign)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TOOL_TREE_MAX);
    if (foreign != NULL && json_write(foreign, JSON_COMPACT, &text, NULL) < 0) {
        event_word(ev, c, key,
                   arena_printf(ev->arena, "[omitted: more than %zu bytes]", TOOL_TREE_MAX));
    } else {
        event_tree(ev, c, key, foreign);
    }
}

void events_tool_invoked(struct events *ev, const struct event_prompt *p,
                         const struct event_tool *tool)
{
    struct json *c = prompt_context(ev, p);
    event_text(ev, c, "name", tool->name);
    bounded_tree(ev, c, "params", tool->params);
    bounded_tree(ev, c, "result", tool->result);
    event_bool(ev, c, "success", tool->success);
    event_word(ev, c, "failure", tool->failure);
    event_text(ev, c, "policy", tool->policy);
    event_ms(ev, c, "duration_ms", tool->took > 0 ? tool->took : -1);
    event_int(ev, c, "leaked", tool->leaked);
    event_text(ev, c, "session_id", p->session_id);
    event_word(ev, c, "usage", NULL);
    /* Redacted before it is cut: a cut secret would not be recognised. */
    struct str output = redact_str(ev->redactor, ev->arena, tool->output);
    event_str(ev, c, "rendered_output", first_characters(output, RENDERED_OUTPUT_CHARACTERS));
    event_text(ev, c, "call_id", tool->call_id);
    (void)put_identity(ev, c, true);
    event_send(ev, EVENT_TOOL_INVOKED, tool->name, c);
}

void events_executed(struct events *ev, const struct event_prompt *p,
                     const struct event_executed *executed)
{
    struct arena *a = ev->arena;
    struct json *c = prompt_context(ev, p);
    struct json *result = json_object(a);
    event_text(ev, result, "prompt_name", prompt_name(ev, p));
    if (executed->text.ptr != NULL) {
        event_str(ev, result, "text", executed->text);
    } else {
        event_word(ev, result, "text", NULL);
    }
    event_tree(ev, result, "output", executed->output);
    json_setc(a, c, "result", result);
    event_text(ev, c, "session_id", p->session_id);
    struct json *usage = json_null(a);
    if (executed->input_tokens >= 0 || executed->output_tokens >= 0 ||
        executed->cached_tokens >= 0) {
        usage = json_object(a);
        event_count(ev, usage, "input_tokens", executed->input_tokens);
        event_count(ev, usage, "output_tokens", executed->output_tokens);
        event_count(ev, usage, "cached_tokens", executed->cached_tokens);
    }
    json_setc(a, c, "usage", usage);
    (void)put_identity(ev, c, true);
    event_send(ev, EVENT_PROMPT_EXECUTED, NULL, c);
}
