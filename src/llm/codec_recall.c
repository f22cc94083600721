/* SPDX-License-Identifier: MIT
 *
 * Thoughts and signatures across formats. A provider wants back what it signed: Anthropic its
 * thinking blocks, OpenAI its reasoning items, Gemini the signatures of its calls. A client of
 * another format gets them in two ways:
 *
 *   - where its format has a signature of thoughts, in that place, wrapped: base64 of the format
 *     that it is of, the id of the item and the signature. Clients send it back as it is
 *   - in the store, under the ids of the calls that followed and under a hash of the text, for
 *     formats without such a place, and for clients that send calls back but not thoughts
 *
 * When the conversation comes back, llm_recall() puts the signatures of the format that is asked
 * into the request again.
 */
#include <stdio.h>

#include "base/base64.h"
#include "llm/codec_priv.h"
#include "llm/store.h"

/* --- wrapped signatures --- */

#define MAGIC        STR("cinch1\n")
#define MAGIC_BASE64 STR("Y2luY2gx") /* "cinch1" */

static const char *const kinds[] = {
    [LLM_SIGNATURE_OF_TEXT] = "",
    [LLM_SIGNATURE_ALONE] = "alone",
    [LLM_SIGNATURE_REDACTED] = "redacted",
};

struct str llm_signature_wrap(struct arena *a, const struct llm_signature *s)
{
    CLEANUP(buf) struct buf plain = BUF_INIT(BUF_TEXT * 2);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 4);
    buf_add(&plain, MAGIC);
    buf_addf(&plain, "%s\n%.*s\n%s\n", llm_format_name(s->from), STR_ARG(s->id), kinds[s->kind]);
    buf_add(&plain, s->text);
    return base64_write(buf_str(&plain), &text, NULL) < 0 ? STR_EMPTY
                                                          : arena_str(a, buf_str(&text));
}

bool llm_signature_unwrap(struct arena *a, struct str text, struct llm_signature *ret)
{
    CLEANUP(buf) struct buf plain = BUF_INIT(BUF_TEXT * 2);
    if (!str_starts(text, MAGIC_BASE64) || base64_read(text, &plain, NULL) < 0 ||
        !str_starts(buf_str(&plain), MAGIC) || !str_is_utf8(buf_str(&plain))) {
        return false;
    }
    struct str rest = arena_str(a, str_slice(buf_str(&plain), MAGIC.len, plain.len));
    if (!llm_format_parse(str_split(&rest, '\n'), &ret->from)) {
        return false;
    }
    ret->id = str_split(&rest, '\n');
    struct str kind = str_split(&rest, '\n');
    ret->kind = LLM_SIGNATURE_OF_TEXT;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        ret->kind = str_eqc(kind, kinds[i]) ? (enum llm_signature_kind)i : ret->kind;
    }
    ret->text = rest.ptr == NULL ? STR_EMPTY : rest;
    return ret->text.len > 0;
}

/* --- recording --- */

#define THOUGHTS_MAX ((size_t)512 << 10) /* bytes of one response; longer ones are not kept */

struct thought {
    uint32_t block;
    struct str id;
    bool redacted;
    LLM_LIST(struct str) text, signature; /* pieces */
};

struct open_call {
    uint32_t block;
    struct str id, signature;
};

struct llm_recorder {
    struct arena *a;
    enum llm_format from;
    struct llm_store *store;
    size_t bytes;
    LLM_LIST(struct thought) thoughts; /* since the last call */
    LLM_LIST(struct open_call) calls;
    uint64_t hash; /* of all text */
    struct str text_signature;
};

struct llm_recorder *llm_recorder_new(struct arena *a, enum llm_format from,
                                      struct llm_store *store)
{
    struct llm_recorder *rec = ARENA_NEW(a, struct llm_recorder);
    rec->a = a;
    rec->from = from;
    rec->store = store;
    rec->hash = LLM_TEXT_HASH;
    return rec;
}

uint64_t llm_text_hash(uint64_t hash, struct str text)
{
    for (size_t i = 0; i < text.len; i++) { /* FNV-1a */
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

static struct str call_key(struct arena *a, struct str id)
{
    return str_of(arena_printf(a, "call:%.*s", STR_ARG(id)));
}

static struct str text_key(struct arena *a, uint64_t hash)
{
    return str_of(arena_printf(a, "text:%016llx", (unsigned long long)hash));
}

static bool keeps(struct llm_recorder *rec, struct str text)
{
    rec->bytes += text.len;
    return rec->bytes <= THOUGHTS_MAX;
}

static struct thought *thought_of(struct llm_recorder *rec, const struct llm_event *ev)
{
    for (size_t i = rec->thoughts.n; i > 0; i--) {
        if (rec->thoughts.items[i - 1].block == ev->block) {
            return &rec->thoughts.items[i - 1];
        }
    }
    struct thought *t = LLM_ADD(rec->a, &rec->thoughts);
    t->block = ev->block;
    return t;
}

static void add_thought(struct llm_recorder *rec, const struct llm_event *ev)
{
    if (!keeps(rec, ev->text)) {
        return;
    }
    struct thought *t = thought_of(rec, ev);
    struct str piece = arena_str(rec->a, ev->text);
    if (ev->kind == LLM_EV_THINKING) {
        *LLM_ADD(rec->a, &t->text) = piece;
    } else {
        *LLM_ADD(rec->a, &t->signature) = piece;
    }
    t->id = t->id.len == 0 && ev->id.len > 0 ? arena_str(rec->a, ev->id) : t->id;
    t->redacted = t->redacted || ev->redacted;
}

static struct open_call *call_of(struct llm_recorder *rec, uint32_t block)
{
    for (size_t i = rec->calls.n; i > 0; i--) {
        if (rec->calls.items[i - 1].block == block) {
            return &rec->calls.items[i - 1];
        }
    }
    return NULL;
}

static struct json *joined(struct arena *a, const struct str *pieces, size_t n)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < n; i++) {
        buf_add(&text, pieces[i]);
    }
    return json_string(a, arena_str(a, buf_str(&text)));
}

static struct json *thoughts_json(struct llm_recorder *rec, struct arena *a)
{
    struct json *list = json_array(a);
    for (size_t i = 0; i < rec->thoughts.n; i++) {
        const struct thought *t = &rec->thoughts.items[i];
        if (t->signature.n == 0) {
            continue;
        }
        struct json *v = json_object(a);
        llm_put_str(a, v, "id", t->id);
        json_setc(a, v, "text", joined(a, t->text.items, t->text.n));
        json_setc(a, v, "signature", joined(a, t->signature.items, t->signature.n));
        llm_set_bool(a, v, "redacted", t->redacted);
        json_push(a, list, v);
    }
    return list;
}

static void put_entry(struct llm_recorder *rec, struct str key, struct arena *a,
                      struct str signature, struct json *thoughts)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *v = json_object(a);
    llm_set_cstr(a, v, "from", llm_format_name(rec->from));
    llm_put_str(a, v, "signature", signature);
    llm_put(a, v, "thoughts", json_len(thoughts) > 0 ? thoughts : NULL);
    if (json_len(v) > 1 && json_write(v, JSON_COMPACT, &text, NULL) == 0) {
        llm_store_put(rec->store, key, buf_str(&text));
    }
}

static void end_call(struct llm_recorder *rec, uint32_t block)
{
    const struct open_call *c = call_of(rec, block);
    CLEANUP(arena) struct arena *a = arena_new();
    if (c == NULL || c->id.len == 0) {
        return;
    }
    struct json *thoughts = rec->bytes <= THOUGHTS_MAX ? thoughts_json(rec, a) : NULL;
    put_entry(rec, call_key(a, c->id), a, c->signature, thoughts);
    rec->thoughts.n = 0;
}

static void add_signature(struct llm_recorder *rec, const struct llm_event *ev)
{
    struct open_call *c = call_of(rec, ev->block);
    if (c != NULL) {
        c->signature = keeps(rec, ev->text) ? arena_str(rec->a, ev->text) : STR_EMPTY;
    } else if (ev->of_content) {
        rec->text_signature = keeps(rec, ev->text) ? arena_str(rec->a, ev->text) : STR_EMPTY;
    } else {
        add_thought(rec, ev);
    }
}

static void end_response(struct llm_recorder *rec)
{
    if (rec->text_signature.len > 0) {
        CLEANUP(arena) struct arena *a = arena_new();
        put_entry(rec, text_key(a, rec->hash), a, rec->text_signature, NULL);
    }
}

void llm_recorder_event(struct llm_recorder *rec, const struct llm_event *ev)
{
    switch (ev->kind) {
    case LLM_EV_TEXT:
        rec->hash = llm_text_hash(rec->hash, ev->text);
        break;
    case LLM_EV_THINKING:
        add_thought(rec, ev);
        break;
    case LLM_EV_SIGNATURE:
        add_signature(rec, ev);
        break;
    case LLM_EV_CALL_BEGIN:
        *LLM_ADD(rec->a, &rec->calls) =
            (struct open_call) { .block = ev->block, .id = arena_str(rec->a, ev->id) };
        break;
    case LLM_EV_CALL_END:
        end_call(rec, ev->block);
        break;
    case LLM_EV_END:
        end_response(rec);
        break;
    case LLM_EV_START:
    case LLM_EV_REFUSAL:
    case LLM_EV_CALL_DATA:
    case LLM_EV_USAGE:
    case LLM_EV_STOP:
    case LLM_EV_ERROR:
    case LLM_EV_PING:
    case LLM_EV_OTHER:
        break;
    }
}

/* --- recalling --- */

struct recall {
    struct arena *a;
    enum llm_format to;
    const struct llm_store *store;
};

/* What is stored under the key, if it is of the format that is asked. */
static const struct json *entry_of(const struct recall *rc, struct str key)
{
    struct json *v = NULL;
    struct str text = llm_store_get(rc->store, key);
    if (text.len == 0 || json_parse(rc->a, arena_str(rc->a, text), NULL, &v, NULL) < 0 ||
        !str_eqc(json_str(json_get(v, "from"), STR_EMPTY), llm_format_name(rc->to))) {
        return NULL;
    }
    return v;
}

static struct llm_part thought_part(const struct json *v)
{
    return (struct llm_part) {
        .kind = LLM_PART_THINKING,
        .id = json_str(json_get(v, "id"), STR_EMPTY),
        .text = json_str(json_get(v, "text"), STR_EMPTY),
        .signature = json_str(json_get(v, "signature"), STR_EMPTY),
        .redacted = json_bool(json_get(v, "redacted"), false),
    };
}

/* Messages of the assistant in a row: one response. */
struct run_of {
    struct llm_message *messages;
    size_t n;
    bool has_thoughts; /* signed ones came back from the client */
};

/* The parts of a message with what the store adds to them. */
static void recall_message(const struct recall *rc, struct run_of *run, size_t index,
                           const struct json *const *entries, const struct json *first)
{
    struct llm_message *m = &run->messages[index];
    LLM_LIST(struct llm_part) parts = { 0 };
    const struct json *list = index == 0 ? json_get(first, "thoughts") : NULL;
    for (size_t i = 0; i < json_len(list); i++) { /* a response begins with its thought */
        *LLM_ADD(rc->a, &parts) = thought_part(json_item(list, i));
    }
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct llm_part *p = &m->parts[i];
        if (p->kind == LLM_PART_THINKING && p->signature.len == 0 &&
            (first != NULL || run->has_thoughts)) {
            continue; /* a piece of what is there with its signature */
        }
        list = entries[i] == first || run->has_thoughts ? NULL : json_get(entries[i], "thoughts");
        for (size_t j = 0; j < json_len(list); j++) {
            *LLM_ADD(rc->a, &parts) = thought_part(json_item(list, j));
        }
        struct llm_part *copy = LLM_ADD(rc->a, &parts);
        *copy = *p;
        struct str signature = json_str(json_get(entries[i], "signature"), STR_EMPTY);
        copy->signature = signature.len > 0 ? signature : p->signature;
    }
    m->parts = parts.items;
    m->n_parts = parts.n;
}

/* Gemini signs the text of a response, in its last part. */
static void recall_text(const struct recall *rc, struct run_of *run)
{
    uint64_t hash = LLM_TEXT_HASH;
    struct llm_part *last = NULL;
    for (size_t i = 0; i < run->n; i++) {
        struct llm_part *copies = arena_array(rc->a, run->messages[i].n_parts, sizeof *copies);
        for (size_t j = 0; j < run->messages[i].n_parts; j++) {
            copies[j] = run->messages[i].parts[j];
            if (copies[j].kind == LLM_PART_TEXT) {
                hash = llm_text_hash(hash, copies[j].text);
                last = &copies[j];
            }
        }
        run->messages[i].parts = copies;
    }
    const struct json *entry = last == NULL ? NULL : entry_of(rc, text_key(rc->a, hash));
    if (entry != NULL) {
        last->signature = json_str(json_get(entry, "signature"), STR_EMPTY);
    }
}

/* A thought that a client gathered from a stream: pieces of text, and the signature in the last. */
static void join_thoughts(const struct recall *rc, struct run_of *run)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 2);
    for (size_t i = 0; i < run->n; i++) {
        struct llm_message *m = &run->messages[i];
        struct llm_part *copies = arena_array(rc->a, m->n_parts, sizeof *copies);
        for (size_t j = 0; j < m->n_parts; j++) {
            copies[j] = m->parts[j];
            if (copies[j].kind != LLM_PART_THINKING) {
                buf_reset(&text);
                continue;
            }
            buf_add(&text, copies[j].text);
            if (copies[j].signature.len > 0) {
                copies[j].text = arena_str(rc->a, buf_str(&text));
                buf_reset(&text);
                run->has_thoughts = true;
            }
        }
        m->parts = copies;
    }
}

static void recall_run(const struct recall *rc, struct run_of *run)
{
    join_thoughts(rc, run);
    const struct json ***entries = arena_array(rc->a, run->n, sizeof *entries);
    const struct json *first = NULL;
    for (size_t i = 0; i < run->n; i++) {
        const struct llm_message *m = &run->messages[i];
        entries[i] = arena_array(rc->a, m->n_parts, sizeof **entries);
        for (size_t j = 0; j < m->n_parts; j++) {
            const struct llm_part *p = &m->parts[j];
            if (p->kind == LLM_PART_CALL && p->call.id.len > 0) {
                entries[i][j] = entry_of(rc, call_key(rc->a, p->call.id));
            }
            if (first == NULL && json_get(entries[i][j], "thoughts") != NULL) {
                first = entries[i][j];
            }
        }
    }
    first = run->has_thoughts ? NULL : first;
    for (size_t i = 0; i < run->n; i++) {
        recall_message(rc, run, i, entries[i], first);
    }
    if (rc->to == LLM_GEMINI) {
        recall_text(rc, run);
    }
}

void llm_recall(struct arena *a, enum llm_format to, const struct llm_store *store,
                struct llm_message *messages, size_t n)
{
    const struct recall rc = { a, to, store };
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        if (messages[i].role == LLM_ASSISTANT) {
            while (end < n && messages[end].role == LLM_ASSISTANT) {
                end++;
            }
            recall_run(&rc, &(struct run_of) { .messages = &messages[i], .n = end - i });
        }
        i = end;
    }
}
