/* SPDX-License-Identifier: MIT
 *
 * The plan: what cinch-init does before it executes one program, as data.
 *
 *  1. The supervisor writes it:  plan_begin(&b, e), plan_add_text(&b, PLAN_OP_EXE, "/bin/true", e),
 *     plan_add_text(&b, PLAN_OP_ARG, "true", e), plan_add_fd(&b, 0, STDIN_FILENO, e) …,
 *     plan_end(&b, e)
 *  2. and hands it over in a sealed memfd with a start command (init/control.h).
 *  3. cinch-init maps it and calls plan_open(), which checks every byte of it once; after that
 *     plan_next() walks the records and cannot fail.
 *
 * Format: a header (magic, version, total length, record count), then records in the order in which
 * they are carried out. A record is a head (operation, length) and a payload padded to 8 bytes.
 * Text payloads end in one NUL, so that the mapping itself serves as argv and environ. Numbers are
 * in host order: both ends always run on one kernel.
 *
 * To add an operation: append it to enum plan_op, give it a row in the table in plan.c, a writer,
 * and a case in program.c. Never renumber; raise PLAN_VERSION when an old helper would misread a
 * new plan.
 *
 * Reading needs base/err only (it is linked into the helper); the writers use base/buf.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct buf;

#define PLAN_MAGIC   0x4e4c5043u /* "CPLN" */
#define PLAN_VERSION 1u
/* The kernel takes at most 6 MiB of arguments and environment; a larger plan can only be a mistake.
 */
#define PLAN_MAX ((size_t)8 << 20)
/* Descriptors that may come along with one plan; far below the 253 that one message can carry. */
#define PLAN_FDS_MAX 16

enum plan_op {
    PLAN_OP_EXE = 1, /* text: path given to execve(); exactly once */
    PLAN_OP_ARG,     /* text: next argument; at least once (argv[0]) */
    PLAN_OP_ENV,     /* text: next "NAME=value" */
    PLAN_OP_CWD,     /* text: working directory; at most once */
    PLAN_OP_FD,      /* fd: descriptor number `slot` of the message becomes number `target` */
    PLAN_OP_UMASK,   /* mask */
    PLAN_OP_RLIMIT,  /* limit */
    PLAN_OP_MAX
};

struct plan_fd {
    uint32_t slot;   /* below PLAN_FDS_MAX */
    uint32_t target; /* 0, 1 or 2 */
};

struct plan_limit {
    uint32_t resource; /* RLIMIT_… */
    uint32_t reserved;
    uint64_t soft;
    uint64_t hard;
};

struct plan_record {
    enum plan_op op;
    const char *text; /* EXE, ARG, ENV, CWD: points into the plan */
    struct plan_fd fd;
    uint32_t mask;
    struct plan_limit limit;
};

/* A checked plan; borrows the bytes. */
struct plan {
    struct str bytes;
    const char *exe;
    uint32_t n_args;
    uint32_t n_envs;
    uint32_t n_fds; /* one more than the highest slot used */
    size_t at;      /* where plan_next() stands */
};

/* ERR_PROTO for anything that is not a complete, well-formed plan of this version. */
int plan_open(struct str bytes, struct plan *ret, struct err *e) MUST_USE;
/* The next record, false at the end. plan_rewind() starts over. */
bool plan_next(struct plan *p, struct plan_record *ret);
void plan_rewind(struct plan *p);

/* Writers: append to a buf that holds nothing else. ERR_LIMIT when the buf is full, ERR_USAGE for a
 * text with nothing in it where a name is needed. */
int plan_begin(struct buf *b, struct err *e) MUST_USE;
int plan_add_text(struct buf *b, enum plan_op op, const char *text, struct err *e) MUST_USE;
int plan_add_fd(struct buf *b, uint32_t slot, uint32_t target, struct err *e) MUST_USE;
int plan_add_umask(struct buf *b, uint32_t mask, struct err *e) MUST_USE;
int plan_add_limit(struct buf *b, uint32_t resource, uint64_t soft, uint64_t hard,
                   struct err *e) MUST_USE;
int plan_end(struct buf *b, struct err *e) MUST_USE;
