/* SPDX-License-Identifier: MIT
 *
 * Reading tar streams; see tar.h. Blocks of 512 bytes: a header, then the content padded to whole
 * blocks. Two formats put long names into entries of their own before the one that they are for.
 */
#include "data/tar.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"

enum {
    BLOCK = 512,
    NAME_LONGEST = 4096,
    EXTENSION_MAX = 1 << 20, /* bytes of a long name or of pax records */
};

/* Offsets of the fields of a header. */
enum {
    AT_NAME = 0,
    AT_MODE = 100,
    AT_SIZE = 124,
    AT_CHECKSUM = 148,
    AT_TYPE = 156,
    AT_TARGET = 157,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
};

struct tar_reader {
    struct tar_port port;
    struct tar_limits limits;
    char block[BLOCK];
    size_t have;      /* bytes of the block */
    uint64_t left;    /* bytes of content that follow */
    uint64_t padding; /* bytes after them */
    bool in_file;
    char extension;  /* type of the entry that describes the next one; 0: none is being read */
    struct buf text; /* its content */
    struct buf name, target;
    bool has_name, has_target, has_size;
    uint64_t size;
    uint64_t entries, total;
    bool ended; /* a block of zeros: nothing follows that counts */
};

struct tar_reader *tar_reader_new(const struct tar_port *port, const struct tar_limits *limits)
{
    struct tar_reader *t = xcalloc(1, sizeof *t);
    t->port = *port;
    t->limits = limits == NULL ? (struct tar_limits) { 0 } : *limits;
    t->limits.max_entries = t->limits.max_entries == 0 ? 200000 : t->limits.max_entries;
    t->limits.max_total = t->limits.max_total == 0 ? (uint64_t)4 << 30 : t->limits.max_total;
    buf_init(&t->text, EXTENSION_MAX);
    buf_init(&t->name, NAME_LONGEST);
    buf_init(&t->target, NAME_LONGEST);
    return t;
}

struct tar_reader *tar_reader_free(struct tar_reader *t)
{
    if (t != NULL) {
        buf_done(&t->text);
        buf_done(&t->name);
        buf_done(&t->target);
        free(t);
    }
    return NULL;
}

static int fail(struct err *e, const char *what)
{
    return ERR(e, ERR_PARSE, "tar archive: %s", what);
}

/* --- fields --- */

static struct str field(const char *block, size_t at, size_t len)
{
    return str_n(block + at, strnlen(block + at, len));
}

/* Octal digits, or the number itself in big-endian bytes when the first bit is set. */
static bool read_number(const char *block, size_t at, size_t len, uint64_t *ret)
{
    const unsigned char *p = (const unsigned char *)block + at;
    uint64_t n = 0;
    if ((p[0] & 0x80) != 0) {
        for (size_t i = 0; i < len; i++) {
            unsigned char byte = i == 0 ? p[i] & 0x7f : p[i];
            if (n >> 55 != 0) {
                return false;
            }
            n = n << 8 | byte;
        }
        *ret = n;
        return true;
    }
    size_t i = 0;
    while (i < len && p[i] == ' ') {
        i++;
    }
    for (; i < len && p[i] >= '0' && p[i] <= '7'; i++) {
        n = n << 3 | (uint64_t)(p[i] - '0');
    }
    *ret = n;
    return i == len || p[i] == ' ' || p[i] == '\0';
}

static bool checksum_fits(const char *block)
{
    uint64_t said;
    uint64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        bool own = i >= AT_CHECKSUM && i < AT_CHECKSUM + 8;
        sum += own ? ' ' : (unsigned char)block[i];
    }
    return read_number(block, AT_CHECKSUM, 8, &said) && said == sum;
}

static bool is_zero(const char *block)
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (block[i] != '\0') {
            return false;
        }
    }
    return true;
}

/* --- entries that describe the next one --- */

static int set_text(struct buf *to, struct str text, bool *has, struct err *e)
{
    buf_reset(to);
    *has = true;
    if (str_has_nul(text) || text.len == 0 || buf_append(to, text, NULL) < 0) {
        return fail(e, "a name is empty, too long or holds a NUL");
    }
    return 0;
}

/* "LENGTH KEY=VALUE\n", where the length counts the whole record. */
static int take_pax(struct tar_reader *t, struct err *e)
{
    struct str rest = buf_str(&t->text);
    int r = 0;
    while (r == 0 && rest.len > 0) {
        struct str record = rest;
        int64_t len;
        struct str number = str_split(&record, ' ');
        if (record.ptr == NULL || !str_to_i64(number, &len) || len <= (int64_t)number.len + 1 ||
            (uint64_t)len > rest.len || rest.ptr[len - 1] != '\n') {
            return fail(e, "a pax record is damaged");
        }
        struct str value = str_slice(rest, number.len + 1, (size_t)len - 1);
        struct str key = str_split(&value, '=');
        int64_t size;
        if (value.ptr == NULL) {
            return fail(e, "a pax record is damaged");
        }
        if (str_eqc(key, "path")) {
            r = set_text(&t->name, value, &t->has_name, e);
        } else if (str_eqc(key, "linkpath")) {
            r = set_text(&t->target, value, &t->has_target, e);
        } else if (str_eqc(key, "size")) {
            t->has_size = str_to_i64(value, &size) && size >= 0;
            t->size = t->has_size ? (uint64_t)size : 0;
            r = t->has_size ? 0 : fail(e, "the size of a file is not a number");
        } else if (str_starts(key, STR("GNU.sparse."))) {
            r = fail(e, "sparse files are not supported");
        }
        rest = str_slice(rest, (size_t)len, rest.len);
    }
    return r;
}

static int take_extension(struct tar_reader *t, struct err *e)
{
    char type = t->extension;
    struct str text = buf_str(&t->text);
    t->extension = 0;
    text = str_n(text.ptr, strnlen(text.ptr == NULL ? "" : text.ptr, text.len));
    switch (type) {
    case 'L':
        return set_text(&t->name, text, &t->has_name, e);
    case 'K':
        return set_text(&t->target, text, &t->has_target, e);
    case 'x':
        return take_pax(t, e);
    default:
        return 0; /* pax records for all entries: comments and the like */
    }
}

/* --- entries --- */

static int find_name(struct tar_reader *t, struct err *e)
{
    if (t->has_name) {
        return 0;
    }
    struct str prefix = field(t->block, AT_PREFIX, 155);
    struct str name = field(t->block, AT_NAME, 100);
    buf_reset(&t->name);
    /* Only ustar has a prefix; old GNU archives have times there. */
    if (memcmp(t->block + AT_MAGIC, "ustar\0", 6) == 0 && prefix.len > 0) {
        buf_add(&t->name, prefix);
        buf_add(&t->name, STR("/"));
    }
    buf_add(&t->name, name);
    return t->name.len == 0 ? fail(e, "an entry has no name") : 0;
}

/* "./a/b/" is a/b; "." is nothing. */
static struct str plain_name(struct str name)
{
    while (str_starts(name, STR("./"))) {
        name = str_slice(name, 2, name.len);
        while (name.len > 0 && name.ptr[0] == '/') {
            name = str_slice(name, 1, name.len);
        }
    }
    return str_eqc(name, ".") ? STR_EMPTY : name;
}

static bool find_kind(char type, enum tar_kind *ret)
{
    switch (type) {
    case '\0':
    case '0':
    case '7':
        *ret = TAR_FILE;
        return true;
    case '1':
        *ret = TAR_HARDLINK;
        return true;
    case '2':
        *ret = TAR_SYMLINK;
        return true;
    case '5':
        *ret = TAR_DIR;
        return true;
    default:
        return false;
    }
}

static int begin_entry(struct tar_reader *t, uint64_t size, struct err *e)
{
    struct tar_entry entry;
    uint64_t mode;
    int r = find_name(t, e);
    if (r < 0) {
        return r;
    }
    if (!find_kind(t->block[AT_TYPE], &entry.kind)) {
        return fail(e, "it holds a device, a fifo or another entry that is not supported");
    }
    if (!t->has_target) {
        buf_reset(&t->target);
        buf_add(&t->target, field(t->block, AT_TARGET, 100));
    }
    while (t->name.len > 1 && t->name.ptr[t->name.len - 1] == '/') {
        t->name.len--; /* old archives mark directories so */
        entry.kind = entry.kind == TAR_FILE ? TAR_DIR : entry.kind;
    }
    bool file = entry.kind == TAR_FILE;
    entry.name = plain_name(buf_str(&t->name));
    ((char *)t->name.ptr)[t->name.len] = '\0';
    entry.target = buf_str(&t->target);
    entry.size = file ? size : 0;
    entry.mode = read_number(t->block, AT_MODE, 8, &mode) ? (unsigned)(mode & 0777) : 0644;
    t->has_name = t->has_target = t->has_size = false;
    t->total += entry.size;
    if (++t->entries > t->limits.max_entries || t->total > t->limits.max_total ||
        entry.size > t->limits.max_total) {
        return ERR(e, ERR_LIMIT, "tar archive: it has too many entries or too much content");
    }
    t->in_file = file;
    t->left = file ? size : 0;
    r = t->port.entry(t->port.ctx, &entry, e);
    return r == 0 && file && size == 0 ? t->port.done(t->port.ctx, e) : r;
}

static int begin_block(struct tar_reader *t, struct err *e)
{
    uint64_t size;
    char type = t->block[AT_TYPE];
    if (is_zero(t->block)) {
        t->ended = true;
        return 0;
    }
    if (!checksum_fits(t->block) || !read_number(t->block, AT_SIZE, 12, &size)) {
        return fail(e, "a header is damaged, or it is not a tar archive");
    }
    t->in_file = false;
    if (type == 'L' || type == 'K' || type == 'x' || type == 'g') {
        if (size > EXTENSION_MAX) {
            return ERR(e, ERR_LIMIT, "tar archive: the description of an entry is too long");
        }
        t->extension = type;
        t->left = size;
        buf_reset(&t->text);
        t->padding = (BLOCK - size % BLOCK) % BLOCK;
        return size == 0 ? take_extension(t, e) : 0;
    }
    size = t->has_size ? t->size : size;
    int r = begin_entry(t, size, e);
    t->padding = (BLOCK - t->left % BLOCK) % BLOCK;
    return r;
}

static int take_content(struct tar_reader *t, struct str piece, struct err *e)
{
    int r = 0;
    t->left -= piece.len;
    if (t->extension != 0) {
        buf_add(&t->text, piece); /* its size was checked */
    } else {
        r = t->port.data(t->port.ctx, piece, e);
    }
    if (r < 0 || t->left > 0) {
        return r;
    }
    return t->extension != 0 ? take_extension(t, e) : t->port.done(t->port.ctx, e);
}

int tar_reader_feed(struct tar_reader *t, struct str bytes, struct err *e)
{
    int r = 0;
    while (r == 0 && bytes.len > 0 && !t->ended) {
        size_t n;
        if (t->left > 0) {
            n = t->left < bytes.len ? (size_t)t->left : bytes.len;
            r = take_content(t, str_slice(bytes, 0, n), e);
        } else if (t->padding > 0) {
            n = t->padding < bytes.len ? (size_t)t->padding : bytes.len;
            t->padding -= n;
        } else {
            n = BLOCK - t->have < bytes.len ? BLOCK - t->have : bytes.len;
            memcpy(t->block + t->have, bytes.ptr, n);
            t->have += n;
            if (t->have == BLOCK) {
                t->have = 0;
                r = begin_block(t, e);
            }
        }
        bytes = str_slice(bytes, n, bytes.len);
    }
    return r;
}

int tar_reader_end(struct tar_reader *t, struct err *e)
{
    if (t->left > 0 || t->have > 0 || t->extension != 0 || t->has_name) {
        return fail(e, "it ends within an entry");
    }
    return t->entries == 0 ? fail(e, "it is empty") : 0;
}
