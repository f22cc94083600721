/* SPDX-License-Identifier: MIT
 *
 * Side requests: what harnesses ask a model besides the conversation itself, to give it a title, to
 * find out its topic, to sum it up, to choose a model. They are metered as all others, and marked.
 */
#pragma once

#include "base/str.h"
#include "gateway/phrases.h"

struct arena;
struct llm_endpoint;
struct llm_request;
struct scan;

struct auxiliary {
    struct phrases signs;      /* of requests without tools */
    struct phrases tool_signs; /* of those with tools */
};

void auxiliary_init(struct auxiliary *side); /* takes no memory */

/* "title", "topic", "summary", "route", "quota" …; NULL: it belongs to the conversation, or the
 * body cannot be read. `s` is the scan of the body. Cheap for the conversation: the last message of
 * a request that offers tools is searched for two phrases. Of other requests, both ends of each
 * part are searched for the words of auxiliary requests, which begin or end with what they want.
 * Only a body with such words is read. */
const char *auxiliary_kind(const struct auxiliary *side, const struct llm_endpoint *where,
                           struct str body, const struct scan *s);

/* The same for a request that has been parsed; `system` and `last` are the texts of its system
 * prompt and of its last message. */
const char *auxiliary_request_kind(const struct llm_request *r, struct str system, struct str last);

/* The text of all system parts of a request, in the arena. */
struct str auxiliary_system_text(const struct llm_request *r, struct arena *a);
