/* SPDX-License-Identifier: MIT
 *
 * One turn of an agent: the prompt that begins it, and what its end means. The usage that an agent
 * tells is kept beside what the gateway has seen; agents differ in what they count.
 */
#include "adapters/acp_priv.h"

static void push_text(struct acp *p, struct json *blocks, struct str text)
{
    struct json *block = json_object(p->scratch);
    acp_set(p, block, "type", STR("text"));
    acp_set(p, block, "text", text);
    json_push(p->scratch, blocks, block);
}

void acp_prompt(struct acp *p, struct str text, bool first)
{
    struct json *params = json_object(p->scratch);
    struct json *blocks = json_array(p->scratch);
    acp_flush(p);
    acp_calls_settle(p);
    if (first && p->system_prompt.len > 0) {
        push_text(p, blocks, p->system_prompt);
    }
    if (p->feedback.len > 0) {
        push_text(p, blocks, buf_str(&p->feedback));
        acp_event(p, "feedback", "text", json_string(p->scratch, buf_str(&p->feedback)));
    }
    push_text(p, blocks, text);
    if (!first) {
        p->prompt = arena_str(p->keep, text); /* as many as there are rounds */
    }
    buf_reset(&p->feedback);
    buf_reset(&p->said);
    acp_set(p, params, "sessionId", p->report.session_id);
    json_setc(p->scratch, params, "prompt", blocks);
    p->report.failed = false;
    p->report.error = STR_EMPTY;
    p->report.text_truncated = false;
    p->new_words = true;
    p->acted = false;
    p->stage = ACP_PROMPT;
    acp_send_request(p, "session/prompt", params);
}

static int64_t count_of(const struct json *usage, const char *key, const char *other)
{
    int64_t n = json_int(json_get(usage, key), json_int(json_get(usage, other), -1));
    return n < 0 ? 0 : n;
}

/* By the draft of the protocol, or as Gemini CLI puts it. */
void acp_count(struct acp *p, const struct json *usage)
{
    struct agent_usage *u = &p->turn_usage;
    u->known = true;
    u->input += count_of(usage, "inputTokens", "input_tokens");
    u->output += count_of(usage, "outputTokens", "output_tokens");
    u->cache_read += count_of(usage, "cachedReadTokens", "cached_tokens");
    u->cache_write += count_of(usage, "cachedWriteTokens", "cached_write_tokens");
    u->reasoning += count_of(usage, "thoughtTokens", "thought_tokens");
}

static void tell_usage(struct acp *p)
{
    struct arena *a = p->scratch;
    struct json *detail = json_object(a);
    const struct agent_usage *u = &p->turn_usage;
    json_setc(a, detail, "input_tokens", json_integer(a, u->input));
    json_setc(a, detail, "output_tokens", json_integer(a, u->output));
    json_setc(a, detail, "cache_read_tokens", json_integer(a, u->cache_read));
    json_setc(a, detail, "cache_write_tokens", json_integer(a, u->cache_write));
    json_setc(a, detail, "reasoning_tokens", json_integer(a, u->reasoning));
    acp_entry(p, "token_usage", detail);
}

/* What stands in the answer is about the whole turn, and wins over what came on the way. */
static void take_usage(struct acp *p, const struct json *result)
{
    const struct json *whole = json_get(result, "usage");
    struct agent_usage *sum = &p->report.usage;
    if (!json_is(whole, JSON_OBJECT)) {
        whole = json_pointer(result, STR("/_meta/quota/token_count"));
    }
    if (json_is(whole, JSON_OBJECT)) {
        p->turn_usage = (struct agent_usage) { 0 };
        acp_count(p, whole);
    }
    sum->turns++;
    if (p->turn_usage.known) {
        sum->known = true;
        sum->input += p->turn_usage.input;
        sum->output += p->turn_usage.output;
        sum->cache_read += p->turn_usage.cache_read;
        sum->cache_write += p->turn_usage.cache_write;
        sum->reasoning += p->turn_usage.reasoning;
        tell_usage(p);
    }
    p->turn_usage = (struct agent_usage) { 0 };
}

static const char *judge_stop(struct acp *p, struct str why)
{
    if (str_eqc(why, "max_tokens")) {
        acp_failed(p, "the answer was cut: the model's limit of tokens was reached");
        return "max_tokens";
    }
    if (str_eqc(why, "max_turn_requests")) {
        acp_failed(p, "the agent stopped: it may not ask the model so often in one turn");
        return "max_turns";
    }
    if (str_eqc(why, "refusal")) {
        acp_failed(p, "the agent refused to go on");
        return "refusal";
    }
    if (str_eqc(why, "cancelled")) {
        return p->interrupted ? "interrupted" : "cancelled";
    }
    if (!str_eqc(why, "end_turn")) {
        acp_failed(p, "the agent stopped for a reason that cinch does not know: '%.*s'",
                   STR_ARG(str_slice(why, 0, 100)));
        return "error";
    }
    if (!p->acted && !p->interrupted) {
        acp_failed(p, "the agent ended its turn without a word");
    }
    return "end_turn";
}

void acp_prompted(struct acp *p, const struct json *result)
{
    struct str why = json_str(json_get(result, "stopReason"), STR_EMPTY);
    p->stage = ACP_WAITING;
    if (p->quirks->settle_ms == 0) {
        acp_flush(p);
        acp_calls_settle(p);
    }
    take_usage(p, result);
    const char *stop = judge_stop(p, why);
    p->answered = true;
    acp_end_turn(p, stop);
}
