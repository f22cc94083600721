/* SPDX-License-Identifier: MIT
 *
 * Lines of Claude Code's stream as transcript entries: a message with several blocks becomes an
 * entry for what was said and one for each call or result; what a sub-agent does has a source of
 * its own. Also the table of calls under way, from which a result learns its tool's name.
 */
#include "adapters/claude_priv.h"

#include <stdlib.h>

/* Inputs of calls under way, all together. Reached by calls that never end; the oldest are then
 * forgotten. */
#define CALLS_BYTES ((size_t)64 << 20)
/* A program that prints garbage prints a lot of it; stdout.log has the rest. */
enum { GARBAGE_TOLD = 100 };
/* Of a sub-agent's name. */
enum { AGENT_ID_MAX = 128 };

/* --- entries --- */

void claude_entry(struct claude *c, const char *source, const char *type, struct json *detail,
                  struct str raw)
{
    if (source != NULL && c->port.entry != NULL) {
        c->port.entry(c->port.owner, source, type, detail, raw);
    } else if (c->sink.entry != NULL) {
        c->sink.entry(c->sink.owner, type, detail, raw);
    }
}

void claude_entry_text(struct claude *c, const char *source, const char *type, struct str text)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *detail = json_object(a);
    json_setc(a, detail, "text", json_string(a, text));
    claude_entry(c, source, type, detail, STR_EMPTY);
}

void claude_entry_garbage(struct claude *c, struct str line, const char *why)
{
    if (c->garbage_told++ < GARBAGE_TOLD) {
        struct json *detail = json_object(c->scratch);
        json_setc(c->scratch, detail, "parse_error", json_cstr(c->scratch, why));
        claude_entry(c, NULL, "unknown", detail, line);
    }
}

/* --- calls --- */

static void call_done(struct claude *c, struct claude_call *call)
{
    c->calls_bytes -= call->bytes;
    arena_free(call->arena);
    *call = (struct claude_call) { 0 };
}

void claude_calls_done(struct claude *c)
{
    for (size_t i = 0; i < CALLS_MAX; i++) {
        call_done(c, &c->calls[i]);
    }
    for (size_t i = 0; i < SUBAGENTS_MAX; i++) {
        arena_free(c->subagents[i].arena);
    }
}

static struct claude_call *call_find(struct claude *c, struct str id)
{
    for (size_t i = 0; i < CALLS_MAX; i++) {
        if (c->calls[i].arena != NULL && str_eq(c->calls[i].id, id)) {
            return &c->calls[i];
        }
    }
    return NULL;
}

static struct claude_call *call_place(struct claude *c)
{
    struct claude_call *oldest = &c->calls[c->next_call];
    for (size_t i = 0; i < CALLS_MAX && oldest->arena != NULL; i++) {
        struct claude_call *next = &c->calls[(c->next_call + i) % CALLS_MAX];
        oldest = next->arena == NULL ? next : oldest;
    }
    call_done(c, oldest);
    c->next_call = ((size_t)(oldest - c->calls) + 1) % CALLS_MAX;
    return oldest;
}

struct claude_call *claude_call_begin(struct claude *c, struct str id, struct str name,
                                      const struct json *input)
{
    struct claude_call *call = id.len == 0 ? NULL : call_find(c, id);
    if (call != NULL || id.len == 0) {
        return call;
    }
    call = call_place(c);
    call->arena = arena_new();
    call->id = arena_str(call->arena, id);
    call->name = arena_str(call->arena, name);
    call->input = input == NULL ? NULL : json_copy(call->arena, input);
    call->bytes = arena_used(call->arena);
    c->calls_bytes += call->bytes;
    for (size_t i = 0; i < CALLS_MAX && c->calls_bytes > CALLS_BYTES; i++) {
        struct claude_call *old = &c->calls[(c->next_call + i) % CALLS_MAX];
        if (old != call) {
            call_done(c, old);
        }
    }
    return call;
}

bool claude_is_native(const struct claude *c, struct str tool)
{
    return !(c->prefix.len > 0 && str_starts(tool, c->prefix)) &&
           !(c->schema != NULL && str_eqc(tool, "StructuredOutput"));
}

void claude_call_observed(struct claude *c, struct claude_call *call, const struct json *result,
                          struct str output, bool success)
{
    if (call->observed || call->denied || call->name.len == 0 || !claude_is_native(c, call->name)) {
        return;
    }
    call->observed = true;
    if (c->port.observed != NULL) {
        c->port.observed(c->port.owner, &(struct native_call) { .name = call->name,
                                                                .call_id = call->id,
                                                                .arguments = call->input,
                                                                .result = result,
                                                                .output = output,
                                                                .success = success });
    }
}

/* --- sub-agents --- */

const char *claude_source_of_agent(struct claude *c, struct str agent_id)
{
    struct str id = str_slice(agent_id, 0, AGENT_ID_MAX);
    return id.len == 0 || str_has_nul(id) ? "subagent:unknown"
                                          : arena_printf(c->scratch, "subagent:%.*s", STR_ARG(id));
}

const char *claude_source(struct claude *c, struct str parent)
{
    if (parent.len == 0) {
        return NULL;
    }
    for (size_t i = 0; i < SUBAGENTS_MAX; i++) {
        if (c->subagents[i].arena != NULL && str_eq(c->subagents[i].call_id, parent)) {
            return c->subagents[i].source;
        }
    }
    return claude_source_of_agent(c, parent); /* its beginning was not told */
}

static struct claude_subagent *subagent_find(struct claude *c, const char *source)
{
    for (size_t i = 0; i < SUBAGENTS_MAX; i++) {
        if (c->subagents[i].arena != NULL && strcmp(c->subagents[i].source, source) == 0) {
            return &c->subagents[i];
        }
    }
    return NULL;
}

bool claude_said(struct claude *c, const char *source, struct str text)
{
    const struct claude_subagent *s = subagent_find(c, source);
    char hash[SHA256_HEX];
    sha256_hex(text, hash);
    return s != NULL && strcmp(s->last_text, hash) == 0;
}

enum claude_background claude_background_of(const struct json *tasks, const char *type)
{
    static const char *const commands[] = { "shell", "monitor", "local_bash" };
    enum claude_background found = CLAUDE_IDLE;
    for (size_t i = 0; json_is(tasks, JSON_ARRAY) && i < json_len(tasks); i++) {
        struct str of = json_str(json_get(json_item(tasks, i), type), STR("shell"));
        bool command = false;
        for (size_t k = 0; k < ARRAY_LEN(commands); k++) {
            command = command || str_eqc(of, commands[k]);
        }
        found = !command ? CLAUDE_AGENTS : found == CLAUDE_IDLE ? CLAUDE_SHELLS : found;
    }
    return found;
}

/* {"subtype":"task_started","task_id":…,"tool_use_id":…}: lines of the sub-agent name the call. */
static void begin_subagent(struct claude *c, const struct json *line)
{
    struct str task = json_str(json_get(line, "task_id"), STR_EMPTY);
    struct str call = json_str(json_get(line, "tool_use_id"), STR_EMPTY);
    if (task.len == 0 || call.len == 0) {
        return;
    }
    struct claude_subagent *s = &c->subagents[c->next_subagent];
    c->next_subagent = (c->next_subagent + 1) % SUBAGENTS_MAX;
    arena_free(s->arena);
    s->arena = arena_new();
    s->call_id = arena_str(s->arena, call);
    s->source = arena_dup(s->arena, str_of(claude_source_of_agent(c, task)));
    s->last_text[0] = '\0';
    /* One in the foreground gets its prompt in a line of its own. */
    struct str prompt = json_str(json_get(line, "prompt"), STR_EMPTY);
    if (prompt.len > 0 && json_bool(json_get(line, "is_backgrounded"), false)) {
        claude_entry_text(c, s->source, "user_message", prompt);
    }
}

/* The sub-agents that it waited for are done: another turn begins now, or none. */
static void tasks_changed(struct claude *c, const struct json *line)
{
    enum claude_background now = claude_background_of(json_get(line, "tasks"), "task_type");
    if (c->waits && now != CLAUDE_AGENTS) {
        c->waits = false;
        c->background = CLAUDE_SHELLS;
        c->turn_due = true;
    }
}

void claude_turn_began(struct claude *c)
{
    if (c->background != CLAUDE_IDLE) {
        c->waits = false;
        c->background = CLAUDE_AGENTS; /* it is at work until the next result */
        c->turn_due = true;
    }
}

/* --- messages --- */

/* The texts of a result: a string, or blocks. */
static struct str text_of(struct arena *a, const struct json *content)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (json_is(content, JSON_STRING)) {
        return content->string;
    }
    for (size_t i = 0; i < json_len(content) && json_is(content, JSON_ARRAY); i++) {
        struct str text = json_str(json_get(json_item(content, i), "text"), STR_EMPTY);
        if (text.len > 0) {
            buf_add(&out, out.len > 0 ? STR("\n") : STR_EMPTY);
            buf_add(&out, text); /* less than the line it came from */
        }
    }
    return arena_str(a, buf_str(&out));
}

static void tell_call(struct claude *c, const char *source, const struct json *block)
{
    struct arena *a = c->scratch;
    struct str id = json_str(json_get(block, "id"), STR_EMPTY);
    struct str name = json_str(json_get(block, "name"), STR_EMPTY);
    const struct json *input = json_get(block, "input");
    struct json *detail = json_object(a);
    (void)claude_call_begin(c, id, name, json_is(input, JSON_OBJECT) ? input : NULL);
    json_setc(a, detail, "tool_name", json_string(a, name));
    json_setc(a, detail, "tool_call_id", json_string(a, id));
    json_setc(a, detail, "input", json_copy(a, input));
    json_setc(a, detail, "sdk_entry", json_copy(a, block));
    claude_entry(c, source, "tool_use", detail, STR_EMPTY);
}

static void tell_result(struct claude *c, const char *source, const struct json *block,
                        const struct json *result, struct str raw)
{
    struct arena *a = c->scratch;
    struct str id = json_str(json_get(block, "tool_use_id"), STR_EMPTY);
    bool is_error = json_bool(json_get(block, "is_error"), false);
    struct str text = text_of(a, json_get(block, "content"));
    struct claude_call *call = call_find(c, id);
    struct json *detail = json_object(a);
    if (call != NULL && call->name.len > 0) {
        json_setc(a, detail, "tool_name", json_string(a, call->name));
    }
    json_setc(a, detail, "tool_call_id", json_string(a, id));
    json_setc(a, detail, is_error ? "error" : "output", json_string(a, text));
    json_setc(a, detail, "sdk_entry", json_copy(a, block));
    claude_entry(c, source, "tool_result", detail, raw);
    if (call != NULL) {
        struct claude_call over = *call; /* taken out first: who hears of it may come back here */
        *call = (struct claude_call) { 0 };
        c->calls_bytes -= over.bytes;
        claude_call_observed(c, &over, result, text, !is_error);
        arena_free(over.arena);
    }
}

/* What of a message is neither a call nor a result, as one entry. */
static bool tell_words(struct claude *c, const char *source, const char *type,
                       const struct json *line, struct str raw)
{
    struct arena *a = c->scratch;
    const struct json *content = json_pointer(line, STR("/message/content"));
    struct json *rest = json_array(a);
    const char *kind = type;
    for (size_t i = 0; json_is(content, JSON_ARRAY) && i < json_len(content); i++) {
        struct json *block = json_item(content, i);
        struct str of = json_str(json_get(block, "type"), STR_EMPTY);
        if (str_eqc(of, "tool_use") || str_eqc(of, "tool_result")) {
            continue;
        }
        kind = str_eqc(of, "thinking") || str_eqc(of, "redacted_thinking") ? "thinking" : kind;
        json_push(a, rest, block);
    }
    if (json_is(content, JSON_ARRAY) && json_len(rest) == 0) {
        return false;
    }
    struct str text = text_of(a, json_is(content, JSON_ARRAY) ? rest : content);
    if (strcmp(kind, "thinking") == 0) {
        text = json_str(json_get(json_item(rest, 0), "thinking"), text);
    }
    struct json *detail = json_object(a);
    json_setc(a, detail, strcmp(type, "error") == 0 ? "error" : "text", json_string(a, text));
    json_setc(a, detail, "sdk_entry", json_copy(a, line));
    claude_entry(c, source, kind, detail, raw);
    return true;
}

/* Text of the main agent: what the report has if no result comes. Blocks of one message come one
 * by one, under the same id; only the last is kept. */
static void note_text(struct claude *c, const struct json *content)
{
    struct str text = text_of(c->scratch, content);
    if (text.len > 0) {
        claude_keep(&c->text, text);
    }
}

static void note_subagent_text(struct claude *c, const char *source, const struct json *content)
{
    struct claude_subagent *s = subagent_find(c, source);
    struct str text = text_of(c->scratch, content);
    if (s != NULL && text.len > 0) {
        sha256_hex(text, s->last_text);
    }
}

void claude_message(struct claude *c, const struct json *line, struct str raw)
{
    const struct json *content = json_pointer(line, STR("/message/content"));
    struct str parent = json_str(json_get(line, "parent_tool_use_id"), STR_EMPTY);
    const char *source = claude_source(c, parent);
    bool of_user = str_eqc(json_str(json_get(line, "type"), STR_EMPTY), "user");
    bool failed = !of_user && json_get(line, "error") != NULL; /* written by Claude Code itself */
    if (json_bool(json_get(line, "isReplay"), false)) {
        return; /* our own words */
    }
    const char *type = of_user ? "user_message" : failed ? "error" : "assistant_message";
    bool told = tell_words(c, source, type, line, raw);
    if (failed) {
        claude_keep(&c->error, text_of(c->scratch, content));
    } else if (!of_user && source == NULL) {
        note_text(c, content);
    } else if (!of_user) {
        note_subagent_text(c, source, content);
    }
    size_t n = json_is(content, JSON_ARRAY) ? json_len(content) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct json *block = json_item(content, i);
        struct str of = json_str(json_get(block, "type"), STR_EMPTY);
        if (str_eqc(of, "tool_use") && !of_user) {
            tell_call(c, source, block);
        } else if (str_eqc(of, "tool_result") && of_user) {
            tell_result(c, source, block, n == 1 ? json_get(line, "tool_use_result") : NULL,
                        told ? STR_EMPTY : raw);
            told = true;
        }
    }
}

/* --- system lines --- */

void claude_system(struct claude *c, const struct json *line, struct str raw)
{
    /* Signs of life, many a second */
    static const char *const silent[] = { "status", "thinking_tokens", "task_progress" };
    struct arena *a = c->scratch;
    struct str subtype = json_str(json_get(line, "subtype"), STR_EMPTY);
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        if (str_eqc(subtype, silent[i])) {
            return;
        }
    }
    if (str_eqc(subtype, "task_started")) {
        begin_subagent(c, line);
    } else if (str_eqc(subtype, "background_tasks_changed")) {
        tasks_changed(c, line);
    }
    struct json *detail = json_object(a);
    json_setc(a, detail, "subtype",
              json_string(a, str_eqc(subtype, "compact_boundary") ? STR("compaction") : subtype));
    json_setc(a, detail, "sdk_entry", json_copy(a, line));
    claude_entry(c, NULL, "system_event", detail, raw);
}
