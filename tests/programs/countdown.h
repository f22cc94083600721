/* SPDX-License-Identifier: MIT
 *
 * Death at a known place: with `countdown` set to n, the n-th call that changes a file is the last
 * thing the process does. For programs linked with -Wl,--wrap=NAME for each COUNTED(NAME …).
 */
#pragma once

#include <signal.h>
#include <unistd.h>

static long countdown = -1; /* below 0: not armed */

static void countdown_step(void)
{
    if (countdown > 0 && --countdown == 0) {
        (void)kill(getpid(), SIGKILL);
        (void)pause();
    }
}

/* The linker sends the calls here. */
#define COUNTED(name, parameters, arguments) \
    int __real_##name parameters;            \
    int __wrap_##name parameters;            \
    int __wrap_##name parameters             \
    {                                        \
        countdown_step();                    \
        return __real_##name arguments;      \
    }

#define COUNTED_RENAMEAT \
    COUNTED(renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
#define COUNTED_MKDIRAT  COUNTED(mkdirat, (int a, const char *b, mode_t c), (a, b, c))
#define COUNTED_UNLINKAT COUNTED(unlinkat, (int a, const char *b, int c), (a, b, c))
#define COUNTED_LINKAT \
    COUNTED(linkat, (int a, const char *b, int c, const char *d, int f), (a, b, c, d, f))
#define COUNTED_SYMLINKAT COUNTED(symlinkat, (const char *a, int b, const char *c), (a, b, c))
#define COUNTED_FCHMODAT  COUNTED(fchmodat, (int a, const char *b, mode_t c, int d), (a, b, c, d))
#define COUNTED_UTIMENSAT \
    COUNTED(utimensat, (int a, const char *b, const struct timespec c[2], int d), (a, b, c, d))

#define COUNTED_ALL   \
    COUNTED_RENAMEAT  \
    COUNTED_MKDIRAT   \
    COUNTED_UNLINKAT  \
    COUNTED_LINKAT    \
    COUNTED_SYMLINKAT \
    COUNTED_FCHMODAT  \
    COUNTED_UTIMENSAT
