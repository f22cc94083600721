/* SPDX-License-Identifier: MIT
 *
 * Patches of git without secrets; see redact_patch.h. The format of binary patches is that of git's
 * apply.c: "literal SIZE" or "delta SIZE", lines of base85 that begin with their length, an empty
 * line; first from old to new, then back.
 */
#include "record/redact_patch.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/inflate.h"

/* Decompressed bytes that are looked at. Who compresses more than this to a file of a few MiB has
 * made a bomb, and it is left out. */
#define INSIDE_MAX ((uint64_t)1 << 30)
/* Of a delta, which is looked at as a whole. */
#define DELTA_MAX ((size_t)256 << 20)

/* --- a file --- */

static void drop_piece(void *ctx, struct str piece)
{
    (void)ctx;
    (void)piece;
}

static void look_inside(void *ctx, struct str bytes)
{
    redact_stream_feed(ctx, bytes);
}

void redact_probe_init(struct redact_probe *p, const struct redactor *r)
{
    *p = (struct redact_probe) { 0 };
    redact_stream_init(&p->plain, r, drop_piece, NULL);
    redact_stream_init(&p->inside, r, drop_piece, NULL);
}

static bool looks_compressed(struct str head)
{
    static const char gzip[] = "\x1F\x8B\x08";
    return head.len >= 3 && memcmp(head.ptr, gzip, 3) == 0;
}

void redact_probe_feed(struct redact_probe *p, struct str bytes)
{
    struct err e;
    if (p->plain.redactor == NULL) {
        return;
    }
    if (p->seen == 0 && looks_compressed(bytes)) {
        p->inflate = inflate_new(INSIDE_MAX, look_inside, &p->inside);
    }
    p->seen += bytes.len;
    p->binary = p->binary || str_has_nul(bytes);
    redact_stream_feed(&p->plain, bytes);
    if (p->inflate != NULL) {
        int r = inflate_feed(p->inflate, bytes, &e);
        p->too_large = p->too_large || r == -ERR_LIMIT;
        p->inflate = r < 0 ? inflate_free(p->inflate) : p->inflate;
    }
}

enum redact_probe_result redact_probe_done(struct redact_probe *p)
{
    redact_stream_flush(&p->plain);
    redact_stream_flush(&p->inside);
    bool dirty = p->plain.removed > 0 || p->inside.removed > 0;
    redact_stream_done(&p->plain);
    redact_stream_done(&p->inside);
    p->inflate = inflate_free(p->inflate);
    return dirty ? REDACT_PROBE_SECRET : p->too_large ? REDACT_PROBE_UNKNOWN : REDACT_PROBE_CLEAN;
}

/* --- binary patches --- */

static int base85_digit(char c)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "!#$%&()*+-;<=>?@^_`{|}~";
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* One line: its length as a letter, then groups of five digits for four bytes. */
static bool decode_line(struct str line, struct buf *out)
{
    char first = line.len > 0 ? line.ptr[0] : '\0';
    size_t left = first >= 'A' && first <= 'Z'   ? (size_t)(first - 'A' + 1)
                  : first >= 'a' && first <= 'z' ? (size_t)(first - 'a' + 27)
                                                 : 0;
    if (left == 0 || line.len != 1 + (left + 3) / 4 * 5) {
        return false;
    }
    for (size_t at = 1; at < line.len; at += 5) {
        uint64_t value = 0;
        for (size_t i = 0; i < 5; i++) {
            int d = base85_digit(line.ptr[at + i]);
            if (d < 0) {
                return false;
            }
            value = value * 85 + (uint64_t)d;
        }
        if (value > UINT32_MAX) {
            return false;
        }
        char bytes[4] = { (char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
                          (char)value };
        size_t n = left < 4 ? left : 4;
        if (buf_append(out, str_n(bytes, n), NULL) < 0) {
            return false;
        }
        left -= n;
    }
    return true;
}

static void append_bytes(void *ctx, struct str bytes)
{
    (void)!buf_append(ctx, bytes, NULL);
}

static bool skip_varint(struct str *delta)
{
    bool more = true;
    while (more && delta->len > 0) {
        more = (delta->ptr[0] & 0x80) != 0;
        *delta = str_slice(*delta, 1, delta->len);
    }
    return !more;
}

/* Is what a delta inserts clean? A part of a secret beside bytes of the old file counts as one: the
 * rest may be there. */
static bool inserted_is_clean(const struct redactor *r, struct str run, bool after_copy,
                              bool before_copy)
{
    CLEANUP(arena) struct arena *a = arena_new();
    unsigned edges = (after_copy ? REDACT_CUT_FRONT : 0) | (before_copy ? REDACT_CUT_END : 0);
    return redact_cut(r, a, run, edges).ptr == run.ptr;
}

static bool delta_is_clean(const struct redactor *r, struct str delta)
{
    CLEANUP(buf) struct buf run = BUF_INIT(DELTA_MAX);
    bool copied = false;
    if (!skip_varint(&delta) || !skip_varint(&delta)) {
        return false;
    }
    while (delta.len > 0) {
        unsigned op = (unsigned char)delta.ptr[0];
        size_t len = op & 0x80 ? (size_t)__builtin_popcount(op & 0x7F) : op;
        if (op == 0 || len + 1 > delta.len) {
            return false;
        }
        if (!(op & 0x80)) {
            (void)!buf_append(&run, str_slice(delta, 1, len + 1), NULL);
        } else if (run.len > 0) {
            if (!inserted_is_clean(r, buf_str(&run), copied, true)) {
                return false;
            }
            buf_reset(&run);
        }
        copied = copied || op & 0x80;
        delta = str_slice(delta, len + 1, delta.len);
    }
    return run.len == 0 || inserted_is_clean(r, buf_str(&run), copied, false);
}

static const char holds_secret[] = "it holds a secret";
static const char unreadable[] = "its binary patch cannot be looked into for secrets";

static void feed_probe(void *ctx, struct str bytes)
{
    redact_probe_feed(ctx, bytes);
}

/* NULL: clean. */
static const char *check_literal(const struct redactor *r, struct str packed)
{
    struct redact_probe p;
    redact_probe_init(&p, r);
    struct inflate *x = inflate_new(INSIDE_MAX, feed_probe, &p);
    bool read = inflate_feed(x, packed, NULL) == 0 && inflate_ended(x);
    x = inflate_free(x);
    enum redact_probe_result found = redact_probe_done(&p);
    return found == REDACT_PROBE_SECRET             ? holds_secret
           : found == REDACT_PROBE_UNKNOWN || !read ? unreadable
                                                    : NULL;
}

static const char *check_delta(const struct redactor *r, struct str packed)
{
    CLEANUP(buf) struct buf delta = BUF_INIT(DELTA_MAX);
    struct inflate *x = inflate_new(DELTA_MAX, append_bytes, &delta);
    bool read = inflate_feed(x, packed, NULL) == 0 && inflate_ended(x);
    x = inflate_free(x);
    return !read ? unreadable : delta_is_clean(r, buf_str(&delta)) ? NULL : holds_secret;
}

/* All that follows "GIT binary patch". */
static const char *check_binary(const struct redactor *r, struct str body)
{
    const char *why = NULL;
    while (why == NULL && body.len > 0) {
        struct str head = str_split(&body, '\n');
        bool delta = str_starts(head, STR("delta "));
        if (head.len == 0) {
            continue;
        }
        if (!delta && !str_starts(head, STR("literal "))) {
            return unreadable;
        }
        CLEANUP(buf) struct buf packed = BUF_INIT(SIZE_MAX / 2);
        struct str line = str_split(&body, '\n');
        while (line.len > 0 && why == NULL) {
            why = decode_line(line, &packed) ? NULL : unreadable;
            line = str_split(&body, '\n');
        }
        why = why != NULL ? why
              : delta     ? check_delta(r, buf_str(&packed))
                          : check_literal(r, buf_str(&packed));
    }
    return why;
}

/* --- the patch --- */

/* Where the next file begins; patch.len: there is none. Lines of hunks and of binary data never
 * begin like this. */
static size_t next_file(struct str patch, size_t from)
{
    static const char mark[] = "\ndiff --git ";
    struct str rest = str_slice(patch, from, patch.len);
    size_t at = str_find(rest, STR(mark));
    return at < rest.len ? from + at + 1 : patch.len;
}

/* Of "diff --git a/x b/x" the second name. Names with odd characters are quoted; others may have
 * blanks and " b/" in them, but are the same twice unless the file was renamed. */
static struct str path_of(struct str section)
{
    struct str line = str_split(&section, '\n');
    struct str names = str_slice(line, strlen("diff --git "), line.len);
    size_t half = names.len > 5 ? (names.len - 5) / 2 : 0;
    struct str first = str_slice(names, 2, 2 + half);
    struct str second = str_slice(names, names.len - half, names.len);
    if (names.len > 0 && names.ptr[names.len - 1] == '"') {
        size_t at = str_find(names, STR(" \"b/"));
        return at < names.len ? str_slice(names, at + 4, names.len - 1) : names;
    }
    if (str_eq(first, second)) {
        return second;
    }
    size_t at = str_find(names, STR(" b/"));
    return at < names.len ? str_slice(names, at + 3, names.len) : names;
}

static int64_t size_of(struct str section)
{
    static const char mark[] = "\nGIT binary patch\nliteral ";
    size_t at = str_find(section, STR(mark)) + strlen(mark);
    struct str rest = str_slice(section, at, section.len);
    int64_t n;
    return at < section.len && str_to_i64(str_split(&rest, '\n'), &n) ? n : 0;
}

uint64_t redact_patch(const struct redactor *r, struct str patch,
                      const struct redact_patch_port *port)
{
    static const char mark[] = "\nGIT binary patch\n";
    struct redact_stream text;
    redact_stream_init(&text, r, port->write, port->ctx);
    text.keep_lines = true;
    for (size_t at = 0; at < patch.len;) {
        size_t end = text.redactor == NULL ? patch.len : next_file(patch, at);
        struct str file = str_slice(patch, at, end);
        size_t binary = text.redactor == NULL ? file.len : str_find(file, STR(mark));
        const char *why = binary < file.len
                              ? check_binary(r, str_slice(file, binary + strlen(mark), file.len))
                              : NULL;
        if (why != NULL) {
            port->withheld(port->ctx,
                           &(struct redact_withheld) { path_of(file), size_of(file), why });
        } else if (binary < file.len) {
            redact_stream_feed(&text, str_slice(file, 0, binary));
            redact_stream_flush(&text);
            port->write(port->ctx, str_slice(file, binary, file.len));
        } else {
            redact_stream_feed(&text, file);
        }
        at = end;
    }
    redact_stream_flush(&text);
    redact_stream_done(&text);
    return text.removed;
}
