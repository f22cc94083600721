/* SPDX-License-Identifier: MIT
 *
 * struct logfile: stdout.log, stderr.log, agent.log. Bytes go through the redactor and into the
 * file as they arrive, one writev(2) per call, nothing buffered but what may be the beginning of a
 * secret.
 *
 *   logfile_init(&log, &dir, "stdout.log", redactor, &loss, e);
 *   logfile_write(&log, chunk);   …   logfile_flush(&log);   …   logfile_done(&log);
 *
 * A write that fails (disk full, quota, RLIMIT_FSIZE) loses those bytes, notes it in `loss` and
 * never stops the caller; a later write is tried again. The caller must ignore SIGXFSZ.
 */
#pragma once

#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/str.h"
#include "record/redact.h"

struct loss;
struct rundir;

struct logfile {
    int fd;
    const char *name;
    struct loss *loss;
    struct redact_stream stream;
    struct iovec pieces[64];
    int piece_count;
    uint64_t received; /* bytes given to logfile_write */
    uint64_t written;  /* bytes that reached the file */
};

/* `name` must be a static string; `r` may be NULL; both pointers are borrowed. */
int logfile_init(struct logfile *l, const struct rundir *d, const char *name,
                 const struct redactor *r, struct loss *loss, struct err *e) MUST_USE;
void logfile_write(struct logfile *l, struct str bytes);
void logfile_flush(struct logfile *l); /* also what is held back: call when the stream has ended */
void logfile_done(struct logfile *l);  /* idempotent; does not flush */
