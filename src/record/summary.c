/* SPDX-License-Identifier: MIT
 *
 * What the three views share, and taking over what earlier views knew; see summary.h.
 */
#include "record/summary.h"

#include <math.h>

#include "record/summary_priv.h"

const char *timeout_kind_word(enum timeout_kind kind)
{
    static const char *const words[] = {
        [TIMEOUT_NONE] = NULL,     [TIMEOUT_FIRST_OUTPUT] = "first_output", [TIMEOUT_IDLE] = "idle",
        [TIMEOUT_TOTAL] = "total", [TIMEOUT_DEADLINE] = "deadline",
    };
    return words[kind];
}

static const char *const tokens_words[] = {
    [TOKENS_NONE] = "none",
    [TOKENS_STREAM] = "stream",
    [TOKENS_REGEX] = "regex",
    [TOKENS_WIRE] = "wire",
};

static const char *const cost_words[] = {
    [COST_NONE] = "none",
    [COST_CLI] = "cli",
    [COST_TABLE] = "table",
    [COST_SIMULATED] = "simulated",
};

const char *tokens_source_word(enum tokens_source s)
{
    return tokens_words[s];
}

const char *cost_source_word(enum cost_source s)
{
    return cost_words[s];
}

/* Index of the word in the table, 0 ("none") when it is not there. */
static size_t word_index(const char *const *words, size_t count, const struct json *word)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eqc(json_str(word, STR_EMPTY), words[i])) {
            return i;
        }
    }
    return 0;
}

int summary_metrics_exit(const struct summary *s)
{
    return s->reason == REASON_NONE ? 0
                                    : reason_exit_status(s->reason, EXIT_SCYLLA, s->engine_exit);
}

int summary_contract_exit(const struct summary *s)
{
    return s->reason == REASON_NONE
               ? 0
               : reason_exit_status(s->reason, s->exit_profile, s->engine_exit);
}

void view_word(struct view *v, const char *key, const char *ours)
{
    json_setc(v->arena, v->object, key, json_cstr(v->arena, ours));
}

void view_text(struct view *v, const char *key, const char *foreign)
{
    if (foreign == NULL) {
        view_word(v, key, NULL);
        return;
    }
    struct str clean = redact_cut(v->redactor, v->arena, str_of(foreign), REDACT_CUT_END);
    json_setc(v->arena, v->object, key, json_string(v->arena, clean));
}

void view_int(struct view *v, const char *key, int64_t n)
{
    json_setc(v->arena, v->object, key, json_integer(v->arena, n));
}

void view_real(struct view *v, const char *key, double d)
{
    json_setc(v->arena, v->object, key, json_number(v->arena, isfinite(d) ? d : 0));
}

void view_bool(struct view *v, const char *key, bool b)
{
    json_setc(v->arena, v->object, key, json_boolean(v->arena, b));
}

void view_flag(struct view *v, const char *key, enum answer_flag f)
{
    if (f == FLAG_UNKNOWN) {
        view_word(v, key, NULL);
    } else {
        view_bool(v, key, f == FLAG_YES);
    }
}

void view_stamp(struct view *v, const char *key, int64_t wall)
{
    char text[CLOCK_ISO_LEN];
    view_word(v, key, wall > 0 ? clock_iso(wall, text) : NULL);
}

void view_ms(struct view *v, const char *key, nsec t)
{
    if (t > 0) {
        view_int(v, key, t / NSEC_PER_MS);
    } else {
        view_word(v, key, NULL);
    }
}

void view_list(struct view *v, const char *key, const char *const *foreign)
{
    struct json *list = json_array(v->arena);
    for (; foreign != NULL && *foreign != NULL; foreign++) {
        struct str clean = redact_cut(v->redactor, v->arena, str_of(*foreign), REDACT_CUT_END);
        json_push(v->arena, list, json_string(v->arena, clean));
    }
    json_setc(v->arena, v->object, key, list);
}

void view_engine_exit(struct view *v, const char *key, struct engine_exit exit)
{
    if (exit.end == ENGINE_NOT_ENDED) {
        view_word(v, key, NULL);
        return;
    }
    struct view inner = view_inner(v, key);
    view_int(&inner, exit.end == ENGINE_EXITED ? "code" : "signal", exit.value);
}

struct view view_inner(struct view *v, const char *key)
{
    struct view inner = { v->arena, v->redactor, json_object(v->arena) };
    json_setc(v->arena, v->object, key, inner.object);
    return inner;
}

double view_seconds(nsec t)
{
    return (double)(t / NSEC_PER_MS) / 1000.0;
}

static const struct json *typed(const struct json *object, const char *key, enum json_type type)
{
    const struct json *v = json_get(object, key);
    return json_is(v, type) ? v : NULL;
}

static void adopt_count(int64_t *to, const struct json *object, const char *key)
{
    int64_t n = json_int(json_get(object, key), 0);
    if (*to == 0 && n > 0) {
        *to = n;
    }
}

static void adopt_ms(nsec *to, const struct json *object, const char *key)
{
    enum { YEAR_S = 366 * 24 * 3600 };
    int64_t ms = json_int(json_get(object, key), 0);
    if (*to == 0 && ms > 0 && ms < (int64_t)YEAR_S * 1000) {
        *to = ms * NSEC_PER_MS;
    }
}

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((s.ptr[i] < 'a' || s.ptr[i] > 'z') && s.ptr[i] != '_') {
            return false;
        }
    }
    return s.len > 0;
}

void summary_adopt_phases(struct summary *s, const struct json *phases, struct arena *a)
{
    size_t len = json_is(phases, JSON_OBJECT) ? json_len(phases) : 0;
    if (s->phase_count > 0 || len == 0) {
        return;
    }
    struct summary_phase *list = arena_array(a, len, sizeof *list);
    for (size_t i = 0; i < len; i++) {
        const struct json_member *m = &phases->object.members[i];
        nsec took = 0;
        adopt_ms(&took, phases, m->key.ptr);
        if (is_word(m->key) && json_is(m->value, JSON_INT)) {
            list[s->phase_count++] = (struct summary_phase) { .name = m->key.ptr, .took = took };
        }
    }
    s->phases = list;
}

static void adopt_verdict(struct summary *s, const struct json *ext)
{
    const char *profile = json_cstring(json_get(ext, "exit_profile"), "");
    (void)exit_profile_find(profile, &s->exit_profile);
    for (enum timeout_kind k = TIMEOUT_NONE + 1; k <= TIMEOUT_DEADLINE; k++) {
        struct str word = json_str(json_get(ext, "timeout_kind"), STR_EMPTY);
        if (s->reason == REASON_TIMEOUT && str_eqc(word, timeout_kind_word(k))) {
            s->timeout = k;
        }
    }
    const struct json *exit = json_get(ext, "engine_exit");
    int64_t code = json_int(json_get(exit, "code"), -1);
    int64_t signal = json_int(json_get(exit, "signal"), -1);
    if (s->engine_exit.end == ENGINE_NOT_ENDED && code >= 0 && code <= 255) {
        s->engine_exit = (struct engine_exit) { ENGINE_EXITED, (int)code };
    } else if (s->engine_exit.end == ENGINE_NOT_ENDED && signal > 0 && signal < 128) {
        s->engine_exit = (struct engine_exit) { ENGINE_SIGNALLED, (int)signal };
    }
}

static void adopt_metrics(struct summary *s, const struct json *metrics, struct arena *a)
{
    const struct json *ext = json_get(metrics, "ext");
    adopt_verdict(s, ext);
    adopt_count(&s->leaked_children, ext, "leaked_children");
    adopt_count(&s->redactions, ext, "redactions");
    const struct json *tokens = json_get(ext, "tokens");
    adopt_count(&s->tokens.input, tokens, "input");
    adopt_count(&s->tokens.output, tokens, "output");
    adopt_count(&s->tokens.cache_read, tokens, "cache_read");
    adopt_count(&s->tokens.cache_creation, tokens, "cache_creation");
    adopt_count(&s->tokens.reasoning, tokens, "reasoning");
    double cost = json_real(json_get(metrics, "cost_usd"), 0);
    s->cost_usd = s->cost_usd == 0 && cost > 0 ? cost : s->cost_usd;
    s->tokens.source = (enum tokens_source)word_index(tokens_words, ARRAY_LEN(tokens_words),
                                                      json_get(ext, "tokens_source"));
    s->cost_source = (enum cost_source)word_index(cost_words, ARRAY_LEN(cost_words),
                                                  json_get(ext, "cost_source"));
    adopt_count(&s->api_calls, metrics, "api_calls");
    adopt_count(&s->turns, ext, "turns");
    adopt_count(&s->tool_calls, json_get(ext, "tool_calls"), "total");
    adopt_count(&s->tool_failures, json_get(ext, "tool_calls"), "failed");
    adopt_ms(&s->first_output, ext, "first_output_ms");
    adopt_ms(&s->first_token, ext, "ttft_ms");
    summary_adopt_phases(s, json_get(ext, "phase_ms"), a);
}

void summary_adopt(struct summary *s, const struct json *metrics, const struct json *result,
                   struct arena *a)
{
    adopt_metrics(s, metrics, a);
    const struct json *text = typed(result, "text", JSON_STRING);
    if (s->text.ptr == NULL && text != NULL) {
        s->text = text->string;
    }
    if (s->output == NULL) {
        struct json *output = json_get(result, "output");
        s->output = json_is(output, JSON_NULL) ? NULL : output;
    }
    if (s->session_id == NULL) {
        s->session_id = json_cstring(json_get(result, "session_id"), NULL);
    }
}
