/* SPDX-License-Identifier: MIT
 *
 * From the redactor's pieces to one writev(2); see logfile.h.
 */
#include "record/logfile.h"

#include <errno.h>
#include <unistd.h>

#include "record/rundir.h"
#include "record/write_errors.h"

static size_t pieces_len(const struct logfile *l, int from)
{
    size_t len = 0;
    for (int i = from; i < l->piece_count; i++) {
        len += l->pieces[i].iov_len;
    }
    return len;
}

static void write_pieces(struct logfile *l)
{
    int from = 0;
    while (from < l->piece_count) {
        ssize_t n = writev(l->fd, &l->pieces[from], l->piece_count - from);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            struct err e;
            (void)ERR_SYS_AS(&e, ERR_OUTPUT, "write '%s'", l->name);
            loss_note(l->loss, l->name, &e, pieces_len(l, from), 0);
            break;
        }
        l->written += (uint64_t)n;
        size_t done = (size_t)n;
        while (from < l->piece_count && done >= l->pieces[from].iov_len) {
            done -= l->pieces[from++].iov_len;
        }
        if (done > 0) {
            l->pieces[from].iov_base = (char *)l->pieces[from].iov_base + done;
            l->pieces[from].iov_len -= done;
        }
    }
    l->piece_count = 0;
}

static void gather(void *ctx, struct str piece)
{
    struct logfile *l = ctx;
    if (l->piece_count == (int)ARRAY_LEN(l->pieces)) {
        write_pieces(l);
    }
    l->pieces[l->piece_count++] =
        (struct iovec) { .iov_base = (void *)(uintptr_t)piece.ptr, .iov_len = piece.len };
}

int logfile_init(struct logfile *l, const struct rundir *d, const char *name,
                 const struct redactor *r, struct loss *loss, struct err *e)
{
    *l = (struct logfile) { .fd = -1, .name = name, .loss = loss };
    redact_stream_init(&l->stream, r, gather, l);
    l->fd = rundir_open_append(d, name, e);
    return l->fd < 0 ? l->fd : 0;
}

void logfile_write(struct logfile *l, struct str bytes)
{
    l->received += bytes.len;
    redact_stream_feed(&l->stream, bytes);
    write_pieces(l);
}

void logfile_flush(struct logfile *l)
{
    redact_stream_flush(&l->stream);
    write_pieces(l);
}

void logfile_done(struct logfile *l)
{
    cleanup_fd(&l->fd);
    redact_stream_done(&l->stream);
}
