/* SPDX-License-Identifier: MIT
 *
 * Making a damaged file of lines whole again. One pass reads the file and notes which stretches of
 * it are good; what follows (nothing, a cut, a copy of the good stretches) depends on where the bad
 * ones lie.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "record/jsonl.h"
#include "record/rundir.h"

struct stretch {
    off_t from, to;
};

struct repair {
    int fd;
    const char *name;
    jsonl_keep *keep;
    void *ctx;
    struct arena *arena;
    struct buf line;
    bool overlong;             /* the current line is beyond JSONL_LINE_MAX */
    off_t line_start, at;      /* offsets in the file */
    struct stretch *stretches; /* good ones, apart from each other */
    size_t count, cap;
    int64_t dropped;
    int64_t torn;
    bool unterminated; /* the last line is good but for its newline */
};

static void add_good(struct repair *r, off_t from, off_t to)
{
    if (r->count > 0 && r->stretches[r->count - 1].to == from) {
        r->stretches[r->count - 1].to = to;
        return;
    }
    if (r->count == r->cap) {
        r->cap = r->cap == 0 ? 16 : r->cap * 2;
        r->stretches = xrealloc(r->stretches, r->cap * sizeof *r->stretches);
    }
    r->stretches[r->count++] = (struct stretch) { from, to };
}

static bool line_is_good(struct repair *r)
{
    struct json *v;
    bool good = !r->overlong && json_parse(r->arena, buf_str(&r->line), NULL, &v, NULL) == 0 &&
                json_is(v, JSON_OBJECT) && r->keep(r->ctx, v, r->arena);
    arena_reset(r->arena);
    return good;
}

static void end_line(struct repair *r, bool terminated)
{
    if (line_is_good(r)) {
        add_good(r, r->line_start, r->at);
        r->unterminated = !terminated;
    } else if (terminated) {
        r->dropped++;
    } else {
        r->torn = r->at - r->line_start;
    }
    buf_reset(&r->line);
    r->overlong = false;
    r->line_start = r->at;
}

static void take_chunk(struct repair *r, struct str chunk)
{
    while (chunk.len > 0) {
        const char *newline = memchr(chunk.ptr, '\n', chunk.len);
        size_t len = newline != NULL ? (size_t)(newline - chunk.ptr) : chunk.len;
        r->overlong = r->overlong || buf_append(&r->line, str_slice(chunk, 0, len), NULL) < 0;
        r->at += (off_t)len + (newline != NULL);
        if (newline != NULL) {
            end_line(r, true);
            len++;
        }
        chunk = str_slice(chunk, len, chunk.len);
    }
}

static int read_lines(struct repair *r, struct err *e)
{
    char *chunk = xmalloc(64 << 10);
    ssize_t n;
    for (;;) {
        n = read(r->fd, chunk, 64 << 10);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        take_chunk(r, str_n(chunk, (size_t)n));
    }
    free(chunk);
    if (n < 0) {
        return ERR_SYS(e, "read '%s'", r->name);
    }
    if (r->at > r->line_start) {
        end_line(r, false);
    }
    return 0;
}

static int copy_stretch(struct repair *r, int to, struct stretch s, struct err *e)
{
    char chunk[16384];
    while (s.from < s.to) {
        size_t want = s.to - s.from < (off_t)sizeof chunk ? (size_t)(s.to - s.from) : sizeof chunk;
        ssize_t n = pread(r->fd, chunk, want, s.from);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return ERR_SYS(e, "read '%s'", r->name);
        }
        int result = file_write_all(to, str_n(chunk, (size_t)n), e);
        if (result < 0) {
            return result;
        }
        s.from += n;
    }
    return 0;
}

/* The same kind of temporary name as file_write_atomic uses: recovery sweeps both. */
static int write_anew(struct repair *r, const struct rundir *d, struct err *e)
{
    char id[ID_LEN];
    char *temp = arena_printf(r->arena, "%s.%s.tmp", r->name, id_new(id));
    CLEANUP(fd)
    int fd = openat(d->dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    int result = fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", temp) : 0;
    for (size_t i = 0; i < r->count && result == 0; i++) {
        result = copy_stretch(r, fd, r->stretches[i], e);
    }
    if (result == 0 && r->unterminated) {
        result = file_write_all(fd, STR("\n"), e);
    }
    if (result == 0 && renameat(d->dir_fd, temp, d->dir_fd, r->name) < 0) {
        result = ERR_SYS_AS(e, ERR_OUTPUT, "replace '%s'", r->name);
    }
    if (result < 0) {
        (void)unlinkat(d->dir_fd, temp, 0);
    }
    return result;
}

static int mend(struct repair *r, const struct rundir *d, struct err *e)
{
    off_t good = r->count > 0 ? r->stretches[0].to : 0;
    bool from_start = r->count == 0 || (r->count == 1 && r->stretches[0].from == 0);
    if (!from_start) {
        return write_anew(r, d, e);
    }
    if (good < r->at && ftruncate(r->fd, good) < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "cut '%s'", r->name);
    }
    if (r->unterminated) {
        /* The offset is at the end: that is where reading stopped, and nothing was cut off. */
        return file_write_all(r->fd, STR("\n"), e);
    }
    return 0;
}

int jsonl_repair(const struct rundir *d, const char *name, jsonl_keep *keep, void *ctx,
                 struct jsonl_damage *ret, struct err *e)
{
    CLEANUP(fd) int fd = openat(d->dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", name);
    }
    if (!S_ISREG(st.st_mode)) {
        return ERR(e, ERR_OUTPUT, "open '%s': not a regular file", name);
    }
    struct repair r = {
        .fd = fd,
        .name = name,
        .keep = keep,
        .ctx = ctx,
        .arena = arena_new(),
        .line = BUF_INIT(JSONL_LINE_MAX),
    };
    int result = read_lines(&r, e);
    if (result == 0) {
        result = mend(&r, d, e);
    }
    ret->torn_bytes += r.torn;
    ret->dropped_lines += r.dropped;
    r.arena = arena_free(r.arena);
    buf_done(&r.line);
    free(r.stretches);
    return result;
}
