/* SPDX-License-Identifier: MIT
 *
 * metrics.json: ten fields in the order of Scylla's contract, never null but for `error`, then
 * `ext` with what that contract has no room for.
 */
#include "record/summary_priv.h"

static void add_money(struct view *ext, const struct summary *s)
{
    struct view calls = view_inner(ext, "calls");
    view_int(&calls, "total", s->calls.total);
    view_int(&calls, "failed", s->calls.failed);
    view_int(&calls, "refused", s->calls.refused);
    view_int(&calls, "side", s->calls.side);
    view_int(&calls, "estimated", s->calls.estimated);
    json_setc(ext->arena, ext->object, "usage", json_copy(ext->arena, s->usage));
    if (s->prices.version == NULL) {
        view_word(ext, "prices", NULL);
        return;
    }
    struct view prices = view_inner(ext, "prices");
    view_text(&prices, "version", s->prices.version);
    view_text(&prices, "source", s->prices.source);
}

static void add_usage(struct view *ext, const struct summary *s)
{
    struct view tokens = view_inner(ext, "tokens");
    view_int(&tokens, "input", s->tokens.input);
    view_int(&tokens, "output", s->tokens.output);
    view_int(&tokens, "cache_read", s->tokens.cache_read);
    view_int(&tokens, "cache_creation", s->tokens.cache_creation);
    view_int(&tokens, "reasoning", s->tokens.reasoning);
    view_word(ext, "tokens_source", tokens_source_word(s->tokens.source));
    view_word(ext, "cost_source", cost_source_word(s->cost_source));
    add_money(ext, s);
    view_int(ext, "turns", s->turns);
    struct view tools = view_inner(ext, "tool_calls");
    view_int(&tools, "total", s->tool_calls);
    view_int(&tools, "failed", s->tool_failures);
}

static void add_process(struct view *ext, const struct summary *s)
{
    struct view rusage = view_inner(ext, "rusage");
    view_real(&rusage, "utime_s", view_seconds(s->rusage.utime));
    view_real(&rusage, "stime_s", view_seconds(s->rusage.stime));
    view_int(&rusage, "maxrss_kb", s->rusage.maxrss_kb);
    struct view bytes = view_inner(ext, "bytes");
    view_int(&bytes, "stdout", s->bytes.out);
    view_int(&bytes, "stderr", s->bytes.err);
    view_int(&bytes, "lost", s->bytes.lost);
    view_int(ext, "redactions", s->redactions);
    view_int(ext, "leaked_children", s->leaked_children);
}

static void add_ext(struct view *v, const struct summary *s)
{
    struct view ext = view_inner(v, "ext");
    view_int(&ext, "schema_version", SUMMARY_SCHEMA_VERSION);
    view_word(&ext, "run_id", s->run_id);
    view_text(&ext, "engine", s->engine.name);
    view_text(&ext, "model", s->engine.model);
    view_text(&ext, "session_id", s->session_id);
    view_word(&ext, "outcome", reason_outcome(s->reason));
    view_word(&ext, "reason", reason_word(s->reason));
    view_bool(&ext, "timed_out", s->timeout != TIMEOUT_NONE);
    view_word(&ext, "timeout_kind", timeout_kind_word(s->timeout));
    view_engine_exit(&ext, "engine_exit", s->engine_exit);
    view_int(&ext, "contract_exit", summary_contract_exit(s));
    view_word(&ext, "exit_profile", exit_profile_word(s->exit_profile));
    add_usage(&ext, s);
    view_ms(&ext, "ttft_ms", s->first_token);
    view_ms(&ext, "first_output_ms", s->first_output);
    struct view phases = view_inner(&ext, "phase_ms");
    for (size_t i = 0; i < s->phase_count; i++) {
        view_int(&phases, s->phases[i].name, s->phases[i].took / NSEC_PER_MS);
    }
    add_process(&ext, s);
    view_bool(&ext, "recovered", s->recovered);
}

struct json *metrics_json(const struct summary *s, const struct redactor *r, struct arena *a)
{
    struct view v = { a, r, json_object(a) };
    /* Scylla counts tokens read from the cache as input; ext.tokens has them apart. */
    int64_t input = s->tokens.input + s->tokens.cache_read;
    view_int(&v, "tokens_input", input);
    view_int(&v, "tokens_output", s->tokens.output);
    view_int(&v, "tokens_total", input + s->tokens.output);
    view_real(&v, "cost_usd", s->cost_usd);
    view_int(&v, "api_calls", s->api_calls);
    view_real(&v, "duration_seconds", view_seconds(s->duration));
    view_int(&v, "exit_code", summary_metrics_exit(s));
    view_text(&v, "error", s->error);
    view_stamp(&v, "started_at", s->started_wall);
    view_stamp(&v, "ended_at", s->ended_wall);
    add_ext(&v, s);
    return v.object;
}
