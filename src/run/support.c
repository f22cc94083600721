/* SPDX-License-Identifier: MIT
 *
 * What a task asks for and the adapter cannot give. A guarantee that nobody keeps is refused; an
 * offer that nobody can make is a warning.
 */
#include "run/support.h"

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
    return d == NULL || d->begin != NULL || driver_is_internal(s->profile);
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
                       "%s: policies[%zu] cannot be kept: adapter '%s' does not ask about the "
                       "tools of its harness",
                       settings_origin(s, a, "policies", NULL).file, i, s->profile->name);
        }
    }
    if (json_len(s->tools) > 0) {
        return 0;
    }
    return ERR(e, ERR_UNSUPPORTED,
               "%s: 'policies' cannot be kept: adapter '%s' does not ask about the tools of its "
               "harness, and the task has none of its own",
               settings_origin(s, a, "policies", NULL).file, s->profile->name);
}

static int check_rounds(struct arena *a, const struct settings *s, struct err *e)
{
    const struct driver *d = s->profile == NULL ? NULL : driver_find(s->profile->driver);
    if (json_get(s->completion, "model") == NULL || d == NULL || d->tune != NULL) {
        return 0;
    }
    return ERR(e, ERR_UNSUPPORTED,
               "%s: 'completion.model' cannot be kept: adapter '%s' has one model for the whole "
               "conversation",
               settings_origin(s, a, "completion", "model").file, s->profile->name);
}

int support_check(struct arena *a, const struct settings *s, struct err *e)
{
    int r = check_policies(a, s, e);
    r = r < 0 ? r : check_rounds(a, s, e);
    return r < 0 ? r : check_budget(a, s, e);
}

const char *support_warning(struct arena *a, const struct settings *s, size_t i)
{
    if (i == 0 && json_len(s->policies) > 0 && json_len(s->tools) > 0 && !asks_first(s)) {
        return arena_printf(a,
                            "'policies' govern the tools of the task only: adapter '%s' does not "
                            "ask about those of its harness",
                            s->profile->name);
    }
    return NULL;
}
