/* SPDX-License-Identifier: MIT
 *
 * struct toolserver: a server of the Model Context Protocol that somebody else wrote, its tools
 * offered as ours (struct tool, kind "mcp").
 *
 *  1. toolserver_open(&opts, &s, e): starts or calls the server; returns at once
 *  2. `ready` comes with the tools, or `failed` with the reason; exactly one of them, from the loop
 *  3. each tool goes to bridge_add(), or tool_free(); its strings and its handler's self stay the
 *     server's: it must outlive them
 *  4. toolserver_stop(s): the program is ended, `stopped` comes when nothing of it is left
 *  5. toolserver_free(s), after bridge_free(). Earlier it is allowed too: what runs is killed then
 *
 *   name: tickets
 *   mcp:
 *     command: [npx, -y, tickets-mcp]    a program, or
 *     url: https://tickets.example/mcp   streamable HTTP
 *     env: {TICKETS_TOKEN: $TICKETS_KEY}         of the program; $NAME is a secret of the run
 *     headers: {Authorization: Bearer $TICKETS_KEY}   of each request
 *     sandbox: false                     right beside us; a program runs inside by default
 *     tools: [search, close]             only these; default: all
 *     rename: {search: find_ticket}      their name here
 *     prefix: tickets_                   before each name that is not renamed
 *     pin: {search: 9f86…}               sha256 of what was approved, see mcp_pin()
 *     start_timeout: 30s
 *   timeout: 60s                         of a call
 *   max_output: 8388608                  bytes of an answer
 *
 * Nothing that a server says is trusted. Names must be those of the protocol (letters, digits, _ -
 * and .); they are lower-cased and a dot becomes _, what does not fit then is refused, and so is
 * the second of two tools with one name. Descriptions lose control characters and are cut at
 * TOOLSERVER_DESCRIPTION_MAX characters. A schema that does not compile is refused. Titles, icons
 * and annotations are left out: they are not part of what was approved.
 *
 * Pins: with `pin`, only tools whose hash is named there are offered; another hash is refused and
 * reported. Without, the first list is what counts: when the server announces another list, its
 * next call asks for it first, and a tool that is described otherwise from then on is refused and
 * reported. What was offered is never changed behind the model's back; new tools are not offered.
 *
 * A server that dies fails the calls under way (TOOL_CRASHED); the next call starts it again, at
 * most TOOLSERVER_RESTARTS_MAX times.
 *
 * Transactions: the server is one program for the whole run and works on the workspace as it is,
 * not in the layer of a call. Files that it changes are NOT rolled back when a call fails; only
 * what the bridge itself keeps (session state, the answer) is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "mcp/mcp_transport.h"
#include "tools/tool.h"

struct helper_host;
struct loop;
struct toolserver;

#define TOOLSERVER_DESCRIPTION_MAX 1024
#define TOOLSERVER_RESTARTS_MAX    5
#define TOOLSERVER_START_TIME      (30 * NSEC_PER_SEC)
#define TOOLSERVER_OUTPUT          ((size_t)8 << 20)

/* What is worth a line in the record. */
enum toolserver_event {
    TOOLSERVER_REFUSED,   /* a tool is not offered: its name, schema or pin */
    TOOLSERVER_MISSING,   /* `tools`, `rename` or `pin` name a tool that is not there */
    TOOLSERVER_CHANGED,   /* a tool is not what was approved: its calls are refused from now on */
    TOOLSERVER_DIED,      /* the server is gone, unasked */
    TOOLSERVER_RESTARTED, /* … and is back */
    TOOLSERVER_NOISE,     /* it sends what nobody asked for; told once for each kind */
};
const char *toolserver_event_word(enum toolserver_event ev); /* "refused", "missing", … */

struct toolserver_opts {
    const struct helper_host *host; /* loop, place, environment and directory of the program */
    const struct json *definition;  /* of the task, see above */
    mcp_http_open *http;            /* NULL: a `url` is refused */
    /* Value of a secret, or NULL when there is none of that name. NULL: no secrets at all. */
    const char *(*secret)(void *arg, const char *name);
    /* The list may be empty. It is borrowed until `ready` returns, each tool is the receiver's. */
    void (*ready)(void *arg, struct toolserver *s, const struct tool *tools, size_t n);
    void (*failed)(void *arg, struct toolserver *s, const struct err *why);
    /* `tool` is empty where it concerns the server. May be NULL. */
    void (*event)(void *arg, struct toolserver *s, enum toolserver_event ev, struct str tool,
                  const char *text);
    void (*stopped)(void *arg, struct toolserver *s); /* after toolserver_stop() */
    void *arg;
};

/* Everything is copied. ERR_CONFIG when the definition is none, ERR_SECRET when a secret is
 * missing, ERR_NOTFOUND when there is no such program. */
int toolserver_open(const struct toolserver_opts *o, struct toolserver **ret,
                    struct err *e) MUST_USE;
void toolserver_stop(struct toolserver *s); /* calls under way are cancelled; idempotent */
void toolserver_kill(struct toolserver *s); /* one that was told to stop gets no time for it */
struct toolserver *toolserver_free(struct toolserver *s); /* accepts NULL, returns NULL */
struct str toolserver_name(const struct toolserver *s);
/* Tools of the upstream list as they came, with `pin` in each and `offered`, the name it has here
 * or null: what `cinch mcp tools` shows. */
struct json *toolserver_list(const struct toolserver *s, struct arena *a);

/* The definition alone, before anything is started; for `cinch task check`. */
int toolserver_check(const struct json *definition, struct err *e) MUST_USE;

/* What a tool is known by: sha256 of the canonical JSON (sorted keys, no blanks) of its name,
 * description, inputSchema and outputSchema, as the server says them. */
void mcp_pin(const struct json *tool, char out[SHA256_HEX]);
/* The name that an upstream tool gets here; false when nothing can be made of it. */
bool mcp_tool_name(struct str upstream, struct str prefix, char out[TOOL_NAME_MAX + 1]);
