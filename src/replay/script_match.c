/* SPDX-License-Identifier: MIT
 *
 * Which step fits a request. Each matcher is a row of one table, so that a request which fits none
 * can be told which step came nearest and what kept it back.
 */
#include "replay/script_priv.h"

#include "gateway/auxiliary.h"
#include "llm/codec.h"

/* What a message of a failed match quotes of the conversation. */
enum { QUOTE_LEN = 120 };

bool script_glob(struct str pattern, struct str text)
{
    return str_glob(pattern, text, true);
}

/* --- the scene --- */

/* In the whole history. */
static size_t count_results(const struct llm_request *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_messages; i++) {
        for (size_t k = 0; k < r->messages[i].n_parts; k++) {
            n += r->messages[i].parts[k].kind == LLM_PART_RESULT;
        }
    }
    return n;
}

void script_scene_init(struct script_scene *c, struct script *s, const struct script_request *r,
                       struct arena *a)
{
    *c = (struct script_scene) {
        .script = s,
        .request = r,
        .arena = a,
        .turn = llm_turn(r->llm),
        .results = count_results(r->llm),
        .last = llm_last_text(a, r->llm),
        .system = auxiliary_system_text(r->llm, a),
    };
    c->tools = script_declared_tools(r->llm, a, &c->program);
    c->side = s->side_off ? NULL : auxiliary_request_kind(r->llm, c->system, c->last);
    c->number = c->side != NULL ? s->requests : s->requests + 1;
}

/* --- matchers --- */

static bool any_number(const struct json *v, int64_t n)
{
    if (!json_is(v, JSON_ARRAY)) {
        return json_int(v, -1) == n;
    }
    for (size_t i = 0; i < v->array.len; i++) {
        if (json_int(v->array.items[i], -1) == n) {
            return true;
        }
    }
    return false;
}

/* Whether `test` holds for the string, or for all of the list. */
static bool all_strings(const struct json *v, bool (*test)(const void *arg, struct str s),
                        const void *arg)
{
    if (!json_is(v, JSON_ARRAY)) {
        return test(arg, json_str(v, STR_EMPTY));
    }
    for (size_t i = 0; i < v->array.len; i++) {
        if (!test(arg, json_str(v->array.items[i], STR_EMPTY))) {
            return false;
        }
    }
    return true;
}

static bool contains(const void *text, struct str s)
{
    const struct str *t = text;
    return s.len == 0 || str_find(*t, s) < t->len;
}

static bool is_offered(const void *scene, struct str name)
{
    return script_offers(scene, name) || script_must_search(scene, name, STR_EMPTY);
}

static bool is_not_offered(const void *scene, struct str name)
{
    return !script_offers(scene, name);
}

static int match_turn(struct script_scene *c, const struct script_when *w)
{
    return any_number(w->turn, (int64_t)c->turn);
}

static int match_results(struct script_scene *c, const struct script_when *w)
{
    return any_number(w->results, (int64_t)c->results);
}

static int match_request(struct script_scene *c, const struct script_when *w)
{
    return any_number(w->request, c->number);
}

static int match_text(struct script_scene *c, const struct script_when *w)
{
    return all_strings(w->text, contains, &c->last);
}

static int match_system(struct script_scene *c, const struct script_when *w)
{
    return all_strings(w->system, contains, &c->system);
}

static int match_regex(struct script_scene *c, const struct script_when *w)
{
    for (size_t i = 0; i < SCRIPT_GROUPS; i++) {
        c->spans[i] = (struct regex_span) { REGEX_UNSET, REGEX_UNSET };
    }
    return regex_find(w->regex, c->last, c->spans, w->n_spans, NULL) == 1;
}

static int match_tool(struct script_scene *c, const struct script_when *w)
{
    return all_strings(w->tool, is_offered, c);
}

static int match_no_tool(struct script_scene *c, const struct script_when *w)
{
    return all_strings(w->no_tool, is_not_offered, c);
}

static int match_model(struct script_scene *c, const struct script_when *w)
{
    return script_glob(w->model, c->request->llm->model);
}

static int match_format(struct script_scene *c, const struct script_when *w)
{
    return str_eqc(w->format, llm_format_name(c->request->llm->format));
}

static bool header_fits(const struct script_request *r, struct str name, struct str pattern)
{
    for (size_t i = 0; i < r->fields.len; i++) {
        if (script_glob(name, r->fields.items[i].name) &&
            script_glob(pattern, r->fields.items[i].value)) {
            return true;
        }
    }
    return false;
}

static int match_header(struct script_scene *c, const struct script_when *w)
{
    for (size_t i = 0; i < json_len(w->header); i++) {
        const struct json_member *m = &w->header->object.members[i];
        struct str pattern = json_str(m->value, STR("*"));
        if (!header_fits(c->request, m->key, pattern)) {
            return 0;
        }
    }
    return 1;
}

/* A step that does not speak of side requests is not for them. */
static int match_side(struct script_scene *c, const struct script_when *w)
{
    if (w->side == NULL || json_is(w->side, JSON_BOOL)) {
        return json_bool(w->side, false) == (c->side != NULL);
    }
    return c->side != NULL && str_eqc(w->side->string, c->side);
}

static const struct matcher {
    const char *key;
    int (*fits)(struct script_scene *c, const struct script_when *w);
    size_t offset; /* of the pointer or string in script_when that says whether it is asked for */
    bool is_str;
} matchers[] = {
    { "turn", match_turn, offsetof(struct script_when, turn), false },
    { "results", match_results, offsetof(struct script_when, results), false },
    { "request", match_request, offsetof(struct script_when, request), false },
    { "format", match_format, offsetof(struct script_when, format), true },
    { "model", match_model, offsetof(struct script_when, model), true },
    { "header", match_header, offsetof(struct script_when, header), false },
    { "tool", match_tool, offsetof(struct script_when, tool), false },
    { "no_tool", match_no_tool, offsetof(struct script_when, no_tool), false },
    { "system", match_system, offsetof(struct script_when, system), false },
    { "text", match_text, offsetof(struct script_when, text), false },
    { "regex", match_regex, offsetof(struct script_when, regex_at), false },
};

static bool asks(const struct script_when *w, const struct matcher *m)
{
    const void *field = (const char *)w + m->offset;
    return m->is_str ? ((const struct str *)field)->len > 0 : *(const void *const *)field != NULL;
}

static bool step_fits(struct script_scene *c, struct script_step *t)
{
    if ((t->times > 0 && t->played >= t->times) || !match_side(c, &t->when)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(matchers); i++) {
        if (asks(&t->when, &matchers[i]) && !matchers[i].fits(c, &t->when)) {
            return false;
        }
    }
    return true;
}

/* --- when none fits --- */

struct nearness {
    const struct script_step *step;
    int score; /* fits less misfits */
    const struct matcher *misfit;
    bool spent;
};

static struct nearness measure(struct script_scene *c, const struct script_step *t)
{
    struct nearness n = { .step = t, .spent = t->times > 0 && t->played >= t->times };
    for (size_t i = 0; i < ARRAY_LEN(matchers); i++) {
        if (!asks(&t->when, &matchers[i])) {
            continue;
        }
        if (matchers[i].fits(c, &t->when)) {
            n.score++;
        } else {
            n.score--;
            n.misfit = n.misfit != NULL ? n.misfit : &matchers[i];
        }
    }
    return n;
}

/* Text of the conversation for a message: one line, cut. */
static struct str quote(struct arena *a, struct str s)
{
    s = str_trim(s);
    size_t n = str_utf8_prefix(str_slice(s, 0, QUOTE_LEN));
    char *line = arena_dup(a, str_slice(s, 0, n));
    for (size_t i = 0; i < n; i++) {
        line[i] = (char)((unsigned char)line[i] < 0x20 ? ' ' : line[i]);
    }
    return str_of(n < s.len ? arena_printf(a, "%s…", line) : line);
}

static const char *why_not(struct script_scene *c, const struct nearness *n)
{
    CLEANUP(buf) struct buf b = BUF_INIT(4096);
    if (n->misfit == NULL) {
        return arena_printf(c->arena, "was played %lld times already", (long long)n->step->played);
    }
    const struct json *v = json_get(json_get(n->step->at, "when"), n->misfit->key);
    v = v != NULL ? v : n->step->when.turn; /* `turns` have no `when` */
    struct str wanted = json_write(v, JSON_COMPACT, &b, NULL) < 0 ? STR("…") : buf_str(&b);
    return arena_printf(c->arena, "wants %s: %s", n->misfit->key, quote(c->arena, wanted).ptr);
}

static int no_step(struct script_scene *c, struct err *e)
{
    struct script *s = c->script;
    struct nearness best = { .score = INT32_MIN };
    for (size_t i = 0; i < s->n_steps; i++) {
        struct nearness n = measure(c, &s->steps[i]);
        if (n.score > best.score || (n.score == best.score && best.spent && !n.spent)) {
            best = n;
        }
    }
    const char *request = arena_printf(
        c->arena, "request %lld (%s, model '%s', turn %zu, %zu tools, last message '%s')",
        (long long)c->number, llm_format_name(c->request->llm->format),
        quote(c->arena, c->request->llm->model).ptr, c->turn, c->request->llm->n_tools,
        quote(c->arena, c->last).ptr);
    if (best.step == NULL) {
        return ERR(e, ERR_CONFIG, "script '%s': no step fits %s", s->name, request);
    }
    char at[JSON_AT_LEN];
    return ERR(e, ERR_CONFIG, "script '%s': no step fits %s; nearest is '%s' (%s), which %s",
               s->name, request, best.step->name, json_at(s->file, best.step->at, at),
               why_not(c, &best));
}

int script_choose(struct script_scene *c, struct err *e)
{
    struct script *s = c->script;
    for (size_t i = 0; i < s->n_steps; i++) {
        if (step_fits(c, &s->steps[i])) {
            c->step = &s->steps[i];
            return 0;
        }
    }
    if (c->side != NULL) {
        c->step = s->side; /* NULL: a stock answer */
        return 0;
    }
    c->step = s->otherwise;
    return c->step != NULL || !s->strict ? 0 : no_step(c, e);
}
