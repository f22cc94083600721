/* SPDX-License-Identifier: MIT
 *
 * What the supervisor and cinch-init say to each other, over one SOCK_SEQPACKET pair: fixed
 * structs, one per message.
 *
 *   supervisor → keeper   struct control_command   start (with descriptors), signal, kill, cpu,
 *                                                  finish
 *   keeper → supervisor   struct control_status    started, start_failed, exited, cpu, empty,
 *                                                  finished …
 *   supervisor → holder   struct control_command   leave, hold, enter, slay, finish
 *   holder → supervisor   struct control_status    ready (with descriptors), refused, entered, gone
 *
 * The helper carries out commands in order, so `start` followed by `kill` needs no waiting in
 * between. End of file is a message too: the supervisor is gone, hence the tree must go.
 *
 * `id` numbers the programs that one keeper starts, and the keepers that one holder lets in,
 * beginning with 1; signal, kill, cpu and finish speak of all and carry 0.
 *
 * control_send_…() and control_recv_…() work on blocking sockets (helper) and on non-blocking ones
 * (supervisor). Whatever arrives is checked: size, type, ends of texts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The number at which the helper finds its end of the socket. */
#define CONTROL_FD 3

/* Left-over processes that are named; more than that are only counted. */
#define CONTROL_NAMES_MAX 16
#define CONTROL_NAME_LEN  16 /* of the kernel's comm, NUL included */

enum control_command_type {
    CONTROL_START = 1, /* descriptors: the plan in a memfd, then those that the plan refers to */
    CONTROL_SIGNAL,    /* `signo` to every process of the tree */
    CONTROL_KILL,      /* SIGKILL to the tree until nothing is left of it */
    CONTROL_CPU,       /* asks for one CONTROL_STATUS_CPU */
    CONTROL_FINISH,    /* kill what is left, report it, exit */
    /* To a holder. */
    CONTROL_LEAVE, /* descriptor: a plan of kind VIEW, its beginning; first, at most once */
    CONTROL_HOLD,  /* descriptor: a plan of kind VIEW, or the rest of it; once */
    CONTROL_ENTER, /* descriptors: a plan of kind ENTRY, the control socket of the new keeper, then
                      those that the plan refers to */
    CONTROL_SLAY,  /* SIGKILL to keeper `id`, hence to all that it keeps */
    CONTROL_COMMAND_MAX
};

struct control_command {
    uint32_t type;
    uint32_t id;
    int32_t signo;
    uint32_t reserved;
};

enum control_status_type {
    CONTROL_STATUS_STARTED = 1,  /* pid */
    CONTROL_STATUS_START_FAILED, /* error */
    CONTROL_STATUS_EXITED,       /* exit: the program itself; its descendants may live on */
    CONTROL_STATUS_CPU,          /* cpu */
    CONTROL_STATUS_EMPTY,        /* no process is left; sent once after the last program's end */
    CONTROL_STATUS_ERROR,        /* error: something the helper could not do; it goes on */
    CONTROL_STATUS_FINISHED,     /* finished: the helper exits now */
    CONTROL_STATUS_READY,        /* the view stands; descriptors: in the order of the plan */
    CONTROL_STATUS_REFUSED,      /* refused: a plan could not be carried out; a keeper exits now */
    CONTROL_STATUS_ENTERED,      /* pid: a keeper is on its way */
    CONTROL_STATUS_GONE,         /* exit: a keeper and all that it kept are dead */
    CONTROL_STATUS_MAX
};

/* What getrusage() tells, in plain units. */
struct control_usage {
    int64_t user_ns;
    int64_t system_ns;
    int64_t max_rss_kib; /* of the largest single process */
    int64_t minor_faults;
    int64_t major_faults;
    int64_t blocks_in;
    int64_t blocks_out;
    int64_t switches_voluntary;
    int64_t switches_involuntary;
};

struct control_exit {
    int32_t pid;
    int32_t signaled; /* 0: value is an exit code; 1: value is a signal number */
    int32_t value;
    int32_t reserved;
    struct control_usage usage; /* the program and what it waited for */
};

struct control_cpu {
    int64_t ns;        /* CPU time of the tree: the living and the ones already reaped */
    int64_t processes; /* living ones */
    int64_t memory;    /* bytes in use of their own, without what they share with files */
};

struct control_finished {
    uint32_t leaked; /* processes that were alive although the program was gone */
    uint32_t stuck;  /* processes that did not die within the bound (uninterruptible sleep) */
    uint32_t n_names;
    char names[CONTROL_NAMES_MAX][CONTROL_NAME_LEN];
    struct control_usage usage; /* of the whole tree */
};

/* struct err without its pointer, which would mean nothing on the other side. */
struct control_err {
    int32_t code;
    int32_t sys;
    int32_t line;
    char msg[sizeof((struct err *)NULL)->msg];
};

/* Which operation of a plan failed, and with what number, so that the supervisor can tell what
 * this machine lacks. */
struct control_refused {
    uint32_t op;
    uint32_t number; /* of an overlay: its mode */
    struct control_err error;
};

struct control_status {
    uint32_t type;
    uint32_t id;
    union {
        int32_t pid;
        struct control_err error;
        struct control_exit exit;
        struct control_cpu cpu;
        struct control_finished finished;
        struct control_refused refused;
    };
};

/* The plan, a socket, and what the plan refers to. */
#define CONTROL_FDS_MAX 18

/* Results of receiving, besides -code. */
enum control_recv { CONTROL_RECV_NOTHING, CONTROL_RECV_MESSAGE, CONTROL_RECV_EOF };

int control_send_command(int sock, const struct control_command *c, const int *fds, size_t n_fds,
                         struct err *e) MUST_USE;
/* Descriptors that came along go to fds (room for `max`), CLOEXEC, and belong to the caller. */
int control_recv_command(int sock, struct control_command *ret, int *fds, size_t max,
                         size_t *ret_n_fds, struct err *e) MUST_USE;
int control_send_status(int sock, const struct control_status *s, struct err *e) MUST_USE;
int control_recv_status(int sock, struct control_status *ret, struct err *e) MUST_USE;
/* The same with descriptors. */
int control_send_status_fds(int sock, const struct control_status *s, const int *fds, size_t n_fds,
                            struct err *e) MUST_USE;
int control_recv_status_fds(int sock, struct control_status *ret, int *fds, size_t max,
                            size_t *ret_n_fds, struct err *e) MUST_USE;

/* The checks alone. */
bool control_command_ok(const struct control_command *c);
bool control_status_ok(const struct control_status *s);

void control_err_from(struct control_err *to, const struct err *from);
void control_err_to(const struct control_err *from, struct err *to);
