/* SPDX-License-Identifier: MIT
 *
 * The shell of all writers. On its way to the codec of the format an event passes these stations:
 * signatures of another format are stored and wrapped (translate_event), names that were flattened
 * for the upstream become the client's again (rename_call), blocks that interleave are brought one
 * after the other if the format needs that (queue), and the answer is gathered (gather).
 */
#include <stdlib.h>

#include "llm/codec_priv.h"
#include "wire/sse.h"

#define ANSWER_MAX ((size_t)64 << 20) /* bytes held for one answer; an endless one ends here */

/* No provider makes more in parallel; each that waits costs a pass over the events that wait. */
#define CALLS_MAX 128

/* A call to a freeform tool, asked as a function with one text argument: {"input": "…"}. */
struct wrapped {
    uint32_t block;
    bool ended;
    struct buf text;
};

struct llm_writer {
    const struct llm_codec *codec;
    struct llm_write w;
    bool started, ended;
    LLM_LIST(struct wrapped) wrapped;
    bool in_call; /* serial formats: `call` is open */
    uint32_t call;
    LLM_LIST(struct llm_event) queue; /* copies, in w.memory */
    size_t calls;                     /* begun while another was open */
    unsigned draining;                /* > 0: the event at hand is such a copy */
    struct llm_recorder *recorder;    /* NULL: nothing is stored */
    struct buf signature;             /* of a thought, to be wrapped when it is complete … */
    struct llm_event signed_block;    /* … for this block */
};

struct llm_writer *llm_writer_new(const struct llm_writer_opts *o)
{
    struct llm_writer *w = xcalloc(1, sizeof *w);
    w->codec = llm_codec_of(o->format);
    w->w.arena = arena_new();
    w->w.memory = arena_new();
    w->w.opts = *o;
    w->w.opts.model = arena_str(w->w.memory, o->model);
    w->w.state = arena_alloc(w->w.memory, w->codec->writer_size);
    w->w.answer.usage = LLM_USAGE_NONE;
    w->w.answer.id = STR_EMPTY;
    w->w.answer.model = w->w.opts.model;
    buf_init(&w->signature, ANSWER_MAX);
    if (o->translated && o->store != NULL) {
        w->recorder = llm_recorder_new(w->w.memory, o->from, o->store);
    }
    return w;
}

struct llm_writer *llm_writer_free(struct llm_writer *w)
{
    if (w == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < w->w.answer.blocks.n; i++) {
        buf_done(&w->w.answer.blocks.items[i].text);
        buf_done(&w->w.answer.blocks.items[i].signature);
    }
    for (size_t i = 0; i < w->wrapped.n; i++) {
        buf_done(&w->wrapped.items[i].text);
    }
    buf_done(&w->signature);
    arena_free(w->w.arena);
    arena_free(w->w.memory);
    free(w);
    return NULL;
}

/* --- for the codecs --- */

int llm_write_sse(struct llm_write *w, const char *name, const struct json *data, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(ANSWER_MAX * 2);
    int r = json_write(data, JSON_COMPACT, &text, e);
    return r < 0 ? r : sse_write(str_of(name), buf_str(&text), w->out, e);
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

struct str llm_make_id(struct llm_write *w, const char *prefix)
{
    uint64_t high = mix(mix(w->opts.seed) + w->ids); /* mixed, so that seeds in a row share none */
    uint64_t low = mix(high ^ w->opts.seed);
    w->ids++;
    return str_of(arena_printf(w->memory, "%s%016llx%08llx", prefix, (unsigned long long)high,
                               (unsigned long long)(low >> 32)));
}

struct llm_block *llm_block_find(struct llm_write *w, uint32_t number)
{
    for (size_t i = w->answer.blocks.n; i > 0; i--) {
        if (w->answer.blocks.items[i - 1].number == number) {
            return &w->answer.blocks.items[i - 1];
        }
    }
    return NULL;
}

bool llm_answer_has(const struct llm_answer *answer, enum llm_part_kind kind)
{
    for (size_t i = 0; i < answer->blocks.n; i++) {
        if (answer->blocks.items[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* --- gathering --- */

static enum llm_part_kind block_kind(const struct llm_event *ev)
{
    switch (ev->kind) {
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
        return LLM_PART_THINKING;
    case LLM_EV_REFUSAL:
        return LLM_PART_REFUSAL;
    case LLM_EV_CALL_BEGIN:
    case LLM_EV_CALL_DATA:
    case LLM_EV_CALL_END:
        return LLM_PART_CALL;
    case LLM_EV_OTHER:
        return LLM_PART_OTHER;
    case LLM_EV_TEXT:
    case LLM_EV_START:
    case LLM_EV_USAGE:
    case LLM_EV_STOP:
    case LLM_EV_ERROR:
    case LLM_EV_PING:
    case LLM_EV_END:
        break;
    }
    return LLM_PART_TEXT;
}

static struct llm_block *block_of(struct llm_write *w, const struct llm_event *ev)
{
    struct llm_block *b = llm_block_find(w, ev->block);
    if (b != NULL) {
        return b;
    }
    b = LLM_ADD(w->memory, &w->answer.blocks);
    *b = (struct llm_block) {
        .kind = block_kind(ev),
        .number = ev->block,
        .id = arena_str(w->memory, ev->id),
        .name = arena_str(w->memory, ev->name),
        .ns = arena_str(w->memory, ev->ns),
        .custom = ev->custom,
        .redacted = ev->redacted,
    };
    buf_init(&b->text, ANSWER_MAX);
    buf_init(&b->signature, ANSWER_MAX);
    return b;
}

static int hold(struct llm_write *w, struct buf *to, struct str text, struct err *e)
{
    if (text.len > ANSWER_MAX - w->answer.bytes) {
        return ERR(e, ERR_LIMIT, "the answer is larger than %zu bytes", ANSWER_MAX);
    }
    w->answer.bytes += text.len;
    return buf_append(to, text, e);
}

static int gather_block(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    struct llm_write *w = &wr->w;
    struct llm_block *b = block_of(w, ev);
    bool gathers = !w->opts.stream || wr->codec->gathers;
    if (ev->kind == LLM_EV_OTHER && gathers && ev->format == w->opts.format) {
        *LLM_ADD(w->memory, &b->raw) = json_copy(w->memory, ev->raw);
        return 0;
    }
    if (ev->kind == LLM_EV_CALL_END) {
        b->ended = true;
        return 0;
    }
    b->redacted = b->redacted || ev->redacted;
    b->has_data = b->has_data || ev->kind == LLM_EV_CALL_DATA;
    if (!gathers || ev->kind == LLM_EV_CALL_BEGIN || ev->kind == LLM_EV_OTHER) {
        return 0;
    }
    return hold(w, ev->kind == LLM_EV_SIGNATURE ? &b->signature : &b->text, ev->text, e);
}

static int gather(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    struct llm_answer *answer = &wr->w.answer;
    switch (ev->kind) {
    case LLM_EV_START:
        answer->id = arena_str(wr->w.memory, ev->id);
        if (answer->model.len == 0) {
            answer->model = arena_str(wr->w.memory, ev->model);
        }
        return 0;
    case LLM_EV_USAGE:
        llm_usage_update(&answer->usage, &ev->usage);
        return 0;
    case LLM_EV_STOP:
        answer->has_stop = true;
        answer->stop = ev->stop;
        answer->stop_text = arena_str(wr->w.memory, ev->text);
        return 0;
    case LLM_EV_ERROR:
    case LLM_EV_PING:
    case LLM_EV_END:
        return 0;
    case LLM_EV_TEXT:
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
    case LLM_EV_REFUSAL:
    case LLM_EV_CALL_BEGIN:
    case LLM_EV_CALL_DATA:
    case LLM_EV_CALL_END:
    case LLM_EV_OTHER:
        break;
    }
    return gather_block(wr, ev, e);
}

/* --- to the codec --- */

static int write_whole(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    struct json *tree = NULL;
    if (ev->kind == LLM_EV_ERROR) {
        return llm_error_write(wr->w.opts.format, &ev->error, wr->w.out, e);
    }
    if (ev->kind != LLM_EV_END) {
        return 0;
    }
    int r = wr->codec->write_body(&wr->w, &tree, e);
    return r < 0 ? r : json_write(tree, JSON_COMPACT, wr->w.out, e);
}

static int deliver(struct llm_writer *wr, const struct llm_event *ev, struct err *e);

/* No client parses an empty text as JSON. */
static int empty_input(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    const struct llm_block *b = llm_block_find(&wr->w, ev->block);
    struct llm_event data = { .kind = LLM_EV_CALL_DATA, .block = ev->block, .text = STR("{}") };
    return b == NULL || b->custom || b->has_data ? 0 : deliver(wr, &data, e);
}

/* Content that only the other format has. An image or a recording leaves a note in its place, so
 * that the response is not empty. */
static int drop_foreign(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    const struct json *media = json_get(ev->raw, "inlineData");
    media = media != NULL ? media : json_get(ev->raw, "fileData");
    struct str type = json_str(json_get(ev->raw, "type"), STR_EMPTY);
    bool image = str_eqc(type, "image_generation_call");
    llm_lost(wr->w.opts.losses, STR("response: content of one format only"),
             "the client's format has no place for it");
    if (media == NULL && !image) {
        return 0;
    }
    struct str mime = json_str(json_get(media, "mimeType"), STR("image"));
    struct llm_event note = {
        .kind = LLM_EV_TEXT,
        .block = ev->block,
        .text = str_of(arena_printf(
            wr->w.arena, "[%.*s omitted: the client's API has no place for it]", STR_ARG(mime))),
    };
    return deliver(wr, &note, e);
}

static int deliver(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    if (ev->kind == LLM_EV_OTHER && ev->format != wr->w.opts.format) {
        return drop_foreign(wr, ev, e);
    }
    int r = ev->kind == LLM_EV_CALL_END ? empty_input(wr, ev, e) : 0;
    r = r < 0 ? r : gather(wr, ev, e);
    if (r < 0) {
        return r;
    }
    if (!wr->w.opts.stream) {
        return write_whole(wr, ev, e);
    }
    return wr->codec->write_event(&wr->w, ev, e);
}

/* --- one block after the other --- */

static bool is_content(const struct llm_event *ev)
{
    return ev->kind != LLM_EV_START && ev->kind != LLM_EV_USAGE && ev->kind != LLM_EV_STOP &&
           ev->kind != LLM_EV_ERROR && ev->kind != LLM_EV_PING && ev->kind != LLM_EV_END;
}

static int queue(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    struct arena *m = wr->w.memory;
    size_t bytes = (wr->draining > 0 ? 0 : ev->text.len) + sizeof *ev;
    if (bytes > ANSWER_MAX - wr->w.answer.bytes) {
        return ERR(e, ERR_LIMIT, "the answer is larger than %zu bytes", ANSWER_MAX);
    }
    wr->w.answer.bytes += bytes;
    struct llm_event *copy = LLM_ADD(m, &wr->queue);
    *copy = *ev;
    if (wr->draining > 0) {
        return 0;
    }
    if (ev->kind == LLM_EV_CALL_BEGIN && ++wr->calls > CALLS_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d calls of tools interleave", CALLS_MAX);
    }
    copy->text = arena_str(m, ev->text);
    copy->id = arena_str(m, ev->id);
    copy->name = arena_str(m, ev->name);
    copy->ns = arena_str(m, ev->ns);
    copy->raw = ev->raw == NULL ? NULL : json_copy(m, ev->raw);
    return 0;
}

static int serial(struct llm_writer *wr, const struct llm_event *ev, struct err *e);

/* What waited goes on; what must wait again is queued again. */
static int drain(struct llm_writer *wr, struct err *e)
{
    struct llm_event *items = wr->queue.items;
    size_t n = wr->queue.n;
    wr->queue.items = NULL;
    wr->queue.n = wr->queue.cap = 0;
    wr->draining++;
    for (size_t i = 0; i < n; i++) {
        int r = serial(wr, &items[i], e);
        if (r < 0) {
            wr->draining--;
            return r;
        }
    }
    wr->draining--;
    return 0;
}

/* At the end, whatever call was left open. */
static int flush(struct llm_writer *wr, struct err *e)
{
    while (wr->queue.n > 0) {
        wr->in_call = false;
        int r = drain(wr, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int serial(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    if (is_content(ev) && wr->in_call && ev->block != wr->call) {
        return queue(wr, ev, e);
    }
    if (ev->kind == LLM_EV_CALL_BEGIN) {
        wr->in_call = true;
        wr->call = ev->block;
    }
    int r = deliver(wr, ev, e);
    if (r == 0 && ev->kind == LLM_EV_CALL_END && wr->in_call) {
        wr->in_call = false;
        r = drain(wr, e);
    }
    return r;
}

static int in_order(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    if (!wr->codec->serial) {
        return deliver(wr, ev, e);
    }
    if (ev->kind == LLM_EV_STOP || ev->kind == LLM_EV_END) {
        int r = flush(wr, e);
        if (r < 0) {
            return r;
        }
    }
    return serial(wr, ev, e);
}

/* --- names as the client knows them --- */

static struct wrapped *wrapped_find(struct llm_writer *wr, uint32_t block)
{
    for (size_t i = 0; i < wr->wrapped.n; i++) {
        if (wr->wrapped.items[i].block == block && !wr->wrapped.items[i].ended) {
            return &wr->wrapped.items[i];
        }
    }
    return NULL;
}

static int begin_call(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    const struct llm_tool *t = NULL;
    struct llm_event named = *ev;
    if (wr->w.opts.request != NULL && ev->ns.len == 0) {
        t = llm_tool_flat(wr->w.opts.request, ev->name);
    }
    if (t == NULL) {
        return in_order(wr, ev, e);
    }
    named.name = t->name;
    named.ns = t->ns;
    if (t->kind == LLM_TOOL_CUSTOM && !ev->custom) {
        struct wrapped *wrapped = LLM_ADD(wr->w.memory, &wr->wrapped);
        wrapped->block = ev->block;
        buf_init(&wrapped->text, ANSWER_MAX);
        named.custom = true;
    }
    return in_order(wr, &named, e);
}

static int unwrap(struct llm_writer *wr, struct wrapped *wrapped, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    struct llm_event data = {
        .kind = LLM_EV_CALL_DATA,
        .block = wrapped->block,
        .custom = true,
        .text = buf_str(&wrapped->text),
    };
    if (json_parse(a, data.text, &llm_json_limits, &v, NULL) == 0) {
        data.text = json_str(json_get(v, "input"), data.text);
    }
    int r = in_order(wr, &data, e);
    wrapped->ended = true;
    buf_done(&wrapped->text);
    if (r < 0) {
        return r;
    }
    struct llm_event end = { .kind = LLM_EV_CALL_END, .block = wrapped->block, .custom = true };
    return in_order(wr, &end, e);
}

static int rename_call(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    struct wrapped *wrapped;
    switch (ev->kind) {
    case LLM_EV_CALL_BEGIN:
        return begin_call(wr, ev, e);
    case LLM_EV_CALL_DATA:
        wrapped = wrapped_find(wr, ev->block);
        return wrapped != NULL ? hold(&wr->w, &wrapped->text, ev->text, e) : in_order(wr, ev, e);
    case LLM_EV_CALL_END:
        wrapped = wrapped_find(wr, ev->block);
        return wrapped != NULL ? unwrap(wr, wrapped, e) : in_order(wr, ev, e);
    case LLM_EV_START:
    case LLM_EV_TEXT:
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
    case LLM_EV_REFUSAL:
    case LLM_EV_USAGE:
    case LLM_EV_STOP:
    case LLM_EV_ERROR:
    case LLM_EV_PING:
    case LLM_EV_OTHER:
    case LLM_EV_END:
        break;
    }
    return in_order(wr, ev, e);
}

/* --- signatures of another format --- */

static int hold_signature(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    if (wr->signature.len == 0) {
        const struct llm_block *b = llm_block_find(&wr->w, ev->block);
        wr->signed_block = (struct llm_event) {
            .kind = LLM_EV_SIGNATURE,
            .block = ev->block,
            .id = arena_str(wr->w.memory, ev->id),
            .redacted = ev->redacted,
            .of_content = b == NULL, /* without any text */
        };
    }
    return hold(&wr->w, &wr->signature, ev->text, e);
}

static int release_signature(struct llm_writer *wr, struct err *e)
{
    struct llm_event ev = wr->signed_block;
    if (wr->signature.len == 0) {
        return 0;
    }
    const struct llm_signature s = {
        .from = wr->w.opts.from,
        .kind = ev.redacted     ? LLM_SIGNATURE_REDACTED
                : ev.of_content ? LLM_SIGNATURE_ALONE
                                : LLM_SIGNATURE_OF_TEXT,
        .id = ev.id,
        .text = buf_str(&wr->signature),
    };
    ev.of_content = false;
    ev.text = llm_signature_wrap(wr->w.memory, &s);
    buf_reset(&wr->signature);
    return rename_call(wr, &ev, e);
}

static int translate_signature(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    if (!ev->of_content && wr->w.opts.format != LLM_CHAT) {
        return hold_signature(wr, ev, e);
    }
    if (wr->recorder == NULL) {
        llm_lost(wr->w.opts.losses, STR("response: signature"), "the client has no place for it");
    }
    return 0;
}

static int translate_event(struct llm_writer *wr, const struct llm_event *ev, struct err *e)
{
    struct llm_event named = *ev;
    if (!wr->w.opts.translated) {
        return rename_call(wr, ev, e);
    }
    if (ev->kind == LLM_EV_CALL_BEGIN && ev->id.len == 0) {
        named.id = llm_make_id(&wr->w, wr->w.opts.format == LLM_ANTHROPIC ? "toolu_" : "call_");
    }
    if (wr->recorder != NULL) {
        llm_recorder_event(wr->recorder, &named);
    }
    bool more = ev->kind == LLM_EV_SIGNATURE && ev->block == wr->signed_block.block;
    int r = more ? 0 : release_signature(wr, e);
    if (r < 0) {
        return r;
    }
    return ev->kind == LLM_EV_SIGNATURE ? translate_signature(wr, ev, e)
                                        : rename_call(wr, &named, e);
}

int llm_writer_event(struct llm_writer *wr, const struct llm_event *ev, struct buf *out,
                     struct err *e)
{
    static const struct llm_event start = { .kind = LLM_EV_START };
    int r = 0;
    if (wr->ended || (wr->started && ev->kind == LLM_EV_START)) {
        return 0;
    }
    wr->w.out = out;
    if (!wr->started && ev->kind != LLM_EV_ERROR) {
        wr->started = true;
        r = ev->kind == LLM_EV_START ? 0 : in_order(wr, &start, e);
    }
    r = r < 0 ? r : translate_event(wr, ev, e);
    wr->ended = r < 0 || ev->kind == LLM_EV_END || ev->kind == LLM_EV_ERROR;
    wr->w.out = NULL;
    arena_reset(wr->w.arena);
    return r;
}
