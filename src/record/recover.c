/* SPDX-License-Identifier: MIT
 *
 * Deciding whether a record needs closing, and closing it; see recover.h.
 */
#include "record/recover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "record/events.h"
#include "record/record_file.h"
#include "record/recover_priv.h"
#include "record/stamp.h"
#include "record/write_errors.h"

enum { BYTES_MAX = 64 << 20 /* of a final file */ };

/* Garbage in all files leaves only their names to go by: this many of them make a record. */
static bool has_our_names(const struct rundir *d)
{
    enum { ENOUGH = 3 };
    int count = 0;
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        count += record_file_is_core(f) && file_exists(d->dir_fd, f->path);
    }
    return count >= ENOUGH;
}

/* The first file that a run makes, before it has anything to say. */
static bool has_empty_events(const struct rundir *d)
{
    struct stat st;
    return fstatat(d->dir_fd, "events.jsonl", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && st.st_size == 0;
}

/* reason of a manifest that says how the run ended; REASON_NONE when it does not. */
static enum reason manifest_reason(const struct json *manifest)
{
    enum reason r = reason_find(json_str(json_get(manifest, "reason"), STR_EMPTY));
    struct str status = json_str(json_get(manifest, "status"), STR_EMPTY);
    bool agrees = r != REASON_NONE && str_eqc(status, reason_status(r)) &&
                  stamp_is_id(json_str(json_get(manifest, "run_id"), STR_EMPTY));
    return agrees ? r : REASON_NONE;
}

static bool is_finished(const struct rundir *d, const struct state *state)
{
    if (state->reason == REASON_NONE || state->run_id[0] == '\0') {
        return false;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    bool complete =
        manifest_reason(rundir_read_object(d, "manifest.json", BYTES_MAX, a)) == state->reason;
    for (const struct record_file *f = record_files; complete && f->path != NULL; f++) {
        complete =
            f->recovery != RECORD_REWRITE || rundir_read_object(d, f->path, BYTES_MAX, a) != NULL;
    }
    return complete;
}

static bool is_temporary(const char *name)
{
    struct str s = str_of(name);
    size_t tail = strlen(".tmp");
    size_t id = ID_LEN - 1;
    return str_ends(s, STR(".tmp")) && s.len > tail + id + 1 &&
           stamp_is_id(str_slice(s, s.len - tail - id, s.len - tail));
}

/* Half-written files of the dead run (file_write_atomic). */
static void sweep(const struct rundir *d, const char *sub)
{
    int fd = openat(d->dir_fd, sub, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        cleanup_fd(&fd);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (is_temporary(entry->d_name)) {
            (void)unlinkat(fd, entry->d_name, 0);
        }
    }
    (void)closedir(dir);
}

static void set_damaged_aside(const struct rundir *d)
{
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        CLEANUP(arena) struct arena *a = arena_new();
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        struct json *v;
        if (f->recovery == RECORD_SET_ASIDE && file_exists(d->dir_fd, f->path) &&
            (rundir_read(d, f->path, BUF_TEXT, &text, NULL) < 0 ||
             json_parse(a, buf_str(&text), NULL, &v, NULL) < 0)) {
            rundir_move_aside(d, f->path);
        }
    }
}

static const char *string_at(const struct json *object, const char *pointer)
{
    return json_cstring(json_pointer(object, str_of(pointer)), NULL);
}

static void decide(struct leftovers *l, struct summary *s)
{
    enum reason by_manifest = manifest_reason(l->manifest);
    s->reason = by_manifest != REASON_NONE       ? by_manifest
                : l->state.reason != REASON_NONE ? l->state.reason
                                                 : REASON_INTERRUPTED;
    bool decided = by_manifest != REASON_NONE || l->state.reason != REASON_NONE;
    if (decided) {
        const char *by_result = string_at(l->result, "/error");
        s->error = by_manifest != REASON_NONE ? string_at(l->manifest, "/error") : by_result;
        return;
    }
    char when[CLOCK_ISO_LEN];
    s->error = arena_printf(l->arena, "cinch died in phase '%s'; last sign of life %s",
                            l->state.phase[0] != '\0' ? l->state.phase : "unknown",
                            clock_iso(s->ended_wall, when));
}

static void find_times(const struct leftovers *l, const struct rundir *d, struct summary *s)
{
    int64_t last = l->state.heartbeat_wall > l->last_wall ? l->state.heartbeat_wall : l->last_wall;
    struct stat st;
    if (last == 0 && fstat(d->dir_fd, &st) == 0) {
        last = (int64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
    }
    s->started_wall = l->state.started_wall > 0 ? l->state.started_wall : l->first_wall;
    s->started_wall = s->started_wall > 0 ? s->started_wall : last;
    s->ended_wall = l->state.ended_wall > 0 ? l->state.ended_wall : last;
    if (manifest_reason(l->manifest) != REASON_NONE) {
        const struct json *started = json_get(l->manifest, "started_at");
        const struct json *ended = json_get(l->manifest, "ended_at");
        (void)stamp_parse(json_str(started, STR_EMPTY), &s->started_wall);
        (void)stamp_parse(json_str(ended, STR_EMPTY), &s->ended_wall);
    }
    if (s->ended_wall < s->started_wall) {
        s->ended_wall = s->started_wall; /* somebody set the clock back, or the file is damaged */
    }
    s->duration = s->ended_wall - s->started_wall;
}

static const char *find_run_id(struct leftovers *l)
{
    const char *in_manifest = string_at(l->manifest, "/run_id");
    if (l->state.run_id[0] != '\0') {
        return l->state.run_id;
    }
    if (in_manifest != NULL && stamp_is_id(str_of(in_manifest))) {
        return in_manifest;
    }
    return l->run_id[0] != '\0' ? l->run_id : id_new(l->run_id);
}

/* The wire was counted call by call; what the harness might have told died with the run. */
static void fill_calls(const struct leftovers *l, const struct rundir *d, struct summary *s)
{
    s->calls.total = l->calls.total;
    s->calls.failed = l->calls.failed;
    s->calls.refused = l->calls.refused;
    s->calls.side = l->calls.side;
    s->calls.estimated = l->calls.estimated;
    const struct json *ledger = rundir_read_object(d, "evidence/ledger.json", BUF_TEXT, l->arena);
    if (json_is(json_get(ledger, "wire"), JSON_OBJECT)) {
        s->usage = json_object(l->arena);
        json_setc(l->arena, s->usage, "wire", json_get(ledger, "wire"));
        json_setc(l->arena, s->usage, "reported", json_get(ledger, "reported"));
        json_setc(l->arena, s->usage, "difference", json_get(ledger, "difference"));
    }
    if (l->calls.total == 0 || s->tokens.source != TOKENS_NONE) {
        return;
    }
    s->tokens.input = l->calls.input;
    s->tokens.output = l->calls.output;
    s->tokens.cache_read = l->calls.cache_read;
    s->tokens.cache_creation = l->calls.cache_write;
    s->tokens.reasoning = l->calls.reasoning;
    s->tokens.source = TOKENS_WIRE;
    s->api_calls = l->calls.total;
    if (!l->calls.unpriced) {
        s->cost_usd = l->calls.real > 0 ? l->calls.cost_usd : l->calls.simulated_usd;
        s->cost_source = l->calls.real > 0 ? COST_TABLE : COST_SIMULATED;
    }
}

static void summarise(struct leftovers *l, const struct rundir *d, struct summary *s)
{
    *s = (struct summary) { .run_id = find_run_id(l), .recovered = true, .repair_level = -1 };
    const char *agent = string_at(l->manifest, "/metadata/agent");
    s->adapter = l->state.adapter != NULL ? l->state.adapter
                 : agent != NULL          ? agent
                 : l->adapter != NULL     ? l->adapter
                                          : "unknown";
    s->engine.name = string_at(l->manifest, "/metadata/engine/name");
    s->engine.name = s->engine.name != NULL ? s->engine.name : l->program;
    s->engine.version = string_at(l->manifest, "/metadata/engine/version");
    s->engine.model = string_at(l->manifest, "/metadata/engine/model");
    s->session_id = l->session_id;
    s->engine_exit = l->exit;
    s->bytes.out = rundir_size(d, "stdout.log");
    s->bytes.err = rundir_size(d, "stderr.log");
    find_times(l, d, s);
    decide(l, s);
    summary_adopt(s, l->metrics, l->result, l->arena);
    summary_adopt_phases(s, l->phase_ms, l->arena);
    fill_calls(l, d, s);
}

static int write_views(struct leftovers *l, const struct rundir *d, const struct summary *s,
                       struct err *e)
{
    struct arena *a = l->arena;
    /* A verdict that the run itself wrote stays as it is; only what is missing beside it is made.
     */
    bool decided = manifest_reason(l->manifest) != REASON_NONE;
    int r = 0;
    if (!decided && !file_exists(d->dir_fd, "summary.md")) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        summary_markdown(s, NULL, a, &text);
        r = rundir_write_text(d, "summary.md", buf_str(&text), e);
    }
    for (const struct record_file *f = record_files; r == 0 && f->path != NULL; f++) {
        bool kept = decided && rundir_read_object(d, f->path, BYTES_MAX, a) != NULL;
        if (f->recovery == RECORD_REWRITE && !kept) {
            r = rundir_write_json(d, f->path, f->view(s, d, NULL, a), e);
        }
    }
    return r;
}

/* The provider bills them, whatever became of the run. */
static int append_open_calls(struct leftovers *l, const struct rundir *d, struct err *e)
{
    struct loss loss = { 0 };
    struct events ev;
    struct events_opts opts = { .run_id = find_run_id(l), .loss = &loss, .seq = l->seq };
    if (*l->open == NULL) {
        return 0;
    }
    int r = events_init(&ev, d, &opts, e);
    if (r < 0) {
        return r;
    }
    jsonl_not_before(&ev.out, l->last_wall);
    events_watch(&ev, leftovers_add_call, l);
    for (struct event_model_call **call = l->open; *call != NULL; call++) {
        events_model_call(&ev, *call);
    }
    l->seq = ev.seq;
    events_done(&ev);
    return loss.times > 0 ? ERR(e, loss.first.code, "%s", loss.first.msg) : 0;
}

static int append_lines(struct leftovers *l, const struct rundir *d, const struct summary *s,
                        struct err *e)
{
    struct loss loss = { 0 };
    if (!l->recovered) {
        struct events ev;
        struct events_opts opts = { .run_id = s->run_id, .loss = &loss, .seq = l->seq };
        int r = events_init(&ev, d, &opts, e);
        if (r < 0) {
            return r;
        }
        jsonl_not_before(&ev.out, l->last_wall);
        events_recovered(&ev, &(struct event_recovery) {
                                  .reason = s->reason,
                                  .phase = l->state.phase[0] != '\0' ? l->state.phase : NULL,
                                  .pid = l->state.owner.pid,
                                  .torn_bytes = l->damage.torn_bytes,
                                  .dropped_lines = l->damage.dropped_lines,
                              });
        events_done(&ev);
    }
    if (l->transcript_open) {
        struct jsonl out;
        int r = jsonl_init(&out, d, "transcript.jsonl", &loss, e);
        if (r < 0) {
            return r;
        }
        jsonl_not_before(&out, l->last_entry);
        transcript_write_stop(&out, l->arena, &l->count, str_of(l->prompt_name),
                              str_of(l->adapter));
        jsonl_done(&out);
    }
    return loss.times > 0 ? ERR(e, loss.first.code, "%s", loss.first.msg) : 0;
}

static int close_record(struct leftovers *l, const struct rundir *d, struct recover_report *ret,
                        struct err *e)
{
    static const char *const places[] = {
        ".", "logs", "evidence", "evidence/nested", "session", "savepoints", "work",
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        sweep(d, places[i]);
    }
    int r = rundir_complete(d, e);
    if (r == 0) {
        r = leftovers_gather(l, d, e);
    }
    r = r < 0 ? r : append_open_calls(l, d, e);
    if (r < 0) {
        return r;
    }
    set_damaged_aside(d);
    if (l->port != NULL) {
        l->port->complete(l->port->arg, d);
    }
    (void)unlinkat(d->dir_fd, OPEN_CALLS_NAME, 0);
    struct summary s;
    summarise(l, d, &s);
    r = append_lines(l, d, &s, e);
    if (r == 0) {
        r = write_views(l, d, &s, e);
    }
    if (r < 0) {
        return r;
    }
    ret->reason = s.reason;
    ret->torn_bytes = l->damage.torn_bytes;
    ret->dropped_lines = l->damage.dropped_lines;
    (void)snprintf(ret->run_id, sizeof ret->run_id, "%s", s.run_id);
    struct state state = l->state;
    (void)snprintf(state.run_id, sizeof state.run_id, "%s", s.run_id);
    state.adapter = s.adapter;
    state.reason = s.reason;
    bool decided = manifest_reason(l->manifest) != REASON_NONE;
    int64_t told = decided ? json_int(json_get(l->manifest, "exit_code"), -1) : -1;
    state.exit_code = told >= 0 && told <= 255 ? (int)told : summary_contract_exit(&s);
    state.started_wall = s.started_wall;
    state.heartbeat_wall = s.ended_wall;
    state.ended_wall = s.ended_wall;
    return state_write(&state, d, e);
}

static bool is_record(const struct rundir *d, const struct state *state)
{
    return state->run_id[0] != '\0' || has_empty_events(d) || has_our_names(d);
}

int recover_run(const char *path, struct recover_report *ret, struct err *e)
{
    return recover_run_with(path, NULL, ret, e);
}

int recover_run_with(const char *path, const struct recover_port *port, struct recover_report *ret,
                     struct err *e)
{
    *ret = (struct recover_report) { .result = RECOVER_NO_RECORD };
    CLEANUP(rundir) struct rundir d;
    int opened = rundir_open(&d, path, e);
    if (opened == -ERR_INPUT) {
        return 0;
    }
    if (opened < 0 && opened != -ERR_EXISTS) {
        return opened;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct leftovers l = { .arena = a, .port = port };
    if (state_read(&l.state, &d, a, NULL) < 0) {
        l.state = (struct state) { 0 };
    }
    memcpy(ret->phase, l.state.phase, sizeof ret->phase);
    ret->pid = l.state.owner.pid;
    if (opened == -ERR_EXISTS) {
        ret->result = RECOVER_ALIVE;
        return 0;
    }
    if (is_finished(&d, &l.state)) {
        ret->result = RECOVER_FINISHED;
        return 0;
    }
    if (!is_record(&d, &l.state)) {
        return 0;
    }
    /* With the lock in our hands, our own pid can only be a run that this process gave up. */
    if (l.state.owner.pid != getpid() && owner_is_alive(&l.state.owner)) {
        ret->result = RECOVER_ALIVE;
        return 0;
    }
    int r = close_record(&l, &d, ret, e);
    if (r < 0) {
        (void)err_wrap(e, "recover '%s'", path);
        return r;
    }
    ret->result = RECOVER_CLOSED;
    return 0;
}
