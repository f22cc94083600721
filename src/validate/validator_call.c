/* SPDX-License-Identifier: MIT
 *
 * Calls of tools and their results. Adapters name a call in their own ways (and those that only
 * pass on what a program prints may not name it at all): the id is looked for where they put it,
 * and a result without one takes any call of its source that is still open.
 */
#include <search.h>
#include <stdlib.h>

#include "record/entry_call.h"
#include "validate/validator_priv.h"

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const struct validator_call *)a)->key,
                   ((const struct validator_call *)b)->key);
}

static struct validator_call *find(const struct validator *o, struct str key)
{
    struct validator_call probe = { .key = key };
    struct validator_call **at = tfind(&probe, (void *const *)&o->calls, by_key);
    return at == NULL ? NULL : *at;
}

/* --- names --- */

/* Harnesses put prefixes before the names of bridged tools: mcp__cinch__add. */
static bool is_name_of(struct str name, struct str tool)
{
    return str_ends(name, tool) &&
           (name.len == tool.len || name.ptr[name.len - tool.len - 1] == '_');
}

static bool is_wanted(const struct validator *o, struct str name)
{
    return o->opts.tool != NULL && is_name_of(name, str_of(o->opts.tool));
}

enum { TOOLS_MAX = 1000 }; /* finding one costs their number */

static void count_tool(struct validator *o, struct str name)
{
    struct validator_tool *t = o->tools;
    name = validator_key(o->scratch, name);
    while (t != NULL && !str_eq(t->name, name)) {
        t = t->next;
    }
    if (t == NULL && o->n_tools < TOOLS_MAX) {
        t = ARENA_NEW(o->keep, struct validator_tool);
        *t = (struct validator_tool) { .name = arena_str(o->keep, name), .next = o->tools };
        o->tools = t;
        o->n_tools++;
    }
    if (t != NULL) {
        t->left++;
    }
}

static bool take_tool(struct validator *o, struct str tool)
{
    for (struct validator_tool *t = o->tools; t != NULL; t = t->next) {
        if (t->left > 0 && is_name_of(t->name, tool)) {
            t->left--;
            return true;
        }
    }
    return o->n_tools == TOOLS_MAX;
}

bool validator_call_told(struct validator *o, struct str id, struct str tool)
{
    bool by_name = take_tool(o, tool);
    return by_name || find(o, validator_key(o->scratch, id)) != NULL;
}

/* --- calls --- */

/* Of this conversation; NULL when there are too many, which sources tell. */
static struct validator_call *call_of(struct validator *o, struct str id)
{
    struct str key = validator_key(o->scratch, id);
    struct validator_call *c = find(o, key);
    if (c == NULL) {
        if (o->n_keys >= VALIDATOR_KEYS_MAX) {
            return NULL;
        }
        c = ARENA_NEW(o->keep, struct validator_call);
        c->key = arena_str(o->keep, key);
        o->n_keys++;
        if (tsearch(c, &o->calls, by_key) == NULL) {
            abort(); /* out of memory, as everywhere */
        }
    }
    if (c->conversation != o->conversation) {
        *c = (struct validator_call) { .key = c->key, .conversation = o->conversation };
    }
    return c;
}

static void answered(struct validator *o)
{
    o->tool_answered = o->tool_answered == 0 ? o->line : o->tool_answered;
}

void validator_tool_use(struct validator *o, const struct validator_line *l,
                        struct validator_source *s)
{
    const struct json *detail = json_get(l->fields, "detail");
    struct str id = entry_call_of_use(detail);
    struct str name = entry_tool_name(detail);
    bool wanted = is_wanted(o, name);
    count_tool(o, name);
    if (wanted && o->tool_used == 0) {
        o->tool_used = o->line;
    }
    s->uses++;
    struct validator_call *c = id.len == 0 ? NULL : call_of(o, id);
    if (c == NULL) {
        s->anonymous++;
        return;
    }
    struct str key = validator_short(c->key);
    if (c->use != 0) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->line, "call '%.*s' is already in line %zu",
                       STR_ARG(key), c->use);
        s->uses--;
    } else if (c->result != 0) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->line,
                       "call '%.*s' comes after its result in line %zu", STR_ARG(key), c->result);
    }
    c->use = c->use != 0 ? c->use : o->line;
    c->source = s;
    c->wanted = c->wanted || wanted;
}

/* A result that does not say of which call. */
static void anonymous_result(struct validator *o, struct validator_source *s, bool wanted)
{
    if (s->results >= s->uses) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->line, "result, but no call of '%.*s' is open",
                       STR_ARG(validator_short(s->key)));
    }
    s->results++;
    if (wanted && o->tool_used != 0) {
        answered(o);
    }
}

void validator_tool_result(struct validator *o, const struct validator_line *l,
                           struct validator_source *s)
{
    const struct json *detail = json_get(l->fields, "detail");
    struct str name = entry_tool_name(detail);
    struct str id = entry_call_of_result(detail);
    struct str own = json_str(json_get(detail, "id"), STR_EMPTY);
    if (id.len == 0 && own.len > 0 && find(o, validator_key(o->scratch, own)) != NULL) {
        id = own;
    }
    struct validator_call *c = id.len == 0 ? NULL : call_of(o, id);
    if (c == NULL || (c->use == 0 && s->anonymous > 0)) {
        anonymous_result(o, s, name.len == 0 || is_wanted(o, name));
        return;
    }
    struct str key = validator_short(c->key);
    if (c->use == 0) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->line,
                       "result of call '%.*s', which does not exist", STR_ARG(key));
    } else if (c->result != 0) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->line,
                       "call '%.*s' already has a result in line %zu", STR_ARG(key), c->result);
    } else if (c->source != s) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->line,
                       "result of call '%.*s', which belongs to '%.*s'", STR_ARG(key),
                       STR_ARG(validator_short(c->source->key)));
    }
    s->results += c->use != 0 && c->result == 0;
    c->result = c->result != 0 ? c->result : o->line;
    if (c->wanted) {
        answered(o);
    }
}

void validator_calls_end(struct validator *o)
{
    if (o->opts.tool == NULL) {
        return;
    }
    if (o->tool_used == 0) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, 0, "'%.80s' was never called", o->opts.tool);
    } else if (o->tool_answered == 0) {
        validator_find(o, VALIDATOR_CAUSAL_ORDER, o->tool_used,
                       "this call of '%.80s' has no result", o->opts.tool);
    }
}
