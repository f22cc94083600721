/* SPDX-License-Identifier: MIT
 *
 * The tool that a script means. A script is written once for many harnesses, so it names tools in
 * three ways: exactly; `native.write_file`, by tables of what each harness calls it and how its
 * arguments are named; or by the name that our bridge gave it, to which every harness adds a prefix
 * of its own (mcp__SERVER__x, mcp_SERVER_x, SERVER_x, or a namespace beside the bare name).
 */
#include "replay/script_priv.h"

#include "data/yaml.h"
#include "llm/request.h"
#include "replay/native.h"

static const struct llm_request *request_of(const struct script_scene *c)
{
    return c->tools;
}

static struct str cut_prefix(struct str s, struct str prefix)
{
    return str_starts(s, prefix) ? str_slice(s, prefix.len, s.len) : s;
}

/* Whether "mcp__tiny", "mcp_tiny", "tiny" … is the server that the script names. */
static bool is_server(struct str prefix, struct str server)
{
    return server.len == 0 || str_eq(prefix, server) ||
           str_eq(cut_prefix(prefix, STR("mcp__")), server) ||
           str_eq(cut_prefix(prefix, STR("mcp_")), server);
}

/* How surely `offered` is `name` with a prefix: 0 surely, 2 perhaps, -1 not at all. */
static int prefix_rank(struct str offered, struct str name, struct str server)
{
    if (offered.len <= name.len + 1 || !str_ends(offered, name)) {
        return -1;
    }
    struct str prefix = str_slice(offered, 0, offered.len - name.len);
    if (strchr("_-./", prefix.ptr[prefix.len - 1]) == NULL) {
        return -1;
    }
    int rank = str_starts(prefix, STR("mcp__")) ? 0 : str_starts(prefix, STR("mcp_")) ? 1 : 2;
    prefix = str_slice(prefix, 0, prefix.len - 1);
    prefix = str_ends(prefix, STR("_")) ? str_slice(prefix, 0, prefix.len - 1) : prefix;
    return is_server(prefix, server) ? rank : -1;
}

/* NULL when there is none; *ret_twice when the best is not the only one of its rank. */
static const struct llm_tool *find_bridged(const struct script_scene *c, struct str name,
                                           struct str server, bool *ret_twice)
{
    const struct llm_request *r = request_of(c);
    const struct llm_tool *best = NULL;
    int best_rank = INT32_MAX;
    *ret_twice = false;
    for (size_t i = 0; i < r->n_tools; i++) {
        const struct llm_tool *t = &r->tools[i];
        int rank = -1;
        if (str_eq(t->name, name) && t->kind != LLM_TOOL_HOSTED) {
            rank = server.len == 0 || (t->ns.len > 0 && is_server(t->ns, server)) ? 0 : -1;
        } else if (t->ns.len == 0 && t->kind != LLM_TOOL_HOSTED) {
            rank = prefix_rank(t->name, name, server);
        }
        if (rank >= 0 && rank <= best_rank) {
            *ret_twice = rank == best_rank;
            best = rank < best_rank ? t : best;
            best_rank = rank;
        }
    }
    return best;
}

static const struct llm_tool *find_exact(const struct script_scene *c, struct str name)
{
    const struct llm_tool *t = llm_tool_find(request_of(c), name);
    return t != NULL && t->kind != LLM_TOOL_HOSTED ? t : NULL;
}

/* Read for the first name that may be in them: most scripts name no such tool. */
static const struct json *native_list(struct script *s, struct str name)
{
    const struct native_table *t = &native_tables[0];
    struct err e;
    if (!str_starts(name, STR("native."))) {
        return NULL;
    }
    if (s->natives == NULL &&
        yaml_parse(s->arena, str_n(t->text, t->len), t->file, NULL, &s->natives, &e) < 0) {
        s->natives = json_object(s->arena); /* not in a build that passed its tests */
    }
    return json_find(s->natives, name);
}

/* The list of an alias: of the script, of the profile, or built in. */
static const struct json *alias_list(const struct script_scene *c, struct str name)
{
    const struct json *list = json_find(c->script->aliases, name);
    list = list != NULL ? list : json_find(c->request->aliases, name);
    return list != NULL ? list : native_list(c->script, name);
}

static const struct json *alias_choice(const struct script_scene *c, const struct json *list,
                                       const struct llm_tool **ret)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        *ret = find_exact(c, json_str(json_get(item, "tool"), STR_EMPTY));
        if (*ret != NULL) {
            return item;
        }
    }
    return NULL;
}

bool script_is_alias(const struct script_scene *c, struct str name)
{
    return alias_list(c, name) != NULL;
}

bool script_offers(const struct script_scene *c, struct str name)
{
    bool twice = false;
    const struct llm_tool *t = NULL;
    const struct json *list = alias_list(c, name);
    if (list != NULL) {
        return alias_choice(c, list, &t) != NULL;
    }
    return find_exact(c, name) != NULL || find_bridged(c, name, STR_EMPTY, &twice) != NULL;
}

/* --- input --- */

static const struct json *argument(const void *context, struct arena *a, struct str name)
{
    return json_find(context, name);
}

/* "${path}" of an argument that the script did not give: the tool gets none either. */
static bool is_left_out(const struct json *template, const struct json *args)
{
    struct str s = json_str(template, STR_EMPTY);
    if (!str_starts(s, STR("${")) || str_find(s, STR("}")) != s.len - 1) {
        return false;
    }
    struct str name = str_slice(s, 2, s.len - 1);
    return json_find(args, str_slice(name, 0, str_find(name, STR("|")))) == NULL;
}

static int alias_input(const struct script_scene *c, const struct json *item,
                       const struct json *args, struct json **ret, struct err *e)
{
    struct script_names names = { argument, args };
    const struct json *input = json_get(item, "input");
    if (input != NULL) {
        return script_expand_tree(c->arena, input, names, ret, e);
    }
    const struct json *templates = json_get(item, "args");
    *ret = json_object(c->arena);
    for (size_t i = 0; i < json_len(templates); i++) {
        const struct json_member *m = &templates->object.members[i];
        struct json *value = NULL;
        if (is_left_out(m->value, args)) {
            continue;
        }
        int r = script_expand_tree(c->arena, m->value, names, &value, e);
        if (r < 0) {
            return r;
        }
        json_set(c->arena, *ret, m->key, value);
    }
    return 0;
}

/* The offered names for a message, cut. */
static const char *offered_list(const struct script_scene *c)
{
    CLEANUP(buf) struct buf b = BUF_INIT(240);
    const struct llm_request *r = request_of(c);
    for (size_t i = 0; i < r->n_tools; i++) {
        if (buf_printf(&b, NULL, "%s%.*s", i > 0 ? ", " : "", STR_ARG(r->tools[i].name)) < 0) {
            return arena_printf(c->arena, "%.*s …", STR_ARG(buf_str(&b)));
        }
    }
    return r->n_tools == 0 ? "none" : arena_dup(c->arena, buf_str(&b));
}

static int not_offered(const struct script_scene *c, struct str name, struct err *e)
{
    return ERR(e, ERR_CONFIG, "tool '%.*s' is not offered by this request (there are: %s)",
               STR_ARG(str_slice(name, 0, 80)), offered_list(c));
}

static int fill(const struct script_scene *c, const struct llm_tool *t, struct json *args,
                struct script_call *ret, struct err *e)
{
    bool custom = t->kind == LLM_TOOL_CUSTOM;
    if (custom != json_is(args, JSON_STRING)) {
        return ERR(e, ERR_CONFIG, "tool '%.*s' takes %s", STR_ARG(str_slice(t->name, 0, 80)),
                   custom ? "text: give 'input', not 'args'"
                          : "arguments: give 'args', not 'input'");
    }
    if (t >= c->tools->tools + c->request->llm->n_tools) { /* a declared function */
        return script_write_program(c, t->name, args, ret, e);
    }
    *ret = (struct script_call) { .name = t->name, .ns = t->ns, .custom = custom, .args = args };
    return 0;
}

int script_resolve(const struct script_scene *c, struct str name, struct str server,
                   struct json *args, struct script_call *ret, struct err *e)
{
    const struct llm_tool *t = NULL;
    const struct json *list = alias_list(c, name);
    if (list != NULL) {
        const struct json *item = alias_choice(c, list, &t);
        struct json *input = NULL;
        if (item == NULL) {
            return not_offered(c, name, e);
        }
        int r = alias_input(c, item, args, &input, e);
        return r < 0 ? err_wrap(e, "alias '%.*s'", STR_ARG(name)) : fill(c, t, input, ret, e);
    }
    bool twice = false;
    t = server.len == 0 ? find_exact(c, name) : NULL;
    t = t != NULL ? t : find_bridged(c, name, server, &twice);
    if (t == NULL) {
        return script_program_finds(c) && json_is(args, JSON_OBJECT)
                   ? script_write_lookup(c, name, args, ret, e)
                   : not_offered(c, name, e);
    }
    if (twice) {
        return ERR(e, ERR_CONFIG, "tool '%.*s' is offered by several servers: name one by 'server'",
                   STR_ARG(str_slice(name, 0, 80)));
    }
    return fill(c, t, args, ret, e);
}
