/* SPDX-License-Identifier: MIT
 *
 * A few runs of an adapter, and what their records say about it.
 */
#include "ack/contract_check.h"

#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/id.h"
#include "io/loop.h"
#include "io/sigwatch.h"
#include "proc/locate.h"
#include "proc/proc.h"

#define DEFAULT_TIMEOUT (60 * NSEC_PER_SEC)
/* Without its secret an adapter has nothing to wait for. */
#define FAST_TIMEOUT (20 * NSEC_PER_SEC)
/* Beyond the deadline of the run itself, for its record. */
#define PATIENCE (120 * NSEC_PER_SEC)
/* Of a file of the record that is looked at. */
#define FILE_MAX ((size_t)8 << 20)
/* Given to an adapter that declares none: it has no business with it. */
#define UNASKED_SECRET "CINCH_CONTRACT_SECRET"

#define OUTPUTS "evidence/adapter"

enum { WORDS_MAX = 128 };

/* The runs, by what is particular about each. */
enum scenario_run_id {
    SCENARIO_RUN_WORK,
    SCENARIO_RUN_AGAIN,
    SCENARIO_RUN_PROBE,
    SCENARIO_RUN_MISSING,
    SCENARIO_RUN_MAX
};

struct scenario_run {
    const char *record;         /* its directory; NULL: there was no such run */
    char marker[ID_LEN];        /* in its goal */
    const struct json *run;     /* manifest.json of the run */
    const struct json *metrics; /* of the run */
    const struct json *said;    /* manifest.json of the adapter; NULL: none, or not an object */
};

struct checking {
    struct arena *a;
    const struct contract_opts *o;
    struct contract_report *report;
    struct scenario_run trials[SCENARIO_RUN_MAX];
    char cinch[PATH_MAX];
    char value[ID_LEN]; /* of every secret */
};

/* --- one run --- */

static const struct json *load(struct checking *k, const char *dir, const char *name)
{
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    struct json *v = NULL;
    const char *path = arena_printf(k->a, "%s/%s", dir, name);
    bool good = file_read(AT_FDCWD, path, FILE_MAX, &text, NULL) == 0 &&
                json_parse(k->a, buf_str(&text), NULL, &v, NULL) == 0;
    return good && json_is(v, JSON_OBJECT) ? v : NULL;
}

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

static const char *const *secrets_of(const struct contract_opts *o)
{
    static const char *const unasked[] = { UNASKED_SECRET, NULL };
    return count(o->secrets) > 0 ? o->secrets : unasked;
}

static bool is_secret(const struct contract_opts *o, const char *variable)
{
    const char *const *names = secrets_of(o);
    for (size_t i = 0; names[i] != NULL; i++) {
        size_t len = strlen(names[i]);
        if (strncmp(variable, names[i], len) == 0 && variable[len] == '=') {
            return true;
        }
    }
    return false;
}

/* The caller's, with secrets that are ours, or without any. */
static const char *const *environment(struct checking *k, bool secrets)
{
    const char *const *from = k->o->environ;
    const char *const *names = secrets_of(k->o);
    const char **list = arena_array(k->a, count(from) + count(names) + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; from != NULL && from[i] != NULL; i++) {
        if (!is_secret(k->o, from[i])) {
            list[n++] = from[i];
        }
    }
    for (size_t i = 0; secrets && names[i] != NULL; i++) {
        list[n++] = arena_printf(k->a, "%s=%s", names[i], k->value);
    }
    return list;
}

struct child {
    struct loop *loop;
    struct proc *proc;
    bool done;
};

static void on_done(void *arg, const struct proc_result *r)
{
    struct child *c = arg;
    (void)r;
    c->done = true;
    loop_stop(c->loop);
}

/* A child that is still ending would write into a directory that the caller removes. A further
 * signal stops the loop as well; it does not end the wait. */
static void kill_child(struct child *c)
{
    if (!c->done) {
        proc_kill(c->proc);
    }
    while (!c->done) { /* proc gives up by itself where nothing can be killed */
        loop_run(c->loop);
    }
}

/* Runs `cinch run` to its end, or until a signal handler stops the loop. */
static int run_on(const struct contract_watch *w, const char *const *argv, const char *const *envp,
                  nsec patience, struct err *e)
{
    struct child c = { .loop = w->loop };
    struct proc_opts o = { .path = argv[0],
                           .argv = argv,
                           .envp = envp,
                           .deadline = clock_now() + patience,
                           .port = { .on_done = on_done, .arg = &c } };
    int r = proc_start(w->loop, &o, &c.proc, e);
    if (r == 0) {
        loop_run(w->loop);
        const struct proc_result *done = proc_result(c.proc);
        if (*w->interrupted) {
            kill_child(&c);
            r = ERR(e, ERR_CANCELLED, "interrupted");
        } else if (done->error.code != ERR_OK && !done->started) {
            *e = done->error;
            r = -(int)e->code;
        }
    }
    (void)proc_free(c.proc);
    return r;
}

struct waiting {
    struct loop *loop;
    bool interrupted;
};

static void on_signal(void *arg, int signo)
{
    struct waiting *w = arg;
    (void)signo;
    w->interrupted = true;
    loop_stop(w->loop);
}

/* The same, where nobody else watches for signals. */
static int run_alone(const char *const *argv, const char *const *envp, nsec patience, struct err *e)
{
    static const int signals[] = { SIGINT, SIGTERM };
    struct sigwatch *watches[ARRAY_LEN(signals)] = { NULL };
    CLEANUP(loop) struct loop *loop = NULL;
    int r = loop_new(&loop, e);
    struct waiting w = { .loop = loop };
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(signals); i++) {
        r = sigwatch_new(loop, signals[i], on_signal, &w, &watches[i], e);
    }
    const struct contract_watch own = { loop, &w.interrupted };
    r = r < 0 ? r : run_on(&own, argv, envp, patience, e);
    for (size_t i = 0; i < ARRAY_LEN(watches); i++) {
        (void)sigwatch_free(watches[i]);
    }
    return r;
}

/* The task of a run: a goal, a workspace, and all outputs that an adapter can be asked for. */
static int write_task(struct checking *k, const struct scenario_run *t, bool secrets,
                      const char *path, struct err *e)
{
    static const char *const wanted[] = { "diff.patch", "summary.md" };
    struct arena *a = k->a;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *list = json_array(a);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        struct json *item = json_object(a);
        json_setc(a, item, "path", json_cstr(a, wanted[i]));
        json_setc(a, item, "required", json_boolean(a, true));
        json_push(a, list, item);
    }
    struct json *names = json_array(a);
    const char *const *declared = secrets_of(k->o);
    for (size_t i = 0; secrets && declared[i] != NULL; i++) {
        json_push(a, names, json_cstr(a, declared[i]));
    }
    struct json *task = json_object(a);
    struct json *prompt = json_object(a);
    struct json *output = json_object(a);
    struct json *hidden = json_object(a);
    const char *goal = arena_printf(a, "Create the file contract.txt with the text %s.", t->marker);
    json_setc(a, prompt, "text", json_cstr(a, goal));
    json_setc(a, output, "artifacts", list);
    json_setc(a, hidden, "names", names);
    json_setc(a, task, "prompt", prompt);
    json_setc(a, task, "output", output);
    json_setc(a, task, "secrets", hidden);
    int r = json_write(task, JSON_PRETTY, &text, e);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, path, buf_str(&text), 0644, e);
}

static const char *const *command(struct checking *k, const struct scenario_run *t,
                                  const char *task, nsec timeout, bool probe)
{
    const char **list = arena_array(k->a, WORDS_MAX + 1, sizeof *list);
    size_t n = 0;
    const char *fixed[] = {
        k->cinch,
        "run",
        "--quiet",
        "--adapter",
        k->o->adapter,
        "--workspace",
        arena_printf(k->a, "%s/workspace", k->o->dir),
        "--output",
        t->record,
        "--timeout",
        arena_printf(k->a, "%lld", (long long)(timeout / NSEC_PER_SEC)),
    };
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        list[n++] = fixed[i];
    }
    for (size_t i = 0; i < count(k->o->args) && n < WORDS_MAX - 3; i++) {
        list[n++] = k->o->args[i];
    }
    list[n++] = task;
    if (probe) {
        list[n++] = "--";
        list[n++] = "--probe";
    }
    return list;
}

static int try(struct checking *k, enum scenario_run_id id, const char *name, struct err *e)
{
    struct scenario_run *t = &k->trials[id];
    nsec whole = k->o->timeout > 0 ? k->o->timeout : DEFAULT_TIMEOUT;
    nsec timeout = id == SCENARIO_RUN_MISSING && whole > FAST_TIMEOUT ? FAST_TIMEOUT : whole;
    bool secrets = id != SCENARIO_RUN_MISSING;
    const char *task = arena_printf(k->a, "%s/%s.json", k->o->dir, name);
    (void)id_new(t->marker);
    t->record = arena_printf(k->a, "%s/%s", k->o->dir, name);
    const char *const *argv = command(k, t, task, timeout, id == SCENARIO_RUN_PROBE);
    const char *const *envp = environment(k, secrets);
    int r = write_task(k, t, secrets, task, e);
    if (r == 0 && k->o->watch.loop != NULL) {
        r = run_on(&k->o->watch, argv, envp, timeout + PATIENCE, e);
    } else if (r == 0) {
        r = run_alone(argv, envp, timeout + PATIENCE, e);
    }
    if (r < 0) {
        return r;
    }
    t->run = load(k, t->record, "manifest.json");
    t->metrics = load(k, t->record, "metrics.json");
    t->said = load(k, t->record, OUTPUTS "/manifest.json");
    struct str status = json_str(json_get(t->run, "status"), STR_EMPTY);
    if (t->run == NULL || str_eqc(status, "failed")) {
        return ERR(e, ERR_UNAVAILABLE, "adapter '%s' cannot be tried: %s", k->o->adapter,
                   json_cstring(json_get(t->run, "error"), "cinch run left no record"));
    }
    return 0;
}

/* --- what is found --- */

static void find(struct checking *k, enum contract_check_id id, enum contract_verdict v,
                 const char *detail)
{
    k->report->items[id].verdict = v;
    k->report->items[id].detail = detail;
}

static void judge(struct checking *k, enum contract_check_id id, const char *fault,
                  const char *otherwise)
{
    find(k, id, fault == NULL ? CONTRACT_PASSED : CONTRACT_FAILED,
         fault == NULL ? otherwise : fault);
}

static bool has_output(struct checking *k, const struct scenario_run *t, const char *name)
{
    return file_exists(AT_FDCWD, arena_printf(k->a, "%s/" OUTPUTS "/%s", t->record, name));
}

static bool is_one_of(const struct json *v, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (str_eqc(json_str(v, STR_EMPTY), *words)) {
            return true;
        }
    }
    return false;
}

/* "12.5s", or a number. */
static bool is_duration(const struct json *v)
{
    struct str s = json_str(v, STR_EMPTY);
    size_t digits = 0;
    for (size_t i = 0; i + 1 < s.len; i++) {
        if (s.ptr[i] != '.' && (s.ptr[i] < '0' || s.ptr[i] > '9')) {
            return false;
        }
        digits++;
    }
    return json_is(v, JSON_INT) || json_is(v, JSON_REAL) || (digits > 0 && str_ends(s, STR("s")));
}

static const char *manifest_fault(struct checking *k, const struct scenario_run *t)
{
    static const char *const states[] = { "completed", "failed", NULL };
    static const char *const outcomes[] = { "success", "failure", "needs_human", NULL };
    const struct json *m = t->said;
    const struct json *status = json_get(m, "status");
    const struct json *outcome = json_get(m, "outcome");
    if (m == NULL) {
        return has_output(k, t, "manifest.json") ? "manifest.json is not a JSON object"
                                                 : "there is no manifest.json";
    }
    if (!is_one_of(status, states)) {
        return "its status is neither completed nor failed";
    }
    if (!is_one_of(outcome, outcomes)) {
        return "its outcome is none of success, failure, needs_human";
    }
    if (!is_duration(json_get(m, "duration"))) {
        return "its duration is not of the form 12.5s";
    }
    return json_is(json_get(m, "artifacts"), JSON_ARRAY) ? NULL : "it has no list of artifacts";
}

static const char *outputs_fault(struct checking *k, const struct scenario_run *t)
{
    static const char *const required[] = { "manifest.json", "diff.patch", "summary.md" };
    for (size_t i = 0; i < ARRAY_LEN(required); i++) {
        if (!has_output(k, t, required[i])) {
            return arena_printf(k->a, "the spec requires %s, which is not there", required[i]);
        }
    }
    return NULL;
}

static const char *listed_fault(struct checking *k, const struct scenario_run *t)
{
    const struct json *list = json_get(t->said, "artifacts");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        const struct json *path = json_is(item, JSON_OBJECT) ? json_get(item, "path") : item;
        const char *name = json_cstring(path, "");
        if (name[0] == '\0' || strstr(name, "..") != NULL || !has_output(k, t, name)) {
            return arena_printf(k->a, "the manifest lists '%.100s', which is not there", name);
        }
    }
    return NULL;
}

static bool timed_out(const struct scenario_run *t)
{
    return str_eqc(json_str(json_get(t->run, "reason"), STR_EMPTY), "timeout");
}

/* -1: by no exit, or that is not known. */
static int exit_code(const struct scenario_run *t)
{
    const struct json *exit = json_get(json_get(t->metrics, "ext"), "engine_exit");
    return (int)json_int(json_get(exit, "code"), -1);
}

/* "it exited with 42"; NULL: the record does not say how it ended. */
static const char *ending(struct checking *k, const struct scenario_run *t)
{
    const struct json *exit = json_get(json_get(t->metrics, "ext"), "engine_exit");
    int signo = (int)json_int(json_get(exit, "signal"), 0);
    if (timed_out(t)) {
        return "it did not end in its time, and was killed";
    }
    if (signo > 0) {
        const char *name = sigabbrev_np(signo);
        return arena_printf(k->a, "it was killed by signal %d (%s)", signo,
                            name == NULL ? "of no name" : name);
    }
    return exit_code(t) < 0 ? NULL : arena_printf(k->a, "it exited with %d", exit_code(t));
}

/* What the exit status has to be; -1: the manifest, if there is one, has no outcome. */
static int wanted_exit(const struct scenario_run *t)
{
    static const char *const outcomes[] = { "success", "failure", "needs_human" };
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        if (str_eqc(json_str(json_get(t->said, "outcome"), STR_EMPTY), outcomes[i])) {
            return (int)i;
        }
    }
    return -1;
}

static const char *exit_fault(struct checking *k, enum scenario_run_id id)
{
    static const char *const when[SCENARIO_RUN_MAX] = { [SCENARIO_RUN_WORK] = "",
                                                        [SCENARIO_RUN_AGAIN] = "the second time, ",
                                                        [SCENARIO_RUN_PROBE] = "asked by --probe, ",
                                                        [SCENARIO_RUN_MISSING] =
                                                            "without its secret, " };
    const struct scenario_run *t = &k->trials[id];
    const char *how = t->record == NULL ? NULL : ending(k, t);
    int code = exit_code(t);
    int wanted = wanted_exit(t);
    if (how == NULL) {
        return NULL;
    }
    if (timed_out(t) || code < 0 || code > 2) {
        return arena_printf(k->a, "%s%s: it has to be 0, 1 or 2", when[id], how);
    }
    /* A review may also be asked for by the manifest alone. */
    bool good = wanted < 0 || code == wanted || (wanted == 2 && code == 1);
    return good ? NULL
                : arena_printf(k->a, "%s%s, and its outcome is %s", when[id], how,
                               json_cstring(json_get(t->said, "outcome"), ""));
}

/* Where nothing is wrong, something may be unknown: what is wrong with the manifest is told by its
 * own check, but the outcome that an exit status has to fit is missed here, too. */
static void judge_exit(struct checking *k)
{
    const struct scenario_run *work = &k->trials[SCENARIO_RUN_WORK];
    const char *fault = NULL;
    for (enum scenario_run_id id = 0; fault == NULL && id < SCENARIO_RUN_MAX; id++) {
        fault = exit_fault(k, id);
    }
    const char *how = ending(k, work);
    if (fault == NULL && how == NULL) {
        find(k, CONTRACT_EXIT, CONTRACT_SKIPPED, "the record does not say how it ended");
    } else if (fault == NULL && wanted_exit(work) < 0) {
        find(k, CONTRACT_EXIT, CONTRACT_SKIPPED,
             arena_printf(k->a, "%s, and no manifest tells an outcome to compare that with", how));
    } else {
        judge(k, CONTRACT_EXIT, fault, "as the outcome is");
    }
}

static const char *input_fault(const struct scenario_run *t)
{
    const struct json *warnings = json_get(t->run, "warnings");
    for (size_t i = 0; i < json_len(warnings); i++) {
        if (str_eqc(json_str(json_item(warnings, i), STR_EMPTY),
                    "the adapter changed its inputs")) {
            return "it changed spec.yaml";
        }
    }
    return NULL;
}

/* The first file below the directory, or the file itself, that has the word in it; NULL: none. */
static const char *file_with(struct checking *k, const char *dir, const char *word)
{
    char *roots[] = { arena_dup(k->a, str_of(dir)), NULL };
    const char *found = NULL;
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *at = walk == NULL ? NULL : fts_read(walk); at != NULL && found == NULL;
         at = fts_read(walk)) {
        CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
        if (at->fts_info == FTS_F &&
            file_read(AT_FDCWD, at->fts_accpath, FILE_MAX, &text, NULL) == 0 &&
            str_find(buf_str(&text), str_of(word)) < text.len) {
            found = arena_dup(k->a, path_base(str_of(at->fts_path)));
        }
    }
    if (walk != NULL) {
        (void)fts_close(walk);
    }
    return found;
}

static const char *fresh_fault(struct checking *k)
{
    const struct scenario_run *again = &k->trials[SCENARIO_RUN_AGAIN];
    const char *dir = arena_printf(k->a, "%s/" OUTPUTS, again->record);
    const char *file = file_with(k, dir, k->trials[SCENARIO_RUN_WORK].marker);
    return file == NULL ? NULL : arena_printf(k->a, "'%s' tells of the run before", file);
}

static const char *patch_fault(struct checking *k, const struct scenario_run *t)
{
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    const char *path = arena_printf(k->a, "%s/" OUTPUTS "/diff.patch", t->record);
    bool changed = !json_bool(json_get(t->run, "no_changes"), true);
    bool there = file_read(AT_FDCWD, path, FILE_MAX, &text, NULL) == 0;
    bool tells = str_trim(buf_str(&text)).len > 0;
    if (there && changed != tells) {
        return changed ? "files of the workspace were changed, and its diff.patch is empty"
                       : "its diff.patch tells of changes, and the workspace has none";
    }
    return NULL;
}

/* cinch has taken the values out: where they were, its mark is. */
static const char *secret_fault(struct checking *k)
{
    static const char *const places[] = { OUTPUTS, "stdout.log", "stderr.log", "diff.patch" };
    const struct scenario_run *t = &k->trials[SCENARIO_RUN_WORK];
    const char *const *names = secrets_of(k->o);
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *mark = arena_printf(k->a, "[REDACTED:%s]", names[i]);
        for (size_t p = 0; p < ARRAY_LEN(places); p++) {
            const char *at = arena_printf(k->a, "%s/%s", t->record, places[p]);
            const char *file = file_with(k, at, mark);
            if (file != NULL) {
                return arena_printf(k->a, "the value of %s was in '%s'; cinch took it out",
                                    names[i], file);
            }
        }
    }
    const char *leak = file_with(k, t->record, k->value);
    return leak == NULL ? NULL
                        : arena_printf(k->a, "'%s' of the record has the value of a secret", leak);
}

static const char *missing_fault(struct checking *k)
{
    const struct scenario_run *t = &k->trials[SCENARIO_RUN_MISSING];
    const char *fault = manifest_fault(k, t);
    if (timed_out(t)) {
        return "it did not end";
    }
    if (fault != NULL) {
        return fault;
    }
    if (!str_eqc(json_str(json_get(t->said, "outcome"), STR_EMPTY), "failure")) {
        return "its outcome is not failure";
    }
    return json_str(json_get(t->said, "error"), STR_EMPTY).len > 0
               ? NULL
               : "its manifest does not say what is wrong (error)";
}

static const char *probe_fault(struct checking *k)
{
    const struct scenario_run *t = &k->trials[SCENARIO_RUN_PROBE];
    const char *fault = timed_out(t) ? "it did not end" : manifest_fault(k, t);
    if (fault != NULL) {
        return fault;
    }
    if (!str_eqc(json_str(json_get(t->said, "outcome"), STR_EMPTY), "success")) {
        return "its outcome is not success";
    }
    if (exit_code(t) != 0) {
        const char *how = ending(k, t);
        return how != NULL ? how : "the record does not say how it ended";
    }
    return json_bool(json_get(t->run, "no_changes"), true) ? NULL : "it changed the workspace";
}

static void judge_all(struct checking *k)
{
    const struct scenario_run *work = &k->trials[SCENARIO_RUN_WORK];
    const char *outcome = json_cstring(json_get(work->said, "outcome"), "?");
    judge(k, CONTRACT_MANIFEST, manifest_fault(k, work),
          arena_printf(k->a, "outcome: %s", outcome));
    judge(k, CONTRACT_OUTPUTS, outputs_fault(k, work), "manifest.json, diff.patch, summary.md");
    judge(k, CONTRACT_LISTED, listed_fault(k, work), "all are there");
    judge_exit(k);
    judge(k, CONTRACT_INPUTS, input_fault(work), "unchanged");
    judge(k, CONTRACT_FRESH, fresh_fault(k), "nothing of the run before");
    judge(k, CONTRACT_PATCH, patch_fault(k, work), "as the workspace is");
    judge(k, CONTRACT_PROMPTS,
          timed_out(work) ? "it did not end: does it wait for an answer?" : NULL,
          "it ended by itself");
    judge(k, CONTRACT_SECRETS, secret_fault(k), "none was found");
    judge(k, CONTRACT_PROBE, probe_fault(k), "success, nothing changed");
    if (k->trials[SCENARIO_RUN_MISSING].record == NULL) {
        find(k, CONTRACT_MISSING, CONTRACT_SKIPPED, "the adapter declares no secret");
    } else {
        judge(k, CONTRACT_MISSING, missing_fault(k), "failure, with the reason");
    }
}

static int set_up(struct checking *k, struct err *e)
{
    static const struct contract_finding all[] = {
#define X(id, name, meaning) { name, meaning, CONTRACT_SKIPPED, "not tried" },
        CONTRACT_CHECKS(X)
#undef X
    };
    const char *file = arena_printf(k->a, "%s/workspace/README.md", k->o->dir);
    memcpy(k->report->items, all, sizeof all);
    k->report->len = ARRAY_LEN(all);
    (void)id_new(k->value);
    int r = k->o->cinch != NULL ? 0 : locate_cinch(k->cinch, e);
    if (k->o->cinch != NULL) {
        (void)snprintf(k->cinch, sizeof k->cinch, "%s", k->o->cinch);
    }
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, arena_printf(k->a, "%s/workspace", k->o->dir), 0755, e);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, file, STR("A workspace.\n"), 0644, e);
}

int contract_check(struct arena *a, const struct contract_opts *o, struct contract_report *ret,
                   struct err *e)
{
    struct checking k = { .a = a, .o = o, .report = ret };
    int r = set_up(&k, e);
    r = r < 0 ? r : try(&k, SCENARIO_RUN_WORK, "work", e);
    r = r < 0 ? r : try(&k, SCENARIO_RUN_AGAIN, "again", e);
    r = r < 0 ? r : try(&k, SCENARIO_RUN_PROBE, "probe", e);
    if (r == 0 && count(o->secrets) > 0) {
        r = try(&k, SCENARIO_RUN_MISSING, "missing", e);
    }
    if (r < 0) {
        return r;
    }
    judge_all(&k);
    ret->passed = true;
    for (size_t i = 0; i < ret->len; i++) {
        ret->passed = ret->passed && ret->items[i].verdict != CONTRACT_FAILED;
    }
    return 0;
}

int contract_probe(struct arena *a, const struct contract_opts *o, const struct json **ret,
                   struct err *e)
{
    struct contract_report ignored;
    struct checking k = { .a = a, .o = o, .report = &ignored };
    int r = set_up(&k, e);
    r = r < 0 ? r : try(&k, SCENARIO_RUN_PROBE, "probe", e);
    *ret = r < 0 ? NULL : k.trials[SCENARIO_RUN_PROBE].said;
    return r;
}

const char *contract_verdict_word(enum contract_verdict v)
{
    return v == CONTRACT_PASSED ? "passed" : v == CONTRACT_FAILED ? "failed" : "skipped";
}

struct json *contract_report_json(struct arena *a, const struct contract_report *r)
{
    struct json *list = json_array(a);
    for (size_t i = 0; i < r->len; i++) {
        const struct contract_finding *f = &r->items[i];
        struct json *o = json_object(a);
        json_setc(a, o, "check", json_cstr(a, f->name));
        json_setc(a, o, "meaning", json_cstr(a, f->meaning));
        json_setc(a, o, "verdict", json_cstr(a, contract_verdict_word(f->verdict)));
        json_setc(a, o, "detail", json_cstr(a, f->detail));
        json_push(a, list, o);
    }
    return list;
}
