/* SPDX-License-Identifier: MIT
 *
 * The run as a table of phases, and the one function that changes the phase.
 *
 * Phases follow each other; a failure skips ahead to the next phase that happens always. From the
 * moment the output directory exists, trust_off, parse, collect and finish always happen, so a
 * record is always complete.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/id.h"
#include "io/loop.h"
#include "io/sigwatch.h"
#include "record/redact.h"
#include "record/run_store.h"
#include "run/agent_files.h"
#include "run/dependencies.h"
#include "run/image_root.h"
#include "run/recover_run.h"
#include "run/resources.h"
#include "run/run_priv.h"
#include "run/run_session.h"
#include "workspace/workspace.h"

static const struct phase_entry {
    const char *word;
    int (*enter)(struct run *run, struct err *e);
    bool always; /* also after a failure */
    bool brief;  /* takes no time worth showing in state.json */
} phases[] = {
    [PHASE_ADMIT] = { "admit", phase_admit, false, false },
    [PHASE_CONFIGURE] = { "configure", phase_configure, false, true },
    [PHASE_PREPARE] = { "prepare", phase_prepare, false, true },
    [PHASE_CONTEXT] = { "context", phase_context, false, true },
    [PHASE_TRUST_ON] = { "trust_on", phase_trust_on, false, true },
    [PHASE_EXECUTE] = { "execute", phase_execute, false, false },
    [PHASE_TRUST_OFF] = { "trust_off", phase_trust_off, true, true },
    [PHASE_PARSE] = { "parse", phase_parse, true, true },
    [PHASE_COLLECT] = { "collect", phase_collect, true, false },
    [PHASE_GATE] = { "gate", phase_gate, false, true },
    [PHASE_FINISH] = { "finish", phase_finish, true, true },
};

const char *phase_word(enum phase p)
{
    return phases[p].word;
}

/* Order of causes when several apply; lower is stronger. The reasons of admission can only be noted
 * before anything else happens, so spawn errors share their rank. */
static int rank(enum reason r)
{
    switch (r) {
    case REASON_USAGE:
    case REASON_BAD_TASK:
    case REASON_MISSING_INPUT:
    case REASON_UNAVAILABLE:
    case REASON_CANNOT_WRITE_OUTPUT:
    case REASON_NOT_EXECUTABLE:
    case REASON_NOT_FOUND:
        return 0;
    case REASON_KILLED:
        return 1;
    case REASON_INTERRUPTED:
    case REASON_CANCELLED:
    case REASON_TERMINATED:
        return 2;
    case REASON_TIMEOUT:
        return 3;
    case REASON_BUDGET:
        return 4;
    case REASON_DISK:
        return 5;
    case REASON_AUTH:
        return 6;
    case REASON_RATE_LIMITED:
    case REASON_PROVIDER_UNAVAILABLE:
        return 7;
    case REASON_INTERNAL:
        return 8;
    case REASON_FAILURE:
    case REASON_NO_RESULT:
    case REASON_NEEDS_HUMAN:
        return 9;
    case REASON_SUCCESS:
    case REASON_NONE:
    case REASON_MAX:
        break;
    }
    return 10;
}

/* Messages have a limited length, and what was cut may be half a secret: clean from here on. */
static PRINTF_LIKE(3, 0) void format_message(struct run *run, char out[RUN_MESSAGE_MAX],
                                             const char *fmt, va_list ap)
{
    char text[RUN_MESSAGE_MAX];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    struct str safe = redact_cut(run->redactor, run->arena, str_of(text), REDACT_CUT_END);
    (void)snprintf(out, RUN_MESSAGE_MAX, "%.*s", STR_ARG(safe));
}

bool run_fail(struct run *run, enum reason reason, const char *fmt, ...)
{
    if (rank(reason) >= rank(run->cause.reason)) {
        return false;
    }
    va_list ap;
    va_start(ap, fmt);
    format_message(run, run->cause.message, fmt, ap);
    va_end(ap);
    run->cause.reason = reason;
    run->cause.at = run->phase;
    run->cause.phase = NULL;
    return true;
}

bool run_fail_err(struct run *run, const struct err *e)
{
    return run_fail(run, reason_of_err(e->code), "%s", e->msg);
}

bool run_blame(struct run *run, enum reason reason, const char *fmt, ...)
{
    char text[RUN_MESSAGE_MAX];
    if (run->cause.reason != REASON_FAILURE && run->cause.reason != REASON_INTERNAL) {
        return false;
    }
    va_list ap;
    va_start(ap, fmt);
    format_message(run, text, fmt, ap);
    va_end(ap);
    const char *both = arena_printf(run->arena, "%s: %s", text, run->cause.message);
    (void)snprintf(run->cause.message, RUN_MESSAGE_MAX, "%s", both);
    run->cause.reason = reason;
    return true;
}

void run_warn(struct run *run, const char *fmt, ...)
{
    char text[RUN_MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    format_message(run, text, fmt, ap);
    va_end(ap);
    events_warning(&run->record.events, text);
    if (run->warnings == NULL) {
        run->warnings = arena_array(run->arena, WARNINGS_MAX + 1, sizeof *run->warnings);
    }
    if (run->warning_count < WARNINGS_MAX) {
        run->warnings[run->warning_count++] = arena_dup(run->arena, str_of(text));
    }
    if (run->opts->watcher.warning != NULL) {
        run->opts->watcher.warning(run->opts->watcher.owner, text);
    }
}

struct event_prompt run_event_prompt(const struct run *run)
{
    const struct json *prompt = json_get(run->plan->settings.tree, "prompt");
    const char *session =
        run->outcome.report.session_id.len > 0 ? run->outcome.report.session_id.ptr : NULL;
    return (struct event_prompt) {
        .ns = json_cstring(json_get(prompt, "ns"), "cinch"),
        .key = json_cstring(json_get(prompt, "key"), run->plan->settings.name),
        .name = run->plan->settings.prompt_name,
        .adapter = run->plan->settings.adapter == NULL ? "none" : run->plan->settings.adapter,
        .session_id = session,
    };
}

static struct run_view view_of(const struct run *run)
{
    struct run_view view = {
        .run_id = run->record.state.run_id,
        .adapter = run->plan->settings.adapter,
        .output_dir = run->record.dir.path,
        .phase = phase_word(run->phase),
        .elapsed = clock_now() - run->started,
        .bytes_out = run->record.out.received,
        .bytes_err = run->record.err.received,
        .pid = run->exec.launched && run->exec.ended == 0 ? run->exec.pid : 0,
    };
    gateway_view(run, &view);
    return view;
}

void run_show(struct run *run)
{
    if (run->opts->watcher.progress != NULL) {
        struct run_view view = view_of(run);
        run->opts->watcher.progress(run->opts->watcher.owner, &view);
    }
}

void run_beat(struct run *run)
{
    record_life(&run->record);
    if (run->opts->watcher.alive != NULL) {
        struct run_view view = view_of(run);
        run->opts->watcher.alive(run->opts->watcher.owner, &view);
    }
}

void run_alive(struct run *run)
{
    execute_alive(run);
    run_beat(run);
}

/* CINCH_STOP_AT=<phase> stops the process with SIGSTOP on entering that phase: tests then interrupt
 * or kill it there, at a known place (tests/integration/test_ends.py). */
void run_stop_for_test(const char *where)
{
    const char *wanted = getenv("CINCH_STOP_AT");
    if (wanted != NULL && strcmp(wanted, where) == 0) {
        (void)raise(SIGSTOP);
    }
}

static void advance(void *arg);

static void enter(struct run *run, enum phase phase)
{
    if (phases[phase].brief) {
        record_brief_phase(&run->record, phase_word(phase));
    } else {
        record_phase(&run->record, phase_word(phase));
    }
    run->phase = phase;
    run->draft = phase == PHASE_ADMIT ? run->draft : NULL;
    run_stop_for_test(phase_word(phase));
    if (run->opts->watcher.phase != NULL) {
        struct run_view view = view_of(run);
        run->opts->watcher.phase(run->opts->watcher.owner, &view);
    }
    struct err e = { 0 };
    int r = phases[phase].enter(run, &e);
    if (r < 0) {
        run_fail_err(run, &e);
    }
    if (r <= 0) {
        loop_post(run->loop, advance, run);
    }
}

static void stop_loop(struct run *run)
{
    loop_stop(run->loop);
}

static void advance(void *arg)
{
    struct run *run = arg;
    enum phase next = run->phase + 1;
    while (next < PHASE_MAX && run->cause.reason != REASON_NONE && !phases[next].always) {
        next++;
    }
    /* Nothing runs any more, or nothing will: what follows looks at files that nobody changes. */
    if (next > PHASE_EXECUTE && (sandbox_session_close(run, run_phase_done) || gateway_wait(run))) {
        return;
    }
    /* Now it is known what came of the run. */
    if (next == PHASE_FINISH && resources_close(run, run_phase_done)) {
        return;
    }
    if (next == PHASE_MAX) {
        if (!sandbox_session_wait(run, stop_loop)) {
            stop_loop(run);
        }
        return;
    }
    enter(run, next);
}

void run_phase_done(struct run *run)
{
    loop_post(run->loop, advance, run);
}

static void on_signal(void *arg, int signo)
{
    struct run *run = arg;
    if (run->phase == PHASE_FINISH) {
        return; /* it is over, and the record is closed */
    }
    run->signal_count++;
    const char *name = signo == SIGTERM ? "SIGTERM" : signo == SIGHUP ? "SIGHUP" : "SIGINT";
    events_signal(&run->record.events, name, run->signal_count);
    if (run->signal_count > 1) {
        run_fail(run, REASON_KILLED, "killed by a second signal");
    } else if (signo == SIGTERM) {
        run_fail(run, REASON_TERMINATED, "terminated by SIGTERM");
    } else {
        run_fail(run, REASON_INTERRUPTED, "interrupted by %s", name);
    }
    execute_interrupt(run, run->signal_count > 1);
    gateway_hurry(run);
}

void run_cancel(struct run *run)
{
    run_fail(run, REASON_CANCELLED, "cancelled by the calling program");
    execute_interrupt(run, false);
    gateway_hurry(run);
}

/* nohup(1) wants the run to outlive its terminal. */
static bool is_to_be_ignored(int signo)
{
    struct sigaction now;
    return signo == SIGHUP && sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int watch_signals(struct run *run, struct err *e)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    sigset_t mask;
    (void)sigemptyset(&mask);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (is_to_be_ignored(numbers[i])) {
            continue;
        }
        (void)sigaddset(&mask, numbers[i]);
        int r = sigwatch_new(run->loop, numbers[i], on_signal, run, &run->signals[i], e);
        if (r < 0) {
            return r;
        }
    }
    /* Who started us may have had them blocked; then nobody could end the run. */
    (void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
    return 0;
}

/* Secrets are known to the redactor before the first byte of the record is written. */
static void register_secrets(struct run *run)
{
    int r = secrets_collect(run->arena, &run->plan->settings, run->opts->environ,
                            &run->draft->secrets, &run->draft->secrets_error);
    auth_plan(run);
    gateway_plan(run);
    run->redactor = redactor_new();
    for (size_t i = 0; i < run->plan->secrets.len; i++) {
        const struct secret *s = &run->plan->secrets.items[i];
        struct err why;
        int added = redactor_add(run->redactor, str_of(s->name), s->value, &why);
        if (added < 0 && s->named && r == 0) {
            r = added;
            run->draft->secrets_error = why;
        }
    }
    redactor_compile(run->redactor);
}

/* The directory of a run without an output directory: below runs_dir, named by the time and the
 * short id of the run. */
static const char *default_output(const struct run *run, const char *run_id)
{
    char iso[CLOCK_ISO_LEN];
    (void)clock_iso(clock_wall(), iso);
    for (char *p = iso; *p != '\0'; p++) {
        *p = *p == ':' ? '-' : *p == '.' ? '\0' : *p;
    }
    return arena_printf(run->arena, "%s/%s-%s", run->opts->runs_dir, iso, run_short_id(run_id));
}

static int open_record(struct run *run, bool force, struct err *e)
{
    struct settings *s = &run->draft->settings;
    char run_id[ID_LEN];
    (void)id_new(run_id);
    if (s->output_dir == NULL) {
        run->draft->default_output = true;
        s->output_dir = default_output(run, run_id);
        int r = file_mkdirs(AT_FDCWD, run->opts->runs_dir, 0700, e);
        if (r < 0) {
            return r;
        }
    }
    /* A run that died here before is closed first, so that its record is whole when it is archived
     * or refused. There is nothing to close in most cases, and a failure shows in what follows. */
    (void)!run_recover(s->output_dir, NULL, NULL);
    const char *const inputs[] = { s->workspace, s->prompt_file, NULL };
    struct record_opts opts = {
        .path = s->output_dir,
        .force = force,
        .keep = inputs,
        .adapter = s->adapter == NULL ? "none" : s->adapter,
        .run_id = run_id,
        .redactor = run->redactor,
        .run_context = s->run_context,
    };
    int r = record_open(&run->record, &opts, e);
    if (r == 0) {
        run->paths.dir = run->record.dir.path;
        events_listen(&run->record.events, run->opts->watcher.event, run->opts->watcher.owner);
        transcript_listen(&run->record.transcript, run->opts->watcher.entry,
                          run->opts->watcher.owner);
    }
    return r;
}

/* What is wrong with the request itself is told before there is a record of it. */
static int check_request(const struct settings *s, struct err *e)
{
    if (s->adapter == NULL) {
        return settings_adapter(s, e);
    }
    bool brings_command = s->profile != NULL && json_len(s->profile->binary) == 0 &&
                          !driver_is_kind(s->profile, DRIVER_MODEL_LOOP);
    if (brings_command && json_len(s->command) == 0) {
        return ERR(e, ERR_USAGE,
                   "adapter '%s' needs a command: give it after --, or as agent.command",
                   s->adapter);
    }
    return 0;
}

static int load_settings(struct run *run, const struct settings_input *in, struct err *e)
{
    struct settings *s = &run->draft->settings;
    int r = settings_load(run->arena, in, s, e);
    run->timeout = s->timeout;
    run->paths.view = s->workspace;
    return r;
}

/* What can fail without leaving a trace comes first; the record is opened last. */
static int begin(struct run *run, struct err *e)
{
    int r = load_settings(run, &run->opts->settings, e);
    if (r == 0) {
        r = check_request(&run->plan->settings, e);
    }
    if (r == 0) {
        r = definition_open(&run->definition, run->arena, &run->draft->settings, e);
    }
    if (r == 0) {
        r = loop_new(&run->loop, e);
    }
    if (r == 0) {
        r = run->opts->no_signals ? 0 : watch_signals(run, e);
    }
    if (r == 0) {
        sandbox_session_warm(run);
        register_secrets(run);
        run->opening = true;
        r = open_record(run, run->opts->force, e);
    }
    return r;
}

/* --- refused before there is a record --- */

/* What the request itself says; a file may be what is wrong. */
static const char *requested(const struct run *run, const char *section, const char *key)
{
    const struct json *v = json_get(run->opts->settings.request, section);
    return json_cstring(json_is(v, JSON_OBJECT) ? json_get(v, key) : v, NULL);
}

/* Settings that no file has a say in: where the record goes, and which exit code counts. */
static int load_minimal(struct run *run, const char *output, struct err *e)
{
    struct arena *a = run->arena;
    struct json *request = json_object(a);
    struct json *dir = json_object(a);
    struct json *workspace = json_object(a);
    const char *profile = requested(run, "exit_profile", NULL);
    enum exit_profile known;
    json_setc(a, dir, "dir", json_cstr(a, output));
    json_setc(a, request, "output", dir);
    json_setc(a, workspace, "path", json_cstr(a, "/"));
    json_setc(a, request, "workspace", workspace);
    if (profile != NULL && exit_profile_find(profile, &known)) {
        json_setc(a, request, "exit_profile", json_cstr(a, profile));
    }
    struct settings_input in = { .request = request, .path = run->opts->settings.path };
    return load_settings(run, &in, e);
}

/* Whoever names an output directory finds a record there, whatever was wrong. */
static int open_refused(struct run *run, const struct err *why)
{
    struct err e;
    const char *output = requested(run, "output", "dir");
    if (output == NULL || output[0] == '\0' || run->opening) {
        return -ERR_USAGE;
    }
    const struct json *keys = run->plan->settings.api_keys;
    int r = load_minimal(run, output, &e);
    run->draft->settings.api_keys =
        keys; /* of a file that was read so far: no message may hold them */
    r = r < 0 || run->loop != NULL ? r : loop_new(&run->loop, &e);
    if (r == 0) {
        register_secrets(run);
        r = open_record(run, false, &e);
    }
    if (r < 0) {
        return r;
    }
    struct run_opts *quiet = ARENA_NEW(run->arena, struct run_opts);
    *quiet = *run->opts;
    quiet->watcher = (struct run_watcher) { 0 }; /* the caller gets the error itself */
    run->opts = quiet;
    run->phase = PHASE_ADMIT;
    record_phase(&run->record, phase_word(PHASE_ADMIT));
    run_fail_err(run, why);
    loop_post(run->loop, advance, run);
    return 0;
}

/* A refusal in a directory that the user did not choose would only be litter. */
static bool is_litter(const struct run *run)
{
    enum reason r = run->cause.reason;
    return run->opts->drop_refused && run->plan->default_output && r != REASON_NONE &&
           r != REASON_INTERNAL && run->cause.at == PHASE_ADMIT &&
           strcmp(reason_state(r), "failed") == 0;
}

static void drop_record(struct run_summary *sum)
{
    struct err e;
    if (file_remove_tree(AT_FDCWD, sum->output_dir, &e) == 0) {
        sum->output_dir[0] = '\0';
    }
}

static void end(struct run *run)
{
    for (size_t i = 0; i < ARRAY_LEN(run->signals); i++) {
        run->signals[i] = sigwatch_free(run->signals[i]);
    }
    if (run->session != NULL) {
        run->plan->driver->close(run->session);
    }
    sandbox_session_done(run);
    run->workspace = workspace_close(run->workspace, false);
    image_root_done(run);
    dependencies_done(run);
    agent_files_done(run);
    gateway_done(run);
    tools_done(run);
    definition_done(&run->definition);
    run_session_close(run);
    record_done(&run->record);
    run->loop = loop_free(run->loop);
    run->redactor = redactor_free(run->redactor);
    run->arena = arena_free(run->arena);
}

static void summarise(const struct run *run, struct run_summary *ret)
{
    *ret = (struct run_summary) {
        .reason = run->cause.reason == REASON_NONE ? REASON_SUCCESS : run->cause.reason,
        .took = clock_now() - run->started,
        .exit_status = run->outcome.exit_status,
    };
    (void)snprintf(ret->run_id, sizeof ret->run_id, "%s", run->record.state.run_id);
    (void)snprintf(ret->output_dir, sizeof ret->output_dir, "%s", run->record.dir.path);
    (void)snprintf(ret->message, sizeof ret->message, "%s", run->cause.message);
}

int run_execute(const struct run_opts *opts, struct run_summary *ret, struct err *e)
{
    /* A file-size limit is a write error like a full disk, which the record survives. */
    loop_ignore_signal(SIGXFSZ);
    struct run run = {
        .opts = opts,
        .arena = arena_new(),
        .started = clock_now(),
        .files_fd = -1,
        .confine = { .spare_fd = -1, .copies_fd = -1 },
    };
    run.plan = run.draft = ARENA_NEW(run.arena, struct run_plan);
    run.execute = execute_new(run.arena);
    int r = begin(&run, e);
    *ret = (struct run_summary) { 0 };
    if (r == 0) {
        enter(&run, PHASE_ADMIT);
    }
    if (r == 0 || open_refused(&run, e) == 0) {
        loop_run(run.loop);
        summarise(&run, ret);
    }
    bool drop = r == 0 && is_litter(&run);
    end(&run);
    if (drop) {
        drop_record(ret);
    }
    return r;
}
