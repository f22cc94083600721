/* SPDX-License-Identifier: MIT
 *
 * struct llm_request: what a client asks of a model, in no provider's words. The four codecs
 * (llm/codec.h) read their wire format into it and write it out of it.
 *
 * Everything lives in one arena, that of the decoded body; strings are borrowed from it. A list is
 * a pointer and a count. What a format has and this form has not stays in `extra` of the object it
 * stood in, as the JSON members it was (of a member that is understood in part, the rest of it):
 * the codec of the same format writes it back, any other codec reports it (llm/dropped.h).
 * So nothing vanishes silently. `spelling` is private to the codec that read the object: which of
 * the format's several ways of writing the same thing it was; 0 is always right for new objects.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct json;
struct llm_store;

enum llm_format {
    LLM_ANTHROPIC, /* Messages */
    LLM_RESPONSES, /* OpenAI Responses */
    LLM_CHAT,      /* OpenAI Chat Completions */
    LLM_GEMINI,    /* generateContent */
    LLM_FORMAT_MAX
};

enum llm_role {
    LLM_USER,
    LLM_ASSISTANT,
    LLM_SYSTEM, /* system or developer text in the midst of a conversation */
};

enum llm_part_kind {
    LLM_PART_TEXT,
    LLM_PART_MEDIA,    /* image, document, audio: inline or by address */
    LLM_PART_THINKING, /* with the provider's signature, which only that provider understands */
    LLM_PART_CALL,     /* a tool call of the assistant */
    LLM_PART_RESULT,   /* what the tool answered */
    LLM_PART_REFUSAL,  /* the model declined, in words */
    LLM_PART_OTHER,    /* known to one format only: whole in `extra` */
};

enum llm_media_kind { LLM_MEDIA_IMAGE, LLM_MEDIA_DOCUMENT, LLM_MEDIA_AUDIO, LLM_MEDIA_VIDEO };

struct llm_media {
    enum llm_media_kind kind;
    struct str mime; /* "image/png"; empty: unknown */
    struct str data; /* base64 */
    struct str url;  /* instead of data; neither: a document of plain text, in `text` of the part */
    struct str name; /* file name, may be empty */
};

struct llm_call {
    struct str id;      /* empty where the format has none (Gemini) */
    struct str name;    /* bare name */
    struct str ns;      /* Responses: namespace; else empty */
    bool custom;        /* freeform: the input is text, not JSON */
    struct str text;    /* input of a custom call; of any other call its JSON text */
    struct json *input; /* the parsed object; NULL for custom calls and for text that is no JSON */
};

struct llm_part;

struct llm_result {
    struct str call_id;
    struct str name; /* empty where the format does not say (all but Gemini) */
    bool custom;
    bool is_error;
    const struct llm_part *parts; /* text and media */
    size_t n_parts;
    struct json *value; /* Gemini: the response object as it was; else NULL */
    unsigned spelling;
};

struct llm_part {
    enum llm_part_kind kind;
    struct str text;      /* TEXT, THINKING, REFUSAL; MEDIA: see there */
    struct str signature; /* THINKING, and Gemini's on any part: opaque */
    struct str id;        /* THINKING: of a reasoning item; OTHER: its kind, if it has a name */
    bool redacted;        /* THINKING: only the signature is there */
    struct llm_media media;
    struct llm_call call;
    struct llm_result result;
    struct json *extra; /* object or NULL */
    unsigned spelling;
};

struct llm_message {
    enum llm_role role;
    bool developer; /* LLM_SYSTEM: the wire said "developer" */
    const struct llm_part *parts;
    size_t n_parts;
    struct json *extra;
    unsigned spelling;
};

enum llm_tool_kind {
    LLM_TOOL_FUNCTION,
    LLM_TOOL_CUSTOM, /* freeform input, perhaps with a grammar in `extra` */
    LLM_TOOL_HOSTED, /* the provider runs it (web search …): whole in `extra` */
};

struct llm_tool {
    enum llm_tool_kind kind;
    struct str name; /* for HOSTED its type */
    struct str ns;   /* Responses: the namespace it is listed under */
    struct str description;
    struct json *schema; /* of the input; NULL: none given */
    bool strict;
    struct json *extra;
    unsigned spelling;
};

enum llm_choice {
    LLM_CHOICE_DEFAULT,
    LLM_CHOICE_AUTO,
    LLM_CHOICE_NONE,
    LLM_CHOICE_ANY,
    LLM_CHOICE_TOOL
};

/* Absent numbers are recognisable: has_… says whether the client gave one. */
struct llm_sampling {
    bool has_temperature, has_top_p, has_top_k, has_presence, has_frequency, has_seed;
    double temperature, top_p, presence_penalty, frequency_penalty;
    int64_t top_k, seed;
    int64_t max_tokens; /* 0: not given */
    const struct str *stops;
    size_t n_stops;
};

struct llm_reasoning {
    bool given;
    bool off;          /* explicitly none */
    struct str effort; /* "low", "medium", "high", …; empty: not given */
    int64_t budget;    /* tokens; 0: not given, -1: up to the model */
    bool summary;      /* thoughts are to be shown */
};

struct llm_output {
    bool json;           /* the answer must be JSON */
    struct json *schema; /* and fit this; NULL: any JSON */
    struct str name;
    bool strict;
};

struct llm_request {
    enum llm_format format; /* that it was read from */
    struct str model;       /* Gemini: from the path */
    bool stream;
    bool list; /* Gemini, streaming: as one JSON list, see struct llm_endpoint */
    /* Text parts: what the format has a place of its own for. Chat has none and keeps its system
     * messages at the head of `messages`; so does Responses with those in its input. */
    const struct llm_part *system;
    size_t n_system;
    const struct llm_message *messages;
    size_t n_messages;
    const struct llm_tool *tools;
    size_t n_tools;
    enum llm_choice choice;
    struct str choice_name;        /* LLM_CHOICE_TOOL */
    bool parallel_given, parallel; /* parallel tool calls */
    struct llm_sampling sampling;
    struct llm_reasoning reasoning;
    struct llm_output output;
    bool include_usage; /* Chat: stream_options.include_usage */
    struct json *extra; /* members of the body that have no place above */
    struct json *raw;   /* the whole body */
    unsigned spelling;
    /* For translation: what is known of earlier responses. Not from the wire; may be NULL. */
    const struct llm_store *store;
};

struct arena;

/* The words or results that the model is to answer to, joined with newlines: the last user message
 * (with the one before it, if it is only a reminder of the harness), or all results since the
 * model's last message with the words around them. The text a script matches on; valid as long as
 * `a`. */
struct str llm_last_text(struct arena *a, const struct llm_request *r);
/* Results since the last words of the user, and the steps they came in (parallel calls are one
 * step): the turn a script is in, counted from 0. Words beside or after results (reminders that
 * harnesses add) do not start anew. */
size_t llm_results(const struct llm_request *r);
size_t llm_turn(const struct llm_request *r);
/* By its bare name, or as "ns__name"; NULL if there is none. */
const struct llm_tool *llm_tool_find(const struct llm_request *r, struct str name);
/* The call that a result answers; NULL if it is not in the conversation. */
const struct llm_call *llm_call_find(const struct llm_request *r, struct str id);
