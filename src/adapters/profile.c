/* SPDX-License-Identifier: MIT
 *
 * Reading one profile. The shape table is the list of keys that exist; docs/adapters.md explains
 * them.
 */
#include "adapters/profile.h"

#include "adapters/driver.h"
#include "adapters/expand.h"
#include "adapters/profile_priv.h"
#include "base/path.h"
#include "data/regex.h"
#include "data/shape.h"

static const struct shape file_shape[] = {
    { "name", SHAPE_STRING },
    { "path", SHAPE_STRING },
    { "format", SHAPE_WORD, .words = "json|toml|yaml" },
    { "always", SHAPE_BOOL },
    { "locked", SHAPE_BOOL },
    { 0 },
};

static const struct shape trusted_shape[] = {
    { "env", SHAPE_MAP },
    { "files", SHAPE_ANY_OBJECT },
    { 0 },
};
static const struct shape skill_commands_shape[] = {
    { "files", SHAPE_ANY_OBJECT },
    { 0 },
};
static const struct shape instructions_shape[] = {
    { "from", SHAPE_STRINGS },
    { "nested", SHAPE_STRING },
    { "to", SHAPE_STRING },
    { 0 },
};
static const struct shape project_shape[] = {
    { "env", SHAPE_MAP },
    { "files", SHAPE_ANY_OBJECT },
    { "session", SHAPE_ANY_OBJECT },
    { "trusted", SHAPE_OBJECT, .inner = trusted_shape },
    { "skill_commands", SHAPE_OBJECT, .inner = skill_commands_shape },
    { "instructions", SHAPE_LIST, .inner = instructions_shape },
    { "skills", SHAPE_STRINGS },
    { "hide", SHAPE_STRINGS },
    { "hide_whole_run", SHAPE_STRINGS },
    { "settle", SHAPE_STRINGS },
    { "home_locked", SHAPE_STRINGS },
    { 0 },
};

static const struct shape trust_shape[] = {
    { "style", SHAPE_WORD, .words = "codex|gemini|claude" },
    { "file", SHAPE_STRING },
    { 0 },
};

static const struct shape schema_shape[] = {
    { "form", SHAPE_WORD, .words = "plain|wrapped|openai|claude" },
    { "native", SHAPE_BOOL },
    { 0 },
};

static const struct shape usage_shape[] = {
    { "input", SHAPE_STRING },       { "output", SHAPE_STRING },    { "cache_read", SHAPE_STRING },
    { "cache_write", SHAPE_STRING }, { "reasoning", SHAPE_STRING }, { "cost_usd", SHAPE_STRING },
    { "turns", SHAPE_STRING },       { "api_calls", SHAPE_STRING }, { 0 },
};

static const struct shape rule_shape[] = {
    { "when", SHAPE_MAP },
    { "text", SHAPE_STRING },
    { "append_text", SHAPE_BOOL },
    { "session_id", SHAPE_STRING },
    { "model", SHAPE_STRING },
    { "error", SHAPE_STRING },
    { "failed", SHAPE_STRING },
    { "structured", SHAPE_STRING },
    { "usage", SHAPE_OBJECT, .inner = usage_shape },
    { "add_usage", SHAPE_BOOL },
    { "entry", SHAPE_WORD,
      .words = "user_message|assistant_message|tool_use|tool_result|thinking|system_event|"
               "token_usage|error|unknown" },
    { 0 },
};

static const struct shape marks_shape[] = {
    { "begin", SHAPE_STRING },
    { "end", SHAPE_STRING },
    { "error", SHAPE_STRINGS },
    { 0 },
};
static const struct shape output_shape[] = {
    { "format", SHAPE_WORD, .words = "text|json|ndjson" },
    { "rules", SHAPE_LIST, .inner = rule_shape },
    { "marks", SHAPE_OBJECT, .inner = marks_shape },
    { "pattern", SHAPE_STRING },
    { "trim", SHAPE_BOOL },
    { 0 },
};

static const struct shape sandbox_shape[] = {
    { "read", SHAPE_STRINGS },
    { "write", SHAPE_STRINGS },
    { "nested", SHAPE_BOOL },
    { 0 },
};
static const struct shape volatile_shape[] = {
    { "paths", SHAPE_STRINGS },
    { "patterns", SHAPE_STRINGS },
    { 0 },
};
static const struct shape gateway_shape[] = {
    { "format", SHAPE_WORD, .words = "anthropic|responses|chat|gemini" },
    { "upstream", SHAPE_STRING },
    { "key", SHAPE_STRING },
    { "env", SHAPE_MAP },
    { "files", SHAPE_ANY_OBJECT },
    { "tools", SHAPE_ANY_OBJECT },
    { "volatile", SHAPE_OBJECT, .inner = volatile_shape },
    { "by_model", SHAPE_LIST, .inner = profile_by_model_shape },
    { 0 },
};

static const struct shape login_shape[] = {
    { "file", SHAPE_STRING },     { "variable", SHAPE_STRING },
    { "has", SHAPE_STRING },      { "expires", SHAPE_STRING },
    { "upstream", SHAPE_STRING }, { "files", SHAPE_ANY_OBJECT },
    { "cannot", SHAPE_STRING },   { 0 },
};
static const struct shape auth_shape[] = {
    { "login", SHAPE_STRING },
    { "env", SHAPE_STRINGS },
    { "host", SHAPE_LIST, .inner = login_shape },
    { "refused", SHAPE_STRINGS },
    { 0 },
};

#define TIER_SWITCH_WORDS "always|switch|never|told"
static const struct shape tier_shape[] = {
    { "prompt", SHAPE_WORD, .words = "none|system|text|told" },
    { "prompt_file", SHAPE_STRING },
    { "prompt_files", SHAPE_ANY_OBJECT },
    { "tools", SHAPE_WORD, .words = TIER_SWITCH_WORDS },
    { "delegation", SHAPE_WORD, .words = TIER_SWITCH_WORDS },
    { "tools_off", SHAPE_ANY_OBJECT },
    { "delegation_off", SHAPE_ANY_OBJECT },
    { 0 },
};

static const struct shape mcp_shape[] = {
    { "env", SHAPE_MAP },
    { "files", SHAPE_ANY_OBJECT },
    { "prefix", SHAPE_STRING },
    { "list_changed", SHAPE_BOOL },
    { 0 },
};

static const struct shape rename_shape[] = {
    { "from", SHAPE_STRING },
    { "to", SHAPE_STRING },
    { 0 },
};
static const struct shape session_shape[] = {
    { "files", SHAPE_STRINGS },
    { "anywhere", SHAPE_BOOL },
    { "written_ms", SHAPE_INT },
    { "written_as", SHAPE_STRING },
    { "rename", SHAPE_OBJECT, .inner = rename_shape },
    { 0 },
};

static const struct shape tested_shape[] = {
    { "since", SHAPE_STRING },
    { "until", SHAPE_STRING },
    { 0 },
};
static const struct shape version_shape[] = {
    { "package", SHAPE_STRING },
    { "command", SHAPE_STRINGS },
    { 0 },
};
static const struct shape skill_packages_shape[] = {
    { "engine", SHAPE_STRING },
    { "invoke", SHAPE_STRING },
    { "configs", SHAPE_STRINGS },
    { 0 },
};

static const struct shape profile_shape[] = {
    { "name", SHAPE_STRING },
    { "title", SHAPE_STRING },
    { "description", SHAPE_STRING },
    { "driver", SHAPE_STRING }, /* driver_check() */
    { "binary", SHAPE_STRINGS },
    { "argv", SHAPE_ANY },
    { "prompt", SHAPE_WORD, .words = "file|argument|stdin" },
    { "home", SHAPE_WORD, .words = "private|shared" },
    { "env", SHAPE_MAP },
    { "settings", SHAPE_ANY_OBJECT },
    { "enforced", SHAPE_ANY_OBJECT },
    { "files", SHAPE_LIST, .inner = file_shape },
    { "own_files", SHAPE_STRINGS },
    { "skills", SHAPE_STRING },
    { "instructions", SHAPE_STRING },
    { "agents", SHAPE_STRING },
    { "skill_packages", SHAPE_OBJECT, .inner = skill_packages_shape },
    { "known_models", SHAPE_STRINGS },
    { "tool_names", SHAPE_STRINGS },
    { "system_prompt", SHAPE_WORD, .words = "append|replace|none" },
    { "output_schema", SHAPE_OBJECT, .inner = schema_shape },
    { "trust", SHAPE_OBJECT, .inner = trust_shape },
    { "gateway", SHAPE_OBJECT, .inner = gateway_shape },
    { "auth", SHAPE_OBJECT, .inner = auth_shape },
    { "tier", SHAPE_OBJECT, .inner = tier_shape },
    { "mcp", SHAPE_OBJECT, .inner = mcp_shape },
    { "acp", SHAPE_OBJECT, .inner = profile_acp_shape },
    { "api", SHAPE_OBJECT, .inner = profile_api_shape },
    { "project_config", SHAPE_OBJECT, .inner = project_shape },
    { "sandbox", SHAPE_OBJECT, .inner = sandbox_shape },
    { "session", SHAPE_OBJECT, .inner = session_shape },
    { "output", SHAPE_OBJECT, .inner = output_shape },
    { "capabilities", SHAPE_STRINGS },
    { "lacks", SHAPE_MAP },
    { "tried", SHAPE_STRING },
    { "tested", SHAPE_OBJECT, .inner = tested_shape },
    { "version", SHAPE_OBJECT, .inner = version_shape },
    { "versions", SHAPE_ANY },
    { "node", SHAPE_STRING },
    { "unverified", SHAPE_STRING },
    { "install", SHAPE_STRING },
    { "quirks", SHAPE_STRINGS },
    { 0 },
};

static const char *const delivery_words[] = {
    [PROMPT_FILE] = "file",
    [PROMPT_ARGUMENT] = "argument",
    [PROMPT_STDIN] = "stdin",
};

const char *prompt_delivery_word(enum prompt_delivery d)
{
    return delivery_words[d];
}

bool prompt_delivery_of(struct str word, enum prompt_delivery *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(delivery_words); i++) {
        if (str_eqc(word, delivery_words[i])) {
            *ret = (enum prompt_delivery)i;
            return true;
        }
    }
    return false;
}

static const struct shape args_shape[] = {
    { "when", SHAPE_STRING },
    { "unless", SHAPE_STRING },
    { "args", SHAPE_STRINGS },
    { 0 },
};

static int read_args(struct arena *a, const struct json *item, const char *file,
                     struct profile_args *ret, struct err *e)
{
    if (json_is(item, JSON_STRING)) {
        *ret = (struct profile_args) { .args = json_array(a) };
        json_push(a, ret->args, json_copy(a, item));
        return 0;
    }
    int r = shape_check(item, args_shape, file, e);
    if (r < 0) {
        return r;
    }
    *ret = (struct profile_args) {
        .when = json_cstring(json_get(item, "when"), NULL),
        .unless = json_cstring(json_get(item, "unless"), NULL),
        .args = json_get(item, "args"),
    };
    if (ret->args == NULL) {
        char at[JSON_AT_LEN];
        return ERR(e, ERR_CONFIG, "%s: 'argv' item needs 'args'", json_at(file, item, at));
    }
    return 0;
}

static int read_argv(struct arena *a, struct profile *p, const char *file, struct err *e)
{
    const struct json *argv = json_get(p->doc, "argv");
    if (!json_is(argv, JSON_ARRAY)) {
        char at[JSON_AT_LEN];
        return ERR(e, ERR_CONFIG, "%s: 'argv' must be a list of strings and {when, args} items",
                   json_at(file, argv == NULL ? p->doc : argv, at));
    }
    p->argv_len = json_len(argv);
    p->argv = arena_array(a, p->argv_len, sizeof *p->argv);
    for (size_t i = 0; i < p->argv_len; i++) {
        int r = read_args(a, json_item(argv, i), file, &p->argv[i], e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_files(struct arena *a, struct profile *p, const char *file, struct err *e)
{
    const struct json *list = json_get(p->doc, "files");
    p->files_len = json_len(list);
    p->files = arena_array(a, p->files_len, sizeof *p->files);
    for (size_t i = 0; i < p->files_len; i++) {
        const struct json *item = json_item(list, i);
        struct str format = json_str(json_get(item, "format"), STR("json"));
        char at[JSON_AT_LEN];
        p->files[i] = (struct profile_file) {
            .name = json_cstring(json_get(item, "name"), NULL),
            .path = json_cstring(json_get(item, "path"), NULL),
            .format = str_eqc(format, "toml")   ? CONFIG_TOML
                      : str_eqc(format, "yaml") ? CONFIG_YAML
                                                : CONFIG_JSON,
            .always = json_bool(json_get(item, "always"), false),
            .locked = json_bool(json_get(item, "locked"), false),
        };
        if (p->files[i].name == NULL || p->files[i].path == NULL) {
            return ERR(e, ERR_CONFIG, "%s: a file needs 'name' and 'path'",
                       json_at(file, item, at));
        }
        if (!path_is_inner(str_of(p->files[i].path))) {
            return ERR(e, ERR_CONFIG, "%s: path '%s' must stay below the home",
                       json_at(file, item, at), p->files[i].path);
        }
    }
    return 0;
}

static int read_session(struct profile *p, const char *file, struct err *e)
{
    const struct json *s = json_get(p->doc, "session");
    const struct json *rename = json_get(s, "rename");
    p->session_files = json_get(s, "files");
    p->session_anywhere = json_bool(json_get(s, "anywhere"), false);
    p->session_written_ms = json_int(json_get(s, "written_ms"), 0);
    p->session_written_as = json_cstring(json_get(s, "written_as"), "");
    p->session_from = json_cstring(json_get(rename, "from"), NULL);
    p->session_to = json_cstring(json_get(rename, "to"), NULL);
    if (rename != NULL &&
        (p->session_from == NULL || p->session_to == NULL || strchr(p->session_to, '/') != NULL)) {
        char at[JSON_AT_LEN];
        return ERR(e, ERR_CONFIG, "%s: 'rename' needs 'from' and 'to', beginnings of names",
                   json_at(file, rename, at));
    }
    for (size_t i = 0; i < json_len(p->session_files); i++) {
        const struct json *item = json_item(p->session_files, i);
        char at[JSON_AT_LEN];
        if (!path_is_inner(json_str(item, STR_EMPTY))) {
            return ERR(e, ERR_CONFIG, "%s: a file of 'session' must stay below the home",
                       json_at(file, item, at));
        }
    }
    return 0;
}

/* A section may only fill in files that the profile has. */
static int check_section(const struct profile *p, const char *section, const struct json *files,
                         const char *file, struct err *e)
{
    for (size_t i = 0; i < json_len(files); i++) {
        bool known = false;
        for (size_t j = 0; j < p->files_len; j++) {
            known = known || str_eqc(files->object.members[i].key, p->files[j].name);
        }
        if (!known) {
            char at[JSON_AT_LEN];
            return ERR(e, ERR_CONFIG, "%s: '%s' names the file '%s', which 'files' does not list",
                       json_at(file, files->object.members[i].value, at), section,
                       files->object.members[i].key.ptr);
        }
    }
    return 0;
}

static void read_sandbox(struct profile *p)
{
    const struct json *s = json_get(p->doc, "sandbox");
    p->sandbox = (struct profile_sandbox) {
        .read = json_get(s, "read"),
        .write = json_get(s, "write"),
        .nested = json_bool(json_get(s, "nested"), false),
    };
}

static void read_gateway(struct profile *p)
{
    const struct json *g = json_get(p->doc, "gateway");
    p->gateway = (struct profile_gateway) {
        .format = json_cstring(json_get(g, "format"), NULL),
        .upstream = json_cstring(json_get(g, "upstream"), NULL),
        .key = json_cstring(json_get(g, "key"), NULL),
        .env = json_get(g, "env"),
        .files = json_get(g, "files"),
        .tools = json_get(g, "tools"),
        .volatile_fields = json_get(g, "volatile"),
    };
}

static int read_auth(struct arena *a, struct profile *p, const char *file, struct err *e)
{
    const struct json *auth = json_get(p->doc, "auth");
    const struct json *list = json_get(auth, "host");
    p->auth = (struct profile_auth) {
        .login = json_cstring(json_get(auth, "login"), NULL),
        .env = json_get(auth, "env"),
        .logins = arena_array(a, json_len(list), sizeof *p->auth.logins),
        .logins_len = json_len(list),
        .refused = json_get(auth, "refused"),
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->auth.logins_len; i++) {
        const struct json *item = json_item(list, i);
        struct profile_login *l = &p->auth.logins[i];
        *l = (struct profile_login) {
            .file = json_cstring(json_get(item, "file"), ""),
            .variable = json_cstring(json_get(item, "variable"), NULL),
            .has = json_cstring(json_get(item, "has"), NULL),
            .expires = json_cstring(json_get(item, "expires"), NULL),
            .upstream = json_cstring(json_get(item, "upstream"), NULL),
            .files = json_get(item, "files"),
            .cannot = json_cstring(json_get(item, "cannot"), NULL),
        };
        char at[JSON_AT_LEN];
        if (!path_is_inner(str_of(l->file)) || p->auth.login == NULL) {
            return ERR(e, ERR_CONFIG,
                       "%s: a login needs 'file', below the home, and 'login' of 'auth', the "
                       "command that makes it",
                       json_at(file, item, at));
        }
        r = check_section(p, "auth.host.files", l->files, file, e);
    }
    return r;
}

/* A profile that has arguments for it need not say that it can. */
static bool has_arguments_when(const struct profile *p, const char *placeholder)
{
    for (size_t i = 0; i < p->argv_len; i++) {
        if (p->argv[i].when != NULL && strcmp(p->argv[i].when, placeholder) == 0) {
            return true;
        }
    }
    return false;
}

static enum tier_switch tier_switch_of(const struct profile *p, const struct json *word,
                                       const char *placeholder)
{
    static const char *const words[] = {
        [TIER_ALWAYS] = "always",
        [TIER_SWITCHED] = "switch",
        [TIER_NEVER] = "never",
        [TIER_TOLD] = "told",
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqc(json_str(word, STR_EMPTY), words[i])) {
            return (enum tier_switch)i;
        }
    }
    return has_arguments_when(p, placeholder) ? TIER_SWITCHED : TIER_ALWAYS;
}

/* Where the profile does not say it: what its driver does. */
static const char *usual_tier_prompt(const struct profile *p)
{
    const struct driver *driver = driver_find(p->driver);
    if (driver != NULL && driver->tier_prompt != NULL) {
        return p->system_prompt == SYSTEM_PROMPT_NONE ? "none" : driver->tier_prompt;
    }
    return expand_uses(p, "{system_prompt}") ? "system" : "none";
}

static int read_tier(struct profile *p, const char *file, struct err *e)
{
    static const char *const words[] = {
        [TIER_PROMPT_NONE] = "none",
        [TIER_PROMPT_SYSTEM] = "system",
        [TIER_PROMPT_TEXT] = "text",
        [TIER_PROMPT_TOLD] = "told",
    };
    const struct json *t = json_get(p->doc, "tier");
    struct str prompt = json_str(json_get(t, "prompt"), str_of(usual_tier_prompt(p)));
    p->tier = (struct profile_tier) {
        .prompt_file = json_cstring(json_get(t, "prompt_file"), NULL),
        .prompt_files = json_get(t, "prompt_files"),
        .tools = tier_switch_of(p, json_get(t, "tools"), "tools_off"),
        .delegation = tier_switch_of(p, json_get(t, "delegation"), "delegation_off"),
        .tools_off = json_get(t, "tools_off"),
        .delegation_off = json_get(t, "delegation_off"),
    };
    p->drops_system_prompt = has_arguments_when(p, "system_prompt_none");
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        p->tier.prompt = str_eqc(prompt, words[i]) ? (enum tier_prompt)i : p->tier.prompt;
    }
    int r = check_section(p, "tier.prompt", p->tier.prompt_files, file, e);
    r = r < 0 ? r : check_section(p, "tier.tools_off", p->tier.tools_off, file, e);
    return r < 0 ? r : check_section(p, "tier.delegation_off", p->tier.delegation_off, file, e);
}

static void read_mcp(struct profile *p)
{
    const struct json *m = json_get(p->doc, "mcp");
    p->mcp = (struct profile_mcp) {
        .env = json_get(m, "env"),
        .files = json_get(m, "files"),
        .prefix = json_cstring(json_get(m, "prefix"), ""),
        .list_changed = json_bool(json_get(m, "list_changed"), false),
    };
}

/* Prose goes from the workspace to the home, and nowhere else. */
static int check_instructions(const struct profile *p, const char *file, struct err *e)
{
    for (size_t i = 0; i < json_len(p->project.instructions); i++) {
        const struct json *item = json_item(p->project.instructions, i);
        const struct json *from = json_get(item, "from");
        struct str nested = json_str(json_get(item, "nested"), STR_EMPTY);
        bool good = path_is_inner(json_str(json_get(item, "to"), STR_EMPTY)) &&
                    (nested.len > 0) == (json_len(from) == 0);
        for (size_t k = 0; k < json_len(from); k++) {
            good = good && path_is_inner(json_str(json_item(from, k), STR_EMPTY));
        }
        if (!good || memchr(nested.ptr, '/', nested.len) != NULL) {
            char at[JSON_AT_LEN];
            return ERR(e, ERR_CONFIG,
                       "%s: 'instructions' need 'from' (paths below the workspace) or 'nested' (a "
                       "name), and 'to', a path below the home",
                       json_at(file, item, at));
        }
    }
    return 0;
}

static int check_below(const struct json *list, const char *key, const char *file, struct err *e)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        char at[JSON_AT_LEN];
        if (!path_is_inner(json_str(item, STR_EMPTY))) {
            return ERR(e, ERR_CONFIG, "%s: a path of '%s' must be relative and must not lead out",
                       json_at(file, item, at), key);
        }
    }
    return 0;
}

static int read_project(struct profile *p, const char *file, struct err *e)
{
    const struct json *c = json_get(p->doc, "project_config");
    const struct json *trusted = json_get(c, "trusted");
    p->project = (struct profile_project) {
        .declared = c != NULL,
        .env = json_get(c, "env"),
        .files = json_get(c, "files"),
        .session = json_get(c, "session"),
        .trusted_env = json_get(trusted, "env"),
        .trusted_files = json_get(trusted, "files"),
        .skill_command_files = json_get(json_get(c, "skill_commands"), "files"),
        .instructions = json_get(c, "instructions"),
        .skills = json_get(c, "skills"),
        .hide = json_get(c, "hide"),
        .hide_whole_run = json_get(c, "hide_whole_run"),
        .settle = json_get(c, "settle"),
        .home_locked = json_get(c, "home_locked"),
    };
    int r = check_section(p, "project_config.files", p->project.files, file, e);
    r = r < 0 ? r
              : check_section(p, "project_config.trusted.files", p->project.trusted_files, file, e);
    r = r < 0 ? r
              : check_section(p, "project_config.skill_commands.files",
                              p->project.skill_command_files, file, e);
    r = r < 0 ? r : check_below(p->project.skills, "skills", file, e);
    r = r < 0 ? r : check_below(p->project.hide, "hide", file, e);
    r = r < 0 ? r : check_below(p->project.hide_whole_run, "hide_whole_run", file, e);
    r = r < 0 ? r : check_below(p->project.settle, "settle", file, e);
    r = r < 0 ? r : check_below(p->project.home_locked, "home_locked", file, e);
    return r < 0 ? r : check_instructions(p, file, e);
}

static void read_schema_form(struct profile *p)
{
    static const char *const forms[] = {
        [SCHEMA_FORM_PLAIN] = "plain",
        [SCHEMA_FORM_WRAPPED] = "wrapped",
        [SCHEMA_FORM_OPENAI] = "openai",
        [SCHEMA_FORM_CLAUDE] = "claude",
    };
    const struct json *schema = json_get(p->doc, "output_schema");
    struct str form = json_str(json_get(schema, "form"), STR("plain"));
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        p->schema_form = str_eqc(form, forms[i]) ? (enum schema_form)i : p->schema_form;
    }
    p->schema_native = json_bool(json_get(schema, "native"), false);
}

static void read_rest(struct arena *a, struct profile *p)
{
    const struct json *trust = json_get(p->doc, "trust");
    p->title = json_cstring(json_get(p->doc, "title"), p->name);
    p->description = json_cstring(json_get(p->doc, "description"), "");
    p->driver = json_cstring(json_get(p->doc, "driver"), "oneshot");
    p->binary = json_get(p->doc, "binary");
    (void)prompt_delivery_of(json_str(json_get(p->doc, "prompt"), STR("file")), &p->prompt);
    p->home = str_eqc(json_str(json_get(p->doc, "home"), STR_EMPTY), "shared") ? HOME_SHARED
                                                                               : HOME_PRIVATE;
    p->env = json_get(p->doc, "env");
    p->settings = json_get(p->doc, "settings");
    p->enforced = json_get(p->doc, "enforced");
    p->skills = json_cstring(json_get(p->doc, "skills"), NULL);
    p->instructions = json_cstring(json_get(p->doc, "instructions"), NULL);
    p->agents = json_cstring(json_get(p->doc, "agents"), NULL);
    p->own_files = json_get(p->doc, "own_files");
    const struct json *packages = json_get(p->doc, "skill_packages");
    p->skill_packages = (struct profile_skill_packages) {
        .engine = json_cstring(json_get(packages, "engine"), NULL),
        .invoke = json_cstring(json_get(packages, "invoke"), NULL),
        .configs = json_get(packages, "configs"),
    };
    p->known_models = json_get(p->doc, "known_models");
    p->tool_names = json_get(p->doc, "tool_names");
    struct str style = json_str(json_get(p->doc, "system_prompt"), STR_EMPTY);
    p->system_prompt = str_eqc(style, "replace") ? SYSTEM_PROMPT_REPLACE
                       : str_eqc(style, "none")  ? SYSTEM_PROMPT_NONE
                                                 : SYSTEM_PROMPT_APPEND;
    read_schema_form(p);
    p->trust.style = json_cstring(json_get(trust, "style"), NULL);
    p->trust.file = json_cstring(json_get(trust, "file"), NULL);
    p->output = json_get(p->doc, "output");
    if (p->output == NULL) {
        p->output = json_object(a);
    }
    p->tried = json_cstring(json_get(p->doc, "tried"), NULL);
    p->versions = json_get(p->doc, "versions");
    p->node = json_cstring(json_get(p->doc, "node"), NULL);
    p->version_package =
        json_cstring(json_pointer(p->doc, STR("/version/package")), p->version_package);
    p->version_command = json_pointer(p->doc, STR("/version/command"));
    p->unverified = json_cstring(json_get(p->doc, "unverified"), NULL);
    p->install = json_cstring(json_get(p->doc, "install"), NULL);
    p->quirks = json_get(p->doc, "quirks");
}

static int check_pattern(const struct profile *p, const char *file, struct err *e)
{
    CLEANUP(regex) struct regex *compiled = NULL;
    const struct json *pattern = json_get(p->output, "pattern");
    char at[JSON_AT_LEN];
    struct err why;
    if (pattern != NULL && regex_compile(pattern->string, 0, &compiled, &why) < 0) {
        return ERR(e, ERR_CONFIG, "%s: 'output.pattern': %s", json_at(file, pattern, at), why.msg);
    }
    return 0;
}

/* `tried` is the version of the last test; `tested` the range in which tests passed. */
static int read_versions(struct profile *p, const char *file, struct err *e)
{
    const struct json *tested = json_get(p->doc, "tested");
    p->tested_since = json_cstring(json_get(tested, "since"), p->tried);
    p->tested_until = json_cstring(json_get(tested, "until"), p->tried);
    if ((p->tested_since == NULL) != (p->tested_until == NULL)) {
        return ERR(e, ERR_CONFIG, "%s: 'tested' needs 'since' and 'until'", file);
    }
    if (p->tested_until != NULL && p->unverified != NULL) {
        return ERR(e, ERR_CONFIG, "%s: it is either tested ('tried', 'tested') or 'unverified'",
                   file);
    }
    return 0;
}

/* What the kinds of keys cannot say. */
static int check_rest(const struct profile *p, const char *file, struct err *e)
{
    if (p->trust.style != NULL && p->trust.file == NULL) {
        return ERR(e, ERR_CONFIG, "%s: 'trust' needs 'file', relative to the home", file);
    }
    if (p->node != NULL && (p->node[0] < '0' || p->node[0] > '9')) {
        return ERR(e, ERR_CONFIG, "%s: 'node' must be a version, such as \"22.19\"", file);
    }
    static const char *const places[] = { "/skills", "/instructions", "/agents",
                                          "/tier/prompt_file" };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!path_is_inner(json_str(json_pointer(p->doc, str_of(places[i])), STR("x")))) {
            return ERR(e, ERR_CONFIG, "%s: '%s' must be below the home", file, places[i] + 1);
        }
    }
    return check_pattern(p, file, e);
}

int profile_read(struct arena *a, struct json *doc, const char *file, struct profile **ret,
                 struct err *e)
{
    struct profile *p = ARENA_NEW(a, struct profile);
    p->doc = doc;
    int r = shape_check(p->doc, profile_shape, file, e);
    r = r < 0 ? r : driver_check(json_get(p->doc, "driver"), file, e);
    if (r < 0) {
        return r;
    }
    p->source = arena_dup(a, str_of(file));
    p->name = json_cstring(json_get(p->doc, "name"), NULL);
    if (p->name == NULL || p->name[0] == '\0') {
        return ERR(e, ERR_CONFIG, "%s: a profile needs 'name'", file);
    }
    read_rest(a, p);
    r = read_versions(p, file, e);
    r = r < 0 ? r : check_rest(p, file, e);
    r = r < 0 ? r : check_below(p->own_files, "own_files", file, e);
    r = r < 0 ? r : read_argv(a, p, file, e);
    if (r < 0) {
        return r;
    }
    r = read_files(a, p, file, e);
    r = r < 0 ? r : read_session(p, file, e);
    if (r < 0) {
        return r;
    }
    read_gateway(p);
    read_mcp(p);
    profile_read_acp(p);
    read_sandbox(p);
    r = check_section(p, "gateway.files", p->gateway.files, file, e);
    r = r < 0 ? r : check_section(p, "mcp.files", p->mcp.files, file, e);
    r = r < 0 ? r : read_auth(a, p, file, e);
    r = r < 0 ? r : profile_read_api(p, file, e);
    r = r < 0 ? r : read_tier(p, file, e);
    r = r < 0 ? r : read_project(p, file, e);
    r = r < 0 ? r
              : capability_read(json_get(p->doc, "capabilities"), json_get(p->doc, "lacks"), file,
                                &p->capabilities, e);
    if (r < 0) {
        return r;
    }
    *ret = p;
    return 0;
}
