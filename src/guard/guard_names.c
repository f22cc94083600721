/* SPDX-License-Identifier: MIT
 *
 * Names of tools in policies. A name that no tool has is a mistake: a policy that denies `bash`
 * does not restrain `Bash`. Patterns with wildcards are not checked, since they may be meant for
 * tools that do not exist yet.
 */
#include "guard/guard_priv.h"

/* A list of names, or an object whose keys are names and whose values are lists of names. */
static size_t count_names(const struct json *v)
{
    size_t n = 0;
    for (size_t i = 0; json_is(v, JSON_OBJECT) && i < json_len(v); i++) {
        n += 1 + json_len(v->object.members[i].value);
    }
    return json_is(v, JSON_ARRAY) ? json_len(v) : n;
}

static void add_name(struct guard *g, size_t policy, struct str text)
{
    if (text.len > 0 && memchr(text.ptr, '*', text.len) == NULL &&
        memchr(text.ptr, '?', text.len) == NULL) {
        g->names[g->n_names++] =
            (struct guard_name) { .text = arena_str(g->arena, text), .policy = policy };
    }
}

static void add_list(struct guard *g, size_t policy, const struct json *list)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        add_name(g, policy, json_str(json_item(list, i), STR_EMPTY));
    }
}

static void add_values(struct guard *g, size_t policy, const struct json *v)
{
    add_list(g, policy, v);
    for (size_t i = 0; json_is(v, JSON_OBJECT) && i < json_len(v); i++) {
        add_name(g, policy, v->object.members[i].key);
        add_list(g, policy, v->object.members[i].value);
    }
}

void guard_names_read(struct guard *g)
{
    static const char *const keys[] = { "tools", "read_tools", "write_tools", "depends" };
    const struct json *list = g->opts.policies;
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            n += count_names(json_get(json_item(list, i), keys[k]));
        }
    }
    g->names = arena_array(g->arena, n + 1, sizeof *g->names);
    for (size_t i = 0; i < json_len(list); i++) {
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            add_values(g, i, json_get(json_item(list, i), keys[k]));
        }
    }
}

void guard_names_see(struct guard *g, const struct guard_call *call)
{
    for (size_t i = 0; i < g->n_names; i++) {
        struct guard_name *n = &g->names[i];
        n->seen = n->seen || policy_matches(n->text, call);
    }
}

static enum guard_tool look_up(const struct guard_name *n, const struct guard_tools *tools)
{
    struct str native = STR("native:");
    bool only_native = str_starts(n->text, native);
    struct str name = only_native ? str_slice(n->text, native.len, n->text.len) : n->text;
    enum guard_tool own = only_native ? GUARD_TOOL_MISSING : tools->task(tools->arg, name);
    enum guard_tool theirs = own == GUARD_TOOL_EXISTS ? own : tools->native(tools->arg, name);
    return own > theirs ? own : theirs;
}

int guard_check_names(const struct guard *g, const struct guard_tools *tools, struct err *e)
{
    for (size_t i = 0; i < g->n_names; i++) {
        const struct guard_name *n = &g->names[i];
        if (look_up(n, tools) == GUARD_TOOL_MISSING) {
            return ERR(e, ERR_CONFIG,
                       "policies[%zu]: neither the task nor the agent has a tool '%.*s'", n->policy,
                       STR_ARG(str_slice(n->text, 0, 200)));
        }
    }
    return 0;
}

size_t guard_unmatched_names(const struct guard *g, const struct guard_tools *tools,
                             struct guard_unmatched *ret, size_t max)
{
    size_t found = 0;
    for (size_t i = 0; i < g->n_names; i++) {
        const struct guard_name *n = &g->names[i];
        if (n->seen || look_up(n, tools) == GUARD_TOOL_EXISTS) {
            continue;
        }
        if (found < max) {
            ret[found] = (struct guard_unmatched) { .policy = n->policy, .name = n->text };
        }
        found++;
    }
    return found;
}
