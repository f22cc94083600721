/* SPDX-License-Identifier: MIT
 *
 * Any request gets exactly one answer or stays open until it is closed, and nothing is left. The
 * first byte chooses the method and the fields; the session is a real one.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "mcp/mcp.h"

struct seen {
    int heads, ends;
    struct str session;
    char id[64];
};

static int list(void *arg, struct arena *a, struct json **ret, struct err *e)
{
    (void)arg;
    return json_parse(a,
                      STR("[{\"name\":\"a\",\"inputSchema\":{\"properties\":{\"x\":{"
                          "\"x-mcp-header\":\"X\"}}},\"outputSchema\":{\"type\":\"object\"}},"
                          "{\"name\":\"b\",\"inputSchema\":{\"type\":\"object\"}}]"),
                      NULL, ret, e);
}

static uint64_t version(void *arg)
{
    (void)arg;
    return 1;
}

static void call(void *arg, struct mcp_call *c)
{
    (void)arg;
    mcp_call_progress(c, 1, -1, STR("m"));
    if (str_eqc(c->name, "a")) {
        mcp_call_done(c, c->arguments);
    }
}

static void cancel(void *arg, struct mcp_call *c)
{
    (void)arg;
    (void)c;
}

static void on_head(void *arg, int status, const struct http_fields *f)
{
    struct seen *s = arg;
    const struct str *id = http_find(f, "mcp-session-id");
    s->heads++;
    if (status < 200 || status > 599) {
        abort();
    }
    if (id != NULL && id->len < sizeof s->id) {
        memcpy(s->id, id->ptr, id->len);
        s->session = str_n(s->id, id->len);
    }
}

static void on_data(void *arg, struct str bytes)
{
    if (((struct seen *)arg)->heads != 1 || bytes.len == 0) {
        abort();
    }
}

static void on_end(void *arg)
{
    ((struct seen *)arg)->ends++;
}

static void ask(struct mcp *m, const struct mcp_request *r, struct seen *s)
{
    struct mcp_exchange *x = mcp_begin(m, r, &(struct mcp_answer) { on_head, on_data, on_end, s });
    if ((x == NULL) != (s->ends == 1) || s->ends > 1 || s->heads > 1) {
        abort();
    }
    mcp_tick(m);
    if (x != NULL && s->ends == 0) {
        mcp_close(x);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    static const char *const methods[] = { "POST", "POST", "POST", "GET", "DELETE", "PUT" };
    struct seen s = { 0 }, first = { 0 };
    struct mcp *m = mcp_new(&(struct mcp_opts) {
        .tools = { list, version, call, cancel, NULL }, .name = "s", .version = "1", .page = 1 });
    struct http_field type = { STR("content-type"), STR("application/json") };
    ask(m,
        &(struct mcp_request) { STR("POST"),
                                { &type, 1 },
                                STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
                                    "\"params\":{\"protocolVersion\":\"2025-06-18\"}}") },
        &first);
    struct http_field fields[] = {
        type,
        { STR("mcp-protocol-version"),
          (data[0] & 0x10) != 0 ? STR("2026-07-28") : STR("2025-06-18") },
        { STR("mcp-method"), (data[0] & 0x20) != 0 ? STR("tools/call") : STR("tools/list") },
        { STR("mcp-name"), STR("a") },
        { STR("mcp-session-id"), first.session },
    };
    size_t n = (data[0] & 0x40) != 0 ? 5 : 4;
    ask(m,
        &(struct mcp_request) {
            str_of(methods[(data[0] & 0xf) % 6]), { fields, n }, str_n(data + 1, size - 1) },
        &s);
    mcp_free(m);
    return s.heads <= 1 ? 0 : 1;
}
