/* SPDX-License-Identifier: MIT
 *
 * Lines of a server, whatever they are: each call is told exactly once, and after the client has
 * failed nothing comes any more. The first byte says how far the conversation is; a line "!" loses
 * an answer, "#" ends the server.
 */
#include <stdint.h>
#include <stdlib.h>

#include "mcp/mcp_client.h"
#include "wire/lines.h"

struct seen {
    struct mcp_client *c;
    int called, told, cancelled, failed, listed;
};

static int on_send(void *arg, const struct mcp_outgoing *m, struct err *e)
{
    (void)arg;
    (void)e;
    if (m->text.len == 0 || m->text.ptr[0] != '{') {
        abort();
    }
    return 0;
}

static void on_drop(void *arg, uint64_t key)
{
    (void)arg;
    (void)key;
}

static void on_done(void *arg, const struct mcp_client_answer *a)
{
    struct seen *s = arg;
    s->told++;
    if ((a->result != NULL) + a->is_error + (a->lost != NULL) != 1) {
        abort();
    }
}

static void on_progress(void *arg, double progress, double total, struct str message)
{
    (void)progress;
    (void)total;
    if (((struct seen *)arg)->failed > 0 || !str_is_utf8(message)) {
        abort();
    }
}

static void on_listed(void *arg, const struct json *tools)
{
    struct seen *s = arg;
    s->listed++;
    if (!json_is(tools, JSON_ARRAY) || s->failed > 0) {
        abort();
    }
}

static void on_changed(void *arg)
{
    struct seen *s = arg;
    mcp_client_list(s->c);
}

static void on_failed(void *arg, const struct err *why)
{
    struct seen *s = arg;
    if (why->code == ERR_OK || ++s->failed > 1) {
        abort();
    }
}

static void call(struct seen *s, struct arena *a, bool cancel)
{
    uint64_t key;
    const struct mcp_client_call o = { .name = STR("a"),
                                       .arguments = json_object(a),
                                       .done = on_done,
                                       .progress = on_progress,
                                       .arg = s };
    if (mcp_client_call(s->c, &o, &key, NULL) == 0) {
        s->called++;
        if (cancel) {
            mcp_client_cancel(s->c, key, "x");
            s->cancelled++;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const before[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-03-26\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"a\"}]}}",
    };
    struct seen s = { 0 };
    struct err gone = { .code = ERR_UPSTREAM };
    if (size == 0) {
        return 0;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    s.c = mcp_client_new(&(struct mcp_client_opts) { .name = "fuzz",
                                                     .version = "1",
                                                     .port = { .send = on_send,
                                                               .drop = on_drop,
                                                               .listed = on_listed,
                                                               .changed = on_changed,
                                                               .failed = on_failed,
                                                               .arg = &s } });
    mcp_client_start(s.c);
    for (int i = 0; i < data[0] % 3; i++) {
        mcp_client_feed(s.c, str_of(before[i]));
    }
    call(&s, a, false);
    call(&s, a, data[0] % 2 == 0);
    struct lines l;
    struct str line;
    lines_init(&l, 1 << 20);
    lines_feed(&l, str_n(data + 1, size - 1));
    bool more = lines_next(&l, &line);
    more = more || lines_end(&l, &line);
    while (more) {
        if (str_eqc(line, "!")) {
            mcp_client_lost(s.c, 0, &gone);
        } else if (str_eqc(line, "#")) {
            mcp_client_end(s.c, &gone);
        } else {
            mcp_client_feed(s.c, line);
        }
        more = lines_next(&l, &line);
        more = more || lines_end(&l, &line);
    }
    lines_done(&l);
    mcp_client_end(s.c, &gone);
    if (s.failed != 1 || s.told + s.cancelled != s.called) {
        abort();
    }
    mcp_client_free(s.c);
    return 0;
}
