/* SPDX-License-Identifier: MIT
 *
 * Applies the output rules of a profile; see mapping.h. Documents are parsed into an arena that is
 * emptied after each, so what is to be kept is copied.
 */
#include "adapters/mapping.h"

#include <stdlib.h>

#include "base/arena.h"
#include "data/regex.h"
#include "wire/lines.h"

/* Reached by a harness that prints a huge document; it is then not parsed, only logged. */
enum { DOCUMENT_MAX = 16 << 20 };
/* Final text kept for result.json; the log has the whole. */
enum { TEXT_MAX = 64 << 10 };
/* Of the harness' own words for its failure. */
enum { ERROR_MAX = 4 << 10 };

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
    const struct json
        *marks;        /* text: lines that are the harness' and not the model's; NULL: none */
    bool begun;        /* the first line of the text was there */
    struct buf answer; /* marks: the last answer that was ended by one */
    bool answer_truncated;
    struct buf error;
    bool trims;
    struct regex *pattern; /* text: of the final text; NULL: it is the whole output */
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
    m->marks = m->format == FORMAT_TEXT ? json_get(spec, "marks") : NULL;
    m->trims = json_bool(json_get(spec, "trim"), m->format == FORMAT_TEXT);
    struct str pattern = json_str(json_get(spec, "pattern"), STR_EMPTY);
    if (m->format == FORMAT_TEXT && pattern.len > 0) {
        (void)!regex_compile(pattern, 0, &m->pattern, NULL); /* checked by profile_parse() */
    }
    m->scratch = arena_new();
    m->keep = arena_new();
    lines_init(&m->lines, DOCUMENT_MAX);
    buf_init(&m->whole, DOCUMENT_MAX);
    buf_init(&m->text, TEXT_MAX);
    buf_init(&m->answer, TEXT_MAX);
    buf_init(&m->error, ERROR_MAX);
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
        buf_done(&m->answer);
        buf_done(&m->error);
        regex_free(m->pattern);
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

static bool is_marked(struct str line, const struct json *mark)
{
    return json_is(mark, JSON_STRING) && mark->string.len > 0 && str_starts(line, mark->string);
}

static void end_answer(struct mapping *m)
{
    struct agent_report *r = &m->report;
    buf_reset(&m->answer);
    buf_add(&m->answer, buf_str(&m->text));
    m->answer_truncated = r->text_truncated;
    buf_reset(&m->text);
    buf_reset(&m->error);
    r->text_truncated = false;
    r->failed = false;
    r->result_seen = true;
}

static void note_error(struct mapping *m, struct str line)
{
    m->report.failed = true;
    buf_reset(&m->error);
    buf_add(&m->error, str_slice(line, 0, line.len < ERROR_MAX ? line.len : ERROR_MAX));
}

static void take_line(struct mapping *m, struct str line)
{
    const struct json *errors = json_get(m->marks, "error");
    if (!m->begun && is_marked(line, json_get(m->marks, "begin"))) {
        m->begun = true;
        m->report.text_truncated = false;
        buf_reset(&m->text);
        return;
    }
    if (is_marked(line, json_get(m->marks, "end"))) {
        end_answer(m);
        return;
    }
    for (size_t i = 0; i < json_len(errors); i++) {
        if (is_marked(line, json_item(errors, i))) {
            note_error(m, line);
            break;
        }
    }
    keep_tail(m, line);
    keep_tail(m, STR("\n"));
}

/* --- pointers --- */

static bool is_equal_to(const struct json *v, struct str text)
{
    int64_t n = 0;
    if (json_is(v, JSON_BOOL)) {
        return str_eqc(text, json_bool(v, false) ? "true" : "false");
    }
    if (json_is(v, JSON_INT)) {
        return str_to_i64(text, &n) && n == json_int(v, 0);
    }
    return json_is(v, JSON_STRING) && str_eq(v->string, text);
}

/* `choice` is what stands in the brackets: "last", "type=text", "last type=text". */
static const struct json *select_item(const struct json *list, struct str choice)
{
    bool last = str_starts(choice, STR("last"));
    struct str test = choice;
    if (last || str_starts(choice, STR("first"))) {
        test = str_trim(str_slice(choice, last ? 4 : 5, choice.len));
    }
    size_t equals = str_find(test, STR("="));
    struct str key = str_slice(test, 0, equals);
    struct str value = str_slice(test, equals + 1, test.len);
    const struct json *found = NULL;
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        if (test.len == 0 || is_equal_to(json_find(item, key), value)) {
            found = item;
            if (!last) {
                break;
            }
        }
    }
    return found;
}

const struct json *mapping_select(const struct json *doc, struct str pointer)
{
    const struct json *at = doc;
    while (at != NULL) {
        size_t open = str_find(pointer, STR("/["));
        struct str rest = str_slice(pointer, open, pointer.len);
        size_t close = str_find(rest, STR("]"));
        bool whole = close == rest.len || (close + 1 < rest.len && rest.ptr[close + 1] != '/');
        if (open == pointer.len || whole) {
            return json_pointer(at, pointer);
        }
        at = open == 0 ? at : json_pointer(at, str_slice(pointer, 0, open));
        at = select_item(at, str_slice(rest, 2, close));
        pointer = str_slice(rest, close + 1, rest.len);
    }
    return NULL;
}

/* --- rules --- */

static bool rule_matches(const struct json *rule, const struct json *doc)
{
    const struct json *when = json_get(rule, "when");
    for (size_t i = 0; i < json_len(when); i++) {
        const struct json_member *m = &when->object.members[i];
        if (!json_equal(mapping_select(doc, m->key), m->value)) {
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
    return json_is(pointer, JSON_STRING) ? mapping_select(doc, pointer->string) : NULL;
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
    r->entries += entry != NULL;
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
        if (m->marks != NULL) {
            take_line(m, line);
        } else if (str_trim(line).len > 0) {
            apply_document(m, line);
        }
    }
}

void mapping_feed(struct mapping *m, struct str bytes)
{
    switch (m->format) {
    case FORMAT_TEXT:
        if (m->marks != NULL) {
            feed_lines(m, bytes);
        } else {
            keep_tail(m, bytes);
        }
        break;
    case FORMAT_JSON:
        m->whole_overflow = m->whole_overflow || buf_append(&m->whole, bytes, NULL) < 0;
        break;
    case FORMAT_NDJSON:
        feed_lines(m, bytes);
        break;
    }
}

/* What a harness says after the last answer is about its own doings; the log has it. */
static void end_marked(struct mapping *m)
{
    struct agent_report *r = &m->report;
    struct str line;
    if (lines_end(&m->lines, &line)) {
        take_line(m, line);
    }
    r->text = str_trim(buf_str(&m->text));
    if (r->result_seen) {
        r->text = str_trim(buf_str(&m->answer));
        r->text_truncated = m->answer_truncated;
    }
    r->error = buf_str(&m->error);
}

/* The last match; its first group, if there is one. */
static struct str match_pattern(struct mapping *m, struct str text)
{
    struct str found = { 0 };
    struct regex_span spans[2];
    bool more = true;
    while (more && regex_find(m->pattern, text, spans, ARRAY_LEN(spans), NULL) == 1) {
        const struct regex_span *s = spans[1].from == REGEX_UNSET ? &spans[0] : &spans[1];
        size_t next = spans[0].to > spans[0].from ? spans[0].to : spans[0].to + 1;
        found = str_slice(text, s->from, s->to);
        more = next < text.len;
        text = str_slice(text, next, text.len);
    }
    m->report.answer_missed = found.ptr == NULL;
    return found;
}

static bool has_text_rule(const struct mapping *m)
{
    for (size_t i = 0; i < json_len(m->rules); i++) {
        if (json_get(json_item(m->rules, i), "text") != NULL) {
            return true;
        }
    }
    return false;
}

/* What is left when all output was read. */
static void end_text(struct mapping *m)
{
    struct agent_report *r = &m->report;
    r->text = buf_str(&m->text);
    if (m->pattern != NULL) {
        r->text = match_pattern(m, r->text);
    } else if (m->format != FORMAT_TEXT) {
        r->answer_missed = has_text_rule(m) && !r->result_seen;
    }
    r->text = m->trims ? str_trim(r->text) : r->text;
}

void mapping_end(struct mapping *m, struct agent_report *ret)
{
    struct str line;
    if (m->marks != NULL) {
        end_marked(m);
    }
    if (m->format == FORMAT_NDJSON && lines_end(&m->lines, &line)) {
        apply_document(m, line);
    }
    if (m->format == FORMAT_JSON && m->whole_overflow) {
        m->report.overlong_lines++;
    } else if (m->format == FORMAT_JSON && str_trim(buf_str(&m->whole)).len > 0) {
        apply_document(m, buf_str(&m->whole));
    }
    m->report.overlong_lines += m->lines.overlong;
    if (m->marks == NULL) {
        end_text(m);
    }
    *ret = m->report;
}
