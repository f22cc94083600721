/* SPDX-License-Identifier: MIT
 *
 * What Codex tells of its thread: items that begin and end, tokens, errors, the end of a turn. Each
 * becomes an entry of the transcript or nothing (signs of life), and calls of its own tools are
 * told to those who watch them.
 */
#include "adapters/codex_priv.h"

/* --- entries --- */

static bool is_ours(const struct codex *c, const struct json *params)
{
    struct str thread = json_str(json_get(params, "threadId"), STR_EMPTY);
    return thread.len == 0 || c->report.session_id.len == 0 || str_eq(thread, c->report.session_id);
}

void codex_entry(struct codex *c, const char *type, struct json *detail,
                 const struct json *notification)
{
    struct arena *a = c->scratch;
    struct str thread = json_str(json_get(notification, "threadId"), STR_EMPTY);
    if (notification != NULL) {
        json_setc(a, detail, "notification", json_copy(a, notification));
    }
    if (!is_ours(c, notification) && c->port.entry != NULL && !str_has_nul(thread)) {
        const char *source =
            arena_printf(a, "subagent:%.*s", STR_ARG(str_slice(thread, 0, CODEX_ID_MAX)));
        c->port.entry(c->port.owner, source, type, detail, c->raw);
    } else if (c->sink.entry != NULL) {
        c->sink.entry(c->sink.owner, type, detail, c->raw);
    }
}

static void tell_text(struct codex *c, const char *type, const char *key, struct str text,
                      const struct json *params)
{
    struct json *detail = json_object(c->scratch);
    codex_set(c, detail, key, text);
    codex_entry(c, type, detail, params);
}

/* --- items under way --- */

struct codex_item *codex_item_find(struct codex *c, struct str id)
{
    for (size_t i = 0; id.len > 0 && i < CODEX_ITEMS_MAX; i++) {
        if (c->items[i].arena != NULL && str_eq(c->items[i].id, id)) {
            return &c->items[i];
        }
    }
    return NULL;
}

struct codex_item *codex_item_of_server(struct codex *c, struct str server)
{
    for (size_t i = 0; i < CODEX_ITEMS_MAX; i++) {
        const struct json *item = c->items[i].item;
        if (c->items[i].arena != NULL && !c->items[i].asked &&
            str_eqc(json_str(json_get(item, "type"), STR_EMPTY), "mcpToolCall") &&
            str_eq(json_str(json_get(item, "server"), STR_EMPTY), server)) {
            return &c->items[i];
        }
    }
    return NULL;
}

static void forget(struct codex_item *known)
{
    if (known != NULL) {
        arena_free(known->arena);
        *known = (struct codex_item) { 0 };
    }
}

void codex_items_done(struct codex *c)
{
    for (size_t i = 0; i < CODEX_ITEMS_MAX; i++) {
        forget(&c->items[i]);
    }
}

static void remember(struct codex *c, struct str id, const struct json *item)
{
    struct codex_item *place = codex_item_find(c, id);
    if (id.len == 0 || id.len > CODEX_ID_MAX || c->raw.len > CODEX_ITEM_BYTES) {
        forget(place); /* what it was is not what it is */
        return;
    }
    for (size_t i = 0; place == NULL && i < CODEX_ITEMS_MAX; i++) {
        place = c->items[i].arena == NULL ? &c->items[i] : NULL;
    }
    if (place == NULL) {
        place = &c->items[c->next_item++ % CODEX_ITEMS_MAX];
    }
    forget(place);
    place->arena = arena_new();
    place->id = arena_str(place->arena, id);
    place->item = json_copy(place->arena, item);
}

/* --- calls of its own tools --- */

struct str codex_tool_name(struct codex *c, const struct json *item)
{
    struct str type = json_str(json_get(item, "type"), STR_EMPTY);
    if (str_eqc(type, "commandExecution")) {
        return STR("codex:command");
    }
    if (str_eqc(type, "fileChange")) {
        return STR("codex:file_change");
    }
    if (str_eqc(type, "webSearch")) {
        return STR("codex:web_search");
    }
    if (str_eqc(type, "mcpToolCall")) {
        struct str tool = json_str(json_get(item, "tool"), STR("?"));
        return str_of(
            arena_printf(c->scratch, "codex:mcp:%.*s", STR_ARG(str_slice(tool, 0, CODEX_ID_MAX))));
    }
    return STR_EMPTY;
}

static const struct json *moved_to(const struct json *change)
{
    const struct json *to = json_pointer(change, STR("/kind/move_path"));
    return json_is(to, JSON_STRING) ? to : NULL;
}

size_t codex_calls_of(const struct json *item)
{
    const struct json *changes = json_get(item, "changes");
    size_t n = 0;
    if (!str_eqc(json_str(json_get(item, "type"), STR_EMPTY), "fileChange")) {
        return 1;
    }
    for (size_t i = 0; json_is(changes, JSON_ARRAY) && i < json_len(changes); i++) {
        n += moved_to(json_item(changes, i)) == NULL ? 1 : 2;
    }
    return n == 0 ? 1 : n;
}

static struct json *change_arguments(struct codex *c, const struct json *change, bool target)
{
    struct json *made = json_object(c->scratch);
    const struct json *kind = json_get(change, "kind");
    const struct json *to = moved_to(change);
    struct str path = json_str(json_get(change, "path"), STR_EMPTY);
    struct str word = json_str(json_get(kind, "type"), json_str(kind, STR_EMPTY));
    struct str diff = json_str(json_get(change, "diff"), STR_EMPTY);
    codex_set(c, made, "file_path", target ? to->string : path);
    codex_set(c, made, "kind", word);
    codex_set(c, made, str_eqc(word, "add") ? "content" : "diff", diff);
    if (to != NULL) {
        codex_set(c, made, target ? "moved_from" : "moved_to", target ? path : to->string);
    }
    return made;
}

/* A file that is moved is two: what goes, and what comes. */
static struct json *patch_arguments(struct codex *c, const struct json *changes, size_t i)
{
    for (size_t k = 0; json_is(changes, JSON_ARRAY) && k < json_len(changes); k++) {
        const struct json *change = json_item(changes, k);
        size_t n = moved_to(change) == NULL ? 1 : 2;
        if (i < n) {
            return change_arguments(c, change, i == 1);
        }
        i -= n;
    }
    return change_arguments(c, NULL, false);
}

struct json *codex_arguments(struct codex *c, const struct json *item, size_t i)
{
    struct arena *a = c->scratch;
    struct str type = json_str(json_get(item, "type"), STR_EMPTY);
    if (str_eqc(type, "fileChange")) {
        return patch_arguments(c, json_get(item, "changes"), i);
    }
    if (str_eqc(type, "mcpToolCall")) {
        const struct json *given = json_get(item, "arguments");
        return json_is(given, JSON_OBJECT) ? json_copy(a, given) : json_object(a);
    }
    struct json *made = json_object(a);
    static const char *const keys[] = { "command", "cwd", "kind", "query" };
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        const struct json *v = json_get(item, keys[k]);
        if (json_is(v, JSON_STRING)) {
            codex_set(c, made, keys[k], v->string);
        }
    }
    return made;
}

/* Texts of the blocks of an MCP result. */
static struct str text_of_blocks(struct codex *c, const struct json *blocks)
{
    CLEANUP(buf) struct buf out = BUF_INIT(CODEX_TEXT_MAX);
    for (size_t i = 0; json_is(blocks, JSON_ARRAY) && i < json_len(blocks); i++) {
        struct str text = json_str(json_get(json_item(blocks, i), "text"), STR_EMPTY);
        if (out.len + text.len < CODEX_TEXT_MAX) {
            buf_add(&out, out.len > 0 ? STR("\n") : STR_EMPTY);
            buf_add(&out, text);
        }
    }
    return arena_str(c->scratch, buf_str(&out));
}

static struct str output_of(struct codex *c, const struct json *item)
{
    const struct json *error = json_pointer(item, STR("/error/message"));
    const struct json *blocks = json_pointer(item, STR("/result/content"));
    if (json_is(error, JSON_STRING)) {
        return error->string;
    }
    return blocks != NULL ? text_of_blocks(c, blocks)
                          : json_str(json_get(item, "aggregatedOutput"), STR_EMPTY);
}

static struct json *call_detail(struct codex *c, const struct json *item)
{
    struct json *detail = json_object(c->scratch);
    size_t n = codex_calls_of(item);
    codex_set(c, detail, "tool_name", codex_tool_name(c, item));
    codex_set(c, detail, "tool_call_id", json_str(json_get(item, "id"), STR_EMPTY));
    if (n == 1) {
        json_setc(c->scratch, detail, "input", codex_arguments(c, item, 0));
    } else {
        struct json *list = json_array(c->scratch);
        for (size_t i = 0; i < n; i++) {
            json_push(c->scratch, list, codex_arguments(c, item, i));
        }
        json_setc(c->scratch, detail, "input", list);
    }
    return detail;
}

/* A patch is a call for each of its files. */
static void observe(struct codex *c, const struct json *item, struct str output, bool success)
{
    const struct json *result = json_get(item, "result");
    size_t n = codex_calls_of(item);
    struct native_call call = {
        .name = codex_tool_name(c, item),
        .call_id = json_str(json_get(item, "id"), STR_EMPTY),
        .result = json_is(result, JSON_OBJECT) ? result : NULL,
        .output = output,
        .success = success,
    };
    for (size_t i = 0; i < n; i++) {
        call.arguments = codex_arguments(c, item, i);
        c->port.observed(c->port.owner, &call);
    }
}

static void ask_feedback(struct codex *c, const struct json *item, bool success)
{
    struct native_call call = {
        .name = codex_tool_name(c, item),
        .call_id = json_str(json_get(item, "id"), STR_EMPTY),
        .arguments = codex_arguments(c, item, 0),
        .success = success,
    };
    codex_ask_feedback(c, &call);
}

static void call_over(struct codex *c, const struct json *item, const struct json *params)
{
    struct str status = json_str(json_get(item, "status"), STR_EMPTY);
    struct str output = output_of(c, item);
    bool search = str_eqc(json_str(json_get(item, "type"), STR_EMPTY), "webSearch");
    bool success = str_eqc(status, "completed") || (search && status.len == 0);
    struct json *detail = call_detail(c, item);
    const struct json *code = json_get(item, "exitCode");
    codex_set(c, detail, "status", status);
    if (json_is(code, JSON_INT)) {
        json_setc(c->scratch, detail, "exit_code", json_integer(c->scratch, code->integer));
    }
    codex_set(c, detail, success ? "output" : "error", output);
    codex_entry(c, "tool_result", detail, params);
    observe(c, item, output, success);
    if (c->has_feedback && !str_eqc(status, "declined")) {
        ask_feedback(c, item, success);
    }
}

/* --- items --- */

static void on_started(struct codex *c, const struct json *params)
{
    const struct json *item = json_get(params, "item");
    struct str type = json_str(json_get(item, "type"), STR_EMPTY);
    if (str_eqc(type, "agentMessage") && is_ours(c, params)) {
        buf_reset(&c->partial);
    }
    if (codex_tool_name(c, item).len > 0) {
        remember(c, json_str(json_get(item, "id"), STR_EMPTY), item);
        codex_entry(c, "tool_use", call_detail(c, item), params);
    }
}

static void on_message(struct codex *c, const struct json *item, const struct json *params)
{
    struct str text = json_str(json_get(item, "text"), STR_EMPTY);
    if (is_ours(c, params)) {
        codex_keep(&c->said, text);
        buf_reset(&c->partial);
    }
    tell_text(c, "assistant_message", "text", text, params);
}

static void on_reasoning(struct codex *c, const struct json *item, const struct json *params)
{
    static const char *const keys[] = { "summary", "content" };
    CLEANUP(buf) struct buf out = BUF_INIT(CODEX_TEXT_MAX);
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        const struct json *list = json_get(item, keys[k]);
        for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
            struct str text = json_str(json_item(list, i), STR_EMPTY);
            if (text.len > 0 && out.len + text.len < CODEX_TEXT_MAX) {
                buf_add(&out, out.len > 0 ? STR("\n") : STR_EMPTY);
                buf_add(&out, text);
            }
        }
    }
    if (out.len > 0) {
        tell_text(c, "thinking", "text", buf_str(&out), params);
    }
}

static void on_completed(struct codex *c, const struct json *params)
{
    const struct json *item = json_get(params, "item");
    struct str type = json_str(json_get(item, "type"), STR_EMPTY);
    if (str_eqc(type, "agentMessage")) {
        on_message(c, item, params);
    } else if (str_eqc(type, "reasoning")) {
        on_reasoning(c, item, params);
    } else if (str_eqc(type, "contextCompaction")) {
        tell_text(c, "system_event", "subtype", STR("compaction"), params);
    } else if (codex_tool_name(c, item).len > 0) {
        forget(codex_item_find(c, json_str(json_get(item, "id"), STR_EMPTY)));
        call_over(c, item, params);
    } else if (!str_eqc(type, "userMessage") && !str_eqc(type, "dynamicToolCall")) {
        tell_text(c, "unknown", "type", str_slice(type, 0, CODEX_ID_MAX), params);
    }
}

/* --- tokens --- */

static int64_t tokens(const struct json *usage, const char *key)
{
    int64_t n = json_int(json_get(usage, key), 0);
    return n > 0 && n < INT64_MAX / 1024 ? n : 0;
}

/* What Codex calls input holds what came from the cache; here they stand side by side. */
static struct agent_usage usage_of(const struct json *usage)
{
    struct agent_usage u = {
        .known = true,
        .output = tokens(usage, "outputTokens"),
        .cache_read = tokens(usage, "cachedInputTokens"),
        .cache_write = tokens(usage, "cacheWriteInputTokens"),
        .reasoning = tokens(usage, "reasoningOutputTokens"),
    };
    int64_t input = tokens(usage, "inputTokens") - u.cache_read - u.cache_write;
    u.input = input > 0 ? input : 0;
    return u;
}

static int64_t more(int64_t now, int64_t before)
{
    return now > before ? now - before : 0;
}

/* What a resumed thread has used is reported with the id of its last turn, before or after the new
 * turn has started. */
static bool is_of_earlier_turn(const struct codex *c, const struct json *params)
{
    struct str turn = json_str(json_get(params, "turnId"), STR_EMPTY);
    return c->resume.len > 0 && !c->report.usage.known && turn.len > 0 &&
           !str_eq(turn, buf_str(&c->turn_id));
}

static void on_usage(struct codex *c, const struct json *params)
{
    struct arena *a = c->scratch;
    const struct json *whole = json_pointer(params, STR("/tokenUsage/total"));
    if (!is_ours(c, params) || !json_is(whole, JSON_OBJECT)) {
        return;
    }
    struct agent_usage now = usage_of(whole);
    struct agent_usage last = c->total;
    struct agent_usage *sum = &c->report.usage;
    c->total = now;
    if (c->stage != CODEX_TURN || is_of_earlier_turn(c, params)) { /* of a resumed thread */
        c->base = now;
        return;
    }
    if (c->resume.len > 0 && !c->base.known) { /* nobody has said it before */
        struct agent_usage first = usage_of(json_pointer(params, STR("/tokenUsage/last")));
        c->base = (struct agent_usage) { .known = true,
                                         .input = more(now.input, first.input),
                                         .output = more(now.output, first.output),
                                         .cache_read = more(now.cache_read, first.cache_read),
                                         .cache_write = more(now.cache_write, first.cache_write),
                                         .reasoning = more(now.reasoning, first.reasoning) };
        last = c->base;
    }
    sum->known = true;
    sum->input = more(now.input, c->base.input);
    sum->output = more(now.output, c->base.output);
    sum->cache_read = more(now.cache_read, c->base.cache_read);
    sum->cache_write = more(now.cache_write, c->base.cache_write);
    sum->reasoning = more(now.reasoning, c->base.reasoning);
    if (now.input + now.cache_read == last.input + last.cache_read && now.output == last.output) {
        return; /* told again, because a request has failed */
    }
    struct json *detail = json_object(a);
    json_setc(a, detail, "input_tokens", json_integer(a, more(now.input, last.input)));
    json_setc(a, detail, "output_tokens", json_integer(a, more(now.output, last.output)));
    json_setc(a, detail, "cache_read_tokens",
              json_integer(a, more(now.cache_read, last.cache_read)));
    json_setc(a, detail, "cache_write_tokens",
              json_integer(a, more(now.cache_write, last.cache_write)));
    json_setc(a, detail, "reasoning_tokens", json_integer(a, more(now.reasoning, last.reasoning)));
    codex_entry(c, "token_usage", detail, params);
}

/* --- the end of a turn --- */

/* codexErrorInfo is a word, or an object with one member of that name. */
static struct str kind_of(const struct json *error)
{
    const struct json *info = json_get(error, "codexErrorInfo");
    if (json_is(info, JSON_OBJECT) && json_len(info) > 0) {
        return info->object.members[0].key;
    }
    return json_str(info, STR("other"));
}

static struct str error_text(struct codex *c, const struct json *error)
{
    struct str kind = str_slice(kind_of(error), 0, 100);
    struct str more = json_str(json_get(error, "additionalDetails"), STR_EMPTY);
    struct str text = json_str(json_get(error, "message"), STR("no reason given"));
    const char *first = arena_printf(c->scratch, "%.*s%s%.*s", STR_ARG(str_slice(text, 0, 2000)),
                                     more.len > 0 ? ": " : "", STR_ARG(str_slice(more, 0, 1000)));
    return str_eqc(kind, "other")
               ? str_of(first)
               : str_of(arena_printf(c->scratch, "%s (%.*s)", first, STR_ARG(kind)));
}

/* Codex forwards the schema and does not look at the answer: the run does. */
static void take_structured(struct codex *c)
{
    struct json *v;
    if (c->schema != NULL && json_parse(c->keep, buf_str(&c->said), NULL, &v, NULL) == 0) {
        c->report.structured = v;
    }
}

static void on_turn_completed(struct codex *c, const struct json *params)
{
    const struct json *turn = json_get(params, "turn");
    struct str id = json_str(json_get(turn, "id"), STR_EMPTY);
    struct str status = json_str(json_get(turn, "status"), STR_EMPTY);
    if (c->stage != CODEX_TURN || !is_ours(c, params) ||
        (c->turn_id.len > 0 && !str_eq(id, buf_str(&c->turn_id)))) {
        return; /* another one, or twice */
    }
    c->stage = CODEX_WAITING;
    c->report.usage.turns++;
    codex_items_done(c);
    codex_cancel_asks(c, false);
    if (str_eqc(status, "completed")) {
        c->answered = true;
        take_structured(c);
        codex_end_turn(c, "end_turn");
    } else if (str_eqc(status, "interrupted")) {
        if (!c->interrupted) {
            codex_failed(c, "Codex interrupted its turn");
        }
        codex_end_turn(c, "interrupted");
    } else {
        struct str why = error_text(c, json_get(turn, "error"));
        tell_text(c, "error", "error", why, params);
        codex_failed(c, "%.*s", STR_ARG(why));
        codex_end_turn(c, "error");
    }
}

/* --- all of them --- */

static void on_error(struct codex *c, const struct json *params)
{
    struct json *detail = json_object(c->scratch);
    if (!json_bool(json_get(params, "willRetry"), false)) {
        return; /* the end of the turn says it again */
    }
    codex_set(c, detail, "subtype", STR("retry"));
    codex_set(c, detail, "error", error_text(c, json_get(params, "error")));
    codex_entry(c, "system_event", detail, params);
}

static void on_delta(struct codex *c, const struct json *params)
{
    struct str text = json_str(json_get(params, "delta"), STR_EMPTY);
    if (is_ours(c, params) && c->partial.len + text.len < CODEX_TEXT_MAX) {
        buf_add(&c->partial, text);
    }
}

static void on_turn_started(struct codex *c, const struct json *params)
{
    if (is_ours(c, params)) {
        codex_turn_began(c, json_get(params, "turn"));
    }
    tell_text(c, "system_event", "subtype", STR("turn_started"), params);
}

/* Signs of life. */
static bool is_silent(struct str method)
{
    static const char *const silent[] = { "item/reasoning/summaryPartAdded",
                                          "item/commandExecution/terminalInteraction",
                                          "item/mcpToolCall/progress",
                                          "item/fileChange/patchUpdated", "turn/diff/updated" };
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        if (str_eqc(method, silent[i])) {
            return true;
        }
    }
    return str_ends(method, STR("Delta")) || str_ends(method, STR("/delta"));
}

static void on_other(struct codex *c, const struct jsonrpc_message *m)
{
    static const char *const told[] = { "warning", "configWarning", "guardianWarning",
                                        "model/rerouted", "turn/plan/updated" };
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        if (str_eqc(m->method, told[i])) {
            tell_text(c, "system_event", "subtype", m->method, m->params);
            return;
        }
    }
    if (!is_silent(m->method) &&
        (str_starts(m->method, STR("item/")) || str_starts(m->method, STR("turn/")))) {
        tell_text(c, "unknown", "method", m->method, m->params);
    }
}

void codex_notified(struct codex *c, const struct jsonrpc_message *m)
{
    static const struct {
        const char *method;
        void (*take)(struct codex *c, const struct json *params);
    } known[] = {
        { "item/agentMessage/delta", on_delta },
        { "item/started", on_started },
        { "item/completed", on_completed },
        { "thread/tokenUsage/updated", on_usage },
        { "turn/completed", on_turn_completed },
        { "turn/started", on_turn_started },
        { "error", on_error },
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eqc(m->method, known[i].method)) {
            known[i].take(c, m->params);
            return;
        }
    }
    on_other(c, m);
}
