/* SPDX-License-Identifier: MIT
 *
 * The tool calls of an agent, from the first word about one to its end. Agents differ in what they
 * tell when: some announce a call before they know its arguments, some tell of it only when it is
 * over, titles change on the way. So what is told is put together here; tool_use comes when the
 * call is under way, tool_result when it is over. A tool of the agent's own is also observed; one
 * of ours is not, because the bridge has carried it out.
 */
#include "adapters/acp_priv.h"

#include <stdlib.h>

/* --- names --- */

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
        if (!ok) {
            return false;
        }
    }
    return s.len > 0 && s.len <= 128;
}

static struct str pointed(const struct json *pointers, const struct json *update)
{
    for (size_t i = 0; i < json_len(pointers); i++) {
        struct str where = json_str(json_item(pointers, i), STR_EMPTY);
        struct str found = json_str(json_pointer(update, where), STR_EMPTY);
        if (found.len > 0) {
            return found;
        }
    }
    return STR_EMPTY;
}

/* Where the profile says; else what kind of tool it is. A title is the last resort: it is made for
 * people, often from what the model wrote, and differs from call to call. */
static struct str name_of(const struct acp *p, const struct acp_call *c, const struct json *update)
{
    struct str name = pointed(p->quirks->tool_name, update);
    if (name.len == 0 && p->quirks->tool_id_separator != NULL) {
        size_t at = str_find(c->id, str_of(p->quirks->tool_id_separator));
        name = at < c->id.len ? str_slice(c->id, 0, at) : STR_EMPTY;
    }
    if (name.len == 0 && !str_eqc(c->kind, "other")) {
        name = c->kind;
    }
    return name.len > 0 ? name : c->title;
}

/* By the profile's prefix, or by any that agents are known to use where it has none. */
static bool is_prefixed(const struct acp *p, struct str name)
{
    static const char *const usual[] = { "mcp__" ACP_SERVER "__", "mcp_" ACP_SERVER "_",
                                         ACP_SERVER "_", ACP_SERVER "-" };
    bool own = p->tool_prefix.len > 0;
    for (size_t i = 0; is_word(name) && i < (own ? 1 : ARRAY_LEN(usual)); i++) {
        struct str prefix = own ? p->tool_prefix : str_of(usual[i]);
        if (str_starts(name, prefix) && name.len > prefix.len) {
            return true;
        }
    }
    return false;
}

/* The model chooses arguments, and titles are often made of them: only the name as the agent gives
 * it counts, and never for a tool that runs commands or touches files. */
static bool is_ours(const struct acp *p, const struct acp_call *c, const struct json *update)
{
    /* Set by the agent, not by the model: codex-acp 2 calls every tool `execute`. */
    bool marked = json_bool(json_pointer(update, STR("/_meta/is_mcp_tool_call")), false);
    if (!marked && c->kind.len > 0 && !str_eqc(c->kind, "other")) {
        return false;
    }
    return is_prefixed(p, c->name) || str_eqc(pointed(p->quirks->tool_server, update), ACP_SERVER);
}

/* --- the list --- */

static struct acp_call take(struct acp *p, struct acp_call *c)
{
    struct acp_call taken = *c;
    size_t i = (size_t)(c - p->calls);
    memmove(c, c + 1, (p->n_calls - i - 1) * sizeof *c);
    p->n_calls--;
    return taken;
}

static void done(struct acp_call *c)
{
    arena_free(c->arena);
    buf_done(&c->input);
    buf_done(&c->output);
}

static struct acp_call *find(struct acp *p, struct str id)
{
    for (size_t i = 0; i < p->n_calls; i++) {
        if (str_eq(p->calls[i].id, id)) {
            return &p->calls[i];
        }
    }
    return NULL;
}

static void finish_call(struct acp *p, struct acp_call *c, const struct json *update);

static struct acp_call *add(struct acp *p, struct str id)
{
    if (p->n_calls == ACP_CALLS_MAX) {
        finish_call(p, &p->calls[0], NULL);
    }
    if (p->n_calls == p->calls_cap) {
        p->calls_cap = p->calls_cap == 0 ? 8 : 2 * p->calls_cap;
        p->calls = xrealloc(p->calls, p->calls_cap * sizeof *p->calls);
    }
    struct acp_call *c = &p->calls[p->n_calls++];
    *c = (struct acp_call) { .arena = arena_new(), .status = "pending" };
    c->id = id.len > 0
                ? arena_str(c->arena, id)
                : str_of(arena_printf(c->arena, "_tc_%llu", (unsigned long long)++p->nameless));
    buf_init(&c->input, ACP_INPUT_MAX);
    buf_init(&c->output, ACP_OUTPUT_MAX);
    return c;
}

void acp_calls_free(struct acp *p)
{
    for (size_t i = 0; i < p->n_calls; i++) {
        done(&p->calls[i]);
    }
    p->n_calls = 0;
    free(p->calls);
    p->calls = NULL;
    p->calls_cap = 0;
}

/* --- what is known about one --- */

static void learn_word(struct acp_call *c, struct str *word, const struct json *v)
{
    if (word->len == 0 && json_is(v, JSON_STRING)) {
        *word = arena_str(c->arena, str_slice(v->string, 0, ACP_NAME_MAX));
    }
}

static void keep_output(struct acp_call *c, struct str text)
{
    size_t room = ACP_OUTPUT_MAX - c->output.len;
    if (text.len > room) {
        text = str_slice(text, 0, room);
        text.len = str_utf8_prefix(text);
    }
    buf_add(&c->output, text);
}

static void learn_content(struct acp_call *c, const struct json *content)
{
    buf_reset(&c->output);
    for (size_t i = 0; i < json_len(content); i++) {
        const struct json *item = json_item(content, i);
        struct str type = json_str(json_get(item, "type"), STR_EMPTY);
        struct str text = json_str(json_pointer(item, STR("/content/text")), STR_EMPTY);
        if (str_eqc(type, "diff")) {
            text = json_str(json_get(item, "path"), STR_EMPTY);
        }
        if (text.len > 0 && c->output.len > 0) {
            keep_output(c, STR("\n"));
        }
        if (text.len > 0 && str_eqc(type, "diff")) {
            keep_output(c, STR("changed "));
        }
        keep_output(c, text);
    }
}

/* Where agents put the text of a result that has no content. */
static void learn_raw_output(struct acp_call *c, const struct json *raw)
{
    static const char *const keys[] = { "output", "formatted_output", "stdout", "message" };
    if (json_is(raw, JSON_STRING)) {
        keep_output(c, raw->string);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct json *v = json_get(raw, keys[i]);
        if (json_is(v, JSON_STRING) && v->string.len > 0) {
            keep_output(c, v->string);
            return;
        }
    }
    CLEANUP(buf) struct buf text = BUF_INIT(ACP_OUTPUT_MAX);
    if (json_is(raw, JSON_OBJECT) && json_write(raw, JSON_COMPACT, &text, NULL) == 0) {
        keep_output(c, buf_str(&text));
    }
}

static void learn_input(struct acp_call *c, const struct json *input)
{
    if (json_len(input) == 0) {
        return; /* announced before the arguments were there */
    }
    buf_reset(&c->input);
    if (json_write(input, JSON_COMPACT, &c->input, NULL) < 0) {
        buf_reset(&c->input);
    }
}

static void learn_names(struct acp *p, struct acp_call *c, const struct json *update)
{
    learn_word(c, &c->title, json_get(update, "title"));
    learn_word(c, &c->kind, json_get(update, "kind"));
    if (c->name.len == 0) {
        c->name = arena_str(c->arena, name_of(p, c, update));
    }
    c->ours = c->ours || is_ours(p, c, update);
}

static void learn(struct acp *p, struct acp_call *c, const struct json *update)
{
    const struct json *content = json_get(update, "content");
    const struct json *status = json_get(update, "status");
    learn_names(p, c, update);
    learn_input(c, json_get(update, "rawInput"));
    if (json_len(content) > 0) {
        learn_content(c, content);
    }
    if (json_is(status, JSON_STRING) && status->string.len < sizeof c->status) {
        memcpy(c->status, status->string.ptr, status->string.len);
        c->status[status->string.len] = '\0';
    }
}

static bool is_over(const struct acp_call *c)
{
    return strcmp(c->status, "completed") == 0 || strcmp(c->status, "failed") == 0 ||
           strcmp(c->status, "cancelled") == 0;
}

static struct json *input_of(struct acp *p, const struct acp_call *c)
{
    struct json *v = NULL;
    return c->input.len > 0 && json_parse(p->scratch, buf_str(&c->input), NULL, &v, NULL) == 0
               ? v
               : NULL;
}

/* An agent that shows no arguments shows what they do. */
struct json *acp_call_arguments(struct acp *p, const struct acp_call *c, const struct json *update)
{
    struct arena *a = p->scratch;
    struct json *input = input_of(p, c);
    if (json_is(input, JSON_OBJECT)) {
        return input;
    }
    struct json *made = json_object(a);
    const char *key = str_eqc(c->kind, "execute") ? "command" : "title";
    acp_set(p, made, key, c->title);
    struct json *path = json_pointer(update, STR("/locations/0/path"));
    const struct json *content = json_get(update, "content");
    for (size_t i = 0; i < json_len(content); i++) {
        const struct json *item = json_item(content, i);
        if (str_eqc(json_str(json_get(item, "type"), STR_EMPTY), "diff")) {
            path = json_get(item, "path");
            json_setc(a, made, "content", json_get(item, "newText"));
        }
    }
    if (json_is(path, JSON_STRING)) {
        json_setc(a, made, "path", path);
    }
    if (input != NULL) {
        json_setc(a, made, "input", input);
    }
    return made;
}

/* --- telling --- */

static struct json *detail_of(struct acp *p, const struct acp_call *c)
{
    struct arena *a = p->scratch;
    struct json *detail = json_object(a);
    struct json *input = input_of(p, c);
    acp_set(p, detail, "tool_name", c->name);
    acp_set(p, detail, "tool_call_id", c->id);
    if (c->title.len > 0 && !str_eq(c->title, c->name)) {
        acp_set(p, detail, "title", c->title);
    }
    if (c->kind.len > 0) {
        acp_set(p, detail, "kind", c->kind);
    }
    if (c->ours) {
        json_setc(a, detail, "bridged", json_boolean(a, true));
    }
    if (input != NULL) {
        json_setc(a, detail, "input", input);
    }
    return detail;
}

void acp_call_tell(struct acp *p, struct acp_call *c, const struct json *locations)
{
    if (c->told) {
        return;
    }
    struct json *detail = detail_of(p, c);
    c->told = true;
    if (json_len(locations) > 0) {
        json_setc(p->scratch, detail, "locations", (struct json *)locations);
    }
    acp_entry(p, "tool_use", detail);
}

void acp_calls_tell(struct acp *p)
{
    for (size_t i = 0; i < p->n_calls; i++) {
        acp_call_tell(p, &p->calls[i], NULL);
    }
}

/* Agents come to name tools that they did not name before: a policy that names the kind of tool
 * must still apply then. */
struct str acp_call_kind(struct acp *p, const struct acp_call *c)
{
    return c->kind.len == 0 || str_eqc(c->kind, "other")
               ? STR_EMPTY
               : str_of(arena_printf(p->scratch, "acp:%.*s", STR_ARG(c->kind)));
}

static void observe(struct acp *p, const struct acp_call *c, const struct json *update)
{
    struct arena *a = p->scratch;
    struct str name = str_of(arena_printf(a, "acp:%.*s", STR_ARG(c->name)));
    struct json *arguments = acp_call_arguments(p, c, update);
    struct native_call call = {
        .name = name,
        .kind = acp_call_kind(p, c),
        .call_id = c->id,
        .arguments = arguments,
        .result = json_get(update, "rawOutput"),
        .output = buf_str(&c->output),
        .success = strcmp(c->status, "completed") == 0,
    };
    p->port.observed(p->port.owner, &call);
    if (p->has_feedback) {
        acp_ask_feedback(p, &call);
    }
}

/* `update` NULL: it never came to an end. */
static void finish_call(struct acp *p, struct acp_call *c, const struct json *update)
{
    struct arena *a = p->scratch;
    acp_call_tell(p, c, json_get(update, "locations"));
    if (c->output.len == 0) {
        learn_raw_output(c, json_get(update, "rawOutput"));
    }
    struct json *detail = detail_of(p, c);
    json_setc(a, detail, "status", json_cstr(a, c->status));
    acp_set(p, detail, "output", buf_str(&c->output));
    acp_entry(p, "tool_result", detail);
    /* Taken out first: what is told may lead back here. */
    struct acp_call over = take(p, c);
    if (!over.ours) {
        observe(p, &over, update);
    }
    done(&over);
}

void acp_calls_settle(struct acp *p)
{
    while (p->n_calls > 0) {
        finish_call(p, &p->calls[0], NULL);
    }
}

/* --- updates --- */

/* By its id; without one it is the call at hand. */
static struct acp_call *find_or_add(struct acp *p, const struct json *update)
{
    struct str id = json_str(json_get(update, "toolCallId"), STR_EMPTY);
    struct acp_call *c = NULL;
    id = str_slice(id, 0, ACP_NAME_MAX);
    if (id.len > 0) {
        c = find(p, id);
    } else if (p->n_calls > 0) {
        c = &p->calls[p->n_calls - 1];
    }
    return c != NULL ? c : add(p, id);
}

/* What a question shows is what would be done: not a result, and sometimes in another form than the
 * arguments. */
struct acp_call *acp_call_of(struct acp *p, const struct json *question)
{
    struct acp_call *c = find_or_add(p, question);
    learn_names(p, c, question);
    if (c->input.len == 0) {
        learn_input(c, json_get(question, "rawInput"));
    }
    return c;
}

void acp_call_update(struct acp *p, const struct json *update, bool is_new)
{
    acp_flush(p);
    if (is_new && json_len(json_get(update, "toolCallId")) == 0) {
        (void)add(p, STR_EMPTY);
    }
    struct acp_call *c = find_or_add(p, update);
    learn(p, c, update);
    if (is_over(c)) {
        finish_call(p, c, update);
    } else if (!is_new || strcmp(c->status, "pending") != 0) {
        acp_call_tell(p, c, json_get(update, "locations"));
    }
}
