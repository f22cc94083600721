/* SPDX-License-Identifier: MIT
 *
 * Finding the helper binary.
 */
#include "proc/locate.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A program of ours that is not for users. */
struct own_program {
    const char *name;
    const char *variable;  /* that names it */
    const char *beside[3]; /* our own directory */
};

static const struct own_program init_program = {
    .name = "cinch-init",
    .variable = "CINCH_INIT",
    .beside = { "../libexec/cinch/cinch-init", "cinch-init", "../init/cinch-init" },
};
static const struct own_program unpack_program = {
    .name = "cinch-unpack",
    .variable = "CINCH_UNPACK",
    .beside = { "../libexec/cinch/cinch-unpack", "cinch-unpack", "../image/cinch-unpack" },
};

static const struct own_program tools_program = {
    .name = "cinch-tools",
    .variable = "CINCH_TOOLS",
    .beside = { "../libexec/cinch/cinch-tools", "cinch-tools", "../tools/cinch-tools" },
};

static bool usable(const char *path)
{
    return access(path, X_OK) == 0;
}

/* The directory of the running program, without a slash at the end. */
static bool own_dir(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0) {
        return false;
    }
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return true;
}

static int locate(const struct own_program *p, char out[PATH_MAX], struct err *e)
{
    const char *given = getenv(p->variable);
    if (given != NULL && given[0] != '\0') {
        if (strlen(given) >= PATH_MAX || !usable(given)) {
            return ERR(e, ERR_UNAVAILABLE, "%s names '%s', which is not a program", p->variable,
                       given);
        }
        (void)snprintf(out, PATH_MAX, "%s", given);
        return 0;
    }
    char dir[PATH_MAX];
    bool have_dir = own_dir(dir);
    for (size_t i = 0; have_dir && i < ARRAY_LEN(p->beside); i++) {
        int n = snprintf(out, PATH_MAX, "%s/%s", dir, p->beside[i]);
        if (n > 0 && n < PATH_MAX && usable(out)) {
            return 0;
        }
    }
    (void)snprintf(out, PATH_MAX, "%s/%s", CINCH_LIBEXECDIR, p->name);
    if (usable(out)) {
        return 0;
    }
    return ERR(e, ERR_UNAVAILABLE, "%s is neither near '%s' nor in '%s'; reinstall cinch or set %s",
               p->name, have_dir ? dir : "?", CINCH_LIBEXECDIR, p->variable);
}

int locate_init(char out[PATH_MAX], struct err *e)
{
    return locate(&init_program, out, e);
}

int locate_unpack(char out[PATH_MAX], struct err *e)
{
    return locate(&unpack_program, out, e);
}

int locate_tools(char out[PATH_MAX], struct err *e)
{
    return locate(&tools_program, out, e);
}

/* The helper that this process uses, from its first use on. */
static struct {
    pthread_mutex_t lock;
    int fd;               /* -1: none yet */
    char given[PATH_MAX]; /* CINCH_INIT at that time; "": it was not set */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* A script is opened once more by its interpreter, when the descriptor is closed already. */
static int open_program(const char *path)
{
    char start[2] = "";
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || pread(fd, start, 2, 0) != 2 || memcmp(start, "#!", 2) == 0 ? -1 : TAKE_FD(fd);
}

static bool name_kept(char out[PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, "/proc/self/fd/%d", kept.fd);
    return kept.fd >= 0 && usable(out);
}

int locate_init_kept(char out[PATH_MAX], struct err *e)
{
    const char *env = getenv("CINCH_INIT");
    const char *given = env == NULL || strlen(env) >= PATH_MAX ? "" : env;
    (void)pthread_mutex_lock(&kept.lock);
    bool same = kept.fd >= 0 && strcmp(kept.given, given) == 0;
    int rc = same && name_kept(out) ? 0 : locate_init(out, e);
    if (rc == 0 && !same) {
        char path[PATH_MAX];
        cleanup_fd(&kept.fd);
        kept.fd = open_program(out);
        (void)snprintf(kept.given, sizeof kept.given, "%s", given);
        if (name_kept(path)) {
            memcpy(out, path, sizeof path);
        }
    }
    (void)pthread_mutex_unlock(&kept.lock);
    return rc;
}

int locate_cinch(char out[PATH_MAX], struct err *e)
{
    const char *given = getenv("CINCH");
    if (given != NULL && given[0] == '/' && access(given, X_OK) == 0) {
        (void)snprintf(out, PATH_MAX, "%s", given);
        return 0;
    }
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n < 0 ? 0 : n] = '\0';
    const char *base = strrchr(out, '/');
    if (n <= 0 || base == NULL || strcmp(base, "/cinch") != 0) {
        return ERR(e, ERR_UNAVAILABLE, "the program cinch is not known: name it in CINCH");
    }
    return 0;
}
