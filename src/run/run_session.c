/* SPDX-License-Identifier: MIT
 *
 * Sessions of runs: declared by the task, restored from another run, kept in the record.
 */
#include "run/run_session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/redact.h"
#include "record/state_store.h"
#include "run/run_priv.h"
#include "workspace/savepoint.h"

#define SNAPSHOT_MAX ((size_t)64 << 20)
#define JOURNAL_MAX  ((size_t)512 << 20) /* that recovery reads */

struct run_session {
    int journal_fd;     /* -1: there are no files */
    struct err trouble; /* the first; code ERR_OK: none */
    bool saved;
};

/* What happened; rolled back by nobody. */
static const enum event_kind history[] = { EVENT_PROMPT_RENDERED, EVENT_RENDERED_TOOLS,
                                           EVENT_TOOL_INVOKED, EVENT_PROMPT_EXECUTED };

static bool wants_files(const struct settings *s)
{
    return json_len(s->tools) + json_len(s->policies) + json_len(s->feedback) +
               json_len(s->completion) + json_len(s->session) >
           0;
}

/* --- files --- */

/* By its descriptor: the agent may have put a link to something else under our name. */
static int open_dir(int dir_fd, struct err *e)
{
    if (mkdirat(dir_fd, "session", 0700) != 0 && errno != EEXIST) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create 'session'");
    }
    int fd = openat(dir_fd, "session", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "open 'session'") : fd;
}

static int write_snapshot(int dir_fd, const char *name, const struct state_store *s,
                          const struct redactor *r, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf line = BUF_INIT(SNAPSHOT_MAX);
    CLEANUP(fd) int dir = open_dir(dir_fd, e);
    char now[CLOCK_ISO_LEN];
    if (dir < 0) {
        return dir;
    }
    struct json *saved = store_save(s, a, str_of(clock_iso(clock_wall(), now)), true);
    int rc = json_write(redact_json(r, a, saved), JSON_COMPACT, &line, e);
    rc = rc < 0 ? rc : buf_append_c(&line, '\n', e);
    return rc < 0 ? rc : file_write_atomic(dir, name, buf_str(&line), 0600, e);
}

static int open_journal(int dir_fd, struct err *e)
{
    CLEANUP(fd) int dir = open_dir(dir_fd, e);
    if (dir < 0) {
        return dir;
    }
    int fd = openat(dir, "journal.jsonl", O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    return fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "create 'session/journal.jsonl'") : fd;
}

/* --- what the task declares --- */

static int refuse(struct err *e, enum err_code code, const char *what)
{
    if (e != NULL) {
        (void)err_wrap(e, "%s", what);
        e->code = code;
    }
    return -(int)code;
}

static int declare_history(struct state_store *s, struct err *e)
{
    int r = store_declare(s, STR("Feedback"), SLICE_LOG, e);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(history); i++) {
        struct str name = str_of(event_kind_info(history[i])->name);
        struct store_rule rule = { .event = name, .slice = name, .reducer = REDUCE_APPEND_ALL };
        r = store_declare(s, name, SLICE_LOG, e);
        r = r < 0 ? r : store_reduce(s, &rule, e);
    }
    return r;
}

static int declare_slices(struct state_store *s, const struct json *list, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        bool log = str_eqc(json_str(json_get(item, "policy"), STR_EMPTY), "log");
        r = store_declare(s, json_str(json_get(item, "name"), STR_EMPTY),
                          log ? SLICE_LOG : SLICE_STATE, e);
    }
    return r;
}

static int declare_rules(struct state_store *s, const struct json *list, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        struct store_rule rule = {
            .event = json_str(json_get(item, "event"), STR_EMPTY),
            .slice = json_str(json_get(item, "slice"), STR_EMPTY),
            .key = json_str(json_get(item, "key"), STR_EMPTY),
        };
        struct str reducer = json_str(json_get(item, "reducer"), STR_EMPTY);
        r = store_reducer_parse(reducer, &rule.reducer)
                ? store_reduce(s, &rule, e)
                : ERR(e, ERR_CONFIG, "no reducer '%.*s'", STR_ARG(reducer));
    }
    return r;
}

static int declare(struct state_store *s, const struct json *session, struct err *e)
{
    int r = declare_history(s, e);
    r = r < 0 ? r : declare_slices(s, json_get(session, "slices"), e);
    r = r < 0 ? r : declare_rules(s, json_get(session, "reducers"), e);
    return r < 0 ? refuse(e, ERR_CONFIG, "session") : 0;
}

/* --- a snapshot of another run --- */

/* History of that run is not ours, and memory of policies is known by its name alone. */
static int keep_slice(struct state_store *s, const struct json *saved, struct str name, bool *ret,
                      struct err *e)
{
    enum slice_policy policy;
    if (str_starts(name, STR("policy:"))) {
        *ret = true;
        return store_declare(s, name, SLICE_STATE, e);
    }
    if (store_policy(s, name, &policy)) {
        *ret = policy == SLICE_STATE;
        return 0;
    }
    struct str told = json_str(json_find(json_get(saved, "policies"), name), STR_EMPTY);
    *ret = !str_eqc(told, "log");
    return 0;
}

static int load(struct state_store *s, struct arena *a, struct json *saved, struct err *e)
{
    const struct json *slices = json_get(saved, "slices");
    struct json *kept = json_array(a);
    for (size_t i = 0; i < json_len(slices); i++) {
        struct json *slice = json_item(slices, i);
        bool keep = true;
        int r = keep_slice(s, saved, json_str(json_get(slice, "slice_type"), STR_EMPTY), &keep, e);
        if (r < 0) {
            return r;
        }
        if (keep) {
            json_push(a, kept, slice);
        }
    }
    if (json_is(slices, JSON_ARRAY)) {
        json_setc(a, saved, "slices", kept);
    }
    return store_load(s, saved, e);
}

static int restore(struct state_store *s, const char *path, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(SNAPSHOT_MAX);
    struct json *saved;
    int r = file_read(AT_FDCWD, path, SNAPSHOT_MAX, &text, e);
    if (r < 0) {
        return refuse(e, r == -ERR_LIMIT ? ERR_CONFIG : ERR_INPUT, "session.restore");
    }
    r = json_parse(a, str_trim(buf_str(&text)), NULL, &saved, e);
    r = r < 0 ? r : load(s, a, saved, e);
    if (r < 0) {
        (void)err_wrap(e, "'%s'", path);
        return refuse(e, ERR_CONFIG, "session.restore");
    }
    return 0;
}

/* --- what happens --- */

/* Dispatches only what a reducer of the task asks for: anything else would become a slice. */
static int dispatch_asked(struct run *run, struct str event, const struct json *value,
                          struct err *e)
{
    const struct json *rules = json_get(run->plan->settings.session, "reducers");
    for (size_t i = 0; value != NULL && i < json_len(rules); i++) {
        if (str_eq(json_str(json_get(json_item(rules, i), "event"), STR_EMPTY), event)) {
            return store_dispatch(run->state, event, value, e);
        }
    }
    return 0;
}

static int dispatch_content(struct run *run, enum event_kind kind, const struct json *context,
                            struct err *e)
{
    const struct json *result = json_get(context, "result");
    if (kind == EVENT_TOOL_INVOKED && json_bool(json_get(context, "success"), false)) {
        struct str name = json_str(json_get(context, "name"), STR_EMPTY);
        const struct json *value = json_get(result, "value");
        return dispatch_asked(run, name, json_is(value, JSON_NULL) ? NULL : value, e);
    }
    if (kind == EVENT_PROMPT_EXECUTED) {
        const struct json *output = json_get(result, "output");
        return dispatch_asked(run, STR("output"), json_is(output, JSON_NULL) ? NULL : output, e);
    }
    return 0;
}

/* The bridge remembers its calls itself, in the same commit as what they changed, and tells them
 * right after. */
static bool is_remembered(const struct run *run, enum event_kind kind, const struct json *context)
{
    const struct json *id = json_get(context, "call_id");
    const struct json *last =
        kind != EVENT_TOOL_INVOKED ? NULL : store_latest(run->state, NULL, STR("ToolInvoked"));
    return last != NULL && json_is(id, JSON_STRING) && json_equal(json_get(last, "call_id"), id);
}

/* Called from inside of an event: what goes wrong is told later. */
static void on_event(void *arg, enum event_kind kind, const struct json *context)
{
    struct run *run = arg;
    for (size_t i = 0; i < ARRAY_LEN(history); i++) {
        if (history[i] != kind) {
            continue;
        }
        struct err e = { .code = ERR_OK };
        struct str name = str_of(event_kind_info(kind)->name);
        int r =
            is_remembered(run, kind, context) ? 0 : store_dispatch(run->state, name, context, &e);
        r = r < 0 ? r : dispatch_content(run, kind, context, &e);
        if (r < 0 && run->kept->trouble.code == ERR_OK) {
            run->kept->trouble = e;
        }
    }
}

/* --- life --- */

static int open_files(struct run *run, struct run_session *k, struct err *e)
{
    k->journal_fd = open_journal(run->record.dir.dir_fd, e);
    return k->journal_fd < 0 ? k->journal_fd : 0;
}

int run_session_open(struct run *run, struct err *e)
{
    if (run->state != NULL) {
        return 0;
    }
    const struct settings *s = &run->plan->settings;
    char now[CLOCK_ISO_LEN];
    struct run_session *k = run->kept = ARENA_NEW(run->arena, struct run_session);
    *k = (struct run_session) { .journal_fd = -1 };
    bool files = wants_files(s);
    int r = files ? open_files(run, k, e) : 0;
    run->state =
        store_new(&(struct store_opts) { .id = str_of(run->record.state.run_id),
                                         .created_at = str_of(clock_iso(clock_wall(), now)),
                                         .journal_fd = k->journal_fd,
                                         .redactor = run->redactor });
    const char *from = json_cstring(json_get(s->session, "restore"), NULL);
    r = r < 0 ? r : declare(run->state, s->session, e);
    r = r < 0 || from == NULL ? r : restore(run->state, from, e);
    if (r == 0 && files) {
        r = write_snapshot(run->record.dir.dir_fd, "before.jsonl", run->state, run->redactor, e);
        events_watch(&run->record.events, on_event, run);
    }
    return r;
}

void run_session_save(struct run *run)
{
    struct run_session *k = run->kept;
    if (k == NULL || k->journal_fd < 0 || k->saved) {
        return;
    }
    struct err e;
    k->saved = true;
    events_watch(&run->record.events, NULL, NULL);
    if (k->trouble.code != ERR_OK) {
        run_warn(run, "the session lacks a part of its history: %s", k->trouble.msg);
    }
    if (write_snapshot(run->record.dir.dir_fd, "after.jsonl", run->state, run->redactor, &e) < 0) {
        run_warn(run, "the session could not be saved: %s", e.msg);
    }
}

int64_t run_session_journal(const struct run *run)
{
    struct stat st;
    bool has = run->kept != NULL && run->kept->journal_fd >= 0;
    return has && fstat(run->kept->journal_fd, &st) == 0 ? st.st_size : 0;
}

void run_session_close(struct run *run)
{
    if (run->kept != NULL) {
        events_watch(&run->record.events, NULL, NULL);
        cleanup_fd(&run->kept->journal_fd);
    }
    run->state = store_free(run->state);
    run->kept = NULL;
}

/* --- of a dead run --- */

/* Id, time and policies stand in the snapshot that the run began with. */
static struct state_store *session_of(struct arena *a, const struct rundir *d)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SNAPSHOT_MAX);
    struct json *before = NULL;
    if (rundir_read(d, "session/before.jsonl", SNAPSHOT_MAX, &text, NULL) < 0 ||
        json_parse(a, str_trim(buf_str(&text)), NULL, &before, NULL) < 0) {
        before = NULL;
    }
    struct str id = json_str(json_get(json_get(before, "tags"), "session_id"), STR_EMPTY);
    struct state_store *s = store_new(
        &(struct store_opts) { .id = id,
                               .created_at = json_str(json_get(before, "created_at"), STR_EMPTY),
                               .journal_fd = -1 });
    (void)!declare_history(s, NULL);
    const struct json *policies = json_get(before, "policies");
    for (size_t i = 0; i < json_len(policies) && json_is(policies, JSON_OBJECT); i++) {
        const struct json_member *m = &policies->object.members[i];
        bool log = str_eqc(json_str(m->value, STR_EMPTY), "log");
        (void)!store_declare(s, m->key, log ? SLICE_LOG : SLICE_STATE, NULL);
    }
    return s;
}

/* The writer was killed in the middle of a line, which never counted. */
static void cut_torn_line(int dir, struct str journal)
{
    const char *end = journal.len == 0 ? NULL : memrchr(journal.ptr, '\n', journal.len);
    size_t whole = end == NULL ? 0 : (size_t)(end - journal.ptr) + 1;
    if (whole < journal.len) {
        CLEANUP(fd) int fd = openat(dir, "journal.jsonl", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        int done = fd < 0 ? 0 : ftruncate(fd, (off_t)whole);
        (void)done; /* a reader passes over it just as well */
    }
}

/* A turn that was being taken back takes what it remembered with it, whether the journal says so
 * already or not. */
static int replay(struct state_store *s, const struct rundir *d, struct arena *a,
                  struct str journal)
{
    enum { NOTE_MAX = 4096 };
    const struct json *note = rundir_read_object(d, "work/savepoint/" SAVEPOINT_NOTE, NOTE_MAX, a);
    int64_t begin = json_int(json_get(note, "journal"), -1);
    if (begin < 0 || (size_t)begin > journal.len) {
        return store_replay(s, journal, NULL);
    }
    int r = store_replay(s, str_slice(journal, 0, (size_t)begin), NULL);
    struct store_moment before = store_snapshot(s);
    r = r < 0 ? r : store_replay(s, str_slice(journal, (size_t)begin, journal.len), NULL);
    return r < 0 ? r : store_restore(s, before, true, NULL);
}

void run_session_recover(const struct rundir *d)
{
    CLEANUP(fd)
    int dir = openat(d->dir_fd, "session", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || file_exists(dir, "after.jsonl")) {
        return;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(JOURNAL_MAX);
    struct state_store *s = session_of(a, d);
    bool whole = rundir_read(d, "session/journal.jsonl", JOURNAL_MAX, &text, NULL) == 0 &&
                 replay(s, d, a, buf_str(&text)) == 0;
    (void)!write_snapshot(d->dir_fd, "after.jsonl", s, NULL, NULL);
    if (whole) {
        cut_torn_line(dir, buf_str(&text));
    } else {
        rundir_move_aside(d, "session/journal.jsonl");
    }
    (void)store_free(s);
}
