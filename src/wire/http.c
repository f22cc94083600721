/* SPDX-License-Identifier: MIT
 *
 * Reading HTTP. A head is gathered whole before llhttp sees it: fields then lie side by side in one
 * buffer, its size is bounded, and the checks that llhttp does not make are plain string checks. A
 * body goes through llhttp where it lies; the callbacks pause it, so that events can be pulled.
 */
#include "wire/http.h"

#include <llhttp.h>
#include <stdlib.h>
#include <strings.h>

#include "base/arena.h"

enum phase {
    PHASE_HEAD, /* gathering */
    PHASE_BODY,
    PHASE_LAST, /* complete with its head: HTTP_EV_END is to be reported */
    PHASE_OVER, /* reported; the next byte begins the next message */
    PHASE_FAILED,
};

/* Room for a head from the start; nearly all fit. */
#define HEAD_USUAL ((size_t)1 << 10)
/* What comes beside the data of a chunked body (extensions, trailers) is bounded as a head is. */
#define ASIDE_MAX HTTP_HEAD_MAX

struct http {
    llhttp_t parser;
    enum http_kind kind;
    enum phase phase;
    struct buf raw; /* the head as it came */
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t n_fields;
    bool in_value;
    bool headers_done; /* what llhttp reports as fields from here on are trailers */
    bool complete;     /* llhttp saw the end of the message */
    bool no_body;
    size_t aside;
    struct str body; /* the piece that on_body() was given */
    struct http_head head;
    struct err why; /* of PHASE_FAILED */
};

/* --- callbacks of llhttp --- */

static struct http *self(llhttp_t *p)
{
    return CONTAINER_OF(p, struct http, parser);
}

static int on_aside(llhttp_t *p, const char *at, size_t len)
{
    (void)at;
    struct http *h = self(p);
    h->aside += len + 1;
    return h->aside > ASIDE_MAX ? HPE_USER : 0;
}

static int on_field(llhttp_t *p, const char *at, size_t len)
{
    struct http *h = self(p);
    if (h->headers_done) {
        return on_aside(p, at, len);
    }
    if (h->n_fields == 0 || h->in_value) {
        if (h->n_fields == HTTP_FIELDS_MAX) {
            return HPE_USER;
        }
        h->fields[h->n_fields++] = (struct http_field) { str_n(at, 0), STR_EMPTY };
        h->in_value = false;
    }
    h->fields[h->n_fields - 1].name.len += len;
    return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t len)
{
    struct http *h = self(p);
    if (h->headers_done) {
        return on_aside(p, at, len);
    }
    struct str *value = &h->fields[h->n_fields - 1].value;
    if (!h->in_value) {
        *value = str_n(at, 0);
        h->in_value = true;
    }
    value->len += len;
    return 0;
}

static int on_target(llhttp_t *p, const char *at, size_t len)
{
    struct http *h = self(p);
    h->head.target = str_n(h->head.target.len == 0 ? at : h->head.target.ptr, /* one span */
                           h->head.target.len + len);
    return 0;
}

static int on_headers_complete(llhttp_t *p)
{
    struct http *h = self(p);
    h->headers_done = true;
    if (h->kind == HTTP_REQUESTS && p->method != HTTP_CONNECT) {
        p->upgrade = 0; /* no other protocol is spoken here: the body that was announced follows */
    }
    return h->no_body ? 1 : 0;
}

static int on_body(llhttp_t *p, const char *at, size_t len)
{
    if (len == 0) {
        return 0;
    }
    self(p)->body = str_n(at, len);
    return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *p)
{
    self(p)->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_target,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_chunk_extension_name = on_aside,
    .on_chunk_extension_value = on_aside,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* --- life --- */

static void begin_message(struct http *h)
{
    llhttp_init(&h->parser, h->kind == HTTP_REQUESTS ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    buf_reset(&h->raw);
    h->phase = PHASE_HEAD;
    h->n_fields = h->aside = 0;
    h->in_value = h->headers_done = h->complete = false;
    h->body = STR_EMPTY;
    h->head = (struct http_head) { .length = -1 };
}

struct http *http_new(enum http_kind kind)
{
    struct http *h = xcalloc(1, sizeof *h);
    h->kind = kind;
    buf_init(&h->raw, HTTP_HEAD_MAX);
    begin_message(h);
    return h;
}

struct http *http_free(struct http *h)
{
    if (h != NULL) {
        buf_done(&h->raw);
        free(h);
    }
    return NULL;
}

/* --- the head --- */

static int fail(struct http *h, enum err_code code, const char *why, struct err *e)
{
    h->phase = PHASE_FAILED;
    (void)ERR(&h->why, code, "%s", why);
    return ERR(e, code, "%s", why);
}

static int llhttp_failed(struct http *h, struct err *e)
{
    llhttp_errno_t code = llhttp_get_errno(&h->parser);
    const char *reason = llhttp_get_error_reason(&h->parser);
    if (code == HPE_USER) {
        return fail(h, ERR_LIMIT,
                    "the message has too many header fields or too much around its data", e);
    }
    if (code == HPE_INVALID_METHOD) {
        return fail(h, ERR_UNSUPPORTED, "the method is not known", e);
    }
    return fail(h, ERR_PROTO,
                reason == NULL || reason[0] == '\0' ? llhttp_errno_name(code) : reason, e);
}

/* Takes one line of a head, or what there is of it. */
static int gather_line(struct http *h, struct str line, struct err *e)
{
    if (memchr(line.ptr, '\0', line.len) != NULL) {
        return fail(h, ERR_PROTO, "a NUL in the head", e);
    }
    if (buf_append(&h->raw, line, e) < 0) {
        return fail(h, ERR_LIMIT, "the head is too large", e);
    }
    bool whole = line.ptr[line.len - 1] == '\n';
    if (whole && (h->raw.len < 2 || h->raw.ptr[h->raw.len - 2] != '\r')) {
        return fail(h, ERR_PROTO, "a line of the head ends without CR", e);
    }
    return 0;
}

/* Takes bytes up to and including the empty line: what follows is not even looked at, since a body
 * may be long. 1: the head is complete, 0: more is needed. */
static int gather(struct http *h, struct str *input, struct err *e)
{
    char *room;
    (void)!buf_reserve(&h->raw, h->raw.len == 0 ? HEAD_USUAL : 0, &room, NULL);
    while (input->len > 0) {
        const char *lf = memchr(input->ptr, '\n', input->len);
        size_t n = lf == NULL ? input->len : (size_t)(lf - input->ptr) + 1;
        int rc = gather_line(h, str_slice(*input, 0, n), e);
        if (rc < 0) {
            return rc;
        }
        *input = str_slice(*input, n, input->len);
        size_t len = h->raw.len;
        if (len >= 4 && memcmp(h->raw.ptr + len - 4, "\r\n\r\n", 4) == 0) {
            return 1;
        }
    }
    return h->raw.len < HTTP_HEAD_MAX ? 0 : fail(h, ERR_LIMIT, "the head is too large", e);
}

/* "POST /path HTTP/1.1": llhttp is lenient about spaces, and knows other protocols. */
static int check_request_line(struct http *h, struct err *e)
{
    struct str rest = buf_str(&h->raw);
    struct str line = str_trim(str_split(&rest, '\n'));
    struct str method = str_split(&line, ' ');
    struct str target = str_split(&line, ' ');
    bool http = str_eqc(line, "HTTP/1.1") || str_eqc(line, "HTTP/1.0");
    if (line.ptr == NULL || target.len == 0 || method.len == 0 || !http) {
        return fail(h, ERR_PROTO, "not a request line of HTTP/1.1", e);
    }
    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '#') {
            return fail(h, ERR_PROTO, "a character in the target that must be escaped", e);
        }
    }
    h->head.method = method;
    return 0;
}

static bool target_fits(const struct http_head *h)
{
    if (str_eqc(h->method, "CONNECT")) {
        return h->target.ptr[0] != '/' && memchr(h->target.ptr, '/', h->target.len) == NULL;
    }
    return h->target.ptr[0] == '/' || str_starts(h->target, STR("http://")) ||
           str_starts(h->target, STR("https://")) ||
           (str_eqc(h->target, "*") && str_eqc(h->method, "OPTIONS"));
}

static int check_request(struct http *h, struct err *e)
{
    const struct http_head *head = &h->head;
    size_t hosts = http_count(&head->fields, "host");
    size_t codings = http_count(&head->fields, "transfer-encoding");
    const struct str *coding = http_find(&head->fields, "transfer-encoding");
    if (head->target.len == 0 || !target_fits(head)) {
        return fail(h, ERR_PROTO, "the target fits no form", e);
    }
    if (hosts > 1 || (hosts == 0 && head->minor == 1)) {
        return fail(h, ERR_PROTO, "there must be exactly one Host", e);
    }
    if (codings > 0 && (codings > 1 || !http_name_is(*coding, "chunked") || head->minor == 0)) {
        return fail(h, ERR_UNSUPPORTED, "a Transfer-Encoding other than one 'chunked'", e);
    }
    if (str_eqc(head->method, "CONNECT") && (codings > 0 || head->length > 0)) {
        return fail(h, ERR_PROTO, "a CONNECT with a body", e);
    }
    return 0;
}

static int parse_head(struct http *h, struct err *e)
{
    struct str raw = buf_str(&h->raw);
    int rc = h->kind == HTTP_REQUESTS ? check_request_line(h, e) : 0;
    if (rc < 0) {
        return rc;
    }
    llhttp_errno_t r = llhttp_execute(&h->parser, raw.ptr, raw.len);
    if (r != HPE_OK && r != HPE_PAUSED && r != HPE_PAUSED_UPGRADE) {
        return llhttp_failed(h, e);
    }
    if (!h->headers_done) {
        return fail(h, ERR_PROTO, "not a head", e);
    }
    for (size_t i = 0; i < h->n_fields; i++) {
        h->fields[i].value = str_trim(h->fields[i].value);
    }
    struct http_head *head = &h->head;
    head->status = h->kind == HTTP_RESPONSES ? llhttp_get_status_code(&h->parser) : 0;
    head->minor = h->parser.http_minor;
    head->fields = (struct http_fields) { h->fields, h->n_fields };
    head->chunked = (h->parser.flags & F_CHUNKED) != 0;
    const struct str *length = http_find(&head->fields, "content-length");
    if (length != NULL && !str_to_i64(*length, &head->length)) {
        return fail(h, ERR_PROTO, "Content-Length is not a number", e);
    }
    head->keep_alive = llhttp_should_keep_alive(&h->parser) != 0;
    if (h->parser.http_major != 1 || h->parser.http_minor > 1) {
        return fail(h, ERR_PROTO, "not HTTP/1.1", e);
    }
    if (h->kind == HTTP_RESPONSES && head->status < 100) {
        return fail(h, ERR_PROTO, "not a status of HTTP", e);
    }
    if (r == HPE_PAUSED) {
        llhttp_resume(&h->parser);
    }
    return h->kind == HTTP_REQUESTS ? check_request(h, e) : 0;
}

/* --- events --- */

static int end_message(struct http *h)
{
    h->phase = PHASE_OVER;
    h->no_body = false;
    return HTTP_EV_END;
}

static int next_of_head(struct http *h, struct str *input, struct err *e)
{
    int rc = gather(h, input, e);
    if (rc <= 0) {
        return rc < 0 ? rc : HTTP_EV_MORE;
    }
    rc = parse_head(h, e);
    if (rc < 0) {
        return rc;
    }
    h->phase = h->complete ? PHASE_LAST : PHASE_BODY;
    return HTTP_EV_HEAD;
}

static int next_of_body(struct http *h, struct str *input, struct str *ret_body, struct err *e)
{
    h->body = STR_EMPTY;
    const char *from = input->len == 0 ? "" : input->ptr;
    llhttp_errno_t r = llhttp_execute(&h->parser, from, input->len);
    if (r == HPE_OK) {
        *input = str_slice(*input, input->len, input->len);
        return HTTP_EV_MORE;
    }
    if (r != HPE_PAUSED) {
        return llhttp_failed(h, e);
    }
    *input = str_slice(*input, (size_t)(llhttp_get_error_pos(&h->parser) - from), input->len);
    llhttp_resume(&h->parser);
    *ret_body = h->body;
    return h->complete ? end_message(h) : HTTP_EV_BODY;
}

int http_next(struct http *h, struct str *input, struct str *ret_body, struct err *e)
{
    *ret_body = STR_EMPTY;
    switch (h->phase) {
    case PHASE_OVER:
        if (input->len == 0) {
            return HTTP_EV_MORE;
        }
        begin_message(h);
        return next_of_head(h, input, e);
    case PHASE_HEAD:
        return next_of_head(h, input, e);
    case PHASE_BODY:
        return next_of_body(h, input, ret_body, e);
    case PHASE_LAST:
        return end_message(h);
    case PHASE_FAILED:
        break;
    }
    return ERR(e, h->why.code, "%s", h->why.msg);
}

int http_end(struct http *h, struct err *e)
{
    if (http_idle(h)) {
        return 0;
    }
    if (h->phase == PHASE_BODY) {
        (void)llhttp_finish(&h->parser);
        if (h->complete) {
            (void)end_message(h);
            return 1;
        }
    }
    return fail(h, ERR_PROTO, "the connection was closed in the midst of a message", e);
}

bool http_idle(const struct http *h)
{
    return h->phase == PHASE_OVER || (h->phase == PHASE_HEAD && h->raw.len == 0);
}

const struct http_head *http_head(const struct http *h)
{
    return &h->head;
}

void http_expect_no_body(struct http *h)
{
    h->no_body = true;
}
