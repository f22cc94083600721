/* SPDX-License-Identifier: MIT
 *
 * How typed events are put together: events.c (run and processes), events_gateway.c, and
 * events_prompt.c (telemetry).
 */
#pragma once

#include "base/json.h"
#include "record/events.h"

/* Context in ev->arena, valid until the event is sent. Keys are literals, each used once. */
struct json *event_context(struct events *ev);
/* NULL: null. */
void event_word(struct events *ev, struct json *c, const char *key, const char *ours);
/* A short text, which may have been cut to fit a message; NULL: null. */
void event_text(struct events *ev, struct json *c, const char *key, const char *foreign);
/* A whole text. */
void event_str(struct events *ev, struct json *c, const char *key, struct str foreign);
void event_tree(struct events *ev, struct json *c, const char *key, struct json *foreign);
void event_int(struct events *ev, struct json *c, const char *key, int64_t n);
void event_bool(struct events *ev, struct json *c, const char *key, bool b);
/* A negative count or time: null. */
void event_count(struct events *ev, struct json *c, const char *key, int64_t n);
void event_ms(struct events *ev, struct json *c, const char *key, nsec t);

/* Writes the line and empties ev->arena. The message is redacted. */
void event_send(struct events *ev, enum event_kind kind, const char *message, struct json *context);
