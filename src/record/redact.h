/* SPDX-License-Identifier: MIT
 *
 * struct redactor: takes known secret values out of everything that is written.
 *
 *  1. r = redactor_new(); redactor_add(r, STR("API_KEY"), value, e) for each secret, before
 *     anything runs
 *  2. redactor_compile(r); from here on r is read-only and may serve any number of streams
 *  3. for each byte stream (stdout, stderr, …): redact_stream_init(), then _feed() per read,
 *     _flush() at the end, _done(). For single values: redact_str(), redact_json().
 *  4. redactor_free(r) overwrites the values before it lets go of them.
 *
 * What is found: the value itself (white space off its ends); base64 at each of the three
 * alignments (standard and URL alphabet); hex (all digits of one case); UTF-16 of either byte
 * order; each line of a value of several lines (PEM keys). Any of these also where some or all
 * bytes are percent-encoded (either case, once or twice) or escaped as in JSON, C, Python or git
 * (\u0053, \x53, \123, \", \n …, also escaped again, as logs of logs have it). Base64 and hex also
 * with line breaks in lines of eight characters or more (LF, CRLF or escaped, followed by the mark
 * of a patch or indentation); up to three characters at the end of the first line may remain.
 *
 * What comes out: every byte that belongs to any occurrence is removed; each chain of overlapping
 * occurrences becomes one "[REDACTED:NAME]", NAME of the first and longest. All other bytes pass
 * unchanged, and where the input was cut into chunks makes no difference. Should "[REDACTED:NAME]"
 * be able to complete a secret by itself or with its neighbours, "***" (of a character that no
 * secret has) is written instead, so that no registered form ever stands in the output.
 *
 * A stream holds back only bytes that are, so far, the beginning of a secret (at most the longest
 * form less one byte); a line that holds no such beginning passes whole and at once. Clean chunks
 * are not copied: the port gets pieces of the caller's chunk.
 *
 * Cost, measured on one core of the development machine (GB/s for lines of text, wrapped base64,
 * JSON full of escapes): with a secret of 4 bytes 0.9, 0.9, 0.6; of 11 bytes 1.4, 1.7, 0.8; with an
 * API key of 87 bytes 3.3, 4.3, 1.1. The worst texts (nothing but backslashes, or the beginning of
 * a secret again and again) take 20 times as long, still in proportion to their length.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct json;
struct redactor;

/* Shorter values would be found all over ordinary text. */
#define REDACT_VALUE_MIN 4
/* Longer ones (whole files given as secrets) would make the hold-back longer than a useful log. */
#define REDACT_VALUE_MAX ((size_t)64 << 10)

struct redactor *redactor_new(void);
struct redactor *redactor_free(struct redactor *r); /* accepts NULL, returns NULL */

/* Copies. ERR_SECRET, naming the secret and its length, when the value is too short or too long to
 * be recognised; the redactor is then unchanged and the caller decides whether to go on. */
int redactor_add(struct redactor *r, struct str name, struct str value, struct err *e) MUST_USE;
void redactor_compile(struct redactor *r);
/* Longest form in bytes, 0 when there are no secrets: the bound of what a stream holds back,
 * plus 1. */
size_t redactor_longest(const struct redactor *r);

/* Receives safe bytes. The piece stays valid until the feed or flush that made it returns. */
typedef void redact_port(void *ctx, struct str piece);

/* An occurrence that is not byte for byte as it was registered. */
struct redact_hit {
    size_t at, len;
    size_t secret; /* which one */
};
struct redact_hits {
    struct redact_hit *items;
    size_t len, cap;
    size_t partial; /* where an unfinished one begins, at the end of the text */
};

struct redact_stream {
    const struct redactor *redactor; /* NULL: everything passes */
    redact_port *port;
    void *ctx;
    struct buf hold; /* bytes that may be the beginning of a secret */
    size_t covered;  /* how many of them, from the front, a replacement already stands for */
    struct buf join; /* hold and the head of the new chunk, side by side */
    struct redact_hits hits;
    uint64_t removed; /* replacements written so far */
    /* For patches: of an occurrence that goes over several lines, the line breaks stay, each with
     * the mark of the line behind it, so that the number of lines is right. */
    bool keep_lines;
};

void redact_stream_init(struct redact_stream *s, const struct redactor *r, redact_port *port,
                        void *ctx);
void redact_stream_feed(struct redact_stream *s, struct str chunk);
void redact_stream_flush(
    struct redact_stream *s); /* what is held passes on; the stream starts anew */
void redact_stream_done(struct redact_stream *s);

/* Is there no secret in it? r may be NULL: then there is none. */
bool redact_is_clean(const struct redactor *r, struct str s);

/* s itself when it is clean, else a copy in the arena. r may be NULL. */
struct str redact_str(const struct redactor *r, struct arena *a, struct str s);

/* The same for a text that was cut before it came here (a message of limited length, the last part
 * of a long output): there, half a secret may stand at the edge. Four bytes of one or more are
 * replaced too. */
enum redact_edge { REDACT_CUT_FRONT = 1 << 0, REDACT_CUT_END = 1 << 1 };
struct str redact_cut(const struct redactor *r, struct arena *a, struct str s, unsigned edges);
/* The tree itself when it is clean, else a copy with keys, strings and numbers redacted (a number
 * that holds a secret becomes a string). Two keys that become equal keep the later value. */
struct json *redact_json(const struct redactor *r, struct arena *a, struct json *v);

static inline void cleanup_redactor(struct redactor **r)
{
    *r = redactor_free(*r);
}
