/* SPDX-License-Identifier: MIT
 *
 * Ids are time-ordered, so all runs of the same minutes begin with the same digits: the end of an
 * id is as good a name as its beginning.
 */
#include "record/run_store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "record/rundir.h"
#include "record/state.h"

enum {
    PART_MIN = 4,        /* digits of an id */
    CANDIDATES_SHOWN = 5 /* of an ambiguous one */
};

const char *run_short_id(const char *run_id)
{
    size_t len = strlen(run_id);
    return len > RUN_SHORT_ID ? run_id + len - RUN_SHORT_ID : run_id;
}

/* --- list --- */

static bool has_record(int dir_fd)
{
    return faccessat(dir_fd, "state.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
           faccessat(dir_fd, "manifest.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool read_run(struct arena *a, int store_fd, const char *store, const char *name,
                     struct stored_run *ret)
{
    struct state state;
    struct stat st;
    CLEANUP(fd) int fd = openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !has_record(fd) || fstat(fd, &st) != 0) {
        return false;
    }
    struct rundir dir = { .dir_fd = fd, .reserve_fd = -1 };
    bool known = state_read(&state, &dir, a, NULL) == 0;
    *ret = (struct stored_run) {
        .path = arena_printf(a, "%s/%s", store, name),
        .name = arena_dup(a, str_of(name)),
        .run_id = known ? arena_dup(a, str_of(state.run_id)) : "",
        .started = known && state.started_wall > 0
                       ? state.started_wall
                       : st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec,
    };
    return true;
}

static int compare_newest(const void *left, const void *right)
{
    const struct stored_run *x = left;
    const struct stored_run *y = right;
    if (x->started != y->started) {
        return x->started > y->started ? -1 : 1;
    }
    int order = strcmp(y->run_id, x->run_id);
    return order != 0 ? order : strcmp(y->name, x->name);
}

static void add_run(struct arena *a, struct run_list *list, size_t *room, struct stored_run run)
{
    if (list->count == *room) {
        *room = *room == 0 ? 64 : *room * 2;
        struct stored_run *more = arena_array(a, *room, sizeof *more);
        for (size_t i = 0; i < list->count; i++) {
            more[i] = list->runs[i];
        }
        list->runs = more;
    }
    list->runs[list->count++] = run;
}

int run_store_list(struct arena *a, const char *store, struct run_list *ret, struct err *e)
{
    char path[PATH_MAX];
    size_t room = 0;
    *ret = (struct run_list) { 0 };
    int r = path_absolute(store, path, sizeof path, e);
    if (r < 0) {
        return r;
    }
    DIR *d = opendir(path);
    if (d == NULL) {
        return errno == ENOENT ? 0 : ERR_SYS_AS(e, ERR_INPUT, "cannot open run store '%s'", store);
    }
    for (struct dirent *x = readdir(d); x != NULL; x = readdir(d)) {
        struct stored_run run;
        if (x->d_name[0] != '.' && read_run(a, dirfd(d), path, x->d_name, &run)) {
            add_run(a, ret, &room, run);
        }
    }
    (void)closedir(d);
    if (ret->count > 1) {
        qsort(ret->runs, ret->count, sizeof *ret->runs, compare_newest);
    }
    return 0;
}

/* --- find --- */

/* "last", "last-0" and "last-2" to 0, 0 and 2. */
static bool read_last(const char *name, int64_t *ret)
{
    *ret = 0;
    return strcmp(name, "last") == 0 ||
           (strncmp(name, "last-", 5) == 0 && isdigit((unsigned char)name[5]) &&
            str_to_i64(str_of(name + 5), ret));
}

/* The hex digits of an id without its dashes; false if it has others, or too few. */
static bool read_digits(const char *text, char out[RUN_SHORT_ID * 4 + 1])
{
    size_t n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '-') {
            continue;
        }
        if (!isxdigit((unsigned char)*p) || n >= (size_t)RUN_SHORT_ID * 4) {
            return false;
        }
        out[n++] = (char)tolower((unsigned char)*p);
    }
    out[n] = '\0';
    return n >= PART_MIN;
}

static bool id_matches(const struct stored_run *run, const char *part)
{
    char digits[RUN_SHORT_ID * 4 + 1];
    return read_digits(run->run_id, digits) &&
           (str_starts(str_of(digits), str_of(part)) || str_ends(str_of(digits), str_of(part)));
}

static struct run_list select_runs(struct arena *a, const struct run_list *all, const char *name)
{
    char part[RUN_SHORT_ID * 4 + 1];
    struct run_list found = { 0 };
    size_t room = 0;
    bool is_part = read_digits(name, part);
    for (size_t i = 0; i < all->count; i++) {
        const struct stored_run *run = &all->runs[i];
        if (strcmp(run->name, name) == 0) {
            found = (struct run_list) { 0 };
            add_run(a, &found, &(size_t) { 0 }, *run);
            return found;
        }
        if (is_part && id_matches(run, part)) {
            add_run(a, &found, &room, *run);
        }
    }
    return found;
}

static int report_ambiguous(const struct run_list *found, const char *name, struct err *e)
{
    CLEANUP(buf) struct buf list = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < found->count && i < CANDIDATES_SHOWN; i++) {
        buf_addf(&list, "%s%s", i == 0 ? "" : ", ", found->runs[i].run_id);
    }
    buf_adds(&list, found->count > CANDIDATES_SHOWN ? ", ..." : "");
    return ERR(e, ERR_USAGE, "'%.80s' matches %zu runs: %s", name, found->count, list.ptr);
}

static int find_last(const struct run_list *all, int64_t back, const char *name,
                     const char **ret_path, struct err *e)
{
    if (all->count == 0) {
        return ERR(e, ERR_INPUT, "there is no '%s': the run store is empty", name);
    }
    if (back < 0 || (size_t)back >= all->count) {
        return ERR(e, ERR_INPUT, "there is no '%s': the run store has %zu run%s", name, all->count,
                   all->count == 1 ? "" : "s");
    }
    *ret_path = all->runs[back].path;
    return 0;
}

int run_store_find(struct arena *a, const char *store, const char *name, const char **ret_path,
                   struct err *e)
{
    struct run_list all;
    int64_t back;
    *ret_path = name;
    if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return 0;
    }
    int r = run_store_list(a, store, &all, e);
    if (r < 0) {
        return file_is_dir(AT_FDCWD, name) ? 0 : r;
    }
    if (read_last(name, &back)) {
        return find_last(&all, back, name, ret_path, e);
    }
    struct run_list found = select_runs(a, &all, name);
    if (file_is_dir(AT_FDCWD, name)) {
        return found.count == 0 ? 0
                                : ERR(e, ERR_USAGE,
                                      "'%s' is a directory here and also a run of the store: use "
                                      "'./%s' or a longer part of the id",
                                      name, name);
    }
    if (found.count > 1) {
        return report_ambiguous(&found, name, e);
    }
    if (found.count == 0) {
        return ERR(e, ERR_INPUT, "there is no run '%.200s', neither here nor in the run store",
                   name);
    }
    *ret_path = found.runs[0].path;
    return 0;
}
