/* SPDX-License-Identifier: MIT
 *
 * What stands behind a route, from the words of a setting: "https://api.anthropic.com",
 * "http://127.0.0.1:8000/v1", "script:hello.yaml", "cassette:run.cassette".
 *
 *   routing_read(arena, &(struct routing_words) { .upstream = "https://api.openai.com" }, &t, e);
 *
 * A provider that is known by its host brings its format and the name of the variable that usually
 * holds its key. An unknown host is taken to speak whatever the client speaks, which is true for
 * another gateway of ours and for servers with several of the formats; `format` says otherwise.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "llm/request.h"

struct arena;

enum routing_kind { ROUTING_HTTP, ROUTING_SCRIPT, ROUTING_CASSETTE };

struct routing_words {
    const char *upstream;
    const char *format; /* "anthropic", "responses", "chat", "gemini"; NULL: not said */
    const char *key;    /* name of a variable; NULL: not said */
};

struct routing_target {
    enum routing_kind kind;
    const char *where; /* URL without a slash at its end, or a path */
    const char *name;  /* for records: "api.openai.com", "script", "cassette" */
    bool any_format;   /* it speaks the client's */
    enum llm_format format;
    unsigned formats;  /* further ones that it speaks, 1u << format each */
    const char *key;   /* variable that holds the credential; NULL: none is sent */
    bool key_required; /* the setting names it, or the provider is known to want one */
};

/* ERR_CONFIG for an address that is none, or a credential in it. */
int routing_read(struct arena *a, const struct routing_words *w, struct routing_target *ret,
                 struct err *e) MUST_USE;
