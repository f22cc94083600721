/* SPDX-License-Identifier: MIT
 *
 * One line of a transcript: which form it has, and whether it has what that form needs. Says of
 * each field what transcript_is_valid() says of the line.
 */
#include <stdio.h>

#include "record/stamp.h"
#include "validate/validator_priv.h"

/* "Z", "+02:00": minutes before UTC. */
static bool zone_parse(struct str s, int64_t *ret_minutes)
{
    enum { LEN = 6 };
    int64_t h, m;
    *ret_minutes = 0;
    if (str_eqc(s, "Z")) {
        return true;
    }
    if (s.len != LEN || (s.ptr[0] != '+' && s.ptr[0] != '-') || s.ptr[3] != ':' ||
        !str_to_i64(str_slice(s, 1, 3), &h) || !str_to_i64(str_slice(s, 4, 6), &m)) {
        return false;
    }
    *ret_minutes = (s.ptr[0] == '-' ? -1 : 1) * (h * 60 + m);
    return h >= 0 && h <= 23 && m >= 0 && m <= 59;
}

/* "2026-11-15T20:29:35.123456+00:00" and what else ISO 8601 allows there, as log records have it;
 * our own lines have the one form of stamp_parse(). */
static bool time_parse(struct str s, int64_t *ret_wall)
{
    enum { SECONDS = 19, MILLIS = 3, MINUTE_S = 60 };
    char canonical[] = "YYYY-MM-DDThh:mm:ss.000Z";
    int64_t minutes;
    size_t i = SECONDS;
    if (s.len <= SECONDS) {
        return false;
    }
    memcpy(canonical, s.ptr, SECONDS);
    for (i += s.ptr[i] == '.'; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++) {
        if (i <= SECONDS + MILLIS) {
            canonical[i] = s.ptr[i];
        }
    }
    if (!zone_parse(str_slice(s, i, s.len), &minutes) ||
        !stamp_parse(str_of(canonical), ret_wall)) {
        return false;
    }
    *ret_wall -= minutes * MINUTE_S * INT64_C(1000000000);
    return true;
}

bool validator_line_read(const struct json *whole, struct validator_line *ret)
{
    const struct json *context = json_get(whole, "context");
    struct str event = json_str(json_get(whole, "event"), STR_EMPTY);
    bool log = json_is(context, JSON_OBJECT);
    *ret = (struct validator_line) {
        .whole = whole,
        .fields = log ? context : whole,
        .log = log,
        .event = event,
    };
    const struct json *time = json_get(ret->fields, "timestamp");
    time = time != NULL ? time : json_get(whole, "timestamp"); /* starts and stops of a log */
    struct str text = json_str(time, STR_EMPTY);
    if (!(log ? time_parse(text, &ret->wall) : stamp_parse(text, &ret->wall))) {
        ret->wall = VALIDATOR_NO_TIME;
    }
    return log ? str_starts(event, STR("transcript."))
               : str_eqc(event, "transcript.start") || str_eqc(event, "transcript.entry") ||
                     str_eqc(event, "transcript.stop");
}

/* --- the envelope --- */

enum need { REQUIRED, OPTIONAL };

static void needs(struct validator *o, const struct json *fields, const char *key,
                  enum json_type type, enum need need)
{
    const struct json *v = json_get(fields, key);
    if (v == NULL && need == REQUIRED) {
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "'%s' is missing", key);
    } else if (v != NULL && v->type != type) {
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "'%s' is of type %s, not %s", key,
                       json_type_name(v->type), json_type_name(type));
    }
}

/* Keys that do not belong there; `keys` ends with NULL. */
static void knows(struct validator *o, const struct json *fields, const char *const *keys)
{
    for (size_t i = 0; i < json_len(fields); i++) {
        struct str key = fields->object.members[i].key;
        const char *const *k = keys;
        while (*k != NULL && !str_eqc(key, *k)) {
            k++;
        }
        if (*k == NULL) {
            validator_find(o, VALIDATOR_ENVELOPE, o->line, "'%.*s' is not allowed here",
                           STR_ARG(validator_short(key)));
        }
    }
}

static void counts(struct validator *o, const struct json *fields, const char *key)
{
    const struct json *map = json_get(fields, key);
    needs(o, fields, key, JSON_OBJECT, REQUIRED);
    for (size_t i = 0; json_is(map, JSON_OBJECT) && i < json_len(map); i++) {
        const struct json_member *m = &map->object.members[i];
        if (m->key.len == 0 || !json_is(m->value, JSON_INT) || m->value->integer < 1) {
            validator_find(o, VALIDATOR_ENVELOPE, o->line, "'%s' has no count for '%.*s'", key,
                           STR_ARG(validator_short(m->key)));
        }
    }
}

static void least(struct validator *o, const struct json *fields, const char *key, int64_t min)
{
    const struct json *v = json_get(fields, key);
    if (json_is(v, JSON_INT) && v->integer < min) {
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "'%s' is %lld, less than %lld", key,
                       (long long)v->integer, (long long)min);
    }
}

static void source(struct validator *o, const struct json *fields)
{
    static const struct str sub = { "subagent:", sizeof "subagent:" - 1 };
    const struct json *v = json_get(fields, "source");
    needs(o, fields, "source", JSON_STRING, REQUIRED);
    if (json_is(v, JSON_STRING) && !str_eqc(v->string, "main") &&
        !(str_starts(v->string, sub) && v->string.len > sub.len)) {
        validator_find(o, VALIDATOR_ENVELOPE, o->line,
                       "source is '%.*s', not main or subagent:<id>",
                       STR_ARG(validator_short(v->string)));
    }
}

static void entry(struct validator *o, const struct validator_line *l)
{
    static const char *const keys[] = { "event",           "prompt_name", "adapter",   "entry_type",
                                        "sequence_number", "source",      "timestamp", "session_id",
                                        "detail",          "raw",         "raw_bytes", NULL };
    needs(o, l->fields, "entry_type", JSON_STRING, REQUIRED);
    needs(o, l->fields, "sequence_number", JSON_INT, REQUIRED);
    least(o, l->fields, "sequence_number", 1);
    source(o, l->fields);
    needs(o, l->fields, "session_id", JSON_STRING, OPTIONAL);
    needs(o, l->fields, "detail", JSON_OBJECT, OPTIONAL);
    if (!l->log) { /* a log's context may hold more, and raw in other forms */
        needs(o, l->fields, "raw", JSON_STRING, OPTIONAL);
        needs(o, l->fields, "raw_bytes", JSON_INT, OPTIONAL);
        least(o, l->fields, "raw_bytes", 1);
        knows(o, l->fields, keys);
    }
}

static void stop(struct validator *o, const struct validator_line *l)
{
    static const char *const keys[] = {
        "event",         "prompt_name",       "adapter",         "timestamp",
        "total_entries", "entries_by_source", "entries_by_type", NULL,
    };
    needs(o, l->fields, "total_entries", JSON_INT, REQUIRED);
    least(o, l->fields, "total_entries", 0);
    counts(o, l->fields, "entries_by_source");
    counts(o, l->fields, "entries_by_type");
    if (!l->log) {
        knows(o, l->fields, keys);
    }
}

static void record_keys(struct validator *o, const struct json *whole)
{
    static const char *const keys[] = { "timestamp", "level", "logger", "message" };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        needs(o, whole, keys[i], JSON_STRING, REQUIRED);
    }
}

void validator_envelope(struct validator *o, const struct validator_line *l)
{
    static const char *const start_keys[] = { "event", "prompt_name", "adapter", "timestamp",
                                              NULL };
    bool is_entry = str_eqc(l->event, "transcript.entry");
    bool is_start = str_eqc(l->event, "transcript.start");
    bool is_stop = str_eqc(l->event, "transcript.stop");
    if (!is_entry && !is_start && !is_stop) {
        if (!l->log) {
            validator_find(o, VALIDATOR_ENVELOPE, o->line, "event '%.*s' is not a transcript event",
                           STR_ARG(validator_short(l->event)));
        }
        return;
    }
    if (l->log) {
        record_keys(o, l->whole);
    }
    needs(o, l->fields, "prompt_name", JSON_STRING, REQUIRED);
    needs(o, l->fields, "adapter", JSON_STRING, REQUIRED);
    if (!l->log || is_entry) {
        needs(o, l->fields, "timestamp", JSON_STRING, REQUIRED);
    }
    if (l->wall == VALIDATOR_NO_TIME && json_is(json_get(l->fields, "timestamp"), JSON_STRING)) {
        validator_find(
            o, VALIDATOR_ENVELOPE, o->line, "timestamp '%.*s' is not a time in UTC",
            STR_ARG(validator_short(json_str(json_get(l->fields, "timestamp"), STR_EMPTY))));
    }
    if (is_entry) {
        entry(o, l);
    } else if (is_stop) {
        stop(o, l);
    } else if (!l->log) {
        knows(o, l->fields, start_keys);
    }
}
