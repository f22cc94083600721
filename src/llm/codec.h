/* SPDX-License-Identifier: MIT
 *
 * The four wire formats, each a two-way codec onto llm/request.h and llm/event.h. Pure: bytes in,
 * values out; no clock, no descriptor.
 *
 *   enum llm_endpoint ep = llm_endpoint_of("POST", path, &where);      which format, which call
 *   llm_request_read(arena, where, body, &req, e);                     a client's request
 *   llm_request_write(arena, LLM_CHAT, &req, &losses, &out, e);        for an upstream
 *
 *   struct llm_reader *r = llm_reader_new(LLM_CHAT, stream, sink);     the upstream's answer …
 *   llm_reader_feed(r, bytes, e); … llm_reader_end(r, e);              … as events
 *   struct llm_writer *w = llm_writer_new(LLM_ANTHROPIC, &(struct llm_writer_opts){ … });
 *   llm_writer_event(w, &ev, &out, e);                                 events as the client's bytes
 *
 * A reader for `stream` false gathers the whole body (bounded) and reports it as the same events at
 * the end; a writer for `stream` false gives its bytes at END. Ids that a format needs and the
 * events lack are made from a counter and the seed in the options, so that output is reproducible.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "llm/event.h"
#include "llm/request.h"

struct arena;
struct buf;
struct json;
struct llm_losses;
struct llm_store;

enum llm_call_kind {
    LLM_CALL_NONE,     /* not a model call */
    LLM_CALL_GENERATE, /* messages, responses, chat completions, generateContent */
    LLM_CALL_COUNT,    /* count_tokens, countTokens */
    LLM_CALL_MODELS,   /* list of models, or one of them */
    /* Not read by a codec: for upstreams that have the same endpoint. */
    LLM_CALL_EMBED,    /* embeddings, embedContent, batchEmbedContents */
    LLM_CALL_COMPLETE, /* completions without messages, as before Chat Completions */
    LLM_CALL_FILES,    /* files and uploads of the account */
    LLM_CALL_BATCHES,  /* requests that are answered later */
    LLM_CALL_STORED,   /* responses and conversations that the provider keeps */
};

/* Where a request goes, by method and path (query included, e.g. "?beta=true", "?alt=sse"). Also
 * accepts the paths without their version ("/messages") that some clients build. */
struct llm_endpoint {
    enum llm_call_kind call;
    enum llm_format format;
    bool stream;      /* Gemini: by path; for the others the body says */
    bool list;        /* Gemini without ?alt=sse: the stream is one JSON list of chunks */
    bool shared;      /* FILES: Anthropic and OpenAI have this path; the headers tell which it is */
    struct str model; /* Gemini, and GET /v1/models/M: borrowed from the path, percent-encoded */
};
struct llm_endpoint llm_endpoint_of(struct str method, struct str target);
const char *llm_format_name(enum llm_format f); /* "anthropic", "responses", "chat", "gemini" */
bool llm_format_parse(struct str name, enum llm_format *ret);
/* The path that a request of this format goes to, below the base URL of an upstream; `model` and
 * `stream` matter to Gemini only. */
int llm_path(enum llm_format f, struct str model, bool stream, struct buf *out,
             struct err *e) MUST_USE;

/* --- requests --- */

/* ERR_PARSE with a JSON path for what is malformed. Bounds: those of json_parse(). */
int llm_request_read(struct arena *a, const struct llm_endpoint *where, struct str body,
                     struct llm_request *ret, struct err *e) MUST_USE;
/* Appends the body. ERR_UNSUPPORTED for what would change the meaning; what else is dropped is in
 * `losses`. */
int llm_request_write(struct arena *a, enum llm_format f, const struct llm_request *r,
                      struct llm_losses *losses, struct buf *out, struct err *e) MUST_USE;

/* Input tokens this request will cost, estimated from its bytes and never too low for plain text:
 * for reservations and for count_tokens without a provider. */
int64_t llm_estimate_tokens(const struct llm_request *r);

/* --- responses --- */

struct llm_reader;
struct llm_reader_opts {
    enum llm_format format;
    bool stream;
    size_t max_bytes; /* of a whole body or of one event; 0: 32 MiB */
    struct llm_sink sink;
    struct arena *arena; /* taps: where to read to, lives longer; NULL: one of its own */
};
struct llm_reader *llm_reader_new(const struct llm_reader_opts *o);
struct llm_reader *llm_reader_free(struct llm_reader *r); /* accepts NULL, returns NULL */
/* ERR_PROTO or ERR_LIMIT: the answer is none of this format; the reader is then finished. A stream
 * that turns out to be one JSON body (some servers ignore `stream`) is read as that. */
int llm_reader_feed(struct llm_reader *r, struct str bytes, struct err *e) MUST_USE;
/* The answer has ended; ERR_PROTO when it was cut short (no END came). */
int llm_reader_end(struct llm_reader *r, struct err *e) MUST_USE;

/* A tap on an answer that passes unchanged: reads only what is metered (usage, model, stop, error)
 * and holds neither text nor body. Never fails: what it cannot read it does not count. Same sink,
 * events START, USAGE, STOP, ERROR, END and CALL_BEGIN (name only). */
struct llm_tap;
struct llm_tap *llm_tap_new(const struct llm_reader_opts *o);
struct llm_tap *llm_tap_free(struct llm_tap *t);
void llm_tap_feed(struct llm_tap *t, struct str bytes);
void llm_tap_end(struct llm_tap *t);

struct llm_writer;
struct llm_writer_opts {
    enum llm_format format;
    bool stream;
    bool include_usage;        /* Chat, streaming: the last chunk */
    bool list;                 /* Gemini, streaming: a JSON list, see struct llm_endpoint */
    struct str model;          /* what the client asked for; told back to it */
    uint64_t seed;             /* for ids */
    int64_t created;           /* seconds since 1970, where the format carries it */
    struct llm_losses *losses; /* may be NULL */
    /* What the client asked, or NULL: tells which names were flattened for the upstream
     * (namespaces, freeform tools), so that calls go back as the client knows them. Borrowed. */
    const struct llm_request *request;
    /* The events are those of a response in another format, `from`: its signatures are wrapped, so
     * that they find their way back (codec_recall.c), and what the client's format has no place
     * for goes into `store`, which may be NULL. */
    bool translated;
    enum llm_format from;
    struct llm_store *store;
};
struct llm_writer *llm_writer_new(const struct llm_writer_opts *o);
struct llm_writer *llm_writer_free(struct llm_writer *w);
int llm_writer_event(struct llm_writer *w, const struct llm_event *ev, struct buf *out,
                     struct err *e) MUST_USE;
const char *llm_content_type(enum llm_format f, bool stream);

/* --- errors --- */

/* A whole error body in the provider's own shape; the HTTP status is error->status or, if that is
 * 0, llm_error_status(kind). */
int llm_error_write(enum llm_format f, const struct llm_error *error, struct buf *out,
                    struct err *e) MUST_USE;
/* From a provider's answer with status >= 400, any body; strings in `a`. */
void llm_error_read(struct arena *a, enum llm_format f, int status, struct str body,
                    struct llm_error *ret);
int llm_error_status(enum llm_error_kind kind);
