/* SPDX-License-Identifier: MIT
 *
 * <file>.cinch.json: which entries of the trust table are ours, and which runs use them. Only what
 * is noted here is ever removed, so a damaged ledger is refused rather than guessed at.
 */
#include "adapters/trust_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"

enum { LEDGER_MAX = 4 << 20, VERSION = 1 };

static const char *fault_of_run(const struct json *run)
{
    bool good =
        json_is(json_get(run, "run"), JSON_STRING) && json_is(json_get(run, "pid"), JSON_INT) &&
        json_is(json_get(run, "start"), JSON_INT) && json_is(json_get(run, "boot"), JSON_STRING) &&
        json_is(json_get(run, "space"), JSON_STRING);
    int64_t pid = json_int(json_get(run, "pid"), 0);
    return good && pid > 0 && pid <= INT_MAX ? NULL : "a run is malformed";
}

static const char *fault_of_entry(const struct json *entry)
{
    const struct json *runs = json_get(entry, "runs");
    if (!json_is(runs, JSON_ARRAY) || !json_is(json_get(entry, "made"), JSON_INT) ||
        !json_is(json_get(entry, "was_false"), JSON_BOOL)) {
        return "an entry is malformed";
    }
    for (size_t i = 0; i < runs->array.len; i++) {
        const char *fault = fault_of_run(runs->array.items[i]);
        if (fault != NULL) {
            return fault;
        }
    }
    return NULL;
}

static const char *fault_of(const struct json *doc)
{
    const struct json *entries = json_get(doc, "entries");
    if (json_int(json_get(doc, "version"), 0) != VERSION) {
        return "of another version of cinch";
    }
    if (!json_is(entries, JSON_OBJECT) || !json_is(json_get(doc, "created"), JSON_BOOL)) {
        return "a part is missing";
    }
    for (size_t i = 0; i < entries->object.len; i++) {
        const char *fault = fault_of_entry(entries->object.members[i].value);
        if (fault != NULL) {
            return fault;
        }
    }
    return NULL;
}

static void start_new(struct trust_ledger *l)
{
    l->doc = json_object(l->arena);
    json_setc(l->arena, l->doc, "version", json_integer(l->arena, VERSION));
    json_setc(l->arena, l->doc, "created", json_boolean(l->arena, false));
    json_setc(l->arena, l->doc, "entries", json_object(l->arena));
}

int trust_ledger_load(struct trust_ledger *l, struct arena *a, const char *path, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(LEDGER_MAX);
    *l = (struct trust_ledger) { .arena = a, .path = path };
    if (!file_exists(AT_FDCWD, path)) {
        start_new(l);
    } else {
        int r = file_read(AT_FDCWD, path, LEDGER_MAX, &text, e);
        if (r < 0) {
            return r;
        }
        r = json_parse(a, buf_str(&text), NULL, &l->doc, e);
        if (r < 0) {
            return err_wrap(e, "'%s' is damaged (remove it, and the trust entries it names)", path);
        }
    }
    const char *fault = fault_of(l->doc);
    if (fault != NULL) {
        return ERR(e, ERR_PARSE, "'%s' is damaged: %s (remove it, and the trust entries it names)",
                   path, fault);
    }
    l->entries = json_get(l->doc, "entries");
    return 0;
}

/* A fixed name for the temporary file, as only the holder of the lock writes: what a killed process
 * leaves behind does not add up. */
static int replace_file(const char *path, struct str text, struct err *e)
{
    char temp[PATH_MAX];
    int n = snprintf(temp, sizeof temp, "%s.tmp", path);
    if (n < 0 || (size_t)n >= sizeof temp) {
        return ERR(e, ERR_LIMIT, "'%s': name too long", path);
    }
    (void)unlink(temp);
    CLEANUP(fd) int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return ERR_SYS(e, "create '%s'", temp);
    }
    int r = file_write_all(fd, text, e);
    if (r == 0 && rename(temp, path) < 0) {
        r = ERR_SYS(e, "replace '%s'", path);
    }
    if (r < 0) {
        (void)unlink(temp);
    }
    return r;
}

int trust_ledger_save(const struct trust_ledger *l, struct err *e)
{
    if (json_len(l->entries) == 0) {
        return unlink(l->path) < 0 && errno != ENOENT ? ERR_SYS(e, "remove '%s'", l->path) : 0;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(LEDGER_MAX);
    int r = json_write(l->doc, JSON_PRETTY, &text, e);
    if (r < 0) {
        return err_wrap(e, "'%s'", l->path);
    }
    return replace_file(l->path, buf_str(&text), e);
}

bool trust_ledger_created(const struct trust_ledger *l)
{
    return json_bool(json_get(l->doc, "created"), false);
}

void trust_ledger_set_created(struct trust_ledger *l, bool created)
{
    json_setc(l->arena, l->doc, "created", json_boolean(l->arena, created));
}

/* --- entries --- */

struct json *trust_ledger_find(const struct trust_ledger *l, const char *dir)
{
    return json_find(l->entries, str_of(dir));
}

struct json *trust_ledger_add(struct trust_ledger *l, const char *dir)
{
    struct json *entry = trust_ledger_find(l, dir);
    if (entry == NULL) {
        entry = json_object(l->arena);
        trust_entry_set_mark(l, entry, (struct trust_mark) { 0 });
        json_setc(l->arena, entry, "runs", json_array(l->arena));
        json_set(l->arena, l->entries, str_of(dir), entry);
    }
    return entry;
}

void trust_ledger_drop(struct trust_ledger *l, const char *dir)
{
    (void)json_remove(l->entries, str_of(dir));
}

struct trust_mark trust_entry_mark(const struct json *entry)
{
    int64_t made = json_int(json_get(entry, "made"), 0);
    return (struct trust_mark) { .made = made < 0 ? 0 : (size_t)made,
                                 .was_false = json_bool(json_get(entry, "was_false"), false) };
}

void trust_entry_set_mark(struct trust_ledger *l, struct json *entry, struct trust_mark mark)
{
    json_setc(l->arena, entry, "made", json_integer(l->arena, (int64_t)mark.made));
    json_setc(l->arena, entry, "was_false", json_boolean(l->arena, mark.was_false));
}

/* --- runs --- */

size_t trust_entry_runs(const struct json *entry)
{
    return json_len(json_get(entry, "runs"));
}

void trust_entry_add_run(struct trust_ledger *l, struct json *entry, const char *run_id)
{
    struct trust_process self;
    struct arena *a = l->arena;
    struct json *run = json_object(a);
    trust_process_self(&self);
    json_setc(a, run, "run", json_cstr(a, run_id));
    json_setc(a, run, "pid", json_integer(a, self.pid));
    json_setc(a, run, "start", json_integer(a, self.start));
    json_setc(a, run, "boot", json_cstr(a, self.boot));
    json_setc(a, run, "space", json_cstr(a, self.space));
    json_push(a, json_get(entry, "runs"), run);
}

static bool is_alive(const struct json *run, const struct trust_port *port)
{
    struct trust_process p = {
        .pid = (pid_t)json_int(json_get(run, "pid"), 0),
        .start = json_int(json_get(run, "start"), 0),
    };
    (void)snprintf(p.boot, sizeof p.boot, "%s", json_cstring(json_get(run, "boot"), ""));
    (void)snprintf(p.space, sizeof p.space, "%s", json_cstring(json_get(run, "space"), ""));
    bool alive = trust_process_alive(&p);
    if (port == NULL) {
        return alive;
    }
    return port->alive(port->self, json_cstring(json_get(run, "run"), ""), alive);
}

size_t trust_entry_prune(struct trust_ledger *l, struct json *entry, const char *run_id,
                         const struct trust_port *port)
{
    const struct json *runs = json_get(entry, "runs");
    struct json *kept = json_array(l->arena);
    for (size_t i = 0; i < runs->array.len; i++) {
        struct json *run = runs->array.items[i];
        bool leaves = run_id != NULL && str_eqc(json_str(json_get(run, "run"), STR_EMPTY), run_id);
        if (!leaves && is_alive(run, port)) {
            json_push(l->arena, kept, run);
        }
    }
    size_t dropped = runs->array.len - kept->array.len;
    json_setc(l->arena, entry, "runs", kept);
    return dropped;
}
