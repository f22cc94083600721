/* SPDX-License-Identifier: MIT
 *
 * The schedule of the kit on trials that only pretend: what is tried, skipped, tried again, kept,
 * and told. The name of a scenario says what its trial does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ack/kit_priv.h"
#include "base/file.h"
#include "io/loop.h"
#include "io/timer.h"

/* --- a trial that pretends --- */

struct counts {
    unsigned now, most, started, freed, seen_dirs;
    size_t begun, starts, dones;
    char order[16]; /* scenarios as they started, a letter each */
    int raise_at;   /* SIGINT when so many have started; 0: never */
};

struct scenario_run {
    struct scenario_run_opts opts;
    struct timer *timer;
};

static struct counts *counts_of(const struct scenario_run_opts *o)
{
    return (struct counts *)(uintptr_t)strtoull(o->environ[0] + strlen("COUNTS="), NULL, 16);
}

static bool has(const struct scenario_run_opts *o, const char *word)
{
    return strstr(o->scenario->name, word) != NULL;
}

static void on_timer(void *arg)
{
    struct scenario_run *t = arg;
    char why[64] = "";
    bool again = str_ends(str_of(t->opts.dir), STR(".again"));
    bool failed = has(&t->opts, "fail") || (has(&t->opts, "first") && !again);
    if (failed) {
        (void)snprintf(why, sizeof why, "wanted 1, found 2%s", again ? " again" : "");
    }
    const struct verdict v = { .status = failed ? VERDICT_FAILED : VERDICT_PASSED,
                               .version = has(&t->opts, "told") ? "7.1" : "",
                               .why = why };
    counts_of(&t->opts)->now--;
    t->opts.on_done(t->opts.arg, &v);
    memset(why, 'x', sizeof why - 1); /* the kit must have its own copy */
}

static int fake_start(struct loop *l, const struct scenario_run_opts *o, struct scenario_run **ret,
                      struct err *e)
{
    struct counts *c = counts_of(o);
    if (has(o, "refuse")) {
        return ERR(e, ERR_SYS, "no room");
    }
    struct scenario_run *t = xcalloc(1, sizeof *t);
    t->opts = *o;
    c->seen_dirs += file_is_dir(AT_FDCWD, o->dir);
    assert_true(c->started < sizeof c->order - 1);
    c->order[c->started++] = o->scenario->name[0];
    c->now++;
    c->most = c->now > c->most ? c->now : c->most;
    assert_int_equal(timer_new(l, on_timer, t, &t->timer, e), 0);
    bool again = str_ends(str_of(o->dir), STR(".again"));
    if (!has(o, "never") && !(has(o, "stuck") && again)) {
        timer_arm(t->timer, clock_now() + NSEC_PER_MS);
    } else if (!has(o, "lost")) {
        timer_arm(t->timer, clock_now() + 3600 * NSEC_PER_SEC);
    }
    if (c->raise_at > 0 && c->started == (unsigned)c->raise_at) {
        assert_int_equal(kill(getpid(), SIGINT), 0);
    }
    *ret = t;
    return 0;
}

static struct scenario_run *fake_free(struct scenario_run *t)
{
    counts_of(&t->opts)->freed++;
    timer_free(t->timer);
    free(t);
    return NULL;
}

/* --- a kit of them --- */

struct fixture {
    struct arena *arena;
    struct counts counts;
    struct kit_adapter adapters[3];
    struct scenario scenarios[9];
    const struct scenario *items[9];
    const char *environ[3];
    struct kit_opts opts;
    struct kit_report report;
    char dir[64];
};

static void on_begin(void *owner, size_t trials)
{
    ((struct counts *)owner)->begun = trials;
}

static void on_start(void *owner, const char *adapter, const struct scenario *s)
{
    ((struct counts *)owner)->starts++;
}

static void on_done(void *owner, const struct verdict *v)
{
    ((struct counts *)owner)->dones++;
    assert_non_null(v->why);
}

static struct profile *make_profile(struct arena *a, const char *doc)
{
    struct profile *p = ARENA_NEW(a, struct profile);
    p->driver = "oneshot";
    p->binary = json_array(a);
    assert_int_equal(json_parse(a, str_of(doc), NULL, &p->doc, NULL), 0);
    assert_int_equal(capability_read(json_get(p->doc, "capabilities"), json_get(p->doc, "lacks"),
                                     "doc", &p->capabilities, NULL),
                     0);
    return p;
}

#define DECLARES "{\"capabilities\":[\"text_response\"],\"lacks\":{\"transcript\":\"it is mute\"}}"

static void set_up(struct fixture *f, const char *const *names)
{
    *f = (struct fixture) { .arena = arena_new(), .dir = "/tmp/test_ack_XXXXXX" };
    assert_non_null(mkdtemp(f->dir));
    static const char *text[] = { "text_response", NULL };
    for (; names[f->opts.scenarios.len] != NULL; f->opts.scenarios.len++) {
        struct scenario *s = &f->scenarios[f->opts.scenarios.len];
        *s = (struct scenario) { .name = names[f->opts.scenarios.len],
                                 .tier = 1,
                                 .capabilities = text };
        f->items[f->opts.scenarios.len] = s;
    }
    f->adapters[0] = (struct kit_adapter) { .name = "one",
                                            .profile = make_profile(f->arena, DECLARES),
                                            .available = true,
                                            .version = "1.0" };
    f->environ[0] =
        arena_printf(f->arena, "COUNTS=%llx", (unsigned long long)(uintptr_t)&f->counts);
    f->opts.scenarios.items = f->items;
    f->opts.engine = (struct kit_engine) { fake_start, fake_free };
    f->opts.adapters = f->adapters;
    f->opts.adapters_len = 1;
    f->opts.jobs = 2;
    f->opts.timeout = 120 * NSEC_PER_SEC;
    f->opts.dir = arena_printf(f->arena, "%s/trials", f->dir);
    f->opts.environ = f->environ;
    f->opts.watcher = (struct kit_watcher) {
        .begin = on_begin, .start = on_start, .done = on_done, .owner = &f->counts
    };
}

static void run(struct fixture *f)
{
    struct err e = { 0 };
    if (kit_run(f->arena, &f->opts, &f->report, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    assert_int_equal(f->counts.started, f->counts.freed);
    assert_int_equal(f->counts.started, f->counts.seen_dirs);
    assert_int_equal(f->counts.dones, f->report.len);
    assert_int_equal(f->counts.begun, f->report.len);
}

static void tear_down(struct fixture *f)
{
    assert_int_equal(file_remove_tree(AT_FDCWD, f->dir, NULL), 0);
    f->arena = arena_free(f->arena);
}

static bool is_left(struct fixture *f, const char *name)
{
    return file_exists(AT_FDCWD, arena_printf(f->arena, "%s/trials%s", f->dir, name));
}

static void expect_file(struct fixture *f, const char *text)
{
    f->opts.expected = arena_printf(f->arena, "%s/expected.yaml", f->dir);
    assert_int_equal(file_write_atomic(AT_FDCWD, f->opts.expected, str_of(text), 0644, NULL), 0);
}

/* --- what is promised --- */

static void test_passes(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "pass_1", "pass_2", "pass_3", "pass_4", "pass_5", NULL });
    f.adapters[1] = f.adapters[0];
    f.adapters[1].name = "exec:/x/y";
    f.opts.adapters_len = 2;
    run(&f);
    assert_false(kit_failed(&f.report));
    assert_int_equal(f.report.count[VERDICT_PASSED], 10);
    assert_int_equal(f.counts.most, 2);
    assert_int_equal(f.counts.starts, 10);
    assert_string_equal(f.report.verdicts[7].adapter, "exec:/x/y");
    assert_string_equal(f.report.verdicts[7].scenario->name, "pass_3");
    assert_string_equal(f.report.verdicts[7].version, "1.0");
    assert_true(f.report.verdicts[7].took >= NSEC_PER_MS);
    assert_false(is_left(&f, "")); /* nothing at all */
    tear_down(&f);
}

/* One that does not answer to --version may tell it at work. */
static void test_version_that_is_told(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "pass_1", "told_2", NULL });
    struct json *command = json_array(f.arena);
    json_push(f.arena, command, json_cstr(f.arena, "/x/my-agent"));
    f.adapters[1] = f.adapters[0];
    f.adapters[1].name = "two";
    f.adapters[1].version = "";
    f.adapters[2] = f.adapters[1];
    f.adapters[2].name = "three";
    f.adapters[2].command = command;
    f.opts.adapters_len = 3;
    run(&f);
    assert_string_equal(f.report.adapters[0].version, "1.0");
    assert_string_equal(f.report.adapters[1].version, "7.1");
    assert_string_equal(f.report.verdicts[2].version, "7.1");
    assert_string_equal(f.report.adapters[2].version, "my-agent 7.1");
    tear_down(&f);
}

static void test_failure_is_kept(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "pass_1", "fail_2", "refuse_3", "pass_4", NULL });
    run(&f);
    assert_true(kit_failed(&f.report));
    assert_int_equal(f.report.count[VERDICT_FAILED], 2);
    assert_int_equal(f.report.count[VERDICT_PASSED], 2);
    assert_string_equal(f.report.verdicts[1].why, "wanted 1, found 2");
    assert_string_equal(f.report.verdicts[2].why, "it did not start: no room");
    assert_true(is_left(&f, "/one/fail_2"));
    assert_string_equal(f.report.verdicts[1].dir,
                        arena_printf(f.arena, "%s/trials/one/fail_2", f.dir));
    assert_false(is_left(&f, "/one/pass_1"));
    assert_null(f.report.verdicts[0].dir);
    tear_down(&f);
}

static void test_keep(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "pass_1", NULL });
    f.opts.keep = true;
    run(&f);
    assert_true(is_left(&f, "/one/pass_1"));
    assert_non_null(f.report.verdicts[0].dir);
    tear_down(&f);
}

static const char *order_with(struct fixture *f, bool shuffle, uint64_t seed)
{
    f->counts = (struct counts) { 0 };
    f->opts.shuffle = shuffle;
    f->opts.seed = seed;
    run(f);
    assert_int_equal(f->report.count[VERDICT_PASSED], 8);
    for (size_t i = 0; i < f->report.len; i++) {
        assert_ptr_equal(f->report.verdicts[i].scenario, f->items[i]);
    }
    return arena_dup(f->arena, str_of(f->counts.order));
}

/* The order of the report is always the table's. */
static void test_shuffle(void **state)
{
    struct fixture f;
    bool differ = false;
    set_up(&f, (const char *const[]) { "a", "b", "c", "d", "e", "f", "g", "h", NULL });
    assert_string_equal(order_with(&f, false, 7), "abcdefgh");
    const char *first = order_with(&f, true, 0);
    assert_string_equal(order_with(&f, true, 0), first);
    for (uint64_t seed = 1; seed < 4; seed++) {
        differ = differ || strcmp(order_with(&f, true, seed), first) != 0;
    }
    assert_true(differ);
    tear_down(&f);
}

static void test_skips(void **state)
{
    static const char *transcript[] = { "text_response", "transcript", NULL };
    static const char *other[] = { "sandbox_policy", NULL };
    struct fixture f;
    set_up(&f, (const char *const[]) { "pass_1", "pass_2", "pass_3", NULL });
    f.scenarios[1].capabilities = transcript;
    f.scenarios[2].capabilities = other;
    f.adapters[1] = f.adapters[0];
    f.adapters[1].name = "two";
    f.adapters[1].available = false;
    f.adapters[1].why_not = "not in PATH: two";
    f.opts.adapters_len = 2;
    run(&f);
    assert_false(kit_failed(&f.report)); /* skipped is never failed */
    assert_int_equal(f.counts.started, 1);
    assert_int_equal(f.report.count[VERDICT_SKIPPED], 5);
    assert_string_equal(f.report.verdicts[1].why, "transcript: it is mute");
    assert_string_equal(f.report.verdicts[2].why,
                        "sandbox_policy: its profile does not declare it");
    assert_string_equal(f.report.verdicts[3].why, "not in PATH: two");
    assert_null(f.report.verdicts[3].dir);
    tear_down(&f);
}

static void test_live(void **state)
{
    struct fixture f;
    struct profile *p;
    set_up(&f, (const char *const[]) { "pass_1", "pass_2", NULL });
    f.opts.live = true;
    f.scenarios[1].hermetic = true;
    p = make_profile(f.arena, DECLARES);
    p->gateway.key = "SOME_API_KEY";
    f.adapters[0].profile = p;
    run(&f);
    assert_int_equal(f.counts.started, 0);
    assert_string_equal(f.report.verdicts[0].why, "SOME_API_KEY is not set: a real model needs it");
    f.environ[1] = "SOME_API_KEY=x";
    f.counts = (struct counts) { 0 };
    run(&f);
    assert_int_equal(f.counts.started, 1);
    assert_int_equal(f.report.verdicts[0].status, VERDICT_PASSED);
    assert_int_equal(f.report.verdicts[1].status, VERDICT_SKIPPED);
    tear_down(&f);
}

static void test_expected(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "fail_1", "pass_2", "pass_3", NULL });
    expect_file(&f, "expected:\n"
                    "  - {adapter: one, scenario: fail_1, reason: known}\n"
                    "  - {adapter: 'o*', scenario: gone, reason: was once}\n");
    run(&f);
    assert_false(kit_failed(&f.report));
    assert_int_equal(f.report.count[VERDICT_EXPECTED], 1);
    assert_non_null(strstr(f.report.verdicts[0].why, "known"));
    assert_non_null(strstr(f.report.verdicts[0].why, "wanted 1, found 2"));
    assert_int_equal(f.report.stale_len, 1);
    assert_non_null(strstr(f.report.stale[0], "expected.yaml:3:5: o*, gone"));
    assert_false(is_left(&f, ""));
    tear_down(&f);
}

/* A pattern may stand for many; what is in no table at all is a mistake, or was forgotten. */
static void test_gone(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "fail_1", "fail_2", "pass_3", NULL });
    expect_file(&f, "expected:\n"
                    "  - {adapter: two, scenario: pass_3, reason: other adapter}\n"
                    "  - {adapter: one, scenario: 'fail_?', reason: known}\n"
                    "  - {adapter: '*', scenario: 'gone_*', reason: was once}\n"
                    "  - {adapter: one, scenario: elsewhere, reason: not asked for}\n");
    const struct scenario elsewhere = { .name = "elsewhere" };
    const struct scenario *known[4] = { &elsewhere };
    memcpy(&known[1], f.opts.scenarios.items, 3 * sizeof *known);
    f.opts.known = (struct scenario_list) { .items = known, .len = 4 };
    run(&f);
    assert_int_equal(f.report.count[VERDICT_EXPECTED], 2);
    assert_int_equal(f.report.count[VERDICT_FAILED], 0);
    assert_int_equal(f.report.gone_len, 1);
    assert_int_equal(f.report.stale_len, 3);
    assert_non_null(strstr(f.report.stale[0], "expected.yaml:4:5: *, gone_*: there is no such"));
    assert_non_null(strstr(f.report.stale[1], "expected.yaml:2:5: two, pass_3"));
    assert_non_null(strstr(f.report.stale[2], "expected.yaml:5:5: one, elsewhere"));
    assert_true(kit_failed(&f.report));
    tear_down(&f);
}

static void test_stale(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "pass_1", NULL });
    expect_file(&f, "expected:\n  - {adapter: '*', scenario: pass_1, reason: known}\n");
    run(&f);
    assert_true(kit_failed(&f.report)); /* the list must not rot */
    assert_int_equal(f.report.verdicts[0].status, VERDICT_STALE);
    assert_non_null(strstr(f.report.verdicts[0].why, "remove the entry"));
    assert_int_equal(f.report.stale_len, 0);
    tear_down(&f);
}

static void test_flaky(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "first_1", "fail_2", "pass_3", "first_4", NULL });
    expect_file(&f, "flaky:\n"
                    "  - {adapter: one, scenario: first_1, reason: shaky}\n"
                    "  - {adapter: one, scenario: fail_2, reason: shaky}\n"
                    "  - {adapter: one, scenario: pass_3, reason: shaky}\n");
    run(&f);
    assert_int_equal(f.counts.started, 6);
    assert_int_equal(f.counts.starts, 4);
    assert_int_equal(f.report.verdicts[0].status, VERDICT_FLAKY);
    assert_non_null(strstr(f.report.verdicts[0].why, "failed, then passed"));
    assert_non_null(strstr(f.report.verdicts[0].why, "wanted 1, found 2"));
    assert_int_equal(f.report.verdicts[1].status, VERDICT_FLAKY);
    assert_non_null(strstr(f.report.verdicts[1].why, "failed twice"));
    assert_int_equal(f.report.verdicts[2].status, VERDICT_PASSED);
    assert_int_equal(f.report.verdicts[3].status, VERDICT_FAILED); /* not listed: one try */
    assert_true(is_left(&f, "/one/first_1"));
    assert_false(is_left(&f, "/one/first_1.again"));
    assert_false(is_left(&f, "/one/fail_2.again"));
    tear_down(&f);
}

static void test_flaky_interrupted(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "fail_stuck", NULL });
    expect_file(&f, "flaky: [{adapter: one, scenario: fail_stuck, reason: shaky}]\n");
    f.counts.raise_at = 2;
    run(&f);
    assert_true(f.report.interrupted);
    assert_int_equal(f.report.verdicts[0].status, VERDICT_FLAKY);
    assert_non_null(
        strstr(f.report.verdicts[0].why, "failed, and was interrupted when tried again"));
    assert_non_null(strstr(f.report.verdicts[0].why, "wanted 1, found 2"));
    assert_true(str_ends(str_of(f.report.verdicts[0].dir), STR("/one/fail_stuck")));
    assert_true(is_left(&f, "/one/fail_stuck"));
    assert_false(is_left(&f, "/one/fail_stuck.again"));
    tear_down(&f);
}

static void test_patience(void **state)
{
    const struct kit_opts o = { .timeout = 10 * NSEC_PER_SEC };
    const struct scenario one = { .runs_len = 1 };
    const struct scenario three = { .runs_len = 3 };
    const struct scenario own = { .runs_len = 3, .timeout = 100 * NSEC_PER_SEC };
    nsec grace = kit_patience(&o, &one) - 10 * NSEC_PER_SEC;
    assert_true(grace > 0);
    assert_int_equal(kit_patience(&o, &three), 30 * NSEC_PER_SEC + grace);
    assert_int_equal(kit_patience(&o, &own), 300 * NSEC_PER_SEC + grace);
}

static int heard_before(void *owner)
{
    (void)owner;
    return SIGTERM;
}

/* By a signal that came while nobody but the caller heard it. */
static void test_interrupted_before(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "pass_1", "pass_2", NULL });
    f.opts.ears.heard = heard_before;
    run(&f);
    assert_true(f.report.interrupted);
    assert_int_equal(f.report.signo, SIGTERM);
    assert_int_equal(f.counts.started, 0);
    assert_int_equal(f.report.count[VERDICT_SKIPPED], 2);
    assert_string_equal(f.report.verdicts[1].why, "interrupted");
    assert_false(is_left(&f, ""));
    tear_down(&f);
}

static void test_interrupt(void **state)
{
    struct fixture f;
    set_up(&f, (const char *const[]) { "never_1", "never_2", "pass_3", "pass_4", NULL });
    f.counts.raise_at = 2;
    run(&f);
    assert_true(f.report.interrupted);
    assert_int_equal(f.report.signo, SIGINT);
    assert_true(kit_failed(&f.report));
    assert_int_equal(f.counts.started, 2);
    assert_int_equal(f.report.count[VERDICT_SKIPPED], 4);
    assert_string_equal(f.report.verdicts[0].why, "interrupted");
    assert_string_equal(f.report.verdicts[3].why, "interrupted");
    assert_false(is_left(&f, ""));
    tear_down(&f);
}

static void test_dir_in_use(void **state)
{
    struct fixture f;
    struct err e;
    set_up(&f, (const char *const[]) { "pass_1", NULL });
    f.opts.dir = arena_printf(f.arena, "%s/mine", f.dir);
    assert_int_equal(file_mkdirs(AT_FDCWD, f.opts.dir, 0755, NULL), 0);
    run(&f); /* empty: taken, and left where it is */
    assert_true(file_is_dir(AT_FDCWD, f.opts.dir));
    const char *file = arena_printf(f.arena, "%s/thesis.txt", f.opts.dir);
    assert_int_equal(file_write_atomic(AT_FDCWD, file, STR("x"), 0644, NULL), 0);
    assert_int_equal(kit_run(f.arena, &f.opts, &f.report, &e), -ERR_EXISTS);
    assert_true(file_exists(AT_FDCWD, file));
    tear_down(&f);
}

/* --- the file contract --- */

static void too_late(void *arg)
{
    (void)arg;
    fail_msg("nobody stopped the loop");
}

static int fake_contract(struct arena *a, const struct contract_opts *o,
                         struct contract_report *ret, struct err *e)
{
    if (strstr(o->adapter, "broken") != NULL) {
        return ERR(e, ERR_UNAVAILABLE, "it cannot be started");
    }
    if (strstr(o->adapter, "stopped") != NULL) {
        return ERR(e, ERR_CANCELLED, "SIGINT");
    }
    if (strstr(o->adapter, "signalled") != NULL) { /* before its first run waits for anything */
        struct timer *run;
        assert_int_equal(timer_new(o->watch.loop, too_late, NULL, &run, e), 0);
        timer_arm(run, clock_now() + 20 * NSEC_PER_SEC);
        assert_int_equal(raise(SIGTERM), 0);
        loop_run(o->watch.loop);
        assert_true(*o->watch.interrupted);
        (void)timer_free(run);
        return ERR(e, ERR_CANCELLED, "interrupted");
    }
    *ret = (struct contract_report) {
        .items = { { "manifest", "", CONTRACT_PASSED, "as it should" },
                   { "probe", "", CONTRACT_FAILED, "no manifest" },
                   { "missing_secret", "", CONTRACT_SKIPPED, "it needs none" } },
        .len = 3,
    };
    return 0;
}

/* Three checks around an ordinary scenario, on one adapter of the contract and an ordinary one. */
static void set_up_contract(struct fixture *f, const char *adapter)
{
    static const char *checks[] = { "manifest", NULL, "probe", "missing_secret" };
    set_up(f, (const char *const[]) { "contract_manifest", "pass", "contract_probe",
                                      "contract_missing_secret", NULL });
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        f->scenarios[i].contract = checks[i];
        f->scenarios[i].capabilities = checks[i] == NULL ? f->scenarios[i].capabilities : NULL;
    }
    struct profile *p = make_profile(f->arena, DECLARES);
    p->driver = "contract";
    f->adapters[1] = (struct kit_adapter) { .name = adapter, .profile = p, .available = true };
    f->opts.adapters_len = 2;
    f->opts.engine.contract = fake_contract;
}

static void test_contract(void **state)
{
    struct fixture f;
    set_up_contract(&f, "exec:/x/good");
    run(&f);
    const struct verdict *plain = f.report.verdicts, *v = plain + 4;
    assert_int_equal(plain[0].status, VERDICT_SKIPPED); /* not of the contract */
    assert_int_equal(plain[1].status, VERDICT_PASSED);
    assert_int_equal(v[0].status, VERDICT_PASSED);
    assert_string_equal(v[0].why, "");
    assert_int_equal(v[1].status, VERDICT_PASSED);
    assert_int_equal(v[2].status, VERDICT_FAILED);
    assert_string_equal(v[2].why, "no manifest");
    assert_non_null(v[2].dir); /* what all of them left, kept for the one that failed */
    assert_true(file_is_dir(AT_FDCWD, v[2].dir));
    assert_null(v[0].dir);
    assert_int_equal(v[3].status, VERDICT_SKIPPED);
    assert_string_equal(v[3].why, "it needs none");
    assert_int_equal(f.counts.started, 2);
    tear_down(&f);
}

static void test_contract_not_tried(void **state)
{
    struct fixture f;
    set_up_contract(&f, "exec:/x/broken");
    run(&f);
    assert_int_equal(f.report.count[VERDICT_FAILED], 3);
    assert_string_equal(f.report.verdicts[4].why, "it cannot be started");
    assert_int_equal(f.report.verdicts[5].status, VERDICT_PASSED);
    tear_down(&f);
}

static void test_contract_interrupted(void **state)
{
    struct fixture f;
    set_up_contract(&f, "exec:/x/stopped");
    run(&f);
    assert_true(f.report.interrupted);
    assert_int_equal(f.report.count[VERDICT_SKIPPED], 8);
    assert_int_equal(f.counts.started, 0);
    assert_false(is_left(&f, ""));
    tear_down(&f);
}

/* A signal that comes between two runs of the contract ends it, too. */
static void test_contract_signalled(void **state)
{
    struct fixture f;
    set_up_contract(&f, "exec:/x/signalled");
    run(&f);
    assert_true(f.report.interrupted);
    assert_int_equal(f.report.signo, SIGTERM);
    assert_int_equal(f.report.count[VERDICT_SKIPPED], 8);
    tear_down(&f);
}

/* --- is it here? --- */

static void probe(struct fixture *f, const char *script, struct kit_adapter *ret)
{
    const char *program = arena_printf(f->arena, "%s/agent", f->dir);
    struct profile *p = make_profile(f->arena, "{}");
    struct err e;
    json_push(f->arena, p->binary, json_cstr(f->arena, "nobody-has-this"));
    json_push(f->arena, p->binary, json_cstr(f->arena, "agent"));
    f->environ[1] = arena_printf(f->arena, "PATH=/nonexistent:%s", f->dir);
    if (script != NULL) {
        assert_int_equal(file_write_atomic(AT_FDCWD, program, str_of(script), 0755, NULL), 0);
    }
    *ret = (struct kit_adapter) { .name = "agent", .profile = p };
    assert_int_equal(kit_probe(f->arena, ret, f->environ, &e), 0);
}

static void test_probe(void **state)
{
    struct fixture f;
    struct kit_adapter a;
    set_up(&f, (const char *const[]) { NULL });
    probe(&f, NULL, &a);
    assert_false(a.available);
    assert_string_equal(a.why_not, "not in PATH: nobody-has-this, agent");
    probe(&f, "#!/bin/sh\n[ \"$1\" = --version ] && echo 'agent-cli v0.166.0 (x)'\n", &a);
    assert_true(a.available);
    assert_string_equal(a.version, "0.166.0");
    probe(&f, "#!/bin/sh\nprintf '2.1.197 (Claude Code)\\nmore'\n", &a);
    assert_string_equal(a.version, "2.1.197");
    probe(&f, "#!/bin/sh\nprintf 'de\\033[31mv\\n'\n", &a);
    assert_true(a.available);
    assert_string_equal(a.version, "de[31mv");
    /* A program that starts is tested, whether or not it states its version. */
    probe(&f, "#!/bin/sh\nexit 3\n", &a);
    assert_true(a.available);
    assert_string_equal(a.version, "");
    probe(&f, "#!/bin/sh\nprintf 'one\\n  no node here \\n\\n' >&2\nexit 127\n", &a);
    assert_false(a.available);
    assert_non_null(strstr(a.why_not, "cannot be started (status 127: no node here)"));
    tear_down(&f);
}

static void test_probe_without_program(void **state)
{
    struct fixture f;
    struct err e;
    set_up(&f, (const char *const[]) { NULL });
    struct profile *p = make_profile(f.arena, "{}");
    struct kit_adapter a = { .name = "command", .profile = p };
    assert_int_equal(kit_probe(f.arena, &a, f.environ, &e), 0);
    assert_false(a.available);
    assert_non_null(strstr(a.why_not, "takes its command from the task"));
    p->driver = "api";
    assert_int_equal(kit_probe(f.arena, &a, f.environ, &e), 0);
    assert_true(a.available);
    assert_string_equal(a.version, CINCH_VERSION);
    p->driver = "telepathy";
    assert_int_equal(kit_probe(f.arena, &a, f.environ, &e), -ERR_UNAVAILABLE);
    tear_down(&f);
}

/* A program of the file contract is not asked: --version would begin a run. */
static void test_probe_contract(void **state)
{
    struct fixture f;
    struct err e;
    set_up(&f, (const char *const[]) { NULL });
    struct profile *p = make_profile(f.arena, "{}");
    const char *program = arena_printf(f.arena, "%s/adapter", f.dir);
    struct kit_adapter a = { .name = "exec:adapter", .profile = p };
    p->driver = "contract";
    json_push(f.arena, p->binary, json_cstr(f.arena, program));
    assert_int_equal(kit_probe(f.arena, &a, f.environ, &e), 0);
    assert_false(a.available);
    assert_non_null(strstr(a.why_not, program));
    assert_int_equal(file_write_atomic(AT_FDCWD, program, STR("#!/bin/sh\nexit 9\n"), 0755, NULL),
                     0);
    assert_int_equal(kit_probe(f.arena, &a, f.environ, &e), 0);
    assert_true(a.available);
    assert_string_equal(a.version, "");
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_failure_is_kept),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_skips),
        cmocka_unit_test(test_version_that_is_told),
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_flaky),
        cmocka_unit_test(test_flaky_interrupted),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_interrupted_before),
        cmocka_unit_test(test_dir_in_use),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_without_program),
        cmocka_unit_test(test_probe_contract),
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_contract_not_tried),
        cmocka_unit_test(test_contract_interrupted),
        cmocka_unit_test(test_contract_signalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
