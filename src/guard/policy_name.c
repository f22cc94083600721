/* SPDX-License-Identifier: MIT
 *
 * Policies by name: lists of what may be called, and of what may not.
 */
#include "guard/guard_priv.h"

/* Tools that a prompt needs to work at all; `deny` removes them. */
bool guard_is_builtin(struct str name)
{
    static const char *const names[] = { "ask_human", "open_sections", "read_section",
                                         "structured_output" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqc(name, names[i])) {
            return true;
        }
    }
    return false;
}

static int names_make(struct policy *p, const struct json *definition, struct err *e)
{
    return p->tools.n > 0 ? 0 : ERR(e, ERR_CONFIG, "type '%s' needs 'tools'", p->kind->type);
}

static enum policy_verdict allow_check(struct policy *p, struct guard_check *c)
{
    if (!c->call.native && guard_is_builtin(c->call.tool)) {
        return POLICY_ALLOWS;
    }
    return policy_names_match(&p->tools, &c->call) ? POLICY_ALLOWS : POLICY_DENIES;
}

static enum policy_verdict deny_check(struct policy *p, struct guard_check *c)
{
    return POLICY_DENIES;
}

const struct policy_kind policy_kind_allow = {
    .type = "allow",
    .lists_exceptions = true,
    .make = names_make,
    .check = allow_check,
};

const struct policy_kind policy_kind_deny = {
    .type = "deny",
    .make = names_make,
    .check = deny_check,
};
