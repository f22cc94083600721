/* SPDX-License-Identifier: MIT
 *
 * From the YAML tree to steps. Everything that can be wrong with a script without a request is told
 * here, with the place: keys, kinds, patterns, names in ${…}.
 */
#include "replay/script_priv.h"

#include "data/shape.h"
#include "data/yaml.h"
#include "llm/codec.h"

#define STOPS "end|length|tool|sequence|refusal|pause"
#define KINDS                                                                           \
    "invalid|auth|permission|not_found|too_large|rate|quota|context|server|overloaded|" \
    "timeout"

static const struct shape usage_shape[] = {
    { "input", SHAPE_INT },       { "output", SHAPE_INT },    { "cache_read", SHAPE_INT },
    { "cache_write", SHAPE_INT }, { "reasoning", SHAPE_INT }, { 0 },
};
static const struct shape error_shape[] = {
    { "kind", SHAPE_WORD, .words = KINDS },
    { "code", SHAPE_STRING },
    { "type", SHAPE_STRING },
    { "message", SHAPE_STRING },
    { 0 },
};
static const struct shape drip_shape[] = {
    { "bytes", SHAPE_INT },
    { "every", SHAPE_DURATION },
    { 0 },
};
static const struct shape fault_shape[] = {
    { "status", SHAPE_INT },
    { "body", SHAPE_ANY },
    { "retry_after", SHAPE_DURATION },
    { "error", SHAPE_OBJECT, .inner = error_shape },
    { "cut", SHAPE_ANY },
    { "hang", SHAPE_ANY },
    { "garbage", SHAPE_ANY },
    { "garbage_text", SHAPE_STRING },
    { "drip", SHAPE_OBJECT, .inner = drip_shape },
    { "duplicate", SHAPE_INT },
    { 0 },
};
static const struct shape when_shape[] = {
    { "turn", SHAPE_ANY },
    { "results", SHAPE_ANY },
    { "request", SHAPE_ANY },
    { "text", SHAPE_ANY },
    { "regex", SHAPE_STRING },
    { "system", SHAPE_ANY },
    { "tool", SHAPE_ANY },
    { "no_tool", SHAPE_ANY },
    { "header", SHAPE_MAP },
    { "model", SHAPE_STRING },
    { "format", SHAPE_WORD, .words = "anthropic|responses|chat|gemini" },
    { "side", SHAPE_ANY },
    { 0 },
};
static const struct shape call_shape[] = {
    { "tool", SHAPE_STRING },
    { "args", SHAPE_ANY_OBJECT },
    { "input", SHAPE_STRING },
    { "server", SHAPE_STRING },
    { "namespace", SHAPE_STRING },
    { "unchecked", SHAPE_BOOL },
    { 0 },
};
static const struct shape alias_shape[] = {
    { "tool", SHAPE_STRING },
    { "args", SHAPE_ANY_OBJECT },
    { "input", SHAPE_STRING },
    { 0 },
};
static const struct shape block_shape[] = {
    { "think", SHAPE_STRING }, { "say", SHAPE_STRING }, { "refuse", SHAPE_STRING },
    { "call", SHAPE_ANY },     { "output", SHAPE_ANY }, { 0 },
};

#define MANNER                                                               \
    { "usage", SHAPE_OBJECT, .inner = usage_shape }, { "chunk", SHAPE_INT }, \
        { "delay", SHAPE_DURATION }, { "pace", SHAPE_DURATION },             \
    {                                                                        \
        "model", SHAPE_STRING                                                \
    }
#define ANSWER                                                                                  \
    { "think", SHAPE_STRING }, { "say", SHAPE_STRING }, { "refuse", SHAPE_STRING },             \
        { "call", SHAPE_ANY }, { "output", SHAPE_ANY },                                         \
        { "blocks", SHAPE_LIST, .inner = block_shape }, { "stop", SHAPE_WORD, .words = STOPS }, \
    {                                                                                           \
        "fault", SHAPE_OBJECT, .inner = fault_shape                                             \
    }

static const struct shape manner_shape[] = { MANNER, { 0 } };
static const struct shape answer_shape[] = { ANSWER, MANNER, { 0 } };
static const struct shape turn_shape[] = { { "name", SHAPE_STRING }, ANSWER, MANNER, { 0 } };
static const struct shape step_shape[] = {
    { "name", SHAPE_STRING },
    { "when", SHAPE_OBJECT, .inner = when_shape },
    { "times", SHAPE_INT },
    ANSWER,
    MANNER,
    { 0 },
};
static const struct shape script_shape[] = {
    { "name", SHAPE_STRING },
    { "description", SHAPE_STRING },
    { "strict", SHAPE_BOOL },
    { "vars", SHAPE_MAP },
    { "aliases", SHAPE_ANY_OBJECT },
    { "defaults", SHAPE_OBJECT, .inner = manner_shape },
    { "side", SHAPE_ANY },
    { "steps", SHAPE_LIST, .inner = step_shape },
    { "turns", SHAPE_LIST, .inner = turn_shape },
    { "otherwise", SHAPE_OBJECT, .inner = answer_shape },
    { 0 },
};

/* An error at a place of the file; the message is what follows. */
#define WRONG(s, v, e, ...) wrong((s), (v), ERR((e), ERR_CONFIG, __VA_ARGS__), (e))

static int wrong(const struct script *s, const struct json *v, int r, struct err *e)
{
    char at[JSON_AT_LEN];
    (void)r;
    return err_wrap(e, "%s", json_at(s->file, v, at));
}

/* The member, with null as absent. */
static struct json *given(const struct json *v, const char *key)
{
    struct json *m = json_get(v, key);
    return json_is(m, JSON_NULL) ? NULL : m;
}

/* --- when --- */

static bool is_count(const struct json *v)
{
    return json_is(v, JSON_INT) && v->integer >= 0;
}

static bool is_text(const struct json *v)
{
    return json_is(v, JSON_STRING);
}

/* One value of a kind, or a list of them. */
static int one_or_more(const struct script *s, const struct json *when, const char *key,
                       bool (*ok)(const struct json *), const char *wanted, struct err *e)
{
    const struct json *v = given(when, key);
    if (v == NULL || ok(v)) {
        return 0;
    }
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        if (!ok(v->array.items[i])) {
            return WRONG(s, v->array.items[i], e, "'when.%s' must be %s, or a list of such", key,
                         wanted);
        }
    }
    if (!json_is(v, JSON_ARRAY) || v->array.len == 0) {
        return WRONG(s, v, e, "'when.%s' must be %s, or a list of such", key, wanted);
    }
    return 0;
}

/* Counts the groups of a pattern that regex_compile() accepted, and notes the named ones. */
static void find_groups(struct script_when *w, struct str p)
{
    bool in_class = false;
    w->n_spans = 1;
    for (size_t i = 0; i < p.len && w->n_spans < SCRIPT_GROUPS; i++) {
        char c = p.ptr[i];
        if (c == '\\') {
            i++;
        } else if (c == '[') {
            in_class = true;
        } else if (c == ']') {
            in_class = false;
        } else if (c == '(' && !in_class) {
            struct str rest = str_slice(p, i + 1, p.len);
            bool named = str_starts(rest, STR("?<")) && rest.len > 2 && rest.ptr[2] != '=' &&
                         rest.ptr[2] != '!';
            if (named) {
                rest = str_slice(rest, 2, rest.len);
                w->groups[w->n_groups++] =
                    (struct script_group) { .name = str_slice(rest, 0, str_find(rest, STR(">"))),
                                            .index = w->n_spans };
            }
            w->n_spans += named || !str_starts(rest, STR("?"));
        }
    }
}

static int read_when(struct script *s, const struct json *v, struct script_when *w, struct err *e)
{
    static const char number[] = "a whole number";
    static const char text[] = "a string";
    int r = one_or_more(s, v, "turn", is_count, number, e);
    r = r < 0 ? r : one_or_more(s, v, "results", is_count, number, e);
    r = r < 0 ? r : one_or_more(s, v, "request", is_count, number, e);
    r = r < 0 ? r : one_or_more(s, v, "text", is_text, text, e);
    r = r < 0 ? r : one_or_more(s, v, "system", is_text, text, e);
    r = r < 0 ? r : one_or_more(s, v, "tool", is_text, text, e);
    r = r < 0 ? r : one_or_more(s, v, "no_tool", is_text, text, e);
    if (r < 0) {
        return r;
    }
    *w = (struct script_when) {
        .turn = given(v, "turn"),
        .results = given(v, "results"),
        .request = given(v, "request"),
        .text = given(v, "text"),
        .system = given(v, "system"),
        .tool = given(v, "tool"),
        .no_tool = given(v, "no_tool"),
        .header = given(v, "header"),
        .side = given(v, "side"),
        .model = json_str(given(v, "model"), STR_EMPTY),
        .format = json_str(given(v, "format"), STR_EMPTY),
        .regex_at = given(v, "regex"),
    };
    if (w->side != NULL && !json_is(w->side, JSON_BOOL) && !json_is(w->side, JSON_STRING)) {
        return WRONG(s, w->side, e, "'when.side' must be true, false or a kind such as 'title'");
    }
    if (w->regex_at == NULL) {
        return 0;
    }
    r = regex_compile(w->regex_at->string, 0, &w->regex, e);
    if (r < 0) {
        e->code = ERR_CONFIG;
        return wrong(s, w->regex_at, r, e);
    }
    find_groups(w, w->regex_at->string);
    return 0;
}

/* --- blocks --- */

struct name_check {
    const struct script *script;
    const struct script_when *when;
};

static int check_name(void *arg, struct str name, struct err *e)
{
    const struct name_check *c = arg;
    if (script_name_known(c->script, c->when, name)) {
        return 0;
    }
    return ERR(
        e, ERR_CONFIG,
        "'${%.*s}' is neither a group of 'regex', nor a variable, nor a word such as turn or last "
        "(write '$${' for the characters themselves)",
        STR_ARG(str_slice(name, 0, 64)));
}

/* All strings of a value; the tree comes from yaml_parse(), so its depth is bounded. */
static int check_names(const struct script *s, const struct script_when *w, const struct json *v,
                       struct err *e)
{
    int r = 0;
    if (json_is(v, JSON_STRING)) {
        struct name_check c = { s, w };
        r = script_each_name(v->string, check_name, &c, e);
        return r < 0 ? wrong(s, v, r, e) : 0;
    }
    for (size_t i = 0; r == 0 && json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        r = check_names(s, w, v->array.items[i], e);
    }
    for (size_t i = 0; r == 0 && json_is(v, JSON_OBJECT) && i < v->object.len; i++) {
        r = check_names(s, w, v->object.members[i].value, e);
    }
    return r;
}

static int add_block(struct script *s, struct script_step *t, enum script_block_kind kind,
                     const struct json *v, struct err *e)
{
    int r = check_names(s, &t->when, v, e);
    if (r < 0) {
        return r;
    }
    struct script_block *bigger =
        arena_array(s->arena, t->n_blocks + 1, sizeof *bigger); /* a handful per step */
    if (t->n_blocks > 0) {
        memcpy(bigger, t->blocks, t->n_blocks * sizeof *bigger);
    }
    bigger[t->n_blocks] = (struct script_block) { kind, v };
    t->blocks = bigger;
    t->n_blocks++;
    return 0;
}

static int add_call(struct script *s, struct script_step *t, const struct json *v, struct err *e)
{
    if (json_is(v, JSON_STRING)) {
        struct json *call = json_object(s->arena);
        call->line = v->line;
        call->column = v->column;
        json_setc(s->arena, call, "tool", json_string(s->arena, v->string));
        return add_block(s, t, SCRIPT_CALL, call, e);
    }
    if (!json_is(v, JSON_OBJECT)) {
        return WRONG(s, v, e, "'call' must be a tool's name, {tool, args}, or a list of such");
    }
    int r = shape_check(v, call_shape, s->file, e);
    if (r < 0) {
        return r;
    }
    if (json_str(given(v, "tool"), STR_EMPTY).len == 0) {
        return WRONG(s, v, e, "'call' needs 'tool', the name of what is called");
    }
    if (given(v, "args") != NULL && given(v, "input") != NULL) {
        return WRONG(s, v, e, "'call' takes 'args' or 'input' (of a freeform tool), not both");
    }
    return add_block(s, t, SCRIPT_CALL, v, e);
}

/* The blocks that one map names, in the order in which models produce them. */
static int add_blocks(struct script *s, struct script_step *t, const struct json *v, struct err *e)
{
    static const struct {
        const char *key;
        enum script_block_kind kind;
    } plain[] = { { "think", SCRIPT_THINK }, { "say", SCRIPT_SAY }, { "refuse", SCRIPT_REFUSE } };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(plain); i++) {
        const struct json *text = given(v, plain[i].key);
        r = text != NULL ? add_block(s, t, plain[i].kind, text, e) : 0;
    }
    const struct json *call = given(v, "call");
    if (r == 0 && json_is(call, JSON_ARRAY)) {
        for (size_t i = 0; r == 0 && i < call->array.len; i++) {
            r = add_call(s, t, call->array.items[i], e);
        }
    } else if (r == 0 && call != NULL) {
        r = add_call(s, t, call, e);
    }
    const struct json *output = given(v, "output");
    return r == 0 && output != NULL ? add_block(s, t, SCRIPT_OUTPUT, output, e) : r;
}

/* --- faults and manner --- */

/* "head", or a number of bytes. */
static int read_place(const struct script *s, const struct json *fault, const char *key,
                      int64_t *ret, struct err *e)
{
    const struct json *v = given(fault, key);
    *ret = SCRIPT_NEVER;
    if (v == NULL) {
        return 0;
    }
    if (is_text(v) && str_eqc(v->string, "head")) {
        *ret = SCRIPT_HEAD;
        return 0;
    }
    if (!is_count(v)) {
        return WRONG(s, v, e, "'fault.%s' must be a number of bytes, or the word 'head'", key);
    }
    *ret = v->integer;
    return 0;
}

/* Seconds as Retry-After has them; a fraction is not in the standard, but clients read it. */
static struct str seconds(struct arena *a, int64_t ns)
{
    if (ns % NSEC_PER_SEC == 0) {
        return str_of(arena_printf(a, "%lld", (long long)(ns / NSEC_PER_SEC)));
    }
    return str_of(arena_printf(a, "%.3f", (double)ns / 1e9));
}

static bool script_error_kind(struct str word, enum llm_error_kind *ret)
{
    static const struct {
        const char *word;
        enum llm_error_kind kind;
    } words[] = {
        { "invalid", LLM_ERR_INVALID },
        { "auth", LLM_ERR_AUTH },
        { "permission", LLM_ERR_PERMISSION },
        { "not_found", LLM_ERR_NOT_FOUND },
        { "too_large", LLM_ERR_TOO_LARGE },
        { "rate", LLM_ERR_RATE },
        { "quota", LLM_ERR_QUOTA },
        { "context", LLM_ERR_CONTEXT },
        { "server", LLM_ERR_SERVER },
        { "overloaded", LLM_ERR_OVERLOADED },
        { "timeout", LLM_ERR_TIMEOUT },
        /* codes of the Responses format, so that a script need not say the kind as well */
        { "context_length_exceeded", LLM_ERR_CONTEXT },
        { "rate_limit_exceeded", LLM_ERR_RATE },
        { "insufficient_quota", LLM_ERR_QUOTA },
        { "server_is_overloaded", LLM_ERR_OVERLOADED },
        { "invalid_prompt", LLM_ERR_INVALID },
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqc(word, words[i].word)) {
            *ret = words[i].kind;
            return true;
        }
    }
    return false;
}

static void read_error(struct script *s, const struct json *v, struct script_fault *f)
{
    struct str code = json_str(given(v, "code"), STR_EMPTY);
    f->error = (struct llm_error) {
        .kind = LLM_ERR_SERVER,
        .status = f->status,
        .type = json_str(given(v, "type"), STR_EMPTY),
        .code = code,
        .message = json_str(given(v, "message"), STR("a fault of the script")),
    };
    struct str word = json_str(given(v, "kind"), code);
    if (!script_error_kind(word, &f->error.kind) && f->status != 0) {
        struct llm_error by_status = { 0 };
        llm_error_read(s->arena, LLM_ANTHROPIC, f->status, STR_EMPTY, &by_status);
        f->error.kind = by_status.kind;
    }
}

static int read_fault(struct script *s, const struct json *v, struct script_fault *f, struct err *e)
{
    const struct json *status = given(v, "status");
    const struct json *after = given(v, "retry_after");
    *f = (struct script_fault) {
        .status = (int)json_int(status, 0),
        .body = given(v, "body"),
        .retry_after = after != NULL ? seconds(s->arena, shape_duration(after, 0)) : STR_EMPTY,
        .in_stream = status == NULL && given(v, "error") != NULL,
        .garbage_text = json_str(given(v, "garbage_text"), STR_EMPTY),
        .drip = json_int(json_get(given(v, "drip"), "bytes"), given(v, "drip") != NULL ? 1 : 0),
        .drip_every = shape_duration(json_get(given(v, "drip"), "every"), 10 * NSEC_PER_MS),
        .duplicate = json_int(given(v, "duplicate"), 0),
    };
    if (status != NULL && (json_int(status, 0) < 400 || json_int(status, 0) > 599)) {
        return WRONG(s, status, e, "'fault.status' must be from 400 to 599");
    }
    if (given(v, "drip") != NULL && f->drip == 0) {
        return WRONG(s, given(v, "drip"), e, "'fault.drip.bytes' must be at least 1");
    }
    if (status == NULL && (f->body != NULL || f->retry_after.len > 0)) {
        return WRONG(s, v, e, "'fault.body' and 'fault.retry_after' need 'fault.status'");
    }
    read_error(s, given(v, "error"), f);
    int r = read_place(s, v, "cut", &f->cut, e);
    r = r < 0 ? r : read_place(s, v, "hang", &f->hang, e);
    r = r < 0 ? r : read_place(s, v, "garbage", &f->garbage, e);
    if (r == 0 && f->garbage == SCRIPT_HEAD) {
        return WRONG(s, given(v, "garbage"), e, "'fault.garbage' must be a number of bytes");
    }
    if (r == 0 && json_len(v) == 0) {
        return WRONG(s, v, e, "'fault' says nothing");
    }
    return r;
}

static void read_manner(const struct json *v, struct script_manner *m)
{
    const struct json *u = given(v, "usage");
    m->chunk = json_int(given(v, "chunk"), m->chunk);
    m->delay = shape_duration(given(v, "delay"), m->delay);
    m->pace = shape_duration(given(v, "pace"), m->pace);
    m->model = json_str(given(v, "model"), m->model);
    m->usage.input = json_int(given(u, "input"), m->usage.input);
    m->usage.output = json_int(given(u, "output"), m->usage.output);
    m->usage.cache_read = json_int(given(u, "cache_read"), m->usage.cache_read);
    m->usage.cache_write = json_int(given(u, "cache_write"), m->usage.cache_write);
    m->usage.reasoning = json_int(given(u, "reasoning"), m->usage.reasoning);
}

/* --- steps --- */

static int read_step(struct script *s, const struct json *v, const char *name,
                     const struct script_manner *defaults, struct script_step *t, struct err *e)
{
    t->at = v;
    t->name = json_cstring(given(v, "name"), name);
    t->times = json_int(given(v, "times"), 0);
    t->manner = *defaults;
    t->stop = json_str(given(v, "stop"), STR_EMPTY);
    read_manner(v, &t->manner);
    const struct json *when = given(v, "when");
    const struct json *fault = given(v, "fault");
    const struct json *blocks = given(v, "blocks");
    int r = 0;
    if (when != NULL) {
        t->has_when = true;
        r = read_when(s, when, &t->when, e);
    }
    if (r == 0 && fault != NULL) {
        t->has_fault = true;
        r = read_fault(s, fault, &t->fault, e);
    } else {
        t->fault = (struct script_fault) { .cut = SCRIPT_NEVER,
                                           .hang = SCRIPT_NEVER,
                                           .garbage = SCRIPT_NEVER };
    }
    r = r < 0 ? r : add_blocks(s, t, v, e);
    if (r == 0 && blocks != NULL && t->n_blocks > 0) {
        return WRONG(s, blocks, e,
                     "'blocks' stands for say, think, call …; use one way or the other");
    }
    for (size_t i = 0; r == 0 && i < json_len(blocks); i++) {
        r = add_blocks(s, t, blocks->array.items[i], e);
    }
    if (r == 0 && t->n_blocks == 0 && !t->has_fault) {
        return WRONG(s, v, e, "a step must say, think, call, output or fault something");
    }
    return r;
}

static int read_steps(struct script *s, const struct json *root,
                      const struct script_manner *defaults, struct err *e)
{
    const struct json *steps = given(root, "steps");
    const struct json *turns = given(root, "turns");
    size_t n = json_len(steps) + json_len(turns);
    if (n > SCRIPT_STEPS_MAX) {
        return ERR(e, ERR_LIMIT, "%s: %zu steps, at most %d are allowed", s->file, n,
                   SCRIPT_STEPS_MAX);
    }
    s->steps = arena_array(s->arena, n + 1, sizeof *s->steps);
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(steps); i++) {
        struct script_step *t = &s->steps[s->n_steps++];
        r = read_step(s, steps->array.items[i], arena_printf(s->arena, "steps[%zu]", i), defaults,
                      t, e);
    }
    for (size_t i = 0; r == 0 && i < json_len(turns); i++) {
        struct script_step *t = &s->steps[s->n_steps++];
        t->has_when = true;
        t->when.turn = json_integer(s->arena, (int64_t)i);
        r = read_step(s, turns->array.items[i], arena_printf(s->arena, "turns[%zu]", i), defaults,
                      t, e);
    }
    return r;
}

static int read_side(struct script *s, const struct json *v, const struct script_manner *defaults,
                     struct err *e)
{
    if (v == NULL) {
        return 0;
    }
    if (json_is(v, JSON_BOOL)) {
        s->side_off = !v->boolean;
        return 0;
    }
    struct json *answer = NULL;
    if (json_is(v, JSON_STRING)) {
        answer = json_object(s->arena);
        json_setc(s->arena, answer, "say", json_string(s->arena, v->string));
    } else if (json_is(v, JSON_OBJECT)) {
        answer = json_copy(s->arena, v);
    } else {
        return WRONG(s, v, e, "'side' must be a text, an answer, or false");
    }
    int r = shape_check(answer, answer_shape, s->file, e);
    s->side = ARENA_NEW(s->arena, struct script_step);
    return r < 0 ? r : read_step(s, answer, "side", defaults, s->side, e);
}

int script_check_aliases(const struct json *v, const char *file, struct err *e)
{
    const struct script named = { .file = file };
    const struct script *s = &named; /* for WRONG */
    for (size_t i = 0; i < json_len(v); i++) {
        const struct json *list = v->object.members[i].value;
        if (!json_is(list, JSON_ARRAY) || list->array.len == 0) {
            return WRONG(s, list, e, "alias '%s' must be a list of {tool, args}",
                         v->object.members[i].key.ptr);
        }
        for (size_t k = 0; k < list->array.len; k++) {
            const struct json *item = list->array.items[k];
            int r = shape_check(item, alias_shape, file, e);
            if (r < 0) {
                return r;
            }
            if (json_str(given(item, "tool"), STR_EMPTY).len == 0) {
                return WRONG(s, item, e, "alias '%s' needs 'tool', the name that a harness offers",
                             v->object.members[i].key.ptr);
            }
        }
    }
    return 0;
}

int script_read(struct script *s, const struct json *root, struct err *e)
{
    struct script_manner defaults = { .usage = LLM_USAGE_NONE };
    int r = shape_check(root, script_shape, s->file, e);
    if (r < 0) {
        return r;
    }
    s->name = json_cstring(given(root, "name"), s->file);
    s->strict = json_bool(given(root, "strict"), true);
    s->vars = given(root, "vars") != NULL ? given(root, "vars") : json_object(s->arena);
    s->aliases = given(root, "aliases");
    read_manner(given(root, "defaults"), &defaults);
    r = script_check_aliases(s->aliases, s->file, e);
    r = r < 0 ? r : read_steps(s, root, &defaults, e);
    r = r < 0 ? r : read_side(s, given(root, "side"), &defaults, e);
    const struct json *otherwise = given(root, "otherwise");
    if (r == 0 && otherwise != NULL) {
        s->otherwise = ARENA_NEW(s->arena, struct script_step);
        r = read_step(s, otherwise, "otherwise", &defaults, s->otherwise, e);
    }
    if (r == 0 && s->n_steps == 0 && s->otherwise == NULL) {
        return WRONG(s, root, e, "a script needs 'steps', 'turns' or 'otherwise'");
    }
    return r;
}
