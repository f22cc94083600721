/* SPDX-License-Identifier: MIT
 *
 * struct cassette: model traffic that was recorded, and can be played again. docs/gateway.md
 * describes the file: zstd frames of JSON lines, one frame a finished exchange, so that whatever
 * kills the recorder costs the unfinished exchanges only.
 *
 * Reading (cassette_read.c):
 *   cassette_open("run.cassette", &c, e);
 *   for (size_t i = 0; i < cassette_len(c); i++)        in the order in which they began
 *       cassette_exchange(c, i, arena, &x, e);          unpacked when asked for
 *   cassette_free(c);
 *
 * Recording (cassette_write.c):
 *   cassette_writer_new("run.cassette", &opts, &w, e);
 *   struct cassette_take *t = cassette_take_new(w, &request);
 *   cassette_take_head(t, …); cassette_take_data(t, …); cassette_take_end(t, …, e);
 *
 * What never gets into one: credentials. Header fields are kept by an allow list, keys are taken
 * out of the query, known secret values and what looks like a key out of everything.
 *
 * Foreign files are bounded: CASSETTE_FILE_MAX bytes, CASSETTE_EXCHANGES_MAX exchanges,
 * CASSETTE_EXCHANGE_MAX bytes of text each, CASSETTE_FRAMES_MAX pieces of an answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "llm/event.h"
#include "replay/playback.h"
#include "wire/http.h"

struct arena;
struct json;
struct json_diff;
struct redactor;

#define CASSETTE_VERSION       1
#define CASSETTE_FILE_MAX      ((size_t)512 << 20)
#define CASSETTE_EXCHANGES_MAX 100000
#define CASSETTE_EXCHANGE_MAX  ((size_t)256 << 20)
#define CASSETTE_FRAMES_MAX    ((size_t)1 << 20)

/* --- reading --- */

struct cassette;

enum cassette_end {
    CASSETTE_COMPLETE,
    CASSETTE_CUT,       /* the answer broke off, or never came */
    CASSETTE_CANCELLED, /* the client left */
};

struct cassette_exchange {
    uint64_t number; /* from 1, in order of their beginning */
    struct str method, target;
    const struct json *about; /* the whole first line: began, model, side … */
    nsec began;               /* since the recording began */
    struct json *fields;      /* of the request, name → value */
    struct str body;
    bool body_missing; /* it was too long to be kept */
    int status;        /* 0: there was no answer */
    struct json *answer_fields;
    nsec answered; /* the head; since the exchange began, as all that follows */
    const struct playback_frame *frames; /* `wait` is the moment, not a pause */
    size_t n_frames;
    enum cassette_end end;
    nsec took;
    const struct json *closing; /* the whole last line */
};

int cassette_open(const char *path, struct cassette **ret, struct err *e) MUST_USE;
/* The same for bytes; `name` is for messages. */
int cassette_parse(struct str bytes, const char *name, struct cassette **ret,
                   struct err *e) MUST_USE;
struct cassette *cassette_free(struct cassette *c); /* accepts NULL, returns NULL */
size_t cassette_len(const struct cassette *c);
bool cassette_torn(const struct cassette *c); /* the file ends in the midst of a frame */
const struct json *cassette_about(const struct cassette *c); /* its first line */
/* Number, method and target of an exchange, without unpacking it. */
uint64_t cassette_number(const struct cassette *c, size_t i);
struct str cassette_method(const struct cassette *c, size_t i);
struct str cassette_target(const struct cassette *c, size_t i);
int cassette_exchange(const struct cassette *c, size_t i, struct arena *a,
                      struct cassette_exchange *ret, struct err *e) MUST_USE;

/* --- recording --- */

struct cassette_writer;
struct cassette_take; /* one exchange under way */

struct cassette_writer_opts {
    const struct redactor *redactor;   /* borrowed for life; may be NULL */
    const struct json *volatile_rules; /* kept in the file, for a replay; may be NULL */
    struct str adapter;                /* for the reader; may be empty */
    const struct json *about;          /* of a copy: the first line as it was; may be NULL */
    /* Names of directories that another run has elsewhere: { "home": "/x/out1/home" }; kept in the
     * file and not compared by a replay that gives its own; may be NULL. */
    const struct json *places;
};

struct cassette_request {
    uint64_t number;
    struct str method, target;
    struct http_fields fields;
    struct str body;
    struct str model;
    bool stream;
    struct str began; /* wall time; empty: now */
};

/* ERR_EXISTS when the file is there: recordings are never mixed. */
int cassette_writer_new(const char *path, const struct cassette_writer_opts *o,
                        struct cassette_writer **ret, struct err *e) MUST_USE;
struct cassette_writer *cassette_writer_free(struct cassette_writer *w);
/* Exchanges that could not be kept (disk full, too long), and why the first could not. */
uint64_t cassette_writer_lost(const struct cassette_writer *w, struct err *ret_first);

/* `now` is the moment on the clock of base/clock.h, in this and all that follow. Nothing fails
 * before the end, which tells what went wrong on the way. */
struct cassette_take *cassette_take_new(struct cassette_writer *w, const struct cassette_request *r,
                                        nsec now);
/* May come again when an attempt is repeated: then what was recorded of the answer is forgotten. */
void cassette_take_head(struct cassette_take *t, int status, const struct http_fields *fields,
                        nsec now);
void cassette_take_data(struct cassette_take *t, struct str bytes, nsec now);
/* Writes the exchange to the file and frees it, whatever happens. */
int cassette_take_end(struct cassette_take *t, enum cassette_end end, const struct json *closing,
                      nsec now, struct err *e);

/* A new file with everything of the old one that the redactor and the nets for keys let pass. */
int cassette_copy(const struct cassette *from, const char *path, const struct redactor *r,
                  struct err *e) MUST_USE;

/* --- what is kept, and how it is cleaned (cassette_clean.c) --- */

bool cassette_keeps_field(struct str lower_name);
/* Without credentials in the query. */
struct str cassette_clean_target(struct arena *a, struct str target);
/* Without known values, and without what looks like a key of a provider. */
struct str cassette_clean_text(const struct redactor *r, struct arena *a, struct str text);

/* --- comparing (cassette_rules.c) --- */

/* Fields that differ from run to run. { "paths": ["/metadata/user_id"],
 * "patterns": ["cch=[0-9a-f]+"] }: what stands at or below a path is not compared ('*' is one step,
 * '**' any number), what a pattern matches in a text neither. Built-in ones come on top. */
struct cassette_rules;
int cassette_rules_new(const struct json *rules, struct cassette_rules **ret,
                       struct err *e) MUST_USE;
/* The places of the recording and of this run: equal names stand for each other. Either may be
 * NULL; paths shorter than four bytes are left alone. Also their form with '-' for all but letters
 * and digits, by which claude-code names its files. */
void cassette_rules_places(struct cassette_rules *r, const struct json *recorded,
                           const struct json *now);
struct cassette_rules *cassette_rules_free(
    struct cassette_rules *r); /* accepts NULL, returns NULL */
/* The body as a tree; a string when it is no JSON. */
struct json *cassette_body_tree(struct arena *a, struct str body);
/* Is a difference at this place none? Either side may be NULL: nothing there. */
bool cassette_volatile(const struct cassette_rules *r, struct arena *a, struct str pointer,
                       const struct json *left, const struct json *right);
/* Whether two bodies are the same but for volatile values, told from their texts in one pass
 * (cassette_text.c). False: they are not, or the trees must tell. `now` need not be clean. */
bool cassette_same_text(struct cassette_rules *r, const struct redactor *redactor,
                        struct str recorded, struct str now);
/* The differences between two bodies that count; JSON or not. At most `max` of them. */
void cassette_compare(struct cassette_rules *r, const struct json *recorded, const struct json *now,
                      size_t max, struct arena *a, struct json_diff *ret);

/* Rewrites changed texts for a report: what the rules take for equal looks equal, so that the
 * report shows the difference that counts. */
void cassette_show_differences(const struct cassette_rules *r, struct arena *a,
                               struct json_diff *d);

/* Two cassettes, exchange by exchange: requests by the rules, answers byte by byte. Writes what
 * differs, one paragraph an exchange, at most `max` of them; returns how many do, or -code. */
int cassette_diff(const struct cassette *left, const struct cassette *right,
                  struct cassette_rules *r, size_t max, struct buf *out, struct err *e) MUST_USE;

/* --- replaying (cassette_replay.c) --- */

/* Finds the recorded exchange for each request of a run: in order, each once. Pure. */
struct cassette_replay;
int cassette_replay_new(struct cassette *c, const struct json *rules, const struct redactor *r,
                        struct cassette_replay **ret, struct err *e) MUST_USE; /* takes c over */
struct cassette_replay *cassette_replay_free(struct cassette_replay *p);
/* Where this run has what the recording had elsewhere: see cassette_writer_opts. */
void cassette_replay_places(struct cassette_replay *p, const struct json *places);
/* ERR_CONFIG when there is none: the message names the first difference to the one that was due,
 * cassette_replay_report() all of them. The exchange lives in *ret_arena, which the caller frees;
 * it is set on success only. */
int cassette_replay_find(struct cassette_replay *p, const struct cassette_request *r,
                         struct arena **ret_arena, struct cassette_exchange *ret,
                         struct err *e) MUST_USE;
/* Unpacks the exchange that is due next, so that finding it is quick: for idle moments. */
void cassette_replay_prepare(struct cassette_replay *p);
/* The first miss, in full; empty when there was none. */
struct str cassette_replay_report(const struct cassette_replay *p);
size_t cassette_replay_left(const struct cassette_replay *p); /* not yet played */

static inline void cleanup_cassette(struct cassette **c)
{
    *c = cassette_free(*c);
}
static inline void cleanup_cassette_writer(struct cassette_writer **w)
{
    *w = cassette_writer_free(*w);
}
static inline void cleanup_cassette_rules(struct cassette_rules **r)
{
    *r = cassette_rules_free(*r);
}
static inline void cleanup_cassette_replay(struct cassette_replay **p)
{
    *p = cassette_replay_free(*p);
}
