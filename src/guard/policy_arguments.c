/* SPDX-License-Identifier: MIT
 *
 * Policies on arguments: each rule looks at one place of them and holds it against a pattern, a
 * schema or both. What is not there does not fit.
 */
#include "guard/guard_priv.h"

#include "data/regex.h"
#include "data/schema.h"

#define RULES_MAX 64
#define TEXT_MAX  ((size_t)1 << 20) /* of a scalar that a pattern looks at */

struct rule {
    struct str pointer;
    struct str pattern; /* as the task has it, for the model */
    struct regex *regex;
    struct schema *schema;
};

struct rules {
    size_t n;
    struct rule items[RULES_MAX];
};

static int pattern_make(struct arena *a, const struct json *v, struct rule *r, struct err *e)
{
    r->pattern = arena_str(a, json_str(v, STR_EMPTY));
    if (r->pattern.len == 0) {
        return ERR(e, ERR_CONFIG, "'pattern' is empty");
    }
    if (r->pointer.len == 0) {
        return ERR(e, ERR_CONFIG, "'pattern' needs a 'pointer' to the argument it is about");
    }
    return regex_compile(r->pattern, 0, &r->regex, e);
}

static int rule_make(struct arena *a, const struct json *definition, struct rule *r, struct err *e)
{
    const struct json *pattern = json_get(definition, "pattern");
    const struct json *schema = json_get(definition, "schema");
    r->pointer = arena_str(a, json_str(json_get(definition, "pointer"), STR_EMPTY));
    if (r->pointer.len > 0 && r->pointer.ptr[0] != '/') {
        return ERR(e, ERR_CONFIG, "'pointer' must begin with '/'");
    }
    if (pattern == NULL && schema == NULL) {
        return ERR(e, ERR_CONFIG, "needs 'pattern' or 'schema'");
    }
    int rc = pattern == NULL ? 0 : pattern_make(a, pattern, r, e);
    return rc < 0 || schema == NULL ? rc : schema_compile(schema, NULL, &r->schema, e);
}

static int arguments_make(struct policy *p, const struct json *definition, struct err *e)
{
    const struct json *list = json_get(definition, "rules");
    size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : 0;
    if (n == 0 || n > RULES_MAX) {
        return ERR(e, ERR_CONFIG, "'rules' must be a list of 1 to %d rules", RULES_MAX);
    }
    struct rules *rules = ARENA_NEW(p->guard->arena, struct rules);
    p->self = rules;
    for (size_t i = 0; i < n; i++) {
        rules->n = i + 1;
        int r = rule_make(p->guard->arena, json_item(list, i), &rules->items[i], e);
        if (r < 0) {
            return err_wrap(e, "rules[%zu]", i);
        }
    }
    return 0;
}

/* A string as it is, other scalars as JSON. */
static bool scalar_text(const struct json *v, struct buf *out)
{
    if (json_is(v, JSON_STRING)) {
        return buf_append(out, v->string, NULL) == 0;
    }
    return !json_is(v, JSON_ARRAY) && !json_is(v, JSON_OBJECT) &&
           json_write(v, JSON_COMPACT, out, NULL) == 0;
}

static enum policy_verdict check_pattern(const struct rule *r, const struct json *v,
                                         struct guard_check *c)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TEXT_MAX);
    struct err e;
    if (!scalar_text(v, &text)) {
        return policy_deny(c, "Tool '%.*s': argument '%.*s' must be a plain value.",
                           STR_ARG(c->call.tool), STR_ARG(r->pointer));
    }
    int yes = regex_match(r->regex, buf_str(&text), &e);
    if (yes < 0) {
        return policy_broken(c, "pattern on '%.*s': %s", STR_ARG(r->pointer), e.msg);
    }
    return yes == 1 ? POLICY_ALLOWS
                    : policy_deny(c, "Tool '%.*s': argument '%.*s' must match the pattern %.*s",
                                  STR_ARG(c->call.tool), STR_ARG(r->pointer), STR_ARG(r->pattern));
}

static enum policy_verdict check_schema(const struct rule *r, const struct json *v,
                                        struct guard_check *c)
{
    struct schema_result result;
    struct err e;
    if (schema_validate(r->schema, v, NULL, c->arena, &result, &e) < 0) {
        return policy_broken(c, "schema on '%.*s': %s", STR_ARG(r->pointer), e.msg);
    }
    if (result.valid) {
        return POLICY_ALLOWS;
    }
    const struct schema_error *first = &result.errors[0];
    return policy_deny(c, "Tool '%.*s': arguments are not allowed: %.*s%.*s: %.*s",
                       STR_ARG(c->call.tool), STR_ARG(r->pointer), STR_ARG(first->instance_path),
                       STR_ARG(first->message));
}

static enum policy_verdict arguments_check(struct policy *p, struct guard_check *c)
{
    const struct rules *rules = p->self;
    const struct json *arguments =
        c->call.arguments == NULL ? json_object(c->arena) : c->call.arguments;
    for (size_t i = 0; i < rules->n; i++) {
        const struct rule *r = &rules->items[i];
        const struct json *v = json_pointer(arguments, r->pointer);
        enum policy_verdict verdict = POLICY_ALLOWS;
        if (v == NULL) {
            return policy_deny(c, "Tool '%.*s': argument '%.*s' is missing.", STR_ARG(c->call.tool),
                               STR_ARG(r->pointer));
        }
        if (r->regex != NULL) {
            verdict = check_pattern(r, v, c);
        }
        if (verdict == POLICY_ALLOWS && r->schema != NULL) {
            verdict = check_schema(r, v, c);
        }
        if (verdict != POLICY_ALLOWS) {
            return verdict;
        }
    }
    return POLICY_ALLOWS;
}

static void arguments_free(struct policy *p)
{
    struct rules *rules = p->self;
    for (size_t i = 0; i < rules->n; i++) {
        rules->items[i].regex = regex_free(rules->items[i].regex);
        rules->items[i].schema = schema_free(rules->items[i].schema);
    }
}

const struct policy_kind policy_kind_arguments = {
    .type = "arguments",
    .make = arguments_make,
    .check = arguments_check,
    .free = arguments_free,
};
