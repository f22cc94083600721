/* SPDX-License-Identifier: MIT
 *
 * struct playback: an answer that is known beforehand, given to the gateway as if an upstream sent
 * it: head, pieces of the body with pauses between them, and a proper, broken or missing end. What
 * a script renders and what a cassette holds both end up here.
 *
 *   struct playback *p = playback_new();        p->arena is for all that it points to
 *   p->status = 200; p->frames = …;
 *   playback_start(p, loop, &port, &call, e);   takes p over, also when it fails
 *
 * The call behaves as gateway/upstream.h says: no callback from inside start, none after cancel.
 * Frames without a pause before them go out in one round of the loop, as long as the client takes
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "gateway/upstream.h"
#include "wire/http.h"

struct arena;
struct loop;

struct playback_frame {
    nsec wait; /* before it */
    struct str bytes;
};

enum playback_end {
    PLAYBACK_ENDS,  /* properly */
    PLAYBACK_FAILS, /* with `error`; after a head that is a cut stream */
    PLAYBACK_HANGS, /* nothing comes any more; only cancel ends it */
};

#define PLAYBACK_FIELDS_MAX 16

struct playback {
    struct arena *arena;
    nsec delay; /* before the head, or before the failure when there is none */
    bool headless;
    int status;
    struct http_field fields[PLAYBACK_FIELDS_MAX];
    size_t n_fields;
    const struct playback_frame *frames;
    size_t n_frames;
    nsec last_wait; /* between the last frame and the end */
    enum playback_end end;
    struct upstream_error error;
};

struct playback *playback_new(void);
struct playback *playback_free(struct playback *p); /* accepts NULL, returns NULL */
/* Beyond PLAYBACK_FIELDS_MAX a field is dropped; name and value are borrowed. */
void playback_field(struct playback *p, struct str name, struct str value);
/* Nothing but an error; the message is copied. */
void playback_fail(struct playback *p, enum upstream_error_kind kind, const char *message);

int playback_start(struct playback *p, struct loop *l, const struct upstream_port *port,
                   struct upstream_call **ret, struct err *e) MUST_USE;
void playback_cancel(struct upstream_call *call);
void playback_pause(struct upstream_call *call, bool paused);

static inline void cleanup_playback(struct playback **p)
{
    *p = playback_free(*p);
}
