/* SPDX-License-Identifier: MIT
 *
 * Looks at the file that execve() refused and says what is wrong with it. Runs between vfork() and
 * _exit(), so it neither allocates nor keeps anything.
 */
#include "init/exec_error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel looks at this many bytes of a script's first line. */
#define SHEBANG_MAX 256

/* The first bytes of the file, NUL-terminated; empty when they cannot be read. */
static size_t first_bytes(const char *path, char out[SHEBANG_MAX + 1])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, out, SHEBANG_MAX);
    if (fd >= 0) {
        (void)close(fd);
    }
    out[n < 0 ? 0 : n] = '\0';
    return n < 0 ? 0 : (size_t)n;
}

/* Cuts "#! /usr/bin/env python3" down to "/usr/bin/env", in place; NULL when it is no script. */
static const char *interpreter(char *text)
{
    if (text[0] != '#' || text[1] != '!') {
        return NULL;
    }
    char *start = text + 2 + strspn(text + 2, " \t");
    start[strcspn(start, " \t\r\n")] = '\0';
    return start;
}

static int missing(const char *path, struct err *e)
{
    struct stat st;
    char text[SHEBANG_MAX + 1];
    if (stat(path, &st) != 0) {
        return ERR(e, ERR_NOTFOUND, "program '%s' not found", path);
    }
    (void)first_bytes(path, text);
    /* "#!/bin/sh\r": the carriage return is part of the name for the kernel, and invisible to
     * people. */
    size_t line = strcspn(text, "\n");
    bool dos = line > 0 && text[line] == '\n' && text[line - 1] == '\r';
    const char *by = interpreter(text);
    if (by != NULL && dos) {
        return ERR(e, ERR_NOEXEC,
                   "'%s' cannot be executed: its first line ends in a carriage return", path);
    }
    if (by != NULL) {
        return ERR(e, ERR_NOEXEC, "'%s' cannot be executed: its interpreter '%s' does not exist",
                   path, by);
    }
    return ERR(e, ERR_NOEXEC,
               "'%s' cannot be executed: its loader does not exist here (built for another C "
               "library or machine)",
               path);
}

static int denied(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        errno = EACCES;
        return ERR_SYS_AS(e, ERR_NOEXEC, "execute '%s'", path);
    }
    if (S_ISDIR(st.st_mode)) {
        return ERR(e, ERR_NOEXEC, "'%s' is a directory, not a program", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return ERR(e, ERR_NOEXEC, "'%s' is not a regular file", path);
    }
    if (access(path, X_OK) != 0) {
        return ERR(e, ERR_NOEXEC, "'%s' is not executable (chmod +x, or name its interpreter)",
                   path);
    }
    return ERR(
        e, ERR_NOEXEC,
        "'%s' may not be executed: its interpreter is not executable, or a policy forbids it",
        path);
}

static int bad_format(const char *path, struct err *e)
{
    char text[SHEBANG_MAX + 1];
    size_t n = first_bytes(path, text);
    if (n >= 4 && memcmp(text, "\177ELF", 4) == 0) {
        return ERR(e, ERR_NOEXEC, "'%s' was built for another machine", path);
    }
    if (n == 0) {
        return ERR(e, ERR_NOEXEC, "'%s' is empty", path);
    }
    return ERR(e, ERR_NOEXEC, "'%s' is neither a program nor a script that starts with '#!'", path);
}

int exec_error(const char *path, int sys, struct err *e)
{
    int rc;
    switch (sys) {
    case ENOENT:
    case ENOTDIR:
        rc = missing(path, e);
        break;
    case EACCES:
    case EPERM:
        rc = denied(path, e);
        break;
    case ENOEXEC:
        rc = bad_format(path, e);
        break;
    case ELOOP:
        rc = ERR(
            e, ERR_NOEXEC,
            "'%s' goes through too many symbolic links, or back to itself: name the program itself",
            path);
        break;
    case ETXTBSY:
    case ELIBBAD:
        errno = sys;
        rc = ERR_SYS_AS(e, ERR_NOEXEC, "execute '%s'", path);
        break;
    case E2BIG:
        rc = ERR(e, ERR_LIMIT,
                 "execute '%s': arguments and environment are too long; pass the text as a file",
                 path);
        break;
    default:
        errno = sys;
        rc = ERR_SYS(e, "execute '%s'", path);
        break;
    }
    if (e != NULL) {
        e->sys = sys;
    }
    return rc;
}
