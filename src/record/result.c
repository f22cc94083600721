/* SPDX-License-Identifier: MIT
 *
 * result.json: what the harness answered, and the verdict.
 */
#include "record/summary_priv.h"

/* Cut between characters: never inside one. */
static struct str bounded(struct str text)
{
    size_t max = RESULT_TEXT_MAX;
    if (text.len <= max) {
        return text;
    }
    while (max > 0 && ((unsigned char)text.ptr[max] & 0xC0) == 0x80) {
        max--;
    }
    return str_slice(text, 0, max);
}

static void add_answer(struct view *v, const struct summary *s)
{
    if (s->text.ptr == NULL) {
        view_word(v, "text", NULL);
        view_int(v, "text_bytes", 0);
        view_bool(v, "truncated", false);
    } else {
        /* Redacted before it is cut: half a secret is not found. */
        unsigned cut = s->text_cut ? REDACT_CUT_FRONT : 0;
        struct str clean = redact_cut(v->redactor, v->arena, s->text, cut);
        json_setc(v->arena, v->object, "text", json_string(v->arena, bounded(clean)));
        view_int(v, "text_bytes", (int64_t)s->text.len);
        view_bool(v, "truncated", s->text_cut || clean.len > RESULT_TEXT_MAX);
    }
    struct json *output = redact_json(v->redactor, v->arena, s->output);
    json_setc(v->arena, v->object, "output", output != NULL ? output : json_null(v->arena));
    bool read = s->output != NULL && s->repair_level >= 0;
    if (read) {
        view_int(v, "repair_level", s->repair_level);
    } else {
        view_word(v, "repair_level", NULL);
    }
    view_word(v, "output_source", read ? s->output_source : NULL);
    view_word(v, "output_repair", read ? s->output_repair : NULL);
    struct json *error = redact_json(v->redactor, v->arena, s->output_error);
    json_setc(v->arena, v->object, "output_error", error != NULL ? error : json_null(v->arena));
}

struct json *result_json(const struct summary *s, const struct redactor *r, struct arena *a)
{
    struct view v = { a, r, json_object(a) };
    view_int(&v, "schema_version", SUMMARY_SCHEMA_VERSION);
    view_word(&v, "run_id", s->run_id);
    view_word(&v, "state", reason_state(s->reason));
    view_word(&v, "outcome", reason_outcome(s->reason));
    view_word(&v, "reason", reason_word(s->reason));
    view_flag(&v, "passed", s->passed);
    view_text(&v, "error", s->error);
    struct json *error = redact_json(r, a, s->evaluation_error);
    json_setc(a, v.object, "evaluation_error", error != NULL ? error : json_null(a));
    add_answer(&v, s);
    view_text(&v, "session_id", s->session_id);
    view_engine_exit(&v, "engine_exit", s->engine_exit);
    return v.object;
}
