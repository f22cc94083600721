/* SPDX-License-Identifier: MIT
 *
 * What the kinds of policies share. A kind is one const struct policy_kind in a policy_*.c; the
 * table of all of them is in guard.c.
 *
 * What a policy remembers is written by note() as items of its slice, and read back by learn(),
 * item by item, in order: the slice is the truth and what learn() makes of it an index. The guard
 * calls forget() and learns anew when the slice no longer begins with what was learnt (the session
 * went back, or another one was loaded), so that a check costs the same however much happened.
 */
#pragma once

#include "base/arena.h"
#include "guard/guard.h"
#include "proc/helper_spec.h"

struct policy;

enum policy_verdict {
    POLICY_ALLOWS,
    POLICY_DENIES,
    POLICY_LATER, /* guard_check_resume() will say it */
};

struct policy_kind {
    const char *type;
    bool lists_exceptions; /* `tools` are not its scope but what it lets through */
    /* Reads what is its own in the definition into p->self; lives in the guard's arena. */
    int (*make)(struct policy *p, const struct json *definition, struct err *e);
    enum policy_verdict (*check)(struct policy *p, struct guard_check *c);
    /* All policies allow the call, and check() did so once more just now: it will happen. */
    void (*take)(struct policy *p, const struct guard_call *call);
    /* Items for the slice when a call has succeeded; NULL: none. The scope of a policy says which
     * tools it restrains, not what it sees: all calls come here. */
    struct json *(*note)(struct policy *p, struct arena *a, const struct guard_call *call);
    void (*learn)(struct policy *p, const struct json *item);
    void (*forget)(struct policy *p);
    void (*free)(struct policy *p);
};

struct policy_names {
    struct str *items; /* patterns */
    size_t n;
};

struct policy {
    const struct policy_kind *kind;
    struct guard *guard;
    struct str name;
    struct str slice;          /* "policy:NAME" */
    struct str section;        /* empty: the whole prompt */
    struct policy_names tools; /* n 0: all */
    struct str reason;         /* of the task; empty: the kind's own words */
    void *self;
    size_t learnt;           /* items of the slice */
    const struct json *last; /* the last of them */
};

/* A name of a tool in the definition of a policy; no wildcards. */
struct guard_name {
    struct str text; /* may begin with "native:" */
    size_t policy;   /* its place in the task */
    bool seen;       /* a call of that tool was checked */
};

struct guard {
    struct arena *arena;
    struct guard_name *names;
    size_t n_names;
    struct guard_opts opts;
    struct policy *policies;
    size_t n;
    struct guard_check *checks; /* under way */
};

struct guard_check {
    struct guard *guard; /* NULL: nobody waits for it any more */
    struct guard_check *prev, *next;
    struct arena *arena;
    struct guard_call call;
    bool copied; /* the call is in the arena */
    size_t at;   /* the policy whose turn it is */
    void (*decided)(void *arg, const struct guard_decision *d);
    void *arg;
    struct helper *helper;
    struct str reason; /* of a denial, for the model; empty: the default */
    struct str detail; /* for the record: what went wrong in the policy */
};

/* Whether the call is within its scope. */
bool policy_applies(const struct policy *p, const struct guard_call *call);
bool policy_matches(struct str pattern, const struct guard_call *call);
bool policy_names_match(const struct policy_names *names, const struct guard_call *call);
/* A list of strings of the definition, in the guard's arena; `otherwise` (NULL-terminated) when it
 * is absent. ERR_CONFIG for an empty list. */
int policy_names_read(struct policy *p, const struct json *definition, const char *key,
                      const char *const *otherwise, struct policy_names *ret,
                      struct err *e) MUST_USE;
/* In the arena of the check. */
enum policy_verdict policy_deny(struct guard_check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Something is wrong with the policy itself: the model hears no more than that it was denied. */
enum policy_verdict policy_broken(struct guard_check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The verdict that was due; the check may be gone after it. */
void guard_check_resume(struct guard_check *c, enum policy_verdict verdict);

/* Collects the names in the definitions of all policies; notes a call. */
void guard_names_read(struct guard *g);
void guard_names_see(struct guard *g, const struct guard_call *call);

nsec guard_now(const struct guard *g);

extern const struct policy_kind policy_kind_allow, policy_kind_deny, policy_kind_arguments,
    policy_kind_sequence, policy_kind_files, policy_kind_rate, policy_kind_program;

/* What a program printed. Without a decision in it, it is not allowed and `detail` says why. */
struct policy_reply {
    bool allowed;
    struct str reason; /* for the model, bounded; empty: none */
    struct str detail;
};
void policy_reply_read(struct arena *a, struct str out, struct policy_reply *ret);
