/* SPDX-License-Identifier: MIT
 *
 * Files of a harness' conversation: from the home into the record, and from a record into the next
 * home. Both directions are one walk along the profile's patterns; every step is taken by
 * descriptor, because the agent could write to the home.
 */
#include "run/harness_session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/expand.h"
#include "base/file.h"
#include "record/redact.h"
#include "run/run_priv.h"
#include "run/shared_home.h"

#define KEPT_DIR  "session/harness"
#define KEPT_NOTE "session/harness.json" /* whose conversation, which, and where it was had */
/* A conversation is text; what is larger is something else. */
#define FILES_MAX 512
#define BYTES_MAX ((size_t)64 << 20)
#define NAME_LONG 255

struct walk {
    struct run *run;
    int to;          /* root of the copies; -1: none, lines are counted */
    bool clean;      /* they go into the record */
    bool replace;    /* they go to where they came from */
    size_t n, bytes; /* so far */
    struct str words;
    size_t found;
};

/* --- one file --- */

static bool is_text(struct str s)
{
    return !str_has_nul(s) && str_is_utf8(s);
}

/* False: it cannot be kept without what must not be kept. */
static bool make_clean(struct walk *w, struct arena *a, const char *path, struct str *text)
{
    struct str clean = redact_str(w->run->redactor, a, *text);
    if (clean.ptr == text->ptr) {
        return true;
    }
    if (!is_text(*text)) {
        run_warn(w->run, "'%s' of the conversation holds a secret and is not kept", path);
        return false;
    }
    *text = clean;
    return true;
}

static int write_copy(const struct walk *w, const char *path, struct str text, struct err *e)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int r = 0;
    if (slash != NULL) {
        (void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
        r = file_mkdirs(w->to, dir, 0700, e);
    }
    return r < 0 ? r : file_write_atomic(w->to, path, text, 0600, e);
}

/* Some harnesses begin a file of the same name when they go on, and with it lose the old one. */
static const char *new_name(const struct walk *w, struct arena *a, const char *path)
{
    const struct profile *p = w->run->plan->settings.profile;
    struct str base = path_base(str_of(path));
    if (w->clean || w->replace || p->session_from == NULL ||
        !str_starts(base, str_of(p->session_from)) || str_starts(base, str_of(p->session_to))) {
        return path;
    }
    size_t dir = strlen(path) - base.len;
    return arena_printf(a, "%.*s%s%s-%s", (int)dir, path, p->session_to,
                        w->run->record.state.run_id, base.ptr + strlen(p->session_from));
}

static bool holds(struct str line, struct str words)
{
    return words.len == 0 || memmem(line.ptr, line.len, words.ptr, words.len) != NULL;
}

static size_t count_lines(const struct walk *w, struct str text)
{
    struct str mark = str_of(w->run->plan->settings.profile->session_written_as);
    size_t n = 0;
    while (text.len > 0) {
        struct str line = str_split(&text, '\n');
        n += holds(line, w->words) && holds(line, mark) ? 1 : 0;
    }
    return n;
}

static int take_file(struct walk *w, int from, const char *name, const char *path, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf bytes = BUF_INIT(BYTES_MAX);
    CLEANUP(fd) int fd = file_open_below(from, str_of(name));
    if (fd < 0) {
        return 0; /* a link, or gone */
    }
    if (w->n == FILES_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d files", FILES_MAX);
    }
    int r = file_read_fd(fd, path, BYTES_MAX - w->bytes, &bytes, e);
    struct str text = buf_str(&bytes);
    if (r == 0 && w->to < 0) {
        w->found += count_lines(w, text);
        return 0;
    }
    if (r < 0 || (w->clean && !make_clean(w, a, path, &text))) {
        return r;
    }
    w->n++;
    w->bytes += bytes.len;
    const char *target = new_name(w, a, path);
    bool there = !w->clean && !w->replace && file_exists(w->to, target);
    return there ? 0 : write_copy(w, target, text, e);
}

/* --- the walk --- */

static int visit(struct walk *w, int dir, struct str pattern, const char *path, struct err *e);

static int step(struct walk *w, int dir, const char *name, struct str rest, const char *path,
                struct err *e)
{
    char inner[PATH_MAX];
    int n = snprintf(inner, sizeof inner, "%s%s%s", path, path[0] == '\0' ? "" : "/", name);
    if (n < 0 || (size_t)n >= sizeof inner) {
        return 0;
    }
    if (rest.ptr == NULL) {
        return take_file(w, dir, name, inner, e);
    }
    CLEANUP(fd) int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return below < 0 ? 0 : visit(w, below, rest, inner, e);
}

static int list(struct walk *w, int dir, const char *pattern, struct str rest, const char *path,
                struct err *e)
{
    int r = 0;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        (void)(fd < 0 ? 0 : close(fd));
        return ERR_SYS(e, "list '%s'", path);
    }
    for (struct dirent *x = readdir(d); r == 0 && x != NULL; x = readdir(d)) {
        if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0 &&
            fnmatch(pattern, x->d_name, 0) == 0) {
            r = step(w, dir, x->d_name, rest, path, e);
        }
    }
    (void)closedir(d);
    return r;
}

/* One part of the pattern; as deep as the pattern has parts. */
static int visit(struct walk *w, int dir, struct str pattern, const char *path, struct err *e)
{
    char part[NAME_LONG + 1];
    struct str rest = pattern;
    struct str head = str_split(&rest, '/');
    if (head.len == 0 || head.len > NAME_LONG) {
        return 0;
    }
    memcpy(part, head.ptr, head.len);
    part[head.len] = '\0';
    return strpbrk(part, "*?[") == NULL ? step(w, dir, part, rest, path, e)
                                        : list(w, dir, part, rest, path, e);
}

static int visit_all(struct walk *w, int from, struct err *e)
{
    const struct json *patterns = w->run->plan->settings.profile->session_files;
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(patterns); i++) {
        r = visit(w, from, json_str(json_item(patterns, i), STR_EMPTY), "", e);
    }
    return r;
}

/* Of a shared home, what the harness changed. */
static int open_home(const struct run *run)
{
    const char *name = run->confine.policy.home_layer == NULL ? "home" : SHARED_HOME_UPPER;
    return openat(run->record.dir.dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

size_t harness_session_count(struct run *run, struct str words)
{
    struct walk w = { .run = run, .to = -1, .words = words };
    CLEANUP(fd) int home = open_home(run);
    if (home >= 0) {
        (void)!visit_all(&w, home, NULL);
    }
    return w.found;
}

/* --- keep --- */

static int write_note(struct run *run, struct err *e)
{
    struct arena *a = run->arena;
    struct json *note = json_object(a);
    json_setc(a, note, "adapter", json_cstr(a, run->plan->settings.profile->name));
    json_setc(a, note, "session_id", json_string(a, run->outcome.report.session_id));
    json_setc(a, note, "workspace", json_cstr(a, run->paths.view));
    return record_write_json(&run->record, KEPT_NOTE, note, e);
}

static int copy_to_record(struct run *run, int home, struct err *e)
{
    int record = run->record.dir.dir_fd;
    struct walk w = { .run = run, .clean = true };
    w.to = openat(record, KEPT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = w.to < 0 ? ERR_SYS(e, "open '" KEPT_DIR "'") : visit_all(&w, home, e);
    cleanup_fd(&w.to);
    return r < 0 || w.n == 0 ? r : write_note(run, e);
}

void harness_session_keep(struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    struct err e = { 0 };
    if (run->paths.home == NULL || p == NULL || json_len(p->session_files) == 0 ||
        run->plan->settings.home != HOME_PRIVATE || run->outcome.report.session_id.len == 0) {
        return;
    }
    int record = run->record.dir.dir_fd;
    CLEANUP(fd) int home = open_home(run);
    if (home < 0) {
        return;
    }
    /* What stands there by that name is not ours: the agent may have put it there. */
    int r = file_remove_tree(record, KEPT_DIR, &e);
    r = r < 0 ? r : file_mkdirs(record, KEPT_DIR, 0700, &e);
    r = r < 0 ? r : copy_to_record(run, home, &e);
    if (r < 0) {
        run_warn(run, "the conversation cannot be continued: %s", e.msg);
    }
}

int harness_session_write_back(struct run *run, int layer, int home, struct err *e)
{
    struct walk w = { .run = run, .to = home, .replace = true };
    return visit_all(&w, layer, e);
}

/* --- go on --- */

static const char *resumed_record(const struct run *run)
{
    return json_cstring(json_get(run->plan->settings.session, "resume"), NULL);
}

static bool can_go_on(const struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    bool told = run->plan->driver->kind == DRIVER_DIALOGUE || expand_uses(p, "{resume}");
    return told && (run->plan->settings.home == HOME_SHARED || json_len(p->session_files) > 0);
}

/* Of a shared home nothing is kept: the record alone says which conversation it was. */
static const struct json *read_note(struct run *run, const char *path)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *v = NULL;
    bool shared = run->plan->settings.home == HOME_SHARED;
    const char *name = arena_printf(run->arena, "%s/%s", path, shared ? "result.json" : KEPT_NOTE);
    if (file_read(AT_FDCWD, name, BUF_TEXT, &text, NULL) < 0 ||
        json_parse(run->arena, buf_str(&text), NULL, &v, NULL) < 0) {
        return NULL;
    }
    return v;
}

int harness_session_admit(struct run *run, struct err *e)
{
    const char *path = resumed_record(run);
    const char *adapter = run->plan->settings.profile->name;
    if (path == NULL) {
        return 0;
    }
    if (!can_go_on(run)) {
        return ERR(e, ERR_CONFIG, "adapter '%s' cannot go on with an earlier conversation",
                   adapter);
    }
    const struct json *note = read_note(run, path);
    struct str id = json_str(json_get(note, "session_id"), STR_EMPTY);
    struct str was = json_str(json_get(note, "adapter"), str_of(adapter));
    if (id.len == 0) {
        return ERR(e, ERR_INPUT,
                   "session.resume: '%s' is not a record of a conversation that can be continued",
                   path);
    }
    if (!str_eqc(was, adapter)) {
        return ERR(e, ERR_CONFIG,
                   "session.resume: '%s' is a conversation of adapter '%.*s', not of '%s'", path,
                   STR_ARG(was), adapter);
    }
    run->exec.resume = arena_str(run->arena, id);
    return 0;
}

/* Most harnesses keep conversations by directory: in another one they find none, or begin a new
 * one without a word. */
static int check_place(struct run *run, const char *path, struct err *e)
{
    struct str was = json_str(json_get(read_note(run, path), "workspace"), STR_EMPTY);
    if (run->plan->settings.profile->session_anywhere || str_eqc(was, run->paths.view)) {
        return 0;
    }
    return ERR(
        e, ERR_CONFIG,
        "session.resume: the conversation took place in '%.*s', this run works in '%s', and '%s' "
        "continues only in the same directory (in a sandbox it sees the workspace at its own path)",
        STR_ARG(was), run->paths.view, run->plan->settings.profile->name);
}

int harness_session_put(struct run *run, struct err *e)
{
    const char *path = resumed_record(run);
    if (path == NULL || run->plan->settings.home != HOME_PRIVATE) {
        return 0;
    }
    struct walk w = { .run = run };
    const char *kept = arena_printf(run->arena, "%s/" KEPT_DIR, path);
    int r = check_place(run, path, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int from = open(kept, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "session.resume: open '%s'", kept);
    }
    w.to = open(run->paths.home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = w.to < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", run->paths.home) : visit_all(&w, from, e);
    cleanup_fd(&w.to);
    if (r == 0 && w.n == 0) {
        r = ERR(e, ERR_INPUT, "session.resume: '%s' holds no conversation", path);
    }
    return r;
}
