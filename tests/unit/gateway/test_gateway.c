/* SPDX-License-Identifier: MIT
 *
 * The door with a fake upstream and fake filters: in which order they are asked, what waiting,
 * refusing and trying again do, and that each is told the end exactly once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "gateway/gateway.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/stream.h"

/* --- a fake upstream: answers what `plan` says, attempt by attempt --- */

struct world;

struct fake_call {
    struct world *world;
    struct upstream_port port;
    bool over;
};

struct world {
    struct upstream upstream;
    struct loop *loop;
    struct gateway *gateway;
    struct stream *client;
    int port;
    struct buf log; /* what happened, in words */
    struct buf got; /* by the client */
    const char
        *plan; /* one letter an attempt: 'o' good, 'e' status 529, 'x' no answer, 'h' hangs */
    size_t attempts;
    struct buf body; /* that the upstream saw last */
    int waits;       /* how often filter `b` asks to wait */
    int64_t cut;     /* max_output that filter `b` demands */
    bool refuse;     /* filter `b` refuses */
    bool again;      /* filter `b` tries again after an error */
    nsec delay;
};

static void note(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct world *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    assert_int_equal(buf_vprintf(&w->log, NULL, fmt, ap), 0);
    va_end(ap);
    buf_adds(&w->log, " ");
}

static void fake_answer(void *arg)
{
    struct fake_call *c = arg;
    struct world *w = c->world;
    const struct http_field type = { STR("Content-Type"), STR("application/json") };
    const struct http_fields fields = { &type, 1 };
    char step = w->plan[w->attempts - 1];
    if (c->over || step == 'h') {
        return;
    }
    if (step == 'x') {
        c->over = true;
        c->port.on_error(c->port.arg, &(struct upstream_error) { .kind = UPSTREAM_CUT,
                                                                 .retry_after = -1,
                                                                 .message = "gone" });
        return;
    }
    c->port.on_head(c->port.arg, step == 'o' ? 200 : 529, &fields);
    for (int i = 0; i < 2 && !c->over; i++) {
        c->port.on_data(c->port.arg, i == 0 ? STR("{\"a\":") : STR("1}"));
    }
    if (!c->over) {
        c->over = true;
        c->port.on_end(c->port.arg);
    }
}

static int fake_start(struct upstream *up, const struct upstream_request *r,
                      const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct world *w = CONTAINER_OF(up, struct world, upstream);
    struct fake_call *c = xcalloc(1, sizeof *c);
    w->attempts++;
    assert_int_equal(r->attempt, w->attempts);
    buf_reset(&w->body);
    buf_add(&w->body, r->body);
    note(w, "call%d", r->attempt);
    *c = (struct fake_call) { .world = w, .port = *port };
    loop_post(w->loop, fake_answer, c);
    loop_post(w->loop, free, c);
    if (w->plan[w->attempts - 1] == 'h') {
        loop_stop(w->loop);
    }
    *ret = (struct upstream_call *)c;
    return 0;
}

static void fake_cancel(struct upstream_call *call)
{
    struct fake_call *c = (struct fake_call *)call;
    (void)c; /* freed by the loop already, or about to be */
}

static const struct upstream_ops fake_ops = { .start = fake_start, .cancel = fake_cancel };

/* --- filters --- */

static void a_request(void *arg, const struct exchange_view *x, void **slot,
                      struct filter_answer *ret)
{
    note(arg, "a:request");
    assert_null(*slot);
    *slot = xstrdup("a's own");
}

static void a_answer(void *arg, const struct exchange_view *x, void **slot,
                     const struct filter_outcome *o, struct filter_answer *ret)
{
    note(arg, "a:answer=%d", o->status);
}

static void a_data(void *arg, const struct exchange_view *x, void **slot, struct str bytes)
{
    note(arg, "a:data=%.*s", STR_ARG(bytes));
}

static void a_done(void *arg, const struct exchange_view *x, void **slot,
                   const struct filter_done *d)
{
    assert_string_equal(*slot, "a's own");
    free(*slot);
    note(arg, "a:done=%d%s%s", d->status, d->complete ? "" : ",part", d->cancelled ? ",left" : "");
}

static void b_request(void *arg, const struct exchange_view *x, void **slot,
                      struct filter_answer *ret)
{
    struct world *w = arg;
    note(w, "b:request");
    if (w->waits-- > 0) {
        *ret = (struct filter_answer) { .verdict = FILTER_WAIT, .delay = w->delay };
    } else if (w->refuse) {
        *ret = (struct filter_answer) {
            .verdict = FILTER_REFUSE,
            .error = { .kind = LLM_ERR_QUOTA, .status = 400, .message = STR("used up") },
            .reason = "budget",
        };
    } else {
        ret->max_output = w->cut;
    }
}

static void b_attempt(void *arg, const struct exchange_view *x, void **slot,
                      struct filter_answer *ret)
{
    note(arg, "b:attempt");
}

static void b_answer(void *arg, const struct exchange_view *x, void **slot,
                     const struct filter_outcome *o, struct filter_answer *ret)
{
    struct world *w = arg;
    note(w, "b:answer=%d,%zu", o->status, o->body.len);
    if (w->again && o->status != 200) {
        *ret = (struct filter_answer) { .verdict = FILTER_WAIT, .delay = NSEC_PER_MS };
    }
}

static void b_done(void *arg, const struct exchange_view *x, void **slot,
                   const struct filter_done *d)
{
    note(arg, "b:done=%d", d->attempts);
}

/* --- the world --- */

static void on_client_bytes(void *arg, struct str chunk)
{
    struct world *w = arg;
    buf_add(&w->got, chunk);
}

static void on_client_end(void *arg, const struct err *why)
{
    struct world *w = arg;
    loop_stop(w->loop);
}

static void on_event(void *arg, const struct gateway_event *ev)
{
    static const char *const words[] = { "call", "retry", "refused", "egress", "denied" };
    note(arg, "event:%s", words[ev->kind]);
}

static void world_open(struct world *w, const struct filter *filters, size_t n)
{
    static struct gateway_route route;
    static struct gateway_mount mount;
    int fd;
    struct sockaddr_in to = { .sin_family = AF_INET };
    *w = (struct world) { .upstream = { .ops = &fake_ops, .name = "fake", .any_format = true },
                          .plan = "oooooo",
                          .log = BUF_INIT(BUF_TEXT),
                          .got = BUF_INIT(BUF_TEXT),
                          .body = BUF_INIT(BUF_TEXT),
                          .delay = NSEC_PER_MS };
    route = (struct gateway_route) { "*", &w->upstream, NULL };
    mount = (struct gateway_mount) { "/mcp", &w->upstream };
    assert_int_equal(loop_new(&w->loop, NULL), 0);
    assert_int_equal(listener_bind_tcp("127.0.0.1", 0, &fd, &w->port, NULL), 0);
    const struct gateway_opts o = { .listeners = &fd,
                                    .n_listeners = 1,
                                    .token = "secret",
                                    .routes = &route,
                                    .n_routes = 1,
                                    .mounts = &mount,
                                    .n_mounts = 1,
                                    .filters = filters,
                                    .n_filters = n,
                                    .port = { on_event, w } };
    assert_int_equal(gateway_open(w->loop, &o, &w->gateway, NULL), 0);
    to.sin_port = htons((uint16_t)w->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    const struct stream_opts so = { .port = { on_client_bytes, on_client_end, NULL, w } };
    assert_int_equal(stream_new(w->loop, fd, &so, &w->client, NULL), 0);
}

/* Sends one request; returns when the gateway has closed the connection. */
static void ask_at(struct world *w, const char *path, const char *token, const char *body)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_addf(&text,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nx-api-key: %s\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             path, token, strlen(body), body);
    struct str piece = buf_str(&text);
    assert_int_equal(stream_write(w->client, &piece, 1, NULL), 0);
    loop_run(w->loop);
}

static void ask(struct world *w, const char *body)
{
    ask_at(w, "/v1/messages", "secret", body);
}

static void world_close(struct world *w)
{
    w->gateway = gateway_free(w->gateway);
    w->client = stream_free(w->client);
    w->loop = loop_free(w->loop);
    buf_done(&w->log);
    buf_done(&w->got);
    buf_done(&w->body);
}

static void make_filters(struct world *w, struct filter out[2])
{
    out[0] = (struct filter) { .name = "a",
                               .arg = w,
                               .on_request = a_request,
                               .on_answer = a_answer,
                               .on_data = a_data,
                               .on_done = a_done };
    out[1] = (struct filter) { .name = "b",
                               .arg = w,
                               .on_request = b_request,
                               .on_attempt = b_attempt,
                               .on_answer = b_answer,
                               .on_done = b_done };
}

#define BODY "{\"model\":\"m\",\"max_tokens\":100}"

static void test_filters_in_order(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    ask(&w, BODY);
    assert_string_equal(w.log.ptr,
                        "a:request b:request b:attempt call1 a:answer=200 b:answer=200,0 "
                        "a:data={\"a\": a:data=1} a:done=200 b:done=1 event:call ");
    assert_true(str_starts(buf_str(&w.got), STR("HTTP/1.1 200 OK\r\n")));
    assert_true(str_eqc(buf_str(&w.body), BODY));
    world_close(&w);
}

static void test_waiting_is_asking_again(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    w.waits = 2;
    ask(&w, BODY);
    assert_true(str_starts(buf_str(&w.log), STR("a:request b:request b:request b:request b:attempt "
                                                "call1 ")));
    world_close(&w);
}

static void test_a_refusal_has_the_clients_shape_and_goes_no_further(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    w.refuse = true;
    ask(&w, BODY);
    /* Only who let it pass is told the end. */
    assert_string_equal(w.log.ptr, "a:request b:request event:refused a:done=400 ");
    struct str got = buf_str(&w.got);
    assert_true(str_starts(got, STR("HTTP/1.1 400 Bad Request\r\n")));
    assert_true(str_find(got, STR("X-Cinch-Reason: budget\r\n")) < got.len);
    assert_true(str_find(got, STR("x-should-retry: false\r\n")) < got.len);
    assert_true(str_find(got, STR("\"message\":\"used up\"")) < got.len);
    world_close(&w);
}

static void test_trying_again_is_not_seen_by_the_client(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    w.plan = "exo";
    w.again = true;
    ask(&w, BODY);
    assert_string_equal(
        w.log.ptr, "a:request b:request b:attempt call1 a:answer=529 b:answer=529,7 event:retry "
                   "b:attempt call2 a:answer=0 b:answer=0,0 event:retry "
                   "b:attempt call3 a:answer=200 b:answer=200,0 "
                   "a:data={\"a\": a:data=1} a:done=200 b:done=3 event:call ");
    assert_true(str_starts(buf_str(&w.got), STR("HTTP/1.1 200 OK\r\n")));
    world_close(&w);
}

static void test_an_error_that_is_let_pass_arrives_whole(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    w.plan = "e";
    ask(&w, BODY);
    struct str got = buf_str(&w.got);
    assert_true(str_starts(got, STR("HTTP/1.1 529 Overloaded\r\n")));
    assert_true(str_find(got, STR("{\"a\":1}")) < got.len);
    world_close(&w);
}

static void test_a_budget_cuts_the_request(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    w.cut = 42;
    ask(&w, BODY);
    assert_true(str_eqc(buf_str(&w.body), "{\"model\":\"m\",\"max_tokens\":42}"));
    world_close(&w);
}

static void test_a_client_that_leaves_is_told_once(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    w.plan = "h";
    ask(&w, BODY); /* returns when the call hangs */
    w.client = stream_free(w.client);
    while (gateway_connections(w.gateway) > 0) {
        loop_post(w.loop, (void (*)(void *))loop_stop, w.loop);
        loop_run(w.loop);
    }
    /* Its call is read to the end, or here: until the gateway closes. */
    assert_string_equal(w.log.ptr, "a:request b:request b:attempt call1 ");
    w.gateway = gateway_free(w.gateway);
    assert_string_equal(w.log.ptr,
                        "a:request b:request b:attempt call1 a:done=0,part,left b:done=1 "
                        "event:call ");
    world_close(&w);
}

static void test_closing_the_gateway_ends_what_is_under_way(void **state)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    w.plan = "h";
    ask(&w, BODY);
    w.gateway = gateway_free(w.gateway);
    assert_string_equal(w.log.ptr,
                        "a:request b:request b:attempt call1 a:done=0,part,left b:done=1 "
                        "event:call ");
    world_close(&w);
}

static void ask_mount(const char *path, const char *token, const char *status, const char *log)
{
    struct world w;
    struct filter f[2];
    make_filters(&w, f);
    world_open(&w, f, 2);
    buf_adds(&w.log, "");
    ask_at(&w, path, token, "any bytes");
    assert_true(str_starts(str_slice(buf_str(&w.got), 9, w.got.len), str_of(status)));
    assert_string_equal(w.log.ptr, log);
    if (status[0] == '2') {
        assert_true(str_eqc(buf_str(&w.body), "any bytes"));
    }
    world_close(&w);
}

static void test_a_mount_is_behind_the_token_and_beside_the_filters(void **state)
{
    ask_mount("/mcp", "secret", "200", "call1 ");
    ask_mount("/mcp/below?x", "secret", "200", "call1 ");
    ask_mount("/mcp", "wrong", "401", "event:refused ");
    ask_mount("/mcpx", "secret", "404", "event:refused ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters_in_order),
        cmocka_unit_test(test_waiting_is_asking_again),
        cmocka_unit_test(test_a_refusal_has_the_clients_shape_and_goes_no_further),
        cmocka_unit_test(test_trying_again_is_not_seen_by_the_client),
        cmocka_unit_test(test_an_error_that_is_let_pass_arrives_whole),
        cmocka_unit_test(test_a_budget_cuts_the_request),
        cmocka_unit_test(test_a_client_that_leaves_is_told_once),
        cmocka_unit_test(test_closing_the_gateway_ends_what_is_under_way),
        cmocka_unit_test(test_a_mount_is_behind_the_token_and_beside_the_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
