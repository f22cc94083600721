/* SPDX-License-Identifier: MIT
 *
 * What tests of policies share: a guard on a session and a workspace of names, and questions to it.
 */
#pragma once

#include "../values.h"

#include "fake_helper.h"

#include <stdio.h>
#include <string.h>

#include "guard/guard.h"
#include "record/state_store.h"

static struct state_store *session;
static struct guard *guard;
static nsec now;
static const char *existing; /* "a|b": what is in the workspace */

static struct helper_host host = { .cwd = "/srv/ws" };

static inline bool file_is_there(void *arg, struct str path)
{
    struct str rest = str_of(existing);
    while (rest.len > 0) {
        if (str_eq(str_split(&rest, '|'), path)) {
            return true;
        }
    }
    return false;
}

static const char *problem; /* the last one */

static inline void on_problem(void *arg, struct str text)
{
    problem = arena_dup(arena, text);
}

static inline nsec the_time(void *arg)
{
    return now;
}

static inline bool section_known(void *arg, struct str path)
{
    return str_eqc(path, "guide") || str_eqc(path, "guide.deep");
}

static inline int make(const char *policies, const struct guard_callback *callbacks, size_t n,
                       struct err *e)
{
    struct guard_opts o = {
        .policies = policies == NULL ? NULL : tree(policies),
        .callbacks = callbacks,
        .n_callbacks = n,
        .host = &host,
        .session = session,
        .exists = file_is_there,
        .section = section_known,
        .now = the_time,
        .file = "task.yaml",
        .problem = on_problem,
    };
    guard = guard_free(guard);
    return guard_new(&o, &guard, e);
}

static inline void policies(const char *text)
{
    struct err e;
    if (make(text, NULL, 0, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static inline int setup(void **state)
{
    now = 1000 * NSEC_PER_SEC;
    existing = "";
    problem = NULL;
    session = store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
    return arena_setup(state);
}

static inline int teardown(void **state)
{
    guard = guard_free(guard);
    session = store_free(session);
    errands_reset();
    return arena_teardown(state);
}

/* --- asking --- */

struct told {
    int times;
    bool allowed;
    const char *policy, *reason, *detail;
};

static inline void on_decided(void *arg, const struct guard_decision *d)
{
    struct told *t = arg;
    t->times++;
    t->allowed = d->allowed;
    t->policy = arena_dup(arena, d->policy);
    t->reason = arena_dup(arena, d->reason);
    t->detail = arena_dup(arena, d->detail);
}

static inline struct guard_call call_of(const char *tool, const char *arguments)
{
    return (struct guard_call) {
        .tool = str_of(tool),
        .arguments = arguments == NULL ? NULL : tree(arguments),
        .call_id = STR("c1"),
    };
}

static inline struct told ask_call(const struct guard_call *call)
{
    struct told t = { 0 };
    struct guard_check *c;
    guard_check(guard, call, on_decided, &t, &c);
    assert_null(c);
    assert_int_equal(t.times, 1);
    return t;
}

static inline struct told ask(const char *tool, const char *arguments)
{
    struct guard_call call = call_of(tool, arguments);
    return ask_call(&call);
}

static inline void allows(const char *tool, const char *arguments)
{
    struct told t = ask(tool, arguments);
    if (!t.allowed) {
        fail_msg("%s: denied by %s: %s", tool, t.policy, t.reason);
    }
}

static inline void denies(const char *tool, const char *arguments, const char *reason)
{
    struct told t = ask(tool, arguments);
    assert_false(t.allowed);
    assert_string_equal(t.reason, reason);
}

static inline void succeeded(const char *tool, const char *arguments)
{
    struct guard_call call = call_of(tool, arguments);
    struct store_txn *t = store_begin(session);
    assert_int_equal(guard_note(guard, &call, t, NULL), 0);
    assert_int_equal(store_commit(t, NULL), 0);
}

static inline void refused(const char *text, const char *why)
{
    struct err e;
    assert_int_equal(make(text, NULL, 0, &e), -ERR_CONFIG);
    if (strstr(e.msg, why) == NULL) {
        fail_msg("'%s' is not in '%s'", why, e.msg);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
