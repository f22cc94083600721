/* SPDX-License-Identifier: MIT
 *
 * Program lookup. Like execvp(), a file that may not be executed does not end the search; unlike
 * it, what was wrong with that file is remembered and told if nothing better turns up.
 */
#include "proc/which.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* 0, or why this very file cannot be executed. */
static int check(const char *file, struct err *e)
{
    struct stat st;
    if (stat(file, &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return ERR(e, ERR_NOTFOUND, "program '%s' not found", file);
        }
        return ERR_SYS_AS(e, ERR_NOEXEC, "program '%s'", file);
    }
    if (S_ISDIR(st.st_mode)) {
        return ERR(e, ERR_NOEXEC, "'%s' is a directory, not a program", file);
    }
    if (!S_ISREG(st.st_mode)) {
        return ERR(e, ERR_NOEXEC, "'%s' is not a regular file", file);
    }
    if (access(file, X_OK) != 0) {
        return ERR(e, ERR_NOEXEC, "'%s' is not executable (chmod +x, or name its interpreter)",
                   file);
    }
    return 0;
}

static int search(const char *name, struct str path, const char *cwd, char out[PATH_MAX],
                  struct err *e)
{
    struct err best = { .code = ERR_OK };
    while (path.ptr != NULL) {
        struct str dir = str_split(&path, ':');
        char at[PATH_MAX];
        char file[PATH_MAX];
        /* An empty entry means the working directory. */
        int n = snprintf(at, sizeof at, "%.*s", STR_ARG(dir.len == 0 ? STR(".") : dir));
        if (n < 0 || (size_t)n >= sizeof at || path_join(at, name, file, sizeof file, NULL) < 0 ||
            path_join(cwd == NULL ? "" : cwd, file, out, PATH_MAX, NULL) < 0) {
            continue; /* longer than any path can be: it cannot exist */
        }
        struct err why;
        int rc = check(out, &why);
        if (rc == 0) {
            return 0;
        }
        if (rc != -ERR_NOTFOUND && best.code == ERR_OK) {
            best = why;
        }
    }
    if (best.code != ERR_OK) {
        if (e != NULL) {
            *e = best;
        }
        return -(int)best.code;
    }
    return ERR(e, ERR_NOTFOUND, "program '%s' not found in PATH", name);
}

int which_find(const char *name, const char *path, const char *cwd, char out[PATH_MAX],
               struct err *e)
{
    if (name[0] == '\0') {
        return ERR(e, ERR_NOTFOUND, "the name of the program is empty");
    }
    if (strchr(name, '/') == NULL) {
        return search(name, str_of(path == NULL || path[0] == '\0' ? DEFAULT_PATH : path), cwd, out,
                      e);
    }
    int rc = path_join(cwd == NULL ? "" : cwd, name, out, PATH_MAX, e);
    return rc < 0 ? rc : check(out, e);
}

static bool is_program_in(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    struct stat st;
    CLEANUP(fd) int fd = file_open_how(root, path, &how);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

int which_find_in(const char *root, const char *name, const char *path, char out[PATH_MAX],
                  struct err *e)
{
    struct str rest = str_of(path == NULL || path[0] == '\0' ? DEFAULT_PATH : path);
    CLEANUP(fd) int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "open the root '%s'", root);
    }
    if (name[0] == '/') {
        (void)snprintf(out, PATH_MAX, "%s", name);
        return is_program_in(dir, name)
                   ? 0
                   : ERR(e, ERR_NOTFOUND, "program '%s' is not in the image", name);
    }
    while (rest.ptr != NULL) {
        struct str at = str_split(&rest, ':');
        int n = snprintf(out, PATH_MAX, "%.*s/%s", STR_ARG(at), name);
        if (at.len > 0 && at.ptr[0] == '/' && n > 0 && n < PATH_MAX && is_program_in(dir, out)) {
            return 0;
        }
    }
    return ERR(e, ERR_NOTFOUND, "program '%s' not found in the PATH of the image", name);
}

const char *which_path(const char *const *envp)
{
    for (; envp != NULL && *envp != NULL; envp++) {
        if (strncmp(*envp, "PATH=", 5) == 0) {
            return *envp + 5;
        }
    }
    return NULL;
}
