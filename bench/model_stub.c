/* SPDX-License-Identifier: MIT
 *
 * The provider of bench/gateway: answers every request at once, with a small JSON message, or with
 * a stream of 500 events, each in a chunk and a write of its own, when the body asks for one.
 * Prints its port; ends with its standard input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/reader.h"
#include "io/stream.h"
#include "wire/http.h"

enum { EVENTS = 500 };

struct server {
    struct loop *loop;
    struct buf message;
    struct buf chunks[EVENTS];
};

struct client {
    struct server *server;
    struct stream *stream;
    struct http *http;
    bool wants_stream;
    size_t seen; /* of the body: the wish stands near its beginning */
};

static void make_answers(struct server *s)
{
    static const char body[] =
        "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"stub\","
        "\"content\":[{\"type\":\"text\",\"text\":\"The answer of the stub.\"}],"
        "\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}";
    buf_init(&s->message, BUF_TEXT);
    buf_addf(&s->message,
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    for (int i = 0; i < EVENTS; i++) {
        CLEANUP(buf) struct buf event = BUF_INIT(BUF_TEXT);
        if (i == 0) {
            buf_adds(&event,
                     "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{"
                     "\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":"
                     "\"stub\",\"content\":[],\"usage\":{\"input_tokens\":10,"
                     "\"output_tokens\":1}}}\n\n");
        } else if (i == EVENTS - 2) {
            buf_adds(&event,
                     "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"
                     "\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":500}}\n\n");
        } else if (i == EVENTS - 1) {
            buf_adds(&event, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        } else {
            buf_addf(&event,
                     "event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
                     "\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word %d \"}}\n\n",
                     i);
        }
        buf_init(&s->chunks[i], BUF_TEXT);
        if (i == 0) {
            buf_adds(&s->chunks[i], "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n");
        }
        buf_addf(&s->chunks[i], "%zx\r\n%s\r\n%s", event.len, event.ptr,
                 i == EVENTS - 1 ? "0\r\n\r\n" : "");
    }
}

static void answer(struct client *c)
{
    struct server *s = c->server;
    struct str piece = buf_str(&s->message);
    if (!c->wants_stream) {
        (void)!stream_write(c->stream, &piece, 1, NULL);
        return;
    }
    for (int i = 0; i < EVENTS; i++) {
        piece = buf_str(&s->chunks[i]);
        (void)!stream_write(c->stream, &piece, 1, NULL);
    }
}

static void leave(struct client *c)
{
    c->stream = stream_free(c->stream);
    c->http = http_free(c->http);
    loop_retire(c->server->loop, free, c);
}

static void on_bytes(void *arg, struct str in)
{
    struct client *c = arg;
    struct str body;
    int event;
    while ((event = http_next(c->http, &in, &body, NULL)) > HTTP_EV_MORE) {
        if (event == HTTP_EV_HEAD) {
            c->wants_stream = false;
            c->seen = 0;
        } else if (event == HTTP_EV_BODY && c->seen == 0) {
            struct str start = str_slice(body, 0, 200);
            c->seen = body.len;
            c->wants_stream = str_find(start, STR("\"stream\":true")) < start.len;
        } else if (event == HTTP_EV_END) {
            answer(c);
        }
    }
    if (event < 0) {
        leave(c);
    }
}

static void on_end(void *arg, const struct err *why)
{
    (void)why;
    leave(arg);
}

static void on_connection(void *arg, int fd)
{
    struct client *c = xcalloc(1, sizeof *c);
    const struct stream_opts o = { .max = (size_t)64 << 20, .port = { on_bytes, on_end, NULL, c } };
    c->server = arg;
    c->http = http_new(HTTP_REQUESTS);
    if (stream_new(c->server->loop, fd, &o, &c->stream, NULL) < 0) {
        exit(1);
    }
}

static void on_input(void *arg, struct str bytes)
{
    (void)arg;
    (void)bytes;
}

static void on_input_end(void *arg, const struct err *why)
{
    (void)why;
    loop_stop(((struct server *)arg)->loop);
}

int main(void)
{
    struct server s = { 0 };
    struct listener *listener;
    struct reader *input;
    struct err e;
    int fd, port;
    make_answers(&s);
    if (loop_new(&s.loop, &e) < 0 || listener_bind_tcp("127.0.0.1", 0, &fd, &port, &e) < 0 ||
        listener_new(s.loop, fd, on_connection, &s, &listener, &e) < 0 ||
        reader_new(s.loop, 0, &(struct reader_port) { on_input, on_input_end, &s }, &input, &e) <
            0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    printf("%d\n", port);
    (void)fflush(stdout);
    loop_run(s.loop);
    return 0;
}
