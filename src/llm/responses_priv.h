/* SPDX-License-Identifier: MIT
 *
 * OpenAI Responses, shared by its files: responses.c (table, paths), responses_read.c and
 * responses_item.c (requests in), responses_write.c (requests out), responses_reader.c (answers in)
 * and responses_writer.c (answers out).
 *
 * An item of `input` is one message of the canonical form, so that nothing is lost between the two;
 * what is written to another format is joined on the way.
 */
#pragma once

#include "llm/codec_priv.h"

/* `spelling` of what was read from this format. */
enum {
    RESPONSES_PLAIN = 1 << 0,   /* message, result, request: a string instead of a list */
    RESPONSES_UNTYPED = 1 << 1, /* message: no "type" */
    RESPONSES_ITEM = 1 << 2,    /* part OTHER: an item of its own, not content of a message */
    RESPONSES_LATE = 1 << 3,    /* tool: came with an item of the input, which still holds it */
    RESPONSES_EMPTY = 1 << 4,   /* request: a list of tools was there, and empty */
    RESPONSES_STREAM = 1 << 5,  /* request: "stream" was there */
    RESPONSES_NO_INPUT = 1 << 6,
    RESPONSES_SUMMARY = 1 << 7,     /* thought: its text is the summary's only one */
    RESPONSES_INPUT_TEXT = 1 << 8,  /* text: "input_text", whosever it is */
    RESPONSES_OUTPUT_TEXT = 1 << 9, /* text: "output_text" */
    RESPONSES_CUSTOM = 1 << 10,     /* request: the choice is called a custom tool */
};

/* In the extras of the first tool of a namespace: what the namespace says of itself. */
#define RESPONSES_NAMESPACE "(namespace)"

struct responses_tools {
    struct arena *arena;
    LLM_LIST(struct llm_tool) list;
};

/* Adds the tools of a list; `late` for those that came with an item. `where` names the list in
 * messages. */
int responses_tools_read(struct responses_tools *t, const struct json *list, bool late,
                         const char *where, struct err *e) MUST_USE;
/* One item of `input`. */
int responses_item_read(struct arena *a, struct json *item, size_t index, struct llm_message *ret,
                        struct responses_tools *tools, struct err *e) MUST_USE;

/* Replaces item references by the items that the request's store has under their ids. */
int responses_resolve(struct arena *a, struct llm_request *r, struct err *e) MUST_USE;

int responses_read(struct arena *a, const struct llm_endpoint *where, struct json *body,
                   struct llm_request *ret, struct err *e) MUST_USE;
int responses_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                    struct json **ret, struct err *e) MUST_USE;

/* A piece of content that the reader follows: an item, or one content of a message. */
struct responses_piece {
    int64_t item, content;
    uint32_t block;
    bool call;    /* CALL_BEGIN was told */
    bool said;    /* words or input came */
    bool ended;   /* the call is complete, or the thought signed */
    bool custom;  /* freeform */
    int64_t part; /* reasoning: the part of the summary that spoke last */
};
struct responses_reading {
    LLM_LIST(struct responses_piece) pieces;
    bool calls;   /* there was one that the client must run */
    bool refused; /* in words */
};

/* An item that the writer tells. */
struct responses_item {
    uint32_t block;
    struct str id;
    bool part; /* its content or summary was opened */
    bool open;
};
struct responses_writing {
    int64_t sequence;
    struct str id;                         /* of the response */
    LLM_LIST(struct responses_item) items; /* in the order of the answer's blocks */
};

int responses_read_event(struct llm_read *rd, struct str name, struct str data,
                         struct err *e) MUST_USE;
int responses_read_body(struct llm_read *rd, const struct json *body, struct err *e) MUST_USE;
bool responses_tap_wants(struct str name, struct str data);
int responses_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e) MUST_USE;
int responses_write_body(struct llm_write *w, struct json **ret, struct err *e) MUST_USE;
