/* SPDX-License-Identifier: MIT
 *
 * Finding the helper binary.
 */
#include "proc/locate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const beside[] = {
    "../libexec/cinch/cinch-init",
    "cinch-init",
    "../init/cinch-init",
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

int locate_init(char out[PATH_MAX], struct err *e)
{
    const char *given = getenv("CINCH_INIT");
    if (given != NULL && given[0] != '\0') {
        if (strlen(given) >= PATH_MAX || !usable(given)) {
            return ERR(e, ERR_UNAVAILABLE, "CINCH_INIT names '%s', which is not a program", given);
        }
        (void)snprintf(out, PATH_MAX, "%s", given);
        return 0;
    }
    char dir[PATH_MAX];
    bool have_dir = own_dir(dir);
    for (size_t i = 0; have_dir && i < ARRAY_LEN(beside); i++) {
        int n = snprintf(out, PATH_MAX, "%s/%s", dir, beside[i]);
        if (n > 0 && n < PATH_MAX && usable(out)) {
            return 0;
        }
    }
    (void)snprintf(out, PATH_MAX, "%s", CINCH_LIBEXECDIR "/cinch-init");
    if (usable(out)) {
        return 0;
    }
    return ERR(e, ERR_UNAVAILABLE,
               "cinch-init is neither near '%s' nor in '%s'; reinstall cinch or set CINCH_INIT",
               have_dir ? dir : "?", CINCH_LIBEXECDIR);
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
