/* SPDX-License-Identifier: MIT
 *
 * JSON-RPC 2.0 as the Model Context Protocol and the Agent Client Protocol use it: one message out
 * of text, told apart and checked, and messages back into text. A pure codec; who waits for which
 * answer is the caller's matter.
 *
 *   struct jsonrpc_message m;
 *   if (jsonrpc_read(arena, text, NULL, &m, e) < 0)
 *       jsonrpc_write_error(m.id, jsonrpc_code_of(e), str_of(e->msg), NULL, &out, NULL);
 *   switch (m.kind) …
 *
 * Stricter than the standard where the protocols are: ids are strings or numbers, never null;
 * params are an object; a batch (an array) is refused. Unknown members are ignored. An id is
 * opaque: it goes back as it came.
 *
 * Everything of a message lives in the arena. Bounds: those of json_limits, by default
 * JSONRPC_BYTES_MAX bytes and JSONRPC_DEPTH_MAX levels; names of methods JSONRPC_METHOD_MAX, ids
 * JSONRPC_ID_MAX bytes.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

#define JSONRPC_BYTES_MAX  ((size_t)64 << 20)
#define JSONRPC_DEPTH_MAX  128
#define JSONRPC_METHOD_MAX 256
#define JSONRPC_ID_MAX     1024

#define JSONRPC_PARSE_ERROR      (-32700)
#define JSONRPC_INVALID_REQUEST  (-32600)
#define JSONRPC_METHOD_NOT_FOUND (-32601)
#define JSONRPC_INVALID_PARAMS   (-32602)
#define JSONRPC_INTERNAL_ERROR   (-32603)

enum jsonrpc_kind {
    JSONRPC_REQUEST,      /* id, method, params */
    JSONRPC_NOTIFICATION, /* method, params */
    JSONRPC_RESULT,       /* id, result */
    JSONRPC_ERROR,        /* id (may be NULL), code, text, data */
};

struct jsonrpc_message {
    enum jsonrpc_kind kind;
    const struct json *id; /* string or number */
    struct str method;
    const struct json *params; /* an object, or NULL */
    const struct json *result;
    int64_t code;
    struct str text;
    const struct json *data;
};

/* ERR_PARSE or ERR_LIMIT for what is no JSON, ERR_PROTO for JSON that is no message; the id is set
 * then too, if there is a good one. `limits` may be NULL. */
int jsonrpc_read(struct arena *a, struct str text, const struct json_limits *limits,
                 struct jsonrpc_message *ret, struct err *e) MUST_USE;
/* The same for a value that has been parsed: one of a batch. */
int jsonrpc_read_value(const struct json *v, struct jsonrpc_message *ret, struct err *e) MUST_USE;
/* The code of the answer to a message that could not be read. */
int jsonrpc_code_of(const struct err *e);
bool jsonrpc_id_ok(const struct json *id);

/* Each appends one line without its end. They fail by the limit of the buffer only, which is then
 * as it was. A NULL id is left out; a NULL result is an empty object; params and data may be
 * NULL. */
int jsonrpc_write_request(const struct json *id, struct str method, const struct json *params,
                          struct buf *out, struct err *e) MUST_USE;
int jsonrpc_write_notification(struct str method, const struct json *params, struct buf *out,
                               struct err *e) MUST_USE;
int jsonrpc_write_result(const struct json *id, const struct json *result, struct buf *out,
                         struct err *e) MUST_USE;
int jsonrpc_write_error(const struct json *id, int64_t code, struct str text,
                        const struct json *data, struct buf *out, struct err *e) MUST_USE;
