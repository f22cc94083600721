/* SPDX-License-Identifier: MIT
 *
 * The layer over a shared home, and what of it outlives the run.
 */
#include "run/shared_home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "config/login.h"
#include "run/harness_session.h"
#include "run/run_priv.h"

#define WORK SHARED_HOME_LAYER "/work"

/* The root of an overlay has the attributes of its upper directory; where root starts the run,
 * both directories must belong to the owner whose files are shown as the agent's. */
static int dress_layer(struct run *run, const char *home, struct err *e)
{
    static const char *const dirs[] = { SHARED_HOME_LAYER, SHARED_HOME_UPPER, WORK };
    int at = run->record.dir.dir_fd;
    struct stat st;
    if (stat(home, &st) < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "shared home '%s'", home);
    }
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        if (fchownat(at, dirs[i], st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
            errno != EPERM) {
            return ERR_SYS(e, "change the owner of '%s'", dirs[i]);
        }
    }
    return fchmodat(at, SHARED_HOME_UPPER, st.st_mode & 0777, 0) < 0
               ? ERR_SYS(e, "set the mode of '" SHARED_HOME_UPPER "'")
               : 0;
}

int shared_home_open(struct run *run, const char **ret, struct err *e)
{
    const char *home = getenv("HOME");
    int at = run->record.dir.dir_fd;
    *ret = NULL;
    if (run->plan->settings.home != HOME_SHARED) {
        return 0;
    }
    if (home == NULL || home[0] != '/') {
        return ERR(e, ERR_CONFIG, "a shared home needs the variable HOME");
    }
    int r = file_mkdirs(at, SHARED_HOME_UPPER, 0700, e);
    r = r < 0 ? r : file_mkdirs(at, WORK, 0700, e);
    r = r < 0 ? r : dress_layer(run, home, e);
    *ret = arena_printf(run->arena, "%s/" SHARED_HOME_LAYER, run->record.dir.path);
    return r;
}

/* --- what outlives the run --- */

/* A login is renewed by the harness. Only where the user has one, and only by one of its kind: the
 * agent could write anything, and the user's own harness will obey it outside the sandbox. */
static int write_login(struct run *run, const struct profile_login *l, int layer, int home,
                       struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf before = BUF_INIT(LOGIN_MAX);
    CLEANUP(buf) struct buf text = BUF_INIT(LOGIN_MAX);
    CLEANUP(fd) int fd = file_open_below(layer, str_of(l->file));
    if (fd < 0 || !file_exists(home, l->file)) {
        return 0;
    }
    if (file_read(home, l->file, LOGIN_MAX, &before, NULL) < 0 ||
        file_read_fd(fd, l->file, LOGIN_MAX, &text, NULL) < 0) {
        run_warn(run, "'%s' of the shared home was changed and cannot be read: not kept", l->file);
        return 0;
    }
    if (str_eq(buf_str(&before), buf_str(&text))) {
        return 0;
    }
    const struct json *tree = login_read(a, buf_str(&text));
    const struct json *has = l->has == NULL ? tree : json_pointer(tree, str_of(l->has));
    if (tree == NULL || has == NULL || (l->has != NULL && json_str(has, STR_EMPTY).len == 0)) {
        run_warn(run, "'%s' of the shared home was changed and is no longer a login: not kept",
                 l->file);
        return 0;
    }
    if (!login_renews(a, buf_str(&before), buf_str(&text))) {
        run_warn(run,
                 "'%s' of the shared home was changed in more than the values of a login: not kept",
                 l->file);
        return 0;
    }
    run_warn(run, "the agent renewed the login in '%s' of the shared home", l->file);
    return file_write_atomic(home, l->file, buf_str(&text), 0600, e);
}

static int write_back(struct run *run, int layer, int home, struct err *e)
{
    const struct profile *p = run->plan->settings.profile;
    int r = harness_session_write_back(run, layer, home, e);
    for (size_t i = 0; r == 0 && i < p->auth.logins_len; i++) {
        r = write_login(run, &p->auth.logins[i], layer, home, e);
    }
    return r;
}

void shared_home_close(struct run *run)
{
    int at = run->record.dir.dir_fd;
    struct err e = { 0 };
    if (run->confine.policy.home_layer == NULL) {
        return;
    }
    CLEANUP(fd)
    int layer = openat(at, SHARED_HOME_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(fd)
    int home = open(run->confine.policy.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (layer >= 0 && home >= 0 && run->exec.launched && write_back(run, layer, home, &e) < 0) {
        run_warn(run, "conversation files of the shared home could not be written back: %s", e.msg);
    }
    if (file_remove_tree(at, SHARED_HOME_LAYER, &e) < 0) {
        run_warn(run, "'%s' could not be removed: %s", SHARED_HOME_LAYER, e.msg);
    }
}
