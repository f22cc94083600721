/* SPDX-License-Identifier: MIT
 *
 * struct evidence: what one run left behind, read into memory so that checks can look at it: the
 * record, and the model's side of it from the recorded traffic.
 *
 *   evidence_load(arena, dir, &ev, e);     ERR_INPUT, ERR_PARSE: names the missing or broken file
 *
 * Everything lives in the arena. A record is as foreign as the harness that it is of: all readers
 * are bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

/* A request for the model, as it went over the wire. */
struct evidence_request {
    const char *target;
    const struct json *body; /* NULL: it is no JSON */
    struct str text;         /* all strings of the body, a line each: what the model could read */
    struct str side;         /* kind of side request; empty: part of the conversation */
    int status;
    bool complete;
};

struct evidence {
    const char *dir;
    int exit_status; /* of `cinch run`; set by who ran it */
    struct str said; /* on its standard error */
    struct json *manifest, *metrics, *result;
    struct json *events;     /* list */
    struct json *transcript; /* list of entries, without start and stop */
    struct json *session;    /* slice → list of items at the end; NULL: there is none */
    struct str patch;
    struct evidence_request *requests;
    size_t requests_len;
};

int evidence_load(struct arena *a, const char *dir, struct evidence *ret, struct err *e) MUST_USE;
