/* SPDX-License-Identifier: MIT
 *
 * struct http: HTTP/1.1 messages out of bytes, whatever the chunks were; and the way back. A pure
 * codec on top of llhttp in its strict form.
 *
 *   struct http *h = http_new(HTTP_REQUESTS);
 *   struct str in = bytes, body;
 *   while ((r = http_next(h, &in, &body, e)) > HTTP_EV_MORE) {      in shrinks by what was used
 *       HTTP_EV_HEAD: http_head(h)   HTTP_EV_BODY: a piece of it   HTTP_EV_END: it is complete
 *   }
 *   if (http_end(h, e) < 0) …                                    the peer has closed
 *   http_free(h);
 *
 * Refused, so that no other reader of the same bytes can see another message in them (request
 * smuggling): Content-Length together with Transfer-Encoding, or twice, or not a plain number; a
 * Transfer-Encoding that is not exactly "chunked"; folded header lines; a line end that is not
 * CRLF; a NUL; white space before a colon; chunk sizes that lie; more or less than one Host; a
 * CONNECT with a body; spaces in the target; other versions than 1.0 and 1.1.
 *
 * Bounds: HTTP_HEAD_MAX bytes and HTTP_FIELDS_MAX fields a head, the same again for trailers, which
 * are read and dropped. A body has no bound here: it is passed on in pieces of the input, uncopied.
 *
 * Errors: ERR_PROTO (400), ERR_LIMIT (431), ERR_UNSUPPORTED (501). The parser then stays failed.
 * The head is valid from HTTP_EV_HEAD until the first byte of the next message is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define HTTP_HEAD_MAX   ((size_t)64 << 10)
#define HTTP_FIELDS_MAX 100

struct http;

/* --- header fields (http_fields.c) --- */

struct http_field {
    struct str name, value;
};

/* A borrowed view. Names are compared without regard to case. */
struct http_fields {
    const struct http_field *items;
    size_t len;
};

bool http_name_is(struct str name, const char *lower);
/* The first one's value, or NULL. */
const struct str *http_find(const struct http_fields *f, const char *name);
size_t http_count(const struct http_fields *f, const char *name);
/* Is the word one of the comma-separated values of the fields of this name? Without case. */
bool http_has_word(const struct http_fields *f, const char *name, struct str word);
/* Concerns one connection only (RFC 9110, 7.6.1): Connection and what it names, and some more. */
bool http_is_hop_by_hop(const struct http_fields *f, struct str name);
/* "key" of "/path?a=b&key=value": the raw value; false when it is not there. */
bool http_query_find(struct str target, const char *key, struct str *ret);

/* --- reading (http.c) --- */

enum http_kind { HTTP_REQUESTS, HTTP_RESPONSES };

struct http_head {
    struct str method; /* requests */
    struct str target; /* "/path?query", "http://host/path", "host:port" (CONNECT), "*" (OPTIONS) */
    int status;        /* responses */
    int minor;         /* of the version: 0 or 1 */
    struct http_fields fields;
    int64_t length;  /* of the body; -1: not said */
    bool chunked;    /* the body comes in chunks */
    bool keep_alive; /* the connection may carry another message */
};

enum http_event {
    HTTP_EV_MORE, /* the input is used up */
    HTTP_EV_HEAD,
    HTTP_EV_BODY,
    HTTP_EV_END,
};

struct http *http_new(enum http_kind kind);
struct http *http_free(struct http *h); /* accepts NULL, returns NULL */
/* An enum http_event, or -code. Nothing is read beyond HTTP_EV_END of a message: what is left of
 * the input belongs to the next one, or, after a CONNECT, to the tunnel. */
int http_next(struct http *h, struct str *input, struct str *ret_body, struct err *e) MUST_USE;
/* The peer will send no more. 0 between messages; 1 when that completes a response whose body ran
 * until the end; ERR_PROTO in the midst of a message. */
int http_end(struct http *h, struct err *e) MUST_USE;
const struct http_head *http_head(const struct http *h);
/* Responses: the answer to a HEAD request has no body, whatever its head says. Before the head. */
void http_expect_no_body(struct http *h);
bool http_idle(const struct http *h); /* between messages: not one byte of the next has come */

/* --- writing (http_write.c) --- */

const char *http_reason(int status); /* "Not Found"; "" for one that is not known */
int http_write_request(struct str method, struct str target, struct buf *out,
                       struct err *e) MUST_USE;
int http_write_status(int status, struct buf *out, struct err *e) MUST_USE;
/* ERR_PROTO when name or value could end the line or is no field at all. */
int http_write_field(struct str name, struct str value, struct buf *out, struct err *e) MUST_USE;
int http_write_length(uint64_t length, struct buf *out, struct err *e) MUST_USE; /* the field */

/* A chunk is http_chunk_head(n, …), n bytes, HTTP_CHUNK_TAIL; HTTP_CHUNK_LAST ends the body. */
#define HTTP_CHUNK_HEAD_LEN 20
#define HTTP_CHUNK_TAIL     STR("\r\n")
#define HTTP_CHUNK_LAST     STR("0\r\n\r\n")
struct str http_chunk_head(size_t n, char out[HTTP_CHUNK_HEAD_LEN]);
