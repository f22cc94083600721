/* SPDX-License-Identifier: MIT
 *
 * The few macros of the house: scope clean-up, hand-over, arrays. None hides control flow.
 */
#pragma once

#include <stddef.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* CLEANUP(fd) int fd = -1; CLEANUP(buf) struct buf b = …: runs cleanup_fd(), cleanup_buf() … at
 * the end of the scope. Each module that offers one defines `cleanup_<name>(T *)`. */
#define CLEANUP(name) __attribute__((cleanup(cleanup_##name)))

/* Move an owned pointer or descriptor out of a variable that has a clean-up. */
#define TAKE_PTR(p)                     \
    ({                                  \
        __typeof__(p) taken_ptr_ = (p); \
        (p) = NULL;                     \
        taken_ptr_;                     \
    })
#define TAKE_FD(fd)           \
    ({                        \
        int taken_fd_ = (fd); \
        (fd) = -1;            \
        taken_fd_;            \
    })

static inline void cleanup_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}
