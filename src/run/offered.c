/* SPDX-License-Identifier: MIT
 *
 * Which tools of the run the model was offered; see offered.h.
 */
#include "run/offered.h"

#include "gateway/filter.h"
#include "guard/guard.h"
#include "llm/codec.h"
#include "run/gateway_run_priv.h"
#include "run/run_tools_priv.h"
#include "tools/bridge.h"

/* A larger request is not read for this. */
#define BODY_MAX ((size_t)32 << 20)

/* How a harness shows a tool to the model. */
enum offer {
    OFFER_HIDDEN,   /* no request mentions it */
    OFFER_DEFERRED, /* the model can find it by a tool of the harness: a search, a program */
    OFFER_DIRECT,   /* it is in the list of tools, or was called */
};

static const char *const offer_words[] = {
    [OFFER_HIDDEN] = "hidden",
    [OFFER_DEFERRED] = "deferred",
    [OFFER_DIRECT] = "direct",
};

struct offered_tool {
    struct str name;
    const struct tool *tool;
    bool from_start; /* not of a section that was opened later */
    enum offer how;
};

struct offered {
    struct offered_tool *tools;
    size_t len;
    int64_t requests; /* of the conversation, not auxiliary ones */
    bool pending;     /* RenderedTools is due */
    bool watched;
};

static struct offered *offered_of(const struct run *run)
{
    return run->tools == NULL ? NULL : run->tools->offered;
}

static struct offered_tool *find_tool(struct offered *o, struct str name)
{
    for (size_t i = 0; o != NULL && i < o->len; i++) {
        if (str_eq(o->tools[i].name, name)) {
            return &o->tools[i];
        }
    }
    return NULL;
}

/* --- the event --- */

void offered_report(struct run *run)
{
    struct offered *o = offered_of(run);
    struct arena *a = run->arena;
    if (o == NULL || !o->pending) {
        return;
    }
    o->pending = false;
    struct json *list = json_array(a);
    for (size_t i = 0; i < o->len; i++) {
        const struct offered_tool *t = &o->tools[i];
        struct json *shown = json_object(a);
        json_setc(a, shown, "name", json_string(a, t->name));
        json_setc(a, shown, "description", json_string(a, t->tool->description));
        json_setc(a, shown, "parameters", json_copy(a, t->tool->input_schema));
        if (o->watched && o->requests > 0) {
            json_setc(a, shown, "offered", json_cstr(a, offer_words[t->how]));
        }
        json_push(a, list, shown);
    }
    struct event_prompt p = run_event_prompt(run);
    events_rendered_tools(&run->record.events, &p, run->render_id, list);
}

void offered_begin(struct run *run)
{
    struct run_tools *t = run->tools;
    struct offered *before = t->offered;
    struct offered *o = ARENA_NEW(run->arena, struct offered);
    offered_report(run); /* of what was offered before */
    o->len = bridge_tools_len(t->bridge);
    o->tools = arena_array(run->arena, o->len + 1, sizeof *o->tools);
    o->requests = before == NULL ? 0 : before->requests;
    /* A driver without a program builds the requests itself. */
    o->watched =
        run->gateway->assembly.account != NULL && run->plan->driver->kind != DRIVER_MODEL_LOOP;
    o->pending = true;
    for (size_t i = 0; i < o->len; i++) {
        const struct tool *tool = bridge_tool(t->bridge, i);
        const struct offered_tool *old = find_tool(before, tool->name);
        o->tools[i] = (struct offered_tool) { .name = tool->name,
                                              .tool = tool,
                                              .from_start = before == NULL ||
                                                            (old != NULL && old->from_start),
                                              .how = old == NULL ? OFFER_HIDDEN : old->how };
    }
    t->offered = o;
    if (!o->watched) {
        offered_report(run);
    }
}

/* --- requests --- */

/* "mcp__cinch__x", "cinch-x", "x" in a namespace: every harness has a prefix of its own. */
static bool is_named(const struct llm_tool *t, struct str name)
{
    size_t at = t->name.len - name.len;
    return t->kind != LLM_TOOL_HOSTED && str_ends(t->name, name) &&
           (at == 0 || strchr("_-./:", t->name.ptr[at - 1]) != NULL);
}

static bool mentions(struct str text, struct str words)
{
    return words.len > 0 && str_find(text, words) < text.len;
}

/* A tool that runs programs or searches for tools lists what can be reached by it, or at least the
 * server that has it. Codex's programs (gpt-6) can look for tools of all connected servers. */
static bool leads_to(const struct llm_tool *t, struct str name, bool listed)
{
    CLEANUP(buf) struct buf extra = BUF_INIT(BUF_TEXT);
    if (t->extra != NULL) {
        (void)!json_write(t->extra, JSON_COMPACT, &extra, NULL);
    }
    bool searches = mentions(t->name, STR("search")) || mentions(t->name, STR("Search"));
    return mentions(t->description, name) || mentions(buf_str(&extra), name) ||
           (listed && mentions(t->description, STR("ALL_TOOLS"))) ||
           (searches &&
            (mentions(t->description, STR("cinch")) || mentions(buf_str(&extra), STR("cinch"))));
}

static enum offer offer_in(struct run *run, const struct llm_request *r, struct str body,
                           struct str name)
{
    enum offer best = OFFER_HIDDEN;
    const char *prefix = run->plan->settings.profile->mcp.prefix;
    bool listed = tools_door(run) != NULL && bridge_listed(run->tools->bridge);
    for (size_t i = 0; i < r->n_tools && best < OFFER_DIRECT; i++) {
        best = is_named(&r->tools[i], name)           ? OFFER_DIRECT
               : leads_to(&r->tools[i], name, listed) ? OFFER_DEFERRED
                                                      : best;
    }
    if (best == OFFER_HIDDEN && prefix[0] != '\0') {
        struct str full = str_of(arena_printf(run->arena, "%s%.*s", prefix, STR_ARG(name)));
        best = mentions(body, full) ? OFFER_DEFERRED : best;
    }
    return best;
}

static bool all_offered(const struct offered *o, enum offer at_least)
{
    for (size_t i = 0; i < o->len; i++) {
        if (o->tools[i].how < at_least) {
            return false;
        }
    }
    return true;
}

static void on_started(void *arg, const struct exchange_view *x, void **slot)
{
    struct run *run = arg;
    struct offered *o = offered_of(run);
    if (o == NULL || x->side != NULL || x->client.call != LLM_CALL_GENERATE) {
        return;
    }
    o->requests++;
    if (all_offered(o, OFFER_DIRECT) || x->client_body.len > BODY_MAX) {
        return;
    }
    struct llm_request request;
    CLEANUP(arena) struct arena *a = arena_new();
    if (llm_request_read(a, &x->client, x->client_body, &request, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < o->len; i++) {
        struct offered_tool *t = &o->tools[i];
        enum offer how =
            t->how == OFFER_DIRECT ? t->how : offer_in(run, &request, x->client_body, t->name);
        t->how = how > t->how ? how : t->how;
    }
    if (all_offered(o, OFFER_DEFERRED)) {
        offered_report(run);
    }
}

bool offered_filter(struct run *run, struct filter *ret)
{
    if (run->tools == NULL || run->tools->bridge == NULL ||
        run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        return false;
    }
    *ret = (struct filter) { .name = "offered", .arg = run, .on_started = on_started };
    return true;
}

void offered_called(struct run *run, struct str name)
{
    struct offered_tool *t = find_tool(offered_of(run), name);
    if (t != NULL) {
        t->how = t->how == OFFER_HIDDEN ? OFFER_DEFERRED : t->how;
    }
    offered_report(run);
}

/* --- afterwards --- */

static const char *hidden_names(const struct run *run, const struct offered *o, bool builtin)
{
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < o->len && names.len < 200; i++) {
        const struct offered_tool *t = &o->tools[i];
        if (t->how == OFFER_HIDDEN && t->from_start && guard_is_builtin(t->name) == builtin) {
            buf_addf(&names, "%s%.*s", names.len > 0 ? ", " : "",
                     STR_ARG(str_slice(t->name, 0, 80)));
        }
    }
    return names.len == 0 ? NULL : arena_dup(run->arena, buf_str(&names));
}

void offered_judge(struct run *run)
{
    const struct offered *o = offered_of(run);
    if (o == NULL || !o->watched || o->requests == 0) {
        return;
    }
    const char *hidden = hidden_names(run, o, false);
    const char *why = tools_door(run) == NULL ? "no request contained them"
                      : bridge_listed(run->tools->bridge)
                          ? "the agent listed them, but no request contained them"
                          : "the agent never asked the tool server for its list";
    if (hidden != NULL) {
        run_doubt(run, "the tools of the task were not offered to the model (%s): %s", hidden, why);
    }
    hidden = hidden_names(run, o, true);
    if (hidden != NULL && run->definition.schema != NULL && run->outcome.answer.value == NULL) {
        run_doubt(run, "the tools of cinch were not offered to the model (%s): %s", hidden, why);
    }
}

const char *offered_missed(struct run *run, struct str miss)
{
    const struct offered *o = offered_of(run);
    for (size_t i = 0; o != NULL && i < o->len; i++) {
        const char *words =
            arena_printf(run->arena, "tool '%.*s' is not offered", STR_ARG(o->tools[i].name));
        if (mentions(miss, str_of(words))) {
            return arena_dup(run->arena, o->tools[i].name);
        }
    }
    return NULL;
}
