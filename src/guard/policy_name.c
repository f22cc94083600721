/* SPDX-License-Identifier: MIT
 *
 * Policies by name: lists of what may be called, and of what may not.
 */
#include "guard/guard_priv.h"

/* Tools that a prompt needs to work at all; who wants them gone says so with `deny`. */
static const char *const built_in[] = { "open_sections", "read_section", "structured_output" };

static int names_make(struct policy *p, const struct json *definition, struct err *e)
{
    return p->tools.n > 0 ? 0 : ERR(e, ERR_CONFIG, "type '%s' needs 'tools'", p->kind->type);
}

static enum policy_verdict allow_check(struct policy *p, struct guard_check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(built_in) && !c->call.native; i++) {
        if (str_eqc(c->call.tool, built_in[i])) {
            return POLICY_ALLOWS;
        }
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
