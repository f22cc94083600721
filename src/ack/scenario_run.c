/* SPDX-License-Identifier: MIT
 *
 * One scenario on one adapter: the runs one after the other (copies of a run side by side), then
 * the checks.
 */
#include "ack/scenario_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ack/check.h"
#include "ack/fixture.h"
#include "ack/hang_fixture.h"
#include "ack/test_server.h"
#include "adapters/driver.h"
#include "adapters/profile.h"
#include "base/file.h"
#include "base/id.h"
#include "io/loop.h"
#include "io/timer.h"
#include "proc/locate.h"
#include "proc/proc.h"

enum {
    ARGS_FIXED = 26,      /* of `cinch run`, beside lists */
    SAID_MAX = 256 << 10, /* of standard error */
    WATCH_MAX = 16 << 20, /* bytes of a log that is watched for an event */
};

#define WATCH_EVERY (10 * NSEC_PER_MS)
#define MARK_NAME   "CINCH_ACK_MARK"
/* A scripted model takes any key; long enough to be told from words of a text. */
#define SECRET_VALUE "value-that-opens-nothing"

/* One process of `cinch run`. */
struct attempt {
    struct scenario_run *trial;
    const struct scenario_run_spec *run;
    const char *name;
    const char *dir; /* of its record */
    struct proc *proc;
    pid_t pid;
    struct buf said;
    bool signalled, done;
    int status;
};

struct scenario_run {
    struct loop *loop;
    struct scenario_run_opts opts;
    struct arena *arena;
    struct fixture stage;
    struct test_server *site;
    char mark[ID_LEN];
    nsec began, timeout;
    size_t at;               /* the run that is under way */
    struct attempt *tries;   /* of all runs so far */
    size_t n_tries, n_first; /* those of this run begin at n_first */
    struct timer *watch;
    double spent; /* by runs that have ended, in US dollars; with a limit only */
    double share; /* of the limit, for each copy of the run that is under way */
    bool over;    /* it has its verdict, or nobody wants one any more */
    struct findings findings;
    struct verdict verdict;
};

static void begin_run(void *arg);

/* --- the command line --- */

static const char **add(const char **at, const char *word)
{
    *at = word;
    return at + 1;
}

static const char *number(struct arena *a, const char *what, size_t i, const char *end)
{
    return arena_printf(a, "%s-%zu%s", what, i, end);
}

static int write_json(const struct scenario_run *t, const char *name, const struct json *v,
                      const char **ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    *ret = arena_printf(t->arena, "%s/%s", t->stage.dir, name);
    int r = json_write(v, JSON_PRETTY, &text, e);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, *ret, buf_str(&text), 0644, e);
}

/* The task: what the scenario says, with the mark by which its processes are found again, and an
 * end of its own before the kit's. */
static struct json *merge_task(const struct scenario_run *t, const struct scenario_run_spec *run,
                               const struct json *command)
{
    struct arena *a = t->arena;
    const struct scenario *s = t->opts.scenario;
    struct json *given = json_object(a);
    struct json *set = json_object(a);
    struct json *env = json_object(a);
    struct json *limits = json_object(a);
    json_setc(a, set, MARK_NAME, json_cstr(a, t->mark));
    json_setc(a, env, "set", set);
    json_setc(a, given, "env", env);
    json_setc(a, limits, "timeout", json_integer(a, t->timeout / NSEC_PER_SEC * 4 / 5));
    json_setc(a, given, "limits", limits);
    if (command != NULL) {
        struct json *agent = json_object(a);
        json_setc(a, agent, "command", json_copy(a, command));
        json_setc(a, given, "agent", agent);
    }
    if (t->opts.secrets != NULL && t->opts.secrets[0] != NULL) {
        struct json *names = json_array(a);
        for (size_t i = 0; t->opts.secrets[i] != NULL; i++) {
            json_push(a, names, json_cstr(a, t->opts.secrets[i]));
        }
        json_setc(a, given, "secrets", names);
    }
    struct json *task = json_merge(a, given, fixture_fill(&t->stage, s->task));
    if (t->opts.live) {
        task = json_merge(a, task, fixture_fill(&t->stage, s->live));
    }
    return json_merge(a, task, fixture_fill(&t->stage, run->task));
}

/* Live runs share one limit of cost: a run gets what is left of it, or less if its task says so. */
static struct json *make_task(const struct scenario_run *t, const struct scenario_run_spec *run,
                              const struct json *command)
{
    struct arena *a = t->arena;
    struct json *task = merge_task(t, run, command);
    double own = json_real(json_pointer(task, STR("/limits/usd")), 0);
    if (t->opts.max_usd <= 0 || (own > 0 && own <= t->share)) {
        return task;
    }
    struct json *limits = json_object(a);
    struct json *over = json_object(a);
    json_setc(a, limits, "usd", json_number(a, t->share));
    json_setc(a, over, "limits", limits);
    return json_merge(a, task, over);
}

static const char *dir_of(const struct scenario_run *t, const char *name)
{
    for (size_t i = 0; i < t->n_tries; i++) {
        if (t->tries[i].name != NULL && strcmp(t->tries[i].name, name) == 0) {
            return t->tries[i].dir;
        }
    }
    return "no such run";
}

/* Who plays the model: a recording, a script, or in live mode the adapter's own provider. */
static int add_model(const struct scenario_run *t, const struct scenario_run_spec *run,
                     const char ***at, struct err *e)
{
    const struct json *script = run->script != NULL ? run->script : t->opts.scenario->script;
    if (run->replay != NULL) {
        *at = add(*at, "--cassette");
        *at = add(*at,
                  arena_printf(t->arena, "%s/evidence/traffic.cassette", dir_of(t, run->replay)));
    } else if (script != NULL && !t->opts.live) {
        const char *path;
        int r = write_json(t, number(t->arena, "model", t->at, ".json"),
                           fixture_fill(&t->stage, script), &path, e);
        if (r < 0) {
            return r;
        }
        *at = add(*at, "--script");
        *at = add(*at, path);
    }
    return 0;
}

static size_t count_of_list(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

/* An option for each of the words. */
static const char **add_each(const char **at, const char *option, const char *const *words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        at = add(add(at, option), words[i]);
    }
    return at;
}

static int make_argv(const struct scenario_run *t, const struct attempt *x, const char ***ret,
                     struct err *e)
{
    char cinch[PATH_MAX];
    const char *task;
    const struct scenario_run_opts *o = &t->opts;
    const struct scenario_run_spec *run = x->run;
    struct hang_fixture linger = { .command = o->command };
    int r = locate_cinch(cinch, e);
    if (r == 0 && run->lingers) {
        r = hang_fixture_make(t->arena, o, t->stage.dir, t->stage.home, &linger, e);
    }
    r = r < 0 ? r
              : write_json(t, number(t->arena, "task", t->at, ".json"),
                           make_task(t, run, linger.command), &task, e);
    if (r < 0) {
        return r;
    }
    size_t lists = count_of_list(o->adapter_dirs) + count_of_list(o->reads) + linger.reach.n;
    const char **at = *ret =
        arena_array(t->arena, ARGS_FIXED + 2 * lists + json_len(run->options), sizeof *at);
    at = add(add(at, arena_dup(t->arena, str_of(cinch))), "run");
    at = add_each(at, "--adapter-dir", o->adapter_dirs);
    at = linger.adapter_dir == NULL ? at : add(add(at, "--adapter-dir"), linger.adapter_dir);
    at = add_each(at, "--read", o->reads);
    for (size_t i = 0; i < linger.reach.n; i++) {
        at = add(add(at, "--read"), linger.reach.paths[i]);
    }
    at = add(add(at, "--adapter"), o->adapter_name);
    at = add(add(at, "--workspace"), t->stage.workspace);
    at = add(add(at, "--output"), x->dir);
    const char *model = o->model;
    if (model == NULL && !o->live && driver_is_kind(o->adapter, DRIVER_MODEL_LOOP)) {
        model = "scripted"; /* the adapter has no default; any name will do */
    }
    if (model != NULL) {
        at = add(add(at, "--model"), model);
    }
    if (run->resume != NULL) {
        at = add(add(at, "--resume"), dir_of(t, run->resume));
    }
    r = add_model(t, run, &at, e);
    for (size_t i = 0; i < json_len(run->options); i++) {
        at = add(at, json_cstring(fixture_fill(&t->stage, json_item(run->options, i)), ""));
    }
    *add(at, task) = NULL;
    return r;
}

/* --- the environment --- */

static bool is_kept(const char *variable, const char *const *prefixes)
{
    for (; *prefixes != NULL; prefixes++) {
        if (strncmp(variable, *prefixes, strlen(*prefixes)) == 0) {
            return true;
        }
    }
    return false;
}

/* A caller's own environment, but for his home: what lies there must not decide. Live runs need
 * credentials, which are in both. */
const char **scenario_run_environment(struct arena *a, const struct scenario_run_opts *o,
                                      const char *home)
{
    static const char *const kept[] = {
        "PATH=",  "LANG=",         "LC_ALL=",        "TMPDIR=",       "CINCH_INIT=",
        "CINCH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS=", NULL
    };
    static const char *const engine[] = { "HOME=", "XDG_", "CONTAINERS_", "DOCKER_", NULL };
    size_t n = 0;
    size_t len = 0;
    size_t secrets = 0;
    bool image = o->adapter->image != NULL;
    while (o->environ[n] != NULL) {
        n++;
    }
    while (o->secrets != NULL && o->secrets[secrets] != NULL) {
        secrets++;
    }
    const char **env = arena_array(a, n + secrets + 3, sizeof *env);
    for (size_t i = 0; i < n; i++) {
        if (o->live || is_kept(o->environ[i], kept) || (image && is_kept(o->environ[i], engine))) {
            env[len++] = o->environ[i];
        }
    }
    if (!o->live && !image) {
        env[len++] = arena_printf(a, "HOME=%s", home);
    }
    if (!o->live) {
        env[len++] = arena_printf(a, "CINCH_SITE_DIR=%s/no-site", home);
    }
    for (size_t i = 0; !o->live && i < secrets; i++) {
        env[len++] = arena_printf(a, "%s=ack-%zu-" SECRET_VALUE, o->secrets[i], i);
    }
    env[len] = NULL;
    return env;
}

/* --- what is left --- */

/* Processes of the trial that are still there: their environment has the mark. What descends from
 * `cinch run` has been killed and counted before; this finds what got away from that, too. */
static void find_left(const struct scenario_run *t, struct findings *f)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        char path[300];
        CLEANUP(buf) struct buf env = BUF_INIT(1 << 20);
        (void)snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            file_read(AT_FDCWD, path, 1 << 20, &env, NULL) == 0 &&
            str_find(buf_str(&env), str_of(t->mark)) < env.len) {
            finding(f, "process %s was left behind", entry->d_name);
        }
    }
    if (proc != NULL) {
        closedir(proc);
    }
}

/* --- the end --- */

static void conclude(struct scenario_run *t, enum verdict_status status)
{
    t->over = true;
    t->verdict.status = status;
    t->verdict.why = arena_dup(t->arena, buf_str(&t->findings.text));
    t->verdict.took = clock_now() - t->began;
    t->verdict.cost_usd = t->spent;
    t->opts.on_done(t->opts.arg, &t->verdict);
}

static void apply(const struct scenario_run *t, const struct json *always,
                  const struct json *script, const struct check_scene *scene)
{
    checks_apply(fixture_fill(&t->stage, always), scene);
    if (!t->opts.live) {
        checks_apply(fixture_fill(&t->stage, script), scene);
    }
}

/* What a run cost, by its own record; a run without one may have cost all that it was given. */
static double cost_of(const struct scenario_run *t, const struct attempt *x)
{
    CLEANUP(buf) struct buf text = BUF_INIT(1 << 20);
    struct json *metrics = NULL;
    const char *path = arena_printf(t->arena, "%s/metrics.json", x->dir);
    if (file_read(AT_FDCWD, path, 1 << 20, &text, NULL) < 0 ||
        json_parse(t->arena, buf_str(&text), NULL, &metrics, NULL) < 0) {
        return t->share;
    }
    struct str source = json_str(json_pointer(metrics, STR("/ext/cost_source")), STR_EMPTY);
    double cost = json_real(json_get(metrics, "cost_usd"), 0);
    return str_eqc(source, "simulated") || cost < 0 ? 0 : cost;
}

/* The run was refused a model call by the kit's limit, not by one of the scenario. */
static bool ran_out(const struct scenario_run *t, const struct attempt *x,
                    const struct evidence *ev)
{
    const struct json *limit =
        json_pointer(ev->result, STR("/evaluation_error/details/exceeded_dimension"));
    double own = json_real(json_pointer(merge_task(t, x->run, NULL), STR("/limits/usd")), 0);
    return t->opts.max_usd > 0 && own <= 0 && str_eqc(json_str(limit, STR_EMPTY), "usd");
}

static void conclude_unpaid(struct scenario_run *t)
{
    buf_reset(&t->findings.text);
    finding(&t->findings, "not enough of --max-usd was left ($%.4f)", t->opts.max_usd);
    conclude(t, VERDICT_SKIPPED);
}

/* Reads the records and holds them against what the scenario says. */
static void judge(struct scenario_run *t)
{
    struct evidence *ev = arena_array(t->arena, t->n_tries + 1, sizeof *ev);
    const char **names = arena_array(t->arena, t->n_tries + 1, sizeof *names);
    struct check_scene scene = {
        .visits = test_server_visits(t->site),
        .arena = t->arena,
        .adapter = t->opts.adapter->name,
        .runs = ev,
        .names = names,
        .runs_len = t->n_tries,
        .outside = t->stage.outside,
        .findings = &t->findings,
    };
    bool whole = true;
    for (size_t i = 0; i < t->n_tries; i++) {
        struct err e = { 0 };
        struct attempt *x = &t->tries[i];
        names[i] = x->name;
        if (evidence_load(t->arena, x->dir, &ev[i], &e) < 0) {
            finding(&t->findings, "no usable record of run %zu: %s; cinch said: %.*s", i, e.msg,
                    STR_ARG(buf_str(&x->said)));
            whole = false;
        }
        ev[i].exit_status = x->status;
        ev[i].said = buf_str(&x->said);
    }
    for (size_t i = 0; whole && i < t->n_tries; i++) {
        if (ran_out(t, &t->tries[i], &ev[i])) {
            conclude_unpaid(t);
            return;
        }
    }
    for (size_t i = 0; whole && i < t->n_tries; i++) {
        scene.run = &ev[i];
        apply(t, t->tries[i].run->expect, t->tries[i].run->expect_script, &scene);
    }
    if (whole && t->n_tries > 0) {
        t->verdict.version =
            json_cstring(json_pointer(ev[0].manifest, STR("/metadata/engine/version")), "");
    }
    /* The scenario's own checks: of its last run, of all copies of it. */
    for (size_t i = t->n_first; whole && i < t->n_tries; i++) {
        scene.run = &ev[i];
        apply(t, t->opts.scenario->expect, t->opts.scenario->expect_script, &scene);
    }
    fixture_inspect(&t->stage, &t->findings);
    find_left(t, &t->findings);
    conclude(t, t->findings.len > 0 ? VERDICT_FAILED : VERDICT_PASSED);
}

static void fail(struct scenario_run *t, const struct err *e)
{
    finding(&t->findings, "%s", e->msg);
    conclude(t, VERDICT_FAILED);
}

/* --- signals at a moment --- */

static size_t count_of(struct str text, struct str needle)
{
    size_t n = 0;
    for (size_t at = str_find(text, needle); at < text.len; at = str_find(text, needle)) {
        text = str_slice(text, at + needle.len, text.len);
        n++;
    }
    return n;
}

/* How often the event stands in a log, by its exact words. */
static size_t seen(const struct attempt *x, const char *log, const char *key, struct buf *text)
{
    struct arena *a = x->trial->arena;
    buf_reset(text);
    if (file_read(AT_FDCWD, arena_printf(a, "%s/%s", x->dir, log), WATCH_MAX, text, NULL) < 0) {
        return 0;
    }
    const char *needle = arena_printf(a, "\"%s\":\"%s\"", key, x->run->signal.event);
    return count_of(buf_str(text), str_of(needle));
}

/* The harness' pid, from process.spawned. */
static pid_t harness_of(const struct str events)
{
    static const char *const marks[] = { "\"event\":\"process.spawned\"", "\"pid\":" };
    struct str rest = events;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t at = str_find(rest, str_of(marks[i]));
        if (at == rest.len) {
            return 0;
        }
        rest = str_slice(rest, at + strlen(marks[i]), rest.len);
    }
    int64_t pid = 0;
    struct str digits = str_split(&rest, ',');
    return str_to_i64(digits, &pid) && pid > 1 ? (pid_t)pid : 0;
}

static void watch_attempt(struct attempt *x)
{
    const struct scenario_signal *sig = &x->run->signal;
    CLEANUP(buf) struct buf text = BUF_INIT(WATCH_MAX);
    size_t n = seen(x, "transcript.jsonl", "entry_type", &text);
    n += seen(x, "events.jsonl", "event", &text);
    pid_t pid = sig->to == SIGNAL_HARNESS ? harness_of(buf_str(&text)) : x->pid;
    if (n >= (size_t)sig->count && pid > 0) {
        x->signalled = true;
        (void)kill(pid, sig->signo);
    }
}

static void on_watch(void *arg)
{
    struct scenario_run *t = arg;
    bool again = false;
    for (size_t i = t->n_first; i < t->n_tries; i++) {
        struct attempt *x = &t->tries[i];
        if (x->run->signal.to != SIGNAL_NONE && !x->signalled && !x->done) {
            watch_attempt(x);
            again = again || !x->signalled;
        }
    }
    if (again) {
        timer_arm(t->watch, clock_now() + WATCH_EVERY);
    }
}

/* --- one process --- */

static void on_started(void *arg, pid_t pid)
{
    struct attempt *x = arg;
    x->pid = pid;
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct attempt *x = arg;
    size_t room = SAID_MAX - x->said.len;
    if (stream == PROC_STDERR) {
        buf_add(&x->said, str_slice(bytes, 0, room)); /* the rest is not kept */
    }
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct attempt *x = arg;
    struct scenario_run *t = x->trial;
    x->done = true;
    x->status = r->signaled ? 128 + r->value : r->value;
    x->proc = proc_free(x->proc);
    if (r->stopped) {
        finding(&t->findings, "'cinch run' did not end within %lld s and was stopped",
                (long long)(t->timeout / NSEC_PER_SEC));
    }
    if (r->error.code != ERR_OK) {
        finding(&t->findings, "'cinch run': %s", r->error.msg);
    }
    if (r->leaked > 0) {
        finding(&t->findings, "%u processes were left behind by 'cinch run', among them %s",
                (unsigned)r->leaked, r->n_names > 0 ? r->names[0] : "one without a name");
    }
    if (x->run->signal.to != SIGNAL_NONE && !x->signalled) {
        finding(&t->findings, "it ended before %s came %lld times", x->run->signal.event,
                (long long)x->run->signal.count);
    }
    for (size_t i = t->n_first; i < t->n_tries; i++) {
        if (!t->tries[i].done) {
            return;
        }
    }
    timer_cancel(t->watch);
    for (size_t i = t->n_first; t->opts.live && i < t->n_tries; i++) {
        t->spent += cost_of(t, &t->tries[i]);
    }
    t->at++;
    loop_post(t->loop, begin_run, t);
}

static int start_attempt(struct scenario_run *t, struct attempt *x, struct err *e)
{
    const char **argv;
    int r = make_argv(t, x, &argv, e);
    if (r < 0) {
        return r;
    }
    struct proc_opts o = {
        .argv = argv,
        .path = argv[0],
        .envp = scenario_run_environment(t->arena, &t->opts, t->stage.home),
        .cwd = t->stage.dir,
        .stdin_mode = PROC_STDIN_PIPE, /* open, and nobody writes */
        .deadline = clock_now() + t->timeout,
        .grace = 10 * NSEC_PER_SEC,
        .port = { .on_started = on_started, .on_output = on_output, .on_done = on_done, .arg = x },
    };
    return proc_start(t->loop, &o, &x->proc, e);
}

static void begin_run(void *arg)
{
    struct scenario_run *t = arg;
    const struct scenario *s = t->opts.scenario;
    struct err e = { 0 };
    if (t->over) {
        return;
    }
    if (t->at == s->runs_len) {
        judge(t);
        return;
    }
    const struct scenario_run_spec *run = &s->runs[t->at];
    t->n_first = t->n_tries;
    t->share = (t->opts.max_usd - t->spent) / (double)run->copies;
    if (t->opts.max_usd > 0 && t->share <= 0) {
        conclude_unpaid(t);
        return;
    }
    for (int64_t i = 0; i < run->copies; i++) {
        struct attempt *x = &t->tries[t->n_tries];
        *x = (struct attempt) {
            .trial = t,
            .run = run,
            .name = run->name,
            .dir = arena_printf(t->arena, "%s/%zu", t->stage.runs, t->n_tries),
            .said = BUF_INIT(SAID_MAX),
        };
        if (start_attempt(t, x, &e) < 0) {
            fail(t, &e);
            return;
        }
        t->n_tries++;
    }
    timer_arm(t->watch, clock_now() + WATCH_EVERY);
}

static size_t attempts(const struct scenario *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->runs_len; i++) {
        n += (size_t)s->runs[i].copies;
    }
    return n;
}

int scenario_run_start(struct loop *l, const struct scenario_run_opts *o, struct scenario_run **ret,
                       struct err *e)
{
    struct arena *a = arena_new();
    struct scenario_run *t = ARENA_NEW(a, struct scenario_run);
    *t = (struct scenario_run) {
        .loop = l,
        .opts = *o,
        .arena = a,
        .began = clock_now(),
        .timeout = o->timeout,
        .tries = arena_array(a, attempts(o->scenario), sizeof *t->tries),
        .findings = { .text = BUF_INIT(1 << 20) },
        .verdict = { .adapter = o->adapter_name,
                     .version = "",
                     .scenario = o->scenario,
                     .dir = o->dir,
                     .why = "" },
    };
    id_new(t->mark);
    int r = timer_new(l, on_watch, t, &t->watch, e);
    r = r < 0 ? r : test_server_open(l, &t->site, e);
    t->stage = (struct fixture) { .arena = a, .dir = o->dir, .adapter = o->adapter_name };
    t->stage.site = r < 0 ? "" : test_server_address(t->site);
    r = r < 0 ? r : fixture_set(&t->stage, o->scenario, e);
    if (r < 0) {
        scenario_run_free(t);
        return r;
    }
    loop_post(l, begin_run, t);
    *ret = t;
    return 0;
}

static void destroy(void *arg)
{
    struct scenario_run *t = arg;
    buf_done(&t->findings.text);
    arena_free(t->arena);
}

struct scenario_run *scenario_run_free(struct scenario_run *t)
{
    if (t == NULL) {
        return NULL;
    }
    t->over = true;
    for (size_t i = 0; i < t->n_tries; i++) {
        t->tries[i].proc = proc_free(t->tries[i].proc);
        buf_done(&t->tries[i].said);
    }
    t->watch = timer_free(t->watch);
    t->site = test_server_free(t->site);
    loop_retire(t->loop, destroy, t);
    return NULL;
}
