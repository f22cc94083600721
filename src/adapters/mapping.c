/* SPDX-License-Identifier: MIT
 *
 * Applies the output rules of a profile; see mapping.h. Documents are parsed into an arena that is
 * emptied after each, so what is to be kept is copied.
 */
#include "adapters/mapping.h"

#include <stdlib.h>

#include "base/arena.h"
#include "wire/lines.h"

/* Reached by a harness that prints a huge document; it is then not parsed, only logged. */
enum { DOCUMENT_MAX = 16 << 20 };
/* Final text kept for result.json; the log has the whole. */
enum { TEXT_MAX = 64 << 10 };

enum mapping_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_NDJSON };

struct mapping {
    const struct json *rules;
    enum mapping_format format;
    struct entry_sink sink;
    struct arena *scratch; /* the document at hand */
    struct arena *keep;    /* what the report points to */
    struct lines lines;
    struct buf whole; /* json: the output so far */
    bool whole_overflow;
    struct buf text;
    struct agent_report report;
};

struct mapping *mapping_new(const struct json *spec, struct entry_sink sink)
{
    struct mapping *m = xcalloc(1, sizeof *m);
    struct str format = json_str(json_get(spec, "format"), STR("text"));
    m->rules = json_get(spec, "rules");
    m->sink = sink;
    m->format = str_eqc(format, "json")     ? FORMAT_JSON
                : str_eqc(format, "ndjson") ? FORMAT_NDJSON
                                            : FORMAT_TEXT;
    m->scratch = arena_new();
    m->keep = arena_new();
    lines_init(&m->lines, DOCUMENT_MAX);
    buf_init(&m->whole, DOCUMENT_MAX);
    buf_init(&m->text, TEXT_MAX);
    return m;
}

struct mapping *mapping_free(struct mapping *m)
{
    if (m != NULL) {
        arena_free(m->scratch);
        arena_free(m->keep);
        lines_done(&m->lines);
        buf_done(&m->whole);
        buf_done(&m->text);
        free(m);
    }
    return NULL;
}

/* Keeps the last TEXT_MAX bytes. */
static void keep_tail(struct mapping *m, struct str bytes)
{
    if (bytes.len > TEXT_MAX) {
        bytes = str_slice(bytes, bytes.len - TEXT_MAX, bytes.len);
        m->report.text_truncated = true;
    }
    size_t total = m->text.len + bytes.len;
    if (total > TEXT_MAX) {
        buf_consume(&m->text, total - TEXT_MAX);
        m->report.text_truncated = true;
    }
    buf_add(&m->text, bytes);
}

static bool rule_matches(const struct json *rule, const struct json *doc)
{
    const struct json *when = json_get(rule, "when");
    for (size_t i = 0; i < json_len(when); i++) {
        const struct json_member *m = &when->object.members[i];
        if (!json_equal(json_pointer(doc, m->key), m->value)) {
            return false;
        }
    }
    return true;
}

/* The value that a rule's key points at; NULL when the rule has no such key or the document no such
 * value. */
static const struct json *pointed(const struct json *rule, const char *key, const struct json *doc)
{
    const struct json *pointer = json_get(rule, key);
    return json_is(pointer, JSON_STRING) ? json_pointer(doc, pointer->string) : NULL;
}

static void take_count(int64_t *total, const struct json *v, bool add)
{
    int64_t n = json_int(v, -1);
    if (n >= 0) {
        *total = add ? *total + n : n;
    }
}

static void apply_usage(struct agent_usage *u, const struct json *rule, const struct json *doc)
{
    const struct json *spec = json_get(rule, "usage");
    if (spec == NULL) {
        return;
    }
    bool add = json_bool(json_get(rule, "add_usage"), false);
    const struct json *cost = pointed(spec, "cost_usd", doc);
    u->known = u->known || json_is(pointed(spec, "input", doc), JSON_INT) ||
               json_is(pointed(spec, "output", doc), JSON_INT);
    take_count(&u->input, pointed(spec, "input", doc), add);
    take_count(&u->output, pointed(spec, "output", doc), add);
    take_count(&u->cache_read, pointed(spec, "cache_read", doc), add);
    take_count(&u->cache_write, pointed(spec, "cache_write", doc), add);
    take_count(&u->reasoning, pointed(spec, "reasoning", doc), add);
    take_count(&u->turns, pointed(spec, "turns", doc), add);
    take_count(&u->api_calls, pointed(spec, "api_calls", doc), add);
    if (json_real(cost, -1) >= 0) {
        u->cost_known = true;
        u->cost_usd = json_real(cost, 0) + (add ? u->cost_usd : 0);
    }
}

static bool is_truthy(const struct json *v)
{
    return json_bool(v, json_len(v) > 0 || json_real(v, 0) != 0);
}

static void apply_text(struct mapping *m, const struct json *rule, const struct json *doc)
{
    const struct json *text = pointed(rule, "text", doc);
    if (!json_is(text, JSON_STRING)) {
        return;
    }
    if (!json_bool(json_get(rule, "append_text"), false)) {
        buf_reset(&m->text);
        m->report.text_truncated = false;
    }
    keep_tail(m, text->string);
    m->report.result_seen = true;
}

static void keep_str(struct mapping *m, struct str *to, const struct json *v)
{
    if (json_is(v, JSON_STRING) && v->string.len > 0) {
        *to = arena_str(m->keep, v->string);
    }
}

static void apply_rule(struct mapping *m, const struct json *rule, const struct json *doc,
                       struct str raw)
{
    struct agent_report *r = &m->report;
    apply_text(m, rule, doc);
    apply_usage(&r->usage, rule, doc);
    keep_str(m, &r->session_id, pointed(rule, "session_id", doc));
    keep_str(m, &r->model, pointed(rule, "model", doc));
    keep_str(m, &r->error, pointed(rule, "error", doc));
    r->failed = r->failed || is_truthy(pointed(rule, "failed", doc));
    const struct json *structured = pointed(rule, "structured", doc);
    if (structured != NULL && !json_is(structured, JSON_NULL)) {
        r->structured = json_copy(m->keep, structured);
    }
    const char *entry = json_cstring(json_get(rule, "entry"), NULL);
    if (entry != NULL && m->sink.entry != NULL) {
        m->sink.entry(m->sink.owner, entry, doc, raw);
    }
}

static void apply_document(struct mapping *m, struct str text)
{
    struct json *doc;
    if (json_parse(m->scratch, text, NULL, &doc, NULL) < 0) {
        m->report.unparsable_lines++;
    } else {
        for (size_t i = 0; i < json_len(m->rules); i++) {
            const struct json *rule = json_item(m->rules, i);
            if (rule_matches(rule, doc)) {
                apply_rule(m, rule, doc, text);
            }
        }
    }
    arena_reset(m->scratch);
}

static void feed_lines(struct mapping *m, struct str bytes)
{
    struct str line;
    lines_feed(&m->lines, bytes);
    while (lines_next(&m->lines, &line)) {
        if (str_trim(line).len > 0) {
            apply_document(m, line);
        }
    }
}

void mapping_feed(struct mapping *m, struct str bytes)
{
    switch (m->format) {
    case FORMAT_TEXT:
        keep_tail(m, bytes);
        break;
    case FORMAT_JSON:
        m->whole_overflow = m->whole_overflow || buf_append(&m->whole, bytes, NULL) < 0;
        break;
    case FORMAT_NDJSON:
        feed_lines(m, bytes);
        break;
    }
}

void mapping_end(struct mapping *m, struct agent_report *ret)
{
    struct str line;
    if (m->format == FORMAT_NDJSON && lines_end(&m->lines, &line)) {
        apply_document(m, line);
    }
    if (m->format == FORMAT_JSON && m->whole_overflow) {
        m->report.overlong_lines++;
    } else if (m->format == FORMAT_JSON && str_trim(buf_str(&m->whole)).len > 0) {
        apply_document(m, buf_str(&m->whole));
    }
    m->report.overlong_lines += m->lines.overlong;
    m->report.text = buf_str(&m->text);
    *ret = m->report;
}
