/* SPDX-License-Identifier: MIT
 *
 * The MCP server without sockets: each message and each bad one of both eras, calls that end in
 * every way, slow and vanished clients, bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "mcp/mcp.h"

#define ACCEPT                                                    \
    {                                                             \
        STR("Accept"), STR("application/json, text/event-stream") \
    }
#define TYPE                                         \
    {                                                \
        STR("Content-Type"), STR("application/json") \
    }
#define META                                                                 \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{},\"progressToken\":\"t\"}"

struct port {
    uint64_t version;
    struct mcp_call *held; /* the last call of "hold" */
    int cancelled;
};

struct seen {
    int status;
    bool ended;
    char session[64];
    struct buf body;
};

static int list(void *arg, struct arena *a, struct json **ret, struct err *e)
{
    (void)arg;
    return json_parse(
        a,
        STR("[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}},"
            "{\"name\":\"hold\",\"inputSchema\":{\"type\":\"object\"}},"
            "{\"name\":\"typed\",\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":"
            "{\"type\":\"object\",\"required\":[\"n\"]}}]"),
        NULL, ret, e);
}

static uint64_t version(void *arg)
{
    return ((struct port *)arg)->version;
}

static void call(void *arg, struct mcp_call *c)
{
    struct port *p = arg;
    if (str_eqc(c->name, "hold")) {
        p->held = c;
        return;
    }
    struct json *result = json_object(c->arena);
    json_setc(c->arena, result, "structuredContent", json_copy(c->arena, c->arguments));
    mcp_call_done(c, result);
}

static void cancel(void *arg, struct mcp_call *c)
{
    struct port *p = arg;
    p->cancelled++;
    p->held = p->held == c ? NULL : p->held;
}

static void on_head(void *arg, int status, const struct http_fields *f)
{
    struct seen *s = arg;
    const struct str *id = http_find(f, "mcp-session-id");
    assert_int_equal(s->status, 0);
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
    assert_false(((struct seen *)arg)->ended);
    ((struct seen *)arg)->ended = true;
}

static struct mcp *server(struct port *p, size_t page)
{
    return mcp_new(&(struct mcp_opts) {
        .tools = { list, version, call, cancel, p }, .name = "s", .version = "1", .page = page });
}

static struct mcp_exchange *ask(struct mcp *m, const char *method, const struct http_field *fields,
                                size_t n, const char *body, struct seen *s)
{
    buf_done(&s->body);
    *s = (struct seen) { .body = BUF_INIT(BUF_TEXT) };
    buf_adds(&s->body, "");
    return mcp_begin(m, &(struct mcp_request) { str_of(method), { fields, n }, str_of(body) },
                     &(struct mcp_answer) { on_head, on_data, on_end, s });
}

static struct mcp_exchange *post(struct mcp *m, const char *session, const char *body,
                                 struct seen *s)
{
    struct http_field fields[] = { ACCEPT, TYPE, { STR("Mcp-Session-Id"), str_of(session) } };
    return ask(m, "POST", fields, session == NULL ? 2 : 3, body, s);
}

static struct mcp_exchange *modern(struct mcp *m, const char *method, const char *params,
                                   struct seen *s)
{
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    struct http_field fields[] = { ACCEPT,
                                   TYPE,
                                   { STR("MCP-Protocol-Version"), STR("2026-07-28") },
                                   { STR("Mcp-Method"), str_of(method) },
                                   { STR("Mcp-Name"), STR("=?base64?aG9sZA==?=") } };
    buf_addf(&body, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{%s}}", method,
             params);
    return ask(m, "POST", fields, 5, body.ptr, s);
}

static void has(const struct seen *s, const char *what)
{
    if (what[0] != '\0' && str_find(buf_str(&s->body), str_of(what)) == s->body.len) {
        fail_msg("no %s in %s", what, s->body.ptr);
    }
}

static void start(struct mcp *m, const char *revision, char id[64], struct seen *s)
{
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    buf_addf(&body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
             "\"params\":{\"protocolVersion\":\"%s\"}}",
             revision);
    assert_null(post(m, NULL, body.ptr, s));
    assert_int_equal(s->status, 200);
    memcpy(id, s->session, 64);
    assert_true(id[0] != '\0');
}

static void negotiation(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "2024-11-05", "2024-11-05" }, { "2025-03-26", "2025-03-26" },
        { "2025-06-18", "2025-06-18" }, { "2025-11-25", "2025-11-25" },
        { "2026-07-28", "2025-11-25" }, { "x", "2025-11-25" },
    };
    struct port p = { 0 };
    struct seen s = { 0 };
    struct mcp *m = server(&p, 0);
    char id[64];
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        start(m, pairs[i][0], id, &s);
        has(&s, pairs[i][1]);
    }
    assert_int_equal(mcp_sessions(m), ARRAY_LEN(pairs));
    for (int i = 0; i < 100; i++) {
        start(m, "2025-06-18", id, &s);
    }
    assert_int_equal(mcp_sessions(m), MCP_SESSIONS_MAX);
    buf_done(&s.body);
    mcp_free(m);
}

static void refusals_in_a_session(void **state)
{
    (void)state;
#define RPC "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
    static const struct {
        const char *body;
        int status;
        const char *text;
    } cases[] = {
        { "{", 400, "-32700" },
        { "[]", 400, "-32600" },
        { RPC "\"ping\"}", 200, "\"result\":{}" },
        { RPC "\"nothing\"}", 200, "-32601" },
        { RPC "\"server/discover\"}", 200, "-32601" },
        { RPC "\"tools/call\"}", 200, "-32602" },
        { RPC "\"tools/call\",\"params\":{\"name\":5}}", 200, "-32602" },
        { RPC "\"tools/call\",\"params\":{\"name\":\"no\"}}", 200, "Unknown tool: no" },
        { RPC "\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":[]}}", 200, "-32602" },
        { RPC "\"tools/list\",\"params\":{\"cursor\":\"9.9\"}}", 200, "-32602" },
        { RPC "\"tools/list\",\"params\":{\"cursor\":5}}", 200, "-32602" },
        { RPC "\"tools/list\"}", 200, "\"name\":\"typed\"" },
        { RPC "\"tools/call\",\"params\":{\"name\":\"typed\"}}", 200, "\"isError\":true" },
        { RPC "\"tools/call\",\"params\":{\"name\":\"typed\",\"arguments\":{\"n\":1}}}", 200,
          "\"text\":\"{\\\"n\\\":1}\"" },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 202, "" },
        { "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}", 202, "" },
    };
    struct port p = { 0 };
    struct seen s = { 0 };
    struct mcp *m = server(&p, 0);
    char id[64];
    start(m, "2025-11-25", id, &s);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_null(post(m, id, cases[i].body, &s));
        assert_int_equal(s.status, cases[i].status);
        assert_true(s.ended);
        has(&s, cases[i].text);
    }
    assert_null(post(m, NULL, RPC "\"ping\"}", &s));
    assert_int_equal(s.status, 400);
    assert_null(post(m, "unknown", RPC "\"ping\"}", &s));
    assert_int_equal(s.status, 404);
    buf_done(&s.body);
    mcp_free(m);
}

static void cancelling_in_a_session(void **state)
{
    (void)state;
    struct port p = { 0 };
    struct seen s = { 0 }, other = { 0 };
    struct mcp *m = server(&p, 0);
    char id[64];
    const char *hold = RPC "\"tools/call\",\"params\":{\"name\":\"hold\"}}";
    start(m, "2025-06-18", id, &s);
    assert_non_null(post(m, id, hold, &s));
    assert_null(post(m, id, hold, &other)); /* the same id again */
    assert_int_equal(other.status, 400);
    assert_null(post(m, id,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                     "\"params\":{\"requestId\":2}}",
                     &other));
    assert_int_equal(p.cancelled, 1);
    assert_true(s.ended);
    assert_int_equal(s.body.len, 0);
    /* A lost connection is no cancellation in these revisions. */
    struct mcp_exchange *x = post(m, id, hold, &s);
    mcp_close(x);
    assert_non_null(p.held);
    mcp_call_done(p.held, NULL);
    assert_false(s.ended);
    assert_int_equal(mcp_calls(m), 0);
    assert_non_null(post(m, id, hold, &s));
    struct http_field fields[] = { ACCEPT, { STR("Mcp-Session-Id"), str_of(id) } };
    assert_null(ask(m, "DELETE", fields, 2, "", &other));
    assert_int_equal(other.status, 204);
    assert_true(s.ended);
    assert_int_equal(p.cancelled, 2);
    buf_done(&s.body);
    buf_done(&other.body);
    mcp_free(m);
}

static void news_in_a_session(void **state)
{
    (void)state;
    struct port p = { 0 };
    struct seen s = { 0 };
    struct mcp *m = server(&p, 0);
    char id[64];
    start(m, "2025-11-25", id, &s);
    struct http_field fields[] = { ACCEPT, { STR("Mcp-Session-Id"), str_of(id) } };
    p.version++; /* before there is a stream: told when there is one */
    struct mcp_exchange *x = ask(m, "GET", fields, 2, "", &s);
    assert_non_null(x);
    has(&s, "notifications/tools/list_changed");
    size_t before = s.body.len;
    mcp_tools_changed(m);
    assert_int_equal(s.body.len, before); /* no news */
    mcp_pause(x, true);
    p.version++;
    mcp_tools_changed(m);
    p.version++;
    mcp_tools_changed(m);
    assert_int_equal(s.body.len, before);
    mcp_pause(x, false);
    assert_int_equal(s.body.len, 2 * before); /* once */
    mcp_tick(m);
    has(&s, ":\n\n");
    mcp_stop(m);
    assert_true(s.ended);
    buf_done(&s.body);
    mcp_free(m);
}

static void without_state(void **state)
{
    (void)state;
    struct port p = { 0 };
    struct seen s = { 0 };
    struct mcp *m = server(&p, 2);
    assert_null(modern(m, "server/discover", META, &s));
    has(&s, "\"supportedVersions\":[\"2026-07-28\"");
    has(&s, "\"resultType\":\"complete\"");
    assert_null(modern(m, "tools/list", META, &s));
    has(&s, "\"nextCursor\":\"0.2\"");
    has(&s, "\"ttlMs\":0");
    assert_null(modern(m, "tools/list", "\"cursor\":\"0.2\"," META, &s));
    has(&s, "typed");
    assert_null(modern(m, "ping", META, &s));
    assert_int_equal(s.status, 404);
    assert_null(modern(m, "tools/list", "\"_meta\":{}", &s));
    assert_int_equal(s.status, 400);
    has(&s, "-32602");
    assert_null(modern(m, "tools/call", "\"name\":\"echo\"," META, &s)); /* the field says hold */
    assert_int_equal(s.status, 400);
    has(&s, "-32020");
    assert_null(modern(m, "tools/list",
                       "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\"}",
                       &s));
    has(&s, "-32020");
    assert_int_equal(mcp_sessions(m), 0);
    buf_done(&s.body);
    mcp_free(m);
}

static void calls_without_state(void **state)
{
    (void)state;
    struct port p = { 0 };
    struct seen s = { 0 };
    struct mcp *m = server(&p, 0);
    struct mcp_exchange *x = modern(m, "tools/call", "\"name\":\"hold\"," META, &s);
    assert_non_null(x);
    assert_int_equal(s.status, 0);
    mcp_call_progress(p.held, 1, 2, STR("half"));
    has(&s, "\"progress\":1");
    size_t before = s.body.len;
    mcp_call_progress(p.held, 1, 2, STR("again")); /* does not grow */
    assert_int_equal(s.body.len, before);
    mcp_pause(x, true);
    mcp_call_progress(p.held, 2, 2, STR("dropped"));
    mcp_call_fail(p.held, STR("out of order"));
    assert_false(s.ended);
    mcp_pause(x, false);
    assert_true(s.ended);
    has(&s, "\"message\":\"out of order\"");
    x = modern(m, "tools/call", "\"name\":\"hold\"," META, &s);
    mcp_close(x);
    assert_int_equal(p.cancelled, 1);
    x = modern(m, "subscriptions/listen", "\"notifications\":{\"toolsListChanged\":true}," META,
               &s);
    has(&s, "notifications/subscriptions/acknowledged");
    p.version++;
    mcp_tools_changed(m);
    has(&s, "\"io.modelcontextprotocol/subscriptionId\":7}}");
    mcp_stop(m);
    assert_true(s.ended);
    has(&s, "\"id\":7,\"result\"");
    buf_done(&s.body);
    mcp_free(m);
}

#define CALL(id, tool)                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool \
    "\"}}"

static void batches(void **state)
{
    struct port p = { .version = 1 };
    struct seen s = { 0 }, other = { 0 };
    char id[64];
    (void)state;
    struct mcp *m = server(&p, 0);
    start(m, "2025-03-26", id, &s);
    (void)post(m, id,
               "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},7,"
               "{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"initialize\"}]",
               &s);
    assert_int_equal(s.status, 200);
    assert_true(s.ended);
    has(&s, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},");
    has(&s, "initialize stands alone");
    assert_int_equal(s.body.ptr[s.body.len - 1], ']');
    (void)post(m, id, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]", &s);
    assert_int_equal(s.status, 202);
    assert_int_equal(s.body.len, 0);
    (void)post(m, id, "[]", &s);
    assert_int_equal(s.status, 400);

    /* It is complete when the last of them is. */
    assert_non_null(post(m, id, "[" CALL("5", "hold") "," CALL("6", "echo") "]", &s));
    assert_false(s.ended);
    assert_non_null(p.held);
    mcp_call_done(p.held, json_object(p.held->arena));
    assert_true(s.ended);
    has(&s, "\"id\":5");
    has(&s, "\"id\":6");

    /* One is cancelled: the other's answer is all there is. */
    assert_non_null(post(m, id, "[" CALL("5", "hold") "," CALL("6", "echo") "]", &s));
    (void)post(m, id,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
               "{\"requestId\":5}}",
               &other);
    assert_true(s.ended);
    assert_int_equal(str_find(buf_str(&s.body), STR("\"id\":5")), s.body.len);

    /* Its client is gone, and then the server is. */
    mcp_close(post(m, id, "[" CALL("5", "hold") "]", &s));
    assert_non_null(p.held);
    mcp_call_done(p.held, json_object(p.held->arena));
    assert_false(s.ended);
    assert_non_null(post(m, id, "[" CALL("5", "hold") "," CALL("6", "hold") "]", &s));
    start(m, "2025-06-18", id, &other);
    (void)post(m, id, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", &other);
    assert_int_equal(other.status, 400);
    has(&other, "2025-03-26 only");
    mcp_free(m);
    buf_done(&s.body);
    buf_done(&other.body);
}

static void doors(void **state)
{
    (void)state;
    struct port p = { 0 };
    struct seen s = { 0 };
    struct mcp *m = server(&p, 0);
    struct http_field evil[] = { ACCEPT, TYPE, { STR("Origin"), STR("http://localhost.evil") } };
    struct http_field text[] = { ACCEPT, { STR("Content-Type"), STR("text/plain") } };
    struct http_field image[] = { { STR("Accept"), STR("image/png") }, TYPE };
    assert_null(ask(m, "POST", evil, 3, "{}", &s));
    assert_int_equal(s.status, 403);
    assert_null(ask(m, "POST", text, 2, "{}", &s));
    assert_int_equal(s.status, 415);
    assert_null(ask(m, "POST", image, 2, "{}", &s));
    assert_int_equal(s.status, 406);
    assert_null(ask(m, "GET", text, 1, "", &s));
    assert_int_equal(s.status, 405);
    assert_null(ask(m, "PUT", text, 1, "", &s));
    assert_int_equal(s.status, 405);
    mcp_stop(m);
    assert_null(post(m, NULL, RPC "\"ping\"}", &s));
    assert_int_equal(s.status, 503);
    buf_done(&s.body);
    mcp_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(negotiation),       cmocka_unit_test(refusals_in_a_session),
        cmocka_unit_test(news_in_a_session), cmocka_unit_test(cancelling_in_a_session),
        cmocka_unit_test(without_state),     cmocka_unit_test(calls_without_state),
        cmocka_unit_test(batches),           cmocka_unit_test(doors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
