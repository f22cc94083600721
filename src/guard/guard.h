/* SPDX-License-Identifier: MIT
 *
 * struct guard: the policies of a run. All must allow a call; the first that does not is told to
 * the model. Whatever goes wrong in a policy is a denial.
 *
 *   guard_new(&opts, &g, e);                                policies of the task, compiled
 *   guard_check(g, &call, on_decided, me, &check);          before a tool runs
 *   guard_note(g, &call, store_txn, e);                   after it succeeded, in its transaction
 *   guard_free(g);
 *
 * The same guard decides on tools of ours (bridge) and on those of a harness that asks (native).
 *
 * Kinds, as tasks write them (each also takes name, tools, section, reason):
 *   {type: allow, tools: [a, "b_*"]}            all others of its scope are denied
 *   {type: deny, tools: [Bash]}
 *   {type: arguments, tools: […], rules: [{pointer: /path, pattern: "^src/"}, {schema: {…}}]}
 *   {type: sequential_dependency, depends: {deploy: [build, test]}}
 *   {type: read_before_write, read_tools: […], write_tools: […]}
 *   {type: rate, tools: […], calls: 5, per: 60s}
 *   {type: program, command: [./decide], timeout: 10s}
 * `tools` are patterns with '*' and '?'; without them, the policy is about every tool of its scope.
 * "native:Bash" means the tool of the harness only, "native:*" all of those. `section` limits the
 * scope to the tools of that section and those below it, and such policies are asked first. Tools
 * of cinch itself (open_sections, read_section, structured_output) need no place in a list of
 * `allow`.
 *
 * A call is allowed or not by what was committed when it was asked for.
 *
 * What a policy remembers is in the session, in the slice "policy:NAME": it rolls back and comes
 * back with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct helper_host;
struct guard;
struct guard_check;
struct state_store;
struct store_txn;

struct guard_call {
    struct str tool;
    struct str kind;    /* a second name that patterns match, "acp:execute"; empty: none */
    struct str section; /* empty: the prompt's own, or a native one */
    const struct json *arguments;
    struct str call_id;
    bool native; /* a tool of the harness */
};

struct guard_decision {
    bool allowed;
    struct str policy; /* which denied; empty: none */
    struct str reason; /* for the model */
    struct str detail; /* for the record: what went wrong in the policy itself; empty: nothing */
};

/* A policy in C: true allows; `reason` may be set. It must answer at once. */
struct guard_callback {
    const char *name;
    bool (*check)(void *arg, const struct guard_call *call, struct str *reason);
    void *arg;
};

struct guard_opts {
    const struct json *policies; /* of the task: a list; NULL: none */
    const struct guard_callback *callbacks;
    size_t n_callbacks;
    const struct helper_host *host; /* for programs; NULL: those are denied */
    struct state_store *session;
    /* Is there such a file in the workspace? The path is relative. NULL: nothing is there. */
    bool (*exists)(void *arg, struct str path);
    void *arg;
    const char *root; /* of the workspace, as tools see it; NULL: the host's cwd, or /workspace */
    /* Is there such a section? The path has dots. NULL: nobody knows, so all are taken. */
    bool (*section)(void *arg, struct str path);
    nsec (*now)(void *arg); /* NULL: clock_now() */
    const char *file;       /* what messages call the task; NULL: they name no place */
    /* A policy denied because something is wrong with itself. May be NULL. */
    void (*problem)(void *arg, struct str text);
};

/* At definition time host, session and exists are NULL: the policies are read and judged, and that
 * is all.
 * ERR_CONFIG for a policy that makes no sense. */
int guard_new(const struct guard_opts *o, struct guard **ret, struct err *e) MUST_USE;
struct guard *guard_free(struct guard *g); /* accepts NULL, returns NULL */
size_t guard_len(const struct guard *g);

/* Whether a tool of that name exists; UNSURE: that is not known (yet). */
enum guard_tool { GUARD_TOOL_MISSING, GUARD_TOOL_UNSURE, GUARD_TOOL_EXISTS };
struct guard_tools {
    enum guard_tool (*task)(void *arg, struct str name);   /* a tool of the task */
    enum guard_tool (*native)(void *arg, struct str name); /* a tool of the harness */
    void *arg;
};
struct guard_unmatched {
    size_t policy;   /* its place in the list of the task */
    struct str name; /* as the task has it */
};

/* Is this the name of a tool that cinch brings itself (tools/tool_builtin.h)? */
bool guard_is_builtin(struct str name);

/* Before the run: ERR_CONFIG for a name in a policy that no tool can have. Patterns with wildcards
 * are not checked. */
int guard_check_names(const struct guard *g, const struct guard_tools *tools,
                      struct err *e) MUST_USE;
/* After the run: names that neither a tool nor a checked call had. Returns their number, which may
 * be larger than `max`. */
size_t guard_unmatched_names(const struct guard *g, const struct guard_tools *tools,
                             struct guard_unmatched *ret, size_t max);

/* `decided` comes exactly once, at once (then *ret is NULL) or later, unless it is cancelled. The
 * call is copied. */
void guard_check(struct guard *g, const struct guard_call *call,
                 void (*decided)(void *arg, const struct guard_decision *d), void *arg,
                 struct guard_check **ret);
void guard_cancel(struct guard_check *c);
/* All that are under way are cancelled: nobody waits for them any more. */
void guard_stop(struct guard *g);
/* The call succeeded; what is to be remembered becomes part of its transaction (NULL: happens at
 * once, for tools of the harness). */
int guard_note(struct guard *g, const struct guard_call *call, struct store_txn *t,
               struct err *e) MUST_USE;
