/* SPDX-License-Identifier: MIT
 *
 * What an agent asks of us: may it use a tool, read a file, write one. The run decides; the answer
 * to a permission is an option of the right kind, never just the first. Everything else is refused
 * by name.
 */
#include "adapters/acp_priv.h"

/* --- questions that wait --- */

struct acp_ask *acp_ask_new(struct acp *p, enum driver_ask_kind kind, const struct json *rpc_id)
{
    for (size_t i = 0; i < ACP_ASKS_MAX; i++) {
        struct acp_ask *q = &p->asks[i];
        if (q->id == 0) {
            struct arena *a = arena_new();
            *q = (struct acp_ask) { .id = ++p->ask_ids,
                                    .kind = kind,
                                    .arena = a,
                                    .rpc_id = rpc_id == NULL ? NULL : json_copy(a, rpc_id) };
            return q;
        }
    }
    return NULL;
}

void acp_ask_done(struct acp_ask *q)
{
    arena_free(q->arena);
    *q = (struct acp_ask) { 0 };
}

static struct acp_ask *find_ask(struct acp *p, uint64_t id)
{
    for (size_t i = 0; i < ACP_ASKS_MAX; i++) {
        if (p->asks[i].id == id && id != 0) {
            return &p->asks[i];
        }
    }
    return NULL;
}

/* --- permissions --- */

static struct str option_of(const struct json *options, const char *kind)
{
    for (size_t i = 0; i < json_len(options); i++) {
        const struct json *o = json_item(options, i);
        if (str_eqc(json_str(json_get(o, "kind"), STR_EMPTY), kind)) {
            return json_str(json_get(o, "optionId"), STR_EMPTY);
        }
    }
    return STR_EMPTY;
}

/* Once rather than for ever: some agents write what is for ever into the workspace. */
static struct str best_option(struct arena *a, const struct json *options, const char *once,
                              const char *always)
{
    struct str found = option_of(options, once);
    return arena_str(a, found.len > 0 ? found : option_of(options, always));
}

/* An empty option: there is none of the kind, so the question is called off. */
static void decide(struct acp *p, const struct json *rpc_id, struct str option)
{
    struct arena *a = p->scratch;
    struct json *outcome = json_object(a);
    struct json *result = json_object(a);
    const char *word = option.len > 0 ? "selected" : "cancelled";
    json_setc(a, outcome, "outcome", json_cstr(a, word));
    if (option.len > 0) {
        json_setc(a, outcome, "optionId", json_string(a, option));
    }
    json_setc(a, result, "outcome", outcome);
    acp_send_result(p, rpc_id, result);
}

static void ask_permission(struct acp *p, const struct jsonrpc_message *m)
{
    const struct json *options = json_get(m->params, "options");
    const struct json *about = json_get(m->params, "toolCall");
    if (p->interrupted || p->stage != ACP_PROMPT) {
        decide(p, m->id, STR_EMPTY);
        return;
    }
    acp_flush(p);
    struct acp_call *c = acp_call_of(p, about);
    acp_call_tell(p, c, json_get(about, "locations"));
    /* The bridge asks the policies about our own tools, when they are called. */
    if (!p->has_policies || c->ours) {
        decide(p, m->id, best_option(p->scratch, options, "allow_once", "allow_always"));
        return;
    }
    struct acp_ask *q = acp_ask_new(p, ASK_PERMISSION, m->id);
    if (q == NULL) {
        decide(p, m->id, STR_EMPTY);
        return;
    }
    q->allow = best_option(q->arena, options, "allow_once", "allow_always");
    q->reject = best_option(q->arena, options, "reject_once", "reject_always");
    struct driver_ask ask = {
        .kind = ASK_PERMISSION,
        .id = q->id,
        .tool = str_of(arena_printf(p->scratch, "acp:%.*s", STR_ARG(c->name))),
        .tool_kind = acp_call_kind(p, c),
        .arguments = acp_call_arguments(p, c, about),
        .call_id = c->id,
    };
    p->port.ask(p->port.owner, &ask);
}

/* --- files --- */

static void ask_file(struct acp *p, const struct jsonrpc_message *m, enum driver_ask_kind kind)
{
    const struct json *path = json_get(m->params, "path");
    const struct json *text = json_get(m->params, "content");
    if (!json_is(path, JSON_STRING) || path->string.len == 0 || str_has_nul(path->string) ||
        (kind == ASK_WRITE && !json_is(text, JSON_STRING))) {
        acp_send_error(p, m->id, JSONRPC_INVALID_PARAMS, STR("'path' and 'content' must be text"));
        return;
    }
    struct acp_ask *q = acp_ask_new(p, kind, m->id);
    if (q == NULL) {
        acp_send_error(p, m->id, JSONRPC_INTERNAL_ERROR, STR("too many requests at once"));
        return;
    }
    struct driver_ask ask = {
        .kind = kind,
        .id = q->id,
        .path = path->string,
        .text = json_str(text, STR_EMPTY),
        .line = json_int(json_get(m->params, "line"), 0),
        .limit = json_int(json_get(m->params, "limit"), 0),
    };
    p->port.ask(p->port.owner, &ask);
}

/* --- all of them --- */

void acp_request(struct acp *p, const struct jsonrpc_message *m)
{
    if (str_eqc(m->method, "session/request_permission")) {
        ask_permission(p, m);
    } else if (p->quirks->fs && str_eqc(m->method, "fs/read_text_file")) {
        ask_file(p, m, ASK_READ);
    } else if (p->quirks->fs && str_eqc(m->method, "fs/write_text_file")) {
        ask_file(p, m, ASK_WRITE);
    } else if (!p->quirks->terminal || !acp_terminal_request(p, m)) {
        acp_send_error(
            p, m->id, JSONRPC_METHOD_NOT_FOUND,
            str_of(arena_printf(p->scratch, "cinch does not offer '%.*s'", STR_ARG(m->method))));
    }
}

static void answer_file(struct acp *p, const struct acp_ask *q, const struct driver_reply *reply)
{
    struct json *result = json_object(p->scratch);
    if (!reply->ok) {
        acp_send_error(p, q->rpc_id, ACP_NOT_FOUND, reply->text);
        return;
    }
    if (q->kind == ASK_READ) {
        json_setc(p->scratch, result, "content", json_string(p->scratch, reply->text));
    }
    acp_send_result(p, q->rpc_id, result);
}

/* The protocol has no way to tell an agent something during its turn: it goes out with the next
 * prompt. */
void acp_ask_feedback(struct acp *p, const struct native_call *call)
{
    struct acp_ask *q = acp_ask_new(p, ASK_FEEDBACK, NULL);
    if (q == NULL) {
        return;
    }
    struct driver_ask ask = {
        .kind = ASK_FEEDBACK,
        .id = q->id,
        .tool = call->name,
        .arguments = call->arguments,
        .call_id = call->call_id,
        .success = call->success,
    };
    p->port.ask(p->port.owner, &ask);
}

static void keep_feedback(struct acp *p, struct str text)
{
    if (text.len > 0 && p->feedback.len + text.len + 2 <= ACP_TEXT_MAX) {
        buf_add(&p->feedback, text);
        buf_add(&p->feedback, STR("\n\n"));
    }
}

void acp_reply(struct acp *p, const struct driver_reply *reply)
{
    struct acp_ask *found = find_ask(p, reply->id);
    if (found == NULL) {
        return; /* called off meanwhile */
    }
    struct acp_ask q = *found;
    *found = (struct acp_ask) { 0 };
    if (q.kind == ASK_FEEDBACK) {
        keep_feedback(p, reply->text);
    } else if (p->stage == ACP_OVER) {
        /* nobody listens */
    } else if (q.kind == ASK_PERMISSION && q.create != NULL) {
        acp_terminal_decided(p, &q, reply);
    } else if (q.kind == ASK_TERMINAL) {
        acp_terminal_reply(p, &q, reply);
    } else if (q.kind == ASK_PERMISSION) {
        decide(p, q.rpc_id, reply->ok ? q.allow : q.reject);
    } else {
        answer_file(p, &q, reply);
    }
    arena_free(q.arena);
}

void acp_cancel_asks(struct acp *p)
{
    for (size_t i = 0; i < ACP_ASKS_MAX; i++) {
        struct acp_ask *q = &p->asks[i];
        if (q->id == 0 || q->kind != ASK_PERMISSION) {
            continue;
        }
        if (q->create != NULL) {
            acp_send_error(p, q->rpc_id, JSONRPC_INTERNAL_ERROR, STR("the turn is over"));
        } else {
            decide(p, q->rpc_id, STR_EMPTY);
        }
        acp_ask_done(q);
    }
}
