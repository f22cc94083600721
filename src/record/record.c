/* SPDX-License-Identifier: MIT
 *
 * Opening and closing the record in the right order; see record.h.
 */
#include "record/record.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "record/record_file.h"
#include "record/redact.h"

static int open_writers(struct record *rec, const struct record_opts *opts, struct err *e)
{
    const struct redactor *r = opts->redactor;
    struct events_opts ev = {
        .run_id = rec->state.run_id,
        .redactor = r,
        .loss = &rec->loss,
        .run_context = opts->run_context,
    };
    int result = logfile_init(&rec->out, &rec->dir, "stdout.log", r, &rec->loss, e);
    if (result == 0) {
        result = logfile_init(&rec->err, &rec->dir, "stderr.log", r, &rec->loss, e);
    }
    if (result == 0) {
        result = logfile_init(&rec->agent, &rec->dir, "agent.log", r, &rec->loss, e);
    }
    if (result == 0) {
        result = events_init(&rec->events, &rec->dir, &ev, e);
    }
    if (result == 0) {
        result = transcript_init(&rec->transcript, &rec->dir, r, &rec->agent, &rec->loss, e);
    }
    return result;
}

static void write_state(struct record *rec)
{
    struct err e;
    rec->state.heartbeat_wall = clock_wall();
    if (state_write(&rec->state, &rec->dir, &e) < 0) {
        loss_note(&rec->loss, "state.json", &e, 0, 0);
    }
}

int record_open(struct record *rec, const struct record_opts *opts, struct err *e)
{
    *rec = (struct record) {
        .dir = RUNDIR_INIT,
        .out.fd = -1,
        .err.fd = -1,
        .agent.fd = -1,
        .events.out.fd = -1,
        .transcript.out.fd = -1,
        .life_fd = -1,
        .redactor = opts->redactor,
        .started = clock_now(),
    };
    int r = rundir_create(&rec->dir, opts->path,
                          &(struct rundir_opts) { .force = opts->force, .keep = opts->keep }, e);
    if (r < 0) {
        return r;
    }
    rec->arena = arena_new();
    if (opts->run_id != NULL) {
        (void)snprintf(rec->state.run_id, sizeof rec->state.run_id, "%s", opts->run_id);
    } else {
        (void)id_new(rec->state.run_id);
    }
    rec->state.adapter =
        arena_dup(rec->arena, redact_str(rec->redactor, rec->arena, str_of(opts->adapter)));
    (void)snprintf(rec->state.phase, sizeof rec->state.phase, "created");
    owner_self(&rec->state.owner);
    rec->state.started_wall = clock_wall();
    rec->state.heartbeat_wall = rec->state.started_wall;
    rec->phase_started = rec->started;
    r = state_write(&rec->state, &rec->dir, e);
    if (r == 0) {
        r = open_writers(rec, opts, e);
    }
    if (r < 0) {
        record_done(rec);
        return err_wrap(e, "output directory '%s'", opts->path);
    }
    events_started(&rec->events, opts->adapter, rec->dir.path);
    return 0;
}

void record_done(struct record *rec)
{
    if (rec->arena == NULL) {
        return; /* never opened, or done before: descriptors of a zeroed struct are not ours */
    }
    transcript_done(&rec->transcript);
    events_done(&rec->events);
    logfile_done(&rec->agent);
    logfile_done(&rec->err);
    logfile_done(&rec->out);
    cleanup_fd(&rec->life_fd);
    rundir_done(&rec->dir);
    rec->arena = arena_free(rec->arena);
}

/* A phase that is entered twice (execute after a review) adds up. */
static void add_phase_time(struct record *rec, const char *phase, nsec took)
{
    for (size_t i = 0; i < rec->phase_count; i++) {
        if (strcmp(rec->phases[i].name, phase) == 0) {
            rec->phases[i].took += took;
            return;
        }
    }
    assert(rec->phase_count < RECORD_PHASES_MAX);
    rec->phases[rec->phase_count++] = (struct summary_phase) { .name = phase, .took = took };
}

void record_brief_phase(struct record *rec, const char *phase)
{
    nsec now = clock_now();
    nsec took = now - rec->phase_started;
    bool first = strcmp(rec->state.phase, "created") == 0;
    if (!first) {
        char *before = arena_dup(rec->arena, str_of(rec->state.phase));
        add_phase_time(rec, before, took);
        events_phase(&rec->events, before, phase, took);
    } else {
        events_phase(&rec->events, NULL, phase, 0);
    }
    rec->phase_started = now;
    (void)snprintf(rec->state.phase, sizeof rec->state.phase, "%s", phase);
}

void record_phase(struct record *rec, const char *phase)
{
    record_brief_phase(rec, phase);
    write_state(rec);
}

void record_beat(struct record *rec)
{
    write_state(rec);
}

/* Whole from the beginning: who looks finds a time or no file. Until then it has no name, so that
 * nothing is left of it where the agent locks the directory at this moment. */
static int first_beat(const struct record *rec, struct str now)
{
    char self[32];
    int dir = rec->dir.dir_fd;
    int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (fd >= 0 && file_write_all(fd, now, NULL) == 0 &&
        linkat(AT_FDCWD, self, dir, "heartbeat", AT_SYMLINK_FOLLOW) == 0) {
        return fd;
    }
    cleanup_fd(&fd);
    /* No such files here, or no /proc: then somebody may find it empty for a moment. */
    fd = openat(dir, "heartbeat", O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    ssize_t n = fd < 0 ? 0 : pwrite(fd, now.ptr, now.len, 0);
    (void)n;
    return fd;
}

void record_life(struct record *rec)
{
    char now[CLOCK_ISO_LEN + 1];
    size_t len = strlen(clock_iso(clock_wall(), now));
    now[len++] = '\n';
    if (rec->life_fd == -1) {
        int fd = first_beat(rec, str_n(now, len));
        rec->life_fd = fd < 0 ? -2 : fd;
        return;
    }
    /* Always as long as before, so nobody reads half a time. Nothing depends on it. */
    ssize_t n = rec->life_fd < 0 ? 0 : pwrite(rec->life_fd, now, len, 0);
    (void)n;
}

int record_write_json(struct record *rec, const char *name, struct json *v, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    return rundir_write_json(&rec->dir, name, redact_json(rec->redactor, a, v), e);
}

int record_write_text(struct record *rec, const char *name, struct str text, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    return rundir_write_text(&rec->dir, name, redact_str(rec->redactor, a, text), e);
}

int record_announce(struct record *rec, const struct summary *s, struct err *e)
{
    assert(s->reason == REASON_NONE);
    CLEANUP(arena) struct arena *a = arena_new();
    struct summary copy = *s;
    copy.run_id = rec->state.run_id;
    copy.started_wall = rec->state.started_wall;
    copy.duration = clock_now() - rec->started;
    return rundir_write_json(&rec->dir, "manifest.json",
                             manifest_json(&copy, &rec->dir, rec->redactor, a), e);
}

static void add_loss_warning(struct record *rec, struct summary *s)
{
    if (rec->loss.times == 0) {
        return;
    }
    size_t count = 0;
    while (s->warnings != NULL && s->warnings[count] != NULL) {
        count++;
    }
    const char **list = arena_array(rec->arena, count + 2, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        list[i] = s->warnings[i];
    }
    list[count] =
        arena_printf(rec->arena, "the record is not complete: %s (%llu bytes, %llu lines lost)",
                     rec->loss.first.msg, (unsigned long long)rec->loss.bytes,
                     (unsigned long long)rec->loss.lines);
    s->warnings = list;
}

static void complete_summary(struct record *rec, struct summary *s)
{
    nsec now = clock_now();
    add_phase_time(rec, arena_dup(rec->arena, str_of(rec->state.phase)), now - rec->phase_started);
    s->run_id = rec->state.run_id;
    s->adapter = rec->state.adapter;
    s->started_wall = rec->state.started_wall;
    s->duration = now - rec->started;
    /* From the monotonic clock, so that ended_at - started_at is the duration. */
    s->ended_wall = s->started_wall + s->duration;
    s->phases = rec->phases;
    s->phase_count = rec->phase_count;
    s->bytes.out = (int64_t)rec->out.received;
    s->bytes.err = (int64_t)rec->err.received;
    s->bytes.lost = (int64_t)rec->loss.bytes;
    s->redactions = (int64_t)(rec->out.stream.removed + rec->err.stream.removed);
    add_loss_warning(rec, s);
}

static int write_view(struct record *rec, const struct record_file *f, const struct summary *s,
                      struct err *e)
{
    return rundir_write_json(&rec->dir, f->path, f->view(s, &rec->dir, rec->redactor, rec->arena),
                             e);
}

/* Where there is no room for the text, the verdict may still fit. */
static int write_view_or_shorten(struct record *rec, const struct record_file *f, struct summary *s,
                                 struct err *e)
{
    int r = write_view(rec, f, s, e);
    if (r < 0 && (f->flags & RECORD_SHORTENS) != 0 && s->text.len > 0) {
        s->text = STR_EMPTY;
        s->text_cut = true;
        r = write_view(rec, f, s, e);
    }
    return r;
}

/* An agent may have written its own. A summary that does not fit on the disk is no reason to fail.
 * */
static void write_summary(struct record *rec, const struct summary *s)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (!file_exists(rec->dir.dir_fd, "summary.md")) {
        summary_markdown(s, rec->redactor, rec->arena, &text);
        (void)!rundir_write_text(&rec->dir, "summary.md", buf_str(&text), NULL);
    }
}

static int write_views(struct record *rec, struct summary *s, struct err *e)
{
    write_summary(rec, s);
    int first = 0; /* error; the other files are written anyway */
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        struct err later;
        int r = f->recovery == RECORD_REWRITE
                    ? write_view_or_shorten(rec, f, s, first < 0 ? &later : e)
                    : 0;
        first = first < 0 ? first : r;
    }
    return first;
}

/* Who reads "success" must find the record; a run that failed anyway keeps its own reason. */
static bool blame_record(struct record *rec, struct summary *s, const struct err *why)
{
    if (s->reason != REASON_SUCCESS && s->reason != REASON_NEEDS_HUMAN) {
        return false;
    }
    s->reason = REASON_CANNOT_WRITE_OUTPUT;
    s->error = arena_printf(rec->arena, "%s", why->msg);
    return true;
}

/* A log whose name is gone exists only as long as we hold it open. */
static int check_names(const struct record *rec, const char *const *dirs, struct err *e)
{
    const struct {
        const char *name;
        int fd;
    } files[] = {
        { "stdout.log", rec->out.fd },
        { "stderr.log", rec->err.fd },
        { "agent.log", rec->agent.fd },
        { "events.jsonl", rec->events.out.fd },
        { "transcript.jsonl", rec->transcript.out.fd },
    };
    const char *missing = NULL;
    for (size_t i = 0; missing == NULL && i < ARRAY_LEN(files); i++) {
        struct stat st;
        missing = fstat(files[i].fd, &st) == 0 && st.st_nlink == 0 ? files[i].name : NULL;
    }
    for (; missing == NULL && dirs != NULL && *dirs != NULL; dirs++) {
        missing = file_is_dir(rec->dir.dir_fd, *dirs) ? NULL : *dirs;
    }
    return missing == NULL
               ? 0
               : ERR(e, ERR_OUTPUT,
                     "the run directory '%s' is not complete: '%s' was removed during the run",
                     rec->dir.path, missing);
}

int record_reclaim(struct record *rec, const char *const *dirs)
{
    int r = rundir_reclaim(&rec->dir, &rec->damage);
    return r < 0 ? r : check_names(rec, dirs, &rec->damage);
}

int record_finish(struct record *rec, struct summary *s, struct err *e)
{
    assert(s->reason != REASON_NONE);
    logfile_flush(&rec->out);
    logfile_flush(&rec->err);
    transcript_stop(&rec->transcript);
    rundir_release_reserve(&rec->dir);
    complete_summary(rec, s);
    if (rec->damage.code != ERR_OK) {
        (void)blame_record(rec, s, &rec->damage);
    }
    events_finished(&rec->events, s->reason, summary_contract_exit(s), s->duration, s->error);

    int r = write_views(rec, s, e);
    if (r < 0 && blame_record(rec, s, e)) {
        struct err again;
        (void)!write_views(rec, s, &again);
    }
    rec->state.reason = s->reason;
    rec->state.exit_code = summary_contract_exit(s);
    rec->state.ended_wall = s->ended_wall;
    rec->state.heartbeat_wall = s->ended_wall;
    struct err later;
    int last = state_write(&rec->state, &rec->dir, r < 0 ? &later : e);
    if (r == 0 && last == 0 && rec->damage.code != ERR_OK) {
        *e = rec->damage;
        return -(int)e->code;
    }
    return r < 0 ? r : last;
}
