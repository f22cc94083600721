/* SPDX-License-Identifier: MIT
 *
 * Another name for the run's directory; see short_path.h.
 *
 * The file SHORT_PATH_NOTE in the run's directory holds the name of the temporary directory, for
 * `cinch recover`. An agent without a sandbox can write it, so what it says is believed only as far
 * as the link in that directory leads back here.
 */
#include "run/short_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "run/run_priv.h"

#define SHORT_PATH_NOTE "short-path"
#define LINK            "r"

/* With room for what harnesses put below their home, sockets for example. */
enum { PLAIN_MAX = 100, NAME_MAX_LEN = sizeof "/cinch-XXXXXX/" LINK };

bool short_path_is_plain(const char *path)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789/._-+@";
    size_t len = strlen(path);
    return len <= PLAIN_MAX && strspn(path, good) == len;
}

/* Does the sandbox show the host's own directory there? Then the link would be in the way of what
 * is mounted below its name. */
static bool is_shown(const struct run *run, const char *place)
{
    const struct sandbox_policy *p = &run->confine.policy;
    const char *const *const lists[] = { p->read, p->write };
    bool shown = run->paths.view != NULL && path_is_below(place, run->paths.view);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        for (size_t k = 0; lists[i] != NULL && lists[i][k] != NULL; k++) {
            shown = shown || path_is_below(place, lists[i][k]);
        }
    }
    return shown;
}

/* A new private directory; NULL: there is no place for one. */
static const char *make_temporary(struct run *run)
{
    const char *const places[] = { getenv("TMPDIR"), "/tmp", "/var/tmp" };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (places[i] == NULL || places[i][0] != '/' ||
            strlen(places[i]) + NAME_MAX_LEN > PLAIN_MAX || !short_path_is_plain(places[i]) ||
            is_shown(run, places[i])) {
            continue;
        }
        char *dir = arena_printf(run->arena, "%s/cinch-XXXXXX", places[i]);
        if (mkdtemp(dir) != NULL) {
            return dir;
        }
    }
    return NULL;
}

int short_path_make(struct run *run, struct err *e)
{
    const char *dir = run->record.dir.path;
    run->paths.dir = dir;
    if (short_path_is_plain(dir)) {
        return 0;
    }
    const char *made = make_temporary(run);
    if (made == NULL) {
        run_warn(run, "the output path is long or has unusual characters, which some agents cannot "
                      "handle, and there is no temporary directory for a shorter name");
        return 0;
    }
    int r = file_write_atomic(run->record.dir.dir_fd, SHORT_PATH_NOTE, str_of(made), 0600, e);
    const char *link = arena_printf(run->arena, "%s/" LINK, made);
    if (r == 0 && symlink(dir, link) < 0) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", link);
    }
    if (r < 0) {
        (void)rmdir(made);
        return r;
    }
    run->paths.short_dir = made;
    run->paths.dir = link;
    return 0;
}

/* Only a link to this run, and the directory that it is in if that is all there is. */
static void remove_link(const char *made, const char *dir)
{
    char target[PATH_MAX];
    CLEANUP(fd) int fd = open(made, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : readlinkat(fd, LINK, target, sizeof target - 1);
    if (n <= 0) {
        return;
    }
    target[n] = '\0';
    if (strcmp(target, dir) == 0 && unlinkat(fd, LINK, 0) == 0) {
        (void)rmdir(made);
    }
}

void short_path_remove(struct run *run)
{
    if (run->paths.short_dir != NULL) {
        remove_link(run->paths.short_dir, run->record.dir.path);
        (void)unlinkat(run->record.dir.dir_fd, SHORT_PATH_NOTE, 0);
        run->paths.short_dir = NULL;
    }
}

void short_path_recover(const char *dir)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf made = BUF_INIT(PATH_MAX);
    CLEANUP(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd)
    int note =
        fd < 0 ? -1 : openat(fd, SHORT_PATH_NOTE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (note < 0) {
        return;
    }
    if (file_read_fd(note, SHORT_PATH_NOTE, made.max, &made, NULL) >= 0 &&
        !str_has_nul(buf_str(&made))) {
        remove_link(arena_dup(a, buf_str(&made)), dir);
    }
    (void)unlinkat(fd, SHORT_PATH_NOTE, 0);
}
