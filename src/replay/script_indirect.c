/* SPDX-License-Identifier: MIT
 *
 * Tools that a request offers without listing them. A real model reaches them in one more step, and
 * so does a scripted one:
 *
 *   - code mode (Codex with gpt-6): the only tool takes a program, and its description declares the
 *     functions that the program may call. Each declared function is added to the tools of the
 *     scene; a call of it becomes a program. Tools of MCP servers are not declared: the program
 *     looks for them.
 *   - a search (Codex with other models): the tools of MCP servers are deferred. The model searches
 *     for the tool by name, the harness adds what was found to its next request, and the step is
 *     played then.
 */
#include "replay/script_priv.h"

#include "base/buf.h"

/* The declaration of one function in the description of the tool that runs programs. */
#define DECLARATION "declare const tools: { "
/* The description of a program tool that knows more functions than it declares. */
#define UNDECLARED "ALL_TOOLS"
/* A program that waits for a slow function for less than this would return before it. */
#define PROGRAM_HEAD "// @exec: {\"yield_time_ms\": 300000}\n"

/* --- code mode --- */

static bool is_identifier_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

/* The next declared function of `*rest`, which moves past it; false when there is none. */
static bool next_declared(struct str *rest, struct llm_tool *ret)
{
    struct str mark = STR(DECLARATION);
    for (size_t at = str_find(*rest, mark); at < rest->len; at = str_find(*rest, mark)) {
        *rest = str_slice(*rest, at + mark.len, rest->len);
        size_t n = 0;
        while (n < rest->len && is_identifier_byte(rest->ptr[n])) {
            n++;
        }
        struct str after = str_slice(*rest, n, rest->len);
        if (n > 0 && str_starts(after, STR("("))) {
            bool text = str_starts(after, STR("(input: string)"));
            *ret = (struct llm_tool) { .kind = text ? LLM_TOOL_CUSTOM : LLM_TOOL_FUNCTION,
                                       .name = str_slice(*rest, 0, n) };
            return true;
        }
    }
    return false;
}

static const struct llm_tool *find_program_tool(const struct llm_request *r)
{
    for (size_t i = 0; i < r->n_tools; i++) {
        const struct llm_tool *t = &r->tools[i];
        if (t->kind == LLM_TOOL_CUSTOM &&
            str_find(t->description, STR(DECLARATION)) < t->description.len) {
            return t;
        }
    }
    return NULL;
}

const struct llm_request *script_declared_tools(const struct llm_request *r, struct arena *a,
                                                const struct llm_tool **ret_program)
{
    const struct llm_tool *program = find_program_tool(r);
    *ret_program = program;
    if (program == NULL) {
        return r;
    }
    struct llm_tool found;
    size_t n = r->n_tools;
    for (struct str rest = program->description; next_declared(&rest, &found);) {
        n++;
    }
    struct llm_tool *tools = arena_array(a, n, sizeof *tools);
    struct str rest = program->description;
    memcpy(tools, r->tools, r->n_tools * sizeof *tools);
    for (size_t i = r->n_tools; i < n; i++) {
        (void)next_declared(&rest, &tools[i]);
    }
    struct llm_request *wider = ARENA_NEW(a, struct llm_request);
    *wider = *r;
    wider->tools = tools;
    wider->n_tools = n;
    return wider;
}

/* The program ends with the arguments of a call, the result of which it prints. */
static int call_program(const struct script_scene *c, const char *head, const struct json *args,
                        struct script_call *ret, struct err *e)
{
    CLEANUP(buf) struct buf source = BUF_INIT(BUF_TEXT);
    buf_addf(&source, PROGRAM_HEAD "%s", head);
    int r = json_write(args, JSON_COMPACT, &source, e);
    if (r < 0) {
        return r;
    }
    buf_adds(&source, "));");
    *ret = (struct script_call) { .name = c->program->name,
                                  .ns = c->program->ns,
                                  .custom = true,
                                  .args = json_string(c->arena, buf_str(&source)) };
    return 0;
}

int script_write_program(const struct script_scene *c, struct str function, const struct json *args,
                         struct script_call *ret, struct err *e)
{
    const char *head = arena_printf(c->arena, "text(await tools.%.*s(", STR_ARG(function));
    return call_program(c, head, args, ret, e);
}

bool script_program_finds(const struct script_scene *c)
{
    return c->program != NULL &&
           str_find(c->program->description, STR(UNDECLARED)) < c->program->description.len;
}

int script_write_lookup(const struct script_scene *c, struct str name, const struct json *args,
                        struct script_call *ret, struct err *e)
{
    CLEANUP(buf) struct buf quoted = BUF_INIT(BUF_TEXT);
    struct json *suffix = json_cstr(c->arena, arena_printf(c->arena, "__%.*s", STR_ARG(name)));
    int r = json_write(suffix, JSON_COMPACT, &quoted, e);
    if (r < 0) {
        return r;
    }
    const char *head = arena_printf(
        c->arena,
        "const found = ALL_TOOLS.find(t => (\"__\" + t.name).endsWith(%.*s));\n"
        "if (!found) throw new Error(\"there is no such tool\");\ntext(await tools[found.name](",
        STR_ARG(buf_str(&quoted)));
    return call_program(c, head, args, ret, e);
}

/* --- search --- */

/* Codex lists its search as a tool of the provider that the client executes. */
static const struct llm_tool *find_search(const struct script_scene *c, struct str server)
{
    const struct llm_tool *t = llm_tool_find(c->tools, STR("tool_search"));
    bool client = t != NULL && t->kind == LLM_TOOL_HOSTED &&
                  str_eqc(json_str(json_get(t->extra, "execution"), STR_EMPTY), "client");
    struct str about = client ? json_str(json_get(t->extra, "description"), STR_EMPTY) : STR_EMPTY;
    return str_find(about, server.len > 0 ? server : STR("cinch")) < about.len ? t : NULL;
}

static bool is_search_for(const struct llm_part *p, struct str name)
{
    return p->kind == LLM_PART_OTHER && str_eqc(p->id, "tool_search_call") &&
           str_eq(json_str(json_pointer(p->extra, STR("/arguments/query")), STR_EMPTY), name);
}

/* Since the last words of the user: the tools may have changed before them. */
static bool was_searched(const struct script_scene *c, struct str name)
{
    const struct llm_request *r = c->tools;
    for (size_t i = r->n_messages; i > 0; i--) {
        const struct llm_message *m = &r->messages[i - 1];
        for (size_t k = 0; k < m->n_parts; k++) {
            if (is_search_for(&m->parts[k], name)) {
                return true;
            }
            if (m->role == LLM_USER && m->parts[k].kind == LLM_PART_TEXT) {
                return false;
            }
        }
    }
    return false;
}

bool script_must_search(const struct script_scene *c, struct str name, struct str server)
{
    return find_search(c, server) != NULL && !script_is_alias(c, name) && !script_offers(c, name) &&
           !was_searched(c, name);
}

struct json *script_search_call(const struct script_scene *c, struct str name, size_t number)
{
    struct arena *a = c->arena;
    struct json *item = json_object(a);
    struct json *args = json_object(a);
    const char *id = arena_printf(a, "call_search_%zu_%zu", c->tools->n_messages, number);
    json_setc(a, args, "query", json_string(a, name));
    json_setc(a, item, "type", json_cstr(a, "tool_search_call"));
    json_setc(a, item, "call_id", json_cstr(a, id));
    json_setc(a, item, "status", json_cstr(a, "completed"));
    json_setc(a, item, "execution", json_cstr(a, "client"));
    json_setc(a, item, "arguments", args);
    return item;
}
