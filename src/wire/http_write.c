/* SPDX-License-Identifier: MIT
 *
 * Writing HTTP: what comes from outside goes into a head only if it cannot end a line.
 */
#include <stdio.h>

#include "wire/http.h"

#define DECIMAL_LEN 20 /* of 64 bits */

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    { 100, "Continue" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 402, "Payment Required" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 407, "Proxy Authentication Required" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 413, "Content Too Large" },
    { 415, "Unsupported Media Type" },
    { 421, "Misdirected Request" },
    { 422, "Unprocessable Content" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 529, "Overloaded" },
};

const char *http_reason(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "";
}

static bool has_only(struct str s, unsigned char lowest, const char *besides)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == 0x7f || (c < lowest && (besides == NULL || c != (unsigned char)*besides))) {
            return false;
        }
    }
    return true;
}

int http_write_request(struct str method, struct str target, struct buf *out, struct err *e)
{
    if (method.len == 0 || target.len == 0 || !has_only(method, 0x21, NULL) ||
        !has_only(target, 0x21, NULL)) {
        return ERR(e, ERR_PROTO, "method or target is not valid in a request line");
    }
    int rc = buf_append(out, method, e);
    rc = rc < 0 ? rc : buf_append_c(out, ' ', e);
    rc = rc < 0 ? rc : buf_append(out, target, e);
    return rc < 0 ? rc : buf_append(out, STR(" HTTP/1.1\r\n"), e);
}

/* Its digits, at the end of `out`. Every head has two: with printf() they were half its cost. */
static struct str decimal(uint64_t n, char out[DECIMAL_LEN])
{
    size_t at = DECIMAL_LEN;
    do {
        out[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    return str_n(out + at, DECIMAL_LEN - at);
}

int http_write_status(int status, struct buf *out, struct err *e)
{
    char digits[DECIMAL_LEN];
    if (status < 100 || status > 999) {
        return ERR(e, ERR_PROTO, "%d is not an HTTP status", status);
    }
    int rc = buf_append(out, STR("HTTP/1.1 "), e);
    rc = rc < 0 ? rc : buf_append(out, decimal((uint64_t)status, digits), e);
    rc = rc < 0 ? rc : buf_append_c(out, ' ', e);
    rc = rc < 0 ? rc : buf_append(out, str_of(http_reason(status)), e);
    return rc < 0 ? rc : buf_append(out, STR("\r\n"), e);
}

int http_write_field(struct str name, struct str value, struct buf *out, struct err *e)
{
    if (name.len == 0 || !has_only(name, 0x21, NULL) || memchr(name.ptr, ':', name.len) != NULL ||
        !has_only(value, 0x20, "\t")) {
        return ERR(e, ERR_PROTO, "'%.*s' is not valid in a header",
                   (int)(name.len < 60 ? name.len : 60), name.ptr);
    }
    int rc = buf_append(out, name, e);
    rc = rc < 0 ? rc : buf_append(out, STR(": "), e);
    rc = rc < 0 ? rc : buf_append(out, value, e);
    return rc < 0 ? rc : buf_append(out, STR("\r\n"), e);
}

int http_write_length(uint64_t length, struct buf *out, struct err *e)
{
    char digits[DECIMAL_LEN];
    int rc = buf_append(out, STR("Content-Length: "), e);
    rc = rc < 0 ? rc : buf_append(out, decimal(length, digits), e);
    return rc < 0 ? rc : buf_append(out, STR("\r\n"), e);
}

struct str http_chunk_head(size_t n, char out[HTTP_CHUNK_HEAD_LEN])
{
    int len = snprintf(out, HTTP_CHUNK_HEAD_LEN, "%zx\r\n", n);
    return str_n(out, (size_t)len);
}
