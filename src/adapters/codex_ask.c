/* SPDX-License-Identifier: MIT
 *
 * What Codex asks of us: may it run a command, apply a patch, use a tool of a server; carry out a
 * tool of the run. The run decides. Everything else is refused by name.
 *
 * An approval is yes or no. Why it was no, the model is told by words into its turn, which go ahead
 * of the answer, so that its next request has them.
 *
 * A policy must not be passed by: what cannot be asked is denied.
 */
#include "adapters/codex_priv.h"

/* --- places --- */

/* NULL: too many wait. */
static struct codex_ask *new_ask(struct codex *c, enum codex_ask_kind kind,
                                 const struct json *rpc_id, size_t parts)
{
    for (size_t i = 0; i < CODEX_ASKS_MAX; i++) {
        struct codex_ask *q = &c->asks[i];
        if (q->arena == NULL) {
            struct arena *a = arena_new();
            *q = (struct codex_ask) { .arena = a,
                                      .kind = kind,
                                      .first = c->ask_ids + 1,
                                      .open = parts >= 64 ? UINT64_MAX : ((uint64_t)1 << parts) - 1,
                                      .rpc_id = rpc_id == NULL ? NULL : json_copy(a, rpc_id) };
            c->ask_ids += parts;
            return q;
        }
    }
    return NULL;
}

static void ask_done(struct codex_ask *q)
{
    arena_free(q->arena);
    *q = (struct codex_ask) { 0 };
}

void codex_asks_done(struct codex *c)
{
    for (size_t i = 0; i < CODEX_ASKS_MAX; i++) {
        ask_done(&c->asks[i]);
    }
}

/* NULL: it was called off, or answered before. */
static struct codex_ask *answered_ask(struct codex *c, uint64_t id)
{
    for (size_t i = 0; i < CODEX_ASKS_MAX; i++) {
        struct codex_ask *q = &c->asks[i];
        if (q->arena == NULL || id < q->first || id - q->first >= 64) {
            continue;
        }
        uint64_t bit = (uint64_t)1 << (id - q->first);
        if ((q->open & bit) != 0) {
            q->open &= ~bit;
            return q;
        }
    }
    return NULL;
}

/* --- approvals --- */

static void decide(struct codex *c, enum codex_ask_kind kind, const struct json *rpc_id,
                   const char *word)
{
    struct arena *a = c->scratch;
    struct json *result = json_object(a);
    bool elicitation = kind == CODEX_ASK_ELICITATION;
    codex_set(c, result, elicitation ? "action" : "decision", str_of(word));
    if (elicitation && strcmp(word, "accept") == 0) {
        json_setc(a, result, "content", json_object(a));
    }
    codex_send_result(c, rpc_id, result);
}

/* All parts are answered. */
static void settle(struct codex *c, struct codex_ask *q)
{
    if (q->denied && q->why.len > 0) {
        q->request = codex_steer(c, q->why);
        if (q->request != 0) {
            return; /* the answer follows when they are taken */
        }
    }
    decide(c, q->kind, q->rpc_id, q->denied ? "decline" : "accept");
    ask_done(q);
}

static void ask_permission(struct codex *c, struct codex_ask *q, const struct json *item)
{
    struct arena *a = arena_new(); /* the scratch may be gone before the last part */
    const struct json *kept = json_copy(a, item);
    uint64_t first = q->first;
    size_t n = codex_calls_of(kept);
    for (size_t i = 0; i < n; i++) {
        struct driver_ask ask = {
            .kind = ASK_PERMISSION,
            .id = first + i,
            .tool = codex_tool_name(c, kept),
            .arguments = codex_arguments(c, kept, i),
            .call_id = json_str(json_get(kept, "id"), STR_EMPTY),
        };
        c->port.ask(c->port.owner, &ask);
    }
    arena_free(a);
}

static void approve(struct codex *c, const struct jsonrpc_message *m, enum codex_ask_kind kind,
                    const struct json *item)
{
    if (c->interrupted || c->stage != CODEX_TURN) {
        decide(c, kind, m->id, "cancel");
        return;
    }
    if (!c->has_policies) {
        decide(c, kind, m->id, "accept");
        return;
    }
    size_t n = item == NULL ? 0 : codex_calls_of(item);
    struct codex_ask *q = n == 0 || n > CODEX_CHANGES_MAX ? NULL : new_ask(c, kind, m->id, n);
    if (q == NULL) {
        decide(c, kind, m->id, "decline");
        return;
    }
    ask_permission(c, q, item);
}

/* The question says what would be run; the item, if it came before, says it too. */
static void on_command(struct codex *c, const struct jsonrpc_message *m)
{
    struct str id = json_str(json_get(m->params, "itemId"), STR_EMPTY);
    const struct json *command = json_get(m->params, "command");
    struct str kind = json_str(json_get(m->params, "kind"), STR("command"));
    struct codex_item *known = codex_item_find(c, id);
    struct json *item = json_object(c->scratch);
    codex_set(c, item, "type", STR("commandExecution"));
    codex_set(c, item, "id", str_slice(id, 0, CODEX_ID_MAX));
    if (json_is(command, JSON_STRING)) {
        codex_set(c, item, "command", command->string);
        codex_set(c, item, "cwd", json_str(json_get(m->params, "cwd"), STR_EMPTY));
        if (!str_eqc(kind, "command")) { /* words for one that runs: "writeStdin" */
            codex_set(c, item, "kind", kind);
        }
    } else if (known != NULL && json_is(json_get(known->item, "command"), JSON_STRING)) {
        item = json_copy(c->scratch, known->item);
    } else {
        item = NULL; /* of a kind that cinch does not know */
    }
    approve(c, m, CODEX_ASK_APPROVAL, item);
}

static void on_patch(struct codex *c, const struct jsonrpc_message *m)
{
    struct str id = json_str(json_get(m->params, "itemId"), STR_EMPTY);
    struct codex_item *known = codex_item_find(c, id);
    bool patch = known != NULL && json_len(json_get(known->item, "changes")) > 0;
    approve(c, m, CODEX_ASK_APPROVAL, patch ? known->item : NULL);
}

/* An approval in the form of an elicitation; others would need a person. */
static void on_elicitation(struct codex *c, const struct jsonrpc_message *m)
{
    struct str kind =
        json_str(json_pointer(m->params, STR("/_meta/codex_approval_kind")), STR_EMPTY);
    struct str server = json_str(json_get(m->params, "serverName"), STR_EMPTY);
    struct codex_item *known = codex_item_of_server(c, server);
    if (!str_eqc(kind, "mcp_tool_call")) {
        decide(c, CODEX_ASK_ELICITATION, m->id, "decline");
        return;
    }
    if (known != NULL) {
        known->asked = true;
    }
    approve(c, m, CODEX_ASK_ELICITATION, known == NULL ? NULL : known->item);
}

/* --- tools of the run --- */

/* They come as an object, or as text that holds one. */
static struct json *tool_arguments(struct codex *c, const struct json *given)
{
    struct json *v = NULL;
    if (json_is(given, JSON_OBJECT)) {
        return json_copy(c->scratch, given);
    }
    if (json_is(given, JSON_STRING) && json_parse(c->scratch, given->string, NULL, &v, NULL) == 0 &&
        json_is(v, JSON_OBJECT)) {
        return v;
    }
    return json_object(c->scratch);
}

static void answer_tool(struct codex *c, const struct json *rpc_id, bool ok, struct str text,
                        struct str feedback)
{
    struct arena *a = c->scratch;
    struct json *result = json_object(a);
    struct json *items = json_array(a);
    const struct str texts[] = { text, feedback };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (i == 0 || texts[i].len > 0) {
            struct json *item = json_object(a);
            codex_set(c, item, "type", STR("inputText"));
            codex_set(c, item, "text", texts[i]);
            json_push(a, items, item);
        }
    }
    json_setc(a, result, "contentItems", items);
    json_setc(a, result, "success", json_boolean(a, ok));
    codex_send_result(c, rpc_id, result);
}

static struct json *tool_detail(struct codex *c, struct str tool, struct str call_id)
{
    struct json *detail = json_object(c->scratch);
    codex_set(c, detail, "tool_name", tool);
    codex_set(c, detail, "tool_call_id", call_id);
    json_setc(c->scratch, detail, "bridged", json_boolean(c->scratch, true));
    return detail;
}

static void on_tool(struct codex *c, const struct jsonrpc_message *m)
{
    struct str tool = str_slice(json_str(json_get(m->params, "tool"), STR_EMPTY), 0, CODEX_ID_MAX);
    struct str call_id =
        str_slice(json_str(json_get(m->params, "callId"), STR_EMPTY), 0, CODEX_ID_MAX);
    struct json *arguments = tool_arguments(c, json_get(m->params, "arguments"));
    struct codex_ask *q =
        c->interrupted || c->stage != CODEX_TURN ? NULL : new_ask(c, CODEX_ASK_TOOL, m->id, 1);
    if (q == NULL) {
        answer_tool(c, m->id, false, STR("this tool cannot be called now"), STR_EMPTY);
        return;
    }
    struct json *detail = tool_detail(c, tool, call_id);
    json_setc(c->scratch, detail, "input", json_copy(c->scratch, arguments));
    q->tool = arena_str(q->arena, tool);
    q->call_id = arena_str(q->arena, call_id);
    uint64_t id = q->first;
    codex_entry(c, "tool_use", detail, m->params);
    c->port.ask(
        c->port.owner,
        &(struct driver_ask) {
            .kind = ASK_TOOL, .id = id, .tool = tool, .arguments = arguments, .call_id = call_id });
}

static void tool_over(struct codex *c, const struct codex_ask *q, const struct driver_reply *reply)
{
    struct json *detail = tool_detail(c, q->tool, q->call_id);
    struct str raw = c->raw;
    codex_set(c, detail, reply->ok ? "output" : "error", reply->text);
    c->raw = STR_EMPTY; /* it is our own word */
    codex_entry(c, "tool_result", detail, NULL);
    c->raw = raw;
    if (c->stage == CODEX_TURN) {
        answer_tool(c, q->rpc_id, reply->ok, reply->text, reply->feedback);
    }
}

/* --- words into the turn --- */

static void keep_feedback(struct codex *c, struct str text)
{
    if (c->feedback.len + text.len + 2 <= CODEX_TEXT_MAX) {
        buf_add(&c->feedback, text);
        buf_add(&c->feedback, STR("\n\n"));
    }
}

void codex_ask_feedback(struct codex *c, const struct native_call *call)
{
    struct codex_ask *q = new_ask(c, CODEX_ASK_FEEDBACK, NULL, 1);
    if (q != NULL) {
        struct driver_ask ask = { .kind = ASK_FEEDBACK,
                                  .id = q->first,
                                  .tool = call->name,
                                  .arguments = call->arguments,
                                  .call_id = call->call_id,
                                  .success = call->success };
        c->port.ask(c->port.owner, &ask);
    }
}

/* Where no turn hears it, it goes out with the next prompt. */
static void give_feedback(struct codex *c, struct codex_ask *q, struct str text)
{
    struct json *detail = json_object(c->scratch);
    struct str raw = c->raw;
    codex_set(c, detail, "subtype", STR("feedback"));
    codex_set(c, detail, "text", text);
    c->raw = STR_EMPTY;
    codex_entry(c, "system_event", detail, NULL);
    c->raw = raw;
    q->kind = CODEX_ASK_STEER;
    q->why = arena_str(q->arena, text);
    q->request = codex_steer(c, text);
    if (q->request == 0) {
        keep_feedback(c, text);
        ask_done(q);
    }
}

bool codex_steered(struct codex *c, int64_t request, bool taken)
{
    for (size_t i = 0; i < CODEX_ASKS_MAX; i++) {
        struct codex_ask *q = &c->asks[i];
        if (q->arena == NULL || q->request != request) {
            continue;
        }
        if (q->kind != CODEX_ASK_STEER) {
            decide(c, q->kind, q->rpc_id, "decline");
        } else if (!taken) {
            keep_feedback(c, q->why);
        }
        ask_done(q);
        return true;
    }
    return false;
}

/* --- answers of the run --- */

void codex_reply(struct codex *c, const struct driver_reply *reply)
{
    struct codex_ask *q = answered_ask(c, reply->id);
    if (q == NULL) {
        return;
    }
    bool approval = q->kind == CODEX_ASK_APPROVAL || q->kind == CODEX_ASK_ELICITATION;
    if (approval) {
        if (!reply->ok && !q->denied) {
            q->denied = true;
            q->why = arena_str(q->arena, reply->text);
        }
        if (q->open == 0 && c->stage == CODEX_TURN) {
            settle(c, q);
        }
        return;
    }
    if (q->kind == CODEX_ASK_FEEDBACK && reply->text.len > 0 && c->stage != CODEX_OVER) {
        give_feedback(c, q, reply->text);
        return;
    }
    if (q->kind == CODEX_ASK_TOOL) {
        struct codex_ask over = *q; /* taken out first: who hears of it may come back here */
        *q = (struct codex_ask) { 0 };
        tool_over(c, &over, reply);
        arena_free(over.arena);
        return;
    }
    ask_done(q);
}

void codex_cancel_asks(struct codex *c, bool tell)
{
    for (size_t i = 0; i < CODEX_ASKS_MAX; i++) {
        struct codex_ask *q = &c->asks[i];
        bool approval = q->kind == CODEX_ASK_APPROVAL || q->kind == CODEX_ASK_ELICITATION;
        if (q->arena != NULL && approval) {
            if (tell) {
                decide(c, q->kind, q->rpc_id, "cancel");
            }
            ask_done(q);
        }
    }
}

/* --- all of them --- */

void codex_request(struct codex *c, const struct jsonrpc_message *m)
{
    static const struct {
        const char *method;
        void (*take)(struct codex *c, const struct jsonrpc_message *m);
    } known[] = {
        { "item/commandExecution/requestApproval", on_command },
        { "item/fileChange/requestApproval", on_patch },
        { "mcpServer/elicitation/request", on_elicitation },
        { "item/tool/call", on_tool },
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eqc(m->method, known[i].method)) {
            known[i].take(c, m);
            return;
        }
    }
    codex_send_error(
        c, m->id, JSONRPC_METHOD_NOT_FOUND,
        str_of(arena_printf(c->scratch, "cinch does not offer '%.*s'", STR_ARG(m->method))));
}
