/* SPDX-License-Identifier: MIT
 *
 * struct err: why something could not be done.
 *
 *  1. A function that can fail returns int: 0 (or a count, if its header says so) on success, -code
 *     on failure, and takes `struct err *e` last. `e` may be NULL; it is untouched on success.
 *  2. The place that fails fills it:   return ERR(e, ERR_PARSE, "line %zu: expected object", n);
 *     or, right after a system call:   return ERR_SYS(e, "open '%s'", path);
 *  3. Callers add context:             return err_wrap(e, "adapter '%s'", name);
 *  4. Only cli prints, only the run record stores.
 *
 * Message grammar: lower case, no full stop, what failed first, names in single quotes, then what
 * to do if that is not obvious. The struct has a fixed size and no pointers that need release, so
 * it can be written through a pipe as it is.
 *
 * Failures of the agent are not errors of ours: its exit code is an outcome, kept in the result.
 */
#pragma once

#include <stdarg.h>

#include "base/macro.h"

/* X(code, word, exit status of the program, meaning). The word is what the record and --format json
 * show; the exit status is the native profile of `cinch run`. */
#define ERR_LIST(X)                                                                   \
    X(ERR_OK, "ok", 0, "no error")                                                    \
    X(ERR_SYS, "system", 70, "a system call failed")                                  \
    X(ERR_USAGE, "usage", 64, "wrong command line")                                   \
    X(ERR_CONFIG, "config", 65, "invalid task, profile or configuration")             \
    X(ERR_PARSE, "parse", 65, "input does not parse")                                 \
    X(ERR_INPUT, "missing_input", 66, "an input file or directory is missing")        \
    X(ERR_UNAVAILABLE, "unavailable", 69, "adapter or engine unavailable")            \
    X(ERR_OUTPUT, "cannot_write_output", 73, "the output directory cannot be used")   \
    X(ERR_SECRET, "secret_missing", 77, "a secret or credential is missing")          \
    X(ERR_NOEXEC, "not_executable", 126, "the program exists but cannot be executed") \
    X(ERR_NOTFOUND, "not_found", 127, "the program was not found")                    \
    X(ERR_PROTO, "protocol", 70, "the peer broke the protocol")                       \
    X(ERR_LIMIT, "limit", 70, "a size or depth limit was reached")                    \
    X(ERR_TIMEOUT, "timeout", 124, "a deadline passed")                               \
    X(ERR_CANCELLED, "cancelled", 130, "cancelled")                                   \
    X(ERR_DENIED, "denied", 1, "denied by policy")                                    \
    X(ERR_EXISTS, "exists", 73, "something is in the way")                            \
    X(ERR_UNSUPPORTED, "unsupported", 69, "not supported here")                       \
    X(ERR_UPSTREAM, "upstream", 75, "the provider failed")                            \
    X(ERR_BUDGET, "budget", 78, "the budget is used up")                              \
    X(ERR_BUG, "internal", 70, "a bug in cinch")

enum err_code {
#define X(code, word, exit, text) code,
    ERR_LIST(X)
#undef X
        ERR_CODE_MAX
};

struct err {
    enum err_code code;
    int sys;          /* errno where a system call was the cause, else 0 */
    const char *file; /* source position of the ERR(); static string */
    int line;
    char msg[480];
};

#define ERR(e, code, ...) err_set((e), (code), 0, __FILE__, __LINE__, __VA_ARGS__)
#define ERR_SYS(e, ...)   err_sys((e), ERR_SYS, __FILE__, __LINE__, __VA_ARGS__)
/* As ERR_SYS, under another category: ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", dir). */
#define ERR_SYS_AS(e, c, ...) err_sys((e), (c), __FILE__, __LINE__, __VA_ARGS__)

/* All return -code. err_sys() appends ": " and the text of errno. */
int err_set(struct err *e, enum err_code code, int sys, const char *file, int line, const char *fmt,
            ...) PRINTF_LIKE(6, 7);
int err_sys(struct err *e, enum err_code code, const char *file, int line, const char *fmt, ...)
    PRINTF_LIKE(5, 6);

/* Prefixes the message with "context: "; keeps the code; returns -code. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* "timeout", "usage", …; "internal" for a value out of range. */
const char *err_word(enum err_code code);
const char *err_meaning(enum err_code code);
int err_exit_status(enum err_code code);
