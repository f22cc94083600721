/* SPDX-License-Identifier: MIT
 *
 * struct script: a model that plays by a book. A YAML file says which request gets which answer, so
 * that a real harness can be driven without a provider; docs/gateway.md describes the language.
 *
 *  1. script_load("hello.yaml", &s, e)           all checks: "hello.yaml:4:7: unknown key …"
 *  2. script_answer(s, &request, arena, &a, e)   the step that fits, as events
 *  3. script_render(&a, &how, playback, e)       the same as bytes with pauses, faults included
 *  4. script_free(s)
 *
 * Pure: no clock, no descriptor. The step is chosen by what the request holds, not by counting
 * requests: retries and side requests do not derail a script. Remembered is only how often each
 * step was played (`times`, `request`). The same requests in the same order get the same bytes.
 *
 * Answers live in the caller's arena. A script holds scratch memory of its patterns: one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "llm/event.h"
#include "llm/request.h"
#include "wire/http.h"

struct arena;
struct json;
struct playback;
struct script;

/* Bounds of a file; reached by generated scripts only, and then told. */
#define SCRIPT_BYTES_MAX ((size_t)4 << 20)
#define SCRIPT_STEPS_MAX 4096

int script_parse(struct str text, const char *name, struct script **ret, struct err *e) MUST_USE;
int script_load(const char *path, struct script **ret, struct err *e) MUST_USE;
/* Would the tree be a good script? `name` is that of the file it stands in. */
int script_check(const struct json *root, const char *name, struct err *e) MUST_USE;
struct script *script_free(struct script *s); /* accepts NULL, returns NULL */
/* From here on as if nothing had been played. */
void script_reset(struct script *s);
const char *script_name(const struct script *s); /* `name`, else the file's */
/* Steps that were never played, as " 'a' (4:3), 'b' (9:3)"; empty when all were. In the arena. */
struct str script_unplayed(const struct script *s, struct arena *a);
/* Gives variables of the script a value; ERR_CONFIG for one that it does not declare in `vars`. */
int script_set(struct script *s, struct str name, struct str value, struct err *e) MUST_USE;

/* A table of aliases, from a profile or a script; `file` is for messages. NULL is a good one. */
int script_check_aliases(const struct json *aliases, const char *file, struct err *e) MUST_USE;

struct script_request {
    const struct llm_request *llm;
    struct http_fields fields;
    /* Of the profile, over the built-in ones: { "native.write_file": [{ tool, args | input }] };
     * may be NULL. The script's own `aliases` win over both. */
    const struct json *aliases;
};

/* Where in an answer something happens to it: before its head, or after so many bytes. */
#define SCRIPT_NEVER (-2)
#define SCRIPT_HEAD  (-1)

struct script_fault {
    int status;             /* 0: the answer is a good one */
    struct json *body;      /* of the status: text, or any JSON; NULL: in the provider's shape */
    struct str retry_after; /* the header's value; empty: none */
    struct llm_error error; /* of the status; or, `in_stream`, the event that ends the answer */
    bool in_stream;
    int64_t cut, hang, garbage; /* SCRIPT_NEVER, SCRIPT_HEAD or a number of bytes */
    struct str garbage_text;    /* empty: made from the seed */
    int64_t drip;               /* bytes at a time; 0: off */
    nsec drip_every;
    int64_t duplicate; /* number of the event that comes twice, from 1; 0: off */
};

struct script_event {
    struct llm_event event;
    nsec wait; /* before it */
};

struct script_answer {
    const char *step; /* its name, else "steps[2]", "turns[0]", "otherwise", "side" */
    const char *side; /* NULL, or what the side request is for: "title", "topic", "summary" … */
    nsec delay;       /* before the head */
    const struct script_event *events; /* START … END */
    size_t n_events;
    struct script_fault fault;
    struct llm_usage usage;
    uint64_t seed;
};

/* ERR_CONFIG when no step fits (the message names the nearest and what kept it back) or when the
 * step cannot be played (a tool that is not offered). */
int script_answer(struct script *s, const struct script_request *r, struct arena *a,
                  struct script_answer *ret, struct err *e) MUST_USE;

/* In the format and manner (streaming or not) that the request asks for. `ret` is fresh; what it
 * points to is in its own arena, or in the script. */
int script_render(const struct script_answer *answer, const struct llm_request *how,
                  struct playback *ret, struct err *e) MUST_USE;

static inline void cleanup_script(struct script **s)
{
    *s = script_free(*s);
}
