/* SPDX-License-Identifier: MIT
 *
 * Parts of a profile that belong to one driver: `acp` and `api`; and which provider serves a model.
 */
#include <fnmatch.h>

#include "adapters/profile_priv.h"

const struct shape profile_acp_shape[] = {
    { "auth", SHAPE_STRING },
    { "mode", SHAPE_STRING },
    { "governed_mode", SHAPE_STRING },
    { "model", SHAPE_WORD, .words = "auto|config_option|set_model|none" },
    { "settle_ms", SHAPE_INT },
    { "load_settle_ms", SHAPE_INT },
    { "stays", SHAPE_BOOL },
    { "fs", SHAPE_BOOL },
    { "terminal", SHAPE_BOOL },
    { "mcp_transport", SHAPE_WORD, .words = "auto|stdio" },
    { "initialize_ms", SHAPE_INT },
    { "session_ms", SHAPE_INT },
    { "tool_id_separator", SHAPE_STRING },
    { "tool_name", SHAPE_STRINGS },
    { "tool_server", SHAPE_STRINGS },
    { "noise", SHAPE_STRINGS },
    { 0 },
};

const struct shape profile_api_shape[] = {
    { "system_prompt", SHAPE_STRING },
    { "tools", SHAPE_WORD, .words = "none|builtin" },
    { "context", SHAPE_INT, .min = PROFILE_CONTEXT_MIN, .max = 1e9 },
    { "max_tokens", SHAPE_INT, .min = 1, .max = 1e9 },
    { 0 },
};

const struct shape profile_by_model_shape[] = {
    { "models", SHAPE_STRINGS },
    { "format", SHAPE_WORD, .words = "anthropic|responses|chat|gemini" },
    { "upstream", SHAPE_STRING },
    { "key", SHAPE_STRING },
    { 0 },
};

void profile_read_acp(struct profile *p)
{
    static const char *const words[] = {
        [ACP_MODEL_AUTO] = "auto",
        [ACP_MODEL_OPTION] = "config_option",
        [ACP_MODEL_METHOD] = "set_model",
        [ACP_MODEL_NONE] = "none",
    };
    const struct json *c = json_get(p->doc, "acp");
    struct str model = json_str(json_get(c, "model"), STR("auto"));
    p->acp = (struct profile_acp) {
        .auth = json_cstring(json_get(c, "auth"), NULL),
        .mode = json_cstring(json_get(c, "mode"), NULL),
        .governed_mode = json_cstring(json_get(c, "governed_mode"), NULL),
        .settle_ms = json_int(json_get(c, "settle_ms"), 0),
        .load_settle_ms = json_int(json_get(c, "load_settle_ms"), 0),
        .stays = json_bool(json_get(c, "stays"), false),
        .fs = json_bool(json_get(c, "fs"), true),
        .terminal = json_bool(json_get(c, "terminal"), false),
        .mcp_stdio = str_eqc(json_str(json_get(c, "mcp_transport"), STR_EMPTY), "stdio"),
        .initialize_ms = json_int(json_get(c, "initialize_ms"), ACP_INITIALIZE_MS),
        .session_ms = json_int(json_get(c, "session_ms"), ACP_SESSION_MS),
        .tool_id_separator = json_cstring(json_get(c, "tool_id_separator"), NULL),
        .tool_name = json_get(c, "tool_name"),
        .tool_server = json_get(c, "tool_server"),
        .noise = json_get(c, "noise"),
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        p->acp.model = str_eqc(model, words[i]) ? (enum acp_model)i : p->acp.model;
    }
}

int profile_read_api(struct profile *p, const char *file, struct err *e)
{
    const struct json *c = json_get(p->doc, "api");
    p->api = (struct profile_api) {
        .system_prompt = json_str(json_get(c, "system_prompt"), STR_EMPTY),
        .builtin_tools = str_eqc(json_str(json_get(c, "tools"), STR_EMPTY), "builtin"),
        .context = json_int(json_get(c, "context"), 0),
        .max_tokens = json_int(json_get(c, "max_tokens"), 0),
    };
    p->gateway.by_model = json_get(json_get(p->doc, "gateway"), "by_model");
    char at[JSON_AT_LEN];
    if (c != NULL && strcmp(p->driver, "api") != 0) {
        return ERR(e, ERR_CONFIG, "%s: 'api' is for the driver 'api', not for '%s'",
                   json_at(file, c, at), p->driver);
    }
    for (size_t i = 0; i < json_len(p->gateway.by_model); i++) {
        const struct json *item = json_item(p->gateway.by_model, i);
        if (json_len(json_get(item, "models")) == 0 || json_get(item, "upstream") == NULL) {
            return ERR(e, ERR_CONFIG, "%s: 'gateway.by_model' needs 'models' and 'upstream'",
                       json_at(file, item, at));
        }
    }
    return 0;
}

int profile_for_model(struct arena *a, const struct profile *p, const char *model,
                      const struct profile **ret, struct err *e)
{
    *ret = p;
    for (size_t i = 0; model != NULL && i < json_len(p->gateway.by_model); i++) {
        const struct json *item = json_item(p->gateway.by_model, i);
        const struct json *models = json_get(item, "models");
        for (size_t k = 0; k < json_len(models); k++) {
            if (fnmatch(json_cstring(json_item(models, k), ""), model, 0) == 0) {
                struct json *over = json_copy(a, item);
                (void)json_remove(over, STR("models"));
                json_setc(a, over, "by_model", json_null(a));
                return profile_override(a, p, "gateway", over, ret, e);
            }
        }
    }
    return 0;
}
