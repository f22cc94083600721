/* SPDX-License-Identifier: MIT
 *
 * From policy to plan, without carrying it out: what is in it, in which order, and what is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "init/plan.h"
#include "sandbox/compose.h"

enum { RECORDS_MAX = 256 };

struct drawn {
    struct arena *arena;
    struct sandbox_policy policy;
    struct sandbox_view view;
    struct sandbox_opts opts;
    struct compose compose;
    struct buf buf;
    struct plan plan;
    struct plan_record r[RECORDS_MAX];
    size_t n;
};

static int setup(void **state)
{
    struct drawn *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return -1;
    }
    d->arena = arena_new();
    sandbox_policy_init(&d->policy);
    d->opts = (struct sandbox_opts) { .policy = &d->policy, .view = &d->view };
    buf_init(&d->buf, PLAN_MAX);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct drawn *d = *state;
    buf_done(&d->buf);
    d->arena = arena_free(d->arena);
    free(d);
    return 0;
}

static void walk_on(struct drawn *d, enum plan_kind kind)
{
    assert_int_equal(plan_open(buf_str(&d->buf), kind, &d->plan, NULL), 0);
    while (d->n < RECORDS_MAX && plan_next(&d->plan, &d->r[d->n])) {
        d->n++;
    }
}

/* Both parts of it; texts of the first are kept, because the buffer is used again. */
static void draw_view(struct drawn *d)
{
    d->compose = (struct compose) { 0 };
    assert_int_equal(compose_init(&d->compose, d->arena, &d->opts, NULL), 0);
    buf_reset(&d->buf);
    assert_int_equal(compose_leave(&d->compose, &d->buf, NULL), 0);
    d->n = 0;
    walk_on(d, PLAN_VIEW);
    for (size_t i = 0; i < d->n; i++) {
        const char **texts[] = { &d->r[i].text, &d->r[i].from, &d->r[i].to };
        for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
            *texts[k] = *texts[k] == NULL ? NULL : arena_dup(d->arena, str_of(*texts[k]));
        }
    }
    buf_reset(&d->buf);
    assert_int_equal(compose_view(&d->compose, &d->buf, NULL), 0);
    walk_on(d, PLAN_VIEW);
}

static void draw_entry_of(struct drawn *d, const char *layer, bool helper)
{
    d->compose = (struct compose) { 0 };
    assert_int_equal(compose_init(&d->compose, d->arena, &d->opts, NULL), 0);
    buf_reset(&d->buf);
    assert_int_equal(compose_entry(&d->compose, layer, helper, &d->buf, NULL), 0);
    d->n = 0;
    walk_on(d, PLAN_ENTRY);
}

static void draw_entry(struct drawn *d, const char *layer)
{
    draw_entry_of(d, layer, false);
}

/* Where an operation on `to` stands; RECORDS_MAX: nowhere. */
static size_t where(const struct drawn *d, enum plan_op op, const char *to)
{
    for (size_t i = 0; i < d->n; i++) {
        const char *at = d->r[i].to == NULL ? d->r[i].text : d->r[i].to;
        if (d->r[i].op == op && (to == NULL || (at != NULL && strcmp(at, to) == 0))) {
            return i;
        }
    }
    return RECORDS_MAX;
}

static bool leaves(const struct drawn *d, unsigned flag)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->r[i].op == PLAN_OP_NAMESPACES && (d->r[i].number & flag) != 0) {
            return true;
        }
    }
    return false;
}

static void by_default_nothing_of_the_host_can_be_written(void **state)
{
    struct drawn *d = *state;
    draw_view(d);
    for (size_t i = 0; i < d->n; i++) {
        const struct plan_record *r = &d->r[i];
        bool host = r->op == PLAN_OP_BIND && (r->paths.flags & PLAN_INSIDE) == 0;
        if (host && (r->paths.flags & PLAN_WRITABLE) != 0) {
            assert_int_equal(strncmp(r->to, "/dev/", 5), 0);
        }
        if (host) {
            assert_string_not_equal(r->from, "/etc");
            assert_string_not_equal(r->from, "/");
            assert_string_not_equal(r->from, "/home");
        }
    }
    assert_true(leaves(d, CLONE_NEWNS) && leaves(d, CLONE_NEWNET) && leaves(d, CLONE_NEWIPC));
    assert_int_equal(leaves(d, CLONE_NEWUSER), geteuid() != 0);
    assert_true(where(d, PLAN_OP_CLOSE_ROOT, NULL) < RECORDS_MAX);
}

static void the_host_goes_out_of_sight_last(void **state)
{
    struct drawn *d = *state;
    draw_view(d);
    size_t end = where(d, PLAN_OP_CLOSE_ROOT, NULL);
    for (size_t i = end + 1; i < d->n; i++) {
        assert_int_equal(d->r[i].op, PLAN_OP_PASS);
    }
    assert_true(where(d, PLAN_OP_ROOT, NULL) < where(d, PLAN_OP_BIND, "/usr"));
}

static void an_open_network_is_the_hosts(void **state)
{
    struct drawn *d = *state;
    d->policy.net = SANDBOX_NET_OPEN;
    draw_view(d);
    assert_false(leaves(d, CLONE_NEWNET));
    assert_int_equal(d->compose.requested & (1u << SANDBOX_NETWORK), 0);
    d->policy.net = SANDBOX_NET_HOSTS;
    draw_view(d);
    assert_true(leaves(d, CLONE_NEWNET));
}

static void parents_come_before_children(void **state)
{
    struct drawn *d = *state;
    static const char *const read[] = { "/usr/share/doc", "/etc", NULL };
    static const char *const write[] = { "/usr/share", NULL };
    d->policy.read = read;
    d->policy.write = write;
    d->view = (struct sandbox_view) { .path = "/usr/lib", .bind = "/usr/lib" };
    draw_view(d);
    assert_true(where(d, PLAN_OP_BIND, "/usr/share") < where(d, PLAN_OP_BIND, "/usr/share/doc"));
    assert_true(where(d, PLAN_OP_BIND, "/usr") < where(d, PLAN_OP_BIND, "/usr/lib"));
    size_t at = where(d, PLAN_OP_BIND, "/usr/share");
    assert_int_not_equal(d->r[at].paths.flags & PLAN_WRITABLE, 0);
}

static void of_the_same_path_writing_wins(void **state)
{
    struct drawn *d = *state;
    static const char *const both[] = { "/usr/share", NULL };
    d->policy.read = both;
    d->policy.write = both;
    draw_view(d);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        n += d->r[i].op == PLAN_OP_BIND && strcmp(d->r[i].to, "/usr/share") == 0;
    }
    assert_int_equal(n, 1);
    size_t at = where(d, PLAN_OP_BIND, "/usr/share");
    assert_int_not_equal(d->r[at].paths.flags & PLAN_WRITABLE, 0);
}

static void what_is_denied_is_hidden_after_all_is_shown(void **state)
{
    struct drawn *d = *state;
    static const char *const read[] = { "/usr/share", NULL };
    static const char *const deny[] = { "/usr/share/doc", NULL };
    d->policy.read = read;
    d->policy.deny = deny;
    draw_view(d);
    assert_true(where(d, PLAN_OP_BIND, "/usr/share") < where(d, PLAN_OP_MASK, "/usr/share/doc"));
    assert_true(where(d, PLAN_OP_MASK, "/usr/share/doc") < RECORDS_MAX);
}

static void a_read_only_workspace_is(void **state)
{
    struct drawn *d = *state;
    d->view = (struct sandbox_view) { .path = "/srv", .bind = "/srv" };
    draw_view(d);
    size_t at = where(d, PLAN_OP_BIND, "/srv");
    assert_int_not_equal(d->r[at].paths.flags & PLAN_WRITABLE, 0);
    d->policy.mode = SANDBOX_READ_ONLY;
    draw_view(d);
    at = where(d, PLAN_OP_BIND, "/srv");
    assert_int_equal(d->r[at].paths.flags & PLAN_WRITABLE, 0);
    draw_entry(d, NULL);
    assert_int_equal(where(d, PLAN_OP_LANDLOCK_RULE, "/srv"), RECORDS_MAX);
}

static void an_overlay_is_mounted_over_copies_of_its_layers(void **state)
{
    struct drawn *d = *state;
    static const char *const lower[] = { "/usr/share", "/usr/lib", NULL };
    d->view = (struct sandbox_view) { .path = "/w,eird:path", .lower = lower, .layer = "/var" };
    draw_view(d);
    size_t at = where(d, PLAN_OP_OVERLAY, "/w,eird:path");
    assert_true(at < RECORDS_MAX);
    assert_int_equal(strncmp(d->r[at].from, "lowerdir=/.cinch/lower0:/.cinch/lower1,", 39), 0);
    assert_non_null(strstr(d->r[at].from, "index=off"));
    assert_true((strstr(d->r[at].from, "userxattr") != NULL) == (geteuid() != 0));
}

static void an_entry_ends_with_the_filter(void **state)
{
    struct drawn *d = *state;
    d->policy.pids = 7;
    draw_entry(d, NULL);
    assert_int_equal(d->r[d->n - 1].op, PLAN_OP_SECCOMP);
    assert_true(where(d, PLAN_OP_PROC, NULL) < where(d, PLAN_OP_HIDE, "/.cinch"));
    assert_true(where(d, PLAN_OP_HIDE, "/.cinch") < where(d, PLAN_OP_IDENTITY, NULL));
    bool bounded = false;
    for (size_t i = 0; i < d->n; i++) {
        bounded = bounded || (d->r[i].op == PLAN_OP_RLIMIT && d->r[i].limit.hard == 7 &&
                              d->r[i].limit.resource == RLIMIT_NPROC);
    }
    assert_true(bounded);
}

static void only_helpers_have_the_helper_home(void **state)
{
    struct drawn *d = *state;
    draw_entry(d, NULL);
    assert_int_equal(where(d, PLAN_OP_TMPFS, SANDBOX_HELPER_HOME), RECORDS_MAX);
    assert_int_equal(where(d, PLAN_OP_BIND, "/etc/passwd"), RECORDS_MAX);
    draw_entry_of(d, NULL, true);
    assert_true(where(d, PLAN_OP_TMPFS, SANDBOX_HELPER_HOME) <
                where(d, PLAN_OP_DIR, SANDBOX_HELPER_HOME));
    assert_true(where(d, PLAN_OP_DIR, SANDBOX_HELPER_HOME) < RECORDS_MAX);
    assert_true(where(d, PLAN_OP_BIND, "/etc/passwd") < RECORDS_MAX);
}

static void nesting_has_its_own_filter_and_no_landlock(void **state)
{
    struct drawn *d = *state;
    draw_entry(d, NULL);
    size_t strict = d->r[d->n - 1].bytes.len;
    d->policy.allow_nested = true;
    draw_entry(d, NULL);
    assert_true(d->r[d->n - 1].bytes.len < strict);
    assert_int_equal(where(d, PLAN_OP_LANDLOCK, NULL), RECORDS_MAX);
}

static void layers_have_harmless_names(void **state)
{
    struct drawn *d = *state;
    static const char *const bad[] = { "",    "/abs", "../up", "a/../b", "a,b",
                                       "a:b", "a\\b", "a=b",   "a b",    "a\nb" };
    d->view = (struct sandbox_view) { .path = "/srv", .bind = "/srv" };
    draw_entry(d, "7");
    assert_true(where(d, PLAN_OP_OVERLAY, "/srv") < where(d, PLAN_OP_HIDE, "/.cinch"));
    draw_entry(d, "disk/7");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        buf_reset(&d->buf);
        assert_int_equal(compose_entry(&d->compose, bad[i], false, &d->buf, NULL), -ERR_BUG);
    }
}

static void impossible_wishes_are_refused(void **state)
{
    struct drawn *d = *state;
    const char *list[] = { "/", NULL };
    d->policy.read = list;
    assert_int_equal(compose_init(&d->compose, d->arena, &d->opts, NULL), -ERR_CONFIG);
    list[0] = "relative";
    assert_int_equal(compose_init(&d->compose, d->arena, &d->opts, NULL), -ERR_CONFIG);
    list[0] = "/proc";
    assert_int_equal(compose_init(&d->compose, d->arena, &d->opts, NULL), -ERR_CONFIG);
    list[0] = "/nowhere/at/all";
    assert_int_equal(compose_init(&d->compose, d->arena, &d->opts, NULL), -ERR_INPUT);
    d->policy.read = NULL;
    d->view = (struct sandbox_view) { .path = "/srv" };
    assert_int_equal(compose_init(&d->compose, d->arena, &d->opts, NULL), -ERR_BUG);
}

static void the_same_policy_gives_the_same_plan(void **state)
{
    struct drawn *d = *state;
    draw_view(d);
    char *before = arena_alloc(d->arena, d->buf.len);
    size_t len = d->buf.len;
    memcpy(before, d->buf.ptr, len);
    draw_view(d);
    assert_int_equal(d->buf.len, len);
    assert_memory_equal(d->buf.ptr, before, len);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(by_default_nothing_of_the_host_can_be_written),
        T(the_host_goes_out_of_sight_last),
        T(an_open_network_is_the_hosts),
        T(parents_come_before_children),
        T(of_the_same_path_writing_wins),
        T(what_is_denied_is_hidden_after_all_is_shown),
        T(a_read_only_workspace_is),
        T(an_overlay_is_mounted_over_copies_of_its_layers),
        T(an_entry_ends_with_the_filter),
        T(only_helpers_have_the_helper_home),
        T(nesting_has_its_own_filter_and_no_landlock),
        T(layers_have_harmless_names),
        T(impossible_wishes_are_refused),
        T(the_same_policy_gives_the_same_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
