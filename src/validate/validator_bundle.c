/* SPDX-License-Identifier: MIT
 *
 * The transcript as a part of a record: does what surrounds it tell of the same? In a run directory
 * the manifest lists it, events.jsonl names the same adapter, prompt and calls, and agent.log has
 * the same entries. In an unpacked debug bundle the manifest lists it with its checksum. Whatever
 * lost lines (a full disk, kill -9) says so itself, and is not held to more than it promises.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"
#include "record/event_kind.h"
#include "record/jsonl.h"
#include "record/rundir.h"
#include "validate/validator_priv.h"

#define NAME         "transcript.jsonl"
#define MANIFEST     "manifest.json"
#define MANIFEST_MAX ((size_t)32 << 20)
/* Beyond this a checksum is not made anew. */
#define HASHED_MAX ((size_t)1 << 30)

static struct json *read_manifest(struct validator *o, int dir)
{
    struct rundir d = { .dir_fd = dir, .reserve_fd = -1 };
    return rundir_read_object(&d, MANIFEST, MANIFEST_MAX, o->keep);
}

static const char *bundle_adapter(const struct json *manifest)
{
    const char *name = json_cstring(json_pointer(manifest, STR("/metadata/agent")), NULL);
    return name != NULL ? name : json_cstring(json_pointer(manifest, STR("/prompt/adapter")), NULL);
}

/* --- the manifest --- */

static bool lists(const struct json *paths)
{
    for (size_t i = 0; json_is(paths, JSON_ARRAY) && i < json_len(paths); i++) {
        if (str_eqc(json_str(json_item(paths, i), STR_EMPTY), NAME)) {
            return true;
        }
    }
    return false;
}

static void checksum(struct validator *o, int fd, struct str said)
{
    CLEANUP(buf) struct buf bytes = BUF_INIT(HASHED_MAX);
    char hash[SHA256_HEX];
    struct err e;
    if (lseek(fd, 0, SEEK_SET) < 0 || file_read_fd(fd, NAME, HASHED_MAX, &bytes, &e) < 0) {
        validator_find(o, VALIDATOR_BUNDLE, 0, "the checksum of " NAME " cannot be made");
        return;
    }
    sha256_hex(buf_str(&bytes), hash);
    if (!str_eqc(said, hash)) {
        validator_find(o, VALIDATOR_BUNDLE, 0, "the checksum of " NAME " is %s, not %.*s", hash,
                       STR_ARG(validator_short(said)));
    }
}

/* False: there is nothing that the rest could be held against. */
static bool manifest_agrees(struct validator *o, const struct json *manifest, int fd)
{
    o->about = MANIFEST;
    if (manifest == NULL) {
        validator_find(o, VALIDATOR_BUNDLE, 0,
                       "missing or damaged ('cinch recover' closes the record of a killed run)");
        return false;
    }
    const struct json *files = json_get(manifest, "files");
    if (str_eqc(json_str(json_get(manifest, "status"), STR_EMPTY), "running")) {
        validator_find(o, VALIDATOR_BUNDLE, 0,
                       "the run has not ended ('cinch recover' closes the record of a killed run)");
        return false;
    }
    if (!lists(files != NULL ? files : json_get(manifest, "artifacts"))) {
        validator_find(o, VALIDATOR_BUNDLE, 0, "it does not list " NAME);
    }
    const struct json *sums = json_pointer(manifest, STR("/integrity/checksums"));
    if (sums != NULL && fd >= 0) {
        checksum(o, fd, json_str(json_get(sums, NAME), STR_EMPTY));
    }
    return !json_bool(json_get(manifest, "recovered"), false);
}

/* --- events.jsonl --- */

struct events_seen {
    int64_t rendered;
    bool lost;
};

/* The redactor may have taken more out of the one file than of the other. */
static bool is_redacted(struct str s)
{
    return str_find(s, STR("[REDACTED")) < s.len;
}

static void same(struct validator *o, const struct json *context, const char *key, const char *here)
{
    struct str said = json_str(json_get(context, key), STR_EMPTY);
    if (said.len > 0 && here[0] != '\0' && !str_eqc(said, here) && !is_redacted(said) &&
        !is_redacted(str_of(here))) {
        validator_find(o, VALIDATOR_BUNDLE, o->line, "%s is '%.*s', but '%.80s' in the transcript",
                       key, STR_ARG(validator_short(said)), here);
    }
}

static void call_is_told(struct validator *o, const struct json *context)
{
    struct str id = json_str(json_get(context, "call_id"), STR_EMPTY);
    struct str name = json_str(json_get(context, "name"), STR_EMPTY);
    /* Some adapters tell no calls at all. */
    if (o->report.summary.by_type[ENTRY_TOOL_USE] > 0 && id.len > 0 && !is_redacted(id) &&
        !validator_call_told(o, id, name)) {
        validator_find(o, VALIDATOR_BUNDLE, o->line,
                       "the transcript does not contain call '%.*s' of '%.*s'",
                       STR_ARG(validator_short(id)), STR_ARG(validator_short(name)));
    }
}

static bool is_event(struct str name, enum event_kind kind)
{
    return str_eqc(name, event_kind_info(kind)->name);
}

static void event_agrees(struct validator *o, struct str line, struct events_seen *seen)
{
    struct json *v = NULL;
    arena_reset(o->scratch);
    if (json_parse(o->scratch, line, &(struct json_limits) { .no_positions = true }, &v, NULL) <
        0) {
        validator_find(o, VALIDATOR_BUNDLE, o->line, "invalid JSON");
        return;
    }
    struct str event = json_str(json_get(v, "event"), STR_EMPTY);
    const struct json *context = json_get(v, "context");
    bool rendered = is_event(event, EVENT_PROMPT_RENDERED);
    bool invoked = is_event(event, EVENT_TOOL_INVOKED);
    seen->rendered += rendered;
    seen->lost = seen->lost || is_event(event, EVENT_RECORD_LOSS);
    if (rendered || invoked || is_event(event, EVENT_PROMPT_EXECUTED)) {
        same(o, context, "adapter", o->report.summary.adapter);
        same(o, context, "prompt_name", o->report.summary.prompt_name);
    }
    if (invoked) {
        call_is_told(o, context);
    }
}

/* Each line of a file, with its number in o->line. */
static void each_line(struct validator *o, int fd,
                      void (*take)(struct validator *, struct str, void *), void *arg)
{
    struct lines lines;
    struct str line;
    char chunk[16384];
    ssize_t n;
    uint64_t overlong = 0;
    o->line = 0;
    lines_init(&lines, JSONL_LINE_MAX);
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)) {
        lines_feed(&lines, str_n(chunk, n < 0 ? 0 : (size_t)n));
        while (lines_next(&lines, &line)) {
            o->line += 1 + (size_t)(lines.overlong - overlong);
            overlong = lines.overlong;
            take(o, line, arg);
        }
    }
    lines_done(&lines);
}

static void take_event(struct validator *o, struct str line, void *arg)
{
    event_agrees(o, line, arg);
}

/* False when lines were lost, which events.jsonl itself says. */
static bool events_agree(struct validator *o, int dir)
{
    struct events_seen seen = { 0 };
    struct validator_report *r = &o->report;
    size_t before = r->n_findings;
    o->about = "events.jsonl";
    CLEANUP(fd) int fd = file_open_below(dir, str_of(o->about));
    if (fd < 0) {
        return errno == ENOENT; /* a debug bundle has none */
    }
    each_line(o, fd, take_event, &seen);
    bool begun = r->summary.conversations > 0;
    if (seen.rendered > 0 && !begun) {
        validator_find(o, VALIDATOR_BUNDLE, 0,
                       "a prompt was rendered, but no conversation was started");
    } else if (seen.rendered == 0 && begun) {
        validator_find(o, VALIDATOR_BUNDLE, 0,
                       "a conversation was started, but no prompt was rendered");
    }
    if (seen.lost) {
        r->n_findings = before;
    }
    return !seen.lost;
}

/* --- agent.log --- */

/* "20:29:35.123 main #1 user_message": the time is not compared, it is that of the entry. */
static void take_log_line(struct validator *o, struct str line, void *arg)
{
    enum { TIME = 13, TEXT_INDENT = 4 };
    struct str *heads = arg;
    if (str_starts(line, STR("    ")) || heads->ptr == NULL) {
        return;
    }
    struct str head = str_split(heads, '\n');
    struct str said = str_slice(line, TIME, line.len);
    bool equal = str_starts(said, head) &&
                 (said.len == head.len || (head.len > 0 && said.ptr[head.len] == ' '));
    if (equal || is_redacted(said) || is_redacted(head)) {
        return;
    }
    if (head.len == 0) {
        validator_find(o, VALIDATOR_BUNDLE, o->line, "'%.*s' is not in the transcript",
                       STR_ARG(validator_short(said)));
    } else {
        validator_find(o, VALIDATOR_BUNDLE, o->line,
                       "'%.*s' does not match '%.*s' in the transcript",
                       STR_ARG(validator_short(said)), STR_ARG(validator_short(head)));
    }
    heads->ptr = NULL; /* what follows is shifted */
}

static void log_agrees(struct validator *o, int dir)
{
    struct str heads = buf_str(&o->heads);
    o->about = "agent.log";
    CLEANUP(fd) int fd = file_open_below(dir, str_of(o->about));
    if (fd < 0 || !o->keeps_heads) {
        return;
    }
    heads.ptr = heads.ptr == NULL ? "" : heads.ptr;
    each_line(o, fd, take_log_line, &heads);
    if (heads.ptr != NULL && heads.len > 0) {
        struct str next = validator_short(str_split(&heads, '\n'));
        validator_find(o, VALIDATOR_BUNDLE, o->line, "the log ends before '%.*s' of the transcript",
                       STR_ARG(next));
    }
}

/* --- files --- */

static int feed_all(struct validator *o, int fd, struct err *e)
{
    char chunk[65536];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno != EINTR) {
            return ERR_SYS(e, "read");
        }
        validator_feed(o, str_n(chunk, n < 0 ? 0 : (size_t)n));
    }
    validator_end(o);
    return o->report.is_transcript ? 0 : ERR(e, ERR_PARSE, "not a transcript");
}

static int look_into(struct validator *o, int dir, struct err *e)
{
    CLEANUP(fd) int fd = file_open_below(dir, STR(NAME));
    struct json *manifest = read_manifest(o, dir);
    if (fd < 0 && (manifest == NULL || errno != ENOENT || !validator_wants(o, VALIDATOR_BUNDLE))) {
        return ERR(e, ERR_INPUT, "there is no " NAME);
    }
    o->opts.adapter = o->opts.adapter != NULL ? o->opts.adapter : bundle_adapter(manifest);
    o->keeps_heads = validator_wants(o, VALIDATOR_BUNDLE);
    if (fd >= 0) {
        int r = feed_all(o, fd, e);
        if (r < 0) {
            return r;
        }
    } else {
        validator_end(o);
        validator_find(o, VALIDATOR_BUNDLE, 0, "missing");
    }
    if (validator_wants(o, VALIDATOR_BUNDLE) && manifest_agrees(o, manifest, fd) &&
        events_agree(o, dir)) {
        log_agrees(o, dir);
    }
    return 0;
}

/* In a run directory an empty one is that of a run that never began; alone it tells nothing. */
static int look_at_file(struct validator *o, int fd, struct err *e)
{
    int r = feed_all(o, fd, e);
    if (r == 0 && o->line == 0) {
        validator_find(o, VALIDATOR_BRACKETING, 0, "empty: there is no transcript.start");
    }
    return r;
}

static int look(struct validator *o, int fd, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return ERR_SYS(e, "look");
    }
    if (S_ISDIR(st.st_mode)) {
        return look_into(o, fd, e);
    }
    if ((o->opts.checks & 1u << VALIDATOR_BUNDLE) != 0) {
        return ERR(e, ERR_USAGE, "check 'bundle' needs a run directory, not a file");
    }
    return S_ISREG(st.st_mode) ? look_at_file(o, fd, e)
                               : ERR(e, ERR_INPUT, "neither a file nor a directory");
}

int validator_look(const char *path, const struct validator_opts *opts, struct validator **ret,
                   struct err *e)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "open '%.200s'", path);
    }
    CLEANUP(validator) struct validator *o = validator_new(opts);
    int r = look(o, fd, e);
    if (r < 0) {
        return err_wrap(e, "'%.200s'", path);
    }
    *ret = TAKE_PTR(o);
    return 0;
}
