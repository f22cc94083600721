/* SPDX-License-Identifier: MIT
 *
 * Since 2026-07-28 some fields of a request repeat what its body says, for those who route by them.
 * Whoever reads the body must refuse a request in which they differ.
 */
#include "base/base64.h"
#include "base/macro.h"
#include "mcp/mcp_priv.h"

#define SCHEMA_DEPTH_MAX 32
#define VALUE_MAX        ((size_t)16 << 10)

static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c != '\t' && (c < 0x20 || c > 0x7e)) {
            return false;
        }
    }
    return true;
}

/* "=?base64?…?=" or the value itself. */
static int decode(struct str value, struct buf *out, struct err *e)
{
    struct str prefix = STR("=?base64?");
    struct str suffix = STR("?=");
    if (!is_plain(value)) {
        return ERR(e, ERR_PROTO, "has characters that a field cannot have");
    }
    if (!str_starts(value, prefix) || !str_ends(value, suffix) ||
        value.len < prefix.len + suffix.len) {
        return buf_append(out, value, e);
    }
    struct str inner = str_slice(value, prefix.len, value.len - suffix.len);
    if (base64_read(inner, out, e) < 0 || !str_is_utf8(buf_str(out))) {
        return ERR(e, ERR_PROTO, "is not Base64 of UTF-8");
    }
    return 0;
}

static int check_one(const struct http_fields *f, const char *name, struct str body, bool encoded,
                     struct err *e)
{
    const struct str *field = http_find(f, name);
    CLEANUP(buf) struct buf plain = BUF_INIT(VALUE_MAX);
    if (field == NULL) {
        return ERR(e, ERR_PROTO, "Header mismatch: %s is missing", name);
    }
    if (http_count(f, name) > 1) {
        return ERR(e, ERR_PROTO, "Header mismatch: %s is there more than once", name);
    }
    struct str value = str_trim(*field);
    if (encoded) {
        int rc = decode(value, &plain, e);
        if (rc < 0) {
            return err_wrap(e, "Header mismatch: %s", name);
        }
        value = buf_str(&plain);
    }
    if (!str_eq(value, body)) {
        return ERR(e, ERR_PROTO, "Header mismatch: %s is '%.100s', the body has '%.100s'", name,
                   value.len > 0 ? value.ptr : "", body.len > 0 ? body.ptr : "");
    }
    return 0;
}

int mcp_header_check(const struct http_fields *f, const struct jsonrpc_message *m, struct err *e)
{
    static const char *const named[][2] = { { "tools/call", "name" },
                                            { "prompts/get", "name" },
                                            { "resources/read", "uri" } };
    const struct json *meta = json_get(m->params, "_meta");
    struct str version = json_str(json_get(meta, MCP_META_VERSION), STR_EMPTY);
    int rc = check_one(f, "mcp-protocol-version", version, false, e);
    rc = rc < 0 ? rc : check_one(f, "mcp-method", m->method, false, e);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(named); i++) {
        const struct json *source = json_get(m->params, named[i][1]);
        if (str_eqc(m->method, named[i][0]) && json_is(source, JSON_STRING)) {
            rc = check_one(f, "mcp-name", source->string, true, e);
        }
    }
    return rc;
}

/* --- x-mcp-header --- */

/* 42 and 42.0 are the same. */
static bool same_number(struct str text, const struct json *value)
{
    double d;
    return str_to_double(text, &d) && !(d < json_real(value, 0)) && !(d > json_real(value, 0));
}

static int check_param(const struct http_fields *f, const char *name, const struct json *value,
                       struct err *e)
{
    const struct str *field = http_find(f, name);
    if (json_is(value, JSON_STRING)) {
        return check_one(f, name, value->string, true, e);
    }
    if (json_is(value, JSON_BOOL)) {
        return check_one(f, name, value->boolean ? STR("true") : STR("false"), true, e);
    }
    if (field == NULL || http_count(f, name) > 1 || !same_number(str_trim(*field), value)) {
        return ERR(e, ERR_PROTO, "Header mismatch: %s does not have the number of the body", name);
    }
    return 0;
}

static int check_level(const struct http_fields *f, const struct json *schema,
                       const struct json *arguments, int depth, struct err *e)
{
    const struct json *properties = json_get(schema, "properties");
    if (depth > SCHEMA_DEPTH_MAX || !json_is(properties, JSON_OBJECT)) {
        return 0;
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < properties->object.len; i++) {
        const struct json_member *p = &properties->object.members[i];
        const struct json *value = json_find(arguments, p->key);
        const char *header = json_cstring(json_get(p->value, "x-mcp-header"), NULL);
        bool scalar = json_is(value, JSON_STRING) || json_is(value, JSON_BOOL) ||
                      json_is(value, JSON_INT) || json_is(value, JSON_REAL);
        if (header != NULL && scalar) {
            CLEANUP(buf) struct buf name = BUF_INIT(BUF_TEXT);
            buf_addf(&name, "mcp-param-%s", header);
            rc = check_param(f, name.ptr, value, e);
        } else if (json_is(value, JSON_OBJECT)) {
            rc = check_level(f, p->value, value, depth + 1, e);
        }
    }
    return rc;
}

int mcp_header_params(const struct http_fields *f, const struct json *schema,
                      const struct json *arguments, struct err *e)
{
    return check_level(f, schema, arguments, 0, e);
}
