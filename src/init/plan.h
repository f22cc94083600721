/* SPDX-License-Identifier: MIT
 *
 * The plan: what cinch-init does, as data. There are three kinds:
 *
 *   PLAN_PROGRAM   how one program is started: arguments, environment, descriptors, limits
 *   PLAN_VIEW      how the namespaces of a sandbox are set up, once, by its holder
 *   PLAN_ENTRY     how a keeper enters them: mounts of its own, who it becomes, and what is done
 *                  to every program that it starts (limits, Landlock, system call filter)
 *
 *  1. The supervisor writes it:  plan_begin(&b, PLAN_PROGRAM, e),
 *     plan_add_text(&b, PLAN_OP_EXE, "/bin/true", e), plan_add_text(&b, PLAN_OP_ARG, "true", e),
 *     plan_add_fd(&b, 0, STDIN_FILENO, e) …, plan_end(&b, e)
 *  2. and hands it over in a sealed memfd with a command (init/control.h).
 *  3. cinch-init maps it and calls plan_open(), which checks every byte of it once; after that
 *     plan_next() walks the records and cannot fail.
 *
 * Format: a header (magic, version, kind, total length, record count), then records in the order
 * in which they are carried out. A record is a head (operation, length) and a payload padded to 8
 * bytes. Text payloads end in one NUL, so that the mapping itself serves as argv and environ.
 * Numbers are in host order: both ends always run on one kernel.
 *
 * To add an operation: append it to PLAN_OPS, write a writer if its payload is new, and a case in
 * the file that carries it out (program.c, view.c, entry.c, seal.c). Never renumber; raise
 * PLAN_VERSION when an old helper would misread a new plan.
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
#define PLAN_VERSION 2u
/* The kernel takes at most 6 MiB of arguments and environment; a larger plan can only be a mistake.
 */
#define PLAN_MAX ((size_t)8 << 20)
/* Descriptors that may come along with one plan; far below the 253 that one message can carry. */
#define PLAN_FDS_MAX 16
/* Directories that a view passes out. */
#define PLAN_PASS_MAX 8

enum plan_kind { PLAN_PROGRAM = 1, PLAN_VIEW, PLAN_ENTRY, PLAN_KIND_MAX };

/* Which kinds of plan may hold an operation. */
#define PLAN_IN_P  (1u << PLAN_PROGRAM)
#define PLAN_IN_V  (1u << PLAN_VIEW)
#define PLAN_IN_E  (1u << PLAN_ENTRY)
#define PLAN_IN_VE (PLAN_IN_V | PLAN_IN_E)
#define PLAN_IN_PE (PLAN_IN_P | PLAN_IN_E)

/* X(operation, name, payload, kinds) */
#define PLAN_OPS(X)                                                                              \
    X(PLAN_OP_EXE, "exe", TEXT, PLAN_IN_P)          /* path given to execve(); exactly once */   \
    X(PLAN_OP_ARG, "arg", TEXT_OR_EMPTY, PLAN_IN_P) /* next argument; at least one */            \
    X(PLAN_OP_ENV, "env", TEXT, PLAN_IN_P)          /* next "NAME=value" */                      \
    X(PLAN_OP_CWD, "cwd", TEXT, PLAN_IN_P)          /* working directory; at most once */        \
    X(PLAN_OP_FD, "fd", FD, PLAN_IN_P)              /* descriptor `slot` becomes `target` */     \
    X(PLAN_OP_UMASK, "umask", MASK, PLAN_IN_PE)                                                  \
    X(PLAN_OP_RLIMIT, "rlimit", LIMIT, PLAN_IN_PE)                                               \
    /* namespaces */                                                                             \
    X(PLAN_OP_NAMESPACES, "namespaces", NUMBER, PLAN_IN_V) /* unshare() of CLONE_NEW… */       \
    X(PLAN_OP_MAP, "map", IDS, PLAN_IN_V)                  /* of the new user namespace */       \
    X(PLAN_OP_HOSTNAME, "hostname", TEXT, PLAN_IN_V)                                             \
    X(PLAN_OP_LOOPBACK, "loopback", NUMBER, PLAN_IN_V) /* up; the number means nothing */        \
    X(PLAN_OP_LISTEN, "listen", NUMBER, PLAN_IN_V)     /* on 127.0.0.1:number; passed out */     \
    /* files. ROOT comes before all others, CLOSE_ROOT after those that look outside */          \
    X(PLAN_OP_ROOT, "root", SIZE, PLAN_IN_V)         /* an empty tmpfs becomes "/" */            \
    X(PLAN_OP_TMPFS, "tmpfs", SIZE, PLAN_IN_VE)      /* at `to` */                               \
    X(PLAN_OP_DIR, "dir", PATHS, PLAN_IN_VE)         /* `to`, `mode` */                          \
    X(PLAN_OP_SYMLINK, "symlink", PATHS, PLAN_IN_V)  /* `to` points to `from` */                 \
    X(PLAN_OP_FILE, "file", FILE, PLAN_IN_V)         /* `to`, `mode`, `bytes` */                 \
    X(PLAN_OP_BIND, "bind", PATHS, PLAN_IN_VE)       /* `from` appears at `to` */                \
    X(PLAN_OP_OVERLAY, "overlay", PATHS, PLAN_IN_VE) /* at `to`; `from`: options; `mode`: any */ \
    X(PLAN_OP_MASK, "mask", PATHS, PLAN_IN_VE)       /* nothing can be read at `to` any more */  \
    X(PLAN_OP_DEVPTS, "devpts", PATHS, PLAN_IN_V)    /* at `to` */                               \
    X(PLAN_OP_CLOSE_ROOT, "close_root", NUMBER, PLAN_IN_V) /* host out of sight, "/" fixed */    \
    X(PLAN_OP_PASS, "pass", TEXT, PLAN_IN_V) /* a directory whose fd is passed out */            \
    /* entering */                                                                               \
    X(PLAN_OP_JOIN, "join", NUMBER, PLAN_IN_E)      /* a cgroup: cgroup.procs is fd `number` */  \
    X(PLAN_OP_PROC, "proc", NUMBER, PLAN_IN_E)      /* /proc of the new pid namespace; 1: rw */  \
    X(PLAN_OP_HIDE, "hide", TEXT, PLAN_IN_E)        /* takes a mount away */                     \
    X(PLAN_OP_IDENTITY, "identity", IDS, PLAN_IN_E) /* who the keeper and its programs are */    \
    /* for every program */                                                                      \
    X(PLAN_OP_LANDLOCK, "landlock", RULESET, PLAN_IN_E) /* what is governed; rules follow */     \
    X(PLAN_OP_LANDLOCK_RULE, "landlock_rule", RULE, PLAN_IN_E) /* `access` below `to` */         \
    X(PLAN_OP_SECCOMP, "seccomp", PROGRAM, PLAN_IN_E) /* `bytes` are struct sock_filter */       \
    /* no link on the way to any later `to` is followed: the view shows a foreign tree */        \
    X(PLAN_OP_NO_LINKS, "no_links", NUMBER, PLAN_IN_V)

enum plan_op {
    PLAN_OP_NONE,
#define X(op, name, payload, kinds) op,
    PLAN_OPS(X)
#undef X
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

/* PLAN_OP_MAP: inside is shown for outside. PLAN_OP_IDENTITY: become outside (unless PLAN_KEEP),
 * then, in a user namespace of its own (unless PLAN_PLAIN), be shown as inside. */
struct plan_ids {
    uint32_t outside_uid, outside_gid;
    uint32_t inside_uid, inside_gid;
    uint32_t flags;
    uint32_t reserved;
};

enum plan_ids_flags {
    PLAN_KEEP = 1u << 0,  /* outside ids are what they are */
    PLAN_PLAIN = 1u << 1, /* no user namespace */
    PLAN_IDS_ALL = PLAN_KEEP | PLAN_PLAIN,
};

enum plan_path_flags {
    PLAN_WRITABLE = 1u << 0,  /* BIND: else read-only */
    PLAN_OPTIONAL = 1u << 1,  /* BIND, MASK: nothing there is no failure */
    PLAN_INSIDE = 1u << 2,    /* BIND: `from` is a path in the new root */
    PLAN_SHIFT = 1u << 3,     /* BIND: uid and gid of the disk appear as host_uid, host_gid */
    PLAN_SHALLOW = 1u << 4,   /* BIND: without what is mounted below */
    PLAN_DEVICE = 1u << 5,    /* BIND: device nodes work */
    PLAN_SHIFT_TRY = 1u << 6, /* PLAN_SHIFT if the file system can, else without */
    PLAN_MAKE_DIR = 1u << 7,  /* BIND: make a missing `from` (with PLAN_INSIDE) */
    PLAN_PATH_ALL = (1u << 8) - 1,
};

/* As `gid` and `host_gid` with PLAN_SHIFT: no group of the disk is shown. The kernel then refuses
 * to write to any file there, sockets and FIFOs included, for which a read-only mount is not
 * enough. */
#define PLAN_NO_GROUP UINT32_MAX

struct plan_paths {
    uint32_t flags;
    uint32_t mode;
    uint32_t uid, gid; /* PLAN_SHIFT: on disk */
    uint32_t host_uid, host_gid;
};

struct plan_size {
    uint64_t bytes;
    uint64_t inodes;
};

struct plan_ruleset {
    uint64_t fs, net, scope;
};

struct plan_record {
    enum plan_op op;
    const char *text; /* EXE, ARG, ENV, CWD …: points into the plan, as all pointers here */
    const char *from;
    const char *to;
    struct str bytes;
    uint32_t number;
    uint32_t mask;
    uint64_t access;
    struct plan_fd fd;
    struct plan_limit limit;
    struct plan_ids ids;
    struct plan_paths paths;
    struct plan_size size;
    struct plan_ruleset ruleset;
};

/* A checked plan; borrows the bytes. */
struct plan {
    struct str bytes;
    enum plan_kind kind;
    const char *exe;
    uint32_t n_args;
    uint32_t n_envs;
    uint32_t n_fds; /* one more than the highest slot used */
    size_t at;      /* where plan_next() stands */
};

/* ERR_PROTO for anything that is not a complete, well-formed plan of this version and kind. */
int plan_open(struct str bytes, enum plan_kind kind, struct plan *ret, struct err *e) MUST_USE;
/* The next record, false at the end. plan_rewind() starts over. */
bool plan_next(struct plan *p, struct plan_record *ret);
void plan_rewind(struct plan *p);

/* Writers: append to a buf that holds nothing else. ERR_LIMIT when the buf is full, ERR_USAGE for a
 * text with nothing in it where a name is needed. */
int plan_begin(struct buf *b, enum plan_kind kind, struct err *e) MUST_USE;
int plan_add_text(struct buf *b, enum plan_op op, const char *text, struct err *e) MUST_USE;
int plan_add_fd(struct buf *b, uint32_t slot, uint32_t target, struct err *e) MUST_USE;
int plan_add_umask(struct buf *b, uint32_t mask, struct err *e) MUST_USE;
int plan_add_limit(struct buf *b, uint32_t resource, uint64_t soft, uint64_t hard,
                   struct err *e) MUST_USE;
int plan_add_number(struct buf *b, enum plan_op op, uint32_t number, struct err *e) MUST_USE;
int plan_add_ids(struct buf *b, enum plan_op op, const struct plan_ids *ids,
                 struct err *e) MUST_USE;
int plan_add_size(struct buf *b, enum plan_op op, const struct plan_size *size, const char *to,
                  struct err *e) MUST_USE;
int plan_add_paths(struct buf *b, enum plan_op op, const struct plan_paths *p, const char *from,
                   const char *to, struct err *e) MUST_USE;
int plan_add_file(struct buf *b, const char *to, uint32_t mode, struct str content,
                  struct err *e) MUST_USE;
int plan_add_ruleset(struct buf *b, const struct plan_ruleset *r, struct err *e) MUST_USE;
int plan_add_rule(struct buf *b, uint64_t access, const char *to, struct err *e) MUST_USE;
int plan_add_seccomp(struct buf *b, struct str program, struct err *e) MUST_USE;
int plan_end(struct buf *b, struct err *e) MUST_USE;
/* The finished bytes in a memfd that nobody can change any more. */
int plan_seal(struct str plan, int *ret_fd, struct err *e) MUST_USE;
