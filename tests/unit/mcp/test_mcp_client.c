/* SPDX-License-Identifier: MIT
 *
 * The MCP client as a machine: which revision is agreed on, what goes out, what a good server's
 * messages mean and what a bad one's are worth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/macro.h"
#include "mcp/mcp_client.h"

#define INITIALIZED                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"," \
    "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"other\",\"version\":\"9\"}}}"

struct fixture {
    struct arena *arena;
    struct mcp_client *c;
    struct json *last; /* the last message that went out, and what came with it */
    struct mcp_outgoing out;
    int sent, dropped, listed, changed, failed, done;
    uint64_t dropped_key;
    struct err why;
    const struct json *tools;
    bool blocked; /* the transport takes nothing */
    struct mcp_client_answer answer;
    struct err lost;
    double progress, total;
    int progressed;
};

static int on_send(void *arg, const struct mcp_outgoing *m, struct err *e)
{
    struct fixture *f = arg;
    if (f->blocked) {
        return ERR(e, ERR_LIMIT, "blocked");
    }
    assert_int_equal(json_parse(f->arena, m->text, NULL, &f->last, NULL), 0);
    assert_null(memchr(m->text.ptr, '\n', m->text.len));
    f->out = *m;
    f->out.version = arena_str(f->arena, m->version);
    f->sent++;
    return 0;
}

static void on_drop(void *arg, uint64_t key)
{
    struct fixture *f = arg;
    f->dropped++;
    f->dropped_key = key;
}

static void on_listed(void *arg, const struct json *tools)
{
    struct fixture *f = arg;
    f->listed++;
    f->tools = tools;
}

static void on_changed(void *arg)
{
    ((struct fixture *)arg)->changed++;
}

static void on_failed(void *arg, const struct err *why)
{
    struct fixture *f = arg;
    f->failed++;
    f->why = *why;
}

static void on_done(void *arg, const struct mcp_client_answer *a)
{
    struct fixture *f = arg;
    f->done++;
    f->answer = *a;
    f->answer.result = a->result == NULL ? NULL : json_copy(f->arena, a->result);
    f->answer.text = arena_str(f->arena, a->text);
    f->lost = a->lost == NULL ? (struct err) { 0 } : *a->lost;
}

static void on_progress(void *arg, double progress, double total, struct str message)
{
    struct fixture *f = arg;
    (void)message;
    f->progressed++;
    f->progress = progress;
    f->total = total;
}

static struct mcp_client *client(struct fixture *f, bool discover_first)
{
    return mcp_client_new(&(struct mcp_client_opts) { .name = "test",
                                                      .version = "1",
                                                      .discover_first = discover_first,
                                                      .port = { .send = on_send,
                                                                .drop = on_drop,
                                                                .listed = on_listed,
                                                                .changed = on_changed,
                                                                .failed = on_failed,
                                                                .arg = f } });
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    f->c = client(f, false);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    mcp_client_free(f->c);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void feed(struct fixture *f, const char *text)
{
    mcp_client_feed(f->c, str_of(text));
}

static const char *method(const struct fixture *f)
{
    return json_cstring(json_get(f->last, "method"), "");
}

static int64_t id(const struct fixture *f)
{
    return json_int(json_get(f->last, "id"), 0);
}

/* Answers the last request. */
static void reply(struct fixture *f, const char *result)
{
    const char *text =
        arena_printf(f->arena, "{\"jsonrpc\":\"2.0\",\"id\":%lld,%s}", (long long)id(f), result);
    feed(f, text);
}

static void open_client(struct fixture *f)
{
    mcp_client_start(f->c);
    feed(f, INITIALIZED);
    reply(f, "\"result\":{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}]}");
    assert_int_equal(f->listed, 1);
    assert_true(mcp_client_ready(f->c));
}

static uint64_t call(struct fixture *f)
{
    uint64_t key = 0;
    struct json *arguments = NULL;
    assert_int_equal(json_parse(f->arena, STR("{\"x\":1}"), NULL, &arguments, NULL), 0);
    const struct mcp_client_call c = {
        .name = STR("a"), .arguments = arguments, .done = on_done, .progress = on_progress, .arg = f
    };
    assert_int_equal(mcp_client_call(f->c, &c, &key, NULL), 0);
    assert_int_equal(key, id(f));
    return key;
}

/* --- the handshake --- */

static void the_server_chooses_an_older_revision(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    assert_string_equal(method(f), "initialize");
    const struct json *params = json_get(f->last, "params");
    assert_string_equal(json_cstring(json_get(params, "protocolVersion"), ""), "2025-11-25");
    assert_int_equal(json_len(json_get(params, "capabilities")), 0);
    assert_int_equal(f->out.version.len, 0);
    feed(f, INITIALIZED);
    assert_int_equal(f->sent, 3); /* notifications/initialized, then tools/list */
    assert_string_equal(method(f), "tools/list");
    assert_string_equal(f->out.version.ptr, "2025-06-18");
    assert_string_equal(mcp_client_version(f->c), "2025-06-18");
    assert_string_equal(json_cstring(json_get(mcp_client_server(f->c), "name"), ""), "other");
}

static void a_revision_that_nobody_knows(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    feed(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1999-01-01\"}}");
    assert_int_equal(f->failed, 1);
    assert_int_equal(f->why.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(f->why.msg, "1999-01-01"));
}

static void a_server_without_state(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    reply(f, "\"error\":{\"code\":-32601,\"message\":\"no such method\"}");
    assert_string_equal(method(f), "server/discover");
    const struct json *meta = json_get(json_get(f->last, "params"), "_meta");
    assert_string_equal(json_cstring(json_get(meta, "io.modelcontextprotocol/protocolVersion"), ""),
                        "2026-07-28");
    assert_true(f->out.stateless);
    reply(f, "\"result\":{\"supportedVersions\":[\"2026-07-28\"],"
             "\"capabilities\":{\"tools\":{\"listChanged\":true}}}");
    assert_string_equal(method(f), "tools/list");
    assert_string_equal(f->out.version.ptr, "2026-07-28");
    reply(f, "\"result\":{\"resultType\":\"complete\",\"tools\":[]}");
    assert_string_equal(method(f), "subscriptions/listen");
    assert_int_equal(f->listed, 1);
    (void)call(f);
    meta = json_get(json_get(f->last, "params"), "_meta");
    assert_non_null(json_get(meta, "io.modelcontextprotocol/clientCapabilities"));
    feed(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    assert_int_equal(f->changed, 1);
}

static void a_server_that_refuses_both(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    reply(f, "\"error\":{\"code\":-32000,\"message\":\"go away\"}");
    reply(f, "\"error\":{\"code\":-32601,\"message\":\"what?\"}");
    assert_int_equal(f->failed, 1);
    assert_non_null(strstr(f->why.msg, "go away"));
    assert_int_equal(f->listed, 0);
}

static void a_server_that_is_gone_is_no_refusal(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    mcp_client_start(f->c);
    (void)ERR(&e, ERR_UPSTREAM, "exited");
    mcp_client_lost(f->c, 1, &e);
    assert_int_equal(f->sent, 1);
    assert_int_equal(f->failed, 1);
    assert_int_equal(f->why.code, ERR_UPSTREAM);
}

static void the_newest_revision_first(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    mcp_client_free(f->c);
    f->c = client(f, true);
    mcp_client_start(f->c);
    assert_string_equal(method(f), "server/discover");
    reply(f, "\"result\":{\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\"]}");
    assert_string_equal(mcp_client_version(f->c), "2026-07-28");
    /* Whoever does not have it gets the handshake, however it says so. */
    for (int i = 0; i < 3; i++) {
        mcp_client_free(f->c);
        f->c = client(f, true);
        mcp_client_start(f->c);
        if (i == 0) {
            reply(f, "\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{}}");
        } else if (i == 1) {
            reply(f, "\"result\":{\"supportedVersions\":[\"2025-11-25\"]}");
        } else {
            (void)ERR(&e, ERR_UPSTREAM, "status 500");
            mcp_client_lost(f->c, 1, &e);
        }
        assert_string_equal(method(f), "initialize");
        assert_false(f->out.stateless);
        reply(f, "\"result\":{\"protocolVersion\":\"2025-11-25\"}");
        assert_string_equal(mcp_client_version(f->c), "2025-11-25");
    }
    mcp_client_free(f->c);
    f->c = client(f, true);
    mcp_client_start(f->c);
    reply(f, "\"error\":{\"code\":-32601,\"message\":\"no\"}");
    reply(f, "\"error\":{\"code\":-32000,\"message\":\"go away\"}");
    assert_int_equal(f->failed, 1);
    assert_non_null(strstr(f->why.msg, "go away"));
}

/* --- the list --- */

static void all_pages_before_anybody_sees_one(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    feed(f, INITIALIZED);
    reply(f, "\"result\":{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"p2\"}");
    assert_int_equal(f->listed, 0);
    assert_string_equal(json_cstring(json_get(json_get(f->last, "params"), "cursor"), ""), "p2");
    reply(f, "\"result\":{\"tools\":[{\"name\":\"b\"}]}");
    assert_int_equal(f->listed, 1);
    assert_int_equal(json_len(f->tools), 2);
}

static void pages_without_end(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    feed(f, INITIALIZED);
    int pages = 0;
    while (f->failed == 0) {
        assert_true(pages++ < MCP_CLIENT_PAGES_MAX + 2);
        const char *page = arena_printf(
            f->arena, "\"result\":{\"tools\":[{\"name\":\"t%d\"}],\"nextCursor\":\"%d\"}", pages,
            pages);
        reply(f, page);
    }
    assert_int_equal(pages, MCP_CLIENT_PAGES_MAX + 1);
    assert_int_equal(f->why.code, ERR_LIMIT);
    assert_int_equal(f->listed, 0);
}

static void a_page_of_too_many_tools(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf page = BUF_INIT(BUF_TEXT);
    mcp_client_start(f->c);
    feed(f, INITIALIZED);
    buf_adds(&page, "\"result\":{\"tools\":[{}");
    for (int i = 0; i < MCP_CLIENT_TOOLS_MAX; i++) {
        buf_adds(&page, ",{}");
    }
    buf_adds(&page, "]}");
    reply(f, page.ptr);
    assert_int_equal(f->why.code, ERR_LIMIT);
}

static void a_list_that_goes_in_a_circle(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    feed(f, INITIALIZED);
    reply(f, "\"result\":{\"tools\":[],\"nextCursor\":\"x\"}");
    reply(f, "\"result\":{\"tools\":[],\"nextCursor\":\"x\"}");
    assert_int_equal(f->failed, 1);
    assert_int_equal(f->why.code, ERR_PROTO);
}

static void changes_are_told_once(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    for (int i = 0; i < 1000; i++) {
        feed(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    }
    assert_int_equal(f->changed, 1);
    assert_false(mcp_client_ready(f->c));
    int sent = f->sent;
    mcp_client_list(f->c);
    mcp_client_list(f->c);
    assert_int_equal(f->sent, sent + 1);
    /* It changes again while it is read: what came is handed out, that is told too. */
    feed(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    reply(f, "\"result\":{\"tools\":[]}");
    assert_int_equal(f->listed, 2);
    assert_int_equal(f->changed, 2);
    assert_int_equal(f->sent, sent + 1);
}

/* --- calls --- */

static void a_call_and_its_progress(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t key = call(f);
    const struct json *params = json_get(f->last, "params");
    assert_int_equal(json_int(json_pointer(params, STR("/_meta/progressToken")), 0), key);
    assert_int_equal(json_int(json_pointer(params, STR("/arguments/x")), 0), 1);
    for (int i = 0; i < 3; i++) { /* it must grow */
        feed(f,
             arena_printf(f->arena,
                          "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
                          "{\"progressToken\":%d,\"progress\":5,\"total\":9}}",
                          (int)key));
    }
    assert_int_equal(f->progressed, 1);
    assert_true(f->total > 8.9 && f->total < 9.1);
    reply(f, "\"result\":{\"content\":[]}");
    assert_int_equal(f->done, 1);
    assert_non_null(f->answer.result);
}

static void wrong_late_and_doubled_ids(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    (void)call(f);
    feed(f, "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}");
    feed(f, "{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{}}");
    feed(f, "{\"jsonrpc\":\"2.0\",\"id\":-1,\"result\":{}}");
    feed(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"); /* of the handshake */
    assert_int_equal(f->done, 0);
    reply(f, "\"result\":{}");
    reply(f, "\"result\":{}");
    assert_int_equal(f->done, 1);
    assert_int_equal(mcp_client_stats(f->c).strays, 5);
    assert_int_equal(f->failed, 0);
}

static void what_is_no_message_is_dropped(void **state)
{
    static const char *const bad[] = { "{\"jsonrpc\":\"2.0\",\"id\":2,\"res",
                                       "[]",
                                       "1",
                                       "hello",
                                       "{\"jsonrpc\":\"1.0\",\"id\":2,\"result\":{}}",
                                       "{\"jsonrpc\":\"2.0\",\"id\":2}",
                                       "\xff\xfe" };
    struct fixture *f = *state;
    open_client(f);
    (void)call(f);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        feed(f, bad[i]);
    }
    assert_int_equal(mcp_client_stats(f->c).broken, ARRAY_LEN(bad));
    assert_int_equal(f->done, 0);
    reply(f, "\"result\":{}");
    assert_int_equal(f->done, 1);
}

static void a_call_that_is_cancelled(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t key = call(f);
    mcp_client_cancel(f->c, key, "why not");
    assert_string_equal(method(f), "notifications/cancelled");
    assert_int_equal(json_int(json_pointer(f->last, STR("/params/requestId")), 0), key);
    assert_int_equal(f->dropped_key, key);
    feed(f, arena_printf(f->arena, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}", (int)key));
    assert_int_equal(f->done, 0);
    int sent = f->sent;
    mcp_client_cancel(f->c, key, "again");
    assert_int_equal(f->sent, sent);
}

static void an_answer_that_was_lost(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    open_client(f);
    (void)call(f);
    (void)call(f);
    (void)ERR(&e, ERR_LIMIT, "too large");
    mcp_client_lost(f->c, 0, &e); /* nobody knows whose it was */
    assert_int_equal(f->done, 2);
    assert_int_equal(f->lost.code, ERR_LIMIT);
    assert_int_equal(f->failed, 0);
    (void)call(f);
    reply(f, "\"result\":{}");
    assert_int_equal(f->done, 3);
}

static void the_end_is_told_to_all(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    uint64_t key;
    open_client(f);
    (void)call(f);
    (void)ERR(&e, ERR_UPSTREAM, "exited");
    mcp_client_end(f->c, &e);
    mcp_client_end(f->c, &e);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->failed, 1);
    const struct mcp_client_call again = {
        .name = STR("a"), .arguments = json_object(f->arena), .done = on_done, .arg = f
    };
    assert_int_equal(mcp_client_call(f->c, &again, &key, &e), -ERR_UNAVAILABLE);
    feed(f, INITIALIZED);
    assert_int_equal(f->failed, 1);
}

static void a_transport_that_takes_nothing(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    uint64_t key;
    open_client(f);
    f->blocked = true;
    const struct mcp_client_call c = {
        .name = STR("a"), .arguments = json_object(f->arena), .done = on_done, .arg = f
    };
    assert_int_equal(mcp_client_call(f->c, &c, &key, &e), -ERR_LIMIT);
    assert_int_equal(f->done, 0);
    assert_int_equal(f->failed, 0);
}

/* --- what a server asks --- */

static void a_ping_is_answered_all_else_is_refused(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    feed(f, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    assert_non_null(json_get(f->last, "result"));
    assert_string_equal(json_cstring(json_get(f->last, "id"), ""), "p");
    feed(f, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":{}}");
    assert_int_equal(json_int(json_pointer(f->last, STR("/error/code")), 0), -32601);
    assert_int_equal(id(f), 7);
    assert_int_equal(mcp_client_stats(f->c).refused, 1);
}

static void a_flood_has_an_end(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    (void)call(f);
    size_t n = 0;
    while (f->failed == 0) {
        assert_true(n++ < MCP_CLIENT_NOISE_MAX + 10);
        feed(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}");
    }
    assert_int_equal(f->why.code, ERR_LIMIT);
    assert_int_equal(f->done, 1); /* the call was told */
    assert_int_equal(f->lost.code, ERR_LIMIT);
}

static void an_answer_ends_the_counting(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    for (int round = 0; round < 3; round++) {
        (void)call(f);
        for (size_t n = 0; n < MCP_CLIENT_NOISE_MAX / 2; n++) {
            feed(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}");
        }
        reply(f, "\"result\":{}");
    }
    assert_int_equal(f->failed, 0);
    assert_int_equal(f->done, 3);
}

static void several_messages_as_one(void **state)
{
    struct fixture *f = *state;
    mcp_client_start(f->c);
    reply(f, "\"result\":{\"protocolVersion\":\"2025-03-26\"}");
    reply(f, "\"result\":{\"tools\":[]}");
    uint64_t first = call(f);
    uint64_t second = call(f);
    feed(f, arena_printf(f->arena,
                         "[{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}},5,"
                         "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}]",
                         (int)first, (int)second));
    assert_int_equal(f->done, 2);
    assert_int_equal(mcp_client_stats(f->c).broken, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_server_chooses_an_older_revision),
        TEST(a_revision_that_nobody_knows),
        TEST(a_server_without_state),
        TEST(a_server_that_refuses_both),
        TEST(a_server_that_is_gone_is_no_refusal),
        TEST(the_newest_revision_first),
        TEST(all_pages_before_anybody_sees_one),
        TEST(pages_without_end),
        TEST(a_page_of_too_many_tools),
        TEST(a_list_that_goes_in_a_circle),
        TEST(changes_are_told_once),
        TEST(a_call_and_its_progress),
        TEST(wrong_late_and_doubled_ids),
        TEST(what_is_no_message_is_dropped),
        TEST(a_call_that_is_cancelled),
        TEST(an_answer_that_was_lost),
        TEST(the_end_is_told_to_all),
        TEST(a_transport_that_takes_nothing),
        TEST(a_ping_is_answered_all_else_is_refused),
        TEST(a_flood_has_an_end),
        TEST(an_answer_ends_the_counting),
        TEST(several_messages_as_one),
    };
    return cmocka_run_group_tests_name("mcp_client", tests, NULL, NULL);
}
