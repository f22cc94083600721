/* SPDX-License-Identifier: MIT
 *
 * The ladder. Each rung offers candidates; try_text() parses and judges one, and remembers the best
 * reason why none was good enough, so that the model can be told something useful.
 */
#include "prompt/structured.h"

#include "llm/schema_convert.h"
#include "prompt/structured_priv.h"

/* Bytes of candidates that are parsed, and bytes that the search for brackets looks at, for each
 * byte of the text; with some for short texts. */
enum { PARSE_FACTOR = 8, SCAN_FACTOR = 16, FACTOR_FLOOR = 64 * 1024 };
/* Candidates from prose are judged with less patience than the answer itself: so many steps of
 * validation, and so many for each byte. Usual schemas take one or two. */
enum { PROSE_STEPS = 50 * 1000, PROSE_STEPS_PER_BYTE = 100 };
/* Of a candidate, in the failure. */
enum { EXCERPT_BYTES = 2000, MESSAGE_ERRORS = 8 };

struct ladder {
    const struct structured_options *options;
    struct structured_result *ret;
    struct arena *a;       /* of the result */
    struct arena *scratch; /* of the present candidate */
    enum structured_repair repair;
    size_t candidates, parse_budget, scan_budget;
    unsigned badness; /* of the failure noted; the lower the better */
    int rc;           /* an error other than "not valid" ends it */
    struct err *e;
};

enum { BAD_TYPE = 1000, BAD_SYNTAX = 100 * 1000, BAD_NOTHING = 1000 * 1000 };

const char *structured_repair_name(enum structured_repair repair)
{
    switch (repair) {
    case STRUCTURED_NONE:
        return "none";
    case STRUCTURED_ENVELOPE:
        return "envelope";
    case STRUCTURED_FENCE:
        return "fence";
    case STRUCTURED_BALANCED:
        return "balanced";
    }
    return "none";
}

const char *structured_source_name(enum structured_source source)
{
    switch (source) {
    case STRUCTURED_TEXT:
        return "text";
    case STRUCTURED_NATIVE:
        return "native";
    case STRUCTURED_TOOL:
        return "tool";
    }
    return "text";
}

static struct str excerpt(struct arena *a, struct str text)
{
    size_t n = text.len < EXCERPT_BYTES ? text.len : EXCERPT_BYTES;
    while (n < text.len && n > 0 && ((unsigned char)text.ptr[n] & 0xc0) == 0x80) {
        n--; /* not inside a character */
    }
    return arena_str(a, str_slice(text, 0, n));
}

/* --- one candidate --- */

static void note_syntax(struct ladder *l, struct str text, const struct err *why)
{
    if (l->badness <= BAD_SYNTAX) {
        return;
    }
    l->badness = BAD_SYNTAX;
    l->ret->failure.message =
        str_of(arena_printf(l->a, "the JSON of the answer does not parse: %s", why->msg));
    l->ret->failure.excerpt = excerpt(l->a, text);
    l->ret->failure.repair = l->repair;
}

/* The result of a validation, copied to the caller's arena: its paths and messages die with the
 * candidate. */
static struct schema_result *keep_errors(struct arena *a, const struct schema_result *from)
{
    struct schema_result *kept = ARENA_NEW(a, struct schema_result);
    *kept = *from;
    kept->errors = arena_array(a, from->len, sizeof *kept->errors);
    for (size_t i = 0; i < from->len; i++) {
        kept->errors[i] = (struct schema_error) {
            .instance_path = arena_str(a, from->errors[i].instance_path),
            .schema_path = arena_str(a, from->errors[i].schema_path),
            .keyword = arena_str(a, from->errors[i].keyword),
            .message = arena_str(a, from->errors[i].message),
            .value = json_copy(a, from->errors[i].value),
        };
    }
    return kept;
}

static void note_errors(struct ladder *l, struct str text, const struct schema_result *why)
{
    unsigned badness = (unsigned)why->len;
    for (size_t i = 0; i < why->len; i++) {
        bool root = why->errors[i].instance_path.len == 0;
        badness += root && str_eqc(why->errors[i].keyword, "type") ? BAD_TYPE : 0;
    }
    if (badness >= l->badness) {
        return;
    }
    CLEANUP(buf) struct buf message = BUF_INIT(BUF_TEXT);
    struct schema_result shown = *why;
    shown.more = why->more || why->len > MESSAGE_ERRORS;
    shown.len = why->len < MESSAGE_ERRORS ? why->len : MESSAGE_ERRORS;
    buf_adds(&message, "the answer does not fit the schema:\n");
    if (schema_result_write(&shown, &message, NULL) != 0) {
        return;
    }
    l->badness = badness;
    l->ret->failure.message = arena_str(l->a, str_trim(buf_str(&message)));
    l->ret->failure.excerpt = excerpt(l->a, text);
    l->ret->failure.repair = l->repair;
    l->ret->failure.errors = keep_errors(l->a, why);
}

static bool take(struct ladder *l, const struct json *value, struct str piece)
{
    l->ret->value = json_copy(l->a, value);
    l->ret->repair = l->repair;
    l->ret->piece = piece;
    return true;
}

/* Judges a value; takes it when it is good. */
static bool try_value(struct ladder *l, const struct json *value, struct str piece)
{
    const struct structured_options *o = l->options;
    if (o->strict != NULL) {
        value = schema_from_strict(l->scratch, o->strict, value);
    }
    if (o->wanted != NULL) {
        value = schema_unwrap(o->wanted, value);
    }
    if (o->schema == NULL) {
        return (value->type == JSON_OBJECT || value->type == JSON_ARRAY) && take(l, value, piece);
    }
    struct schema_result why;
    struct schema_limits limits = { 0 };
    if (l->repair == STRUCTURED_BALANCED) {
        limits.max_steps = PROSE_STEPS + PROSE_STEPS_PER_BYTE * (uint64_t)piece.len;
    }
    int rc = schema_validate(o->schema, value, &limits, l->scratch, &why, l->e);
    if (rc != 0) {
        /* too much work for something in prose is no reason to give up */
        l->rc = l->repair == STRUCTURED_BALANCED ? 0 : rc;
        return false;
    }
    if (why.valid) {
        return take(l, value, piece);
    }
    note_errors(l, piece, &why);
    return false;
}

/* Parses a candidate. *ret is NULL when it is no JSON, or there were too many candidates. */
static void parse(struct ladder *l, struct str text, struct json **ret)
{
    struct err why = { 0 };
    *ret = NULL;
    arena_reset(l->scratch);
    if (text.len == 0 || l->candidates == 0 || text.len > l->parse_budget) {
        return;
    }
    l->candidates--;
    l->parse_budget -= text.len;
    if (json_parse(l->scratch, text, &l->options->limits, ret, &why) != 0) {
        *ret = NULL;
        bool looks_like_json = text.ptr[0] == '{' || text.ptr[0] == '[';
        if (looks_like_json && l->repair != STRUCTURED_BALANCED) {
            note_syntax(l, text, &why);
        }
    }
}

static bool try_text(struct ladder *l, struct str text)
{
    struct json *value;
    parse(l, text, &value);
    return value != NULL && try_value(l, value, text);
}

/* --- the rungs --- */

static bool try_fences(struct ladder *l, struct str text, bool json)
{
    size_t at = 0;
    struct fence f;
    while (l->rc == 0 && l->candidates > 0 && scan_fence(text, &at, &l->scan_budget, &f)) {
        if (f.json != json) {
            continue;
        }
        if (try_text(l, f.content)) {
            return true;
        }
        if (f.shorter.len != f.content.len && l->rc == 0 && try_text(l, f.shorter)) {
            return true;
        }
    }
    return false;
}

/* `inside`: also looks into values that were JSON but not valid. */
static bool try_balanced(struct ladder *l, struct str text, bool inside)
{
    size_t at = 0;
    struct str piece;
    while (l->rc == 0 && l->candidates > 0 && scan_balanced(text, &at, &l->scan_budget, &piece)) {
        struct json *value;
        parse(l, piece, &value);
        if (value != NULL && try_value(l, value, piece)) {
            return true;
        }
        at += value != NULL && !inside ? piece.len : 1;
    }
    return false;
}

static bool try_prose(struct ladder *l, struct str text)
{
    l->repair = STRUCTURED_FENCE;
    if (try_fences(l, text, true) || try_fences(l, text, false)) {
        return true;
    }
    l->repair = STRUCTURED_BALANCED;
    return try_balanced(l, text, false) ||
           (l->options->schema != NULL && try_balanced(l, text, true));
}

/* The value at a pointer, or the JSON in the string there. */
static bool try_envelope(struct ladder *l, const struct json *whole, const char *pointer,
                         struct str piece)
{
    const struct json *inner = json_pointer(whole, str_of(pointer));
    if (inner == NULL) {
        return false;
    }
    l->repair = STRUCTURED_ENVELOPE;
    l->ret->pointer = pointer;
    if (inner->type != JSON_STRING) {
        return try_value(l, inner, piece);
    }
    /* the string is a text of its own, and `whole` is gone with the next candidate */
    struct str text = str_trim(arena_str(l->a, inner->string));
    return try_text(l, text) || (l->rc == 0 && try_prose(l, text));
}

static bool try_envelopes(struct ladder *l, struct str text)
{
    for (size_t i = 0; i < l->options->envelope_count && l->rc == 0; i++) {
        struct json *whole;
        l->repair = STRUCTURED_ENVELOPE;
        parse(l, text, &whole);
        if (whole != NULL && try_envelope(l, whole, l->options->envelopes[i], text)) {
            return true;
        }
    }
    l->ret->pointer = NULL;
    return false;
}

static bool climb(struct ladder *l, struct str text)
{
    struct str trimmed = str_trim(text);
    bool whole_first = l->options->schema != NULL || l->options->envelope_count == 0;
    /* Without a schema everything would do, so what is known about the envelope comes first. */
    if (!whole_first && try_envelopes(l, trimmed)) {
        return true;
    }
    l->repair = STRUCTURED_NONE;
    if (l->rc != 0 || try_text(l, trimmed)) {
        return l->rc == 0;
    }
    if (whole_first && l->rc == 0 && try_envelopes(l, trimmed)) {
        return true;
    }
    return l->rc == 0 && try_prose(l, trimmed);
}

static int finish(struct ladder *l, bool found, struct str raw)
{
    struct structured_result *r = l->ret;
    if (found || l->rc != 0) {
        r->failure = (struct structured_failure) { 0 };
        return found ? 0 : l->rc;
    }
    r->pointer = NULL;
    r->failure.raw = raw;
    if (l->badness == BAD_NOTHING) {
        r->failure.message = str_of(raw.len == 0 ? "the answer is empty"
                                                 : "there is no JSON value in the answer; give the "
                                                   "JSON value only");
        r->failure.excerpt = STR_EMPTY;
    }
    return ERR(l->e, ERR_PARSE, "%.*s",
               (int)(r->failure.message.len < 400 ? r->failure.message.len : 400),
               r->failure.message.ptr);
}

static struct ladder ladder_new(const struct structured_options *options, size_t len,
                                struct structured_result *ret, struct err *e)
{
    *ret = (struct structured_result) { 0 };
    return (struct ladder) {
        .options = options,
        .ret = ret,
        .candidates = STRUCTURED_CANDIDATES,
        .parse_budget = PARSE_FACTOR * len + FACTOR_FLOOR,
        .scan_budget = SCAN_FACTOR * len + FACTOR_FLOOR,
        .badness = BAD_NOTHING,
        .e = e,
    };
}

int structured_parse(struct str text, const struct structured_options *options, struct arena *a,
                     struct structured_result *ret, struct err *e)
{
    CLEANUP(arena) struct arena *scratch = arena_new();
    struct ladder l = ladder_new(options, text.len, ret, e);
    l.a = a;
    l.scratch = scratch;
    return finish(&l, climb(&l, text), text);
}

int structured_accept(const struct json *value, enum structured_source source,
                      const struct structured_options *options, struct arena *a,
                      struct structured_result *ret, struct err *e)
{
    CLEANUP(arena) struct arena *scratch = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct ladder l = ladder_new(options, 0, ret, e);
    l.a = a;
    l.scratch = scratch;
    ret->source = source;
    if (json_write(value, JSON_COMPACT, &text, NULL) != 0) {
        return ERR(e, ERR_LIMIT, "the value is too large");
    }
    struct str raw = arena_str(a, buf_str(&text));
    return finish(&l, try_value(&l, value, raw), raw);
}
