/* SPDX-License-Identifier: MIT
 *
 * What the files of the Chat Completions codec share.
 */
#pragma once

#include "llm/codec_priv.h"

/* Spellings. */
enum {
    CHAT_STRING = 1u << 0,     /* content is one string, not a list; `stop` likewise */
    CHAT_NO_CONTENT = 1u << 1, /* a message without the member */
    CHAT_LEGACY = 1u << 2,     /* function_call, functions, role "function", max_tokens */
    CHAT_REASONING = 1u << 3,  /* thoughts in `reasoning`, not in `reasoning_content` */
    CHAT_IN_CONTENT = 1u << 4, /* a refusal that is a part of the content */
    CHAT_LEGACY_CHOICE = 1u << 5,
    CHAT_CUSTOM_CHOICE = 1u << 6,
    CHAT_UNTYPED = 1u << 7, /* a call that does not say what it is */
    CHAT_NESTED = 1u << 8,  /* a grammar that stood one level deeper than we keep it */
};

int llm_chat_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                   struct json **ret, struct err *e);

/* A call that is being gathered; see chat_reader.c. */
struct llm_chat_call {
    int64_t index; /* on the wire; -1: none */
    struct str id, name;
    uint32_t block;
    bool custom;
    bool delivered;
    char *text; /* arguments so far */
    size_t len, cap;
    uint32_t depth; /* of brackets in them */
    bool in_string, escape, complete;
};
enum llm_chat_tag { CHAT_TAG_UNDECIDED, CHAT_TAG_INSIDE, CHAT_TAG_CLOSED, CHAT_TAG_OVER };
struct llm_chat_reader {
    bool has_text, has_thinking, has_refusal;
    bool has_choice;
    uint32_t text, thinking, refusal; /* their blocks */
    enum llm_chat_tag tag;            /* of <think> at the start of the content */
    char held[64];                    /* text that may be the beginning of a tag */
    size_t n_held;
    LLM_LIST(struct llm_chat_call) calls;
    size_t bytes, pinged; /* of arguments */
    bool overflow;
};
struct llm_chat_writer {
    bool stopped;
    LLM_LIST(uint32_t) calls; /* block of the n-th call */
};

int llm_chat_read_event(struct llm_read *rd, struct str name, struct str data, struct err *e);
int llm_chat_read_body(struct llm_read *rd, const struct json *body, struct err *e);
void llm_chat_read_end(struct llm_read *rd);
bool llm_chat_tap_wants(struct str name, struct str data);
int llm_chat_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e);
int llm_chat_write_body(struct llm_write *w, struct json **ret, struct err *e);
