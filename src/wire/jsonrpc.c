/* SPDX-License-Identifier: MIT
 *
 * JSON-RPC messages; see jsonrpc.h.
 */
#include "wire/jsonrpc.h"

bool jsonrpc_id_ok(const struct json *id)
{
    return json_is(id, JSON_INT) || json_is(id, JSON_REAL) ||
           (json_is(id, JSON_STRING) && id->string.len <= JSONRPC_ID_MAX);
}

int jsonrpc_code_of(const struct err *e)
{
    return e->code == ERR_PROTO ? JSONRPC_INVALID_REQUEST : JSONRPC_PARSE_ERROR;
}

static int read_call(const struct json *v, struct jsonrpc_message *m, struct err *e)
{
    const struct json *method = json_get(v, "method");
    if (!json_is(method, JSON_STRING) || method->string.len == 0 ||
        method->string.len > JSONRPC_METHOD_MAX || str_has_nul(method->string)) {
        return ERR(e, ERR_PROTO, "'method' must be a name of at most %d bytes", JSONRPC_METHOD_MAX);
    }
    m->method = method->string;
    m->params = json_get(v, "params");
    if (m->params != NULL && !json_is(m->params, JSON_OBJECT)) {
        return ERR(e, ERR_PROTO, "'params' must be an object");
    }
    m->kind = json_get(v, "id") == NULL ? JSONRPC_NOTIFICATION : JSONRPC_REQUEST;
    return 0;
}

static int read_error(const struct json *error, struct jsonrpc_message *m, struct err *e)
{
    const struct json *code = json_get(error, "code");
    const struct json *text = json_get(error, "message");
    if (!json_is(code, JSON_INT) || !json_is(text, JSON_STRING)) {
        return ERR(e, ERR_PROTO, "'error' must have an integer 'code' and a string 'message'");
    }
    m->kind = JSONRPC_ERROR;
    m->code = code->integer;
    m->text = text->string;
    m->data = json_get(error, "data");
    return 0;
}

static int read_answer(const struct json *v, struct jsonrpc_message *m, struct err *e)
{
    const struct json *error = json_get(v, "error");
    m->result = json_get(v, "result");
    if ((error == NULL) == (m->result == NULL)) {
        return ERR(e, ERR_PROTO, "a message needs 'method', or one of 'result' and 'error'");
    }
    if (error != NULL) {
        return read_error(error, m, e);
    }
    if (m->id == NULL) {
        return ERR(e, ERR_PROTO, "a result needs the 'id' of its request");
    }
    m->kind = JSONRPC_RESULT;
    return 0;
}

static int read_value(const struct json *v, struct jsonrpc_message *m, struct err *e)
{
    if (json_is(v, JSON_ARRAY)) {
        return ERR(e, ERR_PROTO, "batches are not supported: send one message at a time");
    }
    if (!json_is(v, JSON_OBJECT)) {
        return ERR(e, ERR_PROTO, "a message must be an object");
    }
    const struct json *id = json_get(v, "id");
    m->id = jsonrpc_id_ok(id) ? id : NULL;
    if (!str_eqc(json_str(json_get(v, "jsonrpc"), STR_EMPTY), "2.0")) {
        return ERR(e, ERR_PROTO, "'jsonrpc' must be \"2.0\"");
    }
    bool call = json_get(v, "method") != NULL;
    /* Who could not read an id answers with null or without one. */
    bool anonymous = !call && json_is(id, JSON_NULL) && json_get(v, "error") != NULL;
    if (id != NULL && m->id == NULL && !anonymous) {
        return ERR(e, ERR_PROTO, "'id' must be a number or a string of at most %d bytes",
                   JSONRPC_ID_MAX);
    }
    return call ? read_call(v, m, e) : read_answer(v, m, e);
}

int jsonrpc_read(struct arena *a, struct str text, const struct json_limits *limits,
                 struct jsonrpc_message *ret, struct err *e)
{
    static const struct json_limits usual = { .max_bytes = JSONRPC_BYTES_MAX,
                                              .max_depth = JSONRPC_DEPTH_MAX,
                                              .no_positions = true };
    struct json *v;
    *ret = (struct jsonrpc_message) { 0 };
    int rc = json_parse(a, text, limits == NULL ? &usual : limits, &v, e);
    return rc < 0 ? rc : read_value(v, ret, e);
}

int jsonrpc_read_value(const struct json *v, struct jsonrpc_message *ret, struct err *e)
{
    *ret = (struct jsonrpc_message) { 0 };
    return read_value(v, ret, e);
}

/* --- writing --- */

/* "{"jsonrpc":"2.0"" and the id, if there is one. */
static int write_start(const struct json *id, struct buf *out, struct err *e)
{
    int rc = buf_append(out, STR("{\"jsonrpc\":\"2.0\""), e);
    if (rc == 0 && id != NULL) {
        rc = buf_append(out, STR(",\"id\":"), e);
        rc = rc < 0 ? rc : json_write(id, JSON_COMPACT, out, e);
    }
    return rc;
}

static int write_member(struct str before, const struct json *v, struct buf *out, struct err *e)
{
    int rc = buf_append(out, before, e);
    return rc < 0 ? rc : json_write(v, JSON_COMPACT, out, e);
}

/* A message is whole or not there. */
static int close_message(int rc, size_t before, struct buf *out, struct err *e)
{
    rc = rc < 0 ? rc : buf_append_c(out, '}', e);
    if (rc < 0 && out->ptr != NULL) {
        out->len = before;
        out->ptr[before] = '\0';
    }
    return rc;
}

int jsonrpc_write_request(const struct json *id, struct str method, const struct json *params,
                          struct buf *out, struct err *e)
{
    size_t before = out->len;
    int rc = write_start(id, out, e);
    rc = rc < 0 ? rc : buf_append(out, STR(",\"method\":"), e);
    rc = rc < 0 ? rc : json_write_string(method, out, e);
    if (rc == 0 && params != NULL) {
        rc = write_member(STR(",\"params\":"), params, out, e);
    }
    return close_message(rc, before, out, e);
}

int jsonrpc_write_notification(struct str method, const struct json *params, struct buf *out,
                               struct err *e)
{
    return jsonrpc_write_request(NULL, method, params, out, e);
}

int jsonrpc_write_result(const struct json *id, const struct json *result, struct buf *out,
                         struct err *e)
{
    size_t before = out->len;
    int rc = write_start(id, out, e);
    if (rc == 0) {
        rc = result == NULL ? buf_append(out, STR(",\"result\":{}"), e)
                            : write_member(STR(",\"result\":"), result, out, e);
    }
    return close_message(rc, before, out, e);
}

int jsonrpc_write_error(const struct json *id, int64_t code, struct str text,
                        const struct json *data, struct buf *out, struct err *e)
{
    size_t before = out->len;
    int rc = write_start(id, out, e);
    rc =
        rc < 0 ? rc : buf_printf(out, e, ",\"error\":{\"code\":%lld,\"message\":", (long long)code);
    rc = rc < 0 ? rc : json_write_string(text, out, e);
    if (rc == 0 && data != NULL) {
        rc = write_member(STR(",\"data\":"), data, out, e);
    }
    rc = rc < 0 ? rc : buf_append_c(out, '}', e);
    return close_message(rc, before, out, e);
}
