/* SPDX-License-Identifier: MIT
 *
 * What a task asks for and the adapter cannot give. A guarantee that nobody keeps is refused; an
 * offer that nobody can make is a warning.
 */
#include "config/support.h"

#include "adapters/driver.h"

/* A limit of the budget that is not zero. */
static bool is_limited(const struct settings *s, const char *key)
{
    return json_real(json_get(json_get(s->tree, "limits"), key), 0) > 0;
}

/* Model calls are counted at the gateway and nowhere else. */
static int check_budget(struct arena *a, const struct settings *s, struct err *e)
{
    static const char *const limits[] = { "tokens_input", "tokens_output", "tokens_total", "usd",
                                          "calls" };
    for (size_t i = 0; i < ARRAY_LEN(limits) && !settings_gateway(s); i++) {
        if (is_limited(s, limits[i])) {
            return ERR(e, ERR_UNSUPPORTED,
                       "%s: 'limits.%s' needs a gateway that counts: name gateway.upstream, or use "
                       "an adapter that has one",
                       settings_origin(s, a, "limits", limits[i]).file, limits[i]);
        }
    }
    return 0;
}

/* Does the harness ask before it uses tools of its own? */
static bool asks_first(const struct settings *s)
{
    const struct driver *d = s->profile == NULL ? NULL : driver_find(s->profile->driver);
    return d == NULL || d->kind == DRIVER_DIALOGUE || d->kind == DRIVER_MODEL_LOOP;
}

/* A policy that restrains tools of the harness by the word; `allow` only lets them through. */
static bool means_native(const struct json *policy)
{
    const struct json *tools = json_get(policy, "tools");
    bool restrains = !str_eqc(json_str(json_get(policy, "type"), STR_EMPTY), "allow");
    for (size_t i = 0; restrains && i < json_len(tools); i++) {
        if (str_starts(json_str(json_item(tools, i), STR_EMPTY), STR("native:"))) {
            return true;
        }
    }
    return false;
}

/* Policies that govern nothing at all would be a promise that nobody keeps. */
static int check_policies(struct arena *a, const struct settings *s, struct err *e)
{
    if (json_len(s->policies) == 0 || asks_first(s)) {
        return 0;
    }
    for (size_t i = 0; i < json_len(s->policies); i++) {
        if (means_native(json_item(s->policies, i))) {
            return ERR(e, ERR_UNSUPPORTED,
                       "%s: policies[%zu] cannot be enforced: adapter '%s' does not ask for "
                       "permission before the harness uses its own tools",
                       settings_origin(s, a, "policies", NULL).file, i, s->profile->name);
        }
    }
    if (json_len(s->tools) > 0) {
        return 0;
    }
    return ERR(e, ERR_UNSUPPORTED,
               "%s: 'policies' cannot be enforced: adapter '%s' does not ask for permission before "
               "the harness uses its own tools, and the task has no tools",
               settings_origin(s, a, "policies", NULL).file, s->profile->name);
}

/* Files of the task for the harness need a home of the run's own. */
static int check_harness_files(const struct settings *s, struct err *e)
{
    const struct profile *p = s->profile;
    bool some = json_len(s->instructions) > 0 || json_len(s->agents) > 0;
    if (p == NULL) {
        return 0;
    }
    if (json_len(s->agents) > 0 && p->agents == NULL) {
        return ERR(e, ERR_UNSUPPORTED,
                   "adapter '%s' has no folder for sub-agents, so it cannot use 'agents'", p->name);
    }
    if (some && p->instructions != NULL && s->home == HOME_SHARED) {
        return ERR(e, ERR_UNSUPPORTED,
                   "'instructions' and 'agents' would be left in your own home: they need "
                   "--home private");
    }
    if (s->no_system_prompt && !p->drops_system_prompt && json_len(p->binary) > 0) {
        return ERR(e, ERR_UNSUPPORTED,
                   "adapter '%s' cannot leave out the system prompt of its harness "
                   "(agent.system_prompt: none)",
                   p->name);
    }
    return 0;
}

static int check_rounds(struct arena *a, const struct settings *s, struct err *e)
{
    const struct driver *d = s->profile == NULL ? NULL : driver_find(s->profile->driver);
    if (json_get(s->completion, "model") == NULL || d == NULL ||
        (d->kind == DRIVER_DIALOGUE && d->dialogue->sets_model)) {
        return 0;
    }
    return ERR(e, ERR_UNSUPPORTED,
               "%s: 'completion.model' cannot be kept: adapter '%s' has one model for the whole "
               "conversation",
               settings_origin(s, a, "completion", "model").file, s->profile->name);
}

/* --- tiers --- */

/* What the adapter cannot do of what the tier says, as the end of a sentence; NULL: it can. */
static const char *missing_of_switch(enum tier_switch has, enum tristate wish, const char *what,
                                     struct arena *a)
{
    if (wish == TRI_FALSE && has == TIER_ALWAYS) {
        return arena_printf(a, "cannot take %s away from its harness", what);
    }
    if (wish == TRI_TRUE && has == TIER_NEVER) {
        return arena_printf(a, "has a harness without %s", what);
    }
    return NULL;
}

/* The i-th thing, of three, and the key that asks for it. */
static const char *missing_of_tier(struct arena *a, const struct settings *s, size_t i,
                                   const char **ret_key)
{
    static const char *const keys[] = { "tier_prompt", "tools_enabled", "delegation_enabled" };
    const struct profile_tier *t = s->profile == NULL ? NULL : &s->profile->tier;
    if (t == NULL || i >= ARRAY_LEN(keys)) {
        return NULL;
    }
    *ret_key = keys[i];
    bool prompted = s->tier_prompt != NULL && s->tier_prompt[0] != '\0';
    /* A home that is the user's is not written to. */
    bool by_file = t->prompt_file != NULL || t->prompt_files != NULL;
    bool homeless = s->home != HOME_PRIVATE;
    switch (i) {
    case 0:
        return prompted && (t->prompt == TIER_PROMPT_NONE || (by_file && homeless))
                   ? "has no way to give its harness a prompt of the tier"
                   : NULL;
    case 1:
        return missing_of_switch(homeless && t->tools_off != NULL ? TIER_ALWAYS : t->tools,
                                 s->tools_enabled, "tools", a);
    default:
        return missing_of_switch(homeless && t->delegation_off != NULL ? TIER_ALWAYS
                                                                       : t->delegation,
                                 s->delegation_enabled, "sub-agents", a);
    }
}

enum { TIER_KEYS = 3 };

/* What a strict evaluation under the Scylla contract cannot do without. */
static int check_strict(const struct settings *s, struct err *e)
{
    const char *missing = !s->tier_strict || strcmp(s->exit_profile, "scylla") != 0 ? NULL
                          : s->model == NULL || s->model[0] == '\0' ? "a model (--model)"
                          : s->tier == NULL || s->tier[0] == '\0'   ? "a tier (--tier, or tier_id)"
                                                                    : NULL;
    return missing == NULL
               ? 0
               : ERR(e, ERR_CONFIG, "eval.strict with exit profile 'scylla' needs %s", missing);
}

static int check_tier(struct arena *a, const struct settings *s, struct err *e)
{
    for (size_t i = 0; s->tier_strict && i < TIER_KEYS; i++) {
        const char *key;
        const char *why = missing_of_tier(a, s, i, &key);
        if (why != NULL) {
            return ERR(e, ERR_CONFIG,
                       "%s: 'eval.%s' cannot be had, and eval.strict demands it: adapter '%s' %s",
                       settings_origin(s, a, "eval", key).file, key, s->profile->name, why);
        }
    }
    return 0;
}

/* --- sampling --- */

static const struct {
    const char *key;
    const char *formats; /* of requests that can carry it */
} sampling_keys[] = {
    { "temperature", "anthropic responses chat gemini" },
    { "max_tokens", "anthropic responses chat gemini" },
    { "top_p", "anthropic responses chat gemini" },
    { "stop", "anthropic chat gemini" },
    { "seed", "chat gemini" },
    { "presence_penalty", "chat gemini" },
    { "frequency_penalty", "chat gemini" },
};
enum { SAMPLING_KEYS = ARRAY_LEN(sampling_keys) };

static bool mentions(const struct json *tree, const char *placeholder)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (tree == NULL || json_write(tree, JSON_COMPACT, &text, NULL) < 0) {
        return false;
    }
    return str_find(buf_str(&text), str_of(placeholder)) < text.len;
}

/* Does the profile hand it to the program, by an argument, a variable or a file? */
static bool is_handed_over(struct arena *a, const struct profile *p, const char *key)
{
    const char *placeholder = arena_printf(a, "{%s}", key);
    bool found = mentions(p->env, placeholder) || mentions(p->settings, placeholder) ||
                 mentions(p->enforced, placeholder);
    for (size_t i = 0; !found && i < p->argv_len; i++) {
        found = mentions(p->argv[i].args, placeholder);
    }
    return found;
}

/* The i-th field that the task asks for and that no request will have; NULL: it will. */
static const char *missing_of_sampling(struct arena *a, const struct settings *s, size_t i)
{
    const struct profile *p = s->profile;
    const char *key = sampling_keys[i].key;
    const struct json *given = json_get(json_get(json_get(s->tree, "agent"), "sampling"), key);
    if (p == NULL || given == NULL || json_is(given, JSON_NULL)) {
        return NULL;
    }
    struct str formats = str_of(sampling_keys[i].formats);
    if (driver_is_kind(p, DRIVER_MODEL_LOOP)) {
        const char *format = p->gateway.format != NULL ? p->gateway.format : "anthropic";
        return str_find(formats, str_of(format)) < formats.len
                   ? NULL
                   : arena_printf(a, "sends %s requests, which have no such field", format);
    }
    if (is_handed_over(a, p, key)) {
        return NULL;
    }
    if (!settings_gateway(s)) {
        return "sends no requests through the gateway, which could set it";
    }
    /* A script, a cassette and the profile's own upstream get the requests as the harness sends
     * them; with others it depends on the format of the upstream and is found out later. */
    bool own_format = p->gateway.format != NULL && s->gateway.upstream == NULL &&
                      json_len(s->gateway.routes) == 0;
    return !own_format || str_find(formats, str_of(p->gateway.format)) < formats.len
               ? NULL
               : arena_printf(a, "sends %s requests, which have no such field", p->gateway.format);
}

static int check_sampling(struct arena *a, const struct settings *s, struct err *e)
{
    for (size_t i = 0; s->tier_strict && i < SAMPLING_KEYS; i++) {
        const char *why = missing_of_sampling(a, s, i);
        if (why != NULL) {
            const char *key = sampling_keys[i].key;
            return ERR(
                e, ERR_CONFIG,
                "%s: 'agent.sampling.%s' cannot be sent, and eval.strict demands it: adapter "
                "'%s' %s",
                settings_origin(s, a, "agent", "sampling").file, key, s->profile->name, why);
        }
    }
    return 0;
}

static const char *sampling_warning(struct arena *a, const struct settings *s, size_t i)
{
    const char *why = missing_of_sampling(a, s, i);
    return why == NULL ? NULL
                       : arena_printf(a, "'agent.sampling.%s' has no effect: adapter '%s' %s",
                                      sampling_keys[i].key, s->profile->name, why);
}

/* Whether one of the files is written into a private home only. */
static bool needs_private(const struct profile *p, const struct json *files)
{
    for (size_t i = 0; i < p->files_len; i++) {
        if (!p->files[i].always && json_get(files, p->files[i].name) != NULL) {
            return true;
        }
    }
    return false;
}

/* A shared home holds the user's own configuration, which is not written to: a harness that is led
 * to the gateway, or to the tools of the task, by such a file would go past them. */
static int check_home(const struct settings *s, struct err *e)
{
    const struct profile *p = s->profile;
    if (p == NULL || s->home != HOME_SHARED) {
        return 0;
    }
    bool gateway = settings_gateway(s) && needs_private(p, p->gateway.files);
    bool tools = json_len(s->tools) > 0 && needs_private(p, p->mcp.files);
    if (!gateway && !tools) {
        return 0;
    }
    return ERR(
        e, ERR_UNSUPPORTED,
        "home 'shared' is not possible: adapter '%s' finds the %s by a configuration file of "
        "its own; use --home private",
        p->name, gateway ? "gateway" : "tools of the task");
}

int support_check(struct arena *a, const struct settings *s, struct err *e)
{
    int r = check_policies(a, s, e);
    r = r < 0 ? r : check_rounds(a, s, e);
    r = r < 0 ? r : check_harness_files(s, e);
    r = r < 0 ? r : check_budget(a, s, e);
    r = r < 0 ? r : check_strict(s, e);
    r = r < 0 ? r : check_sampling(a, s, e);
    r = r < 0 ? r : check_home(s, e);
    return r < 0 ? r : check_tier(a, s, e);
}

static const char *policy_warning(struct arena *a, const struct settings *s)
{
    if (json_len(s->policies) == 0 || json_len(s->tools) == 0 || asks_first(s)) {
        return NULL;
    }
    return arena_printf(a,
                        "'policies' govern the tools of the task only: adapter '%s' does not "
                        "ask about those of its harness",
                        s->profile->name);
}

static const char *tier_warning(struct arena *a, const struct settings *s, size_t i)
{
    const char *key;
    const char *why = missing_of_tier(a, s, i, &key);
    return why == NULL ? NULL
                       : arena_printf(a, "'eval.%s' has no effect: adapter '%s' %s", key,
                                      s->profile->name, why);
}

const char *support_warning(struct arena *a, const struct settings *s, size_t i)
{
    size_t seen = 0;
    for (size_t k = 0; k < 2 + TIER_KEYS + SAMPLING_KEYS; k++) {
        const char *text = k == 0               ? s->config_warning
                           : k == 1             ? policy_warning(a, s)
                           : k <= 1 + TIER_KEYS ? tier_warning(a, s, k - 2)
                                                : sampling_warning(a, s, k - 2 - TIER_KEYS);
        if (text != NULL && seen++ == i) {
            return text;
        }
    }
    return NULL;
}
