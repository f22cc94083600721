/* SPDX-License-Identifier: MIT
 *
 * Any bytes are a message or an error with a code; a message that is written reads back the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/jsonrpc.h"

static int write_again(const struct jsonrpc_message *m, struct buf *out)
{
    switch (m->kind) {
    case JSONRPC_REQUEST:
    case JSONRPC_NOTIFICATION:
        return jsonrpc_write_request(m->id, m->method, m->params, out, NULL);
    case JSONRPC_RESULT:
        return jsonrpc_write_result(m->id, m->result, out, NULL);
    case JSONRPC_ERROR:
        return jsonrpc_write_error(m->id, m->code, m->text, m->data, out, NULL);
    }
    return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct jsonrpc_message m, back;
    struct err e = { 0 };
    if (jsonrpc_read(a, str_n(data, size), NULL, &m, &e) < 0) {
        int code = jsonrpc_code_of(&e);
        if (code != JSONRPC_PARSE_ERROR && code != JSONRPC_INVALID_REQUEST) {
            abort();
        }
        return 0;
    }
    if (write_again(&m, &out) < 0 || jsonrpc_read(a, buf_str(&out), NULL, &back, &e) < 0) {
        abort();
    }
    bool same_id =
        (m.id == NULL) == (back.id == NULL) && (m.id == NULL || json_equal(m.id, back.id));
    if (back.kind != m.kind || !same_id || !str_eq(back.method, m.method) ||
        !str_eq(back.text, m.text) || back.code != m.code) {
        abort();
    }
    return 0;
}
