/* SPDX-License-Identifier: MIT
 *
 * The schedule of the kit: a job for each scenario on each adapter, so many at a time on one loop.
 * A job waits, runs, ends (its verdict is there, its trial is not yet freed) and is settled; only
 * settle() writes a verdict that counts.
 */
#include "ack/kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "ack/contract_scenarios.h"
#include "ack/expected.h"
#include "ack/kit_priv.h"
#include "base/buf.h"
#include "base/file.h"
#include "io/loop.h"
#include "io/sigwatch.h"
#include "io/timer.h"
#include "sandbox/toolchain_paths.h"

#define TICK  (NSEC_PER_SEC / 5)
#define GRACE (60 * NSEC_PER_SEC) /* beyond its own timeouts, before a trial is given up */

/* Of what a verdict says: it quotes foreign text, and goes into reports whole. */
enum { WHY_MAX = 8192 };

enum job_state { JOB_WAITS, JOB_RUNS, JOB_ENDS, JOB_SETTLED };

struct job {
    struct kit *kit;
    const struct kit_adapter *adapter;
    const struct scenario *scenario;
    const struct expected_entry *entry; /* NULL: it must pass */
    struct verdict *verdict;
    enum job_state state;
    struct scenario_run *trial;
    unsigned tries;
    const char *first_dir, *first_why; /* of the first of two tries */
    const char *version;               /* that the harness told while it worked; NULL: none */
    nsec started;
};

struct kit {
    const struct kit_opts *opts;
    struct arena *arena;
    struct loop *loop;
    struct timer *tick;
    struct expected expected;
    struct job *jobs;   /* as the report has them */
    struct job **order; /* as they are tried; those before `next` were */
    size_t len, next;
    unsigned running;
    double spent; /* US dollars */
    bool interrupted;
    int signo;
};

static void fill(struct kit *k);

/* --- directories --- */

/* A part of a path, whatever the adapter's name is ("exec:/x/y"). */
static const char *dir_name(struct kit *k, const struct kit_adapter *adapter)
{
    char *name = arena_dup(k->arena, str_of(adapter->name));
    bool changed = false;
    for (char *p = name; *p != '\0'; p++) {
        bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '-' || *p == '_' || (*p == '.' && p != name);
        if (!good) {
            *p = '_';
            changed = true;
        }
    }
    size_t index = (size_t)(adapter - k->opts->adapters);
    return changed || adapter->path != NULL ? arena_printf(k->arena, "%zu-%.60s", index, name)
                                            : name;
}

static const char *job_dir(struct job *j)
{
    return arena_printf(j->kit->arena, "%s/%s/%s%s", j->kit->opts->dir,
                        dir_name(j->kit, j->adapter), j->scenario->name,
                        j->tries > 1 ? ".again" : "");
}

/* Returns what is left: NULL when it is gone. */
static const char *remove_dir(const char *dir)
{
    return dir == NULL || file_remove_tree(AT_FDCWD, dir, NULL) == 0 ? NULL : dir;
}

static int prepare_dir(const struct kit_opts *o, bool *ret_made, struct err *e)
{
    bool empty = true;
    *ret_made = !file_exists(AT_FDCWD, o->dir);
    if (*ret_made) {
        return file_mkdirs(AT_FDCWD, o->dir, 0700, e);
    }
    if (!file_is_dir(AT_FDCWD, o->dir)) {
        return ERR(e, ERR_EXISTS, "'%s' is not a directory: name one that is empty, or a new one",
                   o->dir);
    }
    int r = file_dir_is_empty(AT_FDCWD, o->dir, &empty, e);
    if (r == 0 && !empty) {
        return ERR(e, ERR_EXISTS, "'%s' is not empty: name a directory that is, or a new one",
                   o->dir);
    }
    return r;
}

/* What is empty goes; rmdir() leaves what has something in it. */
static void tidy_dirs(struct kit *k, bool made)
{
    for (size_t i = 0; i < k->opts->adapters_len; i++) {
        const struct kit_adapter *adapter = &k->opts->adapters[i];
        (void)rmdir(arena_printf(k->arena, "%s/%s", k->opts->dir, dir_name(k, adapter)));
    }
    if (made) {
        (void)rmdir(k->opts->dir);
    }
}

/* --- verdicts --- */

static const char *with_reason(struct job *j, const char *before, const char *why)
{
    return arena_printf(j->kit->arena, "%s (%s: %s)%s%s", before, j->entry->at, j->entry->reason,
                        why[0] == '\0' ? "" : "\n", why);
}

static void judge_flaky(struct job *j)
{
    struct verdict *v = j->verdict;
    if (j->first_why == NULL && v->status != VERDICT_FAILED) {
        return; /* at the first try */
    }
    const char *how = j->first_why == NULL          ? "failed, not tried again"
                      : v->status == VERDICT_FAILED ? "failed twice"
                      : v->status == VERDICT_SKIPPED
                          ? "failed, and was interrupted when tried again"
                          : "failed, then passed";
    const char *why = j->first_why == NULL ? v->why : j->first_why;
    v->why = with_reason(j, how, why);
    v->status = VERDICT_FLAKY;
    if (j->first_dir != NULL && v->dir != j->first_dir) {
        v->dir = j->kit->opts->keep ? v->dir : remove_dir(v->dir);
        v->dir = j->first_dir;
    }
}

/* What the file of expected failures makes of it. */
static void judge(struct job *j)
{
    struct verdict *v = j->verdict;
    if (j->entry == NULL || (v->status == VERDICT_SKIPPED && j->first_why == NULL)) {
        return;
    }
    if (j->entry->flaky) {
        judge_flaky(j);
    } else if (v->status == VERDICT_FAILED) {
        v->status = VERDICT_EXPECTED;
        v->why = with_reason(j, "fails as expected", v->why);
    } else if (v->status == VERDICT_PASSED) {
        v->status = VERDICT_STALE;
        v->why = with_reason(j, "passes, although it is listed to fail: remove the entry", "");
    }
}

static void settle(struct job *j)
{
    struct verdict *v = j->verdict;
    const struct kit_watcher *w = &j->kit->opts->watcher;
    judge(j);
    if (v->status != VERDICT_FAILED && v->status != VERDICT_FLAKY && !j->kit->opts->keep) {
        v->dir = remove_dir(v->dir);
    }
    j->state = JOB_SETTLED;
    if (w->done != NULL) {
        w->done(w->owner, v);
    }
}

static void settle_as(struct job *j, enum verdict_status status, const char *why)
{
    j->verdict->status = status;
    j->verdict->why = why;
    settle(j);
}

/* --- trials --- */

static void end_trial(struct job *j)
{
    j->trial = j->kit->opts->engine.free(j->trial);
    j->kit->running--;
    if (j->kit->running == 0) {
        timer_cancel(j->kit->tick);
    }
}

static void start(struct job *j);

/* From the loop, outside of the trial's own callback, so that it can be freed. */
static void conclude(void *arg)
{
    struct job *j = arg;
    struct kit *k = j->kit;
    if (j->state != JOB_ENDS) {
        return;
    }
    end_trial(j);
    bool again = j->entry != NULL && j->entry->flaky && j->tries == 1 && !k->interrupted &&
                 j->verdict->status == VERDICT_FAILED &&
                 (k->opts->max_usd <= 0 || k->spent < k->opts->max_usd);
    if (again) {
        j->first_why = j->verdict->why;
        j->first_dir = j->verdict->dir;
        start(j);
    } else {
        settle(j);
    }
    fill(k);
}

static const char *copy_why(struct arena *a, const char *why)
{
    struct str all = str_of(why);
    struct str some = str_slice(all, 0, WHY_MAX);
    return some.len == all.len
               ? arena_dup(a, all)
               : arena_printf(a, "%.*s\n… and %zu bytes more", STR_ARG(some), all.len - some.len);
}

static void on_done(void *arg, const struct verdict *v)
{
    struct job *j = arg;
    if (j->state != JOB_RUNS) {
        return;
    }
    j->verdict->status = v->status;
    j->verdict->why = copy_why(j->kit->arena, v->why);
    j->verdict->took += clock_now() - j->started;
    j->verdict->cost_usd += v->cost_usd;
    j->kit->spent += v->cost_usd;
    j->version = v->version[0] == '\0' ? j->version : arena_dup(j->kit->arena, str_of(v->version));
    j->state = JOB_ENDS;
    loop_post(j->kit->loop, conclude, j);
}

/* Of one run of it. */
static nsec timeout_of(const struct kit_opts *o, const struct scenario *s)
{
    return s->timeout > 0 ? s->timeout : o->timeout;
}

nsec kit_patience(const struct kit_opts *o, const struct scenario *s)
{
    size_t runs = s->runs_len > 1 ? s->runs_len : 1; /* one after the other */
    return timeout_of(o, s) * (nsec)runs + GRACE;
}

/* The caller's, with the directories of the adapter before those of PATH. */
static const char *const *environ_of(struct kit *k, const struct kit_adapter *adapter)
{
    const char *const *env = k->opts->environ;
    size_t n = 0;
    if (adapter->path == NULL) {
        return env;
    }
    while (env[n] != NULL) {
        n++;
    }
    const char **copy = arena_array(k->arena, n + 2, sizeof *copy);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (!str_starts(str_of(env[i]), STR("PATH="))) {
            copy[len++] = env[i];
        }
    }
    copy[len] = arena_printf(k->arena, "PATH=%s", kit_path(k->arena, adapter, env));
    return copy;
}

/* A run has another home, so it does not know that a version manager (pyenv, asdf, volta) of the
 * caller's home belongs to the program. */
static const char *const *reads_of(struct kit *k, const struct kit_adapter *adapter)
{
    const struct kit_opts *o = k->opts;
    const char *home = kit_variable(o->environ, "HOME");
    struct toolchain_paths found = { 0 };
    size_t n = 0;
    if (adapter->program == NULL || home == NULL) {
        return o->reads;
    }
    toolchain_program(&found, k->arena, adapter->program, home);
    const char **list = arena_array(k->arena, SCENARIO_RUN_READS_MAX + 1, sizeof *list);
    for (; o->reads != NULL && o->reads[n] != NULL; n++) {
        list[n] = o->reads[n];
    }
    for (size_t i = 0; i < found.n && n < SCENARIO_RUN_READS_MAX; i++) {
        if (str_starts(str_of(found.paths[i]), str_of(home))) {
            list[n++] = found.paths[i];
        }
    }
    return list;
}

static void start(struct job *j)
{
    struct kit *k = j->kit;
    const struct kit_opts *o = k->opts;
    struct err e = { 0 };
    j->tries++;
    j->state = JOB_RUNS;
    j->started = clock_now();
    j->verdict->dir = job_dir(j);
    struct scenario_run_opts opts = {
        .scenario = j->scenario,
        .adapter = j->adapter->profile,
        .adapter_name = j->adapter->name,
        .adapter_dirs = o->adapter_dirs,
        .model = j->adapter->model,
        .command = j->adapter->command,
        .reads = reads_of(k, j->adapter),
        .secrets = o->secrets,
        .live = o->live,
        .max_usd = o->max_usd > 0 ? o->max_usd - k->spent : 0,
        .dir = j->verdict->dir,
        .timeout = timeout_of(o, j->scenario),
        .environ = environ_of(k, j->adapter),
        .on_done = on_done,
        .arg = j,
    };
    int r = file_mkdirs(AT_FDCWD, opts.dir, 0700, &e);
    if (r == 0 && j->tries == 1 && o->watcher.start != NULL) {
        o->watcher.start(o->watcher.owner, j->adapter->name, j->scenario);
    }
    if (r == 0) {
        r = o->engine.start(k->loop, &opts, &j->trial, &e);
    }
    if (r < 0) {
        settle_as(j, VERDICT_FAILED, arena_printf(k->arena, "it did not start: %s", e.msg));
        return;
    }
    k->running++;
    if (!timer_armed(k->tick)) {
        timer_arm(k->tick, clock_now() + TICK);
    }
}

static void fill(struct kit *k)
{
    /* With a limit of cost, each scenario may use all that those before it have left. */
    unsigned jobs = k->opts->jobs == 0 || k->opts->max_usd > 0 ? 1 : k->opts->jobs;
    while (!k->interrupted && k->next < k->len && k->running < jobs) {
        struct job *j = k->order[k->next++];
        if (j->state == JOB_SETTLED) {
            continue;
        }
        const char *skip = kit_skip(k->arena, k->opts, j->adapter, j->scenario);
        if (skip == NULL && k->opts->max_usd > 0 && k->spent >= k->opts->max_usd) {
            skip = "the amount of --max-usd is used up";
        }
        if (skip != NULL) {
            settle_as(j, VERDICT_SKIPPED, skip);
        } else {
            start(j);
        }
    }
}

/* A trial has a timeout of its own; this is for one that does not keep it. */
static void give_up(struct job *j)
{
    j->verdict->took += clock_now() - j->started;
    if (j->kit->opts->max_usd > 0) { /* what it cost is not known */
        j->kit->spent = j->kit->opts->max_usd;
    }
    end_trial(j);
    settle_as(j, VERDICT_FAILED, "the trial came to no end, and was given up");
}

static void on_tick(void *arg)
{
    struct kit *k = arg;
    const struct kit_watcher *w = &k->opts->watcher;
    nsec now = clock_now();
    for (size_t i = 0; i < k->next; i++) {
        struct job *j = k->order[i];
        if (j->state == JOB_RUNS && now - j->started > kit_patience(k->opts, j->scenario)) {
            give_up(j);
        }
    }
    if (w->tick != NULL) {
        w->tick(w->owner);
    }
    fill(k);
    if (k->running > 0) {
        timer_arm(k->tick, now + TICK);
    }
}

static void on_signal(void *arg, int signo)
{
    struct kit *k = arg;
    k->signo = k->signo == 0 ? signo : k->signo;
    if (k->interrupted) {
        loop_stop(k->loop); /* twice: somebody has no patience */
        return;
    }
    k->interrupted = true;
    if (k->running == 0) { /* a contract is tried, or nothing: there is no end to wait for */
        loop_stop(k->loop);
    }
    for (size_t i = 0; i < k->next; i++) {
        struct job *j = k->order[i];
        if (j->state == JOB_RUNS) {
            end_trial(j);
            j->state = JOB_WAITS; /* settled when its processes are gone */
        }
    }
}

/* --- the file contract --- */

static void judge_contract(struct job *j, const struct contract_report *report)
{
    static const enum verdict_status as[] = { [CONTRACT_PASSED] = VERDICT_PASSED,
                                              [CONTRACT_FAILED] = VERDICT_FAILED,
                                              [CONTRACT_SKIPPED] = VERDICT_SKIPPED };
    for (size_t i = 0; i < report->len; i++) {
        const struct contract_finding *f = &report->items[i];
        if (str_eqc(str_of(f->name), j->scenario->contract)) {
            bool passed = f->verdict == CONTRACT_PASSED;
            settle_as(j, as[f->verdict], passed ? "" : copy_why(j->kit->arena, f->detail));
        }
    }
}

/* All checks of one adapter look at the same runs, so they are made when the first of them is met;
 * what they left is kept if one of them failed. */
static void try_contract(struct kit *k, struct job *first, size_t len)
{
    const struct kit_opts *o = k->opts;
    const char *dir = arena_printf(k->arena, "%s/%s/contract", o->dir, dir_name(k, first->adapter));
    struct contract_opts how = { 0 };
    struct contract_report report = { 0 };
    struct err e = { 0 };
    nsec began = clock_now();
    if (o->watcher.start != NULL) {
        o->watcher.start(o->watcher.owner, first->adapter->name, first->scenario);
    }
    int r = contract_prepare(k->arena, o, first->adapter, dir, &how, &e);
    how.watch = (struct contract_watch) { .loop = k->loop, .interrupted = &k->interrupted };
    r = r < 0 ? r : o->engine.contract(k->arena, &how, &report, &e);
    bool kept = o->keep;
    first->verdict->took = clock_now() - began;
    k->interrupted = k->interrupted || r == -ERR_CANCELLED;
    for (size_t i = 0; !k->interrupted && i < len; i++) {
        struct job *j = &first[i];
        if (j->scenario->contract == NULL) {
            continue;
        }
        if (r < 0) {
            settle_as(j, VERDICT_FAILED, copy_why(k->arena, e.msg));
        } else {
            judge_contract(j, &report);
        }
        bool failed = j->verdict->status == VERDICT_FAILED || j->verdict->status == VERDICT_FLAKY;
        j->verdict->dir = failed || o->keep ? dir : NULL;
        kept = kept || failed;
    }
    if (!kept) {
        (void)remove_dir(dir);
    }
}

static void try_contracts(struct kit *k)
{
    size_t per_adapter = k->opts->scenarios.len;
    for (size_t i = 0; i < k->len && !k->interrupted; i++) {
        struct job *j = &k->jobs[i];
        if (j->scenario->contract != NULL && j->state == JOB_WAITS &&
            kit_skip(k->arena, k->opts, j->adapter, j->scenario) == NULL) {
            try_contract(k, j, per_adapter - i % per_adapter);
        }
    }
}

/* --- the whole --- */

static void make_jobs(struct kit *k, struct kit_report *ret)
{
    const struct kit_opts *o = k->opts;
    k->len = o->adapters_len * o->scenarios.len;
    k->jobs = arena_array(k->arena, k->len, sizeof *k->jobs);
    struct verdict *verdicts = arena_array(k->arena, k->len, sizeof *verdicts);
    for (size_t i = 0; i < k->len; i++) {
        const struct kit_adapter *adapter = &o->adapters[i / o->scenarios.len];
        const struct scenario *s = o->scenarios.items[i % o->scenarios.len];
        verdicts[i] = (struct verdict) {
            .adapter = adapter->name,
            .version = adapter->version == NULL ? "" : adapter->version,
            .scenario = s,
            .status = VERDICT_SKIPPED,
            .why = "",
        };
        k->jobs[i] = (struct job) {
            .kit = k,
            .adapter = adapter,
            .scenario = s,
            .entry = expected_find(&k->expected, adapter->name, s->name),
            .verdict = &verdicts[i],
        };
    }
    ret->verdicts = verdicts;
    ret->len = k->len;
}

/* The next number of a sequence that the seed alone decides (splitmix64). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void make_order(struct kit *k)
{
    uint64_t state = k->opts->seed;
    k->order = arena_array(k->arena, k->len, sizeof(struct job *));
    for (size_t i = 0; i < k->len; i++) {
        size_t at = k->opts->shuffle ? (size_t)(draw(&state) % (i + 1)) : i;
        k->order[i] = k->order[at];
        k->order[at] = &k->jobs[i];
    }
}

/* Of all scenarios, asked for or not. A caller who does not know them is not told. */
static bool is_gone(const struct kit *k, const struct expected_entry *x)
{
    const struct scenario_list *known = &k->opts->known;
    bool found = known->len == 0;
    for (size_t i = 0; i < known->len && !found; i++) {
        found = expected_names(x, known->items[i]->name);
    }
    return !found;
}

static bool is_used(const struct kit *k, const struct expected_entry *x)
{
    bool used = false;
    for (size_t i = 0; i < k->len && !used; i++) {
        used = expected_matches(x, k->jobs[i].adapter->name, k->jobs[i].scenario->name);
    }
    return used;
}

static void list_stale(struct kit *k, struct kit_report *ret)
{
    const char **stale = arena_array(k->arena, k->expected.len, sizeof *stale);
    for (size_t i = 0; i < k->expected.len; i++) {
        const struct expected_entry *x = &k->expected.items[i];
        if (is_gone(k, x)) {
            stale[ret->gone_len++] = arena_printf(k->arena, "%s: %s, %s: there is no such scenario",
                                                  x->at, x->adapter, x->scenario);
        }
    }
    ret->stale_len = ret->gone_len;
    for (size_t i = 0; i < k->expected.len; i++) {
        const struct expected_entry *x = &k->expected.items[i];
        if (!is_gone(k, x) && !is_used(k, x)) {
            stale[ret->stale_len++] =
                arena_printf(k->arena, "%s: %s, %s", x->at, x->adapter, x->scenario);
        }
    }
    ret->stale = stale;
}

/* One that came before we heard them ourselves: nothing is begun. */
static void take_signal(struct kit *k)
{
    const struct kit_ears *ears = &k->opts->ears;
    int signo = ears->heard == NULL ? 0 : ears->heard(ears->owner);
    if (signo != 0 && !k->interrupted) {
        on_signal(k, signo);
    }
}

/* Posted, so that the loop looks for signals at least once. */
static void begin(void *arg)
{
    fill(arg);
}

static int run_jobs(struct kit *k, struct err *e)
{
    static const int signals[] = { SIGINT, SIGTERM };
    struct sigwatch *watches[ARRAY_LEN(signals)] = { NULL };
    CLEANUP(loop) struct loop *loop = NULL;
    int r = loop_new(&loop, e);
    k->loop = loop;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(signals); i++) {
        r = sigwatch_new(loop, signals[i], on_signal, k, &watches[i], e);
    }
    if (r == 0) {
        r = timer_new(loop, on_tick, k, &k->tick, e);
    }
    if (r == 0) {
        take_signal(k);
        try_contracts(k);
        loop_post(loop, begin, k);
        loop_run(loop);
    }
    for (size_t i = 0; i < k->len; i++) {
        struct job *j = &k->jobs[i];
        if (r == 0 && j->state == JOB_RUNS) {
            give_up(j);
        } else if (r == 0 && j->state == JOB_ENDS) {
            conclude(j);
        } else if (r == 0 && j->state == JOB_WAITS) {
            settle_as(j, VERDICT_SKIPPED, "interrupted");
        }
    }
    k->tick = timer_free(k->tick);
    for (size_t i = 0; i < ARRAY_LEN(watches); i++) {
        watches[i] = sigwatch_free(watches[i]);
    }
    return r;
}

/* Who did not answer to --version may have told its version at work; who was named by --command is
 * known by that name only. */
static void take_version(struct kit *k, struct kit_adapter *adapter)
{
    const char *told = adapter->version == NULL ? "" : adapter->version;
    struct str program = str_of(json_cstring(json_item(adapter->command, 0), ""));
    for (size_t i = 0; told[0] == '\0' && i < k->len; i++) {
        const struct job *j = &k->jobs[i];
        told = j->adapter == adapter && j->version != NULL ? j->version : told;
    }
    if (adapter->command != NULL) {
        told = arena_printf(k->arena, "%.*s%s%s", STR_ARG(path_base(program)),
                            told[0] == '\0' ? "" : " ", told);
    }
    adapter->version = told;
    for (size_t i = 0; i < k->len; i++) {
        if (k->jobs[i].adapter == adapter) {
            k->jobs[i].verdict->version = told;
        }
    }
}

int kit_run(struct arena *a, const struct kit_opts *o, struct kit_report *ret, struct err *e)
{
    struct kit k = { .opts = o, .arena = a };
    nsec began = clock_now();
    bool made = false;
    *ret = (struct kit_report) { .adapters = o->adapters,
                                 .adapters_len = o->adapters_len,
                                 .live = o->live };
    (void)clock_iso(clock_wall(), ret->started_at);
    int r = o->expected == NULL ? 0 : expected_load(a, o->expected, &k.expected, e);
    if (r == 0) {
        r = prepare_dir(o, &made, e);
    }
    if (r < 0) {
        return r;
    }
    make_jobs(&k, ret);
    make_order(&k);
    list_stale(&k, ret);
    if (o->watcher.begin != NULL) {
        o->watcher.begin(o->watcher.owner, k.len);
    }
    r = run_jobs(&k, e);
    tidy_dirs(&k, made);
    for (size_t i = 0; i < o->adapters_len; i++) {
        take_version(&k, &o->adapters[i]);
    }
    for (size_t i = 0; i < ret->len; i++) {
        ret->count[ret->verdicts[i].status]++;
    }
    ret->cost_usd = k.spent;
    ret->max_usd = o->max_usd;
    ret->interrupted = k.interrupted;
    ret->signo = !k.interrupted ? 0 : k.signo != 0 ? k.signo : SIGINT;
    ret->took = clock_now() - began;
    return r;
}

bool kit_failed(const struct kit_report *r)
{
    size_t failed = 0;
    for (enum verdict_status s = 0; s < VERDICT_COUNT; s++) {
        failed += verdict_is_failure(s) ? r->count[s] : 0;
    }
    return failed > 0 || r->gone_len > 0 || r->interrupted;
}
