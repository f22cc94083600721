/* SPDX-License-Identifier: MIT
 *
 * The bridge as the MCP server sees it. A client may lose interest in a call before the bridge has
 * undone it, so what ties the two together belongs to neither.
 */
#include <stdlib.h>

#include "base/json.h"
#include "tools/bridge_priv.h"

struct tie {
    struct mcp_call *mcp; /* NULL: the client does not want it any more */
    struct bridge_call *call;
};

static int list(void *arg, struct arena *a, struct json **ret, struct err *e)
{
    struct bridge *b = arg;
    (void)e;
    b->listed = true;
    *ret = json_array(a);
    for (size_t i = 0; i < b->n_tools; i++) {
        if (b->tools[i]->offered) {
            json_push(a, *ret, b->tools[i]->shown); /* is not changed and outlives the server */
        }
    }
    return 0;
}

static uint64_t version(void *arg)
{
    return bridge_version(arg);
}

/* --- the answer --- */

static void push_text(struct arena *a, struct json *content, struct str text)
{
    struct json *block = json_object(a);
    json_setc(a, block, "type", json_cstr(a, "text"));
    json_setc(a, block, "text", json_string(a, text));
    json_push(a, content, block);
}

static struct json *call_result(struct arena *a, const struct bridge_answer *answer)
{
    struct json *o = json_object(a);
    struct json *content = answer->content == NULL ? json_array(a) : json_copy(a, answer->content);
    if (answer->content == NULL) {
        push_text(a, content, answer->text);
    }
    if (answer->feedback.len > 0) {
        push_text(a, content, answer->feedback);
    }
    json_setc(a, o, "content", content);
    if (answer->structured != NULL) {
        json_setc(a, o, "structuredContent", json_copy(a, answer->structured));
    }
    json_setc(a, o, "isError", json_boolean(a, answer->is_error));
    return o;
}

static void on_done(void *arg, const struct bridge_answer *answer)
{
    struct tie *tie = arg;
    struct mcp_call *call = tie->mcp;
    free(tie);
    if (call != NULL) {
        call->user = NULL;
        mcp_call_done(call, call_result(call->arena, answer));
    }
}

static void on_progress(void *arg, double progress, double total, struct str message)
{
    const struct tie *tie = arg;
    if (tie->mcp != NULL) {
        mcp_call_progress(tie->mcp, progress, total, message);
    }
}

/* --- the call --- */

/* The id by which the harness knows the call: Claude Code and Codex say it; a number of JSON-RPC is
 * unique within its session only. */
static struct str call_id(const struct mcp_call *call)
{
    struct str id = json_str(json_get(call->meta, "claudecode/toolUseId"), STR_EMPTY);
    if (id.len == 0) {
        id = json_str(json_get(call->meta, "callId"), STR_EMPTY);
    }
    if (id.len > 0 || call->session.len == 0) {
        return str_slice(id, 0, MCP_NAME_MAX);
    }
    struct str number = tool_render(call->arena, call->id);
    return str_of(arena_printf(call->arena, "%.*s-%.*s", STR_ARG(str_slice(call->session, 0, 8)),
                               STR_ARG(str_slice(number, 0, MCP_NAME_MAX))));
}

static void call(void *arg, struct mcp_call *call)
{
    struct tie *tie = xcalloc(1, sizeof *tie);
    struct bridge_call *c = NULL;
    tie->mcp = call;
    call->user = tie;
    struct bridge_request r = {
        .name = call->name,
        .arguments = call->arguments,
        .call_id = call_id(call),
        .meta = call->meta,
        .done = on_done,
        .progress = on_progress,
        .arg = tie,
    };
    bridge_call(arg, &r, &c);
    if (c != NULL) {
        tie->call = c;
    }
}

static void cancel(void *arg, struct mcp_call *call)
{
    struct tie *tie = call->user;
    (void)arg;
    if (tie != NULL) {
        tie->mcp = NULL;
        bridge_cancel(tie->call);
    }
}

static void ignore(void *arg, const struct bridge_answer *answer)
{
    (void)arg;
    (void)answer;
}

static void unknown(void *arg, struct str name, const struct json *arguments)
{
    bridge_call(arg,
                &(struct bridge_request) { .name = name, .arguments = arguments, .done = ignore },
                NULL);
}

bool bridge_listed(const struct bridge *b)
{
    return b->listed;
}

struct mcp_tools bridge_port(struct bridge *b)
{
    return (struct mcp_tools) { .list = list,
                                .version = version,
                                .call = call,
                                .cancel = cancel,
                                .arg = b,
                                .unknown = unknown };
}
