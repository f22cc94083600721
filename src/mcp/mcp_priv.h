/* SPDX-License-Identifier: MIT
 *
 * The parts of the MCP server. mcp.c: life and sessions; mcp_http.c: which request is admitted;
 * mcp_header.c: fields that repeat the body; mcp_method.c: what is answered; mcp_call.c: calls of
 * tools; mcp_batch.c: several messages as one; mcp_exchange.c: the way out.
 *
 * Who may free what: an exchange frees itself when it has ended and nobody is inside of it, so
 * every function that sends is called last.
 */
#pragma once

#include "base/buf.h"
#include "mcp/mcp.h"
#include "wire/jsonrpc.h"

#define MCP_HEADER_MISMATCH     (-32020)
#define MCP_UNSUPPORTED_VERSION (-32022)
#define MCP_SESSION_NOT_FOUND   (-32001)

#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

struct mcp_session {
    struct mcp_session *next;
    struct str id;
    struct arena *arena;
    enum mcp_revision revision;
    uint64_t used;      /* when, in the server's count of requests */
    uint64_t announced; /* the version of the list that the client was told of */
};

enum mcp_stream {
    MCP_STREAM_NONE,   /* an answer to one request */
    MCP_STREAM_GET,    /* notifications of a session */
    MCP_STREAM_LISTEN, /* a subscription */
};

struct mcp_exchange {
    struct mcp *m;
    struct mcp_exchange *prev, *next;
    struct mcp_answer answer;
    struct arena *arena;
    struct jsonrpc_message message;
    const struct json *meta;
    struct mcp_session *session; /* NULL: none */
    enum mcp_revision revision;
    struct mcp_handle *call;
    struct mcp_batch *batch; /* of which it is the answer */
    enum mcp_stream stream;
    uint64_t announced; /* of a subscription */
    bool wants_changes; /* of a subscription */
    bool takes_json;    /* the client's Accept */
    bool takes_events;
    bool started; /* the head is out */
    bool events;  /* … and says that events follow */
    bool ended;   /* all has been said */
    bool paused;
    bool gone; /* no callback any more */
    int busy;  /* how often we are inside of a callback of it */
    struct buf out;
    size_t sent; /* of it */
};

/* What the port knows as struct mcp_call. */
struct mcp_handle {
    struct mcp_call call; /* first */
    struct mcp *m;
    struct mcp_handle *prev, *next;
    struct mcp_exchange *x; /* NULL: the client is gone */
    struct mcp_session *session;
    const struct json *id;
    const struct json *token; /* of progress; NULL: not asked for */
    const struct json *output_schema;
    bool has_progress;
    double progress;
};

struct mcp {
    struct arena *arena;
    struct mcp_opts opts;
    size_t max_message;
    struct mcp_session *sessions;
    struct mcp_exchange *exchanges;
    struct mcp_handle *calls;
    struct mcp_batch *batches;
    size_t n_sessions, n_calls, n_streams;
    uint64_t count;
    bool stopped;
};

/* --- mcp.c --- */
struct mcp_session *mcp_session_new(struct mcp *m, enum mcp_revision revision);
struct mcp_session *mcp_session_find(struct mcp *m, struct str id);
void mcp_session_end(struct mcp *m, struct mcp_session *s);
struct json *mcp_server_info(struct mcp *m, struct arena *a);
struct json *mcp_capabilities(struct arena *a);
/* Tells the stream that the list is another one, if it is. */
void mcp_announce(struct mcp_exchange *x);

/* --- mcp_exchange.c --- */
struct mcp_exchange *mcp_exchange_new(struct mcp *m, const struct mcp_answer *answer);
/* Sends what there is to send, which may be the end of the exchange. */
void mcp_exchange_pump(struct mcp_exchange *x);
/* One JSON document, or nothing (empty), with this status; the exchange is over. */
void mcp_exchange_whole(struct mcp_exchange *x, int status, struct str json);
/* Starts a stream of events if the answer has not begun. */
void mcp_exchange_stream(struct mcp_exchange *x);
void mcp_exchange_event(struct mcp_exchange *x, struct str json);
void mcp_exchange_comment(struct mcp_exchange *x);
void mcp_exchange_end(struct mcp_exchange *x);

/* Answers to the request of the exchange, which is over then. `status` is for an answer that is not
 * a stream. */
void mcp_reply_result(struct mcp_exchange *x, struct json *result);
void mcp_reply_error(struct mcp_exchange *x, int status, int code, const struct json *data,
                     const char *fmt, ...) PRINTF_LIKE(5, 6);
/* JSON that is an answer already. */
void mcp_reply_text(struct mcp_exchange *x, int status, struct str json);
void mcp_notify(struct mcp_exchange *x, const char *method, const struct json *params);

/* --- mcp_header.c --- */
/* The fields of a request of 2026-07-28 against its body; ERR_PROTO says which differs. */
int mcp_header_check(const struct http_fields *f, const struct jsonrpc_message *m,
                     struct err *e) MUST_USE;
/* Mcp-Param-… of a tool whose schema has x-mcp-header. */
int mcp_header_params(const struct http_fields *f, const struct json *schema,
                      const struct json *arguments, struct err *e) MUST_USE;

/* --- mcp_method.c --- */
/* The message of the exchange is a request, its revision is known. */
void mcp_method(struct mcp_exchange *x, const struct http_fields *fields);
void mcp_method_notification(struct mcp_exchange *x);

/* --- mcp_call.c --- */
void mcp_call_begin(struct mcp_exchange *x, const struct http_fields *fields);
void mcp_call_drop(struct mcp_handle *h); /* tells the port, sends nothing */
struct mcp_handle *mcp_call_find(struct mcp *m, const struct mcp_session *s, const struct json *id);

/* --- mcp_batch.c --- */
#define MCP_BATCH_MAX 100
/* The exchange is in a session of 2025-03-26. */
void mcp_batch_begin(struct mcp_exchange *x, const struct json *messages,
                     const struct http_fields *fields);
void mcp_batch_orphan(struct mcp_batch *b); /* nobody waits for it any more */
void mcp_batch_free(struct mcp_batch *b);
