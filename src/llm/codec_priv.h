/* SPDX-License-Identifier: MIT
 *
 * What a wire format gives to the shells of llm/codec.h, and what they give to it.
 *
 * A format is one const struct llm_codec in its own files (llm_codec_chat in chat.c …) and a row in
 * the table of codec.c. The shells do what all formats share: JSON and SSE framing, bounds, the
 * order of events, gathering an answer, names and ids that a translation has to change. So a codec
 *
 *   read         tree of a request -> llm_request; what it does not understand stays in `extra`
 *   write        llm_request -> tree. Foreign requests were prepared (codec_prepare.c): no foreign
 *                extras, no namespaces, custom tools only where they came from the same family, ids
 *                in all calls and results. Their losses are noted already; the codec adds those
 *                that only it can know
 *   read_event   one SSE event -> llm_emit()…
 *   read_body    a whole answer -> the same llm_emit()…
 *   read_end     the stream has ended: a format without an end mark emits END here if it may
 *   write_event  an event -> SSE, with llm_write_sse()
 *   write_body   the gathered answer -> tree
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "llm/codec.h"
#include "llm/dropped.h"

/* --- members of JSON objects (codec_fields.c) ---
 *
 * Reading takes members; what was not taken is the object's `extra`:
 *
 *   struct llm_fields f;
 *   llm_fields_init(&f, a, object);
 *   part->text = llm_take_str(&f, "text");
 *   part->extra = llm_rest(&f);
 *
 * The typed takers leave a member of another type (null, too) where it is, so that it survives. */
struct llm_fields {
    struct arena *a;
    const struct json *object;
    bool *taken;       /* per member */
    struct json *rest; /* leftovers of members that were taken in part */
};

void llm_fields_init(struct llm_fields *f, struct arena *a, const struct json *object);
/* The list "messages", each by `read`, which is told its place in the list. */
int llm_read_messages(struct llm_fields *f, struct llm_request *ret,
                      int (*read)(struct arena *a, const struct json *v, size_t i,
                                  struct llm_message *ret, struct err *e),
                      struct err *e) MUST_USE;
struct json *llm_take(struct llm_fields *f, const char *key); /* NULL: absent */
struct json *llm_take_type(struct llm_fields *f, const char *key, enum json_type type);
struct str llm_take_str(struct llm_fields *f, const char *key); /* empty: absent, or it is "" */
bool llm_take_bool(struct llm_fields *f, const char *key, bool *ret);
/* Leaves a false where it is, for writers that say only what is true. */
bool llm_take_true(struct llm_fields *f, const char *key);
bool llm_take_int(struct llm_fields *f, const char *key, int64_t *ret);
bool llm_take_real(struct llm_fields *f, const char *key, double *ret);
/* Takes the member if it is the string `word`. */
bool llm_take_word(struct llm_fields *f, const char *key, const char *word);
/* An object with members: taken, and *ret reads it; finish with llm_close(). */
bool llm_open(struct llm_fields *f, const char *key, struct llm_fields *ret);
/* What `inner` left becomes a leftover of the member `key` of `f`. */
void llm_close(struct llm_fields *f, const char *key, struct llm_fields *inner);
void llm_keep(struct llm_fields *f, const char *key, struct json *rest); /* NULL: nothing */
struct json *llm_rest(struct llm_fields *f);                             /* object or NULL */

/* Writing. Those of llm_put_…() that have nothing to say (empty, NULL) do nothing. */
void llm_put(struct arena *a, struct json *object, const char *key, struct json *value);
void llm_put_str(struct arena *a, struct json *object, const char *key, struct str s);
void llm_set_str(struct arena *a, struct json *object, const char *key, struct str s); /* also "" */
void llm_set_cstr(struct arena *a, struct json *object, const char *key, const char *s);
void llm_set_int(struct arena *a, struct json *object, const char *key, int64_t i);
void llm_set_bool(struct arena *a, struct json *object, const char *key, bool b);
struct json *llm_set_object(struct arena *a, struct json *object, const char *key); /* new, empty */
struct json *llm_set_array(struct arena *a, struct json *object, const char *key);
/* Adds `extra` where the object has nothing of its own; objects deep. */
void llm_put_rest(struct arena *a, struct json *object, const struct json *extra);

/* The list ends with NULL; it may be NULL itself. */
bool llm_word_in(struct str s, const char *const *words);
/* The value of "type" where that is the first member of an object, in plain characters; else empty:
 * such an event must be read to know what it is. */
struct str llm_type_at_front(struct str data);
/* May a name of a member be written with an escape, so that a search for it finds nothing? */
bool llm_may_hide_names(struct str data);

/* Lists that grow while a request is read; the memory is the arena's. */
#define LLM_LIST(type) \
    struct {           \
        type *items;   \
        size_t n, cap; \
    }
/* Room for one more; returns a pointer to it, zeroed. */
#define LLM_ADD(a, list)                                                                           \
    ((list)->items = llm_grow((a), (list)->items, sizeof *(list)->items, (list)->n, &(list)->cap), \
     &(list)->items[(list)->n++])
void *llm_grow(struct arena *a, void *items, size_t size, size_t n, size_t *cap);

/* "messages[3].content[1]: must be an object": ERR_PARSE */
#define LLM_BAD(e, ...) ERR((e), ERR_PARSE, __VA_ARGS__)

/* --- helpers for requests (codec_parts.c) --- */

/* Plain text of the parts of one kind, joined; borrowed if there is only one. */
struct str llm_join_text(struct arena *a, const struct llm_part *parts, size_t n, const char *glue);
/* How many messages at the head are LLM_SYSTEM. */
size_t llm_leading_system(const struct llm_request *r);
/* JSON text as a call's input: sets text, and input if it parses as an object. */
void llm_call_set_text(struct arena *a, struct llm_call *c, struct str text);
void llm_call_set_input(struct arena *a, struct llm_call *c, struct json *input);
/* The input as an object for formats that want one; text that is no JSON is {"input": text}. */
struct json *llm_call_input(struct arena *a, const struct llm_call *c);
/* A response object (Gemini's) as text: what tools put under "output" or "error" is it. */
struct str llm_value_text(struct arena *a, const struct json *value);
bool llm_value_is_error(const struct json *value); /* nothing but an "error" */
/* "data:image/png;base64,AAAA" into mime and data; false if it is none. */
bool llm_media_from_data_url(struct str url, struct llm_media *ret);
struct str llm_media_data_url(struct arena *a, const struct llm_media *m);
/* By the mime type; LLM_MEDIA_DOCUMENT for what it does not know. */
enum llm_media_kind llm_media_kind_of(struct str mime);

/* --- reading an answer (codec_reader.c) --- */

struct llm_open_call {
    uint32_t block;
    bool custom, has_data;
};

struct llm_read {
    struct arena *arena;  /* of the piece that is being read; forgotten after it */
    struct arena *memory; /* of the whole answer */
    void *state;          /* the codec's: reader_size bytes, zeroed */
    uint32_t blocks;      /* how many have begun: the number of the next one */
    bool tapping;         /* for a tap: texts and arguments are not wanted */
    /* The shell's. */
    struct llm_sink sink;
    size_t calls; /* that were reported */
    bool started, ended, failed, has_stop;
    enum llm_stop stop;
    struct str stop_text;
    LLM_LIST(struct llm_open_call) open; /* calls that have not ended */
};

/* Passes an event on, in order: START is made up if it was not emitted, a second one is dropped;
 * CALL_END is added for open calls before STOP, and an input that was not sent is "{}"; STOP waits
 * for END (usage may follow it), and says TOOL if and only if there were calls, unless the response
 * was cut or refused;
 * ERROR is followed by END; nothing comes after END. */
void llm_emit(struct llm_read *rd, const struct llm_event *ev);
void llm_emit_text(struct llm_read *rd, enum llm_event_kind kind, uint32_t block, struct str text);
void llm_emit_usage(struct llm_read *rd, const struct llm_usage *u); /* not if nothing is said */
void llm_emit_stop(struct llm_read *rd, enum llm_stop stop, struct str text);
void llm_emit_end(struct llm_read *rd);
/* Parses into rd->arena; ERR_PROTO if it is no JSON object. */
int llm_read_json(struct llm_read *rd, struct str data, struct json **ret, struct err *e) MUST_USE;

/* --- writing an answer (codec_writer.c) --- */

struct llm_block {
    enum llm_part_kind kind; /* TEXT, THINKING, REFUSAL, CALL, OTHER */
    uint32_t number;         /* in the events */
    struct str id, name, ns;
    bool custom, redacted, ended;
    bool has_data;   /* of a call */
    struct buf text; /* words, or the input of a call so far */
    struct buf signature;
    LLM_LIST(const struct json *) raw; /* of OTHER events in this block, own format only */
};

struct llm_answer {
    struct str id, model;              /* model: what the client asked for if that is known */
    LLM_LIST(struct llm_block) blocks; /* in the order in which they began */
    struct llm_usage usage;
    bool has_stop;
    enum llm_stop stop;
    struct str stop_text;
    size_t bytes; /* gathered so far, bounded */
};

struct llm_write {
    struct arena *arena;  /* of this event */
    struct arena *memory; /* of the whole answer */
    void *state;          /* the codec's: writer_size bytes, zeroed */
    struct llm_writer_opts opts;
    struct llm_answer answer; /* texts are gathered if !opts.stream or codec->gathers */
    struct buf *out;
    uint64_t ids; /* made so far */
};

/* One SSE event; `name` may be NULL. */
int llm_write_sse(struct llm_write *w, const char *name, const struct json *data,
                  struct err *e) MUST_USE;
/* "toolu_0123456789abcdef01234567": from seed and counter, in w->memory. */
struct str llm_make_id(struct llm_write *w, const char *prefix);
/* Has it a block of that kind? */
bool llm_answer_has(const struct llm_answer *answer, enum llm_part_kind kind);
/* The block of an event; NULL before its first event. */
struct llm_block *llm_block_find(struct llm_write *w, uint32_t number);

/* --- thoughts and signatures across formats (codec_recall.c) --- */

enum llm_signature_kind {
    LLM_SIGNATURE_OF_TEXT,  /* of the text of the thought, which must come back, too */
    LLM_SIGNATURE_ALONE,    /* the provider did not show the thought */
    LLM_SIGNATURE_REDACTED, /* it is the thought, encrypted */
};
struct llm_signature {
    enum llm_format from;
    enum llm_signature_kind kind;
    struct str id; /* of the item that it stood in; may be empty */
    struct str text;
};
/* As text that any format can carry in the place of its own signatures. */
struct str llm_signature_wrap(struct arena *a, const struct llm_signature *s);
bool llm_signature_unwrap(struct arena *a, struct str text, struct llm_signature *ret);

/* Stores what a response signs. Sees its events before the writer, with the ids that the client
 * gets; lives in the arena. */
struct llm_recorder;
struct llm_recorder *llm_recorder_new(struct arena *a, enum llm_format from,
                                      struct llm_store *store);
void llm_recorder_event(struct llm_recorder *rec, const struct llm_event *ev);
/* Puts thoughts and signatures of format `to` back into messages that were prepared for it. */
void llm_recall(struct arena *a, enum llm_format to, const struct llm_store *store,
                struct llm_message *messages, size_t n);
#define LLM_TEXT_HASH UINT64_C(14695981039346656037)
uint64_t llm_text_hash(uint64_t hash, struct str text);

/* --- errors that OpenAI's two formats share (codec_openai.c) --- */

struct json *llm_openai_error(struct arena *a, const struct llm_error *error); /* of "error" */
void llm_openai_error_read(const struct json *error, struct llm_error *ret);   /* of "error" */
/* {"error": …} and what compatible servers send instead. */
struct json *llm_openai_error_body(struct arena *a, const struct llm_error *error);
void llm_openai_error_body_read(const struct json *body, struct llm_error *ret);
/* By what providers say when the prompt is too long. */
bool llm_says_context(struct str message);
enum llm_error_kind llm_error_kind_of(int status);

/* --- the table --- */

/* Nobody is told a place in what programs say to each other. */
extern const struct json_limits llm_json_limits;

struct llm_codec {
    const char *name;
    /* Path without query and without a version prefix ("/v1", "/v1beta"), and the query. */
    bool (*endpoint)(struct str method, struct str path, struct str query,
                     struct llm_endpoint *ret);
    int (*path)(struct str model, bool stream, struct buf *out, struct err *e);

    int (*read)(struct arena *a, const struct llm_endpoint *where, struct json *body,
                struct llm_request *ret, struct err *e);
    int (*write)(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                 struct json **ret, struct err *e);
    /* Members in `extra` of the request, and kinds (`id`) of OTHER parts, without which it means
     * something else: another format cannot be asked then. Ended by NULL; may be NULL. */
    const char *const *essential;
    /* Members that stay in an extra although their meaning is in the canonical form: no loss. */
    const char *const *carried;
    /* Replaces references by what the store has for them; may be NULL. */
    int (*resolve)(struct arena *a, struct llm_request *r, struct err *e);
    /* Why another format cannot be asked this at all: a sentence, or NULL. May be NULL. */
    const char *(*unportable)(struct arena *a, const struct llm_request *r);
    bool custom_tools; /* has freeform tools of its own */

    size_t reader_size;
    int (*read_event)(struct llm_read *rd, struct str name, struct str data, struct err *e);
    int (*read_body)(struct llm_read *rd, const struct json *body, struct err *e);
    void (*read_end)(struct llm_read *rd); /* may be NULL */
    /* Whether an event may hold what the tap reports; cheap, looks at bytes only. */
    bool (*tap_wants)(struct str name, struct str data);

    size_t writer_size;
    bool gathers; /* also in streams: the format repeats the whole at the end */
    bool serial;  /* blocks must not interleave: the shell brings them one after the other */
    int (*write_event)(struct llm_write *w, const struct llm_event *ev, struct err *e);
    int (*write_body)(struct llm_write *w, struct json **ret, struct err *e);

    struct json *(*error_write)(struct arena *a, const struct llm_error *error);
    /* ret has status and, from that, kind; the rest is empty. `body` may be any JSON. */
    void (*error_read)(const struct json *body, struct llm_error *ret);
};

extern const struct llm_codec llm_codec_anthropic, llm_codec_responses, llm_codec_chat,
    llm_codec_gemini;
const struct llm_codec *llm_codec_of(enum llm_format f);

/* codec_prepare.c: a request of another format as this one can write it; see above. */
int llm_prepare(struct arena *a, enum llm_format to, const struct llm_request *r,
                struct llm_losses *losses, struct llm_request *ret, struct err *e) MUST_USE;
/* The tool that a flattened name ("mcp__tiny__add_note") stands for. */
const struct llm_tool *llm_tool_flat(const struct llm_request *r, struct str name);
