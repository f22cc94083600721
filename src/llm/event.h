/* SPDX-License-Identifier: MIT
 *
 * struct llm_event: what a model answers, piece by piece, in no provider's words. A response, with
 * or without streaming, is this sequence:
 *
 *   START
 *   ( TEXT | THINKING | SIGNATURE | REFUSAL | CALL_BEGIN CALL_DATA* CALL_END |
 *     USAGE | PING | OTHER )*
 *   STOP  END             or, at any place, ERROR END
 *
 * `block` numbers the pieces of content from 0 in the order in which they begin: a text, a thought
 * and a tool call are each a block, and events of one block carry its number. Parallel calls may
 * interleave; a decoder reports them as they come.
 *
 * Strings in an event are borrowed and valid during the callback only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "llm/request.h"

struct json;

enum llm_event_kind {
    LLM_EV_START,
    LLM_EV_TEXT,
    LLM_EV_THINKING,
    LLM_EV_SIGNATURE, /* of the thought in `block` (Gemini: of any block) */
    LLM_EV_REFUSAL,
    LLM_EV_CALL_BEGIN,
    LLM_EV_CALL_DATA, /* a piece of the input's JSON text (custom: of the input itself) */
    LLM_EV_CALL_END,
    LLM_EV_USAGE, /* totals so far; a later one replaces an earlier one, field by field */
    LLM_EV_STOP,
    LLM_EV_ERROR,
    LLM_EV_PING,
    LLM_EV_OTHER, /* known to one format only: `raw` */
    LLM_EV_END,   /* the response is complete (message_stop, [DONE], response.completed) */
};

enum llm_stop {
    LLM_STOP_END,      /* end_turn, stop, completed, STOP */
    LLM_STOP_LENGTH,   /* max_tokens, length, incomplete, MAX_TOKENS */
    LLM_STOP_TOOL,     /* tool_use, tool_calls */
    LLM_STOP_SEQUENCE, /* a stop sequence, in `text` if known */
    LLM_STOP_REFUSAL,  /* refusal, content_filter, SAFETY … */
    LLM_STOP_PAUSE,    /* pause_turn */
    LLM_STOP_OTHER,    /* its word in `text` */
    LLM_STOP_MAX
};

/* -1: not said. The counts do not overlap: input is what was neither read from nor written to a
 * cache; output includes reasoning, which is named again on its own. The codecs convert. */
struct llm_usage {
    int64_t input;
    int64_t output;
    int64_t cache_read;
    int64_t cache_write;
    int64_t reasoning;        /* share of output */
    int64_t cache_write_long; /* share of cache_write that is kept for longer, at another price */
    int64_t searches;         /* web searches that the provider made, which it charges apart */
};
#define LLM_USAGE_NONE ((struct llm_usage) { -1, -1, -1, -1, -1, -1, -1 })
void llm_usage_update(struct llm_usage *to, const struct llm_usage *with); /* field by field */
int64_t llm_usage_total(const struct llm_usage *u); /* input, output and both caches; unsaid is 0 */

enum llm_error_kind {
    LLM_ERR_INVALID,    /* 400 */
    LLM_ERR_AUTH,       /* 401 */
    LLM_ERR_PERMISSION, /* 403 */
    LLM_ERR_NOT_FOUND,  /* 404 */
    LLM_ERR_TOO_LARGE,  /* 413 */
    LLM_ERR_RATE,       /* 429 */
    LLM_ERR_QUOTA,      /* 429, not worth a retry: quota or budget exhausted */
    LLM_ERR_CONTEXT,    /* 400: the prompt is too long for the model */
    LLM_ERR_SERVER,     /* 500, 502 … */
    LLM_ERR_OVERLOADED, /* 529, 503 */
    LLM_ERR_TIMEOUT,    /* 504 */
    LLM_ERR_MAX
};

struct llm_error {
    enum llm_error_kind kind;
    int status;      /* HTTP */
    struct str type; /* the provider's own word, may be empty */
    struct str code; /* OpenAI: code; may be empty */
    struct str message;
};

#define LLM_NO_BLOCK UINT32_MAX /* OTHER that is no part of the content */

struct llm_event {
    enum llm_event_kind kind;
    uint32_t block;
    struct str text; /* TEXT, THINKING, SIGNATURE, REFUSAL, CALL_DATA; STOP: see enum llm_stop */
    /* START: id and model of the response. CALL_BEGIN: id of the call. */
    struct str id;
    struct str model;
    struct str name;        /* CALL_BEGIN */
    struct str ns;          /* CALL_BEGIN, Responses */
    bool custom;            /* CALL_… of a freeform tool */
    bool redacted;          /* THINKING, SIGNATURE: of a thought that only its signature tells */
    bool of_content;        /* SIGNATURE: of a text or a call (Gemini), not of a thought */
    struct llm_usage usage; /* USAGE only */
    enum llm_stop stop;
    struct llm_error error;
    enum llm_format format; /* OTHER: the only one that understands `raw` */
    const struct json *raw; /* OTHER: the event or the piece of content as it was */
};

struct llm_sink {
    void (*on_event)(void *arg, const struct llm_event *ev);
    void *arg;
};
