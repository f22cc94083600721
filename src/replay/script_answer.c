/* SPDX-License-Identifier: MIT
 *
 * From the step that fits to the events of an answer: blocks in the order of the script, text cut
 * into chunks, tools by the names that the request offers, usage, and the reason to stop.
 */
#include "replay/script_priv.h"

#include "base/buf.h"
#include "llm/codec.h"

/* Events of one answer: a text of 16 MiB cut into single bytes reaches it, and is then refused. */
#define EVENTS_MAX ((size_t)1 << 20)

/* Opaque to everybody; clients only send it back. Base64, because some check that. */
static const char signature[] = "Y2luY2ggc2NyaXB0";

struct writing {
    struct script_scene *scene;
    const struct script_manner *manner;
    struct script_event *events;
    size_t n, cap;
    uint32_t block;  /* number of the next */
    size_t bytes;    /* of content so far, for the estimate of usage */
    bool called;     /* a tool */
    bool searched;   /* the step waits for a tool that the answer searches for */
    bool pause_next; /* a chunk came before: the next one waits */
};

static int add(struct writing *w, struct llm_event ev, struct err *e)
{
    if (w->n == w->cap) {
        size_t cap = w->cap == 0 ? 16 : w->cap * 2;
        struct script_event *bigger = arena_array(w->scene->arena, cap, sizeof *bigger);
        if (w->n > 0) {
            memcpy(bigger, w->events, w->n * sizeof *bigger);
        }
        w->events = bigger;
        w->cap = cap;
    }
    if (w->n >= EVENTS_MAX) {
        return ERR(e, ERR_LIMIT, "more than %zu events: a greater 'chunk' helps", EVENTS_MAX);
    }
    w->events[w->n++] =
        (struct script_event) { .event = ev, .wait = w->pause_next ? w->manner->pace : 0 };
    w->pause_next = false;
    return 0;
}

/* Text in chunks, none of which cuts a character. */
static int add_text(struct writing *w, struct llm_event ev, struct str text, struct err *e)
{
    size_t chunk = w->manner->chunk > 0 ? (size_t)w->manner->chunk : text.len;
    int r = 0;
    w->bytes += text.len;
    while (r == 0 && text.len > 0) {
        size_t n = chunk < text.len ? chunk : text.len;
        while (n < text.len && ((unsigned char)text.ptr[n] & 0xc0) == 0x80) {
            n++;
        }
        ev.text = str_slice(text, 0, n);
        text = str_slice(text, n, text.len);
        r = add(w, ev, e);
        w->pause_next = true;
    }
    return r;
}

static int add_words(struct writing *w, enum llm_event_kind kind, struct str text, struct err *e)
{
    uint32_t block = w->block++;
    int r = add_text(w, (struct llm_event) { .kind = kind, .block = block }, text, e);
    if (r == 0 && kind == LLM_EV_THINKING) {
        r = add(
            w,
            (struct llm_event) { .kind = LLM_EV_SIGNATURE, .block = block, .text = STR(signature) },
            e);
    }
    return r;
}

static int json_text(struct arena *a, const struct json *v, struct str *ret, struct err *e)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    int r = json_write(v, JSON_COMPACT, &b, e);
    *ret = r == 0 ? arena_str(a, buf_str(&b)) : STR_EMPTY;
    return r;
}

static int add_call(struct writing *w, const struct script_call *call, struct err *e)
{
    struct llm_event ev = {
        .kind = LLM_EV_CALL_BEGIN,
        .block = w->block++,
        .name = call->name,
        .ns = call->ns,
        .custom = call->custom,
    };
    struct str input = json_str(call->args, STR_EMPTY);
    int r = call->custom ? 0 : json_text(w->scene->arena, call->args, &input, e);
    r = r < 0 ? r : add(w, ev, e);
    ev.kind = LLM_EV_CALL_DATA;
    r = r < 0 ? r : add_text(w, ev, input, e);
    ev.kind = LLM_EV_CALL_END;
    w->called = true;
    return r < 0 ? r : add(w, ev, e);
}

static int play_call(struct writing *w, const struct json *v, struct err *e)
{
    const struct script_scene *c = w->scene;
    struct script_names names = script_scene_names(c);
    struct str name = json_str(json_get(v, "tool"), STR_EMPTY);
    struct str space = json_str(json_get(v, "namespace"), STR_EMPTY);
    const struct json *input = json_get(v, "input");
    const struct json *given = json_is(input, JSON_STRING) ? input : json_get(v, "args");
    struct json *args = json_object(c->arena);
    struct script_call call;
    int r = json_is(given, JSON_STRING) || json_is(given, JSON_OBJECT)
                ? script_expand_tree(c->arena, given, names, &args, e)
                : 0;
    r = r < 0 ? r : script_expand(c->arena, name, names, &name, e);
    if (r == 0 && input != NULL && !json_is(args, JSON_STRING)) {
        args = json_string(c->arena, STR_EMPTY);
    }
    if (r == 0 && (space.len > 0 || json_bool(json_get(v, "unchecked"), false))) {
        call = (struct script_call) {
            .name = name, .ns = space, .custom = json_is(args, JSON_STRING), .args = args
        };
    } else {
        r = r < 0 ? r
                  : script_resolve(c, name, json_str(json_get(v, "server"), STR_EMPTY), args, &call,
                                   e);
    }
    return r < 0 ? r : add_call(w, &call, e);
}

/* The schema that the request names is answered by JSON text; where a tool takes the answer (claude
 * --json-schema, our bridge), it is called; elsewhere it is JSON text again. */
static int play_output(struct writing *w, const struct json *v, struct err *e)
{
    /* Ours takes any value, as the member `data`; Claude Code's takes an object as it is. */
    static const struct {
        const char *tool, *member;
    } takers[] = { { "StructuredOutput", NULL }, { "structured_output", "data" } };
    struct script_scene *c = w->scene;
    struct json *value = NULL;
    int r = script_expand_tree(c->arena, v, script_scene_names(c), &value, e);
    for (size_t i = 0; r == 0 && !c->request->llm->output.json && i < ARRAY_LEN(takers); i++) {
        struct script_call call;
        struct str tool = str_of(takers[i].tool);
        bool wraps = takers[i].member != NULL;
        if ((wraps || json_is(value, JSON_OBJECT)) && script_offers(c, tool)) {
            struct json *args = wraps ? json_object(c->arena) : value;
            if (wraps) {
                json_setc(c->arena, args, takers[i].member, value);
            }
            r = script_resolve(c, tool, STR_EMPTY, args, &call, e);
            return r < 0 ? r : add_call(w, &call, e);
        }
    }
    struct str text = STR_EMPTY;
    r = r < 0 ? r : json_text(c->arena, value, &text, e);
    return r < 0 ? r : add_words(w, LLM_EV_TEXT, text, e);
}

/* --- a tool that must be found first --- */

static int search_tool(struct writing *w, struct str name, struct err *e)
{
    struct llm_event ev = { .kind = LLM_EV_OTHER,
                            .block = w->block,
                            .format = LLM_RESPONSES,
                            .raw = script_search_call(w->scene, name, w->block) };
    w->block++;
    w->called = true;
    w->searched = true;
    w->bytes += name.len;
    return add(w, ev, e);
}

/* The tools that the step needs and that only a search can find. */
static int play_searches(struct writing *w, const struct script_step *t, struct err *e)
{
    struct script_scene *c = w->scene;
    int r = 0;
    for (size_t i = 0; r == 0 && t != NULL && i < t->n_blocks; i++) {
        const struct json *v = t->blocks[i].value;
        struct str server = STR_EMPTY;
        struct str name = STR_EMPTY;
        if (t->blocks[i].kind == SCRIPT_OUTPUT && !c->request->llm->output.json) {
            name = STR("structured_output");
        } else if (t->blocks[i].kind == SCRIPT_CALL && json_get(v, "namespace") == NULL &&
                   !json_bool(json_get(v, "unchecked"), false)) {
            server = json_str(json_get(v, "server"), STR_EMPTY);
            r = script_expand(c->arena, json_str(json_get(v, "tool"), STR_EMPTY),
                              script_scene_names(c), &name, e);
        }
        if (r == 0 && name.len > 0 && script_must_search(c, name, server)) {
            r = search_tool(w, name, e);
        }
    }
    return r;
}

static int play_block(struct writing *w, const struct script_block *b, struct err *e)
{
    static const enum llm_event_kind kinds[] = {
        [SCRIPT_THINK] = LLM_EV_THINKING,
        [SCRIPT_SAY] = LLM_EV_TEXT,
        [SCRIPT_REFUSE] = LLM_EV_REFUSAL,
    };
    if (b->kind == SCRIPT_CALL) {
        return play_call(w, b->value, e);
    }
    if (b->kind == SCRIPT_OUTPUT) {
        return play_output(w, b->value, e);
    }
    struct str text = STR_EMPTY;
    int r = script_expand(w->scene->arena, json_str(b->value, STR_EMPTY),
                          script_scene_names(w->scene), &text, e);
    return r < 0 ? r : add_words(w, kinds[b->kind], text, e);
}

static enum llm_stop stop_of(const struct script_step *t, bool called)
{
    static const struct {
        const char *word;
        enum llm_stop stop;
    } words[] = {
        { "end", LLM_STOP_END },         { "length", LLM_STOP_LENGTH },
        { "tool", LLM_STOP_TOOL },       { "sequence", LLM_STOP_SEQUENCE },
        { "refusal", LLM_STOP_REFUSAL }, { "pause", LLM_STOP_PAUSE },
    };
    for (size_t i = 0; t != NULL && i < ARRAY_LEN(words); i++) {
        if (str_eqc(t->stop, words[i].word)) {
            return words[i].stop;
        }
    }
    for (size_t i = 0; t != NULL && i < t->n_blocks; i++) {
        if (t->blocks[i].kind == SCRIPT_REFUSE) {
            return LLM_STOP_REFUSAL;
        }
    }
    return called ? LLM_STOP_TOOL : LLM_STOP_END;
}

static struct llm_usage usage_before(const struct writing *w)
{
    struct llm_usage u = w->manner->usage;
    u.input = u.input >= 0 ? u.input : llm_estimate_tokens(w->scene->request->llm);
    u.output = -1;
    u.reasoning = -1;
    return u;
}

static struct llm_usage usage_after(const struct writing *w)
{
    struct llm_usage u = usage_before(w);
    u.output = w->manner->usage.output >= 0 ? w->manner->usage.output : (int64_t)(w->bytes / 4 + 1);
    u.reasoning = w->manner->usage.reasoning;
    return u;
}

/* START, the blocks of the step (or a stock answer), and how it ends. */
static int play(struct writing *w, const struct script_step *t, struct err *e)
{
    struct script_scene *c = w->scene;
    struct str model = w->manner->model.len > 0 ? w->manner->model : c->request->llm->model;
    int r = add(w, (struct llm_event) { .kind = LLM_EV_START, .model = model }, e);
    /* what went in is known from the start, and Anthropic says it there */
    r = r < 0 ? r
              : add(w, (struct llm_event) { .kind = LLM_EV_USAGE, .usage = usage_before(w) }, e);
    if (r == 0 && t == NULL) {
        struct str stock = c->side != NULL
                               ? script_auxiliary_text(c->request->llm, c->side, c->arena)
                               : STR("Done.");
        r = add_words(w, LLM_EV_TEXT, stock, e);
    }
    r = r < 0 ? r : play_searches(w, t, e);
    for (size_t i = 0; r == 0 && !w->searched && t != NULL && i < t->n_blocks; i++) {
        r = play_block(w, &t->blocks[i], e);
    }
    if (r < 0) {
        return r;
    }
    w->pause_next = false;
    if (t != NULL && t->fault.in_stream && !w->searched) {
        r = add(w, (struct llm_event) { .kind = LLM_EV_ERROR, .error = t->fault.error }, e);
        return r < 0 ? r : add(w, (struct llm_event) { .kind = LLM_EV_END }, e);
    }
    r = add(w, (struct llm_event) { .kind = LLM_EV_USAGE, .usage = usage_after(w) }, e);
    r = r < 0
            ? r
            : add(w,
                  (struct llm_event) {
                      .kind = LLM_EV_STOP, .stop = stop_of(t, w->called), .usage = usage_after(w) },
                  e);
    return r < 0 ? r : add(w, (struct llm_event) { .kind = LLM_EV_END }, e);
}

/* Ids follow from the place in the conversation, not from a counter: a retry gets the same ones,
 * and no two calls of one conversation share one, since each call adds a result. */
static uint64_t seed_of(const struct script_scene *c, const char *step)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (const char *p = step; *p != '\0'; p++) {
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    }
    const uint64_t numbers[] = { c->turn, c->results, c->request->llm->n_messages };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        h = (h ^ numbers[i]) * 1099511628211u;
    }
    return h;
}

int script_answer(struct script *s, const struct script_request *r, struct arena *a,
                  struct script_answer *ret, struct err *e)
{
    static const struct script_manner plain = { .usage = LLM_USAGE_NONE };
    struct script_scene c;
    script_scene_init(&c, s, r, a);
    int result = script_choose(&c, e);
    s->requests += c.side == NULL; /* one that found no step counts as well */
    if (result < 0) {
        return result;
    }
    struct script_step *t = c.step;
    struct writing w = { .scene = &c, .manner = t != NULL ? &t->manner : &plain };
    const char *name = t != NULL ? t->name : c.side != NULL ? "side" : "otherwise";
    result = play(&w, t, e);
    if (result < 0) {
        char at[JSON_AT_LEN];
        return t == NULL ? result
                         : err_wrap(e, "script '%s': step '%s' (%s)", s->name, t->name,
                                    json_at(s->file, t->at, at));
    }
    s->requests -= w.searched; /* the step is still to come */
    if (t != NULL && !w.searched) {
        t->played++;
    }
    *ret = (struct script_answer) {
        .step = name,
        .side = w.searched ? "search" : c.side,
        .delay = w.manner->delay,
        .events = w.events,
        .n_events = w.n,
        .usage = usage_after(&w),
        .seed = seed_of(&c, name),
        .fault = { .cut = SCRIPT_NEVER, .hang = SCRIPT_NEVER, .garbage = SCRIPT_NEVER },
    };
    if (t != NULL && !w.searched) {
        ret->fault = t->fault;
    }
    return 0;
}
