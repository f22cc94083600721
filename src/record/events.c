/* SPDX-License-Identifier: MIT
 *
 * The event sink, and the events of the run and its processes; see events.h.
 */
#include "record/events.h"

#include <string.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "base/str.h"
#include "record/events_priv.h"
#include "record/redact.h"
#include "record/write_errors.h"

/* WINK's run context: the ids that are always there, then those of the caller. */
static struct json *make_run_context(struct events *ev, const struct json *caller)
{
    char host[256] = "localhost";
    (void)gethostname(host, sizeof host - 1);
    struct arena *a = ev->keep;
    struct json *c = json_object(a);
    json_setc(a, c, "run_id", json_cstr(a, ev->run_id));
    json_setc(a, c, "request_id", json_cstr(a, ev->run_id));
    json_setc(a, c, "attempt", json_integer(a, 1));
    json_setc(a, c, "worker_id", json_cstr(a, arena_printf(a, "%s-%d", host, (int)getpid())));
    const struct json *ids =
        caller == NULL ? NULL : redact_json(ev->redactor, a, json_copy(a, caller));
    for (size_t i = 0; i < json_len(ids); i++) {
        const struct json_member *m = &ids->object.members[i];
        int64_t n; /* `--run-context attempt=2` is a string */
        bool text = str_eqc(m->key, "attempt") && str_to_i64(json_str(m->value, STR_EMPTY), &n);
        json_set(a, c, m->key, text ? json_integer(a, n) : m->value);
    }
    return c;
}

int events_init(struct events *ev, const struct rundir *d, const struct events_opts *opts,
                struct err *e)
{
    *ev = (struct events) { .redactor = opts->redactor, .loss = opts->loss, .seq = opts->seq };
    int r = jsonl_init(&ev->out, d, "events.jsonl", opts->loss, e);
    if (r < 0) {
        return r;
    }
    ev->arena = arena_new();
    ev->keep = arena_new();
    size_t len = strnlen(opts->run_id, ID_LEN - 1);
    memcpy(ev->run_id, opts->run_id, len);
    ev->has_caller = json_len(opts->run_context) > 0;
    ev->run_context = make_run_context(ev, opts->run_context);
    return 0;
}

void events_done(struct events *ev)
{
    jsonl_done(&ev->out);
    ev->arena = arena_free(ev->arena);
    ev->keep = arena_free(ev->keep);
}

void events_watch(struct events *ev,
                  void (*told)(void *arg, enum event_kind kind, const struct json *context),
                  void *arg)
{
    ev->told = told;
    ev->told_arg = arg;
}

struct line {
    enum event_level level;
    const char *logger, *event, *message;
    struct json *context;
};

void events_listen(struct events *ev, void (*line)(void *arg, struct str text), void *arg)
{
    ev->line = line;
    ev->line_arg = arg;
}

/* A member whose key is a literal that the object does not have yet: nothing is copied. */
static void append_member(struct arena *a, struct json *object, const char *key, struct json *value)
{
    (void)json_append(a, object, str_of(key), value);
}

static enum jsonl_result append(struct events *ev, const struct line *l)
{
    struct arena *a = ev->arena;
    char now[CLOCK_ISO_LEN];
    struct str message = str_of(l->message != NULL ? l->message : l->event);
    struct json *o = json_object(a);
    append_member(a, o, "timestamp", json_cstr(a, jsonl_now(&ev->out, now)));
    append_member(a, o, "level", json_cstr(a, event_level_word(l->level)));
    append_member(a, o, "logger", json_cstr(a, l->logger));
    append_member(a, o, "event", json_cstr(a, l->event));
    message = redact_cut(ev->redactor, a, message, REDACT_CUT_END);
    append_member(a, o, "message", json_string(a, message));
    append_member(a, o, "context", l->context);
    append_member(a, o, "seq", json_integer(a, ev->seq + 1));
    append_member(a, o, "run_id", json_cstr(a, ev->run_id));
    if (ev->has_caller) {
        append_member(a, o, "run_context", ev->run_context);
    }
    enum jsonl_result result = jsonl_append(&ev->out, o);
    if (ev->line != NULL && result == JSONL_WRITTEN) {
        struct str written = buf_str(&ev->out.line);
        ev->line(ev->line_arg, str_slice(written, 0, written.len - 1));
    }
    ev->seq += result == JSONL_WRITTEN;
    return result;
}

static void write_line(struct events *ev, const struct line *l)
{
    struct arena *a = ev->arena;
    if (ev->loss->times > 0 && !ev->loss_told) {
        const struct event_kind_info *k = event_kind_info(EVENT_RECORD_LOSS);
        struct json *c = event_context(ev);
        event_word(ev, c, "file", ev->loss->file);
        event_text(ev, c, "error", ev->loss->first.msg);
        struct line told = { k->level, k->logger, k->name, "a part of the record is lost", c };
        ev->loss_told = append(ev, &told) == JSONL_WRITTEN;
    }
    if (append(ev, l) == JSONL_TOO_LONG) {
        const struct event_kind_info *k = event_kind_info(EVENT_RECORD_TOO_LONG);
        struct json *c = event_context(ev);
        event_word(ev, c, "event", l->event);
        struct line instead = { k->level, k->logger, k->name, "an event is too long to be kept",
                                c };
        (void)append(ev, &instead);
    }
    arena_reset(a);
}

void events_emit(struct events *ev, const struct event *event)
{
    struct json *context = redact_json(ev->redactor, ev->arena, event->context);
    struct line l = { event->level, event->logger, event->event, event->message,
                      context != NULL ? context : json_object(ev->arena) };
    write_line(ev, &l);
}

void event_send(struct events *ev, enum event_kind kind, const char *message, struct json *context)
{
    const struct event_kind_info *k = event_kind_info(kind);
    if (ev->told != NULL) {
        ev->told(ev->told_arg, kind, context);
    }
    struct line l = { k->level, k->logger, k->name, message, context };
    write_line(ev, &l);
}

struct json *event_context(struct events *ev)
{
    return json_object(ev->arena);
}

void event_word(struct events *ev, struct json *c, const char *key, const char *ours)
{
    append_member(ev->arena, c, key, json_cstr(ev->arena, ours));
}

void event_text(struct events *ev, struct json *c, const char *key, const char *foreign)
{
    if (foreign == NULL) {
        event_word(ev, c, key, NULL);
        return;
    }
    struct str clean = redact_cut(ev->redactor, ev->arena, str_of(foreign), REDACT_CUT_END);
    append_member(ev->arena, c, key, json_string(ev->arena, clean));
}

void event_str(struct events *ev, struct json *c, const char *key, struct str foreign)
{
    struct str clean = redact_str(ev->redactor, ev->arena, foreign);
    append_member(ev->arena, c, key, json_string(ev->arena, clean));
}

void event_tree(struct events *ev, struct json *c, const char *key, struct json *foreign)
{
    struct json *clean = redact_json(ev->redactor, ev->arena, foreign);
    append_member(ev->arena, c, key, clean != NULL ? clean : json_null(ev->arena));
}

void event_int(struct events *ev, struct json *c, const char *key, int64_t n)
{
    append_member(ev->arena, c, key, json_integer(ev->arena, n));
}

void event_bool(struct events *ev, struct json *c, const char *key, bool b)
{
    append_member(ev->arena, c, key, json_boolean(ev->arena, b));
}

void event_count(struct events *ev, struct json *c, const char *key, int64_t n)
{
    append_member(ev->arena, c, key, n < 0 ? json_null(ev->arena) : json_integer(ev->arena, n));
}

void event_ms(struct events *ev, struct json *c, const char *key, nsec t)
{
    event_count(ev, c, key, t < 0 ? -1 : t / NSEC_PER_MS);
}

void events_started(struct events *ev, const char *adapter, const char *output_dir)
{
    struct json *c = event_context(ev);
    event_text(ev, c, "adapter", adapter);
    event_word(ev, c, "cinch_version", CINCH_VERSION);
    event_int(ev, c, "pid", getpid());
    event_text(ev, c, "output_dir", output_dir);
    event_send(ev, EVENT_RUN_STARTED, arena_printf(ev->arena, "run with adapter %s", adapter), c);
}

void events_phase(struct events *ev, const char *from, const char *to, nsec took)
{
    struct json *c = event_context(ev);
    event_word(ev, c, "from", from);
    event_word(ev, c, "to", to);
    event_ms(ev, c, "duration_ms", from == NULL ? -1 : took);
    event_send(ev, EVENT_RUN_PHASE, arena_printf(ev->arena, "phase %s", to), c);
}

void events_warning(struct events *ev, const char *text)
{
    struct json *c = event_context(ev);
    event_text(ev, c, "text", text);
    event_send(ev, EVENT_RUN_WARNING, text, c);
}

void events_signal(struct events *ev, const char *signal, int count)
{
    struct json *c = event_context(ev);
    event_word(ev, c, "signal", signal);
    event_int(ev, c, "count", count);
    event_send(ev, EVENT_RUN_SIGNAL, arena_printf(ev->arena, "got %s", signal), c);
}

void events_finished(struct events *ev, enum reason reason, int exit_code, nsec took,
                     const char *error)
{
    struct json *c = event_context(ev);
    event_word(ev, c, "reason", reason_word(reason));
    event_word(ev, c, "outcome", reason_outcome(reason));
    event_int(ev, c, "exit_code", exit_code);
    event_int(ev, c, "duration_ms", took / NSEC_PER_MS);
    event_text(ev, c, "error", error);
    const char *message = arena_printf(ev->arena, "finished: %s", reason_word(reason));
    event_send(ev, EVENT_RUN_FINISHED, message, c);
}

void events_recovered(struct events *ev, const struct event_recovery *recovery)
{
    struct json *c = event_context(ev);
    event_word(ev, c, "reason", reason_word(recovery->reason));
    event_text(ev, c, "phase", recovery->phase);
    event_count(ev, c, "pid", recovery->pid > 0 ? recovery->pid : -1);
    event_int(ev, c, "torn_bytes", recovery->torn_bytes);
    event_int(ev, c, "dropped_lines", recovery->dropped_lines);
    event_send(ev, EVENT_RUN_RECOVERED, "the record of a dead run was closed", c);
}

void events_spawned(struct events *ev, pid_t pid, const char *const *argv, const char *cwd)
{
    struct arena *a = ev->arena;
    struct json *c = event_context(ev);
    event_int(ev, c, "pid", pid);
    event_text(ev, c, "program", argv[0]);
    struct json *list = json_array(a);
    for (size_t i = 0; argv[i] != NULL; i++) {
        json_push(a, list, json_string(a, redact_str(ev->redactor, a, str_of(argv[i]))));
    }
    json_setc(a, c, "argv", list);
    event_text(ev, c, "cwd", cwd);
    event_send(ev, EVENT_PROCESS_SPAWNED, arena_printf(a, "started %s", argv[0]), c);
}

void events_exited(struct events *ev, pid_t pid, struct engine_exit exit, nsec took)
{
    struct json *c = event_context(ev);
    event_int(ev, c, "pid", pid);
    event_count(ev, c, "code", exit.end == ENGINE_EXITED ? exit.value : -1);
    event_count(ev, c, "signal", exit.end == ENGINE_SIGNALLED ? exit.value : -1);
    event_int(ev, c, "duration_ms", took / NSEC_PER_MS);
    const char *message = exit.end == ENGINE_SIGNALLED
                              ? arena_printf(ev->arena, "ended by signal %d", exit.value)
                              : arena_printf(ev->arena, "exited with code %d", exit.value);
    event_send(ev, EVENT_PROCESS_EXITED, message, c);
}

void events_deadline(struct events *ev, const char *kind, nsec limit)
{
    struct json *c = event_context(ev);
    event_word(ev, c, "kind", kind);
    event_int(ev, c, "limit_ms", limit / NSEC_PER_MS);
    event_send(ev, EVENT_PROCESS_DEADLINE, arena_printf(ev->arena, "deadline passed: %s", kind), c);
}

void events_signal_sent(struct events *ev, const char *signal, const char *target, const char *why)
{
    struct json *c = event_context(ev);
    event_word(ev, c, "signal", signal);
    event_word(ev, c, "target", target);
    event_word(ev, c, "why", why);
    const char *message = arena_printf(ev->arena, "%s to the %s (%s)", signal, target, why);
    event_send(ev, EVENT_PROCESS_SIGNAL, message, c);
}

static void event_took(struct events *ev, struct json *c, nsec took)
{
    json_setc(ev->arena, c, "duration_ms", json_number(ev->arena, (double)took / NSEC_PER_MS));
}

void events_savepoint_taken(struct events *ev, int64_t turn, int64_t entries, int64_t bytes,
                            nsec took)
{
    struct json *c = event_context(ev);
    event_int(ev, c, "turn", turn);
    event_int(ev, c, "entries", entries);
    event_int(ev, c, "bytes", bytes);
    event_took(ev, c, took);
    event_send(ev, EVENT_SAVEPOINT_TAKEN,
               arena_printf(ev->arena, "savepoint of turn %lld", (long long)turn), c);
}

void events_savepoint_restored(struct events *ev, const struct event_savepoint *s)
{
    struct json *c = event_context(ev);
    event_int(ev, c, "turn", s->turn);
    event_word(ev, c, "why", s->why);
    event_word(ev, c, "patch", s->patch);
    event_int(ev, c, "entries", s->entries);
    event_int(ev, c, "removed", s->removed);
    event_took(ev, c, s->took);
    event_send(ev, EVENT_SAVEPOINT_RESTORED,
               arena_printf(ev->arena, "turn %lld was taken back", (long long)s->turn), c);
}

void events_leaked(struct events *ev, int count)
{
    struct json *c = event_context(ev);
    event_int(ev, c, "count", count);
    const char *message = arena_printf(ev->arena, "%d processes outlived the harness", count);
    event_send(ev, EVENT_PROCESS_LEAKED, message, c);
}

void events_oom(struct events *ev, int64_t count, int64_t limit_bytes)
{
    struct json *c = event_context(ev);
    event_int(ev, c, "count", count);
    event_int(ev, c, "limit_bytes", limit_bytes);
    event_send(ev, EVENT_PROCESS_OOM, "the run reached its memory limit", c);
}
