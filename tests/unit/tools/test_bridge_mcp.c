/* SPDX-License-Identifier: MIT
 *
 * The bridge behind the MCP server: requests go in as a harness sends them, answers come out as it
 * gets them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/macro.h"
#include "guard/feedback.h"
#include "guard/guard.h"
#include "io/loop.h"
#include "mcp/mcp.h"
#include "record/state_store.h"
#include "tools/bridge.h"
#include "tools/tool_callback.h"

/* --- no policies; feedback says something after each call --- */

void guard_check(struct guard *g, const struct guard_call *call,
                 void (*decided)(void *arg, const struct guard_decision *d), void *arg,
                 struct guard_check **ret)
{
    fail();
}

void guard_cancel(struct guard_check *c)
{
    fail();
}

int guard_note(struct guard *g, const struct guard_call *call, struct store_txn *t, struct err *e)
{
    fail();
    return 0;
}

void feedback_after(struct feedback *f, const struct feedback_call *call,
                    void (*say)(void *arg, struct str text), void *arg, struct feedback_round **ret)
{
    *ret = NULL;
    say(arg, STR("<feedback/>"));
}

void feedback_cancel(struct feedback_round *x)
{
    fail();
}

/* --- a server --- */

struct seen {
    int status;
    bool ended;
    char session[64];
    struct buf body;
};

struct world {
    struct arena *a;
    struct loop *loop;
    struct state_store *session;
    struct bridge *b;
    struct mcp *m;
    char id[64];
    struct tool_run *held;
    int cancelled, invoked;
    char last_id[128], last_name[64];
    enum tool_failure last;
    struct str traceparent;
};

static void invoked(void *arg, const struct bridge_record *r)
{
    struct world *w = arg;
    w->invoked++;
    w->last = r->failure;
    (void)snprintf(w->last_id, sizeof w->last_id, "%.*s", STR_ARG(r->call_id));
    (void)snprintf(w->last_name, sizeof w->last_name, "%.*s", STR_ARG(r->name));
}

static bool echo(void *arg, struct tool_run *run, struct tool_result *ret)
{
    struct world *w = arg;
    ret->value = json_get(run->arguments, "value");
    ret->failure = json_bool(json_get(run->arguments, "fail"), false) ? TOOL_FAILED : TOOL_OK;
    w->traceparent = arena_str(w->a, json_str(json_get(run->meta, "traceparent"), STR_EMPTY));
    return true;
}

static bool hold(void *arg, struct tool_run *run, struct tool_result *ret)
{
    ((struct world *)arg)->held = run;
    return false;
}

static void on_cancel(void *arg, struct tool_run *run)
{
    ((struct world *)arg)->cancelled++;
    ((struct world *)arg)->held = NULL;
    tool_run_done(run, &(struct tool_result) { .message = STR("never mind") });
}

static void add(struct world *w, const char *definition,
                bool (*fn)(void *, struct tool_run *, struct tool_result *))
{
    struct json *v;
    struct tool t;
    struct err e;
    assert_int_equal(json_parse(w->a, str_of(definition), NULL, &v, &e), 0);
    assert_int_equal(tool_define(w->a, v, &t, &e), 0);
    tool_callback_bind(&t, &(struct tool_callback) { fn, on_cancel, NULL, w });
    assert_int_equal(bridge_add(w->b, &t, &e), 0);
}

static void on_head(void *arg, int status, const struct http_fields *f)
{
    struct seen *s = arg;
    const struct str *id = http_find(f, "mcp-session-id");
    s->status = status;
    if (id != NULL) {
        memcpy(s->session, id->ptr, id->len);
    }
}

static void on_data(void *arg, struct str bytes)
{
    buf_add(&((struct seen *)arg)->body, bytes);
}

static void on_end(void *arg)
{
    ((struct seen *)arg)->ended = true;
}

static struct mcp_exchange *post(struct world *w, const char *body, struct seen *s)
{
    struct http_field fields[] = {
        { STR("Accept"), STR("application/json, text/event-stream") },
        { STR("Content-Type"), STR("application/json") },
        { STR("Mcp-Session-Id"), str_of(w->id) },
    };
    *s = (struct seen) { .body = BUF_INIT(BUF_TEXT) };
    return mcp_begin(
        w->m,
        &(struct mcp_request) { STR("POST"), { fields, w->id[0] == '\0' ? 2 : 3 }, str_of(body) },
        &(struct mcp_answer) { on_head, on_data, on_end, s });
}

/* The last message of an answer, which is one document or a stream of events. */
static struct json *message(struct world *w, struct seen *s)
{
    struct json *v;
    struct err e;
    assert_true(s->ended);
    struct str text = buf_str(&s->body);
    for (size_t at = str_find(text, STR("data: ")); at < text.len;
         at = str_find(text, STR("data: "))) {
        text = str_slice(text, at + 6, text.len);
    }
    text = arena_str(w->a, text);
    buf_done(&s->body);
    if (json_parse(w->a, text, NULL, &v, &e) < 0) {
        fail_msg("%s: %s", text.ptr, e.msg);
    }
    return v;
}

static struct json *call(struct world *w, const char *params)
{
    struct seen s;
    post(w,
         arena_printf(w->a,
                      "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":%s}",
                      params),
         &s);
    return message(w, &s);
}

static void assert_at(const struct json *v, const char *pointer, const char *text)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    const struct json *there = json_pointer(v, str_of(pointer));
    assert_int_equal(json_write(there, JSON_COMPACT, &b, NULL), 0);
    assert_string_equal(b.ptr, text);
}

static int open_world(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    struct seen s;
    *state = w;
    w->a = arena_new();
    assert_int_equal(loop_new(&w->loop, NULL), 0);
    w->session = store_new(&(struct store_opts) { .journal_fd = -1 });
    w->b = bridge_new(&(struct bridge_opts) { .loop = w->loop,
                                              .session = w->session,
                                              .feedback = (struct feedback *)w,
                                              .invoked = invoked,
                                              .arg = w });
    const char *input = "\"description\":\"d\",\"input_schema\":{\"properties\":{\"value\":{},"
                        "\"fail\":{\"type\":\"boolean\"}}}";
    add(w, arena_printf(w->a, "{\"name\":\"echo\",%s}", input), echo);
    add(w,
        arena_printf(w->a, "{\"name\":\"typed\",%s,\"output_schema\":{\"type\":\"object\"}}",
                     input),
        echo);
    add(w,
        arena_printf(w->a, "{\"name\":\"list\",%s,\"output_schema\":{\"type\":\"array\"}}", input),
        echo);
    add(w, "{\"name\":\"hold\",\"description\":\"d\"}", hold);
    w->m =
        mcp_new(&(struct mcp_opts) { .tools = bridge_port(w->b), .name = "cinch", .version = "1" });
    post(w,
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
         "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
         &s);
    (void)message(w, &s);
    memcpy(w->id, s.session, sizeof w->id);
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    mcp_stop(w->m);
    w->m = mcp_free(w->m);
    bridge_stop(w->b);
    assert_false(bridge_busy(w->b));
    w->b = bridge_free(w->b);
    w->session = store_free(w->session);
    w->loop = loop_free(w->loop);
    arena_free(w->a);
    free(w);
    return 0;
}

static void test_list(void **state)
{
    struct world *w = *state;
    struct seen s;
    const char *const some[] = { "list", NULL };
    post(w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}", &s);
    struct json *v = message(w, &s);
    assert_int_equal(json_len(json_pointer(v, STR("/result/tools"))), 4);
    assert_at(v, "/result/tools/0/inputSchema/additionalProperties", "false");
    assert_at(v, "/result/tools/2/outputSchema/properties/result/type", "\"array\"");
    bridge_offer(w->b, some);
    mcp_tools_changed(w->m);
    post(w, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}", &s);
    v = message(w, &s);
    assert_int_equal(json_len(json_pointer(v, STR("/result/tools"))), 1);
    assert_at(v, "/result/tools/0/name", "\"list\"");
}

static void test_call(void **state)
{
    struct world *w = *state;
    struct json *v = call(w, "{\"name\":\"echo\",\"arguments\":{\"value\":{\"a\":1}},\"_meta\":"
                             "{\"traceparent\":\"00-ab\",\"claudecode/toolUseId\":\"toolu_1\"}}");
    assert_at(v, "/result/content",
              "[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"},{\"type\":\"text\",\"text\":"
              "\"<feedback/>\"}]");
    assert_at(v, "/result/isError", "false");
    assert_null(json_pointer(v, STR("/result/structuredContent")));
    assert_string_equal(w->last_id, "toolu_1");
    assert_true(str_eqc(w->traceparent, "00-ab"));
    v = call(w, "{\"name\":\"echo\",\"arguments\":{},\"_meta\":{\"callId\":\"call_9\"}}");
    assert_string_equal(w->last_id, "call_9");
    v = call(w, "{\"name\":\"typed\",\"arguments\":{\"value\":{\"a\":1}}}");
    assert_at(v, "/result/structuredContent", "{\"a\":1}");
    assert_int_equal(strlen(w->last_id), 10); /* eight of the session, and the request's 7 */
    v = call(w, "{\"name\":\"list\",\"arguments\":{\"value\":[1]}}");
    assert_at(v, "/result/structuredContent", "{\"result\":[1]}");
}

/* What goes wrong in a tool is a result that the model can learn from. */
static void test_errors(void **state)
{
    struct world *w = *state;
    struct json *v = call(w, "{\"name\":\"echo\",\"arguments\":{\"fail\":true}}");
    assert_at(v, "/result/isError", "true");
    v = call(w, "{\"name\":\"echo\",\"arguments\":{\"wrong\":1}}");
    assert_at(v, "/result/isError", "true");
    assert_int_equal(w->last, TOOL_INVALID);
    v = call(w, "{\"name\":\"typed\",\"arguments\":{\"value\":5}}");
    assert_at(v, "/result/isError", "true");
    assert_int_equal(w->last, TOOL_BAD_OUTPUT);
    assert_null(json_pointer(v, STR("/result/structuredContent")));
    /* … but one that does not exist is an error of the protocol, and on record nevertheless */
    v = call(w, "{\"name\":\"nothing\",\"arguments\":{}}");
    assert_at(v, "/error/code", "-32602");
    assert_int_equal(w->invoked, 4);
    assert_int_equal(w->last, TOOL_UNKNOWN);
    assert_string_equal(w->last_name, "nothing");
}

static void test_cancel(void **state)
{
    struct world *w = *state;
    struct seen held, s;
    struct mcp_exchange *x =
        post(w,
             "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"hold\",\"_meta\":{\"progressToken\":1}}}",
             &held);
    assert_non_null(x);
    tool_run_progress(w->held, 1, 2, STR("half"));
    assert_true(str_find(buf_str(&held.body), STR("notifications/progress")) < held.body.len);
    post(
        w,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":8}}",
        &s);
    assert_int_equal(s.status, 202);
    assert_int_equal(w->cancelled, 1);
    assert_int_equal(w->last, TOOL_CANCELLED);
    assert_false(bridge_busy(w->b));
    buf_done(&held.body);
    buf_done(&s.body);
    /* a client that goes away keeps its call, a server that stops does not */
    x = post(w,
             "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"hold\"}}",
             &held);
    mcp_close(x);
    assert_int_equal(w->cancelled, 1);
    tool_run_done(w->held, &(struct tool_result) { .message = STR("done") });
    assert_int_equal(w->last, TOOL_OK);
    x = post(w,
             "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"hold\"}}",
             &held);
    assert_non_null(x);
    mcp_stop(w->m);
    assert_int_equal(w->cancelled, 2);
    buf_done(&held.body);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_list),
        TEST(test_call),
        TEST(test_errors),
        TEST(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
