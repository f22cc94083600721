/* SPDX-License-Identifier: MIT
 *
 * The site: who asks has the page and is counted; who only connects is not.
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

#include "ack/test_server.h"
#include "io/loop.h"
#include "io/watch.h"

struct visit {
    struct loop *loop;
    struct watch *watch;
    int fd;
    char answer[512];
    size_t len;
};

static int call(const struct test_server *s)
{
    char host[32];
    int port = 0;
    assert_int_equal(sscanf(test_server_address(s), "%31[^:]:%d", host, &port), 2);
    assert_string_equal(host, "127.0.0.2");
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void on_answer(void *arg, unsigned events)
{
    struct visit *v = arg;
    ssize_t n = recv(v->fd, v->answer + v->len, sizeof v->answer - 1 - v->len, MSG_DONTWAIT);
    v->len += n > 0 ? (size_t)n : 0;
    if (n <= 0) {
        v->watch = watch_free(v->watch);
        loop_stop(v->loop);
    }
}

/* Sends it, or closes our side where there is nothing to send, and waits for the end. */
static void visit(struct visit *v, const struct test_server *s, const char *request)
{
    *v = (struct visit) { .loop = v->loop, .fd = call(s) };
    struct err e;
    assert_int_equal(watch_new(v->loop, v->fd, on_answer, v, &v->watch, &e), 0);
    watch_set(v->watch, WATCH_READ);
    if (request[0] == '\0') {
        assert_int_equal(shutdown(v->fd, SHUT_WR), 0);
    } else {
        assert_int_equal(send(v->fd, request, strlen(request), 0), strlen(request));
    }
    loop_run(v->loop);
    close(v->fd);
}

static void test_visits(void **state)
{
    struct loop *l;
    struct test_server *s;
    struct err e;
    assert_int_equal(loop_new(&l, &e), 0);
    assert_int_equal(test_server_open(l, &s, &e), 0);
    struct visit v = { .loop = l };
    assert_int_equal(test_server_visits(s), 0);
    for (size_t i = 1; i <= 100; i++) { /* more than can be there at a time */
        visit(&v, s, "GET /page HTTP/1.1\r\n\r\n");
        assert_int_equal(test_server_visits(s), i);
        assert_non_null(strstr(v.answer, "200 OK"));
        assert_non_null(strstr(v.answer, "\r\n\r\n" SITE_PAGE));
    }
    visit(&v, s, "");
    assert_int_equal(test_server_visits(s), 100);
    assert_int_equal(v.len, 0);
    int waiting = call(s); /* still there when the site goes */
    s = test_server_free(s);
    l = loop_free(l);
    close(waiting);
}

static void test_two_sites(void **state)
{
    struct loop *l;
    struct test_server *one, *two;
    struct err e;
    assert_int_equal(loop_new(&l, &e), 0);
    assert_int_equal(test_server_open(l, &one, &e), 0);
    assert_int_equal(test_server_open(l, &two, &e), 0);
    assert_string_not_equal(test_server_address(one), test_server_address(two));
    struct visit v = { .loop = l };
    visit(&v, two, "x");
    assert_int_equal(test_server_visits(one), 0);
    assert_int_equal(test_server_visits(two), 1);
    one = test_server_free(one);
    two = test_server_free(two);
    assert_null(test_server_free(NULL));
    l = loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visits),
        cmocka_unit_test(test_two_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
