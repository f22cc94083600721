/* SPDX-License-Identifier: MIT
 *
 * What driver `acp` asks of an agent before the first prompt, one after the other: initialize,
 * authenticate, a session new or old, its mode, model and effort; and where each answer leads.
 */
#include "adapters/acp_priv.h"

static const char *const stage_names[] = {
    [ACP_NEW] = "initialize",
    [ACP_INITIALIZE] = "initialize",
    [ACP_AUTHENTICATE] = "authenticate",
    [ACP_SESSION] = "session/new",
    [ACP_MODE] = "session/set_mode",
    [ACP_MODEL] = "session/set_model",
    [ACP_EFFORT] = "session/set_config_option",
    [ACP_PROMPT] = "session/prompt",
    [ACP_WAITING] = "session/prompt",
    [ACP_OVER] = "session/prompt",
};

const char *acp_stage_name(enum acp_stage stage)
{
    return stage_names[stage];
}

static struct json *new_params(struct acp *p)
{
    struct json *params = json_object(p->scratch);
    acp_set(p, params, "sessionId", p->report.session_id);
    return params;
}

/* --- initialize, authenticate --- */

void acp_start(struct acp *p)
{
    struct arena *a = p->scratch;
    struct json *params = json_object(a);
    struct json *info = json_object(a);
    struct json *fs = json_object(a);
    struct json *capabilities = json_object(a);
    json_setc(a, fs, "readTextFile", json_boolean(a, p->quirks->fs));
    json_setc(a, fs, "writeTextFile", json_boolean(a, p->quirks->fs));
    json_setc(a, capabilities, "fs", fs);
    json_setc(a, capabilities, "terminal", json_boolean(a, p->quirks->terminal));
    acp_set(p, info, "name", STR("cinch"));
    acp_set(p, info, "title", STR("cinch"));
    acp_set(p, info, "version", STR(CINCH_VERSION));
    json_setc(a, params, "protocolVersion", json_integer(a, ACP_VERSION));
    json_setc(a, params, "clientCapabilities", capabilities);
    json_setc(a, params, "clientInfo", info);
    p->stage = ACP_INITIALIZE;
    acp_send_request(p, "initialize", params);
}

static bool is_listed(const struct json *list, const char *key, struct str id)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (str_eq(json_str(json_get(json_item(list, i), key), STR_EMPTY), id)) {
            return true;
        }
    }
    return false;
}

/* The ids of a list for a message: "a, b, c". */
static struct str names_of(struct acp *p, const struct json *list, const char *key)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < json_len(list) && out.len < 400; i++) {
        struct str id = json_str(json_get(json_item(list, i), key), STR_EMPTY);
        buf_addf(&out, "%s%.*s", out.len > 0 ? ", " : "", STR_ARG(str_slice(id, 0, 100)));
    }
    return out.len == 0 ? STR("none") : arena_str(p->scratch, buf_str(&out));
}

/* --- the session --- */

static void add_variable(struct acp *p, struct json *env, const char *name, const char *value)
{
    struct json *variable = json_object(p->scratch);
    acp_set(p, variable, "name", str_of(name));
    acp_set(p, variable, "value", str_of(value));
    json_push(p->scratch, env, variable);
}

/* Stated, not inherited: clients on the official MCP SDKs pass only six variables to a server. */
static struct json *shim_environment(struct acp *p)
{
    struct json *env = json_array(p->scratch);
    if (p->mcp.url != NULL) {
        add_variable(p, env, "CINCH_MCP_URL", p->mcp.url);
        add_variable(p, env, "CINCH_MCP_TOKEN", p->mcp.token);
    }
    return env;
}

/* Over HTTP if the agent supports it, else through the shim, which speaks stdio. */
static struct json *server_of(struct acp *p)
{
    struct arena *a = p->scratch;
    struct json *server = json_object(a);
    bool http = p->offers_http && p->mcp.url != NULL && !p->quirks->mcp_stdio;
    acp_set(p, server, "name", STR(ACP_SERVER));
    if (http) {
        struct json *field = json_object(a);
        struct json *fields = json_array(a);
        acp_set(p, field, "name", STR("Authorization"));
        acp_set(p, field, "value", str_of(arena_printf(a, "Bearer %s", p->mcp.token)));
        json_push(a, fields, field);
        acp_set(p, server, "type", STR("http"));
        acp_set(p, server, "url", str_of(p->mcp.url));
        json_setc(a, server, "headers", fields);
        return server;
    }
    if (p->mcp.shim == NULL) {
        return NULL;
    }
    struct json *args = json_array(a);
    for (size_t i = 1; p->mcp.shim[i] != NULL; i++) {
        json_push(a, args, json_cstr(a, p->mcp.shim[i]));
    }
    acp_set(p, server, "command", str_of(p->mcp.shim[0]));
    json_setc(a, server, "args", args);
    json_setc(a, server, "env", shim_environment(p));
    return server;
}

static void open_session(struct acp *p)
{
    struct arena *a = p->scratch;
    struct json *params = json_object(a);
    struct json *servers = json_array(a);
    const char *method = "session/new";
    if (p->mcp.url != NULL || p->mcp.shim != NULL) {
        struct json *server = server_of(p);
        if (server == NULL) {
            acp_give_up(p, "the agent takes no MCP server over HTTP, so it cannot have the tools");
            return;
        }
        json_push(a, servers, server);
    }
    if (p->resume.len > 0) {
        if (!p->offers_load && !p->offers_resume) {
            acp_give_up(p, "the agent cannot go on with an earlier conversation");
            return;
        }
        /* What was said before is told again by load only; nobody needs that. */
        method = p->offers_resume ? "session/resume" : "session/load";
        acp_set(p, params, "sessionId", p->resume);
    }
    acp_set(p, params, "cwd", p->workspace);
    json_setc(a, params, "mcpServers", servers);
    if (p->session_meta != NULL) {
        json_setc(a, params, "_meta", json_copy(a, p->session_meta));
    }
    p->stage = ACP_SESSION;
    acp_send_request(p, method, params);
}

static void initialized(struct acp *p, const struct json *result)
{
    const struct json *version = json_get(result, "protocolVersion");
    const struct json *offers = json_get(result, "agentCapabilities");
    const struct json *sessions = json_get(offers, "sessionCapabilities");
    if (json_int(version, -1) != ACP_VERSION) {
        acp_give_up(p,
                    "the agent speaks version %lld of the Agent Client Protocol, cinch speaks %d",
                    (long long)json_int(version, -1), ACP_VERSION);
        return;
    }
    p->offers_http = json_bool(json_pointer(offers, STR("/mcpCapabilities/http")), false);
    p->offers_load = json_bool(json_get(offers, "loadSession"), false);
    p->offers_resume = json_is(json_get(sessions, "resume"), JSON_OBJECT);
    p->auth_methods = json_copy(p->keep, json_get(result, "authMethods"));
    struct json *agent = json_get(result, "agentInfo");
    if (json_is(agent, JSON_OBJECT)) {
        struct str told = json_str(json_get(agent, "version"), STR_EMPTY);
        p->report.version = arena_str(p->keep, str_slice(told, 0, 64));
        acp_event(p, "agent", "agent", agent);
    }
    if (p->quirks->auth == NULL) {
        open_session(p);
        return;
    }
    if (!is_listed(p->auth_methods, "id", str_of(p->quirks->auth))) {
        acp_give_up(p, "the agent does not offer the login '%s', only: %.*s", p->quirks->auth,
                    STR_ARG(names_of(p, p->auth_methods, "id")));
        return;
    }
    struct json *params = json_object(p->scratch);
    acp_set(p, params, "methodId", str_of(p->quirks->auth));
    p->stage = ACP_AUTHENTICATE;
    acp_send_request(p, "authenticate", params);
}

/* --- mode, model, effort --- */

static const struct json *find_option(const struct acp *p, const char *category)
{
    for (size_t i = 0; i < json_len(p->options); i++) {
        const struct json *o = json_item(p->options, i);
        if (str_eqc(json_str(json_get(o, "category"), STR_EMPTY), category) ||
            str_eqc(json_str(json_get(o, "id"), STR_EMPTY), category)) {
            return o;
        }
    }
    return NULL;
}

/* The values of an option may stand in groups. */
static bool takes_value(const struct json *option, struct str value)
{
    const struct json *list = json_get(option, "options");
    bool found = is_listed(list, "value", value);
    for (size_t i = 0; i < json_len(list) && !found; i++) {
        found = is_listed(json_get(json_item(list, i), "options"), "value", value);
    }
    return found;
}

static bool is_current(const struct json *option, struct str value)
{
    return str_eq(json_str(json_get(option, "currentValue"), STR_EMPTY), value);
}

static void send_option(struct acp *p, const struct json *option, struct str value)
{
    struct json *params = new_params(p);
    acp_set(p, params, "configId", json_str(json_get(option, "id"), STR_EMPTY));
    acp_set(p, params, "value", value);
    acp_send_request(p, "session/set_config_option", params);
}

/* Each of the three is true if it has asked for something: the answer leads on. */

static bool set_mode(struct acp *p)
{
    const char *mode = p->has_policies ? p->quirks->governed_mode : p->quirks->mode;
    const struct json *option = find_option(p, "mode");
    if (mode == NULL || is_current(option, str_of(mode)) ||
        str_eqc(json_str(json_get(p->modes, "currentModeId"), STR_EMPTY), mode)) {
        return false;
    }
    p->stage = ACP_MODE;
    if (p->modes == NULL && takes_value(option, str_of(mode))) {
        send_option(p, option, str_of(mode));
        return true;
    }
    struct json *params = new_params(p);
    acp_set(p, params, "modeId", str_of(mode));
    acp_send_request(p, "session/set_mode", params);
    return true;
}

static bool set_model(struct acp *p)
{
    enum acp_model how = p->quirks->model;
    const struct json *option = find_option(p, "model");
    if (how == ACP_MODEL_AUTO) {
        how = option != NULL ? ACP_MODEL_OPTION : ACP_MODEL_METHOD;
    }
    if (p->model.len == 0 || how == ACP_MODEL_NONE || is_current(option, p->model) ||
        str_eq(json_str(json_get(p->models, "currentModelId"), STR_EMPTY), p->model)) {
        return false;
    }
    p->stage = ACP_MODEL;
    if (how == ACP_MODEL_METHOD) {
        struct json *params = new_params(p);
        acp_set(p, params, "modelId", p->model);
        acp_send_request(p, "session/set_model", params);
    } else if (takes_value(option, p->model)) {
        send_option(p, option, p->model);
    } else {
        acp_give_up(p, "the agent does not offer the model '%.*s', only: %.*s", STR_ARG(p->model),
                    STR_ARG(names_of(p, json_get(option, "options"), "value")));
    }
    return true;
}

static bool set_effort(struct acp *p)
{
    const struct json *option = find_option(p, "thought_level");
    if (p->effort.len == 0 || is_current(option, p->effort)) {
        return false;
    }
    if (!takes_value(option, p->effort)) {
        acp_event(p, "effort_not_offered", "effort", json_string(p->scratch, p->effort));
        return false;
    }
    p->stage = ACP_EFFORT;
    send_option(p, option, p->effort);
    return true;
}

/* From what has just been done to the next thing that is to be done. */
static void advance(struct acp *p)
{
    if ((p->stage == ACP_SESSION && set_mode(p)) || (p->stage <= ACP_MODE && set_model(p)) ||
        (p->stage <= ACP_MODEL && set_effort(p))) {
        return;
    }
    if (p->interrupted) {
        p->stage = ACP_WAITING;
        acp_end_turn(p, "interrupted");
        return;
    }
    acp_prompt(p, p->prompt, true);
}

static void opened(struct acp *p, const struct json *result)
{
    struct str id = json_str(json_get(result, "sessionId"), p->resume);
    if (id.len == 0) {
        acp_give_up(p, "the agent's answer to 'session/new' has no sessionId");
        return;
    }
    p->report.session_id = arena_str(p->keep, id);
    if (json_is(json_get(result, "modes"), JSON_OBJECT)) {
        p->modes = json_copy(p->keep, json_get(result, "modes"));
    }
    if (json_is(json_get(result, "models"), JSON_OBJECT)) {
        p->models = json_copy(p->keep, json_get(result, "models"));
        acp_learn_model(p, json_get(p->models, "currentModelId"));
    }
    acp_learn_options(p, json_get(result, "configOptions"));
    acp_event(p, "session", "session_id", json_string(p->scratch, id));
    if (p->resume.len > 0 && p->quirks->load_settle_ms > 0 && p->port.pause != NULL) {
        p->hushed = true;
        p->port.pause(p->port.owner, p->quirks->load_settle_ms * NSEC_PER_MS);
        return;
    }
    advance(p);
}

void acp_go_on(struct acp *p)
{
    if (p->hushed && p->stage == ACP_SESSION) {
        p->hushed = false;
        advance(p);
    }
}

/* --- errors --- */

static struct str words_of(struct acp *p, struct str text)
{
    struct json *v;
    static const struct json_limits limits = { .max_bytes = 1 << 20, .max_depth = 16 };
    if (!str_starts(str_trim(text), STR("{")) ||
        json_parse(p->scratch, text, &limits, &v, NULL) < 0) {
        return text;
    }
    struct str inner = json_str(json_pointer(v, STR("/error/message")), STR_EMPTY);
    inner = inner.len > 0 ? inner : json_str(json_get(v, "message"), STR_EMPTY);
    return inner.len > 0 ? inner : text;
}

/* "Internal error" says nothing; what happened stands beside it, or as JSON inside. */
static struct str error_text(struct acp *p, const struct jsonrpc_message *m)
{
    static const char *const keys[] = { "message", "details", "error" };
    struct str text = json_str(m->data, STR_EMPTY);
    for (size_t i = 0; i < ARRAY_LEN(keys) && text.len == 0; i++) {
        text = json_str(json_get(m->data, keys[i]), STR_EMPTY);
    }
    return str_slice(words_of(p, text.len > 0 ? text : m->text), 0, 2000);
}

static void tell_error(struct acp *p, const struct jsonrpc_message *m, struct str text)
{
    struct arena *a = p->scratch;
    struct json *detail = json_object(a);
    acp_set(p, detail, "error", text);
    json_setc(a, detail, "method", json_cstr(a, acp_stage_name(p->stage)));
    json_setc(a, detail, "code", json_integer(a, m->code));
    if (m->data != NULL) {
        json_setc(a, detail, "data", json_copy(a, m->data));
    }
    acp_flush(p);
    acp_entry(p, "error", detail);
}

static void prompt_failed(struct acp *p, struct str text)
{
    p->stage = ACP_WAITING;
    acp_calls_settle(p);
    if (!p->interrupted) {
        acp_failed(p, "%.*s", STR_ARG(text));
    }
    acp_end_turn(p, p->interrupted ? "interrupted" : "error");
}

static void session_failed(struct acp *p, const struct jsonrpc_message *m, struct str text)
{
    enum { AUTH_REQUIRED = -32000 };
    if (m->code == AUTH_REQUIRED) {
        acp_give_up(p, "the agent wants a login first (it offers: %.*s): %.*s",
                    STR_ARG(names_of(p, p->auth_methods, "id")), STR_ARG(text));
    } else if (p->resume.len > 0) {
        acp_give_up(p, "the agent cannot go on with the conversation '%.*s': %.*s",
                    STR_ARG(p->resume), STR_ARG(text));
    } else {
        acp_give_up(p, "the agent opened no session: %.*s", STR_ARG(text));
    }
}

static void refused(struct acp *p, const struct jsonrpc_message *m)
{
    struct str text = error_text(p, m);
    tell_error(p, m, text);
    switch (p->stage) {
    case ACP_PROMPT:
        prompt_failed(p, text);
        break;
    case ACP_SESSION:
        if (m->code == JSONRPC_METHOD_NOT_FOUND && p->offers_resume && p->offers_load &&
            p->resume.len > 0) {
            p->offers_resume = false; /* offered, and not there (qwen 0.15) */
            open_session(p);
            break;
        }
        session_failed(p, m, text);
        break;
    case ACP_MODE:
        /* Without it the agent would ask needlessly; or, governed, not at all. */
        if (p->has_policies) {
            acp_give_up(p, "the agent does not take the mode '%s', which its policies need: %.*s",
                        p->quirks->governed_mode, STR_ARG(text));
            break;
        }
        advance(p);
        break;
    case ACP_EFFORT:
        advance(p);
        break;
    case ACP_MODEL:
        acp_give_up(p, "the agent does not take the model '%.*s': %.*s", STR_ARG(p->model),
                    STR_ARG(text));
        break;
    case ACP_NEW:
    case ACP_INITIALIZE:
    case ACP_AUTHENTICATE:
    case ACP_WAITING:
    case ACP_OVER:
        acp_give_up(p, "the agent refused '%s': %.*s", acp_stage_name(p->stage), STR_ARG(text));
        break;
    }
}

void acp_answer(struct acp *p, const struct jsonrpc_message *m)
{
    if (m->kind == JSONRPC_ERROR) {
        refused(p, m);
        return;
    }
    switch (p->stage) {
    case ACP_INITIALIZE:
        initialized(p, m->result);
        break;
    case ACP_AUTHENTICATE:
        open_session(p);
        break;
    case ACP_SESSION:
        opened(p, m->result);
        break;
    case ACP_MODEL:
        acp_learn_model(p, json_string(p->scratch, p->model));
        acp_learn_options(p, json_get(m->result, "configOptions"));
        advance(p);
        break;
    case ACP_MODE:
    case ACP_EFFORT:
        acp_learn_options(p, json_get(m->result, "configOptions"));
        advance(p);
        break;
    case ACP_PROMPT:
        acp_prompted(p, m->result);
        break;
    case ACP_NEW:
    case ACP_WAITING:
    case ACP_OVER:
        break; /* nothing was asked */
    }
}
