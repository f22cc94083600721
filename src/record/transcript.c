/* SPDX-License-Identifier: MIT
 *
 * The transcript's lines, numbers and counts; see transcript.h.
 */
#include "record/transcript.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "record/logfile.h"
#include "record/redact.h"
#include "record/stamp.h"

static const char *const entry_words[ENTRY_TYPE_MAX] = {
#define X(type, word) [type] = word,
    ENTRY_LIST(X)
#undef X
};

const char *entry_type_word(enum entry_type type)
{
    return entry_words[type];
}

bool entry_type_find(struct str word, enum entry_type *ret)
{
    for (size_t i = 0; i < ENTRY_TYPE_MAX; i++) {
        if (str_eqc(word, entry_words[i])) {
            *ret = (enum entry_type)i;
            return true;
        }
    }
    return false;
}

void transcript_count_reset(struct transcript_count *c, struct arena *a)
{
    *c = (struct transcript_count) { .by_source = json_object(a) };
}

void transcript_count_add(struct transcript_count *c, struct arena *a, enum entry_type type,
                          struct str source)
{
    struct json *n = json_find(c->by_source, source);
    if (n == NULL) {
        n = json_integer(a, 0);
        json_set(a, c->by_source, source, n);
    }
    n->integer++;
    c->by_type[type]++;
    c->total++;
}

int transcript_init(struct transcript *t, const struct rundir *d, const struct redactor *r,
                    struct logfile *agent_log, struct loss *loss, struct err *e)
{
    *t = (struct transcript) { .redactor = r, .agent_log = agent_log };
    int result = jsonl_init(&t->out, d, "transcript.jsonl", loss, e);
    if (result == 0) {
        t->arena = arena_new();
        t->keep = arena_new();
    }
    return result;
}

void transcript_done(struct transcript *t)
{
    jsonl_done(&t->out);
    t->arena = arena_free(t->arena);
    t->keep = arena_free(t->keep);
}

static struct json *new_line(struct arena *a, const char *event, struct str prompt_name,
                             struct str adapter)
{
    struct json *o = json_object(a);
    json_setc(a, o, "event", json_cstr(a, event));
    json_setc(a, o, "prompt_name", json_string(a, prompt_name));
    json_setc(a, o, "adapter", json_string(a, adapter));
    return o;
}

static void set_now(const struct jsonl *out, struct arena *a, struct json *line)
{
    char now[CLOCK_ISO_LEN];
    json_setc(a, line, "timestamp", json_cstr(a, jsonl_now(out, now)));
}

static void write_start(struct transcript *t)
{
    struct arena *a = t->arena;
    struct json *line = new_line(a, "transcript.start", str_of(t->prompt_name), str_of(t->adapter));
    set_now(&t->out, a, line);
    t->start_written = jsonl_append(&t->out, line) == JSONL_WRITTEN;
    arena_reset(a);
}

void transcript_start(struct transcript *t, const char *prompt_name, const char *adapter)
{
    assert(!t->open);
    arena_reset(t->keep);
    transcript_count_reset(&t->count, t->keep);
    t->prompt_name = arena_dup(t->keep, redact_str(t->redactor, t->keep, str_of(prompt_name)));
    t->adapter = arena_dup(t->keep, redact_str(t->redactor, t->keep, str_of(adapter)));
    t->open = true;
    t->start_written = false;
    write_start(t);
}

/* Cut between characters: never inside one. */
static struct str cut(struct str s, size_t max)
{
    if (s.len <= max) {
        return s;
    }
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xC0) == 0x80) {
        max--;
    }
    return str_slice(s, 0, max);
}

static void set_raw(struct transcript *t, struct json *line, struct str raw)
{
    struct arena *a = t->arena;
    /* Before the cut: half a secret is not found. */
    struct str clean = redact_str(t->redactor, a, raw);
    json_setc(a, line, "raw", json_string(a, cut(clean, TRANSCRIPT_RAW_MAX)));
    if (clean.len > TRANSCRIPT_RAW_MAX) {
        json_setc(a, line, "raw_bytes", json_integer(a, (int64_t)raw.len));
    }
}

static struct json *entry_line(struct transcript *t, const struct transcript_entry *entry,
                               struct str source)
{
    struct arena *a = t->arena;
    struct json *line = new_line(a, "transcript.entry", str_of(t->prompt_name), str_of(t->adapter));
    json_setc(a, line, "entry_type", json_cstr(a, entry_type_word(entry->type)));
    int64_t last = json_int(json_find(t->count.by_source, source), 0);
    json_setc(a, line, "sequence_number", json_integer(a, last + 1));
    json_setc(a, line, "source", json_string(a, source));
    set_now(&t->out, a, line);
    if (entry->session_id != NULL) {
        struct str clean = redact_str(t->redactor, a, str_of(entry->session_id));
        json_setc(a, line, "session_id", json_string(a, clean));
    }
    if (entry->detail != NULL) {
        json_setc(a, line, "detail", redact_json(t->redactor, a, entry->detail));
    }
    if (entry->raw.ptr != NULL) {
        set_raw(t, line, entry->raw);
    }
    return line;
}

static void write_agent_log(struct transcript *t, const struct json *line)
{
    if (t->agent_log == NULL) {
        return;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    transcript_render(line, &text);
    logfile_write(t->agent_log, buf_str(&text));
    logfile_flush(t->agent_log);
}

void transcript_listen(struct transcript *t, void (*entry)(void *arg, const struct json *line),
                       void *arg)
{
    t->entry = entry;
    t->entry_arg = arg;
}

void transcript_add(struct transcript *t, const struct transcript_entry *entry)
{
    if (!t->open) {
        return;
    }
    if (!t->start_written) {
        write_start(t);
    }
    struct arena *a = t->arena;
    struct str source = str_of(entry->source != NULL ? entry->source : "main");
    source = redact_str(t->redactor, a, source);
    struct json *line = entry_line(t, entry, source);
    enum jsonl_result result = t->start_written ? jsonl_append(&t->out, line) : JSONL_LOST;
    if (result == JSONL_TOO_LONG) {
        /* The envelope stays, so that numbers and counts hold; stdout.log has the content. */
        struct json *detail = json_object(a);
        json_setc(a, detail, "truncated", json_boolean(a, true));
        json_setc(a, line, "detail", detail);
        (void)json_remove(line, STR("raw"));
        (void)json_remove(line, STR("raw_bytes"));
        result = jsonl_append(&t->out, line);
    }
    if (result == JSONL_WRITTEN) {
        transcript_count_add(&t->count, t->keep, entry->type, source);
    }
    write_agent_log(t, line);
    if (t->entry != NULL) {
        t->entry(t->entry_arg, line);
    }
    arena_reset(a);
}

static struct json *types_json(struct arena *a, const struct transcript_count *c)
{
    struct json *by_type = json_object(a);
    for (size_t i = 0; i < ENTRY_TYPE_MAX; i++) {
        if (c->by_type[i] > 0) {
            json_setc(a, by_type, entry_words[i], json_integer(a, c->by_type[i]));
        }
    }
    return by_type;
}

void transcript_write_stop(struct jsonl *out, struct arena *a, const struct transcript_count *c,
                           struct str prompt_name, struct str adapter)
{
    struct json *line = new_line(a, "transcript.stop", prompt_name, adapter);
    set_now(out, a, line);
    json_setc(a, line, "total_entries", json_integer(a, c->total));
    json_setc(a, line, "entries_by_source", c->by_source);
    json_setc(a, line, "entries_by_type", types_json(a, c));
    enum jsonl_result result = jsonl_append(out, line);
    if (result == JSONL_TOO_LONG) {
        /* Only a great many sources get here: their numbers are in the entries. */
        json_setc(a, line, "entries_by_source", json_object(a));
        result = jsonl_append(out, line);
    }
}

void transcript_stop(struct transcript *t)
{
    if (t->open && t->start_written) {
        transcript_write_stop(&t->out, t->arena, &t->count, str_of(t->prompt_name),
                              str_of(t->adapter));
        arena_reset(t->arena);
    }
    t->open = false;
}

static bool are_counts(const struct json *object)
{
    if (!json_is(object, JSON_OBJECT)) {
        return false;
    }
    for (size_t i = 0; i < object->object.len; i++) {
        const struct json_member *m = &object->object.members[i];
        if (m->key.len == 0 || !json_is(m->value, JSON_INT) || m->value->integer < 1) {
            return false;
        }
    }
    return true;
}

/* Takes every known key away from the number of members: what is left over does not belong there.
 */
static bool has_only(const struct json *line, const char *const *keys)
{
    size_t known = 0;
    for (; *keys != NULL; keys++) {
        known += json_get(line, *keys) != NULL;
    }
    return json_len(line) == known;
}

static bool absent_or(const struct json *line, const char *key, enum json_type type)
{
    const struct json *v = json_get(line, key);
    return v == NULL || json_is(v, type);
}

static bool is_entry(const struct json *line)
{
    static const char *const keys[] = { "event",           "prompt_name", "adapter",   "entry_type",
                                        "sequence_number", "source",      "timestamp", "session_id",
                                        "detail",          "raw",         "raw_bytes", NULL };
    enum entry_type type;
    return has_only(line, keys) &&
           entry_type_find(json_str(json_get(line, "entry_type"), STR_EMPTY), &type) &&
           json_is(json_get(line, "sequence_number"), JSON_INT) &&
           json_int(json_get(line, "sequence_number"), 0) >= 1 &&
           json_len(json_get(line, "source")) > 0 &&
           json_is(json_get(line, "source"), JSON_STRING) &&
           absent_or(line, "session_id", JSON_STRING) && absent_or(line, "detail", JSON_OBJECT) &&
           absent_or(line, "raw", JSON_STRING) && absent_or(line, "raw_bytes", JSON_INT) &&
           json_int(json_get(line, "raw_bytes"), 1) > 0;
}

static bool is_stop(const struct json *line)
{
    static const char *const keys[] = {
        "event",         "prompt_name",       "adapter",         "timestamp",
        "total_entries", "entries_by_source", "entries_by_type", NULL,
    };
    const struct json *by_type = json_get(line, "entries_by_type");
    for (size_t i = 0; i < json_len(by_type) && json_is(by_type, JSON_OBJECT); i++) {
        enum entry_type type;
        if (!entry_type_find(by_type->object.members[i].key, &type)) {
            return false;
        }
    }
    return has_only(line, keys) && json_is(json_get(line, "total_entries"), JSON_INT) &&
           json_int(json_get(line, "total_entries"), -1) >= 0 &&
           are_counts(json_get(line, "entries_by_source")) && are_counts(by_type);
}

bool transcript_is_valid(const struct json *line)
{
    static const char *const start_keys[] = { "event", "prompt_name", "adapter", "timestamp",
                                              NULL };
    if (!json_is(json_get(line, "prompt_name"), JSON_STRING) ||
        !json_is(json_get(line, "adapter"), JSON_STRING) ||
        !stamp_parse(json_str(json_get(line, "timestamp"), STR_EMPTY), NULL)) {
        return false;
    }
    struct str event = json_str(json_get(line, "event"), STR_EMPTY);
    return str_eqc(event, "transcript.entry") ? is_entry(line)
           : str_eqc(event, "transcript.stop")
               ? is_stop(line)
               : str_eqc(event, "transcript.start") && has_only(line, start_keys);
}
