/* SPDX-License-Identifier: MIT
 *
 * Side requests: what harnesses ask a model besides the conversation itself, to give it a title, to
 * find out its topic, to sum it up, to choose a model. They are metered as all others, and marked.
 */
#pragma once

#include "base/str.h"

struct llm_endpoint;

/* "title", "topic", "summary", "route", "quota"; NULL: it belongs to the conversation, or the body
 * cannot be read. Cheap for the conversation: a request that offers tools is only searched. */
const char *side_kind(const struct llm_endpoint *where, struct str body);
