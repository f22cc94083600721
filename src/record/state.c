/* SPDX-License-Identifier: MIT
 *
 * state.json and the identity of its owner; see state.h.
 */
#include "record/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "record/rundir.h"
#include "record/stamp.h"
#include "record/summary_priv.h"

enum { STATE_BYTES_MAX = 64 << 10 /* ours has less than one KiB; more is not ours */ };

/* False when there is no such process, or it has ended. */
static bool read_start(pid_t pid, uint64_t *ret)
{
    enum { FIELD_START = 22, FIELD_AFTER_NAME = 3 };
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP(buf) struct buf text = BUF_INIT(4096);
    if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0) {
        return false;
    }
    /* The name of the program may hold anything, also ") 1 2 3": the fields begin after the last
     * one. */
    const char *after = memrchr(text.ptr, ')', text.len);
    if (after == NULL) {
        return false;
    }
    struct str rest = str_trim(str_of(after + 1));
    /* A zombie has ended; that nobody has asked for its exit status yet does not make it alive. */
    if (rest.len == 0 || rest.ptr[0] == 'Z' || rest.ptr[0] == 'X') {
        return false;
    }
    struct str field = STR_EMPTY;
    for (int i = FIELD_AFTER_NAME; i <= FIELD_START && rest.ptr != NULL; i++) {
        field = str_split(&rest, ' ');
    }
    int64_t n;
    bool ok = str_to_i64(field, &n) && n >= 0;
    *ret = ok ? (uint64_t)n : 0;
    return ok;
}

static void read_boot(char out[STATE_BOOT_LEN])
{
    CLEANUP(buf) struct buf text = BUF_INIT(128);
    memset(out, 0, STATE_BOOT_LEN);
    if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 128, &text, NULL) < 0) {
        return;
    }
    struct str id = str_trim(buf_str(&text));
    if (stamp_is_id(id)) {
        memcpy(out, id.ptr, id.len);
    }
}

void owner_self(struct owner *o)
{
    *o = (struct owner) { .pid = getpid() };
    (void)read_start(o->pid, &o->start);
    read_boot(o->boot);
}

bool owner_is_alive(const struct owner *o)
{
    uint64_t start;
    char boot[STATE_BOOT_LEN];
    read_boot(boot);
    return o->pid > 0 && strcmp(o->boot, boot) == 0 && read_start(o->pid, &start) &&
           start == o->start;
}

int state_write(const struct state *s, const struct rundir *d, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct view v = { a, NULL, json_object(a) };
    bool running = s->reason == REASON_NONE;
    view_int(&v, "schema_version", SUMMARY_SCHEMA_VERSION);
    view_word(&v, "run_id", s->run_id);
    view_word(&v, "adapter", s->adapter);
    view_word(&v, "cinch_version", CINCH_VERSION);
    view_word(&v, "phase", running ? s->phase : "done");
    view_word(&v, "state", running ? "running" : reason_state(s->reason));
    view_word(&v, "reason", reason_word(s->reason));
    if (running) {
        view_word(&v, "exit_code", NULL);
    } else {
        view_int(&v, "exit_code", s->exit_code);
    }
    if (s->owner.pid > 0) {
        view_int(&v, "pid", s->owner.pid);
    } else {
        view_word(&v, "pid", NULL);
    }
    view_int(&v, "pid_start", (int64_t)s->owner.start);
    view_word(&v, "boot_id", s->owner.boot[0] != '\0' ? s->owner.boot : NULL);
    view_stamp(&v, "started_at", s->started_wall);
    view_stamp(&v, "heartbeat", s->heartbeat_wall);
    view_stamp(&v, "ended_at", running ? 0 : s->ended_wall);
    return rundir_write_json(d, "state.json", v.object, e);
}

static void copy_id(char *out, size_t size, const struct json *v)
{
    struct str s = json_str(v, STR_EMPTY);
    if (stamp_is_id(s) && s.len < size) {
        memcpy(out, s.ptr, s.len);
    }
}

static void copy_phase(char out[STATE_PHASE_MAX], const struct json *v)
{
    struct str s = json_str(v, STR_EMPTY);
    bool word = s.len > 0 && s.len < STATE_PHASE_MAX;
    for (size_t i = 0; i < s.len && word; i++) {
        word = (s.ptr[i] >= 'a' && s.ptr[i] <= 'z') || s.ptr[i] == '_';
    }
    if (word) {
        memcpy(out, s.ptr, s.len);
    }
}

int state_read(struct state *ret, const struct rundir *d, struct arena *a, struct err *e)
{
    *ret = (struct state) { 0 };
    CLEANUP(buf) struct buf text = BUF_INIT(STATE_BYTES_MAX);
    struct json *v;
    int r = rundir_read(d, "state.json", STATE_BYTES_MAX, &text, e);
    if (r == 0) {
        r = json_parse(a, buf_str(&text), NULL, &v, e);
    }
    if (r < 0) {
        (void)err_wrap(e, "state.json");
        return r;
    }
    copy_id(ret->run_id, sizeof ret->run_id, json_get(v, "run_id"));
    copy_id(ret->owner.boot, sizeof ret->owner.boot, json_get(v, "boot_id"));
    copy_phase(ret->phase, json_get(v, "phase"));
    ret->adapter = json_cstring(json_get(v, "adapter"), NULL);
    ret->reason = reason_find(json_str(json_get(v, "reason"), STR_EMPTY));
    int64_t code = json_int(json_get(v, "exit_code"), 0);
    ret->exit_code = code >= 0 && code <= 255 ? (int)code : 0;
    int64_t pid = json_int(json_get(v, "pid"), 0);
    ret->owner.pid = pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
    int64_t start = json_int(json_get(v, "pid_start"), 0);
    ret->owner.start = start > 0 ? (uint64_t)start : 0;
    (void)stamp_parse(json_str(json_get(v, "started_at"), STR_EMPTY), &ret->started_wall);
    (void)stamp_parse(json_str(json_get(v, "heartbeat"), STR_EMPTY), &ret->heartbeat_wall);
    (void)stamp_parse(json_str(json_get(v, "ended_at"), STR_EMPTY), &ret->ended_wall);
    return 0;
}
