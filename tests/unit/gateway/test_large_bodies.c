/* SPDX-License-Identifier: MIT
 *
 * Large bodies at the door while memory is full: they wait in their sockets where answers come
 * fast, go through a file where none comes, and arrive whole either way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/macro.h"
#include "gateway/gateway.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/stream.h"

#define SIZE   ((size_t)80000)  /* of a body … */
#define MEMORY ((size_t)100000) /* … of which one has room */
#define CALLS  4

struct client {
    struct house *house;
    struct stream *stream;
    struct buf got;
};

/* A gateway, two clients of it, and an upstream that answers when it is told to. */
struct house {
    struct upstream upstream;
    struct gateway_route route;
    struct loop *loop;
    struct gateway *gateway;
    struct client clients[2];
    struct upstream_port calls[CALLS];
    struct buf bodies[CALLS];
    size_t n;
};

static int house_start(struct upstream *up, const struct upstream_request *r,
                       const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct house *h = CONTAINER_OF(up, struct house, upstream);
    assert_true(h->n < CALLS);
    h->calls[h->n] = *port;
    buf_init(&h->bodies[h->n], BUF_TEXT);
    buf_add(&h->bodies[h->n], r->body);
    *ret = (struct upstream_call *)&h->calls[h->n++];
    loop_stop(h->loop);
    return 0;
}

static void house_cancel(struct upstream_call *call)
{
}

static const struct upstream_ops house_ops = { .start = house_start, .cancel = house_cancel };

static void answer(struct house *h, size_t i)
{
    const struct upstream_port *port = &h->calls[i];
    port->on_sent(port->arg);
    port->on_head(port->arg, 200, &(struct http_fields) { 0 });
    port->on_data(port->arg, STR("{}"));
    port->on_end(port->arg);
}

static void on_bytes(void *arg, struct str chunk)
{
    struct client *c = arg;
    buf_add(&c->got, chunk);
    loop_stop(c->house->loop);
}

static void on_end(void *arg, const struct err *why)
{
}

static void client_open(struct client *c, struct house *h, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    *c = (struct client) { .house = h, .got = BUF_INIT(BUF_TEXT) };
    const struct stream_opts o = { .port = { on_bytes, on_end, NULL, c } };
    assert_int_equal(stream_new(h->loop, fd, &o, &c->stream, NULL), 0);
}

static void house_open(struct house *h)
{
    int fd, port;
    *h = (struct house) { .upstream = { .ops = &house_ops, .name = "u", .any_format = true } };
    h->route = (struct gateway_route) { "*", &h->upstream, NULL };
    assert_int_equal(loop_new(&h->loop, NULL), 0);
    assert_int_equal(listener_bind_tcp("127.0.0.1", 0, &fd, &port, NULL), 0);
    const struct gateway_opts o = { .listeners = &fd,
                                    .n_listeners = 1,
                                    .routes = &h->route,
                                    .n_routes = 1,
                                    .limits = { .memory = MEMORY },
                                    .spill_dir = "." };
    assert_int_equal(gateway_open(h->loop, &o, &h->gateway, NULL), 0);
    client_open(&h->clients[0], h, port);
    client_open(&h->clients[1], h, port);
}

static void house_close(struct house *h)
{
    h->gateway = gateway_free(h->gateway);
    for (size_t i = 0; i < ARRAY_LEN(h->clients); i++) {
        h->clients[i].stream = stream_free(h->clients[i].stream);
        buf_done(&h->clients[i].got);
    }
    for (size_t i = 0; i < h->n; i++) {
        buf_done(&h->bodies[i]);
    }
    h->loop = loop_free(h->loop);
}

static void fill(char body[SIZE], char seed)
{
    for (size_t i = 0; i < SIZE; i++) {
        body[i] = (char)((unsigned char)seed + i * 7 % 251);
    }
}

static void ask(struct client *c, char seed)
{
    static char body[SIZE];
    CLEANUP(buf) struct buf head = BUF_INIT(BUF_TEXT);
    fill(body, seed);
    buf_addf(&head, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
             SIZE);
    const struct str pieces[] = { buf_str(&head), str_n(body, SIZE) };
    assert_int_equal(stream_write(c->stream, pieces, 2, NULL), 0);
}

static void wait_for_call(struct house *h, size_t n, char seed)
{
    static char body[SIZE];
    while (h->n < n) {
        loop_run(h->loop);
    }
    fill(body, seed);
    assert_int_equal(h->bodies[n - 1].len, SIZE);
    assert_memory_equal(h->bodies[n - 1].ptr, body, SIZE);
}

static void wait_for_answer(struct client *c)
{
    while (str_find(buf_str(&c->got), STR("0\r\n\r\n")) >= c->got.len) {
        loop_run(c->house->loop);
    }
    assert_true(str_starts(buf_str(&c->got), STR("HTTP/1.1 200 OK\r\n")));
    buf_reset(&c->got);
}

/* Until all that can happen without an answer or a timer has happened. */
static void settle(struct house *h)
{
    for (int i = 0; i < 20; i++) {
        loop_post(h->loop, (void (*)(void *))loop_stop, h->loop);
        loop_run(h->loop);
    }
}

/* One call that was answered at once, one that fills memory, and one more. False: this machine
 * stood still for so long in between that nobody waits. */
static bool make_one_wait(struct house *h)
{
    house_open(h);
    ask(&h->clients[0], 'a');
    wait_for_call(h, 1, 'a');
    answer(h, 0);
    wait_for_answer(&h->clients[0]);
    ask(&h->clients[0], 'b');
    wait_for_call(h, 2, 'b');
    ask(&h->clients[1], 'c');
    settle(h);
    return h->n == 2;
}

static void make_sure_one_waits(struct house *h)
{
    for (int tries = 0; !make_one_wait(h); tries++) {
        assert_true(tries < 50);
        house_close(h);
    }
}

static void it_waits_in_the_socket_until_there_is_room(void **state)
{
    struct house h;
    make_sure_one_waits(&h);
    answer(&h, 1);
    wait_for_answer(&h.clients[0]);
    wait_for_call(&h, 3, 'c');
    answer(&h, 2);
    wait_for_answer(&h.clients[1]);
    house_close(&h);
}

static void it_does_not_wait_for_a_model_that_thinks(void **state)
{
    struct house h;
    make_sure_one_waits(&h);
    wait_for_call(&h, 3, 'c'); /* through a file, while the other one is still under way */
    answer(&h, 2);
    wait_for_answer(&h.clients[1]);
    answer(&h, 1);
    wait_for_answer(&h.clients[0]);
    house_close(&h);
}

static void who_waits_may_leave_and_the_gateway_may_end(void **state)
{
    struct house h;
    make_sure_one_waits(&h);
    h.clients[1].stream = stream_free(h.clients[1].stream);
    answer(&h, 1);
    wait_for_answer(&h.clients[0]);
    settle(&h);
    house_close(&h);
    make_sure_one_waits(&h);
    house_close(&h); /* the sanitizer says whether something is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_waits_in_the_socket_until_there_is_room),
        cmocka_unit_test(it_does_not_wait_for_a_model_that_thinks),
        cmocka_unit_test(who_waits_may_leave_and_the_gateway_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
