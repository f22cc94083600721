/* SPDX-License-Identifier: MIT
 *
 * Lines, conversations and what is found in them; see validator.h.
 */
#include "validate/validator.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sha256.h"
#include "record/jsonl.h"
#include "validate/validator_priv.h"

static const char *const words[VALIDATOR_CHECK_MAX] = {
#define X(check, word, holds) [check] = word,
    VALIDATOR_LIST(X)
#undef X
};

const char *validator_check_word(enum validator_check check)
{
    return words[check];
}

bool validator_check_find(struct str word, enum validator_check *ret)
{
    for (size_t i = 0; i < VALIDATOR_CHECK_MAX; i++) {
        if (str_eqc(word, words[i])) {
            *ret = (enum validator_check)i;
            return true;
        }
    }
    return false;
}

/* --- findings --- */

bool validator_wants(const struct validator *o, enum validator_check check)
{
    return o->opts.checks == 0 || (o->opts.checks & 1u << check) != 0;
}

void validator_find(struct validator *o, enum validator_check check, size_t line, const char *fmt,
                    ...)
{
    struct validator_report *r = &o->report;
    char sentence[480]; /* it quotes but the beginnings of foreign text */
    if (!validator_wants(o, check)) {
        return;
    }
    if (r->n_findings == VALIDATOR_FINDINGS_MAX) {
        r->left_out++;
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    if (r->n_findings == o->cap) {
        o->cap = o->cap == 0 ? 8 : o->cap * 2;
        o->findings = xrealloc(o->findings, o->cap * sizeof *o->findings);
        r->findings = o->findings;
    }
    o->findings[r->n_findings++] = (struct validator_finding) {
        .check = check,
        .file = o->about,
        .line = line,
        .sentence = arena_dup(o->keep, str_of(sentence)),
    };
}

struct str validator_short(struct str s)
{
    enum { SHOWN = 80 };
    struct str cut = str_slice(s, 0, SHOWN);
    return str_slice(cut, 0, str_utf8_prefix(cut));
}

/* --- sources --- */

struct str validator_key(struct arena *a, struct str s)
{
    enum { KEPT = 200 };
    if (s.len <= KEPT) {
        return s;
    }
    char *hash = arena_alloc(a, SHA256_HEX);
    sha256_hex(s, hash);
    return str_n(hash, SHA256_HEX - 1);
}

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const struct validator_source *)a)->key,
                   ((const struct validator_source *)b)->key);
}

struct validator_source *validator_source_of(struct validator *o, const struct validator_line *l)
{
    struct validator_source probe = {
        .key = validator_key(o->scratch, json_str(json_get(l->fields, "source"), STR_EMPTY))
    };
    struct validator_source **at = tfind(&probe, &o->sources, by_key);
    struct validator_source *s = at == NULL ? NULL : *at;
    if (s == NULL && o->n_keys >= VALIDATOR_KEYS_MAX) {
        if (!o->told_keys) {
            validator_find(o, VALIDATOR_SEQUENCE, o->line,
                           "more than %d sources and calls: not checked further",
                           VALIDATOR_KEYS_MAX);
        }
        o->told_keys = true;
        return NULL;
    }
    if (s == NULL) {
        s = ARENA_NEW(o->keep, struct validator_source);
        s->key = arena_str(o->keep, probe.key);
        *(o->first_source == NULL ? &o->first_source : &o->last_source->next) = s;
        o->last_source = s;
        o->n_keys++;
        if (tsearch(s, &o->sources, by_key) == NULL) {
            abort(); /* out of memory, as everywhere */
        }
    }
    if (s->conversation != o->conversation) {
        struct validator_source *next = s->next;
        *s = (struct validator_source) { .key = s->key, .conversation = o->conversation };
        s->next = next;
        o->n_sources++;
    }
    return s;
}

/* --- numbers and labels --- */

static void sequence(struct validator *o, const struct validator_line *l,
                     struct validator_source *s)
{
    const struct json *n = json_get(l->fields, "sequence_number");
    struct str name = validator_short(s->key);
    if (!json_is(n, JSON_INT)) {
        validator_find(o, VALIDATOR_SEQUENCE, o->line, "an entry of '%.*s' has no number",
                       STR_ARG(name));
        return;
    }
    /* Entries alone, without their starts, may be of several conversations. */
    bool anew = l->log && !o->seen_bracket && n->integer == 1;
    if (s->last == 0 && n->integer != 1) {
        validator_find(o, VALIDATOR_SEQUENCE, o->line,
                       "the first entry of '%.*s' has number %lld, not 1", STR_ARG(name),
                       (long long)n->integer);
    } else if (s->last != 0 && n->integer == s->last) {
        validator_find(o, VALIDATOR_SEQUENCE, o->line, "number %lld of '%.*s' occurs twice",
                       (long long)n->integer, STR_ARG(name));
    } else if (s->last != 0 && !anew && (s->last == INT64_MAX || n->integer != s->last + 1)) {
        validator_find(o, VALIDATOR_SEQUENCE, o->line, "number %lld of '%.*s' follows %lld",
                       (long long)n->integer, STR_ARG(name), (long long)s->last);
    }
    /* Whatever it is, the next one is held against it: one fault, one finding. */
    s->last = n->integer > 0 ? n->integer : s->last;
}

static void adapter_label(struct validator *o, const struct validator_line *l)
{
    struct str label = json_str(json_get(l->fields, "adapter"), STR_EMPTY);
    if (label.len == 0) {
        validator_find(o, VALIDATOR_ADAPTER_LABEL, o->line, "no adapter name");
        return;
    }
    if (o->report.summary.adapter[0] == '\0') {
        o->report.summary.adapter = arena_dup(o->keep, label);
        o->adapter = o->opts.adapter != NULL ? str_of(o->opts.adapter) : arena_str(o->keep, label);
    }
    if (!str_eq(label, o->adapter)) {
        validator_find(o, VALIDATOR_ADAPTER_LABEL, o->line, "adapter is '%.*s', not '%.*s'",
                       STR_ARG(validator_short(label)), STR_ARG(validator_short(o->adapter)));
    }
}

static void chronology(struct validator *o, const struct validator_line *l)
{
    if (l->wall != VALIDATOR_NO_TIME && l->wall < o->last_wall) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->line,
                       "the timestamp is before that of line %zu", o->last_line);
    }
    if (l->wall != VALIDATOR_NO_TIME) {
        o->last_wall = l->wall;
        o->last_line = o->line;
    }
}

/* --- brackets --- */

static struct str prompt_of(struct validator *o, const struct validator_line *l)
{
    return validator_key(o->scratch, json_str(json_get(l->fields, "prompt_name"), STR_EMPTY));
}

static void same_prompt(struct validator *o, const struct validator_line *l)
{
    struct str name = prompt_of(o, l);
    if (o->report.summary.prompt_name[0] == '\0') {
        o->report.summary.prompt_name = arena_dup(o->keep, name);
    }
    if (o->open && !str_eq(name, o->prompt_name)) {
        validator_find(o, VALIDATOR_BRACKETING, o->line,
                       "the prompt is '%.*s', but line %zu starts '%.*s'",
                       STR_ARG(validator_short(name)), o->start_line,
                       STR_ARG(validator_short(o->prompt_name)));
    }
}

static void start(struct validator *o, const struct validator_line *l)
{
    if (o->open) {
        validator_find(o, VALIDATOR_BRACKETING, o->line,
                       "start, but the conversation of line %zu has no stop", o->start_line);
    }
    o->open = true;
    o->told_outside = false;
    o->start_line = o->line;
    o->prompt_name = arena_str(o->keep, prompt_of(o, l));
    o->conversation++;
    o->total = 0;
    memset(o->by_type, 0, sizeof o->by_type);
    o->n_sources = 0;
    o->report.summary.conversations++;
}

static void count_is(struct validator *o, const char *key, const struct json *said, int64_t is)
{
    if (!json_is(said, JSON_INT)) {
        validator_find(o, VALIDATOR_BRACKETING, o->line, "the stop has no '%s'", key);
    } else if (said->integer != is) {
        validator_find(o, VALIDATOR_BRACKETING, o->line, "%s is %lld, but there are %lld", key,
                       (long long)said->integer, (long long)is);
    }
}

/* Whatever was or was not begun before it. */
static void stop_names(struct validator *o, const struct json *said)
{
    for (size_t i = 0; json_is(said, JSON_OBJECT) && i < json_len(said); i++) {
        struct str key = said->object.members[i].key;
        enum entry_type type;
        if (!entry_type_find(key, &type)) {
            validator_find(o, VALIDATOR_CANONICAL_TYPES, o->line,
                           "the stop counts '%.*s', which is not a type",
                           STR_ARG(validator_short(key)));
        }
    }
}

static void stop_types(struct validator *o, const struct json *said)
{
    for (size_t i = 0; i < ENTRY_TYPE_MAX; i++) {
        const char *word = entry_type_word((enum entry_type)i);
        const struct json *n = json_get(said, word);
        if (n != NULL || o->by_type[i] > 0) {
            char key[80];
            (void)snprintf(key, sizeof key, "entries_by_type.%s", word);
            count_is(o, key, n, o->by_type[i]);
        }
    }
}

static void stop_sources(struct validator *o, const struct json *said)
{
    size_t named = 0;
    for (size_t i = 0; i < json_len(said); i++) {
        const struct json_member *m = &said->object.members[i];
        struct validator_source probe = { .key = validator_key(o->scratch, m->key) };
        struct validator_source **at = tfind(&probe, &o->sources, by_key);
        bool here = at != NULL && (*at)->conversation == o->conversation;
        char key[120];
        (void)snprintf(key, sizeof key, "entries_by_source.%.*s", STR_ARG(validator_short(m->key)));
        count_is(o, key, m->value, here ? (*at)->count : 0);
        named += here;
    }
    if (named < o->n_sources) {
        validator_find(o, VALIDATOR_BRACKETING, o->line,
                       "entries_by_source omits %zu of %zu sources", o->n_sources - named,
                       o->n_sources);
    }
}

static void stop(struct validator *o, const struct validator_line *l)
{
    stop_names(o, json_get(l->fields, "entries_by_type"));
    if (!o->open) {
        validator_find(o, VALIDATOR_BRACKETING, o->line, "stop without a start");
        return;
    }
    static const char *const maps[] = { "entries_by_source", "entries_by_type" };
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        if (!json_is(json_get(l->fields, maps[i]), JSON_OBJECT)) {
            validator_find(o, VALIDATOR_BRACKETING, o->line, "the stop has no '%s'", maps[i]);
        }
    }
    o->open = false;
    count_is(o, "total_entries", json_get(l->fields, "total_entries"), o->total);
    if (json_is(json_get(l->fields, maps[0]), JSON_OBJECT)) {
        stop_sources(o, json_get(l->fields, maps[0]));
    }
    if (json_is(json_get(l->fields, maps[1]), JSON_OBJECT)) {
        stop_types(o, json_get(l->fields, maps[1]));
    }
}

/* --- entries --- */

static void keep_head(struct validator *o, const struct validator_line *l)
{
    CLEANUP(buf) struct buf head = BUF_INIT(BUF_TEXT);
    if (!o->keeps_heads) {
        return;
    }
    buf_addf(&head, "%.*s #%lld %.*s\n",
             STR_ARG(json_str(json_get(l->fields, "source"), STR_EMPTY)),
             (long long)json_int(json_get(l->fields, "sequence_number"), 0),
             STR_ARG(json_str(json_get(l->fields, "entry_type"), STR_EMPTY)));
    o->keeps_heads = buf_append(&o->heads, buf_str(&head), NULL) == 0;
}

static void summarise(struct validator *o, const struct validator_line *l, enum entry_type type,
                      bool canonical)
{
    struct validator_summary *s = &o->report.summary;
    struct str source =
        validator_key(o->scratch, json_str(json_get(l->fields, "source"), STR_EMPTY));
    struct str time = validator_short(json_str(json_get(l->fields, "timestamp"), STR_EMPTY));
    enum { NAMED_MAX = 1000 }; /* looking one up costs their number */
    struct json *n = json_find(s->by_source, source);
    if (n == NULL && json_len(s->by_source) < NAMED_MAX) {
        n = json_integer(o->keep, 0);
        json_set(o->keep, s->by_source, source, n);
    }
    if (n != NULL) {
        n->integer++;
    }
    s->entries++;
    s->by_type[type] += canonical;
    if (s->entries == 1) {
        s->first = arena_dup(o->keep, time);
    }
    o->last_time_len = time.len < sizeof o->last_time ? time.len : sizeof o->last_time - 1;
    memcpy(o->last_time, time.ptr, o->last_time_len);
}

static void entry(struct validator *o, const struct validator_line *l)
{
    struct str word = json_str(json_get(l->fields, "entry_type"), STR_EMPTY);
    enum entry_type type = ENTRY_UNKNOWN;
    bool canonical = entry_type_find(word, &type);
    if (!canonical) {
        validator_find(o, VALIDATOR_CANONICAL_TYPES, o->line, "'%.*s' is not an entry type",
                       STR_ARG(validator_short(word)));
    }
    if (!o->open && !o->told_outside && (!l->log || o->seen_bracket)) {
        validator_find(o, VALIDATOR_BRACKETING, o->line, "entry outside of a start and its stop");
        o->told_outside = true;
    }
    o->total++;
    o->by_type[type] += canonical;
    summarise(o, l, type, canonical);
    keep_head(o, l);
    struct validator_source *s = validator_source_of(o, l);
    if (s != NULL) {
        s->count++;
        sequence(o, l, s);
        if (canonical && type == ENTRY_TOOL_USE) {
            validator_tool_use(o, l, s);
        } else if (canonical && type == ENTRY_TOOL_RESULT) {
            validator_tool_result(o, l, s);
        }
    }
    if (o->opts.entry != NULL) {
        o->opts.entry(o->opts.arg, o->line, l->fields);
    }
}

/* --- lines --- */

static void take_object(struct validator *o, const struct json *whole)
{
    struct validator_line l;
    bool ours = validator_line_read(whole, &l);
    if (l.log && !ours) {
        o->seen_other = true; /* other records of a log */
        return;
    }
    o->seen_transcript = o->seen_transcript || ours;
    o->seen_log = o->seen_log || l.log;
    validator_envelope(o, &l);
    if (!ours) {
        return;
    }
    bool starts = str_eqc(l.event, "transcript.start");
    bool stops = str_eqc(l.event, "transcript.stop");
    o->seen_bracket = o->seen_bracket || starts || stops;
    if (!starts && !stops && !str_eqc(l.event, "transcript.entry")) {
        return; /* of a log: what went wrong, where files were found */
    }
    adapter_label(o, &l);
    chronology(o, &l);
    if (starts) {
        start(o, &l);
    }
    same_prompt(o, &l);
    if (stops) {
        stop(o, &l);
    } else if (!starts) {
        entry(o, &l);
    }
}

static void take_line(struct validator *o, struct str text)
{
    struct json *v = NULL;
    struct err e;
    arena_reset(o->scratch);
    o->line++;
    if (str_trim(text).len == 0) {
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "empty line");
        return;
    }
    o->blank_only = false;
    if (json_parse(o->scratch, text, &(struct json_limits) { .no_positions = true }, &v, &e) < 0) {
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "invalid JSON: %s", e.msg);
    } else if (!json_is(v, JSON_OBJECT)) {
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "not an object: the type is %s",
                       json_type_name(v->type));
    } else {
        take_object(o, v);
    }
}

/* Lines that were dropped while the next one was looked for. */
static void tell_overlong(struct validator *o)
{
    for (; o->overlong < o->lines.overlong; o->overlong++) {
        o->line++;
        o->blank_only = false;
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "longer than %zu bytes", JSONL_LINE_MAX);
    }
}

struct validator *validator_new(const struct validator_opts *opts)
{
    struct validator *o = xcalloc(1, sizeof *o);
    o->opts = *opts;
    o->keep = arena_new();
    o->scratch = arena_new();
    o->blank_only = true;
    o->conversation = 1; /* also of entries that come before any start */
    o->heads.max = BUF_TEXT;
    o->report.summary = (struct validator_summary) {
        .by_source = json_object(o->keep),
        .adapter = "",
        .prompt_name = "",
        .first = "",
        .last = "",
    };
    lines_init(&o->lines, JSONL_LINE_MAX);
    return o;
}

void validator_feed(struct validator *o, struct str bytes)
{
    struct str line;
    lines_feed(&o->lines, bytes);
    while (lines_next(&o->lines, &line)) {
        tell_overlong(o);
        take_line(o, line);
    }
}

void validator_end(struct validator *o)
{
    struct str line;
    tell_overlong(o);
    if (lines_end(&o->lines, &line)) {
        take_line(o, line);
        validator_find(o, VALIDATOR_ENVELOPE, o->line, "the last line has no newline");
    }
    if (o->open) {
        validator_find(o, VALIDATOR_BRACKETING, o->start_line, "this conversation has no stop");
    } else if (o->seen_log && o->seen_other && !o->seen_bracket) {
        validator_find(o, VALIDATOR_BRACKETING, 0, "the log has no transcript.start");
    }
    validator_calls_end(o);
    o->report.is_transcript = o->seen_transcript || (o->blank_only && !o->seen_other);
    o->report.summary.last = arena_dup(o->keep, str_n(o->last_time, o->last_time_len));
}

const struct validator_report *validator_report(const struct validator *o)
{
    return &o->report;
}

static void nothing(void *node)
{
    (void)node; /* nodes are the arena's */
}

struct validator *validator_free(struct validator *o)
{
    if (o != NULL) {
        tdestroy(o->sources, nothing);
        tdestroy(o->calls, nothing);
        lines_done(&o->lines);
        buf_done(&o->heads);
        free(o->findings);
        o->scratch = arena_free(o->scratch);
        o->keep = arena_free(o->keep);
        free(o);
    }
    return NULL;
}
