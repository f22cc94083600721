/* SPDX-License-Identifier: MIT
 *
 * A request of one format made ready for the codec of another: what only its own provider
 * understands is left out and noted, names and ids become what any format can carry. So no codec
 * has to know the other three.
 */
#include "llm/codec_priv.h"

struct prepare {
    struct arena *a;
    const struct llm_codec *from, *to;
    enum llm_format target;
    const struct llm_request *r;
    struct llm_losses *losses;
    LLM_LIST(struct llm_call) calls; /* not answered yet, with the ids that they were given */
    size_t ids;
};

/* --- losses --- */

static bool is_nothing(const struct json *v)
{
    return v == NULL || v->type == JSON_NULL || (v->type == JSON_BOOL && !v->boolean) ||
           (v->type == JSON_STRING && v->string.len == 0);
}

static void lose_extra(struct prepare *p, const char *where, const struct json *extra)
{
    for (size_t i = 0; i < json_len(extra); i++) {
        const struct json_member *m = &extra->object.members[i];
        if (is_nothing(m->value) || llm_word_in(m->key, p->from->carried)) {
            continue;
        }
        const char *what = arena_printf(p->a, "%s%.*s", where, STR_ARG(m->key));
        /* Of an object that was understood in part, what is left is named, not the whole. */
        const struct json *rest =
            where[0] == '\0' && json_is(m->value, JSON_OBJECT) ? m->value : NULL;
        if (json_len(rest) > 0) {
            lose_extra(p, arena_printf(p->a, "%s.", what), rest);
        } else {
            llm_lost(p->losses, str_of(what), "the other format has no member for it");
        }
    }
}

static int refuse(struct prepare *p, struct str what, struct err *e)
{
    return ERR(e, ERR_UNSUPPORTED,
               "only %s servers understand '%.*s'; use an upstream that speaks %s", p->from->name,
               STR_ARG(what), p->from->name);
}

/* Files that were uploaded to a provider are known to it alone. */
static bool is_file_id(const struct llm_part *p)
{
    struct str uri = p->kind == LLM_PART_MEDIA ? p->media.url : STR_EMPTY;
    if (str_starts(uri, STR("https://generativelanguage.googleapis.com/")) ||
        str_starts(uri, STR("gs://"))) {
        return true;
    }
    const struct json *v = p->extra;
    return p->kind == LLM_PART_OTHER &&
           (json_get(v, "file_id") != NULL || json_pointer(v, STR("/file/file_id")) != NULL ||
            json_pointer(v, STR("/source/file_id")) != NULL);
}

static int check_parts(struct prepare *p, const struct llm_part *parts, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct llm_part *part = &parts[i];
        if (is_file_id(part)) {
            return ERR(e, ERR_UNSUPPORTED,
                       "a file that is stored at one provider cannot be sent to another; send its "
                       "content, or use an upstream that speaks %s",
                       p->from->name);
        }
        if (part->kind == LLM_PART_OTHER && str_eqc(part->id, "item_reference")) {
            return ERR(e, ERR_UNSUPPORTED,
                       "item_reference: this gateway has no item '%.*s'; send the items themselves "
                       "(store: false), or use an upstream that speaks %s",
                       STR_ARG(json_str(json_get(part->extra, "id"), STR_EMPTY)), p->from->name);
        }
        if (part->kind == LLM_PART_OTHER && llm_word_in(part->id, p->from->essential)) {
            return refuse(p, part->id, e);
        }
        int r = part->kind == LLM_PART_RESULT
                    ? check_parts(p, part->result.parts, part->result.n_parts, e)
                    : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int check_essential(struct prepare *p, struct err *e)
{
    const struct json *extra = p->r->extra;
    for (size_t i = 0; i < json_len(extra); i++) {
        const struct json_member *m = &extra->object.members[i];
        if (!is_nothing(m->value) && llm_word_in(m->key, p->from->essential)) {
            return refuse(p, m->key, e);
        }
    }
    for (size_t i = 0; i < p->r->n_messages; i++) {
        int r = check_parts(p, p->r->messages[i].parts, p->r->messages[i].n_parts, e);
        if (r < 0) {
            return r;
        }
    }
    const char *why = p->from->unportable == NULL ? NULL : p->from->unportable(p->a, p->r);
    return why == NULL ? 0 : ERR(e, ERR_UNSUPPORTED, "%s", why);
}

/* System text alone is no request to those formats that have another place for it. */
static int check_empty(struct prepare *p, const struct llm_request *r, struct err *e)
{
    bool apart = p->target == LLM_ANTHROPIC || p->target == LLM_GEMINI;
    size_t n = r->n_messages - (apart ? llm_leading_system(r) : 0);
    return n > 0 ? 0
                 : ERR(e, ERR_UNSUPPORTED, "the request contains no message that %s could take",
                       p->to->name);
}

/* --- names --- */

static struct str flat_name(struct arena *a, struct str ns, struct str name)
{
    if (ns.len == 0) {
        return name;
    }
    const char *glue = str_ends(ns, STR("__")) ? "" : "__";
    return str_of(arena_printf(a, "%.*s%s%.*s", STR_ARG(ns), glue, STR_ARG(name)));
}

static bool is_flat(const struct llm_tool *t, struct str name)
{
    if (t->ns.len == 0) {
        return str_eq(t->name, name);
    }
    size_t glue = str_ends(t->ns, STR("__")) ? 0 : 2;
    return name.len == t->ns.len + glue + t->name.len && str_starts(name, t->ns) &&
           str_ends(name, t->name) &&
           (glue == 0 || (name.ptr[t->ns.len] == '_' && name.ptr[t->ns.len + 1] == '_'));
}

const struct llm_tool *llm_tool_flat(const struct llm_request *r, struct str name)
{
    for (size_t i = 0; i < r->n_tools; i++) {
        if (r->tools[i].kind != LLM_TOOL_HOSTED && is_flat(&r->tools[i], name)) {
            return &r->tools[i];
        }
    }
    return NULL;
}

/* --- tools --- */

static struct json *text_schema(struct arena *a, const struct llm_tool *t)
{
    struct json *v = json_object(a);
    llm_set_cstr(a, v, "type", "object");
    struct json *input = llm_set_object(a, llm_set_object(a, v, "properties"), "input");
    llm_set_cstr(a, input, "type", "string");
    const struct json *format = json_get(t->extra, "format");
    struct str grammar = json_str(json_get(format, "definition"), STR_EMPTY);
    if (grammar.len > 0) { /* the only hint at what the tool takes */
        llm_set_str(a, input, "description", grammar);
    }
    json_push(a, llm_set_array(a, v, "required"), json_cstr(a, "input"));
    return v;
}

static void prepare_tool(struct prepare *p, const struct llm_tool *t, struct llm_tool *ret)
{
    *ret = *t;
    ret->extra = NULL;
    ret->spelling = 0;
    ret->ns = STR_EMPTY;
    ret->name = flat_name(p->a, t->ns, t->name);
    if (t->kind != LLM_TOOL_CUSTOM) {
        lose_extra(p, "tools[].", t->extra);
        return;
    }
    if (p->to->custom_tools) {
        ret->extra = t->extra;
        return;
    }
    ret->kind = LLM_TOOL_FUNCTION;
    ret->schema = text_schema(p->a, t);
    ret->strict = false;
}

static int refuse_hosted(struct prepare *p, struct str name, struct err *e)
{
    return ERR(e, ERR_UNSUPPORTED,
               "the request requires the tool '%.*s', which runs at the provider; use an upstream "
               "that speaks %s",
               STR_ARG(name), p->from->name);
}

static int prepare_tools(struct prepare *p, struct llm_request *ret, struct err *e)
{
    LLM_LIST(struct llm_tool) tools = { 0 };
    const struct llm_tool *hosted = NULL;
    for (size_t i = 0; i < p->r->n_tools; i++) {
        const struct llm_tool *t = &p->r->tools[i];
        if (t->kind != LLM_TOOL_HOSTED) {
            prepare_tool(p, t, LLM_ADD(p->a, &tools));
            continue;
        }
        llm_lost(p->losses, str_of(arena_printf(p->a, "tools[]: %.*s", STR_ARG(t->name))),
                 "it runs at the provider of the other format");
        hosted = t;
        if (p->r->choice == LLM_CHOICE_TOOL &&
            (str_eq(p->r->choice_name, t->name) ||
             str_eq(p->r->choice_name, json_str(json_get(t->extra, "name"), STR_EMPTY)))) {
            return refuse_hosted(p, t->name, e);
        }
    }
    if (hosted != NULL && tools.n == 0 && p->r->choice == LLM_CHOICE_ANY) {
        return refuse_hosted(p, hosted->name, e);
    }
    ret->tools = tools.items;
    ret->n_tools = tools.n;
    if (ret->choice == LLM_CHOICE_TOOL) {
        const struct llm_tool *t = llm_tool_find(p->r, p->r->choice_name);
        ret->choice_name = t == NULL ? p->r->choice_name : flat_name(p->a, t->ns, t->name);
    } else if (ret->n_tools == 0) {
        ret->choice = LLM_CHOICE_DEFAULT;
    }
    return 0;
}

/* --- messages --- */

static void prepare_call(struct prepare *p, struct llm_call *c)
{
    c->name = flat_name(p->a, c->ns, c->name);
    c->ns = STR_EMPTY;
    if (c->custom && !p->to->custom_tools) {
        struct json *input = json_object(p->a);
        llm_set_str(p->a, input, "input", c->text);
        c->custom = false;
        llm_call_set_input(p->a, c, input);
    }
    if (c->id.len == 0) {
        c->id = str_of(arena_printf(p->a, "call_%zu", p->ids++));
        *LLM_ADD(p->a, &p->calls) = *c;
    }
}

/* Without an id the result belongs to the first open call of its name. */
static struct str answered(struct prepare *p, struct str name)
{
    for (size_t i = 0; i < p->calls.n; i++) {
        struct llm_call *c = &p->calls.items[i];
        if (c->id.len > 0 && str_eq(c->name, name)) {
            struct str id = c->id;
            c->id = STR_EMPTY;
            return id;
        }
    }
    return str_of(arena_printf(p->a, "call_%zu", p->ids++));
}

/* The value as text, before the media that may stand beside it. */
static void value_as_text(struct prepare *p, struct llm_result *res)
{
    struct llm_part *parts = arena_array(p->a, res->n_parts + 1, sizeof *parts);
    parts[0].kind = LLM_PART_TEXT;
    parts[0].text = llm_value_text(p->a, res->value);
    for (size_t i = 0; i < res->n_parts; i++) {
        parts[i + 1] = res->parts[i];
    }
    res->is_error = res->is_error || llm_value_is_error(res->value);
    res->parts = parts;
    res->n_parts++;
}

static const struct llm_part *prepare_parts(struct prepare *p, const struct llm_part *parts,
                                            size_t n, size_t *ret_n);

static void prepare_result(struct prepare *p, struct llm_result *res)
{
    if (res->value != NULL) {
        value_as_text(p, res);
    }
    res->value = NULL;
    res->spelling = 0;
    res->custom = res->custom && p->to->custom_tools;
    if (res->call_id.len == 0) {
        res->call_id = answered(p, res->name);
    }
    if (res->name.len == 0) {
        const struct llm_call *c = llm_call_find(p->r, res->call_id);
        res->name = c == NULL ? STR_EMPTY : flat_name(p->a, c->ns, c->name);
    }
    for (size_t i = 0; i < res->n_parts; i++) {
        if (res->parts[i].kind == LLM_PART_RESULT) { /* no format nests them */
            res->n_parts = i;
        }
    }
    res->parts = prepare_parts(p, res->parts, res->n_parts, &res->n_parts);
}

/* Is it the signature of a thought of the format that is asked, on its way back? */
static bool is_own_signature(struct prepare *p, const struct llm_part *part,
                             struct llm_signature *ret)
{
    if (part->kind != LLM_PART_THINKING || part->signature.len == 0 ||
        !llm_signature_unwrap(p->a, part->signature, ret) || ret->from != p->target) {
        return false;
    }
    /* Gemini's clients have the text in parts before it (llm_recall() joins them). */
    return ret->kind != LLM_SIGNATURE_OF_TEXT || part->text.len > 0 || p->r->format == LLM_GEMINI;
}

static bool prepare_part(struct prepare *p, const struct llm_part *part, struct llm_part *ret)
{
    if (part->kind == LLM_PART_OTHER) {
        struct str type = json_str(json_get(part->extra, "type"), STR("unknown"));
        llm_lost(p->losses, str_of(arena_printf(p->a, "messages[]: %.*s", STR_ARG(type))),
                 "only the provider of the other format knows this kind of content");
        return false;
    }
    struct llm_signature s = { .kind = LLM_SIGNATURE_OF_TEXT };
    bool back = is_own_signature(p, part, &s);
    if (part->signature.len > 0 && !back) {
        llm_lost(p->losses, STR("messages[].signature"),
                 "only the provider that made it understands it");
    }
    if (part->kind == LLM_PART_THINKING && part->redacted && !back) {
        return false;
    }
    lose_extra(p, "messages[].", part->extra);
    *ret = *part;
    ret->extra = NULL;
    ret->spelling = 0;
    ret->signature = back ? s.text : STR_EMPTY;
    ret->id = back ? s.id : STR_EMPTY;
    ret->redacted = back && s.kind == LLM_SIGNATURE_REDACTED;
    if (part->kind == LLM_PART_CALL) {
        prepare_call(p, &ret->call);
    } else if (part->kind == LLM_PART_RESULT) {
        prepare_result(p, &ret->result);
    }
    return true;
}

static const struct llm_part *prepare_parts(struct prepare *p, const struct llm_part *parts,
                                            size_t n, size_t *ret_n)
{
    struct llm_part *copies = arena_array(p->a, n, sizeof *copies);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        kept += prepare_part(p, &parts[i], &copies[kept]);
    }
    *ret_n = kept;
    return copies;
}

static void prepare_messages(struct prepare *p, struct llm_request *ret)
{
    struct llm_message *copies = arena_array(p->a, p->r->n_messages, sizeof *copies);
    size_t kept = 0;
    for (size_t i = 0; i < p->r->n_messages; i++) {
        const struct llm_message *from = &p->r->messages[i];
        struct llm_message *to = &copies[kept];
        *to = *from;
        to->extra = NULL;
        to->spelling = 0;
        lose_extra(p, "messages[].", from->extra);
        to->parts = prepare_parts(p, from->parts, from->n_parts, &to->n_parts);
        kept += to->n_parts > 0 || from->n_parts == 0;
    }
    llm_recall(p->a, p->target, p->r->store, copies, kept);
    ret->messages = copies;
    ret->n_messages = kept;
}

int llm_prepare(struct arena *a, enum llm_format to, const struct llm_request *r,
                struct llm_losses *losses, struct llm_request *ret, struct err *e)
{
    struct llm_request resolved = *r;
    struct prepare p = {
        .a = a,
        .from = llm_codec_of(r->format),
        .to = llm_codec_of(to),
        .target = to,
        .r = &resolved,
        .losses = losses,
    };
    int result = p.from->resolve == NULL ? 0 : p.from->resolve(a, &resolved, e);
    result = result < 0 ? result : check_essential(&p, e);
    if (result < 0) {
        return result;
    }
    r = &resolved;
    if (r->model.len == 0) {
        return ERR(e, ERR_UNSUPPORTED, "the request names no model, which %s needs", p.to->name);
    }
    *ret = *r;
    ret->extra = NULL;
    ret->raw = NULL;
    ret->spelling = 0;
    lose_extra(&p, "", r->extra);
    ret->system = prepare_parts(&p, r->system, r->n_system, &ret->n_system);
    prepare_messages(&p, ret);
    result = check_empty(&p, ret, e);
    return result < 0 ? result : prepare_tools(&p, ret, e);
}
