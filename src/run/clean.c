/* SPDX-License-Identifier: MIT
 *
 * One run directory: who owns it, what it costs, what may go.
 */
#include "run/clean.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "record/rundir.h"
#include "run/recover_run.h"
#include "workspace/tree.h"

enum { STATE_MAX = 1 << 20 };
static const char *const private_parts[] = { "work", "home" };

static int64_t measure(int at, const char *name)
{
    struct tree_stats s;
    CLEANUP(fd) int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || tree_measure(fd, &s, NULL) < 0 ? 0 : s.disk;
}

static void look(struct arena *a, const struct rundir *d, struct clean_item *ret)
{
    struct stat st;
    struct json *state = rundir_read_object(d, "state.json", STATE_MAX, a);
    ret->state = json_cstring(json_get(state, "state"), "");
    for (size_t i = 0; i < ARRAY_LEN(private_parts); i++) {
        ret->work_bytes += measure(d->dir_fd, private_parts[i]);
    }
    ret->record_bytes = measure(d->dir_fd, ".") - ret->work_bytes;
    /* The last thing that a run writes. */
    if (fstatat(d->dir_fd, "state.json", &st, AT_SYMLINK_NOFOLLOW) == 0) {
        ret->ended = (int64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
    }
}

static int act(const struct rundir *d, enum clean_action action, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(private_parts); i++) {
        r = file_remove_tree(d->dir_fd, private_parts[i], e);
    }
    return r < 0 || action != CLEAN_RECORD ? r : file_remove_tree(AT_FDCWD, d->path, e);
}

int clean_run(struct arena *a, const char *dir, const struct clean_opts *o, struct clean_item *ret,
              struct err *e)
{
    CLEANUP(rundir) struct rundir d = RUNDIR_INIT;
    *ret = (struct clean_item) { .path = arena_dup(a, str_of(dir)), .state = "" };
    int r = rundir_open(&d, dir, e);
    if (r < 0 && r != -ERR_EXISTS) {
        return r;
    }
    if (!file_exists(d.dir_fd, "state.json") || !file_exists(d.dir_fd, "events.jsonl")) {
        return ERR(e, ERR_INPUT, "'%s' holds no run", dir);
    }
    ret->alive = r == -ERR_EXISTS;
    look(a, &d, ret);
    if (ret->alive || (o->older_than > 0 && ret->ended > o->older_than)) {
        return 0;
    }
    ret->action = o->records ? CLEAN_RECORD : ret->work_bytes > 0 ? CLEAN_WORKSPACE : CLEAN_NOTHING;
    if (o->dry_run || ret->action == CLEAN_NOTHING) {
        return 0;
    }
    if (strcmp(ret->state, "running") == 0) { /* its process died: the record gets its end first */
        rundir_done(&d);
        r = run_recover(dir, NULL, e);
        r = r < 0 ? r : rundir_open(&d, dir, e);
        if (r < 0) {
            return r;
        }
    }
    return act(&d, ret->action, e);
}
