/* SPDX-License-Identifier: MIT
 *
 * What an agent tells about its turn, as entries of the transcript. Words come in pieces: they are
 * gathered until somebody else speaks, another message begins or a tool is called. Everything that
 * is no word and no call becomes a system_event, token_usage or unknown entry.
 */
#include "adapters/acp_priv.h"

/* --- words --- */

static const char *const voice_entries[] = {
    [ACP_AGENT] = "assistant_message",
    [ACP_THOUGHT] = "thinking",
    [ACP_USER] = "user_message",
};

static enum acp_voice voice_of(struct str update)
{
    return str_eqc(update, "agent_message_chunk")   ? ACP_AGENT
           : str_eqc(update, "agent_thought_chunk") ? ACP_THOUGHT
           : str_eqc(update, "user_message_chunk")  ? ACP_USER
                                                    : ACP_NOBODY;
}

void acp_flush(struct acp *p)
{
    enum acp_voice voice = p->voice;
    struct str text = buf_str(&p->pending);
    p->voice = ACP_NOBODY;
    if (voice == ACP_NOBODY || text.len == 0) {
        return;
    }
    /* Our own words, said back, are an entry already. */
    bool echo = voice == ACP_USER &&
                (str_find(text, p->prompt) < text.len || str_find(p->prompt, text) < p->prompt.len);
    if (!echo) {
        struct json *detail = json_object(p->scratch);
        acp_set(p, detail, "text", text);
        acp_entry(p, voice_entries[voice], detail);
    }
    buf_reset(&p->pending);
}

/* The last part of a text, from the beginning of a character on. */
static struct str tail_of(struct str text, size_t len)
{
    size_t from = text.len > len ? text.len - len : 0;
    while (from > 0 && from < text.len && ((unsigned char)text.ptr[from] & 0xc0) == 0x80) {
        from++;
    }
    return str_slice(text, from, text.len);
}

/* The end of a long text is worth more than its beginning. */
static void keep_said(struct acp *p, struct str text)
{
    const size_t half = ACP_TEXT_MAX / 2;
    if (p->said.len + text.len > ACP_TEXT_MAX) {
        p->report.text_truncated = true;
        buf_consume(&p->said, p->said.len - tail_of(buf_str(&p->said), half).len);
        text = tail_of(text, half);
    }
    buf_add(&p->said, text);
}

static void keep_words(struct acp *p, enum acp_voice voice, struct str text)
{
    if (voice == ACP_AGENT) {
        if (p->new_words) {
            buf_reset(&p->said);
            p->report.text_truncated = false;
        }
        p->new_words = false;
        keep_said(p, text);
    }
    if (buf_append(&p->pending, text, NULL) < 0) {
        acp_flush(p); /* in several entries rather than not at all */
        p->voice = voice;
        buf_add(&p->pending, str_slice(text, 0, ACP_TEXT_MAX));
    }
}

/* An image, a file …: that it was there, without its bytes. */
static void tell_content(struct acp *p, enum acp_voice voice, const struct json *content)
{
    static const char *const keys[] = { "type", "mimeType", "uri", "name" };
    struct json *detail = json_object(p->scratch);
    struct json *kept = json_object(p->scratch);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct json *v = json_get(content, keys[i]);
        if (json_is(v, JSON_STRING)) {
            json_setc(p->scratch, kept, keys[i], v);
        }
    }
    json_setc(p->scratch, detail, "content", kept);
    acp_flush(p);
    acp_entry(p, voice_entries[voice], detail);
}

static bool is_noise(const struct acp *p, struct str text)
{
    for (size_t i = 0; i < json_len(p->quirks->noise); i++) {
        if (str_starts(text, json_str(json_item(p->quirks->noise, i), STR_EMPTY))) {
            return true;
        }
    }
    return false;
}

static void hear(struct acp *p, enum acp_voice voice, const struct json *update)
{
    const struct json *content = json_get(update, "content");
    struct str text = json_str(json_get(content, "text"), STR_EMPTY);
    struct str id = json_str(json_get(update, "messageId"), STR_EMPTY);
    bool same = str_eq(str_slice(id, 0, ACP_NAME_MAX), buf_str(&p->message_id));
    if (!str_eqc(json_str(json_get(content, "type"), STR_EMPTY), "text")) {
        tell_content(p, voice, content);
        return;
    }
    if (text.len == 0) {
        return;
    }
    if (voice == ACP_AGENT && is_noise(p, text)) {
        acp_event(p, "notice", "text", json_string(p->scratch, text));
        return;
    }
    if (voice != p->voice || !same) {
        acp_flush(p);
        acp_calls_tell(p);
        /* After its turn an agent only adds to what it has said. */
        p->new_words = p->new_words || (p->stage == ACP_PROMPT && voice == ACP_AGENT);
    }
    p->voice = voice;
    buf_reset(&p->message_id);
    buf_add(&p->message_id, str_slice(id, 0, ACP_NAME_MAX));
    p->acted = p->acted || voice == ACP_AGENT;
    keep_words(p, voice, text);
}

/* --- the rest --- */

void acp_learn_model(struct acp *p, const struct json *name)
{
    struct str text = json_str(name, STR_EMPTY);
    if (text.len > 0 && text.len <= ACP_NAME_MAX) {
        buf_reset(&p->used_model);
        buf_add(&p->used_model, text);
    }
}

void acp_learn_options(struct acp *p, const struct json *options)
{
    if (!json_is(options, JSON_ARRAY)) {
        return;
    }
    arena_reset(p->options_arena);
    p->options = json_copy(p->options_arena, options);
    for (size_t i = 0; i < json_len(p->options); i++) {
        const struct json *o = json_item(p->options, i);
        if (str_eqc(json_str(json_get(o, "category"), STR_EMPTY), "model")) {
            acp_learn_model(p, json_get(o, "currentValue"));
        }
    }
}

static void tell_options(struct acp *p)
{
    struct json *values = json_object(p->scratch);
    for (size_t i = 0; i < json_len(p->options) && i < 100; i++) {
        const struct json *o = json_item(p->options, i);
        json_set(p->scratch, values, json_str(json_get(o, "id"), STR_EMPTY),
                 json_get(o, "currentValue"));
    }
    acp_event(p, "config_options", "options", values);
}

static void tell_commands(struct acp *p, const struct json *commands)
{
    struct json *names = json_array(p->scratch);
    for (size_t i = 0; i < json_len(commands); i++) {
        struct json *name = json_get(json_item(commands, i), "name");
        if (json_is(name, JSON_STRING)) {
            json_push(p->scratch, names, name);
        }
    }
    acp_event(p, "available_commands", "commands", names);
}

/* Tokens in the context of the model, not tokens that were used up; the cost is of the session. */
static void tell_context(struct acp *p, const struct json *update)
{
    struct arena *a = p->scratch;
    struct json *detail = json_object(a);
    const struct json *cost = json_get(update, "cost");
    double amount = json_real(json_get(cost, "amount"), -1);
    int64_t used = json_int(json_get(update, "used"), -1);
    bool dollars = str_eqc(json_str(json_get(cost, "currency"), STR_EMPTY), "USD") && amount >= 0;
    if (dollars) {
        p->report.usage.cost_known = true;
        p->report.usage.cost_usd = amount;
        json_setc(a, detail, "cost_usd", json_number(a, amount));
    }
    if (used < 0 || (used == p->context_used && !dollars)) {
        return;
    }
    p->context_used = used;
    json_setc(a, detail, "context_tokens", json_integer(a, used));
    json_setc(a, detail, "context_size", json_integer(a, json_int(json_get(update, "size"), 0)));
    acp_entry(p, "token_usage", detail);
}

static void tell_unknown(struct acp *p, struct str kind)
{
    struct json *detail = json_object(p->scratch);
    acp_set(p, detail, "session_update", str_slice(kind, 0, ACP_NAME_MAX));
    acp_entry(p, "unknown", detail);
}

/* What changes nothing about who speaks. */
static void tell_state(struct acp *p, struct str kind, const struct json *update)
{
    if (str_eqc(kind, "plan")) {
        acp_event(p, "plan", "entries", json_get(update, "entries"));
    } else if (str_eqc(kind, "available_commands_update")) {
        tell_commands(p, json_get(update, "availableCommands"));
    } else if (str_eqc(kind, "current_mode_update")) {
        acp_event(p, "mode", "mode", json_get(update, "currentModeId"));
    } else if (str_eqc(kind, "config_option_update")) {
        acp_learn_options(p, json_get(update, "configOptions"));
        tell_options(p);
    } else if (str_eqc(kind, "session_info_update")) {
        acp_event(p, "session_info", "title", json_get(update, "title"));
    } else if (str_eqc(kind, "usage_update")) {
        tell_context(p, update);
    } else {
        tell_unknown(p, kind);
    }
}

void acp_update(struct acp *p, const struct json *update)
{
    struct str kind = json_str(json_get(update, "sessionUpdate"), STR_EMPTY);
    /* Before the first prompt, an agent that loads a conversation tells all of it again. */
    bool live = p->stage == ACP_PROMPT || p->stage == ACP_WAITING;
    enum acp_voice voice = voice_of(kind);
    const struct json *usage = json_pointer(update, STR("/_meta/usage"));
    if (live && json_is(usage, JSON_OBJECT)) {
        acp_count(p, usage); /* of one answer of the model: Qwen Code */
    }
    if (voice != ACP_NOBODY) {
        if (live) {
            hear(p, voice, update);
        }
    } else if (str_eqc(kind, "tool_call") || str_eqc(kind, "tool_call_update")) {
        if (live) {
            p->acted = true;
            acp_call_update(p, update, str_eqc(kind, "tool_call"));
        }
    } else {
        tell_state(p, kind, update);
    }
}
