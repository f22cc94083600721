/* SPDX-License-Identifier: MIT
 *
 * HTTP messages: the same events whatever the cut; every shape that two readers could understand
 * differently is refused; bounds; writing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "wire/http.h"

static void print_head(const struct http_head *h, struct buf *out)
{
    if (h->status != 0) {
        buf_addf(out, "<%d", h->status);
    } else {
        buf_addf(out, "<%.*s %.*s", STR_ARG(h->method), STR_ARG(h->target));
    }
    buf_addf(out, " 1.%d len %d%s%s", h->minor, (int)h->length, h->chunked ? " chunked" : "",
             h->keep_alive ? "" : " close");
    for (size_t i = 0; i < h->fields.len; i++) {
        const struct http_field *f = &h->fields.items[i];
        buf_addf(out, "|%.*s=%.*s", STR_ARG(f->name), STR_ARG(f->value));
    }
    buf_adds(out, ">");
}

/* Feeds the text in steps, prints the events, with pieces of a body joined; the result of the last
 * call. */
static int parse(enum http_kind kind, struct str text, size_t step, struct buf *out)
{
    struct http *h = http_new(kind);
    struct err e;
    int r = 0;
    buf_adds(out, "");
    for (size_t i = 0; i < text.len && r >= 0; i += step) {
        CLEANUP(buf) struct buf chunk = BUF_INIT(BUF_TEXT);
        buf_add(&chunk, str_slice(text, i, i + step));
        struct str in = buf_str(&chunk), body;
        while ((r = http_next(h, &in, &body, &e)) > HTTP_EV_MORE) {
            if (r == HTTP_EV_HEAD) {
                print_head(http_head(h), out);
            } else if (r == HTTP_EV_BODY) {
                assert_true(body.len > 0);
                buf_add(out, body);
            } else {
                buf_adds(out, "$");
            }
        }
    }
    int end = r < 0 ? r : http_end(h, &e);
    if (end == 1) {
        buf_adds(out, "$");
    }
    if (end < 0) {
        struct str in = STR("x"), body;
        if (r < 0) {
            assert_int_equal(http_next(h, &in, &body, &e), r); /* stays failed */
        }
    }
    http_free(h);
    return end < 0 ? end : 0;
}

static void expect(enum http_kind kind, const char *text, const char *want)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
        assert_int_equal(parse(kind, str_of(text), step, &got), 0);
        assert_string_equal(got.ptr, want);
    }
}

static void refuse_bytes(struct str text, enum err_code code)
{
    for (size_t step = 1; step <= text.len + 1; step++) {
        CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
        int r = parse(HTTP_REQUESTS, text, step, &got);
        if (r != -(int)code) {
            print_error("'%.*s' in steps of %zu\n", STR_ARG(text), step);
        }
        assert_int_equal(r, -(int)code);
    }
}

static void refuse(const char *text, enum err_code code)
{
    refuse_bytes(str_of(text), code);
}

static void test_requests(void **state)
{
    expect(HTTP_REQUESTS, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "<GET / 1.1 len -1|Host=h>$");
    expect(HTTP_REQUESTS,
           "POST /v1/messages?beta=true HTTP/1.1\r\nHost: h:1\r\nX:\t a b \r\n"
           "content-length: 5\r\n\r\nhello",
           "<POST /v1/messages?beta=true 1.1 len 5|Host=h:1|X=a b|content-length=5>hello$");
    expect(HTTP_REQUESTS,
           "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
           "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
           "<POST / 1.1 len -1 chunked|Host=h|Transfer-Encoding=Chunked>abcde$");
    expect(HTTP_REQUESTS, "GET / HTTP/1.0\r\n\r\n", "<GET / 1.0 len -1 close>$");
    expect(HTTP_REQUESTS, "GET http://h/p HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
           "<GET http://h/p 1.1 len -1 close|Host=h|Connection=close>$");
}

static void test_one_message_after_the_other(void **state)
{
    expect(HTTP_REQUESTS,
           "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"
           "GET /b HTTP/1.1\r\nHost: h\r\n\r\n"
           "HEAD /c HTTP/1.1\r\nHost: h\r\n\r\n",
           "<POST /a 1.1 len 1|Host=h|Content-Length=1>x$<GET /b 1.1 len -1|Host=h>$"
           "<HEAD /c 1.1 len -1|Host=h>$");
}

static void test_a_tunnel_is_left_alone(void **state)
{
    struct http *h = http_new(HTTP_REQUESTS);
    struct str in = STR("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n\x16\x03\x01"), body;
    assert_int_equal(http_next(h, &in, &body, NULL), HTTP_EV_HEAD);
    assert_true(str_eqc(http_head(h)->target, "h:443"));
    assert_int_equal(http_next(h, &in, &body, NULL), HTTP_EV_END);
    assert_int_equal(in.len, 3);
    http_free(h);
}

static void test_an_upgrade_is_not_taken(void **state)
{
    expect(HTTP_REQUESTS,
           "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
           "Content-Length: 2\r\n\r\nhi",
           "<POST / 1.1 len 2|Host=h|Connection=upgrade|Upgrade=h2c|Content-Length=2>hi$");
    expect(HTTP_REQUESTS,
           "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket"
           "\r\n\r\n",
           "<GET / 1.1 len -1|Host=h|Connection=upgrade|Upgrade=websocket>$");
}

static void test_responses(void **state)
{
    expect(HTTP_RESPONSES,
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
           "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
           "<200 1.1 len 2|Content-Length=2>hi$<404 1.1 len 0|Content-Length=0>$");
    expect(HTTP_RESPONSES,
           "HTTP/1.1 100 Continue\r\n\r\n"
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
           "<100 1.1 len -1>$<200 1.1 len -1 chunked|Transfer-Encoding=chunked>a$");
    expect(HTTP_RESPONSES, "HTTP/1.1 200 OK\r\n\r\nuntil the end",
           "<200 1.1 len -1 close>until the end$");
}

static void test_the_answer_to_head_has_no_body(void **state)
{
    struct http *h = http_new(HTTP_RESPONSES);
    struct str in = STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), body;
    http_expect_no_body(h);
    assert_int_equal(http_next(h, &in, &body, NULL), HTTP_EV_HEAD);
    assert_int_equal(http_next(h, &in, &body, NULL), HTTP_EV_END);
    assert_true(http_idle(h));
    http_free(h);
}

#define HEAD "POST / HTTP/1.1\r\nHost: h\r\n"

static void test_smuggling_shapes_are_refused(void **state)
{
    refuse(HEAD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ERR_PROTO);
    refuse(HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", ERR_PROTO);
    refuse(HEAD "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Content-Length: 3, 3\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Content-Length: +3\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Content-Length: -3\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Content-Length: 0x3\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Content-Length: 3 3\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Content-Length:\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Content-Length: 99999999999999999999\r\n\r\nabc", ERR_PROTO);
    refuse(HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", ERR_UNSUPPORTED);
    refuse(HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           ERR_PROTO);
    refuse(HEAD "Transfer-Encoding: identity\r\n\r\n", ERR_PROTO);
    refuse(HEAD "Transfer-Encoding: chunked, gzip\r\n\r\n", ERR_PROTO);
    refuse(HEAD "Transfer-Encoding: xchunked\r\n\r\n", ERR_PROTO);
    refuse(HEAD "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", ERR_PROTO);
    refuse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ERR_UNSUPPORTED);
    refuse("CONNECT h:1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", ERR_PROTO);
}

static void test_line_ends_and_folding(void **state)
{
    refuse("GET / HTTP/1.1\nHost: h\n\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: h\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: h\r\n Folded: c\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\n Host: h\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: h\r\nA: b\rC: d\r\n\r\n", ERR_PROTO);
    refuse_bytes(STR("GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n"), ERR_PROTO);
    refuse_bytes(STR("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"), ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: h\r\n: c\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", ERR_PROTO);
}

static void test_request_lines(void **state)
{
    refuse("\r\n\r\n", ERR_PROTO);
    refuse("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET /  HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET /#x HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET h HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.2\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/2.0\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET / RTSP/1.0\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET / http/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("GET /\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("BREW / HTTP/1.1\r\nHost: h\r\n\r\n", ERR_UNSUPPORTED);
    refuse("get / HTTP/1.1\r\nHost: h\r\n\r\n", ERR_UNSUPPORTED);
    refuse("GET / HTTP/1.1\r\n\r\n", ERR_PROTO);
    refuse("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", ERR_PROTO);
    refuse("CONNECT /x HTTP/1.1\r\nHost: h\r\n\r\n", ERR_PROTO);
    refuse("\x16\x03\x01\x02\r\n\r\n", ERR_PROTO);
}

static void test_chunks_that_lie(void **state)
{
    static const char *const bodies[] = {
        "3\r\nab\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "x\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "\r\nabc\r\n0\r\n\r\n",
        "3\nabc\n0\n\n",
        "3\r\nabc0\r\n\r\n",
        "ffffffffffffffffff\r\na\r\n0\r\n\r\n",
        "3;\na=b\r\nabc\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        buf_addf(&text, HEAD "Transfer-Encoding: chunked\r\n\r\n%s", bodies[i]);
        refuse(text.ptr, ERR_PROTO);
    }
}

static void test_bounds(void **state)
{
    CLEANUP(buf) struct buf fits = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf many = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf large = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
    buf_adds(&fits, "GET / HTTP/1.1\r\nHost: h\r\n");
    buf_adds(&large, "GET / HTTP/1.1\r\nHost: h\r\nA: ");
    for (int i = 0; i < HTTP_FIELDS_MAX - 1; i++) {
        buf_addf(&fits, "F%d: x\r\n", i);
    }
    buf_add(&many, buf_str(&fits));
    buf_adds(&fits, "\r\n");
    buf_adds(&many, "One: more\r\n\r\n");
    for (size_t i = 0; i < HTTP_HEAD_MAX; i += 8) {
        buf_adds(&large, "01234567");
    }
    assert_int_equal(parse(HTTP_REQUESTS, buf_str(&fits), 1000, &got), 0);
    assert_int_equal(parse(HTTP_REQUESTS, buf_str(&many), 1000, &got), -ERR_LIMIT);
    assert_int_equal(parse(HTTP_REQUESTS, buf_str(&large), 1000, &got), -ERR_LIMIT);
    assert_int_equal(parse(HTTP_REQUESTS, buf_str(&large), large.len, &got), -ERR_LIMIT);
}

static void test_what_stands_beside_a_body_is_bounded(void **state)
{
    for (size_t kind = 0; kind < 2; kind++) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
        buf_adds(&text, HEAD "Transfer-Encoding: chunked\r\n\r\n");
        buf_adds(&text, kind == 1 ? "0\r\n" : "");
        for (int i = 0; i < 8000; i++) {
            buf_addf(&text, kind == 0 ? "1;%d=aaaaaaaaaaaaaaaa\r\nx\r\n" : "T%d: bbbbbbbbbbbb\r\n",
                     i);
        }
        assert_int_equal(parse(HTTP_REQUESTS, buf_str(&text), 4096, &got), -ERR_LIMIT);
    }
}

static void test_the_end_in_the_midst(void **state)
{
    refuse("GET / HT", ERR_PROTO);
    refuse(HEAD "Content-Length: 3\r\n\r\nab", ERR_PROTO);
    refuse(HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", ERR_PROTO);
}

static void test_fields(void **state)
{
    const struct http_field list[] = {
        { STR("Connection"), STR("close, X-Mine") },
        { STR("X-Mine"), STR("1") },
        { STR("anthropic-beta"), STR("a,b") },
        { STR("ANTHROPIC-BETA"), STR("c") },
    };
    const struct http_fields f = { list, ARRAY_LEN(list) };
    assert_true(str_eqc(*http_find(&f, "anthropic-beta"), "a,b"));
    assert_null(http_find(&f, "host"));
    assert_int_equal(http_count(&f, "anthropic-beta"), 2);
    assert_true(http_has_word(&f, "connection", STR("CLOSE")));
    assert_true(http_has_word(&f, "anthropic-beta", STR("c")));
    assert_false(http_has_word(&f, "anthropic-beta", STR("a,b")));
    assert_true(http_is_hop_by_hop(&f, STR("Transfer-Encoding")));
    assert_true(http_is_hop_by_hop(&f, STR("x-mine")));
    assert_false(http_is_hop_by_hop(&f, STR("anthropic-beta")));
    struct str value;
    assert_true(http_query_find(STR("/p?a=1&key=s%20&b"), "key", &value));
    assert_true(str_eqc(value, "s%20"));
    assert_true(http_query_find(STR("/p?a=1&b"), "b", &value));
    assert_int_equal(value.len, 0);
    assert_false(http_query_find(STR("/key=1"), "key", &value));
    assert_false(http_query_find(STR("/p?monkey=1"), "key", &value));
}

static void test_writing(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    char chunk[HTTP_CHUNK_HEAD_LEN];
    assert_int_equal(http_write_request(STR("POST"), STR("/p?q"), &out, NULL), 0);
    assert_int_equal(http_write_field(STR("A"), STR("b\tc"), &out, NULL), 0);
    assert_int_equal(http_write_status(429, &out, NULL), 0);
    assert_int_equal(http_write_status(799, &out, NULL), 0);
    assert_int_equal(http_write_length(0, &out, NULL), 0);
    assert_int_equal(http_write_length(UINT64_MAX, &out, NULL), 0);
    assert_string_equal(out.ptr, "POST /p?q HTTP/1.1\r\nA: b\tc\r\n"
                                 "HTTP/1.1 429 Too Many Requests\r\nHTTP/1.1 799 \r\n"
                                 "Content-Length: 0\r\n"
                                 "Content-Length: 18446744073709551615\r\n");
    assert_int_equal(http_write_status(99, &out, NULL), -ERR_PROTO);
    assert_int_equal(http_write_status(1000, &out, NULL), -ERR_PROTO);
    assert_int_equal(http_write_request(STR("GET"), STR("/ HTTP/1.1\r\nX: y"), &out, NULL),
                     -ERR_PROTO);
    assert_int_equal(http_write_field(STR("A"), STR("b\r\nX: y"), &out, NULL), -ERR_PROTO);
    assert_int_equal(http_write_field(STR("A:"), STR("b"), &out, NULL), -ERR_PROTO);
    assert_int_equal(http_write_field(STR(""), STR("b"), &out, NULL), -ERR_PROTO);
    assert_int_equal(http_write_field(STR("A"), STR("b\0c"), &out, NULL), -ERR_PROTO);
    assert_true(str_eqc(http_chunk_head(0x1f4, chunk), "1f4\r\n"));
    assert_true(str_eqc(http_chunk_head(SIZE_MAX, chunk), "ffffffffffffffff\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_one_message_after_the_other),
        cmocka_unit_test(test_a_tunnel_is_left_alone),
        cmocka_unit_test(test_an_upgrade_is_not_taken),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_the_answer_to_head_has_no_body),
        cmocka_unit_test(test_smuggling_shapes_are_refused),
        cmocka_unit_test(test_line_ends_and_folding),
        cmocka_unit_test(test_request_lines),
        cmocka_unit_test(test_chunks_that_lie),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_what_stands_beside_a_body_is_bounded),
        cmocka_unit_test(test_the_end_in_the_midst),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
